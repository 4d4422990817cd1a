/* Address spaces of spir64 to those of NVPTX. */
#ifndef SP_COMPILER_CC_GPU_SPACES_H
#define SP_COMPILER_CC_GPU_SPACES_H

#include "compiler/cc/text.h"

/* Address spaces of NVPTX: generic, and what lies in it. Private memory is reached through generic
 * pointers; LLVM finds the accesses that are to the stack. */
enum {
    SP_GPU_SPACE_GENERIC = 0,
    SP_GPU_SPACE_GLOBAL = 1,
    SP_GPU_SPACE_SHARED = 3,
};

/* Rewrites a module's text: private and generic become generic, global and constant global, local
 * shared. A cast that is none any more becomes a bitcast. */
void sp_gpu_respace(const char *text, struct sp_cc_text *result);

#endif
