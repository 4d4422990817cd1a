/* See analyse.h. The rules, in the order in which they apply:
 *
 * 1. The exits of a loop with a barrier, so that what follows the loop is not copied into each
 * region that leaves it.
 * 2. Header and exits of a uniform loop without barrier: the loop over work-items then lies inside
 * it.
 * 3. Header and exits of an innermost divergent loop: its iterations then run for all work-items
 * that are still in it. Not where few enter it: each round would look at all for the sake of one.
 * 4. What follows a vote that all of a group take part in.
 * 5. The immediate post-dominator of a divergent branch under which a leader lies: there the
 * work-items wait for each other again. Repeated until nothing changes.
 *
 * Parted work-items each have a program counter; the region with the lowest number among them runs
 * next, for those whose counter names it. That they are together again at a post-dominator needs
 * its number to be above all numbers under the branch. Where the order cannot give that
 * (irreducible control flow), all that the branch reaches is taken as parted, for ever; real
 * barriers then get the highest numbers, so that all arrive before one passes. */
#include "compiler/cc/workgroup/analyse.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/prepare.h"
#include "compiler/cc/workgroup/turns.h"

#include <stdlib.h>

static void find_real_leaders(struct sp_wg_analysis *analysis)
{
    const struct sp_wg_graph *graph = &analysis->graph;
    for (uint32_t b = 0; b < graph->num_blocks; b++)
        if (sp_wg_ends_with_barrier(graph->blocks[b]))
            sp_bits_add(&analysis->real, graph->successors[b][0]);
}

static void lead_exits(struct sp_wg_analysis *analysis, const struct sp_wg_loop *loop)
{
    SP_BITS_EACH(b, &loop->blocks)
    for (unsigned s = 0; s < 2; s++) {
        uint32_t to = analysis->graph.successors[b][s];
        if (to != SP_WG_NONE && !sp_bits_has(&loop->blocks, to))
            sp_bits_add(&analysis->leaders, to);
    }
}

/* Work-items may leave the loop, or go round it, at different times. */
static bool loop_is_divergent(const struct sp_wg_analysis *analysis, const struct sp_wg_loop *loop)
{
    SP_BITS_EACH(b, &loop->blocks)
    if (sp_bits_has(&analysis->uniformity.branches, b) &&
        sp_bits_has(sp_wg_influence_of(&analysis->uniformity, b), loop->header))
        return true;
    return false;
}

static bool contains_divergent_loop(const struct sp_wg_analysis *analysis, uint32_t around)
{
    for (uint32_t l = 0; l < analysis->graph.num_loops; l++) {
        const struct sp_wg_loop *loop = &analysis->graph.loops[l];
        for (uint32_t p = loop->parent; p != SP_WG_NONE; p = analysis->graph.loops[p].parent)
            if (p == around && loop_is_divergent(analysis, loop))
                return true;
    }
    return false;
}

/* A question of equality, as `if (get_local_id(0) == 0)`: of the work-items that part there few, as
 * a rule one, take the way where it holds, the successor *way. */
static bool chooses_few(LLVMBasicBlockRef block, unsigned *way)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end))
        return false;
    LLVMValueRef condition = LLVMGetCondition(end);
    if (!LLVMIsAICmpInst(condition))
        return false;
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(condition);
    *way = predicate != LLVMIntEQ;
    return predicate == LLVMIntEQ || predicate == LLVMIntNE;
}

/* Whether `from` leads to `to` by blocks of `inside` alone. */
static bool leads_to(const struct sp_wg_graph *graph, uint32_t from, uint32_t to,
                     const struct sp_bits *inside)
{
    struct sp_bits seen = sp_bits_create(graph->num_blocks);
    uint32_t *stack = sp_cc_allocate(graph->num_blocks * sizeof(uint32_t)), depth = 0;
    if (sp_bits_has(inside, from)) {
        sp_bits_add(&seen, from);
        stack[depth++] = from;
    }
    while (depth) {
        const uint32_t *next = graph->successors[stack[--depth]];
        for (unsigned s = 0; s < 2 && next[s] != SP_WG_NONE; s++)
            if (sp_bits_has(inside, next[s]) && !sp_bits_has(&seen, next[s])) {
                sp_bits_add(&seen, next[s]);
                stack[depth++] = next[s];
            }
    }
    bool found = sp_bits_has(&seen, to);
    sp_bits_finish(&seen);
    free(stack);
    return found;
}

