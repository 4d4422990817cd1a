/* Divisions of floats that need not be correctly rounded. Works on optimised IR for NVPTX. */
#ifndef SP_COMPILER_CC_GPU_PRECISION_H
#define SP_COMPILER_CC_GPU_PRECISION_H

#include "compiler/cc/ir.h"

/* Replaces them in a function by the hardware's quicker ones. flush: subnormal numbers count as
 * zero
 * (-cl-denorms-are-zero). */
void sp_gpu_relax_divisions(LLVMModuleRef module, LLVMValueRef function, bool flush);

#endif
