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

enum sp_wg_form {
    SP_WG_SCALAR, /* cut only where correctness needs it: work-items run one after the other */
    SP_WG_VECTOR, /* and where it lets loops over work-items become vector code */
    SP_WG_AGREED, /* as VECTOR, for groups that all go one way at the end of the entry block */
};

/* `kernel` is prepared (prepare.h). */
void sp_wg_analysis_init(struct sp_wg_analysis *analysis, LLVMValueRef kernel,
                         enum sp_wg_form form);

/* True where a group of which all work-items pass the kernel's first branch together (the usual
 * "if (id >= n) return") deserves code of its own: the branch is divergent, a loop lies under it,
 * and to ask the question first changes nothing. */
bool sp_wg_agreement_pays(LLVMValueRef kernel);

/* True where work-items are faster one after the other: a loop that each leaves at its own time,
 * without barriers, does little but follow indices that it loads or counts itself, as with rows of
 * a sparse matrix. `kernel` is prepared. */
bool sp_wg_vectors_lose(LLVMValueRef kernel);

/* True where `block` leads back in an innermost loop that lies within one region, and that each
 * work-item leaves at its own time. */
bool sp_wg_ends_own_loop(const struct sp_wg_analysis *analysis, uint32_t block);

void sp_wg_analysis_finish(struct sp_wg_analysis *analysis);

#endif
