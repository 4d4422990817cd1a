/* svm/coherence with a table of fakes: devices whose memory is an array of their own and whose
 * works run in order on a thread. What a command uses must be current where it runs: after any mix
 * of uses, evictions and a device's death, every byte that is read is the one written last. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "svm/coherence.h"
#include "svm/heap.h"
#include "svm/hostwatch.h"
#include "svm/region.h"
#include "svm/watched_map.h"
#include "unit.h"

enum { DEVICES = 2, LIMIT_GRANULES = 4 };

struct fake {
    struct sp_device device; /* first */
    unsigned char *memory;   /* byte n: of the window */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sp_work *first, *last;
    atomic_int transfer_error; /* 0, or how its transfers fail */
    bool is_dead;              /* works fail, as do always those for another life */
    uint64_t copied_bytes;
    unsigned binds, unbinds;
    unsigned transfers; /* submitted */
    uint32_t beside;    /* of the last one */
};

static struct fake fakes[DEVICES];
static uintptr_t window_start;
static size_t window_bytes;

static unsigned char *memory_of(uint32_t agent, uintptr_t address)
{
    if (agent == SP_AGENT_HOST)
        return (unsigned char *)address;
    return fakes[agent - 1].memory + (address - window_start);
}

/* Device 2 does not reach device 1 while this is set. */
static bool is_separated;

static bool is_barred(uint32_t source, uint32_t destination)
{
    return is_separated && source == 1 && destination == 2;
}

static void copy_range(struct fake *fake, const struct sp_work *work, uintptr_t start, size_t bytes)
{
    fake->copied_bytes += bytes;
    memcpy(memory_of(work->range.destination, start), memory_of(work->range.source, start), bytes);
}

static int run(struct fake *fake, struct sp_work *work)
{
    switch (work->kind) {
    case SP_WORK_BIND:
        fake->binds++;
        return 0;
    case SP_WORK_UNBIND:
        fake->unbinds++;
        madvise(memory_of(fake->device.agent, work->range.start), work->range.bytes, MADV_DONTNEED);
        return 0;
    case SP_WORK_TRANSFER:
        if (is_barred(work->range.source, work->range.destination))
            return -EIO;
        if (atomic_load(&fake->transfer_error))
            return atomic_load(&fake->transfer_error);
        if (!work->range.pieces)
            copy_range(fake, work, work->range.start, work->range.bytes);
        for (size_t i = 0; work->range.pieces && i < work->range.num_pieces; i++)
            copy_range(fake, work, work->range.pieces[i].start, work->range.pieces[i].bytes);
        return 0;
    case SP_WORK_CALL:
        work->call.function(work->call.argument);
        return 0;
    default:
        return -ENOTSUP;
    }
}

static void *fake_thread(void *argument)
{
    struct fake *fake = argument;
    for (;;) {
        pthread_mutex_lock(&fake->lock);
        while (!fake->first)
            pthread_cond_wait(&fake->changed, &fake->lock);
        struct sp_work *work = fake->first;
        fake->first = work->driver.next;
        if (!fake->first)
            fake->last = NULL;
        bool is_dead = fake->is_dead || (work->life && work->life != fake->device.life);
        pthread_mutex_unlock(&fake->lock);
        work->finished(work, is_dead ? -EIO : run(fake, work));
    }
    return NULL;
}

