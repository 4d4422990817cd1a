/* Which span is bound on which agent, and what there is room for.
 *
 * A binding can fail while the device lives: others may have taken its memory. Then it is an
 * orphan: the device does not do what was submitted behind it (docs/device-process.md), and the
 * next command that needs the span binds it anew. For a while the device counts as having no more
 * memory than it had bound then, so that what nobody uses makes room for that one.
 *
 * A span is bound when a command first uses it there, pinned while commands use it, and taken off
 * when the span ends, when room is needed (the longest unused goes first, after what only that
 * device holds of it has gone to the host), when its path changes, or with the device. A command
 * that finds no room while other commands have pins waits, in order, without pins of its own; so it
 * waits only for commands that will end.
 *
 * Of a pooled region (pool.h) each part is bound by itself: to memory of its home, and on other
 * members of the pool, as *peers* of that binding, to the same memory. A peer's work is sent when
 * the home's is done, and a command starts when what it pinned is ready. The home's memory is free
 * again when its peers have let go, too. What is no good any more, what failed or a peer of memory
 * that died with its device, is an orphan: it stays while commands have pins on it, and nobody gets
 * a new one.
 *
 * One lock for all of it. Works are submitted with it held, so that a device's ring has them in the
 * order in which bindings changed.
 */
#include <errno.h>
#include <stdlib.h>

#include "svm/atomic_part.h"
#include "svm/coherence_internal.h"
#include "svm/pool.h"
#include "svm/room_line.h"
#include "svm/trace.h"
#include "util/alloc.h"
#include "util/time.h"

/* How long a device whose memory others have taken is not asked for more: asking repeats what is
 * under way there, and others' programs come and go in seconds. */
#define SHORT_NS UINT64_C(1000000000)

struct agent {
    struct sp_device *device; /* NULL: no such agent */
    uint64_t used_bytes;      /* private backings, and what is leaving */
    uint64_t bound_bytes;     /* of these, what is known to be there */
    uint64_t leaving_bytes;   /* of parts that were taken off while peers have them mapped */
    /* When a binding last found no memory, and what was bound then, or has been since; 0: never.
     * And which shortage of any agent's that was. */
    uint64_t short_ns, short_bytes, shortage;
    struct sp_binding *newest, *oldest;
    uint32_t life;    /* of the device: what is bound is bound in this one */
    unsigned pinning; /* commands that have pins on its memory */
    bool is_losing;   /* it died, and directories may still say that it has what it had */
};

static struct {
    pthread_mutex_t lock;
    struct agent agents[SP_MAX_AGENTS];
    struct sp_room_line line;
    uint64_t num_asked;     /* bindings that were ever asked for */
    uint64_t num_shortages; /* SP_ALL_SHORTAGES, and bindings that found no memory */
} bindings = {.lock = PTHREAD_MUTEX_INITIALIZER, .num_shortages = SP_ALL_SHORTAGES};

void sp_bindings_lock(void)
{
    pthread_mutex_lock(&bindings.lock);
}

void sp_bindings_unlock(void)
{
    pthread_mutex_unlock(&bindings.lock);
}

struct sp_device *sp_agent_device(uint32_t agent)
{
    return bindings.agents[agent].device;
}

void sp_agent_submit(uint32_t agent, struct sp_work *work)
{
    struct sp_device *device = sp_agent_device(agent);
    device->ops->submit(device, work);
}

uint32_t sp_agent_life(uint32_t agent)
{
    /* Relaxed: a work for a life that has just ended fails. */
    return atomic_load_explicit(&sp_agent_device(agent)->life, memory_order_relaxed);
}

void sp_bindings_add_agent(struct sp_device *device,
                           void (*lost)(struct sp_device *device, const char *reason))
{
    sp_bindings_lock();
    bindings.agents[device->agent].device = device;
    /* In this order (driver.h): a death in between is told, or is in the number read. */
    atomic_store_explicit(&device->lost, lost, memory_order_seq_cst);
    bindings.agents[device->agent].life = atomic_load_explicit(&device->life, memory_order_seq_cst);
    sp_bindings_unlock();
}

/* --- One binding
 * ------------------------------------------------------------------------------------ */

