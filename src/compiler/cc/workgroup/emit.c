/* See emit.h. The function's shape:
 *
 *   entry      sizes, arguments and bases of context arrays; one alloca for each variable
 *   region     for each, a loop nest over z, y, x around a copy of its blocks; x is innermost
 *   after      which region is next: the only exit, the one all chose, or the lowest counter's
 *
 * In a loop body a context variable is loaded into its alloca first and stored back last, on every
 * path, so that the accesses are plain and the alloca becomes a register. A uniform variable has
 * two allocas: work-items start from the value before the loop and write the other one, so that "k
 * = k + 1" counts once and not once per work-item. */
#include "compiler/cc/workgroup/emitter.h"

#include "compiler/cc/workgroup/ahead.h"
#include "compiler/cc/workgroup/ends.h"
#include "compiler/cc/workgroup/lanes.h"
#include "compiler/cc/workgroup/masked.h"
#include "compiler/cc/workgroup/metadata.h"
#include "compiler/cc/workgroup/prepare.h"
#include "compiler/cpu_abi.h"

#include <llvm-c/Target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The counter of a work-item that has ended: above all numbers of regions. */
#define END_NUMBER UINT32_MAX

/* A strip (strips.h) is as many work-items as a vector has lanes of so many bits. */
#define STRIP_BITS 32u

/* Work-items in x below which loops over them cost more than vectors gain, with no known size. */
#define LEAST_VECTOR_SIZE 8u

static LLVMBasicBlockRef new_block(const struct sp_wg_emitter *e, const char *name)
{
    return LLVMAppendBasicBlockInContext(e->context, e->function, name);
}

static uint32_t number_of(const struct sp_wg_plan *plan, uint32_t region)
{
    return region == plan->num_regions ? END_NUMBER
                                       : plan->analysis.numbers[plan->regions[region].leader];
}

/* The block that a path of the region goes on to: a copy, or one that notes the choice and ends the
 * work-item's turn. */
static LLVMBasicBlockRef path_to(struct sp_wg_emitter *e, uint32_t block)
{
    const struct sp_wg_plan *plan = e->plan;
    bool ends = block == SP_WG_NONE || sp_bits_has(&plan->analysis.leaders, block);
    if (!ends)
        return sp_map_get(&e->values, plan->analysis.graph.blocks[block]);
    if (!e->region->counts && sp_bits_count(&e->region->exits) == 1)
        return e->latch;
    uint32_t region = block == SP_WG_NONE ? plan->num_regions : plan->region_of[block];
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->at);
    LLVMBasicBlockRef leave = new_block(e, "leave");
    LLVMPositionBuilderAtEnd(e->at, leave);
    LLVMBuildStore(e->at, LLVMConstInt(e->i32, number_of(plan, region), false), e->next);
    LLVMBuildBr(e->at, e->latch);
    LLVMPositionBuilderAtEnd(e->at, here);
    return leave;
}

static void copy_block(struct sp_wg_emitter *e, uint32_t block)
{
    const struct sp_wg_graph *graph = &e->plan->analysis.graph;
    LLVMValueRef end = LLVMGetBasicBlockTerminator(graph->blocks[block]);
    const uint32_t *to = graph->successors[block];
    LLVMPositionBuilderAtEnd(e->at, sp_map_get(&e->values, graph->blocks[block]));
    for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[block]); value != end;
         value = LLVMGetNextInstruction(value))
        sp_wg_copy_instruction(e, value);
    if (e->plan->form != SP_WG_SCALAR && sp_wg_is_skipped(e->plan, e->region, block))
        sp_wg_vary_divisors(graph->blocks[block], &e->values, &e->firsts, e->local_id[0], e->zero);
    LLVMBasicBlockRef first = path_to(e, to[0]);
    bool parts = to[0] != SP_WG_NONE && to[1] != SP_WG_NONE;
    int way = sp_wg_agreed_way(e->agreed, block);
    for (uint32_t i = 0; i < e->narrowing.num_decisions; i++)
        if (e->narrowing.blocks[i] == block)
            way = e->narrowing.ways[i];
    if (parts && way >= 0) {
        parts = false;
        first = path_to(e, to[way]);
    }
    LLVMBasicBlockRef second = parts ? path_to(e, to[1]) : NULL;
    LLVMValueRef condition = parts ? sp_wg_operand(e, LLVMGetCondition(end)) : NULL;
    LLVMValueRef branch =
        parts ? LLVMBuildCondBr(e->at, condition, first, second) : LLVMBuildBr(e->at, first);
    if (sp_wg_ends_dividing_loop(e->plan, block))
        sp_wg_mark_plain_loop(e->context, branch);
    else if (sp_wg_ends_own_loop(&e->plan->analysis, block))
        sp_wg_mark_rolled_loop(e->context, branch);
}

