/* See uniformity.h. A fixpoint from below: all is uniform until a rule says otherwise. Work-items
 * part at a branch whose condition is divergent; then every block up to the branch's immediate
 * post-dominator may run for some of them only (a loop with such an exit contains its own header),
 * a variable written there is divergent, and so is a PHI where the paths meet. In loop-closed SSA
 * that also covers a value that leaves a loop at different times. */
#include "compiler/cc/workgroup/uniformity.h"

#include "compiler/cc/text.h"

#include <stdlib.h>
#include <string.h>

/* Blocks of a kernel up to which the influence of each branch is kept: 2 MiB of bits. In a larger
 * one it is found anew each time: 60000 branches of 170000 blocks would take more than a gigabyte
 * (hashes that put a password of any length at any place). */
#define KEPT_BLOCKS 4096u

static bool keeps_influence(const struct sp_wg_graph *graph)
{
    return graph->num_blocks <= KEPT_BLOCKS;
}

const struct sp_bits *sp_wg_influence_of(const struct sp_wg_uniformity *uniformity, uint32_t branch)
{
    const struct sp_wg_graph *graph = uniformity->graph;
    struct sp_bits *influence = &uniformity->influence[keeps_influence(graph) ? branch : 0];
    if (!influence->words)
        *influence = sp_bits_create(graph->num_blocks);
    else if (keeps_influence(graph))
        return influence;
    sp_bits_clear(influence);
    sp_wg_influence(graph, branch, influence);
    return influence;
}

/* Operations of a value that are looked at; beyond, it may depend on anything. */
#define OPERATION_LIMIT 64u
#define ALL_DIMENSIONS 7u

bool sp_wg_is_slot(LLVMValueRef alloca)
{
    LLVMTypeRef type = LLVMGetAllocatedType(alloca);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMArrayTypeKind || kind == LLVMStructTypeKind)
        return false;
    for (LLVMUseRef use = LLVMGetFirstUse(alloca); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsALoadInst(user)) {
            if (LLVMTypeOf(user) != type || LLVMGetVolatile(user) ||
                LLVMGetOrdering(user) != LLVMAtomicOrderingNotAtomic)
                return false;
        } else if (LLVMIsAStoreInst(user)) {
            LLVMValueRef value = LLVMGetOperand(user, 0);
            if (value == alloca || LLVMTypeOf(value) != type || LLVMGetVolatile(user) ||
                LLVMGetOrdering(user) != LLVMAtomicOrderingNotAtomic)
                return false;
        } else {
            return false;
        }
    }
    return true;
}

bool sp_wg_is_divergent(const struct sp_wg_uniformity *uniformity, LLVMValueRef value)
{
    return sp_map_get(&uniformity->divergent, value);
}

static bool has_divergent_operand(const struct sp_wg_uniformity *uniformity, LLVMValueRef value)
{
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (sp_wg_is_divergent(uniformity, LLVMGetOperand(value, (unsigned)i)))
            return true;
    return false;
}

static bool call_is_divergent(const struct sp_wg_uniformity *uniformity, LLVMValueRef call)
{
    const char *name = sp_ir_callee(call);
    if (name && !strcmp(name, SP_ALL_NAME))
        return false;
    if (!name || !strncmp(name, "__sp_local_id_", 14) || !strcmp(name, "printf"))
        return true;
    return has_divergent_operand(uniformity, call);
}

/* Whether the rules make `value` divergent; for a store to a slot, whether they make the slot so.
 */
static bool becomes_divergent(const struct sp_wg_uniformity *uniformity, LLVMValueRef value,
                              uint32_t block)
{
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAlloca:
        return !sp_wg_is_slot(value);
    case LLVMPHI:
        return sp_bits_has(&uniformity->joins, block) || has_divergent_operand(uniformity, value);
    case LLVMLoad:
        return LLVMGetVolatile(value) || LLVMGetOrdering(value) != LLVMAtomicOrderingNotAtomic ||
               has_divergent_operand(uniformity, value);
    case LLVMStore:
        return sp_bits_has(&uniformity->parted, block) ||
               sp_wg_is_divergent(uniformity, LLVMGetOperand(value, 0));
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        return true;
    case LLVMCall:
        return call_is_divergent(uniformity, value);
    default:
        return has_divergent_operand(uniformity, value);
    }
}

