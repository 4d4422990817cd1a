/* See strips.h. The rules, for a strip of W work-items whose first value a of an operand is a
 * multiple of W and grows by one, so that the low bits number the work-items:
 *
 *   a & m    grows by one where m's low bits are all set, and is one for all where they are clear
 *   a ^ m, a | m, a % m    grow by one where m is a multiple of W
 *   a / m, a >> k          are one for all where m is, and where W is at most 1 << k
 *
 * and each result but the last two is a multiple of W again. Which of the two is asked of a mask is
 * guessed from how it is written. Sums and products with constants keep slopes modulo the width of
 * their type; a wider type may only be given to what cannot carry: to multiples of W that grow by
 * one or not at all.
 *
 * Called by emit.c, which asks the questions before the loop over work-items. */
#include "compiler/cc/workgroup/strips.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/agree.h"
#include "compiler/cc/workgroup/numbers.h"

#include <stdlib.h>
#include <string.h>

/* Of a region, which is emitted twice. */
#define MOST_INSTRUCTIONS 256u

#define NOTHING ((struct sp_wg_slope){0})

struct walk {
    struct sp_wg_strips *strips;
    bool pays, failed;
};

static unsigned width_of(LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    bool integer = LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64;
    return integer ? LLVMGetIntTypeWidth(type) : 0;
}

static uint64_t low_bits(const struct sp_wg_strips *strips)
{
    return strips->width - 1;
}

const struct sp_wg_slope *sp_wg_slope(const struct sp_wg_strips *strips, LLVMValueRef value)
{
    return sp_map_get(&strips->slopes, value);
}

static struct sp_wg_slope same(bool aligned, bool fixed)
{
    return (struct sp_wg_slope){.known = true, .aligned = aligned, .fixed = fixed};
}

static struct sp_wg_slope operand(const struct walk *walk, LLVMValueRef value)
{
    const struct sp_wg_slope *known = sp_map_get(&walk->strips->slopes, value);
    struct sp_wg_slope slope = NOTHING;
    if (known)
        slope = *known;
    else if (LLVMIsAConstantInt(value) && width_of(value))
        slope = same(!(LLVMConstIntGetZExtValue(value) & low_bits(walk->strips)), true);
    else if (LLVMIsAArgument(value) && width_of(value))
        slope = same(false, true);
    slope.aligned |= slope.known && sp_map_get(&walk->strips->aligned, value);
    return slope;
}

static bool is_constant(LLVMValueRef value, uint64_t *number)
{
    if (!LLVMIsAConstantInt(value) || !width_of(value))
        return false;
    *number = LLVMConstIntGetZExtValue(value);
    return true;
}

/* --- Questions ------------------------------------------------------------------------------- */

static bool is_minus_one(LLVMValueRef value)
{
    return LLVMIsAConstantInt(value) && LLVMConstIntGetSExtValue(value) == -1;
}

/* Whether a mask is written as one of low bits: stride - 1, of which the stride goes to *stride, or
 * ~(-1 << bits), where that is NULL. */
static bool is_low_mask(LLVMValueRef mask, LLVMValueRef *stride)
{
    LLVMValueRef first = LLVMIsABinaryOperator(mask) ? LLVMGetOperand(mask, 0) : NULL;
    *stride = NULL;
    if (!first || !is_minus_one(LLVMGetOperand(mask, 1)))
        return false;
    if (LLVMGetInstructionOpcode(mask) == LLVMAdd)
        *stride = first;
    return *stride ||
           (LLVMGetInstructionOpcode(mask) == LLVMXor && LLVMIsABinaryOperator(first) &&
            LLVMGetInstructionOpcode(first) == LLVMShl && is_minus_one(LLVMGetOperand(first, 0)));
}

/* Notes the question. False where there are too many. */
static bool ask(struct walk *walk, LLVMValueRef value, enum sp_wg_strip_kind kind)
{
    struct sp_wg_strips *strips = walk->strips;
    for (unsigned i = 0; i < strips->num_questions; i++)
        if (strips->questions[i].value == value)
            return strips->questions[i].kind == kind;
    if (strips->num_questions == SP_WG_MOST_QUESTIONS)
        return false;
    strips->questions[strips->num_questions++] = (struct sp_wg_strip_question){value, kind};
    if (kind == SP_WG_LOW_ZEROS || kind == SP_WG_DIVISOR)
        sp_map_set(&strips->aligned, value, value);
    return true;
}

