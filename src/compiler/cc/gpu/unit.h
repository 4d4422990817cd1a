/* Atomic operations that the hardware or the atomic unit carries out, as the address wants it
 * (docs/atomic-unit.md). Works on IR for NVPTX. */
#ifndef SP_COMPILER_CC_GPU_UNIT_H
#define SP_COMPILER_CC_GPU_UNIT_H

#include "compiler/cc/gpu/entry.h"
#include "compiler/gpu_abi.h"

/* The hardware's way: a piece of assembly that gives the old value. Its operands: a pointer, the
 * expected value where there are three, and a number; of 32 or 64 bits. */
struct sp_gpu_native {
    const char *text, *constraints;
    LLVMTypeRef result;
    LLVMValueRef *operands;
    unsigned count;
};

/* Builds the test and both ways: enum sp_unit_operation, perhaps with SP_UNIT_WIDE, for the unit.
 */
LLVMValueRef sp_gpu_unit_or_native(LLVMModuleRef module, const struct sp_gpu_entry *entry,
                                   LLVMBuilderRef builder, unsigned operation,
                                   const struct sp_gpu_native *native);

#endif
