/* Kernels over arrays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "reference.h"

/* b and c are read, a is written. */
static void set_up_triad(void *const *memory)
{
    float *b = memory[1], *c = memory[2];
    for (int i = 0; i < TRIAD_N; i++) {
        b[i] = (float)(i & 1023);
        c[i] = (float)(i & 255);
    }
}

static void launch_triad(struct bench_run *run)
{
    bench_launch(run, "triad", bench_line(TRIAD_N, 0), BENCH_MEM(0), BENCH_MEM(1), BENCH_MEM(2),
                 BENCH_FLOAT(3));
}

static bool check_triad(void *const *memory)
{
    const float *a = memory[0];
    for (int i = 0; i < TRIAD_N; i += 997)
        if (a[i] != (float)((i & 1023) + 3 * (i & 255)))
            return bench_wrong("triad", (size_t)i);
    return true;
}

static void set_up_reduction(void *const *memory)
{
    float *in = memory[0];
    for (int i = 0; i < REDUCTION_N; i++)
        in[i] = (float)(i % 7);
}

static void launch_reduction(struct bench_run *run)
{
    bench_launch(run, "reduction", bench_line(REDUCTION_N, REDUCTION_LOCAL), BENCH_MEM(0),
                 BENCH_MEM(1), BENCH_LOCAL_BYTES(REDUCTION_LOCAL * sizeof(float)));
}

static bool check_reduction(void *const *memory)
{
    const float *in = memory[0], *out = memory[1];
    for (int g = 0; g < REDUCTION_N / REDUCTION_LOCAL; g += 61) {
        double sum = 0;
        for (int i = 0; i < REDUCTION_LOCAL; i++)
            sum += in[g * REDUCTION_LOCAL + i];
        if (!bench_close("reduction", out[g], sum, 1e-6))
            return false;
    }
    return true;
}

static void set_up_transcendentals(void *const *memory)
{
    float *in = memory[0];
    for (int i = 0; i < TRANSCENDENTALS_N; i++)
        in[i] = (float)i / TRANSCENDENTALS_N * 6;
}

static void launch_transcendentals(struct bench_run *run)
{
    bench_launch(run, "transcendentals", bench_line(TRANSCENDENTALS_N, 0), BENCH_MEM(0),
                 BENCH_MEM(1));
}

static bool check_transcendentals(void *const *memory)
{
    const float *in = memory[0], *out = memory[1];
    for (int i = 0; i < TRANSCENDENTALS_N; i += 499) {
        double x = in[i];
        if (!bench_close("transcendentals", out[i], sin(x) * cos(x) + exp(-x * x) + log(x + 1),
                         2e-6))
            return false;
    }
    return true;
}

/* One cycle through all: a stride that shares no factor with the length. */
static void set_up_chase(void *const *memory)
{
    cl_uint *next = memory[0];
    for (cl_uint i = 0; i < CHASE_N; i++)
        next[i] = (i + 399989u) % CHASE_N;
}

static void launch_chase(struct bench_run *run)
{
    bench_launch(run, "chase", bench_line(1, 1), BENCH_MEM(0), BENCH_MEM(1),
                 BENCH_UINT(CHASE_HOPS));
}

static bool check_chase(void *const *memory)
{
    const cl_uint *last = memory[1];
    return last[0] == 0 || bench_wrong("pointer chase", last[0]);
}

static void set_up_random(void *const *memory, int count)
{
    cl_uint *in = memory[0], state = 1;
    for (int i = 0; i < count; i++)
        in[i] = bench_random(&state);
}

static void set_up_histogram(void *const *memory)
{
    set_up_random(memory, HISTOGRAM_N);
}

static void launch_histogram(struct bench_run *run)
{
    bench_clear(run, 1);
    bench_launch(run, "histogram", bench_line(1 << 14, 256), BENCH_MEM(0), BENCH_MEM(1),
                 BENCH_UINT(HISTOGRAM_N));
}

