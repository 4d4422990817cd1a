/* See lanes.h. A chunk is a vector's worth of work-items, consecutive in x. shapes.h knows which
 * way each of them goes, and how far from the first one's address each other's is; chunks that
 * agree in both are one piece: a loop over them, wherever they lie, straight inside.
 *
 *   exchange over distance 4, eight lanes, v[2 * lid - (lid & 3)] and that + 4:
 *     addresses of a chunk    a: 0 1 2 3 8 9 10 11     b: 4 5 6 7 12 13 14 15
 *     loads                   two whole vectors at 0 and 8; a and b are shuffles of these
 *     stores                  kept back until a and b are both there: two shuffles, two vectors
 *
 * What is the same for the whole chunk is scalar code, made by emit.c for the first active
 * work-item; a number that differs by known amounts is that plus a constant vector. Blocks that
 * some work-items of a chunk pass by have a constant mask.
 *
 * Loads may read what lies between the lowest and the highest address that accesses of the block
 * through one pointer have in this chunk, since that is inside one object; stores write nothing but
 * what the source writes. Stores are kept back only as long as nothing else touches memory.
 *
 * Called by emit.c. */
#include "compiler/cc/workgroup/lanes.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/chunks.h"
#include "compiler/cc/workgroup/metadata.h"

#include <stdlib.h>
#include <string.h>

/* Stores that are kept back together: the parts of 8 elements for each work-item. */
#define MOST_KEPT 8u

#define NO_LANE SP_WG_NO_LANE

/* An access of the current piece: for each lane the distance in bytes from `leader`'s first active
 * lane, and that address. */
struct place {
    LLVMValueRef pointer; /* in the region; whose copy is the leader's address */
    LLVMTypeRef type;
    uint32_t bytes, alignment;
    int64_t offset[SP_WG_MOST_LANES];
};

struct kept {
    LLVMValueRef vector, store;
    struct place place;
};

struct sp_wg_lanes {
    const struct sp_wg_lanes_maker *maker;
    struct sp_wg_chunks chunks;
    LLVMBuilderRef at;
    LLVMTypeRef i8, i32, i64;
    unsigned piece;                /* the current one */
    uint64_t first;                /* its first chunk */
    uint32_t block;                /* place in shapes.blocks of the current one */
    uint32_t lead;                 /* its first active lane */
    bool active[SP_WG_MOST_LANES]; /* in the current block */
    bool all_active;
    struct sp_map vectors; /* instruction to its vector, in the current block */
    LLVMValueRef *slots;   /* by variable: its vector */
    struct kept kept[MOST_KEPT];
    unsigned num_kept;
};

/* --- Vectors --------------------------------------------------------------------------------- */

static LLVMTypeRef vector_type(const struct sp_wg_lanes *l, LLVMTypeRef type)
{
    return LLVMVectorType(type, l->chunks.count);
}

static LLVMValueRef lane_number(const struct sp_wg_lanes *l, uint64_t lane)
{
    return LLVMConstInt(l->i32, lane, false);
}

static LLVMValueRef splat(const struct sp_wg_lanes *l, LLVMValueRef value)
{
    LLVMValueRef copies[SP_WG_MOST_LANES];
    for (uint32_t lane = 0; lane < l->chunks.count; lane++)
        copies[lane] = LLVMIsConstant(value) ? value : lane_number(l, 0);
    if (LLVMIsConstant(value))
        return LLVMConstVector(copies, l->chunks.count);
    LLVMValueRef none = LLVMGetPoison(vector_type(l, LLVMTypeOf(value)));
    LLVMValueRef one = LLVMBuildInsertElement(l->at, none, value, lane_number(l, 0), "");
    return LLVMBuildShuffleVector(l->at, one, none, LLVMConstVector(copies, l->chunks.count), "");
}

/* The vector of a number that each lane has in chunk `first`; or of its distance from the leading
 * lane's. */
static LLVMValueRef constant_lanes(const struct sp_wg_lanes *l, const struct sp_wg_shape *shape,
                                   uint64_t minus)
{
    LLVMTypeRef type = LLVMIntTypeInContext(LLVMGetTypeContext(l->i8), shape->width);
    LLVMValueRef numbers[SP_WG_MOST_LANES];
    for (uint32_t lane = 0; lane < l->chunks.count; lane++) {
        uint64_t number = shape->by_item[l->first * l->chunks.count + lane] - minus;
        numbers[lane] = LLVMConstInt(type, l->active[lane] ? number : 0, false);
    }
    return LLVMConstVector(numbers, l->chunks.count);
}

