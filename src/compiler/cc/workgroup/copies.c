/* See emitter.h. An instruction of the kernel becomes one for the current work-item: calls that ask
 * for ids become these, accesses are marked as independent, and what grows evenly within a strip is
 * its first work-item's plus a multiple of the place. Called by emit.c. */
#include "compiler/cc/workgroup/emitter.h"

#include "compiler/cc/print.h"
#include "compiler/cc/workgroup/atomics.h"
#include "compiler/cc/workgroup/interleave.h"
#include "compiler/cc/workgroup/metadata.h"
#include "compiler/cc/workgroup/prepare.h"

#include <stdlib.h>
#include <string.h>

/* True where name is prefix and a dimension, which goes to *d. */
static bool names_dimension(const char *name, const char *prefix, int *d)
{
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) || name[length] < '0' || name[length] > '2' ||
        name[length + 1])
        return false;
    *d = name[length] - '0';
    return true;
}

/* True where an address lies in [base, base + bytes). */
static LLVMValueRef is_inside(struct sp_wg_emitter *e, LLVMValueRef pointer, LLVMValueRef base,
                              LLVMValueRef bytes)
{
    LLVMValueRef distance = LLVMBuildSub(e->at, LLVMBuildPtrToInt(e->at, pointer, e->i64, ""),
                                         LLVMBuildPtrToInt(e->at, base, e->i64, ""), "");
    return LLVMBuildZExt(e->at, LLVMBuildICmp(e->at, LLVMIntULT, distance, bytes, ""), e->i32, "");
}

/* What a work-item may go by: its own answer, and that of those before it. The last one's is what
 * a variable that all share is left with. */
static LLVMValueRef add_vote(struct sp_wg_emitter *e, LLVMValueRef yes)
{
    if (e->plan->form == SP_WG_SCALAR || e->region->masked)
        return yes;
    yes = LLVMBuildAnd(e->at, LLVMBuildLoad2(e->at, LLVMTypeOf(yes), e->all, ""), yes, "");
    LLVMBuildStore(e->at, yes, e->all);
    return yes;
}

/* The value of a call of docs/compiler-contract.md's table, or NULL for another call. */
static LLVMValueRef replace_call(struct sp_wg_emitter *e, LLVMValueRef call)
{
    const char *name = sp_ir_callee(call);
    const struct {
        const char *prefix;
        LLVMValueRef *values;
    } tables[] = {
        {"__sp_local_id_", e->local_id},       {"__sp_group_id_", e->group},
        {"__sp_local_size_", e->local_size},   {"__sp_enqueued_local_size_", e->enqueued_size},
        {"__sp_global_size_", e->global_size}, {"__sp_global_offset_", e->global_offset},
        {"__sp_num_groups_", e->num_groups},
    };
    int d;
    if (!name)
        return NULL;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if (names_dimension(name, tables[i].prefix, &d))
            return tables[i].values[d];
    if (!strcmp(name, SP_ALL_NAME))
        return add_vote(e, sp_wg_operand(e, LLVMGetOperand(call, 0)));
    if (!strcmp(name, "__sp_work_dim"))
        return e->work_dim;
    if (!strcmp(name, SP_GROUP_SCRATCH_NAME)) {
        LLVMValueRef place = sp_wg_place_of_global(LLVMGetCalledValue(call), e);
        return place ? LLVMBuildAddrSpaceCast(e->entry, place, LLVMTypeOf(call), "") : NULL;
    }
    if (!strcmp(name, "__sp_is_local"))
        return is_inside(e, sp_wg_operand(e, LLVMGetOperand(call, 0)), e->scratch, e->local_bytes);
    if (!strcmp(name, "__sp_is_private"))
        return is_inside(e, sp_wg_operand(e, LLVMGetOperand(call, 0)), e->context_base,
                         e->context_bytes);
    if (!strcmp(name, "printf")) {
        unsigned count = LLVMGetNumArgOperands(call);
        LLVMValueRef *operands = sp_cc_allocate(count * sizeof(LLVMValueRef));
        for (unsigned i = 0; i < count; i++)
            operands[i] = sp_wg_operand(e, LLVMGetOperand(call, i));
        LLVMValueRef result =
            sp_cc_emit_print(e->env->module, e->at, e->entry, e->launch, operands, count);
        free(operands);
        return result;
    }
    return NULL;
}

LLVMValueRef sp_wg_operand_for(void *data, LLVMValueRef value)
{
    return sp_wg_operand(data, value);
}