/* The loops of the nest: header with the id of dimension d, and latch; and the block behind. */
struct nest {
    LLVMBasicBlockRef header[3], latch[3], after;
    LLVMValueRef id[3];
};

static void open_loop(struct sp_wg_emitter *e, struct nest *nest, int d)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(e->at);
    LLVMValueRef least = sp_wg_number(e, e->narrowing.first[d]);
    nest->header[d] = new_block(e, d == 0 ? "x" : d == 1 ? "y" : "z");
    LLVMBuildBr(e->at, nest->header[d]);
    LLVMPositionBuilderAtEnd(e->at, nest->header[d]);
    nest->id[d] = LLVMBuildPhi(e->at, e->i64, "");
    LLVMAddIncoming(nest->id[d], &least, &from, 1);
    e->local_id[d] = nest->id[d];
}

/* The loops over z and y. */
static void open_rows(struct sp_wg_emitter *e, struct nest *nest)
{
    for (int d = 2; d >= 1; d--)
        open_loop(e, nest, d);
    LLVMValueRef row = LLVMBuildMul(e->at, nest->id[2], e->local_size[1], "");
    row = LLVMBuildAdd(e->at, row, nest->id[1], "");
    e->row = LLVMBuildMul(e->at, row, e->local_size[0], "");
    for (int d = 0; d < 3; d++)
        nest->latch[d] = new_block(e, "latch");
    nest->after = new_block(e, "after");
}

static void open_nest(struct sp_wg_emitter *e, struct nest *nest)
{
    open_rows(e, nest);
    open_loop(e, nest, 0);
    e->index = LLVMBuildAdd(e->at, e->row, nest->id[0], "");
    e->latch = nest->latch[0];
}

/* The builder is at the end of the latch of the loop over dimension `from`, the innermost. */
static void close_nest(struct sp_wg_emitter *e, struct nest *nest, int from)
{
    for (int d = from; d < 3; d++) {
        LLVMBasicBlockRef here = nest->latch[d];
        LLVMPositionBuilderAtEnd(e->at, here);
        LLVMValueRef id = LLVMBuildAdd(e->at, nest->id[d], sp_wg_number(e, 1), "");
        LLVMSetNUW(id, true);
        LLVMSetNSW(id, true);
        LLVMAddIncoming(nest->id[d], &id, &here, 1);
        LLVMValueRef limit =
            e->known_size ? sp_wg_number(e, e->narrowing.end[d]) : e->local_size[d];
        LLVMValueRef more = LLVMBuildICmp(e->at, LLVMIntULT, id, limit, "");
        LLVMValueRef branch = LLVMBuildCondBr(e->at, more, nest->header[d],
                                              d == 2 ? nest->after : nest->latch[d + 1]);
        if (e->plan->form == SP_WG_SCALAR)
            sp_wg_mark_plain_loop(e->context, branch);
        else if (d == 0)
            sp_wg_mark_loop(e->context, branch, e->env->access_group);
    }
    LLVMPositionBuilderAtEnd(e->at, nest->after);
}

static LLVMValueRef counter_address(const struct sp_wg_emitter *e)
{
    LLVMValueRef index = e->index;
    return LLVMBuildInBoundsGEP2(e->at, e->i32, e->counters, &index, 1, "");
}

/* The first part of the body: variables, and under a mask the question whether this work-item is
 * here. */
static void begin_item(struct sp_wg_emitter *e, LLVMValueRef *uniform_before,
                       LLVMBasicBlockRef body)
{
    const struct sp_wg_plan *plan = e->plan;
    for (uint32_t v = 0; v < plan->num_variables; v++) {
        const struct sp_wg_variable *variable = &plan->variables[v];
        if (variable->kind == SP_WG_CONTEXT && sp_wg_is_loaded(e->region, v))
            sp_wg_load_variable(e, v);
        if (uniform_before[v])
            LLVMBuildStore(e->at, uniform_before[v], e->work[v]);
        if (variable->kind == SP_WG_ARRAY) {
            uint64_t step = variable->unit ? variable->unit : variable->size;
            LLVMValueRef offset = LLVMBuildMul(e->at, e->index, sp_wg_number(e, step), "");
            sp_map_set(&e->values, variable->alloca,
                       sp_wg_byte_address(e, e->at, e->arrays[v], offset));
        }
    }
    if (!e->region->masked) {
        LLVMBuildBr(e->at, body);
        return;
    }
    LLVMValueRef counter = LLVMBuildLoad2(e->at, e->i32, counter_address(e), "");
    sp_wg_mark_access(e->context, counter, e->env->access_group);
    LLVMBuildStore(e->at, counter, e->next);
    uint32_t here = plan->analysis.numbers[e->region->leader];
    LLVMValueRef is_here =
        LLVMBuildICmp(e->at, LLVMIntEQ, counter, LLVMConstInt(e->i32, here, false), "");
    LLVMBuildCondBr(e->at, is_here, body, e->latch);
}

