/* The heap: regions out of the window's granules, for one arena at a time.
 *
 * Small regions are blocks of a slab: one granule, cut into blocks of one size class. Large regions
 * have granules of their own. A slab is in its class's list of the arena while it has a free block,
 * and otherwise in none; large regions are in a list of their own, so that the arena can give all
 * of them back. What an arena frees it may hand out again as it is; granules that go back to the
 * window lose their content, which is what keeps one context's data from another.
 *
 * Lock: one per arena, before the window's.
 */
#include <errno.h>
#include <stdlib.h>

#include "svm/check.h"
#include "svm/coherence.h"
#include "svm/heap.h"
#include "svm/pool.h"
#include "svm/region.h"
#include "svm/trace.h"
#include "svm/watched_map.h"
#include "svm/window.h"
#include "util/alloc.h"

/* Size classes: 4 for each doubling, from 128 bytes, so that at most a fifth of a block is
 * wasted (the spacing that mimalloc and jemalloc use). Blocks are multiples of 128 bytes. */
#define CLASS_STEPS 4u
#define SMALL_MAX_BYTES (SP_GRANULE_BYTES / 4)
#define NUM_CLASSES 48u

/* Empty slabs that an arena keeps for each class, so that one region allocated and freed in turn
 * does not map and unmap its slab each time. */
#define KEPT_EMPTY_SLABS 1u

struct size_class {
    struct sp_span *open; /* slabs with a free block */
    unsigned empty_slabs; /* how many of them have no live block */
};

#define NUM_PATHS 3u

struct sp_arena {
    pthread_mutex_t lock;
    /* A slab is bound on a device as a whole, so its regions have one path. */
    struct size_class classes[NUM_PATHS][NUM_CLASSES];
    struct sp_span *spans; /* everything else that the arena has: large regions and full slabs */
    /* Shared arenas only. */
    bool is_shared;
    struct sp_arena *next;             /* in `shared_arenas` */
    pthread_cond_t idle;               /* a region is used no more */
    uint64_t home_spans;               /* how many spans of the home path there ever were */
    uint64_t home_seen[SP_MAX_AGENTS]; /* how many of them each agent has been shown */
};

/* The shared arenas, for what concerns all their regions. The lock comes before any arena's. */
static pthread_mutex_t shared_arenas_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sp_arena *shared_arenas;

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

static struct sp_region *create_region(struct sp_arena *arena, size_t bytes, uint64_t flags,
                                       enum sp_path path)
{
    struct sp_region *region = sp_alloc(sizeof *region);
    if (!region)
        return NULL;
    region->bytes = bytes;
    region->flags = flags;
    region->path = path;
    region->arena = arena;
    pthread_mutex_init(&region->lock, NULL);
    sp_directory_init(&region->directory, bytes);
    return region;
}

static void destroy_region(struct sp_region *region)
{
    if (!region)
        return;
    if (sp_check_is_on)
        sp_check_region_ended(region);
    sp_watched_maps_drop(region);
    sp_directory_finish(&region->directory);
    pthread_mutex_destroy(&region->lock);
    free(region);
}

static void destroy_span(struct sp_span *span)
{
    if (span->is_shared)
        sp_coherence_unbind(span);
    bool is_kept = sp_check_is_on && span->is_shared && sp_check_keep(span);
    if (!is_kept)
        sp_window_give_back(span);
    for (uint32_t i = 0; span->blocks && i < span->capacity; i++)
        destroy_region(span->blocks[i].region);
    destroy_region(span->region);
    free(span->blocks);
    free(span->pool);
    free(span);
}

int sp_arena_create(bool is_shared, struct sp_arena **arena)
{
    struct sp_arena *created = sp_alloc(sizeof *created);
    if (!created)
        return -ENOMEM;
    pthread_mutex_init(&created->lock, NULL);
    created->is_shared = is_shared;
    pthread_cond_init(&created->idle, NULL);
    if (is_shared) {
        pthread_mutex_lock(&shared_arenas_lock);
        created->next = shared_arenas;
        shared_arenas = created;
        pthread_mutex_unlock(&shared_arenas_lock);
    }
    *arena = created;
    return 0;
}

