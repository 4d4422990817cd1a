/* Copies under way: started by an acquire, a prefetch, an eviction or a change of path; ended by the device
 * that makes them.
 *
 * Each is in its region's list, under the region's lock, until it is done: that list is how the directory's
 * states may run ahead of the data (docs/directory.md). A copy is made by the device that receives it, or,
 * towards the host, by the one that sends it. One that failed is forgotten in the directory before
 * anybody who waits for it goes on.
 */
#include <errno.h>
#include <stdlib.h>

#include "svm/coherence_internal.h"
#include "svm/trace.h"
#include "util/alloc.h"
#include "util/time.h"

void sp_supply_finish(struct sp_supply *supply)
{
    while (supply->copies) {
        struct sp_copy *copy = supply->copies;
        supply->copies = copy->next;
        free(copy);
    }
    while (supply->waiters) {
        struct sp_waiter *waiter = supply->waiters;
        supply->waiters = waiter->next;
        free(waiter);
    }
}

int sp_supply_fill(struct sp_supply *supply, size_t copies, size_t waiters)
{
    for (size_t i = 0; i < copies; i++) {
        struct sp_copy *copy = sp_alloc(sizeof *copy);
        if (!copy)
            return -ENOMEM;
        copy->next = supply->copies;
        supply->copies = copy;
    }
    for (size_t i = 0; i < waiters; i++) {
        struct sp_waiter *waiter = sp_alloc(sizeof *waiter);
        if (!waiter)
            return -ENOMEM;
        waiter->next = supply->waiters;
        supply->waiters = waiter;
    }
    return 0;
}

void sp_supply_wait(struct sp_supply *supply, struct sp_waiter **waiters,
                    struct sp_coherence *coherence)
{
    struct sp_waiter *waiter = supply->waiters;
    supply->waiters = waiter->next;
    waiter->coherence = coherence;
    waiter->next = *waiters;
    *waiters = waiter;
    /* Relaxed: whoever settles it takes the region's lock first. */
    atomic_fetch_add_explicit(&coherence->waiting_for, 1, memory_order_relaxed);
}

/* What a copy was to bring is not there. Forgetting can need memory; it must not be given up. With the region's
 * lock held. */
static void forget_arrival(const struct sp_copy *copy)
{
    while (sp_directory_forget(&copy->region->directory, copy->first, copy->end,
                               copy->destination))
        continue;
}

static void trace_copy(const struct sp_copy *copy, int error)
{
    sp_trace_span(SP_TRACE_AGENT(copy->executor), "transfer",
                  error ? "transfer (failed)" : "transfer", copy->start_ns, sp_time_ns(),
                  "\"from\":%u,\"to\":%u,\"bytes\":%llu,\"reason\":\"%s\",\"region\":\"%p\"",
                  copy->source, copy->destination, (unsigned long long)(copy->end - copy->first),
                  copy->reason, (void *)copy->region->start);
}

static void copy_finished(struct sp_work *work, int error)
{
    struct sp_copy *copy = (struct sp_copy *)((char *)work - offsetof(struct sp_copy, work));
    struct sp_region *region = copy->region;

    if (sp_trace_is_on)
        trace_copy(copy, error);
    pthread_mutex_lock(&region->lock);
    *copy->link = copy->next;
    if (copy->next)
        copy->next->link = copy->link;
    if (error)
        forget_arrival(copy);
    else if (copy->destination == SP_AGENT_HOST)
        sp_stretch_add(&region->arrived, copy->first, copy->end);
    pthread_mutex_unlock(&region->lock);
    /* Before the waiters go on: the last of them may end the arena, which waits for its regions' uses. */
    sp_arena_end_use(region);

    for (struct sp_waiter *waiter = copy->waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        if (error)
            sp_coherence_note_error(waiter->coherence, error);
        sp_coherence_settle(waiter->coherence);
        free(waiter);
    }
    /* It may have stood in the way of an eviction. */
    if (copy->source != SP_AGENT_HOST)
        sp_bindings_retry();
    free(copy);
}

bool sp_copy_must_end_before(const struct sp_copy *copy, const struct sp_coherence *coherence)
{
    return copy->executor != coherence->agent || coherence->is_strict ||
           (copy->source != SP_AGENT_HOST && copy->source != coherence->agent);
}

bool sp_copy_concerns(const struct sp_copy *copy, uint32_t agent, enum sp_access access)
{
    return copy->destination == agent || (copy->source == agent && access != SP_ACCESS_READ);
}

/* The life of the copy's executor in which what it copies is bound: for the command that acquires now, that of its
 * bindings. */
static uint32_t life_for(const struct sp_coherence *coherence, uint32_t executor)
{
    if (coherence && executor == coherence->agent)
        return coherence->life;
    const struct sp_range_use *range = coherence ? &coherence->ranges[coherence->next] : NULL;
    return range && range->is_pooled && range->memory == executor ? range->memory_life
                                                                  : sp_agent_life(executor);
}

/* What copies of [first, end) may run beside on their device (docs/cuda-backend.md). Works of the device that only read the
 * region are in nobody's way: what they read is current there, and is not what a copy brings. */
