/* See nulls.h. In OpenCL C a null pointer stays one when it is converted. On the GPU a generic
 * pointer to local memory is the local address plus where the window of local memory lies, so the
 * sum is not 0 where the address is. Most local pointers come from a variable or an argument, and
 * are never null; the others are asked. (The constant null is the text's: spaces.c.) */
#include "compiler/cc/gpu/nulls.h"

/* True where the pointer comes from variables and arguments alone. `seen` ends circles. */
static bool is_never_null(LLVMValueRef pointer, struct sp_map *seen)
{
    if (sp_map_get(seen, pointer) || LLVMIsAArgument(pointer) || LLVMIsAGlobalVariable(pointer))
        return true;
    sp_map_set(seen, pointer, pointer);
    if (LLVMIsAGetElementPtrInst(pointer) || LLVMIsABitCastInst(pointer) ||
        (LLVMIsAConstantExpr(pointer) && LLVMGetConstOpcode(pointer) == LLVMGetElementPtr))
        return is_never_null(LLVMGetOperand(pointer, 0), seen);
    if (LLVMIsASelectInst(pointer))
        return is_never_null(LLVMGetOperand(pointer, 1), seen) &&
               is_never_null(LLVMGetOperand(pointer, 2), seen);
    if (!LLVMIsAPHINode(pointer))
        return false;
    for (unsigned i = 0; i < LLVMCountIncoming(pointer); i++)
        if (!is_never_null(LLVMGetIncomingValue(pointer, i), seen))
            return false;
    return true;
}

static unsigned space_of(LLVMValueRef pointer)
{
    return LLVMGetTypeKind(LLVMTypeOf(pointer)) == LLVMPointerTypeKind
               ? LLVMGetPointerAddressSpace(LLVMTypeOf(pointer))
               : SP_SPACE_PRIVATE;
}

static void keep_null(LLVMBuilderRef builder, LLVMValueRef cast)
{
    LLVMValueRef pointer = LLVMGetOperand(cast, 0);
    struct sp_map seen = {0};
    bool never = is_never_null(pointer, &seen);
    sp_map_finish(&seen);
    if (never)
        return;
    LLVMValueRef next = LLVMGetNextInstruction(cast);
    LLVMPositionBuilderBefore(builder, next);
    LLVMValueRef is_null = LLVMBuildIsNull(builder, pointer, "");
    /* The cast's users are to use the choice, but the choice the cast. */
    LLVMValueRef choice = LLVMBuildSelect(builder, is_null, LLVMConstPointerNull(LLVMTypeOf(cast)),
                                          LLVMGetUndef(LLVMTypeOf(cast)), "");
    LLVMReplaceAllUsesWith(cast, choice);
    LLVMSetOperand(choice, 2, cast);
}

static void keep_null_of_cast(LLVMBuilderRef builder, LLVMValueRef value)
{
    if (LLVMIsAAddrSpaceCastInst(value) && space_of(value) == SP_SPACE_GENERIC &&
        space_of(LLVMGetOperand(value, 0)) == SP_SPACE_LOCAL)
        keep_null(builder, value);
}

void sp_gpu_keep_nulls(LLVMModuleRef module)
{
    sp_ir_each_instruction(module, keep_null_of_cast);
}
