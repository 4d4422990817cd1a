/* See atomics.h. All work-items of a group run on one thread, and no other thread may see the
 * group's local memory: what happens between the load and the store happens to nobody. A locked
 * instruction takes some twenty cycles and orders all memory around it; three plain ones take one
 * or two. The order of accesses to other memory stays the program's on x86-64, whose plain loads
 * and stores acquire and release; where LLVM may move them over a plain access, nobody but this
 * thread could have told by the local word. Called by emit.c, after uniformity is known: the plain
 * load would seem to be the same for all work-items. */
#include "compiler/cc/workgroup/atomics.h"

#include "compiler/cc/ir.h"

static bool is_local_address(LLVMValueRef address)
{
    for (;;) {
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == SP_SPACE_LOCAL)
            return true;
        LLVMOpcode opcode = LLVMIsAInstruction(address)    ? LLVMGetInstructionOpcode(address)
                            : LLVMIsAConstantExpr(address) ? LLVMGetConstOpcode(address)
                                                           : (LLVMOpcode)0;
        if (opcode != LLVMGetElementPtr && opcode != LLVMAddrSpaceCast)
            return false;
        address = LLVMGetOperand(address, 0);
    }
}

/* The new value of operation `op`, or NULL for one that is not known here. */
static LLVMValueRef build_operation(LLVMBuilderRef b, LLVMAtomicRMWBinOp op, LLVMValueRef old,
                                    LLVMValueRef operand)
{
    LLVMIntPredicate keeps;
    switch (op) {
    case LLVMAtomicRMWBinOpXchg:
        return operand;
    case LLVMAtomicRMWBinOpAdd:
        return LLVMBuildAdd(b, old, operand, "");
    case LLVMAtomicRMWBinOpSub:
        return LLVMBuildSub(b, old, operand, "");
    case LLVMAtomicRMWBinOpAnd:
        return LLVMBuildAnd(b, old, operand, "");
    case LLVMAtomicRMWBinOpOr:
        return LLVMBuildOr(b, old, operand, "");
    case LLVMAtomicRMWBinOpXor:
        return LLVMBuildXor(b, old, operand, "");
    case LLVMAtomicRMWBinOpFAdd:
        return LLVMBuildFAdd(b, old, operand, "");
    case LLVMAtomicRMWBinOpFSub:
        return LLVMBuildFSub(b, old, operand, "");
    case LLVMAtomicRMWBinOpMax:
        keeps = LLVMIntSGT;
        break;
    case LLVMAtomicRMWBinOpMin:
        keeps = LLVMIntSLT;
        break;
    case LLVMAtomicRMWBinOpUMax:
        keeps = LLVMIntUGT;
        break;
    case LLVMAtomicRMWBinOpUMin:
        keeps = LLVMIntULT;
        break;
    default:
        return NULL;
    }
    return LLVMBuildSelect(b, LLVMBuildICmp(b, keeps, old, operand, ""), old, operand, "");
}

static bool is_known_operation(LLVMAtomicRMWBinOp op)
{
    switch (op) {
    case LLVMAtomicRMWBinOpXchg:
    case LLVMAtomicRMWBinOpAdd:
    case LLVMAtomicRMWBinOpSub:
    case LLVMAtomicRMWBinOpAnd:
    case LLVMAtomicRMWBinOpOr:
    case LLVMAtomicRMWBinOpXor:
    case LLVMAtomicRMWBinOpFAdd:
    case LLVMAtomicRMWBinOpFSub:
    case LLVMAtomicRMWBinOpMax:
    case LLVMAtomicRMWBinOpMin:
    case LLVMAtomicRMWBinOpUMax:
    case LLVMAtomicRMWBinOpUMin:
        return true;
    default:
        return false;
    }
}

bool sp_wg_is_local_atomic(LLVMValueRef value)
{
    if (!LLVMIsAAtomicCmpXchgInst(value) &&
        !(LLVMIsAAtomicRMWInst(value) && is_known_operation(LLVMGetAtomicRMWBinOp(value))))
        return false;
    return is_local_address(LLVMGetOperand(value, 0));
}

LLVMValueRef sp_wg_build_local_atomic(LLVMBuilderRef builder, LLVMValueRef atomic,
                                      LLVMValueRef (*map)(void *data, LLVMValueRef value),
                                      void *data)
{
    LLVMValueRef address = map(data, LLVMGetOperand(atomic, 0));
    LLVMValueRef operand = map(data, LLVMGetOperand(atomic, 1));
    LLVMValueRef old = LLVMBuildLoad2(builder, LLVMTypeOf(operand), address, "");
    LLVMSetAlignment(old, LLVMGetAlignment(atomic));
    LLVMValueRef result = old, stored;
    if (LLVMIsAAtomicCmpXchgInst(atomic)) {
        LLVMValueRef wanted = map(data, LLVMGetOperand(atomic, 2));
        LLVMValueRef equal = LLVMBuildICmp(builder, LLVMIntEQ, old, operand, "");
        stored = LLVMBuildSelect(builder, equal, wanted, old, "");
        result = LLVMBuildInsertValue(builder, LLVMGetPoison(LLVMTypeOf(atomic)), old, 0, "");
        result = LLVMBuildInsertValue(builder, result, equal, 1, "");
    } else {
        stored = build_operation(builder, LLVMGetAtomicRMWBinOp(atomic), old, operand);
    }
    LLVMSetAlignment(LLVMBuildStore(builder, stored, address), LLVMGetAlignment(atomic));
    return result;
}
