/* Vectors in memory that are not aligned as a whole. Works on optimised IR for NVPTX. */
#ifndef SP_COMPILER_CC_GPU_UNALIGNED_H
#define SP_COMPILER_CC_GPU_UNALIGNED_H

#include <llvm-c/Core.h>

/* Loads and stores them element by element (vload16 of bytes, say). */
void sp_gpu_split_unaligned(LLVMModuleRef module, LLVMValueRef function);

#endif
