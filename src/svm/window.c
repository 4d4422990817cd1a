/* The window: one reserved range of addresses, and the map of its granules.
 *
 * Invariant: a granule is either in exactly one free extent and inaccessible, or in exactly one
 * span, to which the map points from each of its granules. Free extents are sorted by address and
 * touch each other only where the atomic part begins; allocation is first fit, so that the window
 * stays dense at its start.
 *
 * Lock: one read-write lock over the map and the extents, the last in the lock order. Lookups share
 * it.
 */
#include "svm/window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "svm/atomic_part.h"
#include "util/alloc.h"

/* Room for the memory of many devices and the regions' alignment; only addresses, no memory. Where
 * the process's address space is limited, half of it is tried, and so on. */
#define WINDOW_BYTES (UINT64_C(4) << 40)
#define WINDOW_MIN_BYTES (UINT64_C(64) << 20)

/* Where no candidate is free the process is crowded (a sanitizer's shadow memory, say), and a
 * smaller window goes wherever the system finds room. */
#define WINDOW_ANYWHERE_BYTES (UINT64_C(256) << 30)

/* What of it is the part for atomics of all agents, at its end. Words that agents count and lock by
 * are few. */
#define ATOMIC_SHARE 16u

/* Multiples of 2^44 below 2^47, free in ordinary processes. CUDA's cuMemAddressReserve was seen to
 * accept the first, the second and the fourth as hints (H200, driver 580). */
static const uintptr_t window_candidates[] = {
    UINT64_C(0x100000000000), UINT64_C(0x200000000000), UINT64_C(0x300000000000),
    UINT64_C(0x400000000000), UINT64_C(0x500000000000), UINT64_C(0x600000000000),
};

struct extent {
    size_t first, count; /* granules */
};

static struct {
    pthread_rwlock_t lock;
    unsigned char *start;
    size_t granules;
    size_t atomic_first;    /* granule; no extent or span lies on both sides of its start */
    struct sp_span **map;   /* one entry per granule; pages of it appear when used */
    struct extent *extents; /* sorted by address */
    size_t num_extents, max_extents;
    size_t num_spans; /* taken and not given back */
    int file;         /* host pages that other processes map; -1: not made yet */
} window = {.lock = PTHREAD_RWLOCK_INITIALIZER, .file = -1};

/* As a hint, not as a demand: a system call that is intercepted (by a sanitizer, say) may refuse or
 * drop an address, and what comes back is checked anyway. */
