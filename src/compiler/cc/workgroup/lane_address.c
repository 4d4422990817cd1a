/* See lane_address.h. A constant that is added to an index before it is extended counts only where
 * the sum is known not to wrap. Called by rows.c, after LLVM's optimiser, which leaves constants on
 * the right. */
#include "compiler/cc/workgroup/lane_address.h"

#include "compiler/cc/ir.h"

/* Operations between a lane's index and the induction variable of its loop. */
#define MOST_STEPS 12u

/* --- Taking apart ---------------------------------------------------------------------------- */

/* The number that a constant is, or that is in its lane. */
static bool number_in(LLVMValueRef value, int lane, LLVMValueRef *number)
{
    if (!LLVMIsConstant(value))
        return false;
    if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind)
        value = lane < 0 ? NULL : LLVMGetAggregateElement(value, (unsigned)lane);
    *number = value;
    return value && LLVMIsAConstantInt(value) && LLVMGetIntTypeWidth(LLVMTypeOf(value)) <= 64;
}

static unsigned width_of(LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        type = LLVMGetElementType(type);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
}

/* Whether `value` is a sum whose extension is the sum of the extensions. */
static bool is_exact_sum(LLVMValueRef value, LLVMOpcode extension)
{
    if (!LLVMIsAInstruction(value))
        return false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMOr:
        return LLVMGetIsDisjoint(value);
    case LLVMAdd:
        return !extension || (extension == LLVMZExt ? LLVMGetNUW(value) : LLVMGetNSW(value));
    default:
        return false;
    }
}

static bool is_extension(LLVMValueRef value, LLVMOpcode *extension)
{
    if (!LLVMIsAInstruction(value))
        return false;
    *extension = LLVMGetInstructionOpcode(value);
    return (*extension == LLVMZExt || *extension == LLVMSExt) && width_of(value) == 64;
}

/* Adds `scale` times the index to the address, which has none yet. */
static void take_index(struct sp_wg_lane_address *address, LLVMValueRef value, int lane,
                       uint64_t scale)
{
    LLVMOpcode extension = width_of(value) < 64 ? LLVMSExt : (LLVMOpcode)0, found;
    LLVMValueRef number;
    for (;;) {
        if (lane < 0 && LLVMIsAExtractElementInst(value) &&
            LLVMIsAConstantInt(LLVMGetOperand(value, 1))) {
            lane = (int)LLVMConstIntGetZExtValue(LLVMGetOperand(value, 1));
            value = LLVMGetOperand(value, 0);
        } else if (number_in(value, lane, &number) && extension != LLVMZExt) {
            address->offset += (int64_t)((uint64_t)LLVMConstIntGetSExtValue(number) * scale);
            return;
        } else if (is_exact_sum(value, extension) &&
                   number_in(LLVMGetOperand(value, 1), lane, &number)) {
            uint64_t added = extension == LLVMZExt ? LLVMConstIntGetZExtValue(number)
                                                   : (uint64_t)LLVMConstIntGetSExtValue(number);
            address->offset += (int64_t)(added * scale);
            value = LLVMGetOperand(value, 0);
        } else if (!extension && is_extension(value, &found)) {
            extension = found;
            value = LLVMGetOperand(value, 0);
        } else {
            break;
        }
    }
    address->index = value;
    address->index_lane = lane;
    address->extension = extension;
    address->scale = scale;
}

/* The type that a GEP's operand `i` steps over, from the type before it; NULL where that hangs on
 * the operand or is not known. */
static LLVMTypeRef stepped_over(LLVMTypeRef before, unsigned i)
{
    if (i == 1)
        return before;
    return LLVMGetTypeKind(before) == LLVMArrayTypeKind ? LLVMGetElementType(before) : NULL;
}

/* One step towards the base. False, with nothing changed, for a GEP of another sort, or one more
 * index. */
