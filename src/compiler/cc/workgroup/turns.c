/* See turns.h. In
 *
 *     for (i = get_local_id(0); i < n; i += get_local_size(0))
 *
 * each work-item leaves at its own time, and so would need a counter of its own. But all of them
 * take nearly all turns together. Here `u`, i in the first work-item, is the same for all, and i is
 * u + d, where d, from 0 to `span`, is known from the ids. The loop becomes
 *
 *     for (u = first; u < n && n - u > span; u += step)     the common turns, with i = u + d
 *     for (i = u + d; i < n; i += step)                     the rest, as it was
 *
 * The invariant: each work-item takes the same turns with the same values in the same order as
 * before; the question of the first loop only implies that of the second. So nothing is asked of
 * start, bound or step but that start is affine in the ids and step and bound are uniform in each
 * turn: where i wraps around, or the bound changes, the first loop ends early at worst. That
 * u + d does not wrap in a common turn follows from its question, and makes an access at i
 * contiguous.
 *
 * Where the numbers are known, the rest is at most one turn for each work-item, and becomes a
 * branch; and a single common turn becomes straight code. Only these are made of loops that some
 * work-items enter without others. docs/common-turns.md has the proofs.
 *
 * Runs on SSA form, before loops are rotated (special.c) and values get variables (prepare.c). */
#include "compiler/cc/workgroup/turns.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/affine.h"
#include "compiler/cc/workgroup/analyse.h"

#include <string.h>

/* Instructions of a loop that is copied, and by which a kernel grows: beyond that, a loop's own
 * work outweighs what its counters cost. */
#define LOOP_LIMIT 512u
#define KERNEL_LIMIT 4096u

/* Common turns that are counted out where all is known. */
#define MOST_TURNS 4096u

#define REST_KIND "samepage.rest"

/* A loop, and what was found out about it. */
struct site {
    LLVMModuleRef module;
    LLVMContextRef context;
    const uint64_t *known;
    const struct sp_wg_graph *graph;
    const struct sp_wg_uniformity *uniformity;
    const struct sp_wg_loop *loop;
    uint32_t before, header, latch, inside, outside; /* blocks; the last two follow the header */
    LLVMValueRef counter;                            /* the header's PHI i */
    LLVMValueRef start, next, step, bound;
    LLVMValueRef condition;
    LLVMIntPredicate stays; /* counter `stays` bound: ULT, ULE, SLT or SLE */
    LLVMOpcode widened;     /* ZExt or SExt where the counter is compared in more bits, else 0 */
    struct sp_wg_affine distance;
    bool one_left; /* after the common turns, each work-item takes one more at most */
    bool counted;  /* there are just `turns` common turns */
    unsigned turns;
};

/* A copy of a loop's blocks. */
struct copy {
    const struct site *site;
    struct sp_map values; /* of the loop to what stands for it */
    struct sp_map blocks;
};

bool sp_wg_is_rest(LLVMValueRef latch)
{
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(latch));
    return LLVMGetMetadata(latch, LLVMGetMDKindIDInContext(context, REST_KIND, strlen(REST_KIND)));
}

static void mark_rest(const struct site *site)
{
    LLVMValueRef latch = LLVMGetBasicBlockTerminator(site->graph->blocks[site->latch]);
    LLVMSetMetadata(
        latch, LLVMGetMDKindIDInContext(site->context, REST_KIND, strlen(REST_KIND)),
        LLVMMetadataAsValue(site->context, LLVMMDNodeInContext2(site->context, NULL, 0)));
}

/* The values that enter a PHI of the header: from outside, and over the latch. */
static LLVMValueRef entering(const struct site *site, LLVMValueRef phi, bool from_inside)
{
    LLVMBasicBlockRef from = site->graph->blocks[from_inside ? site->latch : site->before];
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingBlock(phi, i) == from)
            return LLVMGetIncomingValue(phi, i);
    return NULL;
}

static LLVMBasicBlockRef header_of(const struct site *site)
{
    return site->graph->blocks[site->header];
}

static bool is_in_header(const struct site *site, LLVMValueRef value)
{
    return LLVMIsAInstruction(value) && LLVMGetInstructionParent(value) == header_of(site);
}

/* The first instruction of a block that is no PHI. */
static LLVMValueRef behind_phis(LLVMBasicBlockRef block)
{
    LLVMValueRef value = LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(value))
        value = LLVMGetNextInstruction(value);
    return value;
}

