/* Copies under way: started by an acquire, a prefetch, an eviction or a change of path; ended by
 * the device that makes them.
 *
 * Each is in its region's list, under the region's lock, until it is done: that list is how the
 * directory's states may run ahead of the data (docs/directory.md). A copy is made by the device
 * that receives it, or, towards the host, by the one that sends it. One that failed is forgotten in
 * the directory before anybody who waits for it goes on.
 *
 * A promise (docs/ahead.md) is a copy of what a command under way is still to change. It is in a
 * list of its own, and the directory knows nothing of it until that command has ended well: then
 * the directory says that it was made, and it is a copy as any other, done or under way. Where that
 * command failed, the copy was not made, and what was there before is still good; unless it was
 * made all the same, which its own end tells.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "svm/coherence_internal.h"
#include "svm/trace.h"
#include "util/alloc.h"
#include "util/time.h"

/* Of the sentence that describe_loss makes: three numbers and an error's name fit. */
#define LOSS_BYTES 320u

size_t sp_copies_for(size_t transfers)
{
    size_t most = SP_MAX_AGENTS + transfers / SP_MAX_PIECES;
    return transfers < most ? transfers : most;
}

static void drop_pieces(struct sp_pieces *pieces)
{
    /* Acquire and release: the last one frees what the others have read. */
    if (pieces && atomic_fetch_sub_explicit(&pieces->references, 1, memory_order_acq_rel) == 1)
        free(pieces);
}

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
    drop_pieces(supply->pieces);
    supply->pieces = NULL;
    supply->pieces_used = 0;
}

int sp_supply_fill(struct sp_supply *supply, size_t transfers, size_t waiters)
{
    size_t copies = sp_copies_for(transfers);
    if (transfers > 1) {
        supply->pieces = sp_alloc(sizeof *supply->pieces + transfers * sizeof(struct sp_piece));
        if (!supply->pieces)
            return -ENOMEM;
        atomic_init(&supply->pieces->references, 1);
    }
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
    waiter->needs_it = false;
    waiter->next = *waiters;
    *waiters = waiter;
    /* Relaxed: whoever settles it takes the region's lock first. */
    atomic_fetch_add_explicit(&coherence->waiting_for, 1, memory_order_relaxed);
}

int sp_supply_wait_also(struct sp_supply *supply, struct sp_waiter **waiters,
                        struct sp_coherence *coherence)
{
    int error = sp_supply_fill(supply, 0, 1);
    if (!error)
        sp_supply_wait(supply, waiters, coherence);
    return error;
}

/* Its pieces, as bytes of the region: the next one from *index on. False: there is none. */
static bool next_piece(const struct sp_copy *copy, size_t *index, uint64_t *first, uint64_t *end)
{
    size_t i = (*index)++;
    if (!copy->pieces) {
        *first = copy->first;
        *end = copy->end;
        return i == 0;
    }
    if (i >= copy->work.range.num_pieces)
        return false;
    *first = copy->work.range.pieces[i].start - (uintptr_t)copy->region->start;
    *end = *first + copy->work.range.pieces[i].bytes;
    return true;
}

bool sp_copy_overlaps(const struct sp_copy *copy, uint64_t first, uint64_t end)
{
    if (copy->end <= first || end <= copy->first)
        return false;
    if (!copy->pieces)
        return true;
    /* The first piece that ends behind `first`. */
    const struct sp_piece *pieces = copy->work.range.pieces;
    uintptr_t start = (uintptr_t)copy->region->start;
    size_t low = 0, high = copy->work.range.num_pieces;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pieces[middle].start + pieces[middle].bytes <= start + first)
            low = middle + 1;
        else
            high = middle;
    }
    return low < copy->work.range.num_pieces && pieces[low].start < start + end;
}

/* What a copy was to bring is not there. Forgetting can need memory; it must not be given up. True:
 * nobody has some of it now, since its source was to lose it. With the region's lock held. */
static bool forget_arrival(const struct sp_copy *copy)
{
    struct sp_directory *directory = &copy->region->directory;
    bool is_held = true;
    uint64_t first, end;
    for (size_t i = 0; next_piece(copy, &i, &first, &end);) {
        while (sp_directory_forget(directory, first, end, copy->destination))
            continue;
        is_held &= sp_directory_is_held(directory, first, end);
    }
    return !is_held;
}

/* What a device that lives on has to say of a copy to the host that failed, and with it the only
 * copy: sp_device.noticed. */
