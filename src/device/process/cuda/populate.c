/* Makes host pages, and maps them here, before they are registered.
 *
 * Registering would do it page by page on one thread: 12 ms for 32 MiB of fresh pages, most of it
 * the system's zeroing. Here several threads do that part at once. They live for one call: starting
 * them takes 0.1 ms.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "device/process/cuda/cuda.h"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14; older systems refuse it, and registering does all */
#define MADV_POPULATE_WRITE 23
#endif

/* Each of the threads has at least this much: 1.5 ms of zeroing. */
#define SLICE_BYTES ((size_t)4 << 20)

/* With more the memory is no faster. */
#define MAX_THREADS 8u

struct slice {
    pthread_t thread;
    unsigned char *start;
    size_t bytes;
};

static void *populate(void *argument)
{
    const struct slice *slice = argument;
    madvise(slice->start, slice->bytes, MADV_POPULATE_WRITE); /* a wish */
    return NULL;
}

void sp_cuda_populate(void *start, size_t bytes)
{
    struct slice slices[MAX_THREADS];
    cpu_set_t processors;
    size_t count = bytes / SLICE_BYTES, started = 0;
    if (count > MAX_THREADS)
        count = MAX_THREADS;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0 &&
        count > (size_t)CPU_COUNT(&processors))
        count = (size_t)CPU_COUNT(&processors);
    if (count < 2)
        return;
    size_t each = bytes / count & ~(SLICE_BYTES - 1);
    for (size_t i = 0; i < count; i++) {
        slices[i].start = (unsigned char *)start + i * each;
        slices[i].bytes = i + 1 < count ? each : bytes - i * each;
    }
    while (started + 1 < count &&
           !pthread_create(&slices[started].thread, NULL, populate, &slices[started]))
        started++;
    for (size_t i = started; i < count; i++)
        populate(&slices[i]);
    for (size_t i = 0; i < started; i++)
        pthread_join(slices[i].thread, NULL);
}
