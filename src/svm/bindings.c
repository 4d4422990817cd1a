/* Which span is bound on which agent, and what there is room for.
 *
 * A span is bound when a command first uses it there, pinned while commands use it, and taken off when the
 * span ends, when room is needed (the longest unused goes first, after what only that device holds of it has gone to the
 * host), when its path changes, or with the device. A command that finds no room while other commands have pins waits,
 * in order, without pins of its own; so it waits only for commands that will end.
 *
 * One lock for all of it. Works are submitted with it held, so that a device's ring has them in the order in
 * which bindings changed.
 */
#include <errno.h>
#include <stdlib.h>

#include "svm/coherence_internal.h"
#include "util/alloc.h"

struct agent {
    struct sp_device *device; /* NULL: no such agent */
    uint64_t used_bytes;      /* private backings */
    struct sp_binding *newest, *oldest;
    uint32_t life;    /* of the device: what is bound is bound in this one */
    unsigned pinning; /* commands that have pins */
    struct sp_coherence *first_waiting, *last_waiting; /* for room, in order */
};

static struct {
    pthread_mutex_t lock;
    struct agent agents[SP_MAX_AGENTS];
} bindings = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

void sp_bindings_add_agent(struct sp_device *device)
{
    bindings.agents[device->agent].device = device;
    bindings.agents[device->agent].life = sp_agent_life(device->agent);
}

/* --- One binding ------------------------------------------------------------------------------------ */

static void unreference(struct sp_binding *binding)
{
    /* Acquire and release: what was done with it comes before its end. */
    if (atomic_fetch_sub_explicit(&binding->references, 1, memory_order_acq_rel) == 1)
        free(binding);
}

static void bind_finished(struct sp_work *work, int error)
{
    (void)error; /* a device that cannot bind what fits it has died, and is told of as such */
    unreference((struct sp_binding *)((char *)work - offsetof(struct sp_binding, bind)));
}

static void unbind_finished(struct sp_work *work, int error)
{
    (void)error;
    unreference((struct sp_binding *)((char *)work - offsetof(struct sp_binding, unbind)));
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
    struct agent *agent = &bindings.agents[binding->agent];
    struct sp_binding **link = &span->bindings;
    while (*link != binding)
        link = &(*link)->next;
    *link = binding->next;
    unlink_from_agent(agent, binding);
    if (!binding->is_home)
        agent->used_bytes -= span_bytes(span);
    binding->span = NULL;
}