/* Whether the lanes have the same numbers in all chunks of the piece. */
static bool is_the_same_in_all_chunks(const struct sp_wg_lanes *l, const struct sp_wg_shape *shape)
{
    if (shape->num_terms)
        return false;
    for (uint64_t chunk = l->first; chunk < sp_wg_num_chunks(&l->chunks);
         chunk = sp_wg_next_chunk(&l->chunks, l->piece, chunk + 1))
        if (shape->by_item[chunk * l->chunks.count + l->lead] !=
            shape->by_item[l->first * l->chunks.count + l->lead])
            return false;
    return true;
}

/* The operand for all lanes. */
static LLVMValueRef vector_of(struct sp_wg_lanes *l, LLVMValueRef value)
{
    LLVMValueRef vector = sp_map_get(&l->vectors, value);
    if (vector)
        return vector;
    const struct sp_wg_shape *shape = sp_wg_shape(&l->chunks.shapes, value);
    if (shape && shape->kind == SP_WG_NUMBER && is_the_same_in_all_chunks(l, shape)) {
        vector = constant_lanes(l, shape, 0);
    } else {
        vector = splat(l, l->maker->operand(l->maker->data, value));
        if (shape && shape->kind == SP_WG_NUMBER)
            vector = LLVMBuildAdd(
                l->at, vector,
                constant_lanes(l, shape, shape->by_item[l->first * l->chunks.count + l->lead]), "");
    }
    if (shape)
        sp_map_set(&l->vectors, value, vector);
    return vector;
}

/* Lanes of `sources`: for each lane which source and which of its lanes, or NO_LANE. Two sources at
 * a time are shuffled to where they belong, then these. */
static LLVMValueRef gather_lanes(const struct sp_wg_lanes *l, LLVMValueRef *sources,
                                 unsigned num_sources, uint32_t *source, uint32_t *lane)
{
    LLVMValueRef mask[SP_WG_MOST_LANES];
    while (num_sources) {
        unsigned halved = 0;
        for (unsigned s = 0; s < num_sources; s += 2) {
            bool moves = s + 1 < num_sources;
            for (uint32_t i = 0; i < l->chunks.count; i++) {
                bool mine = lane[i] != NO_LANE && source[i] / 2 == s / 2;
                uint32_t number = mine ? lane[i] + (source[i] % 2) * l->chunks.count : 0;
                mask[i] = mine ? lane_number(l, number) : LLVMGetPoison(l->i32);
                moves |= mine && number != i;
            }
            LLVMValueRef other =
                s + 1 < num_sources ? sources[s + 1] : LLVMGetPoison(LLVMTypeOf(sources[s]));
            sources[halved++] =
                moves ? LLVMBuildShuffleVector(l->at, sources[s], other,
                                               LLVMConstVector(mask, l->chunks.count), "")
                      : sources[s];
        }
        for (uint32_t i = 0; i < l->chunks.count; i++) {
            source[i] /= 2;
            lane[i] = lane[i] == NO_LANE ? NO_LANE : i;
        }
        if (halved == 1)
            break;
        num_sources = halved;
    }
    return sources[0];
}

/* `changed` in active lanes, `before` in others. */
static LLVMValueRef blend(const struct sp_wg_lanes *l, LLVMValueRef changed, LLVMValueRef before)
{
    LLVMValueRef mask[SP_WG_MOST_LANES];
    if (l->all_active || !before)
        return changed;
    for (uint32_t lane = 0; lane < l->chunks.count; lane++)
        mask[lane] = lane_number(l, l->active[lane] ? lane : l->chunks.count + lane);
    return LLVMBuildShuffleVector(l->at, changed, before, LLVMConstVector(mask, l->chunks.count),
                                  "");
}

static LLVMValueRef mask_vector(const struct sp_wg_lanes *l)
{
    LLVMTypeRef i1 = LLVMInt1TypeInContext(LLVMGetTypeContext(l->i8));
    LLVMValueRef bits[SP_WG_MOST_LANES];
    for (uint32_t lane = 0; lane < l->chunks.count; lane++)
        bits[lane] = LLVMConstInt(i1, l->active[lane], false);
    return LLVMConstVector(bits, l->chunks.count);
}

/* --- Accesses -------------------------------------------------------------------------------- */

static LLVMValueRef moved(const struct sp_wg_lanes *l, LLVMValueRef address, int64_t bytes)
{
    LLVMValueRef distance = LLVMConstInt(l->i64, (uint64_t)bytes, true);
    return bytes ? LLVMBuildGEP2(l->at, l->i8, address, &distance, 1, "") : address;
}

