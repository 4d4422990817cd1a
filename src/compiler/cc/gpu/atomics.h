/* Atomic operations and fences as PTX has them. Works on IR for NVPTX. */
#ifndef SP_COMPILER_CC_GPU_ATOMICS_H
#define SP_COMPILER_CC_GPU_ATOMICS_H

#include "compiler/cc/gpu/entry.h"

#include <llvm-c/TargetMachine.h>

/* The name of the fence that a target may replace: void(uint order, uint scope). */
#define SP_FENCE_NAME "__sp_target_fence"

/* What carries out operations of all-devices scope where the hardware cannot
 * (kernels/nvptx/unit.cl); it stays a function. */
#define SP_GPU_UNIT_NAME "__sp_unit_perform"

/* Replaces every atomic operation and fence of an entry into which everything is inlined. A message
 * on failure, to be freed, else NULL. */
char *sp_gpu_lower_atomics(LLVMModuleRef module, const struct sp_gpu_entry *entry,
                           LLVMTargetMachineRef machine);

#endif
