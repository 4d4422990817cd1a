/* See prepare.h. Before values are put into variables, cheap expressions of ids, arguments and
 * uniform values are copied to where they are used: what is computed anew need not be kept for each
 * work-item, and an address that the vectoriser sees computed from the work-item's id is a
 * contiguous access, while one loaded from memory is a gather. */
#include "compiler/cc/workgroup/prepare.h"

#include "compiler/cc/effects.h"
#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/carried.h"
#include "compiler/cc/workgroup/uniformity.h"
#include "compiler/kernel_info.h"

#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

#define TO_SCALARS "function(scalarizer)"

/* Loop-closed SSA is what uniformity.h asks for. */
#define TO_CLOSED_LOOPS "function(lower-switch,early-cse,dce,loop-simplify,lcssa)"
#define TO_VARIABLES "function(dce,reg2mem)"

/* Operations of an expression that is computed anew; beyond it, memory is cheaper. */
#define EXPRESSION_LIMIT 12u

bool sp_wg_ends_with_vote(LLVMBasicBlockRef block)
{
    for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
         value = LLVMGetNextInstruction(value))
        if (sp_ir_calls(value, SP_ALL_NAME))
            return true;
    return false;
}

bool sp_wg_ends_with_barrier(LLVMBasicBlockRef block)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    LLVMValueRef before = LLVMGetPreviousInstruction(end);
    return before && sp_ir_calls(before, SP_BARRIER_NAME);
}

/* A struct given by value is the kernel's own copy: where it may be written, each work-item needs
 * one. */
static void copy_written_arguments(LLVMModuleRef module, LLVMValueRef kernel)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    for (unsigned i = 0; i < LLVMCountParams(kernel); i++) {
        LLVMAttributeRef attribute = LLVMGetEnumAttributeAtIndex(kernel, i + 1, byval);
        LLVMValueRef parameter = LLVMGetParam(kernel, i);
        if (!attribute || !(sp_cc_effect_of(parameter) & (SP_EFFECT_WRITE | SP_EFFECT_UNKNOWN)))
            continue;
        LLVMTypeRef type = LLVMGetTypeAttributeValue(attribute);
        LLVMTargetDataRef sizes = LLVMGetModuleDataLayout(module);
        unsigned align = LLVMABIAlignmentOfType(sizes, type);
        LLVMPositionBuilderBefore(builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(kernel)));
        LLVMValueRef copy = LLVMBuildAlloca(builder, type, "");
        LLVMReplaceAllUsesWith(parameter, copy);
        LLVMBuildMemCpy(
            builder, copy, align, parameter, align,
            LLVMConstInt(LLVMInt64TypeInContext(context), LLVMABISizeOfType(sizes, type), false));
    }
    LLVMDisposeBuilder(builder);
}

static bool is_cheap(LLVMValueRef value)
{
    return sp_ir_is_computation(value) || sp_ir_is_intrinsic(value, "__sp_local_id_");
}

struct remat {
    struct sp_wg_uniformity *uniformity; /* copies are added to its divergent values */
    LLVMBuilderRef builder;
};

/* Whether the tree under `value` down to ids, arguments, constants, addresses of private variables
 * and uniform values is small and cheap. */
static bool can_repeat(const struct remat *remat, LLVMValueRef value, unsigned *operations)
{
    if (!LLVMIsAInstruction(value) || LLVMIsAAllocaInst(value))
        return true;
    if (!sp_wg_is_divergent(remat->uniformity, value))
        return true;
    if (!is_cheap(value) || ++*operations > EXPRESSION_LIMIT)
        return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!can_repeat(remat, LLVMGetOperand(value, (unsigned)i), operations))
            return false;
    return true;
}

static LLVMValueRef repeat(const struct remat *remat, LLVMValueRef value)
{
    if (!LLVMIsAInstruction(value) || LLVMIsAAllocaInst(value) ||
        !sp_wg_is_divergent(remat->uniformity, value))
        return value;
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        LLVMSetOperand(copy, (unsigned)i, repeat(remat, LLVMGetOperand(value, (unsigned)i)));
    LLVMInsertIntoBuilder(remat->builder, copy);
    sp_map_set(&remat->uniformity->divergent, copy, copy);
    return copy;
}

/* Where operand `index` of `user` must be ready: before the instruction, or at the end of a PHI's
 * incoming block. */
static LLVMValueRef needed_before(LLVMValueRef user, unsigned index)
{
    return LLVMIsAPHINode(user) ? LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(user, index))
                                : user;
}

