/* Maps for writing whose pages are watched: between map and unmap the host holds a copy like any other
 * agent, and at the unmap only the pages that it really wrote are taken for changed.
 *
 * They are kept in their region under its lock. Called by the coherence layer and by whoever unmaps.
 */
#ifndef SP_SVM_WATCHED_MAP_H
#define SP_SVM_WATCHED_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct sp_arena;
struct sp_region;

/* Watches the range of a region that was just made current for the host, to be written. False where that is not worth
 * it or not possible: then the caller takes all of it for written. The region's lock is not held. */
bool sp_watched_map_begin(struct sp_region *region, uint64_t first, uint64_t end);

/* The host ended the map that began at `address`. Nothing where it was not watched. */
void sp_watched_map_end(struct sp_arena *arena, const void *address);

/* Forgets the maps of a region that ends. */
void sp_watched_maps_drop(struct sp_region *region);

#endif
