/* Unrolls the loops in which values are handed from variable to variable, and short ones that add
 * up a value of each work-item. */
#ifndef SP_COMPILER_CC_WORKGROUP_UNROLL_H
#define SP_COMPILER_CC_WORKGROUP_UNROLL_H

#include <llvm-c/TargetMachine.h>

/* Unrolls such loops of `kernels`, functions of the module, wholly, and cleans up where it found
 * any. Before sp_wg_prepare. A message on failure, to be freed, else NULL. */
char *sp_wg_unroll(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count,
                   LLVMTargetMachineRef machine);

#endif
