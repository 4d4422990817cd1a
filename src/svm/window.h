/* The window's granules: who has which, and what lies at an address.
 *
 * Used by the heap alone. A span is a run of granules that one arena has: a slab of small blocks,
 * or one large region. Pages of the window are inaccessible until a span has them, and are zero
 * when a span gets them.
 */
#ifndef SP_SVM_WINDOW_H
#define SP_SVM_WINDOW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svm/heap.h"

/* One small block of a slab. */
struct sp_block {
    uint64_t flags;
    uint32_t bytes;           /* as asked for; 0: not live */
    uint32_t next_free;       /* index + 1 of the next free block; 0: the last */
    struct sp_region *region; /* shared arenas only; owned */
};

struct sp_binding;
struct sp_pool;

struct sp_span {
    struct sp_arena *arena;
    unsigned char *start;
    size_t granules;
    struct sp_span *next, *previous; /* in a list of the arena */
    bool is_shared;                  /* its pages are those of the window's file */
    bool is_ending;                  /* under the arena's lock: nobody will use it again */
    enum sp_path path;               /* what its regions were asked for with */
    /* Shared arenas only: bindings.c's and path.c's, under the bindings' lock. */
    struct sp_binding *bindings; /* agents that it is bound on */
    _Atomic bool is_at_home;     /* of the private path, but at home for now; read by anybody */
    uint32_t steady_uses;        /* at home: uses in a row by a region's own last user */
    uint32_t returns;            /* how often it came back from home */
    /* A large region: blocks is NULL. */
    size_t bytes;
    uint64_t flags;
    struct sp_region *region; /* shared arenas only; owned */
    struct sp_pool *pool;     /* where the parts of a pooled region lie; owned; else NULL */
    /* A slab. All under the arena's lock. */
    struct sp_block *blocks; /* capacity of them, owned */
    uint32_t block_bytes;
    uint32_t capacity;
    uint32_t live;
    uint32_t first_free; /* index + 1 of a block that was freed; 0: none */
    uint32_t untouched;  /* blocks from here on were never handed out */
    uint8_t size_class;
};

static inline bool sp_span_is_at_home(const struct sp_span *span)
{
    /* Relaxed: see path.c. */
    return atomic_load_explicit(&span->is_at_home, memory_order_relaxed);
}

/* Whether its bindings are to the host's pages. */
static inline bool sp_span_is_home(const struct sp_span *span)
{
    return sp_path_is_home(span->path) || sp_span_is_at_home(span);
}

/* Calls `function` for each region of a span of a shared arena until it gives an error, which is
 * returned; for none where the span is ending: its content does not matter any more. Takes the
 * arena's lock (heap.c). */
int sp_span_for_each_region(struct sp_span *span,
                            int (*function)(struct sp_region *region, void *data), void *data);

/* Calls `function` for each span of the home path that came to the arena since the last call for
 * `agent` that went well, and gives its error. Takes the arena's lock (heap.c). */
int sp_arena_for_each_new_home(struct sp_arena *arena,
                               int (*function)(struct sp_span *span, uint32_t agent),
                               uint32_t agent);

/* Makes all spans of the home path new again for `agent`, in every shared arena. */
void sp_arena_forget_home(uint32_t agent);

/* The same of one agent and one arena, with the bindings' lock held. */
void sp_arena_show_home_again(struct sp_arena *arena, uint32_t agent);

/* Gives `span->granules` granules to `span`, of the atomic part where that is its path: sets
 * span->start and makes the pages usable, with huge pages where `is_large`. -ENOMEM: then nothing
 * has changed. */
int sp_window_take(struct sp_span *span, bool is_large);

/* Takes them back; their content is gone. The span itself is the caller's. */
void sp_window_give_back(struct sp_span *span);

/* Makes the span be found no more, and drops its content; its addresses stay taken until they are
 * given back. */
void sp_window_retire(struct sp_span *span);

/* The span that holds `address`, or NULL. Stays valid while the caller is between lock and unlock.
 */
struct sp_span *sp_window_find_locked(const void *address);
void sp_window_lock_shared(void);
void sp_window_unlock_shared(void);

#endif
