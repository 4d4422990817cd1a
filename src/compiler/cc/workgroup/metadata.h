/* What LLVM must be told so that it makes vector code of loops over work-items. */
#ifndef SP_COMPILER_CC_WORKGROUP_METADATA_H
#define SP_COMPILER_CC_WORKGROUP_METADATA_H

#include <llvm-c/Core.h>

/* A node to mark accesses with, so that sp_wg_mark_loop can say that they are independent. One
 * serves all loops of a context. NULL where LLVM does not take it. */
LLVMMetadataRef sp_wg_access_group(LLVMContextRef context);

/* Marks a load, store or call as one of `group`. */
void sp_wg_mark_access(LLVMContextRef context, LLVMValueRef access, LLVMMetadataRef group);

/* Marks the branch back to the header of a loop over work-items: to be vectorised... */
void sp_wg_mark_loop(LLVMContextRef context, LLVMValueRef latch, LLVMMetadataRef group);

/* ... or to be left as it is, which costs least time to compile. */
void sp_wg_mark_plain_loop(LLVMContextRef context, LLVMValueRef latch);

/* Marks a loop of the kernel's own, at its branch back, for LLVM's unroller: wholly, or not at all.
 * Of a loop that each work-item leaves at its own time nobody knows how often it turns; in a loop
 * unrolled each start asks one more question that the processor guesses wrong (rows of a sparse
 * matrix: 24% more time). */
void sp_wg_mark_unrolled_loop(LLVMContextRef context, LLVMValueRef latch);
void sp_wg_mark_rolled_loop(LLVMContextRef context, LLVMValueRef latch);

/* ... or by so many turns. */
void sp_wg_mark_partly_unrolled_loop(LLVMContextRef context, LLVMValueRef latch, unsigned turns);

/* Marks a loop of the kernel's own against LLVM's versioning (sums.c). It marks loops that it made
 * likewise: what is marked so has no mark afterwards. */
void sp_wg_mark_unversioned_loop(LLVMContextRef context, LLVMValueRef latch);
void sp_wg_unmark_versions(LLVMContextRef context, LLVMValueRef latch);

/* Says of a load or store through a pointer of OpenCL's global, constant or local address space
 * that it does not meet accesses of the other kind of memory. On a CPU all lie in one address
 * space, and LLVM gives up looking for a pointer that local memory may have been stored to after a
 * hundred uses. Other instructions stay as they are. */
void sp_wg_mark_space(LLVMContextRef context, LLVMValueRef access);

#endif
