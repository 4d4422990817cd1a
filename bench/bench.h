/* The benchmark's own seam.
 *
 * main.c        starts one process for each platform and round, and prints the table of medians
 * api_rows.c    what calls cost: discovery, builds, launches, allocation, mapping
 * kernel_rows.c what kernels reach, each result checked before its time counts
 * device_rows.c what sharing between devices costs
 * reference.c   the same loops in C with OpenMP
 */
#ifndef SP_BENCH_H
#define SP_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <CL/cl.h>

struct bench {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
};

extern const char bench_source[]; /* kernels.cl, zero-terminated */

static inline double bench_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One result of this process, for the table: a row's name, its value and its unit. Rows of which less is
 * better end their unit with "-". */
void bench_row(const char *name, double value, const char *unit);

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
void bench_kernel_rows(struct bench *bench);

/* Rows of sharing between devices with memory of their own; Samepage alone. Sets up everything itself. */
void bench_device_rows(void);

/* Rows of the plain C loops; no platform is used. */
void bench_reference_rows(void);

#endif
