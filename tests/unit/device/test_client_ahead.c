/* Fences: works that wait in their device's process for works of other devices, or of their own. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_device.h"
#include "device/client/client.h"
#include "unit/unit.h"

/* How long a work is given that must not end. */
#define A_WHILE_US 20000

/* For one work, in all of these tests. */
#define LIMIT_SECONDS 3

static struct sp_device *first, *second;
static struct test_code codes[2];
static unsigned char *flags; /* at home: byte n lets gate n go */

static const char source[] =
    "kernel void gate(global volatile uchar *flag) { while (!*flag) {} }\n"
    "kernel void step(global uint *data, uint value) { *data = *data * 3 + value; }\n"
    "kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }\n";

static int set_up(void **state)
{
    (void)state;
    char limit[16];
    snprintf(limit, sizeof limit, "%d", LIMIT_SECONDS);
    setenv("SAMEPAGE_KERNEL_SECONDS", limit, 1);
    set_up_devices("virtual:2,mem=64M,threads=2");
    if (num_devices != 2)
        return -1;
    first = devices[0];
    second = devices[1];
    load_code(first, source, &codes[0]);
    load_code(second, source, &codes[1]);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unload_code(first, &codes[0]);
    unload_code(second, &codes[1]);
    return 0;
}

/* Before each test, since a device may have died in the one before. */
static int bind_flags(void **state)
{
    (void)state;
    flags = host_pages(8, 1);
    return bind(first, flags, GRANULE, true) || bind(second, flags, GRANULE, true) ? -1 : 0;
}

static bool has_ended(const struct gated *gated)
{
    return sp_gate_is_open((struct sp_gate *)&gated->gate);
}

static bool stays(const struct gated *gated)
{
    usleep(A_WHILE_US);
    return !has_ended(gated);
}

static sp_fence take(struct sp_device *device)
{
    sp_fence fence = device->ops->take_fence(device);
    assert_true(fence);
    return fence;
}

/* A kernel that ends when its flag is set. */
static void start_gate(struct sp_device *device, unsigned char *flag, sp_fence fence,
                       struct gated *gated)
{
    static unsigned char *args[16];
    static unsigned next;
    unsigned char **arg = &args[next++ % 16];
    *arg = flag;
    *flag = 0;
    set_kernel(device, &codes[device == second], "gate", 1, arg, gated);
    gated->work.fence = fence;
    submit(device, gated);
}

/* A fill that comes after `after`, where that is not 0. */
static void start_fill(struct sp_device *device, void *at, size_t bytes, unsigned char value,
                       sp_fence after, sp_fence fence, struct gated *gated)
{
    *gated = (struct gated){.work = {.kind = SP_WORK_FILL}};
    gated->work.fill.dst = at;
    gated->work.fill.bytes = bytes;
    gated->work.fill.pattern_bytes = 1;
    gated->work.fill.pattern[0] = value;
    gated->work.fence = fence;
    gated->work.after[0] = after;
    gated->work.num_after = after ? 1 : 0;
    submit(device, gated);
}

static void what_waits_is_in_nobodys_way(void **state)
{
    (void)state;
    struct gated gate, held, other;
    sp_fence fence = take(first);
    start_gate(first, &flags[0], fence, &gate);
    start_fill(second, flags + 100, 10, 5, fence, 0, &held);
    start_fill(second, flags + 200, 10, 6, 0, 0, &other);
    assert_int_equal(await(second, &other), 0);
    assert_true(is_all(flags + 200, 10, 6));
    assert_true(stays(&held) && is_all(flags + 100, 10, 0));
    flags[0] = 1;
    assert_int_equal(await(second, &held), 0);
    assert_true(is_all(flags + 100, 10, 5));
    assert_int_equal(await(first, &gate), 0);
    /* And again, with what is reached already. */
    start_fill(second, flags + 100, 10, 7, fence, 0, &held);
    assert_int_equal(await(second, &held), 0);
    assert_true(is_all(flags + 100, 10, 7));
    first->ops->drop_fence(fence);
}

