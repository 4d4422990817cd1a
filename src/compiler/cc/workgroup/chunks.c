/* See chunks.h. Vectors are made by lanes.c where LLVM does not see neighbours; where all accesses
 * grow evenly from work-item to work-item it does as well, and knows more tricks. Called by
 * lanes.c. */
#include "compiler/cc/workgroup/chunks.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/narrow.h"

#include <stdlib.h>
#include <string.h>

/* Below 4 lanes nothing is gained. */
#define LEAST_LANES 4u

/* Loops that one region becomes. */
#define MOST_PIECES 8u

/* Instructions of a region; one with more, as the rounds of a hash, is not what this is for. */
#define MOST_INSTRUCTIONS 2048u

LLVMBasicBlockRef sp_wg_chunk_block(const struct sp_wg_chunks *c, uint32_t place)
{
    return c->plan->analysis.graph.blocks[c->shapes.blocks[place]];
}

LLVMTypeRef sp_wg_accessed_type(LLVMValueRef access)
{
    return LLVMTypeOf(LLVMIsALoadInst(access) ? access : LLVMGetOperand(access, 0));
}

/* The lanes that suit the largest element which the region accesses, as a divisor of the local
 * size; 0 where there is none. */
static uint32_t choose_lanes(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                             LLVMTargetDataRef sizes, uint64_t items, uint32_t vector_bits)
{
    unsigned long long bits = 32;
    unsigned instructions = 0;
    for (uint32_t i = 0; i < region->num_blocks; i++)
        for (LLVMValueRef value =
                 LLVMGetFirstInstruction(plan->analysis.graph.blocks[region->blocks[i]]);
             value; value = LLVMGetNextInstruction(value), instructions++) {
            LLVMValueRef address;
            if (!sp_wg_is_access(plan, value, &address))
                continue;
            unsigned long long size = LLVMSizeOfTypeInBits(sizes, sp_wg_accessed_type(value));
            bits = size > bits ? size : bits;
        }
    uint32_t lanes = (uint32_t)(vector_bits / bits);
    lanes = lanes > SP_WG_MOST_LANES ? SP_WG_MOST_LANES : lanes < LEAST_LANES ? LEAST_LANES : lanes;
    while (lanes > LEAST_LANES && items % lanes)
        lanes /= 2;
    return items % lanes || instructions > MOST_INSTRUCTIONS ? 0 : lanes;
}

uint32_t sp_wg_first_active(const struct sp_wg_chunks *c, uint32_t block, uint64_t chunk)
{
    const bool *active = c->shapes.active[block] + chunk * c->count;
    for (uint32_t lane = 0; lane < c->count; lane++)
        if (active[lane])
            return lane;
    return SP_WG_NO_LANE;
}

static bool is_partly_active(const struct sp_wg_chunks *c, uint32_t block)
{
    const bool *active = c->shapes.active[block];
    uint64_t items = c->shapes.local_size[0], count = 0;
    for (uint64_t x = 0; x < items; x++)
        count += active[x];
    return count && count < items;
}

/* Whether LLVM sees the addresses grow by the same from each work-item to the next. */
static bool is_affine(const struct sp_wg_chunks *c, uint32_t block, const struct sp_wg_shape *at)
{
    const bool *active = c->shapes.active[block];
    uint64_t step = 0;
    bool known = false;
    for (uint64_t x = 1; x < c->shapes.local_size[0]; x++) {
        if (!active[x] || !active[x - 1])
            continue;
        if (known && at->by_item[x] - at->by_item[x - 1] != step)
            return false;
        step = at->by_item[x] - at->by_item[x - 1];
        known = true;
    }
    return true;
}

