/* What sharing between devices with memory of their own costs: two virtual devices in one context.
 * Only for Samepage; the process is started with SAMEPAGE_DEVICES=cpu,virtual:2.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define REPEATS 9
#define LARGE_BYTES ((size_t)256 << 20)
#define HOP_BYTES ((size_t)64 << 20)

static cl_command_queue queues[3];
static cl_context context;

static void set_up(struct bench *bench)
{
    cl_device_id devices[3];
    cl_uint count = 0;
    cl_int error;
    bench_must(clGetPlatformIDs(1, &bench->platform, NULL), "no platform");
    bench_must(clGetDeviceIDs(bench->platform, CL_DEVICE_TYPE_ALL, 3, devices, &count),
               "clGetDeviceIDs");
    if (count != 3)
        bench_fail("two virtual devices are needed", (cl_int)count);
    context = clCreateContext(NULL, 3, devices, NULL, NULL, &error);
    bench_must(error, "clCreateContext");
    for (int i = 0; i < 3; i++) {
        queues[i] = clCreateCommandQueue(context, devices[i], 0, &error);
        bench_must(error, "clCreateCommandQueue");
    }
    const char *text = bench_source;
    bench->program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    bench_must(error, "clCreateProgramWithSource");
    bench_must(clBuildProgram(bench->program, 0, NULL, "", NULL, NULL), "clBuildProgram");
}

static void fill(int device, void *pointer, size_t bytes, cl_uint value)
{
    bench_must(
        clEnqueueSVMMemFill(queues[device], pointer, &value, sizeof value, bytes, 0, NULL, NULL),
        "clEnqueueSVMMemFill");
    bench_must(clFinish(queues[device]), "clFinish");
}

static void migrate(int device, const void *pointer)
{
    bench_must(clEnqueueSVMMigrateMem(queues[device], 1, &pointer, NULL, 0, 0, NULL, NULL),
               "clEnqueueSVMMigrateMem");
    bench_must(clFinish(queues[device]), "clFinish");
}

static void hop_row(void)
{
    double times[REPEATS];
    cl_uint *pointer = clSVMAlloc(context, CL_MEM_READ_WRITE, HOP_BYTES, 0);
    if (!pointer)
        bench_fail("clSVMAlloc gave NULL", 0);
    for (int r = -1; r < REPEATS; r++) {
        fill(1, pointer, HOP_BYTES, (cl_uint)r);
        double start = bench_seconds();
        migrate(2, pointer);
        if (r >= 0)
            times[r] = (double)HOP_BYTES / (bench_seconds() - start) * 1e-9;
    }
    bench_row("hop between devices, 64 MiB", bench_median(times, REPEATS), "GB/s");
    clSVMFree(context, pointer);
}

/* Two devices change the same data in turns: microseconds for one turn. */
static void turns_row(struct bench *bench)
{
    enum { BYTES = 8 << 20, TURNS = 50 };
    double times[REPEATS];
    size_t count = 1;
    cl_int error;
    cl_uint *pointer = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    cl_kernel kernel = clCreateKernel(bench->program, "tiny", &error);
    bench_must(error, "clCreateKernel");
    if (!pointer)
        bench_fail("clSVMAlloc gave NULL", 0);
    bench_must(clSetKernelArgSVMPointer(kernel, 0, pointer), "clSetKernelArgSVMPointer");
    fill(1, pointer, BYTES, 0);
    for (int r = -1; r < REPEATS; r++) {
        double start = bench_seconds();
        for (int i = 0; i < TURNS; i++) {
            cl_command_queue queue = queues[1 + i % 2];
            bench_must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL),
                       "clEnqueueNDRangeKernel");
            bench_must(clFinish(queue), "clFinish");
        }
        if (r >= 0)
            times[r] = (bench_seconds() - start) / TURNS * 1e6;
    }
    bench_row("two devices in turns on 8 MiB", bench_median(times, REPEATS), "us-");
    clSVMFree(context, pointer);
    clReleaseKernel(kernel);
}

/* The same where each turn waits for the one before by its event, and nobody waits in between; on
 * one region, or each device on its own. Microseconds for one turn. */