/* A load or store of which the alignment is known, as the source's. */
static LLVMValueRef marked(const struct sp_wg_lanes *l, LLVMValueRef access, unsigned alignment)
{
    LLVMSetAlignment(access, alignment);
    sp_wg_mark_space(LLVMGetTypeContext(l->i8), access);
    return access;
}

static const struct sp_wg_shape *shape_of_pointer(const struct sp_wg_lanes *l, LLVMValueRef pointer)
{
    return sp_wg_shape(&l->chunks.shapes, pointer);
}

/* Whether in all chunks of the piece `b` is as far from `a`; then how far, for the leading lane. */
static bool are_together(const struct sp_wg_lanes *l, LLVMValueRef a, LLVMValueRef b,
                         int64_t *distance)
{
    const struct sp_wg_shape *of_a = shape_of_pointer(l, a), *of_b = shape_of_pointer(l, b);
    for (uint64_t chunk = l->first; chunk < sp_wg_num_chunks(&l->chunks);
         chunk = sp_wg_next_chunk(&l->chunks, l->piece, chunk + 1)) {
        int64_t bytes;
        if (!of_a || !of_b ||
            !sp_wg_distance(of_a, of_b, chunk * l->chunks.count + l->lead, &bytes) ||
            (chunk > l->first && bytes != *distance))
            return false;
        *distance = bytes;
    }
    return true;
}

/* The first access of the block that `access` is a constant distance from: its address is known
 * where any of them stands. Widens [*low, *high] to all that these access, in bytes from it. */
static void find_place(const struct sp_wg_lanes *l, LLVMValueRef access, struct place *place,
                       int64_t *low, int64_t *high)
{
    LLVMValueRef mine, other;
    LLVMValueRef leader = NULL;
    sp_wg_is_access(l->chunks.plan, access, &mine);
    place->type = sp_wg_accessed_type(access);
    place->bytes = (uint32_t)LLVMABISizeOfType(l->chunks.sizes, place->type);
    for (LLVMValueRef value = LLVMGetFirstInstruction(sp_wg_chunk_block(&l->chunks, l->block));
         value; value = LLVMGetNextInstruction(value)) {
        int64_t distance = 0;
        if (!sp_wg_is_access(l->chunks.plan, value, &other) ||
            sp_wg_accessed_type(value) != place->type ||
            !are_together(l, leader ? leader : other, leader ? other : mine, &distance))
            continue;
        unsigned alignment = LLVMGetAlignment(value);
        if (!leader) {
            leader = other;
            place->pointer = other;
            place->alignment = place->bytes;
            for (uint32_t lane = 0; lane < l->chunks.count; lane++)
                place->offset[lane] = distance;
            distance = 0;
            *low = INT64_MAX;
            *high = INT64_MIN;
        }
        place->alignment = alignment < place->alignment ? alignment : place->alignment;
        const uint64_t *by_item = shape_of_pointer(l, other)->by_item + l->first * l->chunks.count;
        for (uint32_t lane = 0; lane < l->chunks.count; lane++) {
            int64_t offset = distance + (int64_t)(by_item[lane] - by_item[l->lead]);
            if (!l->active[lane])
                continue;
            *low = offset < *low ? offset : *low;
            *high = offset > *high ? offset : *high;
        }
    }
    const uint64_t *by_item = shape_of_pointer(l, mine)->by_item + l->first * l->chunks.count;
    for (uint32_t lane = 0; lane < l->chunks.count; lane++)
        place->offset[lane] += (int64_t)(by_item[lane] - by_item[l->lead]);
}

static bool is_contiguous(const struct sp_wg_lanes *l, const struct place *place)
{
    for (uint32_t lane = 0; lane < l->chunks.count; lane++)
        if (l->active[lane] && place->offset[lane] - place->offset[l->lead] !=
                                   ((int64_t)lane - l->lead) * place->bytes)
            return false;
    return true;
}

static LLVMValueRef call_intrinsic(const struct sp_wg_lanes *l, const char *name,
                                   LLVMTypeRef *types, size_t num_types, LLVMValueRef *operands,
                                   unsigned count)
{
    LLVMModuleRef module = LLVMGetGlobalParent(l->maker->function);
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(module, id, types, num_types);
    return LLVMBuildCall2(l->at, LLVMGlobalGetValueType(function), function, operands, count, "");
}

/* The address of lane 0 where all are in a row. */
static LLVMValueRef row_address(const struct sp_wg_lanes *l, const struct place *place)
{
    LLVMValueRef leader = l->maker->operand(l->maker->data, place->pointer);
    return moved(l, leader, place->offset[l->lead] - (int64_t)l->lead * place->bytes);
}

