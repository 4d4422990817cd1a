/* See division.h. In OpenCL C the result of an integer division by zero, and of the lowest number
 * by -1, is undefined, but nothing else happens (6.3.a); LLVM lets such a division do anything, and
 * x86-64 traps, which would end the application. So the divisor 0 becomes 1, and for signed numbers
 * -1 becomes 1 and the result is negated, which wraps. Called by link.c.
 */
#include "compiler/cc/division.h"

#include "compiler/cc/ir.h"

#include <stdbool.h>
#include <stddef.h>

static bool is_division(LLVMValueRef value, bool *is_signed, bool *is_remainder)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    *is_signed = opcode == LLVMSDiv || opcode == LLVMSRem;
    *is_remainder = opcode == LLVMURem || opcode == LLVMSRem;
    return *is_signed || opcode == LLVMUDiv || opcode == LLVMURem;
}

/* A constant other than 0 and -1: most divisions. Vectors are guarded whatever they hold. */
static bool is_harmless(LLVMValueRef divisor)
{
    if (!LLVMIsAConstantInt(divisor))
        return false;
    unsigned bits = LLVMGetIntTypeWidth(LLVMTypeOf(divisor));
    if (bits > 64)
        return false;
    unsigned long long all = bits == 64 ? ~0ull : (1ull << bits) - 1;
    unsigned long long number = LLVMConstIntGetZExtValue(divisor);
    return number != 0 && number != all;
}

/* The number 1 in a type of integers or of vectors of them. */
static LLVMValueRef one_of(LLVMTypeRef type)
{
    enum { MAX_LANES = 16 };
    if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind)
        return LLVMConstInt(type, 1, false);
    LLVMValueRef lanes[MAX_LANES];
    unsigned count = LLVMGetVectorSize(type);
    for (unsigned i = 0; i < count && i < MAX_LANES; i++)
        lanes[i] = LLVMConstInt(LLVMGetElementType(type), 1, false);
    return LLVMConstVector(lanes, count < MAX_LANES ? count : MAX_LANES);
}

static void guard(LLVMBuilderRef builder, LLVMValueRef division, bool is_signed, bool is_remainder)
{
    LLVMValueRef dividend = LLVMGetOperand(division, 0);
    LLVMValueRef divisor = LLVMGetOperand(division, 1);
    LLVMTypeRef type = LLVMTypeOf(divisor);
    LLVMPositionBuilderBefore(builder, division);
    LLVMValueRef harmful = LLVMBuildICmp(builder, LLVMIntEQ, divisor, LLVMConstNull(type), "");
    LLVMValueRef is_minus_one = NULL;
    if (is_signed) {
        is_minus_one = LLVMBuildICmp(builder, LLVMIntEQ, divisor, LLVMConstAllOnes(type), "");
        harmful = LLVMBuildOr(builder, harmful, is_minus_one, "");
    }
    LLVMValueRef safe = LLVMBuildSelect(builder, harmful, one_of(type), divisor, "");
    if (!is_signed) {
        LLVMSetOperand(division, 1, safe);
        return;
    }
    LLVMValueRef replaced =
        is_remainder ? LLVMConstNull(type) : LLVMBuildNeg(builder, dividend, "");
    LLVMValueRef result =
        LLVMBuildBinOp(builder, LLVMGetInstructionOpcode(division), dividend, safe, "");
    result = LLVMBuildSelect(builder, is_minus_one, replaced, result, "");
    LLVMReplaceAllUsesWith(division, result);
    LLVMInstructionEraseFromParent(division);
}

static void guard_division(LLVMBuilderRef builder, LLVMValueRef value)
{
    bool is_signed, is_remainder;
    if (is_division(value, &is_signed, &is_remainder) && !is_harmless(LLVMGetOperand(value, 1)))
        guard(builder, value, is_signed, is_remainder);
}

void sp_cc_guard_divisions(LLVMModuleRef module)
{
    sp_ir_each_instruction(module, guard_division);
}
