/* See affine.h. Sums, products and cuts to fewer bits of such values are such values, since all
 * arithmetic is modulo a power of two. To more bits only what cannot have wrapped is widened: ids
 * without anything added. Called by turns.c. */
#include "compiler/cc/workgroup/affine.h"

#include "compiler/cc/text.h"

#include <stdio.h>
#include <string.h>

#define MAX_LOCAL_SIZE UINT64_C(1024) /* SP_MAX_WORK_GROUP_SIZE (docs/compiler-contract.md) */

/* Factors and sums stay below it, so that nothing here overflows: the ids of a group, times what an
 * array's row may have. */
#define LARGEST (UINT64_C(1) << 31)

static uint64_t product(uint64_t a, uint64_t b)
{
    return b && a >= LARGEST / b ? LARGEST : a * b;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b < LARGEST ? a + b : LARGEST;
}

static uint64_t largest_size(const uint64_t *known, unsigned d)
{
    return known ? known[d] : MAX_LOCAL_SIZE;
}

uint64_t sp_wg_most_of(const struct sp_wg_multiple *multiple, const uint64_t *known)
{
    uint64_t most = multiple->factor;
    for (unsigned d = 0; d < 3; d++)
        if (multiple->sizes >> d & 1)
            most = product(most, largest_size(known, d));
    return most;
}

uint64_t sp_wg_affine_reach(const struct sp_wg_affine *affine, const uint64_t *known)
{
    uint64_t reach = 0;
    for (unsigned d = 0; d < 3; d++)
        reach =
            sum(reach, product(sp_wg_most_of(&affine->ids[d], known), largest_size(known, d) - 1));
    return reach;
}

static bool multiply(struct sp_wg_multiple *a, const struct sp_wg_multiple *b)
{
    if (a->sizes & b->sizes)
        return false;
    a->factor = product(a->factor, b->factor);
    a->sizes |= b->sizes;
    return a->factor < LARGEST;
}

/* A number below LARGEST, in any width. */
static bool small_number(LLVMValueRef value, uint64_t *number)
{
    if (!LLVMIsAConstantInt(value) || LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64)
        return false;
    *number = LLVMConstIntGetZExtValue(value);
    return *number < LARGEST;
}

/* The dimension that a call of `prefix` and a digit names, or -1. */
static int dimension_of(LLVMValueRef value, const char *prefix)
{
    return sp_ir_is_intrinsic(value, prefix) ? sp_ir_callee(value)[strlen(prefix)] - '0' : -1;
}

static LLVMOpcode opcode_of(LLVMValueRef value)
{
    return LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : (LLVMOpcode)0;
}

/* All multiples are below LARGEST, so that they are the same in 32 bits and more. */
bool sp_wg_multiple_of(LLVMValueRef value, struct sp_wg_multiple *multiple)
{
    struct sp_wg_multiple other;
    uint64_t shift;
    *multiple = (struct sp_wg_multiple){0};
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(LLVMTypeOf(value)) < 32)
        return false;
    if (small_number(value, &multiple->factor))
        return true;
    int d = dimension_of(value, "__sp_local_size_");
    switch (opcode_of(value)) {
    case LLVMCall:
        *multiple = (struct sp_wg_multiple){1, d < 0 ? 0 : 1u << d};
        return d >= 0;
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
        return sp_wg_multiple_of(LLVMGetOperand(value, 0), multiple) &&
               sp_wg_most_of(multiple, NULL) < LARGEST;
    case LLVMMul:
        return sp_wg_multiple_of(LLVMGetOperand(value, 0), multiple) &&
               sp_wg_multiple_of(LLVMGetOperand(value, 1), &other) && multiply(multiple, &other);
    case LLVMShl:
        if (!small_number(LLVMGetOperand(value, 1), &shift) || shift > 30)
            return false;
        other = (struct sp_wg_multiple){UINT64_C(1) << shift, 0};
        return sp_wg_multiple_of(LLVMGetOperand(value, 0), multiple) && multiply(multiple, &other);
    default:
        return false;
    }
}

static bool add(struct sp_wg_affine *affine, const struct sp_wg_affine *other)
{
    affine->based |= other->based;
    for (unsigned d = 0; d < 3; d++) {
        struct sp_wg_multiple *a = &affine->ids[d];
        const struct sp_wg_multiple *b = &other->ids[d];
        if (a->factor && b->factor && a->sizes != b->sizes)
            return false;
        a->sizes |= b->sizes;
        a->factor = sum(a->factor, b->factor);
        if (a->factor >= LARGEST)
            return false;
    }
    return true;
}

static bool scale(struct sp_wg_affine *affine, const struct sp_wg_multiple *by)
{
    for (unsigned d = 0; d < 3; d++)
        if (affine->ids[d].factor && !multiply(&affine->ids[d], by))
            return false;
    return by->factor > 0;
}

