/* Elements that one work-item loads or stores side by side, as the words of its message: after
 * LLVM's vectoriser a vector for each word is put together from one load for each work-item. Here
 * each work-item's elements become one wide access, and shuffles turn rows into columns. */
#ifndef SP_COMPILER_CC_WORKGROUP_ROWS_H
#define SP_COMPILER_CC_WORKGROUP_ROWS_H

#include <llvm-c/Core.h>
#include <stdbool.h>

/* For a module after LLVM's optimiser. True where something changed: accesses that are of no more
 * use are left to be removed (dce). */
bool sp_wg_join_rows(LLVMModuleRef module);

#endif
