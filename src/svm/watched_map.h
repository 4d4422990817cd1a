/* The host's maps for writing. What is mapped is the host's until the unmap, whatever commands do
 * with the rest of the region meanwhile; where a map is not watched all of it is taken for written
 * when it begins, so that others get it, and again when it ends, since others may have fetched it
 * in between. Where the pages of one are watched, the host holds a copy like any other agent
 * between map and unmap, and at the unmap only the pages that it really wrote are taken for
 * changed.
 *
 * What was written is looked up when somebody else than a map of the host is going to use the
 * region: until then the watch of an ended map stays, and a map of the same range goes on with it.
 * So maps one after the other cost no scan of their pages, and where a device uses the region in
 * between it is one for each map.
 *
 * They are kept in their region under its lock. Called by the coherence layer and by whoever
 * unmaps.
 */
#ifndef SP_SVM_WATCHED_MAP_H
#define SP_SVM_WATCHED_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct sp_arena;
struct sp_region;

/* Notes a map of a range that was just made current for the host, to be written, and with may_watch
 * watches it. False where that is not worth it or not possible: then the caller takes all of it for
 * written. The region's lock is not held. */
bool sp_watched_map_begin(struct sp_region *region, uint64_t first, uint64_t end, bool may_watch);

/* The host ended the map that began at `address`. Nothing where that was none for writing. */
void sp_watched_map_end(struct sp_arena *arena, const void *address);

/* A command of `agent`, another than the host, was to change [first, end), and has: but for what
 * the host has mapped for writing, which no command may touch until it is unmapped. Not so where
 * the map is of the whole region: then the command has touched it, and what a careless program gets
 * is what it has always got. With the region's lock held. */
void sp_watched_maps_note_written(struct sp_region *region, uint64_t first, uint64_t end,
                                  uint32_t agent);

/* Takes what was written in maps that have ended for changed. With the region's lock held. */
void sp_watched_maps_settle(struct sp_region *region);

/* The host is going to change the region outside of maps, of which no watch need tell. With the
 * region's lock held. */
void sp_watched_maps_unkeep(struct sp_region *region);

/* Forgets the maps of a region that ends. */
void sp_watched_maps_drop(struct sp_region *region);

#endif
