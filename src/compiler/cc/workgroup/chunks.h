/* The work-items of a region in chunks, each a vector's worth of neighbours in x, and chunks of one
 * kind in pieces: which regions are worth being made into vectors by lanes.c, and how they fall
 * apart. */
#ifndef SP_COMPILER_CC_WORKGROUP_CHUNKS_H
#define SP_COMPILER_CC_WORKGROUP_CHUNKS_H

#include "compiler/cc/workgroup/shapes.h"

#include <llvm-c/Target.h>

/* 64 lanes of bytes would be more than shuffles pay for. */
#define SP_WG_MOST_LANES 16u

/* A load is at most so many vectors that are shuffled; above, elements are loaded one by one. */
#define SP_WG_MOST_WINDOWS 4u

#define SP_WG_NO_LANE UINT32_MAX

struct sp_wg_chunks {
    const struct sp_wg_plan *plan;
    const struct sp_wg_region *region;
    struct sp_wg_shapes shapes;
    LLVMTargetDataRef sizes;
    uint32_t count;    /* lanes of a chunk */
    uint8_t *piece_of; /* by chunk: lanes of one piece go the same ways, at the same distances */
    unsigned num_pieces;
};

/* For groups of `local_size` whose work-items go the ways of `agreed` (or NULL), and vectors of
 * `vector_bits`. False where LLVM's vectoriser does as
 * well, or the region is not of this kind; then there is nothing to finish. */
bool sp_wg_chunks_init(struct sp_wg_chunks *chunks, const struct sp_wg_plan *plan,
                       const struct sp_wg_region *region, const struct sp_wg_agreed *agreed,
                       const uint64_t local_size[3], uint32_t vector_bits);
void sp_wg_chunks_finish(struct sp_wg_chunks *chunks);

uint64_t sp_wg_num_chunks(const struct sp_wg_chunks *chunks);

/* The first chunk of a piece from `chunk` on; the number of chunks where there is none. */
uint64_t sp_wg_next_chunk(const struct sp_wg_chunks *chunks, unsigned piece, uint64_t chunk);

/* After how many chunks all loads that are made one by one come again: they are then loaded once
 * for all these chunks. All chunks where that is never. */
uint64_t sp_wg_chunk_period(const struct sp_wg_chunks *chunks);

/* The first lane of the chunk that runs the block at a place of shapes.blocks, or SP_WG_NO_LANE. */
uint32_t sp_wg_first_active(const struct sp_wg_chunks *chunks, uint32_t block, uint64_t chunk);

LLVMBasicBlockRef sp_wg_chunk_block(const struct sp_wg_chunks *chunks, uint32_t place);

/* Of a load or store. */
LLVMTypeRef sp_wg_accessed_type(LLVMValueRef access);

#endif
