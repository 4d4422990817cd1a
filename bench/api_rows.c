/* What calls cost. Each row is the median of several repetitions within this process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define REPEATS 9

/* A repetition lasts about this long at most, whatever the calls cost: some platforms take 1 ms for
 * what takes others 0.3 us. */
#define REPEAT_SECONDS 0.2

/* Resident memory of this process in MiB, from /proc/self/status. */
static double resident_mib(void)
{
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %lf kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib / 1024;
}

void bench_discovery(struct bench *bench)
{
    double before_mib = resident_mib();
    double start = bench_seconds();
    bench_must(clGetPlatformIDs(1, &bench->platform, NULL), "no platform behind this vendor file");
    bench_must(clGetDeviceIDs(bench->platform, CL_DEVICE_TYPE_ALL, 1, &bench->device, NULL),
               "clGetDeviceIDs");
    bench_row("platform discovery", (bench_seconds() - start) * 1e3, "ms-");
    bench_row("resident memory, platform open", resident_mib(), "MiB-");
    bench_row("  of it through the platform", resident_mib() - before_mib, "MiB-");
    cl_int error;
    bench->context = clCreateContext(NULL, 1, &bench->device, NULL, NULL, &error);
    bench_must(error, "clCreateContext");
    bench->queue = clCreateCommandQueue(bench->context, bench->device, 0, &error);
    bench_must(error, "clCreateCommandQueue");
}

static cl_program build_once(struct bench *bench, double *seconds)
{
    const char *text = bench_source;
    cl_int error;
    double start = bench_seconds();
    cl_program program = clCreateProgramWithSource(bench->context, 1, &text, NULL, &error);
    bench_must(error, "clCreateProgramWithSource");
    bench_must(clBuildProgram(program, 1, &bench->device, "", NULL, NULL), "clBuildProgram");
    *seconds = bench_seconds() - start;
    return program;
}

/* Every kernel of the program launched once, as small as it can be: what a build leaves to the
 * first enqueue is paid here. */
static void launch_all(struct bench *bench, cl_program program)
{
    cl_kernel kernels[16];
    cl_uint count = 0;
    cl_int error;
    cl_mem buffer = clCreateBuffer(bench->context, CL_MEM_READ_WRITE, 1 << 20, NULL, &error);
    bench_must(error, "clCreateBuffer");
    cl_uint zero = 0;
    bench_must(
        clEnqueueFillBuffer(bench->queue, buffer, &zero, sizeof zero, 0, 1 << 20, 0, NULL, NULL),
        "clEnqueueFillBuffer");
    bench_must(clCreateKernelsInProgram(program, 16, kernels, &count), "clCreateKernelsInProgram");
    for (cl_uint k = 0; k < count; k++) {
        cl_uint args = 0;
        clGetKernelInfo(kernels[k], CL_KERNEL_NUM_ARGS, sizeof args, &args, NULL);
        for (cl_uint a = 0; a < args; a++) {
            /* A buffer, local memory or a number: whichever the kernel takes. */
            if (clSetKernelArg(kernels[k], a, sizeof buffer, &buffer) != CL_SUCCESS &&
                clSetKernelArg(kernels[k], a, sizeof zero, &zero) != CL_SUCCESS)
                clSetKernelArg(kernels[k], a, 1024, NULL);
        }
        size_t global[2] = {16, 16}, local[2] = {16, 16};
        bench_must(
            clEnqueueNDRangeKernel(bench->queue, kernels[k], 2, NULL, global, local, 0, NULL, NULL),
            "clEnqueueNDRangeKernel");
    }
    bench_must(clFinish(bench->queue), "clFinish");
    for (cl_uint k = 0; k < count; k++)
        clReleaseKernel(kernels[k]);
    clReleaseMemObject(buffer);
}

