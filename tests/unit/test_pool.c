/* device/cpu: works of every size are run once and whole, by several threads where it pays, and a
 * waiting thread helps only with its own stream. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver.h"
#include "svm/heap.h"
#include "unit.h"
#include "util/futex.h"

static struct sp_device *device;

static int set_up_device(void **state)
{
    (void)state;
    struct sp_device **devices;
    unsigned count;
    if (sp_window_init() || sp_cpu_driver.probe(&devices, &count) || count != 1)
        return -1;
    device = devices[0];
    return 0;
}

/* A work with a gate that opens when it is finished. */
struct gated {
    struct sp_work work;
    struct sp_gate gate;
    int error;
    atomic_uint *left; /* counted down at the end; may be NULL */
};

static void finished(struct sp_work *work, int error)
{
    struct gated *gated = (struct gated *)work;
    gated->error = error;
    if (gated->left)
        atomic_fetch_sub(gated->left, 1);
    sp_gate_open(&gated->gate);
}

static void submit(struct gated *gated)
{
    sp_gate_init(&gated->gate);
    gated->work.finished = finished;
    device->ops->submit(device, &gated->work);
}

static void run_to_end(struct gated *gated)
{
    submit(gated);
    device->ops->wait(device, &gated->gate, gated->work.stream);
    assert_int_equal(gated->error, 0);
}

static void fills_are_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 16, 127, 4096, 300000, 5 << 20, (33 << 20) + 48};
    for (size_t pattern = 1; pattern <= SP_MAX_PATTERN_BYTES; pattern *= 2)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            size_t bytes = sizes[i] / pattern * pattern;
            /* An odd place, so that the pattern does not start at a multiple of its size. */
            unsigned char *memory = malloc(bytes + 64), *start = memory + 17;
            assert_non_null(memory);
            memset(memory, 0xee, bytes + 64);
            struct gated gated = {.work = {.kind = SP_WORK_FILL}};
            gated.work.fill.dst = start;
            gated.work.fill.bytes = bytes;
            gated.work.fill.pattern_bytes = pattern;
            for (size_t k = 0; k < pattern; k++)
                gated.work.fill.pattern[k] = (unsigned char)(k + 1);
            run_to_end(&gated);
            for (size_t k = 0; k < bytes; k++)
                if (start[k] != k % pattern + 1)
                    fail_msg("byte %zu of %zu with pattern %zu", k, bytes, pattern);
            assert_int_equal(start[-1], 0xee);
            assert_int_equal(start[bytes], 0xee);
            free(memory);
        }
}

static void copies_are_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 63, 4097, 262144, 1000003, (9 << 20) + 5};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t shift = 0; shift < 3; shift++) {
            size_t bytes = sizes[i];
            unsigned char *from = malloc(bytes + 64), *to = malloc(bytes + 64);
            assert_true(from && to);
            for (size_t k = 0; k < bytes + 64; k++)
                from[k] = (unsigned char)(k * 7 + k / 251);
            memset(to, 0xee, bytes + 64);
            struct gated gated = {.work = {.kind = SP_WORK_COPY}};
            gated.work.copy.dst = to + 3 * shift + 1;
            gated.work.copy.src = from + shift;
            gated.work.copy.bytes = bytes;
            run_to_end(&gated);
            assert_memory_equal(to + 3 * shift + 1, from + shift, bytes);
            assert_int_equal(to[3 * shift], 0xee);
            assert_int_equal(to[3 * shift + 1 + bytes], 0xee);
            free(from);
            free(to);
        }
}

