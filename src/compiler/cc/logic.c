/* See logic.h. "Choose" and "majority" of hashes, (e & f) ^ (~e & g) and (a & b) ^ (a & c) ^ (b &
 * c), are functions of three bits, each of which is one VPTERNLOG.
 *
 * A cone is an operation and those that only it uses, down to three leaves or fewer. The ways to
 * cut one off are found bottom up, as tools for programmable logic do: each cut of an operation is
 * one of its left side and one of its right, as far as both together have few leaves. The largest
 * wins. */
#include "compiler/cc/logic.h"

#include "compiler/cc/ir.h"
#include "compiler/cc/text.h"

#include <llvm-c/Target.h>
#include <stdio.h>
#include <string.h>

#define MOST_LEAVES 3u
#define MOST_CUTS 24u   /* of one operation that are followed */
#define MOST_DEPTH 6u   /* of a cone: any function of three is less deep */
#define LEAST_JOINED 3u /* operations: LLVM joins two */

struct cut {
    LLVMValueRef leaves[MOST_LEAVES];
    unsigned num_leaves;
    unsigned operations; /* in the cone; "not" is none */
};

struct cuts {
    struct cut list[MOST_CUTS];
    unsigned count;
};

static bool is_logic(LLVMValueRef value)
{
    if (!LLVMIsAInstruction(value))
        return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    return opcode == LLVMAnd || opcode == LLVMOr || opcode == LLVMXor;
}

static bool is_ones(LLVMValueRef value)
{
    if (!LLVMIsConstant(value))
        return false;
    for (unsigned i = 0; i < LLVMGetVectorSize(LLVMTypeOf(value)); i++) {
        LLVMValueRef element = LLVMGetAggregateElement(value, i);
        if (!element || !LLVMIsAConstantInt(element) || LLVMConstIntGetSExtValue(element) != -1)
            return false;
    }
    return true;
}

static bool is_not(LLVMValueRef value)
{
    return LLVMGetInstructionOpcode(value) == LLVMXor && is_ones(LLVMGetOperand(value, 1));
}

/* Whether the cone may go on into `value`. */
static bool can_enter(LLVMValueRef value)
{
    return is_logic(value) && (sp_ir_has_one_use(value) || is_not(value));
}

static bool add_leaf(struct cut *cut, LLVMValueRef leaf)
{
    for (unsigned i = 0; i < cut->num_leaves; i++)
        if (cut->leaves[i] == leaf)
            return true;
    if (cut->num_leaves == MOST_LEAVES)
        return false;
    cut->leaves[cut->num_leaves++] = leaf;
    return true;
}

static void find_cuts(LLVMValueRef operation, unsigned depth, struct cuts *cuts);

/* The cuts of an operand: itself as a leaf, and those through it. */
static void find_side(LLVMValueRef value, unsigned depth, struct cuts *cuts)
{
    cuts->count = 0;
    if (depth && can_enter(value))
        find_cuts(value, depth - 1, cuts);
    struct cut whole = {.leaves = {value}, .num_leaves = 1};
    if (cuts->count == MOST_CUTS)
        cuts->count--;
    cuts->list[cuts->count++] = whole;
}

static void find_cuts(LLVMValueRef operation, unsigned depth, struct cuts *cuts)
{
    struct cuts left, right;
    find_side(LLVMGetOperand(operation, 0), depth, &left);
    if (is_not(operation)) {
        *cuts = left;
        return;
    }
    find_side(LLVMGetOperand(operation, 1), depth, &right);
    cuts->count = 0;
    for (unsigned i = 0; i < left.count; i++)
        for (unsigned j = 0; j < right.count && cuts->count < MOST_CUTS; j++) {
            struct cut cut = left.list[i];
            bool fits = true;
            for (unsigned k = 0; k < right.list[j].num_leaves; k++)
                fits = fits && add_leaf(&cut, right.list[j].leaves[k]);
            cut.operations += right.list[j].operations + 1;
            if (fits)
                cuts->list[cuts->count++] = cut;
        }
}