/* One way in, one way back, and one way out, at the end of the header. */
static bool has_shape(struct site *site)
{
    const struct sp_wg_graph *graph = site->graph;
    const struct sp_bits *blocks = &site->loop->blocks;
    site->header = site->loop->header;
    site->before = site->latch = SP_WG_NONE;
    SP_WG_EACH_PREDECESSOR(b, graph, site->header)
    {
        uint32_t *found = sp_bits_has(blocks, *b) ? &site->latch : &site->before;
        if (*found != SP_WG_NONE)
            return false;
        *found = *b;
    }
    if (site->before == SP_WG_NONE || site->latch == site->header)
        return false;
    SP_BITS_EACH(b, blocks)
    for (unsigned s = 0; s < 2; s++) {
        uint32_t to = graph->successors[b][s];
        if (to == SP_WG_NONE ? s == 0 : b != site->header && !sp_bits_has(blocks, to))
            return false;
    }
    const uint32_t *to = graph->successors[site->header];
    if (to[1] == SP_WG_NONE || sp_bits_has(blocks, to[0]) == sp_bits_has(blocks, to[1]) ||
        graph->successors[site->before][0] == graph->successors[site->before][1])
        return false;
    site->inside = to[!sp_bits_has(blocks, to[0])];
    site->outside = to[sp_bits_has(blocks, to[0])];
    return site->inside != site->header;
}

/* The header runs once more than the turns: only what may run twice is in it. */
static bool header_is_harmless(const struct site *site)
{
    LLVMValueRef value = behind_phis(header_of(site)),
                 end = LLVMGetBasicBlockTerminator(header_of(site));
    for (; value != end; value = LLVMGetNextInstruction(value)) {
        switch (LLVMGetInstructionOpcode(value)) {
        case LLVMStore:
        case LLVMFence:
        case LLVMAtomicRMW:
        case LLVMAtomicCmpXchg:
        case LLVMAlloca:
            return false;
        case LLVMLoad:
            if (LLVMGetVolatile(value) || LLVMGetOrdering(value) != LLVMAtomicOrderingNotAtomic)
                return false;
            break;
        case LLVMCall:
            if (!sp_ir_is_intrinsic(value, "__sp_local_") && !sp_ir_is_intrinsic(value, "__sp_g") &&
                !sp_ir_is_intrinsic(value, "__sp_enqueued_") &&
                !sp_ir_is_intrinsic(value, "__sp_num_"))
                return false;
            break;
        default:
            break;
        }
    }
    return true;
}

static bool is_less(LLVMIntPredicate predicate)
{
    return predicate == LLVMIntULT || predicate == LLVMIntULE || predicate == LLVMIntSLT ||
           predicate == LLVMIntSLE;
}

static bool is_signed(LLVMIntPredicate predicate)
{
    return predicate == LLVMIntSLT || predicate == LLVMIntSLE;
}

static bool with_equal(LLVMIntPredicate predicate)
{
    return predicate == LLVMIntULE || predicate == LLVMIntSLE;
}

/* The PHI of the header that `value` is, or is widened from. */
static LLVMValueRef counter_in(const struct site *site, LLVMValueRef value, LLVMOpcode *widened)
{
    *widened = (LLVMOpcode)0;
    if (LLVMIsAZExtInst(value) || LLVMIsASExtInst(value)) {
        *widened = LLVMGetInstructionOpcode(value);
        value = LLVMGetOperand(value, 0);
    }
    return LLVMIsAPHINode(value) && is_in_header(site, value) ? value : NULL;
}

static bool takes_question(struct site *site)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(header_of(site));
    site->condition = LLVMGetCondition(end);
    if (!LLVMIsAICmpInst(site->condition))
        return false;
    LLVMValueRef left = LLVMGetOperand(site->condition, 0),
                 right = LLVMGetOperand(site->condition, 1);
    if (LLVMGetTypeKind(LLVMTypeOf(left)) != LLVMIntegerTypeKind)
        return false;
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(site->condition);
    site->counter = counter_in(site, left, &site->widened);
    site->bound = right;
    if (!site->counter || sp_wg_is_divergent(site->uniformity, right)) {
        site->counter = counter_in(site, right, &site->widened);
        site->bound = left;
        predicate = sp_ir_swapped(predicate);
    }
    if (LLVMGetSuccessor(end, 0) != site->graph->blocks[site->inside])
        predicate = sp_ir_opposite(predicate);
    site->stays = predicate;
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(left));
    return site->counter && is_less(predicate) && (width == 32 || width == 64) &&
           !sp_wg_is_divergent(site->uniformity, site->bound);
}