static bool check_histogram(void *const *memory)
{
    const cl_uint *in = memory[0], *bins = memory[1];
    cl_uint expected[HISTOGRAM_BINS] = {0};
    for (int i = 0; i < HISTOGRAM_N; i++)
        expected[in[i] % HISTOGRAM_BINS]++;
    for (size_t i = 0; i < HISTOGRAM_BINS; i++)
        if (bins[i] != expected[i])
            return bench_wrong("histogram", i);
    return true;
}

static void set_up_scan(void *const *memory)
{
    set_up_random(memory, SCAN_N);
}

/* Memory: in, out, and the sums of the blocks of three levels. */
static void launch_scan(struct bench_run *run)
{
    enum { BLOCK = 1024, LOCAL = 256, LEVELS = 3 };
    cl_uint count = SCAN_N;
    for (unsigned level = 0; level < LEVELS; level++, count = (count + BLOCK - 1) / BLOCK) {
        cl_uint blocks = (count + BLOCK - 1) / BLOCK;
        bench_launch(run, "scan_blocks", bench_line((size_t)blocks * LOCAL, LOCAL),
                     BENCH_MEM(level ? level + 1 : 0), BENCH_MEM(level + 1), BENCH_MEM(level + 2),
                     BENCH_UINT(count / 4));
    }
    bench_launch(run, "scan_add", bench_line(SCAN_N / BLOCK / 4, LOCAL), BENCH_MEM(2), BENCH_MEM(3),
                 BENCH_UINT(SCAN_N / BLOCK / 4));
    bench_launch(run, "scan_add", bench_line(SCAN_N / 4, LOCAL), BENCH_MEM(1), BENCH_MEM(2),
                 BENCH_UINT(SCAN_N / 4));
}

static bool check_scan(void *const *memory)
{
    const cl_uint *in = memory[0], *out = memory[1];
    cl_uint sum = 0;
    for (size_t i = 0; i < SCAN_N; i++)
        if (out[i] != (sum += in[i]))
            return bench_wrong("scan", i);
    return true;
}

/* Memory: row starts, columns, values, the vector, the product. Rows of different lengths, columns
 * anywhere. */
static void set_up_spmv(void *const *memory)
{
    cl_uint *row_start = memory[0], *column = memory[1], state = 3, k = 0;
    float *value = memory[2], *x = memory[3];
    for (cl_uint row = 0; row < SPMV_ROWS; row++) {
        row_start[row] = k;
        cl_uint length = SPMV_PER_ROW / 2 + bench_random(&state) % (SPMV_PER_ROW + 1);
        for (cl_uint i = 0; i < length; i++, k++) {
            column[k] = bench_random(&state) % SPMV_ROWS;
            value[k] = (float)(bench_random(&state) % 1000) / 1000;
        }
        x[row] = (float)(bench_random(&state) % 1000) / 1000;
    }
    row_start[SPMV_ROWS] = k;
}

static void launch_spmv(struct bench_run *run)
{
    bench_launch(run, "spmv", bench_line(SPMV_ROWS, 0), BENCH_MEM(0), BENCH_MEM(1), BENCH_MEM(2),
                 BENCH_MEM(3), BENCH_MEM(4), BENCH_UINT(SPMV_ROWS));
}

static bool check_spmv(void *const *memory)
{
    const cl_uint *row_start = memory[0], *column = memory[1];
    const float *value = memory[2], *x = memory[3], *y = memory[4];
    for (int row = 0; row < SPMV_ROWS; row++) {
        double sum = 0;
        for (cl_uint k = row_start[row]; k < row_start[row + 1]; k++)
            sum += (double)value[k] * x[column[k]];
        if (!bench_close("sparse matrix-vector", y[row], sum, 1e-5))
            return false;
    }
    return true;
}

static void set_up_sort(void *const *memory)
{
    set_up_random(memory, SORT_N);
}

