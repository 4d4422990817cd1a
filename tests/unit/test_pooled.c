/* svm/pool and the bindings of parts, with fakes: devices whose memory is a page for each granule,
 * which has one value and counts who has it mapped. So what no device could have shows at once:
 * memory used that is not mapped, more memory in use than a device has, a part that moved while
 * somebody used it. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "svm/coherence.h"
#include "svm/pool.h"
#include "svm/region.h"
#include "unit.h"
#include "util/gate.h"

enum { DEVICES = 3, MEMBERS = 2, LIMIT = 4, POOLED = 6, WINDOW = 4096, OUTSIDER = 3 };

struct page {
    unsigned maps;
    uint32_t owner;
    uint64_t value;
};

struct fake {
    struct sp_device device; /* first */
    struct page *map[WINDOW];
    unsigned in_use; /* pages that it owns and anybody has mapped */
    pthread_t thread;
    pthread_cond_t changed;
    bool is_dying; /* it ends no work until the runtime was told */
    struct sp_work *first, *last;
};

static struct fake fakes[DEVICES];
static uint64_t host[WINDOW];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all of it */
static uintptr_t window_start;
static atomic_uint faults; /* things that cannot be */

static void fault(const char *what)
{
    printf("%s\n", what);
    atomic_fetch_add(&faults, 1);
}

static size_t granule_of(const void *address)
{
    return ((uintptr_t)address - window_start) / SP_GRANULE_BYTES;
}

/* --- Devices
 * -------------------------------------------------------------------------------------- */

static void drop_page(struct fake *fake, size_t granule)
{
    struct page *page = fake->map[granule];
    fake->map[granule] = NULL;
    if (page && --page->maps == 0) {
        fakes[page->owner - 1].in_use--;
        free(page);
    }
}

static int bind_page(struct fake *fake, size_t granule)
{
    struct page *page = calloc(1, sizeof *page);
    *page = (struct page){.maps = 1, .owner = fake->device.agent};
    drop_page(fake, granule);
    fake->map[granule] = page;
    if (++fake->in_use > fake->device.info.global_memory_bytes / SP_GRANULE_BYTES)
        fault("more memory is in use than there is");
    return 0;
}

static int bind_peer_page(struct fake *fake, const struct fake *home, size_t granule)
{
    struct page *page = home->map[granule];
    if (!page || page->owner != home->device.agent)
        return -EIO;
    page->maps++;
    drop_page(fake, granule);
    fake->map[granule] = page;
    return 0;
}

static uint64_t *end_of_transfer(uint32_t agent, size_t granule)
{
    struct page *page = agent ? fakes[agent - 1].map[granule] : NULL;
    if (agent && (!page || page->owner != agent))
        return NULL;
    return agent ? &page->value : &host[granule];
}

static int transfer_granule(const struct sp_work *work, size_t granule)
{
    uint64_t *to = end_of_transfer(work->range.destination, granule);
    const uint64_t *from = end_of_transfer(work->range.source, granule);
    if (!to || !from)
        return -EIO;
    *to = *from;
    return 0;
}

static int run_pieces(const struct sp_work *work)
{
    int error = 0;
    for (size_t p = 0; !error && p < work->range.num_pieces; p++) {
        size_t first = granule_of((void *)(uintptr_t)work->range.pieces[p].start);
        for (size_t i = 0; !error && i < work->range.pieces[p].bytes / SP_GRANULE_BYTES; i++)
            error = transfer_granule(work, first + i);
    }
    return error;
}

static int run_range(struct fake *fake, struct sp_work *work)
{
    if (work->kind == SP_WORK_TRANSFER && work->range.pieces)
        return run_pieces(work);
    size_t first = granule_of((void *)work->range.start);
    int error = 0;
    for (size_t i = first; !error && i < first + work->range.bytes / SP_GRANULE_BYTES; i++) {
        if (work->kind == SP_WORK_BIND)
            error = bind_page(fake, i);
        else if (work->kind == SP_WORK_BIND_PEER)
            error = bind_peer_page(fake, &fakes[work->range.source - 1], i);
        else if (work->kind == SP_WORK_UNBIND)
            drop_page(fake, i);
        else
            error = transfer_granule(work, i);
    }
    return error;
}