static bool take_gep(LLVMTargetDataRef sizes, LLVMValueRef gep, int lane,
                     struct sp_wg_lane_address *address)
{
    struct sp_wg_lane_address taken = *address;
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    LLVMValueRef number;
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i);
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            if (!number_in(index, lane, &number))
                return false;
            unsigned field = (unsigned)LLVMConstIntGetZExtValue(number);
            taken.offset += (int64_t)LLVMOffsetOfElement(sizes, type, field);
            type = LLVMStructGetTypeAtIndex(type, field);
            continue;
        }
        type = stepped_over(type, i);
        if (!type)
            return false;
        uint64_t scale = LLVMABISizeOfType(sizes, type);
        if (number_in(index, lane, &number)) {
            taken.offset += (int64_t)((uint64_t)LLVMConstIntGetSExtValue(number) * scale);
            continue;
        }
        if (taken.index)
            return false;
        bool vector = LLVMGetTypeKind(LLVMTypeOf(index)) == LLVMVectorTypeKind;
        take_index(&taken, index, vector ? lane : -1, scale);
    }
    *address = taken;
    return true;
}

void sp_wg_lane_address(LLVMTargetDataRef sizes, LLVMValueRef pointer, int lane,
                        struct sp_wg_lane_address *address)
{
    *address = (struct sp_wg_lane_address){.index_lane = -1};
    for (;;) {
        if (LLVMGetTypeKind(LLVMTypeOf(pointer)) != LLVMVectorTypeKind)
            lane = -1;
        if (lane < 0 && LLVMIsAExtractElementInst(pointer) &&
            LLVMIsAConstantInt(LLVMGetOperand(pointer, 1))) {
            lane = (int)LLVMConstIntGetZExtValue(LLVMGetOperand(pointer, 1));
            pointer = LLVMGetOperand(pointer, 0);
        } else if (LLVMIsAGetElementPtrInst(pointer) && take_gep(sizes, pointer, lane, address)) {
            pointer = LLVMGetOperand(pointer, 0);
        } else {
            break;
        }
    }
    address->base = pointer;
    address->base_lane = lane;
}

bool sp_wg_lane_addresses_differ_by_offset(const struct sp_wg_lane_address *a,
                                           const struct sp_wg_lane_address *b)
{
    return a->base == b->base && a->base_lane == b->base_lane && a->index == b->index &&
           a->index_lane == b->index_lane && a->extension == b->extension && a->scale == b->scale;
}

/* --- Lanes apart ----------------------------------------------------------------------------- */

/* A vector whose lanes are first + lane * step, modulo 2^bits; the lowest `zeros` bits of all are
 * 0. */
struct progression {
    uint64_t step;
    unsigned bits, zeros;
};

static unsigned trailing_zeros(uint64_t value)
{
    return value ? (unsigned)__builtin_ctzll(value) : 64;
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool constant_progression(LLVMValueRef value, struct progression *found)
{
    unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(value));
    LLVMValueRef first, second, lane;
    if (lanes < 2 || !number_in(value, 0, &first) || !number_in(value, 1, &second))
        return false;
    uint64_t start = LLVMConstIntGetZExtValue(first);
    *found = (struct progression){.step = LLVMConstIntGetZExtValue(second) - start,
                                  .bits = width_of(value)};
    uint64_t mask = found->bits < 64 ? (UINT64_C(1) << found->bits) - 1 : UINT64_MAX;
    for (unsigned l = 2; l < lanes; l++)
        if (!number_in(value, (int)l, &lane) ||
            ((LLVMConstIntGetZExtValue(lane) - start - l * found->step) & mask))
            return false;
    found->zeros = smaller(trailing_zeros(start), trailing_zeros(found->step));
    return true;
}

/* A shuffle that gives all lanes one value. */
static bool is_broadcast(LLVMValueRef value)
{
    if (!LLVMIsAShuffleVectorInst(value))
        return false;
    for (unsigned i = 0; i < LLVMGetNumMaskElements(value); i++)
        if (LLVMGetMaskValue(value, i) != 0)
            return false;
    return true;
}

static bool find_progression(LLVMValueRef value, unsigned steps, struct progression *found);

/* An induction variable: a progression at first, to which the same is added in all lanes. */
static bool phi_progression(LLVMValueRef phi, unsigned steps, struct progression *found)
{
    struct progression added;
    for (unsigned i = 0; LLVMCountIncoming(phi) == 2 && i < 2; i++) {
        LLVMValueRef next = LLVMGetIncomingValue(phi, i);
        if (!LLVMIsAInstruction(next) || LLVMGetInstructionOpcode(next) != LLVMAdd ||
            LLVMGetOperand(next, 0) != phi)
            continue;
        if (!find_progression(LLVMGetIncomingValue(phi, 1 - i), steps, found) ||
            !find_progression(LLVMGetOperand(next, 1), steps, &added) || added.step)
            return false;
        found->zeros = smaller(found->zeros, added.zeros);
        return true;
    }
    return false;
}

