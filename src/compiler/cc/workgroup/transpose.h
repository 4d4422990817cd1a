/* Rows of neighbouring lanes turned into columns, and back, by shuffles of two vectors each. */
#ifndef SP_COMPILER_CC_WORKGROUP_TRANSPOSE_H
#define SP_COMPILER_CC_WORKGROUP_TRANSPOSE_H

#include <llvm-c/Core.h>

/* Element `lane` of columns[e] becomes element e of rows[lane]. `lanes` rows of `width` elements of
 * 32 or 64 bits; both are powers of two, 2 <= width <= lanes <= 16, and lanes * bits is 128 to 512.
 */
void sp_wg_rows_to_columns(LLVMBuilderRef builder, LLVMValueRef *rows, unsigned lanes,
                           unsigned width, LLVMValueRef *columns);

/* The reverse. */
void sp_wg_columns_to_rows(LLVMBuilderRef builder, LLVMValueRef *columns, unsigned lanes,
                           unsigned width, LLVMValueRef *rows);

#endif