static void *fake_thread(void *argument)
{
    struct fake *fake = argument;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!fake->first || fake->is_dying)
            pthread_cond_wait(&fake->changed, &lock);
        struct sp_work *work = fake->first;
        fake->first = work->driver.next;
        int error = work->life && work->life != fake->device.life ? -EIO : 0;
        if (!error && work->kind != SP_WORK_CALL)
            error = run_range(fake, work);
        pthread_mutex_unlock(&lock);
        if (!error && work->kind == SP_WORK_CALL) {
            work->call.function(work->call.argument);
            error = work->life != fake->device.life ? -EIO : 0; /* it died meanwhile */
        }
        work->finished(work, error);
    }
    return NULL;
}

static void fake_submit(struct sp_device *device, struct sp_work *work)
{
    struct fake *fake = (struct fake *)device;
    pthread_mutex_lock(&lock);
    work->driver.next = NULL;
    *(fake->first ? &fake->last->driver.next : &fake->first) = work;
    fake->last = work;
    pthread_cond_signal(&fake->changed);
    pthread_mutex_unlock(&lock);
}

static bool fake_sees(struct sp_device *device, uint32_t source)
{
    return device->agent != OUTSIDER && source && source != OUTSIDER;
}

static const struct sp_device_ops fake_ops = {.submit = fake_submit, .sees = fake_sees};

static void die(struct fake *fake)
{
    pthread_mutex_lock(&lock);
    fake->is_dying = true;
    atomic_fetch_add(&fake->device.life, 1);
    for (size_t i = 0; i < WINDOW; i++)
        drop_page(fake, i);
    pthread_mutex_unlock(&lock);
    fake->device.lost(&fake->device, "a test");
    pthread_mutex_lock(&lock);
    fake->is_dying = false;
    pthread_cond_signal(&fake->changed);
    pthread_mutex_unlock(&lock);
}

static int set_up(void **state)
{
    size_t window_bytes;
    (void)state;
    if (sp_window_init())
        return -1;
    sp_window_range(&window_start, &window_bytes);
    for (uint32_t i = 0; i < DEVICES; i++) {
        struct fake *fake = &fakes[i];
        uint64_t granules = i + 1 == OUTSIDER ? 4 * POOLED : LIMIT;
        fake->device.ops = &fake_ops;
        fake->device.root = &fake->device;
        fake->device.agent = i + 1;
        fake->device.info.own_memory = true;
        fake->device.info.global_memory_bytes = granules * SP_GRANULE_BYTES;
        fake->device.info.max_alloc_bytes = granules * SP_GRANULE_BYTES;
        pthread_cond_init(&fake->changed, NULL);
        atomic_init(&fake->device.life, 1);
        sp_coherence_add_agent(&fake->device);
        if (pthread_create(&fake->thread, NULL, fake_thread, fake))
            return -1;
    }
    return 0;
}

/* --- Uses
 * ----------------------------------------------------------------------------------------- */

struct use {
    struct sp_coherence coherence;
    struct sp_work work;
    struct sp_gate ready, done, *hold; /* hold: what it waits for while it runs, or NULL */
    atomic_bool has_begun;
    unsigned char *start;
    size_t granules;
    uint64_t old[2 * POOLED]; /* what is found there */
    bool writes;
    uint64_t value;
    int error;
};

static void ranges_ready(struct sp_coherence *coherence)
{
    sp_gate_open(&((struct use *)coherence)->ready);
}

