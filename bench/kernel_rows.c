/* What kernels reach. Every kernel's result is checked against the host before its time counts. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define REPEATS 7

/* Buffers are SVM where the platform has it; all of these do. */
static void *allocate(struct bench *bench, size_t bytes)
{
    void *pointer = clSVMAlloc(bench->context, CL_MEM_READ_WRITE, bytes, 0);
    if (!pointer)
        bench_fail("clSVMAlloc gave NULL", 0);
    return pointer;
}

static void map(struct bench *bench, void *pointer, size_t bytes)
{
    bench_must(clEnqueueSVMMap(bench->queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, pointer, bytes,
                               0, NULL, NULL),
               "clEnqueueSVMMap");
}

static void unmap(struct bench *bench, void *pointer)
{
    bench_must(clEnqueueSVMUnmap(bench->queue, pointer, 0, NULL, NULL), "clEnqueueSVMUnmap");
}

static cl_kernel kernel_named(struct bench *bench, const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(bench->program, name, &error);
    bench_must(error, name);
    return kernel;
}

static void pointer_arg(cl_kernel kernel, cl_uint index, void *pointer)
{
    bench_must(clSetKernelArgSVMPointer(kernel, index, pointer), "clSetKernelArgSVMPointer");
}

static void uint_arg(cl_kernel kernel, cl_uint index, cl_uint value)
{
    bench_must(clSetKernelArg(kernel, index, sizeof value, &value), "clSetKernelArg");
}

/* Median seconds of one launch with its finish. A zero local size: the platform's choice. */
static double run(struct bench *bench, cl_kernel kernel, size_t gx, size_t gy, size_t lx, size_t ly)
{
    size_t global[2] = {gx, gy}, local[2] = {lx, ly};
    double times[REPEATS];
    for (int r = -1; r < REPEATS; r++) {
        double start = bench_seconds();
        bench_must(clEnqueueNDRangeKernel(bench->queue, kernel, gy ? 2 : 1, NULL, global,
                                          lx ? local : NULL, 0, NULL, NULL),
                   "clEnqueueNDRangeKernel");
        bench_must(clFinish(bench->queue), "clFinish");
        if (r >= 0)
            times[r] = bench_seconds() - start;
    }
    clReleaseKernel(kernel);
    return bench_median(times, REPEATS);
}

static void check_close(const char *what, double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance * (1 + fabs(expected)))) {
        fprintf(stderr, "%s: got %.9g, expected %.9g\n", what, got, expected);
        bench_fail("a kernel's result is wrong", 0);
    }
}

static void triad(struct bench *bench)
{
    enum { N = 1 << 24 };
    float *a = allocate(bench, N * 4), *b = allocate(bench, N * 4), *c = allocate(bench, N * 4);
    float s = 3;
    map(bench, b, N * 4);
    map(bench, c, N * 4);
    for (int i = 0; i < N; i++) {
        b[i] = (float)(i & 1023);
        c[i] = (float)(i & 255);
    }
    unmap(bench, b);
    unmap(bench, c);
    cl_kernel kernel = kernel_named(bench, "triad");
    pointer_arg(kernel, 0, a);
    pointer_arg(kernel, 1, b);
    pointer_arg(kernel, 2, c);
    bench_must(clSetKernelArg(kernel, 3, sizeof s, &s), "clSetKernelArg");
    double seconds = run(bench, kernel, N, 0, 0, 0);
    map(bench, a, N * 4);
    for (int i = 0; i < N; i += 997)
        check_close("triad", a[i], (double)(i & 1023) + 3.0 * (i & 255), 0);
    unmap(bench, a);
    bench_row("triad", 3.0 * N * 4 / seconds * 1e-9, "GB/s");
    bench_must(clFinish(bench->queue), "clFinish");
    clSVMFree(bench->context, a);
    clSVMFree(bench->context, b);
    clSVMFree(bench->context, c);
}

static void reduction(struct bench *bench)
{
    enum { N = 1 << 23, LOCAL = 256 };
    float *in = allocate(bench, N * 4), *out = allocate(bench, N / LOCAL * 4);
    map(bench, in, N * 4);
    for (int i = 0; i < N; i++)
        in[i] = (float)(i % 7);
    unmap(bench, in);
    cl_kernel kernel = kernel_named(bench, "reduction");
    pointer_arg(kernel, 0, in);
    pointer_arg(kernel, 1, out);
    bench_must(clSetKernelArg(kernel, 2, LOCAL * 4, NULL), "clSetKernelArg");
    double seconds = run(bench, kernel, N, 0, LOCAL, 1);
    map(bench, out, N / LOCAL * 4);
    for (int g = 0; g < N / LOCAL; g += 61) {
        double sum = 0;
        for (int i = 0; i < LOCAL; i++)
            sum += (g * LOCAL + i) % 7;
        check_close("reduction", out[g], sum, 1e-6);
    }
    unmap(bench, out);
    bench_row("reduction with barriers", N * 4 / seconds * 1e-9, "GB/s");
    bench_must(clFinish(bench->queue), "clFinish");
    clSVMFree(bench->context, in);
    clSVMFree(bench->context, out);
}

