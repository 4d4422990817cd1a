/* Divisions that some work-items may skip, kept from a mistake of LLVM 19's vectoriser. */
#ifndef SP_COMPILER_CC_WORKGROUP_MASKED_H
#define SP_COMPILER_CC_WORKGROUP_MASKED_H

#include "compiler/cc/workgroup/regions.h"

/* True for an integer division that LLVM may not compute where the source does not: its divisor is
 * not a constant. */
bool sp_wg_may_trap(LLVMValueRef value);

/* True where a work-item that runs the region may pass the block by. */
bool sp_wg_is_skipped(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                      uint32_t block);

/* Lets the divisors of such divisions seem to differ from work-item to work-item, in the copies
 * that `copies` names for the instructions of `block`. `zero` is an i64 that is 0 at run time,
 * which LLVM does not know; `lane` an i64 that differs. Instructions of `elsewhere` are left alone:
 * their copies are not under the mask. */
void sp_wg_vary_divisors(LLVMBasicBlockRef block, const struct sp_map *copies,
                         const struct sp_map *elsewhere, LLVMValueRef lane, LLVMValueRef zero);

/* True where `block` is a latch of a loop within a region and the loop has such a division. */
bool sp_wg_ends_dividing_loop(const struct sp_wg_plan *plan, uint32_t block);

#endif
