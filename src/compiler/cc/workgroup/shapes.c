/* See shapes.h. A vector of neighbours needs no proof about all numbers when there are at most 1024
 * of them: with a known local size each expression of the local id and constants is computed for
 * each place in x, whatever bits it shuffles. What is the same for all work-items, as the first id
 * of the work-group, stays a term of unknown value, of which only a largest value and low zeros are
 * followed; that says whether adding a place to it carries into bits that a mask or a wider type
 * then sees. An operation that is not understood makes a term of its own where its operands are the
 * same for all, else a value of which nothing is known.
 *
 * Values of work-items that are not active in a block do not count: an address before the array's
 * start is no matter where the condition keeps everybody away.
 *
 * Called by lanes.c. */
#include "compiler/cc/workgroup/shapes.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/masked.h"
#include "compiler/cc/workgroup/numbers.h"

#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

/* What emit.c promises of NDRanges for which the vector forms are: a group's number times the local
 * size is below the first, the global offset below the second. */
#define MODEST_ITEMS (UINT64_C(1) << 30)
#define MODEST_OFFSET (UINT64_C(1) << 29)

struct walk {
    struct sp_wg_shapes *shapes;
    LLVMTargetDataRef sizes;
    uint32_t at;         /* place of the block in shapes->blocks */
    struct sp_map slots; /* SHARED slot to the shape that was stored in this block */
    bool failed;
};