static bool takes_steps(struct site *site)
{
    site->start = entering(site, site->counter, false);
    site->next = entering(site, site->counter, true);
    if (!site->start || !LLVMIsAInstruction(site->next) ||
        LLVMGetInstructionOpcode(site->next) != LLVMAdd)
        return false;
    bool first = LLVMGetOperand(site->next, 0) == site->counter;
    if (!first && LLVMGetOperand(site->next, 1) != site->counter)
        return false;
    site->step = LLVMGetOperand(site->next, first);
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(site->counter));
    return site->step != site->counter && !sp_wg_is_divergent(site->uniformity, site->step) &&
           sp_wg_affine_of(site->uniformity, site->start, &site->distance) &&
           sp_wg_affine_reach(&site->distance, site->known) <
               (UINT64_C(1) << (width > 32 ? 31 : width - 1));
}

/* Counts common turns from `first`, and says whether what is left is one turn at most. */
static void count(struct site *site, uint64_t first, uint64_t step, uint64_t bound)
{
    uint64_t span = sp_wg_affine_reach(&site->distance, site->known),
             more = with_equal(site->stays);
    uint64_t at = first;
    site->turns = 0;
    while (site->turns < MOST_TURNS && at < bound + more && bound + more - at > span) {
        at += step;
        site->turns++;
    }
    site->counted = site->turns < MOST_TURNS;
    site->one_left = site->counted && (at >= bound + more || bound + more - at <= step);
}

/* What follows from numbers that are known. Nothing wraps where the sum of all is below half of the
 * counter's range. */
static void look_at_numbers(struct site *site)
{
    uint64_t first, bound;
    struct sp_wg_multiple step;
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(site->counter));
    uint64_t limit = UINT64_C(1) << (width > 32 ? 62 : width - 1);
    uint64_t span = sp_wg_affine_reach(&site->distance, site->known);
    if (!sp_wg_first_number(site->start, &first) || !sp_wg_multiple_of(site->step, &step))
        return;
    uint64_t most = sp_wg_most_of(&step, site->known);
    bool flagged = is_signed(site->stays) ? LLVMGetNSW(site->next) : LLVMGetNUW(site->next);
    bool bounded = sp_wg_first_number(site->bound, &bound) && first + most + span < limit &&
                   bound + 1 + most + span < limit;
    if (bounded && site->known && most)
        count(site, first, most, bound);
    if ((bounded || (flagged && !site->widened && first + span < limit)) && most)
        site->one_left |=
            (site->known && span < most) || sp_wg_affine_fills(&site->distance, &step, site->known);
}

static unsigned size_of(const struct site *site)
{
    unsigned size = 0;
    SP_BITS_EACH(b, &site->loop->blocks)
    for (LLVMValueRef value = LLVMGetFirstInstruction(site->graph->blocks[b]); value;
         value = LLVMGetNextInstruction(value))
        size++;
    return size;
}

/* Whether common turns can be taken out of the loop, and are worth it. */
static bool is_site(struct site *site)
{
    if (!has_shape(site) ||
        sp_wg_is_rest(LLVMGetBasicBlockTerminator(site->graph->blocks[site->latch])) ||
        !sp_bits_has(&site->uniformity->branches, site->header) || size_of(site) > LOOP_LIMIT ||
        !header_is_harmless(site) || !takes_question(site) || !takes_steps(site))
        return false;
    look_at_numbers(site);
    /* Entered by some, the common turns are no loop for all; straight code is no worse. */
    bool apart = false;
    SP_BITS_EACH(b, &site->uniformity->branches)
    apart |= b != site->header &&
             sp_bits_has(sp_wg_influence_of(site->uniformity, b), site->header) &&
             !sp_bits_has(&site->loop->blocks, b);
    return !apart || (site->counted && site->one_left && site->turns <= 1);
}

static LLVMValueRef stands_for(const struct copy *copy, LLVMValueRef value)
{
    LLVMValueRef other = sp_map_get(&copy->values, value);
    return other ? other : value;
}

