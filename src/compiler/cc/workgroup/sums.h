/* Sums that a loop keeps in memory, as `for (...) out[id] += ...`: kept in registers where nothing
 * else that the loop accesses lies at the same place. */
#ifndef SP_COMPILER_CC_WORKGROUP_SUMS_H
#define SP_COMPILER_CC_WORKGROUP_SUMS_H

#include "compiler/cc/ir.h"

#include <llvm-c/TargetMachine.h>

/* Makes two loops of each such loop of `kernels`, functions of the module in SSA form, before
 * sp_wg_prepare: which runs is asked before it. All other functions stay as they are. A message on
 * failure, to be freed, else NULL. */
char *sp_wg_keep_sums(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count,
                      LLVMTargetMachineRef machine);

#endif
