/* What an expert's C reaches on this machine: the same loops with OpenMP, on all cores. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

#define REPEATS 7

typedef void loop(void *data);

static double median_seconds(loop *function, void *data)
{
    double times[REPEATS];
    function(data); /* the first touch of the pages does not count */
    for (int r = 0; r < REPEATS; r++) {
        double start = bench_seconds();
        function(data);
        times[r] = bench_seconds() - start;
    }
    return bench_median(times, REPEATS);
}

static void *pages(size_t bytes)
{
    void *memory = aligned_alloc(1 << 21, (bytes + (1 << 21) - 1) & ~(size_t)((1 << 21) - 1));
    if (!memory)
        abort();
    memset(memory, 1, bytes);
    return memory;
}

#define COPY_BYTES ((size_t)256 << 20)

static void fill_all(void *data)
{
#pragma omp parallel
    {
        size_t share = COPY_BYTES / (size_t)omp_get_num_threads();
        memset((char *)data + share * (size_t)omp_get_thread_num(), 7, share);
    }
}

static void copy_all(void *data)
{
    char **sides = data;
#pragma omp parallel
    {
        size_t share = COPY_BYTES / (size_t)omp_get_num_threads();
        size_t offset = share * (size_t)omp_get_thread_num();
        memcpy(sides[0] + offset, sides[1] + offset, share);
    }
}

#define SHARED_BYTES ((size_t)64 << 20)

static void copy_shared(void *data)
{
    char **sides = data;
#pragma omp parallel
    {
        size_t share = SHARED_BYTES / (size_t)omp_get_num_threads();
        size_t offset = share * (size_t)omp_get_thread_num();
        memcpy(sides[0] + offset, sides[1] + offset, share);
    }
}

/* memcpy between two shared mappings: what a hop between two virtual devices can reach. */
static double shared_copy_rate(void)
{
    char *sides[2];
    for (int i = 0; i < 2; i++) {
        sides[i] = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0);
        if (sides[i] == MAP_FAILED)
            abort();
        memset(sides[i], 1, SHARED_BYTES);
    }
    double rate = (double)SHARED_BYTES / median_seconds(copy_shared, sides) * 1e-9;
    munmap(sides[0], SHARED_BYTES);
    munmap(sides[1], SHARED_BYTES);
    return rate;
}

#define TRIAD_N (1 << 24)

static void triad(void *data)
{
    float **arrays = data, *a = arrays[0], *b = arrays[1], *c = arrays[2];
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < TRIAD_N; i++)
        a[i] = b[i] + 3.0f * c[i];
}

#define REDUCTION_N (1 << 23)

static void reduction(void *data)
{
    float **arrays = data, *in = arrays[0], *out = arrays[1];
#pragma omp parallel for schedule(static)
    for (int g = 0; g < REDUCTION_N / 256; g++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < 256; i++)
            sum += in[g * 256 + i];
        out[g] = sum;
    }
}

#define MATMUL_N 512

static void matmul(void *data)
{
    float **arrays = data, *a = arrays[0], *b = arrays[1], *c = arrays[2];
#pragma omp parallel for schedule(static)
    for (int y = 0; y < MATMUL_N; y += 4) {
        for (int x0 = 0; x0 < MATMUL_N; x0 += 64) {
            float sum[4][64] = {{0}};
            for (int k = 0; k < MATMUL_N; k++)
                for (int r = 0; r < 4; r++) {
                    float f = a[(y + r) * MATMUL_N + k];
#pragma omp simd
                    for (int x = 0; x < 64; x++)
                        sum[r][x] += f * b[k * MATMUL_N + x0 + x];
                }
            for (int r = 0; r < 4; r++)
                memcpy(&c[(y + r) * MATMUL_N + x0], sum[r], sizeof sum[r]);
        }
    }
}

#define NBODY_N 4096

static void nbody(void *data)
{
    float **arrays = data, *px = arrays[0], *py = arrays[1], *pz = arrays[2], *m = arrays[3],
          *force = arrays[4];
#pragma omp parallel for schedule(static)
    for (int i = 0; i < NBODY_N; i++) {
        float fx = 0, fy = 0, fz = 0;
#pragma omp simd reduction(+ : fx, fy, fz)
        for (int j = 0; j < NBODY_N; j++) {
            float dx = px[j] - px[i], dy = py[j] - py[i], dz = pz[j] - pz[i];
            float r = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float s = m[j] * r * r * r;
            fx += dx * s;
            fy += dy * s;
            fz += dz * s;
        }
        force[4 * i] = fx;
        force[4 * i + 1] = fy;
        force[4 * i + 2] = fz;
    }
}