static LLVMBasicBlockRef block_for(const struct copy *copy, LLVMBasicBlockRef block)
{
    LLVMBasicBlockRef other = sp_map_get(&copy->blocks, block);
    return other ? other : block;
}

static LLVMBasicBlockRef new_block(const struct site *site, const char *name)
{
    return LLVMInsertBasicBlockInContext(site->context, header_of(site), name);
}

/* Copies the header's instructions to the builder, those that `wanted` names (or all) and that
 * nothing stands for yet. */
static void copy_header(struct copy *copy, LLVMBuilderRef builder, const struct sp_map *wanted)
{
    LLVMBasicBlockRef header = header_of(copy->site);
    LLVMValueRef value = behind_phis(header), end = LLVMGetBasicBlockTerminator(header);
    for (; value != end; value = LLVMGetNextInstruction(value)) {
        if ((wanted && !sp_map_get(wanted, value)) || sp_map_get(&copy->values, value))
            continue;
        LLVMValueRef clone = LLVMInstructionClone(value);
        for (int i = 0; i < LLVMGetNumOperands(value); i++)
            LLVMSetOperand(clone, (unsigned)i,
                           stands_for(copy, LLVMGetOperand(value, (unsigned)i)));
        LLVMInsertIntoBuilder(builder, clone);
        sp_map_set(&copy->values, value, clone);
    }
}

static void clone_block(struct copy *copy, LLVMBuilderRef builder, LLVMBasicBlockRef block)
{
    LLVMPositionBuilderAtEnd(builder, block_for(copy, block));
    for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
         value = LLVMGetNextInstruction(value)) {
        LLVMValueRef clone;
        if (LLVMIsAPHINode(value)) {
            clone = LLVMBuildPhi(builder, LLVMTypeOf(value), "");
        } else {
            clone = LLVMInstructionClone(value);
            LLVMInsertIntoBuilder(builder, clone);
        }
        sp_map_set(&copy->values, value, clone);
    }
}

/* Lets a cloned block use the clones. */
static void connect_block(const struct copy *copy, LLVMBasicBlockRef block)
{
    for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
         value = LLVMGetNextInstruction(value)) {
        LLVMValueRef clone = sp_map_get(&copy->values, value);
        if (LLVMIsAPHINode(value)) {
            for (unsigned i = 0; i < LLVMCountIncoming(value); i++) {
                LLVMValueRef from = stands_for(copy, LLVMGetIncomingValue(value, i));
                LLVMBasicBlockRef way = block_for(copy, LLVMGetIncomingBlock(value, i));
                LLVMAddIncoming(clone, &from, &way, 1);
            }
            continue;
        }
        if (LLVMIsATerminatorInst(value)) {
            for (unsigned s = 0; s < LLVMGetNumSuccessors(value); s++)
                LLVMSetSuccessor(clone, s, block_for(copy, LLVMGetSuccessor(value, s)));
            if (LLVMIsABranchInst(value) && LLVMIsConditional(value))
                LLVMSetCondition(clone, stands_for(copy, LLVMGetCondition(value)));
            continue;
        }
        for (int i = 0; i < LLVMGetNumOperands(value); i++)
            LLVMSetOperand(clone, (unsigned)i,
                           stands_for(copy, LLVMGetOperand(value, (unsigned)i)));
    }
}

/* A turn of the loop that begins at the end of `head`, where values that stand for the header's
 * PHIs are ready, and ends with a branch to `back`. */
static void copy_turn(struct copy *copy, LLVMBuilderRef builder, LLVMBasicBlockRef head,
                      LLVMBasicBlockRef back)
{
    const struct site *site = copy->site;
    const struct sp_wg_graph *graph = site->graph;
    LLVMPositionBuilderAtEnd(builder, head);
    copy_header(copy, builder, NULL);
    SP_BITS_EACH(b, &site->loop->blocks)
    if (b != site->header)
        sp_map_set(&copy->blocks, graph->blocks[b], new_block(site, ""));
    SP_BITS_EACH(b, &site->loop->blocks)
    if (b != site->header)
        clone_block(copy, builder, graph->blocks[b]);
    /* Inside, the header is where the turn came from; at its end, where it goes. */
    sp_map_set(&copy->blocks, header_of(site), head);
    SP_BITS_EACH(b, &site->loop->blocks)
    if (b != site->header)
        connect_block(copy, graph->blocks[b]);
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block_for(copy, graph->blocks[site->latch]));
    for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++)
        if (LLVMGetSuccessor(end, s) == head)
            LLVMSetSuccessor(end, s, back);
    LLVMPositionBuilderAtEnd(builder, head);
    LLVMBuildBr(builder, block_for(copy, graph->blocks[site->inside]));
}

