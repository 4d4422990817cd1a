/* Where a kernel is cut into regions, and which regions some work-items may run while others wait.
 *
 * A leader is a block at which a region starts: the entry, the block after a barrier, and blocks
 * before which an implicit barrier is put. Every path of a region ends at a leader or at the
 * kernel's end. */
#ifndef SP_COMPILER_CC_WORKGROUP_ANALYSE_H
#define SP_COMPILER_CC_WORKGROUP_ANALYSE_H

#include "compiler/cc/workgroup/uniformity.h"

struct sp_wg_analysis {
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
    struct sp_bits leaders;
    struct sp_bits real;   /* leaders after a barrier of the source */
    struct sp_bits masked; /* leaders whose region may run for some work-items only */
    uint32_t *numbers;     /* of leaders: where work-items are parted, the lowest runs first */
};

/* `kernel` is prepared (prepare.h). With `vectorise`, implicit barriers are put where they let
 * loops over work-items become vector code; without, only where correctness needs them. */
void sp_wg_analysis_init(struct sp_wg_analysis *analysis, LLVMValueRef kernel, bool vectorise);
void sp_wg_analysis_finish(struct sp_wg_analysis *analysis);

#endif
