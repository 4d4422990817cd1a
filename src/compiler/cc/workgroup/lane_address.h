/* Addresses of single lanes, taken apart: what differs from lane to lane, and a distance in bytes
 * that is known. Two lanes' addresses, or those of two accesses in one lane, are a known distance
 * apart where the rest is the same. */
#ifndef SP_COMPILER_CC_WORKGROUP_LANE_ADDRESS_H
#define SP_COMPILER_CC_WORKGROUP_LANE_ADDRESS_H

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <stdbool.h>
#include <stdint.h>

#define SP_WG_MOST_LANES 16u

/* base[base_lane] + scale * extended(index[index_lane]) + offset. A lane of -1: the value is no
 * vector. */
struct sp_wg_lane_address {
    LLVMValueRef base;
    LLVMValueRef index; /* NULL: none */
    int base_lane, index_lane;
    LLVMOpcode extension; /* LLVMZExt or LLVMSExt of the index to 64 bits; 0: it has these */
    uint64_t scale;       /* bytes; 0 without an index */
    int64_t offset;       /* bytes */
};

/* Of `pointer`, or of its lane where it is a vector of pointers and `lane` not negative. */
void sp_wg_lane_address(LLVMTargetDataRef sizes, LLVMValueRef pointer, int lane,
                        struct sp_wg_lane_address *address);

/* True where the two differ in nothing but the offset. */
bool sp_wg_lane_addresses_differ_by_offset(const struct sp_wg_lane_address *a,
                                           const struct sp_wg_lane_address *b);

/* True where each two of these addresses are known to be at least `bytes` apart, as those of
 * neighbouring work-items are, whose ids are multiplied. */
bool sp_wg_lanes_are_apart(const struct sp_wg_lane_address *addresses, unsigned lanes,
                           uint64_t bytes);

#endif
