/* The back half for GPUs: program IR to a module for the GPU's driver (gpu_abi.h). */
#ifndef SP_COMPILER_CC_GPU_GPU_H
#define SP_COMPILER_CC_GPU_GPU_H

#include "compiler/cc/code.h"

/* As sp_cc_code, for code->target. */
enum sp_cc_status sp_cc_gpu_code(const struct sp_cc_code *code, struct sp_cc_text *image,
                                 struct sp_kernel_code *kernels, struct sp_cc_text *log);

#endif