static void describe_loss(const struct sp_copy *copy, int error, char text[LOSS_BYTES])
{
    snprintf(text, LOSS_BYTES,
             "could not copy bytes %llu to %llu of the region at %p to the host (%s), and had to "
             "give up its memory of them: what it alone had of them is lost; write them again "
             "before they are read",
             (unsigned long long)copy->first, (unsigned long long)copy->end - 1,
             (void *)copy->region->start, strerror(-error));
}

/* With no lock held: it may call into the runtime. */
static void tell_loss(uint32_t agent, const char *text)
{
    struct sp_device *device = sp_agent_device(agent);
    void (*noticed)(struct sp_device *, const char *) = device->noticed;
    if (noticed)
        noticed(device, text);
}

/* A dropped promise that may have been made all the same: then it was made of a good change, which
 * died with its device before anybody heard of it. It counts for nothing where others have what was
 * there before. With the region's lock held; it must not be given up. */
static void distrust_arrival(const struct sp_copy *copy)
{
    while (
        sp_directory_distrust(&copy->region->directory, copy->first, copy->end, copy->destination))
        continue;
}

static void trace_copy(const struct sp_copy *copy, int error)
{
    uint64_t first, end, bytes = 0;
    for (size_t i = 0; next_piece(copy, &i, &first, &end);)
        bytes += end - first;
    sp_trace_span(SP_TRACE_AGENT(copy->executor), "transfer",
                  error ? "transfer (failed)" : "transfer", copy->start_ns, sp_time_ns(),
                  "\"from\":%u,\"to\":%u,\"bytes\":%llu,\"reason\":\"%s\",\"region\":\"%p\"",
                  copy->source, copy->destination, (unsigned long long)bytes, copy->reason,
                  (void *)copy->region->start);
}

static void link_copy(struct sp_copy **list, struct sp_copy *copy)
{
    copy->next = *list;
    copy->link = list;
    if (copy->next)
        copy->next->link = &copy->next;
    *list = copy;
}

static void unlink_copy(struct sp_copy *copy)
{
    *copy->link = copy->next;
    if (copy->next)
        copy->next->link = copy->link;
}

/* With the region's lock held. */
static void drop_copy(struct sp_copy *copy)
{
    if (--copy->references)
        return;
    sp_fences_drop(&copy->work);
    drop_pieces(copy->pieces);
    free(copy);
}

/* What the end of a copy means for a command that waits for this very copy. One that was not tried,
 * or to where nothing was bound because that had failed, is none that went wrong: who needs it
 * begins again. */
static int error_for_waiters(const struct sp_copy *copy, int error)
{
    if (error == -ENOMEM)
        return -ENOSPC;
    return error == -EFAULT && copy->destination != SP_AGENT_HOST ? -ECANCELED : error;
}

