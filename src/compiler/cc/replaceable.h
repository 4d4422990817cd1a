/* Library functions that a target may have better code for.
 *
 * A function __sp_target_NAME is defined in the builtin library for every target
 * (kernels/target.h). LINK leaves it whole, and calls of it; then CODE takes that definition, or
 * the target's own. */
#ifndef SP_COMPILER_CC_REPLACEABLE_H
#define SP_COMPILER_CC_REPLACEABLE_H

#include "compiler/cc/ir.h"

#define SP_TARGET_PREFIX "__sp_target_"

/* A pointer to an atomic object and the scope of an operation: gives the pointer, and keeps the
 * scope, which IR for spir64 has no word for. */
#define SP_SCOPED_NAME "__sp_target_scoped"

/* memory_scope_all_svm_devices of opencl-c-base.h. */
#define SP_SCOPE_ALL_DEVICES 3u

/* A copy from its second argument to its first. */
#define SP_GROUP_COPY_NAME "__sp_target_group_copy"

bool sp_cc_is_replaceable(LLVMValueRef function);

/* LINK: makes a replaceable definition ready to be left whole. */
void sp_cc_keep_replaceable(LLVMValueRef function);

/* CODE: inlines the library's own definitions, and cleans up behind them. A message on failure, to
 * be freed, else NULL. */
char *sp_cc_take_replaceable(LLVMModuleRef module);

#endif
