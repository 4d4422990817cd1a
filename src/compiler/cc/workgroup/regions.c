/* See regions.h. Two small data-flow problems decide where a variable lives. Inside a region: may
 * it be read before it is written there? Over regions: may a later one so read it? A variable that
 * no region so reads needs no memory of its own at all. Both err towards keeping a value. */
#include "compiler/cc/workgroup/regions.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/interleave.h"
#include "compiler/cc/workgroup/prepare.h"

#include <llvm-c/Target.h>
#include <stdlib.h>

#define COUNTER_BYTES 4u

uint32_t sp_wg_variable_index(const struct sp_wg_plan *plan, LLVMValueRef alloca)
{
    return (uint32_t)(uintptr_t)sp_map_get(&plan->variable_of, alloca) - 1;
}

bool sp_wg_is_stored(const struct sp_wg_region *region, uint32_t variable)
{
    return sp_bits_has(&region->written, variable) && sp_bits_has(&region->live_out, variable);
}

bool sp_wg_is_loaded(const struct sp_wg_region *region, uint32_t variable)
{
    return sp_bits_has(&region->exposed, variable) ||
           (sp_wg_is_stored(region, variable) &&
            (region->masked || !sp_bits_has(&region->defined, variable)));
}

static void find_blocks(const struct sp_wg_plan *plan, struct sp_wg_region *region)
{
    const struct sp_wg_graph *graph = &plan->analysis.graph;
    struct sp_bits seen = sp_bits_create(graph->num_blocks);
    region->blocks = sp_cc_allocate(graph->num_blocks * sizeof(uint32_t));
    region->exits = sp_bits_create(plan->num_regions + 1);
    region->blocks[region->num_blocks++] = region->leader;
    sp_bits_add(&seen, region->leader);
    for (uint32_t i = 0; i < region->num_blocks; i++) {
        const uint32_t *to = graph->successors[region->blocks[i]];
        if (to[0] == SP_WG_NONE)
            sp_bits_add(&region->exits, plan->num_regions);
        for (unsigned s = 0; s < 2 && to[s] != SP_WG_NONE; s++) {
            if (sp_bits_has(&plan->analysis.leaders, to[s])) {
                sp_bits_add(&region->exits, plan->region_of[to[s]]);
            } else if (!sp_bits_has(&seen, to[s])) {
                sp_bits_add(&seen, to[s]);
                region->blocks[region->num_blocks++] = to[s];
            }
        }
    }
    /* A value is then copied before it is used, but for PHIs: the numbers are a reverse postorder.
     */
    uint32_t count = 0;
    if (sp_wg_keeps_values(graph->function)) {
        SP_BITS_EACH(b, &seen)
        region->blocks[count++] = b;
    }
    sp_bits_finish(&seen);
}

static void find_regions(struct sp_wg_plan *plan)
{
    const struct sp_wg_analysis *analysis = &plan->analysis;
    plan->num_regions = sp_bits_count(&analysis->leaders);
    plan->regions = sp_cc_allocate(plan->num_regions * sizeof(*plan->regions));
    plan->region_of = sp_cc_allocate(analysis->graph.num_blocks * sizeof(uint32_t));
    uint32_t count = 0;
    SP_BITS_EACH(b, &analysis->leaders)
    {
        plan->regions[count].leader = b;
        plan->regions[count].masked = sp_bits_has(&analysis->masked, b);
        plan->region_of[b] = count++;
    }
    for (uint32_t r = 0; r < plan->num_regions; r++)
        find_blocks(plan, &plan->regions[r]);
}

