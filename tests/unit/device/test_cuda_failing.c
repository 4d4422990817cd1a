/* Calls of CUDA's that find no memory while the process lives on, on a stand-in (fake_cuda/): the
 * command's own error; what may rely on it is cancelled, untouched; what does not, and what comes
 * when it is known, is done. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "one_fake_gpu.h"

static char next[FOLDER_PATH_BYTES]; /* the file that says which call fails */

/* A private region of which the host has pages, others to bind, and one at home for the gate. */
static unsigned char *a, *b;
static volatile uint64_t *gates;

/* The next `count` calls of that name find no memory. */
static void let_fail(const char *call, unsigned count)
{
    FILE *file = fopen(next, "w");
    assert_non_null(file);
    fprintf(file, "%s %u ", call, count);
    fclose(file);
}

/* Until all of them were made. */
static void await_calls(void)
{
    unsigned count = 1;
    while (count) {
        char name[64];
        FILE *file = fopen(next, "r");
        assert_non_null(file);
        if (fscanf(file, "%63s %u", name, &count) != 2)
            count = 1; /* it is being written */
        fclose(file);
        sched_yield();
    }
}

static uint32_t failures(void)
{
    return atomic_load(&device->failures);
}

/* What is counted when `finished` has returned, which the gate does not wait for. */
static void await_failures(uint32_t count)
{
    while (failures() != count)
        sched_yield();
}

static void start_kernel(const char *name, struct kernel_args *args, uint32_t seen,
                         struct gated *gated)
{
    gated->work.kind = SP_WORK_KERNEL;
    gated->work.failures_seen = seen;
    gated->work.kernel.kernel = device->ops->find(code, name);
    gated->work.kernel.range =
        (struct sp_ndrange){.work_dim = 1, .global_size = {1, 1, 1}, .local_size = {1, 1, 1}};
    gated->work.kernel.args = (unsigned char *)args;
    submit(device, gated);
}

static void start_add(void *at, int value, uint32_t seen, struct gated *gated)
{
    struct kernel_args args = {at, value};
    *gated = (struct gated){0};
    start_kernel("add", &args, seen, gated);
}

static void start_gate(struct gated *gated)
{
    struct kernel_args args = {(void *)gates, 0};
    gates[0] = 0;
    start_kernel("gate", &args, 0, gated);
}

static void start_range(enum sp_work_kind kind, void *at, size_t bytes, struct gated *gated)
{
    *gated = (struct gated){.work = {.kind = kind}};
    gated->work.range.start = (uintptr_t)at;
    gated->work.range.bytes = bytes;
    submit(device, gated);
}

static void start_transfer(void *at, size_t bytes, uint32_t source, uint32_t seen,
                           struct gated *gated)
{
    *gated = (struct gated){
        .work = {.kind = SP_WORK_TRANSFER, .beside = BESIDE_ALL, .failures_seen = seen}};
    gated->work.range.start = (uintptr_t)at;
    gated->work.range.bytes = bytes;
    gated->work.range.source = source;
    gated->work.range.destination = !source;
    submit(device, gated);
}

static int word_of(unsigned char *at)
{
    int word;
    assert_int_equal(transfer(device, at, sizeof word, 1, 0), 0);
    memcpy(&word, at, sizeof word);
    return word;
}

static int bind_all(void **state)
{
    (void)state;
    a = host_pages(8, 4);
    b = host_pages(16, 5);
    gates = (uint64_t *)host_pages(24, 1);
    memset(b, 7, 5 * GRANULE);
    return bind(device, a, 4 * GRANULE, false) || bind(device, (void *)gates, GRANULE, true);
}

static int unbind_all(void **state)
{
    (void)state;
    unlink(next);
    return unbind(device, a, 4 * GRANULE) || unbind(device, (void *)gates, GRANULE);
}

/* `failed` is what fails: what says the old count is not done, what relies on nothing is. */
static void check_failure(struct gated *failed, int error, uint32_t seen)
{
    struct gated behind, arrival, beside, later;
    start_add(a, 100, seen, &behind);
    start_transfer(a + GRANULE, 4096, 0, seen, &arrival);
    start_add(a + 2 * GRANULE, 1, 0, &beside);
    assert_int_equal(await(device, failed), error);
    assert_int_equal(await(device, &behind), -ECANCELED);
    assert_int_equal(await(device, &arrival), -ECANCELED);
    assert_int_equal(await(device, &beside), 0);
    await_failures(seen + 3);
    start_add(a, 10, seen, &later);
    assert_int_equal(await(device, &later), -ECANCELED);
    await_failures(seen + 4);
    start_add(a, 1, seen + 4, &later);
    assert_int_equal(await(device, &later), 0);
    assert_int_equal(word_of(a), 1);
    assert_int_equal(word_of(a + 2 * GRANULE), 1);
}

static void a_binding_fails(void **state)
{
    (void)state;
    static const char *const calls[] = {"cuMemCreate", "cuMemMap", "cuMemSetAccess",
                                        "cuMemsetD8Async"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct gated failed;
        uint32_t seen = failures();
        let_fail(calls[i], 1);
        start_range(SP_WORK_BIND, b, (i + 1) * GRANULE, &failed); /* no spare is as large */
        check_failure(&failed, -ENOMEM, seen);
        assert_int_equal(bind(device, b, (i + 1) * GRANULE, false), 0);
        assert_int_equal(word_of(b), 0);
        assert_int_equal(unbind(device, b, (i + 1) * GRANULE), 0);
        assert_int_equal(unbind(device, a, 4 * GRANULE), 0);
        assert_int_equal(bind(device, a, 4 * GRANULE, false), 0);
    }
}

