/* Device processes that die: by a crash, by SIGKILL, by the time limit, with their application.
 * What they take with them is reported, all else goes on, and the next process does new work. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client_device.h"
#include "unit/unit.h"

static struct sp_device *first, *second;
static struct test_code code, second_code;

static const char source[] =
    "kernel void poke(global int *data) { data[get_global_id(0)] = 1; }\n"
    "kernel void fault(global int *data) { if (get_global_id(0) == 70000) *data = 1; }\n"
    "kernel void hold(volatile global int *flags) { flags[1] = 1; while (!flags[0]) ; }\n"
    "kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }\n";

/* A pidfd becomes readable when its process has ended, reaped or not. */
static void await_end(pid_t process)
{
    struct pollfd polled = {.fd = (int)syscall(SYS_pidfd_open, process, 0), .events = POLLIN};
    if (polled.fd < 0)
        return; /* it has been reaped already */
    assert_int_equal(poll(&polled, 1, 10000), 1);
    close(polled.fd);
}

static bool is_alive(pid_t process)
{
    struct pollfd polled = {.fd = (int)syscall(SYS_pidfd_open, process, 0), .events = POLLIN};
    bool is_ended = polled.fd < 0 || poll(&polled, 1, 0) == 1;
    if (polled.fd >= 0)
        close(polled.fd);
    return !is_ended;
}

/* The device does works of all kinds. */
static void assert_is_usable(struct sp_device *device, struct test_code *loaded)
{
    unsigned char *at = host_pages(8, 1);
    struct {
        void *data;
        int value;
    } add = {at, 5};
    assert_int_equal(bind(device, at, GRANULE, false), 0);
    assert_int_equal(launch(device, loaded, "add", 100, &add), 0);
    assert_int_equal(transfer(device, at, GRANULE, device->agent, 0), 0);
    assert_int_equal(((int *)at)[99], 5);
    assert_int_equal(unbind(device, at, GRANULE), 0);
}

static void assert_reason(const char *part)
{
    if (!strstr(last_reason(), part))
        fail_msg("\"%s\" does not say \"%s\"", last_reason(), part);
}

static void unbound_access_ends_the_device_only(void **state)
{
    (void)state;
    unsigned before = losses_of(first);
    pid_t other = process_of(second);
    unsigned char *at = host_pages(40, 1);
    memset(at, 8, GRANULE);
    assert_int_equal(launch(first, &code, "poke", 1, &at), -EIO);
    assert_int_equal(losses_of(first), before + 1);
    assert_reason("signal 11 (Segmentation fault) at address 0x");
    assert_reason("while running kernel 'poke'");
    assert_int_equal(losses_of(second), 0);
    assert_int_equal(at[0], 8);
    assert_is_usable(first, &code);
    assert_is_usable(second, &second_code);
    assert_int_equal(process_of(second), other);
}

/* Also those of the pool, which block all signals in an application. */
static void every_thread_reports_its_crash(void **state)
{
    (void)state;
    unsigned char *at = host_pages(40, 1);
    assert_int_equal(launch(first, &code, "fault", 1 << 17, &at), -EIO);
    assert_reason("signal 11 (Segmentation fault)");
    assert_reason("while running kernel 'fault'");
    assert_is_usable(first, &code);
}

static void works_behind_a_crash_fail(void **state)
{
    (void)state;
    enum { WORKS = 6000 };
    unsigned before = losses_of(first);
    unsigned char *at = host_pages(8, 1);
    unsigned char *nowhere = host_pages(40, 1);
    struct gated *works = calloc(WORKS, sizeof *works), crash;
    assert_int_equal(bind(first, at, GRANULE, false), 0);
    set_kernel(first, &code, "poke", 1, &nowhere, &crash);
    submit(first, &crash);
    for (int i = 0; i < WORKS; i++) {
        works[i].work.kind = SP_WORK_FILL;
        works[i].work.fill.dst = at;
        works[i].work.fill.bytes = works[i].work.fill.pattern_bytes = 1;
        submit(first, &works[i]);
    }
    assert_int_equal(await(first, &crash), -EIO);
    for (int i = 0; i < WORKS; i++)
        await(first, &works[i]); /* each is finished: those that came late by the next process */
    assert_int_equal(works[0].error, -EIO);
    assert_int_equal(losses_of(first), before + 1);
    free(works);
    assert_is_usable(first, &code);
}

