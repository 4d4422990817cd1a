/* What this machine's memory gives plain C on all cores: the measure for fills, copies and hops. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

#define REPEATS 7
#define COPY_BYTES ((size_t)256 << 20)
#define SHARED_BYTES ((size_t)64 << 20)

struct copy {
    char *to, *from;
    size_t bytes;
};

static void fill_all(const struct copy *copy)
{
#pragma omp parallel
    {
        size_t share = copy->bytes / (size_t)omp_get_num_threads();
        memset(copy->to + share * (size_t)omp_get_thread_num(), 7, share);
    }
}

static void copy_all(const struct copy *copy)
{
#pragma omp parallel
    {
        size_t share = copy->bytes / (size_t)omp_get_num_threads();
        size_t offset = share * (size_t)omp_get_thread_num();
        memcpy(copy->to + offset, copy->from + offset, share);
    }
}

static double gb_per_second(void (*function)(const struct copy *copy), const struct copy *copy)
{
    double times[REPEATS];
    function(copy); /* the first touch of the pages does not count */
    for (int r = 0; r < REPEATS; r++) {
        double start = bench_seconds();
        function(copy);
        times[r] = bench_seconds() - start;
    }
    return (double)copy->bytes / bench_median(times, REPEATS) * 1e-9;
}

static char *pages(size_t bytes)
{
    char *memory = aligned_alloc(1 << 21, bytes);
    if (!memory)
        bench_fail("no memory for the C reference", 0);
    memset(memory, 1, bytes);
    return memory;
}

static char *shared_pages(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        bench_fail("no memory for the C reference", 0);
    memset(memory, 1, bytes);
    return memory;
}

void bench_host_rows(void)
{
    struct copy copy = {pages(COPY_BYTES), pages(COPY_BYTES), COPY_BYTES};
    bench_row("fill 256 MiB", gb_per_second(fill_all, &copy), "GB/s");
    bench_row("copy 256 MiB", gb_per_second(copy_all, &copy), "GB/s");
    free(copy.to);
    free(copy.from);
    /* Between two shared mappings: what a hop between two virtual devices can reach. */
    struct copy hop = {shared_pages(SHARED_BYTES), shared_pages(SHARED_BYTES), SHARED_BYTES};
    bench_row("hop between devices, 64 MiB", gb_per_second(copy_all, &hop), "GB/s");
    munmap(hop.to, SHARED_BYTES);
    munmap(hop.from, SHARED_BYTES);
}