/* Whether in each chunk the elements lie within few vectors. */
static bool is_close(const struct sp_wg_chunks *c, uint32_t block, const struct sp_wg_shape *at,
                     uint64_t bytes)
{
    for (uint64_t chunk = 0; chunk < c->shapes.local_size[0] / c->count; chunk++) {
        uint32_t lead = sp_wg_first_active(c, block, chunk);
        const uint64_t *by_item = at->by_item + chunk * c->count;
        int64_t low = 0, high = 0;
        for (uint32_t lane = lead; lane < c->count; lane++) {
            if (!c->shapes.active[block][chunk * c->count + lane])
                continue;
            int64_t distance = (int64_t)(by_item[lane] - by_item[lead]);
            low = distance < low ? distance : low;
            high = distance > high ? distance : high;
        }
        if ((uint64_t)(high - low) > SP_WG_MOST_WINDOWS * c->count * bytes)
            return false;
    }
    return true;
}

/* Whether who runs which block is a matter of ranges that narrow.c loops over. */
static bool is_narrowed(const struct sp_wg_chunks *c)
{
    struct sp_wg_narrowing narrowing;
    uint32_t branches = 0;
    sp_wg_narrow(c->plan, c->region, c->shapes.local_size, &narrowing);
    for (uint32_t b = 0; b < c->region->num_blocks; b++)
        branches +=
            LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(sp_wg_chunk_block(c, b))) > 1 &&
            sp_wg_agreed_way(c->shapes.agreed, c->shapes.blocks[b]) < 0;
    return branches == narrowing.num_decisions;
}

/* Vectors are made here for accesses that are close but out of order, for those that lie at known
 * distances anywhere, and for blocks that only some places run; where all accesses grow evenly,
 * LLVM does it as well. */
static bool pays(const struct sp_wg_chunks *c)
{
    bool uneven = false, parted = false;
    for (uint32_t b = 0; b < c->region->num_blocks; b++) {
        bool partly = is_partly_active(c, b);
        for (LLVMValueRef value = LLVMGetFirstInstruction(sp_wg_chunk_block(c, b)); value;
             value = LLVMGetNextInstruction(value)) {
            LLVMValueRef pointer;
            if (!sp_wg_is_access(c->plan, value, &pointer) || sp_wg_is_same(&c->shapes, pointer))
                continue;
            parted |= partly;
            uneven |= !is_affine(c, b, sp_wg_shape(&c->shapes, pointer));
        }
    }
    return uneven || (parted && !is_narrowed(c));
}

static bool has_items(const struct sp_wg_shape *shape)
{
    return shape && (shape->kind == SP_WG_NUMBER || shape->kind == SP_WG_ADDRESS);
}

/* Whether the lanes of both chunks go the same ways, and differ from their first by the same. */
static bool agree(const struct sp_wg_chunks *c, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < c->region->num_blocks; i++) {
        const bool *active = c->shapes.active[i];
        uint32_t lead = sp_wg_first_active(c, i, a);
        if (memcmp(active + a * c->count, active + b * c->count, c->count * sizeof(bool)))
            return false;
        for (LLVMValueRef value = LLVMGetFirstInstruction(sp_wg_chunk_block(c, i));
             value && lead != SP_WG_NO_LANE; value = LLVMGetNextInstruction(value)) {
            const struct sp_wg_shape *shape = sp_wg_shape(&c->shapes, value);
            for (uint32_t lane = lead; has_items(shape) && lane < c->count; lane++) {
                const uint64_t *of_a = shape->by_item + a * c->count,
                               *of_b = shape->by_item + b * c->count;
                uint64_t change = (of_a[lane] - of_a[lead]) - (of_b[lane] - of_b[lead]);
                if (active[a * c->count + lane] && change << (64 - shape->width))
                    return false;
            }
        }
    }
    return true;
}

uint64_t sp_wg_num_chunks(const struct sp_wg_chunks *c)
{
    return c->shapes.local_size[0] / c->count;
}

uint64_t sp_wg_next_chunk(const struct sp_wg_chunks *c, unsigned piece, uint64_t chunk)
{
    while (chunk < sp_wg_num_chunks(c) && c->piece_of[chunk] != piece)
        chunk++;
    return chunk;
}