static void fake_submit(struct sp_device *device, struct sp_work *work)
{
    struct fake *fake = (struct fake *)device;
    pthread_mutex_lock(&fake->lock);
    if (work->kind == SP_WORK_TRANSFER) {
        fake->transfers++;
        fake->beside = work->beside;
    }
    work->driver.next = NULL;
    if (fake->last)
        fake->last->driver.next = work;
    else
        fake->first = work;
    fake->last = work;
    pthread_cond_signal(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

static uint32_t fake_distance(struct sp_device *device, uint32_t source)
{
    return is_barred(source, device->agent) ? SP_OUT_OF_REACH : 1;
}

static const struct sp_device_ops fake_ops = {.submit = fake_submit, .distance = fake_distance};

static int set_up(void **state)
{
    (void)state;
    if (sp_window_init())
        return -1;
    sp_window_range(&window_start, &window_bytes);
    for (uint32_t i = 0; i < DEVICES; i++) {
        struct fake *fake = &fakes[i];
        fake->device.ops = &fake_ops;
        fake->device.root = &fake->device;
        fake->device.agent = i + 1;
        fake->device.info.own_memory = true;
        fake->device.info.global_memory_bytes = LIMIT_GRANULES * SP_GRANULE_BYTES;
        fake->memory = mmap(NULL, window_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fake->memory == MAP_FAILED)
            return -1;
        pthread_mutex_init(&fake->lock, NULL);
        pthread_cond_init(&fake->changed, NULL);
        atomic_init(&fake->device.life, 1);
        sp_coherence_add_agent(&fake->device);
        if (pthread_create(&fake->thread, NULL, fake_thread, fake))
            return -1;
    }
    return 0;
}

/* A command: makes its ranges current, runs a function where it was to run, and ends. */
struct use {
    struct sp_coherence coherence; /* first */
    struct sp_gate ready, done;
    struct sp_work work;
    void (*function)(struct use *use);
    unsigned char *start; /* as the window has it */
    size_t bytes;
    unsigned char old_value, new_value;
    bool is_wrong;
};

static void use_ready(struct sp_coherence *coherence)
{
    sp_gate_open(&((struct use *)coherence)->ready);
}

static void use_finished(struct sp_work *work, int error)
{
    struct use *use = (struct use *)((char *)work - offsetof(struct use, work));
    use->is_wrong |= error != 0;
    sp_gate_open(&use->done);
}

static void call_use(void *argument)
{
    struct use *use = argument;
    use->function(use);
}

/* 0, or the error of making it current. */
static int run_use(struct sp_arena *arena, struct use *use, uint32_t agent, enum sp_access access)
{
    use->coherence.ready = use_ready;
    use->coherence.work = &use->work;
    assert_int_equal(sp_coherence_touch(&use->coherence, arena, use->start, use->bytes, access), 0);
    sp_coherence_begin(&use->coherence, arena, agent);
    sp_gate_wait(&use->ready);
    int error = use->coherence.error;
    if (!error && agent == SP_AGENT_HOST) {
        use->function(use);
    } else if (!error) {
        use->work.kind = SP_WORK_CALL;
        use->work.call.function = call_use;
        use->work.call.argument = use;
        use->work.finished = use_finished;
        fakes[agent - 1].device.ops->submit(&fakes[agent - 1].device, &use->work);
        sp_gate_wait(&use->done);
    }
    sp_coherence_end(&use->coherence, error == 0);
    return error;
}

static void check_and_write(struct use *use)
{
    unsigned char *bytes = memory_of(use->coherence.agent, (uintptr_t)use->start);
    for (size_t i = 0; i < use->bytes; i++) {
        use->is_wrong |= bytes[i] != use->old_value;
        bytes[i] = use->new_value;
    }
}

static void only_check(struct use *use)
{
    unsigned char *bytes = memory_of(use->coherence.agent, (uintptr_t)use->start);
    for (size_t i = 0; i < use->bytes; i++)
        use->is_wrong |= bytes[i] != use->old_value;
}

static void only_write(struct use *use)
{
    memset(memory_of(use->coherence.agent, (uintptr_t)use->start), use->new_value, use->bytes);
}

static void write_value(struct sp_arena *arena, uint32_t agent, unsigned char *start, size_t bytes,
                        unsigned char value)
{
    struct use use = {.start = start, .bytes = bytes, .new_value = value, .function = only_write};
    assert_int_equal(run_use(arena, &use, agent, SP_ACCESS_DISCARD), 0);
    assert_false(use.is_wrong);
}

static void read_value(struct sp_arena *arena, uint32_t agent, unsigned char *start, size_t bytes,
                       unsigned char value)
{
    struct use use = {.start = start, .bytes = bytes, .old_value = value, .function = only_check};
    assert_int_equal(run_use(arena, &use, agent, SP_ACCESS_READ), 0);
    assert_false(use.is_wrong);
}

static struct sp_arena *new_arena(void)
{
    struct sp_arena *arena = NULL;
    assert_int_equal(sp_arena_create(true, &arena), 0);
    return arena;
}

static void what_one_writes_all_others_read(void **state)
{
    (void)state;
    enum { BYTES = 100000 };
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    for (uint32_t writer = 0; writer <= DEVICES; writer++) {
        write_value(arena, writer, start, BYTES, (unsigned char)(writer + 10));
        for (uint32_t reader = 0; reader <= DEVICES; reader++)
            read_value(arena, reader, start, BYTES, (unsigned char)(writer + 10));
    }
    sp_arena_destroy(arena);
}

static void reading_again_moves_nothing(void **state)
{
    (void)state;
    enum { BYTES = 300000 };
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    write_value(arena, 1, start, BYTES, 5);
    read_value(arena, 2, start, BYTES, 5);
    read_value(arena, 0, start, BYTES, 5);
    uint64_t before = fakes[0].copied_bytes + fakes[1].copied_bytes;
    for (int i = 0; i < 10; i++)
        for (uint32_t reader = 0; reader <= DEVICES; reader++)
            read_value(arena, reader, start, BYTES, 5);
    assert_int_equal(fakes[0].copied_bytes + fakes[1].copied_bytes, before);
    sp_arena_destroy(arena);
}

static void a_part_moves_alone(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20, PART = 4096 };
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    write_value(arena, 0, start, BYTES, 1);
    read_value(arena, 1, start, BYTES, 1);
    write_value(arena, 0, start + 5 * PART, PART, 2);
    uint64_t before = fakes[0].copied_bytes;
    read_value(arena, 1, start + 5 * PART, PART, 2);
    read_value(arena, 1, start, 5 * PART, 1);
    assert_int_equal(fakes[0].copied_bytes - before, PART);
    sp_arena_destroy(arena);
}

static void do_nothing(struct use *use)
{
    (void)use;
}

static void map_for_writing(struct sp_arena *arena, unsigned char *start, size_t bytes)
{
    struct use use = {.start = start, .bytes = bytes, .function = do_nothing};
    use.coherence.is_map = true;
    assert_int_equal(run_use(arena, &use, SP_AGENT_HOST, SP_ACCESS_READ_WRITE), 0);
}

/* What moves to a device after the host mapped 4 MiB for writing and wrote one page, or all. */
static void only_written_pages_move_after_a_map(void **state)
{
    (void)state;
    enum { BYTES = 4 << 20, PAGE = 4096 };
    if (sp_hostwatch_init() == SP_HOSTWATCH_NONE)
        skip();
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    write_value(arena, 1, start, BYTES, 1);

    map_for_writing(arena, start, BYTES);
    sp_watched_map_end(arena, start);
    uint64_t before = fakes[0].copied_bytes;
    read_value(arena, 1, start, BYTES, 1);
    assert_int_equal(fakes[0].copied_bytes - before, 0);

    map_for_writing(arena, start, BYTES);
    memset(start + 7 * PAGE, 2, PAGE);
    sp_watched_map_end(arena, start);
    before = fakes[0].copied_bytes;
    read_value(arena, 1, start + 7 * PAGE, PAGE, 2);
    read_value(arena, 1, start, 7 * PAGE, 1);
    read_value(arena, 1, start + 8 * PAGE, BYTES - 8 * PAGE, 1);
    assert_int_equal(fakes[0].copied_bytes - before, PAGE);

    /* Several maps before anybody asks, of the same range and of others. */
    for (unsigned i = 10; i < 14; i++) {
        map_for_writing(arena, start, BYTES);
        start[i * PAGE] = 9;
        sp_watched_map_end(arena, start);
    }
    map_for_writing(arena, start + (1 << 20), BYTES / 2);
    start[300 * PAGE] = 9;
    sp_watched_map_end(arena, start + (1 << 20));
    map_for_writing(arena, start, BYTES);
    start[14 * PAGE] = 9;
    sp_watched_map_end(arena, start);
    before = fakes[0].copied_bytes;
    for (unsigned i = 10; i < 15; i++)
        read_value(arena, 1, start + i * PAGE, 1, 9);
    read_value(arena, 1, start + 300 * PAGE, 1, 9);
    read_value(arena, 1, start + 301 * PAGE, BYTES - 301 * PAGE, 1);
    read_value(arena, 1, start + 15 * PAGE, 285 * PAGE, 1);
    assert_in_range(fakes[0].copied_bytes - before, 6, 6 * PAGE);
    map_for_writing(arena, start, BYTES); /* what it wrote is known by now */
    sp_watched_map_end(arena, start);
    before = fakes[0].copied_bytes;
    read_value(arena, 2, start + 10 * PAGE, 1, 9);
    for (unsigned i = 10; i < 15; i++)
        read_value(arena, 1, start + i * PAGE, 1, 9);
    assert_int_equal(fakes[0].copied_bytes - before, 0);

    for (unsigned char round = 3; round < 6;
         round++) { /* densely: watched, then not, then watched */
        map_for_writing(arena, start, BYTES);
        memset(start, round, BYTES);
        sp_watched_map_end(arena, start);
        read_value(arena, 1, start, BYTES, round);
        read_value(arena, 2, start, BYTES, round);
    }
    map_for_writing(arena, start, BYTES);
    sp_arena_destroy(arena); /* still mapped */
}

static void what_is_not_used_is_evicted_and_comes_back(void **state)
{
    (void)state;
    enum { REGIONS = 3 * LIMIT_GRANULES };
    struct sp_arena *arena = new_arena();
    unsigned char *starts[REGIONS];
    for (int i = 0; i < REGIONS; i++) {
        starts[i] = sp_arena_alloc(arena, SP_GRANULE_BYTES, 0, 0, SP_PATH_PRIVATE);
        write_value(arena, 1, starts[i], SP_GRANULE_BYTES, (unsigned char)(i + 1));
    }
    assert_true(fakes[0].unbinds >= REGIONS - LIMIT_GRANULES);
    for (int i = 0; i < REGIONS; i++)
        read_value(arena, i % 2 ? 1 : 2, starts[i], SP_GRANULE_BYTES, (unsigned char)(i + 1));
    for (int i = 0; i < REGIONS; i++)
        read_value(arena, 0, starts[i], SP_GRANULE_BYTES, (unsigned char)(i + 1));
    sp_arena_destroy(arena);
}

static void what_is_out_of_reach_comes_by_way_of_the_host(void **state)
{
    (void)state;
    enum { BYTES = 8 * 4096, PART = 4096 };
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    is_separated = true;
    write_value(arena, 0, start, BYTES, 1);
    /* Every other part is on device 1 alone; of one of those the host has a copy, too. */
    for (int i = 0; i < BYTES / PART; i += 2)
        write_value(arena, 1, start + i * PART, PART, 2);
    read_value(arena, 0, start + 2 * PART, PART, 2);
    for (int i = 0; i < BYTES / PART; i++)
        read_value(arena, 2, start + i * PART, PART, i % 2 ? 1 : 2);
    write_value(arena, 1, start, BYTES, 3);
    read_value(arena, 2, start + PART / 2, BYTES - PART, 3);
    read_value(arena, 0, start, BYTES, 3);
    is_separated = false;
    sp_arena_destroy(arena);
}

static void more_than_fits_at_once_is_an_error(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    struct use use = {.bytes = (LIMIT_GRANULES + 1) * SP_GRANULE_BYTES, .function = only_write};
    use.start = sp_arena_alloc(arena, use.bytes, 0, 0, SP_PATH_PRIVATE);
    assert_int_equal(run_use(arena, &use, 1, SP_ACCESS_DISCARD), -ENOSPC);
    write_value(arena, 0, use.start, use.bytes, 3);
    sp_arena_destroy(arena);
}

static uint64_t lost_bytes;

static void count_loss(struct sp_region *region, uint64_t first, uint64_t end,
                       struct sp_device *device)
{
    (void)region;
    (void)device;
    lost_bytes += end - first;
}

static void ignore_end(struct sp_device *device)
{
    (void)device;
}

static void check_reason(struct sp_device *device, const char *reason)
{
    (void)device;
    assert_string_equal(reason, "a test");
}

static void a_death_loses_only_what_it_alone_held(void **state)
{
    (void)state;
    enum { BYTES = 50000 };
    struct sp_arena *arena = new_arena();
    unsigned char *shared = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    unsigned char *own = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    write_value(arena, 1, shared, BYTES, 7);
    read_value(arena, 2, shared, BYTES, 7);
    write_value(arena, 1, own, BYTES, 8);
    lost_bytes = 0;
    static const struct sp_loss_reports reports = {check_reason, count_loss, ignore_end};
    sp_coherence_set_loss_reports(&reports);
    fakes[0].device.lost(&fakes[0].device, "a test");
    sp_coherence_set_loss_reports(NULL);
    assert_int_equal(lost_bytes, BYTES);
    read_value(arena, 0, shared, BYTES, 7);
    read_value(arena, 1, shared, BYTES, 7);
    write_value(arena, 1, own, BYTES, 9);
    read_value(arena, 2, own, BYTES, 9);
    sp_arena_destroy(arena);
}

/* --- Commands that begin while something is under way --- */

/* Keeps a device busy until it is let go. */
static struct sp_gate stall_entered, stall_left;
static struct sp_work stall_work;

static void stall(void *argument)
{
    (void)argument;
    sp_gate_open(&stall_entered);
    sp_gate_wait(&stall_left);
}

static void ignore_finished(struct sp_work *work, int error)
{
    (void)work;
    (void)error;
}

static void stall_device(int i)
{
    sp_gate_init(&stall_entered);
    sp_gate_init(&stall_left);
    stall_work =
        (struct sp_work){.kind = SP_WORK_CALL, .call.function = stall, .finished = ignore_finished};
    fake_submit(&fakes[i].device, &stall_work);
    sp_gate_wait(&stall_entered);
}

static void begin_use(struct sp_arena *arena, struct use *use, uint32_t agent,
                      enum sp_access access)
{
    sp_gate_init(&use->ready);
    use->coherence.ready = use_ready;
    use->coherence.work = &use->work;
    assert_int_equal(sp_coherence_touch(&use->coherence, arena, use->start, use->bytes, access), 0);
    sp_coherence_begin(&use->coherence, arena, agent);
}

/* While an eviction is on its way, the device reads a part of it again, and dies: each byte is told
 * once. */
static void lose_in_part(uint64_t read_again)
{
    enum { BYTES = 2 << 20, LARGE = LIMIT_GRANULES * SP_GRANULE_BYTES };
    static const struct sp_loss_reports reports = {check_reason, count_loss, ignore_end};
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    struct use evictor = {.start = sp_arena_alloc(arena, LARGE, 0, 0, SP_PATH_PRIVATE),
                          .bytes = LARGE};
    struct use again = {.start = start + read_again, .bytes = BYTES / 2};
    write_value(arena, 1, start, BYTES, 8);
    stall_device(0);
    begin_use(arena, &evictor, 1, SP_ACCESS_DISCARD);
    sp_gate_wait(&evictor.ready);
    sp_coherence_end(&evictor.coherence, false);
    begin_use(arena, &again, 1, SP_ACCESS_READ);
    sp_gate_wait(&again.ready);
    lost_bytes = 0;
    sp_coherence_set_loss_reports(&reports);
    fakes[0].device.life++;
    fakes[0].device.lost(&fakes[0].device, "a test");
    sp_coherence_set_loss_reports(NULL);
    assert_int_equal(lost_bytes, BYTES);
    sp_coherence_end(&again.coherence, false);
    sp_gate_open(&stall_left);
    sp_arena_destroy(arena);
}

static void what_is_lost_on_its_way_is_told_once(void **state)
{
    (void)state;
    lose_in_part(0);
    lose_in_part(1 << 20);
}

static void readers_do_not_wait_for_each_other(void **state)
{
    (void)state;
    enum { BYTES = 4 << 20 };
    struct sp_arena *arena = new_arena();
    struct use uses[3], writer;
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    write_value(arena, 0, start, BYTES, 3);
    stall_device(0); /* its copy stays on its way */
    for (int i = 0; i < 3; i++) {
        uses[i] = (struct use){.start = start, .bytes = BYTES};
        begin_use(arena, &uses[i], (uint32_t)(i + 1) % 3, SP_ACCESS_READ);
        sp_gate_wait(&uses[i].ready);
    }
    /* Who changes what a copy is taken from does wait. */
    writer = (struct use){.start = start, .bytes = BYTES};
    begin_use(arena, &writer, 0, SP_ACCESS_READ_WRITE);
    assert_false(sp_gate_is_open(&writer.ready));
    sp_gate_open(&stall_left);
    sp_gate_wait(&writer.ready);
    for (int i = 0; i < 3; i++)
        sp_coherence_end(&uses[i].coherence, true);
    sp_coherence_end(&writer.coherence, true);
    sp_arena_destroy(arena);
}

enum { BESIDE_ALL = SP_BESIDE_WORKS | SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES };

static void start_use(struct sp_arena *arena, struct use *use, unsigned char *start, size_t bytes,
                      uint32_t agent, enum sp_access access)
{
    *use = (struct use){.start = start, .bytes = bytes};
    begin_use(arena, use, agent, access);
}

/* What a command comes after is what it uses, and a copy comes after who changes the region. */
static void says_what_may_run_beside_it(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20, HALF = BYTES / 2 };
    struct sp_arena *arena = new_arena();
    struct use uses[7];
    unsigned char *in = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    unsigned char *out = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    unsigned char *changed = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    write_value(arena, 0, in, BYTES, 1);
    write_value(arena, 1, out, BYTES, 2);
    write_value(arena, 0, changed, BYTES, 3);
    stall_device(0);

    /* What arrives is for whoever uses it. */
    start_use(arena, &uses[0], in, BYTES, 1, SP_ACCESS_READ);
    assert_int_equal(fakes[0].beside, BESIDE_ALL);
    assert_int_equal(sp_coherence_beside(&uses[0].coherence), SP_BESIDE_DEPARTURES);
    start_use(arena, &uses[1], in + HALF, 8, 1, SP_ACCESS_READ);
    assert_int_equal(sp_coherence_beside(&uses[1].coherence), SP_BESIDE_DEPARTURES);

    /* What leaves is in the way of whoever changes it. */
    start_use(arena, &uses[2], out, HALF, 0, SP_ACCESS_READ);
    assert_int_equal(fakes[0].beside, BESIDE_ALL);
    assert_false(sp_gate_is_open(&uses[2].ready));
    start_use(arena, &uses[3], out, BYTES, 1, SP_ACCESS_READ);
    assert_int_equal(sp_coherence_beside(&uses[3].coherence),
                     SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES);
    start_use(arena, &uses[4], out, BYTES, 1, SP_ACCESS_DISCARD);
    assert_int_equal(sp_coherence_beside(&uses[4].coherence), SP_BESIDE_ARRIVALS);

    /* A copy of what a command is going to change, elsewhere in the region. */
    unsigned transfers = fakes[0].transfers;
    start_use(arena, &uses[5], changed, HALF, 1, SP_ACCESS_READ_WRITE);
    assert_int_equal(fakes[0].beside, BESIDE_ALL); /* it is that command's own */
    start_use(arena, &uses[6], changed + HALF, HALF, 1, SP_ACCESS_READ);
    assert_int_equal(fakes[0].beside, SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES);
    assert_int_equal(fakes[0].transfers, transfers + 2);

    sp_gate_open(&stall_left);
    for (int i = 0; i < 7; i++) {
        sp_gate_wait(&uses[i].ready);
        sp_coherence_end(&uses[i].coherence, i != 4);
    }
    sp_arena_destroy(arena);
}