static LLVMValueRef load_row(const struct sp_wg_lanes *l, LLVMValueRef load,
                             const struct place *place)
{
    LLVMTypeRef type = vector_type(l, place->type);
    LLVMValueRef address = row_address(l, place);
    unsigned alignment = LLVMGetAlignment(load);
    if (!l->all_active) {
        LLVMTypeRef types[2] = {type, LLVMTypeOf(address)};
        LLVMValueRef operands[4] = {address, lane_number(l, alignment), mask_vector(l),
                                    LLVMGetPoison(type)};
        return call_intrinsic(l, "llvm.masked.load", types, 2, operands, 4);
    }
    LLVMValueRef vector = LLVMBuildLoad2(l->at, type, address, "");
    return marked(l, vector, alignment);
}

static void store_row(const struct sp_wg_lanes *l, const struct kept *kept)
{
    LLVMValueRef address = row_address(l, &kept->place);
    unsigned alignment = LLVMGetAlignment(kept->store);
    if (!l->all_active) {
        LLVMTypeRef types[2] = {LLVMTypeOf(kept->vector), LLVMTypeOf(address)};
        LLVMValueRef operands[4] = {kept->vector, address, lane_number(l, alignment),
                                    mask_vector(l)};
        call_intrinsic(l, "llvm.masked.store", types, 2, operands, 4);
        return;
    }
    marked(l, LLVMBuildStore(l->at, kept->vector, address), alignment);
}

static LLVMValueRef load_one_by_one(const struct sp_wg_lanes *l, LLVMValueRef load,
                                    const struct place *place)
{
    LLVMValueRef leader = l->maker->operand(l->maker->data, place->pointer);
    LLVMValueRef vector = LLVMGetPoison(vector_type(l, place->type)), loaded[SP_WG_MOST_LANES];
    for (uint32_t lane = 0; lane < l->chunks.count; lane++) {
        uint32_t before = 0;
        if (!l->active[lane])
            continue;
        while (!l->active[before] || place->offset[before] != place->offset[lane])
            before++;
        if (before == lane) {
            loaded[lane] =
                LLVMBuildLoad2(l->at, place->type, moved(l, leader, place->offset[lane]), "");
            marked(l, loaded[lane], LLVMGetAlignment(load));
        } else {
            loaded[lane] = loaded[before];
        }
        vector = LLVMBuildInsertElement(l->at, vector, loaded[lane], lane_number(l, lane), "");
    }
    return vector;
}

/* A load from whole vectors of [low, high], by shuffles; NULL where they are too many. */
static LLVMValueRef load_windows(const struct sp_wg_lanes *l, const struct place *place,
                                 int64_t low, int64_t high)
{
    int64_t width = (int64_t)place->bytes * l->chunks.count, last = high + place->bytes - width;
    int64_t starts[SP_WG_MOST_WINDOWS];
    LLVMValueRef windows[SP_WG_MOST_WINDOWS];
    uint32_t source[SP_WG_MOST_LANES], from[SP_WG_MOST_LANES];
    unsigned count = 0;
    if (last < low)
        return NULL;
    for (uint32_t lane = 0; lane < l->chunks.count; lane++) {
        unsigned w = 0;
        source[lane] = 0;
        from[lane] = NO_LANE;
        if (!l->active[lane])
            continue;
        int64_t start = low + (place->offset[lane] - low) / width * width;
        start = start > last ? last : start;
        if ((place->offset[lane] - start) % place->bytes)
            return NULL;
        while (w < count && starts[w] != start)
            w++;
        if (w == SP_WG_MOST_WINDOWS)
            return NULL;
        starts[w] = start;
        count = w == count ? count + 1 : count;
        source[lane] = w;
        from[lane] = (uint32_t)((place->offset[lane] - start) / place->bytes);
    }
    LLVMValueRef leader = l->maker->operand(l->maker->data, place->pointer);
    for (unsigned w = 0; w < count; w++) {
        windows[w] =
            LLVMBuildLoad2(l->at, vector_type(l, place->type), moved(l, leader, starts[w]), "");
        marked(l, windows[w], place->alignment);
    }
    return gather_lanes(l, windows, count, source, from);
}

static LLVMValueRef load_lanes(struct sp_wg_lanes *l, LLVMValueRef load)
{
    struct place place;
    int64_t low, high;
    find_place(l, load, &place, &low, &high);
    if (is_contiguous(l, &place))
        return load_row(l, load, &place);
    LLVMValueRef vector = load_windows(l, &place, low, high);
    return vector ? vector : load_one_by_one(l, load, &place);
}