/* False where there are too many kinds of chunks. */
static bool find_pieces(struct sp_wg_chunks *c)
{
    c->piece_of = sp_cc_allocate(sp_wg_num_chunks(c));
    memset(c->piece_of, 0xff, sp_wg_num_chunks(c));
    for (uint64_t chunk = 0; chunk < sp_wg_num_chunks(c); chunk++) {
        unsigned piece = 0;
        while (piece < c->num_pieces && !agree(c, sp_wg_next_chunk(c, piece, 0), chunk))
            piece++;
        if (piece == MOST_PIECES)
            return false;
        c->piece_of[chunk] = (uint8_t)piece;
        c->num_pieces = piece == c->num_pieces ? piece + 1 : c->num_pieces;
    }
    return true;
}

/* Whether the load's addresses come again every `period` chunks. */
static bool repeats(const struct sp_wg_chunks *c, const struct sp_wg_shape *at, uint64_t period)
{
    uint64_t distance = period * c->count;
    for (uint64_t x = distance; x < c->shapes.local_size[0]; x++)
        if (at->by_item[x] != at->by_item[x - distance])
            return false;
    return true;
}

uint64_t sp_wg_chunk_period(const struct sp_wg_chunks *c)
{
    uint64_t period = 1;
    for (uint32_t b = 0; b < c->region->num_blocks; b++)
        for (LLVMValueRef value = LLVMGetFirstInstruction(sp_wg_chunk_block(c, b)); value;
             value = LLVMGetNextInstruction(value)) {
            LLVMValueRef pointer;
            if (!sp_wg_is_access(c->plan, value, &pointer) || !LLVMIsALoadInst(value) ||
                sp_wg_is_same(&c->shapes, pointer))
                continue;
            const struct sp_wg_shape *at = sp_wg_shape(&c->shapes, pointer);
            uint64_t bytes = LLVMABISizeOfType(c->sizes, sp_wg_accessed_type(value));
            while (!is_close(c, b, at, bytes) && period < sp_wg_num_chunks(c) &&
                   !repeats(c, at, period))
                period *= 2;
        }
    return sp_wg_num_chunks(c) % period || period == 1 ? sp_wg_num_chunks(c) : period;
}

/* Whether vectors hold all variables of the region, and work-items all go on to one place. */
static bool suits(const struct sp_wg_plan *plan, const struct sp_wg_region *region)
{
    if (region->masked || region->counts || sp_bits_count(&region->exits) != 1)
        return false;
    for (uint32_t v = 0; v < plan->num_variables; v++) {
        const struct sp_wg_variable *variable = &plan->variables[v];
        LLVMTypeKind kind = LLVMGetTypeKind(variable->type);
        if (variable->kind != SP_WG_SHARED && variable->kind != SP_WG_ARRAY &&
            sp_bits_has(&region->touched, v) && kind != LLVMIntegerTypeKind &&
            kind != LLVMFloatTypeKind && kind != LLVMDoubleTypeKind && kind != LLVMHalfTypeKind)
            return false;
    }
    return true;
}

bool sp_wg_chunks_init(struct sp_wg_chunks *c, const struct sp_wg_plan *plan,
                       const struct sp_wg_region *region, const struct sp_wg_agreed *agreed,
                       const uint64_t local_size[3], uint32_t vector_bits)
{
    *c = (struct sp_wg_chunks){
        .plan = plan,
        .region = region,
        .sizes = LLVMGetModuleDataLayout(LLVMGetGlobalParent(plan->analysis.graph.function)),
    };
    if (suits(plan, region))
        c->count = choose_lanes(plan, region, c->sizes, local_size[0], vector_bits);
    if (!c->count || !sp_wg_shapes_init(&c->shapes, plan, region, agreed, local_size, c->count))
        return false;
    if (pays(c) && find_pieces(c))
        return true;
    sp_wg_chunks_finish(c);
    return false;
}

void sp_wg_chunks_finish(struct sp_wg_chunks *c)
{
    sp_wg_shapes_finish(&c->shapes);
    free(c->piece_of);
    *c = (struct sp_wg_chunks){0};
}