/* Regions that parted work-items of the branch may stand at. */
static void add_targets(const struct sp_wg_plan *plan, uint32_t branch, struct sp_bits *targets)
{
    const struct sp_wg_analysis *analysis = &plan->analysis;
    uint32_t after = analysis->graph.post_dominator[branch];
    const struct sp_bits *influence = sp_wg_influence_of(&analysis->uniformity, branch);
    SP_BITS_EACH(b, influence)
    if (sp_bits_has(&analysis->leaders, b))
        sp_bits_add(targets, plan->region_of[b]);
    sp_bits_add(targets,
                after == SP_WG_EXIT(&analysis->graph) ? plan->num_regions : plan->region_of[after]);
}

/* A region counts when it is masked, when work-items part in it, or when it leads to a masked one.
 */
static void find_counting(struct sp_wg_plan *plan)
{
    const struct sp_wg_analysis *analysis = &plan->analysis;
    const struct sp_wg_uniformity *uniformity = &analysis->uniformity;
    for (uint32_t r = 0; r < plan->num_regions; r++) {
        struct sp_wg_region *region = &plan->regions[r];
        region->targets = sp_bits_create(plan->num_regions + 1);
        sp_bits_copy(&region->targets, &region->exits);
        region->counts = region->masked;
        SP_BITS_EACH(e, &region->exits)
        region->counts |= e < plan->num_regions && plan->regions[e].masked;
        SP_BITS_EACH(branch, &uniformity->branches)
        {
            const struct sp_bits *influence = sp_wg_influence_of(uniformity, branch);
            if (!sp_bits_meet(influence, &analysis->leaders))
                continue;
            bool inside = sp_bits_has(influence, region->leader);
            for (uint32_t i = 0; i < region->num_blocks && !inside; i++)
                inside = region->blocks[i] == branch;
            if (inside) {
                region->counts = true;
                add_targets(plan, branch, &region->targets);
            }
        }
        if (region->masked && analysis->graph.irreducible)
            sp_bits_fill(&region->targets);
        plan->counters |= region->counts;
    }
}

static void find_variables(struct sp_wg_plan *plan, LLVMTargetDataRef sizes)
{
    const struct sp_wg_graph *graph = &plan->analysis.graph;
    LLVMValueRef value;
    for (uint32_t b = 0; b < graph->num_blocks; b++)
        for (value = LLVMGetFirstInstruction(graph->blocks[b]); value;
             value = LLVMGetNextInstruction(value)) {
            if (!LLVMIsAAllocaInst(value))
                continue;
            plan->variables = sp_cc_reallocate(plan->variables, (plan->num_variables + 1) *
                                                                    sizeof(*plan->variables));
            struct sp_wg_variable *variable = &plan->variables[plan->num_variables++];
            LLVMTypeRef type = LLVMGetAllocatedType(value);
            unsigned alignment = LLVMGetAlignment(value);
            *variable = (struct sp_wg_variable){
                .alloca = value,
                .type = type,
                .kind = !sp_wg_is_slot(value)                                   ? SP_WG_ARRAY
                        : sp_wg_is_divergent(&plan->analysis.uniformity, value) ? SP_WG_REGION
                                                                                : SP_WG_SHARED,
                .size = LLVMABISizeOfType(sizes, type),
                .alignment = alignment ? alignment : LLVMABIAlignmentOfType(sizes, type),
            };
            /* One after the other, work-items want their own arrays in one piece. */
            if (variable->kind == SP_WG_ARRAY && plan->form != SP_WG_SCALAR)
                variable->unit = sp_wg_interleave_unit(value, sizes);
            sp_map_set(&plan->variable_of, value, (void *)(uintptr_t)plan->num_variables);
        }
}

/* Which slots a block of a region reads before it writes them, or writes. By variable, so that each
 * is followed by itself, through the blocks where that is open: sets of variables for each block
 * took quadratic memory. */
struct access {
    uint32_t block;
    bool reads_first, writes;
};

struct accesses {
    struct access *list; /* of variable v: from first[v] to first[v + 1] */
    uint32_t *first;
};

