/* See masked.h. A division that may trap stays under its condition when LLVM 19 vectorises a loop.
 * Where it is the same in all lanes and part of an address, as in `if (c) x = t[5 % n]`, the
 * vectoriser computes it for the first lane alone, under that lane's condition, and takes the
 * address for all: lanes whose condition holds where the first one's does not read from anywhere.
 * So no such division is the same in all lanes here: the divisor is combined with the work-item's
 * id and a zero that LLVM cannot know. A work-item's own loops with such a division are not
 * vectorised. Called by emit.c. */
#include "compiler/cc/workgroup/masked.h"

bool sp_wg_may_trap(LLVMValueRef value)
{
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem:
        return !LLVMIsConstant(LLVMGetOperand(value, 1));
    default:
        return false;
    }
}

bool sp_wg_is_skipped(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                      uint32_t block)
{
    const struct sp_wg_graph *graph = &plan->analysis.graph;
    if (region->masked)
        return true;
    /* The leader and what follows it on every way. */
    uint32_t at = region->leader;
    do {
        if (at == block)
            return false;
        at = graph->post_dominator[at];
    } while (at != SP_WG_EXIT(graph) && !sp_bits_has(&plan->analysis.leaders, at));
    return true;
}

void sp_wg_vary_divisors(LLVMBasicBlockRef block, const struct sp_map *copies,
                         const struct sp_map *elsewhere, LLVMValueRef lane, LLVMValueRef zero)
{
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(zero)));
    for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
         value = LLVMGetNextInstruction(value)) {
        LLVMValueRef division = sp_map_get(copies, value);
        if (!division || !sp_wg_may_trap(value) || !sp_wg_may_trap(division) ||
            sp_map_get(elsewhere, value))
            continue;
        LLVMValueRef divisor = LLVMGetOperand(division, 1);
        /* The source's own vectors are never made into wider ones. */
        if (LLVMGetTypeKind(LLVMTypeOf(divisor)) == LLVMVectorTypeKind)
            continue;
        LLVMPositionBuilderBefore(builder, division);
        LLVMValueRef varying = LLVMBuildAnd(builder, lane, zero, "");
        varying = LLVMBuildIntCast2(builder, varying, LLVMTypeOf(divisor), false, "");
        LLVMSetOperand(division, 1, LLVMBuildXor(builder, divisor, varying, ""));
    }
    LLVMDisposeBuilder(builder);
}

static bool block_may_trap(LLVMBasicBlockRef block)
{
    for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
         value = LLVMGetNextInstruction(value))
        if (sp_wg_may_trap(value))
            return true;
    return false;
}

bool sp_wg_ends_dividing_loop(const struct sp_wg_plan *plan, uint32_t block)
{
    const struct sp_wg_graph *graph = &plan->analysis.graph;
    for (uint32_t l = 0; l < graph->num_loops; l++) {
        const struct sp_wg_loop *loop = &graph->loops[l];
        if (!sp_bits_has(&loop->blocks, block) ||
            sp_bits_has(&plan->analysis.leaders, loop->header) ||
            !sp_wg_leads_to(graph, block, loop->header))
            continue;
        SP_BITS_EACH(b, &loop->blocks)
        if (block_may_trap(graph->blocks[b]))
            return true;
    }
    return false;
}
