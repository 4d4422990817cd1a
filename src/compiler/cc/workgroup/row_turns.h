/* Loops in which each work-item goes along a row of its own: several turns at a time, so that a
 * piece of a row is one access (rows.h). */
#ifndef SP_COMPILER_CC_WORKGROUP_ROW_TURNS_H
#define SP_COMPILER_CC_WORKGROUP_ROW_TURNS_H

#include "compiler/cc/ir.h"

#include <llvm-c/TargetMachine.h>

/* Makes a vector's worth of turns of such loops of `kernels`, functions of the module in SSA form,
 * into one, for vectors of `vector_bits`. Before sp_wg_prepare. All other functions stay as they
 * are. A message on failure, to be freed, else NULL. */
char *sp_wg_widen_row_turns(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count,
                            uint32_t vector_bits, LLVMTargetMachineRef machine);

/* True where work-items are faster one after the other: in a loop each writes a row of its own, and
 * accesses nothing but rows, which are vectors for LLVM as they are where a turn does not need the
 * one before. `kernel` is in SSA form. */
bool sp_wg_writes_rows(LLVMValueRef kernel);

#endif
