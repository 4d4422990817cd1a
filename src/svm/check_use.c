/* Commands and maps of the checking mode: who uses which bytes at a time, and what a device may
 * reach. See check_internal.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver.h"
#include "svm/check_internal.h"
#include "svm/pool.h"
#include "svm/window.h"
#include "util/alloc.h"
#include "util/symbol.h"

static struct sp_check_command *newest_command;

/* Who was told of a device's death before this. */
static void (*tell_others_lost[SP_MAX_AGENTS])(struct sp_device *device, const char *reason);

/* --- At once ---------------------------------------------------------------------------------- */

static bool overlap(uint64_t first, uint64_t end, uint64_t other_first, uint64_t other_end)
{
    return first < other_end && other_first < end;
}

static void tell_at_once(const struct check_use *use, const struct sp_finding_actor *other,
                         uint64_t other_first, bool is_other_map)
{
    struct sp_finding finding = {.kind = SP_FINDING_AT_ONCE,
                                 .is_write = use->is_write,
                                 .actor = use->command->actor,
                                 .is_other_map = is_other_map};
    sp_check_describe_region(&finding.region, use->region);
    finding.address = finding.region.start + (use->first > other_first ? use->first : other_first);
    if (other)
        finding.other = *other;
    sp_check_tell(&finding);
}

/* Two devices that see the same memory may well change different bytes of a range that both
 * declared. */
static bool are_in_one_pool(const struct check_use *use, const struct check_use *other)
{
    const struct sp_pool *pool = use->region->span->pool;
    return sp_pool_has(pool, use->command->agent) && sp_pool_has(pool, other->command->agent);
}

/* Whether a use surely meets a map of [first, end). A kernel uses some bytes of what it was given,
 * perhaps none that are mapped: then all of it must be. */
static bool meets_map(const struct check_use *use, uint64_t first, uint64_t end)
{
    return use->command->actor.kernel[0] ? first <= use->first && use->end <= end
                                         : overlap(use->first, use->end, first, end);
}

static bool meet(const struct check_use *use, const struct check_use *other)
{
    if (use->command->is_map)
        return meets_map(other, use->first, use->end);
    if (other->command->is_map)
        return meets_map(use, other->first, other->end);
    return overlap(use->first, use->end, other->first, other->end);
}

/* Looks for others that use the same bytes. What only might be used is left out: a program may well
 * declare more than its kernel touches. */
static void look_for_others(const struct check_use *use)
{
    const struct sp_check_region *check = use->region->check;
    const struct sp_check_command *command = use->command;
    bool is_map = command->is_map;
    for (struct check_use *other = check->uses; other; other = other->next) {
        if (other->command == command)
            continue;
        if (other->command->agent == command->agent || (other->command->is_map && is_map) ||
            !(other->command->has_work || other->command->is_map) ||
            !(use->is_write ? other->is_read || other->is_write : other->is_write) ||
            !meet(use, other) || are_in_one_pool(use, other))
            continue;
        tell_at_once(use, &other->command->actor, other->first, false);
        return;
    }
    for (const struct check_map *map = check->maps; map && !is_map; map = map->next)
        if ((use->is_write || (use->is_read && map->may_write)) &&
            meets_map(use, map->first, map->end)) {
            tell_at_once(use, NULL, map->first, true);
            return;
        }
}

/* Where uses meet, what was not even declared by its command gives way at its end. */
static void contend(struct check_use *use)
{
    for (struct check_use *other = use->region->check->uses; other; other = other->next) {
        if (other->command == use->command)
            continue;
        other->is_contended |= other->is_undeclared;
        use->is_contended |= use->is_undeclared;
    }
}

static void tell_freed(const struct sp_check_command *command, const struct sp_region *region)
{
    struct sp_finding finding = {.kind = SP_FINDING_FREED, .actor = command->actor};
    sp_check_describe_region(&finding.region, region);
    finding.address = finding.region.start;
    sp_check_tell(&finding);
}

void sp_check_freed_again(const void *address)
{
    struct sp_finding finding = {.kind = SP_FINDING_FREED_AGAIN,
                                 .address = (uintptr_t)address,
                                 .instruction = (uintptr_t)sp_symbol_caller()};
    bool was_freed;
    pthread_mutex_lock(&sp_check_lock);
    if (sp_check_describe_address(&finding.region, finding.address, &was_freed) &&
        (was_freed || finding.region.freed_at))
        sp_check_tell(&finding);
    pthread_mutex_unlock(&sp_check_lock);
}

