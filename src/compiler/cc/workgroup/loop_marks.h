/* Marks on loops of the kernel's own that tell a pass of LLVM's what to do with them, and that are
 * gone when it has run. */
#ifndef SP_CC_WORKGROUP_LOOP_MARKS_H
#define SP_CC_WORKGROUP_LOOP_MARKS_H

#include "compiler/cc/workgroup/graph.h"

#include <llvm-c/Core.h>
#include <stdbool.h>

/* Marks the branches back to a loop's header by `how` (metadata.h); those that the source has said
 * something of, or that are marked, are left alone. Whether any was marked. */
bool sp_wg_mark_own_loop(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop,
                         void (*how)(LLVMContextRef context, LLVMValueRef latch));

/* Takes the marks of all loops of a function. */
void sp_wg_unmark_own_loops(LLVMValueRef function);

#endif