static uint64_t sum_or_most(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t product_or_most(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static unsigned low_zeros(uint64_t value)
{
    return value ? (unsigned)__builtin_ctzll(value) : 64;
}

static uint64_t num_items(const struct walk *walk)
{
    return walk->shapes->local_size[0];
}

static struct sp_wg_shape *new_shape(struct walk *walk, enum sp_wg_shape_kind kind, unsigned width)
{
    struct sp_wg_shapes *shapes = walk->shapes;
    bool numbered = kind == SP_WG_NUMBER || kind == SP_WG_ADDRESS;
    uint64_t *memory = sp_cc_allocate(sizeof(struct sp_wg_shape) +
                                      (numbered ? num_items(walk) * sizeof(uint64_t) : 0));
    shapes->owned =
        sp_cc_reallocate(shapes->owned, (shapes->num_owned + 1) * sizeof(*shapes->owned));
    shapes->owned[shapes->num_owned++] = memory;
    struct sp_wg_shape *shape = (struct sp_wg_shape *)memory;
    *shape = (struct sp_wg_shape){.kind = kind, .width = width, .zeros = 64};
    if (numbered)
        shape->by_item = memory + sizeof(*shape) / sizeof(uint64_t);
    return shape;
}

static uint64_t largest_item(const struct walk *walk, const struct sp_wg_shape *shape)
{
    uint64_t most = 0;
    for (uint64_t x = 0; x < num_items(walk); x++)
        if (walk->shapes->active[walk->at][x] && shape->by_item[x] > most)
            most = shape->by_item[x];
    return most;
}

/* Whether no value of the shape, as an unsigned integer, is above `limit`. */
static bool stays_below(const struct walk *walk, const struct sp_wg_shape *shape, uint64_t limit)
{
    return shape->exact && sum_or_most(shape->most, largest_item(walk, shape)) <= limit;
}

/* Whether adding the items' part to the terms changes only bits in which the terms are 0. */
static bool is_apart(const struct walk *walk, const struct sp_wg_shape *shape)
{
    return !shape->num_terms || largest_item(walk, shape) <= sp_wg_mask(shape->zeros);
}

static bool is_same_in_chunks(const struct walk *walk, const struct sp_wg_shape *shape)
{
    const bool *active = walk->shapes->active[walk->at];
    if (shape->kind == SP_WG_SAME || shape->kind == SP_WG_DIFFERENT)
        return shape->kind == SP_WG_SAME;
    for (uint64_t chunk = 0; chunk < num_items(walk); chunk += walk->shapes->lanes) {
        uint64_t first = UINT64_MAX;
        for (uint64_t x = chunk; x < chunk + walk->shapes->lanes; x++) {
            if (active[x] && first == UINT64_MAX)
                first = x;
            if (active[x] && shape->by_item[x] != shape->by_item[first])
                return false;
        }
    }
    return true;
}

/* An integer that is the same for all, of which at most a bound and low zeros are known. */
static struct sp_wg_shape *new_term(struct walk *walk, const void *what, unsigned width,
                                    uint64_t most, unsigned zeros)
{
    struct sp_wg_shape *shape = new_shape(walk, SP_WG_NUMBER, width);
    shape->exact = true;
    shape->num_terms = 1;
    shape->terms[0] = (struct sp_wg_term){what, 1};
    shape->most = most < sp_wg_mask(width) ? most : sp_wg_mask(width);
    shape->zeros = zeros;
    return shape;
}

static unsigned number_width(LLVMTypeRef type)
{
    bool number = LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64;
    return number ? LLVMGetIntTypeWidth(type) : 0;
}

/* A value that is the same for all, `what`. */
static struct sp_wg_shape *same(struct walk *walk, LLVMValueRef what)
{
    LLVMTypeRef type = LLVMTypeOf(what);
    unsigned width = number_width(type);
    if (width)
        return new_term(walk, what, width, UINT64_MAX, 0);
    if (LLVMGetTypeKind(type) != LLVMPointerTypeKind)
        return new_shape(walk, SP_WG_SAME, 0);
    struct sp_wg_shape *shape = new_shape(walk, SP_WG_ADDRESS, 64);
    shape->base = what;
    return shape;
}

static struct sp_wg_shape *constant(struct walk *walk, unsigned width, uint64_t value)
{
    struct sp_wg_shape *shape = new_shape(walk, SP_WG_NUMBER, width);
    shape->exact = true;
    for (uint64_t x = 0; x < num_items(walk); x++)
        shape->by_item[x] = value & sp_wg_mask(width);
    return shape;
}

static const struct sp_wg_shape *operand(struct walk *walk, LLVMValueRef value)
{
    const struct sp_wg_shape *known = sp_map_get(&walk->shapes->shape_of, value);
    if (known)
        return known;
    if (LLVMIsAConstantInt(value) && number_width(LLVMTypeOf(value)))
        return constant(walk, number_width(LLVMTypeOf(value)), LLVMConstIntGetZExtValue(value));
    if (LLVMIsConstant(value) || LLVMIsAArgument(value))
        return same(walk, value);
    return new_shape(walk, SP_WG_DIFFERENT, 0);
}

static const struct sp_wg_shape *operand_of(struct walk *walk, LLVMValueRef value, unsigned index)
{
    return operand(walk, LLVMGetOperand(value, index));
}

static bool is_known(const struct sp_wg_shape *shape)
{
    return shape->kind == SP_WG_NUMBER && !shape->num_terms;
}

/* A number that is the same for every work-item of the group. */
static bool is_constant(const struct walk *walk, const struct sp_wg_shape *shape, uint64_t *value)
{
    if (!is_known(shape))
        return false;
    *value = shape->by_item[0];
    for (uint64_t x = 0; x < num_items(walk); x++)
        if (shape->by_item[x] != *value)
            return false;
    return true;
}

/* Where nothing better is known of an instruction. */
static struct sp_wg_shape *opaque(struct walk *walk, LLVMValueRef value)
{
    for (int i = 0; i < LLVMGetNumOperands(value); i++) {
        LLVMValueRef part = LLVMGetOperand(value, (unsigned)i);
        if (!LLVMIsAFunction(part) && !is_same_in_chunks(walk, operand(walk, part)))
            return new_shape(walk, SP_WG_DIFFERENT, 0);
    }
    return same(walk, value);
}

/* --- Operations on sums ---------------------------------------------------------------------- */

/* Adds `factor` times b's terms to a's. False where they become too many. */
static bool add_terms(struct sp_wg_shape *a, const struct sp_wg_shape *b, uint64_t factor)
{
    for (unsigned i = 0; i < b->num_terms; i++) {
        unsigned at = 0;
        while (at < a->num_terms && a->terms[at].what != b->terms[i].what)
            at++;
        if (at == SP_WG_MOST_TERMS)
            return false;
        if (at == a->num_terms)
            a->terms[a->num_terms++] = (struct sp_wg_term){b->terms[i].what, 0};
        a->terms[at].factor += factor * b->terms[i].factor;
        if (!a->terms[at].factor)
            a->terms[at] = a->terms[--a->num_terms];
    }
    if (b->num_terms) {
        uint64_t more = product_or_most(b->most, factor);
        unsigned zeros = b->zeros + low_zeros(factor);
        a->most = sum_or_most(a->most, more);
        a->zeros = zeros < a->zeros ? zeros : a->zeros;
    }
    if (!a->num_terms) {
        a->most = 0;
        a->zeros = 64;
    }
    return true;
}

static bool wraps_not(LLVMValueRef value)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode == LLVMOr)
        return LLVMGetIsDisjoint(value);
    return (opcode == LLVMAdd || opcode == LLVMMul || opcode == LLVMShl) && LLVMGetNUW(value);
}

