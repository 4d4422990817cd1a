/* What a loop over an array will load in its next turns, asked of memory ahead of time: where each
 * turn goes far on, as with `for (i = id; i < n; i += get_global_size(0))`, no processor does that
 * by itself. */
#ifndef SP_COMPILER_CC_WORKGROUP_AHEAD_H
#define SP_COMPILER_CC_WORKGROUP_AHEAD_H

#include "compiler/cc/workgroup/lanes.h"

/* Where the code is put. */
struct sp_wg_ahead {
    const struct sp_wg_lanes_maker *maker; /* its builder stands where the region begins */
    LLVMBuilderRef entry;                  /* in the function's entry block */
    LLVMValueRef items;                    /* an i64: the work-items in x */
    LLVMValueRef is_row;                   /* an i1: there are no others */
};

/* Emits prefetches for a region that is run again and again; nothing for others. The code goes on
 * where the builder then stands, and copies of the region's instructions are forgotten. */
void sp_wg_ahead_emit(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                      const struct sp_wg_ahead *ahead);

#endif