static bool grows_by_one(const struct sp_wg_slope *slope)
{
    return slope->known && slope->slope == 1 && slope->aligned;
}

/* An operation on a value that numbers the work-items of a strip and one that is the same for all:
 * the kind of the second for which the result is known. */
static bool kind_wanted(struct walk *walk, LLVMOpcode opcode, LLVMValueRef m,
                        enum sp_wg_strip_kind *kind)
{
    LLVMValueRef stride;
    switch (opcode) {
    case LLVMAnd:
        *kind = is_low_mask(m, &stride) ? SP_WG_LOW_ONES : SP_WG_LOW_ZEROS;
        if (*kind == SP_WG_LOW_ONES && stride)
            sp_map_set(&walk->strips->aligned, stride, stride);
        return true;
    case LLVMOr:
    case LLVMXor:
        *kind = SP_WG_LOW_ZEROS;
        return true;
    case LLVMUDiv:
    case LLVMURem:
        *kind = SP_WG_DIVISOR;
        return true;
    case LLVMLShr:
    case LLVMAShr:
        *kind = SP_WG_SHIFT;
        return true;
    default:
        return false;
    }
}

/* Whether a number is of that kind. */
static bool is_of_kind(const struct sp_wg_strips *strips, enum sp_wg_strip_kind kind,
                       uint64_t number)
{
    switch (kind) {
    case SP_WG_LOW_ONES:
        return (number & low_bits(strips)) == low_bits(strips);
    case SP_WG_LOW_ZEROS:
        return !(number & low_bits(strips));
    case SP_WG_DIVISOR:
        return number && !(number & low_bits(strips));
    default:
        return number < 64 && UINT64_C(1) << number >= strips->width;
    }
}

static struct sp_wg_slope with_question(struct walk *walk, LLVMOpcode opcode,
                                        const struct sp_wg_slope *of_m, LLVMValueRef m)
{
    enum sp_wg_strip_kind kind;
    uint64_t number = 0;
    bool constant = is_constant(m, &number);
    if (!of_m->known || of_m->slope || !kind_wanted(walk, opcode, m, &kind))
        return NOTHING;
    if (constant && opcode == LLVMAnd)
        kind = number & 1 ? SP_WG_LOW_ONES : SP_WG_LOW_ZEROS;
    if (constant ? !is_of_kind(walk->strips, kind, number) : !of_m->fixed || !ask(walk, m, kind))
        return NOTHING;
    struct sp_wg_slope slope = same(true, false);
    bool one = kind == SP_WG_SHIFT || opcode == LLVMUDiv;
    slope.slope = !one && !(opcode == LLVMAnd && kind == SP_WG_LOW_ZEROS);
    slope.aligned = !one;
    slope.asked = !constant;
    return slope;
}

/* --- Rules ----------------------------------------------------------------------------------- */

/* Both are the same for all work-items of a strip. */
static struct sp_wg_slope of_same(LLVMOpcode opcode, const struct sp_wg_slope *a,
                                  const struct sp_wg_slope *b, LLVMValueRef second, uint32_t width)
{
    uint64_t number;
    bool far;
    bool both = a->aligned && b->aligned, either = a->aligned || b->aligned;
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
    case LLVMXor:
        return same(both, a->fixed && b->fixed);
    case LLVMMul:
    case LLVMAnd:
        return same(either, a->fixed && b->fixed);
    case LLVMShl:
        far = is_constant(second, &number) && number < 64 && UINT64_C(1) << number >= width;
        return same(a->aligned || far, a->fixed && b->fixed);
    case LLVMLShr:
    case LLVMAShr:
        return same(false, a->fixed && b->fixed);
    case LLVMUDiv:
    case LLVMURem:
        /* Nothing that may trap: it may be computed where the source does not. */
        return is_constant(second, &number) && number ? same(false, a->fixed && b->fixed) : NOTHING;
    default:
        return NOTHING;
    }
}

