/* Integers of LLVM's operations, of 1 to 64 bits: held in 64, of which those above the width are 0
 * or of no matter. */
#ifndef SP_COMPILER_CC_WORKGROUP_NUMBERS_H
#define SP_COMPILER_CC_WORKGROUP_NUMBERS_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdint.h>

/* The bits of a width. */
uint64_t sp_wg_mask(unsigned width);

int64_t sp_wg_signed(unsigned width, uint64_t value);

/* Operations that sp_wg_operate knows: those of integers. */
bool sp_wg_is_operation(LLVMOpcode opcode);

/* `a` and `b` have no bits above the width; the result may. What has no value, as a shift by too
 * much, gives 0: nobody uses it. */
uint64_t sp_wg_operate(LLVMOpcode opcode, unsigned width, uint64_t a, uint64_t b);
bool sp_wg_compare(LLVMIntPredicate predicate, unsigned width, uint64_t a, uint64_t b);

/* The bits in the opposite order. */
uint64_t sp_wg_reversed(unsigned width, uint64_t value);

#endif
