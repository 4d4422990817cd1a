/* Prints the figures of docs/device-process.md: what a launch, a submit and a transfer cost through
 * a device process, beside the CPU device in this process and beside plain memcpy. Not a test. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "client_device.h"
#include "unit/unit.h"
#include "util/time.h"

#define LAUNCHES 20000

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_us(uint64_t *times, size_t count)
{
    qsort(times, count, sizeof *times, compare);
    return (double)times[count / 2] / 1000;
}

static void measure_launches(const char *name, struct sp_device *device)
{
    static const char source[] = "kernel void nothing(void) {}";
    static uint64_t times[LAUNCHES], submits[LAUNCHES];
    static struct gated works[LAUNCHES];
    struct test_code code;
    load_code(device, source, &code);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < LAUNCHES; i++) {
            set_kernel(device, &code, "nothing", 1, NULL, &works[0]);
            uint64_t start = sp_time_ns();
            submit(device, &works[0]);
            uint64_t submitted = sp_time_ns();
            await(device, &works[0]);
            times[i] = sp_time_ns() - start;
            submits[i] = submitted - start;
        }
    printf("%s: launch and completion of an empty kernel %.2f us (submit %.2f us)\n", name,
           median_us(times, LAUNCHES), median_us(submits, LAUNCHES));
    for (int i = 0; i < LAUNCHES; i++)
        set_kernel(device, &code, "nothing", 1, NULL, &works[i]);
    uint64_t start = sp_time_ns();
    for (int i = 0; i < LAUNCHES; i++)
        submit(device, &works[i]);
    uint64_t submitted = sp_time_ns();
    for (int i = 0; i < LAUNCHES; i++)
        await(device, &works[i]);
    uint64_t end = sp_time_ns();
    printf("%s: %d empty kernels at once: submit %.2f us, all done %.2f us each\n", name, LAUNCHES,
           (double)(submitted - start) / LAUNCHES / 1000, (double)(end - start) / LAUNCHES / 1000);
    unload_code(device, &code);
}

static void measure_idle_launch(struct sp_device *device)
{
    enum { COUNT = 100 };
    uint64_t times[COUNT];
    unsigned char *at = host_pages(8, 1);
    bind(device, at, GRANULE, false);
    for (int i = 0; i < COUNT; i++) {
        struct timespec pause = {.tv_nsec = 2000000};
        nanosleep(&pause, NULL); /* so that the process sleeps: what is measured */
        uint64_t start = sp_time_ns();
        fill(device, at, 1, 1);
        times[i] = sp_time_ns() - start;
    }
    printf("virtual: a small fill after idling %.2f us\n", median_us(times, COUNT));
    unbind(device, at, GRANULE);
}

static void measure_transfers(size_t mib)
{
    size_t granules = (mib << 20) / GRANULE, bytes = granules * GRANULE;
    enum { ROUNDS = 15 };
    static const struct {
        const char *name;
        unsigned device;
        uint32_t source, destination;
    } kinds[] = {
        {"host to device", 0, 0, 1}, {"device to host", 0, 1, 0}, {"device to device", 1, 1, 2}};
    uint64_t times[ROUNDS];
    unsigned char *at = host_pages(64, granules);
    uint64_t touched = sp_time_ns();
    memset(at, 1, bytes);
    printf("fresh host pages, %zu MiB written by one thread: %.2f ms\n", mib,
           (double)(sp_time_ns() - touched) / 1e6);
    bind(devices[0], at, bytes, false);
    bind(devices[1], at, bytes, false);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        uint64_t first = 0;
        for (int i = 0; i < ROUNDS; i++) {
            uint64_t start = sp_time_ns();
            if (transfer(devices[kinds[k].device], at, bytes, kinds[k].source,
                         kinds[k].destination))
                printf("failed\n");
            times[i] = sp_time_ns() - start;
            if (i == 0)
                first = times[i];
        }
        double us = median_us(times, ROUNDS);
        printf("%s: %zu MiB %.2f ms, %.2f GB/s (the first time %.2f ms)\n", kinds[k].name, mib,
               us / 1000, (double)bytes / us / 1000, (double)first / 1e6);
    }
    /* What one memcpy between two shared mappings reaches. */
    int file = memfd_create("measure", 0);
    if (ftruncate(file, (off_t)bytes))
        return;
    unsigned char *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = sp_time_ns();
        memcpy(to, at, bytes);
        times[i] = sp_time_ns() - start;
    }
    double us = median_us(times, ROUNDS);
    printf("memcpy between two shared mappings, one thread: %zu MiB %.2f ms, %.2f GB/s\n", mib,
           us / 1000, (double)bytes / us / 1000);
    unbind(devices[0], at, bytes);
    unbind(devices[1], at, bytes);
}

static void measure_restart(struct sp_device *device)
{
    enum { COUNT = 15 };
    uint64_t times[COUNT];
    unsigned char *at = host_pages(8, 1);
    for (int i = 0; i < COUNT; i++) {
        unsigned before = losses_of(device);
        bind(device, at, GRANULE, false);
        uint64_t start = sp_time_ns();
        kill(process_of(device), SIGKILL);
        await_losses(device, before + 1);
        while (bind(device, at, GRANULE, false))
            ; /* those that come before `lost` has returned fail */
        times[i] = sp_time_ns() - start;
    }
    printf("from SIGKILL to a bound granule in the next process: %.2f ms\n",
           median_us(times, COUNT) / 1000);
}

int main(void)
{
    struct sp_device **cpus;
    unsigned count;
    set_up_devices("virtual:2,mem=1G");
    if (sp_cpu_driver.probe(&cpus, &count))
        return 1;
    measure_launches("cpu", cpus[0]);
    measure_launches("virtual", devices[0]);
    measure_idle_launch(devices[0]);
    measure_restart(devices[0]);
    measure_transfers(2);
    measure_transfers(256);
    return 0;
}
