/* See emitter.h. Everything that stays the same while the kernel runs is in the entry block: sizes
 * and arguments as loads that never change, the start of each context array, an alloca for each
 * variable. Called by emit.c. */
#include "compiler/cc/workgroup/emitter.h"

#include "compiler/cc/workgroup/metadata.h"
#include "compiler/cpu_abi.h"

#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

/* With known sizes, context arrays up to so many bytes in all lie on the stack: LLVM then sees that
 * nobody else reads them, and keeps most in registers. */
#define STACK_LIMIT 65536u

LLVMValueRef sp_wg_number(const struct sp_wg_emitter *e, uint64_t value)
{
    return LLVMConstInt(e->i64, value, false);
}

LLVMValueRef sp_wg_byte_address(const struct sp_wg_emitter *e, LLVMBuilderRef builder,
                                LLVMValueRef base, LLVMValueRef offset)
{
    return LLVMBuildInBoundsGEP2(builder, e->i8, base, &offset, 1, "");
}

/* A load of what stays the same while the kernel runs. */
static LLVMValueRef load_fixed(const struct sp_wg_emitter *e, LLVMTypeRef type, LLVMValueRef base,
                               uint64_t offset, unsigned alignment)
{
    LLVMValueRef load = LLVMBuildLoad2(
        e->entry, type, sp_wg_byte_address(e, e->entry, base, sp_wg_number(e, offset)), "");
    LLVMSetAlignment(load, alignment);
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(e->context, "invariant.load", 14),
                    LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, NULL, 0)));
    return load;
}

LLVMValueRef sp_wg_minimum(LLVMBuilderRef builder, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(builder, LLVMBuildICmp(builder, LLVMIntULT, a, b, ""), a, b, "");
}

static LLVMValueRef round_up(const struct sp_wg_emitter *e, LLVMValueRef value, uint64_t to)
{
    return LLVMBuildAnd(e->entry, LLVMBuildAdd(e->entry, value, sp_wg_number(e, to - 1), ""),
                        sp_wg_number(e, ~(to - 1)), "");
}

#define LAUNCH_FIELD(e, type, member)                                                              \
    load_fixed(e, type, (e)->launch, offsetof(struct sp_cpu_launch, member), 8)

/* The groups in a dimension that SP_WG_MODEST_ITEMS allow: a power of two. `known` is NULL for any
 * local size. */
uint64_t sp_wg_modest_groups(const uint64_t *known, unsigned d)
{
    uint64_t groups = SP_WG_MODEST_ITEMS / SP_WG_MAX_LOCAL_SIZE;
    while (known && groups * 2 * known[d] <= SP_WG_MODEST_ITEMS)
        groups *= 2;
    return groups;
}

/* Tells LLVM that a load gives at least 1 and at most SP_WG_MAX_LOCAL_SIZE. */
static LLVMValueRef bound_size(const struct sp_wg_emitter *e, LLVMValueRef load)
{
    LLVMMetadataRef bounds[2] = {LLVMValueAsMetadata(sp_wg_number(e, 1)),
                                 LLVMValueAsMetadata(sp_wg_number(e, SP_WG_MAX_LOCAL_SIZE + 1))};
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(e->context, "range", 5),
                    LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, bounds, 2)));
    return load;
}

/* Says the same of values that are below `limit` anyway: LLVM reads it off the operation. */
static LLVMValueRef bound_value(const struct sp_wg_emitter *e, LLVMValueRef value, uint64_t limit)
{
    return LLVMBuildAnd(e->entry, value, sp_wg_number(e, limit - 1), "");
}

