/* Which path a region of coarse grain is on for now: private, or at home in the host's memory.
 *
 * A region whose data goes to and fro between agents is cheaper as one backing that all of them
 * see, where that is near enough for every device concerned (sp_device_info.home_near_bytes). It
 * comes here by what its uses cost: a use that needed copies is a hop; enough hops, without quiet
 * uses between them, move its span home. There, uses by one and the same agent say that the pattern
 * has ended, and it goes back. Each return makes the next move home harder, so that a program which
 * changes its habits does not pay for it over and over.
 *
 * A move happens before a use, when no other command uses the span: what only devices hold goes to
 * the host, all bindings are taken off, and the next use of each agent binds the other kind. At
 * home the directory says that the host holds everything, which is true of what its pages contain;
 * so a return needs no copies.
 *
 * An application that migrates a region has its way: that is no hop, and what is at home goes to
 * where it is wanted.
 *
 * The unit is a span, as it is of bindings: a large region, or the slab of small regions of one
 * size. Pooled regions (pool.h) stay where they are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "svm/coherence_internal.h"
#include "svm/trace.h"

/* Hops in a row that make a pattern. Fewer are seen in plain producer-consumer set-ups: first
 * content from the host, one result back. */
#define HOPS_TO_GO_HOME 8u

/* Uses without a copy after which earlier hops do not count: data that is used several times where
 * it is repays its copy. */
#define QUIET_USES 4u

/* Uses of an agent's own last region, in a row, that end the pattern at home. More than
 * HOPS_TO_GO_HOME: a return costs a copy for the next hop, staying costs a little at each use. */
#define STEADY_USES_TO_RETURN 16u

/* After so many returns the number of hops that a move needs doubles no more. */
#define MAX_RETURNS 6u

static bool is_policy_on(void)
{
    static int is_on = -1; /* under the bindings' lock */
    if (is_on < 0) {
        const char *value = getenv("SAMEPAGE_PATHS");
        is_on = !value || strcmp(value, "fixed") != 0;
        if (value && *value && is_on)
            fprintf(stderr,
                    "samepage: SAMEPAGE_PATHS is '%s'; it may be 'fixed', so that nothing moves to "
                    "where all devices see it, or not set\n",
                    value);
    }
    return is_on;
}

static void trace_move(const struct sp_region *region, const char *name)
{
    if (sp_trace_is_on)
        sp_trace_instant(SP_TRACE_AGENT(SP_AGENT_HOST), "path", name,
                         "\"region\":\"%p\",\"bytes\":%llu,\"hops\":%u,\"returns\":%u",
                         (void *)region->start, (unsigned long long)region->bytes, region->hops,
                         region->span->returns);
}

static bool is_pinned(const struct sp_span *span)
{
    for (const struct sp_binding *binding = span->bindings; binding; binding = binding->next)
        if (binding->pins > 0)
            return true;
    return false;
}

/* Whether the host's memory is near enough for regions of that size. */
static bool is_near(const struct sp_span *span, uint32_t agent)
{
    uint64_t bytes = span->blocks ? span->block_bytes : span->bytes;
    return bytes <= sp_agent_device(agent)->info.home_near_bytes;
}

static bool may_go_home(const struct sp_span *span, uint32_t agent)
{
    bool may = is_near(span, agent) && !is_pinned(span);
    for (const struct sp_binding *binding = span->bindings; may && binding; binding = binding->next)
        may = is_near(span, binding->agent);
    return may;
}

static void take_off_all(struct sp_span *span)
{
    while (span->bindings)
        sp_binding_take_off(span->bindings);
}

static int evict_for_path(struct sp_region *region, void *data)
{
    const struct sp_binding *binding = data;
    return sp_region_evict(region, binding->agent, 0, region->bytes, "path");
}

/* What cannot be moved now stays where it is; another use will try again. */
static bool go_home(struct sp_span *span)
{
    for (struct sp_binding *binding = span->bindings; binding; binding = binding->next)
        if (sp_span_for_each_region(span, evict_for_path, binding))
            return false;
    take_off_all(span);
    /* Relaxed: who must know of the move takes the bindings' lock, or finds the copies that it
     * started in the region's list. */
    atomic_store_explicit(&span->is_at_home, true, memory_order_relaxed);
    span->steady_uses = 0;
    return true;
}

void sp_path_decide(struct sp_region *region, uint32_t agent, bool is_migration)
{
    struct sp_span *span = region->span;
    if (span->path != SP_PATH_PRIVATE || span->pool)
        return;
    if (!sp_span_is_at_home(span)) {
        if (is_migration || region->hops < HOPS_TO_GO_HOME << span->returns || !is_policy_on() ||
            !may_go_home(span, agent) || !go_home(span))
            return;
        trace_move(region, "to home");
        region->hops = 0;
    } else if (is_migration || !is_near(span, agent) ||
               span->steady_uses >= STEADY_USES_TO_RETURN) {
        if (is_pinned(span))
            return;
        take_off_all(span);
        atomic_store_explicit(&span->is_at_home, false, memory_order_relaxed);
        if (span->returns < MAX_RETURNS)
            span->returns++;
        trace_move(region, "to private");
    }
}

void sp_path_reset(struct sp_region *region)
{
    region->hops = region->quiet_uses = 0;
}

void sp_path_count(struct sp_region *region, uint32_t agent, bool has_moved)
{
    struct sp_span *span = region->span;
    if (sp_span_is_at_home(span)) {
        span->steady_uses = agent == region->last_user ? span->steady_uses + 1 : 0;
    } else if (has_moved) {
        region->quiet_uses = 0;
        if (region->hops < UINT32_MAX)
            region->hops++;
    } else if (++region->quiet_uses >= QUIET_USES) {
        region->quiet_uses = 0;
        region->hops = 0;
    }
    region->last_user = agent;
}