/* The slot that `value` loads or stores, or SP_WG_NONE. */
static uint32_t accessed_slot(const struct sp_wg_plan *plan, LLVMValueRef value)
{
    bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
    LLVMValueRef address = load || store ? LLVMGetOperand(value, load ? 0 : 1) : NULL;
    if (!address || !LLVMIsAAllocaInst(address) || !sp_map_get(&plan->variable_of, address))
        return SP_WG_NONE;
    uint32_t index = sp_wg_variable_index(plan, address);
    return plan->variables[index].kind == SP_WG_ARRAY ? SP_WG_NONE : index;
}

/* Lists what the region's blocks do, into `list` where that is there; else only counts it, in
 * first[v + 1]. `latest`: of each variable, the place of its last access, behind 1. */
static void list_accesses(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                          struct accesses *accesses, uint32_t *next, uint32_t *latest)
{
    for (uint32_t i = 0; i < region->num_blocks; i++) {
        uint32_t block = region->blocks[i];
        LLVMValueRef value = LLVMGetFirstInstruction(plan->analysis.graph.blocks[block]);
        for (; value; value = LLVMGetNextInstruction(value)) {
            uint32_t v = accessed_slot(plan, value);
            if (v == SP_WG_NONE)
                continue;
            bool is_first = latest[v] != i + 1;
            latest[v] = i + 1;
            if (!accesses->list) {
                accesses->first[v + 1] += is_first;
                continue;
            }
            if (is_first)
                accesses->list[next[v]++] =
                    (struct access){.block = block, .reads_first = LLVMIsALoadInst(value)};
            accesses->list[next[v] - 1].writes |= LLVMIsAStoreInst(value) != NULL;
        }
    }
}

static struct accesses find_accesses(const struct sp_wg_plan *plan,
                                     const struct sp_wg_region *region)
{
    uint32_t n = plan->num_variables;
    struct accesses accesses = {.first = sp_cc_allocate((n + 1) * sizeof(uint32_t))};
    uint32_t *next = sp_cc_allocate(n * sizeof(uint32_t));
    uint32_t *latest = sp_cc_allocate(n * sizeof(uint32_t));
    list_accesses(plan, region, &accesses, next, latest);
    for (uint32_t v = 0; v < n; v++) {
        next[v] = accesses.first[v];
        accesses.first[v + 1] += accesses.first[v];
        latest[v] = 0;
    }
    accesses.list = sp_cc_allocate(accesses.first[n] * sizeof(*accesses.list));
    list_accesses(plan, region, &accesses, next, latest);
    free(next);
    free(latest);
    return accesses;
}

/* A walk through a region's blocks for one variable after the other. */
struct walk {
    const struct sp_wg_plan *plan;
    const struct sp_wg_region *region;
    const struct accesses *accesses;
    bool *inside;     /* of each block of the graph: whether the region has it */
    uint32_t *writer; /* the last variable asked for, behind 1, that the block writes */
    uint32_t *seen;   /* the last variable, behind 1, whose walk came here */
    uint32_t *stack;
    uint32_t depth;
};

static void begin_walk(struct walk *walk, const struct sp_wg_plan *plan,
                       const struct sp_wg_region *region, const struct accesses *accesses)
{
    uint32_t blocks = plan->analysis.graph.num_blocks;
    *walk = (struct walk){
        .plan = plan,
        .region = region,
        .accesses = accesses,
        .inside = sp_cc_allocate(blocks * sizeof(bool)),
        .writer = sp_cc_allocate(blocks * sizeof(uint32_t)),
        .seen = sp_cc_allocate(blocks * sizeof(uint32_t)),
        .stack = sp_cc_allocate(blocks * sizeof(uint32_t)),
    };
    for (uint32_t i = 0; i < region->num_blocks; i++)
        walk->inside[region->blocks[i]] = true;
}

static void end_walk(struct walk *walk)
{
    free(walk->inside);
    free(walk->writer);
    free(walk->seen);
    free(walk->stack);
}

