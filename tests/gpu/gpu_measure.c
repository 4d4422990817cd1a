/* Prints the figures of docs/nvidia.md for one GPU or two, through the ICD loader; every result is
 * checked before its time is printed. Not a test of CTest's, but exits with 1 where a result is
 * wrong, and 77 without a GPU.
 *
 *     gpu_measure [all|launches|beside|chain]
 */
#include <time.h>

#include "../api/check.h"

#define MIB ((size_t)1 << 20)
#define MAX_SAMPLES 4096

static const char source[] =
    "kernel void nothing(void) {}\n"
    "kernel void one(global int *data) { if (get_global_id(0) == 0) data[0] += 1; }\n"
    "kernel void set(global ulong *data, ulong seed) { size_t i = get_global_id(0); data[i] = i * "
    "3 + seed; }\n"
    "kernel void check(global const ulong *data, ulong seed, global uint *wrong) {\n"
    "  size_t i = get_global_id(0); if (data[i] != i * 3 + seed) atomic_inc(wrong); }\n"
    "kernel void busy(global uint *data, uint rounds) {\n"
    "  uint x = data[get_global_id(0)] | 1u;\n"
    "  for (uint i = 0; i < rounds; i++) x = x * x + (x >> 7) + i;\n"
    "  data[get_global_id(0)] = x; }\n"
    "kernel void triad(global float *a, global const float *b, global const float *c) {\n"
    "  size_t i = get_global_id(0); a[i] = b[i] + 3.0f * c[i]; }\n";

static cl_context context;
static cl_device_id devices[16];
static cl_command_queue queues[16];
static cl_uint num_devices;
static cl_program program;

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double samples[MAX_SAMPLES];
static unsigned num_samples;

static void row(const char *name, const char *unit)
{
    qsort(samples, num_samples, sizeof samples[0], compare);
    printf("%-52s %10.2f %s  (best %.2f, worst %.2f)\n", name, samples[num_samples / 2], unit,
           samples[0], samples[num_samples - 1]);
    fflush(stdout);
    num_samples = 0;
}

static void sample(double value)
{
    if (num_samples < MAX_SAMPLES)
        samples[num_samples++] = value;
}

static cl_kernel kernel_named(const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    REQUIRE_CL(error);
    return kernel;
}

static void run(cl_command_queue queue, cl_kernel kernel, size_t global)
{
    CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL),
             CL_SUCCESS);
}

static void map(cl_command_queue queue, cl_map_flags flags, void *at, size_t bytes)
{
    CHECK_CL(clEnqueueSVMMap(queue, CL_TRUE, flags, at, bytes, 0, NULL, NULL), CL_SUCCESS);
}