void bench_build(struct bench *bench)
{
    double seconds, start = bench_seconds();
    bench->program = build_once(bench, &seconds);
    bench_row("build of ten kernels, first", seconds * 1e3, "ms-");
    launch_all(bench, bench->program);
    bench_row("  with the first launch of each", (bench_seconds() - start) * 1e3, "ms-");
    clReleaseProgram(bench->program);
    start = bench_seconds();
    bench->program = build_once(bench, &seconds);
    bench_row("build of ten kernels, cached", seconds * 1e3, "ms-");
    launch_all(bench, bench->program);
    bench_row("  with the first launch of each", (bench_seconds() - start) * 1e3, "ms-");
}

static void launch_rows(struct bench *bench)
{
    enum { FINISHES = 2000, STREAM = 20000 };
    cl_int error;
    double times[REPEATS];
    size_t global = 1;
    cl_uint word = 0;
    cl_kernel kernel = clCreateKernel(bench->program, "tiny", &error);
    bench_must(error, "clCreateKernel");
    cl_mem buffer = clCreateBuffer(bench->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                   sizeof word, &word, &error);
    bench_must(error, "clCreateBuffer");
    bench_must(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), "clSetKernelArg");

    for (int r = 0; r < REPEATS; r++) {
        double start = bench_seconds();
        for (int i = 0; i < FINISHES; i++) {
            bench_must(clEnqueueNDRangeKernel(bench->queue, kernel, 1, NULL, &global, &global, 0,
                                              NULL, NULL),
                       "clEnqueueNDRangeKernel");
            bench_must(clFinish(bench->queue), "clFinish");
        }
        times[r] = (bench_seconds() - start) / FINISHES * 1e6;
    }
    bench_row("launch and finish", bench_median(times, REPEATS), "us-");

    for (int r = 0; r < REPEATS; r++) {
        double start = bench_seconds();
        for (int i = 0; i < STREAM; i++)
            bench_must(clEnqueueNDRangeKernel(bench->queue, kernel, 1, NULL, &global, &global, 0,
                                              NULL, NULL),
                       "clEnqueueNDRangeKernel");
        bench_must(clFinish(bench->queue), "clFinish");
        times[r] = (bench_seconds() - start) / STREAM * 1e6;
    }
    bench_row("launch in a stream", bench_median(times, REPEATS), "us-");

    bench_must(
        clEnqueueReadBuffer(bench->queue, buffer, CL_TRUE, 0, sizeof word, &word, 0, NULL, NULL),
        "clEnqueueReadBuffer");
    if (word != REPEATS * (FINISHES + STREAM))
        bench_fail("the tiny kernel's counter is wrong", (cl_int)word);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
}

/* How many of `count` calls are made in one repetition, where one takes `seconds`. */
static int affordable(int count, double seconds)
{
    double fit = REPEAT_SECONDS / (seconds > 1e-9 ? seconds : 1e-9);
    return fit >= count ? count : fit < 1 ? 1 : (int)fit;
}

/* NULL where the platform refuses, which costs it the row and nothing else. */
static void *allocate_for(struct bench *bench, const char *name, size_t bytes)
{
    void *pointer = clSVMAlloc(bench->context, CL_MEM_READ_WRITE, bytes, 0);
    if (!pointer)
        fprintf(stderr, "samepage-bench: no row '%s': clSVMAlloc gave NULL for %zu bytes\n", name,
                bytes);
    return pointer;
}

/* The time of `count` allocations; below zero where one was refused. */
static double time_allocations(struct bench *bench, const char *name, size_t bytes, int count)
{
    double start = bench_seconds();
    for (int i = 0; i < count; i++) {
        void *pointer = allocate_for(bench, name, bytes);
        if (!pointer)
            return -1;
        clSVMFree(bench->context, pointer);
    }
    return bench_seconds() - start;
}

static void alloc_row(struct bench *bench, const char *name, size_t bytes, int count)
{
    double times[REPEATS];
    double first = time_allocations(bench, name, bytes, 1);
    if (first < 0)
        return;
    count = affordable(count, first);
    for (int r = 0; r < REPEATS; r++) {
        double seconds = time_allocations(bench, name, bytes, count);
        if (seconds < 0)
            return;
        times[r] = seconds / count * 1e6;
    }
    bench_row(name, bench_median(times, REPEATS), "us-");
}

