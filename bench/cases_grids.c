/* Kernels over planes and volumes. */
#include "cases.h"
#include "reference.h"

static void set_up_plane(float *plane, size_t count, size_t period)
{
    for (size_t i = 0; i < count; i++)
        plane[i] = (float)(i % period) - (float)(period / 2);
}

static void set_up_matmul(void *const *memory)
{
    set_up_plane(memory[0], (size_t)MATMUL_N * MATMUL_N, 13);
    set_up_plane(memory[1], (size_t)MATMUL_N * MATMUL_N, 11);
}

static void launch_matmul(struct bench_run *run)
{
    bench_launch(run, "matmul", bench_plane(MATMUL_N, MATMUL_N, 16, 16), BENCH_MEM(0), BENCH_MEM(1),
                 BENCH_MEM(2), BENCH_UINT(MATMUL_N));
}

static bool check_matmul(void *const *memory)
{
    const float *a = memory[0], *b = memory[1], *c = memory[2];
    for (int i = 0; i < MATMUL_N * MATMUL_N; i += 1009) {
        double sum = 0;
        for (int k = 0; k < MATMUL_N; k++)
            sum += (double)a[i / MATMUL_N * MATMUL_N + k] * b[k * MATMUL_N + i % MATMUL_N];
        if (!bench_close("matmul", c[i], sum, 1e-5))
            return false;
    }
    return true;
}

static void launch_mandelbrot(struct bench_run *run)
{
    bench_launch(run, "mandelbrot", bench_plane(MANDELBROT_N, MANDELBROT_N, 0, 0), BENCH_MEM(0),
                 BENCH_UINT(MANDELBROT_N), BENCH_UINT(MANDELBROT_N), BENCH_UINT(MANDELBROT_LIMIT));
}

static bool check_mandelbrot(void *const *memory)
{
    const int *out = memory[0];
    int wrong = 0, checked = 0;
    for (int p = 0; p < MANDELBROT_N * MANDELBROT_N; p += 331, checked++) {
        float cx = -2.0f + 2.5f * (float)(p % MANDELBROT_N) / MANDELBROT_N;
        float cy = -1.25f + 2.5f * (float)(p / MANDELBROT_N) / MANDELBROT_N;
        float x = 0, y = 0;
        int i = 0;
        while (i < MANDELBROT_LIMIT && x * x + y * y < 4.0f) {
            float t = x * x - y * y + cx;
            y = 2 * x * y + cy;
            x = t;
            i++;
        }
        wrong += i != out[p];
    }
    /* Contracted multiplications may leave the set a step earlier or later, near its edge. */
    return wrong * 20 <= checked || bench_wrong("mandelbrot", (size_t)wrong);
}

static void set_up_stencil(void *const *memory)
{
    set_up_plane(memory[0], (size_t)STENCIL_N * STENCIL_N, 101);
}

static void launch_stencil(struct bench_run *run)
{
    bench_launch(run, "stencil", bench_plane(STENCIL_N, STENCIL_N, 0, 0), BENCH_MEM(0),
                 BENCH_MEM(1), BENCH_UINT(STENCIL_N), BENCH_UINT(STENCIL_N));
}

static bool check_stencil(void *const *memory)
{
    const float *in = memory[0], *out = memory[1];
    for (int y = 1; y < STENCIL_N - 1; y += 37)
        for (int x = 1; x < STENCIL_N - 1; x += 41) {
            int i = y * STENCIL_N + x;
            double sum =
                (double)in[i] + in[i - 1] + in[i + 1] + in[i - STENCIL_N] + in[i + STENCIL_N];
            if (!bench_close("2D stencil", out[i], 0.2 * sum, 1e-5))
                return false;
        }
    return true;
}

static void set_up_stencil3d(void *const *memory)
{
    set_up_plane(memory[0], (size_t)STENCIL3D_X * STENCIL3D_Y * STENCIL3D_Z, 101);
}

static void launch_stencil3d(struct bench_run *run)
{
    struct bench_grid grid = {3, {STENCIL3D_X, STENCIL3D_Y, STENCIL3D_Z}, {0}};
    bench_launch(run, "stencil3d", grid, BENCH_MEM(0), BENCH_MEM(1), BENCH_UINT(STENCIL3D_X),
                 BENCH_UINT(STENCIL3D_Y), BENCH_UINT(STENCIL3D_Z));
}

static bool check_stencil3d(void *const *memory)
{
    enum { NX = STENCIL3D_X, PLANE = STENCIL3D_X * STENCIL3D_Y };
    const float *in = memory[0], *out = memory[1];
    for (int z = 1; z < STENCIL3D_Z - 1; z += 3)
        for (int y = 1; y < STENCIL3D_Y - 1; y += 5)
            for (int x = 1; x < STENCIL3D_X - 1; x += 7) {
                int i = (z * STENCIL3D_Y + y) * NX + x;
                double sum = (double)in[i - 1] + in[i + 1] + in[i - NX] + in[i + NX] +
                             in[i - PLANE] + in[i + PLANE];
                if (!bench_close("3D stencil", out[i], 0.4 * in[i] + 0.1 * sum, 1e-5))
                    return false;
            }
    return true;
}