static void go_to(struct walk *walk, uint32_t variable, uint32_t block)
{
    if (walk->seen[block] == variable + 1)
        return;
    walk->seen[block] = variable + 1;
    walk->stack[walk->depth++] = block;
}

/* Forgets the last walk for this variable, and learns where it is written. */
static void turn_to(struct walk *walk, uint32_t variable)
{
    const struct accesses *accesses = walk->accesses;
    walk->depth = 0;
    for (uint32_t a = accesses->first[variable]; a < accesses->first[variable + 1]; a++)
        if (accesses->list[a].writes)
            walk->writer[accesses->list[a].block] = variable + 1;
}

/* Whether a way leads from the region's leader to a block that reads the variable first, past none
 * that writes it. */
static bool is_exposed(struct walk *walk, uint32_t variable)
{
    const struct sp_wg_graph *graph = &walk->plan->analysis.graph;
    const struct accesses *accesses = walk->accesses;
    turn_to(walk, variable);
    for (uint32_t a = accesses->first[variable]; a < accesses->first[variable + 1]; a++)
        if (accesses->list[a].reads_first)
            go_to(walk, variable, accesses->list[a].block);
    while (walk->depth) {
        uint32_t block = walk->stack[--walk->depth];
        if (block == walk->region->leader)
            return true;
        SP_WG_EACH_PREDECESSOR(from, graph, block)
        if (walk->inside[*from] && walk->writer[*from] != variable + 1)
            go_to(walk, variable, *from);
    }
    return false;
}

/* Whether every way out of the region passes a block that writes the variable. */
static bool is_defined(struct walk *walk, uint32_t variable)
{
    const struct sp_wg_graph *graph = &walk->plan->analysis.graph;
    turn_to(walk, variable);
    go_to(walk, variable, walk->region->leader);
    while (walk->depth) {
        uint32_t block = walk->stack[--walk->depth];
        const uint32_t *to = graph->successors[block];
        if (walk->writer[block] == variable + 1)
            continue;
        if (to[0] == SP_WG_NONE)
            return false;
        for (unsigned s = 0; s < 2 && to[s] != SP_WG_NONE; s++) {
            if (sp_bits_has(&walk->plan->analysis.leaders, to[s]))
                return false;
            go_to(walk, variable, to[s]);
        }
    }
    return true;
}

/* What the region does to each variable but `defined`; the variables that it needs from before go
 * to `needed`. */
static void look_at_region(const struct sp_wg_plan *plan, struct sp_wg_region *region,
                           const struct accesses *accesses, struct sp_bits *needed)
{
    uint32_t n = plan->num_variables;
    struct walk walk;
    region->touched = sp_bits_create(n);
    region->written = sp_bits_create(n);
    region->exposed = sp_bits_create(n);
    region->defined = sp_bits_create(n);
    region->live_out = sp_bits_create(n);
    begin_walk(&walk, plan, region, accesses);
    for (uint32_t v = 0; v < n; v++) {
        for (uint32_t a = accesses->first[v]; a < accesses->first[v + 1]; a++) {
            sp_bits_add(&region->touched, v);
            if (accesses->list[a].writes)
                sp_bits_add(&region->written, v);
        }
        if (sp_bits_has(&region->touched, v) && is_exposed(&walk, v))
            sp_bits_add(&region->exposed, v);
    }
    sp_bits_unite(needed, &region->exposed);
    end_walk(&walk);
}

/* What a region does not need from before is nobody's question in another one. */
static void find_defined(const struct sp_wg_plan *plan, struct sp_wg_region *region,
                         const struct accesses *accesses, const struct sp_bits *needed)
{
    struct walk walk;
    begin_walk(&walk, plan, region, accesses);
    SP_BITS_EACH(v, needed)
    if (sp_bits_has(&region->written, v) && is_defined(&walk, v))
        sp_bits_add(&region->defined, v);
    end_walk(&walk);
}

