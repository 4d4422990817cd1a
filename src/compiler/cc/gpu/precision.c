/* See precision.h. Without -cl-fp32-correctly-rounded-divide-sqrt clang notes at each division of
 * floats in the source that 2.5 ulp are enough (!fpmath). div.full.f32 is off by 2 ulp at most, and
 * rcp.approx.f32 by 1, both for every operand (PTX ISA). With -cl-fast-relaxed-math the division is
 * marked as one that may be approximated: div.approx.f32, which gives up divisors above 2^126.
 *
 * After optimisation, so that a division is one as long as possible. Divisions of the builtin
 * library have neither mark. */
#include "compiler/cc/gpu/precision.h"

#include <string.h>

/* Of div.full.f32. */
#define ENOUGH_ULP 2.0

static bool is_float(LLVMValueRef value)
{
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMFloatTypeKind;
}

static bool may_be_off(LLVMContextRef context, LLVMValueRef division)
{
    unsigned kind = LLVMGetMDKindIDInContext(context, "fpmath", 6);
    LLVMValueRef note = LLVMGetMetadata(division, kind), ulp;
    LLVMBool lossy;
    if (!note || LLVMGetMDNodeNumOperands(note) != 1)
        return false;
    LLVMGetMDNodeOperands(note, &ulp);
    return LLVMIsAConstantFP(ulp) && LLVMConstRealGetDouble(ulp, &lossy) >= ENOUGH_ULP;
}

static bool is_one(LLVMValueRef value)
{
    LLVMBool lossy;
    return LLVMIsAConstantFP(value) && LLVMConstRealGetDouble(value, &lossy) == 1.0;
}

static LLVMValueRef assemble(LLVMBuilderRef builder, const char *text, const char *constraints,
                             LLVMValueRef *operands, unsigned count)
{
    LLVMTypeRef type = LLVMTypeOf(operands[0]), types[2] = {type, type};
    LLVMTypeRef function = LLVMFunctionType(type, types, count, false);
    LLVMValueRef assembly =
        LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints), false,
                         false, LLVMInlineAsmDialectATT, false);
    return LLVMBuildCall2(builder, function, assembly, operands, count, "");
}

/* The quicker division, or NULL where the division must stay. */
static LLVMValueRef relaxed(LLVMContextRef context, LLVMBuilderRef builder, LLVMValueRef division,
                            bool flush)
{
    LLVMValueRef operands[] = {LLVMGetOperand(division, 0), LLVMGetOperand(division, 1)};
    bool approximate = LLVMGetFastMathFlags(division) & LLVMFastMathApproxFunc;
    if (!approximate && !may_be_off(context, division))
        return NULL;
    if (is_one(operands[0]))
        return assemble(builder, flush ? "rcp.approx.ftz.f32 $0, $1;" : "rcp.approx.f32 $0, $1;",
                        "=f,f", operands + 1, 1);
    if (approximate)
        return assemble(builder,
                        flush ? "div.approx.ftz.f32 $0, $1, $2;" : "div.approx.f32 $0, $1, $2;",
                        "=f,f,f", operands, 2);
    return assemble(builder, flush ? "div.full.ftz.f32 $0, $1, $2;" : "div.full.f32 $0, $1, $2;",
                    "=f,f,f", operands, 2);
}

void sp_gpu_relax_divisions(LLVMModuleRef module, LLVMValueRef function, bool flush)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
            next = LLVMGetNextInstruction(value);
            if (!LLVMIsAInstruction(value) || LLVMGetInstructionOpcode(value) != LLVMFDiv ||
                !is_float(value))
                continue;
            LLVMPositionBuilderBefore(builder, value);
            LLVMValueRef other = relaxed(context, builder, value, flush);
            if (!other)
                continue;
            LLVMReplaceAllUsesWith(value, other);
            LLVMInstructionEraseFromParent(value);
        }
    }
    LLVMDisposeBuilder(builder);
}
