/* Integer division that cannot trap. */
#ifndef SP_COMPILER_CC_DIVISION_H
#define SP_COMPILER_CC_DIVISION_H

#include <llvm-c/Core.h>

/* Guards every integer division and remainder whose divisor is not known to be harmless. Before any
 * optimisation, which may take a division for a promise that its divisor is not zero. */
void sp_cc_guard_divisions(LLVMModuleRef module);

#endif
