/* See watched_map.h. A map that turns out to have been written densely is not worth watching, and
 * the next one of that region is then moved whole (reference figures in docs/host-watching.md).
 */
#include "svm/watched_map.h"

#include <stdlib.h>
#include <unistd.h>

#include "svm/check.h"
#include "svm/hostwatch.h"
#include "svm/region.h"
#include "svm/trace.h"
#include "svm/window.h"
#include "util/alloc.h"

/* Smaller maps are cheaper to move whole than to watch: arming and collecting take 20 us at least,
 * in which 200 KiB are copied (docs/host-watching.md). */
#define WATCH_MIN_BYTES (UINT64_C(1) << 20)

/* A map that was written in more than one of so many of its bytes is moved whole the next time:
 * each watched page costs 1 us when it is written, 4 KiB 0.4 us to copy. */
#define WATCH_DENSE_SHARE 4u

struct sp_watched_map {
    struct sp_watched_map *next;
    struct sp_region *region;
    struct sp_hostwatch *watch; /* NULL: it is not watched */
    uint64_t first, end;
    uint64_t written; /* bytes, while it is collected */
};

static bool is_same(const struct sp_watched_map *map, const struct sp_watched_map *other)
{
    return map->first == other->first && map->end == other->end;
}

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Whether the range of a map is worth watching. */
static bool is_worth_watching(struct sp_region *region, uint64_t first, uint64_t end)
{
    /* Only a region with pages of its own, and from a page's start; and not two watchers at once.
     */
    if (sp_check_is_on || region->span->blocks || first % page_bytes() ||
        end - first < WATCH_MIN_BYTES || sp_hostwatch_init() == SP_HOSTWATCH_NONE)
        return false;
    pthread_mutex_lock(&region->lock);
    bool is_dense = region->is_dense;
    region->is_dense = false;
    pthread_mutex_unlock(&region->lock);
    return !is_dense;
}

/* Before its first watch: what devices wrote and copies brought is likely to be read now, and its
 * pages are scanned faster than the marks that would stand in their place. Never what nobody has
 * written: that would take memory for it. */
static void populate_arrived(struct sp_region *region, uint64_t first, uint64_t end)
{
    pthread_mutex_lock(&region->lock);
    if (first < region->arrived.first)
        first = region->arrived.first;
    if (end > region->arrived.end)
        end = region->arrived.end;
    bool is_known = first >= region->populated.first && end <= region->populated.end;
    if (first < end)
        sp_stretch_add(&region->populated, first, end);
    pthread_mutex_unlock(&region->lock);
    if (first < end && !is_known)
        sp_hostwatch_populate(region->start + first, end - first);
}

/* Takes over the watch of the map of the same range before. Other ranges could overlap, and to
 * watch them is to forget what was written there. What was written before this map began may be
 * told again at its end: the host has it current all the same. */
static bool take_over(struct sp_watched_map *map)
{
    struct sp_region *region = map->region;
    pthread_mutex_lock(&region->lock);
    struct sp_watched_map **link = &region->unsettled;
    if (!*link || (*link)->next || !is_same(*link, map)) {
        sp_watched_maps_settle(region);
        link = &region->kept;
    }
    struct sp_watched_map *last = *link;
    bool is_taken = last && last->watch && is_same(last, map);
    if (is_taken) {
        map->watch = last->watch;
        *link = NULL;
        free(last);
    }
    sp_watched_maps_unkeep(region);
    pthread_mutex_unlock(&region->lock);
    return is_taken;
}

static bool begin_watch(struct sp_watched_map *map)
{
    struct sp_region *region = map->region;
    if (take_over(map))
        return true;
    if (!is_worth_watching(region, map->first, map->end))
        return false;
    populate_arrived(region, map->first, map->end);
    return sp_hostwatch_arm(region->start + map->first, map->end - map->first, &map->watch) == 0;
}

bool sp_watched_map_begin(struct sp_region *region, uint64_t first, uint64_t end, bool may_watch)
{
    struct sp_watched_map *map = sp_alloc(sizeof *map);
    if (!map) {
        /* Nobody will know when it ends: taken for mapped for ever. */
        pthread_mutex_lock(&region->lock);
        region->is_map_unknown = true;
        pthread_mutex_unlock(&region->lock);
        return false;
    }
    map->region = region;
    map->first = first;
    map->end = end;
    map->watch = NULL;
    bool is_watched = may_watch && begin_watch(map);
    pthread_mutex_lock(&region->lock);
    map->next = region->maps;
    region->maps = map;
    pthread_mutex_unlock(&region->lock);
    return is_watched;
}