static void matmul(struct bench *bench)
{
    enum { N = 512 };
    float *a = allocate(bench, N * N * 4), *b = allocate(bench, N * N * 4),
          *c = allocate(bench, N * N * 4);
    map(bench, a, N * N * 4);
    map(bench, b, N * N * 4);
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(i % 13) - 6;
        b[i] = (float)(i % 11) - 5;
    }
    unmap(bench, a);
    unmap(bench, b);
    cl_kernel kernel = kernel_named(bench, "matmul");
    pointer_arg(kernel, 0, a);
    pointer_arg(kernel, 1, b);
    pointer_arg(kernel, 2, c);
    uint_arg(kernel, 3, N);
    double seconds = run(bench, kernel, N, N, 16, 16);
    map(bench, a, N * N * 4);
    map(bench, b, N * N * 4);
    map(bench, c, N * N * 4);
    for (int i = 0; i < N * N; i += 1009) {
        double sum = 0;
        for (int k = 0; k < N; k++)
            sum += (double)a[i / N * N + k] * b[k * N + i % N];
        check_close("matmul", c[i], sum, 1e-5);
    }
    unmap(bench, a);
    unmap(bench, b);
    unmap(bench, c);
    bench_row("tiled matmul", 2.0 * N * N * N / seconds * 1e-9, "GFLOP/s");
    bench_must(clFinish(bench->queue), "clFinish");
    clSVMFree(bench->context, a);
    clSVMFree(bench->context, b);
    clSVMFree(bench->context, c);
}

static void nbody(struct bench *bench)
{
    enum { N = 4096 };
    cl_float4 *body = allocate(bench, N * sizeof *body), *force = allocate(bench, N * sizeof *force);
    map(bench, body, N * sizeof *body);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 4; k++)
            body[i].s[k] = (float)((i * 7919 + k * 104729) % 1000) / 1000;
    unmap(bench, body);
    cl_kernel kernel = kernel_named(bench, "nbody");
    pointer_arg(kernel, 0, body);
    pointer_arg(kernel, 1, force);
    uint_arg(kernel, 2, N);
    double seconds = run(bench, kernel, N, 0, 0, 0);
    map(bench, body, N * sizeof *body);
    map(bench, force, N * sizeof *force);
    for (int i = 0; i < N; i += 509) {
        double f[3] = {0}, size = 0;
        for (int j = 0; j < N; j++) {
            double d[3], r2 = 0.01;
            for (int k = 0; k < 3; k++) {
                d[k] = (double)body[j].s[k] - body[i].s[k];
                r2 += d[k] * d[k];
            }
            for (int k = 0; k < 3; k++) {
                f[k] += d[k] * body[j].s[3] / (r2 * sqrt(r2));
                size += fabs(d[k] * body[j].s[3] / (r2 * sqrt(r2)));
            }
        }
        for (int k = 0; k < 3; k++)
            check_close("nbody", force[i].s[k] / size, f[k] / size, 1e-5);
    }
    unmap(bench, body);
    unmap(bench, force);
    bench_row("n-body", (double)N * N / seconds * 1e-9, "Gint/s");
    bench_must(clFinish(bench->queue), "clFinish");
    clSVMFree(bench->context, body);
    clSVMFree(bench->context, force);
}

static void mandelbrot(struct bench *bench)
{
    enum { W = 1024, H = 1024, LIMIT = 256 };
    int *out = allocate(bench, W * H * 4);
    cl_kernel kernel = kernel_named(bench, "mandelbrot");
    pointer_arg(kernel, 0, out);
    uint_arg(kernel, 1, W);
    uint_arg(kernel, 2, H);
    uint_arg(kernel, 3, LIMIT);
    double seconds = run(bench, kernel, W, H, 0, 0);
    map(bench, out, W * H * 4);
    int wrong = 0, checked = 0;
    for (int p = 0; p < W * H; p += 331, checked++) {
        float cx = -2.0f + 2.5f * (float)(p % W) / W, cy = -1.25f + 2.5f * (float)(p / W) / H;
        float x = 0, y = 0;
        int i = 0;
        while (i < LIMIT && x * x + y * y < 4.0f) {
            float t = x * x - y * y + cx;
            y = 2 * x * y + cy;
            x = t;
            i++;
        }
        wrong += i != out[p];
    }
    /* Contracted multiplications may leave the set a step earlier or later, near its edge. */
    if (wrong * 20 > checked)
        bench_fail("mandelbrot: too many points differ", wrong);
    unmap(bench, out);
    bench_row("mandelbrot", (double)W * H / seconds * 1e-6, "Mpix/s");
    bench_must(clFinish(bench->queue), "clFinish");
    clSVMFree(bench->context, out);
}

