/* Private arrays whose elements lie work-item by work-item: element i of all of them, then element
 * i + 1 of all. Work-items that use the same index then use neighbouring memory, and vectors of
 * them load and store without gathers. */
#ifndef SP_COMPILER_CC_WORKGROUP_INTERLEAVE_H
#define SP_COMPILER_CC_WORKGROUP_INTERLEAVE_H

#include "compiler/cc/ir.h"

#include <llvm-c/Target.h>

/* The bytes of an element of `alloca`, or 0 where it must lie in one piece: where its address goes
 * further than to loads and stores of one size at multiples of that size. */
uint32_t sp_wg_interleave_unit(LLVMValueRef alloca, LLVMTargetDataRef sizes);

/* The alloca that an address is computed from, or NULL. */
LLVMValueRef sp_wg_address_root(LLVMValueRef address);

/* The bytes by which `gep` moves its address, as an i64 made at the builder; `map` gives the value
 * of an operand. */
LLVMValueRef sp_wg_gep_bytes(LLVMBuilderRef builder, LLVMValueRef gep, LLVMTargetDataRef sizes,
                             LLVMValueRef (*map)(void *data, LLVMValueRef value), void *data);

#endif
