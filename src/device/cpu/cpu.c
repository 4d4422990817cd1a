/* The CPU device: always there, in the application's process, in the host's memory.
 *
 * There is one root device, described once from the system's own files; sub-devices are copies of
 * it with fewer compute units. It has all SVM levels, since its memory is the host's.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "device/cpu/cpu.h"
#include "svm/heap.h"
#include "util/alloc.h"

/* As SP_MAX_WORK_GROUP_SIZE of the builtin library (docs/compiler-contract.md). */
#define MAX_WORK_GROUP_SIZE 1024u

/* Ours to choose: local memory is a part of scratch. What the second-level cache of today's
 * processors holds beside the context; the specification asks for 32 KiB. */
#define LOCAL_MEMORY_BYTES (UINT64_C(256) << 10)

/* PCI vendor ids, which clinfo and programs know. */
#define VENDOR_INTEL 0x8086u
#define VENDOR_AMD 0x1022u

static struct cpu_device root;
static struct sp_device *devices[] = {&root.device};

static void submit(struct sp_device *device, struct sp_work *work)
{
    unsigned threads = device->info.compute_units;
    bool is_heavy = false;
    switch (work->kind) {
    case SP_WORK_KERNEL:
        is_heavy = sp_cpu_kernel_plan(work, threads);
        break;
    case SP_WORK_CALL:
        work->driver.parts = work->driver.chunk = work->driver.least = 1;
        break;
    default:
        is_heavy = sp_cpu_copy_plan(work, threads);
        break;
    }
    sp_cpu_pool_submit(device, work, is_heavy);
}

int sp_cpu_work_run(struct sp_work *work, uint64_t first, uint64_t end)
{
    switch (work->kind) {
    case SP_WORK_KERNEL:
        return sp_cpu_kernel_run(work, first, end);
    case SP_WORK_CALL:
        work->call.function(work->call.argument);
        return 0;
    default:
        return sp_cpu_copy_run(work, first, end);
    }
}

/* The processors of the nth node that has any of the device; false where there is none. */
static bool nth_node(const struct cpu_device *device, uint32_t n, cpu_set_t *processors)
{
    for (unsigned node = 0; node < sp_cpu_num_nodes(); node++) {
        CPU_AND(processors, sp_cpu_node_processors(node), &device->processors);
        if (CPU_COUNT(processors) && n-- == 0)
            return true;
    }
    return false;
}

static uint32_t numa_units(struct sp_device *device, uint32_t node)
{
    cpu_set_t processors;
    if (!nth_node(sp_cpu_device(device), node, &processors))
        return 0;
    return (uint32_t)CPU_COUNT(&processors);
}

static int partition(struct sp_device *device, enum sp_partition_kind kind, uint32_t first,
                     uint32_t count, struct sp_device **sub_device)
{
    struct cpu_device *part = sp_alloc(sizeof *part);
    if (!part)
        return -ENOMEM;
    *part = *sp_cpu_device(device);
    if (kind == SP_PARTITION_NUMA) {
        if (!nth_node(sp_cpu_device(device), first, &part->processors)) {
            free(part);
            return -ENODEV;
        }
        part->has_processors = true;
        part->device.info.numa_nodes = 1;
        part->device.info.compute_units = (uint32_t)CPU_COUNT(&part->processors);
    } else {
        part->device.info.compute_units = count;
    }
    *sub_device = &part->device;
    return 0;
}

static void destroy(struct sp_device *sub_device)
{
    free(sp_cpu_device(sub_device));
}

static const struct sp_device_ops cpu_ops = {
    .submit = submit,
    .wait = sp_cpu_pool_wait,
    .load = sp_cpu_load,
    .unload = sp_cpu_unload,
    .find = sp_cpu_find,
    .init_globals = sp_cpu_init_globals,
    .suggest_local_size = sp_cpu_suggest_local_size,
    .partition = partition,
    .destroy = destroy,
    .numa_units = numa_units,
};

