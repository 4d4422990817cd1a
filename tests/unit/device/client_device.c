/* See client_device.h. */
#include "client_device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/client/client.h"
#include "unit/unit.h"

struct sp_device **devices;
unsigned num_devices;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned counts[SP_MAX_CLIENT_DEVICES + 1]; /* by agent */
    char reason[400];
} losses = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static void lost(struct sp_device *device, const char *reason)
{
    pthread_mutex_lock(&losses.lock);
    losses.counts[device->agent]++;
    snprintf(losses.reason, sizeof losses.reason, "%s", reason);
    pthread_cond_broadcast(&losses.moved);
    pthread_mutex_unlock(&losses.lock);
}

unsigned losses_of(struct sp_device *device)
{
    pthread_mutex_lock(&losses.lock);
    unsigned count = losses.counts[device->agent];
    pthread_mutex_unlock(&losses.lock);
    return count;
}

const char *last_reason(void)
{
    return losses.reason;
}

void await_losses(struct sp_device *device, unsigned count)
{
    pthread_mutex_lock(&losses.lock);
    while (losses.counts[device->agent] < count)
        pthread_cond_wait(&losses.moved, &losses.lock);
    pthread_mutex_unlock(&losses.lock);
}

void await_next_process(struct sp_device *device)
{
    /* A loss is counted inside of lost(), and only from its return on works reach the next process.
     */
    uintptr_t window;
    size_t bytes;
    sp_window_range(&window, &bytes);
    void *unused = (void *)(window + bytes - SP_GRANULE_BYTES);
    while (unbind(device, unused, SP_GRANULE_BYTES) == -EIO)
        continue;
}

void set_up_devices(const char *selection)
{
    const char *memory = getenv("SAMEPAGE_TEST_MEMORY");
    const char *others = getenv("SAMEPAGE_TEST_DEVICES");
    char text[256];
    snprintf(text, sizeof text, "%s%s%s", selection, memory ? "," : "", memory ? memory : "");
    setenv("SAMEPAGE_DEVICES", others ? others : text, 1);
    if (sp_window_init() || sp_client_driver.probe(&devices, &num_devices)) {
        fprintf(stderr, "no devices\n");
        exit(1);
    }
    for (unsigned i = 0; i < num_devices; i++)
        devices[i]->lost = lost;
}

unsigned char *host_pages(size_t index, size_t count)
{
    uintptr_t start;
    size_t bytes;
    sp_window_range(&start, &bytes);
    void *at = (void *)(start + index * GRANULE);
    off_t offset = (off_t)(index * GRANULE);
    assert_int_equal(fallocate(sp_window_file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
                               (off_t)(count * GRANULE)),
                     0);
    assert_ptr_equal(mmap(at, count * GRANULE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          sp_window_file(), offset),
                     at);
    return at;
}

static void finished(struct sp_work *work, int error)
{
    struct gated *gated = (struct gated *)work;
    gated->error = error;
    if (gated->left)
        atomic_fetch_sub(gated->left, 1);
    sp_gate_open(&gated->gate);
}

void submit(struct sp_device *device, struct gated *gated)
{
    sp_gate_init(&gated->gate);
    gated->work.finished = finished;
    device->ops->submit(device, &gated->work);
}

int await(struct sp_device *device, struct gated *gated)
{
    device->ops->wait(device, &gated->gate, gated->work.stream);
    return gated->error;
}

int run_work(struct sp_device *device, struct gated *gated)
{
    submit(device, gated);
    return await(device, gated);
}

int bind(struct sp_device *device, void *start, size_t bytes, bool is_home)
{
    struct gated gated = {.work = {.kind = SP_WORK_BIND}};
    gated.work.range.start = (uintptr_t)start;
    gated.work.range.bytes = bytes;
    gated.work.range.is_home = is_home;
    return run_work(device, &gated);
}

int bind_peer(struct sp_device *device, void *start, size_t bytes, uint32_t source)
{
    struct gated gated = {.work = {.kind = SP_WORK_BIND_PEER}};
    gated.work.range.start = (uintptr_t)start;
    gated.work.range.bytes = bytes;
    gated.work.range.source = source;
    return run_work(device, &gated);
}

