/* Runs the kernels of the tables: sets up their memory, shared virtual memory on a platform and
 * huge pages for C, times some runs, and prints a row if the result is right. What a case is says
 * cases.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"

#define REPEATS 15

/* Code for one kernel and local size takes 0.1 to 2 s to make, several may wait for it, and until
 * it is there its making takes a processor from the kernel that runs. */
#define WARM_SECONDS 3.0
#define BUSY_WARM_SECONDS 4.0 /* where other things take most of the processors' time */

#define MAX_KERNELS 8
#define NUM_TABLES 3
#define NUM_SOURCES 4

struct bench_run {
    struct bench *bench;
    const struct bench_case *c;
    void *memory[BENCH_MAX_MEMORY];
    cl_program program;
    struct {
        const char *name;
        cl_kernel kernel;
    } kernels[MAX_KERNELS];
};

static const struct bench_case *const tables[NUM_TABLES] = {bench_array_cases, bench_grid_cases,
                                                            bench_number_cases};

static bool counts_processors; /* their time, in place of the clock's */

bool bench_close(const char *what, double got, double expected, double tolerance)
{
    if (fabs(got - expected) <= tolerance * (1 + fabs(expected)))
        return true;
    fprintf(stderr, "samepage-bench: %s: got %.9g, expected %.9g\n", what, got, expected);
    return false;
}

bool bench_wrong(const char *what, size_t index)
{
    fprintf(stderr, "samepage-bench: %s: element %zu is wrong\n", what, index);
    return false;
}

static cl_kernel kernel_named(struct bench_run *run, const char *name)
{
    cl_int error;
    int k = 0;
    for (; k < MAX_KERNELS && run->kernels[k].kernel; k++)
        if (!strcmp(run->kernels[k].name, name))
            return run->kernels[k].kernel;
    if (k == MAX_KERNELS)
        bench_fail("a case has too many kernels", 0);
    run->kernels[k].name = name;
    run->kernels[k].kernel = clCreateKernel(run->program, name, &error);
    bench_must(error, name);
    return run->kernels[k].kernel;
}

void bench_launch_args(struct bench_run *run, const char *name, struct bench_grid grid,
                       const struct bench_arg *args, size_t count)
{
    cl_kernel kernel = kernel_named(run, name);
    for (size_t i = 0; i < count; i++) {
        const struct bench_arg *arg = &args[i];
        if (arg->kind == BENCH_MEMORY)
            bench_must(clSetKernelArgSVMPointer(kernel, (cl_uint)i, run->memory[arg->value.memory]),
                       "clSetKernelArgSVMPointer");
        else
            bench_must(clSetKernelArg(kernel, (cl_uint)i, arg->size,
                                      arg->kind == BENCH_LOCAL ? NULL : &arg->value),
                       "clSetKernelArg");
    }
    bench_must(clEnqueueNDRangeKernel(run->bench->queue, kernel, grid.dimensions, NULL, grid.global,
                                      grid.local[0] ? grid.local : NULL, 0, NULL, NULL),
               name);
}

void bench_clear(struct bench_run *run, unsigned index)
{
    cl_uint zero = 0;
    bench_must(clEnqueueSVMMemFill(run->bench->queue, run->memory[index], &zero, sizeof zero,
                                   run->c->bytes[index], 0, NULL, NULL),
               "clEnqueueSVMMemFill");
}

static void finish(struct bench_run *run)
{
    bench_must(clFinish(run->bench->queue), "clFinish");
}

/* The host gets all memory of the case, or gives it back. */
static void map(struct bench_run *run)
{
    for (int i = 0; i < BENCH_MAX_MEMORY && run->c->bytes[i]; i++)
        bench_must(clEnqueueSVMMap(run->bench->queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                   run->memory[i], run->c->bytes[i], 0, NULL, NULL),
                   "clEnqueueSVMMap");
}

static void unmap(struct bench_run *run)
{
    for (int i = 0; i < BENCH_MAX_MEMORY && run->c->bytes[i]; i++)
        bench_must(clEnqueueSVMUnmap(run->bench->queue, run->memory[i], 0, NULL, NULL),
                   "clEnqueueSVMUnmap");
    finish(run);
}

/* The program of a source, built once. */
static cl_program program_of(struct bench *bench, const char *source)
{
    static const char *sources[NUM_SOURCES];
    static cl_program programs[NUM_SOURCES];
    cl_int error;
    int p = 0;
    if (source == bench_source && bench->program)
        return bench->program;
    while (p < NUM_SOURCES && sources[p] && sources[p] != source)
        p++;
    if (p == NUM_SOURCES)
        bench_fail("too many sources", p);
    if (!programs[p]) {
        sources[p] = source;
        programs[p] = clCreateProgramWithSource(bench->context, 1, &source, NULL, &error);
        bench_must(error, "clCreateProgramWithSource");
        bench_must(clBuildProgram(programs[p], 1, &bench->device, "", NULL, NULL),
                   "clBuildProgram");
    }
    return programs[p];
}