/* a + factor * b. */
static struct sp_wg_shape *sum(struct walk *walk, LLVMValueRef value, const struct sp_wg_shape *a,
                               const struct sp_wg_shape *b, uint64_t factor, bool grows)
{
    struct sp_wg_shape *shape = new_shape(walk, SP_WG_NUMBER, a->width);
    if (!add_terms(shape, a, 1) || !add_terms(shape, b, factor))
        return opaque(walk, value);
    bool fits = sum_or_most(sum_or_most(shape->most, largest_item(walk, a)),
                            product_or_most(largest_item(walk, b), factor)) <= sp_wg_mask(a->width);
    for (uint64_t x = 0; x < num_items(walk); x++)
        shape->by_item[x] = (a->by_item[x] + factor * b->by_item[x]) & sp_wg_mask(a->width);
    shape->exact =
        !shape->num_terms || (grows && a->exact && b->exact && (fits || wraps_not(value)));
    return shape;
}

static struct sp_wg_shape *copy(struct walk *walk, const struct sp_wg_shape *from)
{
    struct sp_wg_shape *shape = new_shape(walk, from->kind, from->width);
    uint64_t *by_item = shape->by_item;
    *shape = *from;
    shape->by_item = by_item;
    memcpy(by_item, from->by_item, num_items(walk) * sizeof(uint64_t));
    return shape;
}

static struct sp_wg_shape *and_mask(struct walk *walk, LLVMValueRef value,
                                    const struct sp_wg_shape *a, uint64_t mask)
{
    if (!(mask & (mask + 1)) && stays_below(walk, a, mask))
        return copy(walk, a);
    if (!is_apart(walk, a))
        return opaque(walk, value);
    /* The mask's bits above the terms' zeros see the terms alone, those below the items alone. */
    struct sp_wg_shape *shape = mask & ~sp_wg_mask(a->zeros)
                                    ? new_term(walk, value, a->width, mask, a->zeros)
                                    : constant(walk, a->width, 0);
    for (uint64_t x = 0; x < num_items(walk); x++)
        shape->by_item[x] = a->by_item[x] & mask & sp_wg_mask(a->zeros);
    return shape;
}

static struct sp_wg_shape *shift_right(struct walk *walk, LLVMValueRef value,
                                       const struct sp_wg_shape *a, uint64_t by)
{
    if (by >= a->width || by > a->zeros || !a->exact)
        return opaque(walk, value);
    struct sp_wg_shape *shape = copy(walk, a);
    for (unsigned i = 0; i < shape->num_terms; i++) {
        if (shape->terms[i].factor &
            sp_wg_mask((unsigned)by)) /* the terms alone have these zeros */
            return opaque(walk, value);
        shape->terms[i].factor >>= by;
    }
    shape->most = shape->most == UINT64_MAX ? UINT64_MAX : shape->most >> by;
    shape->zeros -= (unsigned)by;
    for (uint64_t x = 0; x < num_items(walk); x++)
        shape->by_item[x] >>= by;
    return shape;
}

