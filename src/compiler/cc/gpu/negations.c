/* See negations.h. LLVM moves the negation of a product into a factor: x * x - y * y has y * -y,
 * and where y * y is needed as well both are computed. A GPU negates an operand of any addition for
 * nothing, so the product is worth more whole: one of the twelve instructions of the loop of a
 * Mandelbrot set is such a product, and another one the copy that it needs of y. */
#include "compiler/cc/gpu/negations.h"

#include "compiler/cc/ir.h"

#include <stddef.h>

/* What `value` is the negation of, or NULL. */
static LLVMValueRef negated(LLVMValueRef value)
{
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionOpcode(value) != LLVMFNeg)
        return NULL;
    return LLVMGetOperand(value, 0);
}

static void negate(LLVMBuilderRef builder, LLVMValueRef product)
{
    LLVMValueRef factors[2];
    unsigned signs = 0;
    if (LLVMGetInstructionOpcode(product) != LLVMFMul)
        return;
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef inner = negated(LLVMGetOperand(product, i));
        factors[i] = inner ? inner : LLVMGetOperand(product, i);
        signs += inner != NULL;
    }
    if (!signs)
        return;
    LLVMFastMathFlags flags = LLVMGetFastMathFlags(product);
    LLVMPositionBuilderBefore(builder, product);
    LLVMValueRef other = LLVMBuildFMul(builder, factors[0], factors[1], "");
    if (LLVMIsAInstruction(other))
        LLVMSetFastMathFlags(other, flags);
    if (signs == 1)
        other = LLVMBuildFNeg(builder, other, "");
    LLVMReplaceAllUsesWith(product, other);
    LLVMInstructionEraseFromParent(product);
}

void sp_gpu_negate_products(LLVMModuleRef module)
{
    sp_ir_each_instruction(module, negate);
}
