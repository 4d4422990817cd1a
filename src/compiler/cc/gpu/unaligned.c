/* See unaligned.h. LLVM 19 loads 16 bytes as four words whether they are aligned or not, which the
 * GPU takes for an error. What is aligned, code generation puts together again. */
#include "compiler/cc/gpu/unaligned.h"

#include <llvm-c/Target.h>
#include <stdbool.h>
#include <stdint.h>

struct splitter {
    LLVMBuilderRef builder;
    LLVMTargetDataRef sizes;
    LLVMTypeRef index;
};

static LLVMValueRef number(struct splitter *s, uint64_t value)
{
    return LLVMConstInt(s->index, value, false);
}

/* True for a vector that lies at less than its own size. Vectors of bits have no elements in
 * memory. */
static bool is_unaligned(struct splitter *s, LLVMTypeRef type, LLVMValueRef access)
{
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind || LLVMGetVolatile(access))
        return false;
    uint64_t bytes = LLVMABISizeOfType(s->sizes, LLVMGetElementType(type));
    return LLVMSizeOfTypeInBits(s->sizes, LLVMGetElementType(type)) == 8 * bytes &&
           LLVMGetAlignment(access) < bytes * LLVMGetVectorSize(type);
}

static LLVMValueRef element(struct splitter *s, LLVMTypeRef type, LLVMValueRef pointer, unsigned i)
{
    LLVMValueRef at = number(s, i);
    return LLVMBuildInBoundsGEP2(s->builder, LLVMGetElementType(type), pointer, &at, 1, "");
}

/* The alignment of element i. */
static unsigned alignment(struct splitter *s, LLVMTypeRef type, LLVMValueRef access, unsigned i)
{
    uint64_t offset = i * LLVMABISizeOfType(s->sizes, LLVMGetElementType(type));
    unsigned whole = LLVMGetAlignment(access);
    unsigned own = offset ? (unsigned)(offset & -offset) : whole;
    return own < whole ? own : whole;
}

static void split_load(struct splitter *s, LLVMValueRef load)
{
    LLVMTypeRef type = LLVMTypeOf(load);
    LLVMValueRef whole = LLVMGetPoison(type);
    for (unsigned i = 0; i < LLVMGetVectorSize(type); i++) {
        LLVMValueRef part = LLVMBuildLoad2(s->builder, LLVMGetElementType(type),
                                           element(s, type, LLVMGetOperand(load, 0), i), "");
        LLVMSetAlignment(part, alignment(s, type, load, i));
        whole = LLVMBuildInsertElement(s->builder, whole, part, number(s, i), "");
    }
    LLVMReplaceAllUsesWith(load, whole);
    LLVMInstructionEraseFromParent(load);
}

static void split_store(struct splitter *s, LLVMValueRef store)
{
    LLVMValueRef whole = LLVMGetOperand(store, 0);
    LLVMTypeRef type = LLVMTypeOf(whole);
    for (unsigned i = 0; i < LLVMGetVectorSize(type); i++) {
        LLVMValueRef part = LLVMBuildExtractElement(s->builder, whole, number(s, i), "");
        LLVMValueRef split =
            LLVMBuildStore(s->builder, part, element(s, type, LLVMGetOperand(store, 1), i));
        LLVMSetAlignment(split, alignment(s, type, store, i));
    }
    LLVMInstructionEraseFromParent(store);
}

void sp_gpu_split_unaligned(LLVMModuleRef module, LLVMValueRef function)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    struct splitter s = {.builder = LLVMCreateBuilderInContext(context),
                         .sizes = LLVMGetModuleDataLayout(module),
                         .index = LLVMInt64TypeInContext(context)};
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
            next = LLVMGetNextInstruction(value);
            LLVMPositionBuilderBefore(s.builder, value);
            if (LLVMIsALoadInst(value) && is_unaligned(&s, LLVMTypeOf(value), value))
                split_load(&s, value);
            else if (LLVMIsAStoreInst(value) &&
                     is_unaligned(&s, LLVMTypeOf(LLVMGetOperand(value, 0)), value))
                split_store(&s, value);
        }
    }
    LLVMDisposeBuilder(s.builder);
}