static void load_sizes(struct sp_wg_emitter *e, const uint64_t *known)
{
    bool modest = e->plan->form != SP_WG_SCALAR;
    LLVMValueRef items = sp_wg_number(e, 1);
    e->work_dim = LAUNCH_FIELD(e, e->i32, work_dim);
    e->zero = LLVMBuildZExt(e->entry, LAUNCH_FIELD(e, e->i32, reserved), e->i64, "");
    e->local_bytes = LAUNCH_FIELD(e, e->i64, local_bytes);
    for (int d = 0; d < 3; d++) {
        e->global_offset[d] = LAUNCH_FIELD(e, e->i64, global_offset[d]);
        e->global_size[d] = LAUNCH_FIELD(e, e->i64, global_size[d]);
        e->num_groups[d] = LAUNCH_FIELD(e, e->i64, num_groups[d]);
        e->enqueued_size[d] =
            known ? sp_wg_number(e, known[d]) : LAUNCH_FIELD(e, e->i64, local_size[d]);
        if (modest && !known)
            bound_size(e, e->enqueued_size[d]);
        if (modest) {
            e->group[d] = bound_value(e, e->group[d], sp_wg_modest_groups(known, (unsigned)d));
            e->global_offset[d] = bound_value(e, e->global_offset[d], SP_WG_MODEST_OFFSET);
        }
        LLVMValueRef done = LLVMBuildMul(e->entry, e->group[d], e->enqueued_size[d], "");
        LLVMValueRef left = LLVMBuildSub(e->entry, e->global_size[d], done, "");
        e->local_size[d] =
            known ? e->enqueued_size[d] : sp_wg_minimum(e->entry, e->enqueued_size[d], left);
        /* The largest group is no larger than the NDRange. */
        LLVMValueRef largest =
            known ? e->enqueued_size[d]
                  : sp_wg_minimum(e->entry, e->enqueued_size[d], e->global_size[d]);
        items = LLVMBuildMul(e->entry, items, largest, "");
    }
    e->capacity = round_up(e, items, SP_CPU_CONTEXT_ROUND);
    e->context_base = sp_wg_byte_address(e, e->entry, e->scratch, e->local_bytes);
    e->context_bytes =
        LLVMBuildMul(e->entry, e->capacity, sp_wg_number(e, e->plan->item_bytes), "");
}

static void load_arguments(struct sp_wg_emitter *e)
{
    LLVMValueRef kernel = e->plan->analysis.graph.function;
    LLVMValueRef block = LAUNCH_FIELD(e, e->pointer, args);
    unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5);
    e->arguments = sp_cc_allocate(LLVMCountParams(kernel) * sizeof(LLVMValueRef));
    for (unsigned i = 0; i < LLVMCountParams(kernel); i++) {
        const struct sp_arg_info *arg = &e->env->info->args[i];
        LLVMTypeRef type = LLVMTypeOf(LLVMGetParam(kernel, i));
        if (arg->kind == SP_ARG_LOCAL) {
            LLVMValueRef offset = load_fixed(e, e->i64, block, arg->offset, 8);
            e->arguments[i] = LLVMBuildAddrSpaceCast(
                e->entry, sp_wg_byte_address(e, e->entry, e->scratch, offset), type, "");
        } else if (LLVMGetEnumAttributeAtIndex(kernel, i + 1, byval)) {
            e->arguments[i] = sp_wg_byte_address(e, e->entry, block, sp_wg_number(e, arg->offset));
        } else {
            e->arguments[i] = load_fixed(e, type, block, arg->offset, arg->align);
        }
    }
}

/* The type in which a variable lies in the context: a single bit takes a byte, as vectors of bits
 * in memory do not vectorise. */
LLVMTypeRef sp_wg_context_type(const struct sp_wg_emitter *e, LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 1 ? e->i8
                                                                                          : type;
}

static LLVMValueRef make_array(struct sp_wg_emitter *e, LLVMTypeRef type, uint64_t item_offset,
                               uint64_t stack_items)
{
    if (stack_items) {
        LLVMValueRef array = LLVMBuildAlloca(e->entry, LLVMArrayType2(type, stack_items), "");
        unsigned alignment = LLVMABIAlignmentOfType(LLVMGetModuleDataLayout(e->env->module), type);
        LLVMSetAlignment(array,
                         alignment > SP_CPU_CONTEXT_ROUND ? alignment : SP_CPU_CONTEXT_ROUND);
        return array;
    }
    LLVMValueRef offset = LLVMBuildMul(e->entry, e->capacity, sp_wg_number(e, item_offset), "");
    return sp_wg_byte_address(e, e->entry, e->context_base, offset);
}

