/* See coherence.h. What it owns: the uses of commands, from what they touch to their end.
 *
 * A use reads when it begins, and only its good end makes the other agents' copies invalid: so a
 * source that dies on the way, or a kernel that crashes, costs nothing that another agent had
 * (docs/directory.md).
 *
 * A command may begin while an earlier one of its queue still runs on the same device, whose ring
 * keeps their order. The directory does not know yet what that one is going to have overwritten; so
 * ranges that are being overwritten are listed in their region. What the same device overwrites as
 * a whole needs no copy; whoever else needs such a range waits for that command's end.
 *
 * With several devices a command may also begin while what it comes after runs on another one:
 * ahead.c.
 */
#include "svm/coherence.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "svm/check.h"
#include "svm/coherence_internal.h"
#include "svm/pool.h"
#include "svm/trace.h"
#include "svm/watched_map.h"
#include "util/alloc.h"

/* A prefetch takes at most one such part of a device's memory for one range, so that guessing does
 * not fill it. */
#define PREFETCH_SHARE 4u

static uint64_t host_bytes = UINT64_MAX; /* set before the first use */

static void go_on(struct sp_coherence *coherence);

void sp_coherence_set_host_bytes(uint64_t bytes)
{
    host_bytes = bytes;
}

void sp_coherence_settle(struct sp_coherence *coherence)
{
    /* Acquire and release: what the copies did is visible to whoever goes on. */
    if (atomic_fetch_sub_explicit(&coherence->waiting_for, 1, memory_order_acq_rel) == 1)
        go_on(coherence);
}