static void unreference(struct sp_binding *binding)
{
    /* Acquire and release: what was done with it comes before its end. */
    if (atomic_fetch_sub_explicit(&binding->references, 1, memory_order_acq_rel) == 1)
        free(binding);
}

static struct sp_coherence *take_ready(void);
static void go_on_with(struct sp_coherence *ready);

/* Of no use to anybody from now on. With the lock held. */
static void orphan(struct sp_binding *binding)
{
    binding->is_orphan = true;
    if (binding->backing == SP_BACKING_HOME)
        sp_arena_show_home_again(binding->span->arena, binding->agent);
    if (binding->pins == 0)
        sp_binding_take_off(binding);
}

/* It has no memory for more than what is bound, of which nothing that is still under way, or failed
 * as well, is any. With the lock held. */
static void note_shortage(struct agent *agent)
{
    agent->short_ns = sp_time_ns();
    agent->short_bytes = agent->bound_bytes;
    agent->shortage = ++bindings.num_shortages;
}

/* What a backing of its own has become. With the lock held. */
static void note_backing(struct sp_binding *binding, int error)
{
    struct agent *agent = &bindings.agents[binding->agent];
    binding->has_memory = !error;
    if (!error)
        agent->bound_bytes += binding->bytes;
    else if (error == -ENOSPC)
        note_shortage(agent);
    if (agent->short_bytes < agent->bound_bytes)
        agent->short_bytes = agent->bound_bytes;
}

/* Its memory, which was no other agent's, is free. With the lock held. */
static void give_back(struct agent *agent, const struct sp_binding *binding)
{
    agent->used_bytes -= binding->bytes;
    if (binding->has_memory)
        agent->bound_bytes -= binding->bytes;
}

static void trace_binding(const struct sp_binding *binding, int error)
{
    sp_trace_span(SP_TRACE_AGENT(binding->agent), "binding",
                  error                                 ? "bind part (failed)"
                  : binding->backing == SP_BACKING_PEER ? "bind part of a peer"
                                                        : "bind part",
                  binding->asked_ns, sp_time_ns(), "\"part\":%u,\"start\":\"%p\",\"bytes\":%llu",
                  binding->part, (void *)binding->start, (unsigned long long)binding->bytes);
}

/* What it means for a command that it waited for a binding which failed. Who does so because it is
 * strict has learned of another failure, often of this very one before it was told: only what was
 * asked for since then was tried for this command. A death is everybody's error. */
static void note_failure(struct sp_coherence *coherence, const struct sp_binding *binding,
                         int error)
{
    if (error == -EIO || binding->asked > coherence->asked_before)
        sp_coherence_note_error(coherence, error);
    else /* relaxed: it is read by who settles last */
        atomic_store_explicit(&coherence->binds_again, true, memory_order_relaxed);
}

/* It is bound, or cannot be. Those that wait go on, and the peers of a part are bound now. */
static void is_bound(struct sp_binding *binding, int error)
{
    struct sp_binding *failed = NULL;
    if (sp_trace_is_on && binding->part != SP_ALL_PARTS)
        trace_binding(binding, error);
    sp_bindings_lock();
    binding->is_ready = true;
    binding->error = error;
    struct sp_waiter *waiter = binding->waiters;
    binding->waiters = NULL;
    for (struct sp_binding *seer = binding->seers, *next; seer; seer = next) {
        next = seer->next_seer;
        if (error || !seer->span) {
            seer->asked = binding->asked; /* this failure is its own, and no newer */
            seer->next_seer = failed;
            failed = seer;
        } else {
            sp_agent_submit(seer->agent, &seer->bind);
        }
    }
    binding->seers = NULL;
    if (binding->span && binding->backing == SP_BACKING_PRIVATE)
        note_backing(binding, error);
    if (error && binding->span)
        orphan(binding);
    sp_bindings_unlock();
    while (failed) {
        struct sp_binding *seer = failed;
        failed = seer->next_seer; /* it may be gone afterwards */
        is_bound(seer, error ? error : -EIO);
    }
    while (waiter) {
        struct sp_waiter *next = waiter->next;
        if (error)
            note_failure(waiter->coherence, binding, error);
        sp_coherence_settle(waiter->coherence);
        free(waiter);
        waiter = next;
    }
    unreference(binding);
}

