/* See ends.h. LLVM knows of an alloca that nobody reads it after the function, but local memory is
 * the caller's. The mark is llvm.lifetime.end, which says it of any memory to the pass that deletes
 * dead stores (dse); it does not stay for code generation, which takes it to be about an alloca.
 * Regions become vectors, and loops over them straight code, only late in LLVM's pipeline: values
 * are handed on from stores to loads (gvn) behind it. A load of some lanes of a stored vector is
 * then a number of 512 bits, shifted and cut, of which LLVM makes single lanes: it becomes a
 * shuffle.
 *
 * Without the stores nothing keeps loads from global memory in the order of their addresses any
 * more, and instruction selection folds them into operations in any order: which processors that
 * look for streams do not follow (a reduction of what no cache holds: half the speed). So rows of
 * them are volatile from here on.
 *
 * Called by emit.c and code.c. */
#include "compiler/cc/workgroup/ends.h"

#include "compiler/cc/ir.h"

#include <llvm-c/Target.h>
#include <string.h>

/* More than a group has (local memory and context): stores at known distances from the pointer are
 * within. */
#define END_BYTES (UINT64_C(1) << 24)

#define END_NAME "llvm.lifetime.end"

/* Vectors in a row from which on their order is kept; more are several rows. */
#define LEAST_OF_ROW 4u
#define MOST_OF_ROW 64u

/* Of a vector that lanes are taken out of. */
#define MOST_BITS 1024u

void sp_wg_mark_end(LLVMBuilderRef builder, LLVMModuleRef module, LLVMValueRef pointer)
{
    LLVMTypeRef type = LLVMTypeOf(pointer);
    unsigned id = LLVMLookupIntrinsicID(END_NAME, strlen(END_NAME));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(module, id, &type, 1);
    LLVMTypeRef i64 = LLVMInt64TypeInContext(LLVMGetModuleContext(module));
    LLVMValueRef operands[2] = {LLVMConstInt(i64, END_BYTES, false), pointer};
    LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function, operands, 2, "");
}

static void remove_mark(LLVMBuilderRef builder, LLVMValueRef value)
{
    (void)builder;
    if (sp_ir_is_intrinsic(value, END_NAME) &&
        LLVMConstIntGetZExtValue(LLVMGetOperand(value, 0)) == END_BYTES)
        LLVMInstructionEraseFromParent(value);
}

static unsigned bits_of(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        return LLVMGetIntTypeWidth(type);
    case LLVMHalfTypeKind:
        return 16;
    case LLVMFloatTypeKind:
        return 32;
    case LLVMDoubleTypeKind:
        return 64;
    default:
        return 0;
    }
}

static bool is_vector(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind;
}

static LLVMValueRef operand_of(LLVMValueRef value, LLVMOpcode opcode)
{
    return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == opcode
               ? LLVMGetOperand(value, 0)
               : NULL;
}

/* A shift of a number of more than 64 bits, which LLVMConstIntGetZExtValue does not read. */
static uint64_t small_number(LLVMValueRef number)
{
    LLVMTypeRef i64 = LLVMInt64TypeInContext(LLVMGetTypeContext(LLVMTypeOf(number)));
    bool wide = LLVMGetIntTypeWidth(LLVMTypeOf(number)) > 64;
    return LLVMConstIntGetZExtValue(wide ? LLVMConstTrunc(number, i64) : number);
}

/* The vector out of which `number` is cut, from bit *first on; NULL for other numbers. */
static LLVMValueRef cut_vector(LLVMValueRef number, uint64_t *first)
{
    LLVMValueRef whole = operand_of(number, LLVMTrunc);
    LLVMValueRef shifted = whole ? operand_of(whole, LLVMLShr) : NULL;
    *first = 0;
    if (shifted) {
        LLVMValueRef by = LLVMGetOperand(whole, 1);
        if (!LLVMIsAConstantInt(by))
            return NULL;
        *first = small_number(by);
        whole = shifted;
    }
    LLVMValueRef vector = whole ? operand_of(whole, LLVMBitCast) : NULL;
    return vector && is_vector(LLVMTypeOf(vector)) ? vector : NULL;
}