bool sp_arena_is_shared(const struct sp_arena *arena)
{
    return arena->is_shared;
}

static struct sp_region *region_at(const struct sp_span *span, uint32_t index)
{
    return span->blocks ? span->blocks[index].region : span->region;
}

/* Blocks that may have a region; a large span counts as one. */
static uint32_t region_slots(const struct sp_span *span)
{
    return span->blocks ? span->untouched : 1;
}

/* Counts the regions of a list of spans on top of `count`; with `list` not NULL also appends them,
 * each with a use. */
static size_t collect(struct sp_span *span, struct sp_region **list, size_t count)
{
    for (; span; span = span->next) {
        for (uint32_t i = 0; i < region_slots(span); i++) {
            struct sp_region *region = region_at(span, i);
            if (!region)
                continue;
            if (list) {
                atomic_fetch_add_explicit(&region->uses, 1, memory_order_relaxed);
                list[count] = region;
            }
            count++;
        }
    }
    return count;
}

static size_t collect_all(struct sp_arena *arena, struct sp_region **list)
{
    size_t count = collect(arena->spans, list, 0);
    for (unsigned p = 0; p < NUM_PATHS; p++)
        for (unsigned c = 0; c < NUM_CLASSES; c++)
            count = collect(arena->classes[p][c].open, list, count);
    return count;
}

static bool is_used(struct sp_span *span)
{
    for (; span; span = span->next)
        for (uint32_t i = 0; i < region_slots(span); i++) {
            struct sp_region *region = region_at(span, i);
            if (region && atomic_load_explicit(&region->uses, memory_order_relaxed) > 0)
                return true;
        }
    return false;
}

static void end_spans(struct sp_span *span)
{
    for (; span; span = span->next)
        span->is_ending = true;
}

/* Copies that nobody waited for may still be under way: evictions. No new ones begin afterwards. */
static void wait_until_unused(struct sp_arena *arena)
{
    pthread_mutex_lock(&arena->lock);
    for (;;) {
        bool is_busy = is_used(arena->spans);
        for (unsigned c = 0; !is_busy && c < NUM_PATHS * NUM_CLASSES; c++)
            is_busy = is_used(arena->classes[c / NUM_CLASSES][c % NUM_CLASSES].open);
        if (!is_busy)
            break;
        pthread_cond_wait(&arena->idle, &arena->lock);
    }
    end_spans(arena->spans);
    for (unsigned c = 0; c < NUM_PATHS * NUM_CLASSES; c++)
        end_spans(arena->classes[c / NUM_CLASSES][c % NUM_CLASSES].open);
    pthread_mutex_unlock(&arena->lock);
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
    if (arena->is_shared) {
        pthread_mutex_lock(&shared_arenas_lock);
        struct sp_arena **link = &shared_arenas;
        while (*link != arena)
            link = &(*link)->next;
        *link = arena->next;
        pthread_mutex_unlock(&shared_arenas_lock);
        wait_until_unused(arena);
    }
    for (unsigned p = 0; p < NUM_PATHS; p++)
        for (unsigned i = 0; i < NUM_CLASSES; i++)
            destroy_spans(arena->classes[p][i].open);
    destroy_spans(arena->spans);
    pthread_cond_destroy(&arena->idle);
    pthread_mutex_destroy(&arena->lock);
    free(arena);
}

static bool slab_is_full(const struct sp_span *slab)
{
    return slab->first_free == 0 && slab->untouched == slab->capacity;
}

static struct sp_span *create_slab(struct sp_arena *arena, unsigned size_class, enum sp_path path)
{
    struct sp_span *slab = sp_alloc(sizeof *slab);
    if (!slab)
        return NULL;
    slab->arena = arena;
    slab->granules = 1;
    slab->is_shared = arena->is_shared;
    slab->path = path;
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

/* Takes a block of an open slab. With the arena's lock held. */
static unsigned char *take_block(struct sp_arena *arena, struct size_class *class,
                                 struct sp_span *slab, size_t bytes, uint64_t flags,
                                 struct sp_region *region)
{
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
    slab->blocks[index].region = region;
    if (slab_is_full(slab)) {
        remove_span(&class->open, slab);
        push_span(&arena->spans, slab);
    }
    return slab->start + (size_t)index * slab->block_bytes;
}

static void *alloc_small(struct sp_arena *arena, size_t bytes, unsigned size_class, uint64_t flags,
                         enum sp_path path, struct sp_region *region)
{
    struct size_class *class = &arena->classes[path][size_class];
    unsigned char *start = NULL;

