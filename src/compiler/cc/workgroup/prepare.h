/* Brings kernels into the form from which work-group code is made: scalar operations (but for
 * functions that keep their vectors), no switches, no PHIs, no value that crosses blocks but
 * through an alloca (but for functions that keep their values), and every barrier last but one in
 * its block. Behind a vote comes nothing but a store of its answer. */
#ifndef SP_COMPILER_CC_WORKGROUP_PREPARE_H
#define SP_COMPILER_CC_WORKGROUP_PREPARE_H

#include "compiler/cc/ir.h"

#include <llvm-c/TargetMachine.h>

/* True where the function computes, loads or stores vectors. */
bool sp_wg_uses_vectors(LLVMValueRef function);

/* True where it does little but load and store vectors of the source that fill at least half of
 * one of `vector_bits`: nothing is gained by vectors of work-items, which have to be turned. */
bool sp_wg_moves_whole_vectors(LLVMValueRef function, uint32_t vector_bits);

/* Says that sp_wg_prepare is to leave the function's vectors whole. */
void sp_wg_keep_vectors(LLVMValueRef function);

/* Says that sp_wg_prepare is to leave PHIs, and values that cross blocks, as they are: for a
 * function without barriers that gets scalar code only, where nothing outlives a work-item's turn.
 * In large ones an alloca for each value, and promoting it again, take most of the time. */
void sp_wg_keep_values(LLVMValueRef function);
bool sp_wg_keeps_values(LLVMValueRef function);

/* Prepares every function with a body. A message on failure, to be freed; NULL on success. */
char *sp_wg_prepare(LLVMModuleRef module, LLVMTargetMachineRef machine);

/* True where the block ends with a barrier and a branch. */
bool sp_wg_ends_with_barrier(LLVMBasicBlockRef block);

/* True where it ends with a vote (sums.h), what that gave put into a variable, and a branch. */
bool sp_wg_ends_with_vote(LLVMBasicBlockRef block);

#endif