/* The clock; or the time of all processors that this process used, as if it had kept all of them
 * busy. */
static double now(void)
{
    struct timespec t;
    if (!counts_processors)
        return bench_seconds();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ((double)t.tv_sec + (double)t.tv_nsec * 1e-9) / (double)sysconf(_SC_NPROCESSORS_ONLN);
}

static void print_row(const struct bench_case *c, double seconds, bool is_right)
{
    bool less_is_better = c->unit[strlen(c->unit) - 1] == '-';
    double value = less_is_better ? seconds / c->work : c->work / seconds;
    bench_kernel_row(c->name, is_right ? value : NAN, c->unit);
}

static bool run_on_platform(struct bench *bench, const struct bench_case *c)
{
    struct bench_run run = {.bench = bench, .c = c, .program = program_of(bench, c->source)};
    double times[REPEATS];
    for (int i = 0; i < BENCH_MAX_MEMORY && c->bytes[i]; i++) {
        run.memory[i] = clSVMAlloc(bench->context, CL_MEM_READ_WRITE, c->bytes[i], 0);
        if (!run.memory[i])
            bench_fail("clSVMAlloc gave NULL", i);
    }
    map(&run);
    if (c->set_up)
        c->set_up(run.memory);
    unmap(&run);
    /* Builds and the first touch of the pages do not count, nor what runs until code for the local
     * size is there, which platforms make beside the first launches. */
    double warm = bench_seconds() + (counts_processors ? BUSY_WARM_SECONDS : WARM_SECONDS);
    do {
        c->launch(&run);
        finish(&run);
    } while (bench_seconds() < warm);
    for (int r = 0; r < REPEATS; r++) {
        double start = now();
        c->launch(&run);
        finish(&run);
        times[r] = now() - start;
    }
    map(&run);
    bool is_right = c->check(run.memory);
    unmap(&run);
    print_row(c, bench_median(times, REPEATS), is_right);
    for (int k = 0; k < MAX_KERNELS && run.kernels[k].kernel; k++)
        clReleaseKernel(run.kernels[k].kernel);
    for (int i = 0; i < BENCH_MAX_MEMORY && c->bytes[i]; i++)
        clSVMFree(bench->context, run.memory[i]);
    return is_right;
}

static bool run_as_c(const struct bench_case *c)
{
    const size_t huge_page = (size_t)1 << 21;
    void *memory[BENCH_MAX_MEMORY] = {NULL};
    double times[REPEATS];
    if (!c->reference)
        return true;
    for (int i = 0; i < BENCH_MAX_MEMORY && c->bytes[i]; i++) {
        memory[i] = aligned_alloc(huge_page, (c->bytes[i] + huge_page - 1) & ~(huge_page - 1));
        if (!memory[i])
            bench_fail("no memory for the C reference", i);
        madvise(memory[i], c->bytes[i], MADV_HUGEPAGE); /* where there are none, small ones do */
        memset(memory[i], 0, c->bytes[i]);
    }
    if (c->set_up)
        c->set_up(memory);
    for (int r = -1; r < REPEATS; r++) {
        double start = now();
        c->reference(memory);
        if (r >= 0)
            times[r] = now() - start;
    }
    bool is_right = c->check(memory);
    print_row(c, bench_median(times, REPEATS), is_right);
    for (int i = 0; i < BENCH_MAX_MEMORY; i++)
        free(memory[i]);
    return is_right;
}

/* Calls `use` with each part of the filter until it says true. */
static bool any_part(const char *filter, bool (*use)(const char *part, const void *data),
                     const void *data)
{
    char part[64];
    while (*filter) {
        size_t length = strcspn(filter, ",");
        snprintf(part, sizeof part, "%.*s", (int)length, filter);
        if (length && use(part, data))
            return true;
        filter += length + (filter[length] == ',');
    }
    return false;
}

static bool is_in_name(const char *part, const void *name)
{
    return !strcmp(part, "all") || strcasestr(name, part) != NULL;
}

static bool is_unknown(const char *part, const void *unused)
{
    (void)unused;
    for (int t = 0; t < NUM_TABLES; t++)
        for (const struct bench_case *c = tables[t]; c->name; c++)
            if (is_in_name(part, c->name))
                return false;
    fprintf(stderr, "samepage-bench: no kernel has '%s' in its name; there are:\n", part);
    for (int t = 0; t < NUM_TABLES; t++)
        for (const struct bench_case *c = tables[t]; c->name; c++)
            fprintf(stderr, "  %s\n", c->name);
    return true;
}

bool bench_filter_is_known(const char *filter)
{
    return !any_part(filter, is_unknown, NULL);
}

bool bench_cases(struct bench *bench, const char *filter, bool cpu_time)
{
    bool is_good = true;
    counts_processors = cpu_time;
    for (int t = 0; t < NUM_TABLES; t++)
        for (const struct bench_case *c = tables[t]; c->name; c++)
            if (!filter || any_part(filter, is_in_name, c->name))
                is_good = (bench ? run_on_platform(bench, c) : run_as_c(c)) && is_good;
    return is_good;
}
