/* The functions that the builtin library needs and does not define (docs/compiler-contract.md).
 *
 * samepage-cc replaces each of the first three groups by code for the device: an index of its
 * work-item loops, a load from the launch record, a barrier between two regions. Those that depend
 * on nothing but the work-item are `const`, so that a repeated call is one call.
 *
 * The last group is glibc's libm under a prefix, `__sp_libm_` and the C name; samepage-cc renames
 * it, and gives calls in vectorised loops the variants of libmvec. The prefix keeps the names apart
 * from what a program may define, and from what LLVM believes of a function called `sin`.
 */
#ifndef SP_KERNELS_INTRINSICS_H
#define SP_KERNELS_INTRINSICS_H

#include <opencl-c-base.h>

#define CONST_FUNCTION __attribute__((const))

size_t CONST_FUNCTION __sp_local_id_0(void);
size_t CONST_FUNCTION __sp_local_id_1(void);
size_t CONST_FUNCTION __sp_local_id_2(void);
size_t CONST_FUNCTION __sp_group_id_0(void);
size_t CONST_FUNCTION __sp_group_id_1(void);
size_t CONST_FUNCTION __sp_group_id_2(void);
size_t CONST_FUNCTION __sp_local_size_0(void);
size_t CONST_FUNCTION __sp_local_size_1(void);
size_t CONST_FUNCTION __sp_local_size_2(void);
size_t CONST_FUNCTION __sp_enqueued_local_size_0(void);
size_t CONST_FUNCTION __sp_enqueued_local_size_1(void);
size_t CONST_FUNCTION __sp_enqueued_local_size_2(void);
size_t CONST_FUNCTION __sp_global_size_0(void);
size_t CONST_FUNCTION __sp_global_size_1(void);
size_t CONST_FUNCTION __sp_global_size_2(void);
size_t CONST_FUNCTION __sp_global_offset_0(void);
size_t CONST_FUNCTION __sp_global_offset_1(void);
size_t CONST_FUNCTION __sp_global_offset_2(void);
size_t CONST_FUNCTION __sp_num_groups_0(void);
size_t CONST_FUNCTION __sp_num_groups_1(void);
size_t CONST_FUNCTION __sp_num_groups_2(void);
uint CONST_FUNCTION __sp_work_dim(void);

/* Every work-item of the group arrives before any goes on; local and global memory are in order. */
void __attribute__((convergent)) __sp_barrier(void);

/* 8 bytes for each work-item of the largest group, shared by the group. Whoever uses it leaves
 * it free for the next use: no work-item may still read when another starts to write. */
__local void *CONST_FUNCTION __sp_group_scratch(void);

int CONST_FUNCTION __sp_is_local(const __generic void *pointer);
int CONST_FUNCTION __sp_is_private(const __generic void *pointer);

#define DECLARE_LIBM_1(name)                                                                       \
    float CONST_FUNCTION __sp_libm_##name##f(float);                                               \
    double CONST_FUNCTION __sp_libm_##name(double);
#define DECLARE_LIBM_2(name)                                                                       \
    float CONST_FUNCTION __sp_libm_##name##f(float, float);                                        \
    double CONST_FUNCTION __sp_libm_##name(double, double);

DECLARE_LIBM_1(acos)
DECLARE_LIBM_1(acosh)
DECLARE_LIBM_1(asin)
DECLARE_LIBM_1(asinh)
DECLARE_LIBM_1(atan)
DECLARE_LIBM_1(atanh)
DECLARE_LIBM_1(cbrt)
DECLARE_LIBM_1(cos)
DECLARE_LIBM_1(cosh)
DECLARE_LIBM_1(erf)
DECLARE_LIBM_1(erfc)
DECLARE_LIBM_1(lgamma)
DECLARE_LIBM_1(log)
DECLARE_LIBM_1(log10)
DECLARE_LIBM_1(log2)
DECLARE_LIBM_1(sin)
DECLARE_LIBM_1(sinh)
DECLARE_LIBM_1(tan)
DECLARE_LIBM_1(tanh)
DECLARE_LIBM_1(tgamma)
DECLARE_LIBM_2(atan2)
DECLARE_LIBM_2(fmod)
DECLARE_LIBM_2(hypot)
DECLARE_LIBM_2(pow)
DECLARE_LIBM_2(remainder)

#undef DECLARE_LIBM_1
#undef DECLARE_LIBM_2

#endif
