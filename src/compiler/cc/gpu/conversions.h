/* Conversions to integers in a library for NVIDIA GPUs. */
#ifndef SP_COMPILER_CC_GPU_CONVERSIONS_H
#define SP_COMPILER_CC_GPU_CONVERSIONS_H

#include <llvm-c/Core.h>

/* Makes every conversion of a floating-point number to an integer one that saturates. */
void sp_gpu_saturate_conversions(LLVMModuleRef module);

#endif
