/* Which values are the same for all work-items of a group, and which blocks all of them run
 * together.
 *
 * A value that is not marked divergent is the same for all work-items that run its block at the
 * same time. A scalar variable (sp_wg_is_slot) that is not marked divergent holds the same value
 * for all, at all times: it is only written where all are together. */
#ifndef SP_COMPILER_CC_WORKGROUP_UNIFORMITY_H
#define SP_COMPILER_CC_WORKGROUP_UNIFORMITY_H

#include "compiler/cc/workgroup/graph.h"

struct sp_wg_uniformity {
    struct sp_map divergent; /* values, and slots (their alloca) */
    struct sp_bits branches; /* blocks at whose end work-items may part */
    struct sp_bits parted;   /* blocks that may run while work-items are parted */
    struct sp_bits joins;    /* blocks where parted work-items may meet */
    bool entry_agrees;
    struct sp_bits *influence; /* of each block in `branches` (sp_wg_influence_of) */
    const struct sp_wg_graph *graph;
};

/* `forced` (or NULL) names blocks to be taken as parted whatever the branches say. With
 * `entry_agrees`, all work-items are taken to go the same way at the end of the entry block. */
void sp_wg_uniformity_init(struct sp_wg_uniformity *uniformity, const struct sp_wg_graph *graph,
                           const struct sp_bits *forced, bool entry_agrees);
void sp_wg_uniformity_finish(struct sp_wg_uniformity *uniformity, const struct sp_wg_graph *graph);

/* What some work-items may run when they part at `branch`, one of `branches`. Holds until the next
 * call. */
const struct sp_bits *sp_wg_influence_of(const struct sp_wg_uniformity *uniformity,
                                         uint32_t branch);

bool sp_wg_is_divergent(const struct sp_wg_uniformity *uniformity, LLVMValueRef value);

/* The dimensions, as bits, in whose ids work-items must differ for the value to differ: all where
 * it is not seen. */
unsigned sp_wg_dimensions_of(const struct sp_wg_uniformity *uniformity, LLVMValueRef value);

/* True for an alloca that is only loaded and stored, whole and not volatile: a scalar variable. */
bool sp_wg_is_slot(LLVMValueRef alloca);

#endif
