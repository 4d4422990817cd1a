/* Values that grow evenly from work-item to work-item within strips of neighbours in x, if numbers
 * that only the launch knows are of some kind: 2 * id - (id & (stride - 1)) grows by one where
 * stride is a multiple of the strip. */
#ifndef SP_COMPILER_CC_WORKGROUP_STRIPS_H
#define SP_COMPILER_CC_WORKGROUP_STRIPS_H

#include "compiler/cc/workgroup/regions.h"

#define SP_WG_MOST_QUESTIONS 8u

enum sp_wg_strip_kind {
    SP_WG_LOW_ONES,  /* the low bits, as many as number the work-items of a strip, are all set */
    SP_WG_LOW_ZEROS, /* or clear */
    SP_WG_DIVISOR,   /* they are clear, and the value is not 0 */
    SP_WG_SHIFT,     /* the value is at least the number of these bits */
};

/* What is to hold of a value that is the same for the whole group. */
struct sp_wg_strip_question {
    LLVMValueRef value;
    enum sp_wg_strip_kind kind;
};

/* In work-item i of a strip a value is what it is in the first, plus i times the slope. */
struct sp_wg_slope {
    bool known;
    uint64_t slope;
    bool aligned; /* in the first work-item of a strip it is a multiple of the strip's width */
    bool fixed;   /* the same for all work-items of the group */
    bool asked;   /* thanks to a question */
};

struct sp_wg_strips {
    const struct sp_wg_plan *plan;
    const struct sp_wg_region *region;
    uint32_t width;        /* work-items of a strip: a power of two; the first's id a multiple */
    struct sp_map slopes;  /* integer instruction to its struct sp_wg_slope */
    struct sp_map aligned; /* values that answers make multiples of the width */
    struct sp_wg_strip_question questions[SP_WG_MOST_QUESTIONS];
    unsigned num_questions;
    struct sp_wg_slope **owned;
    size_t num_owned;
};

/* False where no access of the region becomes a row, or the same for a strip, by such questions;
 * then there is nothing to finish. It is taken for granted that the local sizes in x, enqueued and
 * real, and the global offset are multiples of `width`. */
bool sp_wg_strips_init(struct sp_wg_strips *strips, const struct sp_wg_plan *plan,
                       const struct sp_wg_region *region, uint32_t width);
void sp_wg_strips_finish(struct sp_wg_strips *strips);

/* Of an instruction of the region: NULL where nothing is known. */
const struct sp_wg_slope *sp_wg_slope(const struct sp_wg_strips *strips, LLVMValueRef value);

/* Whether the value is of that kind: an i1. */
LLVMValueRef sp_wg_strip_answer(LLVMBuilderRef builder, const struct sp_wg_strips *strips,
                                enum sp_wg_strip_kind kind, LLVMValueRef value);

#endif