static void end_item(struct sp_wg_emitter *e)
{
    LLVMPositionBuilderAtEnd(e->at, e->latch);
    for (uint32_t v = 0; v < e->plan->num_variables; v++)
        if (e->plan->variables[v].kind == SP_WG_CONTEXT && sp_wg_is_stored(e->region, v))
            sp_wg_store_variable(e, v);
    if (!e->region->counts)
        return;
    LLVMValueRef next = LLVMBuildLoad2(e->at, e->i32, e->next, "");
    sp_wg_mark_access(e->context, LLVMBuildStore(e->at, next, counter_address(e)),
                      e->env->access_group);
    LLVMValueRef least = LLVMBuildLoad2(e->at, e->i32, e->least, "");
    LLVMBuildStore(e->at, sp_wg_minimum(e->at, next, least), e->least);
}

/* To the next region: a switch over those that are possible. */
static void go_on(struct sp_wg_emitter *e)
{
    const struct sp_wg_region *region = e->region;
    const struct sp_bits *targets = region->counts ? &region->targets : &region->exits;
    uint32_t last = SP_WG_NONE;
    SP_BITS_EACH(t, targets)
    last = t;
    if (last == SP_WG_NONE) {
        LLVMBuildUnreachable(e->at);
        return;
    }
    if (sp_bits_count(targets) == 1) {
        LLVMBuildBr(e->at, e->starts[last]);
        return;
    }
    LLVMValueRef next = LLVMBuildLoad2(e->at, e->i32, region->counts ? e->least : e->next, "");
    LLVMValueRef choice = LLVMBuildSwitch(e->at, next, e->starts[last], sp_bits_count(targets));
    SP_BITS_EACH(t, targets)
    if (t != last)
        LLVMAddCase(choice, LLVMConstInt(e->i32, number_of(e->plan, t), false), e->starts[t]);
}

/* What a PHI gets from the way numbered `index`; `end` is where the copy of that block ends. A
 * block that leads here twice must give the same both times. */
static LLVMValueRef value_on_way(struct sp_wg_emitter *e, LLVMValueRef phi, LLVMValueRef copy,
                                 unsigned index, LLVMBasicBlockRef end)
{
    for (unsigned i = 0; i < LLVMCountIncoming(copy); i++)
        if (LLVMGetIncomingBlock(copy, i) == end)
            return LLVMGetIncomingValue(copy, i);
    LLVMPositionBuilderBefore(e->at, LLVMGetBasicBlockTerminator(end));
    return sp_wg_operand(e, LLVMGetIncomingValue(phi, index));
}

/* Fills in the PHIs of a function that keeps its values, all of which have copies by now. `ends`:
 * by block, where its copy ends. */
static void fill_phis(struct sp_wg_emitter *e, const LLVMBasicBlockRef *ends)
{
    const struct sp_wg_graph *graph = &e->plan->analysis.graph;
    for (uint32_t b = 0; b < graph->num_blocks; b++)
        for (LLVMValueRef phi = LLVMGetFirstInstruction(graph->blocks[b]);
             phi && LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi)) {
            LLVMValueRef copy = sp_map_get(&e->values, phi);
            for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
                uint32_t from = sp_wg_block_number(graph, LLVMGetIncomingBlock(phi, i));
                if (from == SP_WG_NONE) /* nothing leads there */
                    continue;
                LLVMBasicBlockRef end = ends[from];
                LLVMValueRef value = value_on_way(e, phi, copy, i, end);
                LLVMAddIncoming(copy, &value, &end, 1);
            }
        }
}

/* The body of the loop over x. */
static void emit_body(struct sp_wg_emitter *e)
{
    const struct sp_wg_graph *graph = &e->plan->analysis.graph;
    LLVMBasicBlockRef *ends = sp_cc_allocate(graph->num_blocks * sizeof(LLVMBasicBlockRef));
    for (uint32_t i = 0; i < e->region->num_blocks; i++)
        sp_map_set(&e->values, graph->blocks[e->region->blocks[i]], new_block(e, ""));
    begin_item(e, e->before, sp_map_get(&e->values, graph->blocks[e->region->leader]));
    for (uint32_t i = 0; i < e->region->num_blocks; i++) {
        copy_block(e, e->region->blocks[i]);
        ends[e->region->blocks[i]] = LLVMGetInsertBlock(e->at);
    }
    if (sp_wg_keeps_values(graph->function))
        fill_phis(e, ends);
    free(ends);
    end_item(e);
}

static void emit_items(struct sp_wg_emitter *e)
{
    struct nest nest;
    open_nest(e, &nest);
    emit_body(e);
    close_nest(e, &nest, 0);
}

