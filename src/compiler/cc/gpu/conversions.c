/* See conversions.h. libclc converts numbers that do not fit, and then selects something else:
 * right on a GPU, whose conversions saturate, but LLVM takes the result for poison, which it may
 * spread as soon as it knows the number. The intrinsics of the GPU's own instructions have no such
 * clause. */
#include "compiler/cc/gpu/conversions.h"

#include "compiler/cc/ir.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static LLVMValueRef convert(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef conversion)
{
    LLVMValueRef number = LLVMGetOperand(conversion, 0);
    LLVMTypeRef type = LLVMTypeOf(conversion);
    LLVMTypeKind from = LLVMGetTypeKind(LLVMTypeOf(number));
    if ((from != LLVMFloatTypeKind && from != LLVMDoubleTypeKind) ||
        LLVMGetTypeKind(type) != LLVMIntegerTypeKind)
        return NULL;
    bool is_signed = LLVMGetInstructionOpcode(conversion) == LLVMFPToSI;
    bool is_long = LLVMGetIntTypeWidth(type) == 64;
    char name[32];
    int length =
        snprintf(name, sizeof(name), "llvm.nvvm.%c2%s%s.rz", from == LLVMFloatTypeKind ? 'f' : 'd',
                 is_signed ? "" : "u", is_long ? "ll" : "i");
    unsigned id = LLVMLookupIntrinsicID(name, (size_t)length);
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(module, id, NULL, 0);
    LLVMValueRef whole =
        LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function, &number, 1, "");
    return LLVMBuildTrunc(builder, whole, type, "");
}

static void saturate(LLVMBuilderRef builder, LLVMValueRef value)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode != LLVMFPToSI && opcode != LLVMFPToUI)
        return;
    LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(value));
    LLVMPositionBuilderBefore(builder, value);
    LLVMValueRef other = convert(LLVMGetGlobalParent(function), builder, value);
    if (!other)
        return;
    LLVMReplaceAllUsesWith(value, other);
    LLVMInstructionEraseFromParent(value);
}

void sp_gpu_saturate_conversions(LLVMModuleRef module)
{
    sp_ir_each_instruction(module, saturate);
}
