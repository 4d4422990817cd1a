/* What a kernel of the benchmark is, and what its functions may call. To add one: an entry in a
 * table of cases_*.c, its source in the .cl file of that table, and its C in reference_*.c. */
#ifndef SP_BENCH_CASES_H
#define SP_BENCH_CASES_H

#include "bench.h"

#define BENCH_MAX_MEMORY 6

struct bench_run; /* one case on one platform */

struct bench_case {
    const char *name, *unit; /* unit as in bench_row */
    /* Of one run, in millionths of the unit or more: a rate is work / seconds, and where less is
     * better the value is seconds / work. */
    double work;
    const char *source;
    size_t bytes[BENCH_MAX_MEMORY]; /* the pieces of memory, until the first 0 */
    /* Fills what is read; NULL: nothing is. The host may touch all memory here and in check. */
    void (*set_up)(void *const *memory);
    void (*launch)(struct bench_run *run);  /* enqueues it all; may be repeated */
    void (*reference)(void *const *memory); /* the same in C with OpenMP; NULL: it makes no sense */
    bool (*check)(void *const *memory);     /* against plain C; says what differs */
};

/* The tables; the last entry has no name. */
extern const struct bench_case bench_array_cases[], bench_grid_cases[], bench_number_cases[];

struct bench_grid {
    cl_uint dimensions;
    size_t global[3], local[3]; /* local[0] zero: the platform's choice */
};

struct bench_arg {
    enum bench_arg_kind { BENCH_MEMORY, BENCH_VALUE, BENCH_LOCAL } kind;
    size_t size; /* of a value or of local memory */
    union {
        unsigned memory; /* index into the case's memory */
        cl_uint u;
        cl_float f;
    } value;
};

#define BENCH_MEM(index)                                                                           \
    {                                                                                              \
        .kind = BENCH_MEMORY, .value.memory = (index)                                              \
    }
#define BENCH_UINT(number)                                                                         \
    {                                                                                              \
        .kind = BENCH_VALUE, .size = sizeof(cl_uint), .value.u = (number)                          \
    }
#define BENCH_FLOAT(number)                                                                        \
    {                                                                                              \
        .kind = BENCH_VALUE, .size = sizeof(cl_float), .value.f = (number)                         \
    }
#define BENCH_LOCAL_BYTES(bytes)                                                                   \
    {                                                                                              \
        .kind = BENCH_LOCAL, .size = (bytes)                                                       \
    }

/* Enqueues a kernel of the case's source: bench_launch(run, "triad", grid, BENCH_MEM(0),
 * BENCH_UINT(n)). */
#define bench_launch(run, kernel, grid, ...)                                                       \
    bench_launch_args(run, kernel, grid, (const struct bench_arg[]){__VA_ARGS__},                  \
                      sizeof((const struct bench_arg[]){__VA_ARGS__}) / sizeof(struct bench_arg))
void bench_launch_args(struct bench_run *run, const char *kernel, struct bench_grid grid,
                       const struct bench_arg *args, size_t count);

static inline struct bench_grid bench_line(size_t global, size_t local)
{
    return (struct bench_grid){1, {global}, {local}};
}

static inline struct bench_grid bench_plane(size_t x, size_t y, size_t local_x, size_t local_y)
{
    return (struct bench_grid){2, {x, y}, {local_x, local_y}};
}

/* Enqueues a fill of the case's memory `index` with zeros. */
void bench_clear(struct bench_run *run, unsigned index);

/* Whether |got - expected| <= tolerance * (1 + |expected|); else says so. */
bool bench_close(const char *what, double got, double expected, double tolerance);

/* Says that the element at `index` is wrong. False. */
bool bench_wrong(const char *what, size_t index);

/* The next of a sequence of numbers that look random. */
static inline uint32_t bench_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

#endif