/* What the header computes for `value`. */
static void want(const struct site *site, struct sp_map *wanted, LLVMValueRef value)
{
    if (!is_in_header(site, value) || LLVMIsAPHINode(value) || sp_map_get(wanted, value))
        return;
    sp_map_set(wanted, value, value);
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        want(site, wanted, LLVMGetOperand(value, (unsigned)i));
}

/* Whether all work-items stay for one more turn, from the first one's counter `at`. */
static LLVMValueRef build_question(const struct site *site, LLVMBuilderRef builder, LLVMValueRef at,
                                   LLVMValueRef bound, LLVMValueRef span)
{
    LLVMTypeRef narrow = LLVMTypeOf(at), wide = LLVMTypeOf(bound);
    LLVMValueRef value = at, fits = NULL;
    if (site->widened) {
        bool extended = site->widened == LLVMSExt;
        unsigned width = LLVMGetIntTypeWidth(narrow);
        LLVMValueRef last =
            LLVMConstInt(narrow, (UINT64_C(1) << (width - (extended ? 1 : 0))) - 1, false);
        last = LLVMBuildSub(builder, last, LLVMBuildTrunc(builder, span, narrow, ""), "");
        fits = LLVMBuildICmp(builder, extended ? LLVMIntSLE : LLVMIntULE, at, last, "");
        value =
            extended ? LLVMBuildSExt(builder, at, wide, "") : LLVMBuildZExt(builder, at, wide, "");
    }
    LLVMValueRef first = LLVMBuildICmp(builder, site->stays, value, bound, "");
    LLVMValueRef left = LLVMBuildSub(builder, bound, value, "");
    LLVMValueRef all =
        LLVMBuildICmp(builder, with_equal(site->stays) ? LLVMIntUGE : LLVMIntUGT, left, span, "");
    all = LLVMBuildAnd(builder, first, all, "");
    return fits ? LLVMBuildAnd(builder, all, fits, "") : all;
}

/* The counter of the work-item that runs, of which `at` is the first one's. In a common turn it
 * does not wrap. */
static LLVMValueRef build_counter(const struct site *site, LLVMBuilderRef builder, LLVMValueRef at,
                                  bool common)
{
    LLVMValueRef distance =
        sp_wg_affine_distance(builder, site->module, &site->distance, LLVMTypeOf(at));
    LLVMValueRef counter = LLVMBuildAdd(builder, at, distance, "");
    bool extended = site->widened ? site->widened == LLVMSExt : is_signed(site->stays);
    if (LLVMIsAInstruction(counter) && common) {
        LLVMSetNSW(counter, extended || site->counted);
        LLVMSetNUW(counter, !extended || site->counted);
    }
    return counter;
}

/* Where the loop is entered from now on, and the values that its PHIs then have. */
struct entry {
    LLVMBasicBlockRef block;
    struct sp_map values;
};

static void enter_from(const struct site *site, LLVMBasicBlockRef to)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(site->graph->blocks[site->before]);
    for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++)
        if (LLVMGetSuccessor(end, s) == header_of(site))
            LLVMSetSuccessor(end, s, to);
}

