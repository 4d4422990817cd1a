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

struct sp_copy;
struct sp_span;

struct sp_region {
    unsigned char *start;
    size_t bytes;
    uint64_t flags;
    enum sp_path path;
    struct sp_arena *arena;
    struct sp_span *span;
    /* Counted down under the arena's lock, up by whoever holds that or a use: commands and copies that
     * need it; it ends with the last one once freed. */
    atomic_uint uses;
    bool is_freed; /* under the arena's lock */
    /* Under the region's lock. */
    pthread_mutex_t lock;
    struct sp_directory directory; /* private path only */
    struct sp_copy *copies;        /* under way */
};

#endif