static void launch_sort(struct bench_run *run)
{
    enum { BLOCK = 512, LOCAL = 256 };
    struct bench_grid grid = bench_line(SORT_N / 2, LOCAL);
    bench_launch(run, "sort_blocks", grid, BENCH_MEM(0), BENCH_MEM(1));
    for (cl_uint size = 2 * BLOCK; size <= SORT_N; size *= 2) {
        for (cl_uint stride = size / 2; stride >= BLOCK; stride /= 2)
            bench_launch(run, "sort_step", grid, BENCH_MEM(1), BENCH_UINT(size),
                         BENCH_UINT(stride));
        bench_launch(run, "sort_merge", grid, BENCH_MEM(1), BENCH_UINT(size));
    }
}

static int compare_uints(const void *a, const void *b)
{
    cl_uint x = *(const cl_uint *)a, y = *(const cl_uint *)b;
    return (x > y) - (x < y);
}

static bool check_sort(void *const *memory)
{
    const cl_uint *out = memory[1];
    cl_uint *expected = malloc(SORT_N * sizeof *expected);
    size_t i = 0;
    if (!expected)
        bench_fail("no memory to check the sort", 0);
    memcpy(expected, memory[0], SORT_N * sizeof *expected);
    qsort(expected, SORT_N, sizeof *expected, compare_uints);
    while (i < SORT_N && out[i] == expected[i])
        i++;
    free(expected);
    return i == SORT_N || bench_wrong("bitonic sort", i);
}

const struct bench_case bench_array_cases[] = {
    {"triad",
     "GB/s",
     12e-9 * TRIAD_N,
     bench_source,
     {TRIAD_N * 4, TRIAD_N * 4, TRIAD_N * 4},
     set_up_triad,
     launch_triad,
     bench_c_triad,
     check_triad},
    {"reduction with barriers",
     "GB/s",
     4e-9 * REDUCTION_N,
     bench_source,
     {REDUCTION_N * 4, REDUCTION_N / REDUCTION_LOCAL * 4},
     set_up_reduction,
     launch_reduction,
     bench_c_reduction,
     check_reduction},
    {"transcendentals",
     "M/s",
     1e-6 * TRANSCENDENTALS_N,
     bench_source,
     {TRANSCENDENTALS_N * 4, TRANSCENDENTALS_N * 4},
     set_up_transcendentals,
     launch_transcendentals,
     bench_c_transcendentals,
     check_transcendentals},
    {"pointer chase",
     "ns/hop-",
     1e-9 * CHASE_HOPS,
     bench_source,
     {CHASE_N * 4, 4},
     set_up_chase,
     launch_chase,
     bench_c_chase,
     check_chase},
    {"histogram",
     "M/s",
     1e-6 * HISTOGRAM_N,
     bench_source,
     {HISTOGRAM_N * 4, HISTOGRAM_BINS * 4},
     set_up_histogram,
     launch_histogram,
     bench_c_histogram,
     check_histogram},
    {"scan",
     "M/s",
     1e-6 * SCAN_N,
     bench_arrays_source,
     {SCAN_N * 4, SCAN_N * 4, SCAN_N / 1024 * 4, SCAN_N / 1024 / 1024 * 4, 4},
     set_up_scan,
     launch_scan,
     bench_c_scan,
     check_scan},
    {"sparse matrix-vector",
     "GFLOP/s",
     2e-9 * SPMV_ROWS *SPMV_PER_ROW,
     bench_arrays_source,
     {(SPMV_ROWS + 1) * 4, SPMV_ROWS *SPMV_PER_ROW * 6, SPMV_ROWS *SPMV_PER_ROW * 6, SPMV_ROWS * 4,
      SPMV_ROWS * 4},
     set_up_spmv,
     launch_spmv,
     bench_c_spmv,
     check_spmv},
    {"bitonic sort",
     "M/s",
     1e-6 * SORT_N,
     bench_arrays_source,
     {SORT_N * 4, SORT_N * 4},
     set_up_sort,
     launch_sort,
     bench_c_sort,
     check_sort},
    {0},
};