/* Every second of many small ranges is the host's. */
static void scatter(struct sp_arena *arena, unsigned char *start, unsigned count, size_t step)
{
    for (unsigned i = 0; i < count; i++)
        write_value(arena, 0, start + i * step, step / 2, (unsigned char)(i % 200 + 2));
}

static void check_scattered(struct use *use)
{
    const unsigned char *bytes = memory_of(use->coherence.agent, (uintptr_t)use->start);
    size_t step = use->old_value;
    for (size_t i = 0; i < use->bytes; i++)
        use->is_wrong |=
            bytes[i] != (i % step < step / 2 ? (unsigned char)(i / step % 200 + 2) : 1);
}

/* Many small ranges come together, and only they. */
static void scattered_ranges_are_one_copy(void **state)
{
    (void)state;
    enum { STEP = 64, COUNT = 1500, BYTES = COUNT * STEP };
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    write_value(arena, 1, start, BYTES, 1);
    scatter(arena, start, COUNT, STEP);
    struct use use = {
        .start = start, .bytes = BYTES, .old_value = STEP, .function = check_scattered};
    unsigned transfers = fakes[0].transfers;
    uint64_t copied = fakes[0].copied_bytes;
    assert_int_equal(run_use(arena, &use, 1, SP_ACCESS_READ), 0);
    assert_false(use.is_wrong);
    assert_int_equal(fakes[0].copied_bytes - copied, BYTES / 2);
    assert_int_equal(fakes[0].transfers - transfers, (COUNT + SP_MAX_PIECES - 1) / SP_MAX_PIECES);
    sp_arena_destroy(arena);
}