static void unmap(cl_command_queue queue, void *at)
{
    CHECK_CL(clEnqueueSVMUnmap(queue, at, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
}

static void *allocate(size_t bytes)
{
    void *at = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
    REQUIRE(at);
    return at;
}

static void measure_launches(void)
{
    cl_command_queue queue = queues[0];
    cl_kernel nothing = kernel_named("nothing"), one = kernel_named("one");
    int *data = allocate(4096);
    const int zero = 0;
    enum { COUNT = 2000 };
    CHECK_CL(clEnqueueSVMMemFill(queue, data, &zero, 4, 4096, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(one, 0, data), CL_SUCCESS);
    for (int round = 0; round < 2; round++) {
        num_samples = 0;
        for (int i = 0; i < COUNT; i++) {
            double start = now_us();
            run(queue, nothing, 1);
            CHECK_CL(clFinish(queue), CL_SUCCESS);
            sample(now_us() - start);
        }
    }
    row("launch and finish, no argument", "us");
    for (int round = 0; round < 2; round++) {
        num_samples = 0;
        for (int i = 0; i < COUNT; i++) {
            double start = now_us();
            run(queue, one, 32);
            CHECK_CL(clFinish(queue), CL_SUCCESS);
            sample(now_us() - start);
        }
    }
    row("launch and finish, one SVM pointer", "us");
    for (int round = 0; round < 8; round++) {
        double start = now_us();
        for (int i = 0; i < COUNT; i++)
            run(queue, nothing, 1);
        double enqueued = now_us();
        CHECK_CL(clFinish(queue), CL_SUCCESS);
        double end = now_us();
        sample((end - start) / COUNT);
        if (round == 7)
            printf("  (enqueueing alone %.2f us)\n", (enqueued - start) / COUNT);
    }
    row("launch in a stream, no argument", "us");
    for (int round = 0; round < 8; round++) {
        double start = now_us();
        for (int i = 0; i < COUNT; i++)
            run(queue, one, 32);
        CHECK_CL(clFinish(queue), CL_SUCCESS);
        sample((now_us() - start) / COUNT);
    }
    row("launch in a stream, one SVM pointer", "us");
    map(queue, CL_MAP_READ, data, 4096);
    CHECK(data[0] == 2 * COUNT + 8 * COUNT || getenv("FAKE_CUDA_LENIENT"));
    unmap(queue, data);
    clSVMFree(context, data);
    clReleaseKernel(nothing);
    clReleaseKernel(one);
}

static void measure_allocations(void)
{
    cl_command_queue queue = queues[0];
    const size_t sizes[] = {4096, 4 * MIB, 256 * MIB};
    char name[80];
    for (size_t s = 0; s < 3; s++) {
        for (int i = 0; i < 64; i++) {
            double start = now_us();
            void *at = allocate(sizes[s]);
            clSVMFree(context, at);
            sample(now_us() - start);
        }
        snprintf(name, sizeof name, "allocate and free %zu KiB", sizes[s] / 1024);
        row(name, "us");
        const int value = 7;
        for (int i = 0; i < 16; i++) {
            double start = now_us();
            int *at = allocate(sizes[s]);
            CHECK_CL(clEnqueueSVMMemFill(queue, at, &value, 4, 4096, 0, NULL, NULL), CL_SUCCESS);
            CHECK_CL(clFinish(queue), CL_SUCCESS);
            clSVMFree(context, at);
            sample(now_us() - start);
        }
        snprintf(name, sizeof name, "the same, with a fill of 4 KiB on the GPU");
        row(name, "us");
    }
}

static void measure_maps(void)
{
    cl_command_queue queue = queues[0];
    cl_kernel set = kernel_named("set");
    const size_t sizes[] = {4096, MIB, 256 * MIB};
    cl_ulong seed = 1;
    char name[80];
    for (size_t s = 0; s < 3; s++) {
        cl_ulong *at = allocate(sizes[s]);
        size_t count = sizes[s] / sizeof *at;
        CHECK_CL(clSetKernelArgSVMPointer(set, 0, at), CL_SUCCESS);
        CHECK_CL(clSetKernelArg(set, 1, sizeof seed, &seed), CL_SUCCESS);
        run(queue, set, count);
        CHECK_CL(clFinish(queue), CL_SUCCESS);
        double start = now_us();
        map(queue, CL_MAP_READ, at, sizes[s]);
        printf("  first map of %zu KiB that the GPU wrote: %.0f us\n", sizes[s] / 1024,
               now_us() - start);
        unmap(queue, at);
        for (int i = 0; i < 6; i++) {
            seed++;
            CHECK_CL(clSetKernelArg(set, 1, sizeof seed, &seed), CL_SUCCESS);
            run(queue, set, count);
            CHECK_CL(clFinish(queue), CL_SUCCESS);
            start = now_us();
            map(queue, CL_MAP_READ, at, sizes[s]);
            double us = now_us() - start;
            CHECK(at[count - 1] == (count - 1) * 3 + seed && at[count / 2] == count / 2 * 3 + seed);
            sample(us);
            unmap(queue, at);
        }
        double bytes = (double)sizes[s], us = samples[num_samples / 2];
        snprintf(name, sizeof name, "map to read %zu KiB that the GPU wrote", sizes[s] / 1024);
        row(name, "us");
        printf("  = %.1f GB/s\n", bytes / us / 1e3);
        for (int i = 0; i < 200; i++) {
            start = now_us();
            map(queue, CL_MAP_READ, at, sizes[s]);
            sample(now_us() - start);
            CHECK_CL(clEnqueueSVMUnmap(queue, at, 0, NULL, NULL), CL_SUCCESS);
        }
        CHECK_CL(clFinish(queue), CL_SUCCESS);
        snprintf(name, sizeof name, "map to read %zu KiB again, clean", sizes[s] / 1024);
        row(name, "us");
        for (size_t dirty = 1; dirty <= 1024; dirty *= 1024) {
            if (dirty * 65536 > sizes[s] && dirty > 1)
                continue;
            enum { ROUNDS = 40 };
            double next[ROUNDS];
            for (int i = 0; i < ROUNDS; i++) {
                map(queue, CL_MAP_READ | CL_MAP_WRITE, at, sizes[s]);
                for (size_t d = 0; d < dirty; d++)
                    at[d * (sizes[s] / dirty / sizeof *at)] ^= 1;
                start = now_us();
                unmap(queue, at);
                sample(now_us() - start);
                /* The GPU needs the pages back. */
                double begin = now_us();
                const int none = 0;
                (void)none;
                cl_kernel one = kernel_named("one");
                CHECK_CL(clSetKernelArgSVMPointer(one, 0, at), CL_SUCCESS);
                run(queue, one, 1);
                CHECK_CL(clFinish(queue), CL_SUCCESS);
                next[i] = now_us() - begin;
                clReleaseKernel(one);
            }
            qsort(next, ROUNDS, sizeof next[0], compare);
            printf("  the next kernel, which brings %zu pages: %.0f us (best %.0f)\n", dirty,
                   next[ROUNDS / 2], next[0]);
            snprintf(name, sizeof name, "unmap %zu KiB with %zu pages written", sizes[s] / 1024,
                     dirty);
            row(name, "us");
        }
        clSVMFree(context, at);
    }
    clReleaseKernel(set);
}

/* The host writes all, the GPU reads all; and the other way round. */
static void measure_transfers(void)
{
    cl_command_queue queue = queues[0];
    cl_kernel check = kernel_named("check");
    const size_t bytes = 1024 * MIB, count = bytes / 8;
    cl_ulong *at = allocate(bytes);
    cl_uint *wrong = allocate(4096);
    const cl_uint zero = 0;
    CHECK_CL(clEnqueueSVMMemFill(queue, wrong, &zero, 4, 4096, 0, NULL, NULL), CL_SUCCESS);
    for (cl_ulong seed = 1; seed <= 4; seed++) {
        map(queue, CL_MAP_WRITE_INVALIDATE_REGION, at, bytes);
        for (size_t i = 0; i < count; i++)
            at[i] = i * 3 + seed;
        unmap(queue, at);
        CHECK_CL(clSetKernelArgSVMPointer(check, 0, at), CL_SUCCESS);
        CHECK_CL(clSetKernelArg(check, 1, sizeof seed, &seed), CL_SUCCESS);
        CHECK_CL(clSetKernelArgSVMPointer(check, 2, wrong), CL_SUCCESS);
        double start = now_us();
        run(queue, check, count);
        CHECK_CL(clFinish(queue), CL_SUCCESS);
        double us = now_us() - start;
        if (seed == 1)
            printf("  first copy of 1 GiB to the GPU, with a kernel that reads it: %.1f GB/s\n",
                   (double)bytes / us / 1e3);
        else
            sample((double)bytes / us / 1e3);
    }
    map(queue, CL_MAP_READ, wrong, 4096);
    CHECK(*wrong == 0);
    unmap(queue, wrong);
    row("1 GiB to the GPU, with a kernel that reads it", "GB/s");
    clSVMFree(context, at);
    clSVMFree(context, wrong);
    clReleaseKernel(check);
}

static cl_command_queue another_queue(void)
{
    cl_int error;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, devices[0], NULL, &error);
    REQUIRE_CL(error);
    return queue;
}

static bool is_running(cl_event event)
{
    cl_int status = CL_COMPLETE;
    CHECK_CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL),
             CL_SUCCESS);
    return status > CL_COMPLETE;
}

