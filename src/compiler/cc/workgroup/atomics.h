/* Atomic operations on local memory, as what they are on one thread: a load, an operation, a store.
 */
#ifndef SP_COMPILER_CC_WORKGROUP_ATOMICS_H
#define SP_COMPILER_CC_WORKGROUP_ATOMICS_H

#include <llvm-c/Core.h>
#include <stdbool.h>

/* True for an atomicrmw or cmpxchg whose address is known to lie in local memory, and which
 * sp_wg_build_local_atomic can build. */
bool sp_wg_is_local_atomic(LLVMValueRef value);

/* Builds what `atomic` does, on operands that `map` gives the values of, and returns its result.
 * The accesses must not be marked as independent (metadata.h): two work-items may mean the same
 * word. */
LLVMValueRef sp_wg_build_local_atomic(LLVMBuilderRef builder, LLVMValueRef atomic,
                                      LLVMValueRef (*map)(void *data, LLVMValueRef value),
                                      void *data);

#endif