/* What a kernel does. */
static void run_kernel(void *argument)
{
    struct use *use = argument;
    uint32_t agent = use->coherence.agent;
    atomic_store(&use->has_begun, true);
    if (use->hold)
        sp_gate_wait(use->hold);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < use->granules; i++) {
        size_t granule = granule_of(use->start) + i;
        uint64_t *at = &host[granule];
        if (agent) {
            struct page *page = fakes[agent - 1].map[granule];
            /* A device that has died meanwhile runs nothing. */
            if (!page && use->work.life == fakes[agent - 1].device.life)
                fault("memory is used that is not there");
            if (!page)
                continue;
            at = &page->value;
        }
        use->old[i] = *at;
        if (use->writes)
            *at = use->value + i;
    }
    pthread_mutex_unlock(&lock);
}

static void work_finished(struct sp_work *work, int error)
{
    struct use *use = (struct use *)((char *)work - offsetof(struct use, work));
    use->error = sp_coherence_outcome(&use->coherence, error);
    sp_gate_open(&use->done);
}

static void begin(struct sp_arena *arena, struct use *use, uint32_t agent, enum sp_access access)
{
    sp_gate_init(&use->ready);
    sp_gate_init(&use->done);
    use->writes = access != SP_ACCESS_READ;
    use->coherence.ready = ranges_ready;
    use->coherence.work = &use->work;
    assert_int_equal(sp_coherence_touch(&use->coherence, arena, use->start,
                                        use->granules * SP_GRANULE_BYTES, access),
                     0);
    sp_coherence_begin(&use->coherence, arena, agent);
}

/* From where it is ready. */
static int end(struct use *use)
{
    uint32_t agent = use->coherence.agent;
    sp_gate_wait(&use->ready);
    int error = use->coherence.error;
    if (!error && agent == SP_AGENT_HOST) {
        run_kernel(use);
    } else if (!error) {
        use->work.kind = SP_WORK_CALL;
        use->work.call.function = run_kernel;
        use->work.call.argument = use;
        use->work.finished = work_finished;
        fake_submit(&fakes[agent - 1].device, &use->work);
        sp_gate_wait(&use->done);
        error = use->error;
    }
    sp_coherence_end(&use->coherence, error == 0);
    return error;
}

static int run(struct sp_arena *arena, struct use *use, uint32_t agent, enum sp_access access)
{
    begin(arena, use, agent, access);
    return end(use);
}

static void write_value(struct sp_arena *arena, uint32_t agent, unsigned char *start,
                        size_t granules, uint64_t value)
{
    struct use use = {.start = start, .granules = granules, .value = value};
    assert_int_equal(run(arena, &use, agent, SP_ACCESS_DISCARD), 0);
}

static void read_value(struct sp_arena *arena, uint32_t agent, unsigned char *start,
                       size_t granules, uint64_t value)
{
    struct use use = {.start = start, .granules = granules};
    assert_int_equal(run(arena, &use, agent, SP_ACCESS_READ), 0);
    for (size_t i = 0; i < granules; i++)
        assert_int_equal(use.old[i], value + i);
}

static struct sp_arena *new_arena(void)
{
    struct sp_arena *arena = NULL;
    assert_int_equal(sp_arena_create(true, &arena), 0);
    return arena;
}

static unsigned char *new_pooled(struct sp_arena *arena)
{
    struct sp_pool *pool;
    assert_int_equal(sp_pool_plan(POOLED * SP_GRANULE_BYTES, 6, &pool), 0);
    unsigned char *start = sp_arena_alloc_pooled(arena, POOLED * SP_GRANULE_BYTES, 0, 0, pool);
    assert_non_null(start);
    return start;
}

static unsigned char *new_region(struct sp_arena *arena, size_t granules)
{
    unsigned char *start =
        sp_arena_alloc(arena, granules * SP_GRANULE_BYTES, 0, 0, SP_PATH_PRIVATE);
    assert_non_null(start);
    return start;
}

/* --- Tests
 * ---------------------------------------------------------------------------------------- */