static bool scale_of(const struct sp_wg_uniformity *uniformity, LLVMValueRef value, LLVMValueRef by,
                     struct sp_wg_affine *affine)
{
    struct sp_wg_multiple multiple;
    return sp_wg_multiple_of(by, &multiple) && sp_wg_affine_of(uniformity, value, affine) &&
           scale(affine, &multiple);
}

/* Whether nothing is lost, nor a sign found, in the low `bits` of the value. */
static bool fits(const struct sp_wg_affine *affine, unsigned bits)
{
    return !affine->based && sp_wg_affine_reach(affine, NULL) < UINT64_C(1) << (bits - 1);
}

/* The bits that an `and` with `mask` leaves, where they are the lowest; else 0. */
static unsigned low_bits(LLVMValueRef mask)
{
    if (!LLVMIsAConstantInt(mask) || LLVMGetIntTypeWidth(LLVMTypeOf(mask)) > 64)
        return 0;
    uint64_t number = LLVMConstIntGetZExtValue(mask);
    return number && !(number & (number + 1)) ? 64u - (unsigned)__builtin_clzll(number) : 0;
}

bool sp_wg_affine_of(const struct sp_wg_uniformity *uniformity, LLVMValueRef value,
                     struct sp_wg_affine *affine)
{
    struct sp_wg_affine other;
    struct sp_wg_multiple by;
    uint64_t shift;
    *affine = (struct sp_wg_affine){0};
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind)
        return false;
    if (!sp_wg_is_divergent(uniformity, value)) {
        affine->based = !small_number(value, &shift) || shift;
        return true;
    }
    LLVMOpcode opcode = opcode_of(value);
    int d = dimension_of(value, "__sp_local_id_");
    LLVMValueRef first = opcode ? LLVMGetOperand(value, 0) : NULL;
    LLVMValueRef second = LLVMIsABinaryOperator(value) ? LLVMGetOperand(value, 1) : NULL;
    switch (opcode) {
    case LLVMCall:
        if (d >= 0)
            affine->ids[d].factor = 1;
        return d >= 0;
    case LLVMTrunc:
        return sp_wg_affine_of(uniformity, first, affine);
    case LLVMZExt:
    case LLVMSExt:
        return sp_wg_affine_of(uniformity, first, affine) &&
               fits(affine, LLVMGetIntTypeWidth(LLVMTypeOf(first)));
    case LLVMAnd:
        return low_bits(second) && sp_wg_affine_of(uniformity, first, affine) &&
               fits(affine, low_bits(second));
    case LLVMOr:
        if (!LLVMGetIsDisjoint(value))
            return false;
        /* fallthrough */
    case LLVMAdd:
        return sp_wg_affine_of(uniformity, first, affine) &&
               sp_wg_affine_of(uniformity, second, &other) && add(affine, &other);
    case LLVMSub:
        affine->based = true;
        return !sp_wg_is_divergent(uniformity, second) &&
               sp_wg_affine_of(uniformity, first, &other) && add(affine, &other);
    case LLVMMul:
        return sp_wg_is_divergent(uniformity, second) ? scale_of(uniformity, second, first, affine)
                                                      : scale_of(uniformity, first, second, affine);
    case LLVMShl:
        by = (struct sp_wg_multiple){1, 0};
        if (!small_number(second, &shift) || shift > 30)
            return false;
        by.factor <<= shift;
        return sp_wg_affine_of(uniformity, first, affine) && scale(affine, &by);
    default:
        return false;
    }
}

/* Ids follow each other as digits of a number do: the first of factor 1, the next of its size. */
bool sp_wg_affine_fills(const struct sp_wg_affine *affine, const struct sp_wg_multiple *step,
                        const uint64_t *known)
{
    struct sp_wg_multiple next = {1, 0};
    unsigned left = 0;
    for (unsigned d = 0; d < 3; d++)
        left |= affine->ids[d].factor && (!known || known[d] > 1) ? 1u << d : 0;
    for (unsigned tries = 0; tries < 3 && left; tries++)
        for (unsigned d = 0; d < 3; d++) {
            const struct sp_wg_multiple *id = &affine->ids[d];
            if (!(left >> d & 1) || id->factor != next.factor || id->sizes != next.sizes)
                continue;
            struct sp_wg_multiple size = {known ? known[d] : 1, known ? 0 : 1u << d};
            left &= ~(1u << d);
            if (!multiply(&next, &size))
                return false;
        }
    return !left && step->factor >= next.factor && (step->sizes & next.sizes) == next.sizes;
}

LLVMValueRef sp_wg_affine_first(LLVMBuilderRef builder, const struct sp_wg_uniformity *uniformity,
                                LLVMValueRef value)
{
    if (!sp_wg_is_divergent(uniformity, value))
        return value;
    if (LLVMIsACallInst(value))
        return LLVMConstInt(LLVMTypeOf(value), 0, false);
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        LLVMSetOperand(copy, (unsigned)i,
                       sp_wg_affine_first(builder, uniformity, LLVMGetOperand(value, (unsigned)i)));
    LLVMInsertIntoBuilder(builder, copy);
    return copy;
}

