/* What is remembered of GPUs from one program to the next (on the stand-in for CUDA): it is used
 * until the GPU answers; where it answers otherwise it is used as what it is, the next program is
 * told that, and no program loses it. Each program is this one again, with a test in it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client_device.h"
#include "device/client/client.h"
#include "device/client/cuda.h"
#include "gpu_folder.h"
#include "svm/atomic_part.h"
#include "unit/unit.h"

#define MIB (UINT64_C(1) << 20)

/* What a program checks of its GPU 0. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static bool is_answered(struct sp_device *device)
{
    pthread_mutex_lock(&client_of(device)->lock);
    bool is = client_of(device)->is_answered;
    pthread_mutex_unlock(&client_of(device)->lock);
    return is;
}

/* A GPU that is there already, since an earlier program kept it; and then its answer. */
static bool was_recalled(struct sp_device *device)
{
    bool was_early = !is_answered(device);
    return sp_client_await_answer(client_of(device)) && was_early;
}

/* Data goes to the GPU, is changed there and comes back. */
static bool is_of_use(struct sp_device *device)
{
    unsigned char *at = host_pages(8, 1);
    memset(at, 1, GRANULE);
    bool is_good =
        !bind(device, at, GRANULE, false) && !transfer(device, at, GRANULE, 0, device->agent) &&
        !fill(device, at + 16, 16, 2) && !transfer(device, at, GRANULE, device->agent, 0) &&
        is_all(at, 16, 1) && is_all(at + 16, 16, 2) && is_all(at + 32, GRANULE - 32, 1);
    return !unbind(device, at, GRANULE) && is_good && losses_of(device) == 0;
}

static bool says(struct sp_device *device, const char *words)
{
    const char *notice = device->ops->notice(device);
    if (!words && notice)
        fprintf(stderr, "'%s'\n", notice);
    if (!words)
        return !notice;
    if (!notice || !strstr(notice, words))
        fprintf(stderr, "no '%s' in '%s'\n", words, notice ? notice : "");
    return notice && strstr(notice, words);
}

/* --- Programs ------------------------------------------------------------------------------------
 */

static int works(void)
{
    CHECK(is_of_use(devices[0]));
    CHECK(says(devices[0], NULL));
    return 0;
}

static int works_early(void)
{
    CHECK(was_recalled(devices[0]));
    return works();
}

/* The same GPU, with other GPUs around it than the last time. */
static int alone(void)
{
    CHECK(num_devices == 1);
    return works();
}

static int with_a_peer(void)
{
    CHECK(num_devices == 2);
    CHECK(!is_answered(devices[0]));
    CHECK(devices[0]->ops->distance(devices[0], 2) == UINT32_MAX); /* nobody waits for that */
    CHECK(devices[0]->ops->sees(devices[0], 2));                   /* which waits */
    CHECK(is_answered(devices[0]));
    CHECK(devices[0]->ops->distance(devices[0], 2) < UINT32_MAX);
    return works();
}

static int without_a_peer(void)
{
    CHECK(num_devices == 2);
    CHECK(!devices[0]->ops->sees(devices[0], 2));
    return works();
}

/* A GiB, of which 632 MiB are for regions, was told. */
static int with_less_memory(void)
{
    struct sp_device *device = devices[0];
    uint64_t told = device->info.global_memory_bytes, room;
    CHECK(was_recalled(device));
    CHECK(told > 600 * MIB && device->info.global_memory_bytes == told);
    room = sp_device_memory(device);
    CHECK(room > 500 * MIB && room < 510 * MIB);
    CHECK(says(device, "MiB of memory, not"));
    unsigned char *at = host_pages(8, 260);
    CHECK(bind(device, at, 260 * GRANULE, false) == -ENOMEM);
    CHECK(is_of_use(device));
    return 0;
}

static int with_little_memory_from_the_start(void)
{
    CHECK(devices[0]->info.global_memory_bytes < 510 * MIB);
    CHECK(sp_device_memory(devices[0]) == devices[0]->info.global_memory_bytes);
    return works();
}

static int with_more_memory(void)
{
    uint64_t told = devices[0]->info.global_memory_bytes;
    CHECK(was_recalled(devices[0]));
    CHECK(told < 510 * MIB && sp_device_memory(devices[0]) == told);
    return works();
}

static struct sp_arg_info unit_args[] = {
    {.kind = SP_ARG_GLOBAL, .size = 8, .align = 8, .offset = 0},
    {.kind = SP_ARG_VALUE, .size = 20, .align = 4, .offset = 8},
};
static struct sp_kernel_info unit_info = {.name = "unit",
                                          .attributes = "",
                                          .num_args = 2,
                                          .args = unit_args,
                                          .args_bytes = 28,
                                          .has_shared_atomics = true};
static struct sp_program_info program = {.num_kernels = 1, .kernels = &unit_info};
static struct sp_kernel_code unit_code = {.name = "unit"};