    pthread_mutex_lock(&arena->lock);
    struct sp_span *slab = class->open;
    if (!slab) {
        slab = create_slab(arena, size_class, path);
        if (!slab)
            goto out;
        push_span(&class->open, slab);
        class->empty_slabs++;
        arena->home_spans += sp_path_is_home(path);
    }
    start = take_block(arena, class, slab, bytes, flags, region);
    if (region) {
        region->start = start;
        region->span = slab;
    }
out:
    pthread_mutex_unlock(&arena->lock);
    return start;
}

static void *alloc_large(struct sp_arena *arena, size_t bytes, uint64_t flags, enum sp_path path,
                         struct sp_region *region, struct sp_pool *pool)
{
    struct sp_span *span = sp_alloc(sizeof *span);
    if (!span)
        return NULL;
    span->arena = arena;
    span->granules = (bytes + SP_GRANULE_BYTES - 1) / SP_GRANULE_BYTES;
    span->is_shared = arena->is_shared;
    span->path = path;
    span->bytes = bytes;
    span->flags = flags;
    if (sp_window_take(span, true)) {
        free(span);
        return NULL;
    }
    span->pool = pool;
    pthread_mutex_lock(&arena->lock);
    if (region) {
        region->start = span->start;
        region->span = span;
        span->region = region;
    }
    arena->home_spans += sp_path_is_home(path);
    push_span(&arena->spans, span);
    pthread_mutex_unlock(&arena->lock);
    return span->start;
}

static void trace_allocation(const void *start, size_t bytes, const struct sp_pool *pool)
{
    char site[256];
    sp_trace_call_site(site, sizeof site);
    sp_trace_instant(SP_TRACE_AGENT(SP_AGENT_HOST), "allocation", "allocation",
                     "\"region\":\"%p\",\"bytes\":%zu,\"parts\":%u,\"site\":\"%s\"", start, bytes,
                     pool ? pool->count : 0, site);
}

static void *alloc(struct sp_arena *arena, size_t bytes, size_t alignment, uint64_t flags,
                   enum sp_path path, struct sp_pool *pool)
{
    if (bytes == 0 || bytes > SIZE_MAX - SP_GRANULE_BYTES || alignment > SP_MAX_ALIGNMENT)
        return NULL;
    size_t room = bytes;
    if (alignment > SP_MIN_ALIGNMENT && room < SMALL_MAX_BYTES) {
        /* Blocks of a power of two lie at multiples of their size. */
        room = room < alignment ? alignment : room;
        room = (size_t)1 << (64 - __builtin_clzll(room - 1));
    }
    struct sp_region *region = NULL;
    if (arena->is_shared) {
        room = sp_check_room(room);
        region = create_region(arena, bytes, flags, path);
        if (!region)
            return NULL;
    } else {
        path = SP_PATH_PRIVATE; /* one kind of slabs is enough */
    }
    void *start = room <= SMALL_MAX_BYTES && !pool
                      ? alloc_small(arena, bytes, class_of(room), flags, path, region)
                      : alloc_large(arena, bytes, flags, path, region, pool);
    if (!start)
        destroy_region(region);
    else if (sp_trace_is_on)
        trace_allocation(start, bytes, pool);
    if (sp_check_is_on && region && start)
        sp_check_allocated(region);
    return start;
}

void *sp_arena_alloc(struct sp_arena *arena, size_t bytes, size_t alignment, uint64_t flags,
                     enum sp_path path)
{
    return alloc(arena, bytes, alignment, flags, path, NULL);
}

void *sp_arena_alloc_pooled(struct sp_arena *arena, size_t bytes, size_t alignment, uint64_t flags,
                            struct sp_pool *pool)
{
    return alloc(arena, bytes, alignment, flags, SP_PATH_PRIVATE, pool);
}

/* With the arena's lock held. Returns a slab to destroy once it is released, or NULL. */
static struct sp_span *free_block(struct sp_arena *arena, struct sp_span *slab, uint32_t index)
{
    struct size_class *class = &arena->classes[slab->path][slab->size_class];
    if (slab_is_full(slab)) {
        remove_span(&arena->spans, slab);
        push_span(&class->open, slab);
    }
    struct sp_region *region = slab->blocks[index].region;
    slab->blocks[index].region = NULL; /* first: the checking mode must not find what has ended */
    destroy_region(region);
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
    slab->is_ending = true;
    return slab;
}

/* The block that holds `address`, live or not; slab->capacity where the slab's rest does. */
static uint32_t block_of(const struct sp_span *slab, const void *address)
{
    size_t offset = (size_t)((const unsigned char *)address - slab->start);
    size_t index = offset / slab->block_bytes;
    return index < slab->capacity ? (uint32_t)index : slab->capacity;
}

/* Where a region's start was found. */
struct place {
    struct sp_span *span;
    uint32_t index; /* of the block, in a slab */
    struct sp_region *region;
};

/* The live region of this arena that starts at `start`. With the arena's lock held, which keeps the
 * span of a live region. */
static bool find_start(struct sp_arena *arena, void *start, struct place *place)
{
    sp_window_lock_shared();
    struct sp_span *span = sp_window_find_locked(start);
    if (span && span->arena != arena)
        span = NULL;
    sp_window_unlock_shared();
    if (!span)
        return false;
    place->span = span;
    if (!span->blocks) {
        place->region = span->region;
        return span->start == start;
    }
    place->index = block_of(span, start);
    if (place->index == span->capacity || !span->blocks[place->index].bytes)
        return false;
    place->region = span->blocks[place->index].region;
    return (unsigned char *)start == span->start + (size_t)place->index * span->block_bytes;
}

/* Ends a region. With the arena's lock held. Returns a span to destroy once it is released, or
 * NULL. */
static struct sp_span *end_region(struct sp_arena *arena, const struct place *place)
{
    if (place->span->blocks)
        return free_block(arena, place->span, place->index);
    remove_span(&arena->spans, place->span);
    place->span->is_ending = true;
    return place->span;
}

int sp_arena_free(struct sp_arena *arena, void *start)
{
    struct place place = {0};
    struct sp_span *dropped = NULL;
    int result = -EINVAL;

    pthread_mutex_lock(&arena->lock);
    if (find_start(arena, start, &place) && !(place.region && place.region->is_freed)) {
        result = 0;
        if (place.region && place.region->uses > 0) {
            place.region->is_freed = true;
            if (sp_check_is_on)
                sp_check_freed_in_use(place.region);
        } else {
            dropped = end_region(arena, &place);
        }
    }
    pthread_mutex_unlock(&arena->lock);
    if (dropped)
        destroy_span(dropped);
    return result;
}

struct sp_region *sp_arena_use(struct sp_arena *arena, const void *address)
{
    struct sp_region_info info;
    struct sp_region *region = NULL;
    pthread_mutex_lock(&arena->lock);
    if (sp_region_find(address, &info) && info.arena == arena && info.region) {
        region = info.region;
        atomic_fetch_add_explicit(&region->uses, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&arena->lock);
    return region;
}

void sp_arena_end_use(struct sp_region *region)
{
    struct sp_arena *arena = region->arena;
    struct sp_span *dropped = NULL;
    struct place place = {0};
    pthread_mutex_lock(&arena->lock);
    if (atomic_fetch_sub_explicit(&region->uses, 1, memory_order_relaxed) == 1) {
        if (region->is_freed && find_start(arena, region->start, &place))
            dropped = end_region(arena, &place);
        pthread_cond_broadcast(&arena->idle);
    }
    pthread_mutex_unlock(&arena->lock);
    if (dropped)
        destroy_span(dropped);
}

int sp_span_for_each_region(struct sp_span *span,
                            int (*function)(struct sp_region *region, void *data), void *data)
{
    int error = 0;
    pthread_mutex_lock(&span->arena->lock);
    for (uint32_t i = 0; !error && !span->is_ending && i < region_slots(span); i++) {
        struct sp_region *region = region_at(span, i);
        if (region)
            error = function(region, data);
    }
    pthread_mutex_unlock(&span->arena->lock);
    return error;
}

static int show_home(struct sp_span *span, int (*function)(struct sp_span *, uint32_t),
                     uint32_t agent)
{
    int error = 0;
    for (; !error && span; span = span->next)
        if (sp_path_is_home(span->path))
            error = function(span, agent);
    return error;
}

int sp_arena_for_each_new_home(struct sp_arena *arena,
                               int (*function)(struct sp_span *span, uint32_t agent),
                               uint32_t agent)
{
    int error = 0;
    pthread_mutex_lock(&arena->lock);
    if (arena->home_seen[agent] != arena->home_spans) {
        error = show_home(arena->spans, function, agent);
        for (unsigned p = SP_PATH_HOME; p < NUM_PATHS; p++)
            for (unsigned c = 0; !error && c < NUM_CLASSES; c++)
                error = show_home(arena->classes[p][c].open, function, agent);
        if (!error)
            arena->home_seen[agent] = arena->home_spans;
    }
    pthread_mutex_unlock(&arena->lock);
    return error;
}

void sp_arena_show_home_again(struct sp_arena *arena, uint32_t agent)
{
    pthread_mutex_lock(&arena->lock);
    arena->home_seen[agent] = 0;
    pthread_mutex_unlock(&arena->lock);
}

void sp_arena_forget_home(uint32_t agent)
{
    pthread_mutex_lock(&shared_arenas_lock);
    for (struct sp_arena *arena = shared_arenas; arena; arena = arena->next) {
        pthread_mutex_lock(&arena->lock);
        arena->home_seen[agent] = 0;
        pthread_mutex_unlock(&arena->lock);
    }
    pthread_mutex_unlock(&shared_arenas_lock);
}

void sp_arena_for_each_region(void (*function)(struct sp_region *region, void *data), void *data)
{
    pthread_mutex_lock(&shared_arenas_lock);
    for (struct sp_arena *arena = shared_arenas; arena; arena = arena->next) {
        pthread_mutex_lock(&arena->lock);
        size_t count = collect_all(arena, NULL);
        /* Must not fail: who calls has lost a device. The plain allocator is asked until it gives.
         */
        struct sp_region **list = NULL;
        while (count && !list)
            list = malloc(count * sizeof(struct sp_region *));
        if (count)
            collect_all(arena, list);
        pthread_mutex_unlock(&arena->lock);
        for (size_t i = 0; i < count; i++) {
            function(list[i], data);
            sp_arena_end_use(list[i]);
        }
        free(list);
    }
    pthread_mutex_unlock(&shared_arenas_lock);
}

int sp_arena_for_each_address(struct sp_arena *arena,
                              void (*function)(const void *start, void *data), void *data)
{
    pthread_mutex_lock(&arena->lock);
    size_t count = collect_all(arena, NULL);
    struct sp_region **list = sp_alloc_array(count, sizeof *list);
    if (list)
        collect_all(arena, list);
    pthread_mutex_unlock(&arena->lock);
    for (size_t i = 0; list && i < count; i++) {
        if (list[i]->path == SP_PATH_PRIVATE)
            function(list[i]->start, data);
        sp_arena_end_use(list[i]);
    }
    free(list);
    return list ? 0 : -ENOMEM;
}

bool sp_region_find(const void *address, struct sp_region_info *info)
{
    bool is_found = false;
    sp_window_lock_shared();
    struct sp_span *span = sp_window_find_locked(address);
    struct sp_region_info found = {0};
    if (span && span->blocks) {
        uint32_t index = block_of(span, address);
        if (index < span->capacity) {
            const struct sp_block *block = &span->blocks[index];
            found = (struct sp_region_info){span->start + (size_t)index * span->block_bytes,
                                            block->bytes, block->flags, span->arena, block->region};
        }
    } else if (span) {
        found = (struct sp_region_info){span->start, span->bytes, span->flags, span->arena,
                                        span->region};
    }
    /* A region that was freed while in use is found no more. */
    if (span)
        is_found =
            (size_t)((const unsigned char *)address - (unsigned char *)found.start) < found.bytes &&
            !(found.region && found.region->is_freed);
    sp_window_unlock_shared();
    if (is_found)
        *info = found;
    return is_found;
}
