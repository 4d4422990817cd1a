/* See loop_marks.h. Called by what lets LLVM's unroller or its versioning work on chosen loops
 * (unroll.c, row_turns.c, sums.c). */
#include "compiler/cc/workgroup/loop_marks.h"

static unsigned loop_kind(LLVMContextRef context)
{
    return LLVMGetMDKindIDInContext(context, "llvm.loop", 9);
}

bool sp_wg_mark_own_loop(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop,
                         void (*how)(LLVMContextRef context, LLVMValueRef latch))
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(graph->function));
    bool marked = false;
    SP_BITS_EACH(b, &loop->blocks)
    {
        LLVMValueRef latch = LLVMGetBasicBlockTerminator(graph->blocks[b]);
        if (!sp_wg_leads_to(graph, b, loop->header) || LLVMGetMetadata(latch, loop_kind(context)))
            continue;
        how(context, latch);
        marked = true;
    }
    return marked;
}

void sp_wg_unmark_own_loops(LLVMValueRef function)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        LLVMSetMetadata(LLVMGetBasicBlockTerminator(block), loop_kind(context), NULL);
}
