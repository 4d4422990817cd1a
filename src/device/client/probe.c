/* The client driver: which devices live in processes of their own, and what they are.
 *
 * What virtual devices are is known without their processes, which start meanwhile. What a GPU is
 * its process says (description.c); all of them start at once, and are waited for together, and
 * where it is known from the last time nobody waits for that. Devices are numbered as agents from
 * 1: GPUs, then virtual devices.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "compiler/gpu_abi.h"
#include "device/client/client.h"
#include "device/client/cuda.h"
#include "svm/heap.h"
#include "util/alloc.h"

/* Of the machine's memory, where nothing else is asked for: two devices leave half to the
 * application. */
#define MEMORY_SHARE 4u

/* How long a waiting thread looks for the end of a work before it sleeps
 * (SAMEPAGE_SPIN_MICROSECONDS): longer than a launch and its completion take (virtual: 1 us, GPU:
 * 10), and than being woken does (5 to 50 us, twice where the device's process sleeps too). Being
 * woken by a GPU, through its driver and that process, took 0.4 to 1 ms on a machine of two H200
 * (docs/nvidia.md): so a twentieth of what was waited for at most. */
#define SPIN_US 50u
#define GPU_SPIN_US 20000u

/* Each GPU's process spins, and a thread that waits for it. With fewer processors than those take,
 * and as many for all else, they spin this long: most launches are shorter. */
#define BRIEF_GPU_SPIN_US 1000u
#define PROCESSORS_PER_GPU 4u
#define MAX_SPIN_US 1000000u

/* What cuEventElapsedTime can tell apart ("CUDA Driver API", Event Management). */
#define CUDA_TIMER_NS 500u

struct client_device *sp_client_devices;
unsigned sp_client_num_devices;

static struct sp_device **devices;

/* GPUs come first. */
static uint32_t num_gpus;

/* The CPU device of this machine, which virtual devices are like. */
static const struct sp_device *like;

static int partition(struct sp_device *device, enum sp_partition_kind kind, uint32_t first,
                     uint32_t count, struct sp_device **sub_device)
{
    (void)device, (void)kind, (void)first, (void)count, (void)sub_device;
    return -ENOTSUP;
}

static void destroy(struct sp_device *sub_device)
{
    (void)sub_device; /* there are none */
}

static uint32_t numa_units(struct sp_device *device, uint32_t node)
{
    return node == 0 ? device->info.compute_units : 0;
}

/* Virtual devices: as the CPU driver chooses, since the same threads run the kernels. */
static void suggest_local_size(struct sp_device *device, const struct sp_kernel_info *info,
                               const struct sp_ndrange *range, uint64_t local_size[3])
{
    if (device->info.is_gpu)
        sp_cuda_suggest_local_size(device, info, range, local_size);
    else
        like->ops->suggest_local_size(device, info, range, local_size);
}

/* Between memories of one kind there is a direct way; a GPU reaches the memory of a virtual device
 * through the host's processor, which is slower than the host's own pages. */
static uint32_t distance(struct sp_device *given, uint32_t source)
{
    enum { DIRECT, HOST, BY_HOST };
    const struct client_device *device = client_of(given);
    if (source == 0)
        return HOST;
    const struct client_device *from = &sp_client_devices[source - 1];
    if (!given->info.is_gpu)
        return from->device.info.is_gpu ? UINT32_MAX : DIRECT;
    if (!from->device.info.is_gpu)
        return BY_HOST;
    return sp_client_has_peer(device, from) ? DIRECT : UINT32_MAX;
}

/* A virtual device maps the files in which the memory of others lies, unless those are a DRM
 * node's; a GPU maps what other GPUs export. */
static bool sees(struct sp_device *given, uint32_t source)
{
    struct client_device *device = client_of(given);
    const struct client_device *from = source ? &sp_client_devices[source - 1] : device;
    if (from == device || given->info.is_gpu != from->device.info.is_gpu)
        return false;
    if (!given->info.is_gpu)
        return strncmp(from->selected.memory, "drm", 3) != 0;
    return sp_client_await_answer(device) && sp_client_has_peer(device, from);
}