static void store_one_by_one(const struct sp_wg_lanes *l, const struct kept *kept)
{
    LLVMValueRef leader = l->maker->operand(l->maker->data, kept->place.pointer);
    for (uint32_t lane = 0; lane < l->chunks.count; lane++) {
        if (!l->active[lane])
            continue;
        LLVMValueRef value = LLVMBuildExtractElement(l->at, kept->vector, lane_number(l, lane), "");
        LLVMValueRef store =
            LLVMBuildStore(l->at, value, moved(l, leader, kept->place.offset[lane]));
        marked(l, store, LLVMGetAlignment(kept->store));
    }
}

/* Stores the kept vectors as whole vectors of memory. False where what they write has gaps. */
static bool store_windows(struct sp_wg_lanes *l)
{
    const struct place *place = &l->kept[0].place;
    int64_t low = INT64_MAX, high = INT64_MIN;
    uint32_t total = l->num_kept * l->chunks.count;
    struct {
        uint32_t source, lane;
    } from[MOST_KEPT * SP_WG_MOST_LANES];
    for (unsigned k = 0; k < l->num_kept && l->all_active; k++)
        for (uint32_t lane = 0; lane < l->chunks.count; lane++) {
            int64_t offset = l->kept[k].place.offset[lane];
            low = offset < low ? offset : low;
            high = offset > high ? offset : high;
        }
    if (!l->all_active || (high - low) / place->bytes + 1 != total)
        return false;
    for (uint32_t i = 0; i < total; i++)
        from[i].lane = NO_LANE;
    for (unsigned k = 0; k < l->num_kept; k++)
        for (uint32_t lane = 0; lane < l->chunks.count; lane++) {
            int64_t offset = l->kept[k].place.offset[lane] - low;
            if (offset % place->bytes)
                return false;
            from[offset / place->bytes].source = k;
            from[offset / place->bytes].lane = lane;
        }
    for (uint32_t i = 0; i < total; i++)
        if (from[i].lane == NO_LANE)
            return false; /* one is written twice */
    LLVMValueRef leader = l->maker->operand(l->maker->data, place->pointer);
    for (unsigned w = 0; w < l->num_kept; w++) {
        LLVMValueRef sources[MOST_KEPT];
        uint32_t source[SP_WG_MOST_LANES], lanes[SP_WG_MOST_LANES], number[MOST_KEPT];
        unsigned count = 0;
        memset(number, 0xff, sizeof(number));
        for (uint32_t i = 0; i < l->chunks.count; i++) {
            uint32_t k = from[w * l->chunks.count + i].source;
            if (number[k] == UINT32_MAX) {
                number[k] = count;
                sources[count++] = l->kept[k].vector;
            }
            source[i] = number[k];
            lanes[i] = from[w * l->chunks.count + i].lane;
        }
        LLVMValueRef vector = gather_lanes(l, sources, count, source, lanes);
        int64_t start = low + (int64_t)w * l->chunks.count * place->bytes;
        LLVMValueRef store = LLVMBuildStore(l->at, vector, moved(l, leader, start));
        marked(l, store, place->alignment);
    }
    return true;
}

static void store_kept(struct sp_wg_lanes *l)
{
    if (l->num_kept && !store_windows(l))
        for (unsigned k = 0; k < l->num_kept; k++) {
            if (is_contiguous(l, &l->kept[k].place))
                store_row(l, &l->kept[k]);
            else
                store_one_by_one(l, &l->kept[k]);
        }
    l->num_kept = 0;
}

/* Whether two stores of the block may write the same place, or are not known not to. */
static bool may_meet(const struct sp_wg_lanes *l, const struct place *a, const struct place *b)
{
    if (a->pointer != b->pointer || a->type != b->type)
        return true;
    for (uint32_t i = 0; i < l->chunks.count; i++)
        for (uint32_t j = 0; j < l->chunks.count; j++) {
            int64_t distance = a->offset[i] - b->offset[j];
            if (l->active[i] && l->active[j] && distance < a->bytes &&
                distance > -(int64_t)a->bytes)
                return true;
        }
    return false;
}

static void store_lanes(struct sp_wg_lanes *l, LLVMValueRef store)
{
    struct kept kept = {.vector = vector_of(l, LLVMGetOperand(store, 0)), .store = store};
    int64_t low, high;
    find_place(l, store, &kept.place, &low, &high);
    for (unsigned k = 0; k < l->num_kept; k++)
        if (l->num_kept == MOST_KEPT || may_meet(l, &l->kept[k].place, &kept.place))
            store_kept(l);
    l->kept[l->num_kept++] = kept;
}