static void rectangles_touch_only_their_rows(void **state)
{
    (void)state;
    enum { WIDTH = 300, HEIGHT = 70, DEPTH = 40, PITCH = 512, SLICE = PITCH * 80 };
    unsigned char *from = malloc(SLICE * DEPTH), *to = malloc(SLICE * DEPTH);
    assert_true(from && to);
    for (size_t k = 0; k < SLICE * DEPTH; k++)
        from[k] = (unsigned char)(k % 253);
    memset(to, 0xee, SLICE * DEPTH);
    struct gated gated = {.work = {.kind = SP_WORK_COPY_RECT}};
    gated.work.rect.dst = to;
    gated.work.rect.src = from;
    gated.work.rect.rect = (struct sp_rect){WIDTH, HEIGHT, DEPTH, PITCH, SLICE, PITCH, SLICE};
    run_to_end(&gated);
    for (size_t k = 0; k < SLICE * DEPTH; k++) {
        int inside = k % PITCH < WIDTH && k % SLICE / PITCH < HEIGHT;
        if (to[k] != (inside ? from[k] : 0xee))
            fail_msg("byte %zu", k);
    }
    free(from);
    free(to);
}

static void empty_works_finish(void **state)
{
    (void)state;
    struct gated gated = {.work = {.kind = SP_WORK_COPY}};
    run_to_end(&gated);
}

static void count_call(void *argument)
{
    atomic_fetch_add((atomic_uint *)argument, 1);
}

/* Many tiny works from several threads at once: each is run exactly once. */
static void *submitter(void *argument)
{
    enum { WORKS = 20000 };
    struct gated *works = calloc(WORKS, sizeof *works);
    for (int i = 0; works && i < WORKS; i++) {
        works[i].work.kind = SP_WORK_CALL;
        works[i].work.call.function = count_call;
        works[i].work.call.argument = argument;
        works[i].work.stream = works;
        submit(&works[i]);
    }
    for (int i = 0; works && i < WORKS; i++)
        device->ops->wait(device, &works[i].gate, works);
    free(works);
    return NULL;
}

static void many_works_from_many_threads(void **state)
{
    (void)state;
    pthread_t threads[3];
    atomic_uint calls = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, submitter, &calls), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(calls, 60000);
}

static void wait_for_word(void *argument)
{
    atomic_uint *word = argument;
    while (!atomic_load(word))
        sp_futex_wait(word, 0);
}

/* A work that cannot end before the main thread went on: the main thread's wait for another
 * stream must not pick it up. */
static void waiting_does_not_run_other_streams(void **state)
{
    (void)state;
    atomic_uint word = 0, calls = 0;
    int streams[2];
    struct gated blocked = {.work = {.kind = SP_WORK_CALL, .stream = &streams[0]}};
    blocked.work.call.function = wait_for_word;
    blocked.work.call.argument = &word;
    submit(&blocked);
    struct gated quick = {.work = {.kind = SP_WORK_CALL, .stream = &streams[1]}};
    quick.work.call.function = count_call;
    quick.work.call.argument = &calls;
    run_to_end(&quick);
    assert_int_equal(calls, 1);
    atomic_store(&word, 1);
    sp_futex_wake(&word, 1);
    device->ops->wait(device, &blocked.gate, &streams[0]);
}

static void timed_works_tell_their_times(void **state)
{
    (void)state;
    atomic_uint calls = 0;
    struct gated gated = {.work = {.kind = SP_WORK_CALL, .timed = true}};
    gated.work.call.function = count_call;
    gated.work.call.argument = &calls;
    run_to_end(&gated);
    assert_true(gated.work.start_ns > 0 && gated.work.end_ns >= gated.work.start_ns);
}

static void sub_devices_have_their_units(void **state)
{
    (void)state;
    struct sp_device *part;
    assert_int_equal(device->ops->partition(device, SP_PARTITION_UNITS, 0, 1, &part), 0);
    assert_int_equal(part->info.compute_units, 1);
    assert_ptr_equal(part->root, device);
    device->ops->destroy(part);
    assert_true(device->ops->numa_units(device, 0) > 0);
    assert_int_equal(device->ops->numa_units(device, 100000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_are_whole),
        cmocka_unit_test(copies_are_whole),
        cmocka_unit_test(rectangles_touch_only_their_rows),
        cmocka_unit_test(empty_works_finish),
        cmocka_unit_test(many_works_from_many_threads),
        cmocka_unit_test(waiting_does_not_run_other_streams),
        cmocka_unit_test(timed_works_tell_their_times),
        cmocka_unit_test(sub_devices_have_their_units),
    };
    return cmocka_run_group_tests(tests, set_up_device, NULL);
}
