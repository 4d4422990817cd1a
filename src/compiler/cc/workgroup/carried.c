/* See carried.h. `for (...) sum += x` is, once loops are rotated, a PHI `sum`, the next value `sum
 * + x`, and in loop-closed form a third value behind the loop. reg2mem makes a variable of each,
 * and of a PHI that other blocks use even two; where regions part the loop, each work-item loads
 * and stores all of them in every turn. Where the old value is not asked for once the new one is
 * there, one variable does: set before the loop, read where the PHI was used, written where the new
 * value is made, and read behind the loop. Values that are the same for all work-items are
 * registers anyway. Called by prepare.c. */
#include "compiler/cc/workgroup/carried.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/uniformity.h"

#include <stdlib.h>

struct carrier {
    const struct sp_wg_graph *graph;
    const struct sp_wg_uniformity *uniformity;
    const struct sp_wg_loop *loop;
    uint32_t number; /* of the loop */
    LLVMBuilderRef builder;
};

static uint32_t block_of(const struct carrier *carrier, LLVMValueRef value)
{
    return sp_wg_block_number(carrier->graph, LLVMGetInstructionParent(value));
}

static bool is_inside(const struct carrier *carrier, uint32_t block)
{
    return block != SP_WG_NONE && sp_bits_has(&carrier->loop->blocks, block);
}

/* The value that comes over all ways back, an instruction of the loop itself; else NULL. */
static LLVMValueRef next_of(const struct carrier *carrier, LLVMValueRef phi)
{
    LLVMValueRef next = NULL;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        uint32_t from = sp_wg_block_number(carrier->graph, LLVMGetIncomingBlock(phi, i));
        if (from == SP_WG_NONE)
            return NULL;
        if (!is_inside(carrier, from))
            continue;
        if (next && next != LLVMGetIncomingValue(phi, i))
            return NULL;
        next = LLVMGetIncomingValue(phi, i);
    }
    if (!next || !LLVMIsAInstruction(next))
        return NULL;
    uint32_t block = block_of(carrier, next);
    if (!is_inside(carrier, block) || carrier->graph->loop_of[block] != carrier->number ||
        (block == carrier->loop->header && LLVMIsAPHINode(next)))
        return NULL;
    return next;
}

static bool is_before(LLVMValueRef first, LLVMValueRef second)
{
    for (LLVMValueRef value = first; value; value = LLVMGetNextInstruction(value))
        if (value == second)
            return true;
    return false;
}

/* Whether in each turn `place`, an instruction or the end of a block, comes before `next` is made.
 * A PHI is made where its block begins. */
static bool comes_before(const struct carrier *carrier, LLVMValueRef place, LLVMValueRef next)
{
    uint32_t here = block_of(carrier, place), there = block_of(carrier, next);
    if (!is_inside(carrier, here))
        return false;
    if (here == there)
        return !LLVMIsAPHINode(next) && is_before(place, next);
    return carrier->graph->order[here] < carrier->graph->order[there];
}

/* Where a use of `value` as operand `index` of `user` is served. */
static LLVMValueRef place_of_use(LLVMValueRef user, unsigned index)
{
    return LLVMIsAPHINode(user) ? LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(user, index))
                                : user;
}

static bool old_value_is_done(const struct carrier *carrier, LLVMValueRef phi, LLVMValueRef next)
{
    for (LLVMUseRef use = LLVMGetFirstUse(phi); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        for (int i = 0; i < LLVMGetNumOperands(user); i++)
            if (LLVMGetOperand(user, (unsigned)i) == phi &&
                !comes_before(carrier, place_of_use(user, (unsigned)i), next))
                return false;
    }
    return true;
}

/* Whether `user` is a PHI behind the loop that is `value` on every way. */
static bool is_closing_phi(const struct carrier *carrier, LLVMValueRef user, LLVMValueRef value)
{
    if (!LLVMIsAPHINode(user) || is_inside(carrier, block_of(carrier, user)))
        return false;
    for (unsigned i = 0; i < LLVMCountIncoming(user); i++)
        if (LLVMGetIncomingValue(user, i) != value ||
            !is_inside(carrier, sp_wg_block_number(carrier->graph, LLVMGetIncomingBlock(user, i))))
            return false;
    return true;
}

static size_t list_users(LLVMValueRef value, LLVMValueRef **users)
{
    size_t count = 0;
    *users = NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        *users = sp_cc_reallocate(*users, (count + 1) * sizeof(LLVMValueRef));
        (*users)[count++] = LLVMGetUser(use);
    }
    return count;
}

