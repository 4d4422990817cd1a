/* Where variables lie: __local variables of a kernel in scratch, and program-scope variables in the
 * program's globals block. Computed from the linked IR alone, in the order of the module, so that
 * LINK (which reports sizes) and every CODE (which uses offsets) agree without telling each other.
 */
#ifndef SP_COMPILER_CC_LAYOUT_H
#define SP_COMPILER_CC_LAYOUT_H

#include "compiler/cc/ir.h"

/* 8 bytes for each of SP_MAX_WORK_GROUP_SIZE work-items (docs/compiler-contract.md). */
#define SP_CC_GROUP_SCRATCH_BYTES (8u * 1024u)

struct sp_cc_place {
    LLVMValueRef variable; /* a global variable; or the function __sp_group_scratch */
    uint64_t offset;
};

struct sp_cc_layout {
    struct sp_cc_place *places; /* owned */
    size_t count;
    uint64_t bytes;
};

/* The static local memory of one kernel, into which everything is inlined. */
void sp_cc_layout_locals(LLVMModuleRef module, LLVMValueRef kernel, struct sp_cc_layout *layout);

/* Variables in the global address space, and constants whose initial value holds the address of
 * one. */
void sp_cc_layout_globals(LLVMModuleRef module, struct sp_cc_layout *layout);

/* The place of a variable, or NULL. */
const struct sp_cc_place *sp_cc_layout_find(const struct sp_cc_layout *layout,
                                            LLVMValueRef variable);

void sp_cc_layout_finish(struct sp_cc_layout *layout);

/* Adds sp_globals_init to the module where a variable has an initial value other than zero. */
void sp_cc_add_globals_init(LLVMModuleRef module, const struct sp_cc_layout *layout);

#endif