static void emit_narrowed(struct sp_wg_emitter *e)
{
    if (e->known_size)
        sp_wg_narrow(e->plan, e->region, e->known_size, &e->narrowing);
    emit_items(e);
}

/* Whether the work-items in x are whole strips, and what the strips ask is so. */
static LLVMValueRef ask_strips(struct sp_wg_emitter *e, const struct sp_wg_strips *strips)
{
    const LLVMValueRef multiples[] = {e->local_size[0], e->enqueued_size[0], e->global_offset[0]};
    LLVMValueRef yes = LLVMConstInt(LLVMInt1TypeInContext(e->context), 1, false);
    for (size_t i = 0; i < sizeof(multiples) / sizeof(multiples[0]); i++)
        yes = LLVMBuildAnd(e->at, yes,
                           sp_wg_strip_answer(e->at, strips, SP_WG_LOW_ZEROS, multiples[i]), "");
    sp_map_clear(&e->firsts);
    for (unsigned i = 0; i < strips->num_questions; i++) {
        LLVMValueRef value = sp_wg_value_here(e, strips->questions[i].value);
        yes = LLVMBuildAnd(e->at, yes,
                           sp_wg_strip_answer(e->at, strips, strips->questions[i].kind, value), "");
    }
    sp_map_clear(&e->firsts);
    return yes;
}

/* The nest with the loop over x in two: over strips, and within each. */
static void emit_strips(struct sp_wg_emitter *e, const struct sp_wg_strips *strips)
{
    const struct sp_wg_graph *graph = &e->plan->analysis.graph;
    LLVMValueRef zero = sp_wg_number(e, 0), width = sp_wg_number(e, strips->width);
    struct nest nest;
    open_rows(e, &nest);
    LLVMBasicBlockRef row = LLVMGetInsertBlock(e->at), strip = new_block(e, "strip"),
                      items = new_block(e, "x"), next = new_block(e, "latch");
    LLVMBuildBr(e->at, strip);
    LLVMPositionBuilderAtEnd(e->at, strip);
    LLVMValueRef start = LLVMBuildPhi(e->at, e->i64, "");
    LLVMAddIncoming(start, &zero, &row, 1);
    e->local_id[0] = start;
    sp_map_clear(&e->firsts);
    for (uint32_t i = 0; i < e->region->num_blocks; i++)
        for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[e->region->blocks[i]]);
             value; value = LLVMGetNextInstruction(value))
            if (sp_wg_slope(strips, value))
                sp_wg_value_here(e, value);
    LLVMBuildBr(e->at, items);
    LLVMPositionBuilderAtEnd(e->at, items);
    e->place = LLVMBuildPhi(e->at, e->i64, "");
    LLVMAddIncoming(e->place, &zero, &strip, 1);
    e->local_id[0] = LLVMBuildNUWAdd(e->at, start, e->place, "");
    e->index = LLVMBuildAdd(e->at, e->row, e->local_id[0], "");
    e->latch = nest.latch[0];
    e->strips = strips;
    emit_body(e);
    e->strips = NULL;
    sp_map_clear(&e->firsts);
    LLVMValueRef more = LLVMBuildNUWAdd(e->at, e->place, sp_wg_number(e, 1), "");
    LLVMAddIncoming(e->place, &more, &nest.latch[0], 1);
    LLVMValueRef branch =
        LLVMBuildCondBr(e->at, LLVMBuildICmp(e->at, LLVMIntULT, more, width, ""), items, next);
    sp_wg_mark_loop(e->context, branch, e->env->access_group);
    LLVMPositionBuilderAtEnd(e->at, next);
    more = LLVMBuildNUWAdd(e->at, start, width, "");
    LLVMAddIncoming(start, &more, &next, 1);
    branch = LLVMBuildCondBr(e->at, LLVMBuildICmp(e->at, LLVMIntULT, more, e->local_size[0], ""),
                             strip, nest.latch[1]);
    sp_wg_mark_plain_loop(e->context, branch);
    close_nest(e, &nest, 1);
}

/* The region twice: for strips where the launch's numbers suit, else as it is written. */
static void emit_either(struct sp_wg_emitter *e, const struct sp_wg_strips *strips)
{
    LLVMBasicBlockRef ways[2] = {new_block(e, "strips"), new_block(e, "items")},
                      join = new_block(e, "join");
    LLVMBuildCondBr(e->at, ask_strips(e, strips), ways[0], ways[1]);
    for (int way = 0; way < 2; way++) {
        sp_map_clear(&e->values);
        LLVMPositionBuilderAtEnd(e->at, ways[way]);
        if (way == 0)
            emit_strips(e, strips);
        else
            emit_items(e);
        LLVMBuildBr(e->at, join);
    }
    LLVMPositionBuilderAtEnd(e->at, join);
}