/* The value of the first line of /proc/cpuinfo that begins with `key`, into `value`; false where
 * there is none. */
static bool read_cpuinfo(const char *key, char *value, size_t size)
{
    char line[512];
    bool is_found = false;
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return false;
    while (!is_found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) || !colon)
            continue;
        char *start = colon + 1 + strspn(colon + 1, " \t");
        start[strcspn(start, "\n")] = 0;
        snprintf(value, size, "%s", start);
        is_found = true;
    }
    fclose(file);
    return is_found;
}

static uint64_t read_number(const char *path)
{
    unsigned long long number = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &number) != 1)
        number = 0;
    fclose(file);
    return number;
}

static uint32_t clock_mhz(void)
{
    char text[64];
    uint64_t khz = read_number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    if (khz)
        return (uint32_t)(khz / 1000);
    return read_cpuinfo("cpu MHz", text, sizeof text) ? (uint32_t)atof(text) : 0;
}

static uint32_t vector_bytes(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return 64;
    if (__builtin_cpu_supports("avx2"))
        return 32;
#endif
    return 16;
}

static void describe(struct sp_device_info *info, const cpu_set_t *processors)
{
    static char name[256] = "CPU";
    static char vendor[64] = "unknown";
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
    struct sysinfo system;
    uintptr_t window;
    size_t window_bytes;

    read_cpuinfo("model name", name, sizeof name);
    read_cpuinfo("vendor_id", vendor, sizeof vendor);
    sp_window_range(&window, &window_bytes);
    info->name = name;
    info->vendor = vendor;
    info->vendor_id = !strcmp(vendor, "GenuineIntel")   ? VENDOR_INTEL
                      : !strcmp(vendor, "AuthenticAMD") ? VENDOR_AMD
                                                        : 0;
    info->driver_name = "cpu";
    info->is_cpu = true;
    info->compute_units = (uint32_t)CPU_COUNT(processors);
    info->clock_mhz = clock_mhz();
    info->max_work_group_size = MAX_WORK_GROUP_SIZE;
    for (unsigned d = 0; d < 3; d++)
        info->max_item_sizes[d] = MAX_WORK_GROUP_SIZE;
    info->native_vector_bytes = vector_bytes();
    info->preferred_multiple = info->native_vector_bytes / (uint32_t)sizeof(float);
    info->global_memory_bytes = UINT64_C(1) << 30;
    if (sysinfo(&system) == 0)
        info->global_memory_bytes = (uint64_t)system.totalram * system.mem_unit;
    /* Three quarters can be had in one piece; the rest is for the application itself. */
    info->max_alloc_bytes = info->global_memory_bytes / 4 * 3;
    if (info->max_alloc_bytes > window_bytes / 2)
        info->max_alloc_bytes = window_bytes / 2;
    info->local_memory_bytes = LOCAL_MEMORY_BYTES;
    info->cache_bytes = cache > 0 ? (uint64_t)cache : 0;
    info->cache_line_bytes = line > 0 ? (uint32_t)line : 64;
    info->svm_levels = SP_SVM_COARSE | SP_SVM_FINE | SP_SVM_SYSTEM | SP_SVM_ATOMICS;
    info->fp64 = true;
}

static int probe(struct sp_device ***found, unsigned *count)
{
    /* The processors that the process may use, as taskset and containers set them. */
    if (sched_getaffinity(0, sizeof root.processors, &root.processors)) {
        CPU_ZERO(&root.processors);
        CPU_SET(0, &root.processors);
    }
    root.device.ops = &cpu_ops;
    root.device.root = &root.device;
    describe(&root.device.info, &root.processors);
    sp_cpu_nodes_init(&root.processors);
    root.device.info.numa_nodes = sp_cpu_num_nodes();
    *found = devices;
    *count = 1;
    return 0;
}

const struct sp_driver sp_cpu_driver = {.name = "cpu", .probe = probe};
