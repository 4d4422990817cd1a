/* Vectors of three elements in the initial values of variables, on the way to NVIDIA GPUs. */
#ifndef SP_COMPILER_CC_GPU_CONSTANTS_H
#define SP_COMPILER_CC_GPU_CONSTANTS_H

#include <llvm-c/Core.h>

/* Gives variables whose type has such vectors in it a type of the same layout that says where their
 * padding is. After all optimisation, so that nothing makes new ones. */
void sp_gpu_pad_constants(LLVMModuleRef module);

#endif