/* Some lanes of a vector, given as a number of their bits, or one of them. */
static void join_lanes(LLVMBuilderRef builder, LLVMValueRef value)
{
    LLVMValueRef number = operand_of(value, LLVMBitCast), lanes[MOST_BITS / 8], result;
    uint64_t first;
    LLVMValueRef vector = number ? cut_vector(number, &first) : NULL;
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMTypeRef element = is_vector(type) ? LLVMGetElementType(type) : type;
    if (!vector || LLVMGetElementType(LLVMTypeOf(vector)) != element || !bits_of(element) ||
        first % bits_of(element))
        return;
    LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(type));
    LLVMPositionBuilderBefore(builder, value);
    unsigned lane = (unsigned)(first / bits_of(element));
    unsigned count = is_vector(type) ? LLVMGetVectorSize(type) : 1;
    if (lane + count > LLVMGetVectorSize(LLVMTypeOf(vector)) || count > MOST_BITS / 8)
        return;
    for (unsigned i = 0; i < count; i++)
        lanes[i] = LLVMConstInt(i32, lane + i, false);
    if (is_vector(type))
        result = LLVMBuildShuffleVector(builder, vector, LLVMGetPoison(LLVMTypeOf(vector)),
                                        LLVMConstVector(lanes, count), "");
    else
        result = LLVMBuildExtractElement(builder, vector, lanes[0], "");
    LLVMReplaceAllUsesWith(value, result);
    LLVMInstructionEraseFromParent(value);
}

static bool has_marks(LLVMModuleRef module)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (!strncmp(LLVMGetValueName(f), END_NAME, strlen(END_NAME)) && LLVMGetFirstUse(f))
            return true;
    return false;
}

/* The constant distance of an address from a base, which is the address itself for others. */
static int64_t distance_from(LLVMValueRef address, LLVMTargetDataRef sizes, LLVMValueRef *base)
{
    bool constant = LLVMIsAGetElementPtrInst(address) && LLVMGetNumOperands(address) == 2 &&
                    LLVMIsAConstantInt(LLVMGetOperand(address, 1));
    *base = constant ? LLVMGetOperand(address, 0) : address;
    return constant ? LLVMConstIntGetSExtValue(LLVMGetOperand(address, 1)) *
                          (int64_t)LLVMABISizeOfType(sizes, LLVMGetGEPSourceElementType(address))
                    : 0;
}

/* Loads in a row, each behind the one before. */
struct row {
    LLVMValueRef loads[MOST_OF_ROW], base;
    int64_t last;
    unsigned count;
};

static void end_row(struct row *row)
{
    for (unsigned i = 0; i < row->count && row->count >= LEAST_OF_ROW; i++)
        LLVMSetVolatile(row->loads[i], true);
    row->count = 0;
}

static void keep_order(LLVMBasicBlockRef block, LLVMTargetDataRef sizes)
{
    struct row row = {.count = 0};
    for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
         value = LLVMGetNextInstruction(value)) {
        LLVMValueRef base;
        if (!LLVMIsALoadInst(value) || !is_vector(LLVMTypeOf(value)) ||
            LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(value, 0))) != SP_SPACE_GLOBAL)
            continue;
        int64_t distance = distance_from(LLVMGetOperand(value, 0), sizes, &base);
        if (row.count == MOST_OF_ROW || (row.count && (base != row.base || distance <= row.last)))
            end_row(&row);
        row.base = base;
        row.last = distance;
        row.loads[row.count++] = value;
    }
    end_row(&row);
}

char *sp_wg_finish_ends(LLVMModuleRef module, struct LLVMOpaqueTargetMachine *machine)
{
    if (!has_marks(module))
        return NULL;
    char *error = sp_ir_run_passes(module, "function(gvn<no-pre>)", machine);
    sp_ir_each_instruction(module, join_lanes);
    if (!error)
        error = sp_ir_run_passes(module, "function(dse,instcombine<no-verify-fixpoint>)", machine);
    sp_ir_each_instruction(module, remove_mark);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
             block = LLVMGetNextBasicBlock(block))
            keep_order(block, LLVMGetModuleDataLayout(module));
    return error;
}
