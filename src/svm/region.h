/* One region of a shared arena: what the heap and the coherence layer know of it together.
 *
 * The heap makes and ends it (heap.c) and counts its uses under the arena's lock; the coherence
 * layer keeps its directory and the copies under way under the region's own lock.
 */
#ifndef SP_SVM_REGION_H
#define SP_SVM_REGION_H

#include <pthread.h>
#include <stdatomic.h>

#include "svm/directory.h"
#include "svm/heap.h"

struct sp_check_region;
struct sp_copy;
struct sp_range_use;
struct sp_span;
struct sp_watched_map;

/* A range of bytes of a region; empty when equal. */
struct sp_stretch {
    uint64_t first, end;
};

struct sp_region {
    unsigned char *start;
    size_t bytes;
    uint64_t flags;
    enum sp_path path;
    struct sp_arena *arena;
    struct sp_span *span;
    /* Counted down under the arena's lock, up by whoever holds that or a use: commands and copies
     * that need it; it ends with the last one once freed. */
    atomic_uint uses;
    bool is_freed;                 /* under the arena's lock */
    struct sp_check_region *check; /* checking mode only, and under its lock: check.c's; or NULL */
    /* Counted under the bindings' lock (path.c). */
    uint32_t hops;       /* uses that needed copies, without quiet times between them */
    uint32_t quiet_uses; /* in a row that needed none */
    uint32_t last_user;  /* agent */
    atomic_uint writers; /* commands that are going to change it and have not ended */
    /* Under the region's lock. */
    pthread_mutex_t lock;
    struct sp_directory directory; /* private path only */
    struct sp_copy *copies;        /* under way */
    struct sp_copy *dropped;       /* promises that were dropped and have not ended */
    struct sp_range_use *changes;  /* ranges that commands under way overwrite, or on a device with
                                      memory of its own change; the newest first */
    /* Ended maps of which nobody has asked yet what was written */
    struct sp_watched_map *unsettled;
    struct sp_watched_map *kept; /* one that was asked, and whose range is still watched; or NULL */
    struct sp_watched_map *maps; /* the host's maps for writing */
    bool is_dense;             /* the last such map was written densely: the next is not watched */
    bool is_map_unknown;       /* there is one that could not be noted */
    struct sp_stretch arrived; /* copies have brought all of this to the host: its pages exist */
    struct sp_stretch populated; /* what a watched map took into the host's page table */
};

/* Something happened to [first, end): the stretch grows by it, or the longer one of two that do not
 * touch is kept. */
static inline void sp_stretch_add(struct sp_stretch *stretch, uint64_t first, uint64_t end)
{
    uint64_t known = stretch->end - stretch->first;
    if (known && first <= stretch->end && end >= stretch->first) {
        if (first < stretch->first)
            stretch->first = first;
        if (end > stretch->end)
            stretch->end = end;
    } else if (end - first > known) {
        *stretch = (struct sp_stretch){first, end};
    }
}

/* `agent` has the only current copy now of a range. It may have to be split for that, which needs
 * memory; it must not be given up. With the region's lock held. */
static inline void sp_region_note_written(struct sp_region *region, uint64_t first, uint64_t end,
                                          uint32_t agent)
{
    while (sp_directory_written(&region->directory, first, end, agent))
        continue;
}

#endif