/* While they are on their way, what lies between them is free. */
static void what_lies_between_pieces_is_free(void **state)
{
    (void)state;
    enum { STEP = 4096, COUNT = 10, BYTES = COUNT * STEP };
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    struct use reader, between, touching;
    write_value(arena, 1, start, BYTES, 1);
    scatter(arena, start, COUNT, STEP);
    stall_device(0);
    start_use(arena, &reader, start, BYTES, 1, SP_ACCESS_READ);
    assert_true(sp_gate_is_open(&reader.ready));
    start_use(arena, &between, start + STEP * 3 + STEP / 2, STEP / 2, 0, SP_ACCESS_DISCARD);
    assert_true(sp_gate_is_open(&between.ready));
    start_use(arena, &touching, start + STEP * 3 + STEP / 2 - 1, STEP / 2, 0, SP_ACCESS_DISCARD);
    assert_false(sp_gate_is_open(&touching.ready));
    sp_gate_open(&stall_left);
    sp_gate_wait(&touching.ready);
    sp_coherence_end(&reader.coherence, true);
    sp_coherence_end(&between.coherence, false);
    sp_coherence_end(&touching.coherence, false);
    sp_arena_destroy(arena);
}

/* A copy that failed brought nothing, and what it was not to bring is still there. */
static void pieces_that_fail_are_forgotten(void **state)
{
    (void)state;
    enum { STEP = 64, COUNT = 100, BYTES = COUNT * STEP };
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    struct use use = {.start = start, .bytes = BYTES, .function = do_nothing};
    write_value(arena, 1, start, BYTES, 1);
    scatter(arena, start, COUNT, STEP);
    atomic_store(&fakes[0].transfer_error, -EIO);
    run_use(arena, &use, 1, SP_ACCESS_READ);
    atomic_store(&fakes[0].transfer_error, 0);
    uint64_t copied = fakes[0].copied_bytes;
    struct use again = {
        .start = start, .bytes = BYTES, .old_value = STEP, .function = check_scattered};
    assert_int_equal(run_use(arena, &again, 1, SP_ACCESS_READ), 0);
    assert_false(again.is_wrong);
    assert_int_equal(fakes[0].copied_bytes - copied, BYTES / 2);
    sp_arena_destroy(arena);
}