static bool few_enter(const struct sp_wg_analysis *analysis, const struct sp_wg_loop *loop)
{
    const struct sp_wg_graph *graph = &analysis->graph;
    SP_BITS_EACH(b, &analysis->uniformity.branches)
    {
        const struct sp_bits *influence = sp_wg_influence_of(&analysis->uniformity, b);
        const uint32_t *to = graph->successors[b];
        unsigned way;
        if (!sp_bits_has(&loop->blocks, b) && sp_bits_has(influence, loop->header) &&
            chooses_few(graph->blocks[b], &way) &&
            leads_to(graph, to[way], loop->header, influence) &&
            !leads_to(graph, to[!way], loop->header, influence))
            return true;
    }
    return false;
}

static void lead_loops(struct sp_wg_analysis *analysis, bool vectorise)
{
    for (uint32_t l = 0; l < analysis->graph.num_loops; l++) {
        const struct sp_wg_loop *loop = &analysis->graph.loops[l];
        if (sp_bits_meet(&loop->blocks, &analysis->real)) {
            lead_exits(analysis, loop);
            continue;
        }
        if (!vectorise)
            continue;
        bool divergent = loop_is_divergent(analysis, loop);
        if (divergent ? contains_divergent_loop(analysis, l) || few_enter(analysis, loop)
                      : sp_bits_has(&analysis->uniformity.parted, loop->header))
            continue;
        sp_bits_add(&analysis->leaders, loop->header);
        lead_exits(analysis, loop);
    }
}

static void lead_post_dominators(struct sp_wg_analysis *analysis)
{
    const struct sp_wg_graph *graph = &analysis->graph;
    for (bool changed = true; changed;) {
        changed = false;
        SP_BITS_EACH(b, &analysis->uniformity.branches)
        {
            uint32_t after = graph->post_dominator[b];
            if (after == SP_WG_EXIT(graph) || sp_bits_has(&analysis->leaders, after) ||
                !sp_bits_meet(sp_wg_influence_of(&analysis->uniformity, b), &analysis->leaders))
                continue;
            sp_bits_add(&analysis->leaders, after);
            changed = true;
        }
    }
}

static void add_reachable(const struct sp_wg_graph *graph, uint32_t from, struct sp_bits *blocks)
{
    uint32_t *stack = sp_cc_allocate((graph->num_blocks + 2) * sizeof(uint32_t)), depth = 0;
    stack[depth++] = from;
    while (depth) {
        uint32_t at = stack[--depth];
        for (unsigned s = 0; s < 2; s++) {
            uint32_t to = graph->successors[at][s];
            if (to == SP_WG_NONE || sp_bits_has(blocks, to))
                continue;
            sp_bits_add(blocks, to);
            stack[depth++] = to;
        }
    }
    free(stack);
}

/* What a vote gave is there for all when each has given its own. */
static void lead_behind_votes(struct sp_wg_analysis *analysis)
{
    const struct sp_wg_graph *graph = &analysis->graph;
    for (uint32_t b = 0; b < graph->num_blocks; b++)
        if (!sp_bits_has(&analysis->uniformity.parted, b) && sp_wg_ends_with_vote(graph->blocks[b]))
            sp_bits_add(&analysis->leaders, graph->successors[b][0]);
}

/* True where all leaders under the branch come before the place where its work-items meet. */
static bool meets_in_order(const struct sp_wg_analysis *analysis, uint32_t branch)
{
    const struct sp_wg_graph *graph = &analysis->graph;
    uint32_t after = graph->post_dominator[branch];
    if (after == SP_WG_EXIT(graph))
        return true;
    const struct sp_bits *influence = sp_wg_influence_of(&analysis->uniformity, branch);
    SP_BITS_EACH(b, influence)
    if (sp_bits_has(&analysis->leaders, b) && analysis->numbers[b] >= analysis->numbers[after])
        return false;
    return true;
}

static void number_leaders(struct sp_wg_analysis *analysis)
{
    const struct sp_wg_graph *graph = &analysis->graph;
    for (uint32_t b = 0; b < graph->num_blocks; b++) {
        bool last = graph->irreducible && sp_bits_has(&analysis->real, b);
        analysis->numbers[b] = graph->order[b] + (last ? graph->num_blocks : 0);
    }
}