/* A mask that keeps some low bits, of which the lowest may be 0 in `found` already. */
static bool mask_progression(uint64_t mask, struct progression *found)
{
    unsigned low = trailing_zeros(mask);
    uint64_t filled = mask | ((low < 64 ? UINT64_C(1) << low : 0) - 1);
    if (!mask || low > found->zeros || (filled & (filled + 1)))
        return false;
    found->bits = smaller(found->bits, filled == UINT64_MAX ? 64 : trailing_zeros(filled + 1));
    return true;
}

static bool operation_progression(LLVMValueRef value, unsigned steps, struct progression *found)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    LLVMValueRef number;
    struct progression right;
    if (!find_progression(LLVMGetOperand(value, 0), steps, found))
        return false;
    if (opcode == LLVMZExt || opcode == LLVMSExt)
        return true;
    if (opcode == LLVMTrunc) {
        found->bits = smaller(found->bits, width_of(value));
        return true;
    }
    if (opcode == LLVMAdd || opcode == LLVMSub) {
        if (!find_progression(LLVMGetOperand(value, 1), steps, &right))
            return false;
        found->step += opcode == LLVMAdd ? right.step : 0 - right.step;
        found->bits = smaller(found->bits, right.bits);
        found->zeros = smaller(found->zeros, right.zeros);
        return true;
    }
    if (!find_progression(LLVMGetOperand(value, 1), steps, &right) || right.step ||
        !number_in(LLVMGetOperand(value, 1), 0, &number))
        return false;
    uint64_t by = LLVMConstIntGetZExtValue(number);
    switch (opcode) {
    case LLVMOr: /* disjoint: a sum */
        found->zeros = smaller(found->zeros, trailing_zeros(by));
        return LLVMGetIsDisjoint(value);
    case LLVMAnd:
        return mask_progression(by, found);
    case LLVMShl:
        if (by >= found->bits)
            return false;
        found->step <<= by;
        found->zeros = smaller(found->zeros + (unsigned)by, 64);
        return true;
    case LLVMMul:
        found->step *= by;
        found->zeros = smaller(found->zeros + trailing_zeros(by), 64);
        return true;
    default:
        return false;
    }
}

static bool find_progression(LLVMValueRef value, unsigned steps, struct progression *found)
{
    if (!width_of(value) || width_of(value) > 64 ||
        LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMVectorTypeKind || !steps)
        return false;
    if (LLVMIsConstant(value))
        return constant_progression(value, found);
    if (is_broadcast(value)) {
        *found = (struct progression){.bits = width_of(value)};
        return true;
    }
    if (LLVMIsAPHINode(value))
        return phi_progression(value, steps - 1, found);
    if (LLVMIsABinaryOperator(value) || LLVMIsACastInst(value))
        return operation_progression(value, steps - 1, found);
    return false;
}

bool sp_wg_lanes_are_apart(const struct sp_wg_lane_address *addresses, unsigned lanes,
                           uint64_t bytes)
{
    struct progression found;
    LLVMValueRef index = addresses[0].index;
    if (!index || !find_progression(index, MOST_STEPS, &found))
        return false;
    for (unsigned lane = 0; lane < lanes; lane++)
        if (addresses[lane].index != index || addresses[lane].index_lane != (int)lane ||
            addresses[lane].base != addresses[0].base || addresses[lane].base_lane != -1 ||
            addresses[lane].extension != addresses[0].extension ||
            addresses[lane].scale != addresses[0].scale ||
            addresses[lane].offset != addresses[0].offset)
            return false;
    /* In bytes, modulo a power of two that is the index's times what divides the scale. */
    uint64_t step = found.step * addresses[0].scale;
    unsigned bits = smaller(found.bits + trailing_zeros(addresses[0].scale), 64);
    uint64_t mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    for (uint64_t distance = 1; distance < lanes; distance++) {
        uint64_t between = distance * step & mask;
        if (between < bytes || mask - between + 1 < bytes)
            return false;
    }
    return true;
}