/* A copy that is used in its own block stays: it is visited too, and must not be copied again. */
static void repeat_at_user(const struct remat *remat, LLVMValueRef value, LLVMValueRef user)
{
    for (int i = 0; i < LLVMGetNumOperands(user); i++) {
        LLVMValueRef before = NULL;
        if (LLVMGetOperand(user, (unsigned)i) == value)
            before = needed_before(user, (unsigned)i);
        if (!before || LLVMGetInstructionParent(before) == LLVMGetInstructionParent(value))
            continue;
        LLVMPositionBuilderBefore(remat->builder, before);
        LLVMSetOperand(user, (unsigned)i, repeat(remat, value));
    }
}

static void repeat_in_other_blocks(const struct remat *remat, LLVMValueRef value)
{
    LLVMValueRef *users = NULL;
    size_t count = 0;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        users = sp_cc_reallocate(users, (count + 1) * sizeof(LLVMValueRef));
        users[count++] = LLVMGetUser(use);
    }
    for (size_t i = 0; i < count; i++)
        repeat_at_user(remat, value, users[i]);
    free(users);
}

/* The one value that comes into a PHI, as where a loop is left; else NULL. */
static LLVMValueRef sole_value(LLVMValueRef phi)
{
    LLVMValueRef value = LLVMGetIncomingValue(phi, 0);
    for (unsigned i = 1; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingValue(phi, i) != value)
            return NULL;
    return value;
}

/* Whether a value is what it is at `block`, too: no loop around it is left on the way. */
static bool reaches(const struct sp_wg_graph *graph, LLVMValueRef value, uint32_t block)
{
    uint32_t at = sp_wg_block_number(graph, LLVMGetInstructionParent(value));
    for (uint32_t l = graph->loop_of[at]; l != SP_WG_NONE; l = graph->loops[l].parent)
        if (!sp_bits_has(&graph->loops[l].blocks, block))
            return false;
    return true;
}

/* Whether the tree under `value` can be computed anew at `block`, behind loops that are left, from
 * values that reach it. */
static bool can_repeat_behind(const struct remat *remat, const struct sp_wg_graph *graph,
                              LLVMValueRef value, uint32_t block, unsigned *operations)
{
    if (!LLVMIsAInstruction(value) || LLVMIsAAllocaInst(value))
        return true;
    if (!sp_wg_is_divergent(remat->uniformity, value) && reaches(graph, value, block))
        return true;
    if (!is_cheap(value) || ++*operations > EXPRESSION_LIMIT)
        return false;
    for (int i = 0; i < LLVMGetNumOperands(value) && !LLVMIsACallInst(value); i++)
        if (!can_repeat_behind(remat, graph, LLVMGetOperand(value, (unsigned)i), block, operations))
            return false;
    return true;
}

static LLVMValueRef repeat_behind(const struct remat *remat, const struct sp_wg_graph *graph,
                                  LLVMValueRef value, uint32_t block)
{
    if (!LLVMIsAInstruction(value) || LLVMIsAAllocaInst(value))
        return value;
    bool divergent = sp_wg_is_divergent(remat->uniformity, value);
    if (!divergent && reaches(graph, value, block))
        return value;
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int i = 0; i < LLVMGetNumOperands(value) && !LLVMIsACallInst(value); i++)
        LLVMSetOperand(copy, (unsigned)i,
                       repeat_behind(remat, graph, LLVMGetOperand(value, (unsigned)i), block));
    LLVMInsertIntoBuilder(remat->builder, copy);
    if (divergent)
        sp_map_set(&remat->uniformity->divergent, copy, copy);
    return copy;
}

/* An address that is computed in a loop is computed anew behind it too: the PHI that carries it out
 * (LCSSA) would be a variable, and what is loaded from there a gather. */
static void repeat_behind_loop(const struct remat *remat, const struct sp_wg_graph *graph,
                               LLVMValueRef phi, uint32_t block)
{
    LLVMValueRef value = sole_value(phi);
    unsigned operations = 0;
    if (!value || !LLVMIsAInstruction(value) || LLVMIsAPHINode(value) || !is_cheap(value) ||
        !sp_wg_is_divergent(remat->uniformity, value) ||
        !can_repeat_behind(remat, graph, value, block, &operations))
        return;
    for (LLVMUseRef use; (use = LLVMGetFirstUse(phi));) {
        LLVMValueRef user = LLVMGetUser(use);
        for (int i = 0; i < LLVMGetNumOperands(user); i++) {
            if (LLVMGetOperand(user, (unsigned)i) != phi)
                continue;
            LLVMPositionBuilderBefore(remat->builder, needed_before(user, (unsigned)i));
            LLVMSetOperand(user, (unsigned)i, repeat_behind(remat, graph, value, block));
        }
    }
}