/* The region as loops of which LLVM makes vectors. */
static void emit_loops(struct sp_wg_emitter *e)
{
    struct sp_wg_strips strips;
    if (e->known_size)
        sp_wg_narrow(e->plan, e->region, e->known_size, &e->narrowing);
    bool wanted = e->plan->form != SP_WG_SCALAR && !e->region->masked && !e->region->counts &&
                  !e->narrowing.num_decisions;
    if (!wanted ||
        !sp_wg_strips_init(&strips, e->plan, e->region, e->env->vector_bits / STRIP_BITS)) {
        emit_items(e);
        return;
    }
    emit_either(e, &strips);
    sp_wg_strips_finish(&strips);
}

static void begin_lanes_chunk(void *data, LLVMValueRef x)
{
    struct sp_wg_emitter *e = data;
    (void)x;
    for (uint32_t v = 0; v < e->plan->num_variables; v++)
        if (e->before[v])
            LLVMBuildStore(e->at, e->before[v], e->work[v]);
}

static void begin_lanes_item(void *data, LLVMValueRef x)
{
    struct sp_wg_emitter *e = data;
    sp_map_clear(&e->values);
    e->local_id[0] = x;
    e->index = LLVMBuildAdd(e->at, e->row, x, "");
}

static void copy_for_lanes(void *data, LLVMValueRef value)
{
    sp_wg_copy_instruction(data, value);
}

static LLVMValueRef element_for_lanes(void *data, uint32_t variable, LLVMTypeRef *type)
{
    const struct sp_wg_emitter *e = data;
    *type = sp_wg_context_type(e, e->plan->variables[variable].type);
    return sp_wg_context_element(e, variable);
}

static struct sp_wg_lanes_maker lanes_maker(struct sp_wg_emitter *e)
{
    return (struct sp_wg_lanes_maker){e,
                                      e->at,
                                      e->function,
                                      begin_lanes_chunk,
                                      begin_lanes_item,
                                      copy_for_lanes,
                                      sp_wg_operand_for,
                                      element_for_lanes};
}

/* The region as vectors made here; false where LLVM is to make them. */
static bool emit_lanes(struct sp_wg_emitter *e)
{
    struct sp_wg_lanes_maker maker = lanes_maker(e);
    if (!e->known_size || e->plan->form == SP_WG_SCALAR)
        return false;
    struct sp_wg_lanes *lanes =
        sp_wg_lanes_create(e->plan, e->region, e->agreed, e->known_size, e->env->vector_bits);
    if (!lanes)
        return false;
    struct nest nest;
    for (int d = 0; d < 3; d++) {
        e->narrowing.first[d] = 0;
        e->narrowing.end[d] = e->known_size[d];
    }
    open_rows(e, &nest);
    LLVMDeleteBasicBlock(nest.latch[0]);
    sp_wg_lanes_emit(lanes, &maker);
    sp_wg_lanes_destroy(lanes);
    LLVMBuildBr(e->at, nest.latch[1]);
    close_nest(e, &nest, 1);
    return true;
}

static void emit_form(struct sp_wg_emitter *e)
{
    if (!emit_lanes(e))
        emit_loops(e);
}

/* Whether all work-items go the ways that the region is emitted for. */
static LLVMValueRef ask_agreed(struct sp_wg_emitter *e, const struct sp_wg_agreed *agreed)
{
    LLVMValueRef yes = LLVMConstInt(LLVMInt1TypeInContext(e->context), 1, false);
    for (unsigned i = 0; i < agreed->num_questions; i++) {
        const struct sp_wg_agree_question *question = &agreed->questions[i];
        LLVMValueRef ends[2];
        for (int last = 0; last < 2; last++) {
            for (int d = 0; d < 3; d++)
                e->local_id[d] = last
                                     ? LLVMBuildSub(e->at, e->local_size[d], sp_wg_number(e, 1), "")
                                     : sp_wg_number(e, 0);
            sp_map_clear(&e->firsts);
            ends[last] = sp_wg_value_here(e, question->value);
        }
        LLVMValueRef bound = sp_wg_value_here(e, question->bound);
        yes = LLVMBuildAnd(e->at, yes,
                           sp_wg_agree_answer(e->at, question->predicate, ends[0], ends[1], bound),
                           "");
    }
    sp_map_clear(&e->firsts);
    return yes;
}

