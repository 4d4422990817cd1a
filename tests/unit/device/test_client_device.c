/* device/client and samepage-device together: memory that is really separate, transfers between all
 * agents, kernels, many works. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_device.h"
#include "unit/unit.h"

#define MEMORY_MIB 64u

static struct sp_device *first, *second;

static const char source[] =
    "__constant int table[4] = {2, 3, 5, 7};\n"
    "__global int counter = 41;\n"
    "kernel void nothing(void) {}\n"
    "kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }\n"
    "kernel void lookup(global int *data) { size_t i = get_global_id(0); data[i] = table[i & 3]; "
    "}\n"
    "kernel void count(global int *data) { if (get_global_id(0) == 0) *data = ++counter; }\n"
    "kernel void wide(global int *data, int16 values) { data[0] = values.s0; data[1] = values.sf; "
    "}\n"
    "kernel void sum(global int *data, local int *scratch) {\n"
    "  size_t l = get_local_id(0); scratch[l] = data[get_global_id(0)];\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  if (l == 0) { int s = 0; for (size_t i = 0; i < get_local_size(0); i++) s += scratch[i];\n"
    "    data[get_global_id(0)] = s; } }\n";

static void tells_what_devices_are(void **state)
{
    (void)state;
    assert_int_equal(num_devices, 2);
    assert_string_equal(first->info.driver_name, "virtual");
    assert_true(first->info.own_memory);
    assert_int_equal(first->info.global_memory_bytes, MEMORY_MIB << 20);
    assert_int_equal(first->agent, 1);
    assert_int_equal(second->agent, 2);
    assert_int_equal(first->ops->numa_units(first, 0), first->info.compute_units);
    assert_int_equal(first->ops->partition(first, SP_PARTITION_UNITS, 0, 1, NULL), -ENOTSUP);
}

static void memories_are_separate(void **state)
{
    (void)state;
    unsigned char *at = host_pages(8, 1);
    memset(at, 1, GRANULE);
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    assert_int_equal(bind(second, at, GRANULE, false), 0);
    assert_int_equal(fill(first, at, GRANULE, 2), 0);
    assert_int_equal(fill(second, at, GRANULE, 3), 0);
    assert_true(is_all(at, GRANULE, 1));
    /* Each to the host, and back again. */
    assert_int_equal(transfer(first, at, GRANULE, 1, 0), 0);
    assert_true(is_all(at, GRANULE, 2));
    assert_int_equal(transfer(second, at + 100, 1000, 2, 0), 0);
    assert_true(is_all(at, 100, 2) && is_all(at + 100, 1000, 3) && is_all(at + 1100, 900, 2));
    memset(at, 4, GRANULE);
    assert_int_equal(transfer(first, at + 4097, 3, 0, 1), 0);
    assert_int_equal(transfer(second, at, GRANULE, 1, 2), 0); /* peer to peer, pulled */
    memset(at, 0, GRANULE);
    assert_int_equal(transfer(second, at, GRANULE, 2, 0), 0);
    assert_true(is_all(at, 4097, 2) && is_all(at + 4097, 3, 4) &&
                is_all(at + 4100, GRANULE - 4100, 2));
    assert_int_equal(unbind(first, at, GRANULE), 0);
    assert_int_equal(unbind(second, at, GRANULE), 0);
}

static void bound_memory_is_zero(void **state)
{
    (void)state;
    check_bound_memory_is_zero(first);
}

static void peers_share_memory(void **state)
{
    (void)state;
    check_peers_share_memory(first, second);
}

static void home_is_seen_by_all(void **state)
{
    (void)state;
    unsigned char *at = host_pages(30, 1);
    assert_int_equal(bind(first, at, GRANULE, true), 0);
    assert_int_equal(bind(second, at, GRANULE, true), 0);
    assert_int_equal(fill(first, at, 4096, 5), 0);
    assert_int_equal(copy(second, at + 8192, at, 4096), 0);
    assert_true(is_all(at, 4096, 5) && is_all(at + 4096, 4096, 0) && is_all(at + 8192, 4096, 5));
    assert_int_equal(unbind(first, at, GRANULE), 0);
    assert_int_equal(unbind(second, at, GRANULE), 0);
    assert_true(is_all(at, 4096, 5));
}

