/* See narrow.h. From the region's leader on, blocks are followed as long as a work-item that leaves
 * there has had no effect. A branch on a comparison of a local id with a constant, of which one way
 * only ends the work-item's turn, then says who has something to do. A context variable that they
 * alone write keeps its value for the others. Called by emit.c. */
#include "compiler/cc/workgroup/narrow.h"

#include "compiler/cc/text.h"

#include <string.h>

/* The dimension of the local id that `value` is, perhaps in another width; -1 for anything else.
 * Ids fit every width that a comparison of them has in practice: 16 bits are asked for. */
static int dimension_of(LLVMValueRef value)
{
    while (LLVMIsATruncInst(value) || LLVMIsAZExtInst(value) || LLVMIsASExtInst(value)) {
        if (LLVMGetIntTypeWidth(LLVMTypeOf(value)) < 16)
            return -1;
        value = LLVMGetOperand(value, 0);
    }
    if (!sp_ir_is_intrinsic(value, "__sp_local_id_"))
        return -1;
    return sp_ir_callee(value)[strlen("__sp_local_id_")] - '0';
}

/* The ids in [*first, *end) for which the comparison with `limit` holds, where these are in one
 * piece. */
static bool keep_where(LLVMIntPredicate predicate, uint64_t limit, uint64_t *first, uint64_t *end)
{
    switch (predicate) {
    case LLVMIntULE:
    case LLVMIntSLE:
        limit++;
        /* fallthrough */
    case LLVMIntULT:
    case LLVMIntSLT:
        *end = limit < *end ? limit : *end;
        break;
    case LLVMIntUGT:
    case LLVMIntSGT:
        limit++;
        /* fallthrough */
    case LLVMIntUGE:
    case LLVMIntSGE:
        *first = limit > *first ? limit : *first;
        break;
    case LLVMIntEQ:
        *first = limit > *first ? limit : *first;
        *end = limit + 1 < *end ? limit + 1 : *end;
        break;
    default:
        if (limit == *first)
            ++*first;
        else if (limit + 1 == *end)
            --*end;
        else
            return false;
    }
    return *first < *end;
}

/* A constant within twice the largest id, so that signed and unsigned comparison agree and nothing
 * overflows. */
static bool small_constant(LLVMValueRef value, uint64_t *number)
{
    if (!LLVMIsAConstantInt(value) || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64)
        return false;
    *number = LLVMConstIntGetZExtValue(value);
    return *number < 0x7fff;
}

/* Whether a work-item that leaves the region after the block has done nothing that is seen. */
static bool has_no_effect(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                          uint32_t block)
{
    LLVMValueRef value = LLVMGetFirstInstruction(plan->analysis.graph.blocks[block]);
    for (; value; value = LLVMGetNextInstruction(value)) {
        if (LLVMIsAStoreInst(value)) {
            LLVMValueRef address = LLVMGetOperand(value, 1);
            if (!LLVMIsAAllocaInst(address) || !sp_map_get(&plan->variable_of, address))
                return false;
            uint32_t v = sp_wg_variable_index(plan, address);
            enum sp_wg_variable_kind kind = plan->variables[v].kind;
            if (kind == SP_WG_ARRAY || sp_wg_is_stored(region, v))
                return false;
        } else if (LLVMIsACallInst(value)) {
            if (!sp_ir_is_intrinsic(value, "__sp_local_") && !sp_ir_is_intrinsic(value, "__sp_g") &&
                !sp_ir_is_intrinsic(value, "__sp_enqueued_") &&
                !sp_ir_is_intrinsic(value, "__sp_num_"))
                return false;
        } else if (LLVMIsAAtomicRMWInst(value) || LLVMIsAAtomicCmpXchgInst(value) ||
                   LLVMIsAFenceInst(value) ||
                   (LLVMIsALoadInst(value) &&
                    (LLVMGetVolatile(value) ||
                     LLVMGetOrdering(value) != LLVMAtomicOrderingNotAtomic))) {
            return false;
        }
    }
    return true;
}

/* Whether nothing more happens in the region once work-items go to `block`. */
static bool only_leaves(const struct sp_wg_plan *plan, uint32_t block)
{
    const struct sp_wg_graph *graph = &plan->analysis.graph;
    for (uint32_t steps = 0; steps < graph->num_blocks; steps++) {
        if (block == SP_WG_NONE || sp_bits_has(&plan->analysis.leaders, block))
            return true;
        LLVMValueRef only = LLVMGetFirstInstruction(graph->blocks[block]);
        if (sp_ir_calls(only, SP_BARRIER_NAME))
            only = LLVMGetNextInstruction(only);
        if (only != LLVMGetBasicBlockTerminator(graph->blocks[block]) ||
            (graph->successors[block][0] != SP_WG_NONE &&
             graph->successors[block][1] != SP_WG_NONE))
            return false;
        block = graph->successors[block][0];
    }
    return false;
}

/* Takes the question at the end of `block` into account. False where it is of another kind. */
static bool decide(const struct sp_wg_plan *plan, uint32_t block, struct sp_wg_narrowing *narrowing)
{
    const uint32_t *to = plan->analysis.graph.successors[block];
    LLVMValueRef end = LLVMGetBasicBlockTerminator(plan->analysis.graph.blocks[block]);
    LLVMValueRef condition = LLVMGetCondition(end);
    uint64_t limit;
    bool leaves = only_leaves(plan, to[1]);
    if (!LLVMIsAICmpInst(condition) || leaves == only_leaves(plan, to[0]) ||
        !small_constant(LLVMGetOperand(condition, 1), &limit))
        return false;
    int d = dimension_of(LLVMGetOperand(condition, 0));
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(condition);
    if (d < 0)
        return false;
    uint64_t first = narrowing->first[d], last = narrowing->end[d];
    if (!keep_where(leaves ? predicate : sp_ir_opposite(predicate), limit, &first, &last))
        return false;
    narrowing->first[d] = first;
    narrowing->end[d] = last;
    narrowing->blocks[narrowing->num_decisions] = block;
    narrowing->ways[narrowing->num_decisions++] = leaves ? 0 : 1;
    return true;
}

void sp_wg_narrow(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                  const uint64_t local_size[3], struct sp_wg_narrowing *narrowing)
{
    const struct sp_wg_graph *graph = &plan->analysis.graph;
    *narrowing = (struct sp_wg_narrowing){0};
    memcpy(narrowing->end, local_size, sizeof(narrowing->end));
    if (region->masked || region->counts || sp_bits_count(&region->exits) != 1)
        return;
    SP_BITS_EACH(v, &region->written)
    if (plan->variables[v].kind == SP_WG_SHARED)
        return;
    uint32_t block = region->leader;
    while (narrowing->num_decisions < SP_WG_MOST_DECISIONS && has_no_effect(plan, region, block)) {
        const uint32_t *to = graph->successors[block];
        unsigned way = 0;
        if (to[0] == SP_WG_NONE)
            return;
        if (to[1] != SP_WG_NONE) {
            if (!decide(plan, block, narrowing))
                return;
            way = narrowing->ways[narrowing->num_decisions - 1];
        }
        block = to[way];
        if (block == SP_WG_NONE || sp_bits_has(&plan->analysis.leaders, block))
            return;
    }
}
