/* Local memory ends with the group that it belongs to: a store that nobody reads before that is of
 * no use. */
#ifndef SP_COMPILER_CC_WORKGROUP_ENDS_H
#define SP_COMPILER_CC_WORKGROUP_ENDS_H

#include <llvm-c/Core.h>

/* Marks the place where the builder stands, before a group's return, as the end of what lies behind
 * `pointer`. */
void sp_wg_mark_end(LLVMBuilderRef builder, LLVMModuleRef module, LLVMValueRef pointer);

/* Hands on to later regions what is stored in local memory, and deletes the stores that are then
 * read by nobody; the marks are gone afterwards. A message on failure, to be freed, else NULL. */
struct LLVMOpaqueTargetMachine;
char *sp_wg_finish_ends(LLVMModuleRef module, struct LLVMOpaqueTargetMachine *machine);

#endif