static struct sp_wg_shape *binary(struct walk *walk, LLVMValueRef value)
{
    const struct sp_wg_shape *a = operand_of(walk, value, 0), *b = operand_of(walk, value, 1);
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    uint64_t number;
    if (a->kind != SP_WG_NUMBER || b->kind != SP_WG_NUMBER || !sp_wg_is_operation(opcode))
        return opaque(walk, value);
    if (is_known(a) && is_known(b)) {
        struct sp_wg_shape *shape = constant(walk, a->width, 0);
        for (uint64_t x = 0; x < num_items(walk); x++)
            shape->by_item[x] = sp_wg_operate(opcode, a->width, a->by_item[x], b->by_item[x]) &
                                sp_wg_mask(a->width);
        return shape;
    }
    bool times = is_constant(walk, b, &number);
    switch (opcode) {
    case LLVMAdd:
        return sum(walk, value, a, b, 1, true);
    case LLVMSub:
        return sum(walk, value, a, b, UINT64_MAX, false);
    case LLVMOr:
        return LLVMGetIsDisjoint(value) ? sum(walk, value, a, b, 1, true) : opaque(walk, value);
    case LLVMShl:
        if (times && number < a->width)
            return sum(walk, value, constant(walk, a->width, 0), a, UINT64_C(1) << number, true);
        break;
    case LLVMMul:
        if (times)
            return sum(walk, value, constant(walk, a->width, 0), a, number, true);
        break;
    case LLVMAnd:
        if (times)
            return and_mask(walk, value, a, number);
        break;
    case LLVMLShr:
        if (times)
            return shift_right(walk, value, a, number);
        break;
    default:
        break;
    }
    return opaque(walk, value);
}

static struct sp_wg_shape *comparison(struct walk *walk, LLVMValueRef value)
{
    const struct sp_wg_shape *a = operand_of(walk, value, 0), *b = operand_of(walk, value, 1);
    if (!is_known(a) || !is_known(b))
        return opaque(walk, value);
    struct sp_wg_shape *shape = constant(walk, 1, 0);
    for (uint64_t x = 0; x < num_items(walk); x++)
        shape->by_item[x] =
            sp_wg_compare(LLVMGetICmpPredicate(value), a->width, a->by_item[x], b->by_item[x]);
    return shape;
}

static struct sp_wg_shape *choice(struct walk *walk, LLVMValueRef value)
{
    const struct sp_wg_shape *c = operand_of(walk, value, 0), *a = operand_of(walk, value, 1),
                             *b = operand_of(walk, value, 2);
    if (!is_known(c) || !is_known(a) || !is_known(b))
        return opaque(walk, value);
    struct sp_wg_shape *shape = constant(walk, a->width, 0);
    for (uint64_t x = 0; x < num_items(walk); x++)
        shape->by_item[x] = c->by_item[x] ? a->by_item[x] : b->by_item[x];
    return shape;
}

/* An integer in another width. */
static struct sp_wg_shape *resized(struct walk *walk, LLVMValueRef value)
{
    const struct sp_wg_shape *a = operand_of(walk, value, 0);
    unsigned width = number_width(LLVMTypeOf(value));
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (a->kind != SP_WG_NUMBER || !width)
        return opaque(walk, value);
    if (opcode == LLVMTrunc) {
        struct sp_wg_shape *shape = copy(walk, a);
        shape->exact = stays_below(walk, a, sp_wg_mask(width)) || !a->num_terms;
        for (uint64_t x = 0; x < num_items(walk); x++)
            shape->by_item[x] &= sp_wg_mask(width);
        shape->width = width;
        return shape;
    }
    uint64_t limit = opcode == LLVMSExt ? sp_wg_mask(a->width - 1) : sp_wg_mask(a->width);
    if (is_known(a) || stays_below(walk, a, limit) || (opcode == LLVMZExt && a->exact)) {
        struct sp_wg_shape *shape = copy(walk, a);
        shape->width = width;
        for (uint64_t x = 0; x < num_items(walk) && opcode == LLVMSExt; x++)
            shape->by_item[x] = (uint64_t)sp_wg_signed(a->width, a->by_item[x]) & sp_wg_mask(width);
        return shape;
    }
    if (opcode == LLVMSExt || !is_apart(walk, a))
        return opaque(walk, value);
    /* No carry: the terms alone are extended. */
    struct sp_wg_shape *shape = new_term(walk, value, width, sp_wg_mask(a->width), a->zeros);
    memcpy(shape->by_item, a->by_item, num_items(walk) * sizeof(uint64_t));
    return shape;
}