static void plans_fill_the_members(void **state)
{
    (void)state;
    struct sp_pool *pool;
    for (uint64_t granules = LIMIT + 1; granules <= 2 * LIMIT; granules++) {
        assert_int_equal(sp_pool_plan(granules * SP_GRANULE_BYTES - 5, 6, &pool), 0);
        uint64_t at = 0, sums[DEVICES + 1] = {0};
        assert_int_equal(pool->members, 6);
        for (uint32_t i = 0; i < pool->count; i++) {
            assert_int_equal(pool->parts[i].first, at);
            assert_in_range(pool->parts[i].granules, 1, LIMIT);
            sums[pool->parts[i].home] += pool->parts[i].granules;
            at += pool->parts[i].granules;
        }
        assert_int_equal(at, granules);
        assert_in_range(sums[1], granules / 2, LIMIT);
        assert_in_range(sums[2], granules / 2, LIMIT);
        free(pool);
    }
    assert_int_equal(sp_pool_plan(LIMIT * SP_GRANULE_BYTES, 6, &pool), 0);
    assert_null(pool); /* each can hold it */
    assert_int_equal(sp_pool_plan(2 * LIMIT * SP_GRANULE_BYTES + 1, 6, &pool), -ENOSPC);
    assert_int_equal(sp_pool_plan(UINT64_MAX, 6, &pool), -ENOSPC);
    assert_int_equal(sp_pool_plan((LIMIT + 1) * SP_GRANULE_BYTES, 2, &pool), -ENOSPC); /* alone */
    /* Who sees nobody must hold it alone. */
    assert_int_equal(sp_pool_plan(POOLED * SP_GRANULE_BYTES, 14, &pool), 0);
    assert_int_equal(pool->members, 6);
    free(pool);
    fakes[OUTSIDER - 1].device.info.max_alloc_bytes = SP_GRANULE_BYTES;
    assert_int_equal(sp_pool_plan(POOLED * SP_GRANULE_BYTES, 14, &pool), -ENOSPC);
    fakes[OUTSIDER - 1].device.info.max_alloc_bytes = 4 * POOLED * SP_GRANULE_BYTES;
}

/* A stretch is as large as what its member has left, where that is enough. */
static void plans_follow_free_memory(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    struct sp_pool *pool;
    unsigned char *other = new_region(arena, 2);
    write_value(arena, 1, other, 2, 7);
    assert_int_equal(sp_pool_plan(POOLED * SP_GRANULE_BYTES, 6, &pool), 0);
    uint64_t sums[DEVICES + 1] = {0};
    for (uint32_t i = 0; i < pool->count; i++)
        sums[pool->parts[i].home] += pool->parts[i].granules;
    assert_int_equal(sums[1], 2);
    assert_int_equal(sums[2], 4);
    free(pool);
    sp_arena_destroy(arena);
}

static void all_see_what_one_writes(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    unsigned char *start = new_pooled(arena);
    for (uint32_t writer = 0; writer <= DEVICES; writer++) {
        write_value(arena, writer, start, POOLED, 100 * (writer + 1));
        for (uint32_t reader = 0; reader <= DEVICES; reader++)
            read_value(arena, reader, start, POOLED, 100 * (writer + 1));
        write_value(arena, writer, start + 2 * SP_GRANULE_BYTES, 2, 7);
        for (uint32_t reader = 0; reader <= DEVICES; reader++)
            read_value(arena, reader, start + 2 * SP_GRANULE_BYTES, 2, 7);
    }
    sp_arena_destroy(arena);
    assert_int_equal(faults, 0);
}