/* The loop of common turns, before the rest. */
static void build_common(const struct site *site, LLVMBuilderRef builder, struct entry *entry)
{
    struct copy copy = {.site = site};
    struct sp_map wanted = {0};
    LLVMBasicBlockRef before = site->graph->blocks[site->before];
    LLVMBasicBlockRef common = new_block(site, "common"), turn = new_block(site, "turn");
    LLVMPositionBuilderBefore(builder, LLVMGetBasicBlockTerminator(before));
    LLVMValueRef first = sp_wg_affine_first(builder, site->uniformity, site->start);
    LLVMValueRef span = sp_wg_affine_span(builder, site->module, &site->distance,
                                          LLVMTypeOf(site->bound), site->known);
    enter_from(site, common);
    LLVMPositionBuilderAtEnd(builder, common);
    LLVMValueRef at = LLVMBuildPhi(builder, LLVMTypeOf(site->counter), "");
    LLVMValueRef phi = LLVMGetFirstInstruction(header_of(site));
    for (; LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi))
        if (phi != site->counter)
            sp_map_set(&copy.values, phi, LLVMBuildPhi(builder, LLVMTypeOf(phi), ""));
    want(site, &wanted, site->bound);
    copy_header(&copy, builder, &wanted);
    LLVMValueRef all = build_question(site, builder, at, stands_for(&copy, site->bound), span);
    LLVMBuildCondBr(builder, all, turn, entry->block);
    LLVMPositionBuilderAtEnd(builder, turn);
    sp_map_set(&copy.values, site->counter, build_counter(site, builder, at, true));
    copy_turn(&copy, builder, turn, common);
    LLVMBasicBlockRef latch = block_for(&copy, site->graph->blocks[site->latch]);
    LLVMPositionBuilderBefore(builder, LLVMGetBasicBlockTerminator(latch));
    LLVMValueRef next = LLVMBuildAdd(builder, at, stands_for(&copy, site->step), "");
    LLVMAddIncoming(at, &first, &before, 1);
    LLVMAddIncoming(at, &next, &latch, 1);
    for (phi = LLVMGetFirstInstruction(header_of(site)); LLVMIsAPHINode(phi);
         phi = LLVMGetNextInstruction(phi)) {
        if (phi == site->counter)
            continue;
        LLVMValueRef own = sp_map_get(&copy.values, phi), from = entering(site, phi, false);
        LLVMAddIncoming(own, &from, &before, 1);
        from = stands_for(&copy, entering(site, phi, true));
        LLVMAddIncoming(own, &from, &latch, 1);
        sp_map_set(&entry->values, phi, own);
    }
    LLVMPositionBuilderAtEnd(builder, entry->block);
    sp_map_set(&entry->values, site->counter, build_counter(site, builder, at, site->counted));
    sp_map_finish(&wanted);
    sp_map_finish(&copy.values);
    sp_map_finish(&copy.blocks);
}

/* The single common turn, as straight code before the rest. */
static void build_turn(const struct site *site, LLVMBuilderRef builder, struct entry *entry)
{
    struct copy copy = {.site = site};
    LLVMBasicBlockRef turn = new_block(site, "turn");
    LLVMValueRef phi = LLVMGetFirstInstruction(header_of(site));
    for (; LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi))
        sp_map_set(&copy.values, phi, entering(site, phi, false));
    enter_from(site, turn);
    copy_turn(&copy, builder, turn, entry->block);
    for (phi = LLVMGetFirstInstruction(header_of(site)); LLVMIsAPHINode(phi);
         phi = LLVMGetNextInstruction(phi))
        sp_map_set(&entry->values, phi, stands_for(&copy, entering(site, phi, true)));
    sp_map_finish(&copy.values);
    sp_map_finish(&copy.blocks);
}

/* The header's PHIs again, with the values with which the rest begins. */
static void rebuild_phis(const struct site *site, LLVMBuilderRef builder, const struct entry *entry)
{
    LLVMBasicBlockRef latch = site->graph->blocks[site->latch];
    LLVMValueRef next, first = LLVMGetFirstInstruction(header_of(site));
    for (LLVMValueRef phi = first; LLVMIsAPHINode(phi); phi = next) {
        next = LLVMGetNextInstruction(phi);
        LLVMValueRef begin = sp_map_get(&entry->values, phi), again = entering(site, phi, true);
        LLVMPositionBuilderBefore(builder, phi);
        LLVMValueRef rebuilt = LLVMBuildPhi(builder, LLVMTypeOf(phi), "");
        again = again == phi ? rebuilt : again;
        LLVMBasicBlockRef from = entry->block;
        LLVMAddIncoming(rebuilt, &begin, &from, 1);
        LLVMAddIncoming(rebuilt, &again, &latch, 1);
        LLVMReplaceAllUsesWith(phi, rebuilt);
        LLVMInstructionEraseFromParent(phi);
    }
}

/* No loop any more: behind its turn a work-item goes to what follows, by a copy of the header whose
 * question is not asked. */
