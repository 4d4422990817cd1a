/* Work-items that do nothing in a region, left out of its loop: `if (lid < 64) { ... }` between two
 * barriers becomes a loop over 64 work-items, without a mask. */
#ifndef SP_COMPILER_CC_WORKGROUP_NARROW_H
#define SP_COMPILER_CC_WORKGROUP_NARROW_H

#include "compiler/cc/workgroup/regions.h"

#define SP_WG_MOST_DECISIONS 6u

/* The ids in each dimension that the region's loops go through, and branches whose way is known for
 * these. */
struct sp_wg_narrowing {
    uint64_t first[3], end[3];
    uint32_t num_decisions;
    uint32_t blocks[SP_WG_MOST_DECISIONS]; /* whose branch is decided */
    unsigned ways[SP_WG_MOST_DECISIONS];   /* the successor that is taken */
};

/* For groups of the size `local_size`. Without a condition to leave anybody out, all ids. */
void sp_wg_narrow(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                  const uint64_t local_size[3], struct sp_wg_narrowing *narrowing);

#endif