void sp_coherence_note_error(struct sp_coherence *coherence, int error)
{
    int none = 0;
    /* Relaxed: it is read by who settles last, or after the end. */
    atomic_compare_exchange_strong_explicit(&coherence->error, &none, error, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* --- What a command touches
 * ------------------------------------------------------------------------ */

int sp_coherence_touch(struct sp_coherence *coherence, struct sp_arena *arena, const void *address,
                       size_t bytes, enum sp_access access)
{
    if (coherence->count == coherence->capacity) {
        unsigned capacity = coherence->capacity * 2 + 4;
        struct sp_range_use *ranges =
            sp_realloc(coherence->ranges, capacity * sizeof *coherence->ranges);
        if (!ranges)
            return -ENOMEM;
        coherence->ranges = ranges;
        coherence->capacity = capacity;
    }
    struct sp_region *region = sp_arena_use(arena, address);
    if (!region)
        return 0;
    struct sp_range_use *range = &coherence->ranges[coherence->count++];
    uint64_t first = bytes ? (uint64_t)((const unsigned char *)address - region->start) : 0;
    *range = (struct sp_range_use){.region = region,
                                   .first = first,
                                   .end = region->bytes,
                                   .access = access,
                                   .is_read = access != SP_ACCESS_DISCARD,
                                   .is_written = access != SP_ACCESS_READ};
    if (bytes && bytes < region->bytes - first)
        range->end = first + bytes;
    /* Relaxed: a prefetch that sees it late is only wasted. */
    if (access != SP_ACCESS_READ)
        atomic_fetch_add_explicit(&region->writers, 1, memory_order_relaxed);
    return 0;
}

/* What a use asked of the directory: how much of it was there, how much must come. */
static void trace_acquire(const struct sp_coherence *coherence, const struct sp_range_use *range,
                          const struct sp_transfers *transfers)
{
    static const char *const names[] = {"", "acquire to read", "acquire to change",
                                        "acquire to overwrite"};
    uint64_t moved = 0;
    for (size_t i = 0; i < transfers->count; i++)
        moved += transfers->list[i].end - transfers->list[i].first;
    sp_trace_instant(SP_TRACE_AGENT(coherence->agent), "directory", names[range->access],
                     "\"agent\":%u,\"bytes\":%llu,\"moved\":%llu,\"region\":\"%p\"",
                     coherence->agent, (unsigned long long)(range->end - range->first),
                     (unsigned long long)moved, (void *)range->region->start);
}

/* --- Distances
 * ------------------------------------------------------------------------------------ */

/* Towards the host the source makes the copy, and every device reaches the host. What is on its way
 * to an agent of the range (data; may be NULL) is not there yet, so that is no source. */
static uint32_t distance(void *data, uint32_t source, uint32_t destination)
{
    const struct sp_range_use *range = data;
    const struct sp_copy *copy = range ? range->region->copies : NULL;
    for (; copy; copy = copy->next)
        if (copy->destination == source && sp_copy_overlaps(copy, range->first, range->end))
            return SP_OUT_OF_REACH;
    struct sp_device *device = sp_agent_device(destination);
    if (destination == SP_AGENT_HOST || !device->ops->distance)
        return 0;
    return device->ops->distance(device, source);
}

/* What only devices have that are out of the agent's reach comes to the host first. Whether there
 * is such, which is to be waited for. With the region's lock held. */
static int fetch_to_host(struct sp_supply *supply, struct sp_coherence *coherence,
                         const struct sp_range_use *range, bool *is_blocked)
{
    struct sp_region *region = range->region;
    struct sp_transfers transfers = {0};
    uint64_t first = range->first, end = range->end;
    int error = 0;
    while (!error && sp_directory_out_of_reach(&region->directory, &first, &end, range->memory,
                                               distance, NULL)) {
        error = sp_directory_acquire(&region->directory, first, end, SP_AGENT_HOST, SP_ACCESS_READ,
                                     distance, NULL, &transfers);
        first = end;
        end = range->end;
    }
    *is_blocked = transfers.count > 0;
    /* Also after an error: the directory says that they are under way. */
    sp_copies_start(supply, region, &transfers, "way through the host", coherence);
    sp_transfers_finish(&transfers);
    return error;
}

/* --- Acquiring
 * ------------------------------------------------------------------------------------ */

static size_t count_copies(const struct sp_region *region)
{
    size_t count = 0;
    for (const struct sp_copy *copy = region->copies; copy; copy = copy->next)
        count++;
    return count;
}

/* Waits for copies under way that overlap the range and concern the memory that the use is of, or,
 * with for_sources, that bring something to anybody. */
static bool wait_for_copies(struct sp_supply *supply, struct sp_coherence *coherence,
                            const struct sp_range_use *range, bool for_sources)
{
    bool is_blocked = false;
    uint32_t agent = sp_span_is_at_home(range->region->span) ? SP_AGENT_HOST : range->memory;
    for (struct sp_copy *copy = range->region->copies; copy; copy = copy->next) {
        if (!sp_copy_must_end_before(copy, coherence) ||
            !sp_copy_overlaps(copy, range->first, range->end) ||
            !(for_sources || sp_copy_concerns(copy, agent, range->access)))
            continue;
        is_blocked = true;
        sp_supply_wait(supply, &copy->waiters, coherence);
    }
    return is_blocked;
}

/* Where something must come by way of the host: waits for older content that is still on its way
 * there, which could arrive after it. */
static bool wait_for_way(struct sp_supply *supply, struct sp_coherence *coherence,
                         const struct sp_range_use *range)
{
    bool is_blocked = false;
    uint64_t first = range->first, end = range->end;
    if (!range->region->copies || !sp_directory_out_of_reach(&range->region->directory, &first,
                                                             &end, range->memory, distance, NULL))
        return false;
    for (struct sp_copy *copy = range->region->copies; copy; copy = copy->next)
        if (copy->destination == SP_AGENT_HOST &&
            sp_copy_overlaps(copy, range->first, range->end)) {
            is_blocked = true;
            sp_supply_wait(supply, &copy->waiters, coherence);
        }
    return is_blocked;
}

/* Notes which copies of the agent's own the command has to come after, on the device. What others
 * start later does not concern it: what it reads is current by then, and what it changes is pinned,
 * or listed as being overwritten. */
static void note_order(struct sp_coherence *coherence, const struct sp_range_use *range)
{
    uint32_t agent = sp_span_is_at_home(range->region->span) ? SP_AGENT_HOST : range->memory;
    for (const struct sp_copy *copy = range->region->copies; copy; copy = copy->next)
        if (copy->executor == coherence->agent &&
            sp_copy_overlaps(copy, range->first, range->end) &&
            sp_copy_concerns(copy, agent, range->access))
            coherence->after |=
                copy->destination == SP_AGENT_HOST ? SP_BESIDE_DEPARTURES : SP_BESIDE_ARRIVALS;
}

/* Whether commands under way overwrite what is needed: the same device all of it, in its ring's
 * order, or others, which are waited for. -ENOMEM. */
static int find_overwriting(struct sp_supply *supply, struct sp_coherence *coherence,
                            const struct sp_range_use *range, enum sp_supplied *found)
{
    int error = 0;
    *found = SP_NOT_OVERWRITTEN;
    for (struct sp_range_use *other = range->region->changes; other && !error;
         other = other->next_change) {
        if (other->access != SP_ACCESS_DISCARD || !sp_ranges_overlap(other, range))
            continue;
        bool is_whole = other->first <= range->first && range->end <= other->end;
        if (is_whole && other->agent == coherence->agent && !coherence->is_strict &&
            other->owner->work->life == coherence->work->life) {
            if (*found == SP_NOT_OVERWRITTEN)
                *found = SP_SUPPLIED_IN_ORDER;
        } else {
            *found = SP_MUST_WAIT;
            error = sp_supply_wait_also(supply, &other->waiters, coherence);
        }
    }
    return error;
}

/* Whether the device is going to cancel the command's work. Then nothing that is known of what
 * comes before it holds: of those commands some are going to begin again, some have, and a copy for
 * this one could come after what they write. Relaxed: those that have begun again listed what they
 * change under the region's lock, and the failure was counted before. */
static bool is_doomed(const struct sp_coherence *coherence)
{
    uint32_t seen = sp_coherence_failures_seen(coherence);
    return seen && seen != atomic_load_explicit(&sp_agent_device(coherence->agent)->failures_coming,
                                                memory_order_relaxed);
}

/* Acquires one range, or finds that something under way must end first. With the region's lock
 * held. */
static int acquire_locked(struct sp_coherence *coherence, struct sp_range_use *range,
                          bool *is_blocked)
{
    struct sp_region *region = range->region;
    struct sp_supply supply = {0};
    struct sp_transfers transfers = {0};
    bool is_at_home = sp_span_is_at_home(region->span);
    if (is_doomed(coherence))
        return -ECANCELED;
    /* A map goes on with the watches of those before it, but where a command has changed what it
     * needs since. */
    if (region->unsettled &&
        (!coherence->is_map ||
         !sp_directory_is_current(&region->directory, range->first, range->end, SP_AGENT_HOST)))
        sp_watched_maps_settle(region);
    if (region->kept && !coherence->is_map && range->memory == SP_AGENT_HOST &&
        range->access != SP_ACCESS_READ)
        sp_watched_maps_unkeep(region);
    /* What is going to be overwritten is needed from nobody, and what is current from nobody else.
     */
    bool is_needed =
        !is_at_home && range->access != SP_ACCESS_DISCARD &&
        !sp_directory_is_current(&region->directory, range->first, range->end, range->memory);
    if (is_needed && range->memory == SP_AGENT_HOST && region->span->pool &&
        range->end - range->first > host_bytes)
        return -ENOSPC;
    bool is_ahead = coherence->num_followed && !is_at_home;
    size_t most = is_needed  ? sp_directory_runs_in(&region->directory, range->first, range->end)
                  : is_ahead ? 1
                             : 0;
    int error = sp_supply_fill(&supply, most, sp_copies_for(most) + count_copies(region));
    if (!error)
        *is_blocked = wait_for_copies(&supply, coherence, range, false);
    if (!error && !*is_blocked && region->dropped)
        error = sp_ahead_wait_for_dropped(&supply, coherence, range, is_blocked);
    if (!error && !*is_blocked && (is_ahead ? range->access != SP_ACCESS_DISCARD : is_needed)) {
        enum sp_supplied found;
        error = is_ahead ? sp_ahead_find_changes(&supply, coherence, range, &found)
                         : find_overwriting(&supply, coherence, range, &found);
        *is_blocked = found == SP_MUST_WAIT;
        is_needed &= found == SP_NOT_OVERWRITTEN;
    }
    if (!error && !*is_blocked && is_needed)
        error = sp_ahead_wait_for_promises(&supply, coherence, range, is_blocked);
    uint64_t first = range->first, end = range->end;
    if (!error && !*is_blocked && is_needed && region->copies &&
        sp_directory_out_of_reach(&region->directory, &first, &end, range->memory, distance, range))
        *is_blocked = wait_for_copies(&supply, coherence, range, true);
    if (!error && !*is_blocked && is_needed && range->memory != SP_AGENT_HOST)
        *is_blocked = wait_for_way(&supply, coherence, range);
    if (!error && !*is_blocked && is_needed && range->memory != SP_AGENT_HOST)
        error = fetch_to_host(&supply, coherence, range, is_blocked);
    if (!error && !*is_blocked && is_needed)
        error = sp_directory_acquire(&region->directory, range->first, range->end, range->memory,
                                     SP_ACCESS_READ, distance, range, &transfers);
    if (!error && !*is_blocked) {
        if (region->copies && coherence->agent != SP_AGENT_HOST)
            note_order(coherence, range);
        if (sp_trace_is_on)
            trace_acquire(coherence, range, &transfers);
        range->has_moved = transfers.count > 0 || range->promise;
        sp_copies_start(&supply, region, &transfers, coherence->is_migration ? "migration" : "use",
                        coherence);
        if (transfers.count && coherence->agent != SP_AGENT_HOST)
            coherence->after |= SP_BESIDE_ARRIVALS;
        if (!is_at_home && (range->access == SP_ACCESS_DISCARD ||
                            (range->access != SP_ACCESS_READ && coherence->agent != SP_AGENT_HOST &&
                             sp_coherence_is_ahead_on())))
            sp_change_list(coherence, range);
    }
    sp_supply_finish(&supply);
    sp_transfers_finish(&transfers);
    return error;
}

/* From where the start has come to: until all is acquired, or something must be waited for. Called
 * with nothing waited for; takes the count of one for itself. */
static void go_on(struct sp_coherence *coherence)
{
    atomic_store_explicit(&coherence->waiting_for, 1, memory_order_relaxed);
    if (atomic_exchange_explicit(&coherence->binds_again, false, memory_order_relaxed) &&
        !atomic_load_explicit(&coherence->error, memory_order_relaxed)) {
        if (sp_bindings_pin_again(coherence))
            sp_coherence_settle(
                coherence); /* comes back here, once for each such failure at most */
        return;
    }
    while (coherence->next < coherence->count &&
           !atomic_load_explicit(&coherence->error, memory_order_relaxed)) {
        struct sp_range_use *range = &coherence->ranges[coherence->next];
        bool is_blocked = false;
        if (range->region->path == SP_PATH_PRIVATE) {
            pthread_mutex_lock(&range->region->lock);
            int error = acquire_locked(coherence, range, &is_blocked);
            pthread_mutex_unlock(&range->region->lock);
            if (error)
                sp_coherence_note_error(coherence, error);
        }
        if (is_blocked) {
            sp_coherence_settle(coherence); /* comes back here when that has ended */
            return;
        }
        coherence->next++;
    }
    if (coherence->next <= coherence->count) {
        /* One more round, in which there is nothing left to acquire, says that the last copies have
         * ended. */
        coherence->next = coherence->count + 1;
        sp_coherence_settle(coherence);
        return;
    }
    coherence->ready(coherence);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct sp_range_use *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->region->start + x->first;
    uintptr_t q = (uintptr_t)y->region->start + y->first;
    return (p > q) - (p < q);
}

/* The pieces of a range that lie in parts of a pool, from `piece` on, in place of `*range`; with
 * NULL they are only counted. */
static unsigned cut(const struct sp_range_use *range, struct sp_range_use *piece)
{
    const struct sp_pool *pool = range->region->span->pool;
    unsigned count = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        uint64_t first = pool->parts[i].first * SP_GRANULE_BYTES;
        uint64_t end = first + pool->parts[i].granules * SP_GRANULE_BYTES;
        if (range->end <= first || end <= range->first)
            continue;
        if (piece) {
            *piece = *range;
            piece->first = range->first > first ? range->first : first;
            piece->end = range->end < end ? range->end : end;
            piece->is_pooled = true;
            piece->part = i;
            piece->memory = pool->parts[i].home;
            piece++;
        }
        count++;
    }
    return count;
}

/* What was one use of a region is `count` of them. */
static void count_pieces(const struct sp_range_use *range, unsigned count)
{
    /* Relaxed: one use is held already. */
    atomic_fetch_add_explicit(&range->region->uses, count - 1, memory_order_relaxed);
    if (range->access != SP_ACCESS_READ)
        atomic_fetch_add_explicit(&range->region->writers, count - 1, memory_order_relaxed);
}

/* Says of each range in whose memory it is used, and cuts those of pools along their parts.
 * -ENOMEM: none was cut. */
static int place_ranges(struct sp_coherence *coherence)
{
    unsigned count = 0, made = 0;
    bool is_any = false;
    coherence->agents = 1u << coherence->agent;
    for (unsigned i = 0; i < coherence->count; i++) {
        struct sp_range_use *range = &coherence->ranges[i];
        range->memory = coherence->agent;
        bool is_pooled = sp_pool_has(range->region->span->pool, coherence->agent);
        count += is_pooled ? cut(range, NULL) : 1;
        is_any |= is_pooled;
    }
    if (!is_any)
        return 0;
    struct sp_range_use *ranges = sp_alloc_array(count, sizeof *ranges);
    if (!ranges)
        return -ENOMEM;
    for (unsigned i = 0; i < coherence->count; i++) {
        const struct sp_range_use *range = &coherence->ranges[i];
        unsigned pieces = 1;
        if (sp_pool_has(range->region->span->pool, coherence->agent)) {
            pieces = cut(range, &ranges[made]);
            count_pieces(range, pieces);
        } else {
            ranges[made] = *range;
        }
        made += pieces;
    }
    for (unsigned i = 0; i < made; i++)
        coherence->agents |= 1u << ranges[i].memory;
    free(coherence->ranges);
    coherence->ranges = ranges;
    coherence->count = coherence->capacity = count;
    return 0;
}

void sp_coherence_pinned(struct sp_coherence *coherence, int error)
{
    if (error)
        sp_coherence_note_error(coherence, error);
    sp_coherence_settle(coherence);
}

void sp_coherence_begin(struct sp_coherence *coherence, struct sp_arena *arena, uint32_t agent)
{
    coherence->agent = agent;
    coherence->next = 0;
    coherence->began_at = sp_changes_listed();
    if (coherence->count)
        qsort(coherence->ranges, coherence->count, sizeof *coherence->ranges, compare_ranges);
    int error = place_ranges(coherence);
    if (error)
        sp_coherence_note_error(coherence, error);
    /* For this thread; parts that are not bound yet are counted on top. */
    atomic_store_explicit(&coherence->waiting_for, 1, memory_order_relaxed);
    if (error || agent == SP_AGENT_HOST || sp_bindings_pin(coherence, arena))
        sp_coherence_settle(coherence);
}

/* --- Prefetching
 * ---------------------------------------------------------------------------------- */

unsigned sp_coherence_writers(const struct sp_coherence *coherence, const struct sp_region *region)
{
    unsigned count = 0;
    for (unsigned i = 0; i < coherence->count; i++)
        count +=
            coherence->ranges[i].region == region && coherence->ranges[i].access != SP_ACCESS_READ;
    return count;
}

/* With the region's lock held. Nothing is given up that a use relies on: what fails here is done at
 * the start. */
static void prefetch_locked(const struct sp_coherence *coherence, const struct sp_range_use *range,
                            uint32_t agent)
{
    struct sp_region *region = range->region;
    struct sp_supply supply = {0};
    struct sp_transfers transfers = {0};
    sp_watched_maps_settle(region);
    if (sp_directory_is_current(&region->directory, range->first, range->end, agent))
        return;
    /* Whoever is going to change it, or is changing it, makes a copy of now worthless. */
    unsigned writers = atomic_load_explicit(&region->writers, memory_order_relaxed);
    bool is_settled = !region->maps && !region->is_map_unknown && !region->changes &&
                      (!writers || writers == sp_coherence_writers(coherence, region));
    for (const struct sp_copy *copy = region->copies; copy && is_settled; copy = copy->next)
        is_settled = !sp_copy_overlaps(copy, range->first, range->end);
    if (!is_settled)
        return;
    uint64_t first = range->first, end = range->end;
    if (sp_directory_out_of_reach(&region->directory, &first, &end, agent, distance, NULL))
        return; /* it takes two steps, of which the start takes care */
    size_t most = sp_directory_runs_in(&region->directory, range->first, range->end);
    if (!sp_supply_fill(&supply, most, 0) &&
        !sp_directory_acquire(&region->directory, range->first, range->end, agent, SP_ACCESS_READ,
                              distance, NULL, &transfers))
        sp_copies_start(&supply, region, &transfers, "prefetch", NULL);
    sp_supply_finish(&supply);
    sp_transfers_finish(&transfers);
}

void sp_coherence_prefetch(const struct sp_coherence *coherence, uint32_t agent)
{
    uint64_t most = sp_device_memory(sp_agent_device(agent)) / PREFETCH_SHARE;
    sp_bindings_lock();
    for (unsigned i = 0; i < coherence->count; i++) {
        const struct sp_range_use *range = &coherence->ranges[i];
        struct sp_span *span = range->region->span;
        if (span->path != SP_PATH_PRIVATE || sp_span_is_at_home(span) || span->pool ||
            range->access == SP_ACCESS_DISCARD || range->end - range->first > most ||
            sp_bindings_bind_if_room(span, agent))
            continue;
        pthread_mutex_lock(&range->region->lock);
        prefetch_locked(coherence, range, agent);
        pthread_mutex_unlock(&range->region->lock);
    }
    sp_bindings_unlock();
}

/* --- The end
 * -------------------------------------------------------------------------------------- */

void sp_region_written(struct sp_arena *arena, const void *address, size_t bytes)
{
    struct sp_region *region = sp_arena_is_shared(arena) ? sp_arena_use(arena, address) : NULL;
    if (!region)
        return;
    uint64_t first = (uint64_t)((const unsigned char *)address - region->start);
    pthread_mutex_lock(&region->lock);
    sp_region_note_written(region, first, first + bytes, SP_AGENT_HOST);
    pthread_mutex_unlock(&region->lock);
    sp_arena_end_use(region);
}

/* Whether the memory in which it was bound is still there. Under the region's lock nothing of it is
 * taken out of the directory afterwards without this having been seen to change. */
static bool is_there(const struct sp_coherence *coherence, const struct sp_range_use *range)
{
    if (range->memory == SP_AGENT_HOST || sp_span_is_home(range->region->span))
        return true;
    return (range->is_pooled ? range->memory_life : coherence->work->life) ==
           sp_agent_life(range->memory);
}

/* What was to be changed is changed. False: it is gone. */
static bool note_change(const struct sp_coherence *coherence, struct sp_range_use *range)
{
    struct sp_region *region = range->region;
    if (region->path != SP_PATH_PRIVATE)
        return true;
    pthread_mutex_lock(&region->lock);
    bool is = is_there(coherence, range);
    if (is && (sp_span_is_at_home(region->span) || range->memory == SP_AGENT_HOST))
        sp_region_note_written(region, range->first, range->end, SP_AGENT_HOST);
    else if (is)
        sp_watched_maps_note_written(region, range->first, range->end, range->memory);
    if (is && range->is_listed) {
        range->is_noted = true;
        if (range->promised)
            sp_promises_settle(range, true);
    }
    pthread_mutex_unlock(&region->lock);
    return is;
}

/* The host will change it until it unmaps. */
static void note_map(const struct sp_coherence *coherence, struct sp_range_use *range)
{
    /* What is overwritten as a whole is not worth watching, nor what all agents see as it is
     * written. */
    bool may_watch =
        range->access == SP_ACCESS_READ_WRITE && !sp_span_is_at_home(range->region->span);
    if (range->region->path == SP_PATH_PRIVATE &&
        !sp_watched_map_begin(range->region, range->first, range->end, may_watch))
        note_change(coherence, range);
}

/* The command failed, perhaps in the middle of writing into another device's memory. */
static void note_damage(const struct sp_coherence *coherence, const struct sp_range_use *range)
{
    struct sp_region *region = range->region;
    if (!range->is_pooled || range->memory == coherence->agent)
        return; /* what its own device had it lost, or its work was refused */
    pthread_mutex_lock(&region->lock);
    while (is_there(coherence, range) &&
           sp_directory_distrust(&region->directory, range->first, range->end, range->memory))
        continue;
    pthread_mutex_unlock(&region->lock);
}

/* Changes are noted here, and not with the end of all uses, so that what a device had when it died
 * is either lost and told of as such, or this command's error. The checking mode still has a say in
 * what counts as changed. */
int sp_coherence_outcome(struct sp_coherence *coherence, int error)
{
    bool is_whole = true;
    coherence->has_run = !error;
    for (unsigned i = 0; !error && i < coherence->count; i++) {
        struct sp_range_use *range = &coherence->ranges[i];
        if (range->access != SP_ACCESS_READ)
            is_whole &= sp_check_is_on ? is_there(coherence, range) : note_change(coherence, range);
    }
    return is_whole ? error : -EIO;
}

/* At the end of a command that was to change the range. */
static void end_change(const struct sp_coherence *coherence, struct sp_range_use *range,
                       bool is_done)
{
    if (coherence->is_map && is_done)
        note_map(coherence, range);
    else if (coherence->has_run ? sp_check_is_on : is_done)
        note_change(coherence, range);
    else if (!coherence->has_run)
        note_damage(coherence, range);
}

int sp_coherence_restart(struct sp_coherence *coherence)
{
    int error = 0;
    for (unsigned i = 0; i < coherence->count; i++) {
        struct sp_range_use *range = &coherence->ranges[i];
        if (!range->is_listed && !range->promise)
            continue;
        int failed = sp_change_unlist(range);
        error = error ? error : failed;
    }
    sp_bindings_unpin(coherence);
    sp_coherence_unfollow(coherence);
    coherence->after = 0;
    atomic_store_explicit(&coherence->error, 0, memory_order_relaxed);
    atomic_store_explicit(&coherence->is_handed, false, memory_order_relaxed);
    return error;
}

void sp_coherence_end(struct sp_coherence *coherence, bool is_done)
{
    if (!coherence->ranges)
        return;
    for (unsigned i = 0; i < coherence->count; i++) {
        struct sp_range_use *range = &coherence->ranges[i];
        bool may_write = range->access != SP_ACCESS_READ;
        if (may_write)
            end_change(coherence, range, is_done);
        if (may_write)
            atomic_fetch_sub_explicit(&range->region->writers, 1, memory_order_relaxed);
        if (range->is_listed || range->promise)
            sp_change_unlist(range);
    }
    sp_bindings_unpin(coherence);
    for (unsigned i = 0; i < coherence->count; i++)
        sp_arena_end_use(coherence->ranges[i].region);
    free(coherence->ranges);
    memset(coherence, 0, sizeof *coherence);
}
