/* See unroll.h. The rounds of a hash hand each word of their state to the next variable (h = g; g =
 * f). As a loop over all work-items each round loads and stores the state of each of them, and
 * picks its words of the message by an index; unrolled, moves vanish, indices are constants, and
 * all of it stays in registers.
 *
 * A short loop that adds up a value for each work-item loads and stores the sum of each in every
 * turn, too. Unrolled, it is one pass over the work-items. But where what a turn loads serves
 * several of them, as a row of a matrix serves a column of work-items, all of them should go
 * through each turn together: with sums in registers each load is done once (tiled matmul: twice as
 * fast). So only loops are unrolled in which each work-item has all that it loads to itself, or
 * shares it with all.
 *
 * LLVM's unroller does the work and finds the exact number of turns; what is computed here decides
 * only which loops are worth it. No mark is left: loops are made anew for all work-items. */
#include "compiler/cc/workgroup/unroll.h"

#include "compiler/cc/ir.h"
#include "compiler/cc/workgroup/analyse.h"
#include "compiler/cc/workgroup/atomics.h"
#include "compiler/cc/workgroup/graph.h"
#include "compiler/cc/workgroup/loop_marks.h"
#include "compiler/cc/workgroup/metadata.h"
#include "compiler/cc/workgroup/special.h"
#include "compiler/cc/workgroup/uniformity.h"

#include <stdbool.h>
#include <string.h>

/* Variables of a loop that become another's value in the next turn. One or two are the rolling
 * window of a sum or a stencil, which gains little. */
#define MIN_HANDED_ON 3u

/* Instructions of a loop unrolled: 64 to 80 rounds of common hashes are 2000 to 6000. Twice as much
 * code takes a little more than twice as long to make. */
#define MAX_UNROLLED 8192u

/* Turns of a loop that adds up, and its instructions unrolled. What a region gains by doing without
 * the load and the store of a sum is used up after some ten turns, while code goes on to grow. */
#define MOST_ADDED_UP 16u
#define MAX_ADDED_UP 512u

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

/* The dimensions that the kernel asks its ids for: in others, work-items do all the same. */
static unsigned used_dimensions(const struct sp_wg_graph *graph,
                                const struct sp_wg_uniformity *uniformity)
{
    unsigned used = 0;
    for (uint32_t b = 0; b < graph->num_blocks; b++)
        for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[b]); value;
             value = LLVMGetNextInstruction(value))
            if (sp_ir_is_intrinsic(value, "__sp_local_id_"))
                used |= sp_wg_dimensions_of(uniformity, value);
    return used;
}

/* An addition in local memory that nobody looks at. Work-items do them one after the other in any
 * case; all that one adds in a row may be a single vector. */
static bool adds_in_local_memory(LLVMValueRef value)
{
    return LLVMIsAAtomicRMWInst(value) && sp_wg_is_local_atomic(value) && !LLVMGetFirstUse(value);
}

/* Whether the loop has a sum of each work-item, and nothing that serves some of them. */
static bool adds_up(const struct sp_wg_graph *graph, const struct sp_wg_uniformity *uniformity,
                    const struct sp_wg_loop *loop)
{
    unsigned used = used_dimensions(graph, uniformity);
    bool sum = false;
    SP_BITS_EACH(b, &loop->blocks)
    {
        if (sp_bits_has(&uniformity->branches, b) || sp_bits_has(&uniformity->parted, b))
            return false;
        for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[b]); value;
             value = LLVMGetNextInstruction(value)) {
            if (LLVMIsAPHINode(value) && b == loop->header)
                sum |= sp_wg_is_divergent(uniformity, value);
            sum |= adds_in_local_memory(value);
            if (!LLVMIsALoadInst(value) || !sp_wg_is_divergent(uniformity, value))
                continue;
            unsigned has = sp_wg_dimensions_of(uniformity, LLVMGetOperand(value, 0));
            if ((has & used) != used)
                return false;
        }
    }
    return sum;
}

static bool pays(const struct sp_wg_graph *graph, const struct sp_wg_uniformity *uniformity,
                 uint32_t number)
{
    const struct sp_wg_loop *loop = &graph->loops[number];
    uint64_t size = size_of(graph, loop);
    if (!is_innermost(graph, number) || !size)
        return false;
    uint64_t turns = about_turns(graph, loop);
    if (turns && turns <= MAX_UNROLLED / size && num_handed_on(graph, loop) >= MIN_HANDED_ON)
        return true;
    /* A question that comes first is asked once more than there are turns. */
    turns = sp_wg_loop_turns(graph, number, MOST_ADDED_UP + 1);
    return turns && turns <= MAX_ADDED_UP / size && adds_up(graph, uniformity, loop);
}

static bool mark_loops(LLVMValueRef function)
{
    struct sp_wg_graph graph;
    bool any = false;
    if (sp_wg_has_switch(function))
        return false;
    sp_wg_graph_init(&graph, function);
    if (graph.num_loops && !graph.irreducible) {
        struct sp_wg_uniformity uniformity;
        sp_wg_uniformity_init(&uniformity, &graph, NULL, sp_wg_agreement_pays(function));
        for (uint32_t i = 0; i < graph.num_loops; i++)
            if (pays(&graph, &uniformity, i))
                any |= sp_wg_mark_own_loop(&graph, &graph.loops[i], sp_wg_mark_unrolled_loop);
        sp_wg_uniformity_finish(&uniformity, &graph);
    }
    sp_wg_graph_finish(&graph);
    return any;
}

/* The unroller would choose more by itself. */
static void mark_others(LLVMValueRef function)
{
    struct sp_wg_graph graph;
    if (sp_wg_has_switch(function))
        return;
    sp_wg_graph_init(&graph, function);
    for (uint32_t i = 0; i < graph.num_loops; i++)
        sp_wg_mark_own_loop(&graph, &graph.loops[i], sp_wg_mark_rolled_loop);
    sp_wg_graph_finish(&graph);
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
    for (f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (sp_ir_is_definition(f))
            mark_others(f);
    char *error = sp_ir_run_passes(module, UNROLL, machine);
    for (f = LLVMGetFirstFunction(module); f && !error; f = LLVMGetNextFunction(f))
        if (sp_ir_is_definition(f))
            sp_wg_unmark_own_loops(f);
    return error;
}
