/* Devices whose memory is exported in parts, one for each binding: transfers between them take what
 * is there now, whenever the messages arrive; and devices that die, start later, do not read or lie
 * about their exports end no wait of others but with an error. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client_device.h"
#include "device/client/client.h"
#include "unit/unit.h"
#include "util/time.h"

static struct sp_device *first, *second;

static unsigned char byte_at_host(unsigned char *at)
{
    assert_int_equal(transfer(second, at, GRANULE, 2, 0), 0);
    return at[GRANULE - 1];
}

static void set_transfer(struct gated *gated, void *at)
{
    memset(gated, 0, sizeof *gated);
    gated->work.kind = SP_WORK_TRANSFER;
    gated->work.range.start = (uintptr_t)at;
    gated->work.range.bytes = GRANULE;
    gated->work.range.source = 1;
    gated->work.range.destination = 2;
}

/* While this is held the second process gets no message. It may hold up the first device's thread,
 * so that works of the first are awaited without its help. */
static void hold_messages(void)
{
    struct client_device *device = client_of(first);
    pthread_mutex_lock(&device->lock);
    while (device->state != CLIENT_RUNNING) /* else its start would be held up */
        pthread_cond_wait(&device->moved, &device->lock);
    pthread_mutex_unlock(&device->lock);
    pthread_mutex_lock(&client_of(second)->socket_lock);
}

static void release_messages(void)
{
    pthread_mutex_unlock(&client_of(second)->socket_lock);
}

static int run_alone(struct gated *gated)
{
    struct client_device *device = client_of(first);
    submit(first, gated);
    while (!sp_gate_is_open(&gated->gate)) {
        if (pthread_mutex_trylock(&device->claim) == 0) {
            if (device->rings)
                sp_client_take_completions(device);
            sp_client_unclaim(device);
            sp_client_deliver(device, &gated->gate);
        }
        sched_yield();
    }
    return gated->error;
}

/* The first device's memory at `at` is new and full of `value`. */
static void bind_alone(unsigned char *at, unsigned char value)
{
    struct gated gated = {.work = {.kind = SP_WORK_BIND}};
    gated.work.range.start = (uintptr_t)at;
    gated.work.range.bytes = GRANULE;
    assert_int_equal(run_alone(&gated), 0);
    gated = (struct gated){.work = {.kind = SP_WORK_FILL}};
    gated.work.fill.dst = at;
    gated.work.fill.bytes = GRANULE;
    gated.work.fill.pattern_bytes = 1;
    gated.work.fill.pattern[0] = value;
    assert_int_equal(run_alone(&gated), 0);
}

/* The transfer's record is read before the message with the part arrives. */
static void a_transfer_waits_for_its_part(void **state)
{
    (void)state;
    unsigned char *at = host_pages(8, 1);
    struct gated gated;
    assert_int_equal(bind(second, at, GRANULE, false), 0);
    hold_messages();
    bind_alone(at, 5);
    set_transfer(&gated, at);
    submit(second, &gated);
    usleep(20000); /* room for a wrong end; a right one needs no time */
    assert_false(sp_gate_is_open(&gated.gate));
    release_messages();
    assert_int_equal(await(second, &gated), 0);
    assert_int_equal(byte_at_host(at), 5);
    assert_int_equal(unbind(first, at, GRANULE), 0);
    assert_int_equal(unbind(second, at, GRANULE), 0);
}

/* The part that was there before is not taken for the one that is there now. */
static void a_transfer_takes_the_new_part(void **state)
{
    (void)state;
    unsigned char *at = host_pages(8, 1);
    assert_int_equal(bind(second, at, GRANULE, false), 0);
    for (int i = 0; i < 40; i++) {
        struct gated gated;
        bool is_held = i % 2;
        assert_int_equal(bind(first, at, GRANULE, false), 0);
        assert_int_equal(fill(first, at, GRANULE, 100), 0);
        assert_int_equal(transfer(second, at, GRANULE, 1, 2), 0);
        if (is_held)
            hold_messages();
        struct gated unbound = {.work = {.kind = SP_WORK_UNBIND}};
        unbound.work.range.start = (uintptr_t)at;
        unbound.work.range.bytes = GRANULE;
        assert_int_equal(run_alone(&unbound), 0);
        bind_alone(at, (unsigned char)i);
        set_transfer(&gated, at);
        submit(second, &gated);
        if (is_held)
            release_messages();
        assert_int_equal(await(second, &gated), 0);
        assert_int_equal(byte_at_host(at), i);
        assert_int_equal(unbind(first, at, GRANULE), 0);
        assert_int_equal(transfer(second, at, GRANULE, 1, 2), -ENODEV);
    }
    assert_int_equal(unbind(second, at, GRANULE), 0);
}