static void bind_finished(struct sp_work *work, int error)
{
    struct sp_binding *binding =
        (struct sp_binding *)((char *)work - offsetof(struct sp_binding, bind));
    is_bound(binding, error == -ENOMEM ? -ENOSPC : error); /* it has less than it thought */
}

/* With the lock held: the agent of a peer has let go of the memory. */
static void end_peer(struct sp_binding *peer)
{
    struct sp_binding *home = peer->home;
    struct agent *agent = &bindings.agents[home->agent];
    peer->home = NULL;
    if (--home->peers == 0 && !home->span) {
        agent->leaving_bytes -= home->bytes;
        give_back(agent, home);
    }
    unreference(home);
}

static void unbind_finished(struct sp_work *work, int error)
{
    struct sp_binding *binding =
        (struct sp_binding *)((char *)work - offsetof(struct sp_binding, unbind));
    struct sp_coherence *ready = NULL;
    (void)error; /* where the device died it has let go, too */
    if (binding->backing == SP_BACKING_PEER) {
        sp_bindings_lock();
        end_peer(binding);
        ready = take_ready();
        sp_bindings_unlock();
    }
    unreference(binding);
    go_on_with(ready);
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
    struct agent *agent = &bindings.agents[binding->agent];
    struct sp_binding **link = &span->bindings;
    while (*link != binding)
        link = &(*link)->next;
    *link = binding->next;
    unlink_from_agent(agent, binding);
    if (binding->peers)
        agent->leaving_bytes += binding->bytes;
    else if (binding->backing == SP_BACKING_PRIVATE)
        give_back(agent, binding);
    else if (binding->backing == SP_BACKING_HOME)
        sp_atomic_unmark((uintptr_t)binding->start, binding->bytes, binding->agent);
    binding->span = NULL;
}

void sp_binding_take_off(struct sp_binding *binding)
{
    binding->unbind.kind = SP_WORK_UNBIND;
    binding->unbind.range.start = (uintptr_t)binding->start;
    binding->unbind.range.bytes = binding->bytes;
    binding->unbind.finished = unbind_finished;
    binding->unbind.life = bindings.agents[binding->agent].life;
    unlink_binding(binding);
    sp_agent_submit(binding->agent, &binding->unbind); /* its reference was the lists' */
}

void sp_coherence_unbind(struct sp_span *span)
{
    sp_bindings_lock();
    while (span->bindings)
        sp_binding_take_off(span->bindings);
    sp_bindings_unlock();
}

/* The memory of a part is gone with its home. */
static void orphan_peers(struct sp_binding *home)
{
    for (struct sp_binding *peer = home->span->bindings, *next; peer; peer = next) {
        next = peer->next;
        if (peer->home == home)
            orphan(peer);
    }
}

void sp_bindings_forget(uint32_t number)
{
    struct agent *agent = &bindings.agents[number];
    sp_bindings_lock();
    agent->is_losing = true;
    /* Works of whoever read the number before are for the life that ended, and fail. */
    agent->life = sp_agent_life(number);
    while (agent->newest) {
        struct sp_binding *binding = agent->newest;
        if (binding->peers)
            orphan_peers(binding);
        unlink_binding(binding);
        if (binding->backing == SP_BACKING_PEER)
            end_peer(binding);
        unreference(binding);
    }
    sp_bindings_unlock();
}

void sp_bindings_recover(uint32_t number)
{
    sp_bindings_lock();
    bindings.agents[number].is_losing = false;
    sp_bindings_unlock();
    sp_bindings_retry();
}

/* --- Room
 * ------------------------------------------------------------------------------------------- */

static int evict_for_room(struct sp_region *region, void *data)
{
    const struct sp_binding *binding = data;
    if (binding->part == SP_ALL_PARTS)
        return sp_region_evict(region, binding->agent, 0, region->bytes, "eviction");
    uint64_t first = (uint64_t)(binding->start - region->start), end = first + binding->bytes;
    return sp_region_evict(region, binding->agent, first, end < region->bytes ? end : region->bytes,
                           "eviction");
}

