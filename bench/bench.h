/* The benchmark's own seam.
 *
 * main.c        options; one process for each platform and round
 * table.c       what the processes measured, as a table with means
 * chart.c       the kernels of that table as a picture
 * api_rows.c    what calls cost: discovery, builds, launches, allocation, mapping
 * device_rows.c what sharing between devices costs
 * host_rows.c   what the machine's memory gives plain C
 * cases.c       runs the kernels, on a platform or as C, and checks them
 * cases_*.c     the kernels: each one entry of a table, with its set-up, launches and check
 * *.cl          their sources, portable: no local size above 256, nothing that suits one runtime
 * only reference_*.c the same work as an expert writes it in C with OpenMP
 */
#ifndef SP_BENCH_H
#define SP_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <CL/cl.h>

struct bench {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program; /* kernels.cl */
};

/* The sources, zero-terminated. kernels.cl holds the ten kernels whose build is measured. */
extern const char bench_source[], bench_arrays_source[], bench_grids_source[],
    bench_numbers_source[];

static inline double bench_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One result of this process, for the table: a row's name, its value and its unit. Rows of which
 * less is better end their unit with "-". */
void bench_row(const char *name, double value, const char *unit);

/* The same for a kernel, which the means and the chart take in. A value that is no number: its
 * result was wrong. */
void bench_kernel_row(const char *name, double value, const char *unit);

/* Says what went wrong and ends the process. */
void bench_fail(const char *what, cl_int error) __attribute__((noreturn));

static inline void bench_must(cl_int error, const char *what)
{
    if (error != CL_SUCCESS)
        bench_fail(what, error);
}

/* The median of `count` values, which are sorted. */
double bench_median(double *values, size_t count);

void bench_discovery(struct bench *bench);
void bench_build(struct bench *bench);
void bench_api_rows(struct bench *bench);

/* Rows of sharing between devices with memory of their own; Samepage alone. Sets up everything
 * itself. */
void bench_device_rows(void);

/* Rows of what memory gives plain C; no platform is used. */
void bench_host_rows(void);

/* Rows of the kernels that `filter` chooses: NULL or "all" for all, or parts of names with commas
 * between them. On the platform of `bench`, or as C with OpenMP if that is NULL. `cpu_time`: from
 * processor time, not the clock. False: a result was wrong, which was said. */
bool bench_cases(struct bench *bench, const char *filter, bool cpu_time);

/* Whether each part of the filter is part of a kernel's name; says on standard error which is not.
 */
bool bench_filter_is_known(const char *filter);

#endif