/* One range over several parts, and parts of one region that are not there. */
static void a_range_may_lie_in_several_parts(void **state)
{
    (void)state;
    enum { GRANULES = 4 };
    unsigned char *at = host_pages(8, GRANULES);
    assert_int_equal(bind(second, at, GRANULES * GRANULE, false), 0);
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    assert_int_equal(bind(first, at + GRANULE, 2 * GRANULE, false), 0);
    assert_int_equal(fill(first, at, 3 * GRANULE, 9), 0);
    assert_int_equal(transfer(second, at + GRANULE - 64, GRANULE + 128, 1, 2), 0);
    assert_int_equal(transfer(second, at, GRANULES * GRANULE, 2, 0), 0);
    assert_int_equal(at[GRANULE - 65], 0);
    assert_int_equal(at[GRANULE - 64], 9);
    assert_int_equal(at[2 * GRANULE + 63], 9);
    assert_int_equal(at[2 * GRANULE + 64], 0);
    assert_int_equal(transfer(second, at, GRANULES * GRANULE, 1, 2), -ENODEV);
    /* A buffer goes whole or not at all. */
    assert_int_equal(unbind(first, at + GRANULE, GRANULE), -EINVAL);
    assert_int_equal(unbind(first, at + 2 * GRANULE, GRANULE), -EINVAL);
    assert_int_equal(unbind(first, at, 3 * GRANULE), 0);
    assert_int_equal(unbind(second, at, GRANULES * GRANULE), 0);
}

/* A binding that is larger than a buffer can be: several of them, bound and unbound as one. */
static void a_large_binding_has_several_buffers(void **state)
{
    (void)state;
    const size_t bytes = (size_t)3 << 30, border = (size_t)2 << 30;
    uintptr_t window;
    size_t window_bytes;
    sp_window_range(&window, &window_bytes);
    unsigned char *at = (unsigned char *)window + 4096 * GRANULE;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(bind(first, at, bytes, false), 0);
        assert_int_equal(bind(second, at + border - GRANULE, 2 * GRANULE, false), 0);
        assert_int_equal(copy(first, at + border, at, 4096),
                         0); /* zeroes, also in the second round */
        assert_int_equal(fill(first, at + border - 100, 200, (unsigned char)(7 + round)), 0);
        assert_int_equal(transfer(second, at + border - GRANULE, 2 * GRANULE, 1, 2), 0);
        unsigned char *host = host_pages(4096 + border / GRANULE - 1, 2);
        assert_int_equal(transfer(second, host, 2 * GRANULE, 2, 0), 0);
        assert_int_equal(host[GRANULE - 101], 0);
        assert_int_equal(host[GRANULE - 100], 7 + round);
        assert_int_equal(host[GRANULE + 99], 7 + round);
        assert_int_equal(host[GRANULE + 100], 0);
        assert_int_equal(unbind(first, at, bytes), 0);
        assert_int_equal(unbind(second, at + border - GRANULE, 2 * GRANULE), 0);
        assert_int_equal(fill(first, at + border, 1, 1), -EFAULT);
    }
}

/* What a transfer is copying stays until its end. */
static void unbinding_the_source_takes_nothing_away(void **state)
{
    (void)state;
    enum { BYTES = 24 * GRANULE };
    unsigned char *at = host_pages(8, BYTES / GRANULE);
    assert_int_equal(bind(second, at, BYTES, false), 0);
    unsigned good = 0;
    for (int i = 0; i < 12; i++) {
        struct gated gated;
        assert_int_equal(bind(first, at, BYTES, false), 0);
        assert_int_equal(fill(first, at, BYTES, (unsigned char)(i + 1)), 0);
        set_transfer(&gated, at);
        gated.work.range.bytes = BYTES;
        submit(second, &gated);
        for (int spin = 0; spin < i * 3000; spin++)
            __asm__ volatile("" ::: "memory");
        assert_int_equal(unbind(first, at, BYTES), 0);
        int error = await(second, &gated);
        assert_true(error == 0 || error == -ENODEV);
        if (!error) {
            good++;
            assert_int_equal(transfer(second, at, BYTES, 2, 0), 0);
            for (size_t k = 0; k < BYTES; k += 4096)
                assert_int_equal(at[k], i + 1);
        }
    }
    assert_true(good > 0);
    assert_int_equal(losses_of(second), 0);
    assert_int_equal(unbind(second, at, BYTES), 0);
}