static void all_of_several_are_waited_for(void **state)
{
    (void)state;
    struct gated gates[3], held;
    sp_fence fences[3] = {take(first), take(second), take(first)};
    start_gate(first, &flags[0], fences[0], &gates[0]);
    start_gate(second, &flags[1], fences[1], &gates[1]);
    start_gate(first, &flags[2], fences[2], &gates[2]);
    held = (struct gated){.work = {.kind = SP_WORK_FILL, .num_after = 3}};
    memcpy(held.work.after, fences, sizeof fences);
    held.work.fill.dst = flags + 100;
    held.work.fill.bytes = held.work.fill.pattern_bytes = 1;
    held.work.fill.pattern[0] = 9;
    submit(second, &held);
    static const int order[] = {1, 0, 2};
    for (int i = 0; i < 3; i++) {
        assert_true(stays(&held));
        flags[order[i]] = 1;
    }
    assert_int_equal(await(second, &held), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(await(i == 1 ? second : first, &gates[i]), 0);
        first->ops->drop_fence(fences[i]);
    }
}

/* To and fro, all of it sent at once. */
static void a_long_chain_goes_by_itself(void **state)
{
    (void)state;
    enum { LENGTH = 1000 };
    static struct gated works[LENGTH], gate;
    static sp_fence fences[LENGTH + 1];
    fences[0] = take(first);
    start_gate(first, &flags[0], fences[0], &gate);
    for (int i = 0; i < LENGTH; i++) {
        struct sp_device *device = i % 2 ? first : second;
        fences[i + 1] = take(device);
        struct {
            void *at;
            int value;
        } args = {flags + 128, 1};
        set_kernel(device, &codes[device == second], "add", 1, &args, &works[i]);
        works[i].work.fence = fences[i + 1];
        works[i].work.after[0] = fences[i];
        works[i].work.num_after = 1;
        submit(device, &works[i]);
    }
    assert_true(stays(&works[0]));
    flags[0] = 1;
    assert_int_equal(await(first, &works[LENGTH - 1]), 0);
    assert_int_equal(*(int *)(flags + 128), LENGTH);
    for (int i = 0; i < LENGTH; i++)
        assert_int_equal(await(i % 2 ? first : second, &works[i]), 0);
    assert_int_equal(await(first, &gate), 0);
    for (int i = 0; i <= LENGTH; i++)
        first->ops->drop_fence(fences[i]);
}

/* However the end of what they wait for falls into the time in which they are looked through, which
 * they are with each one that comes. */
static void what_waits_for_the_same_keeps_its_order(void **state)
{
    (void)state;
    enum { COUNT = 600, ROUNDS = 30 };
    static struct gated gate, works[COUNT];
    static struct {
        void *at;
        int value;
    } args[COUNT];
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t model = 0;
        sp_fence fence = take(first);
        memset(flags + 128, 0, 4);
        start_gate(first, &flags[0], fence, &gate);
        for (int i = 0; i < COUNT; i++) {
            args[i].at = flags + 128;
            args[i].value = i;
            set_kernel(second, &codes[1], "step", 1, &args[i], &works[i]);
            works[i].work.after[0] = fence;
            works[i].work.num_after = 1;
            submit(second, &works[i]);
            if (i == COUNT / 2 + round)
                flags[0] = 1;
            model = model * 3 + (uint32_t)i;
        }
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(await(second, &works[i]), 0);
        assert_int_equal(*(uint32_t *)(flags + 128), model);
        assert_int_equal(await(first, &gate), 0);
        first->ops->drop_fence(fence);
    }
}

static void a_bad_end_cancels(void **state)
{
    (void)state;
    unsigned char *nowhere = host_pages(30, 1); /* not bound */
    struct gated gate, fails, held, behind;
    sp_fence fence = take(first), own = take(second);
    start_gate(first, &flags[0], 0, &gate);
    start_fill(first, nowhere, 10, 1, 0, fence, &fails);
    start_fill(second, flags + 100, 10, 5, fence, own, &held);
    start_fill(second, flags + 100, 10, 6, own, 0, &behind);
    assert_true(stays(&held));
    flags[0] = 1;
    assert_int_equal(await(first, &gate), 0);
    assert_int_equal(await(first, &fails), -EFAULT);
    assert_int_equal(await(second, &held), -ECANCELED);
    assert_int_equal(await(second, &behind), -ECANCELED);
    assert_true(is_all(flags + 100, 10, 0));
    first->ops->drop_fence(fence);
    first->ops->drop_fence(own);
}