/* Other regions take a part's room only when nobody has it mapped any more. */
static void parts_give_way(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    unsigned char *start = new_pooled(arena), *other = new_region(arena, LIMIT);
    for (uint64_t round = 0; round < 20; round++) {
        uint32_t agent = 1 + (uint32_t)round % 2;
        write_value(arena, agent, start, POOLED, round);
        write_value(arena, 3 - agent, other, LIMIT, 1000 + round);
        read_value(arena, agent, start, POOLED, round);
        read_value(arena, agent, other, LIMIT, 1000 + round);
        /* Given back, and had again at once. */
        assert_int_equal(sp_arena_free(arena, start), 0);
        start = new_pooled(arena);
    }
    sp_arena_destroy(arena);
    assert_int_equal(faults, 0);
}

/* The memory of a home that died is there as long as a kernel uses it; who needs the part anew
 * waits for that. */
static void a_kernel_keeps_dead_memory(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    unsigned char *start = new_pooled(arena);
    write_value(arena, 1, start, POOLED, 1);
    struct sp_gate hold;
    sp_gate_init(&hold);
    struct use kernel = {.start = start, .granules = POOLED, .value = 50, .hold = &hold};
    struct use next = {.start = start, .granules = POOLED, .value = 70};
    begin(arena, &kernel, 2, SP_ACCESS_READ_WRITE); /* it has its pins, and is not sent yet */
    die(&fakes[0]);
    begin(arena, &next, 2, SP_ACCESS_DISCARD);
    assert_false(sp_gate_is_open(&next.ready));
    sp_gate_open(&hold);
    assert_int_equal(end(&kernel), -EIO); /* it wrote to what was lost */
    assert_int_equal(end(&next), 0);
    read_value(arena, 1, start, POOLED, 70);
    sp_arena_destroy(arena);
    assert_int_equal(faults, 0);
}

static void the_host_takes_what_it_can_hold(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    unsigned char *start = new_pooled(arena);
    write_value(arena, 2, start, POOLED, 1);
    sp_coherence_set_host_bytes(2 * SP_GRANULE_BYTES);
    struct use all = {.start = start, .granules = POOLED};
    assert_int_equal(run(arena, &all, 0, SP_ACCESS_READ), -ENOSPC);
    read_value(arena, 0, start + 2 * SP_GRANULE_BYTES, 2, 3);
    sp_coherence_set_host_bytes(UINT64_MAX);
    read_value(arena, 0, start, POOLED, 1);
    sp_arena_destroy(arena);
}

/* --- Random
 * --------------------------------------------------------------------------------------- */

enum { PLAYERS = 3, STEPS = 1500, DEATHS = 40 };

static atomic_bool is_known[WINDOW]; /* nobody has lost it */

static void lost_range(struct sp_region *region, uint64_t first, uint64_t last,
                       struct sp_device *device)
{
    (void)device;
    size_t start = granule_of(region->start);
    for (uint64_t i = first / SP_GRANULE_BYTES; i * SP_GRANULE_BYTES < last; i++)
        atomic_store(&is_known[start + i], false);
}

static void lost_nothing(struct sp_device *device)
{
    (void)device;
}

static void lost_begin(struct sp_device *device, const char *reason)
{
    (void)device;
    (void)reason;
}

static const struct sp_loss_reports reports = {lost_begin, lost_range, lost_nothing};

struct toy {
    unsigned char *start;
    size_t granules;
    uint64_t values[POOLED];
};

struct player {
    struct sp_arena *arena;
    struct toy toys[3];
    unsigned seed;
    atomic_uint done; /* steps */
};

static void set_known(const struct toy *toy, size_t first, size_t count, bool known)
{
    for (size_t i = first; i < first + count; i++)
        atomic_store(&is_known[granule_of(toy->start) + i], known);
}