int unbind(struct sp_device *device, void *start, size_t bytes)
{
    struct gated gated = {.work = {.kind = SP_WORK_UNBIND}};
    gated.work.range.start = (uintptr_t)start;
    gated.work.range.bytes = bytes;
    return run_work(device, &gated);
}

int transfer(struct sp_device *device, void *start, size_t bytes, uint32_t source,
             uint32_t destination)
{
    struct gated gated = {.work = {.kind = SP_WORK_TRANSFER}};
    gated.work.range.start = (uintptr_t)start;
    gated.work.range.bytes = bytes;
    gated.work.range.source = source;
    gated.work.range.destination = destination;
    return run_work(device, &gated);
}

int fill(struct sp_device *device, void *start, size_t bytes, unsigned char value)
{
    struct gated gated = {.work = {.kind = SP_WORK_FILL}};
    gated.work.fill.dst = start;
    gated.work.fill.bytes = bytes;
    gated.work.fill.pattern_bytes = 1;
    gated.work.fill.pattern[0] = value;
    return run_work(device, &gated);
}

int copy(struct sp_device *device, void *dst, const void *src, size_t bytes)
{
    struct gated gated = {.work = {.kind = SP_WORK_COPY}};
    gated.work.copy.dst = dst;
    gated.work.copy.src = src;
    gated.work.copy.bytes = bytes;
    return run_work(device, &gated);
}

void load_code(struct sp_device *device, const char *source, struct test_code *code)
{
    static const uint64_t any_size[3];
    static const char *const words[] = {"-cl-std=CL3.0"};
    struct sp_words options = {words, 1};
    struct sp_step_result bitcode;
    memset(code, 0, sizeof *code);
    if (sp_step_compile(source, options, NULL, 0, &bitcode) ||
        sp_step_link(&bitcode.code, 1, (struct sp_words){NULL, 0}, &code->program))
        fail_msg("%s", bitcode.log);
    const struct sp_program_info *info = code->program.info;
    const char *names[16];
    assert_true(info->num_kernels <= 16);
    for (uint32_t i = 0; i < info->num_kernels; i++)
        names[i] = info->kernels[i].name;
    struct sp_words kernels = {names, info->num_kernels};
    assert_int_equal(sp_step_generate(code->program.code, NULL, kernels, any_size,
                                      (struct sp_words){NULL, 0}, &code->object),
                     0);
    sp_step_result_finish(&bitcode);
    char *log;
    assert_int_equal(device->ops->load(device, code->object.code.bytes, code->object.code.size,
                                       info, code->object.kernels, code->object.num_kernels, &log,
                                       &code->code),
                     0);
    assert_null(log);
}

void unload_code(struct sp_device *device, struct test_code *code)
{
    device->ops->unload(code->code);
    sp_step_result_finish(&code->object);
    sp_step_result_finish(&code->program);
}

void set_kernel(struct sp_device *device, struct test_code *code, const char *name, size_t items,
                void *args, struct gated *gated)
{
    const struct sp_kernel_info *info = sp_program_info_find(code->program.info, name);
    memset(gated, 0, sizeof *gated);
    gated->work.kind = SP_WORK_KERNEL;
    gated->work.kernel.kernel = device->ops->find(code->code, name);
    assert_non_null(gated->work.kernel.kernel);
    struct sp_ndrange *range = &gated->work.kernel.range;
    *range = (struct sp_ndrange){.work_dim = 1, .global_size = {items, 1, 1}};
    device->ops->suggest_local_size(device, info, range, range->local_size);
    gated->work.kernel.args = args;
}

int launch(struct sp_device *device, struct test_code *code, const char *name, size_t items,
           void *args)
{
    struct gated gated;
    set_kernel(device, code, name, items, args, &gated);
    return run_work(device, &gated);
}

pid_t process_of(struct sp_device *device)
{
    char path[64], line[128];
    int pid = 0;
    pthread_mutex_lock(&client_of(device)->socket_lock);
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", client_of(device)->pidfd);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pid: %d", &pid) == 1)
            break;
    if (file)
        fclose(file);
    pthread_mutex_unlock(&client_of(device)->socket_lock);
    return pid;
}

bool is_all(const unsigned char *bytes, size_t size, unsigned char value)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