static void migrate(cl_command_queue queue, const void *at)
{
    CHECK_CL(clEnqueueSVMMigrateMem(queue, 1, &at, NULL, 0, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFlush(queue), CL_SUCCESS);
}

/* Transfers beside each other and beside a kernel: what the GPU wrote to the host, what the host
 * wrote to the GPU. */
static void measure_beside(void)
{
    enum { DOWN = 1, UP = 2, BUSY = 4, CASES = 8 };
    static const char *const names[CASES] = {[DOWN] = "512 MiB to the host",
                                             [UP] = "512 MiB to the GPU",
                                             [DOWN | UP] = "512 MiB each way at once, in all",
                                             [DOWN | BUSY] = "512 MiB to the host beside a kernel",
                                             [UP | BUSY] = "512 MiB to the GPU beside a kernel",
                                             [DOWN | UP | BUSY] =
                                                 "512 MiB each way beside a kernel, in all"};
    const size_t bytes = 512 * MIB, count = bytes / 8, items = 132 * 64;
    const cl_uint rounds = 30000000;
    cl_command_queue down = queues[0], up = another_queue(), third = another_queue();
    cl_kernel set = kernel_named("set"), check = kernel_named("check"), busy = kernel_named("busy");
    cl_ulong *from = allocate(bytes), *to = allocate(bytes), seed = 0;
    cl_uint *wrong = allocate(4096), *scratch = allocate(items * 4);
    const cl_uint zero = 0;
    CHECK_CL(clEnqueueSVMMemFill(down, wrong, &zero, 4, 4096, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMemFill(down, scratch, &zero, 4, items * 4, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(down), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(set, 0, from), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(check, 0, to), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(check, 2, wrong), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(busy, 0, scratch), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(busy, 1, sizeof rounds, &rounds), CL_SUCCESS);
    for (int what = 1; what < CASES; what++) {
        unsigned passed = 0;
        if (what == BUSY)
            continue;
        for (int i = 0; i < 6; i++) {
            cl_event running = NULL;
            seed++;
            CHECK_CL(clSetKernelArg(set, 1, sizeof seed, &seed), CL_SUCCESS);
            CHECK_CL(clSetKernelArg(check, 1, sizeof seed, &seed), CL_SUCCESS);
            run(down, set, count);
            CHECK_CL(clFinish(down), CL_SUCCESS);
            map(up, CL_MAP_WRITE_INVALIDATE_REGION, to, bytes);
            for (size_t k = 0; k < count; k++)
                to[k] = k * 3 + seed;
            unmap(up, to);
            if (what & BUSY) {
                CHECK_CL(
                    clEnqueueNDRangeKernel(third, busy, 1, NULL, &items, NULL, 0, NULL, &running),
                    CL_SUCCESS);
                CHECK_CL(clFlush(third), CL_SUCCESS);
            }
            double start = now_us();
            if (what & UP)
                migrate(up, to);
            if (what & DOWN)
                CHECK_CL(clEnqueueSVMMap(down, CL_FALSE, CL_MAP_READ, from, bytes, 0, NULL, NULL),
                         CL_SUCCESS);
            if (what & DOWN)
                CHECK_CL(clFinish(down), CL_SUCCESS);
            if (what & UP)
                CHECK_CL(clFinish(up), CL_SUCCESS);
            double us = now_us() - start;
            if (running) {
                passed += is_running(running);
                CHECK_CL(clFinish(third), CL_SUCCESS);
                clReleaseEvent(running);
            }
            if (what & DOWN) {
                CHECK(from[count - 1] == (count - 1) * 3 + seed && from[12345] == 12345 * 3 + seed);
                CHECK_CL(clEnqueueSVMUnmap(down, from, 0, NULL, NULL), CL_SUCCESS);
            }
            run(up, check, count);
            CHECK_CL(clFinish(up), CL_SUCCESS);
            CHECK_CL(clFinish(down), CL_SUCCESS);
            if (i) /* the first makes and registers pages */
                sample((double)bytes * ((what & UP) && (what & DOWN) ? 2 : 1) / us / 1e3);
        }
        row(names[what], "GB/s");
        if (what & BUSY)
            printf("  (%u of 6 ended before the kernel did)\n", passed);
    }
    map(down, CL_MAP_READ, wrong, 4096);
    CHECK(*wrong == 0);
    unmap(down, wrong);
    clSVMFree(context, from);
    clSVMFree(context, to);
    clSVMFree(context, wrong);
    clSVMFree(context, scratch);
    clReleaseKernel(set);
    clReleaseKernel(check);
    clReleaseKernel(busy);
    clReleaseCommandQueue(up);
    clReleaseCommandQueue(third);
}

static void measure_triad(void)
{
    cl_command_queue queue = queues[0];
    cl_kernel triad = kernel_named("triad");
    const size_t bytes = 256 * MIB, count = bytes / 4;
    const size_t locals[] = {0, 64, 128, 256, 512, 1024};
    float *a = allocate(bytes), *b = allocate(bytes), *c = allocate(bytes);
    const float two = 2, five = 5;
    CHECK_CL(clEnqueueSVMMemFill(queue, b, &two, 4, bytes, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMemFill(queue, c, &five, 4, bytes, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(triad, 0, a), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(triad, 1, b), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(triad, 2, c), CL_SUCCESS);
    for (size_t l = 0; l < 6; l++) {
        char name[80];
        for (int i = 0; i < 12; i++) {
            cl_event event;
            cl_ulong start, end;
            double begin = now_us();
            CHECK_CL(clEnqueueNDRangeKernel(queue, triad, 1, NULL, &count, l ? &locals[l] : NULL, 0,
                                            NULL, i == 11 ? &event : NULL),
                     CL_SUCCESS);
            CHECK_CL(clFinish(queue), CL_SUCCESS);
            if (i)
                sample(3 * (double)bytes / (now_us() - begin) / 1e3);
            if (i == 11) {
                CHECK_CL(
                    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, 8, &start, NULL),
                    CL_SUCCESS);
                CHECK_CL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &end, NULL),
                         CL_SUCCESS);
                printf("  by the GPU's clock: %.0f GB/s\n",
                       3 * (double)bytes / (double)(end - start));
                clReleaseEvent(event);
            }
        }
        snprintf(name, sizeof name, "triad of 3 x 256 MiB, local size %zu", locals[l]);
        row(name, "GB/s");
    }
    map(queue, CL_MAP_READ, a, bytes);
    CHECK(a[0] == 17 && a[count - 1] == 17);
    unmap(queue, a);
    for (int i = 0; i < 12; i++) {
        double begin = now_us();
        CHECK_CL(clEnqueueSVMMemcpy(queue, CL_FALSE, a, b, bytes, 0, NULL, NULL), CL_SUCCESS);
        CHECK_CL(clFinish(queue), CL_SUCCESS);
        if (i)
            sample(2 * (double)bytes / (now_us() - begin) / 1e3);
    }
    row("copy of 256 MiB, read and written", "GB/s");
    for (int i = 0; i < 12; i++) {
        double begin = now_us();
        CHECK_CL(clEnqueueSVMMemFill(queue, a, &two, 4, bytes, 0, NULL, NULL), CL_SUCCESS);
        CHECK_CL(clFinish(queue), CL_SUCCESS);
        if (i)
            sample((double)bytes / (now_us() - begin) / 1e3);
    }
    row("fill of 256 MiB", "GB/s");
    clSVMFree(context, a);
    clSVMFree(context, b);
    clSVMFree(context, c);
    clReleaseKernel(triad);
}

/* One GPU writes, the other reads, in turns. */
static void measure_hops(void)
{
    cl_kernel set = kernel_named("set"), check = kernel_named("check");
    const size_t sizes[] = {64 * MIB, 1024 * MIB};
    cl_uint *wrong = allocate(4096);
    const cl_uint zero = 0;
    char name[80];
    CHECK_CL(clEnqueueSVMMemFill(queues[1], wrong, &zero, 4, 4096, 0, NULL, NULL), CL_SUCCESS);
    for (size_t s = 0; s < 2; s++) {
        cl_ulong *at = allocate(sizes[s]);
        const size_t count = sizes[s] / 8;
        CHECK_CL(clSetKernelArgSVMPointer(set, 0, at), CL_SUCCESS);
        CHECK_CL(clSetKernelArgSVMPointer(check, 0, at), CL_SUCCESS);
        CHECK_CL(clSetKernelArgSVMPointer(check, 2, wrong), CL_SUCCESS);
        for (cl_ulong seed = 1; seed <= 10; seed++) {
            CHECK_CL(clSetKernelArg(set, 1, sizeof seed, &seed), CL_SUCCESS);
            CHECK_CL(clSetKernelArg(check, 1, sizeof seed, &seed), CL_SUCCESS);
            run(queues[0], set, count);
            CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
            void *const pointers[] = {at};
            double start = now_us();
            CHECK_CL(clEnqueueSVMMigrateMem(queues[1], 1, (const void **)pointers, NULL, 0, 0, NULL,
                                            NULL),
                     CL_SUCCESS);
            CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
            double us = now_us() - start;
            if (seed == 1)
                printf("  first hop of %zu MiB: %.0f us\n", sizes[s] / MIB, us);
            else
                sample((double)sizes[s] / us / 1e3);
            run(queues[1], check, count);
            CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
        }
        snprintf(name, sizeof name, "hop of %zu MiB from GPU 0 to GPU 1", sizes[s] / MIB);
        row(name, "GB/s");
        clSVMFree(context, at);
    }
    map(queues[1], CL_MAP_READ, wrong, 4096);
    CHECK(*wrong == 0);
    unmap(queues[1], wrong);
    clSVMFree(context, wrong);
    clReleaseKernel(set);
    clReleaseKernel(check);
}

/* One GPU after the other changes a word, each behind the other by its event, and nobody waits in
 * between: on one region, or each on its own. */
static void measure_chain(bool is_one)
{
    enum { TURNS = 500, REPEATS = 12 };
    cl_kernel one = kernel_named("one");
    const size_t bytes = 64 * 1024, item = 1;
    void *regions[2] = {allocate(bytes), allocate(bytes)};
    const cl_uint zero = 0;
    for (int i = 0; i < 2; i++) {
        CHECK_CL(clEnqueueSVMMemFill(queues[i], regions[i], &zero, 4, bytes, 0, NULL, NULL),
                 CL_SUCCESS);
        CHECK_CL(clFinish(queues[i]), CL_SUCCESS);
    }
    for (int r = 0; r < REPEATS; r++) {
        cl_event last = NULL;
        double start = now_us();
        for (int i = 0; i < TURNS; i++) {
            cl_event event;
            CHECK_CL(clSetKernelArgSVMPointer(one, 0, regions[is_one ? 0 : i % 2]), CL_SUCCESS);
            CHECK_CL(clEnqueueNDRangeKernel(queues[i % 2], one, 1, NULL, &item, NULL, last ? 1 : 0,
                                            last ? &last : NULL, &event),
                     CL_SUCCESS);
            if (last)
                clReleaseEvent(last);
            last = event;
        }
        CHECK_CL(clWaitForEvents(1, &last), CL_SUCCESS);
        clReleaseEvent(last);
        if (r > 1)
            sample((now_us() - start) / TURNS);
    }
    row(is_one ? "turn of two GPUs by events, 64 KiB" : "  each on its own region", "us");
    cl_uint sum = 0;
    for (int i = 0; i < 2; i++) {
        map(queues[0], CL_MAP_READ, regions[i], bytes);
        sum += *(cl_uint *)regions[i];
        unmap(queues[0], regions[i]);
        clSVMFree(context, regions[i]);
    }
    CHECK(sum == TURNS * REPEATS);
    clReleaseKernel(one);
}

int main(int argc, char **argv)
{
    cl_int error;
    char name[128] = "", log[4096] = "";
    const char *what = argc > 1 ? argv[1] : "all", *text = source;
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    if (clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_GPU, 16, devices, &num_devices)) {
        puts("skipped: there is no GPU");
        return 77;
    }
    clGetDeviceInfo(devices[0], CL_DEVICE_NAME, sizeof name, name, NULL);
    printf("%u x %s\n", num_devices, name);
    context = clCreateContext(NULL, num_devices, devices, NULL, NULL, &error);
    REQUIRE_CL(error);
    for (cl_uint i = 0; i < num_devices; i++) {
        queues[i] = clCreateCommandQueueWithProperties(
            context, devices[i],
            getenv("MEASURE_PROFILING") || strcmp(what, "launches") ? properties : NULL, &error);
        REQUIRE_CL(error);
    }
    program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    REQUIRE_CL(error);
    error = clBuildProgram(program, num_devices, devices, "-cl-std=CL3.0", NULL, NULL);
    clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    fputs(log, stderr);
    REQUIRE_CL(error);
    if (!strcmp(what, "beside")) {
        measure_beside();
        return check_result();
    }
    if (!strcmp(what, "chain")) {
        measure_chain(true);
        measure_chain(false);
        return check_result();
    }
    measure_launches();
    if (strcmp(what, "launches")) {
        measure_allocations();
        measure_maps();
        measure_transfers();
        measure_beside();
        measure_triad();
        if (num_devices > 1) {
            measure_hops();
            measure_chain(true);
            measure_chain(false);
        }
    }
    return check_result();
}
