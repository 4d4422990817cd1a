/* See rows.h. A column is one vector of N work-items' elements: loaded one by one and put together,
 * or taken apart and stored. Columns of one block belong together where in each lane their
 * addresses differ by constants alone (lane_address.h). W of them, side by side, are one access of
 * W elements for each lane, and a transposition.
 *
 * Nothing is touched that was not: a row is exactly the elements of its columns, all of them
 * accessed by this block. Loads move over loads only, stores over stores of their own group only,
 * and those only where all lanes' rows are known to be apart: otherwise two of them might store to
 * one place, in an order that counts. */
#include "compiler/cc/workgroup/rows.h"

#include "compiler/cc/ir.h"
#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/lane_address.h"
#include "compiler/cc/workgroup/transpose.h"

#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

/* Fewer lanes gain nothing: a pair is put together as fast as it is turned. */
#define LEAST_LANES 4u

#define LEAST_GATHERED 4u /* columns: a gather costs little more than loads one by one */

/* The epoch of a column whose loads have a write between them. */
#define SEVERAL_EPOCHS UINT32_MAX

struct column {
    LLVMValueRef vector; /* the vector that is put together, or taken apart */
    unsigned lanes;
    bool is_store;
    bool is_grouped;
    LLVMValueRef accesses[SP_WG_MOST_LANES]; /* by lane; of a gather, all the same */
    struct sp_wg_lane_address addresses[SP_WG_MOST_LANES];
    uint32_t first, last; /* the first and the last access among those of the block, from 1 */
    LLVMValueRef end;     /* the last access */
    uint32_t epoch;       /* the number of writes before the loads, and 1 */
};

/* The columns of one block, in the order of the program. */
struct block {
    LLVMTargetDataRef sizes;
    struct column *columns; /* owned */
    size_t num_columns;
    struct sp_map ordinals; /* access to its place among the block's accesses, from 1 */
    struct sp_map epochs;   /* access to the number of writes before it, and 1 */
};

static uint32_t lookup(const struct sp_map *map, LLVMValueRef value)
{
    return (uint32_t)(uintptr_t)sp_map_get(map, value);
}

static void note(struct sp_map *map, LLVMValueRef value, uint32_t number)
{
    sp_map_set(map, value, (void *)(uintptr_t)number);
}

/* --- What touches memory --------------------------------------------------------------------- */

static bool is_plain(LLVMValueRef access)
{
    return !LLVMGetVolatile(access) && LLVMGetOrdering(access) == LLVMAtomicOrderingNotAtomic;
}

static bool is_gather(LLVMValueRef value)
{
    return sp_ir_is_intrinsic(value, "llvm.masked.gather.");
}

/* A call that neither reads nor writes memory, as those of vector math. */
static bool is_pure_call(LLVMValueRef value)
{
    static const char name[] = "memory";
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAttributeRef attribute = LLVMGetCallSiteEnumAttribute(value, at, kind);
    LLVMValueRef callee = LLVMGetCalledValue(value);
    if (!attribute && LLVMIsAFunction(callee))
        attribute = LLVMGetEnumAttributeAtIndex(callee, at, kind);
    return attribute && LLVMGetEnumAttributeValue(attribute) == 0;
}

static bool may_touch(LLVMValueRef value)
{
    if (LLVMIsACallInst(value))
        return !is_pure_call(value);
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMLoad:
    case LLVMStore:
    case LLVMFence:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
    case LLVMVAArg:
    case LLVMInvoke:
    case LLVMCallBr:
        return true;
    default:
        return false;
    }
}

static bool may_write(LLVMValueRef value)
{
    return may_touch(value) && !is_gather(value) && !(LLVMIsALoadInst(value) && is_plain(value));
}

static void number_accesses(struct block *block, LLVMBasicBlockRef from)
{
    uint32_t ordinal = 0, epoch = 1;
    for (LLVMValueRef value = LLVMGetFirstInstruction(from); value;
         value = LLVMGetNextInstruction(value)) {
        if (!may_touch(value))
            continue;
        note(&block->ordinals, value, ++ordinal);
        note(&block->epochs, value, epoch);
        epoch += may_write(value);
    }
}

/* --- Columns --------------------------------------------------------------------------------- */

/* The lanes of a vector whose elements can be columns of rows, or 0. */
static unsigned lanes_of(LLVMTargetDataRef sizes, LLVMTypeRef type)
{
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return 0;
    LLVMTypeRef element = LLVMGetElementType(type);
    unsigned lanes = LLVMGetVectorSize(type);
    LLVMTypeKind kind = LLVMGetTypeKind(element);
    if (kind != LLVMIntegerTypeKind && kind != LLVMFloatTypeKind && kind != LLVMDoubleTypeKind)
        return 0;
    unsigned long long bits = LLVMSizeOfTypeInBits(sizes, element);
    bool is_known = (bits == 32 || bits == 64) && lanes >= LEAST_LANES &&
                    lanes <= SP_WG_MOST_LANES && !(lanes & (lanes - 1)) && lanes * bits <= 512;
    return is_known ? lanes : 0;
}