static struct sp_wg_slope of_sum(LLVMOpcode opcode, const struct sp_wg_slope *a,
                                 const struct sp_wg_slope *b, LLVMValueRef first,
                                 LLVMValueRef second)
{
    uint64_t number;
    struct sp_wg_slope slope = {.known = true, .aligned = a->aligned && b->aligned};
    switch (opcode) {
    case LLVMAdd:
        slope.slope = a->slope + b->slope;
        return slope;
    case LLVMSub:
        slope.slope = a->slope - b->slope;
        return slope;
    case LLVMMul:
        if (is_constant(second, &number))
            slope.slope = a->slope * number;
        else if (is_constant(first, &number))
            slope.slope = b->slope * number;
        else
            return NOTHING;
        slope.aligned = a->aligned || b->aligned;
        return slope;
    case LLVMShl:
        if (!is_constant(second, &number) || number >= 64)
            return NOTHING;
        slope.slope = a->slope << number;
        slope.aligned = a->aligned;
        return slope;
    default:
        return NOTHING;
    }
}

static struct sp_wg_slope binary(struct walk *walk, LLVMValueRef value)
{
    LLVMValueRef first = LLVMGetOperand(value, 0), second = LLVMGetOperand(value, 1);
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    struct sp_wg_slope a = operand(walk, first), b = operand(walk, second), slope = NOTHING;
    bool either_way = opcode == LLVMAnd || opcode == LLVMOr || opcode == LLVMXor;
    bool disjoint = opcode == LLVMOr && LLVMGetIsDisjoint(value);
    if (!a.known || !b.known || !width_of(value))
        return NOTHING;
    if (!a.slope && !b.slope)
        slope = of_same(opcode, &a, &b, second, walk->strips->width);
    else if (disjoint)
        slope = of_sum(LLVMAdd, &a, &b, first, second);
    else if (grows_by_one(&a) && !b.slope)
        slope = with_question(walk, opcode, &b, second);
    else if (either_way && grows_by_one(&b) && !a.slope)
        slope = with_question(walk, opcode, &a, first);
    if (!slope.known && (a.slope || b.slope))
        slope = of_sum(opcode, &a, &b, first, second);
    slope.asked |= slope.known && (a.asked || b.asked);
    return slope;
}

static struct sp_wg_slope cast(const struct walk *walk, LLVMValueRef value)
{
    struct sp_wg_slope slope = operand(walk, LLVMGetOperand(value, 0));
    if (!slope.known || !width_of(value) || (slope.slope && width_of(value) < 16))
        return NOTHING;
    if (LLVMIsATruncInst(value) || !slope.slope || grows_by_one(&slope))
        return slope;
    return NOTHING;
}

static struct sp_wg_slope comparison(const struct walk *walk, LLVMValueRef value)
{
    struct sp_wg_slope a = operand(walk, LLVMGetOperand(value, 0)),
                       b = operand(walk, LLVMGetOperand(value, 1));
    if (!a.known || !b.known || a.slope || b.slope)
        return NOTHING;
    struct sp_wg_slope slope = same(false, a.fixed && b.fixed);
    slope.asked = a.asked || b.asked;
    return slope;
}

static struct sp_wg_slope choice(const struct walk *walk, LLVMValueRef value)
{
    struct sp_wg_slope c = operand(walk, LLVMGetOperand(value, 0)),
                       a = operand(walk, LLVMGetOperand(value, 1)),
                       b = operand(walk, LLVMGetOperand(value, 2));
    if (!c.known || c.slope || !a.known || !b.known || a.slope != b.slope || !width_of(value))
        return NOTHING;
    return (struct sp_wg_slope){.known = true,
                                .slope = a.slope,
                                .aligned = a.aligned && b.aligned,
                                .fixed = a.fixed && b.fixed && c.fixed,
                                .asked = a.asked || b.asked || c.asked};
}

static struct sp_wg_slope call(LLVMValueRef value)
{
    static const struct {
        const char *prefix;
        bool fixed;
    } known[] = {{"__sp_local_id_", false},    {"__sp_group_id_", true},
                 {"__sp_local_size_", true},   {"__sp_enqueued_local_size_", true},
                 {"__sp_global_size_", true},  {"__sp_num_groups_", true},
                 {"__sp_global_offset_", true}};
    const char *name = sp_ir_callee(value);
    for (size_t i = 0; name && i < sizeof(known) / sizeof(known[0]); i++) {
        size_t length = strlen(known[i].prefix);
        if (strncmp(name, known[i].prefix, length) || !name[length] || name[length + 1])
            continue;
        bool x = name[length] == '0';
        struct sp_wg_slope slope = same(x && i != 1 && i != 4 && i != 5, known[i].fixed);
        slope.slope = x && i == 0;
        return slope;
    }
    return NOTHING;
}

