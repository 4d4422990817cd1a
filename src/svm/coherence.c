/* See coherence.h. What it owns: the table of agents, the bindings of spans on them, and the copies
 * under way.
 *
 * A use reads when it begins, and only its good end makes the other agents' copies invalid: so a source that
 * dies on the way, or a kernel that crashes, costs nothing that another agent had (docs/directory.md).
 *
 * Directory states are changed when copies are asked for, not when they are done. That is sound
 * because a copy is in its region's list until it is done, and a range that such copies overlap
 * is not acquired before they ended, unless the acquiring device makes them itself: its ring keeps the order.
 */
#include "svm/coherence.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "svm/region.h"
#include "svm/trace.h"
#include "svm/watched_map.h"
#include "svm/window.h"
#include "util/alloc.h"
#include "util/time.h"

/* A span on an agent. */
struct sp_binding {
    struct sp_binding *next;          /* of the span */
    struct sp_binding *newer, *older; /* of the agent, by last use */
    struct sp_span *span;             /* NULL once taken off */
    uint32_t agent;
    unsigned pins;                    /* commands that need it; not evicted meanwhile */
    atomic_uint references;           /* one while it is linked, one for each work under way */
    struct sp_work bind, unbind;
};

struct agent {
    struct sp_device *device; /* NULL: no such agent */
    uint64_t used_bytes;      /* private backings */
    struct sp_binding *newest, *oldest;
};

/* A command that waits for a copy. */
struct waiter {
    struct waiter *next;
    struct sp_coherence *coherence;
};

/* A copy under way; it holds a use of its region. */
struct sp_copy {
    struct sp_copy *next; /* of the region */
    struct sp_work work;
    struct sp_region *region;
    uint64_t first, end;
    uint32_t source, destination, executor; /* agents */
    uint64_t start_ns;                      /* when it was asked for; with the trace only */
    const char *reason;                     /* "use", "eviction" */
    struct waiter *waiters;
};

static struct {
    pthread_mutex_t bindings_lock; /* of all bindings, and of what agents use */
    struct agent agents[SP_MAX_AGENTS];
} coherence_state = {.bindings_lock = PTHREAD_MUTEX_INITIALIZER};

void (*sp_coherence_report_loss)(struct sp_region *, uint64_t, uint64_t, struct sp_device *,
                                 const char *);

static struct sp_device *device_of(uint32_t agent)
{
    return coherence_state.agents[agent].device;
}

static void submit(uint32_t agent, struct sp_work *work)
{
    struct sp_device *device = device_of(agent);
    device->ops->submit(device, work);
}

/* --- Copies ---------------------------------------------------------------------------------------- */

/* Copies and waiters that an acquire may need, taken before the directory changes so that nothing can
 * fail afterwards. */
struct supply {
    struct sp_copy *copies;
    struct waiter *waiters;
};

static void supply_finish(struct supply *supply)
{
    while (supply->copies) {
        struct sp_copy *copy = supply->copies;
        supply->copies = copy->next;
        free(copy);
    }
    while (supply->waiters) {
        struct waiter *waiter = supply->waiters;
        supply->waiters = waiter->next;
        free(waiter);
    }
}

static int supply_fill(struct supply *supply, size_t copies, size_t waiters)
{
    for (size_t i = 0; i < copies; i++) {
        struct sp_copy *copy = sp_alloc(sizeof *copy);
        if (!copy)
            return -ENOMEM;
        copy->next = supply->copies;
        supply->copies = copy;
    }
    for (size_t i = 0; i < waiters; i++) {
        struct waiter *waiter = sp_alloc(sizeof *waiter);
        if (!waiter)
            return -ENOMEM;
        waiter->next = supply->waiters;
        supply->waiters = waiter;
    }
    return 0;
}

static void go_on(struct sp_coherence *coherence);

/* One thing less to wait for. */
static void settle(struct sp_coherence *coherence)
{
    /* Acquire and release: what the copies did is visible to whoever goes on. */
    if (atomic_fetch_sub_explicit(&coherence->waiting_for, 1, memory_order_acq_rel) == 1)
        go_on(coherence);
}