static void repeat_expressions(LLVMValueRef kernel)
{
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
    sp_wg_graph_init(&graph, kernel);
    sp_wg_uniformity_init(&uniformity, &graph, NULL, false);
    struct remat remat = {
        &uniformity, LLVMCreateBuilderInContext(LLVMGetModuleContext(LLVMGetGlobalParent(kernel)))};
    for (uint32_t b = 0; b < graph.num_blocks; b++)
        for (LLVMValueRef phi = LLVMGetFirstInstruction(graph.blocks[b]);
             phi && LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi))
            repeat_behind_loop(&remat, &graph, phi, b);
    for (uint32_t b = 0; b < graph.num_blocks; b++) {
        LLVMValueRef value = LLVMGetFirstInstruction(graph.blocks[b]);
        for (; value; value = LLVMGetNextInstruction(value)) {
            unsigned operations = 0;
            if (is_cheap(value) && sp_wg_is_divergent(&uniformity, value) &&
                can_repeat(&remat, value, &operations))
                repeat_in_other_blocks(&remat, value);
        }
    }
    LLVMDisposeBuilder(remat.builder);
    sp_wg_uniformity_finish(&uniformity, &graph);
    sp_wg_graph_finish(&graph);
}

/* Lifetimes and assumptions speak of one work-item's variable; the variables are about to be shared
 * out. */
static void drop_markers(LLVMValueRef kernel)
{
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(kernel); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
            next = LLVMGetNextInstruction(value);
            if (sp_ir_is_intrinsic(value, "llvm.lifetime.") ||
                sp_ir_is_intrinsic(value, "llvm.assume"))
                LLVMInstructionEraseFromParent(value);
        }
    }
}

static void redirect(LLVMValueRef function, LLVMBasicBlockRef from, LLVMBasicBlockRef to)
{
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        for (unsigned s = 0; end && s < LLVMGetNumSuccessors(end); s++)
            if (LLVMGetSuccessor(end, s) == from)
                LLVMSetSuccessor(end, s, to);
    }
}

/* Where a block ends: what comes before is another region's. */
static bool is_cut(LLVMValueRef value)
{
    return sp_ir_calls(value, SP_BARRIER_NAME) || sp_ir_calls(value, SP_ALL_NAME);
}

/* Ends blocks after barriers and votes while there are PHIs: what comes before moves to a new
 * block, so that PHIs further on still name the right one. What is computed before a barrier and
 * used after it is then used in another block, as repeat_expressions asks for. */
static void part_at_barriers(LLVMModuleRef module, LLVMValueRef kernel)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(kernel); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next, barrier = LLVMGetFirstInstruction(block);
        while (barrier) {
            if (!is_cut(barrier)) {
                barrier = LLVMGetNextInstruction(barrier);
                continue;
            }
            LLVMBasicBlockRef before =
                LLVMInsertBasicBlockInContext(context, block, "before.barrier");
            redirect(kernel, block, before);
            LLVMPositionBuilderAtEnd(builder, before);
            LLVMValueRef moved = LLVMGetFirstInstruction(block),
                         behind = LLVMGetNextInstruction(barrier);
            for (; moved != behind; moved = next) {
                next = LLVMGetNextInstruction(moved);
                LLVMInstructionRemoveFromParent(moved);
                LLVMInsertIntoBuilder(builder, moved);
            }
            LLVMBuildBr(builder, block);
            barrier = behind;
        }
    }
    LLVMDisposeBuilder(builder);
}

static void move_rest(LLVMValueRef barrier, LLVMBasicBlockRef to, LLVMBuilderRef builder)
{
    LLVMPositionBuilderAtEnd(builder, to);
    for (LLVMValueRef next; (next = LLVMGetNextInstruction(barrier));) {
        LLVMInstructionRemoveFromParent(next);
        LLVMInsertIntoBuilder(builder, next);
    }
}

/* There are no PHIs by now, so that a block may get a new end freely. */
static void split_at_barriers(LLVMModuleRef module, LLVMValueRef kernel)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(kernel); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef value = LLVMGetFirstInstruction(block);
        while (value && !sp_ir_calls(value, SP_BARRIER_NAME))
            value = LLVMGetNextInstruction(value);
        if (!value || LLVMGetNextInstruction(value) == LLVMGetBasicBlockTerminator(block))
            continue;
        LLVMBasicBlockRef rest = LLVMAppendBasicBlockInContext(context, kernel, "after.barrier");
        LLVMMoveBasicBlockAfter(rest, block);
        move_rest(value, rest, builder);
        LLVMPositionBuilderAtEnd(builder, block);
        LLVMBuildBr(builder, rest);
    }
    LLVMDisposeBuilder(builder);
}