/* A GEP's index as an integer of 64 bits. */
static const struct sp_wg_shape *wide_index(struct walk *walk, const struct sp_wg_shape *index)
{
    if (index->kind != SP_WG_NUMBER || index->width == 64)
        return index;
    if (!is_known(index) && !stays_below(walk, index, sp_wg_mask(index->width - 1)))
        return new_shape(walk, SP_WG_DIFFERENT, 0);
    struct sp_wg_shape *wide = copy(walk, index);
    wide->width = 64;
    for (uint64_t x = 0; x < num_items(walk); x++)
        wide->by_item[x] = (uint64_t)sp_wg_signed(index->width, index->by_item[x]);
    return wide;
}

static struct sp_wg_shape *address(struct walk *walk, LLVMValueRef value)
{
    const struct sp_wg_shape *base = operand_of(walk, value, 0);
    if (base->kind != SP_WG_ADDRESS)
        return opaque(walk, value);
    struct sp_wg_shape *at = copy(walk, base);
    LLVMTypeRef type = LLVMGetGEPSourceElementType(value);
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(value); i++) {
        const struct sp_wg_shape *index = wide_index(walk, operand_of(walk, value, i));
        LLVMTypeKind kind = LLVMGetTypeKind(type);
        uint64_t step, number;
        if (i > 1 && kind == LLVMStructTypeKind) {
            if (!is_constant(walk, index, &number))
                return opaque(walk, value);
            step = LLVMOffsetOfElement(walk->sizes, type, (unsigned)number);
            type = LLVMStructGetTypeAtIndex(type, (unsigned)number);
            index = constant(walk, 64, 1);
        } else {
            if (i > 1 && kind != LLVMArrayTypeKind && kind != LLVMVectorTypeKind)
                return opaque(walk, value);
            type = i > 1 ? LLVMGetElementType(type) : type;
            step = LLVMABISizeOfType(walk->sizes, type);
        }
        if (index->kind != SP_WG_NUMBER || !add_terms(at, index, step))
            return opaque(walk, value);
        for (uint64_t x = 0; x < num_items(walk); x++)
            at->by_item[x] += step * index->by_item[x];
    }
    return at;
}

/* --- Calls and memory ------------------------------------------------------------------------ */

static const char *const elementwise[] = {
    "llvm.umin.", "llvm.umax.",   "llvm.smin.",    "llvm.smax.",     "llvm.fma.",
    "llvm.fabs.", "llvm.fmuladd", "llvm.sqrt.",    "llvm.minnum.",   "llvm.maxnum.",
    "llvm.fshl.", "llvm.fshr.",   "llvm.copysign", "llvm.uadd.sat.", "llvm.usub.sat.",
    "llvm.rint.", "llvm.floor.",  "llvm.ceil.",    "llvm.trunc.",    "llvm.bitreverse.",
    "llvm.ctpop", "llvm.bswap.",
};

/* An intrinsic that computes the same for each element of vectors. */
static bool is_elementwise(LLVMValueRef call)
{
    for (size_t i = 0; i < sizeof(elementwise) / sizeof(elementwise[0]); i++)
        if (sp_ir_is_intrinsic(call, elementwise[i]))
            return true;
    return false;
}

static struct sp_wg_shape *call(struct walk *walk, LLVMValueRef value)
{
    const uint64_t *size = walk->shapes->local_size;
    const char *name = sp_ir_callee(value);
    if (name && !strcmp(name, "__sp_local_id_0")) {
        struct sp_wg_shape *shape = constant(walk, 64, 0);
        for (uint64_t x = 0; x < num_items(walk); x++)
            shape->by_item[x] = x;
        return shape;
    }
    static const struct {
        const char *prefix;
        enum { ITEM, GROUP, OFFSET, SIZE } kind;
    } known[] = {
        {"__sp_local_id_", ITEM},        {"__sp_group_id_", GROUP},
        {"__sp_local_size_", SIZE},      {"__sp_enqueued_local_size_", SIZE},
        {"__sp_global_size_", SIZE},     {"__sp_num_groups_", SIZE},
        {"__sp_global_offset_", OFFSET},
    };
    for (size_t i = 0; name && i < sizeof(known) / sizeof(known[0]); i++) {
        size_t length = strlen(known[i].prefix);
        if (strncmp(name, known[i].prefix, length))
            continue;
        unsigned d = (unsigned)(name[length] - '0') % 3;
        uint64_t most = known[i].kind == GROUP    ? MODEST_ITEMS / size[d] - 1
                        : known[i].kind == ITEM   ? size[d] - 1
                        : known[i].kind == OFFSET ? MODEST_OFFSET - 1
                                                  : UINT64_MAX;
        if (!most)
            return constant(walk, 64, 0);
        return new_term(walk, LLVMGetCalledValue(value), 64, most, 0);
    }
    if (!is_elementwise(value)) {
        walk->failed = true;
        return NULL;
    }
    const struct sp_wg_shape *a = operand_of(walk, value, 0);
    if (!sp_ir_is_intrinsic(value, "llvm.bitreverse.") || !is_known(a))
        return opaque(walk, value);
    struct sp_wg_shape *shape = constant(walk, a->width, 0);
    for (uint64_t x = 0; x < num_items(walk); x++)
        shape->by_item[x] = sp_wg_reversed(a->width, a->by_item[x]);
    return shape;
}