static const struct sp_device_ops client_ops = {
    .submit = sp_client_submit,
    .distance = distance,
    .sees = sees,
    .notice = sp_client_notice,
    .take_fence = sp_client_take_fence,
    .keep_fence = sp_client_keep_fence,
    .drop_fence = sp_client_drop_fence,
    .await_ready = sp_client_await_ready,
    .wait = sp_client_wait,
    .load = sp_client_load,
    .unload = sp_client_unload,
    .find = sp_client_find,
    .suggest_local_size = suggest_local_size,
    .partition = partition,
    .destroy = destroy,
    .numa_units = numa_units,
};

/* --- GPUs ----------------------------------------------------------------------------------------
 */

/* A GPU, before its process says more. */
static void set_up_cuda(struct client_device *device, uint32_t ordinal, bool is_optional)
{
    struct sp_device_info *info = &device->device.info;
    snprintf(device->name, sizeof device->name, "NVIDIA GPU %u", ordinal);
    info->compiles_code = true; /* PTX, by its driver */
    info->max_args_bytes = SP_GPU_MAX_ARGS_BYTES;
    device->ordinal = ordinal;
    device->is_optional = is_optional;
    info->name = device->name;
    info->vendor = "";
    info->driver_name = "cuda";
    info->timer_ns = CUDA_TIMER_NS;
    info->is_gpu = true;
    info->own_memory = true;
    info->numa_nodes = 1;
    struct sp_device_description known;
    enum sp_cuda_memory memory = sp_cuda_recall(ordinal, &known);
    if (memory == SP_CUDA_KNOWN)
        sp_client_recall(device, &known);
    device->is_doubtful = memory == SP_CUDA_REFUSES && is_optional;
}

/* --- Virtual devices -----------------------------------------------------------------------------
 */

static void describe(struct client_device *device, uint64_t default_bytes)
{
    struct sp_device_info *info = &device->device.info;
    *info = like->info;
    device->ordinal = device->index - num_gpus;
    snprintf(device->name, sizeof device->name, "Virtual device %u", device->ordinal);
    info->name = device->name;
    info->driver_name = "virtual";
    info->is_cpu = false;
    info->own_memory = true;
    if (device->selected.threads)
        info->compute_units = device->selected.threads;
    info->global_memory_bytes =
        device->selected.memory_bytes ? device->selected.memory_bytes : default_bytes;
    info->global_memory_bytes &= ~(SP_GRANULE_BYTES - 1);
    info->max_alloc_bytes = info->global_memory_bytes;
    info->home_near_bytes = UINT64_MAX; /* its processors see the host's memory as their own */
    info->svm_levels = SP_SVM_COARSE | SP_SVM_FINE | SP_SVM_ATOMICS;
    info->numa_nodes = 1;
}

/* Microseconds from the environment. */
static uint32_t read_spin_us(uint32_t usual)
{
    const char *text = getenv("SAMEPAGE_SPIN_MICROSECONDS");
    if (!text || !*text)
        return usual;
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && number <= MAX_SPIN_US)
        return (uint32_t)number;
    fprintf(
        stderr,
        "samepage: SAMEPAGE_SPIN_MICROSECONDS=%s is not a whole number from 0 to %u; it is %u.\n",
        text, MAX_SPIN_US, usual);
    return usual;
}

/* Seconds from the environment; 0: no limit. */
static uint64_t read_limit_ns(void)
{
    enum { MAX_SECONDS = 30 * 24 * 60 * 60 };
    const char *text = getenv("SAMEPAGE_KERNEL_SECONDS");
    if (!text || !*text)
        return 0;
    char *end;
    unsigned long seconds = strtoul(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && seconds <= MAX_SECONDS)
        return seconds * UINT64_C(1000000000);
    fprintf(
        stderr,
        "samepage: SAMEPAGE_KERNEL_SECONDS=%s is not a whole number from 0 to %d; kernels have no "
        "time limit.\n",
        text, MAX_SECONDS);
    return 0;
}

