/* What the values of a region are as functions of the work-item's place in x, worked out for each
 * place of a known local size: which addresses are neighbours, and which way each work-item takes.
 */
#ifndef SP_COMPILER_CC_WORKGROUP_SHAPES_H
#define SP_COMPILER_CC_WORKGROUP_SHAPES_H

#include "compiler/cc/workgroup/agree.h"

/* A number is the sum of at most so many terms that are the same for all work-items. */
#define SP_WG_MOST_TERMS 4u

/* `factor` times an integer that is the same for all work-items of a chunk. */
struct sp_wg_term {
    const void *what; /* two terms with the same `what` are of the same integer */
    uint64_t factor;
};

enum sp_wg_shape_kind {
    SP_WG_DIFFERENT, /* nothing is known: a value for each work-item */
    SP_WG_SAME,      /* the same for all active work-items of a chunk */
    SP_WG_NUMBER,    /* terms + by_item[place in x], modulo 2^width */
    SP_WG_ADDRESS,   /* base + terms + by_item[place in x] bytes */
};

struct sp_wg_shape {
    enum sp_wg_shape_kind kind;
    unsigned width;     /* of a NUMBER, in bits; 64 of an ADDRESS */
    bool exact;         /* the sum does not wrap: it is the value as an unsigned integer */
    LLVMValueRef base;  /* of an ADDRESS */
    unsigned num_terms; /* 0: known wholly */
    struct sp_wg_term terms[SP_WG_MOST_TERMS];
    uint64_t most;     /* no sum of the terms is larger; UINT64_MAX where not known */
    unsigned zeros;    /* low bits of the sum of the terms that are 0; 64 for no terms */
    uint64_t *by_item; /* as many as the local size in x; owned by the shapes */
};

struct sp_wg_shapes {
    const struct sp_wg_plan *plan;
    const struct sp_wg_region *region;
    const struct sp_wg_agreed *agreed; /* or NULL */
    uint64_t local_size[3];
    uint32_t lanes;   /* work-items in a chunk: consecutive in x, the first a multiple of it */
    uint32_t *blocks; /* of the region, each after those that lead to it */
    bool **active;    /* by place in `blocks`, then in x: who runs the block */
    struct sp_map shape_of; /* instruction to its struct sp_wg_shape */
    uint64_t **owned;
    size_t num_owned;
};

/* For groups of `local_size`, whose x is a multiple of `lanes`, and whose work-items go the ways of
 * `agreed` (or NULL). False where the region has a loop,
 * a branch whose way is not a matter of the place in x alone, or an instruction of which vectors
 * are not made; then there is nothing to finish. */
bool sp_wg_shapes_init(struct sp_wg_shapes *shapes, const struct sp_wg_plan *plan,
                       const struct sp_wg_region *region, const struct sp_wg_agreed *agreed,
                       const uint64_t local_size[3], uint32_t lanes);
void sp_wg_shapes_finish(struct sp_wg_shapes *shapes);

/* Of an instruction of the region; NULL for one that has no value. */
const struct sp_wg_shape *sp_wg_shape(const struct sp_wg_shapes *shapes, LLVMValueRef value);

/* Whether `value`, an operand in the region, is the same for all active work-items of each chunk.
 */
bool sp_wg_is_same(const struct sp_wg_shapes *shapes, LLVMValueRef value);

/* Whether an instruction accesses memory that is no slot; then its address goes to *address. */
bool sp_wg_is_access(const struct sp_wg_plan *plan, LLVMValueRef value, LLVMValueRef *address);

/* Whether two addresses are a constant number of bytes apart in `chunk`, which goes to *bytes: from
 * `a` to `b`. `item` is a place in x of that chunk where both are active. */
bool sp_wg_distance(const struct sp_wg_shape *a, const struct sp_wg_shape *b, uint64_t item,
                    int64_t *bytes);

#endif