static bool lane_of(LLVMValueRef index, unsigned lanes, unsigned *lane)
{
    if (!LLVMIsAConstantInt(index) || LLVMConstIntGetZExtValue(index) >= lanes)
        return false;
    *lane = (unsigned)LLVMConstIntGetZExtValue(index);
    return true;
}

/* Whether the vector is loads of this block put together; then they are in column->accesses. */
static bool collect_loads(LLVMValueRef vector, struct column *column)
{
    LLVMBasicBlockRef here = LLVMGetInstructionParent(vector);
    unsigned lane, found = 0;
    LLVMValueRef value = vector;
    for (; LLVMIsAInsertElementInst(value); value = LLVMGetOperand(value, 0)) {
        LLVMValueRef load = LLVMGetOperand(value, 1);
        if (!lane_of(LLVMGetOperand(value, 2), column->lanes, &lane) || column->accesses[lane] ||
            !LLVMIsALoadInst(load) || !is_plain(load) || !sp_ir_has_one_use(load) ||
            LLVMGetInstructionParent(load) != here ||
            (value != vector && !sp_ir_has_one_use(value)))
            return false;
        column->accesses[lane] = load;
        found++;
    }
    return found == column->lanes && LLVMIsUndef(value);
}

static bool is_all_true(LLVMValueRef mask, unsigned lanes)
{
    for (unsigned lane = 0; lane < lanes && LLVMIsConstant(mask); lane++) {
        LLVMValueRef bit = LLVMGetAggregateElement(mask, lane);
        if (!bit || !LLVMIsAConstantInt(bit) || !LLVMConstIntGetZExtValue(bit))
            return false;
    }
    return LLVMIsConstant(mask);
}

/* Whether the stores from this one on are those of one vector's elements, lane by lane. */
static bool collect_stores(LLVMValueRef store, struct column *column)
{
    LLVMValueRef vector = NULL;
    unsigned lane, found = 0;
    for (LLVMValueRef value = store; value && found < column->lanes;
         value = LLVMGetNextInstruction(value)) {
        if (!may_touch(value))
            continue;
        LLVMValueRef element = LLVMIsAStoreInst(value) ? LLVMGetOperand(value, 0) : NULL;
        if (!element || !is_plain(value) || !LLVMIsAExtractElementInst(element) ||
            (vector && LLVMGetOperand(element, 0) != vector) ||
            !lane_of(LLVMGetOperand(element, 1), column->lanes, &lane) || column->accesses[lane])
            return false;
        vector = LLVMGetOperand(element, 0);
        column->accesses[lane] = value;
        found++;
    }
    column->vector = vector;
    return found == column->lanes;
}

static void see_access(const struct block *block, struct column *column, LLVMValueRef access)
{
    uint32_t ordinal = lookup(&block->ordinals, access);
    uint32_t epoch = lookup(&block->epochs, access);
    if (!column->first || ordinal < column->first)
        column->first = ordinal;
    if (ordinal > column->last) {
        column->last = ordinal;
        column->end = access;
    }
    column->epoch = column->epoch && column->epoch != epoch ? SEVERAL_EPOCHS : epoch;
}

/* Adds the column, where nothing that may write comes between its loads. */
static void add_column(struct block *block, struct column *column)
{
    for (unsigned lane = 0; lane < column->lanes; lane++) {
        LLVMValueRef access = column->accesses[lane];
        LLVMValueRef pointer = LLVMGetOperand(access, column->is_store ? 1 : 0);
        sp_wg_lane_address(block->sizes, pointer, is_gather(access) ? (int)lane : -1,
                           &column->addresses[lane]);
        if (column->addresses[lane].offset != column->addresses[0].offset)
            return;
        see_access(block, column, access);
    }
    if (!column->is_store && column->epoch == SEVERAL_EPOCHS)
        return;
    block->columns =
        sp_cc_reallocate(block->columns, (block->num_columns + 1) * sizeof(struct column));
    block->columns[block->num_columns++] = *column;
}

