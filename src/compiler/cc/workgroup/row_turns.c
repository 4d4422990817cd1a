/* See row_turns.h. In
 *
 *     for (j = 0; j < n; j++)
 *         sum += a[i * n + j] * x[j];
 *
 * work-items side by side are far apart, and all of them in a turn touch as many lines of the cache
 * as there are work-items, of each a single number; where rows lie a power of two apart, no cache
 * keeps these until the next turn. What is side by side is the turns of one work-item. So as many
 * turns as a vector has lanes become one: each work-item's numbers in them are one vector, and
 * rows.c turns these. The order of a sum is the source's.
 *
 * LLVM's unroller does the work, and leaves a loop for the turns that remain. What is computed here
 * decides only which loops are worth it. Called by code.c. */
#include "compiler/cc/workgroup/row_turns.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/affine.h"
#include "compiler/cc/workgroup/analyse.h"
#include "compiler/cc/workgroup/loop_marks.h"
#include "compiler/cc/workgroup/metadata.h"
#include "compiler/cc/workgroup/special.h"

#include <llvm-c/Target.h>
#include <stdlib.h>

/* Instructions of a loop that is unrolled. */
#define LOOP_LIMIT 64u

/* Loads of rows in a turn: as many vectors as there are turns of each are kept at a time. */
#define MOST_ROWS 4u

/* Operations of an address that are looked at. */
#define ADDRESS_LIMIT 32u

/* Operations for each access in rows that vectors of work-items make up for. */
#define OPERATIONS_PER_ACCESS 3u

#define TO_COUNTERS "function(loop-simplify,lcssa,loop(loop-rotate,indvars),loop-simplify,lcssa)"
#define TO_TURNS                                                                                   \
    "function(loop-unroll,early-cse,instcombine<no-verify-fixpoint>,loop-simplify,lcssa)"

struct site {
    const struct sp_wg_graph *graph;
    const struct sp_wg_uniformity *uniformity;
    const struct sp_wg_loop *loop;
    LLVMTargetDataRef sizes;
};

static bool is_inside(const struct site *site, LLVMValueRef value)
{
    if (!LLVMIsAInstruction(value))
        return false;
    uint32_t block = sp_wg_block_number(site->graph, LLVMGetInstructionParent(value));
    return block != SP_WG_NONE && sp_bits_has(&site->loop->blocks, block);
}

static bool small_constant(LLVMValueRef value, int64_t *number)
{
    if (!LLVMIsAConstantInt(value) || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64)
        return false;
    *number = LLVMConstIntGetSExtValue(value);
    return *number > -1024 && *number < 1024;
}

/* By how much a counter of the loop grows in a turn. */
static bool counter_step(const struct site *site, LLVMValueRef phi, int64_t *step)
{
    bool found = false;
    if (LLVMGetInstructionParent(phi) != site->graph->blocks[site->loop->header])
        return false;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef next = LLVMGetIncomingValue(phi, i);
        uint32_t from = sp_wg_block_number(site->graph, LLVMGetIncomingBlock(phi, i));
        if (from == SP_WG_NONE || !sp_bits_has(&site->loop->blocks, from))
            continue;
        if (found || !LLVMIsABinaryOperator(next) || LLVMGetInstructionOpcode(next) != LLVMAdd ||
            LLVMGetOperand(next, 0) != phi || !small_constant(LLVMGetOperand(next, 1), step))
            return false;
        found = true;
    }
    return found;
}

/* By how much a value grows from turn to turn, where that is seen: a guess as far as it may wrap
 * around. */
static bool step_of(const struct site *site, LLVMValueRef value, unsigned *left, int64_t *step)
{
    int64_t other, by;
    *step = 0;
    if (!is_inside(site, value))
        return true;
    if (!*left)
        return false;
    --*left;
    if (LLVMIsAPHINode(value))
        return counter_step(site, value, step);
    LLVMValueRef first = LLVMGetNumOperands(value) ? LLVMGetOperand(value, 0) : NULL;
    LLVMValueRef second = LLVMIsABinaryOperator(value) ? LLVMGetOperand(value, 1) : NULL;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
        return step_of(site, first, left, step);
    case LLVMAdd:
    case LLVMSub:
        if (!step_of(site, first, left, step) || !step_of(site, second, left, &other))
            return false;
        *step += LLVMGetInstructionOpcode(value) == LLVMAdd ? other : -other;
        return true;
    case LLVMMul:
        if (!step_of(site, first, left, step) || !step_of(site, second, left, &other))
            return false;
        if (!*step && !other)
            return true;
        if (!*step || !small_constant(second, &by))
            return false;
        *step *= by;
        return *step > -1024 && *step < 1024;
    default:
        return false;
    }
}