static bool is_plain(LLVMValueRef access)
{
    return !LLVMGetVolatile(access) && LLVMGetOrdering(access) == LLVMAtomicOrderingNotAtomic;
}

/* Whether elements of the type lie in memory as they lie in a vector. */
static bool is_packed(const struct walk *walk, LLVMTypeRef type)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    bool scalar = kind == LLVMIntegerTypeKind || kind == LLVMFloatTypeKind ||
                  kind == LLVMDoubleTypeKind || kind == LLVMHalfTypeKind;
    unsigned long long bits = scalar ? LLVMSizeOfTypeInBits(walk->sizes, type) : 0;
    return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

bool sp_wg_is_access(const struct sp_wg_plan *plan, LLVMValueRef value, LLVMValueRef *address)
{
    bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
    if (!load && !store)
        return false;
    *address = LLVMGetOperand(value, load ? 0 : 1);
    return !LLVMIsAAllocaInst(*address) || !sp_map_get(&plan->variable_of, *address) ||
           plan->variables[sp_wg_variable_index(plan, *address)].kind == SP_WG_ARRAY;
}

static bool is_everybody(const struct walk *walk)
{
    for (uint64_t x = 0; x < num_items(walk); x++)
        if (!walk->shapes->active[walk->at][x])
            return false;
    return true;
}

static struct sp_wg_shape *slot_access(struct walk *walk, LLVMValueRef value, LLVMValueRef slot)
{
    const struct sp_wg_plan *plan = walk->shapes->plan;
    bool shared = plan->variables[sp_wg_variable_index(plan, slot)].kind == SP_WG_SHARED;
    if (LLVMIsAStoreInst(value)) {
        const struct sp_wg_shape *stored = operand_of(walk, value, 0);
        walk->failed |= shared && (!is_everybody(walk) || !is_same_in_chunks(walk, stored));
        if (shared)
            sp_map_set(&walk->slots, slot, (void *)(uintptr_t)stored);
        return NULL;
    }
    if (!shared)
        return new_shape(walk, SP_WG_DIFFERENT, 0);
    const struct sp_wg_shape *stored = sp_map_get(&walk->slots, slot);
    if (stored && stored->kind == SP_WG_NUMBER)
        return copy(walk, stored);
    struct sp_wg_shape *shape = same(walk, value);
    if (!sp_bits_has(&walk->shapes->region->written, sp_wg_variable_index(plan, slot))) {
        shape->terms[0].what = slot; /* each load of it gives the same */
        shape->base = slot;
    }
    return shape;
}

static struct sp_wg_shape *memory_access(struct walk *walk, LLVMValueRef value)
{
    LLVMValueRef pointer;
    bool load = LLVMIsALoadInst(value);
    walk->failed |= !is_plain(value);
    if (!sp_wg_is_access(walk->shapes->plan, value, &pointer))
        return slot_access(walk, value, pointer);
    const struct sp_wg_shape *at = operand(walk, pointer);
    bool one = is_same_in_chunks(walk, at);
    LLVMTypeRef type = LLVMTypeOf(load ? value : LLVMGetOperand(value, 0));
    walk->failed |= LLVMIsAAllocaInst(pointer) || at->kind != SP_WG_ADDRESS ||
                    (!one && !is_packed(walk, type)) || (one && !load);
    if (!load)
        return NULL;
    return one ? same(walk, value) : new_shape(walk, SP_WG_DIFFERENT, 0);
}