/* One round with `forced` taken as parted. True where it had to grow: then another round is needed.
 */
static bool analyse_once(struct sp_wg_analysis *analysis, enum sp_wg_form form,
                         struct sp_bits *forced)
{
    const struct sp_wg_graph *graph = &analysis->graph;
    bool grown = false;
    sp_wg_uniformity_init(&analysis->uniformity, graph, forced, form == SP_WG_AGREED);
    sp_bits_clear(&analysis->leaders);
    sp_bits_add(&analysis->leaders, 0);
    sp_bits_unite(&analysis->leaders, &analysis->real);
    lead_loops(analysis, form != SP_WG_SCALAR && !graph->irreducible);
    if (form != SP_WG_SCALAR)
        lead_behind_votes(analysis);
    lead_post_dominators(analysis);
    SP_BITS_EACH(b, &analysis->uniformity.branches)
    {
        if (!sp_bits_meet(sp_wg_influence_of(&analysis->uniformity, b), &analysis->leaders) ||
            (meets_in_order(analysis, b) && !graph->irreducible))
            continue;
        struct sp_bits reached = sp_bits_create(graph->num_blocks);
        add_reachable(graph, b, &reached);
        grown |= sp_bits_unite(forced, &reached);
        sp_bits_finish(&reached);
    }
    sp_bits_copy(&analysis->masked, &analysis->leaders);
    sp_bits_intersect(&analysis->masked, &analysis->uniformity.parted);
    return grown;
}

void sp_wg_analysis_init(struct sp_wg_analysis *analysis, LLVMValueRef kernel, enum sp_wg_form form)
{
    *analysis = (struct sp_wg_analysis){0};
    sp_wg_graph_init(&analysis->graph, kernel);
    uint32_t n = analysis->graph.num_blocks;
    struct sp_bits forced = sp_bits_create(n);
    analysis->leaders = sp_bits_create(n);
    analysis->real = sp_bits_create(n);
    analysis->masked = sp_bits_create(n);
    analysis->numbers = sp_cc_allocate(n * sizeof(uint32_t));
    find_real_leaders(analysis);
    number_leaders(analysis);
    while (analyse_once(analysis, form, &forced))
        sp_wg_uniformity_finish(&analysis->uniformity, &analysis->graph);
    sp_bits_finish(&forced);
}

/* Only variables are written, and nothing is called but what computes values. */
static bool can_ask_first(LLVMBasicBlockRef block)
{
    for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
         value = LLVMGetNextInstruction(value)) {
        if (LLVMIsAStoreInst(value) && !LLVMIsAAllocaInst(LLVMGetOperand(value, 1)))
            return false;
        if (LLVMIsACallInst(value) && !sp_ir_is_intrinsic(value, "__sp_local_") &&
            !sp_ir_is_intrinsic(value, "__sp_g") && !sp_ir_is_intrinsic(value, "__sp_enqueued_") &&
            !sp_ir_is_intrinsic(value, "__sp_num_"))
            return false;
        if (LLVMIsAAtomicRMWInst(value) || LLVMIsAAtomicCmpXchgInst(value) ||
            LLVMIsAFenceInst(value) || (LLVMIsALoadInst(value) && LLVMGetVolatile(value)))
            return false;
    }
    return true;
}

bool sp_wg_agreement_pays(LLVMValueRef kernel)
{
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
    bool pays = false;
    sp_wg_graph_init(&graph, kernel);
    sp_wg_uniformity_init(&uniformity, &graph, NULL, false);
    if (sp_bits_has(&uniformity.branches, 0) && can_ask_first(graph.blocks[0]))
        for (uint32_t l = 0; l < graph.num_loops; l++)
            pays |= sp_bits_has(sp_wg_influence_of(&uniformity, 0), graph.loops[l].header);
    sp_wg_uniformity_finish(&uniformity, &graph);
    sp_wg_graph_finish(&graph);
    return pays;
}

/* Accesses one by one that an operation on vectors makes up for: an access for each work-item under
 * a mask costs some five times the access alone, an operation on a vector a tenth of as many scalar
 * ones. */
#define OPERATIONS_PER_ACCESS 3u