static LLVMValueRef lane_number(LLVMContextRef context, unsigned lane)
{
    return LLVMConstInt(LLVMInt32TypeInContext(context), lane, false);
}

static unsigned lane_alignment(unsigned whole, unsigned offset)
{
    unsigned lowest = offset & (0u - offset);
    return offset && lowest < whole ? lowest : whole;
}

/* The address of a lane, and in *alignment what is known of it. */
static LLVMValueRef lane_address(LLVMBuilderRef builder, LLVMValueRef address, LLVMTypeRef type,
                                 unsigned lane, unsigned bytes, unsigned *alignment)
{
    LLVMValueRef index = lane_number(LLVMGetTypeContext(type), lane);
    *alignment = lane_alignment(*alignment, lane * bytes);
    return LLVMBuildInBoundsGEP2(builder, type, address, &index, 1, "");
}

static void split_load(LLVMBuilderRef builder, LLVMValueRef load, unsigned bytes)
{
    LLVMTypeRef type = LLVMTypeOf(load), scalar = LLVMGetElementType(type);
    LLVMValueRef whole = LLVMGetPoison(type);
    for (unsigned lane = 0; lane < LLVMGetVectorSize(type); lane++) {
        unsigned alignment = LLVMGetAlignment(load);
        LLVMValueRef from =
            lane_address(builder, LLVMGetOperand(load, 0), scalar, lane, bytes, &alignment);
        LLVMValueRef part = LLVMBuildLoad2(builder, scalar, from, "");
        LLVMSetAlignment(part, alignment);
        whole = LLVMBuildInsertElement(builder, whole, part,
                                       lane_number(LLVMGetTypeContext(type), lane), "");
    }
    LLVMReplaceAllUsesWith(load, whole);
    LLVMInstructionEraseFromParent(load);
}

static void split_store(LLVMBuilderRef builder, LLVMValueRef store, unsigned bytes)
{
    LLVMValueRef value = LLVMGetOperand(store, 0);
    LLVMTypeRef type = LLVMTypeOf(value), scalar = LLVMGetElementType(type);
    for (unsigned lane = 0; lane < LLVMGetVectorSize(type); lane++) {
        unsigned alignment = LLVMGetAlignment(store);
        LLVMValueRef part = LLVMBuildExtractElement(
            builder, value, lane_number(LLVMGetTypeContext(type), lane), "");
        LLVMValueRef to =
            lane_address(builder, LLVMGetOperand(store, 1), scalar, lane, bytes, &alignment);
        LLVMSetAlignment(LLVMBuildStore(builder, part, to), alignment);
    }
    LLVMInstructionEraseFromParent(store);
}

/* Vectors of the source become scalars, so that vectors of work-items can be made; the scalarizer
 * leaves accesses to memory whole. */
static void split_accesses(LLVMModuleRef module, LLVMValueRef kernel)
{
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(kernel); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
            next = LLVMGetNextInstruction(value);
            bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
            if ((!load && !store) || LLVMGetVolatile(value) ||
                LLVMGetOrdering(value) != LLVMAtomicOrderingNotAtomic)
                continue;
            LLVMTypeRef type = LLVMTypeOf(load ? value : LLVMGetOperand(value, 0));
            if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
                continue;
            unsigned long long bits =
                LLVMSizeOfTypeInBits(LLVMGetModuleDataLayout(module), LLVMGetElementType(type));
            if (bits % 8)
                continue;
            LLVMPositionBuilderBefore(builder, value);
            if (load)
                split_load(builder, value, (unsigned)(bits / 8));
            else
                split_store(builder, value, (unsigned)(bits / 8));
        }
    }
    LLVMDisposeBuilder(builder);
}

bool sp_wg_uses_vectors(LLVMValueRef function)
{
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value)) {
            LLVMValueRef made = LLVMIsAStoreInst(value) ? LLVMGetOperand(value, 0) : value;
            if (LLVMGetTypeKind(LLVMTypeOf(made)) == LLVMVectorTypeKind)
                return true;
        }
    return false;
}

/* Operations on vectors for each access to one, above which work-items side by side hide how long
 * an operation takes better than one after the other do. */
#define OPERATIONS_PER_MOVE 2u

/* Of the accesses all but one in so many are whole vectors. */
#define MOVES_PER_OTHER 4u