static bool is_vector_cast(LLVMOpcode opcode)
{
    switch (opcode) {
    case LLVMFPToUI:
    case LLVMFPToSI:
    case LLVMUIToFP:
    case LLVMSIToFP:
    case LLVMFPTrunc:
    case LLVMFPExt:
    case LLVMBitCast:
        return true;
    default:
        return false;
    }
}

static bool is_scalar(LLVMTypeRef type)
{
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMIntegerTypeKind || kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind ||
           kind == LLVMHalfTypeKind;
}

/* Operations on values of which vectors are made, or which are the same for all. */
static struct sp_wg_shape *other(struct walk *walk, LLVMValueRef value)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    bool known = LLVMIsABinaryOperator(value) || opcode == LLVMFCmp || opcode == LLVMFNeg ||
                 opcode == LLVMFreeze || is_vector_cast(opcode);
    struct sp_wg_shape *shape = known ? opaque(walk, value) : NULL;
    walk->failed |= !known || !is_scalar(LLVMTypeOf(value)) || sp_wg_may_trap(value);
    return shape;
}

static struct sp_wg_shape *find_shape(struct walk *walk, LLVMValueRef value)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    switch (opcode) {
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
        return resized(walk, value);
    case LLVMICmp:
        walk->failed |= !is_scalar(LLVMTypeOf(LLVMGetOperand(value, 0)));
        return comparison(walk, value);
    case LLVMSelect:
        walk->failed |= !is_scalar(LLVMTypeOf(value));
        return choice(walk, value);
    case LLVMGetElementPtr:
        return address(walk, value);
    case LLVMAddrSpaceCast:
        if (operand_of(walk, value, 0)->kind == SP_WG_ADDRESS)
            return copy(walk, operand_of(walk, value, 0));
        walk->failed = true;
        return NULL;
    case LLVMCall:
        return call(walk, value);
    case LLVMLoad:
    case LLVMStore:
        return memory_access(walk, value);
    default:
        if (LLVMIsABinaryOperator(value) && sp_wg_is_operation(opcode) && !sp_wg_may_trap(value))
            return binary(walk, value);
        return other(walk, value);
    }
}

/* --- Blocks ---------------------------------------------------------------------------------- */

/* Who goes where at the block's end. False where that is not a matter of the place in x. */
static bool part_items(struct walk *walk)
{
    struct sp_wg_shapes *shapes = walk->shapes;
    const struct sp_wg_graph *graph = &shapes->plan->analysis.graph;
    uint32_t block = shapes->blocks[walk->at];
    const uint32_t *to = graph->successors[block];
    const struct sp_wg_shape *condition = NULL;
    int way = sp_wg_agreed_way(shapes->agreed, block);
    if (to[0] != SP_WG_NONE && to[1] != SP_WG_NONE && way < 0) {
        condition =
            operand(walk, LLVMGetCondition(LLVMGetBasicBlockTerminator(graph->blocks[block])));
        if (!is_known(condition))
            return false;
    }
    for (unsigned s = 0; s < 2 && to[s] != SP_WG_NONE; s++) {
        if (sp_bits_has(&shapes->plan->analysis.leaders, to[s]))
            continue;
        uint32_t next = 0;
        while (shapes->blocks[next] != to[s])
            next++;
        if (next <= walk->at)
            return false;
        for (uint64_t x = 0; x < num_items(walk) && (way < 0 || (unsigned)way == s); x++)
            if (!condition || condition->by_item[x] != s)
                shapes->active[next][x] |= shapes->active[walk->at][x];
    }
    return true;
}

static bool visit_block(struct walk *walk)
{
    const struct sp_wg_graph *graph = &walk->shapes->plan->analysis.graph;
    LLVMBasicBlockRef block = graph->blocks[walk->shapes->blocks[walk->at]];
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    sp_map_clear(&walk->slots);
    for (LLVMValueRef value = LLVMGetFirstInstruction(block); value != end;
         value = LLVMGetNextInstruction(value)) {
        if (LLVMIsAAllocaInst(value) || sp_ir_calls(value, SP_BARRIER_NAME))
            continue;
        const struct sp_wg_shape *shape = find_shape(walk, value);
        if (walk->failed)
            return false;
        if (shape)
            sp_map_set(&walk->shapes->shape_of, value, (void *)(uintptr_t)shape);
    }
    return part_items(walk);
}