static void end_after_turn(const struct site *site, LLVMBuilderRef builder,
                           const struct entry *entry)
{
    struct copy copy = {.site = site};
    LLVMBasicBlockRef latch = site->graph->blocks[site->latch],
                      outside = site->graph->blocks[site->outside];
    LLVMBasicBlockRef done = new_block(site, "done");
    LLVMMoveBasicBlockAfter(done, latch);
    LLVMValueRef next, phi = LLVMGetFirstInstruction(header_of(site));
    for (; LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi))
        sp_map_set(&copy.values, phi, entering(site, phi, true));
    LLVMPositionBuilderAtEnd(builder, done);
    copy_header(&copy, builder, NULL);
    LLVMBuildBr(builder, outside);
    for (phi = LLVMGetFirstInstruction(outside); LLVMIsAPHINode(phi);
         phi = LLVMGetNextInstruction(phi))
        for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
            if (LLVMGetIncomingBlock(phi, i) == header_of(site)) {
                LLVMValueRef value = stands_for(&copy, LLVMGetIncomingValue(phi, i));
                LLVMAddIncoming(phi, &value, &done, 1);
                break;
            }
    LLVMValueRef end = LLVMGetBasicBlockTerminator(latch);
    for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++)
        if (LLVMGetSuccessor(end, s) == header_of(site))
            LLVMSetSuccessor(end, s, done);
    for (phi = LLVMGetFirstInstruction(header_of(site)); LLVMIsAPHINode(phi); phi = next) {
        next = LLVMGetNextInstruction(phi);
        LLVMReplaceAllUsesWith(phi, sp_map_get(&entry->values, phi));
        LLVMInstructionEraseFromParent(phi);
    }
    sp_map_finish(&copy.values);
    sp_map_finish(&copy.blocks);
}

/* What the loop's PHIs are where no turn is taken out. */
static void enter_as_before(const struct site *site, struct entry *entry)
{
    LLVMValueRef phi = LLVMGetFirstInstruction(header_of(site));
    entry->block = site->graph->blocks[site->before];
    for (; LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi))
        sp_map_set(&entry->values, phi, entering(site, phi, false));
}

static void transform(const struct site *site)
{
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(site->context);
    struct entry entry = {0};
    if (site->counted && site->turns == 0) {
        enter_as_before(site, &entry);
    } else {
        entry.block = new_block(site, "rest");
        if (site->counted && site->turns == 1)
            build_turn(site, builder, &entry);
        else
            build_common(site, builder, &entry);
        LLVMPositionBuilderAtEnd(builder, entry.block);
        LLVMBuildBr(builder, header_of(site));
    }
    if (site->one_left) {
        end_after_turn(site, builder, &entry);
    } else {
        mark_rest(site);
        rebuild_phis(site, builder, &entry);
    }
    sp_map_finish(&entry.values);
    LLVMDisposeBuilder(builder);
}

/* The outermost loops come first: what is taken out of them has inner ones, too. Returns the size
 * of the loop that was changed, or 0. */
static unsigned share_one(LLVMModuleRef module, LLVMValueRef kernel, const uint64_t *known)
{
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
    struct site found = {0};
    bool agrees = sp_wg_agreement_pays(kernel);
    sp_wg_graph_init(&graph, kernel);
    if (graph.num_loops && !graph.irreducible) {
        sp_wg_uniformity_init(&uniformity, &graph, NULL, agrees);
        for (uint32_t l = 0; l < graph.num_loops; l++) {
            struct site site = {.module = module,
                                .context = LLVMGetModuleContext(module),
                                .known = known,
                                .graph = &graph,
                                .uniformity = &uniformity,
                                .loop = &graph.loops[l]};
            if (is_site(&site) && (!found.loop || sp_bits_count(&site.loop->blocks) >
                                                      sp_bits_count(&found.loop->blocks)))
                found = site;
        }
    }
    unsigned size = found.loop ? size_of(&found) : 0;
    if (found.loop)
        transform(&found);
    if (graph.num_loops && !graph.irreducible)
        sp_wg_uniformity_finish(&uniformity, &graph);
    sp_wg_graph_finish(&graph);
    return size;
}

bool sp_wg_share_turns(LLVMModuleRef module, LLVMValueRef kernel, const uint64_t *known)
{
    unsigned grown = 0, size;
    while (grown < KERNEL_LIMIT && (size = share_one(module, kernel, known)) > 0)
        grown += size;
    return grown > 0;
}