bool sp_wg_first_number(LLVMValueRef value, uint64_t *number)
{
    uint64_t a, b = 0;
    if (small_number(value, number))
        return true;
    if (dimension_of(value, "__sp_local_id_") >= 0) {
        *number = 0;
        return true;
    }
    LLVMOpcode opcode = opcode_of(value);
    bool cast = opcode == LLVMTrunc || opcode == LLVMZExt || opcode == LLVMSExt;
    if (opcode == LLVMMul) /* rows of a size that is not known, in the first one */
        for (unsigned i = 0; i < 2; i++)
            if (sp_wg_first_number(LLVMGetOperand(value, i), number) && *number == 0)
                return true;
    if ((!cast && !LLVMIsABinaryOperator(value)) ||
        !sp_wg_first_number(LLVMGetOperand(value, 0), &a) ||
        (!cast && !sp_wg_first_number(LLVMGetOperand(value, 1), &b)))
        return false;
    switch (opcode) {
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
        *number = a;
        break;
    case LLVMAdd:
        *number = sum(a, b);
        break;
    case LLVMMul:
        *number = product(a, b);
        break;
    case LLVMShl:
        *number = b > 30 ? LARGEST : product(a, UINT64_C(1) << b);
        break;
    case LLVMAnd:
        *number = a & b;
        break;
    default:
        return false;
    }
    /* Nothing was cut off, and nothing is negative. */
    unsigned bits = LLVMGetIntTypeWidth(LLVMTypeOf(cast ? LLVMGetOperand(value, 0) : value));
    if (LLVMGetIntTypeWidth(LLVMTypeOf(value)) < bits)
        bits = LLVMGetIntTypeWidth(LLVMTypeOf(value));
    return *number < LARGEST && (bits > 32 || *number >> (bits - 1) == 0);
}

/* A call of a function of docs/compiler-contract.md, which is declared where it is not yet. */
static LLVMValueRef ask(LLVMBuilderRef builder, LLVMModuleRef module, const char *prefix,
                        unsigned d)
{
    char name[40];
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef type = LLVMFunctionType(LLVMInt64TypeInContext(context), NULL, 0, false);
    snprintf(name, sizeof(name), "%s%u", prefix, d);
    LLVMValueRef function = LLVMGetNamedFunction(module, name);
    if (!function) {
        static const struct {
            const char *name;
            uint64_t value;
        } attributes[] = {{"nounwind", 0}, {"willreturn", 0}, {"memory", 0}};
        function = LLVMAddFunction(module, name, type);
        for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
            unsigned kind =
                LLVMGetEnumAttributeKindForName(attributes[i].name, strlen(attributes[i].name));
            LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                    LLVMCreateEnumAttribute(context, kind, attributes[i].value));
        }
    }
    return LLVMBuildCall2(builder, type, function, NULL, 0, "");
}

static LLVMValueRef build_multiple(LLVMBuilderRef builder, LLVMModuleRef module, LLVMValueRef value,
                                   const struct sp_wg_multiple *multiple)
{
    if (multiple->factor != 1)
        value = LLVMBuildMul(builder, value,
                             LLVMConstInt(LLVMTypeOf(value), multiple->factor, false), "");
    for (unsigned d = 0; d < 3; d++)
        if (multiple->sizes >> d & 1)
            value = LLVMBuildMul(builder, value, ask(builder, module, "__sp_local_size_", d), "");
    return value;
}

LLVMValueRef sp_wg_affine_distance(LLVMBuilderRef builder, LLVMModuleRef module,
                                   const struct sp_wg_affine *affine, LLVMTypeRef type)
{
    LLVMValueRef total = NULL;
    for (unsigned d = 0; d < 3; d++) {
        if (!affine->ids[d].factor)
            continue;
        LLVMValueRef part = build_multiple(
            builder, module, ask(builder, module, "__sp_local_id_", d), &affine->ids[d]);
        part = LLVMBuildIntCast2(builder, part, type, false, "");
        total = total ? LLVMBuildAdd(builder, total, part, "") : part;
    }
    return total ? total : LLVMConstInt(type, 0, false);
}

LLVMValueRef sp_wg_affine_span(LLVMBuilderRef builder, LLVMModuleRef module,
                               const struct sp_wg_affine *affine, LLVMTypeRef type,
                               const uint64_t *known)
{
    if (known)
        return LLVMConstInt(type, sp_wg_affine_reach(affine, known), false);
    LLVMValueRef total = LLVMConstInt(type, 0, false);
    for (unsigned d = 0; d < 3; d++) {
        if (!affine->ids[d].factor)
            continue;
        LLVMValueRef last = ask(builder, module, "__sp_local_size_", d);
        last = LLVMBuildSub(builder, last, LLVMConstInt(LLVMTypeOf(last), 1, false), "");
        last = build_multiple(builder, module, last, &affine->ids[d]);
        total = LLVMBuildAdd(builder, total, LLVMBuildIntCast2(builder, last, type, false, ""), "");
    }
    return total;
}
