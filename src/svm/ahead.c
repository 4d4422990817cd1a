/* Commands that begin while what they come after runs on another device (docs/ahead.md): the fences
 * that they wait for, what is being changed meanwhile, and what they make of that.
 *
 * Each range that a command under way is going to change is listed in its region, under the
 * region's lock, until the command has ended. The directory does not know of the change before
 * that. So a command that began ahead takes nothing for true that one of these will have changed:
 * it comes after it on the same device, is promised a copy (copies.c), or waits.
 */
#include <stdlib.h>
#include <string.h>

#include "svm/check.h"
#include "svm/coherence_internal.h"

static struct {
    const struct sp_device_ops *ops; /* of the driver whose devices know fences; NULL: none */
    unsigned agents;                 /* such devices */
    bool is_off;
    /* Counts what was listed. Relaxed: what a command comes after was listed before it was told. */
    _Atomic uint64_t listed;
} ahead = {.listed = 1};

/* --- Fences
 * ---------------------------------------------------------------------------------------- */

void sp_coherence_note_agent(const struct sp_device *device)
{
    const char *text = getenv("SAMEPAGE_AHEAD");
    ahead.is_off = text && !strcmp(text, "0");
    if (!device->ops->take_fence || (ahead.ops && ahead.ops != device->ops))
        return;
    ahead.ops = device->ops;
    ahead.agents++;
}

bool sp_coherence_is_ahead_on(void)
{
    return ahead.agents > 1 && !ahead.is_off && !sp_check_is_on;
}

bool sp_coherence_may_be_ahead(const struct sp_coherence *coherence)
{
    for (unsigned i = 0; i < coherence->count; i++)
        if (coherence->ranges[i].region->span->pool)
            return false;
    return true;
}

sp_fence sp_fence_take(uint32_t agent)
{
    struct sp_device *device = sp_agent_device(agent);
    return device && device->ops == ahead.ops ? ahead.ops->take_fence(device) : 0;
}

void sp_fences_drop(struct sp_work *work)
{
    if (work->fence)
        ahead.ops->drop_fence(work->fence);
    work->fence = 0;
    while (work->num_after)
        ahead.ops->drop_fence(work->after[--work->num_after]);
}

void sp_fence_await(struct sp_work *work, sp_fence fence)
{
    ahead.ops->keep_fence(fence);
    work->after[work->num_after++] = fence;
}

void sp_coherence_follow(struct sp_coherence *coherence, sp_fence fence)
{
    sp_fence_await(coherence->work, fence);
    coherence->num_followed = coherence->work->num_after;
}

void sp_coherence_unfollow(struct sp_coherence *coherence)
{
    sp_fences_drop(coherence->work);
    coherence->num_followed = 0;
}

/* --- What is being changed
 * ------------------------------------------------------------------------------ */

uint64_t sp_changes_listed(void)
{
    return atomic_load_explicit(&ahead.listed, memory_order_relaxed);
}

void sp_change_list(struct sp_coherence *coherence, struct sp_range_use *range)
{
    range->agent = coherence->agent;
    range->owner = coherence;
    range->is_listed = true;
    range->is_noted = false;
    range->listed_at = atomic_fetch_add_explicit(&ahead.listed, 1, memory_order_relaxed);
    range->promised = NULL;
    range->next_change = range->region->changes;
    range->change_link = &range->region->changes;
    if (range->next_change)
        range->next_change->change_link = &range->next_change;
    range->region->changes = range;
}

/* Whether the change is one of those that a command which began ahead may come after: not known to
 * the directory, and listed before it began. */
static bool is_in_front(const struct sp_range_use *other, const struct sp_coherence *coherence,
                        const struct sp_range_use *range)
{
    return other->owner != coherence && !other->is_noted &&
           other->listed_at < coherence->began_at && sp_ranges_overlap(other, range);
}

static bool is_followed(const struct sp_coherence *coherence, const struct sp_coherence *owner)
{
    for (unsigned i = 0; i < coherence->num_followed; i++)
        if (coherence->work->after[i] == owner->work->fence)
            return true;
    return false;
}

/* Whether the device of a command that was handed over is in the life in which it was begun. */
static bool is_of_now(const struct sp_coherence *coherence)
{
    return coherence->agent == SP_AGENT_HOST ||
           coherence->work->life == sp_agent_life(coherence->agent);
}