static void *reserve_at(uintptr_t address, size_t bytes)
{
    void *start =
        mmap((void *)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    if (start != (void *)address) {
        munmap(start, bytes);
        return NULL;
    }
    return start;
}

/* Wherever the system likes, cut to granules. */
static void *reserve_anywhere(size_t bytes)
{
    size_t slack = bytes + SP_GRANULE_BYTES;
    unsigned char *raw =
        mmap(NULL, slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;
    size_t head = -(uintptr_t)raw & (SP_GRANULE_BYTES - 1);
    if (head)
        munmap(raw, head);
    munmap(raw + head + bytes, SP_GRANULE_BYTES - head);
    return raw + head;
}

static void *reserve(size_t bytes)
{
    for (size_t i = 0; i < sizeof window_candidates / sizeof window_candidates[0]; i++) {
        void *start = reserve_at(window_candidates[i], bytes);
        if (start)
            return start;
    }
    return bytes <= WINDOW_ANYWHERE_BYTES ? reserve_anywhere(bytes) : NULL;
}

int sp_window_init(void)
{
    if (window.start)
        return 0;
    if (sp_alloc_may_fail())
        return -ENOMEM;
    size_t bytes = WINDOW_BYTES;
    unsigned char *start = NULL;
    while (!start && bytes >= WINDOW_MIN_BYTES) {
        start = reserve(bytes);
        if (!start)
            bytes /= 2;
    }
    if (!start)
        return -ENOMEM;
    size_t granules = bytes / SP_GRANULE_BYTES;
    void *map = mmap(NULL, granules * sizeof *window.map, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t atomic_first = granules - granules / ATOMIC_SHARE;
    window.extents = sp_alloc_array(2, sizeof *window.extents);
    if (map == MAP_FAILED || !window.extents ||
        sp_atomic_part_init((uintptr_t)start + atomic_first * SP_GRANULE_BYTES,
                            (granules - atomic_first) * SP_GRANULE_BYTES)) {
        if (map != MAP_FAILED)
            munmap(map, granules * sizeof *window.map);
        free(window.extents);
        window.extents = NULL;
        munmap(start, bytes);
        return -ENOMEM;
    }
    window.map = map;
    window.extents[0] = (struct extent){.first = 0, .count = atomic_first};
    window.extents[1] = (struct extent){.first = atomic_first, .count = granules - atomic_first};
    window.num_extents = window.max_extents = 2;
    window.atomic_first = atomic_first;
    window.granules = granules;
    window.start = start;
    return 0;
}

void sp_window_range(uintptr_t *start, size_t *bytes)
{
    *start = (uintptr_t)window.start;
    *bytes = window.granules * SP_GRANULE_BYTES;
}

int sp_window_file(void)
{
    pthread_rwlock_wrlock(&window.lock);
    if (window.file < 0 && window.start && !sp_alloc_may_fail()) {
        int file = memfd_create("samepage-window", MFD_CLOEXEC);
        if (file >= 0 && ftruncate(file, (off_t)(window.granules * SP_GRANULE_BYTES))) {
            close(file);
            file = -1;
        }
        window.file = file;
    }
    int file = window.file;
    pthread_rwlock_unlock(&window.lock);
    return file;
}

/* Makes sure that giving back never fails: every span that is taken may become an extent of its
 * own, this one too. */
static int reserve_extent(void)
{
    size_t needed = window.num_extents + window.num_spans + 1;
    if (needed <= window.max_extents)
        return 0;
    struct extent *extents = sp_realloc(window.extents, 2 * needed * sizeof *extents);
    if (!extents)
        return -ENOMEM;
    window.extents = extents;
    window.max_extents = 2 * needed;
    return 0;
}

/* The first granule of `count` free ones, of the atomic part or of the rest, now taken; -ENOMEM. */
static int take_extent(size_t count, bool is_atomic, size_t *first)
{
    for (size_t i = 0; i < window.num_extents; i++) {
        struct extent *extent = &window.extents[i];
        if (extent->count < count || (extent->first >= window.atomic_first) != is_atomic)
            continue;
        *first = extent->first;
        extent->first += count;
        extent->count -= count;
        if (extent->count == 0) {
            window.num_extents--;
            memmove(extent, extent + 1, (window.num_extents - i) * sizeof *extent);
        }
        window.num_spans++;
        return 0;
    }
    return -ENOMEM;
}

static void give_back_extent(size_t first, size_t count)
{
    window.num_spans--;
    size_t low = 0, high = window.num_extents;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (window.extents[middle].first < first)
            low = middle + 1;
        else
            high = middle;
    }
    struct extent *before = low > 0 ? &window.extents[low - 1] : NULL;
    struct extent *after = low < window.num_extents ? &window.extents[low] : NULL;
    bool joins_before =
        before && before->first + before->count == first && first != window.atomic_first;
    bool joins_after =
        after && first + count == after->first && after->first != window.atomic_first;
    if (joins_before && joins_after) {
        before->count += count + after->count;
        window.num_extents--;
        memmove(after, after + 1, (window.num_extents - low) * sizeof *after);
    } else if (joins_before) {
        before->count += count;
    } else if (joins_after) {
        after->first = first;
        after->count += count;
    } else {
        memmove(window.extents + low + 1, window.extents + low,
                (window.num_extents - low) * sizeof *window.extents);
        window.extents[low] = (struct extent){.first = first, .count = count};
        window.num_extents++;
    }
}

/* Pages of the window's own file, or of nobody else's. */
static int open_pages(struct sp_span *span, unsigned char *start, size_t bytes)
{
    if (!span->is_shared)
        return mprotect(start, bytes, PROT_READ | PROT_WRITE) ? -ENOMEM : 0;
    int file = sp_window_file();
    off_t offset = start - window.start;
    if (file < 0)
        return -ENOMEM;
    return mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset) ==
                   MAP_FAILED
               ? -ENOMEM
               : 0;
}

static void drop_content(const struct sp_span *span)
{
    if (span->is_shared)
        fallocate(window.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  span->start - window.start, (off_t)(span->granules * SP_GRANULE_BYTES));
}

static void close_pages(struct sp_span *span, size_t bytes)
{
    /* A fresh mapping drops the pages, their protection and the wish for huge pages in one call. */
    if (mmap(span->start, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1, 0) == MAP_FAILED) {
        madvise(span->start, bytes, MADV_DONTNEED);
        mprotect(span->start, bytes, PROT_NONE);
    }
    drop_content(span);
}

int sp_window_take(struct sp_span *span, bool is_large)
{
    size_t first;
    if (sp_alloc_may_fail())
        return -ENOMEM;
    pthread_rwlock_wrlock(&window.lock);
    int error = reserve_extent();
    if (!error)
        error = take_extent(span->granules, span->path == SP_PATH_ATOMIC, &first);
    pthread_rwlock_unlock(&window.lock);
    if (error)
        return error;

    unsigned char *start = window.start + first * SP_GRANULE_BYTES;
    size_t bytes = span->granules * SP_GRANULE_BYTES;
    error = open_pages(span, start, bytes);
    pthread_rwlock_wrlock(&window.lock);
    if (error) {
        give_back_extent(first, span->granules);
    } else {
        span->start = start;
        for (size_t i = 0; i < span->granules; i++)
            window.map[first + i] = span;
    }
    pthread_rwlock_unlock(&window.lock);
    if (!error && is_large)
        madvise(start, bytes, MADV_HUGEPAGE); /* a wish: without it only slower */
    if (!error && span->path == SP_PATH_ATOMIC)
        sp_atomic_part_count((ptrdiff_t)span->granules);
    return error;
}

static void forget(const struct sp_span *span)
{
    size_t first = (size_t)(span->start - window.start) / SP_GRANULE_BYTES;
    pthread_rwlock_wrlock(&window.lock);
    for (size_t i = 0; i < span->granules; i++)
        window.map[first + i] = NULL;
    pthread_rwlock_unlock(&window.lock);
}

void sp_window_retire(struct sp_span *span)
{
    forget(span);
    drop_content(span);
}

void sp_window_give_back(struct sp_span *span)
{
    size_t first = (size_t)(span->start - window.start) / SP_GRANULE_BYTES;

    forget(span);
    close_pages(span, span->granules * SP_GRANULE_BYTES);
    if (span->path == SP_PATH_ATOMIC)
        sp_atomic_part_count(-(ptrdiff_t)span->granules);

    pthread_rwlock_wrlock(&window.lock);
    give_back_extent(first, span->granules);
    pthread_rwlock_unlock(&window.lock);
}

void sp_window_lock_shared(void)
{
    pthread_rwlock_rdlock(&window.lock);
}

void sp_window_unlock_shared(void)
{
    pthread_rwlock_unlock(&window.lock);
}

struct sp_span *sp_window_find_locked(const void *address)
{
    size_t offset = (uintptr_t)address - (uintptr_t)window.start;
    size_t granule = offset / SP_GRANULE_BYTES;
    return granule < window.granules ? window.map[granule] : NULL;
}
