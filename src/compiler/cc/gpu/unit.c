/* See unit.h. LLVM's C API cannot split a block, so the test and the two ways are a function of
 * their own, which is inlined soon after. */
#include "compiler/cc/gpu/unit.h"

#include "compiler/cc/gpu/atomics.h"

#include <stddef.h>
#include <string.h>

/* The members of the launch record that each function gets behind the operands. */
static const size_t members[] = {offsetof(struct sp_gpu_launch, atomic_first),
                                 offsetof(struct sp_gpu_launch, atomic_bytes),
                                 offsetof(struct sp_gpu_launch, atomic_unit)};

enum { FIRST, BYTES, UNIT, NUM_MEMBERS, MAX_OPERANDS = 3 };

struct emitter {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef at;
    LLVMTypeRef i32, i64;
    LLVMValueRef function;
    const struct sp_gpu_native *native;
};

/* A number as the unit takes it. */
static LLVMValueRef widened(struct emitter *e, LLVMValueRef value, unsigned operation)
{
    unsigned kind = operation & ~(unsigned)SP_UNIT_WIDE;
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind)
        value = LLVMBuildBitCast(e->at, value, operation & SP_UNIT_WIDE ? e->i64 : e->i32, "");
    if (operation & SP_UNIT_WIDE)
        return value;
    return kind == SP_UNIT_MIN_SIGNED || kind == SP_UNIT_MAX_SIGNED
               ? LLVMBuildSExt(e->at, value, e->i64, "")
               : LLVMBuildZExt(e->at, value, e->i64, "");
}

static LLVMValueRef call_native(struct emitter *e)
{
    const struct sp_gpu_native *native = e->native;
    LLVMTypeRef types[MAX_OPERANDS];
    LLVMValueRef operands[MAX_OPERANDS];
    for (unsigned i = 0; i < native->count; i++) {
        operands[i] = LLVMGetParam(e->function, i);
        types[i] = LLVMTypeOf(operands[i]);
    }
    LLVMTypeRef type = LLVMFunctionType(native->result, types, native->count, false);
    LLVMValueRef assembly =
        LLVMGetInlineAsm(type, native->text, strlen(native->text), native->constraints,
                         strlen(native->constraints), true, false, LLVMInlineAsmDialectATT, false);
    return LLVMBuildCall2(e->at, type, assembly, operands, native->count, "");
}

static LLVMValueRef call_unit(struct emitter *e, unsigned operation, LLVMValueRef address)
{
    LLVMTypeRef parameters[] = {e->i64, e->i32, e->i64, e->i64, e->i64};
    LLVMTypeRef type = LLVMFunctionType(e->i64, parameters, 5, false);
    LLVMValueRef unit = LLVMGetNamedFunction(e->module, SP_GPU_UNIT_NAME);
    unsigned last = e->native->count - 1;
    if (!unit)
        unit = LLVMAddFunction(e->module, SP_GPU_UNIT_NAME, type);
    LLVMValueRef arguments[] = {
        LLVMGetParam(e->function, e->native->count + UNIT),
        LLVMConstInt(e->i32, operation, false),
        address,
        widened(e, LLVMGetParam(e->function, last), operation),
        last == 2 ? widened(e, LLVMGetParam(e->function, 1), operation)
                  : LLVMConstInt(e->i64, 0, false),
    };
    LLVMValueRef old = LLVMBuildCall2(e->at, type, unit, arguments, 5, "");
    unsigned convergent = LLVMGetEnumAttributeKindForName("convergent", 10);
    LLVMAddCallSiteAttribute(old, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(e->context, convergent, 0));
    if (!(operation & SP_UNIT_WIDE))
        old = LLVMBuildTrunc(e->at, old, e->i32, "");
    return LLVMBuildBitCast(e->at, old, e->native->result, "");
}

static void build_body(struct emitter *e, unsigned operation)
{
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(e->context, e->function, "");
    LLVMBasicBlockRef inside = LLVMAppendBasicBlockInContext(e->context, e->function, "unit");
    LLVMBasicBlockRef outside = LLVMAppendBasicBlockInContext(e->context, e->function, "native");
    LLVMPositionBuilderAtEnd(e->at, start);
    LLVMValueRef address = LLVMBuildPtrToInt(e->at, LLVMGetParam(e->function, 0), e->i64, "");
    LLVMValueRef offset =
        LLVMBuildSub(e->at, address, LLVMGetParam(e->function, e->native->count + FIRST), "");
    LLVMValueRef is_inside = LLVMBuildICmp(e->at, LLVMIntULT, offset,
                                           LLVMGetParam(e->function, e->native->count + BYTES), "");
    LLVMBuildCondBr(e->at, is_inside, inside, outside);
    LLVMPositionBuilderAtEnd(e->at, inside);
    LLVMBuildRet(e->at, call_unit(e, operation, address));
    LLVMPositionBuilderAtEnd(e->at, outside);
    LLVMBuildRet(e->at, call_native(e));
}

static LLVMTypeRef build_function(struct emitter *e, unsigned operation)
{
    const struct sp_gpu_native *native = e->native;
    unsigned always = LLVMGetEnumAttributeKindForName("alwaysinline", 12);
    LLVMTypeRef types[MAX_OPERANDS + NUM_MEMBERS];
    for (unsigned i = 0; i < native->count; i++)
        types[i] = LLVMTypeOf(native->operands[i]);
    for (unsigned i = 0; i < NUM_MEMBERS; i++)
        types[native->count + i] = e->i64;
    LLVMTypeRef type = LLVMFunctionType(native->result, types, native->count + NUM_MEMBERS, false);
    e->function = LLVMAddFunction(e->module, "sp_atomic", type);
    LLVMSetLinkage(e->function, LLVMInternalLinkage);
    LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(e->context, always, 0));
    build_body(e, operation);
    return type;
}

LLVMValueRef sp_gpu_unit_or_native(LLVMModuleRef module, const struct sp_gpu_entry *entry,
                                   LLVMBuilderRef builder, unsigned operation,
                                   const struct sp_gpu_native *native)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    struct emitter e = {.context = context,
                        .module = module,
                        .at = LLVMCreateBuilderInContext(context),
                        .i32 = LLVMInt32TypeInContext(context),
                        .i64 = LLVMInt64TypeInContext(context),
                        .native = native};
    LLVMTypeRef type = build_function(&e, operation);
    LLVMValueRef arguments[MAX_OPERANDS + NUM_MEMBERS];
    memcpy(arguments, native->operands, native->count * sizeof *arguments);
    for (unsigned i = 0; i < NUM_MEMBERS; i++)
        arguments[native->count + i] =
            LLVMBuildLoad2(builder, e.i64, sp_gpu_launch_member(entry, builder, members[i]), "");
    LLVMDisposeBuilder(e.at);
    return LLVMBuildCall2(builder, type, e.function, arguments, native->count + NUM_MEMBERS, "");
}