static void chain_row(struct bench *bench, const char *name, bool is_one)
{
    enum { BYTES = 64 << 10, TURNS = 400 };
    double times[REPEATS];
    size_t count = 1;
    cl_int error;
    cl_uint *regions[2];
    cl_kernel kernel = clCreateKernel(bench->program, "tiny", &error);
    bench_must(error, "clCreateKernel");
    for (int i = 0; i < 2; i++) {
        regions[i] = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
        if (!regions[i])
            bench_fail("clSVMAlloc gave NULL", 0);
        fill(1 + i, regions[i], BYTES, 0);
    }
    for (int r = -1; r < REPEATS; r++) {
        cl_event last = NULL;
        double start = bench_seconds();
        for (int i = 0; i < TURNS; i++) {
            cl_event event;
            bench_must(clSetKernelArgSVMPointer(kernel, 0, regions[is_one ? 0 : i % 2]),
                       "clSetKernelArgSVMPointer");
            bench_must(clEnqueueNDRangeKernel(queues[1 + i % 2], kernel, 1, NULL, &count, NULL,
                                              last ? 1 : 0, last ? &last : NULL, &event),
                       "clEnqueueNDRangeKernel");
            if (last)
                clReleaseEvent(last);
            last = event;
        }
        bench_must(clWaitForEvents(1, &last), "clWaitForEvents");
        clReleaseEvent(last);
        if (r >= 0)
            times[r] = (bench_seconds() - start) / TURNS * 1e6;
    }
    bench_row(name, bench_median(times, REPEATS), "us-");
    for (int i = 0; i < 2; i++)
        clSVMFree(context, regions[i]);
    clReleaseKernel(kernel);
}

static void map_rows(void)
{
    double clean[REPEATS], written[REPEATS];
    unsigned char *pointer = clSVMAlloc(context, CL_MEM_READ_WRITE, LARGE_BYTES, 0);
    if (!pointer)
        bench_fail("clSVMAlloc gave NULL", 0);
    fill(1, pointer, LARGE_BYTES, 7);
    for (int r = -2; r < REPEATS; r++) {
        double start = bench_seconds();
        bench_must(
            clEnqueueSVMMap(queues[1], CL_TRUE, CL_MAP_READ, pointer, LARGE_BYTES, 0, NULL, NULL),
            "clEnqueueSVMMap");
        double mapped = bench_seconds() - start;
        bench_must(clEnqueueSVMUnmap(queues[1], pointer, 0, NULL, NULL), "clEnqueueSVMUnmap");
        bench_must(clEnqueueSVMMap(queues[1], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, pointer,
                                   LARGE_BYTES, 0, NULL, NULL),
                   "clEnqueueSVMMap");
        pointer[(size_t)(r + 3) * 4096] ^= 1;
        start = bench_seconds();
        bench_must(clEnqueueSVMUnmap(queues[1], pointer, 0, NULL, NULL), "clEnqueueSVMUnmap");
        bench_must(clFinish(queues[1]), "clFinish");
        double unmapped = bench_seconds() - start;
        migrate(1, pointer);
        if (r >= 0) {
            clean[r] = mapped * 1e6;
            written[r] = unmapped * 1e6;
        }
    }
    bench_row("map clean 256 MiB of a device", bench_median(clean, REPEATS), "us-");
    bench_row("unmap it with one page written", bench_median(written, REPEATS), "us-");
    clSVMFree(context, pointer);
}

/* The host changes one word of what a device works on, again and again: with maps, where only what
 * was written moves, and as programs do it that move everything each time. */