static void a_home_binding_fails(void **state)
{
    (void)state;
    struct gated failed = {.work = {.kind = SP_WORK_BIND}};
    uint32_t seen = failures();
    let_fail("cuMemHostRegister", 1);
    failed.work.range.start = (uintptr_t)b;
    failed.work.range.bytes = GRANULE;
    failed.work.range.is_home = true;
    submit(device, &failed);
    check_failure(&failed, -ENOMEM, seen);
}

static void a_large_arrival_fails(void **state)
{
    (void)state;
    struct gated failed;
    uint32_t seen = failures();
    memset(a, 0, 4 * GRANULE);
    assert_int_equal(transfer(device, a, 4 * GRANULE, 0, 1), 0);
    let_fail("cuMemcpyHtoDAsync", 1);
    start_transfer(a, GRANULE, 0, 0, &failed);
    check_failure(&failed, -ENOMEM, seen);
}

/* Held back, and enqueued only when something comes that is to be behind it: two pieces one by one,
 * more by a kernel. */
static void small_arrivals_fail(void **state)
{
    (void)state;
    static const char *const calls[] = {[2] = "cuMemcpyHtoDAsync", [3] = "cuLaunchKernel"};
    struct sp_piece pieces[3];
    memset(a, 0, 4 * GRANULE);
    assert_int_equal(transfer(device, a, 4 * GRANULE, 0, 1), 0);
    for (unsigned count = 2; count <= 3; count++) {
        struct gated failed = {.work = {.kind = SP_WORK_TRANSFER, .beside = BESIDE_ALL}};
        uint32_t seen = failures();
        struct gated behind, later;
        for (unsigned i = 0; i < count; i++)
            pieces[i] = (struct sp_piece){(uintptr_t)a + GRANULE + i * 32768, 20480};
        failed.work.range.start = pieces[0].start;
        failed.work.range.bytes = 3 * 32768;
        failed.work.range.destination = 1;
        failed.work.range.pieces = pieces;
        failed.work.range.num_pieces = count;
        let_fail(calls[count], 1);
        submit(device, &failed);
        start_add(a, 100, seen, &behind);
        assert_int_equal(await(device, &failed), -ENOMEM);
        assert_int_equal(await(device, &behind), -ECANCELED);
        await_failures(seen + 2);
        start_add(a, 1, failures(), &later);
        assert_int_equal(await(device, &later), 0);
        assert_int_equal(word_of(a), (int)count - 1);
    }
}

static void a_departure_fails(void **state)
{
    (void)state;
    struct gated failed;
    uint32_t seen = failures();
    memset(a, 0, 4 * GRANULE);
    assert_int_equal(transfer(device, a, 4 * GRANULE, 0, 1), 0);
    let_fail("cuMemcpyDtoHAsync", 1);
    start_transfer(a + 3 * GRANULE, GRANULE, 1, 0, &failed);
    check_failure(&failed, -ENOMEM, seen);
}

/* It is copied all the same, both ways. */
static void pages_that_cannot_be_registered(void **state)
{
    (void)state;
    uint32_t seen = failures();
    struct gated add;
    memset(a, 3, 4 * GRANULE);
    let_fail("cuMemHostRegister", 2);
    assert_int_equal(transfer(device, a, 4 * GRANULE, 0, 1), 0);
    start_add(a, 1, seen, &add);
    assert_int_equal(await(device, &add), 0);
    memset(a, 0, 4 * GRANULE);
    assert_int_equal(transfer(device, a, 4 * GRANULE, 1, 0), 0);
    assert_int_equal(a[0], 4);
    assert_true(is_all(a + 4, 4 * GRANULE - 4, 3));
    assert_int_equal(failures(), seen);
}

/* What is held back is looked at when it is let go. */
static void a_parked_kernel_is_stale(void **state)
{
    (void)state;
    struct gated gate = {0}, parked = {0}, failed;
    struct kernel_args args = {a, 100};
    uint32_t seen = failures();
    gate.work.fence = device->ops->take_fence(device);
    assert_true(gate.work.fence);
    start_gate(&gate);
    device->ops->keep_fence(gate.work.fence);
    parked.work.after[parked.work.num_after++] = gate.work.fence;
    start_kernel("add", &args, seen, &parked);
    let_fail("cuMemMap", 1);
    start_range(SP_WORK_BIND, b, 5 * GRANULE, &failed);
    await_calls();
    gates[0] = 1;
    assert_int_equal(await(device, &failed), -ENOMEM);
    assert_int_equal(await(device, &gate), 0);
    assert_int_equal(await(device, &parked), -ECANCELED);
    device->ops->drop_fence(gate.work.fence);
    device->ops->drop_fence(gate.work.fence);
    assert_int_equal(word_of(a), 0);
}

int main(void)
{
    make_gpu();
    make_path(next, "next");
    setenv("FAKE_CUDA_FAILS_NEXT", next, 1);
#define WITH_REGIONS(test) cmocka_unit_test_setup_teardown(test, bind_all, unbind_all)
    const struct CMUnitTest tests[] = {
        WITH_REGIONS(a_binding_fails),          WITH_REGIONS(a_home_binding_fails),
        WITH_REGIONS(a_large_arrival_fails),    WITH_REGIONS(small_arrivals_fail),
        WITH_REGIONS(a_departure_fails),        WITH_REGIONS(pages_that_cannot_be_registered),
        WITH_REGIONS(a_parked_kernel_is_stale),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
