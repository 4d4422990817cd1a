/* Functions of the library that a target may have better code for (docs/compiler-contract.md,
 * "Replaceable functions").
 *
 * Each has a definition here, in kernels/, for every target; samepage-cc keeps calls of it apart
 * until code is made, and then takes that definition or the target's own (kernels/nvptx/).
 */
#ifndef SP_KERNELS_TARGET_H
#define SP_KERNELS_TARGET_H

#include "intrinsics.h"

/* Never inlined while the library is built, since the call is what LINK keeps; and weak, so that
 * callers in the same file learn nothing from this definition that another would not keep. */
#define REPLACEABLE __attribute__((noinline, weak))

/* The same pointer; on a target with scopes, an atomic operation through it has this scope. */
__generic void *CONST_FUNCTION __sp_target_scoped(__generic void *pointer, uint scope);

/* Keeps accesses before and after it apart, as far as order and scope want it. */
void __sp_target_fence(uint order, uint scope);

/* Copies for the whole work-group, all of which call it; both places are multiples of unit, a power
 * of two. */
void __sp_target_group_copy(__generic void *destination, const __generic void *source, ulong bytes,
                            uint unit);

#define DECLARE_TARGET_1(name) float CONST_FUNCTION __sp_target_##name##f(float);
#define DECLARE_TARGET_2(name) float CONST_FUNCTION __sp_target_##name##f(float, float);

DECLARE_TARGET_1(exp)
DECLARE_TARGET_1(exp10)
DECLARE_TARGET_1(exp2)
DECLARE_TARGET_1(log)
DECLARE_TARGET_1(log10)
DECLARE_TARGET_1(log2)
DECLARE_TARGET_1(rsqrt)
DECLARE_TARGET_1(sqrt)
DECLARE_TARGET_1(native_cos)
DECLARE_TARGET_1(native_exp)
DECLARE_TARGET_1(native_exp10)
DECLARE_TARGET_1(native_exp2)
DECLARE_TARGET_1(native_log)
DECLARE_TARGET_1(native_log10)
DECLARE_TARGET_1(native_log2)
DECLARE_TARGET_1(native_recip)
DECLARE_TARGET_1(native_rsqrt)
DECLARE_TARGET_1(native_sin)
DECLARE_TARGET_1(native_sqrt)
DECLARE_TARGET_1(native_tan)
DECLARE_TARGET_2(native_divide)
DECLARE_TARGET_2(native_powr)
float CONST_FUNCTION __sp_target_pownf(float, int);
float CONST_FUNCTION __sp_target_rootnf(float, int);

#undef DECLARE_TARGET_1
#undef DECLARE_TARGET_2

#endif