/* What was evicted is taken off, and a part everywhere. No command has pins on it. */
static void take_off_evicted(struct sp_binding *binding)
{
    struct sp_binding *peer = binding->span->bindings, *next;
    for (; peer && binding->peers; peer = next) {
        next = peer->next;
        if (peer->home == binding)
            sp_binding_take_off(peer);
    }
    sp_binding_take_off(binding);
}

/* Makes room on an agent: the longest unused span goes to the host. -ENOSPC where commands have
 * pinned every span, -EBUSY where another device is copying from those that they have not. */
static int evict_one(struct agent *agent)
{
    int result = -ENOSPC;
    for (struct sp_binding *binding = agent->oldest; binding; binding = binding->newer) {
        if (binding->pins > 0 || binding->is_orphan || binding->backing != SP_BACKING_PRIVATE)
            continue;
        int error = sp_span_for_each_region(binding->span, evict_for_room, binding);
        if (!error) {
            take_off_evicted(binding);
            return 0;
        }
        if (error != -EBUSY)
            return error;
        result = -EBUSY;
    }
    return result;
}

/* Whether it has room, as far as is known. For a command that has seen it short of memory since it
 * first began that is so however long that took: the second try is the last one. */
static bool has_room(const struct agent *agent, uint64_t bytes, uint64_t shortages_before)
{
    uint64_t all = sp_device_memory(agent->device);
    bool is_short =
        agent->short_ns && agent->short_bytes < all &&
        (agent->shortage > shortages_before || sp_time_ns() - agent->short_ns < SHORT_NS);
    return agent->used_bytes + bytes <= (is_short ? agent->short_bytes : all);
}

/* Whether it may have, though it was short of memory not long ago. */
static bool may_have_room(const struct agent *agent, uint64_t bytes)
{
    return agent->used_bytes + bytes <= sp_device_memory(agent->device);
}

uint64_t sp_agent_free_bytes(uint32_t number)
{
    const struct agent *agent = &bindings.agents[number];
    uint64_t all = sp_device_memory(agent->device);
    return all > agent->used_bytes ? all - agent->used_bytes : 0;
}

static struct sp_binding *find_binding(struct sp_span *span, uint32_t part, uint32_t agent)
{
    struct sp_binding *binding = span->bindings;
    while (binding && (binding->agent != agent || binding->part != part))
        binding = binding->next;
    return binding;
}

/* A binding that is not in any list yet. -ENOMEM. */
static int create_binding(struct sp_span *span, uint32_t part, uint32_t number,
                          enum sp_backing backing, struct sp_binding **created)
{
    struct sp_binding *binding = sp_alloc(sizeof *binding);
    if (!binding)
        return -ENOMEM;
    binding->span = span;
    binding->part = part;
    binding->agent = number;
    binding->backing = backing;
    binding->asked = ++bindings.num_asked;
    binding->asked_ns = sp_trace_is_on ? sp_time_ns() : 0;
    binding->start = span->start;
    binding->bytes = span->granules * SP_GRANULE_BYTES;
    if (part != SP_ALL_PARTS) {
        binding->start += span->pool->parts[part].first * SP_GRANULE_BYTES;
        binding->bytes = span->pool->parts[part].granules * SP_GRANULE_BYTES;
    }
    atomic_init(&binding->references, 2); /* the lists, and the work */
    binding->bind.kind = backing == SP_BACKING_PEER ? SP_WORK_BIND_PEER : SP_WORK_BIND;
    binding->bind.range.start = (uintptr_t)binding->start;
    binding->bind.range.bytes = binding->bytes;
    binding->bind.range.is_home = backing == SP_BACKING_HOME;
    binding->bind.finished = bind_finished;
    binding->bind.life = bindings.agents[number].life;
    *created = binding;
    return 0;
}

static void link_binding(struct sp_binding *binding)
{
    struct agent *agent = &bindings.agents[binding->agent];
    binding->next = binding->span->bindings;
    binding->span->bindings = binding;
    link_as_newest(agent, binding);
    agent->used_bytes += binding->backing == SP_BACKING_PRIVATE ? binding->bytes : 0;
    if (binding->backing == SP_BACKING_HOME)
        sp_atomic_mark((uintptr_t)binding->start, binding->bytes, binding->agent);
}

