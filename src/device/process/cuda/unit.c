/* The GPU's end of the atomic unit (docs/atomic-unit.md): its ring is registered, and its own words
 * lie in device memory. The server is the application's, but for the self-test, which is here: a
 * kernel and a thread of the process add to the same words, the one through the ring, the other by
 * itself; no addition may be lost, and no old value may come twice.
 *
 * Where that goes wrong the device has no atomics of all-devices scope, and says so; all else of it
 * works. The test's requests give up after a second, so a GPU that does not see the ring does not
 * hang.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "compiler/gpu_abi.h"
#include "device/process/cuda/cuda.h"
#include "device/unit.h"
#include "util/futex.h"

/* The test's kernel. The host adds as often as it can meanwhile. */
#define TEST_BLOCKS 4u
#define TEST_THREADS 64u
#define TEST_ROUNDS 8u
#define TEST_ADDITIONS ((uint64_t)TEST_BLOCKS * TEST_THREADS * TEST_ROUNDS)
#define TEST_NARROW_SUM                                                                            \
    (TEST_ADDITIONS / 4 * (0 + 1 + 2 + 3)) /* what own_kernels.cl adds there                       \
                                            */

/* Looks, of up to 20 us each (kernels/nvptx/unit.h). */
#define TEST_PATIENCE 50000u

/* The words, each on a line of its own, in host memory. */
enum { NARROW = 0, WIDE = 8, TEST_WORDS = 16 };

static struct {
    CUdeviceptr words; /* a struct sp_gpu_unit in device memory; 0: there is none */
} unit;

struct server {
    uint64_t *words;
    uint64_t served, added, old_sum; /* added by the server itself, to each word */
    atomic_bool is_ended;            /* relaxed: the thread is joined */
};

/* Serves the ring of the test, and adds between requests. */
static void *serve(void *argument)
{
    struct server *server = argument;
    struct sp_unit_slot *slots = sp_cuda_device.setup.unit;
    struct sp_unit_request request;
    uintptr_t narrow = (uintptr_t)&server->words[NARROW], wide = (uintptr_t)&server->words[WIDE];
    while (!atomic_load_explicit(&server->is_ended, memory_order_relaxed)) {
        if (sp_unit_take(slots, server->served, &request)) {
            if (!sp_unit_is_sane(&request) ||
                (request.address != narrow && request.address != wide))
                break;
            sp_unit_serve(slots, server->served++, &request);
        } else {
            sp_cpu_pause();
        }
        __atomic_fetch_add((uint32_t *)&server->words[NARROW], 1, __ATOMIC_RELAXED);
        server->old_sum += __atomic_fetch_add(&server->words[WIDE], 1, __ATOMIC_RELAXED);
        server->added++;
    }
    return NULL;
}

static int launch_test(CUfunction function, CUdeviceptr sum, const uint64_t *words)
{
    const uint32_t grid[3] = {TEST_BLOCKS, 1, 1}, block[3] = {TEST_THREADS, 1, 1};
    const struct {
        uint64_t unit, narrow, wide, sum;
        uint32_t rounds;
    } parameters = {unit.words, (uintptr_t)&words[NARROW], (uintptr_t)&words[WIDE], sum,
                    TEST_ROUNDS};
    return sp_cuda_launch_block(function, grid, block, 0, &parameters,
                                offsetof(__typeof__(parameters), rounds) + sizeof(uint32_t),
                                sp_cuda_stream());
}

/* Whether all additions are there, and each old value was seen once: then the old values of the
 * wide word are 0, 1, 2, ... */
static bool is_exact(const struct server *server, uint64_t old_sum)
{
    uint64_t count = TEST_ADDITIONS + server->added;
    return (uint32_t)server->words[NARROW] == (uint32_t)(TEST_NARROW_SUM + server->added) &&
           server->words[WIDE] == count && old_sum + server->old_sum == count * (count - 1) / 2;
}

/* Runs it. 0, -EBADMSG where atomics cannot be relied on, or another negative errno. */
static int try_out(CUfunction function, CUdeviceptr sum, uint64_t *words)
{
    struct server server = {.words = words};
    uint64_t old_sum = 0;
    pthread_t thread;
    int error = -pthread_create(&thread, NULL, serve, &server);
    if (error)
        return error;
    error = launch_test(function, sum, words);
    if (!error)
        error = sp_cuda_check(sp_cuda.StreamSynchronize(sp_cuda_stream()));
    atomic_store_explicit(&server.is_ended, true, memory_order_relaxed);
    pthread_join(thread, NULL);
    if (!error)
        error = sp_cuda_stream_read(&old_sum, sum, sizeof old_sum);
    return error ? error : is_exact(&server, old_sum) ? 0 : -EBADMSG;
}

/* The unit's words as kernels of programs find them. */
static int reset(uint64_t patience)
{
    struct sp_unit_slot *slots = sp_cuda_device.setup.unit;
    CUdeviceptr slots_at = 0;
    memset(slots, 0, SP_UNIT_SLOTS * sizeof *slots);
    int error = sp_cuda_check(sp_cuda.MemHostGetDevicePointer(&slots_at, slots, 0));
    if (error)
        return error;
    const uint64_t head[] = {slots_at, 0, patience};
    CUstream stream = sp_cuda_stream();
    error = sp_cuda_check(sp_cuda.MemsetD8Async(
        unit.words, 0, sizeof(struct sp_gpu_unit) + sizeof(uint64_t), stream));
    if (!error)
        error = sp_cuda_check(sp_cuda.MemcpyHtoDAsync(unit.words, head, sizeof head, stream));
    return error ? error : sp_cuda_check(sp_cuda.StreamSynchronize(stream));
}

static int set_up(CUfunction *function, uint64_t **words)
{
    CUmodule module;
    int error =
        sp_cuda_check(sp_cuda.ModuleLoadDataEx(&module, sp_cuda_own_kernels_ptx, 0, NULL, NULL));
    if (!error)
        error = sp_cuda_own_function(module, "sp_unit_test", function);
    if (!error)
        error = sp_cuda_check(sp_cuda.MemHostRegister(
            sp_cuda_device.setup.unit, SP_UNIT_SLOTS * sizeof(struct sp_unit_slot),
            CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    *words = sp_cuda_pinned(TEST_WORDS * sizeof **words);
    if (!error && !*words)
        error = -ENOMEM;
    /* Behind it is the test's sum. */
    if (!error)
        error = sp_cuda_check(
            sp_cuda.MemAlloc(&unit.words, sizeof(struct sp_gpu_unit) + sizeof(uint64_t)));
    return error;
}

int sp_cuda_unit_init(struct sp_device_description *description)
{
    CUfunction function;
    uint64_t *words;
    if (!(description->svm_levels & SP_SVM_FINE) || !sp_cuda_device.setup.atomic_bytes)
        return 0;
    int error = set_up(&function, &words);
    if (!error)
        error = reset(TEST_PATIENCE);
    if (!error)
        error = try_out(function, unit.words + sizeof(struct sp_gpu_unit), words);
    if (!error)
        error = reset(0);
    if (error) {
        unit.words = 0;
        description->has_failed_atomics = 1;
    } else {
        description->svm_levels |= SP_SVM_ATOMICS;
    }
    return 0;
}

void sp_cuda_unit_describe(struct sp_gpu_launch *launch)
{
    if (!unit.words)
        return;
    launch->atomic_first = sp_cuda_device.setup.atomic_start;
    launch->atomic_bytes = sp_cuda_device.setup.atomic_bytes;
    launch->atomic_unit = unit.words;
}
