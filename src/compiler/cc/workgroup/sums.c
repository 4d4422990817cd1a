/* See sums.h. In
 *
 *     for (j = 0; j < n; j++)
 *         out[i] += a[i * n + j] * x[j];
 *
 * each turn stores the sum, since out[i] may be one of the numbers that a later turn loads. Nearly
 * always it is not, and what the loop accesses is known before it starts: from the first to the
 * last turn's address. LLVM's loop versioning asks whether these overlap, and copies the loop; in
 * the copy that runs where they do not, the store moves behind the loop.
 *
 * Each work-item would ask for itself, and go its own way. So all of a group vote: a call of
 * SP_ALL_NAME gives true to a work-item only if its own operand is true, and to all of a region the
 * same where they run it together. The region ends behind it (prepare.c, analyse.c). Which of the
 * two loops runs makes no difference but in time where both are right, so nothing hangs on how many
 * took part.
 *
 * That another work-item's sum lies where this one loads is a race, and nobody's question.
 *
 * Loops in which work-items are parted already run for each of them by itself: there each asks for
 * itself. Called by code.c. */
#include "compiler/cc/workgroup/sums.h"

#include "compiler/cc/workgroup/analyse.h"
#include "compiler/cc/workgroup/graph.h"
#include "compiler/cc/workgroup/loop_marks.h"
#include "compiler/cc/workgroup/metadata.h"
#include "compiler/cc/workgroup/special.h"
#include "compiler/cc/workgroup/uniformity.h"

#include "compiler/cc/text.h"

#include <stdlib.h>
#include <string.h>

/* Instructions of a loop that is copied. */
#define LOOP_LIMIT 256u

#define TO_VERSIONS                                                                                \
    "function(loop-simplify,lcssa,loop(loop-rotate),loop-simplify,lcssa,"                          \
    "loop(loop-versioning-licm),loop-simplify,lcssa,loop-mssa(licm))"
#define TO_FEWER "function(early-cse<memssa>)"

/* What LLVM's versioning calls the block that asks. */
#define CHECK_NAME "lver.check"

static bool is_inside(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop,
                      LLVMValueRef value)
{
    if (!LLVMIsAInstruction(value))
        return false;
    uint32_t block = sp_wg_block_number(graph, LLVMGetInstructionParent(value));
    return block != SP_WG_NONE && sp_bits_has(&loop->blocks, block);
}

/* Whether a store is to the same place in each turn, as far as is seen before LLVM moves what stays
 * the same out of the loop. */
static bool stays_in_place(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop,
                           LLVMValueRef address)
{
    if (!is_inside(graph, loop, address))
        return true;
    for (int i = 0; i < LLVMGetNumOperands(address) && LLVMIsAGetElementPtrInst(address); i++)
        if (is_inside(graph, loop, LLVMGetOperand(address, (unsigned)i)))
            return false;
    return LLVMIsAGetElementPtrInst(address);
}

static bool is_plain(LLVMValueRef access)
{
    return !LLVMGetVolatile(access) && LLVMGetOrdering(access) == LLVMAtomicOrderingNotAtomic;
}

static bool is_private(LLVMValueRef address)
{
    while (LLVMIsAGetElementPtrInst(address) || LLVMIsAAddrSpaceCastInst(address))
        address = LLVMGetOperand(address, 0);
    return LLVMIsAAllocaInst(address);
}

/* The array that an address lies in: an argument, or a pointer that was loaded; NULL where several
 * may be meant. */
static LLVMValueRef array_of(LLVMValueRef address)
{
    while (LLVMIsAGetElementPtrInst(address) || LLVMIsABitCastInst(address) ||
           LLVMIsAAddrSpaceCastInst(address))
        address = LLVMGetOperand(address, 0);
    return LLVMIsAArgument(address) || LLVMIsALoadInst(address) || LLVMIsAGlobalVariable(address)
               ? address
               : NULL;
}

/* The address of a load or store; NULL for others. */
static LLVMValueRef address_of(LLVMValueRef value)
{
    bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
    return load || store ? LLVMGetOperand(value, load ? 0 : 1) : NULL;
}

/* Whether a store's place is asked to be none of the other accesses': LLVM's versioning asks only
 * of those to different arrays, and then says it of all. */
static bool is_told_apart(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop,
                          LLVMValueRef store)
{
    LLVMValueRef place = LLVMGetOperand(store, 1), array = array_of(place);
    SP_BITS_EACH(b, &loop->blocks)
    for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[b]); value;
         value = LLVMGetNextInstruction(value)) {
        LLVMValueRef address = address_of(value);
        if (!address || address == place)
            continue;
        LLVMValueRef other = array_of(address);
        if (!array || !other || other == array)
            return false;
    }
    return true;
}

/* Whether the loop stores a sum in each turn, and does nothing that LLVM's versioning cannot
 * take. */