enum along {
    SHARED,     /* the same for work-items side by side */
    ROW,        /* moves by one element from turn to turn, and work-items side by side are not known
                   to be neighbours */
    NEIGHBOURS, /* work-items side by side are */
    ELSEWHERE,
};

static LLVMTypeRef accessed_type(LLVMValueRef access)
{
    return LLVMTypeOf(LLVMIsALoadInst(access) ? access : LLVMGetOperand(access, 0));
}

/* Where a load or store goes. */
static enum along along_of(const struct site *site, LLVMValueRef access)
{
    LLVMValueRef address = LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
    unsigned left = ADDRESS_LIMIT;
    int64_t step;
    struct sp_wg_affine affine;
    if (!(sp_wg_dimensions_of(site->uniformity, address) & 1))
        return SHARED;
    if (!LLVMIsAGetElementPtrInst(address) || LLVMGetNumOperands(address) != 2 ||
        LLVMGetGEPSourceElementType(address) != accessed_type(access))
        return ELSEWHERE;
    LLVMValueRef base = LLVMGetOperand(address, 0), index = LLVMGetOperand(address, 1);
    if (!sp_wg_is_divergent(site->uniformity, base) &&
        sp_wg_affine_of(site->uniformity, index, &affine) && affine.ids[0].factor == 1 &&
        !affine.ids[0].sizes)
        return NEIGHBOURS;
    if (is_inside(site, base) || !step_of(site, index, &left, &step) || (step != 1 && step != -1))
        return ELSEWHERE;
    return ROW;
}

static bool is_plain(LLVMValueRef access)
{
    return !LLVMGetVolatile(access) && LLVMGetOrdering(access) == LLVMAtomicOrderingNotAtomic;
}

/* Whether it is an access or a computation that may be done for several turns at once. */
static bool is_tame(LLVMValueRef value)
{
    if (LLVMIsALoadInst(value) || LLVMIsAStoreInst(value))
        return is_plain(value) && LLVMGetTypeKind(accessed_type(value)) != LLVMVectorTypeKind;
    if (LLVMIsACallInst(value))
        return sp_ir_is_intrinsic(value, "llvm.");
    return !LLVMIsAAtomicRMWInst(value) && !LLVMIsAAtomicCmpXchgInst(value) &&
           !LLVMIsAFenceInst(value) && LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMVectorTypeKind;
}

/* The bytes of the largest number that lies in rows; 0 where the loop is not worth it. */
static unsigned row_bytes(const struct site *site)
{
    unsigned size = 0, rows = 0, largest = 0;
    SP_BITS_EACH(b, &site->loop->blocks)
    for (LLVMValueRef value = LLVMGetFirstInstruction(site->graph->blocks[b]); value;
         value = LLVMGetNextInstruction(value)) {
        if (++size > LOOP_LIMIT || !is_tame(value) || LLVMIsAStoreInst(value))
            return 0;
        if (!LLVMIsALoadInst(value))
            continue;
        unsigned bytes = (unsigned)LLVMABISizeOfType(site->sizes, LLVMTypeOf(value));
        if ((bytes != 4 && bytes != 8) || along_of(site, value) != ROW)
            continue;
        rows++;
        largest = bytes > largest ? bytes : largest;
    }
    return rows <= MOST_ROWS ? largest : 0;
}

/* Whether work-items write rows in the loop, and all that they access there lies in rows. */
static bool writes_rows(const struct site *site)
{
    unsigned rows = 0, operations = 0;
    bool writes = false;
    SP_BITS_EACH(b, &site->loop->blocks)
    for (LLVMValueRef value = LLVMGetFirstInstruction(site->graph->blocks[b]); value;
         value = LLVMGetNextInstruction(value)) {
        bool store = LLVMIsAStoreInst(value);
        if (!is_tame(value))
            return false;
        if (!store && !LLVMIsALoadInst(value)) {
            operations += (LLVMIsABinaryOperator(value) || LLVMIsACallInst(value)) &&
                          LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind;
            continue;
        }
        enum along along = along_of(site, value);
        if (along == NEIGHBOURS || along == ELSEWHERE)
            return false;
        rows += along == ROW;
        writes |= store && along == ROW;
    }
    return writes && operations < OPERATIONS_PER_ACCESS * rows;
}

