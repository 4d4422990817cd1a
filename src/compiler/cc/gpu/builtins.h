/* The functions of docs/compiler-contract.md's table on a GPU. Works on IR for NVPTX. */
#ifndef SP_COMPILER_CC_GPU_BUILTINS_H
#define SP_COMPILER_CC_GPU_BUILTINS_H

#include "compiler/cc/gpu/entry.h"

/* Ends the entry at its start for work-items outside the NDRange. After optimisation, which would
 * give launches with such work-items and launches without a copy each of what they share. */
void sp_gpu_guard_edges(LLVMModuleRef module, const struct sp_gpu_entry *entry);

/* Replaces the calls in an entry, into which everything is inlined. printf becomes a call of
 * __sp_print of the target's library. */
void sp_gpu_replace_builtins(LLVMModuleRef module, const struct sp_gpu_entry *entry);

#endif