static void drop(struct sp_watched_map *map)
{
    while (map) {
        struct sp_watched_map *next = map->next;
        sp_hostwatch_drop(map->watch);
        free(map);
        map = next;
    }
}

void sp_watched_maps_drop(struct sp_region *region)
{
    drop(region->maps);
    drop(region->unsettled);
    drop(region->kept);
    region->maps = region->unsettled = region->kept = NULL;
}

static void take_written(void *data, uint64_t first, uint64_t end)
{
    struct sp_watched_map *map = data;
    first += map->first;
    end += map->first;
    if (end > map->end)
        end = map->end;
    map->written += end - first;
    sp_region_note_written(map->region, first, end, SP_AGENT_HOST);
}

static bool is_part(const struct sp_watched_map *map)
{
    return map->first > 0 || map->end < map->region->bytes;
}

/* The end of one that was not watched, and whose range was taken for written when it began: a
 * device may have fetched it since. Where the map was of the whole region and a device has changed
 * that meanwhile, which it must not, what it did stays. With the region's lock held. */
static void end_unwatched(struct sp_watched_map *map)
{
    struct sp_region *region = map->region;
    if (is_part(map) ||
        sp_directory_is_current(&region->directory, map->first, map->end, SP_AGENT_HOST))
        sp_region_note_written(region, map->first, map->end, SP_AGENT_HOST);
}

/* Takes what was written for changed; the range is still watched where map->watch says so. With the
 * region's lock held. */
static void end_watch(struct sp_watched_map *map)
{
    struct sp_region *region = map->region;
    map->written = 0;
    if (!sp_hostwatch_collect_on(map->watch, take_written, map))
        map->watch = NULL;
    /* A partial last page is not watched (hostwatch.h): it is taken for written. */
    uint64_t rest = map->end & ~(uint64_t)(page_bytes() - 1);
    if (rest < map->end)
        sp_region_note_written(region, rest, map->end, SP_AGENT_HOST);
    region->is_dense = map->written > (map->end - map->first) / WATCH_DENSE_SHARE;
    if (sp_trace_is_on)
        sp_trace_instant(SP_TRACE_AGENT(SP_AGENT_HOST), "directory", "unmap",
                         "\"agent\":0,\"bytes\":%llu,\"moved\":%llu,\"region\":\"%p\"",
                         (unsigned long long)(map->end - map->first),
                         (unsigned long long)map->written, (void *)region->start);
}

void sp_watched_maps_settle(struct sp_region *region)
{
    while (region->unsettled) {
        struct sp_watched_map *map = region->unsettled;
        region->unsettled = map->next;
        map->next = NULL;
        if (map->watch)
            end_watch(map);
        else
            end_unwatched(map);
        if (map->watch && !region->is_dense && !region->kept)
            region->kept = map;
        else
            drop(map);
    }
}

void sp_watched_maps_unkeep(struct sp_region *region)
{
    drop(region->kept);
    region->kept = NULL;
}

void sp_watched_maps_note_written(struct sp_region *region, uint64_t first, uint64_t end,
                                  uint32_t agent)
{
    /* From one live map to the next, in whatever order they are listed. */
    while (first < end) {
        uint64_t until = end, next = end;
        for (const struct sp_watched_map *map = region->maps; map; map = map->next) {
            if (!is_part(map) || map->end <= first || map->first >= end)
                continue;
            if (map->first <= first) {
                until = first;
                next = map->end;
                break;
            }
            if (map->first < until)
                until = next = map->first;
        }
        if (first < until)
            sp_region_note_written(region, first, until, agent);
        first = next;
    }
}

void sp_watched_map_end(struct sp_arena *arena, const void *address)
{
    struct sp_region *region = sp_arena_is_shared(arena) ? sp_arena_use(arena, address) : NULL;
    if (!region)
        return;
    uint64_t first = (uint64_t)((const unsigned char *)address - region->start);
    if (sp_check_is_on)
        sp_check_unmapped(region, first);
    pthread_mutex_lock(&region->lock);
    struct sp_watched_map **link = &region->maps, *map;
    while (*link && (*link)->first != first)
        link = &(*link)->next;
    map = *link;
    if (map) {
        *link = map->next;
        /* Relaxed: who counts itself down has noted its changes under the lock. */
        bool is_changing = atomic_load_explicit(&region->writers, memory_order_relaxed) > 0;
        if (map->watch || is_changing) {
            map->next = region->unsettled;
            region->unsettled = map;
            map = NULL;
        } else {
            end_unwatched(map);
        }
    }
    pthread_mutex_unlock(&region->lock);
    free(map);
    sp_arena_end_use(region);
}
