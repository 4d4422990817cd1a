/* Atomic operations and fences as PTX has them. Works on IR for NVPTX. */
#ifndef SP_COMPILER_CC_GPU_ATOMICS_H
#define SP_COMPILER_CC_GPU_ATOMICS_H

#include "compiler/cc/ir.h"

#include <llvm-c/TargetMachine.h>

/* The name of the fence that a target may replace: void(uint order, uint scope). */
#define SP_FENCE_NAME "__sp_target_fence"

/* Replaces every atomic operation and fence of a function into which everything is inlined. A
 * message on failure, to be freed, else NULL. */
char *sp_gpu_lower_atomics(LLVMModuleRef module, LLVMValueRef function,
                           LLVMTargetMachineRef machine);

#endif