/* The change that has the last word on a range for a command which began ahead: of those that it
 * follows itself the newest, else the newest of all. NULL: there is none. *is_last: none is newer.
 * *must_wait: it cannot be taken from there alone. */
static struct sp_range_use *find_supplier(const struct sp_coherence *coherence,
                                          const struct sp_range_use *range, bool *is_last,
                                          bool *must_wait)
{
    struct sp_range_use *newest = NULL, *chosen = NULL;
    struct sp_range_use *other = range->region->changes;
    for (; other && !chosen; other = other->next_change) {
        if (!is_in_front(other, coherence, range))
            continue;
        if (!newest)
            newest = other;
        if (is_followed(coherence, other->owner))
            chosen = other;
    }
    if (!chosen)
        chosen = newest;
    if (!chosen)
        return NULL;
    *is_last = chosen == newest;
    *must_wait =
        chosen->is_pooled || chosen->agent == SP_AGENT_HOST || chosen->first > range->first ||
        chosen->end < range->end ||
        !atomic_load_explicit(&chosen->owner->is_handed, memory_order_relaxed) ||
        !is_of_now(chosen->owner) ||
        (chosen->agent == range->memory && chosen->owner->work->life != coherence->work->life);
    for (other = range->region->changes; other != chosen; other = other->next_change)
        if (is_in_front(other, coherence, range) && other->agent != chosen->agent)
            *must_wait = true;
    return chosen;
}

int sp_ahead_find_changes(struct sp_supply *supply, struct sp_coherence *coherence,
                          struct sp_range_use *range, enum sp_supplied *found)
{
    bool is_last = false, must_wait = false;
    int error = 0;
    struct sp_range_use *supplier = find_supplier(coherence, range, &is_last, &must_wait);
    *found = supplier ? SP_SUPPLIED_IN_ORDER : SP_NOT_OVERWRITTEN;
    if (!supplier || (!must_wait && (supplier->agent == range->memory ||
                                     sp_copy_promise(supply, coherence, range, supplier, is_last))))
        return 0;
    *found = SP_MUST_WAIT;
    for (struct sp_range_use *other = range->region->changes; other && !error;
         other = other->next_change)
        if (is_in_front(other, coherence, range))
            error = sp_supply_wait_also(supply, &other->waiters, coherence);
    return error;
}

/* Waits for promises that were dropped, until it is known whether they came all the same and
 * damaged what somebody has. -ENOMEM. */
int sp_ahead_wait_for_dropped(struct sp_supply *supply, struct sp_coherence *coherence,
                              const struct sp_range_use *range, bool *is_blocked)
{
    int error = 0;
    for (struct sp_copy *copy = range->region->dropped; copy && !error; copy = copy->next)
        if (sp_copy_overlaps(copy, range->first, range->end)) {
            *is_blocked = true;
            error = sp_supply_wait_also(supply, &copy->waiters, coherence);
        }
    return error;
}

int sp_ahead_wait_for_promises(struct sp_supply *supply, struct sp_coherence *coherence,
                               const struct sp_range_use *range, bool *is_blocked)
{
    int error = 0;
    for (struct sp_range_use *change = range->region->changes; change; change = change->next_change)
        for (struct sp_copy *copy = change->promised; copy && !error; copy = copy->next)
            if (!copy->is_finished && copy->destination == range->memory &&
                sp_copy_overlaps(copy, range->first, range->end)) {
                *is_blocked = true;
                error = sp_supply_wait_also(supply, &copy->waiters, coherence);
            }
    return error;
}

int sp_change_unlist(struct sp_range_use *range)
{
    struct sp_region *region = range->region;
    struct sp_waiter *waiter = NULL;
    pthread_mutex_lock(&region->lock);
    int error = sp_promise_end(range);
    if (range->is_listed) {
        if (range->promised)
            sp_promises_settle(range, false);
        *range->change_link = range->next_change;
        if (range->next_change)
            range->next_change->change_link = range->change_link;
        range->is_listed = false;
        waiter = range->waiters;
        range->waiters = NULL;
    }
    pthread_mutex_unlock(&region->lock);
    while (waiter) {
        struct sp_waiter *next = waiter->next;
        sp_coherence_settle(waiter->coherence);
        free(waiter);
        waiter = next;
    }
    return error;
}
