/* From a plan to the function that runs one work-group (sp_cpu_kernel_fn). */
#ifndef SP_COMPILER_CC_WORKGROUP_EMIT_H
#define SP_COMPILER_CC_WORKGROUP_EMIT_H

#include "compiler/cc/layout.h"
#include "compiler/cc/workgroup/regions.h"
#include "compiler/kernel_info.h"

/* What a kernel's function needs to know beside its code. */
struct sp_wg_environment {
    LLVMModuleRef module;
    const struct sp_kernel_info *info;
    const struct sp_cc_layout *locals;
    const struct sp_cc_layout *globals;
    LLVMMetadataRef access_group;
    uint32_t vector_bits;
};

/* Adds `name` to the module: for any group where local_size is NULL, else for groups of just that
 * size. */
LLVMValueRef sp_wg_emit(const struct sp_wg_plan *plan, const struct sp_wg_environment *environment,
                        const char *name, const uint64_t *local_size);

/* Adds `name`, which calls `agreed` (of the form SP_WG_AGREED, from `plan`) for groups whose
 * work-items all go one way at the end of the entry block, else `other`. */
LLVMValueRef sp_wg_emit_agreement(const struct sp_wg_plan *plan,
                                  const struct sp_wg_environment *environment, const char *name,
                                  const uint64_t *local_size, LLVMValueRef agreed,
                                  LLVMValueRef other);

/* Adds `name`, which calls `any` (of the form SP_WG_SCALAR) or, where that is right and pays,
 * `full`: for groups of the whole local_size, or of any size where that is NULL, in an NDRange that
 * is not huge. */
LLVMValueRef sp_wg_emit_choice(const struct sp_wg_environment *environment, const char *name,
                               const uint64_t *local_size, LLVMValueRef full, LLVMValueRef any);

#endif