static void copy_finished(struct sp_work *work, int error)
{
    struct sp_copy *copy = (struct sp_copy *)((char *)work - offsetof(struct sp_copy, work));
    struct sp_region *region = copy->region;
    uint32_t source = copy->source;
    int waiters_error = error_for_waiters(copy, error);
    bool is_lost = false;
    char loss[LOSS_BYTES];

    if (sp_trace_is_on)
        trace_copy(copy, error);
    pthread_mutex_lock(&region->lock);
    copy->is_finished = true;
    copy->error = error;
    struct sp_waiter *waiter = copy->waiters;
    copy->waiters = NULL;
    if (copy->state == SP_COPY_KNOWN && !error && copy->destination == SP_AGENT_HOST)
        sp_stretch_add(&region->arrived, copy->first, copy->end);
    if (copy->state == SP_COPY_KNOWN && error)
        is_lost = forget_arrival(copy) && source != SP_AGENT_HOST && error != -EIO;
    if (is_lost)
        describe_loss(copy, error, loss);
    if (copy->state == SP_COPY_DROPPED && error != -ECANCELED)
        distrust_arrival(copy);
    if (copy->state != SP_COPY_PROMISED) {
        unlink_copy(copy);
        drop_copy(copy);
    }
    pthread_mutex_unlock(&region->lock);
    if (is_lost)
        tell_loss(source, loss);
    /* Before the waiters go on: the last of them may end the arena, which waits for its regions'
     * uses. */
    sp_arena_end_use(region);

    for (struct sp_waiter *next; waiter; waiter = next) {
        next = waiter->next;
        if (error && waiter->needs_it)
            sp_coherence_note_error(waiter->coherence, waiters_error);
        sp_coherence_settle(waiter->coherence);
        free(waiter);
    }
    /* It may have stood in the way of an eviction. */
    if (source != SP_AGENT_HOST)
        sp_bindings_retry();
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

/* The life of the copy's executor in which what it copies is bound: for the command that acquires
 * now, that of its bindings. */
static uint32_t life_for(const struct sp_coherence *coherence, uint32_t executor)
{
    if (coherence && executor == coherence->agent)
        return coherence->work->life;
    const struct sp_range_use *range = coherence ? &coherence->ranges[coherence->next] : NULL;
    return range && range->is_pooled && range->memory == executor ? range->memory_life
                                                                  : sp_agent_life(executor);
}

/* What a copy that is about to be submitted has to say of failures. One to the host relies on
 * nothing: its device has had the data since before a use ended, or a copy to there. One for a
 * command of its device is done only where that command can be: it was asked for in the belief that
 * the commands in front are going to be done, and could overwrite what they do when they begin
 * again. Else what is known now counts, read after the copy's life and with the region's lock held:
 * what has failed of the region is in its directory before it is counted. */
static uint32_t failures_for(const struct sp_copy *copy, const struct sp_coherence *coherence)
{
    if (copy->destination == SP_AGENT_HOST || (coherence && coherence->is_strict))
        return 0;
    if (coherence && copy->executor == coherence->agent)
        return sp_coherence_failures_seen(coherence);
    return atomic_load_explicit(&sp_agent_device(copy->executor)->failures, memory_order_acquire);
}

/* What copies of [first, end) may run beside on their device (docs/cuda-backend.md). Works of the
 * device that only read the region are in nobody's way: what they read is current there, and is not
 * what a copy brings. */
static uint32_t beside_for(const struct sp_region *region, uint64_t first, uint64_t end,
                           const struct sp_coherence *coherence)
{
    uint32_t beside = SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES;
    /* Relaxed: who is going to change it was counted before it could be submitted. */
    if (atomic_load_explicit(&region->writers, memory_order_relaxed) ==
        (coherence ? sp_coherence_writers(coherence, region) : 0))
        beside |= SP_BESIDE_WORKS;
    for (const struct sp_copy *copy = region->copies; copy; copy = copy->next)
        if (sp_copy_overlaps(copy, first, end))
            beside &=
                copy->destination == SP_AGENT_HOST ? ~SP_BESIDE_DEPARTURES : ~SP_BESIDE_ARRIVALS;
    return beside;
}

/* Makes one copy, in the region's list. */
static struct sp_copy *make_copy(struct sp_supply *supply, struct sp_region *region,
                                 const struct sp_copy *like, struct sp_coherence *coherence)
{
    struct sp_copy *copy = supply->copies;
    supply->copies = copy->next;
    copy->region = region;
    copy->first = like->first;
    copy->end = like->end;
    copy->source = like->source;
    copy->destination = like->destination;
    copy->reason = like->reason;
    copy->start_ns = sp_trace_is_on ? sp_time_ns() : 0;
    copy->executor = copy->destination != SP_AGENT_HOST ? copy->destination : copy->source;
    copy->pieces = like->pieces;
    if (copy->pieces) /* relaxed: the supply has a reference */
        atomic_fetch_add_explicit(&copy->pieces->references, 1, memory_order_relaxed);
    copy->work.kind = SP_WORK_TRANSFER;
    copy->work.range.start = (uintptr_t)region->start + copy->first;
    copy->work.range.bytes = copy->end - copy->first;
    copy->work.range.source = copy->source;
    copy->work.range.destination = copy->destination;
    if (copy->source != SP_AGENT_HOST)
        copy->work.range.source_life = sp_agent_life(copy->source);
    copy->work.range.pieces = like->work.range.pieces;
    copy->work.range.num_pieces = like->work.range.num_pieces;
    copy->work.finished = copy_finished;
    copy->work.beside = like->work.beside;
    copy->work.life = life_for(coherence, copy->executor);
    copy->work.failures_seen = failures_for(copy, coherence);
    copy->references = 1;
    copy->state = like->state;
    copy->promiser = like->promiser;
    link_copy(copy->promiser ? &copy->promiser->promised : &region->copies, copy);
    /* Relaxed: the caller holds a use, or the arena's lock. */
    atomic_fetch_add_explicit(&region->uses, 1, memory_order_relaxed);
    return copy;
}

/* Starts one copy. */
static void start_copy(struct sp_supply *supply, struct sp_region *region,
                       const struct sp_copy *like, struct sp_coherence *coherence)
{
    struct sp_copy *copy = make_copy(supply, region, like, coherence);
    if (coherence && sp_copy_must_end_before(copy, coherence)) {
        sp_supply_wait(supply, &copy->waiters, coherence);
        copy->waiters->needs_it = true;
    }
    sp_agent_submit(copy->executor, &copy->work);
}

/* Starts the transfers from one source as copies of many pieces. */
static void start_in_pieces(struct sp_supply *supply, struct sp_region *region,
                            const struct sp_transfers *transfers, struct sp_copy *like,
                            struct sp_coherence *coherence)
{
    struct sp_piece *pieces = supply->pieces->list + supply->pieces_used;
    size_t count = 0;
    like->pieces = supply->pieces;
    for (size_t i = 0; i < transfers->count; i++) {
        const struct sp_transfer *transfer = &transfers->list[i];
        if (transfer->source == like->source) {
            like->first = count ? like->first : transfer->first;
            like->end = transfer->end;
            pieces[count++] = (struct sp_piece){(uintptr_t)region->start + transfer->first,
                                                transfer->end - transfer->first};
        }
        if (count < SP_MAX_PIECES && (i + 1 < transfers->count || !count))
            continue;
        like->work.range.pieces = pieces;
        like->work.range.num_pieces = count;
        start_copy(supply, region, like, coherence);
        supply->pieces_used += count;
        pieces += count;
        count = 0;
    }
}

/* Many small copies cost each device more than their bytes: those from one source are one copy in
 * pieces. */
void sp_copies_start(struct sp_supply *supply, struct sp_region *region,
                     const struct sp_transfers *transfers, const char *reason,
                     struct sp_coherence *coherence)
{
    uint32_t begun = 0; /* bit a: the transfers from agent a */
    if (!transfers->count)
        return;
    struct sp_copy like = {.reason = reason};
    /* They are in order of address. */
    like.work.beside = beside_for(region, transfers->list[0].first,
                                  transfers->list[transfers->count - 1].end, coherence);
    for (size_t i = 0; i < transfers->count; i++) {
        const struct sp_transfer *transfer = &transfers->list[i];
        if (begun >> transfer->source & 1)
            continue;
        begun |= 1u << transfer->source;
        like.source = transfer->source;
        like.destination = transfer->destination;
        if (transfers->count > 1) {
            start_in_pieces(supply, region, transfers, &like, coherence);
        } else {
            like.first = transfer->first;
            like.end = transfer->end;
            start_copy(supply, region, &like, coherence);
        }
    }
}

/* --- Promises
 * --------------------------------------------------------------------------------------- */

/* One that was made for another command, and brings all of the range. */
static struct sp_copy *find_promise(const struct sp_coherence *coherence,
                                    const struct sp_range_use *range,
                                    const struct sp_range_use *supplier)
{
    struct sp_copy *copy = supplier->promised;
    while (copy && (copy->destination != range->memory ||
                    copy->work.life != coherence->work->life || copy->first > range->first ||
                    copy->end < range->end || (copy->is_finished && copy->error)))
        copy = copy->next;
    return copy;
}

static bool has_fence(const struct sp_work *work, sp_fence fence)
{
    for (uint32_t i = 0; i < work->num_after; i++)
        if (work->after[i] == fence)
            return true;
    return false;
}

bool sp_copy_promise(struct sp_supply *supply, struct sp_coherence *coherence,
                     struct sp_range_use *range, struct sp_range_use *supplier, bool may_share)
{
    struct sp_region *region = range->region;
    struct sp_device *device = sp_agent_device(range->memory);
    if (coherence->work->num_after == SP_MAX_AFTER || !supplier->owner->work->fence || !device ||
        (device->ops->distance &&
         device->ops->distance(device, supplier->agent) == SP_OUT_OF_REACH))
        return false;
    struct sp_copy *copy = may_share ? find_promise(coherence, range, supplier) : NULL;
    if (!copy) {
        sp_fence fence = sp_fence_take(range->memory);
        if (!fence)
            return false;
        struct sp_copy like = {.first = range->first,
                               .end = range->end,
                               .source = supplier->agent,
                               .destination = range->memory,
                               .reason = "promise",
                               .promiser = supplier,
                               .state = SP_COPY_PROMISED};
        /* The device's works that use it are among what it waits for. */
        like.work.beside =
            beside_for(region, range->first, range->end, coherence) | SP_BESIDE_WORKS;
        copy = make_copy(supply, region, &like, coherence);
        copy->work.fence = fence;
        for (unsigned i = 0; i < coherence->num_followed; i++)
            sp_fence_await(&copy->work, coherence->work->after[i]);
        if (!has_fence(&copy->work, supplier->owner->work->fence))
            sp_fence_await(&copy->work, supplier->owner->work->fence);
        sp_agent_submit(copy->executor, &copy->work);
    }
    copy->references++;
    range->promise = copy;
    sp_fence_await(coherence->work, copy->work.fence);
    return true;
}

static uint32_t prefer_source(void *data, uint32_t source, uint32_t destination)
{
    (void)destination;
    return source != *(uint32_t *)data;
}

/* Says in the directory that it was made. Needs memory; it must not be given up. */
static void note_promise(struct sp_copy *copy)
{
    struct sp_transfers transfers = {0};
    while (sp_directory_acquire(&copy->region->directory, copy->first, copy->end, copy->destination,
                                SP_ACCESS_READ, prefer_source, &copy->source, &transfers))
        continue;
    sp_transfers_finish(&transfers);
}

void sp_promises_settle(struct sp_range_use *supplier, bool is_good)
{
    struct sp_region *region = supplier->region;
    for (struct sp_copy *copy; (copy = supplier->promised);) {
        /* In another life of the device it brings nothing; and what a map of the host covers was
         * not changed for all. */
        bool is_kept =
            is_good && !(copy->is_finished && copy->error) &&
            copy->work.life == sp_agent_life(copy->destination) &&
            sp_directory_is_current(&region->directory, copy->first, copy->end, copy->source);
        copy->promiser = NULL;
        copy->state = is_kept ? SP_COPY_KNOWN : SP_COPY_DROPPED;
        unlink_copy(copy);
        if (is_kept)
            note_promise(copy);
        if (!copy->is_finished) {
            link_copy(is_kept ? &region->copies : &region->dropped, copy);
            continue;
        }
        if (!is_kept && copy->error != -ECANCELED)
            distrust_arrival(copy);
        drop_copy(copy);
    }
}

int sp_promise_end(struct sp_range_use *range)
{
    struct sp_copy *copy = range->promise;
    if (!copy)
        return 0;
    int error = copy->is_finished && copy->error == -EIO ? -EIO : 0;
    range->promise = NULL;
    drop_copy(copy);
    return error;
}

void sp_copies_cancel(struct sp_region *region, uint32_t agent,
                      void (*lost)(void *data, uint64_t first, uint64_t end), void *data)
{
    for (struct sp_copy *copy = region->copies; copy; copy = copy->next) {
        if (copy->source != agent)
            continue;
        forget_arrival(copy);
        /* An eviction had taken it from the agent already, but for what that has read back since:
         * this is found in the directory. */
        uint64_t first, end, last;
        for (size_t i = 0; next_piece(copy, &i, &first, &end);)
            for (last = end; sp_directory_unheld(&region->directory, &first, &end); end = last) {
                lost(data, first, end);
                first = end;
            }
    }
}

/* Whether the eviction would bring something to the overlap of two ranges. */
static bool would_bring(const struct sp_region *region, uint32_t agent, uint64_t first,
                        uint64_t end, uint64_t other_first, uint64_t other_end)
{
    uint64_t from = first > other_first ? first : other_first;
    uint64_t to = end < other_end ? end : other_end;
    return from < to && sp_directory_is_alone(&region->directory, from, to, agent);
}

/* Whether the eviction would bring something to where a copy to the host does. */
static bool would_bring_under(const struct sp_copy *copy, uint32_t agent, uint64_t first,
                              uint64_t end)
{
    uint64_t piece_first, piece_end;
    for (size_t i = 0; next_piece(copy, &i, &piece_first, &piece_end);)
        if (would_bring(copy->region, agent, first, end, piece_first, piece_end))
            return true;
    return false;
}

/* Whether something else is reading the agent's memory, or is going to change what an eviction
 * would bring to the host: a command that overwrites that, of which the directory does not know
 * yet, or older content that another device still brings there. With the region's lock held. */
static bool is_in_the_way(const struct sp_region *region, uint32_t agent, uint64_t first,
                          uint64_t end)
{
    for (const struct sp_range_use *range = region->changes; range; range = range->next_change)
        if (range->agent == SP_AGENT_HOST &&
            would_bring(region, agent, first, end, range->first, range->end))
            return true;
    for (const struct sp_copy *copy = region->copies; copy; copy = copy->next)
        if (copy->executor != agent &&
            (copy->source == agent ? sp_copy_overlaps(copy, first, end)
                                   : copy->destination == SP_AGENT_HOST &&
                                         would_bring_under(copy, agent, first, end)))
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
        error =
            sp_directory_evict(&region->directory, first, end, agent, SP_AGENT_HOST, &transfers);
    if (!error)
        sp_copies_start(&supply, region, &transfers, reason, NULL);
    pthread_mutex_unlock(&region->lock);
    sp_supply_finish(&supply);
    sp_transfers_finish(&transfers);
    return error;
}