/* Binds a span, or a part, that is not bound yet and that there is room for. -ENOMEM. */
static int bind_span(struct sp_span *span, uint32_t part, uint32_t number, bool is_home,
                     struct sp_binding **bound)
{
    int error =
        create_binding(span, part, number, is_home ? SP_BACKING_HOME : SP_BACKING_PRIVATE, bound);
    if (error)
        return error;
    link_binding(*bound);
    sp_agent_submit(number, &(*bound)->bind);
    return 0;
}

/* Binds a part to the memory that `home` has bound, or will have. -ENOMEM. */
static int bind_peer(struct sp_binding *home, uint32_t number, struct sp_binding **bound)
{
    int error = create_binding(home->span, home->part, number, SP_BACKING_PEER, bound);
    if (error)
        return error;
    struct sp_binding *peer = *bound;
    link_binding(peer);
    peer->bind.range.source = home->agent;
    peer->home = home;
    home->peers++;
    /* Relaxed: the lists hold a reference. */
    atomic_fetch_add_explicit(&home->references, 1, memory_order_relaxed);
    if (home->is_ready) {
        sp_agent_submit(number, &peer->bind);
    } else {
        peer->next_seer = home->seers;
        home->seers = peer;
    }
    return 0;
}

/* Makes room for a private backing. Errors of evict_one; -EBUSY also where peers are about to let
 * go of as much. */
static int make_room(struct agent *agent, uint64_t bytes, uint64_t shortages_before)
{
    while (!has_room(agent, bytes, shortages_before)) {
        uint64_t leaving = bytes < agent->leaving_bytes ? bytes : agent->leaving_bytes;
        if (has_room(agent, bytes - leaving, shortages_before))
            return -EBUSY;
        int error = evict_one(agent);
        /* Where nobody is going to leave room it is asked all the same, and says so itself. */
        bool is_hopeless = error == -ENOSPC && !agent->pinning;
        if (is_hopeless && may_have_room(agent, bytes))
            return 0;
        if (is_hopeless && may_have_room(agent, bytes - leaving))
            return -EBUSY;
        if (error)
            return error;
    }
    return 0;
}

/* As bind_span, making room first. Errors of make_room, too. */
static int bind_with_room(const struct sp_coherence *coherence, struct sp_span *span, uint32_t part,
                          uint32_t number, struct sp_binding **bound)
{
    bool is_home = sp_span_is_home(span);
    uint64_t granules = part == SP_ALL_PARTS ? span->granules : span->pool->parts[part].granules;
    int error = is_home ? 0
                        : make_room(&bindings.agents[number], granules * SP_GRANULE_BYTES,
                                    coherence->shortages_before);
    return error ? error : bind_span(span, part, number, is_home, bound);
}

int sp_bindings_bind_if_room(struct sp_span *span, uint32_t agent)
{
    struct sp_binding *binding = find_binding(span, SP_ALL_PARTS, agent);
    bool is_home = sp_span_is_home(span);
    if (binding)
        return binding->is_orphan ? -ENOSPC : 0;
    if (!is_home &&
        !has_room(&bindings.agents[agent], span->granules * SP_GRANULE_BYTES, UINT64_MAX))
        return -ENOSPC;
    return bind_span(span, SP_ALL_PARTS, agent, is_home, &binding);
}

static int bind_home(struct sp_span *span, uint32_t agent)
{
    struct sp_binding *binding = find_binding(span, SP_ALL_PARTS, agent);
    if (binding)
        return binding->is_orphan ? -EBUSY : 0;
    return bind_span(span, SP_ALL_PARTS, agent, true, &binding);
}

/* --- Pins of commands
 * ------------------------------------------------------------------------------- */

static void unpin(struct sp_binding **pinned)
{
    struct sp_binding *binding = *pinned;
    *pinned = NULL;
    if (!binding)
        return;
    if (--binding->pins == 0 && binding->is_orphan && binding->span)
        sp_binding_take_off(binding);
    unreference(binding);
}

