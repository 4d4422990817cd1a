/* Pooled regions: where the parts of a region lie that is larger than the memory of one device
 * (docs/pooled-memory.md).
 *
 * A pool is planned before the region is allocated and never changes; the region's span owns it,
 * with free(). How its parts are bound is bindings.c's, how a command's ranges are cut along them
 * coherence.c's.
 */
#ifndef SP_SVM_POOL_H
#define SP_SVM_POOL_H

#include <stdbool.h>
#include <stdint.h>

/* Whole granules of the span, counted from its start, in the memory of one agent. */
struct sp_pool_part {
    uint64_t first, granules;
    uint32_t home;
};

struct sp_pool {
    uint32_t members; /* bit a: agent a uses the parts where they are */
    uint32_t count;
    struct sp_pool_part parts[]; /* in order, without gaps */
};

/* Plans a region of `bytes` bytes (more than 0) for the agents of a mask, which are devices with
 * memory of their own: 0 and *pool, which is NULL where each of them can hold it alone; -ENOSPC
 * where they cannot hold it together, or one of them can neither hold it nor see the memory of the
 * others; -ENOMEM. Takes the bindings' lock. */
int sp_pool_plan(uint64_t bytes, uint32_t agents, struct sp_pool **pool);

/* Whether `agent` uses the parts where they are. */
static inline bool sp_pool_has(const struct sp_pool *pool, uint32_t agent)
{
    return pool && (pool->members >> agent & 1);
}

#endif