/* --- Instructions ---------------------------------------------------------------------------- */

static LLVMValueRef vector_call(struct sp_wg_lanes *l, LLVMValueRef call)
{
    LLVMValueRef operands[3];
    LLVMTypeRef type = vector_type(l, LLVMTypeOf(call));
    unsigned count = LLVMGetNumArgOperands(call);
    for (unsigned i = 0; i < count; i++)
        operands[i] = vector_of(l, LLVMGetOperand(call, i));
    unsigned id = LLVMGetIntrinsicID(LLVMGetCalledValue(call));
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(LLVMGetGlobalParent(l->maker->function), id, &type, 1);
    return LLVMBuildCall2(l->at, LLVMGlobalGetValueType(function), function, operands, count, "");
}

/* A condition that is the same for the chunk stays one. */
static LLVMValueRef vector_select(struct sp_wg_lanes *l, LLVMValueRef select)
{
    LLVMValueRef condition = LLVMGetOperand(select, 0);
    const struct sp_wg_shape *shape = sp_wg_shape(&l->chunks.shapes, condition);
    bool one =
        (!shape || shape->kind != SP_WG_DIFFERENT) && sp_wg_is_same(&l->chunks.shapes, condition);
    condition = one ? l->maker->operand(l->maker->data, condition) : vector_of(l, condition);
    return LLVMBuildSelect(l->at, condition, vector_of(l, LLVMGetOperand(select, 1)),
                           vector_of(l, LLVMGetOperand(select, 2)), "");
}

static LLVMValueRef vector_operation(struct sp_wg_lanes *l, LLVMValueRef value)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode == LLVMCall)
        return vector_call(l, value);
    if (opcode == LLVMSelect)
        return vector_select(l, value);
    LLVMValueRef a = vector_of(l, LLVMGetOperand(value, 0));
    if (opcode == LLVMFNeg)
        return LLVMBuildFNeg(l->at, a, "");
    if (opcode == LLVMFreeze)
        return LLVMBuildFreeze(l->at, a, "");
    if (LLVMIsACastInst(value))
        return LLVMBuildCast(l->at, opcode, a, vector_type(l, LLVMTypeOf(value)), "");
    LLVMValueRef b = vector_of(l, LLVMGetOperand(value, 1));
    if (opcode == LLVMICmp)
        return LLVMBuildICmp(l->at, LLVMGetICmpPredicate(value), a, b, "");
    if (opcode == LLVMFCmp)
        return LLVMBuildFCmp(l->at, LLVMGetFCmpPredicate(value), a, b, "");
    return LLVMBuildBinOp(l->at, opcode, a, b, "");
}

static void emit_slot_access(struct sp_wg_lanes *l, LLVMValueRef value, LLVMValueRef slot)
{
    uint32_t v = sp_wg_variable_index(l->chunks.plan, slot);
    if (l->chunks.plan->variables[v].kind == SP_WG_SHARED) {
        l->maker->copy(l->maker->data, value);
    } else if (LLVMIsAStoreInst(value)) {
        l->slots[v] = blend(l, vector_of(l, LLVMGetOperand(value, 0)), l->slots[v]);
    } else {
        LLVMTypeRef type = vector_type(l, LLVMTypeOf(value));
        sp_map_set(&l->vectors, value, l->slots[v] ? l->slots[v] : LLVMGetPoison(type));
    }
}

static void emit_instruction(struct sp_wg_lanes *l, LLVMValueRef value)
{
    const struct sp_wg_shape *shape = sp_wg_shape(&l->chunks.shapes, value);
    bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
    LLVMValueRef pointer;
    if ((load || store) && !sp_wg_is_access(l->chunks.plan, value, &pointer)) {
        emit_slot_access(l, value, pointer);
        return;
    }
    if (store) {
        store_lanes(l, value);
        return;
    }
    if (load)
        store_kept(l);
    if (shape->kind != SP_WG_DIFFERENT) {
        l->maker->copy(l->maker->data, value);
        return;
    }
    LLVMValueRef vector = load ? load_lanes(l, value) : vector_operation(l, value);
    if (LLVMIsAInstruction(vector) && LLVMCanValueUseFastMathFlags(vector) &&
        LLVMCanValueUseFastMathFlags(value))
        LLVMSetFastMathFlags(vector, LLVMGetFastMathFlags(value));
    sp_map_set(&l->vectors, value, vector);
}

