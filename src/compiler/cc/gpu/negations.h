/* Negated factors on the way to NVIDIA GPUs. */
#ifndef SP_COMPILER_CC_GPU_NEGATIONS_H
#define SP_COMPILER_CC_GPU_NEGATIONS_H

#include <llvm-c/Core.h>

/* Turns every product with a negated factor into the negation of the product: the same value, but
 * for the sign of a NaN. */
void sp_gpu_negate_products(LLVMModuleRef module);

#endif