static void order_blocks(struct sp_wg_shapes *shapes)
{
    const uint32_t *order = shapes->plan->analysis.graph.order;
    uint32_t count = shapes->region->num_blocks;
    memcpy(shapes->blocks, shapes->region->blocks, count * sizeof(uint32_t));
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t j = i; j > 0 && order[shapes->blocks[j - 1]] > order[shapes->blocks[j]];
             j--) {
            uint32_t block = shapes->blocks[j];
            shapes->blocks[j] = shapes->blocks[j - 1];
            shapes->blocks[j - 1] = block;
        }
}

bool sp_wg_shapes_init(struct sp_wg_shapes *shapes, const struct sp_wg_plan *plan,
                       const struct sp_wg_region *region, const struct sp_wg_agreed *agreed,
                       const uint64_t local_size[3], uint32_t lanes)
{
    uint64_t items = local_size[0];
    struct walk walk = {
        .shapes = shapes,
        .sizes = LLVMGetModuleDataLayout(LLVMGetGlobalParent(plan->analysis.graph.function))};
    *shapes =
        (struct sp_wg_shapes){.plan = plan, .region = region, .agreed = agreed, .lanes = lanes};
    memcpy(shapes->local_size, local_size, sizeof(shapes->local_size));
    shapes->blocks = sp_cc_allocate(region->num_blocks * sizeof(uint32_t));
    shapes->active = sp_cc_allocate(region->num_blocks * sizeof(bool *));
    order_blocks(shapes);
    for (uint32_t i = 0; i < region->num_blocks; i++)
        shapes->active[i] = sp_cc_allocate(items * sizeof(bool));
    bool straight = !plan->analysis.graph.irreducible && shapes->blocks[0] == region->leader;
    memset(shapes->active[0], true, items * sizeof(bool));
    for (; walk.at < region->num_blocks && straight; walk.at++)
        straight = visit_block(&walk);
    sp_map_finish(&walk.slots);
    if (!straight)
        sp_wg_shapes_finish(shapes);
    return straight;
}

void sp_wg_shapes_finish(struct sp_wg_shapes *shapes)
{
    for (size_t i = 0; i < shapes->num_owned; i++)
        free(shapes->owned[i]);
    for (uint32_t i = 0; shapes->active && i < shapes->region->num_blocks; i++)
        free(shapes->active[i]);
    free(shapes->owned);
    free(shapes->active);
    free(shapes->blocks);
    sp_map_finish(&shapes->shape_of);
    *shapes = (struct sp_wg_shapes){0};
}

const struct sp_wg_shape *sp_wg_shape(const struct sp_wg_shapes *shapes, LLVMValueRef value)
{
    return sp_map_get(&shapes->shape_of, value);
}

bool sp_wg_is_same(const struct sp_wg_shapes *shapes, LLVMValueRef value)
{
    const struct sp_wg_shape *shape = sp_wg_shape(shapes, value);
    struct walk walk = {.shapes = (struct sp_wg_shapes *)shapes};
    if (!shape)
        return LLVMIsConstant(value) || LLVMIsAArgument(value);
    LLVMBasicBlockRef block = LLVMGetInstructionParent(value);
    while (shapes->plan->analysis.graph.blocks[shapes->blocks[walk.at]] != block)
        walk.at++;
    return is_same_in_chunks(&walk, shape);
}

bool sp_wg_distance(const struct sp_wg_shape *a, const struct sp_wg_shape *b, uint64_t item,
                    int64_t *bytes)
{
    if (a->base != b->base || a->num_terms != b->num_terms)
        return false;
    for (unsigned i = 0; i < a->num_terms; i++) {
        unsigned j = 0;
        while (j < b->num_terms && b->terms[j].what != a->terms[i].what)
            j++;
        if (j == b->num_terms || b->terms[j].factor != a->terms[i].factor)
            return false;
    }
    *bytes = (int64_t)(b->by_item[item] - a->by_item[item]);
    return true;
}
