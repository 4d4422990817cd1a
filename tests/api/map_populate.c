/* Mapping for writing what a device wrote takes its pages into the host's page table at once, since
 * the kernel takes watched pages one by one later; mapping what nobody has written takes no memory.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "check_devices.h"

enum { NUM_DEVICES = 2, BYTES = 8 << 20 };

#define PAGE_IS_PRESENT (UINT64_C(1) << 63) /* Documentation/admin-guide/mm/pagemap.rst */

static const char source[] =
    "kernel void set(global uint *p) { p[get_global_id(0)] = get_global_id(0); }\n";

static cl_device_id devices[NUM_DEVICES];
static cl_command_queue queues[NUM_DEVICES];

/* How many pages of the range are in this process's page table. */
static size_t present_pages(const void *start, size_t bytes)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), count = bytes / page_bytes, present = 0;
    uint64_t *entries = malloc(count * sizeof *entries);
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    REQUIRE(entries && file >= 0);
    off_t at = (off_t)((uintptr_t)start / page_bytes * sizeof *entries);
    REQUIRE(pread(file, entries, count * sizeof *entries, at) ==
            (ssize_t)(count * sizeof *entries));
    for (size_t i = 0; i < count; i++)
        present += (entries[i] & PAGE_IS_PRESENT) != 0;
    close(file);
    free(entries);
    return present;
}

/* PAGEMAP_SCAN came with Linux 6.7. */
static bool can_watch(void)
{
    struct utsname system;
    int major = 0, minor = 0;
    REQUIRE(uname(&system) == 0 && sscanf(system.release, "%d.%d", &major, &minor) == 2);
    return major > 6 || (major == 6 && minor >= 7);
}

static void map(void *start, size_t bytes)
{
    REQUIRE_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, start, bytes, 0,
                               NULL, NULL));
}

static void unmap(void *start)
{
    REQUIRE_CL(clEnqueueSVMUnmap(queues[0], start, 0, NULL, NULL));
    REQUIRE_CL(clFinish(queues[0]));
}

int main(void)
{
    setenv("SAMEPAGE_DEVICES", "virtual:2,mem=64M", 1);
    setenv("SAMEPAGE_HOSTWATCH", "pagemap", 1);
    if (!can_watch()) {
        puts("skipped: this kernel has no PAGEMAP_SCAN");
        return 77;
    }
    cl_context context = context_of_all(NUM_DEVICES, devices, queues, NULL, NULL);
    cl_program program = build(context, source, "-cl-std=CL3.0");
    cl_kernel kernel = get_kernel(program, "set");
    void *fresh = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    cl_uint *written = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    REQUIRE(fresh && written);
    size_t count = BYTES / sizeof *written;

    map(fresh, BYTES);
    REQUIRE(present_pages(fresh, BYTES) == 0);
    unmap(fresh);

    REQUIRE_CL(clSetKernelArgSVMPointer(kernel, 0, written));
    REQUIRE_CL(clEnqueueNDRangeKernel(queues[1], kernel, 1, NULL, &count, NULL, 0, NULL, NULL));
    REQUIRE_CL(clFinish(queues[1]));
    for (size_t half = 0; half < 2; half++) { /* a watch of one half leaves the other to the next */
        unsigned char *start = (unsigned char *)written + half * BYTES / 2;
        map(start, BYTES / 2);
        REQUIRE(present_pages(start, BYTES / 2) == BYTES / 2 / (size_t)sysconf(_SC_PAGESIZE));
        for (size_t i = 0; i < count / 2; i++)
            REQUIRE(written[half * count / 2 + i] == half * count / 2 + i);
        unmap(start);
    }

    clSVMFree(context, fresh);
    clSVMFree(context, written);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    for (int i = 0; i < NUM_DEVICES; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return 0;
}