/* What is read again while it is on its way out arrives after it has left. */
static void what_leaves_and_returns_is_in_order(void **state)
{
    (void)state;
    enum { BYTES = 2 << 20, LARGE = LIMIT_GRANULES * SP_GRANULE_BYTES };
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    struct use evictor, again;
    write_value(arena, 1, start, BYTES, 8);
    stall_device(0);
    start_use(arena, &evictor, sp_arena_alloc(arena, LARGE, 0, 0, SP_PATH_PRIVATE), LARGE, 1,
              SP_ACCESS_DISCARD);
    sp_gate_wait(&evictor.ready);
    sp_coherence_end(&evictor.coherence, false);
    start_use(arena, &again, start, BYTES, 1, SP_ACCESS_READ);
    assert_int_equal(fakes[0].beside, SP_BESIDE_WORKS | SP_BESIDE_ARRIVALS);
    sp_gate_open(&stall_left);
    sp_gate_wait(&again.ready);
    sp_coherence_end(&again.coherence, true);
    read_value(arena, 0, start, BYTES, 8);
    sp_arena_destroy(arena);
}

static struct sp_arena *dying_arena;
static unsigned char *dying_start;

static void use_while_dying(struct sp_device *device)
{
    write_value(dying_arena, device->agent, dying_start, 4096, 5);
}