/* The time of mapping to read and write, writing one byte, and unmapping, `count` times. */
static double time_maps(struct bench *bench, unsigned char *pointer, size_t bytes, int count)
{
    double start = bench_seconds();
    for (int i = 0; i < count; i++) {
        bench_must(clEnqueueSVMMap(bench->queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, pointer,
                                   bytes, 0, NULL, NULL),
                   "clEnqueueSVMMap");
        pointer[0] = (unsigned char)i;
        bench_must(clEnqueueSVMUnmap(bench->queue, pointer, 0, NULL, NULL), "clEnqueueSVMUnmap");
    }
    bench_must(clFinish(bench->queue), "clFinish");
    return bench_seconds() - start;
}

static void map_row(struct bench *bench, const char *name, size_t bytes, int count)
{
    double times[REPEATS];
    unsigned char *pointer = allocate_for(bench, name, bytes);
    if (!pointer)
        return;
    time_maps(bench, pointer, bytes, 1); /* the first touch of the pages does not count */
    count = affordable(count, time_maps(bench, pointer, bytes, 1));
    for (int r = 0; r < REPEATS; r++)
        times[r] = time_maps(bench, pointer, bytes, count) / count * 1e6;
    bench_row(name, bench_median(times, REPEATS), "us-");
    clSVMFree(bench->context, pointer);
}

static void copy_rows(struct bench *bench)
{
    const size_t bytes = (size_t)256 << 20;
    double times[REPEATS];
    unsigned char *a = allocate_for(bench, "fill 256 MiB", bytes);
    unsigned char *b = allocate_for(bench, "copy 256 MiB", bytes);
    cl_uint pattern = 0x01020304;
    if (!a || !b) {
        clSVMFree(bench->context, a);
        clSVMFree(bench->context, b);
        return;
    }
    for (int r = -1; r < REPEATS; r++) {
        double start = bench_seconds();
        bench_must(
            clEnqueueSVMMemFill(bench->queue, a, &pattern, sizeof pattern, bytes, 0, NULL, NULL),
            "clEnqueueSVMMemFill");
        bench_must(clFinish(bench->queue), "clFinish");
        if (r >= 0)
            times[r] = (double)bytes / (bench_seconds() - start) * 1e-9;
    }
    bench_row("fill 256 MiB", bench_median(times, REPEATS), "GB/s");
    for (int r = -1; r < REPEATS; r++) {
        double start = bench_seconds();
        bench_must(clEnqueueSVMMemcpy(bench->queue, CL_TRUE, b, a, bytes, 0, NULL, NULL),
                   "clEnqueueSVMMemcpy");
        if (r >= 0)
            times[r] = (double)bytes / (bench_seconds() - start) * 1e-9;
    }
    bench_row("copy 256 MiB", bench_median(times, REPEATS), "GB/s");
    bench_must(clEnqueueSVMMap(bench->queue, CL_TRUE, CL_MAP_READ, b, bytes, 0, NULL, NULL),
               "clEnqueueSVMMap");
    for (size_t i = 0; i < bytes; i += 4096)
        if (memcmp(b + i, &pattern, sizeof pattern))
            bench_fail("copied bytes are wrong", (cl_int)(i >> 12));
    bench_must(clEnqueueSVMUnmap(bench->queue, b, 0, NULL, NULL), "clEnqueueSVMUnmap");
    bench_must(clFinish(bench->queue), "clFinish");
    clSVMFree(bench->context, a);
    clSVMFree(bench->context, b);
}

void bench_api_rows(struct bench *bench)
{
    launch_rows(bench);
    alloc_row(bench, "SVM allocate and free 4 KiB", 4096, 20000);
    alloc_row(bench, "SVM allocate and free 64 MiB", (size_t)64 << 20, 500);
    map_row(bench, "SVM map and unmap 4 KiB", 4096, 5000);
    map_row(bench, "SVM map and unmap 1 MiB", (size_t)1 << 20, 5000);
    map_row(bench, "SVM map and unmap 256 MiB", (size_t)256 << 20, 500);
    copy_rows(bench);
}
