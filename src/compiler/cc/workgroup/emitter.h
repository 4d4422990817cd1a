/* What the files that emit a kernel's function share: emit.c loops over work-items, copies.c
 * copies what each does, values.c knows where their values, the kernel's arguments and sizes are.
 */
#ifndef SP_COMPILER_CC_WORKGROUP_EMITTER_H
#define SP_COMPILER_CC_WORKGROUP_EMITTER_H

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/agree.h"
#include "compiler/cc/workgroup/emit.h"
#include "compiler/cc/workgroup/narrow.h"
#include "compiler/cc/workgroup/strips.h"

/* What holds of an NDRange that is not huge. The vector forms are for such only: ids then fit 31
 * bits whatever LLVM knows of their parts, so that "int i = get_global_id(0)" is seen to grow by
 * one from work-item to work-item, and a[i] is a contiguous access and no gather. The work-items of
 * all groups, the offset and a group more stay below 2^31. */
#define SP_WG_MODEST_ITEMS (UINT64_C(1) << 30)
#define SP_WG_MODEST_OFFSET (UINT64_C(1) << 29)
#define SP_WG_MAX_LOCAL_SIZE 1024u /* SP_MAX_WORK_GROUP_SIZE (docs/compiler-contract.md) */

struct sp_wg_emitter {
    const struct sp_wg_plan *plan;
    const struct sp_wg_environment *env;
    LLVMContextRef context;
    LLVMBuilderRef entry; /* before the entry block's end */
    LLVMBuilderRef at;    /* where the current region is written */
    LLVMTypeRef i8, i32, i64, pointer;
    LLVMValueRef function, launch, group[3], scratch;
    LLVMValueRef work_dim, local_size[3], enqueued_size[3], global_size[3], global_offset[3],
        num_groups[3];
    LLVMValueRef local_bytes, context_base, context_bytes, capacity;
    LLVMValueRef *arguments; /* by parameter */
    LLVMValueRef *scalars; /* by variable: the alloca; of a SHARED one, its value between regions */
    LLVMValueRef *work;    /* of a SHARED variable: its value inside a region */
    LLVMValueRef *arrays;  /* by variable: the start of its context array */
    LLVMValueRef counters; /* the array of program counters */
    LLVMValueRef next;     /* alloca: the number of the region that a work-item goes to */
    LLVMValueRef least;    /* alloca: the lowest of these */
    LLVMValueRef all;      /* alloca: whether all that voted in this region so far said yes */
    LLVMBasicBlockRef *starts; /* by region; the last is the function's end */
    LLVMValueRef zero;         /* at run time; LLVM does not know */
    const struct sp_wg_region *region;
    const uint64_t *known_size;       /* NULL where the local size is not known */
    struct sp_wg_narrowing narrowing; /* of the current region, with a known size */
    LLVMBasicBlockRef latch;          /* of the x loop of the current region */
    LLVMValueRef local_id[3];         /* in the current region */
    LLVMValueRef row, index; /* of the first work-item in x, and of the work-item, in context arrays
                              */
    LLVMValueRef *before;    /* by SHARED variable: its value before the current region */
    struct sp_map values;    /* instruction, or block, to its copy in the current region */
    const struct sp_wg_strips *strips; /* while a region is emitted for strips, else NULL */
    const struct sp_wg_agreed *agreed; /* while a region is emitted for groups that agree */
    struct sp_map firsts;              /* instruction to its value in a strip's first work-item */
    LLVMValueRef place;                /* of the work-item in its strip */
};

/* Small steps that both files take. */
LLVMValueRef sp_wg_number(const struct sp_wg_emitter *e, uint64_t value);
LLVMValueRef sp_wg_byte_address(const struct sp_wg_emitter *e, LLVMBuilderRef builder,
                                LLVMValueRef base, LLVMValueRef offset);
LLVMValueRef sp_wg_minimum(LLVMBuilderRef builder, LLVMValueRef a, LLVMValueRef b);

/* The groups in a dimension that SP_WG_MODEST_ITEMS allow: a power of two. `known` is NULL for any
 * local size. */
uint64_t sp_wg_modest_groups(const uint64_t *known, unsigned d);

/* Fills the entry block: sizes, arguments and a place for each variable, which `e` then names.
 * `known` is the local size, or NULL. Afterwards e->arguments, scalars, work and arrays are to be
 * freed. */
void sp_wg_begin_values(struct sp_wg_emitter *e, const uint64_t *known);
void sp_wg_finish_values(struct sp_wg_emitter *e);

/* Where a variable of local or program scope, or the group's scratch, lies; NULL for none. `data`
 * is the emitter. */
LLVMValueRef sp_wg_place_of_global(LLVMValueRef global, void *data);

/* What an operand of the kernel is in the current region's copy. */
LLVMValueRef sp_wg_operand(struct sp_wg_emitter *e, LLVMValueRef value);

/* The type in which a variable lies in the context. */
LLVMTypeRef sp_wg_context_type(const struct sp_wg_emitter *e, LLVMTypeRef type);

/* Where the current work-item's value of a CONTEXT variable lies. */
LLVMValueRef sp_wg_context_element(const struct sp_wg_emitter *e, uint32_t variable);

/* The current work-item's value from the context into its alloca, and back. */
void sp_wg_load_variable(struct sp_wg_emitter *e, uint32_t variable);
void sp_wg_store_variable(struct sp_wg_emitter *e, uint32_t variable);

/* copies.c: the instruction for the current work-item, which e->values then names. */
void sp_wg_copy_instruction(struct sp_wg_emitter *e, LLVMValueRef value);

/* A computable value (agree.h) in the work-item that e->local_id names, a strip's first or another:
 * all that it hangs on is built once, and kept in e->firsts. */
LLVMValueRef sp_wg_value_here(struct sp_wg_emitter *e, LLVMValueRef value);

/* sp_wg_operand, for callbacks: `data` is the emitter. */
LLVMValueRef sp_wg_operand_for(void *data, LLVMValueRef value);

#endif