static void memory_has_a_limit(void **state)
{
    (void)state;
    size_t granules = (MEMORY_MIB << 20) / GRANULE;
    unsigned char *at = host_pages(64, granules + 1);
    assert_int_equal(bind(first, at, (granules + 1) * GRANULE, false), -ENOMEM);
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    assert_int_equal(bind(first, at + GRANULE, (granules - 1) * GRANULE, false), 0);
    assert_int_equal(bind(first, at + granules * GRANULE, GRANULE, false), -ENOMEM);
    /* The host's pages are not the device's. */
    assert_int_equal(bind(first, at + granules * GRANULE, GRANULE, true), 0);
    assert_int_equal(unbind(first, at, GRANULE), 0);
    assert_int_equal(bind(first, at + granules * GRANULE, GRANULE, false), 0);
    assert_int_equal(unbind(first, at, (granules + 1) * GRANULE), 0);
    assert_int_equal(bind(second, at, granules * GRANULE, false), 0);
    assert_int_equal(unbind(second, at, granules * GRANULE), 0);
}

static void wrong_ranges_are_refused(void **state)
{
    (void)state;
    unsigned char *at = host_pages(8, 4);
    assert_int_equal(bind(first, at + 1, GRANULE, false), -EINVAL);
    assert_int_equal(bind(first, at, GRANULE + 1, false), -EINVAL);
    assert_int_equal(bind(first, (void *)4096, GRANULE, false), -EINVAL);
    assert_int_equal(transfer(first, at, 16, 0, 1), -EFAULT);
    assert_int_equal(transfer(first, at, 16, 7, 1), -EINVAL);
    assert_int_equal(fill(first, at, 16, 1), -EFAULT);
    assert_int_equal(copy(first, at, at + 64, 16), -EFAULT);
    struct gated call = {.work = {.kind = SP_WORK_CALL}};
    assert_int_equal(run_work(first, &call), -ENOTSUP);
    assert_int_equal(losses_of(first), 0);
}

static void rectangles_and_patterns(void **state)
{
    (void)state;
    unsigned char *at = host_pages(8, 2);
    assert_int_equal(bind(first, at, 2 * GRANULE, false), 0);
    for (size_t i = 0; i < GRANULE; i++)
        at[i] = (unsigned char)(i % 251);
    assert_int_equal(transfer(first, at, 2 * GRANULE, 0, 1), 0);
    struct gated rect = {.work = {.kind = SP_WORK_COPY_RECT, .timed = true}};
    rect.work.rect.dst = at + GRANULE;
    rect.work.rect.src = at;
    rect.work.rect.rect = (struct sp_rect){30, 7, 4, 64, 64 * 8, 128, 128 * 16};
    assert_int_equal(run_work(first, &rect), 0);
    assert_true(rect.work.start_ns > 0 && rect.work.end_ns >= rect.work.start_ns);
    struct gated pattern = {.work = {.kind = SP_WORK_FILL}};
    pattern.work.fill.dst = at;
    pattern.work.fill.bytes = 1280;
    pattern.work.fill.pattern_bytes = 128;
    for (unsigned i = 0; i < 128; i++)
        pattern.work.fill.pattern[i] = (unsigned char)(i + 1);
    assert_int_equal(run_work(first, &pattern), 0);
    unsigned char *before = malloc(GRANULE);
    memcpy(before, at, GRANULE);
    assert_int_equal(transfer(first, at, 2 * GRANULE, 1, 0), 0);
    for (size_t z = 0; z < 4; z++)
        for (size_t y = 0; y < 7; y++)
            assert_memory_equal(at + GRANULE + z * 64 * 8 + y * 64, before + z * 128 * 16 + y * 128,
                                30);
    for (unsigned i = 0; i < 1280; i++)
        assert_int_equal(at[i], i % 128 + 1);
    assert_int_equal(at[1280], before[1280]);
    free(before);
    assert_int_equal(unbind(first, at, 2 * GRANULE), 0);
}