static void find_column(struct block *block, LLVMValueRef value)
{
    struct column column = {.vector = value};
    if (LLVMIsAInsertElementInst(value) || is_gather(value)) {
        column.lanes = lanes_of(block->sizes, LLVMTypeOf(value));
        if (column.lanes && is_gather(value) &&
            is_all_true(LLVMGetOperand(value, 2), column.lanes)) {
            for (unsigned lane = 0; lane < column.lanes; lane++)
                column.accesses[lane] = value;
            add_column(block, &column);
        } else if (column.lanes && !is_gather(value) && collect_loads(value, &column)) {
            add_column(block, &column);
        }
    } else if (LLVMIsAStoreInst(value) && LLVMIsAExtractElementInst(LLVMGetOperand(value, 0))) {
        column.is_store = true;
        column.lanes =
            lanes_of(block->sizes, LLVMTypeOf(LLVMGetOperand(LLVMGetOperand(value, 0), 0)));
        if (column.lanes && collect_stores(value, &column))
            add_column(block, &column);
    }
}

/* --- Groups ---------------------------------------------------------------------------------- */

static bool belong_together(const struct column *a, const struct column *b)
{
    if (a->is_store != b->is_store || LLVMTypeOf(a->vector) != LLVMTypeOf(b->vector))
        return false;
    if (!a->is_store && a->epoch != b->epoch)
        return false;
    for (unsigned lane = 0; lane < a->lanes; lane++)
        if (!sp_wg_lane_addresses_differ_by_offset(&a->addresses[lane], &b->addresses[lane]))
            return false;
    return true;
}

static int by_offset(const void *a, const void *b)
{
    int64_t left = (*(struct column *const *)a)->addresses[0].offset;
    int64_t right = (*(struct column *const *)b)->addresses[0].offset;
    return left < right ? -1 : left > right;
}

/* Whether one of these elements lies over the column's. */
static bool is_stored_already(struct column *const *group, size_t count,
                              const struct column *column, uint64_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        int64_t between = column->addresses[0].offset - group[i]->addresses[0].offset;
        if (between < (int64_t)bytes && between > -(int64_t)bytes)
            return true;
    }
    return false;
}

static uint64_t element_bytes(const struct block *block, const struct column *column)
{
    return LLVMABISizeOfType(block->sizes, LLVMGetElementType(LLVMTypeOf(column->vector)));
}

/* The columns that go with number `first`, by offset. Those of stores follow one another, with no
 * other access between, and each stores elsewhere. */
static size_t find_group(struct block *block, size_t first, struct column **group)
{
    size_t count = 0;
    uint32_t last = 0;
    for (size_t i = first; i < block->num_columns; i++) {
        struct column *column = &block->columns[i];
        if (column->is_grouped || !belong_together(&block->columns[first], column))
            continue;
        if (column->is_store && count &&
            (column->first != last + 1 ||
             is_stored_already(group, count, column, element_bytes(block, column))))
            break;
        last = column->last;
        column->is_grouped = true;
        group[count++] = column;
    }
    qsort(group, count, sizeof(*group), by_offset);
    return count;
}

/* The address of a lane's element in the column. */
static LLVMValueRef pointer_of(LLVMBuilderRef builder, const struct column *column, unsigned lane)
{
    LLVMValueRef pointer = LLVMGetOperand(column->accesses[lane], column->is_store ? 1 : 0);
    if (!is_gather(column->accesses[lane]))
        return pointer;
    LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(pointer)));
    return LLVMBuildExtractElement(builder, pointer, LLVMConstInt(i32, lane, false), "");
}

static LLVMValueRef moved(LLVMBuilderRef builder, LLVMValueRef pointer, int64_t bytes)
{
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(pointer));
    LLVMValueRef index =
        LLVMConstInt(LLVMInt64TypeInContext(context), (unsigned long long)bytes, true);
    return bytes ? LLVMBuildGEP2(builder, LLVMInt8TypeInContext(context), pointer, &index, 1, "")
                 : pointer;
}

/* What is known of an access that is now part of a wider one, to the same memory. */
static void inherit(LLVMValueRef wide, LLVMValueRef access)
{
    static const char *const kinds[] = {"alias.scope", "noalias", "llvm.access.group"};
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(access));
    LLVMSetAlignment(wide, is_gather(access)
                               ? (unsigned)LLVMConstIntGetZExtValue(LLVMGetOperand(access, 1))
                               : LLVMGetAlignment(access));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !is_gather(access); i++) {
        unsigned kind = LLVMGetMDKindIDInContext(context, kinds[i], (unsigned)strlen(kinds[i]));
        LLVMValueRef node = LLVMGetMetadata(access, kind);
        if (node)
            LLVMSetMetadata(wide, kind, node);
    }
}

/* Rows are loaded where the first of the columns is complete: its addresses are there, and no
 * column is used before. */
