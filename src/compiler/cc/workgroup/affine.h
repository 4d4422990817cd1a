/* Values that grow evenly with the work-item's id. */
#ifndef SP_COMPILER_CC_WORKGROUP_AFFINE_H
#define SP_COMPILER_CC_WORKGROUP_AFFINE_H

#include "compiler/cc/workgroup/uniformity.h"

/* A number times local sizes: of dimension d where bit d of `sizes` is set. */
struct sp_wg_multiple {
    uint64_t factor;
    unsigned sizes;
};

/* In the arithmetic of the value's own width: what it is in the work-item whose local ids are all
 * 0, and ids[d] times the local id d more in others. */
struct sp_wg_affine {
    bool based; /* the first work-item's value is not the constant 0 */
    struct sp_wg_multiple ids[3];
};

/* False where `value` is not seen to be of that kind. */
bool sp_wg_affine_of(const struct sp_wg_uniformity *uniformity, LLVMValueRef value,
                     struct sp_wg_affine *affine);

/* True for a constant and for products with local sizes, whatever their width. */
bool sp_wg_multiple_of(LLVMValueRef value, struct sp_wg_multiple *multiple);

/* No less than what the value is larger in any work-item than in the first, and no less than
 * `multiple`. `known` is the local size, or NULL. */
uint64_t sp_wg_affine_reach(const struct sp_wg_affine *affine, const uint64_t *known);
uint64_t sp_wg_most_of(const struct sp_wg_multiple *multiple, const uint64_t *known);

/* Whether the values of the work-items fill [first, first + step): each number once. */
bool sp_wg_affine_fills(const struct sp_wg_affine *affine, const struct sp_wg_multiple *step,
                        const uint64_t *known);

/* The value in the first work-item, built where `builder` stands, or as a number. */
LLVMValueRef sp_wg_affine_first(LLVMBuilderRef builder, const struct sp_wg_uniformity *uniformity,
                                LLVMValueRef value);
bool sp_wg_first_number(LLVMValueRef value, uint64_t *number);

/* How much more it is in the work-item that runs the code, and in the last work-item of the group;
 * of `type`. */
LLVMValueRef sp_wg_affine_distance(LLVMBuilderRef builder, LLVMModuleRef module,
                                   const struct sp_wg_affine *affine, LLVMTypeRef type);
LLVMValueRef sp_wg_affine_span(LLVMBuilderRef builder, LLVMModuleRef module,
                               const struct sp_wg_affine *affine, LLVMTypeRef type,
                               const uint64_t *known);

#endif