/* The GPUs that are asked for: how many, and their numbers. */
static uint32_t select_cuda(const struct sp_selection *selection, uint32_t *ordinals)
{
    unsigned there = sp_cuda_count();
    uint32_t count = 0;
    for (uint32_t i = 0; i < selection->num_cuda; i++) {
        if (selection->cuda[i] < there)
            ordinals[count++] = selection->cuda[i];
        else
            fprintf(
                stderr,
                "samepage: SAMEPAGE_DEVICES names cuda:%u, counted from 0, and the system lists %u "
                "NVIDIA GPUs that CUDA_VISIBLE_DEVICES does not hide.\n",
                selection->cuda[i], there);
    }
    for (uint32_t i = 0; selection->has_all_cuda && i < there; i++) {
        bool is_named = false;
        for (uint32_t j = 0; j < selection->num_cuda; j++)
            is_named |= selection->cuda[j] == i;
        if (!is_named)
            ordinals[count++] = i;
    }
    return count;
}

static void set_up(struct client_device *device, uint32_t index)
{
    device->index = index;
    device->device.ops = &client_ops;
    device->device.root = &device->device;
    device->device.agent = index + 1;
    sp_client_init(device);
}

static int probe(struct sp_device ***found, unsigned *count)
{
    const struct sp_selection *selection = sp_selection();
    uint32_t ordinals[SP_MAX_CLIENT_DEVICES];
    uint32_t num_cuda = select_cuda(selection, ordinals);
    uint32_t total = num_cuda + selection->num_virtual, listed = 0;
    struct sp_device **cpus;
    struct sysinfo system;
    if (total > SP_MAX_CLIENT_DEVICES) {
        fprintf(stderr,
                "samepage: there are %u devices with memory of their own; the first %u are used.\n",
                total, SP_MAX_CLIENT_DEVICES);
        total = SP_MAX_CLIENT_DEVICES;
    }
    num_gpus = num_cuda;
    if (!total)
        return -ENODEV;
    int error = sp_cpu_driver.probe(&cpus, count);
    if (error)
        return error;
    like = cpus[0];
    uint64_t default_bytes = like->info.global_memory_bytes / MEMORY_SHARE;
    if (sysinfo(&system) == 0)
        default_bytes = (uint64_t)system.totalram * system.mem_unit / MEMORY_SHARE;
    sp_client_limit_ns = read_limit_ns();
    sp_client_devices = sp_alloc_array(total, sizeof *sp_client_devices);
    devices = sp_alloc_array(total, sizeof *devices);
    if (!sp_client_devices || !devices) {
        free(sp_client_devices);
        free(devices);
        sp_client_devices = NULL;
        return -ENOMEM;
    }
    uint32_t spin_us = read_spin_us(SPIN_US);
    bool has_room = like->info.compute_units >= num_cuda * PROCESSORS_PER_GPU;
    uint32_t gpu_spin_us = num_cuda ? read_spin_us(has_room ? GPU_SPIN_US : BRIEF_GPU_SPIN_US) : 0;
    for (uint32_t i = 0; i < total; i++) {
        struct client_device *device = &sp_client_devices[i];
        set_up(device, i);
        if (i < num_cuda) {
            set_up_cuda(device, ordinals[i], !selection->num_cuda);
            device->spin_us = gpu_spin_us;
        } else {
            device->selected = selection->virtuals[i - num_cuda];
            describe(device, default_bytes);
            device->spin_us = spin_us;
        }
    }
    /* All are there before any thread looks for its peers. One that cannot start is dead, and the
     * others are not. */
    sp_client_num_devices = total;
    sp_client_set_deadline();
    for (uint32_t i = 0; i < total; i++)
        sp_client_start(&sp_client_devices[i]);
    for (uint32_t i = 0; i < total; i++) {
        struct client_device *device = &sp_client_devices[i];
        if (device->device.info.is_gpu) {
            if (device->is_doubtful)
                continue;
            if (!sp_client_await_description(device)) {
                if (!device->device.is_given_up)
                    fprintf(stderr,
                            "samepage: device %s is left out: it did not say in time what it is; "
                            "a program that starts later finds it if it has by then.\n",
                            device->name);
                continue;
            }
            sp_client_use_description(device);
        }
        device->is_listed = true;
        devices[listed++] = &device->device;
    }
    *found = devices;
    *count = listed;
    return listed ? 0 : -ENODEV;
}

static struct sp_device *missing(unsigned index)
{
    for (unsigned i = 0; i < sp_client_num_devices; i++)
        if (!sp_client_devices[i].is_listed && index-- == 0)
            return &sp_client_devices[i].device;
    return NULL;
}

const struct sp_driver sp_client_driver = {.name = "client", .probe = probe, .missing = missing};
