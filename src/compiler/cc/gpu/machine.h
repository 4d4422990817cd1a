/* The GPUs that LLVM makes code for. */
#ifndef SP_COMPILER_CC_GPU_MACHINE_H
#define SP_COMPILER_CC_GPU_MACHINE_H

#include "compiler/cc/text.h"

#include <llvm-c/TargetMachine.h>
#include <stdbool.h>

/* A machine for a target such as "nvptx64:sm_90", to be ended with LLVMDisposeTargetMachine; NULL
 * with a line in the log. An architecture newer than LLVM's newest gets code for that one. */
LLVMTargetMachineRef sp_gpu_machine(const char *target, bool optimise, struct sp_cc_text *log);

/* Where the builtin library for these GPUs lies; to be freed. */
char *sp_gpu_library_path(void);

#endif
