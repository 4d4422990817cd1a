/* What the cuda backend runs beside one another, and what in order, on a stand-in for CUDA
 * (fake_cuda/) in which a kernel or a copy waits until the test lets it go. */
#include <string.h>
#include <unistd.h>

#include "one_fake_gpu.h"

/* As fake_cuda.c has it. */
#define FAKE_WAITS UINT64_C(0x7374696177207469)

/* How long a work is given that must not end. */
#define A_WHILE_US 20000

/* Two private regions, A and B, of which the host has pages, and one at home for the gates. */
static unsigned char *a, *b;
static volatile uint64_t *gates;

static bool has_ended(const struct gated *gated)
{
    return sp_gate_is_open((struct sp_gate *)&gated->gate);
}

static bool stays(const struct gated *gated)
{
    usleep(A_WHILE_US);
    return !has_ended(gated);
}

static void start_kernel(const char *name, struct kernel_args *args, uint32_t beside,
                         struct gated *gated)
{
    *gated = (struct gated){.work = {.kind = SP_WORK_KERNEL, .beside = beside}};
    gated->work.kernel.kernel = device->ops->find(code, name);
    gated->work.kernel.range =
        (struct sp_ndrange){.work_dim = 1, .global_size = {1, 1, 1}, .local_size = {1, 1, 1}};
    gated->work.kernel.args = (unsigned char *)args;
    submit(device, gated);
}

/* A kernel that ends when gate n is opened. */
static void start_gate(unsigned n, struct gated *gated)
{
    struct kernel_args args = {(void *)&gates[n], 0};
    gates[n] = 0;
    start_kernel("gate", &args, SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES, gated);
}

static void start_add(void *at, int value, uint32_t beside, struct gated *gated)
{
    struct kernel_args args = {at, value};
    start_kernel("add", &args, beside, gated);
}

static void start_transfer(void *at, size_t bytes, uint32_t source, uint32_t destination,
                           uint32_t beside, struct gated *gated)
{
    *gated = (struct gated){.work = {.kind = SP_WORK_TRANSFER, .beside = beside}};
    gated->work.range.start = (uintptr_t)at;
    gated->work.range.bytes = bytes;
    gated->work.range.source = source;
    gated->work.range.destination = destination;
    submit(device, gated);
}

static void start_arrival(void *at, size_t bytes, uint32_t beside, struct gated *gated)
{
    start_transfer(at, bytes, 0, 1, beside, gated);
}

static void start_departure(void *at, size_t bytes, uint32_t beside, struct gated *gated)
{
    start_transfer(at, bytes, 1, 0, beside, gated);
}

static int bind_all(void **state)
{
    (void)state;
    a = host_pages(8, 4);
    b = host_pages(16, 4);
    gates = (uint64_t *)host_pages(24, 1);
    memset(a, 1, 4 * GRANULE);
    memset(b, 2, 4 * GRANULE);
    return bind(device, a, 4 * GRANULE, false) || bind(device, b, 4 * GRANULE, false) ||
           bind(device, (void *)gates, GRANULE, true) || transfer(device, a, 4 * GRANULE, 0, 1) ||
           transfer(device, b, 4 * GRANULE, 0, 1);
}

static int unbind_all(void **state)
{
    (void)state;
    return unbind(device, a, 4 * GRANULE) || unbind(device, b, 4 * GRANULE) ||
           unbind(device, (void *)gates, GRANULE);
}

/* Both ways, large and small, while a kernel runs. */
static void transfers_pass_a_kernel(void **state)
{
    (void)state;
    enum { SMALL = 40 };
    struct gated kernel, in, out, small[2 * SMALL];
    start_gate(0, &kernel);
    memset(a, 3, 4 * GRANULE);
    memset(b, 0, 4 * GRANULE);
    start_arrival(a, 3 * GRANULE, BESIDE_ALL, &in);
    start_departure(b, 3 * GRANULE, BESIDE_ALL, &out);
    assert_int_equal(await(device, &in), 0);
    assert_int_equal(await(device, &out), 0);
    assert_true(is_all(b, 3 * GRANULE, 2));
    for (int i = 0; i < 2 * SMALL; i++) {
        unsigned char *at = (i % 2 ? a : b) + 3 * GRANULE + (unsigned)i * 8192u;
        if (i % 2)
            start_departure(at, 4096, BESIDE_ALL, &small[i]);
        else
            start_arrival(at, 4096, BESIDE_ALL, &small[i]);
    }
    for (int i = 0; i < 2 * SMALL; i++)
        assert_int_equal(await(device, &small[i]), 0);
    assert_false(has_ended(&kernel));
    gates[0] = 1;
    assert_int_equal(await(device, &kernel), 0);
    assert_int_equal(transfer(device, a, 3 * GRANULE, 1, 0), 0);
    assert_true(is_all(a, 3 * GRANULE, 3) && is_all(a + 3 * GRANULE + 8192, 4096, 1));
}

/* What the kernel changes leaves after it; what it uses comes after it. */
static void transfers_wait_for_a_kernel(void **state)
{
    (void)state;
    const uint32_t others = SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES;
    struct gated kernel, add, out, in, later;
    uint32_t word;
    start_gate(1, &kernel);
    start_add(b, 5, others, &add);
    start_departure(b, 4096, others, &out);
    start_arrival(a, GRANULE, others, &in);
    assert_true(stays(&out) && stays(&in) && stays(&add));
    /* In the lanes of those, it comes after them; still the device is not idle. */
    memset(a, 4, GRANULE);
    start_arrival(a + GRANULE, GRANULE, BESIDE_ALL, &later);
    assert_true(stays(&later));
    memset(a, 5, GRANULE);
    gates[1] = 1;
    assert_int_equal(await(device, &out), 0);
    assert_int_equal(await(device, &in), 0);
    assert_int_equal(await(device, &add) | await(device, &kernel) | await(device, &later), 0);
    memcpy(&word, b, sizeof word);
    assert_int_equal(word, 0x02020207);
    assert_int_equal(transfer(device, a, GRANULE, 1, 0), 0);
    assert_true(is_all(a, GRANULE, 5));
}