static void play_once(struct player *player)
{
    static const enum sp_access accesses[] = {SP_ACCESS_READ, SP_ACCESS_READ_WRITE,
                                              SP_ACCESS_DISCARD};
    struct toy *toy = &player->toys[(unsigned)rand_r(&player->seed) % 3];
    size_t first = (unsigned)rand_r(&player->seed) % toy->granules;
    size_t count = 1 + (unsigned)rand_r(&player->seed) % (toy->granules - first);
    uint32_t agent = (unsigned)rand_r(&player->seed) % (DEVICES + 1);
    enum sp_access access = accesses[(unsigned)rand_r(&player->seed) % 3];
    struct use use = {.start = toy->start + first * SP_GRANULE_BYTES,
                      .granules = count,
                      .value = (uint64_t)atomic_load(&player->done) * 1000};
    bool was_known[POOLED];
    for (size_t i = 0; i < count; i++)
        was_known[i] = atomic_load(&is_known[granule_of(use.start) + i]);
    if (access != SP_ACCESS_READ) /* a loss that is told from now on counts */
        set_known(toy, first, count, true);
    int error = run(player->arena, &use, agent, access);
    for (size_t i = 0; !error && access != SP_ACCESS_DISCARD && i < count; i++)
        if (use.old[i] != toy->values[first + i] && was_known[i] &&
            atomic_load(&is_known[granule_of(use.start) + i]))
            fault("a value is not the one written last");
    if (error && error != -EIO && error != -ENOSPC)
        fault("an error that nobody expects");
    if (access == SP_ACCESS_READ)
        return;
    if (error)
        set_known(toy, first, count, false);
    for (size_t i = 0; i < count; i++)
        toy->values[first + i] = use.value + i;
}

static void *play(void *argument)
{
    struct player *player = argument;
    for (int i = 0; i < 3; i++) {
        struct toy *toy = &player->toys[i];
        toy->granules = i ? 2 : POOLED;
        toy->start = i ? new_region(player->arena, 2) : new_pooled(player->arena);
        set_known(toy, 0, toy->granules, false);
    }
    for (; atomic_load(&player->done) < STEPS && !faults; atomic_fetch_add(&player->done, 1))
        play_once(player);
    return NULL;
}

/* Each player has regions of its own and all want the same memory; devices die again and again. */
static void random_uses(void **state)
{
    (void)state;
    const char *given = getenv("SAMEPAGE_TEST_SEED");
    unsigned seed = given ? (unsigned)atoi(given) : 1, deaths = 0;
    struct player players[PLAYERS] = {0};
    pthread_t threads[PLAYERS];
    printf("seed %u (SAMEPAGE_TEST_SEED)\n", seed);
    sp_coherence_set_loss_reports(&reports);
    for (unsigned i = 0; i < PLAYERS; i++) {
        players[i].arena = new_arena();
        players[i].seed = seed + i * 1000;
        assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    }
    for (; deaths < DEATHS && !faults; deaths++) {
        unsigned target = (deaths + 1) * STEPS / (DEATHS + 1);
        while (atomic_load(&players[deaths % PLAYERS].done) < target && !faults)
            sched_yield();
        die(&fakes[(unsigned)rand_r(&seed) % MEMBERS]);
    }
    for (unsigned i = 0; i < PLAYERS; i++) {
        pthread_join(threads[i], NULL);
        sp_arena_destroy(players[i].arena);
    }
    sp_coherence_set_loss_reports(NULL);
    assert_int_equal(faults, 0);
    for (unsigned i = 0; i < DEVICES; i++) { /* all of it was given back */
        while (atomic_load(&faults) == 0) {
            pthread_mutex_lock(&lock);
            bool is_idle = !fakes[i].first;
            unsigned in_use = fakes[i].in_use;
            pthread_mutex_unlock(&lock);
            if (is_idle && !in_use)
                break;
            sched_yield();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_fill_the_members),
        cmocka_unit_test(plans_follow_free_memory),
        cmocka_unit_test(all_see_what_one_writes),
        cmocka_unit_test(parts_give_way),
        cmocka_unit_test(a_kernel_keeps_dead_memory),
        cmocka_unit_test(the_host_takes_what_it_can_hold),
        cmocka_unit_test(random_uses),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