static void kernels_run(void **state)
{
    (void)state;
    struct test_code code;
    unsigned char *at = host_pages(8, 2);
    int *data = (int *)at;
    load_code(first, source, &code);
    assert_int_equal(bind(first, at, 2 * GRANULE, false), 0);
    struct {
        void *data;
        int value;
    } add = {at, 3};
    enum { ITEMS = 100000 };
    for (int i = 0; i < 5; i++)
        assert_int_equal(launch(first, &code, "add", ITEMS, &add), 0);
    assert_int_equal(transfer(first, at, 2 * GRANULE, 1, 0), 0);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(data[i], 15);
    assert_int_equal(data[ITEMS], 0);

    assert_int_equal(launch(first, &code, "lookup", 8, &at), 0);
    assert_int_equal(transfer(first, at, 32, 1, 0), 0);
    assert_int_equal(data[3], 7);
    assert_int_equal(data[4], 2);

    /* Local memory, and an argument block of more than a record's first lines. */
    struct {
        void *data;
        uint64_t local_bytes;
    } sum = {at + 4096, 64 * sizeof(int)};
    struct gated gated;
    set_kernel(first, &code, "sum", 64, &sum, &gated);
    gated.work.kernel.range.local_size[0] = 64;
    assert_int_equal(run_work(first, &gated), 0);
    assert_int_equal(transfer(first, at + 4096, 4, 1, 0), 0);
    assert_int_equal(data[1024], 64 * 15);
    struct {
        void *data;
        _Alignas(64) int values[16];
    } wide = {at, {11, [15] = 22}};
    assert_int_equal(launch(first, &code, "wide", 1, &wide), 0);
    assert_int_equal(transfer(first, at, 8, 1, 0), 0);
    assert_true(data[0] == 11 && data[1] == 22);

    /* Program-scope variables, in a granule of their own. */
    unsigned char *globals = at + GRANULE;
    gated.work = (struct sp_work){.kind = SP_WORK_INIT_GLOBALS, .init = {code.code, globals}};
    assert_int_equal(run_work(first, &gated), 0);
    for (int i = 0; i < 2; i++) {
        set_kernel(first, &code, "count", 1, &at, &gated);
        gated.work.kernel.globals = globals;
        assert_int_equal(run_work(first, &gated), 0);
    }
    assert_int_equal(transfer(first, at, 4, 1, 0), 0);
    assert_int_equal(data[0], 43);
    assert_int_equal(unbind(first, at, 2 * GRANULE), 0);
    unload_code(first, &code);
}

static void bad_code_is_refused(void **state)
{
    (void)state;
    struct test_code code;
    struct sp_code *loaded;
    char *log;
    load_code(first, source, &code);
    assert_int_equal(first->ops->load(first, "not ELF", 7, code.program.info, code.object.kernels,
                                      code.object.num_kernels, &log, &loaded),
                     -ENOEXEC);
    assert_non_null(strstr(log, "file too short"));
    free(log);
    assert_null(first->ops->find(code.code, "none"));
    unload_code(first, &code);
    first->ops->unload(NULL);
}

/* --- Many works ----------------------------------------------------------------------------------
 */

static atomic_uint starts;

static void count_start(struct sp_work *work)
{
    (void)work;
    atomic_fetch_add(&starts, 1);
}

struct submitter {
    pthread_t thread;
    unsigned char *at;
    unsigned works;
    unsigned char value;
};

/* More than the ring and the table hold, all in flight at once. */
static void *submit_many(void *argument)
{
    struct submitter *self = argument;
    struct gated *works = calloc(self->works, sizeof *works);
    for (unsigned i = 0; i < self->works; i++) {
        struct sp_work *work = &works[i].work;
        work->kind = SP_WORK_FILL;
        work->fill.dst = self->at + i % 1000;
        work->fill.bytes = 1;
        work->fill.pattern_bytes = 1;
        work->fill.pattern[0] = self->value;
        work->started = i % 3 ? NULL : count_start;
        submit(first, &works[i]);
    }
    unsigned wrong = 0;
    for (unsigned i = 0; i < self->works; i++)
        wrong += await(first, &works[i]) != 0;
    free(works);
    return (void *)(uintptr_t)wrong;
}