void sp_check_freed_in_use(struct sp_region *region)
{
    struct sp_check_region *check = region->check;
    pthread_mutex_lock(&sp_check_lock);
    if (check) {
        check->is_freed = true;
        check->freed_at = sp_symbol_caller();
        for (const struct check_use *use = check->uses; use; use = use->next)
            if ((use->is_read || use->is_write) && use->command->has_work)
                tell_freed(use->command, region);
    }
    pthread_mutex_unlock(&sp_check_lock);
}

/* --- Commands --------------------------------------------------------------------------------- */

static void name_actor(struct sp_finding_actor *named, const struct sp_check_actor *actor)
{
    snprintf(named->what, sizeof named->what, "%s", actor->what);
    snprintf(named->kernel, sizeof named->kernel, "%s", actor->kernel ? actor->kernel : "");
    snprintf(named->device, sizeof named->device, "%s", actor->device);
    named->site = actor->site;
}

static void give_up_all(const struct sp_coherence *coherence)
{
    pthread_mutex_lock(&sp_check_lock);
    for (unsigned i = 0; i < coherence->count; i++)
        if (coherence->ranges[i].region->check)
            sp_check_give_up(coherence->ranges[i].region->check);
    pthread_mutex_unlock(&sp_check_lock);
}

struct sp_check_command *sp_check_begin(struct sp_coherence *coherence, uint32_t agent,
                                        const struct sp_check_actor *actor, bool has_work)
{
    struct sp_check_command *command =
        sp_alloc(sizeof *command + coherence->count * sizeof(struct check_use));
    if (!command) {
        give_up_all(coherence);
        return NULL;
    }
    name_actor(&command->actor, actor);
    command->agent = agent;
    command->has_work = has_work;
    command->is_map = coherence->is_map;
    pthread_mutex_lock(&sp_check_lock);
    command->next = newest_command;
    if (newest_command)
        newest_command->previous = command;
    newest_command = command;
    for (unsigned i = 0; i < coherence->count; i++) {
        const struct sp_range_use *range = &coherence->ranges[i];
        struct sp_check_region *check = range->region->check;
        if (!check || range->region->path != SP_PATH_PRIVATE)
            continue;
        struct check_use *use = &command->uses[command->count++];
        *use = (struct check_use){.command = command,
                                  .region = range->region,
                                  .first = range->first,
                                  .end = range->end,
                                  .is_read = range->is_read,
                                  .is_write = range->is_written,
                                  .is_undeclared = range->is_undeclared};
        /* Before anything else: what the host does from here on is to be seen. */
        sp_check_rearm(check);
        contend(use);
        if (check->is_freed && has_work && (use->is_read || use->is_write))
            tell_freed(command, range->region);
        if (!sp_check_forgives && (has_work || coherence->is_map))
            look_for_others(use);
        use->next = check->uses;
        check->uses = use;
        if (agent == SP_AGENT_HOST)
            check->allowed++;
    }
    pthread_mutex_unlock(&sp_check_lock);
    return command;
}

void sp_check_name_host_kernel(struct sp_finding_actor *actor)
{
    const struct sp_check_command *command = newest_command;
    while (command && (command->agent != SP_AGENT_HOST || !command->actor.kernel[0]))
        command = command->next;
    if (command)
        *actor = command->actor;
}

static void remove_use(struct check_use *use)
{
    struct check_use **link = &use->region->check->uses;
    while (*link != use)
        link = &(*link)->next;
    *link = use->next;
}

static void add_map(struct check_use *use)
{
    struct check_map *map = sp_alloc(sizeof *map);
    if (!map) {
        sp_check_give_up(use->region->check);
        return;
    }
    map->first = use->first;
    map->end = use->end;
    map->may_write = use->is_write;
    map->next = use->region->check->maps;
    use->region->check->maps = map;
    sp_check_arrange(use->region->check, map->first, map->end, true);
}

/* What might have been changed was perhaps changed elsewhere meanwhile: then that counts. */
static void give_way(struct sp_coherence *coherence, const struct check_use *use)
{
    for (unsigned i = 0; i < coherence->count; i++) {
        struct sp_range_use *range = &coherence->ranges[i];
        if (!range->is_undeclared || range->region != use->region)
            continue;
        if (range->access != SP_ACCESS_READ) /* it was counted so (sp_coherence_touch) */
            atomic_fetch_sub_explicit(&range->region->writers, 1, memory_order_relaxed);
        range->access = SP_ACCESS_READ;
    }
}

static void tell_kernel(const struct sp_check_command *command, uintptr_t address);