#define SIDE (2 * CONVOLUTION_RADIUS + 1)
#define CONVOLUTION_IN (CONVOLUTION_N + 2 * CONVOLUTION_RADIUS)

/* Memory: the padded plane, the result, the filter. */
static void set_up_convolution(void *const *memory)
{
    set_up_plane(memory[0], (size_t)CONVOLUTION_IN * CONVOLUTION_IN, 101);
    set_up_plane(memory[2], SIDE * SIDE, 7);
}

static void launch_convolution(struct bench_run *run)
{
    bench_launch(run, "convolution", bench_plane(CONVOLUTION_N, CONVOLUTION_N, 16, 16),
                 BENCH_MEM(0), BENCH_MEM(1), BENCH_MEM(2), BENCH_UINT(CONVOLUTION_N));
}

static bool check_convolution(void *const *memory)
{
    const float *in = memory[0], *out = memory[1], *filter = memory[2];
    for (int y = 0; y < CONVOLUTION_N; y += 31)
        for (int x = 0; x < CONVOLUTION_N; x += 33) {
            double sum = 0;
            for (int j = 0; j < SIDE; j++)
                for (int i = 0; i < SIDE; i++)
                    sum += (double)filter[j * SIDE + i] * in[(y + j) * CONVOLUTION_IN + x + i];
            if (!bench_close("convolution", out[y * CONVOLUTION_N + x], sum, 1e-5))
                return false;
        }
    return true;
}

static void set_up_transpose(void *const *memory)
{
    float *in = memory[0];
    for (int i = 0; i < TRANSPOSE_N * TRANSPOSE_N; i++)
        in[i] = (float)i;
}

static void launch_transpose(struct bench_run *run)
{
    bench_launch(run, "transpose", bench_plane(TRANSPOSE_N, TRANSPOSE_N, 16, 16), BENCH_MEM(0),
                 BENCH_MEM(1), BENCH_UINT(TRANSPOSE_N), BENCH_UINT(TRANSPOSE_N));
}

static bool check_transpose(void *const *memory)
{
    const float *in = memory[0], *out = memory[1];
    for (size_t y = 0; y < TRANSPOSE_N; y++)
        for (size_t x = 0; x < TRANSPOSE_N; x++)
            if (out[x * TRANSPOSE_N + y] != in[y * TRANSPOSE_N + x])
                return bench_wrong("transposition", x * TRANSPOSE_N + y);
    return true;
}

#define PLANE_BYTES(n) ((size_t)(n) * (n) * sizeof(float))
#define VOLUME ((size_t)STENCIL3D_X * STENCIL3D_Y * STENCIL3D_Z)

const struct bench_case bench_grid_cases[] = {
    {"tiled matmul",
     "GFLOP/s",
     2e-9 * MATMUL_N *MATMUL_N *MATMUL_N,
     bench_source,
     {PLANE_BYTES(MATMUL_N), PLANE_BYTES(MATMUL_N), PLANE_BYTES(MATMUL_N)},
     set_up_matmul,
     launch_matmul,
     bench_c_matmul,
     check_matmul},
    {"mandelbrot",
     "Mpix/s",
     1e-6 * MANDELBROT_N *MANDELBROT_N,
     bench_source,
     {PLANE_BYTES(MANDELBROT_N)},
     NULL,
     launch_mandelbrot,
     bench_c_mandelbrot,
     check_mandelbrot},
    {"2D stencil",
     "GB/s",
     8e-9 * STENCIL_N *STENCIL_N,
     bench_source,
     {PLANE_BYTES(STENCIL_N), PLANE_BYTES(STENCIL_N)},
     set_up_stencil,
     launch_stencil,
     bench_c_stencil,
     check_stencil},
    {"3D stencil",
     "GB/s",
     8e-9 * VOLUME,
     bench_grids_source,
     {VOLUME * 4, VOLUME * 4},
     set_up_stencil3d,
     launch_stencil3d,
     bench_c_stencil3d,
     check_stencil3d},
    {"convolution",
     "Mpix/s",
     1e-6 * CONVOLUTION_N *CONVOLUTION_N,
     bench_grids_source,
     {PLANE_BYTES(CONVOLUTION_IN), PLANE_BYTES(CONVOLUTION_N), SIDE *SIDE * 4},
     set_up_convolution,
     launch_convolution,
     bench_c_convolution,
     check_convolution},
    {"transposition",
     "GB/s",
     8e-9 * TRANSPOSE_N *TRANSPOSE_N,
     bench_grids_source,
     {PLANE_BYTES(TRANSPOSE_N), PLANE_BYTES(TRANSPOSE_N)},
     set_up_transpose,
     launch_transpose,
     bench_c_transpose,
     check_transpose},
    {0},
};