/* Additions that would be lost are not made. */
static int without_atomics(void)
{
    static const char text[] = ".entry sp_kernel_unit";
    struct sp_device *device = devices[0];
    unsigned char args[28] = {0};
    struct sp_code *code;
    char *log;
    CHECK(was_recalled(device));
    CHECK(device->info.svm_levels & SP_SVM_ATOMICS);
    CHECK(says(device, "no atomics of all devices, whose self-test failed"));
    CHECK(!device->ops->load(device, text, sizeof text, &program, &unit_code, 1, &log, &code));
    struct gated gated = {.work = {.kind = SP_WORK_KERNEL}};
    gated.work.kernel.kernel = device->ops->find(code, "unit");
    gated.work.kernel.args = args;
    gated.work.kernel.range =
        (struct sp_ndrange){.work_dim = 1, .global_size = {1, 1, 1}, .local_size = {1, 1, 1}};
    sp_atomic_part_count(1);
    CHECK(run_work(device, &gated) == -ENOTSUP);
    sp_atomic_part_count(-1);
    CHECK(is_of_use(device));
    return 0;
}

static int told_of_no_atomics(void)
{
    CHECK(!(devices[0]->info.svm_levels & SP_SVM_ATOMICS) && devices[0]->info.has_failed_atomics);
    return works();
}

static int another_gpu(void)
{
    CHECK(was_recalled(devices[0]));
    CHECK(devices[0]->info.uuid[0] == 0x10);
    CHECK(!strcmp(devices[0]->code_target, "nvptx64:sm_80"));
    CHECK(says(devices[0], "another GPU"));
    CHECK(says(devices[0], "code for nvptx64:sm_80, not nvptx64:sm_90"));
    CHECK(is_of_use(devices[0]));
    return 0;
}

static int told_of_the_other_gpu(void)
{
    CHECK(devices[0]->info.uuid[0] == 0x40);
    CHECK(!strcmp(devices[0]->code_target, "nvptx64:sm_80"));
    return works();
}

/* It was there the last time, so it is listed; and it cannot be used. */
static int cannot_be_used(void)
{
    struct sp_device *device = devices[0];
    const char *why = device->ops->await_ready(device);
    CHECK(why && strstr(why, "CUDA does not start: a fake error (CUDA error 803)"));
    CHECK(device->is_given_up);
    CHECK(bind(device, host_pages(8, 1), GRANULE, false) == -EIO);
    return 0;
}

/* The second of two GPUs is too old: it is not waited for again, and this program ends before it
 * has said so. */
static int beside_an_old_one(void)
{
    CHECK(num_devices == 1 && !is_answered(devices[0]));
    CHECK(sp_client_driver.missing(0) && !sp_client_driver.missing(1));
    struct sp_device *missing = sp_client_driver.missing(0);
    CHECK(strstr(missing->ops->await_ready(missing), "its compute capability is 3.0"));
    return works();
}

/* And now it is not, without anything else to tell the two states apart. */
static int beside_a_new_one_that_was_old(void)
{
    CHECK(num_devices == 1 && !is_answered(devices[0]));
    struct sp_device *missing = sp_client_driver.missing(0);
    CHECK(!missing->ops->await_ready(missing));
    return works();
}

static int two_work(void)
{
    CHECK(num_devices == 2 && is_of_use(devices[1]));
    return works();
}

static const struct program {
    const char *name;
    int (*run)(void);
} programs[] = {
    {"works", works},
    {"works early", works_early},
    {"alone", alone},
    {"with a peer", with_a_peer},
    {"without a peer", without_a_peer},
    {"with less memory", with_less_memory},
    {"with little memory from the start", with_little_memory_from_the_start},
    {"with more memory", with_more_memory},
    {"without atomics", without_atomics},
    {"told of no atomics", told_of_no_atomics},
    {"another GPU", another_gpu},
    {"told of the other GPU", told_of_the_other_gpu},
    {"cannot be used", cannot_be_used},
    {"beside an old one", beside_an_old_one},
    {"beside a new one that was old", beside_a_new_one_that_was_old},
    {"two work", two_work},
};

/* --- Tests ---------------------------------------------------------------------------------------
 */

/* Runs a program on a machine, with `environment` ("NAME=VALUE", or NULL). CUDA's start takes
 * longer than the program's own, so that what is remembered comes first. */