static void emit_block(struct sp_wg_lanes *l, uint32_t block, LLVMValueRef x)
{
    const bool *active = l->chunks.shapes.active[block] + l->first * l->chunks.count;
    l->block = block;
    l->lead = sp_wg_first_active(&l->chunks, block, l->first);
    if (l->lead == NO_LANE)
        return;
    l->all_active = true;
    for (uint32_t lane = 0; lane < l->chunks.count; lane++) {
        l->active[lane] = active[lane];
        l->all_active &= active[lane];
    }
    sp_map_clear(&l->vectors);
    LLVMValueRef lead = LLVMConstInt(l->i64, l->lead, false);
    l->maker->begin_item(l->maker->data, LLVMBuildAdd(l->at, x, lead, ""));
    LLVMValueRef end = LLVMGetBasicBlockTerminator(sp_wg_chunk_block(&l->chunks, block));
    for (LLVMValueRef value = LLVMGetFirstInstruction(sp_wg_chunk_block(&l->chunks, block));
         value != end; value = LLVMGetNextInstruction(value))
        if (!LLVMIsAAllocaInst(value) && !sp_ir_calls(value, SP_BARRIER_NAME))
            emit_instruction(l, value);
    store_kept(l);
}

/* Loads, or stores, the CONTEXT variables of a chunk. */
static void emit_context(struct sp_wg_lanes *l, LLVMValueRef x, bool store)
{
    l->maker->begin_item(l->maker->data, x);
    for (uint32_t v = 0; v < l->chunks.plan->num_variables; v++) {
        const struct sp_wg_variable *variable = &l->chunks.plan->variables[v];
        bool wanted =
            store ? sp_wg_is_stored(l->chunks.region, v) : sp_wg_is_loaded(l->chunks.region, v);
        LLVMTypeRef held, type = vector_type(l, variable->type);
        if (variable->kind != SP_WG_CONTEXT || !wanted || (store && !l->slots[v]))
            continue;
        LLVMValueRef address = l->maker->element(l->maker->data, v, &held), access;
        unsigned alignment = LLVMABIAlignmentOfType(l->chunks.sizes, held);
        held = vector_type(l, held);
        if (store) {
            LLVMValueRef value = l->slots[v];
            if (held != type)
                value = LLVMBuildZExt(l->at, value, held, "");
            access = LLVMBuildStore(l->at, value, address);
        } else {
            access = LLVMBuildLoad2(l->at, held, address, "");
            l->slots[v] = held == type ? access : LLVMBuildTrunc(l->at, access, type, "");
        }
        LLVMSetAlignment(access, alignment);
    }
}

static void emit_chunk(struct sp_wg_lanes *l, LLVMValueRef x)
{
    memset(l->slots, 0, l->chunks.plan->num_variables * sizeof(LLVMValueRef));
    l->maker->begin_chunk(l->maker->data, x);
    emit_context(l, x, false);
    for (uint32_t b = 0; b < l->chunks.region->num_blocks; b++)
        emit_block(l, b, x);
    emit_context(l, x, true);
}

/* The loop over the chunks of a piece in one row; else over a table of them. */
struct chunk_loop {
    uint64_t start, end, step;
    LLVMValueRef table; /* NULL for a row */
};

static struct chunk_loop chunks_of(const struct sp_wg_lanes *l)
{
    LLVMValueRef *places = sp_cc_allocate(sp_wg_num_chunks(&l->chunks) * sizeof(LLVMValueRef));
    unsigned count = 0;
    uint64_t last = l->first;
    for (uint64_t chunk = l->first; chunk < sp_wg_num_chunks(&l->chunks);
         chunk = sp_wg_next_chunk(&l->chunks, l->piece, chunk + 1)) {
        places[count++] = LLVMConstInt(l->i64, chunk * l->chunks.count, false);
        last = chunk;
    }
    struct chunk_loop loop = {l->first * l->chunks.count, (last + 1) * l->chunks.count,
                              l->chunks.count, NULL};
    if (last - l->first + 1 > count) {
        LLVMTypeRef type = LLVMArrayType2(l->i64, count);
        loop = (struct chunk_loop){
            0, count, 1, LLVMAddGlobal(LLVMGetGlobalParent(l->maker->function), type, "")};
        LLVMSetInitializer(loop.table, LLVMConstArray2(l->i64, places, count));
        LLVMSetLinkage(loop.table, LLVMPrivateLinkage);
        LLVMSetGlobalConstant(loop.table, true);
    }
    free(places);
    return loop;
}