void sp_check_end(struct sp_check_command *command, struct sp_coherence *coherence,
                  uintptr_t undeclared, bool opens)
{
    pthread_mutex_lock(&sp_check_lock);
    if (undeclared)
        tell_kernel(command, undeclared);
    if (command->previous)
        command->previous->next = command->next;
    else
        newest_command = command->next;
    if (command->next)
        command->next->previous = command->previous;
    for (unsigned i = 0; i < command->count; i++) {
        struct check_use *use = &command->uses[i];
        struct sp_check_region *check = use->region->check;
        remove_use(use);
        if (use->is_contended)
            give_way(coherence, use);
        if (command->agent == SP_AGENT_HOST)
            check->allowed--;
        sp_check_rearm(check);
        if (opens)
            add_map(use);
    }
    pthread_mutex_unlock(&sp_check_lock);
    free(command);
}

void sp_check_unmapped(struct sp_region *region, uint64_t first)
{
    struct check_map *ended = NULL;
    pthread_mutex_lock(&sp_check_lock);
    struct sp_check_region *check = region->check;
    /* The newest that begins there; or that holds the place, where the program named another
     * pointer than it was given. */
    for (int pass = 0; check && !ended && pass < 2; pass++)
        for (struct check_map **link = &check->maps; *link && !ended; link = &(*link)->next)
            if (pass == 0 ? (*link)->first == first
                          : (*link)->first < first && first < (*link)->end) {
                ended = *link;
                *link = ended->next;
                break;
            }
    if (ended) {
        sp_check_arrange(check, ended->first, ended->end, false);
        sp_check_rearm(check);
    }
    pthread_mutex_unlock(&sp_check_lock);
    free(ended);
}

/* --- Devices ---------------------------------------------------------------------------------- */

static bool declares(const struct sp_check_command *command, uintptr_t start)
{
    for (unsigned i = 0; i < command->count; i++)
        if ((uintptr_t)command->uses[i].region->start == start)
            return true;
    return false;
}

static void tell_kernel(const struct sp_check_command *command, uintptr_t address)
{
    struct sp_finding finding = {0};
    bool was_freed;
    if (!sp_check_describe_address(&finding.region, address, &was_freed) ||
        (!was_freed && declares(command, finding.region.start)))
        return;
    finding.address = address;
    finding.kind = was_freed ? SP_FINDING_FREED : SP_FINDING_UNDECLARED;
    finding.actor = command->actor;
    sp_check_tell(&finding);
}

/* The oldest of these kernels under way on a device: it runs one after another. */
static const struct sp_check_command *find_kernel(uint32_t agent, const char *kernel)
{
    const struct sp_check_command *found = NULL;
    for (const struct sp_check_command *command = newest_command; command; command = command->next)
        if (command->agent == agent && !strcmp(command->actor.kernel, kernel))
            found = command;
    return found;
}

static void device_lost(struct sp_device *device, const char *reason)
{
    if (sp_check_is_on && device->fault.address) {
        pthread_mutex_lock(&sp_check_lock);
        const struct sp_check_command *command = find_kernel(device->agent, device->fault.kernel);
        if (command)
            tell_kernel(command, device->fault.address);
        pthread_mutex_unlock(&sp_check_lock);
    }
    tell_others_lost[device->agent](device, reason);
}

void sp_check_add_agent(struct sp_device *device)
{
    if (!sp_check_is_on)
        return;
    tell_others_lost[device->agent] = device->lost;
    device->lost = device_lost;
}

static void declared(struct sp_work *work, int error)
{
    (void)error; /* the device keeps nothing from its kernels */
    free(work);
}

static bool declare(struct sp_device *device, const void *start, size_t bytes, uint64_t ticket)
{
    struct sp_work *work = sp_alloc(sizeof *work);
    if (!work)
        return false;
    work->kind = SP_WORK_DECLARE;
    work->range.start = (uintptr_t)start;
    work->range.bytes = bytes;
    work->range.ticket = ticket;
    work->finished = declared;
    device->ops->submit(device, work);
    return true;
}

void sp_check_declare(const struct sp_coherence *coherence, struct sp_device *device,
                      struct sp_work *work)
{
    static _Atomic uint64_t tickets;
    work->kernel.ticket = 0; /* that of before, where it begins again, is no good any more */
    if (sp_check_forgives)
        return;
    uint64_t ticket = atomic_fetch_add_explicit(&tickets, 1, memory_order_relaxed) + 1;
    bool is_whole = !work->kernel.globals || declare(device, work->kernel.globals, 1, ticket);
    for (unsigned i = 0; is_whole && i < coherence->count; i++) {
        const struct sp_region *region = coherence->ranges[i].region;
        if (i && coherence->ranges[i - 1].region == region)
            continue;
        is_whole = declare(device, region->start, region->bytes, ticket);
    }
    if (is_whole) /* else the kernel is not checked */
        work->kernel.ticket = ticket;
}
