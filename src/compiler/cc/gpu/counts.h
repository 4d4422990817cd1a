/* Counting on the way to NVIDIA GPUs. */
#ifndef SP_COMPILER_CC_GPU_COUNTS_H
#define SP_COMPILER_CC_GPU_COUNTS_H

#include <llvm-c/Core.h>

/* Turns additions of a condition, which is 0 and 1 or 0 and -1, to an integer of 32 or 64 bits that
 * nothing else needs into additions under that condition. After all optimisation: LLVM does not see
 * through them. */
void sp_gpu_count_under_conditions(LLVMModuleRef module);

#endif
