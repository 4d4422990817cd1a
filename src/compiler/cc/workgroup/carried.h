/* One variable for each value that a loop carries from turn to turn. */
#ifndef SP_COMPILER_CC_WORKGROUP_CARRIED_H
#define SP_COMPILER_CC_WORKGROUP_CARRIED_H

#include "compiler/cc/ir.h"

/* Puts divergent values that loops of `kernel` carry into variables. The kernel is in SSA and
 * loop-closed form, and is about to have variables for all values that cross blocks. */
void sp_wg_share_variables(LLVMValueRef kernel);

#endif