static void what_no_process_gets_is_reached_badly(void **state)
{
    (void)state;
    struct gated never, held;
    sp_fence fence = take(first);
    never = (struct gated){.work = {.kind = SP_WORK_FILL, .fence = fence}};
    never.work.life = first->life + 1;
    submit(first, &never);
    assert_int_equal(await(first, &never), -EIO);
    start_fill(second, flags + 100, 10, 5, fence, 0, &held);
    assert_int_equal(await(second, &held), -ECANCELED);
    first->ops->drop_fence(fence);
}

static void a_death_cancels_what_waits_elsewhere(void **state)
{
    (void)state;
    struct gated gate, held;
    unsigned losses = losses_of(first);
    sp_fence fence = take(first);
    start_gate(first, &flags[0], fence, &gate);
    start_fill(second, flags + 100, 10, 5, fence, 0, &held);
    assert_true(stays(&held));
    kill(process_of(first), SIGKILL);
    assert_int_equal(await(second, &held), -ECANCELED);
    assert_int_equal(await(first, &gate), -EIO);
    await_losses(first, losses + 1);
    await_next_process(first);
    assert_true(is_all(flags + 100, 10, 0));
    first->ops->drop_fence(fence);
}

static void a_death_ends_what_waits_there(void **state)
{
    (void)state;
    struct gated gate, held, next;
    unsigned losses = losses_of(second);
    sp_fence fence = take(first), own = take(second);
    start_gate(first, &flags[0], fence, &gate);
    start_fill(second, flags + 100, 10, 5, fence, own, &held);
    start_fill(first, flags + 200, 10, 6, own, 0, &next);
    assert_true(stays(&held));
    kill(process_of(second), SIGKILL);
    assert_int_equal(await(second, &held), -EIO);
    assert_true(stays(&gate));
    flags[0] = 1;
    assert_int_equal(await(first, &gate), 0);
    assert_int_equal(await(first, &next), -ECANCELED);
    await_losses(second, losses + 1);
    await_next_process(second);
    first->ops->drop_fence(fence);
    first->ops->drop_fence(own);
}

static void nonsense_ends_the_process(void **state)
{
    (void)state;
    struct gated held;
    unsigned losses = losses_of(second);
    sp_fence fence = take(first);
    /* A number of 0 is none that anybody can reach. */
    start_fill(second, flags + 100, 10, 5,
               sp_fence_of(sp_fence_device(fence), sp_fence_slot(fence), 0), 0, &held);
    assert_int_equal(await(second, &held), -EIO);
    await_losses(second, losses + 1);
    assert_non_null(strstr(last_reason(), "waits for a fence that cannot be"));
    await_next_process(second);
    first->ops->drop_fence(fence);
}