static bool mark_values(struct sp_wg_uniformity *uniformity, const struct sp_wg_graph *graph,
                        uint32_t block)
{
    bool changed = false;
    LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[block]);
    for (; value; value = LLVMGetNextInstruction(value)) {
        LLVMValueRef marked = value;
        if (LLVMIsAStoreInst(value)) {
            marked = LLVMGetOperand(value, 1);
            if (!LLVMIsAAllocaInst(marked))
                continue;
        }
        if (!sp_wg_is_divergent(uniformity, marked) &&
            becomes_divergent(uniformity, value, block)) {
            sp_map_set(&uniformity->divergent, marked, marked);
            changed = true;
        }
    }
    return changed;
}

static bool mark_branch(struct sp_wg_uniformity *uniformity, const struct sp_wg_graph *graph,
                        uint32_t block)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(graph->blocks[block]);
    if ((block == 0 && uniformity->entry_agrees) || sp_bits_has(&uniformity->branches, block) ||
        !LLVMIsABranchInst(end) || !LLVMIsConditional(end) ||
        !sp_wg_is_divergent(uniformity, LLVMGetCondition(end)) ||
        graph->successors[block][0] == graph->successors[block][1])
        return false;
    sp_bits_add(&uniformity->branches, block);
    const struct sp_bits *influence = sp_wg_influence_of(uniformity, block);
    sp_bits_unite(&uniformity->parted, influence);
    sp_bits_unite(&uniformity->joins, influence);
    if (graph->post_dominator[block] != SP_WG_EXIT(graph))
        sp_bits_add(&uniformity->joins, graph->post_dominator[block]);
    return true;
}

void sp_wg_uniformity_init(struct sp_wg_uniformity *uniformity, const struct sp_wg_graph *graph,
                           const struct sp_bits *forced, bool entry_agrees)
{
    *uniformity = (struct sp_wg_uniformity){
        .entry_agrees = entry_agrees,
        .branches = sp_bits_create(graph->num_blocks),
        .parted = sp_bits_create(graph->num_blocks),
        .joins = sp_bits_create(graph->num_blocks),
        .influence = sp_cc_allocate(graph->num_blocks * sizeof(struct sp_bits)),
        .graph = graph,
    };
    if (forced) {
        sp_bits_unite(&uniformity->parted, forced);
        sp_bits_unite(&uniformity->joins, forced);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < graph->num_blocks; i++) {
            changed |= mark_values(uniformity, graph, i);
            changed |= mark_branch(uniformity, graph, i);
        }
    }
}

void sp_wg_uniformity_finish(struct sp_wg_uniformity *uniformity, const struct sp_wg_graph *graph)
{
    for (uint32_t i = 0; i < graph->num_blocks; i++)
        if (uniformity->influence[i].words)
            sp_bits_finish(&uniformity->influence[i]);
    free(uniformity->influence);
    sp_map_finish(&uniformity->divergent);
    sp_bits_finish(&uniformity->branches);
    sp_bits_finish(&uniformity->parted);
    sp_bits_finish(&uniformity->joins);
    *uniformity = (struct sp_wg_uniformity){0};
}

static unsigned dimensions_of(const struct sp_wg_uniformity *uniformity, LLVMValueRef value,
                              unsigned *steps)
{
    static const char prefix[] = "__sp_local_id_";
    if (!LLVMIsAInstruction(value) || !sp_wg_is_divergent(uniformity, value))
        return 0;
    if (sp_ir_is_intrinsic(value, prefix))
        return 1u << (sp_ir_callee(value)[strlen(prefix)] - '0');
    if (!*steps || LLVMIsAPHINode(value) || LLVMIsACallInst(value) || LLVMIsAAllocaInst(value))
        return ALL_DIMENSIONS;
    --*steps;
    unsigned found = 0;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        found |= dimensions_of(uniformity, LLVMGetOperand(value, (unsigned)i), steps);
    return found;
}

unsigned sp_wg_dimensions_of(const struct sp_wg_uniformity *uniformity, LLVMValueRef value)
{
    unsigned steps = OPERATION_LIMIT;
    return dimensions_of(uniformity, value, &steps);
}