static void many_works_from_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 4, WORKS = 25002 };
    unsigned char *at = host_pages(8, 1);
    struct submitter all[THREADS];
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    starts = 0;
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct submitter){
            .at = at + 4096 * i, .works = WORKS, .value = (unsigned char)(i + 1)};
        assert_int_equal(pthread_create(&all[i].thread, NULL, submit_many, &all[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(all[i].thread, &wrong);
        assert_null(wrong);
    }
    assert_int_equal(starts, THREADS * WORKS / 3);
    assert_int_equal(transfer(first, at, GRANULE, 1, 0), 0);
    for (int i = 0; i < THREADS; i++)
        assert_true(is_all(at + 4096 * i, 1000, (unsigned char)(i + 1)));
    assert_int_equal(unbind(first, at, GRANULE), 0);
}

/* Records of every length, so that the ring's end is met at every distance. */
static void rings_wrap(void **state)
{
    (void)state;
    enum { WORKS = 30000 };
    unsigned char *at = host_pages(8, 1);
    struct gated *works = calloc(WORKS, sizeof *works);
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    for (unsigned i = 0; i < WORKS; i++) {
        struct sp_work *work = &works[i].work;
        work->kind = SP_WORK_FILL;
        work->fill.dst = at + i % 8192 * 128;
        work->fill.pattern_bytes = 1u << i % 8;
        work->fill.bytes = 128;
        memset(work->fill.pattern, (int)(i / 8192 + 1), sizeof work->fill.pattern);
        submit(first, &works[i]);
    }
    for (unsigned i = 0; i < WORKS; i++)
        assert_int_equal(await(first, &works[i]), 0);
    assert_int_equal(transfer(first, at, GRANULE, 1, 0), 0);
    for (unsigned i = 0; i < 8192; i++)
        assert_true(is_all(at + i * 128, 128, (unsigned char)((WORKS - 1 - i) / 8192 + 1)));
    free(works);
    assert_int_equal(unbind(first, at, GRANULE), 0);
}

/* --- Calls that submit and wait ------------------------------------------------------------------
 */

struct chain {
    struct gated gated; /* first */
    struct gated inner;
    unsigned char *at;
    int left;
    struct sp_gate end;
};

/* From within `finished`: waits for another work, then submits the next of the chain. */
static void go_on(struct sp_work *work, int error)
{
    struct chain *chain = (struct chain *)work;
    if (error || chain->left-- == 0) {
        sp_gate_open(&chain->end);
        return;
    }
    chain->inner.work = (struct sp_work){.kind = SP_WORK_FILL};
    chain->inner.work.fill.dst = chain->at;
    chain->inner.work.fill.bytes = chain->inner.work.fill.pattern_bytes = 1;
    chain->inner.work.fill.pattern[0] = (unsigned char)chain->left;
    if (run_work(first, &chain->inner))
        chain->left = 0;
    first->ops->submit(first, work);
}

static void calls_may_submit_and_wait(void **state)
{
    (void)state;
    struct chain chain = {.at = host_pages(8, 1), .left = 200};
    assert_int_equal(bind(first, chain.at, GRANULE, false), 0);
    sp_gate_init(&chain.end);
    chain.gated.work.kind = SP_WORK_FILL;
    chain.gated.work.fill.dst = chain.at + 1;
    chain.gated.work.fill.bytes = chain.gated.work.fill.pattern_bytes = 1;
    chain.gated.work.finished = go_on;
    first->ops->submit(first, &chain.gated.work);
    first->ops->wait(first, &chain.end, NULL);
    assert_int_equal(chain.left, -1);
    assert_int_equal(unbind(first, chain.at, GRANULE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_devices_are),
        cmocka_unit_test(memories_are_separate),
        cmocka_unit_test(bound_memory_is_zero),
        cmocka_unit_test(peers_share_memory),
        cmocka_unit_test(home_is_seen_by_all),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(wrong_ranges_are_refused),
        cmocka_unit_test(rectangles_and_patterns),
        cmocka_unit_test(kernels_run),
        cmocka_unit_test(bad_code_is_refused),
        cmocka_unit_test(many_works_from_many_threads),
        cmocka_unit_test(rings_wrap),
        cmocka_unit_test(calls_may_submit_and_wait),
    };
    set_up_devices("virtual:2,mem=64M");
    first = devices[0];
    second = devices[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