/* The region, or the region twice: for groups whose work-items agree, and as it is written. */
static void emit_ways(struct sp_wg_emitter *e)
{
    struct sp_wg_agreed agreed;
    if (e->plan->form == SP_WG_SCALAR || !sp_wg_agree(e->plan, e->region, e->known_size, &agreed)) {
        emit_form(e);
        return;
    }
    LLVMBasicBlockRef ways[2] = {new_block(e, "agreed"), new_block(e, "parted")},
                      join = new_block(e, "join");
    LLVMBuildCondBr(e->at, ask_agreed(e, &agreed), ways[0], ways[1]);
    LLVMPositionBuilderAtEnd(e->at, ways[0]);
    e->agreed = &agreed;
    emit_form(e);
    e->agreed = NULL;
    LLVMBuildBr(e->at, join);
    sp_map_clear(&e->values);
    LLVMPositionBuilderAtEnd(e->at, ways[1]);
    /* Which runs for few groups: as soon made as may be. */
    emit_narrowed(e);
    LLVMBuildBr(e->at, join);
    LLVMPositionBuilderAtEnd(e->at, join);
}

/* What the region's next turns load, asked for. */
static void emit_ahead(struct sp_wg_emitter *e)
{
    struct sp_wg_lanes_maker maker = lanes_maker(e);
    LLVMValueRef others = LLVMBuildMul(e->entry, e->local_size[1], e->local_size[2], "");
    struct sp_wg_ahead ahead = {&maker, e->entry, e->local_size[0],
                                LLVMBuildICmp(e->entry, LLVMIntEQ, others, sp_wg_number(e, 1), "")};
    e->row = e->local_id[1] = e->local_id[2] = sp_wg_number(e, 0);
    sp_wg_ahead_emit(e->plan, e->region, &ahead);
    sp_map_clear(&e->values);
}

static void emit_region(struct sp_wg_emitter *e, uint32_t index)
{
    const struct sp_wg_plan *plan = e->plan;
    e->before = sp_cc_allocate(plan->num_variables * sizeof(LLVMValueRef));
    e->region = &plan->regions[index];
    sp_map_clear(&e->values);
    LLVMPositionBuilderAtEnd(e->at, e->starts[index]);
    for (uint32_t v = 0; v < plan->num_variables; v++)
        if (plan->variables[v].kind == SP_WG_SHARED && sp_bits_has(&e->region->touched, v))
            e->before[v] = LLVMBuildLoad2(e->at, plan->variables[v].type, e->scalars[v], "");
    if (e->region->counts)
        LLVMBuildStore(e->at, LLVMConstInt(e->i32, END_NUMBER, false), e->least);
    LLVMBuildStore(e->at, LLVMConstInt(LLVMInt1TypeInContext(e->context), 1, false), e->all);
    if (plan->form != SP_WG_SCALAR)
        emit_ahead(e);
    emit_ways(e);
    for (uint32_t v = 0; v < plan->num_variables; v++)
        if (e->before[v] && sp_bits_has(&e->region->written, v))
            LLVMBuildStore(e->at, LLVMBuildLoad2(e->at, plan->variables[v].type, e->work[v], ""),
                           e->scalars[v]);
    go_on(e);
    free(e->before);
    e->before = NULL;
}

static LLVMValueRef add_function(const struct sp_wg_environment *env, const char *name)
{
    LLVMContextRef context = LLVMGetModuleContext(env->module);
    LLVMTypeRef i64 = LLVMInt64TypeInContext(context);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0);
    LLVMTypeRef parameters[] = {pointer, i64, i64, i64, pointer};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), parameters, 5, false);
    LLVMValueRef function = LLVMAddFunction(env->module, name, type);
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    static const struct {
        LLVMAttributeIndex index;
        const char *name;
        uint64_t value;
    } attributes[] = {
        {(LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind", 0},
        {1, "noalias", 0},
        {5, "noalias", 0},
        {5, "align", SP_CPU_SCRATCH_ALIGN},
    };
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        unsigned kind =
            LLVMGetEnumAttributeKindForName(attributes[i].name, strlen(attributes[i].name));
        LLVMAddAttributeAtIndex(function, attributes[i].index,
                                LLVMCreateEnumAttribute(context, kind, attributes[i].value));
    }
    /* A copy of a region's few hundred work-items is a handful of vectors, which may stay in
     * registers for the next region; behind a call of memcpy they do not. */
    static const char *const no_calls[] = {"no-builtin-memcpy", "no-builtin-memmove",
                                           "no-builtin-memset"};
    for (size_t i = 0; i < sizeof(no_calls) / sizeof(no_calls[0]); i++)
        LLVMAddAttributeAtIndex(
            function, at,
            LLVMCreateStringAttribute(context, no_calls[i], (unsigned)strlen(no_calls[i]), "", 0));
    char width[16];
    int length = snprintf(width, sizeof(width), "%u", env->vector_bits);
    LLVMAddAttributeAtIndex(
        function, at,
        LLVMCreateStringAttribute(context, "prefer-vector-width", 19, width, (unsigned)length));
    return function;
}