#define MANDEL_W 1024
#define MANDEL_H 1024
#define MANDEL_LANES 32

static void mandelbrot(void *data)
{
    int *out = data;
#pragma omp parallel for schedule(dynamic, 4)
    for (int py = 0; py < MANDEL_H; py++)
        for (int p0 = 0; p0 < MANDEL_W; p0 += MANDEL_LANES) {
            float x[MANDEL_LANES] = {0}, y[MANDEL_LANES] = {0}, cx[MANDEL_LANES];
            int count[MANDEL_LANES] = {0};
            float cy = -1.25f + 2.5f * (float)py / MANDEL_H;
            for (int l = 0; l < MANDEL_LANES; l++)
                cx[l] = -2.0f + 2.5f * (float)(p0 + l) / MANDEL_W;
            for (int i = 0, any = 1; i < 256 && any; i++) {
                any = 0;
#pragma omp simd reduction(| : any)
                for (int l = 0; l < MANDEL_LANES; l++) {
                    int inside = x[l] * x[l] + y[l] * y[l] < 4.0f;
                    float t = x[l] * x[l] - y[l] * y[l] + cx[l];
                    y[l] = inside ? 2 * x[l] * y[l] + cy : y[l];
                    x[l] = inside ? t : x[l];
                    count[l] += inside;
                    any |= inside;
                }
            }
            memcpy(out + py * MANDEL_W + p0, count, sizeof count);
        }
}

#define TRANS_N (1 << 20)

static void transcendentals(void *data)
{
    float **arrays = data, *in = arrays[0], *out = arrays[1];
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < TRANS_N; i++) {
        float x = in[i];
        out[i] = sinf(x) * cosf(x) + expf(-x * x) + logf(x + 1.0f);
    }
}

#define STENCIL_W 2048
#define STENCIL_H 2048

static void stencil(void *data)
{
    float **arrays = data, *in = arrays[0], *out = arrays[1];
#pragma omp parallel for schedule(static)
    for (int y = 1; y < STENCIL_H - 1; y++)
#pragma omp simd
        for (int x = 1; x < STENCIL_W - 1; x++) {
            int i = y * STENCIL_W + x;
            out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - STENCIL_W] + in[i + STENCIL_W]);
        }
}

static void free_all(void **memory, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(memory[i]);
}

void bench_reference_rows(void)
{
    void *m[5];
    m[0] = pages(COPY_BYTES);
    m[1] = pages(COPY_BYTES);
    bench_row("fill 256 MiB", COPY_BYTES / median_seconds(fill_all, m[0]) * 1e-9, "GB/s");
    bench_row("copy 256 MiB", COPY_BYTES / median_seconds(copy_all, m) * 1e-9, "GB/s");
    free_all(m, 2);
    bench_row("hop between devices, 64 MiB", shared_copy_rate(), "GB/s");

    for (int i = 0; i < 3; i++)
        m[i] = pages(TRIAD_N * 4);
    bench_row("triad", 3.0 * TRIAD_N * 4 / median_seconds(triad, m) * 1e-9, "GB/s");
    bench_row("reduction with barriers", REDUCTION_N * 4 / median_seconds(reduction, m) * 1e-9,
              "GB/s");
    bench_row("tiled matmul",
              2.0 * MATMUL_N * MATMUL_N * MATMUL_N / median_seconds(matmul, m) * 1e-9, "GFLOP/s");
    bench_row("mandelbrot", MANDEL_W * MANDEL_H / median_seconds(mandelbrot, m[0]) * 1e-6,
              "Mpix/s");
    bench_row("transcendentals", TRANS_N / median_seconds(transcendentals, m) * 1e-6, "M/s");
    bench_row("2D stencil", 2.0 * STENCIL_W * STENCIL_H * 4 / median_seconds(stencil, m) * 1e-9,
              "GB/s");
    free_all(m, 3);

    for (int i = 0; i < 5; i++)
        m[i] = pages(NBODY_N * 16);
    bench_row("n-body", (double)NBODY_N * NBODY_N / median_seconds(nbody, m) * 1e-9, "Gint/s");
    free_all(m, 5);
}