/* What is bound at an address when a transfer is sent is not what is there when it goes. */
static void the_memory_of_the_end_is_what_counts(void **state)
{
    (void)state;
    unsigned char *at = host_pages(40, 1);
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    assert_int_equal(bind(second, at, GRANULE, false), 0);
    assert_int_equal(fill(first, at, GRANULE, 3), 0);
    assert_int_equal(transfer(second, at, GRANULE, first->agent, second->agent), 0);
    sp_fence fence = take(first);
    struct gated gate, unbound = {.work = {.kind = SP_WORK_UNBIND}},
                       bound = {.work = {.kind = SP_WORK_BIND}}, filled,
                       moved = {.work = {.kind = SP_WORK_TRANSFER, .num_after = 1}};
    unbound.work.range.start = bound.work.range.start = moved.work.range.start = (uintptr_t)at;
    unbound.work.range.bytes = bound.work.range.bytes = moved.work.range.bytes = GRANULE;
    moved.work.range.source = first->agent;
    moved.work.range.destination = second->agent;
    moved.work.after[0] = fence;
    start_gate(first, &flags[0], 0, &gate);
    submit(first, &unbound);
    submit(first, &bound);
    start_fill(first, at, GRANULE, 7, 0, fence, &filled);
    submit(second, &moved);
    assert_true(stays(&moved));
    /* The process is not told meanwhile, and has to wait for that. */
    pthread_mutex_lock(&client_of(second)->socket_lock);
    flags[0] = 1;
    bool is_held = stays(&moved);
    pthread_mutex_unlock(&client_of(second)->socket_lock);
    assert_true(is_held || !getenv("SAMEPAGE_TEST_MEMORY"));
    assert_int_equal(await(second, &moved), 0);
    assert_int_equal(transfer(second, at, GRANULE, second->agent, 0), 0);
    assert_true(is_all(at, GRANULE, 7));
    assert_int_equal(await(first, &gate) | await(first, &unbound) | await(first, &bound) |
                         await(first, &filled),
                     0);
    assert_int_equal(unbind(first, at, GRANULE), 0);
    assert_int_equal(unbind(second, at, GRANULE), 0);
    first->ops->drop_fence(fence);
}

static void a_fence_is_nobody_elses_while_it_is_kept(void **state)
{
    (void)state;
    static sp_fence fences[SP_FENCE_SLOTS];
    for (unsigned i = 0; i < SP_FENCE_SLOTS; i++)
        fences[i] = take(first);
    assert_true(first->ops->take_fence(first) == 0);
    first->ops->keep_fence(fences[7]);
    first->ops->drop_fence(fences[7]);
    assert_true(first->ops->take_fence(first) == 0);
    first->ops->drop_fence(fences[7]);
    sp_fence again = take(first);
    assert_true(sp_fence_slot(again) == sp_fence_slot(fences[7]) &&
                sp_fence_number(again) == sp_fence_number(fences[7]) + 1);
    fences[7] = again;
    for (unsigned i = 0; i < SP_FENCE_SLOTS; i++)
        first->ops->drop_fence(fences[i]);
}

/* The limit is for what runs, not for what waits. */
static void the_time_limit_counts_what_runs(void **state)
{
    (void)state;
    enum { GATES = 2 };
    struct gated gates[GATES], held;
    unsigned losses = losses_of(second);
    sp_fence fence = take(first);
    for (unsigned i = 0; i < GATES; i++)
        start_gate(first, &flags[i], i + 1 == GATES ? fence : 0, &gates[i]);
    start_fill(second, flags + 100, 10, 5, fence, 0, &held);
    for (unsigned i = 0; i < GATES; i++) {
        usleep(LIMIT_SECONDS * 600000);
        flags[i] = 1;
    }
    assert_int_equal(await(second, &held), 0);
    for (unsigned i = 0; i < GATES; i++)
        assert_int_equal(await(first, &gates[i]), 0);
    assert_int_equal(losses_of(second), losses);
    first->ops->drop_fence(fence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_waits_is_in_nobodys_way, bind_flags),
        cmocka_unit_test_setup(all_of_several_are_waited_for, bind_flags),
        cmocka_unit_test_setup(a_long_chain_goes_by_itself, bind_flags),
        cmocka_unit_test_setup(what_waits_for_the_same_keeps_its_order, bind_flags),
        cmocka_unit_test_setup(a_bad_end_cancels, bind_flags),
        cmocka_unit_test_setup(what_no_process_gets_is_reached_badly, bind_flags),
        cmocka_unit_test_setup(a_death_cancels_what_waits_elsewhere, bind_flags),
        cmocka_unit_test_setup(a_death_ends_what_waits_there, bind_flags),
        cmocka_unit_test_setup(nonsense_ends_the_process, bind_flags),
        cmocka_unit_test_setup(the_memory_of_the_end_is_what_counts, bind_flags),
        cmocka_unit_test_setup(a_fence_is_nobody_elses_while_it_is_kept, bind_flags),
        cmocka_unit_test_setup(the_time_limit_counts_what_runs, bind_flags),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