static void a_use_during_a_death_is_bound_in_the_next_life(void **state)
{
    (void)state;
    static const struct sp_loss_reports reports = {check_reason, count_loss, use_while_dying};
    dying_arena = new_arena();
    dying_start = sp_arena_alloc(dying_arena, 4 << 20, 0, 0, SP_PATH_PRIVATE);
    write_value(dying_arena, 1, dying_start, 4096, 4);
    unsigned binds = fakes[0].binds;
    sp_coherence_set_loss_reports(&reports);
    fakes[0].device.life++;
    fakes[0].device.lost(&fakes[0].device, "a test");
    sp_coherence_set_loss_reports(NULL);
    read_value(dying_arena, 1, dying_start, 4096, 5);
    assert_int_equal(fakes[0].binds - binds, 1);
    sp_arena_destroy(dying_arena);
}

static void a_copy_that_fails_is_an_error_and_no_stale_data(void **state)
{
    (void)state;
    enum { BYTES = 4096 };
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, BYTES, 0, 0, SP_PATH_PRIVATE);
    write_value(arena, 1, start, BYTES, 1);
    fakes[0].is_dead = true;
    struct use use = {.start = start, .bytes = BYTES, .old_value = 1, .function = only_check};
    assert_int_equal(run_use(arena, &use, 0, SP_ACCESS_READ), -EIO);
    struct sp_region *region = sp_arena_use(arena, start);
    assert_int_equal(sp_directory_state(&region->directory, 0, SP_AGENT_HOST), SP_INVALID);
    sp_arena_end_use(region);
    fakes[0].is_dead = false;
    sp_arena_destroy(arena);
}

