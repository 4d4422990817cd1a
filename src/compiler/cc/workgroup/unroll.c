/* See unroll.h. The rounds of a hash hand each word of their state to the next variable (h = g; g =
 * f). As a loop over all work-items each round loads and stores the state of each of them, and
 * picks its words of the message by an index; unrolled, moves vanish, indices are constants, and
 * all of it stays in registers.
 *
 * LLVM's unroller does the work and finds the exact number of turns; what is computed here decides
 * only which loops are worth it. No mark is left: loops are made anew for all work-items. */
#include "compiler/cc/workgroup/unroll.h"

#include "compiler/cc/ir.h"
#include "compiler/cc/workgroup/graph.h"
#include "compiler/cc/workgroup/metadata.h"

#include <stdbool.h>
#include <string.h>

/* Variables of a loop that become another's value in the next turn. One or two are the rolling
 * window of a sum or a stencil, which gains little. */
#define MIN_HANDED_ON 3u

/* Instructions of a loop unrolled: 64 to 80 rounds of common hashes are 2000 to 6000. Twice as much
 * code takes a little more than twice as long to make. */
#define MAX_UNROLLED 8192u

#define UNROLL                                                                                     \
    "function(loop-simplify,lcssa,loop(loop-unroll-full),sroa<modify-cfg>,early-cse<memssa>,"      \
    "simplifycfg,instcombine<no-verify-fixpoint>,sroa<modify-cfg>,gvn<no-pre>,dse,adce,"           \
    "simplifycfg)"

/* What PHI `phi` of a loop's header becomes in the next turn (or is in the first); NULL where
 * several blocks say. */
static LLVMValueRef incoming(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop,
                             LLVMValueRef phi, bool from_inside)
{
    LLVMValueRef found = NULL;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        uint32_t block = sp_wg_block_number(graph, LLVMGetIncomingBlock(phi, i));
        bool inside = block != SP_WG_NONE && sp_bits_has(&loop->blocks, block);
        if (inside != from_inside)
            continue;
        if (found)
            return NULL;
        found = LLVMGetIncomingValue(phi, i);
    }
    return found;
}

static unsigned num_handed_on(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop)
{
    LLVMBasicBlockRef header = graph->blocks[loop->header];
    unsigned count = 0;
    for (LLVMValueRef phi = LLVMGetFirstInstruction(header); phi && LLVMIsAPHINode(phi);
         phi = LLVMGetNextInstruction(phi)) {
        LLVMValueRef next = incoming(graph, loop, phi, true);
        if (next && next != phi && LLVMIsAPHINode(next) && LLVMGetInstructionParent(next) == header)
            count++;
    }
    return count;
}

static bool constant(LLVMValueRef value, int64_t *number)
{
    if (!value || !LLVMIsAConstantInt(value) || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64)
        return false;
    *number = LLVMConstIntGetSExtValue(value);
    return true;
}

/* The bound that `value` is compared with, if one is seen. */
static bool bound_of(LLVMValueRef value, int64_t *bound)
{
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        LLVMUseRef result = LLVMGetFirstUse(user);
        if (LLVMIsAICmpInst(user) && constant(LLVMGetOperand(user, 1), bound) && result &&
            LLVMIsABranchInst(LLVMGetUser(result)))
            return true;
    }
    return false;
}

/* About how often the loop turns: the most that a counter from a constant to a constant says; 0
 * where none does. */
static uint64_t about_turns(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop)
{
    uint64_t most = 0;
    for (LLVMValueRef phi = LLVMGetFirstInstruction(graph->blocks[loop->header]);
         phi && LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi)) {
        int64_t start, step, bound;
        LLVMValueRef next = incoming(graph, loop, phi, true);
        if (!next || !LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd ||
            LLVMGetOperand(next, 0) != phi || !constant(LLVMGetOperand(next, 1), &step) || !step ||
            !constant(incoming(graph, loop, phi, false), &start))
            continue;
        if (!bound_of(phi, &bound) && !bound_of(next, &bound))
            continue;
        uint64_t distance =
            bound > start ? (uint64_t)bound - (uint64_t)start : (uint64_t)start - (uint64_t)bound;
        uint64_t turns = distance / (step > 0 ? (uint64_t)step : 0 - (uint64_t)step);
        most = turns > most ? turns : most;
    }
    return most;
}

static bool is_innermost(const struct sp_wg_graph *graph, uint32_t loop)
{
    for (uint32_t i = 0; i < graph->num_loops; i++)
        if (graph->loops[i].parent == loop)
            return false;
    return true;
}

/* The loop's instructions; 0 where it has a barrier: such a loop is in pieces anyway. */
static uint64_t size_of(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop)
{
    uint64_t size = 0;
    for (uint32_t b = 0; b < graph->num_blocks; b++) {
        if (!sp_bits_has(&loop->blocks, b))
            continue;
        for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[b]); value;
             value = LLVMGetNextInstruction(value), size++)
            if (sp_ir_calls(value, SP_BARRIER_NAME))
                return 0;
    }
    return size;
}

static bool pays(const struct sp_wg_graph *graph, uint32_t number)
{
    const struct sp_wg_loop *loop = &graph->loops[number];
    uint64_t turns = about_turns(graph, loop), size = size_of(graph, loop);
    return is_innermost(graph, number) && size && turns && turns <= MAX_UNROLLED / size &&
           num_handed_on(graph, loop) >= MIN_HANDED_ON;
}

/* Marks the branches back to the header; loops that the source has said something of are left
 * alone.
 */
static bool mark(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(graph->function));
    unsigned kind = LLVMGetMDKindIDInContext(context, "llvm.loop", 9);
    bool marked = false;
    for (uint32_t b = 0; b < graph->num_blocks; b++) {
        if (!sp_bits_has(&loop->blocks, b) || !sp_bits_has(&graph->predecessors[loop->header], b))
            continue;
        LLVMValueRef latch = LLVMGetBasicBlockTerminator(graph->blocks[b]);
        if (LLVMGetMetadata(latch, kind))
            continue;
        sp_wg_mark_unrolled_loop(context, latch);
        marked = true;
    }
    return marked;
}

/* Graphs are of functions whose switches were lowered, which they are only later. */
static bool has_switch(LLVMValueRef function)
{
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        if (LLVMIsASwitchInst(LLVMGetBasicBlockTerminator(block)))
            return true;
    return false;
}

static bool mark_loops(LLVMValueRef function)
{
    struct sp_wg_graph graph;
    bool any = false;
    if (has_switch(function))
        return false;
    sp_wg_graph_init(&graph, function);
    for (uint32_t i = 0; i < graph.num_loops; i++)
        if (!graph.irreducible && pays(&graph, i))
            any |= mark(&graph, &graph.loops[i]);
    sp_wg_graph_finish(&graph);
    return any;
}

static void remove_marks(LLVMValueRef function)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    unsigned kind = LLVMGetMDKindIDInContext(context, "llvm.loop", 9);
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        LLVMSetMetadata(LLVMGetBasicBlockTerminator(block), kind, NULL);
}

char *sp_wg_unroll(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count,
                   LLVMTargetMachineRef machine)
{
    bool any = false;
    LLVMValueRef f;
    for (size_t i = 0; i < count; i++)
        any |= mark_loops(kernels[i]);
    if (!any)
        return NULL;
    char *error = sp_ir_run_passes(module, UNROLL, machine);
    for (f = LLVMGetFirstFunction(module); f && !error; f = LLVMGetNextFunction(f))
        if (sp_ir_is_definition(f))
            remove_marks(f);
    return error;
}
