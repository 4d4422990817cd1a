/* See regions.h. Two small data-flow problems decide where a variable lives. Inside a region: may
 * it be read before it is written there? Over regions: may a later one so read it? A variable that
 * no region so reads needs no memory of its own at all. Both err towards keeping a value. */
#include "compiler/cc/workgroup/regions.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/interleave.h"

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
    SP_BITS_EACH(b, &analysis->uniformity.influence[branch])
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
            if (!sp_bits_meet(&uniformity->influence[branch], &analysis->leaders))
                continue;
            bool inside = sp_bits_has(&uniformity->influence[branch], region->leader);
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

/* What one block does to slots: which it reads first, which it writes. */
static void note_accesses(const struct sp_wg_plan *plan, uint32_t block, struct sp_bits *read_first,
                          struct sp_bits *written, struct sp_bits *touched)
{
    LLVMValueRef value = LLVMGetFirstInstruction(plan->analysis.graph.blocks[block]);
    for (; value; value = LLVMGetNextInstruction(value)) {
        bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
        LLVMValueRef address = load || store ? LLVMGetOperand(value, load ? 0 : 1) : NULL;
        if (!address || !LLVMIsAAllocaInst(address) || !sp_map_get(&plan->variable_of, address))
            continue;
        uint32_t index = sp_wg_variable_index(plan, address);
        if (plan->variables[index].kind == SP_WG_ARRAY)
            continue;
        sp_bits_add(touched, index);
        if (store)
            sp_bits_add(written, index);
        else if (!sp_bits_has(written, index))
            sp_bits_add(read_first, index);
    }
}

static void find_accesses(const struct sp_wg_plan *plan, struct sp_wg_region *region)
{
    const struct sp_wg_graph *graph = &plan->analysis.graph;
    uint32_t n = plan->num_variables, count = region->num_blocks;
    struct sp_bits *in = sp_cc_allocate(count * sizeof(struct sp_bits));
    struct sp_bits *written = sp_cc_allocate(count * sizeof(struct sp_bits));
    struct sp_bits *read_first = sp_cc_allocate(count * sizeof(struct sp_bits));
    struct sp_bits out = sp_bits_create(n);
    uint32_t *place = sp_cc_allocate(graph->num_blocks * sizeof(uint32_t));
    region->touched = sp_bits_create(n);
    region->written = sp_bits_create(n);
    region->exposed = sp_bits_create(n);
    region->defined = sp_bits_create(n);
    region->live_out = sp_bits_create(n);
    for (uint32_t i = 0; i < count; i++) {
        place[region->blocks[i]] = i + 1;
        in[i] = sp_bits_create(n);
        written[i] = sp_bits_create(n);
        read_first[i] = sp_bits_create(n);
        note_accesses(plan, region->blocks[i], &read_first[i], &written[i], &region->touched);
        sp_bits_unite(&region->written, &written[i]);
        if (i)
            sp_bits_fill(&in[i]);
    }
    sp_bits_fill(&region->defined);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t *to = graph->successors[region->blocks[i]];
            sp_bits_copy(&out, &in[i]);
            sp_bits_unite(&out, &written[i]);
            if (to[0] == SP_WG_NONE)
                sp_bits_intersect(&region->defined, &out);
            for (unsigned s = 0; s < 2 && to[s] != SP_WG_NONE; s++) {
                if (sp_bits_has(&plan->analysis.leaders, to[s]))
                    sp_bits_intersect(&region->defined, &out);
                else
                    changed |= sp_bits_intersect(&in[place[to[s]] - 1], &out);
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        sp_bits_subtract(&read_first[i], &in[i]);
        sp_bits_unite(&region->exposed, &read_first[i]);
        sp_bits_finish(&in[i]);
        sp_bits_finish(&written[i]);
        sp_bits_finish(&read_first[i]);
    }
    sp_bits_finish(&out);
    free(in);
    free(written);
    free(read_first);
    free(place);
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
    for (uint32_t r = 0; r < plan->num_regions; r++)
        find_accesses(plan, &plan->regions[r]);
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