static uint32_t beside_for(const struct sp_region *region, uint64_t first, uint64_t end,
                           const struct sp_coherence *coherence)
{
    uint32_t beside = SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES;
    /* Relaxed: who is going to change it was counted before it could be submitted. */
    if (atomic_load_explicit(&region->writers, memory_order_relaxed) ==
        (coherence ? sp_coherence_writers(coherence, region) : 0))
        beside |= SP_BESIDE_WORKS;
    for (const struct sp_copy *copy = region->copies; copy; copy = copy->next)
        if (copy->first < end && first < copy->end)
            beside &= copy->destination == SP_AGENT_HOST ? ~SP_BESIDE_DEPARTURES
                                                         : ~SP_BESIDE_ARRIVALS;
    return beside;
}

void sp_copies_start(struct sp_supply *supply, struct sp_region *region,
                     const struct sp_transfers *transfers, const char *reason,
                     struct sp_coherence *coherence)
{
    if (!transfers->count)
        return;
    /* They are in order of address. */
    uint32_t beside = beside_for(region, transfers->list[0].first,
                                 transfers->list[transfers->count - 1].end, coherence);
    for (size_t i = 0; i < transfers->count; i++) {
        const struct sp_transfer *transfer = &transfers->list[i];
        struct sp_copy *copy = supply->copies;
        supply->copies = copy->next;
        copy->region = region;
        copy->first = transfer->first;
        copy->end = transfer->end;
        copy->source = transfer->source;
        copy->reason = reason;
        copy->start_ns = sp_trace_is_on ? sp_time_ns() : 0;
        copy->destination = transfer->destination;
        copy->executor = transfer->destination != SP_AGENT_HOST ? transfer->destination
                                                                : transfer->source;
        copy->work.kind = SP_WORK_TRANSFER;
        copy->work.range.start = (uintptr_t)region->start + transfer->first;
        copy->work.range.bytes = transfer->end - transfer->first;
        copy->work.range.source = transfer->source;
        copy->work.range.destination = transfer->destination;
        copy->work.finished = copy_finished;
        copy->work.beside = beside;
        copy->work.life = life_for(coherence, copy->executor);
        copy->next = region->copies;
        copy->link = &region->copies;
        if (copy->next)
            copy->next->link = &copy->next;
        region->copies = copy;
        /* Relaxed: the caller holds a use, or the arena's lock. */
        atomic_fetch_add_explicit(&region->uses, 1, memory_order_relaxed);
        if (coherence && sp_copy_must_end_before(copy, coherence))
            sp_supply_wait(supply, &copy->waiters, coherence);
        sp_agent_submit(copy->executor, &copy->work);
    }
}

void sp_copies_cancel(struct sp_region *region, uint32_t agent,
                      void (*lost)(void *data, uint64_t first, uint64_t end), void *data)
{
    for (struct sp_copy *copy = region->copies; copy; copy = copy->next) {
        if (copy->source != agent)
            continue;
        forget_arrival(copy);
        /* An eviction had taken it from the agent already, but for what that has read back since: this is found in the
         * directory. */
        uint64_t first = copy->first, end = copy->end;
        while (sp_directory_unheld(&region->directory, &first, &end)) {
            lost(data, first, end);
            first = end;
            end = copy->end;
        }
    }
}

/* Whether the eviction would bring something to the overlap of two ranges. */
static bool would_bring(const struct sp_region *region, uint32_t agent, uint64_t first, uint64_t end,
                        uint64_t other_first, uint64_t other_end)
{
    uint64_t from = first > other_first ? first : other_first;
    uint64_t to = end < other_end ? end : other_end;
    return from < to && sp_directory_is_alone(&region->directory, from, to, agent);
}

/* Whether something else is reading the agent's memory, or is going to change what an eviction would bring to the host: a
 * command that overwrites that, of which the directory does not know yet, or older content that another device still brings
 * there. With the region's lock held. */
static bool is_in_the_way(const struct sp_region *region, uint32_t agent, uint64_t first, uint64_t end)
{
    for (const struct sp_range_use *range = region->overwriting; range;
         range = range->next_overwriting)
        if (range->agent == SP_AGENT_HOST &&
            would_bring(region, agent, first, end, range->first, range->end))
            return true;
    for (const struct sp_copy *copy = region->copies; copy; copy = copy->next)
        if (copy->executor != agent &&
            (copy->source == agent ? copy->first < end && first < copy->end
                                   : copy->destination == SP_AGENT_HOST &&
                                         would_bring(region, agent, first, end, copy->first, copy->end)))
            return true;
    return false;
}

int sp_region_evict(struct sp_region *region, uint32_t agent, uint64_t first, uint64_t end,
                    const char *reason)
{
    struct sp_supply supply = {0};
    struct sp_transfers transfers = {0};
    pthread_mutex_lock(&region->lock);
    int error = is_in_the_way(region, agent, first, end) ? -EBUSY : 0;
    if (!error)
        error = sp_supply_fill(&supply, sp_directory_runs_in(&region->directory, first, end), 0);
    if (!error)
        error = sp_directory_evict(&region->directory, first, end, agent, SP_AGENT_HOST,
                                   &transfers);
    if (!error)
        sp_copies_start(&supply, region, &transfers, reason, NULL);
    pthread_mutex_unlock(&region->lock);
    sp_supply_finish(&supply);
    sp_transfers_finish(&transfers);
    return error;
}