static void unpin_ranges(struct sp_coherence *coherence)
{
    for (unsigned i = 0; i < coherence->count; i++) {
        unpin(&coherence->ranges[i].binding);
        unpin(&coherence->ranges[i].home);
    }
}

/* `home`: the binding whose peer it is to be, or NULL. */
static int pin(const struct sp_coherence *coherence, struct sp_span *span, uint32_t part,
               uint32_t number, struct sp_binding *home, struct sp_binding **pinned)
{
    struct agent *agent = &bindings.agents[number];
    struct sp_binding *binding = find_binding(span, part, number);
    if (agent->is_losing || (binding && binding->is_orphan))
        return -EBUSY;
    if (binding) {
        unlink_from_agent(agent, binding);
        link_as_newest(agent, binding);
    } else {
        int error = home ? bind_peer(home, number, &binding)
                         : bind_with_room(coherence, span, part, number, &binding);
        if (error)
            return error;
    }
    binding->pins++;
    /* Relaxed: the lists hold a reference. */
    atomic_fetch_add_explicit(&binding->references, 1, memory_order_relaxed);
    *pinned = binding;
    return 0;
}

static int pin_range(const struct sp_coherence *coherence, struct sp_range_use *range)
{
    struct sp_span *span = range->region->span;
    uint32_t number = coherence->agent;
    int error = 0;
    if (!range->is_pooled)
        return pin(coherence, span, SP_ALL_PARTS, number, NULL, &range->binding);
    range->memory_life = bindings.agents[range->memory].life;
    if (range->memory != number)
        error = pin(coherence, span, range->part, range->memory, NULL, &range->home);
    return error ? error : pin(coherence, span, range->part, number, range->home, &range->binding);
}

/* Whether a binding of the agent has to be there before the work is submitted: one of the arena's
 * home path, which a kernel may reach without naming it. */
static bool is_awaited(const struct sp_coherence *coherence, const struct sp_binding *binding)
{
    return !binding->is_ready && binding->backing == SP_BACKING_HOME && !binding->is_orphan &&
           binding->span->arena == coherence->arena;
}

static bool is_range_awaited(const struct sp_coherence *coherence, const struct sp_range_use *range)
{
    return (range->is_pooled || coherence->is_strict) && !range->binding->is_ready;
}

/* Lets it wait for what is not bound yet and does not only have to be bound in front of it. All or
 * nothing: -ENOMEM. */
static int wait_for_bindings(struct sp_coherence *coherence)
{
    const struct agent *agent = &bindings.agents[coherence->agent];
    struct sp_binding *newest =
        coherence->is_strict && coherence->reaches_home ? agent->newest : NULL;
    struct sp_supply supply = {0};
    size_t count = 0;
    for (unsigned i = 0; i < coherence->count; i++)
        count += is_range_awaited(coherence, &coherence->ranges[i]);
    for (struct sp_binding *binding = newest; binding; binding = binding->older)
        count += is_awaited(coherence, binding);
    int error = count ? sp_supply_fill(&supply, 0, count) : 0;
    for (unsigned i = 0; !error && i < coherence->count; i++)
        if (is_range_awaited(coherence, &coherence->ranges[i]))
            sp_supply_wait(&supply, &coherence->ranges[i].binding->waiters, coherence);
    for (struct sp_binding *binding = newest; !error && binding; binding = binding->older)
        if (is_awaited(coherence, binding))
            sp_supply_wait(&supply, &binding->waiters, coherence);
    sp_supply_finish(&supply);
    return error;
}

static void count_pinning(uint32_t agents, int more)
{
    for (uint32_t i = 0; i < SP_MAX_AGENTS; i++)
        if (agents >> i & 1)
            bindings.agents[i].pinning += (unsigned)more;
}

/* All or nothing. A kernel may follow pointers to any region of the home path, so all of them are
 * bound. */