static void make_variables(struct sp_wg_emitter *e, const uint64_t *known)
{
    const struct sp_wg_plan *plan = e->plan;
    uint32_t n = plan->num_variables;
    uint64_t stack_items = 0;
    if (known) {
        uint64_t items = known[0] * known[1] * known[2];
        if (items <= STACK_LIMIT && items * plan->item_bytes <= STACK_LIMIT)
            stack_items = sp_ir_align_up(items, SP_CPU_CONTEXT_ROUND);
    }
    e->scalars = sp_cc_allocate(n * sizeof(LLVMValueRef));
    e->work = sp_cc_allocate(n * sizeof(LLVMValueRef));
    e->arrays = sp_cc_allocate(n * sizeof(LLVMValueRef));
    e->next = LLVMBuildAlloca(e->entry, e->i32, "next");
    e->least = LLVMBuildAlloca(e->entry, e->i32, "least");
    e->all = LLVMBuildAlloca(e->entry, LLVMInt1TypeInContext(e->context), "all");
    for (uint32_t v = 0; v < n; v++) {
        const struct sp_wg_variable *variable = &plan->variables[v];
        if (variable->kind != SP_WG_ARRAY)
            e->scalars[v] = LLVMBuildAlloca(e->entry, variable->type, "");
        if (variable->kind == SP_WG_SHARED)
            e->work[v] = LLVMBuildAlloca(e->entry, variable->type, "");
        if (variable->kind == SP_WG_CONTEXT)
            e->arrays[v] = make_array(e, sp_wg_context_type(e, variable->type),
                                      variable->item_offset, stack_items);
        /* An address that goes anywhere must lie where __sp_is_private finds it: in the context. */
        if (variable->kind == SP_WG_ARRAY)
            e->arrays[v] = make_array(e, variable->type, variable->item_offset,
                                      variable->unit ? stack_items : 0);
    }
    if (plan->counters)
        e->counters = make_array(e, e->i32, plan->counter_offset, stack_items);
}

LLVMValueRef sp_wg_place_of_global(LLVMValueRef global, void *data)
{
    struct sp_wg_emitter *e = data;
    const struct sp_cc_place *place = sp_cc_layout_find(e->env->locals, global);
    LLVMValueRef base = e->scratch;
    if (!place) {
        place = sp_cc_layout_find(e->env->globals, global);
        if (!place)
            return NULL;
        base = LAUNCH_FIELD(e, e->pointer, globals);
    }
    LLVMValueRef address = sp_wg_byte_address(e, e->entry, base, sp_wg_number(e, place->offset));
    return LLVMBuildAddrSpaceCast(e->entry, address, LLVMTypeOf(global), "");
}

LLVMValueRef sp_wg_operand(struct sp_wg_emitter *e, LLVMValueRef value)
{
    LLVMValueRef copy = sp_map_get(&e->values, value);
    if (copy)
        return copy;
    if (LLVMIsAArgument(value)) {
        LLVMValueRef kernel = e->plan->analysis.graph.function;
        for (unsigned i = 0; i < LLVMCountParams(kernel); i++)
            if (LLVMGetParam(kernel, i) == value)
                return e->arguments[i];
    }
    if (LLVMIsAAllocaInst(value)) {
        uint32_t index = sp_wg_variable_index(e->plan, value);
        return e->work[index] ? e->work[index] : e->scalars[index];
    }
    if (LLVMIsConstant(value) && !LLVMIsAFunction(value))
        return sp_ir_rebuild_constant(e->at, value, sp_wg_place_of_global, e);
    return value;
}

LLVMValueRef sp_wg_context_element(const struct sp_wg_emitter *e, uint32_t variable)
{
    LLVMTypeRef type = sp_wg_context_type(e, e->plan->variables[variable].type);
    LLVMValueRef index = e->index;
    return LLVMBuildInBoundsGEP2(e->at, type, e->arrays[variable], &index, 1, "");
}

void sp_wg_load_variable(struct sp_wg_emitter *e, uint32_t v)
{
    LLVMTypeRef type = e->plan->variables[v].type, held = sp_wg_context_type(e, type);
    LLVMValueRef value = LLVMBuildLoad2(e->at, held, sp_wg_context_element(e, v), "");
    sp_wg_mark_access(e->context, value, e->env->access_group);
    if (held != type)
        value = LLVMBuildTrunc(e->at, value, type, "");
    LLVMBuildStore(e->at, value, e->scalars[v]);
}

void sp_wg_store_variable(struct sp_wg_emitter *e, uint32_t v)
{
    LLVMTypeRef type = e->plan->variables[v].type, held = sp_wg_context_type(e, type);
    LLVMValueRef value = LLVMBuildLoad2(e->at, type, e->scalars[v], "");
    if (held != type)
        value = LLVMBuildZExt(e->at, value, held, "");
    sp_wg_mark_access(e->context, LLVMBuildStore(e->at, value, sp_wg_context_element(e, v)),
                      e->env->access_group);
}

void sp_wg_begin_values(struct sp_wg_emitter *e, const uint64_t *known)
{
    load_sizes(e, known);
    load_arguments(e);
    make_variables(e, known);
}

void sp_wg_finish_values(struct sp_wg_emitter *e)
{
    free(e->arguments);
    free(e->scalars);
    free(e->work);
    free(e->arrays);
}