static bool is_harmless_call(LLVMValueRef call)
{
    static const char *const known[] = {"__sp_local_",   "__sp_g",     "__sp_enqueued_",
                                        "__sp_num_",     "llvm.fma",   "llvm.fmuladd",
                                        "llvm.lifetime", "llvm.assume"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (sp_ir_is_intrinsic(call, known[i]))
            return true;
    return false;
}

bool sp_wg_moves_whole_vectors(LLVMValueRef function, uint32_t vector_bits)
{
    LLVMTargetDataRef sizes = LLVMGetModuleDataLayout(LLVMGetGlobalParent(function));
    unsigned moves = 0, others = 0, operations = 0;
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value)) {
            bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
            LLVMTypeRef type = LLVMTypeOf(store ? LLVMGetOperand(value, 0) : value);
            bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
            if (LLVMIsAAllocaInst(value) || LLVMIsAAtomicRMWInst(value) ||
                LLVMIsAAtomicCmpXchgInst(value) || LLVMIsAFenceInst(value) ||
                (LLVMIsACallInst(value) && !is_harmless_call(value)))
                return false;
            if (!load && !store)
                operations += vector && (LLVMIsABinaryOperator(value) || LLVMIsACallInst(value));
            else if (vector && 2 * LLVMSizeOfTypeInBits(sizes, type) >= vector_bits)
                moves++;
            else
                others++;
        }
    return moves && others * MOVES_PER_OTHER <= moves && operations <= OPERATIONS_PER_MOVE * moves;
}

/* LLVM's passes go around functions with these two, which need each other. */
static const char *const passed_over[] = {"optnone", "noinline"};

static void pass_over(LLVMValueRef function, bool yes)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    for (size_t i = 0; i < sizeof(passed_over) / sizeof(passed_over[0]); i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(passed_over[i], strlen(passed_over[i]));
        LLVMAttributeIndex index = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
        if (yes)
            LLVMAddAttributeAtIndex(function, index, LLVMCreateEnumAttribute(context, kind, 0));
        else
            LLVMRemoveEnumAttributeAtIndex(function, index, kind);
    }
}

static const char keeps_vectors[] = "sp-keeps-vectors", keeps_values[] = "sp-keeps-values";

static void mark(LLVMValueRef function, const char *name)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    LLVMAddAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(context, name, (unsigned)strlen(name), "", 0));
}

static bool has_mark(LLVMValueRef function, const char *name)
{
    return LLVMGetStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                         name, (unsigned)strlen(name));
}

void sp_wg_keep_vectors(LLVMValueRef function)
{
    mark(function, keeps_vectors);
}

static bool has_kept_vectors(LLVMValueRef function)
{
    return has_mark(function, keeps_vectors);
}

void sp_wg_keep_values(LLVMValueRef function)
{
    mark(function, keeps_values);
}

bool sp_wg_keeps_values(LLVMValueRef function)
{
    return has_mark(function, keeps_values);
}

/* Runs passes on all functions but those of which `is_kept` holds. */
static char *run_on_others(LLVMModuleRef module, const char *passes,
                           bool (*is_kept)(LLVMValueRef function), LLVMTargetMachineRef machine)
{
    LLVMValueRef f;
    for (f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (is_kept(f))
            pass_over(f, true);
    char *error = sp_ir_run_passes(module, passes, machine);
    for (f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (is_kept(f))
            pass_over(f, false);
    return error;
}

/* Makes scalars of all vectors but the kept ones. */
static char *make_scalars(LLVMModuleRef module, LLVMTargetMachineRef machine)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (sp_ir_is_definition(f) && !has_kept_vectors(f))
            split_accesses(module, f);
    return run_on_others(module, TO_SCALARS, has_kept_vectors, machine);
}

char *sp_wg_prepare(LLVMModuleRef module, LLVMTargetMachineRef machine)
{
    LLVMValueRef f;
    for (f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (sp_ir_is_definition(f)) {
            drop_markers(f);
            copy_written_arguments(module, f);
        }
    char *error = make_scalars(module, machine);
    if (!error)
        error = sp_ir_run_passes(module, TO_CLOSED_LOOPS, machine);
    if (error)
        return error;
    for (f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (sp_ir_is_definition(f) && !sp_wg_keeps_values(f)) {
            part_at_barriers(module, f);
            repeat_expressions(f);
            sp_wg_share_variables(f);
        }
    error = run_on_others(module, TO_VARIABLES, sp_wg_keeps_values, machine);
    if (error)
        return error;
    for (f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (sp_ir_is_definition(f))
            split_at_barriers(module, f);
    return run_on_others(module, TO_VARIABLES, sp_wg_keeps_values, machine);
}