static int pin_ranges(struct sp_coherence *coherence)
{
    coherence->work->life = bindings.agents[coherence->agent].life;
    int error = 0;
    if (coherence->reaches_home)
        error = sp_arena_for_each_new_home(coherence->arena, bind_home, coherence->agent);
    for (unsigned i = 0; !error && i < coherence->count; i++)
        sp_path_decide(coherence->ranges[i].region, coherence->agent, coherence->is_migration);
    for (unsigned i = 0; !error && i < coherence->count; i++)
        error = pin_range(coherence, &coherence->ranges[i]);
    if (!error)
        error = wait_for_bindings(coherence);
    if (error)
        unpin_ranges(coherence);
    else if (coherence->count > 0)
        count_pinning(coherence->agents, 1);
    return error;
}

/* Whether something will end that stands in the way: another command, a copy, a peer that lets go,
 * the loss of a device. */
static bool has_hope(const struct sp_coherence *coherence, int error)
{
    if (error != -ENOSPC)
        return error == -EBUSY;
    for (uint32_t i = 0; i < SP_MAX_AGENTS; i++)
        if (coherence->agents >> i & 1 && bindings.agents[i].pinning > 0)
            return true;
    return false;
}

/* As sp_bindings_pin, with the lock held. */
static bool pin_or_wait(struct sp_coherence *coherence)
{
    /* Who waits already goes first. */
    int error = coherence->count && sp_room_line_has(&bindings.line, coherence->agents)
                    ? -EBUSY
                    : pin_ranges(coherence);
    bool must_wait = has_hope(coherence, error);
    if (must_wait)
        sp_room_line_add(&bindings.line, coherence);
    else if (error)
        sp_coherence_note_error(coherence, error);
    return !must_wait;
}

bool sp_bindings_pin(struct sp_coherence *coherence, struct sp_arena *arena)
{
    coherence->arena = arena;
    sp_bindings_lock();
    coherence->asked_before = bindings.num_asked;
    if (!coherence->shortages_before)
        coherence->shortages_before = bindings.num_shortages;
    bool is_done = pin_or_wait(coherence);
    sp_bindings_unlock();
    return is_done;
}

/* Whether it has room now, or never will. */
static bool leaves_line(struct sp_coherence *coherence)
{
    /* What others have asked for meanwhile was not tried for it. */
    coherence->asked_before = bindings.num_asked;
    coherence->pin_error = pin_ranges(coherence);
    return !has_hope(coherence, coherence->pin_error);
}

/* Takes those off the line of waiting commands that have room now, or never will. They are a list,
 * with `pin_error` set. */
static struct sp_coherence *take_ready(void)
{
    return sp_room_line_take(&bindings.line, leaves_line);
}

static void go_on_with(struct sp_coherence *ready)
{
    while (ready) {
        struct sp_coherence *coherence = ready;
        ready = coherence->line.next; /* it may be gone afterwards */
        sp_coherence_pinned(coherence, coherence->pin_error);
    }
}

static void count_use(const struct sp_coherence *coherence, const struct sp_range_use *range)
{
    if (range->region->path != SP_PATH_PRIVATE || range->region->span->pool)
        return;
    if (coherence->is_migration)
        sp_path_reset(range->region);
    else
        sp_path_count(range->region, coherence->agent, range->has_moved);
}

/* With the lock held. */
static void drop_pins(struct sp_coherence *coherence)
{
    bool has_pins = false;
    for (unsigned i = 0; i < coherence->count; i++)
        has_pins |= coherence->ranges[i].binding != NULL;
    unpin_ranges(coherence);
    if (has_pins)
        count_pinning(coherence->agents, -1);
}

bool sp_bindings_pin_again(struct sp_coherence *coherence)
{
    sp_bindings_lock();
    drop_pins(coherence);
    struct sp_coherence *ready = take_ready();
    bool is_done = pin_or_wait(coherence);
    sp_bindings_unlock();
    go_on_with(ready);
    return is_done;
}

void sp_bindings_unpin(struct sp_coherence *coherence)
{
    sp_bindings_lock();
    for (unsigned i = 0; i < coherence->count; i++)
        count_use(coherence, &coherence->ranges[i]);
    drop_pins(coherence);
    struct sp_coherence *ready = take_ready();
    sp_bindings_unlock();
    go_on_with(ready);
}

void sp_bindings_retry(void)
{
    sp_bindings_lock();
    struct sp_coherence *ready = take_ready();
    sp_bindings_unlock();
    go_on_with(ready);
}
