/* See effects.h. Since everything is inlined, the uses of a parameter are all that can happen to
 * it: the pointer is followed through address arithmetic, casts, selects and PHIs to the accesses.
 * What is not understood (the pointer stored, made a number, given away) is SP_EFFECT_UNKNOWN. An
 * atomic access reads and writes. */
#include "compiler/cc/effects.h"

#include "compiler/cc/replaceable.h"
#include "compiler/cc/text.h"
#include "compiler/kernel_info.h"

#include <stdlib.h>

/* Values still to be looked at, each once. */
struct worklist {
    LLVMValueRef *values; /* owned */
    size_t count;
    struct sp_map seen;
};

static void push(struct worklist *list, LLVMValueRef value)
{
    if (sp_map_get(&list->seen, value))
        return;
    sp_map_set(&list->seen, value, value);
    list->values = sp_cc_reallocate(list->values, (list->count + 1) * sizeof(LLVMValueRef));
    list->values[list->count++] = value;
}

static void worklist_finish(struct worklist *list)
{
    free(list->values);
    sp_map_finish(&list->seen);
}

/* A call that reads behind its second argument and writes behind its first. */
static bool is_copy(LLVMValueRef call)
{
    return sp_ir_is_intrinsic(call, "llvm.memcpy.") || sp_ir_is_intrinsic(call, "llvm.memmove.") ||
           sp_ir_calls(call, SP_GROUP_COPY_NAME);
}

static uint32_t effect_of_call(LLVMValueRef call, LLVMValueRef pointer, struct worklist *list)
{
    if (sp_ir_calls(call, SP_SCOPED_NAME)) {
        push(list, call);
        return 0;
    }
    if (sp_ir_is_intrinsic(call, "llvm.lifetime.") || sp_ir_is_intrinsic(call, "llvm.assume") ||
        sp_ir_is_intrinsic(call, "llvm.prefetch") || sp_ir_calls(call, "__sp_is_local") ||
        sp_ir_calls(call, "__sp_is_private"))
        return 0;
    if (sp_ir_is_intrinsic(call, "llvm.memset."))
        return SP_EFFECT_WRITE;
    if (is_copy(call))
        return (LLVMGetOperand(call, 0) == pointer ? SP_EFFECT_WRITE : 0u) |
               (LLVMGetOperand(call, 1) == pointer ? SP_EFFECT_READ : 0u);
    return SP_EFFECT_READ | SP_EFFECT_WRITE | SP_EFFECT_UNKNOWN;
}

static uint32_t effect_of_use(LLVMValueRef user, LLVMValueRef pointer, struct worklist *list)
{
    const uint32_t all = SP_EFFECT_READ | SP_EFFECT_WRITE | SP_EFFECT_UNKNOWN;
    switch (LLVMGetInstructionOpcode(user)) {
    case LLVMLoad:
        return SP_EFFECT_READ;
    case LLVMStore:
        return LLVMGetOperand(user, 0) == pointer ? all : SP_EFFECT_WRITE;
    case LLVMAtomicRMW:
        return LLVMGetOperand(user, 1) == pointer ? all : SP_EFFECT_READ | SP_EFFECT_WRITE;
    case LLVMAtomicCmpXchg:
        return LLVMGetOperand(user, 0) != pointer ? all : SP_EFFECT_READ | SP_EFFECT_WRITE;
    case LLVMGetElementPtr:
    case LLVMAddrSpaceCast:
    case LLVMBitCast:
    case LLVMPHI:
    case LLVMSelect:
    case LLVMFreeze:
        push(list, user);
        return 0;
    case LLVMICmp:
        return 0;
    case LLVMCall:
        return effect_of_call(user, pointer, list);
    default:
        return all;
    }
}

uint32_t sp_cc_effect_of(LLVMValueRef parameter)
{
    struct worklist list = {0};
    uint32_t effect = 0;
    push(&list, parameter);
    while (list.count) {
        LLVMValueRef pointer = list.values[--list.count];
        for (LLVMUseRef use = LLVMGetFirstUse(pointer); use; use = LLVMGetNextUse(use))
            effect |= effect_of_use(LLVMGetUser(use), pointer, &list);
    }
    worklist_finish(&list);
    return effect;
}

/* Walks from an accessed address to where it comes from. */
static bool is_followed(LLVMValueRef address)
{
    struct worklist list = {0};
    bool followed = false;
    push(&list, address);
    while (list.count && !followed) {
        LLVMValueRef value = list.values[--list.count];
        if (LLVMIsAArgument(value) || LLVMIsAGlobalValue(value) || LLVMIsAAllocaInst(value) ||
            LLVMIsAConstantPointerNull(value) || LLVMIsUndef(value))
            continue;
        if (LLVMIsConstant(value) && !LLVMIsAConstantExpr(value))
            followed = true;
        else if (LLVMIsAPHINode(value))
            for (unsigned i = 0; i < LLVMCountIncoming(value); i++)
                push(&list, LLVMGetIncomingValue(value, i));
        else if (LLVMIsASelectInst(value)) {
            push(&list, LLVMGetOperand(value, 1));
            push(&list, LLVMGetOperand(value, 2));
        } else if (LLVMIsAGetElementPtrInst(value) || LLVMIsAAddrSpaceCastInst(value) ||
                   LLVMIsABitCastInst(value) || LLVMIsAFreezeInst(value) ||
                   (LLVMIsAConstantExpr(value) && LLVMGetConstOpcode(value) != LLVMIntToPtr))
            push(&list, LLVMGetOperand(value, 0));
        else if (sp_ir_calls(value, SP_SCOPED_NAME))
            push(&list, LLVMGetOperand(value, 0));
        else if (!sp_ir_calls(value, SP_GROUP_SCRATCH_NAME))
            followed = true;
    }
    worklist_finish(&list);
    return followed;
}

/* The effect of one instruction where the address that it accesses is followed. */
static uint32_t followed_effect_of(LLVMValueRef value)
{
    uint32_t effect = 0;
    if (LLVMIsALoadInst(value)) {
        effect = SP_EFFECT_READ;
    } else if (LLVMIsAAtomicRMWInst(value) || LLVMIsAAtomicCmpXchgInst(value)) {
        effect = SP_EFFECT_READ | SP_EFFECT_WRITE;
    } else if (LLVMIsAStoreInst(value)) {
        return is_followed(LLVMGetOperand(value, 1)) ? SP_EFFECT_WRITE : 0u;
    } else if (sp_ir_is_intrinsic(value, "llvm.memset.")) {
        effect = SP_EFFECT_WRITE;
    } else if (is_copy(value)) {
        return (is_followed(LLVMGetOperand(value, 0)) ? SP_EFFECT_WRITE : 0u) |
               (is_followed(LLVMGetOperand(value, 1)) ? SP_EFFECT_READ : 0u);
    }
    return effect && is_followed(LLVMGetOperand(value, 0)) ? effect : 0u;
}

uint32_t sp_cc_followed_effect(LLVMValueRef kernel)
{
    const uint32_t all = SP_EFFECT_READ | SP_EFFECT_WRITE;
    uint32_t effect = 0;
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(kernel); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef value;
        for (value = LLVMGetFirstInstruction(block); value && effect != all;
             value = LLVMGetNextInstruction(value))
            effect |= followed_effect_of(value);
    }
    return effect;
}
