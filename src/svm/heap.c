/* The heap: regions out of the window's granules, for one arena at a time.
 *
 * Small regions are blocks of a slab: one granule, cut into blocks of one size class. Large regions
 * have granules of their own. A slab is in its class's list of the arena while it has a free block,
 * and otherwise in none; large regions are in a list of their own, so that the arena can give all
 * of them back. What an arena frees it may hand out again as it is; granules that go back to the window
 * lose their content, which is what keeps one context's data from another.
 *
 * Lock: one per arena, before the window's.
 */
#include <errno.h>
#include <stdlib.h>

#include "svm/heap.h"
#include "svm/window.h"
#include "util/alloc.h"

/* Size classes: 4 for each doubling, from 128 bytes, so that at most a fifth of a block is
 * wasted (the spacing that mimalloc and jemalloc use). Blocks are multiples of 128 bytes. */
#define CLASS_STEPS 4u
#define SMALL_MAX_BYTES (SP_GRANULE_BYTES / 4)
#define NUM_CLASSES 48u

/* Empty slabs that an arena keeps for each class, so that one region allocated and freed in turn does not
 * map and unmap its slab each time. */
#define KEPT_EMPTY_SLABS 1u

struct size_class {
    struct sp_span *open;   /* slabs with a free block */
    unsigned empty_slabs;   /* how many of them have no live block */
};

struct sp_arena {
    pthread_mutex_t lock;
    struct size_class classes[NUM_CLASSES];
    struct sp_span *spans; /* everything else that the arena has: large regions and full slabs */
};

/* Classes are steps of 128 up to 512, and from there four for each doubling. */
static unsigned class_of(size_t bytes)
{
    size_t units = (bytes + SP_MIN_ALIGNMENT - 1) / SP_MIN_ALIGNMENT; /* at least 1 */
    if (units <= CLASS_STEPS)
        return (unsigned)units - 1;
    unsigned doubling = 63u - (unsigned)__builtin_clzll(units - 1); /* at least 2 */
    unsigned shift = doubling - 2;
    return CLASS_STEPS * (shift + 1) + (unsigned)((units - 1) >> shift) - CLASS_STEPS;
}

static size_t class_bytes(unsigned size_class)
{
    if (size_class < CLASS_STEPS)
        return (size_t)(size_class + 1) * SP_MIN_ALIGNMENT;
    unsigned shift = size_class / CLASS_STEPS - 1;
    size_t units = (size_t)(CLASS_STEPS + size_class % CLASS_STEPS + 1) << shift;
    return units * SP_MIN_ALIGNMENT;
}

static void push_span(struct sp_span **list, struct sp_span *span)
{
    span->previous = NULL;
    span->next = *list;
    if (*list)
        (*list)->previous = span;
    *list = span;
}

static void remove_span(struct sp_span **list, struct sp_span *span)
{
    if (span->previous)
        span->previous->next = span->next;
    else
        *list = span->next;
    if (span->next)
        span->next->previous = span->previous;
}

static void destroy_span(struct sp_span *span)
{
    sp_window_give_back(span);
    free(span->blocks);
    free(span);
}

int sp_arena_create(struct sp_arena **arena)
{
    struct sp_arena *created = sp_alloc(sizeof *created);
    if (!created)
        return -ENOMEM;
    pthread_mutex_init(&created->lock, NULL);
    *arena = created;
    return 0;
}

static void destroy_spans(struct sp_span *span)
{
    while (span) {
        struct sp_span *next = span->next;
        destroy_span(span);
        span = next;
    }
}

void sp_arena_destroy(struct sp_arena *arena)
{
    if (!arena)
        return;
    for (unsigned i = 0; i < NUM_CLASSES; i++)
        destroy_spans(arena->classes[i].open);
    destroy_spans(arena->spans);
    pthread_mutex_destroy(&arena->lock);
    free(arena);
}

static bool slab_is_full(const struct sp_span *slab)
{
    return slab->first_free == 0 && slab->untouched == slab->capacity;
}

static struct sp_span *create_slab(struct sp_arena *arena, unsigned size_class)
{
    struct sp_span *slab = sp_alloc(sizeof *slab);
    if (!slab)
        return NULL;
    slab->arena = arena;
    slab->granules = 1;
    slab->size_class = (uint8_t)size_class;
    slab->block_bytes = (uint32_t)class_bytes(size_class);
    slab->capacity = (uint32_t)(SP_GRANULE_BYTES / slab->block_bytes);
    slab->blocks = sp_alloc_array(slab->capacity, sizeof *slab->blocks);
    if (!slab->blocks || sp_window_take(slab, false)) {
        free(slab->blocks);
        free(slab);
        return NULL;
    }
    return slab;
}