void sp_binding_take_off(struct sp_binding *binding)
{
    binding->unbind.kind = SP_WORK_UNBIND;
    binding->unbind.range.start = (uintptr_t)binding->span->start;
    binding->unbind.range.bytes = span_bytes(binding->span);
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

void sp_bindings_forget(uint32_t number)
{
    struct agent *agent = &bindings.agents[number];
    sp_bindings_lock();
    /* Works of whoever read the number before are for the life that ended, and fail. */
    agent->life = sp_agent_life(number);
    while (agent->newest) {
        struct sp_binding *binding = agent->newest;
        unlink_binding(binding);
        unreference(binding);
    }
    sp_bindings_unlock();
}

/* --- Room ------------------------------------------------------------------------------------------- */

static int evict_for_room(struct sp_region *region, uint32_t agent)
{
    return sp_region_evict(region, agent, "eviction");
}

/* Makes room on an agent: the longest unused span goes to the host. -ENOSPC where commands have pinned every span, -EBUSY
 * where another device is copying from those that they have not. */
static int evict_one(struct agent *agent)
{
    int result = -ENOSPC;
    for (struct sp_binding *binding = agent->oldest; binding; binding = binding->newer) {
        if (binding->pins > 0 || binding->is_home)
            continue;
        int error = sp_span_for_each_region(binding->span, evict_for_room, binding->agent);
        if (!error) {
            sp_binding_take_off(binding);
            return 0;
        }
        if (error != -EBUSY)
            return error;
        result = -EBUSY;
    }
    return result;
}

static bool has_room(const struct agent *agent, uint64_t bytes)
{
    return agent->used_bytes + bytes <= agent->device->info.global_memory_bytes;
}

static struct sp_binding *find_binding(struct sp_span *span, uint32_t agent)
{
    struct sp_binding *binding = span->bindings;
    while (binding && binding->agent != agent)
        binding = binding->next;
    return binding;
}

/* Binds a span that is not bound yet and that there is room for. -ENOMEM. */
static int bind_span(struct sp_span *span, uint32_t number, bool is_home,
                     struct sp_binding **bound)
{
    struct agent *agent = &bindings.agents[number];
    struct sp_binding *binding = sp_alloc(sizeof *binding);
    if (!binding)
        return -ENOMEM;
    binding->span = span;
    binding->agent = number;
    binding->is_home = is_home;
    binding->next = span->bindings;
    span->bindings = binding;
    link_as_newest(agent, binding);
    agent->used_bytes += is_home ? 0 : span_bytes(span);
    atomic_init(&binding->references, 2); /* the lists, and the work */
    binding->bind.kind = SP_WORK_BIND;
    binding->bind.range.start = (uintptr_t)span->start;
    binding->bind.range.bytes = span_bytes(span);
    binding->bind.range.is_home = is_home;
    binding->bind.finished = bind_finished;
    binding->bind.life = agent->life;
    sp_agent_submit(number, &binding->bind);
    *bound = binding;
    return 0;
}

/* As bind_span, making room first. Errors of evict_one, too. */
static int bind_with_room(struct sp_span *span, uint32_t number, struct sp_binding **bound)
{
    struct agent *agent = &bindings.agents[number];
    bool is_home = sp_span_is_home(span);
    int error = 0;
    while (!error && !is_home && !has_room(agent, span_bytes(span)))
        error = evict_one(agent);
    return error ? error : bind_span(span, number, is_home, bound);
}

int sp_bindings_bind_if_room(struct sp_span *span, uint32_t agent)
{
    struct sp_binding *binding;
    bool is_home = sp_span_is_home(span);
    if (find_binding(span, agent))
        return 0;
    if (!is_home && !has_room(&bindings.agents[agent], span_bytes(span)))
        return -ENOSPC;
    return bind_span(span, agent, is_home, &binding);
}

static int bind_home(struct sp_span *span, uint32_t agent)
{
    struct sp_binding *binding;
    return find_binding(span, agent) ? 0 : bind_span(span, agent, true, &binding);
}

int sp_coherence_bind_home(struct sp_arena *arena, uint32_t agent)
{
    sp_bindings_lock();
    int error = sp_arena_for_each_new_home(arena, bind_home, agent);
    sp_bindings_unlock();
    return error;
}

/* --- Pins of commands ------------------------------------------------------------------------------- */

static void unpin_ranges(struct sp_coherence *coherence)
{
    for (unsigned i = 0; i < coherence->count; i++) {
        struct sp_range_use *range = &coherence->ranges[i];
        if (!range->binding)
            continue;
        range->binding->pins--;
        unreference(range->binding);
        range->binding = NULL;
    }
}

static int pin_range(struct sp_range_use *range, uint32_t number)
{
    struct agent *agent = &bindings.agents[number];
    struct sp_span *span = range->region->span;
    struct sp_binding *binding = find_binding(span, number);
    if (binding) {
        unlink_from_agent(agent, binding);
        link_as_newest(agent, binding);
    } else {
        int error = bind_with_room(span, number, &binding);
        if (error)
            return error;
    }
    binding->pins++;
    /* Relaxed: the lists hold a reference. */
    atomic_fetch_add_explicit(&binding->references, 1, memory_order_relaxed);
    range->binding = binding;
    return 0;
}

/* All or nothing. A kernel may follow pointers to any region of the home path, so all of them are bound. */
static int pin_ranges(struct sp_coherence *coherence)
{
    coherence->life = bindings.agents[coherence->agent].life;
    int error = sp_arena_for_each_new_home(coherence->arena, bind_home, coherence->agent);
    for (unsigned i = 0; !error && i < coherence->count; i++)
        sp_path_decide(coherence->ranges[i].region, coherence->agent, coherence->is_migration);
    for (unsigned i = 0; !error && i < coherence->count; i++)
        error = pin_range(&coherence->ranges[i], coherence->agent);
    if (error)
        unpin_ranges(coherence);
    else
        bindings.agents[coherence->agent].pinning += coherence->count > 0;
    return error;
}

/* Whether something will end that makes room: another command, or a copy. */
static bool has_hope(const struct agent *agent, int error)
{
    return error == -EBUSY || (error == -ENOSPC && agent->pinning > 0);
}

bool sp_bindings_pin(struct sp_coherence *coherence, struct sp_arena *arena)
{
    struct agent *agent = &bindings.agents[coherence->agent];
    coherence->arena = arena;
    sp_bindings_lock();
    /* Who waits already goes first. */
    bool is_behind = agent->first_waiting && coherence->count > 0;
    int error = is_behind ? -ENOSPC : pin_ranges(coherence);
    bool must_wait = is_behind || has_hope(agent, error);
    if (must_wait) {
        coherence->next_waiting = NULL;
        *(agent->first_waiting ? &agent->last_waiting->next_waiting : &agent->first_waiting) =
            coherence;
        agent->last_waiting = coherence;
    }
    sp_bindings_unlock();
    if (error && !must_wait)
        sp_coherence_note_error(coherence, error);
    return !must_wait;
}

/* Takes those off the list of waiting commands that have room now, or never will. They are a list again, with
 * `pin_error` set. */
static struct sp_coherence *take_ready(struct agent *agent)
{
    struct sp_coherence *first = NULL, **last = &first;
    while (agent->first_waiting) {
        struct sp_coherence *coherence = agent->first_waiting;
        int error = pin_ranges(coherence);
        if (has_hope(agent, error))
            break;
        agent->first_waiting = coherence->next_waiting;
        coherence->next_waiting = NULL;
        coherence->pin_error = error;
        *last = coherence;
        last = &coherence->next_waiting;
    }
    return first;
}

static void go_on_with(struct sp_coherence *ready)
{
    while (ready) {
        struct sp_coherence *coherence = ready;
        ready = coherence->next_waiting; /* it may be gone afterwards */
        sp_coherence_pinned(coherence, coherence->pin_error);
    }
}

static void count_use(const struct sp_coherence *coherence, const struct sp_range_use *range)
{
    if (range->region->path != SP_PATH_PRIVATE)
        return;
    if (coherence->is_migration)
        sp_path_reset(range->region);
    else
        sp_path_count(range->region, coherence->agent, range->has_moved);
}

void sp_bindings_unpin(struct sp_coherence *coherence)
{
    struct agent *agent = &bindings.agents[coherence->agent];
    bool has_pins = false;
    for (unsigned i = 0; i < coherence->count; i++)
        has_pins |= coherence->ranges[i].binding != NULL;
    sp_bindings_lock();
    for (unsigned i = 0; i < coherence->count; i++)
        count_use(coherence, &coherence->ranges[i]);
    unpin_ranges(coherence);
    agent->pinning -= has_pins;
    struct sp_coherence *ready = take_ready(agent);
    sp_bindings_unlock();
    go_on_with(ready);
}

void sp_bindings_retry(uint32_t number)
{
    sp_bindings_lock();
    struct sp_coherence *ready = take_ready(&bindings.agents[number]);
    sp_bindings_unlock();
    go_on_with(ready);
}