/* The truth table of `value`, where the leaves' are 11110000, 11001100 and 10101010. */
static unsigned table_of(const struct cut *cut, LLVMValueRef value)
{
    static const unsigned tables[MOST_LEAVES] = {0xf0, 0xcc, 0xaa};
    for (unsigned i = 0; i < cut->num_leaves; i++)
        if (cut->leaves[i] == value)
            return tables[i];
    unsigned left = table_of(cut, LLVMGetOperand(value, 0));
    if (is_not(value))
        return left ^ 0xff;
    unsigned right = table_of(cut, LLVMGetOperand(value, 1));
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAnd:
        return left & right;
    case LLVMOr:
        return left | right;
    default:
        return left ^ right;
    }
}

/* The bits of a vector that is a register, or 0. */
static unsigned register_bits(LLVMTargetDataRef sizes, LLVMTypeRef type)
{
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind ||
        LLVMGetTypeKind(LLVMGetElementType(type)) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(LLVMGetElementType(type)) % 8)
        return 0;
    unsigned long long bits = LLVMSizeOfTypeInBits(sizes, type);
    return bits == 128 || bits == 256 || bits == 512 ? (unsigned)bits : 0;
}

static void emit(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef root,
                 const struct cut *cut, unsigned bits)
{
    char name[64];
    LLVMTypeRef type = LLVMTypeOf(root);
    LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(type));
    LLVMTypeRef words = LLVMVectorType(i32, bits / 32);
    int length = snprintf(name, sizeof(name), "llvm.x86.avx512.pternlog.d.%u", bits);
    unsigned id = LLVMLookupIntrinsicID(name, (size_t)length);
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(module, id, NULL, 0), arguments[4];
    LLVMPositionBuilderBefore(builder, root);
    for (unsigned i = 0; i < MOST_LEAVES; i++) {
        LLVMValueRef leaf = cut->leaves[i < cut->num_leaves ? i : 0];
        arguments[i] = LLVMBuildBitCast(builder, leaf, words, "");
    }
    arguments[MOST_LEAVES] = LLVMConstInt(i32, table_of(cut, root), false);
    LLVMValueRef result = LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function,
                                         arguments, MOST_LEAVES + 1, "");
    LLVMReplaceAllUsesWith(root, LLVMBuildBitCast(builder, result, type, ""));
}

/* Operations that only one other uses are visited with it, or have been found to gain nothing. */
static bool join_from(LLVMModuleRef module, LLVMBuilderRef builder, LLVMTargetDataRef sizes,
                      LLVMValueRef root)
{
    struct cuts cuts;
    const struct cut *best = NULL;
    unsigned bits = is_logic(root) ? register_bits(sizes, LLVMTypeOf(root)) : 0;
    if (!bits || !LLVMGetFirstUse(root) || is_not(root))
        return false;
    find_cuts(root, MOST_DEPTH, &cuts);
    for (unsigned i = 0; i < cuts.count; i++)
        if (!best || cuts.list[i].operations > best->operations)
            best = &cuts.list[i];
    if (!best || best->operations < LEAST_JOINED)
        return false;
    emit(module, builder, root, best, bits);
    return true;
}

bool sp_cc_join_logic(LLVMModuleRef module)
{
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
    LLVMTargetDataRef sizes = LLVMGetModuleDataLayout(module);
    LLVMBasicBlockRef block;
    bool joined = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block)) {
            LLVMValueRef before;
            /* From the end: an operation comes before those that it is part of. */
            for (LLVMValueRef value = LLVMGetLastInstruction(block); value; value = before) {
                before = LLVMGetPreviousInstruction(value);
                if (join_from(module, builder, sizes, value)) {
                    LLVMInstructionEraseFromParent(value);
                    joined = true;
                }
            }
        }
    LLVMDisposeBuilder(builder);
    return joined;
}
