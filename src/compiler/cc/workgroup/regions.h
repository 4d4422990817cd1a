/* The regions of a kernel and what each needs of its variables: the plan from which code is
 * emitted. */
#ifndef SP_COMPILER_CC_WORKGROUP_REGIONS_H
#define SP_COMPILER_CC_WORKGROUP_REGIONS_H

#include "compiler/cc/workgroup/analyse.h"

enum sp_wg_variable_kind {
    SP_WG_SHARED,  /* uniform: one scalar for the group */
    SP_WG_REGION,  /* written before it is read in every region: a scalar inside the loop body */
    SP_WG_CONTEXT, /* one value per work-item, kept in the context from region to region */
    SP_WG_ARRAY,   /* memory of each work-item, in the context: its address is taken */
};

struct sp_wg_variable {
    LLVMValueRef alloca; /* in the prepared kernel */
    LLVMTypeRef type;
    enum sp_wg_variable_kind kind;
    uint64_t size;        /* bytes in the context, for CONTEXT and ARRAY */
    uint32_t alignment;   /* of an ARRAY */
    uint32_t unit;        /* bytes of an element of an interleaved ARRAY (interleave.h), or 0 */
    uint64_t item_offset; /* times the context's capacity: where its array starts */
};

struct sp_wg_region {
    uint32_t leader;
    uint32_t *blocks; /* leader first; SP_WG_ "blocks" of the analysis' graph */
    uint32_t num_blocks;
    struct sp_bits exits;   /* region indices; plan->num_regions is the kernel's end */
    struct sp_bits targets; /* regions that may run next, where counters decide */
    bool masked;            /* runs only where the counter names it */
    bool counts;            /* writes the counters */
    struct sp_bits touched; /* variables that it loads or stores */
    struct sp_bits written;
    struct sp_bits exposed;  /* may be read before written */
    struct sp_bits defined;  /* written on every path */
    struct sp_bits live_out; /* may be read in a later region */
};

struct sp_wg_plan {
    enum sp_wg_form form;
    struct sp_wg_analysis analysis;
    struct sp_wg_region *regions; /* 0 is the entry */
    uint32_t num_regions;
    uint32_t *region_of; /* of leaders: their region */
    struct sp_wg_variable *variables;
    uint32_t num_variables;
    struct sp_map variable_of; /* alloca to its index + 1 */
    bool counters;             /* some region counts */
    uint64_t counter_offset;   /* as item_offset */
    uint64_t item_bytes;       /* of the whole context */
};

void sp_wg_plan_init(struct sp_wg_plan *plan, LLVMValueRef kernel, enum sp_wg_form form);
void sp_wg_plan_finish(struct sp_wg_plan *plan);

/* Whether a work-item's turn in the region begins with loading a CONTEXT variable, and ends with
 * storing it. */
bool sp_wg_is_loaded(const struct sp_wg_region *region, uint32_t variable);
bool sp_wg_is_stored(const struct sp_wg_region *region, uint32_t variable);

/* The index of the variable that `alloca` is. */
uint32_t sp_wg_variable_index(const struct sp_wg_plan *plan, LLVMValueRef alloca);

#endif