static void join_loads(LLVMBuilderRef builder, struct column **columns, unsigned width)
{
    struct column *first = columns[0];
    LLVMValueRef rows[SP_WG_MOST_LANES], turned[SP_WG_MOST_LANES];
    for (unsigned e = 1; e < width; e++)
        if (columns[e]->last < first->last)
            first = columns[e];
    LLVMTypeRef row = LLVMVectorType(LLVMGetElementType(LLVMTypeOf(first->vector)), width);
    int64_t back = columns[0]->addresses[0].offset - first->addresses[0].offset;
    LLVMPositionBuilderBefore(builder, first->end);
    for (unsigned lane = 0; lane < first->lanes; lane++) {
        LLVMValueRef pointer = moved(builder, pointer_of(builder, first, lane), back);
        rows[lane] = LLVMBuildLoad2(builder, row, pointer, "");
        inherit(rows[lane], columns[0]->accesses[lane]);
    }
    sp_wg_rows_to_columns(builder, rows, first->lanes, width, turned);
    for (unsigned e = 0; e < width; e++)
        LLVMReplaceAllUsesWith(columns[e]->vector, turned[e]);
}

/* Rows are stored where the last of the group's stores was. */
static void join_stores(LLVMBuilderRef builder, struct column **columns, unsigned width)
{
    struct column *last = columns[0];
    LLVMValueRef rows[SP_WG_MOST_LANES], vectors[SP_WG_MOST_LANES];
    for (unsigned e = 0; e < width; e++) {
        vectors[e] = columns[e]->vector;
        if (columns[e]->last > last->last)
            last = columns[e];
    }
    LLVMPositionBuilderBefore(builder, last->end);
    sp_wg_columns_to_rows(builder, vectors, last->lanes, width, rows);
    for (unsigned lane = 0; lane < last->lanes; lane++) {
        LLVMValueRef store =
            LLVMBuildStore(builder, rows[lane], pointer_of(builder, columns[0], lane));
        inherit(store, columns[0]->accesses[lane]);
    }
    for (unsigned e = 0; e < width; e++)
        for (unsigned lane = 0; lane < last->lanes; lane++)
            LLVMInstructionEraseFromParent(columns[e]->accesses[lane]);
}

/* How many of the columns from the first on lie side by side, `most` at most. */
static unsigned side_by_side(struct column *const *columns, size_t count, uint64_t bytes,
                             unsigned most)
{
    unsigned found = 1;
    while (found < count && found < most &&
           columns[found]->addresses[0].offset - columns[found - 1]->addresses[0].offset ==
               (int64_t)bytes)
        found++;
    return found;
}

/* Whether the group may become rows: two lanes' stores to one place have an order. */
static bool may_join(struct column *const *group, size_t count, uint64_t bytes)
{
    int64_t first = group[0]->addresses[0].offset, last = group[count - 1]->addresses[0].offset;
    return !group[0]->is_store || sp_wg_lanes_are_apart(group[0]->addresses, group[0]->lanes,
                                                        (uint64_t)(last - first) + bytes);
}

/* Joins what can be joined of a group, in rows as wide as possible. */
static bool join_group(const struct block *block, LLVMBuilderRef builder, struct column **group,
                       size_t count)
{
    uint64_t bytes = element_bytes(block, group[0]);
    bool joined = false;
    if (count < 2 || !may_join(group, count, bytes))
        return false;
    for (size_t at = 0; at < count;) {
        unsigned width = group[0]->lanes;
        unsigned found = side_by_side(group + at, count - at, bytes, width);
        while (width > found)
            width /= 2;
        if (width >= (is_gather(group[at]->accesses[0]) ? LEAST_GATHERED : 2)) {
            (group[at]->is_store ? join_stores : join_loads)(builder, group + at, width);
            joined = true;
        }
        at += width;
    }
    return joined;
}

static bool join_block(LLVMTargetDataRef sizes, LLVMBuilderRef builder, LLVMBasicBlockRef from)
{
    struct block block = {.sizes = sizes};
    bool joined = false;
    number_accesses(&block, from);
    for (LLVMValueRef value = LLVMGetFirstInstruction(from); value;
         value = LLVMGetNextInstruction(value))
        find_column(&block, value);
    struct column **group = sp_cc_allocate(block.num_columns * sizeof(*group));
    for (size_t i = 0; i < block.num_columns; i++) {
        if (block.columns[i].is_grouped)
            continue;
        size_t count = find_group(&block, i, group);
        joined |= join_group(&block, builder, group, count);
    }
    free(group);
    free(block.columns);
    sp_map_finish(&block.ordinals);
    sp_map_finish(&block.epochs);
    return joined;
}

bool sp_wg_join_rows(LLVMModuleRef module)
{
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
    LLVMTargetDataRef sizes = LLVMGetModuleDataLayout(module);
    LLVMBasicBlockRef block;
    bool joined = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            joined |= join_block(sizes, builder, block);
    LLVMDisposeBuilder(builder);
    return joined;
}