static struct sp_wg_slope load(const struct walk *walk, LLVMValueRef value)
{
    const struct sp_wg_strips *strips = walk->strips;
    return width_of(value) && sp_wg_is_kept(strips->plan, strips->region, value) ? same(false, true)
                                                                                 : NOTHING;
}

static void find_access(struct walk *walk, LLVMValueRef gep)
{
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep); i++) {
        struct sp_wg_slope slope = operand(walk, LLVMGetOperand(gep, i));
        walk->pays |= slope.known && slope.asked && slope.slope <= 1;
    }
}

static struct sp_wg_slope find_slope(struct walk *walk, LLVMValueRef value)
{
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
        return cast(walk, value);
    case LLVMICmp:
        return comparison(walk, value);
    case LLVMSelect:
        return choice(walk, value);
    case LLVMCall:
        return call(value);
    case LLVMLoad:
        return load(walk, value);
    case LLVMGetElementPtr:
        find_access(walk, value);
        return NOTHING;
    default:
        return LLVMIsABinaryOperator(value) ? binary(walk, value) : NOTHING;
    }
}

static struct sp_wg_slope *add_slope(struct sp_wg_strips *strips)
{
    struct sp_wg_slope **owned =
        sp_cc_reallocate(strips->owned, (strips->num_owned + 1) * sizeof(struct sp_wg_slope *));
    strips->owned = owned;
    return owned[strips->num_owned++] = sp_cc_allocate(sizeof(struct sp_wg_slope));
}

static void visit(struct walk *walk)
{
    const struct sp_wg_graph *graph = &walk->strips->plan->analysis.graph;
    const struct sp_wg_region *region = walk->strips->region;
    unsigned instructions = 0;
    for (uint32_t b = 0; b < region->num_blocks; b++)
        for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[region->blocks[b]]); value;
             value = LLVMGetNextInstruction(value), instructions++) {
            struct sp_wg_slope slope = find_slope(walk, value), *kept;
            if (!slope.known)
                continue;
            kept = sp_map_get(&walk->strips->slopes, value);
            if (!kept) {
                kept = add_slope(walk->strips);
                sp_map_set(&walk->strips->slopes, value, kept);
            }
            *kept = slope;
        }
    walk->failed |= instructions > MOST_INSTRUCTIONS;
}

bool sp_wg_strips_init(struct sp_wg_strips *strips, const struct sp_wg_plan *plan,
                       const struct sp_wg_region *region, uint32_t width)
{
    struct walk walk = {.strips = strips};
    *strips = (struct sp_wg_strips){.plan = plan, .region = region, .width = width};
    visit(&walk);
    /* Once more: by now all are known that the answers make multiples of the width. */
    visit(&walk);
    if (walk.pays && !walk.failed)
        return true;
    sp_wg_strips_finish(strips);
    return false;
}

void sp_wg_strips_finish(struct sp_wg_strips *strips)
{
    for (size_t i = 0; i < strips->num_owned; i++)
        free(strips->owned[i]);
    free(strips->owned);
    sp_map_finish(&strips->slopes);
    sp_map_finish(&strips->aligned);
}

LLVMValueRef sp_wg_strip_answer(LLVMBuilderRef builder, const struct sp_wg_strips *strips,
                                enum sp_wg_strip_kind kind, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef low = LLVMConstInt(type, low_bits(strips), false);
    LLVMValueRef zero = LLVMConstInt(type, 0, false);
    if (kind == SP_WG_SHIFT) {
        unsigned bits = 0;
        while (1u << bits < strips->width)
            bits++;
        return LLVMBuildICmp(builder, LLVMIntUGE, value, LLVMConstInt(type, bits, false), "");
    }
    LLVMValueRef masked = LLVMBuildAnd(builder, value, low, "");
    LLVMValueRef answer =
        LLVMBuildICmp(builder, LLVMIntEQ, masked, kind == SP_WG_LOW_ONES ? low : zero, "");
    if (kind == SP_WG_DIVISOR)
        answer =
            LLVMBuildAnd(builder, answer, LLVMBuildICmp(builder, LLVMIntNE, value, zero, ""), "");
    return answer;
}