/* The unit of the interleaved array that an address lies in; 0 for other addresses. */
static uint32_t unit_of(const struct sp_wg_emitter *e, LLVMValueRef address)
{
    LLVMValueRef root = sp_wg_address_root(address);
    return root ? e->plan->variables[sp_wg_variable_index(e->plan, root)].unit : 0;
}

/* An address in an interleaved array: an element further is a round of work-items further. */
static LLVMValueRef scaled_gep(struct sp_wg_emitter *e, LLVMValueRef gep)
{
    LLVMTargetDataRef sizes = LLVMGetModuleDataLayout(e->env->module);
    LLVMValueRef bytes = sp_wg_gep_bytes(e->at, gep, sizes, sp_wg_operand_for, e);
    bytes = LLVMBuildMul(e->at, bytes, e->capacity, "");
    return LLVMBuildGEP2(e->at, e->i8, sp_wg_operand(e, LLVMGetOperand(gep, 0)), &bytes, 1, "");
}

LLVMValueRef sp_wg_value_here(struct sp_wg_emitter *e, LLVMValueRef value)
{
    LLVMValueRef first = sp_map_get(&e->firsts, value), operands[3] = {NULL};
    if (first || !LLVMIsAInstruction(value))
        return first ? first : sp_wg_operand(e, value);
    if (LLVMIsACallInst(value)) {
        first = replace_call(e, value);
    } else if (LLVMIsALoadInst(value)) {
        first = sp_wg_is_kept(e->plan, e->region, value)
                    ? e->before[sp_wg_variable_index(e->plan, LLVMGetOperand(value, 0))]
                    : sp_wg_value_here(e, sp_wg_only_value(value));
    } else {
        for (int i = 0; i < LLVMGetNumOperands(value); i++)
            operands[i] = sp_wg_value_here(e, LLVMGetOperand(value, (unsigned)i));
        first = sp_wg_recompute(e->at, value, operands);
    }
    sp_map_set(&e->firsts, value, first);
    return first;
}

/* What a value that grows evenly within strips is in the current work-item; NULL for others. */
static LLVMValueRef value_in_strip(struct sp_wg_emitter *e, LLVMValueRef value)
{
    const struct sp_wg_slope *slope = e->strips ? sp_wg_slope(e->strips, value) : NULL;
    LLVMValueRef first = slope ? sp_map_get(&e->firsts, value) : NULL;
    if (!slope || !slope->slope)
        return first;
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef more = LLVMBuildIntCast2(e->at, e->place, type, false, "");
    more = LLVMBuildMul(e->at, more, LLVMConstInt(type, slope->slope, false), "");
    LLVMValueRef sum = LLVMBuildAdd(e->at, first, more, "");
    if (slope->slope == 1 && slope->aligned && LLVMIsAInstruction(sum))
        LLVMSetNUW(sum, true);
    return sum;
}

void sp_wg_copy_instruction(struct sp_wg_emitter *e, LLVMValueRef value)
{
    if (LLVMIsAAllocaInst(value) || sp_ir_calls(value, SP_BARRIER_NAME))
        return;
    LLVMValueRef copy = value_in_strip(e, value);
    if (LLVMIsAPHINode(value)) /* of a function that keeps its values; emit.c fills it in */
        copy = LLVMBuildPhi(e->at, LLVMTypeOf(value), "");
    if (!copy && LLVMIsACallInst(value))
        copy = replace_call(e, value);
    if (LLVMIsAGetElementPtrInst(value) && unit_of(e, value))
        copy = scaled_gep(e, value);
    if (sp_wg_is_local_atomic(value))
        copy = sp_wg_build_local_atomic(e->at, value, sp_wg_operand_for, e);
    if (!copy) {
        copy = LLVMInstructionClone(value);
        for (int i = 0; i < LLVMGetNumOperands(value); i++)
            LLVMSetOperand(copy, (unsigned)i, sp_wg_operand(e, LLVMGetOperand(value, (unsigned)i)));
        LLVMInsertIntoBuilder(e->at, copy);
        if (LLVMIsALoadInst(copy) || LLVMIsAStoreInst(copy) || LLVMIsACallInst(copy))
            sp_wg_mark_access(e->context, copy, e->env->access_group);
        sp_wg_mark_space(e->context, copy);
        bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
        uint32_t unit = load || store ? unit_of(e, LLVMGetOperand(value, load ? 0 : 1)) : 0;
        if (unit)
            LLVMSetAlignment(copy, unit);
    }
    sp_map_set(&e->values, value, copy);
}
