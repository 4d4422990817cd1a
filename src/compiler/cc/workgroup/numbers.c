/* See numbers.h. */
#include "compiler/cc/workgroup/numbers.h"

uint64_t sp_wg_mask(unsigned width)
{
    return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

int64_t sp_wg_signed(unsigned width, uint64_t value)
{
    return (int64_t)(value << (64 - width)) >> (64 - width);
}

uint64_t sp_wg_operate(LLVMOpcode opcode, unsigned width, uint64_t a, uint64_t b)
{
    int64_t sa = sp_wg_signed(width, a), sb = sp_wg_signed(width, b);
    switch (opcode) {
    case LLVMAdd:
        return a + b;
    case LLVMSub:
        return a - b;
    case LLVMMul:
        return a * b;
    case LLVMAnd:
        return a & b;
    case LLVMOr:
        return a | b;
    case LLVMXor:
        return a ^ b;
    case LLVMShl:
        return b < width ? a << b : 0;
    case LLVMLShr:
        return b < width ? a >> b : 0;
    case LLVMAShr:
        return b < width ? (uint64_t)(sa >> b) : 0;
    case LLVMUDiv:
        return b ? a / b : 0;
    case LLVMURem:
        return b ? a % b : 0;
    case LLVMSDiv:
        return !sb ? 0 : sb == -1 ? 0 - a : (uint64_t)(sa / sb);
    case LLVMSRem:
        return !sb || sb == -1 ? 0 : (uint64_t)(sa % sb);
    default:
        return 0;
    }
}

bool sp_wg_is_operation(LLVMOpcode opcode)
{
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMUDiv:
    case LLVMURem:
    case LLVMSDiv:
    case LLVMSRem:
        return true;
    default:
        return false;
    }
}

bool sp_wg_compare(LLVMIntPredicate predicate, unsigned width, uint64_t a, uint64_t b)
{
    int64_t sa = sp_wg_signed(width, a), sb = sp_wg_signed(width, b);
    switch (predicate) {
    case LLVMIntEQ:
        return a == b;
    case LLVMIntNE:
        return a != b;
    case LLVMIntUGT:
        return a > b;
    case LLVMIntUGE:
        return a >= b;
    case LLVMIntULT:
        return a < b;
    case LLVMIntULE:
        return a <= b;
    case LLVMIntSGT:
        return sa > sb;
    case LLVMIntSGE:
        return sa >= sb;
    case LLVMIntSLT:
        return sa < sb;
    case LLVMIntSLE:
        return sa <= sb;
    }
    return false;
}

uint64_t sp_wg_reversed(unsigned width, uint64_t value)
{
    uint64_t result = 0;
    for (unsigned bit = 0; bit < width; bit++)
        result |= (value >> bit & 1) << (width - 1 - bit);
    return result;
}
