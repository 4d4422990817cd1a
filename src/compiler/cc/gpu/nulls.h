/* Null pointers to local memory. Works on IR as LINK left it. */
#ifndef SP_COMPILER_CC_GPU_NULLS_H
#define SP_COMPILER_CC_GPU_NULLS_H

#include "compiler/cc/ir.h"

/* Makes every cast of a local pointer to a generic one give null for null. */
void sp_gpu_keep_nulls(LLVMModuleRef module);

#endif