static void savings_rows(void)
{
    enum { BYTES = 64 << 20 };
    double mapped[REPEATS], moved[REPEATS];
    cl_uint *shared = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0), *own = malloc(BYTES);
    if (!shared || !own)
        bench_fail("clSVMAlloc or malloc gave NULL", 0);
    fill(1, shared, BYTES, 0);
    for (int r = -2; r < REPEATS; r++) {
        double start = bench_seconds();
        /* Read to look at it all, then written in one place: reads leave the device's copy as it
         * is. */
        bench_must(clEnqueueSVMMap(queues[1], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, shared, BYTES, 0,
                                   NULL, NULL),
                   "clEnqueueSVMMap");
        shared[BYTES / 8]++;
        bench_must(clEnqueueSVMUnmap(queues[1], shared, 0, NULL, NULL), "clEnqueueSVMUnmap");
        migrate(1, shared);
        if (r >= 0)
            mapped[r] = (bench_seconds() - start) * 1e6;
    }
    for (int r = -2; r < REPEATS; r++) {
        double start = bench_seconds();
        bench_must(clEnqueueSVMMemcpy(queues[1], CL_TRUE, own, shared, BYTES, 0, NULL, NULL),
                   "clEnqueueSVMMemcpy");
        own[BYTES / 8]++;
        bench_must(clEnqueueSVMMemcpy(queues[1], CL_TRUE, shared, own, BYTES, 0, NULL, NULL),
                   "clEnqueueSVMMemcpy");
        migrate(1, shared);
        if (r >= 0)
            moved[r] = (bench_seconds() - start) * 1e6;
    }
    bench_row("map 64 MiB, change a word, give it back", bench_median(mapped, REPEATS), "us-");
    bench_row("  the same, all of it moved each time", bench_median(moved, REPEATS), "us-");
    clSVMFree(context, shared);
    free(own);
}

enum launching {
    EACH_FINISHED, /* a finish for each */
    STREAM,        /* one finish for all */
    ENQUEUE_ONLY   /* what the application's thread spends: the finish is not counted */
};

/* One launch of many. */
static double launch_us(cl_kernel kernel, enum launching launching)
{
    enum { COUNT = 2000 };
    double times[REPEATS];
    size_t one = 1;
    for (int r = 0; r < REPEATS; r++) {
        double start = bench_seconds();
        for (int i = 0; i < COUNT; i++) {
            bench_must(
                clEnqueueNDRangeKernel(queues[1], kernel, 1, NULL, &one, &one, 0, NULL, NULL),
                "clEnqueueNDRangeKernel");
            if (launching == EACH_FINISHED)
                bench_must(clFinish(queues[1]), "clFinish");
        }
        if (launching == STREAM)
            bench_must(clFinish(queues[1]), "clFinish");
        times[r] = (bench_seconds() - start) / COUNT * 1e6;
        bench_must(clFinish(queues[1]), "clFinish");
    }
    return bench_median(times, REPEATS);
}

static void launch_rows(struct bench *bench)
{
    enum { REGIONS = 10000 };
    static void *regions[REGIONS];
    cl_int error;
    cl_uint *word = clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0);
    cl_kernel kernel = clCreateKernel(bench->program, "tiny", &error);
    bench_must(error, "clCreateKernel");
    if (!word)
        bench_fail("clSVMAlloc gave NULL", 0);
    bench_must(clSetKernelArgSVMPointer(kernel, 0, word), "clSetKernelArgSVMPointer");
    launch_us(kernel, EACH_FINISHED);
    bench_row("launch in a stream on a device", launch_us(kernel, STREAM), "us-");
    bench_row("  the enqueue alone", launch_us(kernel, ENQUEUE_ONLY), "us-");
    bench_row("launch and finish on a device", launch_us(kernel, EACH_FINISHED), "us-");
    for (int i = 0; i < REGIONS; i++) {
        regions[i] = clSVMAlloc(context, CL_MEM_READ_WRITE, 256, 0);
        if (!regions[i])
            bench_fail("clSVMAlloc gave NULL", i);
    }
    bench_row("  with 10,000 live regions", launch_us(kernel, EACH_FINISHED), "us-");
    for (int i = 0; i < REGIONS; i++)
        clSVMFree(context, regions[i]);
    clSVMFree(context, word);
    clReleaseKernel(kernel);
}

void bench_device_rows(void)
{
    struct bench bench = {0};
    set_up(&bench);
    hop_row();
    turns_row(&bench);
    chain_row(&bench, "two devices in turns by events, 64 KiB", true);
    chain_row(&bench, "  each on its own region", false);
    map_rows();
    savings_rows();
    launch_rows(&bench);
}
