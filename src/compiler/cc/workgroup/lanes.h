/* A region as vectors of neighbouring work-items, made here and not by LLVM, where that is better:
 * its accesses lie close together, but not in the order of the work-items, or work-items part on
 * their place in x. */
#ifndef SP_COMPILER_CC_WORKGROUP_LANES_H
#define SP_COMPILER_CC_WORKGROUP_LANES_H

#include "compiler/cc/workgroup/agree.h"

/* What emit.c does for this: it makes the scalar code of one work-item, from which vectors start.
 */
struct sp_wg_lanes_maker {
    void *data;
    LLVMBuilderRef at; /* where code goes; this moves it on */
    LLVMValueRef function;
    /* A chunk of work-items begins, at place `x` (an i64): shared variables are as before the
     * region. */
    void (*begin_chunk)(void *data, LLVMValueRef x);
    /* Scalar code is for the work-item at place `x` from now on; older copies are forgotten. */
    void (*begin_item)(void *data, LLVMValueRef x);
    /* Copies an instruction of the region for that work-item. */
    void (*copy)(void *data, LLVMValueRef instruction);
    /* The copy of an instruction, or what a constant or an argument is. */
    LLVMValueRef (*operand)(void *data, LLVMValueRef value);
    /* Where that work-item's value of a CONTEXT variable lies; its type there goes to *type. */
    LLVMValueRef (*element)(void *data, uint32_t variable, LLVMTypeRef *type);
};

/* For a region in groups of the size `local_size`, whose work-items go the ways of `agreed` (or
 * NULL), with vectors of `vector_bits`. NULL where LLVM's
 * vectoriser does as well, or the region is not of this kind. */
struct sp_wg_lanes;
struct sp_wg_lanes *sp_wg_lanes_create(const struct sp_wg_plan *plan,
                                       const struct sp_wg_region *region,
                                       const struct sp_wg_agreed *agreed,
                                       const uint64_t local_size[3], uint32_t vector_bits);
void sp_wg_lanes_destroy(struct sp_wg_lanes *lanes);

/* Emits the region for all work-items in x. The code goes on where the builder then stands. */
void sp_wg_lanes_emit(struct sp_wg_lanes *lanes, const struct sp_wg_lanes_maker *maker);

#endif