/* A kernel that uses what arrives comes after it, one that does not need not. */
static void kernels_wait_for_arrivals(void **state)
{
    (void)state;
    const uint64_t waits = FAKE_WAITS;
    struct gated in, beside, behind, out;
    uint64_t value = 100;
    memcpy(a, &waits, sizeof waits);
    start_arrival(a, 2 * GRANULE, BESIDE_ALL, &in);
    start_add(b, 1, SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES, &beside);
    assert_int_equal(await(device, &beside), 0);
    start_departure(b, 2 * GRANULE, SP_BESIDE_WORKS | SP_BESIDE_ARRIVALS, &out);
    assert_int_equal(await(device, &out), 0);
    assert_false(has_ended(&in));
    start_add(a, 1, SP_BESIDE_DEPARTURES, &behind);
    start_departure(b, 2 * GRANULE, SP_BESIDE_WORKS, &out); /* after what arrives, too */
    assert_true(stays(&behind) && stays(&out) && stays(&in));
    memcpy(a, &value, sizeof value);
    assert_int_equal(await(device, &in) | await(device, &behind) | await(device, &out), 0);
    assert_int_equal(transfer(device, a, 8, 1, 0), 0);
    memcpy(&value, a, sizeof value);
    assert_int_equal(value, 101);
}

/* A kernel that changes what leaves comes after it. */
static void kernels_wait_for_departures(void **state)
{
    (void)state;
    const uint64_t waits = FAKE_WAITS;
    struct gated out, add, in;
    uint32_t word;
    /* The departure is kept back by an arrival. */
    memcpy(a, &waits, sizeof waits);
    start_arrival(a, GRANULE, BESIDE_ALL, &in);
    start_departure(b, GRANULE, SP_BESIDE_WORKS, &out);
    start_add(b, 9, SP_BESIDE_ARRIVALS, &add);
    assert_true(stays(&out) && stays(&add));
    memset(a, 1, 8);
    assert_int_equal(await(device, &out) | await(device, &in) | await(device, &add), 0);
    memcpy(&word, b, sizeof word);
    assert_int_equal(word, 0x02020202);
    assert_int_equal(transfer(device, b, 4, 1, 0), 0);
    memcpy(&word, b, sizeof word);
    assert_int_equal(word, 0x0202020b);
}

/* Who says nothing comes after everything. */
static void nothing_said_is_in_order(void **state)
{
    (void)state;
    const uint64_t waits = FAKE_WAITS;
    struct gated in, add, out;
    memcpy(a, &waits, sizeof waits);
    start_arrival(a, GRANULE, 0, &in);
    start_add(b, 1, 0, &add);
    start_departure(b, GRANULE, 0, &out);
    assert_true(stays(&add) && stays(&out));
    memset(a, 7, 8);
    assert_int_equal(await(device, &in) | await(device, &add) | await(device, &out), 0);
    assert_int_equal(b[0], 3);
}

/* Memory is zero for whatever comes first, and is taken away when the last user has ended. */
static void bindings_are_in_order(void **state)
{
    (void)state;
    unsigned char *c = host_pages(32, 2);
    struct gated kernel, in, out, add;
    struct gated on = {.work = {.kind = SP_WORK_BIND}}, off = {.work = {.kind = SP_WORK_UNBIND}};
    const uint64_t waits = FAKE_WAITS;
    memset(c, 6, 2 * GRANULE);
    start_gate(2, &kernel);
    on.work.range.start = off.work.range.start = (uintptr_t)c;
    on.work.range.bytes = off.work.range.bytes = 2 * GRANULE;
    submit(device, &on);
    start_departure(c, GRANULE, BESIDE_ALL, &out);
    assert_int_equal(await(device, &out), 0);
    assert_true(is_all(c, GRANULE, 0) && is_all(c + GRANULE, GRANULE, 6));
    gates[2] = 1;
    assert_int_equal(await(device, &kernel) | await(device, &on), 0);
    memcpy(c, &waits, sizeof waits);
    start_arrival(c, GRANULE, BESIDE_ALL, &in);
    submit(device, &off);
    start_add(b, 1, SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES, &add);
    assert_int_equal(await(device, &add), 0);
    assert_true(stays(&off) && stays(&in));
    memset(c, 1, 8);
    assert_int_equal(await(device, &in) | await(device, &off), 0);
    assert_int_equal(bind(device, c, 2 * GRANULE, false), 0);
    assert_int_equal(transfer(device, c, GRANULE, 1, 0), 0);
    assert_true(is_all(c, GRANULE, 0));
    assert_int_equal(unbind(device, c, 2 * GRANULE), 0);
}

int main(void)
{
    make_gpu();
#define WITH_REGIONS(test) cmocka_unit_test_setup_teardown(test, bind_all, unbind_all)
    const struct CMUnitTest tests[] = {
        WITH_REGIONS(transfers_pass_a_kernel),   WITH_REGIONS(transfers_wait_for_a_kernel),
        WITH_REGIONS(kernels_wait_for_arrivals), WITH_REGIONS(kernels_wait_for_departures),
        WITH_REGIONS(nothing_said_is_in_order),  WITH_REGIONS(bindings_are_in_order),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