static struct sp_region *told_of;
static unsigned told;
static bool is_told_well;
static char said[512];

/* As whoever is told may do it takes a lock of svm's. On the device's thread. */
static void take_notice(struct sp_device *device, const char *text)
{
    is_told_well = device == &fakes[0].device && !pthread_mutex_trylock(&told_of->lock);
    if (is_told_well)
        pthread_mutex_unlock(&told_of->lock);
    snprintf(said, sizeof said, "%s", text);
    told++;
}

/* An eviction that cannot bring back what only its device has: that is told, by a device that lives
 * on, in the rest of one sentence, and no lock is held. */
static void what_cannot_be_brought_back_is_told(void **state)
{
    (void)state;
    enum { BYTES = 4096, LARGE = LIMIT_GRANULES * SP_GRANULE_BYTES };
    struct sp_arena *arena = new_arena();
    unsigned char *start = sp_arena_alloc(arena, SP_GRANULE_BYTES, 0, 0, SP_PATH_PRIVATE);
    unsigned char *large = sp_arena_alloc(arena, LARGE, 0, 0, SP_PATH_PRIVATE);
    char expected[128];
    write_value(arena, 1, start, BYTES, 1);
    told_of = sp_arena_use(arena, start);
    fakes[0].device.noticed = take_notice;
    atomic_store(&fakes[0].transfer_error, -ENOMEM);
    write_value(arena, 1, large, LARGE, 2);
    atomic_store(&fakes[0].transfer_error, 0);
    fakes[0].device.noticed = NULL;
    assert_true(told == 1 && is_told_well);
    snprintf(expected, sizeof expected, "could not copy bytes 0 to 4095 of the region at %p to ",
             (void *)start);
    assert_memory_equal(said, expected, strlen(expected));
    assert_int_not_equal(said[strlen(said) - 1], '.');
    assert_false(sp_directory_is_held(&told_of->directory, 0, BYTES));
    sp_arena_end_use(told_of);
    sp_arena_destroy(arena);
}

