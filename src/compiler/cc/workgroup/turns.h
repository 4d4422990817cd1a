/* Loops in which work-items start apart and go on in equal steps: turns that all of them take are
 * taken together. */
#ifndef SP_COMPILER_CC_WORKGROUP_TURNS_H
#define SP_COMPILER_CC_WORKGROUP_TURNS_H

#include "compiler/cc/ir.h"

/* What sp_wg_share_turns asks for: two ways out of a block at most, and loop-closed SSA. */
#define SP_WG_CLOSED_LOOPS "function(lower-switch,loop-simplify,lcssa)"

/* Takes common turns out of the loops of `kernel`, a definition of the module in SSA form.
 * `known` is its local size, or NULL. True where it changed something. */
bool sp_wg_share_turns(LLVMModuleRef module, LLVMValueRef kernel, const uint64_t *known);

/* True for the branch back of a loop that is left of one whose common turns were taken out. */
bool sp_wg_is_rest(LLVMValueRef latch);

#endif
