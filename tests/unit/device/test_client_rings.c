/* What comes out of a device process is foreign input: nonsense in the completion ring, in messages
 * and in the hello ends the process, and every work is still finished exactly once. And what
 * SAMEPAGE_DEVICES says. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client_device.h"
#include "device/client/client.h"
#include "unit/unit.h"

/* --- The table of works in flight ----------------------------------------------------------------
 */

static uint32_t random_state = 1;

static uint32_t random_number(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static void count_started(struct sp_work *work)
{
    (void)work;
}

static void no_record_finishes_a_work_twice(void **state)
{
    (void)state;
    enum { WORKS = 50000 };
    static struct in_flight table;
    struct sp_work *works = calloc(WORKS, sizeof *works);
    unsigned char *finished = calloc(WORKS, 1);
    unsigned left = WORKS, next = 0;
    table.first = table.next = 1;
    printf("seed %u\n", random_state);
    while (left) {
        while (next < WORKS && table.next - table.first < SP_MAX_IN_FLIGHT) {
            works[next].started = next % 2 ? count_started : NULL;
            table.works[table.next++ % SP_MAX_IN_FLIGHT] = &works[next++];
        }
        struct sp_completion record;
        for (size_t i = 0; i < sizeof record / 4; i++)
            ((uint32_t *)&record)[i] = random_number() << 8 | (random_number() & 0xff);
        if (random_number() % 4) /* near the truth */
            record.number = table.first - 2 + random_number() % (SP_MAX_IN_FLIGHT + 4);
        if (random_number() % 4)
            record.kind = random_number() % 4;
        bool is_possible = record.number >= table.first && record.number < table.next;
        struct sp_work *work = sp_in_flight_take(&table, &record);
        if (!work)
            continue;
        assert_true(is_possible);
        assert_ptr_equal(work, &works[record.number - 1]);
        assert_false(finished[work - works]);
        if (record.kind == SP_COMPLETION_FINISHED) {
            finished[work - works] = 1;
            left--;
        } else {
            assert_int_equal(record.kind, SP_COMPLETION_STARTED);
            assert_non_null(work->started);
            work->driver.workers |= WORK_STARTED; /* as who takes the record does: once only */
        }
    }
    assert_int_equal(table.first, table.next);
    free(finished);
    free(works);
}

static unsigned calls;

static void count_call(struct sp_work *work, int error)
{
    (void)work;
    assert_true(error <= 0 && error >= -4095);
    calls++;
}

/* A ring of garbage, read as the device's thread does. */
static void a_ring_of_garbage_is_survived(void **state)
{
    (void)state;
    enum { WORKS = 100 };
    struct sp_rings *rings = aligned_alloc(4096, sizeof *rings);
    assert_non_null(rings);
    for (int round = 0; round < 200; round++) {
        struct client_device *device = calloc(1, sizeof *device);
        struct sp_work works[WORKS];
        memset(works, 0, sizeof works);
        memset(rings, 0, sizeof *rings);
        sp_client_init(device);
        device->rings = rings;
        device->state = CLIENT_RUNNING;
        calls = 0;
        for (int i = 0; i < WORKS; i++) {
            works[i].kind = SP_WORK_FILL;
            works[i].timed = true;
            works[i].finished = count_call;
            sp_client_submit(&device->device, &works[i]);
        }
        /* So many true ones, then garbage. */
        unsigned good = random_number() % WORKS;
        for (unsigned i = 0; i < good; i++)
            rings->completions[i] = (struct sp_completion){.number = i + 1,
                                                           .kind = SP_COMPLETION_FINISHED,
                                                           .error = (int)(random_number() << 8),
                                                           .start_ns = random_number(),
                                                           .end_ns = ~UINT64_C(0)};
        for (size_t i = good * sizeof rings->completions[0]; i < sizeof rings->completions; i++)
            ((unsigned char *)rings->completions)[i] = (unsigned char)random_number();
        rings->completion_tail = good + 1 + random_number() % SP_COMPLETION_RECORDS;
        bool is_sane = rings->completion_tail > SP_COMPLETION_RECORDS;
        pthread_mutex_lock(&device->claim);
        assert_false(sp_client_take_completions(device));
        assert_true(device->is_broken);
        assert_false(sp_client_take_completions(device)); /* and nothing more is read */
        sp_client_unclaim(device);
        sp_client_deliver(device, NULL);
        assert_int_equal(calls, is_sane ? 0 : good);
        for (unsigned i = 0; i < calls; i++)
            assert_true(works[i].start_ns <= works[i].end_ns && works[i].end_ns > 0);
        free(device);
    }
    free(rings);
}

/* A head that cannot be: nothing is written over what is there. */
static void a_garbage_head_is_survived(void **state)
{
    (void)state;
    struct sp_rings *rings = aligned_alloc(4096, sizeof *rings);
    struct client_device *device = calloc(1, sizeof *device);
    assert_true(rings && device);
    memset(rings, 0, sizeof *rings);
    sp_client_init(device);
    device->rings = rings;
    device->state = CLIENT_RUNNING;
    rings->command_head = 64;
    struct sp_work work = {.kind = SP_WORK_FILL, .finished = count_call};
    sp_client_submit(&device->device, &work);
    assert_true(device->is_broken);
    assert_int_equal(rings->command_tail, 0);
    assert_ptr_equal(device->pending.first, &work);
    free(device);
    free(rings);
}

/* --- A process that talks nonsense ---------------------------------------------------------------
 */

/* This program again, with a device whose process is the fake one. The works fail, the device is
 * lost once for each process, and after three of them it is given up. */
static int be_application(const char *kind)
{
    struct gated gated;
    unsigned char *at;
    setenv("SAMEPAGE_TEST_NONSENSE", kind, 1);
    set_up_devices("virtual,mem=64M");
    at = host_pages(8, 1);
    bool is_export = strstr(kind, "export"); /* the bind itself may end well */
    bool is_early = !strcmp(kind, "hello") || !strcmp(kind, "memory");
    for (unsigned i = 0; i < 3; i++) {
        int error = bind(devices[0], at, GRANULE, false);
        /* The first record of two that are the same is a good one, but for its error. */
        if (error != -EIO && !(is_export && error == 0))
            return 1;
        /* A work that came while the loss was being told has reached no process. */
        while (is_export && losses_of(devices[0]) < i + 1)
            bind(devices[0], at, GRANULE, false);
        if (!is_early && losses_of(devices[0]) < (strcmp(kind, "twice") ? i + 1 : i))
            return 2;
    }
    memset(&gated, 0, sizeof gated);
    if (!is_early && !strstr(last_reason(), "not understood"))
        return 3;
    return 0;
}

static void nonsense_ends_the_process(void **state)
{
    (void)state;
    static const char *const kinds[] = {"tail",
                                        "number",
                                        "kind",
                                        "twice",
                                        "rings",
                                        "message",
                                        "complaints",
                                        "hello",
                                        "memory",
                                        "export unsealed",
                                        "export short",
                                        "export outside",
                                        "export askew",
                                        "export nothing",
                                        "export without file",
                                        "unexport outside",
                                        "unexport again",
                                        "unexport never"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int status;
        pid_t application = fork();
        if (application == 0) {
            execl("/proc/self/exe", "application", kinds[i], (char *)NULL);
            _exit(127);
        }
        waitpid(application, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("%s: status %x", kinds[i], (unsigned)status);
    }
}

/* --- SAMEPAGE_DEVICES ----------------------------------------------------------------------------
 */

static void selections_are_read(void **state)
{
    (void)state;
    struct sp_selection selection;
    sp_selection_parse(NULL, &selection);
    assert_true(selection.has_cpu && selection.num_virtual == 0);
    sp_selection_parse("", &selection);
    assert_true(selection.has_cpu && selection.num_virtual == 0);
    sp_selection_parse("virtual", &selection);
    assert_true(!selection.has_cpu && selection.num_virtual == 1);
    assert_int_equal(selection.virtuals[0].memory_bytes, 0);
    sp_selection_parse("cpu,virtual:2,mem=256M,virtual,mem=1G,threads=3", &selection);
    assert_true(selection.has_cpu && selection.num_virtual == 3);
    assert_int_equal(selection.virtuals[0].memory_bytes, 256 << 20);
    assert_int_equal(selection.virtuals[1].memory_bytes, 256 << 20);
    assert_int_equal(selection.virtuals[2].memory_bytes, 1 << 30);
    assert_int_equal(selection.virtuals[0].threads, 3);
    sp_selection_parse("virtual,mem=8388608", &selection);
    assert_int_equal(selection.virtuals[0].memory_bytes, 8 << 20);
    assert_string_equal(selection.virtuals[0].memory, "");
    sp_selection_parse("virtual:2,drm=vgem,virtual,drm=/dev/dri/card0,mem=1G,drm=x", &selection);
    assert_string_equal(selection.virtuals[1].memory, "drm=vgem");
    assert_string_equal(selection.virtuals[2].memory, "drm=/dev/dri/card0");
    assert_int_equal(selection.virtuals[2].memory_bytes, 1 << 30);
    sp_selection_parse("virtual,parts,virtual", &selection);
    assert_string_equal(selection.virtuals[0].memory, "parts");
    assert_string_equal(selection.virtuals[1].memory, "");
}

static void wrong_words_are_ignored(void **state)
{
    (void)state;
    static const char *const words[] = {
        "gpu",
        "virtual:0",
        "virtual:x",
        "virtual:16",
        "virtual:-1",
        "mem=1G",
        "threads=2",
        "parts",
        "drm=vgem",
        ",,",
        "CPU",
        "virtual:1x",
        "a word that is longer than any word could be and that goes on and on and on and on and on",
    };
    struct sp_selection selection;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        sp_selection_parse(words[i], &selection);
        assert_true(!selection.has_cpu && selection.num_virtual == 0);
    }
    static const char *const numbers[] = {"mem=",      "mem=0",        "mem=1K",
                                          "mem=1GB",   "mem=-5M",      "mem=99999999999T",
                                          "threads=0", "threads=9999", "drm="};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "virtual,%s", numbers[i]);
        sp_selection_parse(text, &selection);
        assert_int_equal(selection.num_virtual, 1);
        assert_int_equal(selection.virtuals[0].memory_bytes, 0);
        assert_int_equal(selection.virtuals[0].threads, 0);
        assert_string_equal(selection.virtuals[0].memory, "");
    }
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return be_application(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_record_finishes_a_work_twice),
        cmocka_unit_test(a_ring_of_garbage_is_survived),
        cmocka_unit_test(a_garbage_head_is_survived),
        cmocka_unit_test(nonsense_ends_the_process),
        cmocka_unit_test(selections_are_read),
        cmocka_unit_test(wrong_words_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
