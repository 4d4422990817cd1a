/* printf: a call becomes a record (cpu_abi.h) and a call through the launch. */
#ifndef SP_COMPILER_CC_PRINT_H
#define SP_COMPILER_CC_PRINT_H

#include <llvm-c/Core.h>
#include <stdint.h>

/* Builds a record of the values operands[1] and on; its memory is taken at `entry`. Returns its
 * address and its size in bytes. */
LLVMValueRef sp_cc_emit_record(LLVMModuleRef module, LLVMBuilderRef builder, LLVMBuilderRef entry,
                               LLVMValueRef *operands, unsigned count, uint64_t *bytes);

/* For the CPU: builds the record and the call. operands[0] is the format, the rest are the values
 * as clang promoted them. `entry` is where the record's memory is taken. Returns what printf
 * returns. */
LLVMValueRef sp_cc_emit_print(LLVMModuleRef module, LLVMBuilderRef builder, LLVMBuilderRef entry,
                              LLVMValueRef launch, LLVMValueRef *operands, unsigned count);

#endif