/* Starts a kernel that holds until the host lets it go, and returns when it runs. */
static void hold(struct gated *gated, int **flags)
{
    *flags = (int *)host_pages(30, 1);
    assert_int_equal(bind(first, *flags, GRANULE, true), 0);
    set_kernel(first, &code, "hold", 1, flags, gated);
    submit(first, gated);
    while (!__atomic_load_n(*flags + 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void a_kernel_may_wait_for_the_host(void **state)
{
    (void)state;
    struct gated gated;
    int *flags;
    hold(&gated, &flags);
    assert_false(sp_gate_is_open(&gated.gate));
    __atomic_store_n(flags, 1, __ATOMIC_RELEASE);
    assert_int_equal(await(first, &gated), 0);
}

static void killed_during_a_work(void **state)
{
    (void)state;
    struct gated gated, behind = {.work = {.kind = SP_WORK_UNBIND}};
    int *flags;
    unsigned before = losses_of(first);
    hold(&gated, &flags);
    behind.work.range.start = (uintptr_t)flags;
    behind.work.range.bytes = GRANULE;
    submit(first, &behind);
    kill(process_of(first), SIGKILL);
    assert_int_equal(await(first, &gated), -EIO);
    assert_int_equal(await(first, &behind), -EIO);
    assert_int_equal(losses_of(first), before + 1);
    assert_reason("from outside");
    assert_reason("while running kernel 'hold'");
    assert_is_usable(first, &code);
}

static void killed_while_idle(void **state)
{
    (void)state;
    unsigned before = losses_of(first);
    kill(process_of(first), SIGKILL);
    await_losses(first, before + 1);
    assert_reason("while idle");
    await_next_process(first);
    /* Nothing is bound, and all memory is gone. */
    unsigned char *at = host_pages(8, 1);
    assert_int_equal(fill(first, at, 16, 1), -EFAULT);
    assert_is_usable(first, &code);
}

/* The other device copies from the memory of the new process, not of the old. */
static void peers_find_the_new_memory(void **state)
{
    (void)state;
    unsigned char *at = host_pages(8, 1);
    for (int i = 0; i < 3; i++) {
        unsigned before = losses_of(first);
        assert_int_equal(bind(first, at, GRANULE, false), 0);
        assert_int_equal(fill(first, at, GRANULE, (unsigned char)(10 + i)), 0);
        assert_int_equal(bind(second, at, GRANULE, false), 0);
        assert_int_equal(transfer(second, at, GRANULE, 1, 2), 0);
        assert_int_equal(transfer(second, at, GRANULE, 2, 0), 0);
        assert_true(at[0] == 10 + i && at[GRANULE - 1] == 10 + i);
        assert_int_equal(unbind(second, at, GRANULE), 0);
        kill(process_of(first), SIGKILL);
        await_losses(first, before + 1);
        await_next_process(first);
    }
    assert_is_usable(first, &code);
    assert_int_equal(losses_of(second), 0);
}

/* Transfers that are under way or waiting when the source dies: each brings what was asked for, or
 * fails. */
static void a_dying_peer_gives_right_data_or_none(void **state)
{
    (void)state;
    enum { TRANSFERS = 24, GRANULES = 8 };
    unsigned char *at = host_pages(8, GRANULES);
    unsigned good = 0;
    for (int round = 0; round < 4; round++) {
        struct gated works[TRANSFERS];
        unsigned before = losses_of(first);
        assert_int_equal(bind(first, at, GRANULES * GRANULE, false), 0);
        assert_int_equal(bind(second, at, GRANULES * GRANULE, false), 0);
        assert_int_equal(fill(first, at, GRANULES * GRANULE, 77), 0);
        memset(works, 0, sizeof works);
        for (int i = 0; i < TRANSFERS; i++) {
            works[i].work.kind = SP_WORK_TRANSFER;
            works[i].work.range.start = (uintptr_t)at;
            works[i].work.range.bytes = GRANULES * GRANULE;
            works[i].work.range.source = 1;
            works[i].work.range.destination = 2;
            submit(second, &works[i]);
        }
        if (round)
            await(second, &works[round]);
        kill(process_of(first), SIGKILL);
        int last = -1;
        for (int i = 0; i < TRANSFERS; i++) {
            int error = await(second, &works[i]);
            assert_true(error == 0 || error == -EIO);
            if (!error) {
                assert_int_equal(last + 1, i); /* none comes well after one that failed */
                last = i;
            }
        }
        if (last >= 0) {
            good++;
            memset(at, 0, GRANULES * GRANULE);
            assert_int_equal(transfer(second, at, GRANULES * GRANULE, 2, 0), 0);
            for (size_t i = 0; i < GRANULES * GRANULE; i += 64)
                assert_int_equal(at[i], 77);
        }
        await_losses(first, before + 1);
        await_next_process(first);
        assert_int_equal(unbind(second, at, GRANULES * GRANULE), 0);
    }
    assert_true(good >= 3);
    assert_is_usable(first, &code);
}

/* Works go on from several threads while the process is killed again and again: each is finished
 * once, and what is finished without an error was done. */
static atomic_uint finishes;
static atomic_bool is_over;

static void count_finish(struct sp_work *work, int error)
{
    struct gated *gated = (struct gated *)work;
    gated->error = error;
    atomic_fetch_add(&finishes, 1);
    sp_gate_open(&gated->gate);
}

static void *keep_busy(void *argument)
{
    unsigned char *at = argument;
    uintptr_t submitted = 0;
    while (!atomic_load(&is_over)) {
        struct gated gated = {.work = {.kind = SP_WORK_BIND, .finished = count_finish}};
        gated.work.range.start = (uintptr_t)at;
        gated.work.range.bytes = GRANULE;
        sp_gate_init(&gated.gate);
        first->ops->submit(first, &gated.work);
        await(first, &gated);
        submitted++;
    }
    return (void *)submitted;
}

static void killed_at_any_moment(void **state)
{
    (void)state;
    enum { THREADS = 2, KILLS = 20 };
    pthread_t threads[THREADS];
    unsigned before = losses_of(first);
    unsigned char *at = host_pages(8, THREADS);
    uintptr_t submitted = 0;
    is_over = false;
    finishes = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, keep_busy, at + GRANULE * (size_t)i);
    for (unsigned i = 0; i < KILLS; i++) {
        /* After a few works more, so that no three deaths in a row come without one finished. */
        unsigned seen = finishes;
        while (atomic_load(&finishes) < seen + 50 + i * 7)
            sched_yield();
        pid_t process = process_of(first);
        if (!process || kill(process, SIGKILL))
            continue;
        await_losses(first, ++before);
    }
    is_over = true;
    for (int i = 0; i < THREADS; i++) {
        void *count;
        pthread_join(threads[i], &count);
        submitted += (uintptr_t)count;
    }
    assert_int_equal(finishes, submitted);
    await_next_process(first);
    assert_int_equal(unbind(first, at, THREADS * GRANULE), 0);
    assert_is_usable(first, &code);
}

static void the_time_limit_ends_a_kernel(void **state)
{
    (void)state;
    struct gated gated;
    int *flags;
    unsigned before = losses_of(first);
    hold(&gated, &flags);
    assert_int_equal(await(first, &gated), -EIO);
    assert_int_equal(losses_of(first), before + 1);
    assert_reason("ran for more than 2 s (SAMEPAGE_KERNEL_SECONDS) while running kernel 'hold'");
    assert_is_usable(first, &code);
}

static void a_forked_child_has_no_devices(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        unsigned char *at = (unsigned char *)(uintptr_t)GRANULE;
        struct sp_code *none;
        char *log;
        int wrong = bind(first, at, GRANULE, false) != -EIO;
        wrong |= first->ops->load(first, "x", 1, code.program.info, code.object.kernels, 1, &log,
                                  &none) != -EIO;
        first->ops->unload(code.code);
        _exit(wrong);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_is_usable(first, &code);
    assert_is_usable(second, &second_code);
}

/* The last: after this the second device is gone. On a machine out of breath three deaths can take
 * longer than counts. */
static void dying_at_once_three_times_is_the_end(void **state)
{
    (void)state;
    unsigned char *at = host_pages(8, 1);
    unsigned before = losses_of(second), deaths = 0;
    while (!second->is_given_up) {
        pid_t process = process_of(second);
        if (!process || !is_alive(process)) {
            sched_yield();
            continue;
        }
        kill(process, SIGKILL);
        await_losses(second, before + ++deaths);
    }
    assert_true(deaths >= 3);
    assert_int_equal(bind(second, at, GRANULE, false), -EIO);
    assert_int_equal(launch(second, &second_code, "poke", 1, &at), -EIO);
    assert_int_equal(process_of(second), 0);
    assert_is_usable(first, &code);
}

/* --- Applications that end -----------------------------------------------------------------------
 */

enum how { IS_KILLED, EXITS, LEAVES_A_CHILD };

/* This program in a process of its own: starts a kernel that never ends, tells the numbers of the
 * device processes, and then does as `how` says. */

static _Noreturn void be_application(enum how how, int tell)
{
    struct gated gated;
    int *flags;
    set_up_devices("virtual:2,mem=64M");
    first = devices[0];
    second = devices[1];
    load_code(first, source, &code);
    hold(&gated, &flags);
    assert_is_usable(second, (load_code(second, source, &second_code), &second_code));
    if (how == LEAVES_A_CHILD && fork() == 0) {
        pause();
        _exit(0);
    }
    pid_t processes[2] = {process_of(first), process_of(second)};
    if (write(tell, processes, sizeof processes) < 0)
        _exit(1);
    if (how == EXITS)
        exit(0);
    pause();
    _exit(1);
}

static void leaves_no_process(enum how how)
{
    int ends[2];
    pid_t processes[2];
    assert_int_equal(pipe(ends), 0);
    pid_t application = fork();
    if (application == 0) {
        char how_text[12], tell_text[12];
        snprintf(how_text, sizeof how_text, "%d", (int)how);
        snprintf(tell_text, sizeof tell_text, "%d", ends[1]);
        setpgid(0, 0);
        execl("/proc/self/exe", "application", how_text, tell_text, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], processes, sizeof processes), sizeof processes);
    for (int i = 0; i < 2; i++)
        assert_true(processes[i] > 0);
    if (how != EXITS) {
        assert_true(is_alive(processes[0]) && is_alive(processes[1]));
        kill(application, SIGKILL);
    }
    for (int i = 0; i < 2; i++)
        await_end(processes[i]);
    waitpid(application, NULL, 0);
    kill(-application, SIGKILL); /* the child that it left */
    close(ends[0]);
}

static void a_killed_application_leaves_no_process(void **state)
{
    (void)state;
    leaves_no_process(IS_KILLED);
}

static void an_ended_application_leaves_no_process(void **state)
{
    (void)state;
    leaves_no_process(EXITS);
}

static void nor_does_one_with_a_child(void **state)
{
    (void)state;
    leaves_no_process(LEAVES_A_CHILD);
}

static int set_up(void **state)
{
    (void)state;
    setenv("SAMEPAGE_KERNEL_SECONDS", "2", 1);
    set_up_devices("virtual:2,mem=64M");
    first = devices[0];
    second = devices[1];
    load_code(first, source, &code);
    load_code(second, source, &second_code);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3)
        be_application((enum how)atoi(argv[1]), atoi(argv[2]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_application_leaves_no_process),
        cmocka_unit_test(an_ended_application_leaves_no_process),
        cmocka_unit_test(nor_does_one_with_a_child),
        cmocka_unit_test(unbound_access_ends_the_device_only),
        cmocka_unit_test(every_thread_reports_its_crash),
        cmocka_unit_test(works_behind_a_crash_fail),
        cmocka_unit_test(a_kernel_may_wait_for_the_host),
        cmocka_unit_test(killed_during_a_work),
        cmocka_unit_test(killed_while_idle),
        cmocka_unit_test(peers_find_the_new_memory),
        cmocka_unit_test(a_dying_peer_gives_right_data_or_none),
        cmocka_unit_test(killed_at_any_moment),
        cmocka_unit_test(the_time_limit_ends_a_kernel),
        cmocka_unit_test(a_forked_child_has_no_devices),
        cmocka_unit_test(dying_at_once_three_times_is_the_end),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