void check_bound_memory_is_zero(struct sp_device *device)
{
    unsigned char *at = host_pages(20, 2);
    for (int i = 0; i < 3; i++) {
        memset(at, 9, 2 * GRANULE);
        assert_int_equal(bind(device, at, 2 * GRANULE, false), 0);
        assert_int_equal(transfer(device, at, 2 * GRANULE, 1, 0), 0);
        assert_true(is_all(at, 2 * GRANULE, 0));
        assert_int_equal(fill(device, at, 2 * GRANULE, 7), 0);
        if (i == 0) /* bound again without an unbind: zero as well */
            continue;
        assert_int_equal(unbind(device, at, 2 * GRANULE), 0);
    }
}

static void bind_shared(struct sp_device *home, struct sp_device *peer, void *start, size_t bytes)
{
    assert_int_equal(bind(home, start, bytes, false), 0);
    assert_int_equal(bind_peer(peer, start, bytes, home->agent), 0);
}

static void expect_at(struct sp_device *home, unsigned char *start, size_t bytes,
                      unsigned char value)
{
    assert_int_equal(transfer(home, start, bytes, home->agent, 0), 0);
    assert_true(is_all(start, bytes, value));
}

void check_peers_share_memory(struct sp_device *first, struct sp_device *second)
{
    unsigned char *at = host_pages(180, 6), *own = host_pages(190, 6);
    /* Memory in a DRM node is not mapped by others. */
    bool is_seen = strncmp(client_of(first)->selected.memory, "drm", 3) != 0;
    assert_true(first->ops->sees(first, second->agent) == is_seen &&
                second->ops->sees(second, first->agent) == is_seen);
    if (!is_seen)
        return;
    assert_false(first->ops->sees(first, first->agent) || first->ops->sees(first, 0));
    bind_shared(first, second, at, 2 * GRANULE);
    bind_shared(second, first, at + 2 * GRANULE, 2 * GRANULE);
    bind_shared(first, second, at + 4 * GRANULE, 2 * GRANULE);
    expect_at(first, at, 2 * GRANULE, 0);

    /* All of it, by either. */
    struct sp_device *writers[] = {first, second};
    for (unsigned char i = 0; i < 2; i++) {
        assert_int_equal(fill(writers[i], at, 6 * GRANULE, i + 1), 0);
        expect_at(first, at, 2 * GRANULE, i + 1);
        expect_at(second, at + 2 * GRANULE, 2 * GRANULE, i + 1);
        expect_at(first, at + 4 * GRANULE, 2 * GRANULE, i + 1);
    }
    /* Copies that cross from one memory to another, at both ends. */
    assert_int_equal(bind(second, own, 6 * GRANULE, false), 0);
    assert_int_equal(fill(second, own, 6 * GRANULE, 9), 0);
    assert_int_equal(copy(second, at + GRANULE + 5, own + 3, 4 * GRANULE), 0);
    expect_at(first, at, GRANULE + 5, 2);
    expect_at(first, at + GRANULE + 5, GRANULE - 5, 9);
    expect_at(second, at + 2 * GRANULE, 2 * GRANULE, 9);
    expect_at(first, at + 5 * GRANULE + 5, GRANULE - 5, 2);
    assert_int_equal(copy(second, own + GRANULE, at, 5 * GRANULE), 0);
    expect_at(second, own, GRANULE, 9);
    expect_at(second, own + GRANULE, GRANULE + 5, 2);
    expect_at(second, own + 2 * GRANULE + 5, 4 * GRANULE - 5, 9);
    /* Only its home moves what is in a memory. */
    assert_int_equal(transfer(second, at, 16, second->agent, 0), -EFAULT);
    assert_int_equal(transfer(second, at, 16, 0, second->agent), -EFAULT);

    /* What was there before is not what is there now. */
    assert_int_equal(unbind(first, at, 2 * GRANULE), 0);
    assert_int_equal(unbind(second, at, 2 * GRANULE), 0);
    bind_shared(first, second, at, 2 * GRANULE);
    assert_int_equal(copy(second, own, at, 2 * GRANULE), 0);
    expect_at(second, own, 2 * GRANULE, 0);
    assert_int_equal(fill(second, at + 100, 100, 3), 0);
    expect_at(first, at + 100, 100, 3);

    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(unbind(writers[i], at, 6 * GRANULE), 0);
    assert_int_equal(unbind(second, own, 6 * GRANULE), 0);
    assert_int_equal(fill(second, at, 1, 1), -EFAULT);
}