/* The source dies while its message is on its way: its data, or an error; and a wait for what will
 * never come ends. */
static void the_source_may_die_in_between(void **state)
{
    (void)state;
    unsigned char *at = host_pages(8, 1);
    struct gated gated[3];
    for (int round = 0; round < 6; round++) {
        unsigned before = losses_of(first);
        assert_int_equal(bind(second, at, GRANULE, false), 0);
        hold_messages();
        bind_alone(at, 7);
        for (int i = 0; i < 3; i++) {
            set_transfer(&gated[i], at);
            submit(second, &gated[i]);
        }
        kill(process_of(first), SIGKILL);
        if (round % 2)
            usleep(3000);
        release_messages();
        for (int i = 0; i < 3; i++) {
            int error = await(second, &gated[i]);
            assert_true(error == 0 || error == -EIO);
            if (!error)
                assert_int_equal(byte_at_host(at), 7);
        }
        await_losses(first, before + 1);
        await_next_process(first);
        assert_int_equal(transfer(second, at, GRANULE, 1, 2), -ENODEV);
        assert_int_equal(unbind(second, at, GRANULE), 0);
    }
    assert_int_equal(losses_of(second), 0);
}

/* A device that starts again is told what the others have exported meanwhile. */
static void who_starts_later_is_told_of_all_parts(void **state)
{
    (void)state;
    enum { PARTS = 8 };
    unsigned char *at = host_pages(8, PARTS);
    for (int round = 0; round < 3; round++) {
        unsigned before = losses_of(second);
        for (int i = 0; i < PARTS; i++) {
            assert_int_equal(bind(first, at + (size_t)i * GRANULE, GRANULE, false), 0);
            assert_int_equal(
                fill(first, at + (size_t)i * GRANULE, GRANULE, (unsigned char)(i + round)), 0);
            if (i == PARTS / 2)
                kill(process_of(second), SIGKILL);
        }
        await_losses(second, before + 1);
        await_next_process(second);
        assert_int_equal(bind(second, at, PARTS * GRANULE, false), 0);
        assert_int_equal(transfer(second, at, PARTS * GRANULE, 1, 2), 0);
        assert_int_equal(transfer(second, at, PARTS * GRANULE, 2, 0), 0);
        for (int i = 0; i < PARTS; i++)
            assert_int_equal(at[((size_t)i + 1) * GRANULE - 1], i + round);
        assert_int_equal(unbind(first, at, PARTS * GRANULE), 0);
        assert_int_equal(unbind(second, at, PARTS * GRANULE), 0);
    }
}