/* The function with its entry block, in which all that regions share is ready. */
static void begin_function(struct sp_wg_emitter *e, const struct sp_wg_plan *plan,
                           const struct sp_wg_environment *env, const char *name,
                           const uint64_t *local_size)
{
    LLVMContextRef context = LLVMGetModuleContext(env->module);
    *e = (struct sp_wg_emitter){
        .plan = plan,
        .env = env,
        .context = context,
        .entry = LLVMCreateBuilderInContext(context),
        .at = LLVMCreateBuilderInContext(context),
        .i8 = LLVMInt8TypeInContext(context),
        .i32 = LLVMInt32TypeInContext(context),
        .i64 = LLVMInt64TypeInContext(context),
        .pointer = LLVMPointerTypeInContext(context, 0),
        .function = add_function(env, name),
        .known_size = local_size,
    };
    if (local_size)
        memcpy(e->narrowing.end, local_size, sizeof(e->narrowing.end));
    e->launch = LLVMGetParam(e->function, 0);
    e->scratch = LLVMGetParam(e->function, 4);
    for (unsigned d = 0; d < 3; d++)
        e->group[d] = LLVMGetParam(e->function, 1 + d);
    LLVMBasicBlockRef entry = new_block(e, "entry");
    e->starts = sp_cc_allocate((plan->num_regions + 1) * sizeof(LLVMBasicBlockRef));
    e->starts[0] = new_block(e, "region");
    LLVMPositionBuilderAtEnd(e->entry, entry);
    LLVMPositionBuilderBefore(e->entry, LLVMBuildBr(e->entry, e->starts[0]));
    sp_wg_begin_values(e, local_size);
}

static LLVMValueRef finish_function(struct sp_wg_emitter *e)
{
    LLVMDisposeBuilder(e->entry);
    LLVMDisposeBuilder(e->at);
    sp_map_finish(&e->values);
    sp_map_finish(&e->firsts);
    sp_wg_finish_values(e);
    free(e->starts);
    return e->function;
}

/* Local memory: the kernel's own variables, and what each argument points to. */
static void mark_ends(struct sp_wg_emitter *e)
{
    sp_wg_mark_end(e->at, e->env->module, e->scratch);
    for (uint32_t i = 0; i < e->env->info->num_args; i++)
        if (e->env->info->args[i].kind == SP_ARG_LOCAL)
            sp_wg_mark_end(e->at, e->env->module, e->arguments[i]);
}

LLVMValueRef sp_wg_emit(const struct sp_wg_plan *plan, const struct sp_wg_environment *env,
                        const char *name, const uint64_t *local_size)
{
    struct sp_wg_emitter e;
    begin_function(&e, plan, env, name, local_size);
    for (uint32_t r = 1; r <= plan->num_regions; r++)
        e.starts[r] = new_block(&e, r == plan->num_regions ? "end" : "region");
    for (uint32_t r = 0; r < plan->num_regions; r++)
        emit_region(&e, r);
    LLVMPositionBuilderAtEnd(e.at, e.starts[plan->num_regions]);
    if (local_size)
        mark_ends(&e);
    LLVMBuildRetVoid(e.at);
    return finish_function(&e);
}

/* A branch on `condition` to calls of the two functions with the caller's own arguments. */
static void call_one(LLVMBuilderRef b, LLVMValueRef function, LLVMValueRef condition,
                     LLVMValueRef if_true, LLVMValueRef if_false)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    LLVMValueRef callees[2] = {if_true, if_false}, arguments[5];
    LLVMBasicBlockRef ways[2];
    for (unsigned i = 0; i < 5; i++)
        arguments[i] = LLVMGetParam(function, i);
    for (int i = 0; i < 2; i++)
        ways[i] = LLVMAppendBasicBlockInContext(context, function, "");
    LLVMBuildCondBr(b, condition, ways[0], ways[1]);
    for (int i = 0; i < 2; i++) {
        LLVMPositionBuilderAtEnd(b, ways[i]);
        LLVMBuildCall2(b, LLVMGlobalGetValueType(callees[i]), callees[i], arguments, 5, "");
        LLVMBuildRetVoid(b);
    }
}