static void a_freed_region_lasts_until_its_last_use(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    struct sp_region_info info;
    unsigned char *start = sp_arena_alloc(arena, 1000, 0, 0, SP_PATH_PRIVATE);
    struct sp_region *region = sp_arena_use(arena, start + 10);
    assert_non_null(region);
    assert_int_equal(sp_arena_free(arena, start), 0);
    assert_int_equal(sp_arena_free(arena, start), -EINVAL);
    assert_false(sp_region_find(start, &info));
    assert_null(sp_arena_use(arena, start));
    assert_ptr_equal(region->start, start);
    sp_arena_end_use(region);
    assert_ptr_equal(sp_arena_alloc(arena, 1000, 0, 0, SP_PATH_PRIVATE), start);
    sp_arena_destroy(arena);
}

/* Two threads, each with regions of its own in slabs that they share: evictions, copies and
 * bindings of one meet those of the other. */
struct player {
    struct sp_arena *arena;
    unsigned seed;
    bool is_wrong;
};

static void *play(void *argument)
{
    enum { REGIONS = 12, STEPS = 1000 };
    struct player *player = argument;
    static const size_t sizes[] = {300, 5000, 70000, 400000, 3 << 20};
    struct {
        unsigned char *start, value;
        size_t bytes;
    } regions[REGIONS] = {0};
    for (int step = 0; step < STEPS && !player->is_wrong; step++) {
        int i = rand_r(&player->seed) % REGIONS;
        if (!regions[i].start) {
            regions[i].bytes = sizes[(unsigned)rand_r(&player->seed) % 5];
            regions[i].start =
                sp_arena_alloc(player->arena, regions[i].bytes, 0, 0, SP_PATH_PRIVATE);
            struct use fresh = {.start = regions[i].start,
                                .bytes = regions[i].bytes,
                                .new_value = 0,
                                .function = only_write};
            player->is_wrong |= run_use(player->arena, &fresh, 0, SP_ACCESS_DISCARD) != 0;
            regions[i].value = 0;
        } else if (rand_r(&player->seed) % 40 == 0) {
            player->is_wrong |= sp_arena_free(player->arena, regions[i].start) != 0;
            regions[i].start = NULL;
        } else {
            uint32_t agent = (unsigned)rand_r(&player->seed) % (DEVICES + 1);
            bool writes = rand_r(&player->seed) % 2;
            struct use use = {.start = regions[i].start,
                              .bytes = regions[i].bytes,
                              .old_value = regions[i].value,
                              .new_value = (unsigned char)(writes ? step : regions[i].value),
                              .function = writes ? check_and_write : only_check};
            int error =
                run_use(player->arena, &use, agent, writes ? SP_ACCESS_READ_WRITE : SP_ACCESS_READ);
            /* Both players' pinned spans may leave no room for a large one. */
            if (error == -ENOMEM)
                continue;
            player->is_wrong |= error || use.is_wrong;
            regions[i].value = use.new_value;
        }
    }
    return NULL;
}

static void two_threads_never_see_stale_bytes(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    unsigned seed = getenv("SAMEPAGE_TEST_SEED") ? (unsigned)atoi(getenv("SAMEPAGE_TEST_SEED")) : 1;
    printf("seed %u (SAMEPAGE_TEST_SEED)\n", seed);
    struct player players[2] = {{arena, seed, false}, {arena, seed + 1000, false}};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, play, &players[1]), 0);
    play(&players[0]);
    pthread_join(thread, NULL);
    assert_false(players[0].is_wrong || players[1].is_wrong);
    sp_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_writes_all_others_read),
        cmocka_unit_test(reading_again_moves_nothing),
        cmocka_unit_test(a_part_moves_alone),
        cmocka_unit_test(only_written_pages_move_after_a_map),
        cmocka_unit_test(what_is_not_used_is_evicted_and_comes_back),
        cmocka_unit_test(what_is_out_of_reach_comes_by_way_of_the_host),
        cmocka_unit_test(more_than_fits_at_once_is_an_error),
        cmocka_unit_test(a_death_loses_only_what_it_alone_held),
        cmocka_unit_test(what_is_lost_on_its_way_is_told_once),
        cmocka_unit_test(readers_do_not_wait_for_each_other),
        cmocka_unit_test(says_what_may_run_beside_it),
        cmocka_unit_test(what_leaves_and_returns_is_in_order),
        cmocka_unit_test(scattered_ranges_are_one_copy),
        cmocka_unit_test(what_lies_between_pieces_is_free),
        cmocka_unit_test(pieces_that_fail_are_forgotten),
        cmocka_unit_test(a_use_during_a_death_is_bound_in_the_next_life),
        cmocka_unit_test(a_copy_that_fails_is_an_error_and_no_stale_data),
        cmocka_unit_test(what_cannot_be_brought_back_is_told),
        cmocka_unit_test(a_freed_region_lasts_until_its_last_use),
        cmocka_unit_test(two_threads_never_see_stale_bytes),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
