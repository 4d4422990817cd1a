/* See counts.h. n += x < y becomes a number made of the condition, and a sum; or, by the driver's
 * compiler, a sum and a move that takes it back. An addition that the condition guards is one
 * instruction, but LLVM has none. Where the old value is needed as well that would take a copy, and
 * gain nothing.
 */
#include "compiler/cc/gpu/counts.h"

#include "compiler/cc/ir.h"

#include <stdio.h>
#include <string.h>

/* The condition that `value` is the number of, with what it adds where it holds; or NULL. */
static LLVMValueRef condition_of(LLVMValueRef value, int *step)
{
    if (!LLVMIsAInstruction(value))
        return NULL;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode != LLVMZExt && opcode != LLVMSExt)
        return NULL;
    LLVMValueRef condition = LLVMGetOperand(value, 0);
    LLVMTypeRef type = LLVMTypeOf(condition);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) != 1)
        return NULL;
    *step = opcode == LLVMZExt ? 1 : -1;
    return condition;
}

static void count(LLVMBuilderRef builder, LLVMValueRef sum)
{
    LLVMTypeRef type = LLVMTypeOf(sum);
    if (LLVMGetInstructionOpcode(sum) != LLVMAdd || LLVMGetTypeKind(type) != LLVMIntegerTypeKind)
        return;
    unsigned bits = LLVMGetIntTypeWidth(type);
    if (bits != 32 && bits != 64)
        return;
    for (unsigned i = 0; i < 2; i++) {
        int step;
        LLVMValueRef condition = condition_of(LLVMGetOperand(sum, i), &step);
        LLVMValueRef other = LLVMGetOperand(sum, 1 - i);
        if (!condition || LLVMIsAConstant(other) || !sp_ir_has_one_use(other))
            continue;
        char text[64];
        const char *constraints = bits == 32 ? "=r,b,0" : "=l,b,0";
        snprintf(text, sizeof(text), "@$1 add.s%u $0, $0, %d;", bits, step);
        LLVMTypeRef types[] = {LLVMTypeOf(condition), type};
        LLVMTypeRef function = LLVMFunctionType(type, types, 2, false);
        LLVMValueRef code =
            LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints), false,
                             false, LLVMInlineAsmDialectATT, false);
        LLVMValueRef operands[] = {condition, other};
        LLVMPositionBuilderBefore(builder, sum);
        LLVMValueRef counted = LLVMBuildCall2(builder, function, code, operands, 2, "");
        LLVMReplaceAllUsesWith(sum, counted);
        LLVMInstructionEraseFromParent(sum);
        return;
    }
}

void sp_gpu_count_under_conditions(LLVMModuleRef module)
{
    sp_ir_each_instruction(module, count);
}