struct open_loop {
    LLVMBasicBlockRef body, after;
    LLVMValueRef counter;
};

static struct open_loop begin_loop(const struct sp_wg_lanes *l, uint64_t start)
{
    LLVMContextRef context = LLVMGetTypeContext(l->i8);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(l->at);
    LLVMValueRef first = LLVMConstInt(l->i64, start, false);
    struct open_loop loop = {LLVMAppendBasicBlockInContext(context, l->maker->function, "lanes"),
                             LLVMAppendBasicBlockInContext(context, l->maker->function, "after"),
                             NULL};
    LLVMBuildBr(l->at, loop.body);
    LLVMPositionBuilderAtEnd(l->at, loop.body);
    loop.counter = LLVMBuildPhi(l->at, l->i64, "");
    LLVMAddIncoming(loop.counter, &first, &before, 1);
    return loop;
}

static void end_loop(const struct sp_wg_lanes *l, const struct open_loop *loop, uint64_t step,
                     uint64_t end)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->at);
    LLVMValueRef next = LLVMBuildAdd(l->at, loop->counter, LLVMConstInt(l->i64, step, false), "");
    LLVMSetNUW(next, true);
    LLVMSetNSW(next, true);
    LLVMAddIncoming(loop->counter, &next, &latch, 1);
    LLVMValueRef more =
        LLVMBuildICmp(l->at, LLVMIntULT, next, LLVMConstInt(l->i64, end, false), "");
    sp_wg_mark_plain_loop(LLVMGetTypeContext(l->i8),
                          LLVMBuildCondBr(l->at, more, loop->body, loop->after));
    LLVMPositionBuilderAtEnd(l->at, loop->after);
}

static void emit_piece(struct sp_wg_lanes *l)
{
    struct chunk_loop chunks = chunks_of(l);
    uint64_t period =
        l->chunks.num_pieces == 1 ? sp_wg_chunk_period(&l->chunks) : sp_wg_num_chunks(&l->chunks);
    if (!chunks.table && chunks.end - chunks.start == chunks.step) {
        emit_chunk(l, LLVMConstInt(l->i64, chunks.start, false));
    } else if (period < sp_wg_num_chunks(&l->chunks)) {
        struct open_loop outer = begin_loop(l, 0), inner = begin_loop(l, 0);
        emit_chunk(l, LLVMBuildAdd(l->at, outer.counter, inner.counter, ""));
        end_loop(l, &inner, period * l->chunks.count, l->chunks.shapes.local_size[0]);
        end_loop(l, &outer, l->chunks.count, period * l->chunks.count);
    } else {
        struct open_loop loop = begin_loop(l, chunks.start);
        LLVMValueRef x = loop.counter;
        if (chunks.table)
            x = LLVMBuildLoad2(l->at, l->i64, LLVMBuildGEP2(l->at, l->i64, chunks.table, &x, 1, ""),
                               "");
        emit_chunk(l, x);
        end_loop(l, &loop, chunks.step, chunks.end);
    }
}

struct sp_wg_lanes *sp_wg_lanes_create(const struct sp_wg_plan *plan,
                                       const struct sp_wg_region *region,
                                       const struct sp_wg_agreed *agreed,
                                       const uint64_t local_size[3], uint32_t vector_bits)
{
    struct sp_wg_chunks chunks;
    if (!sp_wg_chunks_init(&chunks, plan, region, agreed, local_size, vector_bits))
        return NULL;
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(plan->analysis.graph.function));
    struct sp_wg_lanes *l = sp_cc_allocate(sizeof(*l));
    l->chunks = chunks;
    l->i8 = LLVMInt8TypeInContext(context);
    l->i32 = LLVMInt32TypeInContext(context);
    l->i64 = LLVMInt64TypeInContext(context);
    return l;
}

void sp_wg_lanes_destroy(struct sp_wg_lanes *l)
{
    if (!l)
        return;
    sp_map_finish(&l->vectors);
    sp_wg_chunks_finish(&l->chunks);
    free(l);
}

void sp_wg_lanes_emit(struct sp_wg_lanes *l, const struct sp_wg_lanes_maker *maker)
{
    l->maker = maker;
    l->at = maker->at;
    l->slots = sp_cc_allocate(l->chunks.plan->num_variables * sizeof(LLVMValueRef));
    for (l->piece = 0; l->piece < l->chunks.num_pieces; l->piece++) {
        l->first = sp_wg_next_chunk(&l->chunks, l->piece, 0);
        emit_piece(l);
    }
    free(l->slots);
}
