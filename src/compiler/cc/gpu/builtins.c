/* See builtins.h. Ids and sizes are 32 bits wide in the hardware and in the launch record, but for
 * the NDRange's; they are computed in 32 bits and widened last, so that LLVM sees that it may go on
 * in 32 bits. */
#include "compiler/cc/gpu/builtins.h"

#include "compiler/cc/gpu/places.h"
#include "compiler/cc/gpu/spaces.h"
#include "compiler/cc/print.h"
#include "compiler/cc/text.h"
#include "compiler/gpu_abi.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRINT_NAME "__sp_print"

struct emitter {
    LLVMModuleRef module;
    LLVMContextRef context;
    const struct sp_gpu_entry *entry;
    LLVMBuilderRef at;
    LLVMTypeRef i1, i32, i64, pointer;
};

static void emitter_init(struct emitter *e, LLVMModuleRef module, const struct sp_gpu_entry *entry)
{
    *e =
        (struct emitter){.module = module, .context = LLVMGetModuleContext(module), .entry = entry};
    e->at = LLVMCreateBuilderInContext(e->context);
    e->i1 = LLVMInt1TypeInContext(e->context);
    e->i32 = LLVMInt32TypeInContext(e->context);
    e->i64 = LLVMInt64TypeInContext(e->context);
    e->pointer = LLVMPointerTypeInContext(e->context, SP_GPU_SPACE_GENERIC);
}

static LLVMValueRef call_intrinsic(struct emitter *e, const char *name, LLVMValueRef *arguments,
                                   unsigned count)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, NULL, 0);
    return LLVMBuildCall2(e->at, LLVMGlobalGetValueType(function), function, arguments, count, "");
}

/* A special register of one dimension: "tid" or "ctaid". */
static LLVMValueRef special(struct emitter *e, const char *name, int d)
{
    char whole[48];
    snprintf(whole, sizeof(whole), "llvm.nvvm.read.ptx.sreg.%s.%c", name, "xyz"[d]);
    return call_intrinsic(e, whole, NULL, 0);
}

/* The launch record never changes. */
static LLVMValueRef load(struct emitter *e, LLVMTypeRef type, uint64_t offset)
{
    LLVMValueRef value =
        LLVMBuildLoad2(e->at, type, sp_gpu_launch_member(e->entry, e->at, offset), "");
    unsigned kind = LLVMGetMDKindIDInContext(e->context, "invariant.load", 14);
    LLVMSetMetadata(value, kind,
                    LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, NULL, 0)));
    return value;
}

#define MEMBER(e, type, name, d)                                                                   \
    load(e, type,                                                                                  \
         offsetof(struct sp_gpu_launch, name) +                                                    \
             (size_t)(d) * sizeof(((struct sp_gpu_launch *)0)->name[0]))

static LLVMValueRef widened(struct emitter *e, LLVMValueRef value)
{
    return LLVMBuildZExt(e->at, value, e->i64, "");
}

static LLVMValueRef group_id(struct emitter *e, int d)
{
    return LLVMBuildNUWAdd(e->at, special(e, "ctaid", d), MEMBER(e, e->i32, group_first, d), "");
}

static LLVMValueRef full_size(struct emitter *e, int d)
{
    if (e->entry->local_size[0])
        return LLVMConstInt(e->i32, e->entry->local_size[d], false);
    return MEMBER(e, e->i32, local_size, d);
}

static LLVMValueRef is_non_uniform(struct emitter *e)
{
    LLVMValueRef flags = load(e, e->i32, offsetof(struct sp_gpu_launch, flags));
    LLVMValueRef bit =
        LLVMBuildAnd(e->at, flags, LLVMConstInt(e->i32, SP_GPU_NON_UNIFORM, false), "");
    return LLVMBuildICmp(e->at, LLVMIntNE, bit, LLVMConstInt(e->i32, 0, false), "");
}

static LLVMValueRef local_size(struct emitter *e, int d)
{
    LLVMValueRef full = full_size(e, d);
    if (e->entry->is_uniform)
        return full;
    LLVMValueRef before = LLVMBuildMul(e->at, widened(e, group_id(e, d)), widened(e, full), "");
    LLVMValueRef left = LLVMBuildSub(e->at, MEMBER(e, e->i64, global_size, d), before, "");
    LLVMValueRef fits = LLVMBuildICmp(e->at, LLVMIntULT, left, widened(e, full), "");
    LLVMValueRef is_edge = LLVMBuildAnd(e->at, is_non_uniform(e), fits, "");
    return LLVMBuildSelect(e->at, is_edge, LLVMBuildTrunc(e->at, left, e->i32, ""), full, "");
}

/* Variables stay in a function's first block. */
static void move_variables(struct emitter *e, LLVMBasicBlockRef from)
{
    LLVMValueRef next;
    for (LLVMValueRef value = LLVMGetFirstInstruction(from); value; value = next) {
        next = LLVMGetNextInstruction(value);
        if (!LLVMIsAAllocaInst(value))
            continue;
        LLVMInstructionRemoveFromParent(value);
        LLVMInsertIntoBuilder(e->at, value);
    }
}