/* Whether an address comes from what was loaded, from memory or a divergent variable: no
 * neighbours. */
static bool is_scattered(const struct sp_wg_uniformity *uniformity, LLVMValueRef value)
{
    if (!LLVMIsAInstruction(value) || LLVMIsAAllocaInst(value) ||
        !sp_wg_is_divergent(uniformity, value))
        return false;
    if (LLVMIsALoadInst(value))
        return true;
    if (LLVMIsACallInst(value))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (is_scattered(uniformity, LLVMGetOperand(value, (unsigned)i)))
            return true;
    return false;
}

static bool is_calculation(LLVMValueRef value)
{
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(value));
    return LLVMIsABinaryOperator(value) || LLVMIsASelectInst(value) ||
           (LLVMIsACallInst(value) && kind != LLVMVoidTypeKind);
}

/* Whether work-items may leave the loop at different times, and it contains no other. */
static bool is_left_singly(const struct sp_wg_graph *graph,
                           const struct sp_wg_uniformity *uniformity, uint32_t loop)
{
    bool left = false;
    for (uint32_t l = 0; l < graph->num_loops; l++)
        if (graph->loops[l].parent == loop)
            return false;
    SP_BITS_EACH(b, &graph->loops[loop].blocks)
    for (int s = 0; s < 2 && sp_bits_has(&uniformity->branches, b); s++)
        left |= !sp_bits_has(&graph->loops[loop].blocks, graph->successors[b][s]);
    return left;
}

bool sp_wg_ends_own_loop(const struct sp_wg_analysis *analysis, uint32_t block)
{
    const struct sp_wg_graph *graph = &analysis->graph;
    for (uint32_t l = 0; l < graph->num_loops; l++)
        if (sp_bits_has(&graph->loops[l].blocks, block) &&
            sp_wg_leads_to(graph, block, graph->loops[l].header))
            return !sp_bits_has(&analysis->leaders, graph->loops[l].header) &&
                   is_left_singly(graph, &analysis->uniformity, l);
    return false;
}

/* What is left of a loop whose common turns were taken out hardly runs. */
static bool is_rest(const struct sp_wg_graph *graph, uint32_t loop)
{
    SP_WG_EACH_PREDECESSOR(b, graph, graph->loops[loop].header)
    if (sp_wg_is_rest(LLVMGetBasicBlockTerminator(graph->blocks[*b])))
        return true;
    return false;
}

static bool loop_loses(const struct sp_wg_graph *graph, const struct sp_wg_uniformity *uniformity,
                       uint32_t loop)
{
    unsigned scattered = 0, calculations = 0;
    SP_BITS_EACH(b, &graph->loops[loop].blocks)
    for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[b]); value;
         value = LLVMGetNextInstruction(value)) {
        bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
        LLVMValueRef address = load || store ? LLVMGetOperand(value, load ? 0 : 1) : NULL;
        if (address)
            scattered += is_scattered(uniformity, address);
        else
            calculations += is_calculation(value) && sp_wg_is_divergent(uniformity, value);
    }
    return scattered && calculations < OPERATIONS_PER_ACCESS * scattered;
}

bool sp_wg_vectors_lose(LLVMValueRef kernel)
{
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
    bool lose = false, barrier = false;
    sp_wg_graph_init(&graph, kernel);
    sp_wg_uniformity_init(&uniformity, &graph, NULL, false);
    for (uint32_t b = 0; b < graph.num_blocks; b++)
        barrier |= sp_wg_ends_with_barrier(graph.blocks[b]);
    for (uint32_t l = 0; l < graph.num_loops && !barrier; l++)
        lose |= is_left_singly(&graph, &uniformity, l) && !is_rest(&graph, l) &&
                loop_loses(&graph, &uniformity, l);
    sp_wg_uniformity_finish(&uniformity, &graph);
    sp_wg_graph_finish(&graph);
    return lose;
}

void sp_wg_analysis_finish(struct sp_wg_analysis *analysis)
{
    sp_wg_uniformity_finish(&analysis->uniformity, &analysis->graph);
    sp_wg_graph_finish(&analysis->graph);
    sp_bits_finish(&analysis->leaders);
    sp_bits_finish(&analysis->real);
    sp_bits_finish(&analysis->masked);
    free(analysis->numbers);
}