LLVMValueRef sp_wg_emit_agreement(const struct sp_wg_plan *plan,
                                  const struct sp_wg_environment *env, const char *name,
                                  const uint64_t *local_size, LLVMValueRef agreed,
                                  LLVMValueRef other)
{
    struct sp_wg_emitter e;
    struct nest nest;
    LLVMBasicBlockRef asked = plan->analysis.graph.blocks[0];
    LLVMValueRef end = LLVMGetBasicBlockTerminator(asked), none = NULL;
    LLVMValueRef *uniform_before = sp_cc_allocate(plan->num_variables * sizeof(LLVMValueRef));
    begin_function(&e, plan, env, name, local_size);
    e.region = &plan->regions[0];
    LLVMPositionBuilderAtEnd(e.at, e.starts[0]);
    none = LLVMConstInt(e.i32, 0, false);
    /* How many work-items say yes: none, or all, is agreement. */
    LLVMBuildStore(e.at, none, e.least);
    open_nest(&e, &nest);
    LLVMBasicBlockRef body = new_block(&e, "");
    begin_item(&e, uniform_before, body);
    LLVMPositionBuilderAtEnd(e.at, body);
    for (LLVMValueRef value = LLVMGetFirstInstruction(asked); value != end;
         value = LLVMGetNextInstruction(value))
        sp_wg_copy_instruction(&e, value);
    LLVMValueRef yes = LLVMBuildZExt(e.at, sp_wg_operand(&e, LLVMGetCondition(end)), e.i32, "");
    yes = LLVMBuildAdd(e.at, LLVMBuildLoad2(e.at, e.i32, e.least, ""), yes, "");
    LLVMBuildStore(e.at, yes, e.least);
    LLVMBuildBr(e.at, e.latch);
    close_nest(&e, &nest, 0);
    LLVMValueRef count = LLVMBuildLoad2(e.at, e.i32, e.least, "");
    LLVMValueRef items = LLVMBuildMul(e.at, e.local_size[0], e.local_size[1], "");
    items = LLVMBuildTrunc(e.at, LLVMBuildMul(e.at, items, e.local_size[2], ""), e.i32, "");
    LLVMValueRef agree = LLVMBuildOr(e.at, LLVMBuildICmp(e.at, LLVMIntEQ, count, none, ""),
                                     LLVMBuildICmp(e.at, LLVMIntEQ, count, items, ""), "");
    call_one(e.at, e.function, agree, agreed, other);
    free(uniform_before);
    return finish_function(&e);
}

struct choice {
    LLVMBuilderRef b;
    LLVMTypeRef i64;
    LLVMValueRef function, yes;
};

static LLVMValueRef field(const struct choice *choice, size_t offset)
{
    LLVMTypeRef i8 = LLVMInt8TypeInContext(LLVMGetTypeContext(choice->i64));
    LLVMValueRef index = LLVMConstInt(choice->i64, offset, false);
    LLVMValueRef launch = LLVMGetParam(choice->function, 0);
    return LLVMBuildLoad2(choice->b, choice->i64,
                          LLVMBuildInBoundsGEP2(choice->b, i8, launch, &index, 1, ""), "");
}

static void require(struct choice *choice, LLVMIntPredicate predicate, LLVMValueRef value,
                    LLVMValueRef limit)
{
    choice->yes = LLVMBuildAnd(choice->b, choice->yes,
                               LLVMBuildICmp(choice->b, predicate, value, limit, ""), "");
}

LLVMValueRef sp_wg_emit_choice(const struct sp_wg_environment *env, const char *name,
                               const uint64_t *local_size, LLVMValueRef full, LLVMValueRef any)
{
    LLVMContextRef context = LLVMGetModuleContext(env->module);
    struct choice c = {
        .b = LLVMCreateBuilderInContext(context),
        .i64 = LLVMInt64TypeInContext(context),
        .function = add_function(env, name),
        .yes = LLVMConstInt(LLVMInt1TypeInContext(context), 1, false),
    };
    LLVMPositionBuilderAtEnd(c.b, LLVMAppendBasicBlockInContext(context, c.function, "entry"));
    for (unsigned d = 0; d < 3; d++) {
        require(&c, LLVMIntULE, field(&c, offsetof(struct sp_cpu_launch, num_groups[d])),
                LLVMConstInt(c.i64, sp_wg_modest_groups(local_size, d), false));
        require(&c, LLVMIntULT, field(&c, offsetof(struct sp_cpu_launch, global_offset[d])),
                LLVMConstInt(c.i64, SP_WG_MODEST_OFFSET, false));
        if (!local_size) {
            LLVMValueRef size = field(&c, offsetof(struct sp_cpu_launch, local_size[d]));
            require(&c, LLVMIntULE, size, LLVMConstInt(c.i64, SP_WG_MAX_LOCAL_SIZE, false));
            if (d == 0)
                require(&c, LLVMIntUGE, size, LLVMConstInt(c.i64, LEAST_VECTOR_SIZE, false));
            continue;
        }
        LLVMValueRef size = LLVMConstInt(c.i64, local_size[d], false);
        LLVMValueRef end = LLVMBuildMul(c.b, LLVMGetParam(c.function, 1 + d), size, "");
        end = LLVMBuildAdd(c.b, end, size, "");
        require(&c, LLVMIntULE, end, field(&c, offsetof(struct sp_cpu_launch, global_size[d])));
    }
    call_one(c.b, c.function, c.yes, full, any);
    LLVMDisposeBuilder(c.b);
    return c.function;
}
