/* GPUs that cannot be used (on the stand-in for CUDA): each for its reason, which is one sentence
 * with the value and with what is needed or can be done; it is final at once, and nobody waits
 * longer than the slowest GPU takes to say it. Each program is this one again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client_device.h"
#include "device/client/client.h"
#include "gpu_folder.h"
#include "unit/unit.h"

/* CUDA's start where a GPU refuses, so that a second one would take too long. */
#define INIT_MILLISECONDS "2500"

/* And where its process crashes, which is tried three times; as on hardware where nothing keeps the
 * driver awake. */
#define CRASH_MILLISECONDS "700"

/* Either, and a start of everything else, on a machine that does more. */
#define MAX_SECONDS 5

/* Runs `selection` with an environment ("A=1 B=2"); what it wrote to stderr is in `said`, and the
 * devices that it found are its exit status. */
static int run(const char *selection, const char *environment, char *said, size_t size)
{
    int ends[2], status;
    size_t length = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t process = fork();
    if (process == 0) {
        char *words = strdup(environment);
        for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
            putenv(word);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "program", selection, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], said + length, size - 1 - length)) > 0;)
        length += (size_t)got;
    said[length] = 0;
    close(ends[0]);
    waitpid(process, &status, 0);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static time_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static unsigned count(const char *text, const char *word)
{
    unsigned found = 0;
    while ((text = strstr(text, word))) {
        found++;
        text++;
    }
    return found;
}

static void says_why(void **state)
{
    (void)state;
    static const struct {
        const char *environment, *words;
    } cases[] = {
        {"FAKE_CUDA_ATTRIBUTES=75=6,76=1",
         "its compute capability is 6.1, and 7.0 or newer is needed"},
        {"FAKE_CUDA_ATTRIBUTES=102=0", "cuMemMap"},
        {"FAKE_CUDA_ATTRIBUTES=103=0", "exported as files"},
        {"FAKE_CUDA_ATTRIBUTES=122=0", "cuStreamWriteValue64"},
        {"FAKE_CUDA_MEMORY=0x20000000", "it has 512 MiB of memory, of which 388 MiB are for"},
        {"FAKE_CUDA_FAILS=cuInit=803",
         "CUDA does not start: a fake error (CUDA error 803); after an"},
        {"FAKE_CUDA_FAILS=cuInit=100", "CUDA error 100); CUDA_VISIBLE_DEVICES"},
        {"FAKE_CUDA_COUNT=0", "CUDA shows 0 GPUs here, and this is number 0"},
        {"FAKE_CUDA_FAILS=cuDevicePrimaryCtxRetain=46",
         "CUDA cannot use it: a fake error (CUDA error 46); another program may have it"},
        {"FAKE_CUDA_FAILS=cuMemAddressReserve=2",
         "CUDA cannot have the window's addresses: a fake error (CUDA error 2); other"},
        {"FAKE_CUDA_FAILS=cuMemHostAlloc=2",
         "CUDA cannot set it up: a fake error (CUDA error 2); other programs may use all"},
        {"FAKE_CUDA_FAILS=cuDeviceGetAttribute=999", "does not tell its attribute 75: a fake"},
        {"SAMEPAGE_CUDA_LIBRARY=/nowhere/libcuda.so.1", "cannot be loaded (/nowhere/libcuda.so.1"},
        {"OLD=1", "its library, of CUDA 10.2, has no cuGetErrorName; CUDA 11.7 (driver 515)"},
    };
    char said[4096], environment[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(environment, sizeof environment, "%s", cases[i].environment);
        if (!strcmp(environment, "OLD=1"))
            snprintf(environment, sizeof environment, "SAMEPAGE_CUDA_LIBRARY=%s",
                     getenv("SAMEPAGE_TEST_OLD_CUDA"));
        assert_int_equal(run("cuda:0", environment, said, sizeof said), 0);
        if (!strstr(said, cases[i].words) || count(said, "\n") != 1 ||
            !strstr(said, "NVIDIA GPU 0 is given up: "))
            fail_msg("%s: %s", environment, said);
    }
}

/* Nobody asked for a GPU: there is none, in silence. */
static void nothing_is_said_of_what_is_optional(void **state)
{
    (void)state;
    char said[4096];
    assert_int_equal(run("cuda", "FAKE_CUDA_ATTRIBUTES=75=6", said, sizeof said), 0);
    assert_string_equal(said, "");
}

/* One of two is too old, and both; or nothing answers. */
static void nobody_waits_for_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *environment, *milliseconds;
        int found;
    } cases[] = {
        {"FAKE_CUDA_ATTRIBUTES=1.75=3", INIT_MILLISECONDS, 1},
        {"FAKE_CUDA_ATTRIBUTES=75=6", INIT_MILLISECONDS, 0},
        {"FAKE_CUDA_FAILS=cuInit=999", INIT_MILLISECONDS, 0},
        {"FAKE_CUDA_CRASHES=cuInit", CRASH_MILLISECONDS, 0},
    };
    char said[4096], environment[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        time_t start = now();
        snprintf(environment, sizeof environment, "FAKE_CUDA_INIT_MILLISECONDS=%s %s",
                 cases[i].milliseconds, cases[i].environment);
        assert_int_equal(run("cuda", environment, said, sizeof said), cases[i].found);
        if (now() - start > MAX_SECONDS)
            fail_msg("%s: %ld s", environment, (long)(now() - start));
    }
}

static void crashes_at_the_start_are_told(void **state)
{
    (void)state;
    char said[4096];
    assert_int_equal(run("cuda:0", "FAKE_CUDA_CRASHES=cuInit", said, sizeof said), 0);
    if (!strstr(said, "could not be started (it ended before it was ready)"))
        fail_msg("%s", said);
    assert_int_equal(run("cuda:0", "FAKE_CUDA_CRASHES=cuDevicePrimaryCtxRetain", said, sizeof said),
                     0);
    if (!strstr(said, "signal 6 (Aborted) before it was ready"))
        fail_msg("%s", said);
}

static int set_up(void **state)
{
    (void)state;
    make_folder();
    show_gpus(".", 2);
    use_machine(".");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return remove_folder();
}

static int be_program(const char *selection)
{
    struct sp_device **found;
    unsigned num_found;
    setenv("SAMEPAGE_DEVICES", selection, 1);
    return sp_window_init() || sp_client_driver.probe(&found, &num_found) ? 0 : (int)num_found;
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return be_program(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_why),
        cmocka_unit_test(nothing_is_said_of_what_is_optional),
        cmocka_unit_test(nobody_waits_for_nothing),
        cmocka_unit_test(crashes_at_the_start_are_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
