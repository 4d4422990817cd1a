/* Entries whose work-items do the work of two groups. */
#ifndef SP_COMPILER_CC_GPU_PAIRS_H
#define SP_COMPILER_CC_GPU_PAIRS_H

#include <stdbool.h>

#include "compiler/cc/gpu/entry.h"

/* Adds the pair of an optimised entry (gpu_abi.h, SP_GPU_PAIR_SYMBOL_PREFIX) where it is worth its
 * place. `kernel` is the kernel's name. False: there is none. */
bool sp_gpu_add_pair(LLVMModuleRef module, const struct sp_gpu_entry *entry, const char *kernel);

#endif