static bool has_sum(const struct sp_wg_graph *graph, uint32_t number)
{
    const struct sp_wg_loop *loop = &graph->loops[number];
    unsigned size = 0;
    bool sum = false, other = false;
    for (uint32_t i = 0; i < graph->num_loops; i++)
        if (graph->loops[i].parent == number)
            return false;
    SP_BITS_EACH(b, &loop->blocks)
    for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[b]); value;
         value = LLVMGetNextInstruction(value)) {
        bool store = LLVMIsAStoreInst(value);
        LLVMValueRef address = address_of(value);
        if (address && (!is_plain(value) || is_private(address)))
            return false;
        if (store && !is_told_apart(graph, loop, value))
            return false;
        if (LLVMIsAAtomicRMWInst(value) || LLVMIsAAtomicCmpXchgInst(value) ||
            LLVMIsAFenceInst(value) ||
            (LLVMIsACallInst(value) && !sp_ir_is_intrinsic(value, "llvm.")) || ++size > LOOP_LIMIT)
            return false;
        if (address && stays_in_place(graph, loop, address))
            sum |= store;
        else
            other |= address != NULL;
    }
    return sum && other;
}

static bool find_sums(LLVMValueRef kernel)
{
    struct sp_wg_graph graph;
    bool any = false;
    if (sp_wg_has_switch(kernel))
        return false;
    sp_wg_graph_init(&graph, kernel);
    for (uint32_t l = 0; l < graph.num_loops && !graph.irreducible; l++)
        any |= has_sum(&graph, l);
    for (uint32_t l = 0; l < graph.num_loops && any; l++)
        if (!has_sum(&graph, l))
            sp_wg_mark_own_loop(&graph, &graph.loops[l], sp_wg_mark_unversioned_loop);
    sp_wg_graph_finish(&graph);
    return any;
}

/* --- What LLVM leaves ------------------------------------------------------------------------ */

static LLVMValueRef vote(LLVMBuilderRef builder, LLVMModuleRef module, LLVMValueRef yes)
{
    LLVMTypeRef i1 = LLVMTypeOf(yes), type = LLVMFunctionType(i1, &i1, 1, false);
    LLVMValueRef function = LLVMGetNamedFunction(module, SP_ALL_NAME);
    if (!function) {
        LLVMContextRef context = LLVMGetModuleContext(module);
        static const struct {
            const char *name;
            uint64_t value;
        } attributes[] = {{"nounwind", 0}, {"convergent", 0}, {"willreturn", 0}, {"memory", 0}};
        function = LLVMAddFunction(module, SP_ALL_NAME, type);
        for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
            unsigned kind =
                LLVMGetEnumAttributeKindForName(attributes[i].name, strlen(attributes[i].name));
            LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                    LLVMCreateEnumAttribute(context, kind, attributes[i].value));
        }
    }
    return LLVMBuildCall2(builder, type, function, &yes, 1, "");
}

static bool asks_for_sums(LLVMBasicBlockRef block)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    return LLVMIsABranchInst(end) && LLVMIsConditional(end) &&
           strstr(LLVMGetBasicBlockName(block), CHECK_NAME) &&
           LLVMIsAInstruction(LLVMGetCondition(end));
}

/* Lets all work-items of a group answer as one, where they come to the question together. */
static void ask_together(LLVMModuleRef module, LLVMValueRef kernel)
{
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
    sp_wg_graph_init(&graph, kernel);
    sp_wg_uniformity_init(&uniformity, &graph, NULL, sp_wg_agreement_pays(kernel));
    for (uint32_t b = 0; b < graph.num_blocks; b++) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(graph.blocks[b]);
        if (!asks_for_sums(graph.blocks[b]) || sp_bits_has(&uniformity.parted, b) ||
            !sp_wg_is_divergent(&uniformity, LLVMGetCondition(end)))
            continue;
        LLVMBasicBlockRef ways[2] = {LLVMGetSuccessor(end, 0), LLVMGetSuccessor(end, 1)};
        LLVMPositionBuilderBefore(builder, end);
        LLVMValueRef yes = LLVMBuildNot(builder, LLVMGetCondition(end), "");
        LLVMSetCondition(end, vote(builder, module, yes));
        LLVMSetSuccessor(end, 0, ways[1]);
        LLVMSetSuccessor(end, 1, ways[0]);
    }
    LLVMDisposeBuilder(builder);
    sp_wg_uniformity_finish(&uniformity, &graph);
    sp_wg_graph_finish(&graph);
}

/* Versioning says of all accesses of a loop that none is where another is, those to one place
 * included: for LICM alone. */
static void remove_marks(LLVMValueRef function)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    static const char *const names[] = {"alias.scope", "noalias"};
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        sp_wg_unmark_versions(context, LLVMGetBasicBlockTerminator(block));
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value))
            for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                LLVMSetMetadata(
                    value, LLVMGetMDKindIDInContext(context, names[i], (unsigned)strlen(names[i])),
                    NULL);
    }
}

char *sp_wg_keep_sums(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count,
                      LLVMTargetMachineRef machine)
{
    LLVMValueRef *found = sp_cc_allocate(count * sizeof(LLVMValueRef));
    size_t num_found = 0;
    char *error = NULL;
    for (size_t i = 0; i < count; i++)
        if (find_sums(kernels[i]))
            found[num_found++] = kernels[i];
    if (num_found) {
        sp_wg_leave_others(module, found, num_found, true);
        error = sp_ir_run_passes(module, TO_VERSIONS, machine);
        for (size_t i = 0; i < num_found; i++)
            remove_marks(found[i]);
        if (!error)
            error = sp_ir_run_passes(module, TO_FEWER, machine);
        sp_wg_leave_others(module, found, num_found, false);
    }
    for (size_t i = 0; i < num_found && !error; i++)
        ask_together(module, found[i]);
    free(found);
    return error;
}