static void run(const char *name, const char *machine, const char *environment)
{
    pid_t process = fork();
    int status;
    if (process == 0) {
        use_machine(machine);
        setenv("FAKE_CUDA_COUNT", strcmp(machine, "one") ? "2" : "1", 1);
        setenv("FAKE_CUDA_INIT_MILLISECONDS", "300", 1);
        if (environment)
            putenv(strdup(environment));
        execl("/proc/self/exe", "program", name, (char *)NULL);
        _exit(127);
    }
    waitpid(process, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: status %x", name, (unsigned)status);
}

static int forget(void **state)
{
    static unsigned count;
    char path[FOLDER_PATH_BYTES], name[32];
    (void)state;
    snprintf(name, sizeof name, "cache%u", count++);
    make_path(path, name);
    return setenv("SAMEPAGE_CACHE_DIR", path, 1);
}

static void what_is_known_comes_first(void **state)
{
    (void)state;
    run("works", "one", NULL);
    run("works early", "one", NULL);
}

/* As with containers and jobs that have some of a machine's GPUs. */
static void other_gpus_come_and_go(void **state)
{
    (void)state;
    run("alone", "one", NULL);
    run("works", "two", NULL);
    run("with a peer", "two", NULL);
    run("alone", "one", NULL);
    run("without a peer", "two", "FAKE_CUDA_WITHOUT_PEERS=1");
    run("with a peer", "two", NULL);
}

static void memory_grows_and_shrinks(void **state)
{
    (void)state;
    run("works", "one", NULL);
    run("with less memory", "one", "FAKE_CUDA_MEMORY=0x38000000");
    run("with little memory from the start", "one", "FAKE_CUDA_MEMORY=0x38000000");
    run("with more memory", "one", NULL);
    run("works early", "one", NULL);
}

static void a_self_test_fails_once(void **state)
{
    (void)state;
    run("works", "one", NULL);
    run("without atomics", "one", "FAKE_CUDA_LOSES=1");
    run("told of no atomics", "one", NULL);
    run("works early", "one", NULL);
}

/* A job's limits hide GPUs that the kernel driver lists. */
static void it_is_another_gpu(void **state)
{
    (void)state;
    run("works", "one", NULL);
    setenv("FAKE_CUDA_UUID", "0x40", 1);
    run("another GPU", "one", "FAKE_CUDA_ATTRIBUTES=75=8");
    run("told of the other GPU", "one", "FAKE_CUDA_ATTRIBUTES=75=8");
    unsetenv("FAKE_CUDA_UUID");
}

/* As where the library was updated, and the kernel's module was not; then the machine starts again.
 */
static void it_cannot_be_used_any_more(void **state)
{
    (void)state;
    run("works", "one", NULL);
    run("cannot be used", "one", "FAKE_CUDA_FAILS=cuInit=803");
    run("none", "one", "FAKE_CUDA_FAILS=cuInit=803");
    run("works", "one", NULL);
    run("works early", "one", NULL);
}

/* A display card beside a GPU that computes: nobody waits for it each time. */
static void one_of_two_is_too_old(void **state)
{
    (void)state;
    run("works", "two", "FAKE_CUDA_ATTRIBUTES=1.75=3");
    run("beside an old one", "two", "FAKE_CUDA_ATTRIBUTES=1.75=3");
    run("beside an old one", "two", "FAKE_CUDA_ATTRIBUTES=1.75=3");
    run("beside a new one that was old", "two", NULL);
    run("two work", "two", NULL);
}

static void hidden_gpus_are_not_looked_for(void **state)
{
    (void)state;
    static const struct {
        const char *visible;
        unsigned count;
    } cases[] = {
        {"0", 1},           {"1", 1},      {"0,1", 2},     {" 1, 0", 2},      {"", 0},
        {"-1", 0},          {"0,-1,1", 1}, {"2", 0},       {"1,2,0", 1},      {"GPU-1234", 1},
        {"MIG-1/2/3,0", 2}, {"x", 0},      {"0,0,0,0", 2}, {"NoDevFiles", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status;
        pid_t process = fork(); /* the environment is read once in a program */
        if (process == 0) {
            use_machine("two");
            setenv("CUDA_VISIBLE_DEVICES", cases[i].visible, 1);
            _exit((int)sp_cuda_count());
        }
        waitpid(process, &status, 0);
        if (!WIFEXITED(status) || (unsigned)WEXITSTATUS(status) != cases[i].count)
            fail_msg("'%s': %x", cases[i].visible, (unsigned)status);
    }
}

static int set_up(void **state)
{
    (void)state;
    make_folder();
    show_gpus("one", 1);
    tell_of_gpus("one", 1);
    show_gpus("two", 2);
    tell_of_gpus("two", 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return remove_folder();
}

static int find_none(void)
{
    struct sp_device **found;
    unsigned count;
    setenv("SAMEPAGE_DEVICES", "cuda", 1);
    CHECK(!sp_window_init() && sp_client_driver.probe(&found, &count) == -ENODEV);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "none"))
        return find_none();
    for (size_t i = 0; argc == 2 && i < sizeof programs / sizeof programs[0]; i++)
        if (!strcmp(programs[i].name, argv[1])) {
            set_up_devices("cuda");
            return programs[i].run();
        }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_known_comes_first, forget),
        cmocka_unit_test_setup(other_gpus_come_and_go, forget),
        cmocka_unit_test_setup(memory_grows_and_shrinks, forget),
        cmocka_unit_test_setup(a_self_test_fails_once, forget),
        cmocka_unit_test_setup(it_is_another_gpu, forget),
        cmocka_unit_test_setup(it_cannot_be_used_any_more, forget),
        cmocka_unit_test_setup(one_of_two_is_too_old, forget),
        cmocka_unit_test(hidden_gpus_are_not_looked_for),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
