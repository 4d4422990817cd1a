/* See interleave.h. An address in an interleaved array is
 *     start + unit * work-item + capacity * bytes
 * where `bytes` is its distance in an array of one piece: a multiple of the unit, so that steps of
 * any number of address computations may be scaled each on its own. */
#include "compiler/cc/workgroup/interleave.h"

/* The type that index `i` of a GEP steps over, from the type before it. NULL for a struct's field.
 */
static LLVMTypeRef stepped_type(LLVMTypeRef before, unsigned i)
{
    if (i == 0)
        return before;
    LLVMTypeKind kind = LLVMGetTypeKind(before);
    return kind == LLVMArrayTypeKind || kind == LLVMVectorTypeKind ? LLVMGetElementType(before)
                                                                   : NULL;
}

static bool steps_in_units(LLVMValueRef gep, LLVMTargetDataRef sizes, uint64_t unit)
{
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    for (unsigned i = 0; i + 1 < (unsigned)LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i + 1);
        type = stepped_type(type, i);
        if (!type)
            return false;
        uint64_t bytes = LLVMABISizeOfType(sizes, type);
        if (bytes % unit == 0)
            continue;
        if (!LLVMIsAConstantInt(index) || (uint64_t)LLVMConstIntGetSExtValue(index) * bytes % unit)
            return false;
    }
    return true;
}

/* Whether all that is done with `address` are plain accesses of *unit bytes, which the first access
 * decides. */
static bool uses_are_units(LLVMValueRef address, LLVMTargetDataRef sizes, uint64_t *unit)
{
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsALoadInst(user) || LLVMIsAStoreInst(user)) {
            bool load = LLVMIsALoadInst(user);
            if (!load && LLVMGetOperand(user, 0) == address)
                return false;
            if (LLVMGetVolatile(user) || LLVMGetOrdering(user) != LLVMAtomicOrderingNotAtomic)
                return false;
            LLVMTypeRef type = LLVMTypeOf(load ? user : LLVMGetOperand(user, 0));
            uint64_t bytes = LLVMABISizeOfType(sizes, type);
            if (LLVMGetTypeKind(type) == LLVMVectorTypeKind || bytes > 8 ||
                (*unit && *unit != bytes))
                return false;
            *unit = bytes;
        } else if (LLVMIsAGetElementPtrInst(user) || LLVMIsAAddrSpaceCastInst(user)) {
            if (!uses_are_units(user, sizes, unit))
                return false;
        } else {
            return false;
        }
    }
    return true;
}

/* The same walk, now that the unit is known. */
static bool geps_step_in_units(LLVMValueRef address, LLVMTargetDataRef sizes, uint64_t unit)
{
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        bool gep = LLVMIsAGetElementPtrInst(user);
        if (gep && !steps_in_units(user, sizes, unit))
            return false;
        if ((gep || LLVMIsAAddrSpaceCastInst(user)) && !geps_step_in_units(user, sizes, unit))
            return false;
    }
    return true;
}

uint32_t sp_wg_interleave_unit(LLVMValueRef alloca, LLVMTargetDataRef sizes)
{
    uint64_t unit = 0, bytes = LLVMABISizeOfType(sizes, LLVMGetAllocatedType(alloca));
    if (!uses_are_units(alloca, sizes, &unit) || !unit || bytes % unit ||
        !geps_step_in_units(alloca, sizes, unit))
        return 0;
    return (uint32_t)unit;
}

LLVMValueRef sp_wg_address_root(LLVMValueRef address)
{
    while (LLVMIsAGetElementPtrInst(address) || LLVMIsAAddrSpaceCastInst(address))
        address = LLVMGetOperand(address, 0);
    return LLVMIsAAllocaInst(address) ? address : NULL;
}

LLVMValueRef sp_wg_gep_bytes(LLVMBuilderRef builder, LLVMValueRef gep, LLVMTargetDataRef sizes,
                             LLVMValueRef (*map)(void *data, LLVMValueRef value), void *data)
{
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    LLVMTypeRef i64 = LLVMInt64TypeInContext(LLVMGetTypeContext(type));
    LLVMValueRef sum = LLVMConstInt(i64, 0, false);
    for (unsigned i = 0; i + 1 < (unsigned)LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = map(data, LLVMGetOperand(gep, i + 1));
        type = stepped_type(type, i);
        index = LLVMBuildIntCast2(builder, index, i64, true, "");
        index = LLVMBuildMul(builder, index,
                             LLVMConstInt(i64, LLVMABISizeOfType(sizes, type), false), "");
        sum = LLVMBuildAdd(builder, sum, index, "");
    }
    return sum;
}