static void transcendentals(struct bench *bench)
{
    enum { N = 1 << 20 };
    float *in = allocate(bench, N * 4), *out = allocate(bench, N * 4);
    map(bench, in, N * 4);
    for (int i = 0; i < N; i++)
        in[i] = (float)i / N * 6;
    unmap(bench, in);
    cl_kernel kernel = kernel_named(bench, "transcendentals");
    pointer_arg(kernel, 0, in);
    pointer_arg(kernel, 1, out);
    double seconds = run(bench, kernel, N, 0, 0, 0);
    map(bench, in, N * 4);
    map(bench, out, N * 4);
    for (int i = 0; i < N; i += 499) {
        double x = in[i];
        check_close("transcendentals", out[i], sin(x) * cos(x) + exp(-x * x) + log(x + 1), 2e-6);
    }
    unmap(bench, in);
    unmap(bench, out);
    bench_row("transcendentals", N / seconds * 1e-6, "M/s");
    bench_must(clFinish(bench->queue), "clFinish");
    clSVMFree(bench->context, in);
    clSVMFree(bench->context, out);
}

static void chase(struct bench *bench)
{
    enum { N = 1 << 20, HOPS = 1 << 20 };
    cl_uint *next = allocate(bench, N * 4), *last = allocate(bench, 4);
    map(bench, next, N * 4);
    /* One cycle through all: a stride that shares no factor with N. */
    for (cl_uint i = 0; i < N; i++)
        next[i] = (i + 399989u) % N;
    unmap(bench, next);
    cl_kernel kernel = kernel_named(bench, "chase");
    pointer_arg(kernel, 0, next);
    pointer_arg(kernel, 1, last);
    uint_arg(kernel, 2, HOPS);
    double seconds = run(bench, kernel, 1, 0, 1, 1);
    map(bench, last, 4);
    if (last[0] != 0)
        bench_fail("chase: the last hop is wrong", (cl_int)last[0]);
    unmap(bench, last);
    bench_row("pointer chase", seconds / HOPS * 1e9, "ns/hop-");
    bench_must(clFinish(bench->queue), "clFinish");
    clSVMFree(bench->context, next);
    clSVMFree(bench->context, last);
}

static void histogram(struct bench *bench)
{
    enum { N = 1 << 22, ITEMS = 1 << 14, LOCAL = 256, BINS = 256 };
    cl_uint *in = allocate(bench, N * 4), *bins = allocate(bench, BINS * 4);
    map(bench, in, N * 4);
    map(bench, bins, BINS * 4);
    cl_uint expected[BINS] = {0}, state = 1;
    for (int i = 0; i < N; i++) {
        state = state * 1664525u + 1013904223u;
        in[i] = state >> 20;
        expected[in[i] & 255]++;
    }
    memset(bins, 0, BINS * 4);
    unmap(bench, in);
    unmap(bench, bins);
    cl_kernel kernel = kernel_named(bench, "histogram");
    pointer_arg(kernel, 0, in);
    pointer_arg(kernel, 1, bins);
    uint_arg(kernel, 2, N);
    double seconds = run(bench, kernel, ITEMS, 0, LOCAL, 1);
    map(bench, bins, BINS * 4);
    for (int i = 0; i < BINS; i++)
        if (bins[i] != expected[i] * (REPEATS + 1))
            bench_fail("histogram: a bin is wrong", i);
    unmap(bench, bins);
    bench_row("histogram", N / seconds * 1e-6, "M/s");
    bench_must(clFinish(bench->queue), "clFinish");
    clSVMFree(bench->context, in);
    clSVMFree(bench->context, bins);
}

static void stencil(struct bench *bench)
{
    enum { W = 2048, H = 2048 };
    float *in = allocate(bench, W * H * 4), *out = allocate(bench, W * H * 4);
    map(bench, in, W * H * 4);
    for (int i = 0; i < W * H; i++)
        in[i] = (float)(i % 101);
    unmap(bench, in);
    cl_kernel kernel = kernel_named(bench, "stencil");
    pointer_arg(kernel, 0, in);
    pointer_arg(kernel, 1, out);
    uint_arg(kernel, 2, W);
    uint_arg(kernel, 3, H);
    double seconds = run(bench, kernel, W, H, 0, 0);
    map(bench, in, W * H * 4);
    map(bench, out, W * H * 4);
    for (int y = 1; y < H - 1; y += 37)
        for (int x = 1; x < W - 1; x += 41) {
            int i = y * W + x;
            double sum = (double)in[i] + in[i - 1] + in[i + 1] + in[i - W] + in[i + W];
            check_close("stencil", out[i], 0.2 * sum, 1e-5);
        }
    unmap(bench, in);
    unmap(bench, out);
    bench_row("2D stencil", 2.0 * W * H * 4 / seconds * 1e-9, "GB/s");
    bench_must(clFinish(bench->queue), "clFinish");
    clSVMFree(bench->context, in);
    clSVMFree(bench->context, out);
}

void bench_kernel_rows(struct bench *bench)
{
    triad(bench);
    reduction(bench);
    matmul(bench);
    nbody(bench);
    mandelbrot(bench);
    transcendentals(bench);
    chase(bench);
    histogram(bench);
    stencil(bench);
}
