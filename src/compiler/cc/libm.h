/* Calls of the C library's mathematics, and its vector variants. */
#ifndef SP_COMPILER_CC_LIBM_H
#define SP_COMPILER_CC_LIBM_H

#include <llvm-c/Core.h>
#include <stdint.h>

/* Gives every __sp_libm_NAME its C name and says that it has no side effects; adds to calls the
 * vector variants that are within OpenCL's error limits on vectors up to vector_bits wide. */
void sp_cc_bind_libm(LLVMModuleRef module, uint32_t vector_bits);

#endif