static void note_error(struct sp_coherence *coherence, int error)
{
    int none = 0;
    atomic_compare_exchange_strong_explicit(&coherence->error, &none, error, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* What a copy was to bring is not there. Forgetting can need memory; it must not be given up. With the region's
 * lock held. */
static void forget_arrival(const struct sp_copy *copy)
{
    while (sp_directory_forget(&copy->region->directory, copy->first, copy->end,
                               copy->destination))
        continue;
}

static void copy_finished(struct sp_work *work, int error)
{
    struct sp_copy *copy = (struct sp_copy *)((char *)work - offsetof(struct sp_copy, work));
    struct sp_region *region = copy->region;

    if (sp_trace_is_on)
        sp_trace_span(SP_TRACE_AGENT(copy->executor), "transfer",
                      error ? "transfer (failed)" : "transfer", copy->start_ns, sp_time_ns(),
                      "\"from\":%u,\"to\":%u,\"bytes\":%llu,\"reason\":\"%s\",\"region\":\"%p\"",
                      copy->source, copy->destination,
                      (unsigned long long)(copy->end - copy->first), copy->reason,
                      (void *)region->start);
    pthread_mutex_lock(&region->lock);
    struct sp_copy **link = &region->copies;
    while (*link != copy)
        link = &(*link)->next;
    *link = copy->next;
    if (error)
        forget_arrival(copy);
    pthread_mutex_unlock(&region->lock);
    /* Before the waiters go on: the last of them may end the arena, which waits for its regions' uses. */
    sp_arena_end_use(region);

    for (struct waiter *waiter = copy->waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        if (error)
            note_error(waiter->coherence, error);
        settle(waiter->coherence);
        free(waiter);
    }
    free(copy);
}

static void wait_for(struct supply *supply, struct sp_copy *copy, struct sp_coherence *coherence)
{
    struct waiter *waiter = supply->waiters;
    supply->waiters = waiter->next;
    waiter->coherence = coherence;
    waiter->next = copy->waiters;
    copy->waiters = waiter;
    atomic_fetch_add_explicit(&coherence->waiting_for, 1, memory_order_relaxed);
}

/* A device's ring keeps the order of its own copies and works, but not the death of another device. */
static bool must_wait_for(const struct sp_coherence *coherence, const struct sp_copy *copy)
{
    return copy->executor != coherence->agent || coherence->is_strict ||
           (copy->source != SP_AGENT_HOST && copy->source != coherence->agent);
}

/* Starts what the directory asked for. With the region's lock held. `coherence` (may be NULL) waits for the copies that
 * its own agent does not make. */
static void start_copies(struct supply *supply, struct sp_region *region,
                         const struct sp_transfers *transfers, struct sp_coherence *coherence)
{
    for (size_t i = 0; i < transfers->count; i++) {
        const struct sp_transfer *transfer = &transfers->list[i];
        struct sp_copy *copy = supply->copies;
        supply->copies = copy->next;
        copy->region = region;
        copy->first = transfer->first;
        copy->end = transfer->end;
        copy->source = transfer->source;
        copy->reason = coherence ? "use" : "eviction";
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
        copy->next = region->copies;
        region->copies = copy;
        /* Relaxed: the caller holds a use, or the arena's lock. */
        atomic_fetch_add_explicit(&region->uses, 1, memory_order_relaxed);
        if (coherence && must_wait_for(coherence, copy))
            wait_for(supply, copy, coherence);
        submit(copy->executor, &copy->work);
    }
}

/* --- Bindings -------------------------------------------------------------------------------------- */

static void binding_unreference(struct sp_binding *binding)
{
    if (atomic_fetch_sub_explicit(&binding->references, 1, memory_order_acq_rel) == 1)
        free(binding);
}

static void bind_finished(struct sp_work *work, int error)
{
    (void)error; /* a device that cannot bind what fits it has died, and is told of as such */
    binding_unreference(
        (struct sp_binding *)((char *)work - offsetof(struct sp_binding, bind)));
}

static void unbind_finished(struct sp_work *work, int error)
{
    (void)error;
    binding_unreference(
        (struct sp_binding *)((char *)work - offsetof(struct sp_binding, unbind)));
}

static uint64_t span_bytes(const struct sp_span *span)
{
    return span->granules * SP_GRANULE_BYTES;
}

static void unlink_from_agent(struct agent *agent, struct sp_binding *binding)
{
    if (binding->newer)
        binding->newer->older = binding->older;
    else
        agent->newest = binding->older;
    if (binding->older)
        binding->older->newer = binding->newer;
    else
        agent->oldest = binding->newer;
    binding->newer = binding->older = NULL;
}

static void link_as_newest(struct agent *agent, struct sp_binding *binding)
{
    binding->older = agent->newest;
    if (agent->newest)
        agent->newest->newer = binding;
    else
        agent->oldest = binding;
    agent->newest = binding;
}

/* Takes a binding out of all lists. The caller owns the reference that they had. */
static void unlink_binding(struct sp_binding *binding)
{
    struct sp_span *span = binding->span;
    struct agent *agent = &coherence_state.agents[binding->agent];
    struct sp_binding **link = &span->bindings;
    while (*link != binding)
        link = &(*link)->next;
    *link = binding->next;
    unlink_from_agent(agent, binding);
    if (span->path == SP_PATH_PRIVATE)
        agent->used_bytes -= span_bytes(span);
    binding->span = NULL;
}

/* Unlinks a binding and lets the device forget it. */
static void take_off(struct sp_binding *binding)
{
    binding->unbind.kind = SP_WORK_UNBIND;
    binding->unbind.range.start = (uintptr_t)binding->span->start;
    binding->unbind.range.bytes = span_bytes(binding->span);
    binding->unbind.finished = unbind_finished;
    unlink_binding(binding);
    submit(binding->agent, &binding->unbind); /* its reference was the lists' */
}

/* Whether another device is copying from this agent's memory. With the region's lock held. */
static bool is_read_by_others(const struct sp_region *region, uint32_t agent)
{
    for (const struct sp_copy *copy = region->copies; copy; copy = copy->next)
        if (copy->source == agent && copy->executor != agent)
            return true;
    return false;
}

/* Brings to the host what only `agent` holds of a region. Afterwards nobody will copy from it. */
static int evict_region(struct sp_region *region, uint32_t agent)
{
    struct supply supply = {0};
    struct sp_transfers transfers = {0};
    pthread_mutex_lock(&region->lock);
    int error = is_read_by_others(region, agent) ? -EBUSY : 0;
    if (!error)
        error = supply_fill(&supply, region->directory.count + 1u, 0);
    if (!error)
        error = sp_directory_evict(&region->directory, 0, region->bytes, agent, SP_AGENT_HOST,
                                   &transfers);
    if (!error)
        start_copies(&supply, region, &transfers, NULL);
    pthread_mutex_unlock(&region->lock);
    supply_finish(&supply);
    sp_transfers_finish(&transfers);
    return error;
}

/* Makes room on an agent: the longest unused span goes to the host. -ENOMEM where every span is in use. With the
 * bindings' lock held. */
static int evict_one(struct agent *agent)
{
    int error = -EBUSY;
    for (struct sp_binding *binding = agent->oldest; binding && error == -EBUSY;
         binding = binding->newer) {
        if (binding->pins > 0 || binding->span->path != SP_PATH_PRIVATE)
            continue;
        error = sp_span_for_each_region(binding->span, evict_region, binding->agent);
        if (!error) {
            take_off(binding);
            return 0;
        }
    }
    return -ENOMEM;
}

static struct sp_binding *find_binding(struct sp_span *span, uint32_t agent)
{
    struct sp_binding *binding = span->bindings;
    while (binding && binding->agent != agent)
        binding = binding->next;
    return binding;
}

/* Binds a span that is not bound yet. With the bindings' lock held. */
static int bind_span(struct sp_span *span, uint32_t number, struct sp_binding **bound)
{
    struct agent *agent = &coherence_state.agents[number];
    uint64_t bytes = span->path == SP_PATH_PRIVATE ? span_bytes(span) : 0;
    while (bytes && agent->used_bytes + bytes > agent->device->info.global_memory_bytes) {
        int error = evict_one(agent);
        if (error)
            return error;
    }
    struct sp_binding *binding = sp_alloc(sizeof *binding);
    if (!binding)
        return -ENOMEM;
    binding->span = span;
    binding->agent = number;
    binding->next = span->bindings;
    span->bindings = binding;
    link_as_newest(agent, binding);
    agent->used_bytes += bytes;
    atomic_init(&binding->references, 2); /* the lists, and the work */
    binding->bind.kind = SP_WORK_BIND;
    binding->bind.range.start = (uintptr_t)span->start;
    binding->bind.range.bytes = span_bytes(span);
    binding->bind.range.is_home = span->path == SP_PATH_HOME;
    binding->bind.finished = bind_finished;
    submit(number, &binding->bind);
    *bound = binding;
    return 0;
}

static int bind_home(struct sp_span *span, uint32_t agent)
{
    struct sp_binding *binding;
    return find_binding(span, agent) ? 0 : bind_span(span, agent, &binding);
}

/* Binds and pins the spans of all ranges, and binds those of the home path: a kernel may follow
 * pointers to any of them. */
static int pin_all(struct sp_coherence *coherence, struct sp_arena *arena)
{
    struct agent *agent = &coherence_state.agents[coherence->agent];
    pthread_mutex_lock(&coherence_state.bindings_lock);
    int error = sp_arena_for_each_new_home(arena, bind_home, coherence->agent);
    for (unsigned i = 0; !error && i < coherence->count; i++) {
        struct sp_range_use *range = &coherence->ranges[i];
        struct sp_binding *binding = find_binding(range->region->span, coherence->agent);
        if (binding) {
            unlink_from_agent(agent, binding);
            link_as_newest(agent, binding);
        } else {
            error = bind_span(range->region->span, coherence->agent, &binding);
        }
        if (!error) {
            binding->pins++;
            /* Relaxed: the lists hold a reference. */
            atomic_fetch_add_explicit(&binding->references, 1, memory_order_relaxed);
            range->binding = binding;
        }
    }
    pthread_mutex_unlock(&coherence_state.bindings_lock);
    return error;
}

int sp_coherence_bind_home(struct sp_arena *arena, uint32_t agent)
{
    pthread_mutex_lock(&coherence_state.bindings_lock);
    int error = sp_arena_for_each_new_home(arena, bind_home, agent);
    pthread_mutex_unlock(&coherence_state.bindings_lock);
    return error;
}

static void unpin_all(struct sp_coherence *coherence)
{
    pthread_mutex_lock(&coherence_state.bindings_lock);
    for (unsigned i = 0; i < coherence->count; i++) {
        struct sp_binding *binding = coherence->ranges[i].binding;
        if (!binding)
            continue;
        binding->pins--;
        binding_unreference(binding);
    }
    pthread_mutex_unlock(&coherence_state.bindings_lock);
}

void sp_coherence_unbind(struct sp_span *span)
{
    pthread_mutex_lock(&coherence_state.bindings_lock);
    while (span->bindings)
        take_off(span->bindings);
    pthread_mutex_unlock(&coherence_state.bindings_lock);
}

/* --- Death of a device ----------------------------------------------------------------------------- */

struct loss {
    struct sp_device *device;
    const char *reason;
    struct sp_region *region;
};

static void lose_range(void *data, uint64_t first, uint64_t end)
{
    struct loss *loss = data;
    if (sp_coherence_report_loss)
        sp_coherence_report_loss(loss->region, first, end, loss->device, loss->reason);
}

static bool is_held(const struct sp_region *region, uint64_t offset)
{
    for (uint32_t agent = 0; agent < SP_MAX_AGENTS; agent++)
        if (sp_directory_state(&region->directory, offset, agent) != SP_INVALID)
            return true;
    return false;
}

/* What was on its way from the dead agent will not arrive. An eviction had taken it from the agent already. */
static void cancel_copies(struct sp_region *region, struct loss *loss)
{
    for (struct sp_copy *copy = region->copies; copy; copy = copy->next) {
        if (copy->source != loss->device->agent)
            continue;
        forget_arrival(copy);
        if (!is_held(region, copy->first))
            lose_range(loss, copy->first, copy->end);
    }
}

static void lose_region(struct sp_region *region, void *data)
{
    struct loss *loss = data;
    loss->region = region;
    pthread_mutex_lock(&region->lock);
    cancel_copies(region, loss);
    sp_directory_drop(&region->directory, loss->device->agent, lose_range, loss);
    pthread_mutex_unlock(&region->lock);
}

static void device_lost(struct sp_device *device, const char *reason)
{
    struct agent *agent = &coherence_state.agents[device->agent];
    struct loss loss = {.device = device, .reason = reason};
    if (sp_trace_is_on)
        sp_trace_instant(SP_TRACE_AGENT(device->agent), "fault", "device process died", "%s", "");
    pthread_mutex_lock(&coherence_state.bindings_lock);
    while (agent->newest) {
        struct sp_binding *binding = agent->newest;
        unlink_binding(binding);
        binding_unreference(binding);
    }
    pthread_mutex_unlock(&coherence_state.bindings_lock);
    sp_arena_forget_home(device->agent);
    sp_arena_for_each_region(lose_region, &loss);
}

void sp_coherence_add_agent(struct sp_device *device)
{
    coherence_state.agents[device->agent].device = device;
    sp_trace_name_track(SP_TRACE_AGENT(device->agent), "agent %u: %s", device->agent,
                        device->info.name);
    device->lost = device_lost;
}

/* --- Uses of a command ----------------------------------------------------------------------------- */

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
    *range = (struct sp_range_use){.region = region, .first = first, .end = region->bytes,
                                   .access = access,
                                   .is_read = access != SP_ACCESS_DISCARD,
                                   .is_written = access != SP_ACCESS_READ};
    if (bytes && bytes < region->bytes - first)
        range->end = first + bytes;
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

/* Acquires one range, or finds that copies under way must end first. With the region's lock held. */
static int acquire_locked(struct sp_coherence *coherence, struct sp_range_use *range,
                          bool *is_blocked)
{
    struct sp_region *region = range->region;
    struct supply supply = {0};
    struct sp_transfers transfers = {0};
    size_t under_way = 0;
    for (struct sp_copy *copy = region->copies; copy; copy = copy->next)
        under_way++;
    /* What is going to be overwritten is needed from nobody, and what is current from nobody else. */
    bool is_needed = range->access != SP_ACCESS_DISCARD &&
                     !sp_directory_is_current(&region->directory, range->first, range->end,
                                              coherence->agent);
    size_t most = is_needed ? region->directory.count + 2u : 0;
    int error = supply_fill(&supply, most, most + under_way);
    for (struct sp_copy *copy = region->copies; !error && copy; copy = copy->next) {
        if (!must_wait_for(coherence, copy) || copy->end <= range->first ||
            copy->first >= range->end)
            continue;
        *is_blocked = true;
        wait_for(&supply, copy, coherence);
    }
    if (!error && !*is_blocked && is_needed)
        error = sp_directory_acquire(&region->directory, range->first, range->end,
                                     coherence->agent, SP_ACCESS_READ, NULL, NULL, &transfers);
    if (!error && !*is_blocked) {
        if (sp_trace_is_on)
            trace_acquire(coherence, range, &transfers);
        start_copies(&supply, region, &transfers, coherence);
    }
    supply_finish(&supply);
    sp_transfers_finish(&transfers);
    return error;
}

/* From where the start has come to: until all is acquired, or something must be waited for. Called with
 * nothing waited for; takes the count of one for itself. */
static void go_on(struct sp_coherence *coherence)
{
    atomic_store_explicit(&coherence->waiting_for, 1, memory_order_relaxed);
    while (coherence->next < coherence->count &&
           !atomic_load_explicit(&coherence->error, memory_order_relaxed)) {
        struct sp_range_use *range = &coherence->ranges[coherence->next];
        bool is_blocked = false;
        if (range->region->path == SP_PATH_PRIVATE) {
            pthread_mutex_lock(&range->region->lock);
            int error = acquire_locked(coherence, range, &is_blocked);
            pthread_mutex_unlock(&range->region->lock);
            if (error)
                note_error(coherence, error);
        }
        if (is_blocked) {
            settle(coherence); /* comes back here when the copies have ended */
            return;
        }
        coherence->next++;
    }
    if (coherence->next <= coherence->count) {
        /* One more round, in which there is nothing left to acquire, says that the last copies have ended. */
        coherence->next = coherence->count + 1;
        settle(coherence);
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

void sp_coherence_begin(struct sp_coherence *coherence, struct sp_arena *arena, uint32_t agent)
{
    coherence->agent = agent;
    coherence->next = 0;
    qsort(coherence->ranges, coherence->count, sizeof *coherence->ranges, compare_ranges);
    if (agent != SP_AGENT_HOST) {
        int error = pin_all(coherence, arena);
        if (error)
            note_error(coherence, error);
    }
    go_on(coherence);
}

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

/* What was to be changed is changed, or will be by the host until it unmaps. */
static void note_changes(struct sp_coherence *coherence)
{
    for (unsigned i = 0; i < coherence->count; i++) {
        struct sp_range_use *range = &coherence->ranges[i];
        struct sp_region *region = range->region;
        if (range->access == SP_ACCESS_READ || region->path != SP_PATH_PRIVATE)
            continue;
        /* What is overwritten as a whole is not worth watching. */
        if (coherence->is_map && range->access == SP_ACCESS_READ_WRITE &&
            sp_watched_map_begin(region, range->first, range->end))
            continue;
        pthread_mutex_lock(&region->lock);
        sp_region_note_written(region, range->first, range->end, coherence->agent);
        pthread_mutex_unlock(&region->lock);
    }
}

void sp_coherence_end(struct sp_coherence *coherence, bool is_done)
{
    if (!coherence->ranges)
        return;
    if (is_done)
        note_changes(coherence);
    if (coherence->agent != SP_AGENT_HOST)
        unpin_all(coherence);
    for (unsigned i = 0; i < coherence->count; i++)
        sp_arena_end_use(coherence->ranges[i].region);
    free(coherence->ranges);
    memset(coherence, 0, sizeof *coherence);
}