static void look_at_regions(struct sp_wg_plan *plan)
{
    struct accesses *accesses = sp_cc_allocate(plan->num_regions * sizeof(*accesses));
    struct sp_bits needed = sp_bits_create(plan->num_variables);
    for (uint32_t r = 0; r < plan->num_regions; r++) {
        accesses[r] = find_accesses(plan, &plan->regions[r]);
        look_at_region(plan, &plan->regions[r], &accesses[r], &needed);
    }
    for (uint32_t r = 0; r < plan->num_regions; r++) {
        find_defined(plan, &plan->regions[r], &accesses[r], &needed);
        free(accesses[r].list);
        free(accesses[r].first);
    }
    free(accesses);
    sp_bits_finish(&needed);
}

static void find_liveness(struct sp_wg_plan *plan)
{
    struct sp_bits live_in = sp_bits_create(plan->num_variables);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t r = plan->num_regions; r-- > 0;) {
            struct sp_wg_region *region = &plan->regions[r];
            SP_BITS_EACH(e, &region->exits)
            {
                if (e == plan->num_regions)
                    continue;
                const struct sp_wg_region *next = &plan->regions[e];
                sp_bits_copy(&live_in, &next->live_out);
                sp_bits_subtract(&live_in, &next->defined);
                sp_bits_unite(&live_in, &next->exposed);
                changed |= sp_bits_unite(&region->live_out, &live_in);
            }
        }
    }
    sp_bits_finish(&live_in);
}

/* Arrays whose types are aligned most come first: then each starts aligned, since the capacity is a
 * multiple of SP_CPU_CONTEXT_ROUND. */
static void place_variables(struct sp_wg_plan *plan)
{
    for (uint32_t v = 0; v < plan->num_variables; v++)
        for (uint32_t r = 0; r < plan->num_regions; r++)
            if (plan->variables[v].kind == SP_WG_REGION &&
                sp_bits_has(&plan->regions[r].exposed, v))
                plan->variables[v].kind = SP_WG_CONTEXT;
    for (uint32_t alignment = 4096; alignment; alignment /= 2)
        for (uint32_t v = 0; v < plan->num_variables; v++) {
            struct sp_wg_variable *variable = &plan->variables[v];
            if ((variable->kind != SP_WG_CONTEXT && variable->kind != SP_WG_ARRAY) ||
                variable->alignment != alignment)
                continue;
            if (variable->kind == SP_WG_ARRAY)
                variable->size = sp_ir_align_up(variable->size, alignment);
            variable->item_offset = plan->item_bytes;
            plan->item_bytes += variable->size;
        }
    plan->counter_offset = plan->item_bytes;
    if (plan->counters)
        plan->item_bytes += COUNTER_BYTES;
}

void sp_wg_plan_init(struct sp_wg_plan *plan, LLVMValueRef kernel, enum sp_wg_form form)
{
    *plan = (struct sp_wg_plan){.form = form};
    sp_wg_analysis_init(&plan->analysis, kernel, form);
    find_regions(plan);
    find_counting(plan);
    find_variables(plan, LLVMGetModuleDataLayout(LLVMGetGlobalParent(kernel)));
    look_at_regions(plan);
    find_liveness(plan);
    place_variables(plan);
}

void sp_wg_plan_finish(struct sp_wg_plan *plan)
{
    for (uint32_t r = 0; r < plan->num_regions; r++) {
        struct sp_wg_region *region = &plan->regions[r];
        free(region->blocks);
        sp_bits_finish(&region->exits);
        sp_bits_finish(&region->targets);
        sp_bits_finish(&region->touched);
        sp_bits_finish(&region->written);
        sp_bits_finish(&region->exposed);
        sp_bits_finish(&region->defined);
        sp_bits_finish(&region->live_out);
    }
    free(plan->regions);
    free(plan->region_of);
    free(plan->variables);
    sp_map_finish(&plan->variable_of);
    sp_wg_analysis_finish(&plan->analysis);
}