static void *alloc_small(struct sp_arena *arena, size_t bytes, unsigned size_class, uint64_t flags)
{
    struct size_class *class = &arena->classes[size_class];
    void *start = NULL;

    pthread_mutex_lock(&arena->lock);
    struct sp_span *slab = class->open;
    if (!slab) {
        slab = create_slab(arena, size_class);
        if (!slab)
            goto out;
        push_span(&class->open, slab);
        class->empty_slabs++;
    }
    if (slab->live == 0)
        class->empty_slabs--;
    uint32_t index;
    if (slab->first_free) {
        index = slab->first_free - 1;
        slab->first_free = slab->blocks[index].next_free;
    } else {
        index = slab->untouched++;
    }
    slab->live++;
    slab->blocks[index].bytes = (uint32_t)bytes;
    slab->blocks[index].flags = flags;
    if (slab_is_full(slab)) {
        remove_span(&class->open, slab);
        push_span(&arena->spans, slab);
    }
    start = slab->start + (size_t)index * slab->block_bytes;
out:
    pthread_mutex_unlock(&arena->lock);
    return start;
}

static void *alloc_large(struct sp_arena *arena, size_t bytes, uint64_t flags)
{
    struct sp_span *span = sp_alloc(sizeof *span);
    if (!span)
        return NULL;
    span->arena = arena;
    span->granules = (bytes + SP_GRANULE_BYTES - 1) / SP_GRANULE_BYTES;
    span->bytes = bytes;
    span->flags = flags;
    if (sp_window_take(span, true)) {
        free(span);
        return NULL;
    }
    pthread_mutex_lock(&arena->lock);
    push_span(&arena->spans, span);
    pthread_mutex_unlock(&arena->lock);
    return span->start;
}

void *sp_arena_alloc(struct sp_arena *arena, size_t bytes, size_t alignment, uint64_t flags)
{
    if (bytes == 0 || bytes > SIZE_MAX - SP_GRANULE_BYTES || alignment > SP_MAX_ALIGNMENT)
        return NULL;
    size_t room = bytes;
    if (alignment > SP_MIN_ALIGNMENT && room < SMALL_MAX_BYTES) {
        /* Blocks of a power of two lie at multiples of their size. */
        room = room < alignment ? alignment : room;
        room = (size_t)1 << (64 - __builtin_clzll(room - 1));
    }
    return room <= SMALL_MAX_BYTES ? alloc_small(arena, bytes, class_of(room), flags)
                                   : alloc_large(arena, bytes, flags);
}

/* With the arena's lock held. Returns a slab to destroy once it is released, or NULL. */
static struct sp_span *free_block(struct sp_arena *arena, struct sp_span *slab, uint32_t index)
{
    struct size_class *class = &arena->classes[slab->size_class];
    if (slab_is_full(slab)) {
        remove_span(&arena->spans, slab);
        push_span(&class->open, slab);
    }
    slab->blocks[index].bytes = 0;
    slab->blocks[index].next_free = slab->first_free;
    slab->first_free = index + 1;
    if (--slab->live > 0)
        return NULL;
    if (class->empty_slabs < KEPT_EMPTY_SLABS) {
        class->empty_slabs++;
        return NULL;
    }
    remove_span(&class->open, slab);
    return slab;
}

/* The block that holds `address`, live or not; slab->capacity where the slab's rest does. */
static uint32_t block_of(const struct sp_span *slab, const void *address)
{
    size_t offset = (size_t)((const unsigned char *)address - slab->start);
    size_t index = offset / slab->block_bytes;
    return index < slab->capacity ? (uint32_t)index : slab->capacity;
}

int sp_arena_free(struct sp_arena *arena, void *start)
{
    struct sp_span *dropped = NULL;
    int result = -EINVAL;

    /* A span of this arena that holds a live region stays while the arena's lock is held. */
    pthread_mutex_lock(&arena->lock);
    sp_window_lock_shared();
    struct sp_span *span = sp_window_find_locked(start);
    if (span && span->arena != arena)
        span = NULL;
    sp_window_unlock_shared();
    if (span && span->blocks) {
        uint32_t index = block_of(span, start);
        if (index < span->capacity && span->blocks[index].bytes &&
            (unsigned char *)start == span->start + (size_t)index * span->block_bytes) {
            dropped = free_block(arena, span, index);
            result = 0;
        }
    } else if (span && span->start == start) {
        remove_span(&arena->spans, span);
        dropped = span;
        result = 0;
    }
    pthread_mutex_unlock(&arena->lock);
    if (dropped)
        destroy_span(dropped);
    return result;
}

bool sp_region_find(const void *address, struct sp_region_info *info)
{
    bool is_found = false;
    sp_window_lock_shared();
    struct sp_span *span = sp_window_find_locked(address);
    if (span && span->blocks) {
        uint32_t index = block_of(span, address);
        const unsigned char *start = span->start + (size_t)index * span->block_bytes;
        is_found = index < span->capacity &&
                   (size_t)((const unsigned char *)address - start) < span->blocks[index].bytes;
        if (is_found)
            *info = (struct sp_region_info){.start = (void *)start,
                                            .bytes = span->blocks[index].bytes,
                                            .flags = span->blocks[index].flags,
                                            .arena = span->arena};
    } else if (span) {
        is_found = (size_t)((const unsigned char *)address - span->start) < span->bytes;
        if (is_found)
            *info = (struct sp_region_info){.start = span->start,
                                            .bytes = span->bytes,
                                            .flags = span->flags,
                                            .arena = span->arena};
    }
    sp_window_unlock_shared();
    return is_found;
}
