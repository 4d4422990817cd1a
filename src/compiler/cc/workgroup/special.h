/* A kernel for work-groups of one size: a copy in which that size is a constant, and loops of few
 * constant turns are straight code. The kernel itself stays, for groups of other sizes. Without a
 * known size a copy is made for the loops over private arrays alone. */
#ifndef SP_COMPILER_CC_WORKGROUP_SPECIAL_H
#define SP_COMPILER_CC_WORKGROUP_SPECIAL_H

#include "compiler/cc/ir.h"

#include <llvm-c/TargetMachine.h>

/* Adds to the module a copy of each of `kernels`, which goes to copies[i]. All are definitions of
 * the module, in SSA form, before sp_wg_prepare. False where LLVM does not link the copy. */
bool sp_wg_copy_kernels(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count,
                        LLVMValueRef *copies);

/* Puts the numbers of `local_size` in place of the calls that ask for it. */
void sp_wg_fix_local_size(LLVMValueRef kernel, const uint64_t local_size[3]);

/* Unrolls loops of `kernels` that have few turns, and as many each time: those over private arrays,
 * and with `barriers` those that contain one. All other functions of the module stay as they are. A
 * message on failure, to be freed, else NULL. */
char *sp_wg_straighten(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count,
                       bool barriers, LLVMTargetMachineRef machine);

/* With `on`, LLVM's passes leave all functions of the module but `kernels` alone, until it is taken
 * back. */
void sp_wg_leave_others(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count, bool on);

/* The turns of a loop in SSA form, from the header's PHIs and one exit that is passed in each turn;
 * 0 where they are not constant, or more than `limit`. */
struct sp_wg_graph;
unsigned sp_wg_loop_turns(const struct sp_wg_graph *graph, uint32_t loop, unsigned limit);

#endif