void sp_gpu_guard_edges(LLVMModuleRef module, const struct sp_gpu_entry *entry)
{
    if (entry->is_uniform)
        return;
    struct emitter e;
    emitter_init(&e, module, entry);
    LLVMBasicBlockRef body = LLVMGetEntryBasicBlock(entry->function);
    LLVMBasicBlockRef start = LLVMInsertBasicBlockInContext(e.context, body, "");
    LLVMBasicBlockRef edge = LLVMInsertBasicBlockInContext(e.context, body, "edge");
    LLVMBasicBlockRef outside =
        LLVMAppendBasicBlockInContext(e.context, entry->function, "outside");
    LLVMPositionBuilderAtEnd(e.at, start);
    move_variables(&e, body);
    LLVMBuildCondBr(e.at, is_non_uniform(&e), edge, body);
    LLVMPositionBuilderAtEnd(e.at, edge);
    LLVMValueRef inside = LLVMConstInt(e.i1, 1, false);
    for (int d = 0; d < 3; d++) {
        LLVMValueRef before =
            LLVMBuildMul(e.at, widened(&e, group_id(&e, d)), widened(&e, full_size(&e, d)), "");
        LLVMValueRef id = LLVMBuildAdd(e.at, before, widened(&e, special(&e, "tid", d)), "");
        LLVMValueRef fits =
            LLVMBuildICmp(e.at, LLVMIntULT, id, MEMBER(&e, e.i64, global_size, d), "");
        inside = LLVMBuildAnd(e.at, inside, fits, "");
    }
    LLVMBuildCondBr(e.at, inside, body, outside);
    LLVMPositionBuilderAtEnd(e.at, outside);
    LLVMBuildRetVoid(e.at);
    LLVMDisposeBuilder(e.at);
}

static LLVMValueRef print(struct emitter *e, LLVMValueRef call)
{
    unsigned count = LLVMGetNumArgOperands(call);
    LLVMValueRef *operands = sp_cc_allocate(count * sizeof(LLVMValueRef));
    LLVMBuilderRef start = LLVMCreateBuilderInContext(e->context);
    uint64_t bytes;
    for (unsigned i = 0; i < count; i++)
        operands[i] = LLVMGetOperand(call, i);
    LLVMPositionBuilderBefore(start,
                              LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(e->entry->function)));
    LLVMValueRef record = sp_cc_emit_record(e->module, e->at, start, operands, count, &bytes);
    LLVMDisposeBuilder(start);
    LLVMTypeRef parameters[] = {e->i64, e->i64, e->pointer, e->i64};
    LLVMTypeRef type = LLVMFunctionType(e->i32, parameters, 4, false);
    LLVMValueRef function = LLVMGetNamedFunction(e->module, PRINT_NAME);
    if (!function)
        function = LLVMAddFunction(e->module, PRINT_NAME, type);
    LLVMValueRef arguments[] = {
        load(e, e->i64, offsetof(struct sp_gpu_launch, print_buffer)),
        LLVMBuildPtrToInt(e->at, operands[0], e->i64, ""),
        record,
        LLVMConstInt(e->i64, bytes, false),
    };
    free(operands);
    return LLVMBuildCall2(e->at, type, function, arguments, 4, "");
}

static LLVMValueRef is_in_space(struct emitter *e, LLVMValueRef call, const char *intrinsic)
{
    LLVMValueRef pointer = LLVMGetOperand(call, 0);
    return LLVMBuildZExt(e->at, call_intrinsic(e, intrinsic, &pointer, 1), LLVMTypeOf(call), "");
}

/* What takes the place of a call, or NULL where the call stays. */
static LLVMValueRef replacement(struct emitter *e, LLVMValueRef call, const char *name)
{
    size_t length = strlen(name);
    int d =
        length && name[length - 1] >= '0' && name[length - 1] <= '2' ? name[length - 1] - '0' : -1;
    if (!strcmp(name, "printf"))
        return print(e, call);
    if (!strcmp(name, "__sp_work_dim"))
        return load(e, e->i32, offsetof(struct sp_gpu_launch, work_dim));
    if (!strcmp(name, "__sp_is_local"))
        return is_in_space(e, call, "llvm.nvvm.isspacep.shared");
    if (!strcmp(name, "__sp_is_private"))
        return is_in_space(e, call, "llvm.nvvm.isspacep.local");
    if (!strcmp(name, SP_GPU_GLOBALS_NAME))
        return load(e, LLVMTypeOf(call), offsetof(struct sp_gpu_launch, globals));
    if (!strcmp(name, SP_BARRIER_NAME))
        return call_intrinsic(e, "llvm.nvvm.barrier0", NULL, 0);
    if (d < 0 || strncmp(name, "__sp_", 5))
        return NULL;
    if (!strncmp(name, "__sp_local_id_", length - 1))
        return widened(e, special(e, "tid", d));
    if (!strncmp(name, "__sp_group_id_", length - 1))
        return widened(e, group_id(e, d));
    if (!strncmp(name, "__sp_local_size_", length - 1))
        return widened(e, local_size(e, d));
    if (!strncmp(name, "__sp_enqueued_local_size_", length - 1))
        return widened(e, full_size(e, d));
    if (!strncmp(name, "__sp_num_groups_", length - 1))
        return widened(e, MEMBER(e, e->i32, num_groups, d));
    if (!strncmp(name, "__sp_global_size_", length - 1))
        return MEMBER(e, e->i64, global_size, d);
    if (!strncmp(name, "__sp_global_offset_", length - 1))
        return MEMBER(e, e->i64, global_offset, d);
    return NULL;
}

void sp_gpu_replace_builtins(LLVMModuleRef module, const struct sp_gpu_entry *entry)
{
    struct emitter e;
    emitter_init(&e, module, entry);
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(entry->function); block;
         block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
            next = LLVMGetNextInstruction(value);
            const char *name = sp_ir_callee(value);
            if (!name)
                continue;
            LLVMPositionBuilderBefore(e.at, value);
            LLVMValueRef other = replacement(&e, value, name);
            if (!other)
                continue;
            if (LLVMGetFirstUse(value))
                LLVMReplaceAllUsesWith(value, other);
            LLVMInstructionEraseFromParent(value);
        }
    }
    LLVMDisposeBuilder(e.at);
}
