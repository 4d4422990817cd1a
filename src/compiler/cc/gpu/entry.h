/* Entries: what the driver launches (gpu_abi.h). Works on IR for NVPTX. */
#ifndef SP_COMPILER_CC_GPU_ENTRY_H
#define SP_COMPILER_CC_GPU_ENTRY_H

#include "compiler/cc/ir.h"
#include "compiler/kernel_info.h"

/* An entry, and what is known of its launches. */
struct sp_gpu_entry {
    LLVMValueRef function;  /* void(parameter block) */
    uint64_t launch_offset; /* of struct sp_gpu_launch in the block */
    uint64_t local_size[3]; /* 0 0 0: any */
    bool is_uniform;        /* all groups are full */
};

/* Makes entry->function, which calls `kernel` with the arguments from its block, if the work-item
 * is one of the NDRange. */
void sp_gpu_add_entry(LLVMModuleRef module, LLVMValueRef kernel, const struct sp_kernel_info *info,
                      struct sp_gpu_entry *entry);

/* Makes the entry of sp_globals_init out of the function of that name, or leaves entry->function
 * NULL where there is none. */
void sp_gpu_add_globals_entry(LLVMModuleRef module, struct sp_gpu_entry *entry);

/* The address of a member of the launch record. */
LLVMValueRef sp_gpu_launch_member(const struct sp_gpu_entry *entry, LLVMBuilderRef builder,
                                  uint64_t offset);

/* Says which functions are entries and how large their groups are. */
void sp_gpu_annotate_entry(LLVMModuleRef module, const struct sp_gpu_entry *entry);

#endif
