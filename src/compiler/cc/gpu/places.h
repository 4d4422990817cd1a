/* Where variables of a program lie on a GPU. Works on IR as LINK left it. */
#ifndef SP_COMPILER_CC_GPU_PLACES_H
#define SP_COMPILER_CC_GPU_PLACES_H

#include "compiler/cc/layout.h"

/* Stands for dynamic local memory: a variable without a size. */
#define SP_GPU_LOCAL_MEMORY_NAME "__sp_local_memory"

/* Stands for the address of the program-scope variables: a function without arguments. */
#define SP_GPU_GLOBALS_NAME "__sp_globals"

/* Takes program-scope variables from the globals block, gives collectives their scratch memory,
 * and, where a kernel's static local variables (locals[i] of kernels[i]) are more than the module
 * may hold, puts those at the start of dynamic local memory. Adds sp_globals_init where it is
 * needed. */
void sp_gpu_place_variables(LLVMModuleRef module, LLVMValueRef *kernels,
                            const struct sp_cc_layout *locals, size_t num_kernels,
                            const struct sp_cc_layout *globals);

#endif