static LLVMValueRef behind_phis(LLVMBasicBlockRef block)
{
    LLVMValueRef value = LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(value))
        value = LLVMGetNextInstruction(value);
    return value;
}

static void read_where_used(const struct carrier *carrier, LLVMValueRef phi, LLVMValueRef variable)
{
    LLVMValueRef *users;
    size_t count = list_users(phi, &users);
    for (size_t u = 0; u < count; u++)
        for (int i = 0; i < LLVMGetNumOperands(users[u]); i++) {
            if (LLVMGetOperand(users[u], (unsigned)i) != phi)
                continue;
            LLVMPositionBuilderBefore(carrier->builder, place_of_use(users[u], (unsigned)i));
            LLVMSetOperand(users[u], (unsigned)i,
                           LLVMBuildLoad2(carrier->builder, LLVMTypeOf(phi), variable, ""));
        }
    free(users);
}

/* What the variable holds behind the loop is what `value`, old or new, was when it ended. */
static void read_behind_loop(const struct carrier *carrier, LLVMValueRef value,
                             LLVMValueRef variable)
{
    LLVMValueRef *users;
    size_t count = list_users(value, &users);
    for (size_t u = 0; u < count; u++) {
        bool again = false;
        for (size_t o = 0; o < u; o++)
            again |= users[o] == users[u];
        if (again || !is_closing_phi(carrier, users[u], value))
            continue;
        LLVMPositionBuilderBefore(carrier->builder,
                                  behind_phis(LLVMGetInstructionParent(users[u])));
        LLVMReplaceAllUsesWith(users[u],
                               LLVMBuildLoad2(carrier->builder, LLVMTypeOf(value), variable, ""));
        LLVMInstructionEraseFromParent(users[u]);
    }
    free(users);
}

static void carry(const struct carrier *carrier, LLVMValueRef phi, LLVMValueRef next)
{
    LLVMBuilderRef b = carrier->builder;
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(carrier->graph->function);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(entry));
    LLVMValueRef variable = LLVMBuildAlloca(b, LLVMTypeOf(phi), "carried");
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
        if (is_inside(carrier, sp_wg_block_number(carrier->graph, from)))
            continue;
        LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(from));
        LLVMBuildStore(b, LLVMGetIncomingValue(phi, i), variable);
    }
    LLVMPositionBuilderBefore(b, LLVMIsAPHINode(next) ? behind_phis(LLVMGetInstructionParent(next))
                                                      : LLVMGetNextInstruction(next));
    LLVMBuildStore(b, next, variable);
    read_behind_loop(carrier, phi, variable);
    read_behind_loop(carrier, next, variable);
    read_where_used(carrier, phi, variable);
    LLVMInstructionEraseFromParent(phi);
}

static bool is_scalar(LLVMValueRef value)
{
    switch (LLVMGetTypeKind(LLVMTypeOf(value))) {
    case LLVMIntegerTypeKind:
    case LLVMHalfTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
    case LLVMPointerTypeKind:
        return true;
    default:
        return false;
    }
}

void sp_wg_share_variables(LLVMValueRef kernel)
{
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
    sp_wg_graph_init(&graph, kernel);
    if (!graph.irreducible && graph.num_loops) {
        sp_wg_uniformity_init(&uniformity, &graph, NULL, false);
        struct carrier carrier = {.graph = &graph,
                                  .uniformity = &uniformity,
                                  .builder = LLVMCreateBuilderInContext(
                                      LLVMGetModuleContext(LLVMGetGlobalParent(kernel)))};
        for (uint32_t l = 0; l < graph.num_loops; l++) {
            LLVMBasicBlockRef header = graph.blocks[graph.loops[l].header];
            LLVMValueRef after, phi = LLVMGetFirstInstruction(header);
            carrier.loop = &graph.loops[l];
            carrier.number = l;
            for (; LLVMIsAPHINode(phi); phi = after) {
                after = LLVMGetNextInstruction(phi);
                LLVMValueRef next = next_of(&carrier, phi);
                if (next && is_scalar(phi) && sp_wg_is_divergent(&uniformity, phi) &&
                    old_value_is_done(&carrier, phi, next))
                    carry(&carrier, phi, next);
            }
        }
        LLVMDisposeBuilder(carrier.builder);
        sp_wg_uniformity_finish(&uniformity, &graph);
    }
    sp_wg_graph_finish(&graph);
}