static unsigned count_files(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Makes parts come and go, each of which the second process is told of. */
static void send_messages(unsigned count)
{
    uintptr_t window;
    size_t window_bytes;
    sp_window_range(&window, &window_bytes);
    for (unsigned i = 0; i < count; i++) {
        void *at = (void *)(window + (100 + i % 100) * GRANULE);
        assert_int_equal(bind(first, at, GRANULE, false), 0);
        assert_int_equal(unbind(first, at, GRANULE), 0);
    }
}

static void assert_transfers_arrive(unsigned char value)
{
    unsigned char *at = host_pages(8, 1);
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    assert_int_equal(fill(first, at, GRANULE, value), 0);
    assert_int_equal(bind(second, at, GRANULE, false), 0);
    assert_int_equal(transfer(second, at, GRANULE, 1, 2), 0);
    assert_int_equal(byte_at_host(at), value);
    assert_int_equal(unbind(first, at, GRANULE), 0);
    assert_int_equal(unbind(second, at, GRANULE), 0);
}

/* More messages than a socket holds wait in the application; many more end the process that does
 * not read them. */
static void messages_wait_for_a_process_that_stands_still(void **state)
{
    (void)state;
    unsigned before = losses_of(second);
    pid_t process = process_of(second);
    kill(process, SIGSTOP);
    send_messages(1500);
    kill(process, SIGCONT);
    assert_transfers_arrive(3);
    assert_int_equal(losses_of(second), before);
    kill(process, SIGSTOP);
    send_messages(17500);
    await_losses(second, before + 1);
    assert_non_null(strstr(last_reason(), "did not read its messages"));
    await_next_process(second);
    assert_transfers_arrive(4);
}

/* The application keeps no files, however many parts there are. */
static void parts_keep_no_files_open(void **state)
{
    (void)state;
    enum { PARTS = 1200 };
    uintptr_t window;
    size_t window_bytes;
    sp_window_range(&window, &window_bytes);
    unsigned char *at = (unsigned char *)window + 100 * GRANULE;
    unsigned files = count_files();
    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(bind(first, at + i * GRANULE, GRANULE, false), 0);
    assert_int_equal(bind(second, at, PARTS * GRANULE, false), 0);
    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(transfer(second, at + i * GRANULE, 64, 1, 2), 0);
    /* The last one goes on its way, and lets its transfer end, before it is closed. */
    uint64_t limit_ns = sp_time_ns() + UINT64_C(5000000000);
    while (count_files() != files && sp_time_ns() < limit_ns)
        sched_yield();
    assert_int_equal(count_files(), files);
    assert_int_equal(unbind(first, at, PARTS * GRANULE), 0);
    assert_int_equal(unbind(second, at, PARTS * GRANULE), 0);
}

/* --- A process that lies -------------------------------------------------------------------------
 */

/* This program again, with a first device that is a fake one. The second waits for a message that
 * never comes; its wait ends with the lie, or with the first's process. */
static int be_application(const char *kind)
{
    struct gated gated;
    bool is_lie = !strcmp(kind, "unexport never");
    setenv("SAMEPAGE_TEST_REAL_DEVICE", getenv("SAMEPAGE_DEVICE_PROGRAM"), 1);
    setenv("SAMEPAGE_DEVICE_PROGRAM", getenv("SAMEPAGE_TEST_FAKE_DEVICE"), 1);
    setenv("SAMEPAGE_TEST_NONSENSE", kind, 1);
    setenv("SAMEPAGE_TEST_MEMORY", "parts", 1);
    set_up_devices("virtual,threads=1,virtual,threads=2,mem=64M");
    first = devices[0];
    second = devices[1];
    unsigned char *at = host_pages(8, 1);
    if (bind(second, at, GRANULE, false))
        return 1;
    hold_messages();
    if (bind(first, at, GRANULE, false))
        return 2;
    set_transfer(&gated, at);
    submit(second, &gated);
    if (!is_lie)
        release_messages();
    usleep(20000);
    if (sp_gate_is_open(&gated.gate))
        return 3;
    if (is_lie)
        release_messages();
    else
        kill(process_of(first), SIGKILL);
    if (await(second, &gated) != -EIO)
        return 4;
    await_losses(first, 1);
    return (!is_lie || strstr(last_reason(), "not understood")) && losses_of(second) == 0 ? 0 : 5;
}

static void be_application_with(const char *kind)
{
    int status;
    pid_t application = fork();
    if (application == 0) {
        execl("/proc/self/exe", "application", kind, (char *)NULL);
        _exit(127);
    }
    waitpid(application, &status, 0);
    assert_int_equal(status, 0);
}

static void a_lie_ends_the_liar_and_the_wait(void **state)
{
    (void)state;
    be_application_with("unexport never");
}

static void the_end_of_who_does_not_answer_ends_the_wait(void **state)
{
    (void)state;
    be_application_with("no answer");
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return be_application(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transfer_waits_for_its_part),
        cmocka_unit_test(a_transfer_takes_the_new_part),
        cmocka_unit_test(a_range_may_lie_in_several_parts),
        cmocka_unit_test(a_large_binding_has_several_buffers),
        cmocka_unit_test(unbinding_the_source_takes_nothing_away),
        cmocka_unit_test(the_source_may_die_in_between),
        cmocka_unit_test(who_starts_later_is_told_of_all_parts),
        cmocka_unit_test(messages_wait_for_a_process_that_stands_still),
        cmocka_unit_test(parts_keep_no_files_open),
        cmocka_unit_test(a_lie_ends_the_liar_and_the_wait),
        cmocka_unit_test(the_end_of_who_does_not_answer_ends_the_wait),
    };
    set_up_devices("virtual:2,mem=4G,parts");
    first = devices[0];
    second = devices[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
