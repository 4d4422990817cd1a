/* Branches of a region at which all work-items of nearly every group go one way, as at "if (i < n)"
 * all but the last group's do: which, and what is to be asked to know it. */
#ifndef SP_COMPILER_CC_WORKGROUP_AGREE_H
#define SP_COMPILER_CC_WORKGROUP_AGREE_H

#include "compiler/cc/workgroup/regions.h"

#define SP_WG_MOST_AGREED 8u

/* Whether a comparison is to be true, or false, for all work-items. `value` grows with the ids, and
 * `bound` is the same for all: value PREDICATE bound. */
struct sp_wg_agree_question {
    LLVMValueRef value, bound;
    LLVMIntPredicate predicate;
};

struct sp_wg_agreed {
    uint32_t blocks[SP_WG_MOST_AGREED]; /* at whose end all go one way */
    uint8_t ways[SP_WG_MOST_AGREED];    /* which successor that is */
    unsigned num_blocks;
    struct sp_wg_agree_question questions[SP_WG_MOST_AGREED]; /* if these hold for all of them */
    unsigned num_questions;
};

/* False where there is no such branch, or the region is none to be emitted twice. `local_size` is
 * NULL where it is not known. */
bool sp_wg_agree(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                 const uint64_t *local_size, struct sp_wg_agreed *agreed);

/* The way that all go at the end of the block: 0, 1, or -1 where that is not known. `agreed` may be
 * NULL. */
int sp_wg_agreed_way(const struct sp_wg_agreed *agreed, uint32_t block);

/* Whether a comparison holds for all, from the value in the first work-item, in the last, and the
 * bound: an i1. */
LLVMValueRef sp_wg_agree_answer(LLVMBuilderRef builder, LLVMIntPredicate predicate,
                                LLVMValueRef first, LLVMValueRef last, LLVMValueRef bound);

/* Whether a load is of a variable that is the same for all and that the region does not write. */
bool sp_wg_is_kept(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                   LLVMValueRef load);

/* What a variable is given in the one place where it is; NULL where there is none, or more. */
LLVMValueRef sp_wg_only_value(LLVMValueRef load);

/* Builds the instruction of such an expression out of its operands, without the flags that hold
 * only where the source runs it: it may be one that this work-item does not run. Not for calls and
 * loads. */
LLVMValueRef sp_wg_recompute(LLVMBuilderRef builder, LLVMValueRef instruction,
                             const LLVMValueRef operands[3]);

#endif