/* An innermost loop that all work-items take together, left at the end of a turn. */
static bool is_shared(const struct site *site, uint32_t number, uint32_t *latch)
{
    const struct sp_wg_graph *graph = site->graph;
    *latch = SP_WG_NONE;
    for (uint32_t i = 0; i < graph->num_loops; i++)
        if (graph->loops[i].parent == number)
            return false;
    SP_BITS_EACH(b, &site->loop->blocks)
    {
        if (sp_bits_has(&site->uniformity->parted, b))
            return false;
        if (!sp_wg_leads_to(graph, b, site->loop->header))
            continue;
        if (*latch != SP_WG_NONE)
            return false;
        *latch = b;
    }
    return *latch != SP_WG_NONE;
}

/* Whether the kernel has such loops; with `mark`, they are marked for the unroller, and all others
 * against it. */
static bool find_rows(LLVMModuleRef module, LLVMValueRef kernel, uint32_t vector_bits, bool mark)
{
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
    LLVMContextRef context = LLVMGetModuleContext(module);
    unsigned kind = LLVMGetMDKindIDInContext(context, "llvm.loop", 9);
    bool any = false;
    if (sp_wg_has_switch(kernel))
        return false;
    sp_wg_graph_init(&graph, kernel);
    sp_wg_uniformity_init(&uniformity, &graph, NULL, sp_wg_agreement_pays(kernel));
    for (uint32_t l = 0; l < graph.num_loops && !graph.irreducible; l++) {
        struct site site = {&graph, &uniformity, &graph.loops[l], LLVMGetModuleDataLayout(module)};
        uint32_t latch;
        unsigned bytes = is_shared(&site, l, &latch) ? row_bytes(&site) : 0;
        LLVMValueRef end =
            latch == SP_WG_NONE ? NULL : LLVMGetBasicBlockTerminator(graph.blocks[latch]);
        if (bytes && end && !LLVMGetMetadata(end, kind)) {
            any = true;
            if (mark)
                sp_wg_mark_partly_unrolled_loop(context, end, vector_bits / 8 / bytes);
        }
        if (mark)
            sp_wg_mark_own_loop(&graph, &graph.loops[l], sp_wg_mark_rolled_loop);
    }
    sp_wg_uniformity_finish(&uniformity, &graph);
    sp_wg_graph_finish(&graph);
    return any;
}

bool sp_wg_writes_rows(LLVMValueRef kernel)
{
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
    LLVMTargetDataRef sizes = LLVMGetModuleDataLayout(LLVMGetGlobalParent(kernel));
    bool writes = false, barrier = false;
    if (sp_wg_has_switch(kernel))
        return false;
    sp_wg_graph_init(&graph, kernel);
    sp_wg_uniformity_init(&uniformity, &graph, NULL, sp_wg_agreement_pays(kernel));
    for (uint32_t b = 0; b < graph.num_blocks; b++)
        for (LLVMValueRef value = LLVMGetFirstInstruction(graph.blocks[b]); value;
             value = LLVMGetNextInstruction(value))
            barrier |= sp_ir_calls(value, SP_BARRIER_NAME);
    for (uint32_t l = 0; l < graph.num_loops && !graph.irreducible && !barrier; l++) {
        struct site site = {&graph, &uniformity, &graph.loops[l], sizes};
        uint32_t latch;
        writes |= is_shared(&site, l, &latch) && writes_rows(&site);
    }
    sp_wg_uniformity_finish(&uniformity, &graph);
    sp_wg_graph_finish(&graph);
    return writes;
}

char *sp_wg_widen_row_turns(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count,
                            uint32_t vector_bits, LLVMTargetMachineRef machine)
{
    LLVMValueRef *found = sp_cc_allocate(count * sizeof(LLVMValueRef));
    size_t num_found = 0;
    char *error = NULL;
    for (size_t i = 0; i < count; i++)
        if (find_rows(module, kernels[i], vector_bits, false))
            found[num_found++] = kernels[i];
    if (num_found) {
        sp_wg_leave_others(module, found, num_found, true);
        error = sp_ir_run_passes(module, TO_COUNTERS, machine);
        for (size_t i = 0; i < num_found; i++)
            find_rows(module, found[i], vector_bits, true);
        if (!error)
            error = sp_ir_run_passes(module, TO_TURNS, machine);
        for (size_t i = 0; i < num_found; i++)
            sp_wg_unmark_own_loops(found[i]);
        sp_wg_leave_others(module, found, num_found, false);
    }
    free(found);
    return error;
}
