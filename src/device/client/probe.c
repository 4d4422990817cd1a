/* The client driver: which devices live in processes of their own, and what they are.
 *
 * All is known without their processes, which start meanwhile. Devices are numbered as agents from
 * 1, in the order in which SAMEPAGE_DEVICES names them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include "device/client/client.h"
#include "svm/heap.h"
#include "util/alloc.h"

/* Of the machine's memory, where nothing else is asked for: two devices leave half to the
 * application. */
#define MEMORY_SHARE 4u

struct client_device *sp_client_devices;
unsigned sp_client_num_devices;

static struct sp_device **devices;

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

/* As the CPU driver chooses: the same threads run the kernels. */
static void suggest_local_size(struct sp_device *device, const struct sp_kernel_info *info,
                               const struct sp_ndrange *range, uint64_t local_size[3])
{
    like->ops->suggest_local_size(device, info, range, local_size);
}

static const struct sp_device_ops client_ops = {
    .submit = sp_client_submit,
    .wait = sp_client_wait,
    .load = sp_client_load,
    .unload = sp_client_unload,
    .find = sp_client_find,
    .init_globals = sp_client_init_globals,
    .suggest_local_size = suggest_local_size,
    .partition = partition,
    .destroy = destroy,
    .numa_units = numa_units,
};

static void describe(struct client_device *device, uint64_t default_bytes)
{
    struct sp_device_info *info = &device->device.info;
    *info = like->info;
    snprintf(device->name, sizeof device->name, "Virtual device %u", device->index);
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

static int probe(struct sp_device ***found, unsigned *count)
{
    const struct sp_selection *selection = sp_selection();
    struct sp_device **cpus;
    struct sysinfo system;
    if (!selection->num_virtual)
        return -ENODEV;
    int error = sp_cpu_driver.probe(&cpus, count);
    if (error)
        return error;
    like = cpus[0];
    uint64_t default_bytes = like->info.global_memory_bytes / MEMORY_SHARE;
    if (sysinfo(&system) == 0)
        default_bytes = (uint64_t)system.totalram * system.mem_unit / MEMORY_SHARE;
    sp_client_limit_ns = read_limit_ns();
    sp_client_devices = sp_alloc_array(selection->num_virtual, sizeof *sp_client_devices);
    devices = sp_alloc_array(selection->num_virtual, sizeof *devices);
    if (!sp_client_devices || !devices) {
        free(sp_client_devices);
        free(devices);
        sp_client_devices = NULL;
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < selection->num_virtual; i++) {
        struct client_device *device = &sp_client_devices[i];
        device->index = i;
        device->selected = selection->virtuals[i];
        device->device.ops = &client_ops;
        device->device.root = &device->device;
        device->device.agent = i + 1;
        describe(device, default_bytes);
        devices[i] = &device->device;
        sp_client_init(device);
    }
    /* All are there before any thread looks for its peers. One that cannot start is dead, and the
     * others are not. */
    sp_client_num_devices = selection->num_virtual;
    for (uint32_t i = 0; i < selection->num_virtual; i++)
        sp_client_start(&sp_client_devices[i]);
    *found = devices;
    *count = selection->num_virtual;
    return 0;
}

const struct sp_driver sp_client_driver = {.name = "client", .probe = probe};
