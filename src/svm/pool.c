/* See pool.h. What it owns: the choice of who takes part, and of who gets how much.
 *
 * Each member has one stretch of the region, so that neighbours have one home and the directory few
 * runs; it is cut into parts, since a part is what an eviction takes. The stretches are in
 * proportion to the room that each has now; where that is not enough together, to all of its
 * memory, since other regions can give way.
 */
#include "svm/pool.h"

#include <errno.h>

#include "svm/coherence_internal.h"
#include "util/alloc.h"

/* A part is at most this share of its home's memory: what one eviction costs, against the bindings
 * that a command pins. */
#define PARTS_OF_A_MEMORY 8u

struct plan {
    uint32_t members;
    uint64_t granules; /* of the region */
    uint64_t shares[SP_MAX_AGENTS];
    uint64_t total; /* of the shares */
};

static bool has(uint32_t mask, uint32_t agent)
{
    return mask >> agent & 1;
}

static bool see_each_other(uint32_t a, uint32_t b)
{
    struct sp_device *first = sp_agent_device(a), *second = sp_agent_device(b);
    return first->ops->sees && second->ops->sees && first->ops->sees(first, b) &&
           second->ops->sees(second, a);
}

static bool sees_all(uint32_t agent, uint32_t members)
{
    for (uint32_t i = 0; i < SP_MAX_AGENTS; i++)
        if (has(members, i) && !see_each_other(agent, i))
            return false;
    return true;
}

static bool can_hold(const struct sp_device *device, uint64_t bytes)
{
    return bytes <= device->info.max_alloc_bytes && bytes <= sp_device_memory(device);
}

/* Those that are too small alone, first to last, and then whoever sees them all. */
static int choose_members(uint64_t bytes, uint32_t agents, uint32_t *members)
{
    *members = 0;
    for (uint32_t i = 0; i < SP_MAX_AGENTS; i++) {
        if (!has(agents, i) || can_hold(sp_agent_device(i), bytes))
            continue;
        if (!sees_all(i, *members))
            return -ENOSPC;
        *members |= 1u << i;
    }
    for (uint32_t i = 0; *members && i < SP_MAX_AGENTS; i++)
        if (has(agents, i) && !has(*members, i) && sees_all(i, *members))
            *members |= 1u << i;
    bool is_one = *members && !(*members & (*members - 1));
    return is_one ? -ENOSPC : 0;
}

static void take_shares(struct plan *plan, uint64_t (*share)(uint32_t agent))
{
    plan->total = 0;
    for (uint32_t i = 0; i < SP_MAX_AGENTS; i++) {
        plan->shares[i] = has(plan->members, i) ? share(i) / SP_GRANULE_BYTES : 0;
        plan->total += plan->shares[i];
    }
}

static uint64_t all_memory(uint32_t agent)
{
    return sp_device_memory(sp_agent_device(agent));
}

static uint64_t granules_in_part(uint32_t agent)
{
    uint64_t granules = all_memory(agent) / SP_GRANULE_BYTES / PARTS_OF_A_MEMORY;
    return granules ? granules : 1;
}

/* Cuts the region; with parts == NULL the parts are only counted. No stretch is longer than its
 * share: the sum of those before it is rounded down. 128 bits: granules of a window of 4 TiB,
 * squared, are 42 bits, but who knows. */
static uint32_t cut(const struct plan *plan, struct sp_pool_part *parts)
{
    uint64_t at = 0, before = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < SP_MAX_AGENTS; i++) {
        before += plan->shares[i];
        uint64_t end = (uint64_t)((unsigned __int128)plan->granules * before / plan->total);
        uint64_t most = has(plan->members, i) ? granules_in_part(i) : 0;
        while (at < end) {
            uint64_t granules = end - at < most ? end - at : most;
            if (parts)
                parts[count] = (struct sp_pool_part){at, granules, i};
            at += granules;
            count++;
        }
    }
    return count;
}

int sp_pool_plan(uint64_t bytes, uint32_t agents, struct sp_pool **pool)
{
    struct plan plan = {.granules = (bytes - 1) / SP_GRANULE_BYTES + 1};
    *pool = NULL;
    int error = choose_members(bytes, agents, &plan.members);
    if (error || !plan.members)
        return error;
    sp_bindings_lock();
    take_shares(&plan, sp_agent_free_bytes);
    sp_bindings_unlock();
    if (plan.total < plan.granules)
        take_shares(&plan, all_memory);
    if (plan.total < plan.granules)
        return -ENOSPC;
    uint32_t count = cut(&plan, NULL);
    struct sp_pool *planned = sp_alloc(sizeof *planned + count * sizeof planned->parts[0]);
    if (!planned)
        return -ENOMEM;
    planned->members = plan.members;
    planned->count = count;
    cut(&plan, planned->parts);
    *pool = planned;
    return 0;
}
