/* Makes host pages, and maps them here, before they are registered.
 *
 * Registering would do it page by page on one thread: 12 ms for 32 MiB of fresh pages, most of it
 * the system's zeroing. Here several threads make the pages of a range in order, ahead of the loop
 * thread, which meanwhile registers those before and has them copied. The threads live for one
 * range: starting them takes 0.1 ms.
 *
 * Invariant: slices below `next` are taken, by one thread each; `done` says which of them are made.
 * A range is begun, awaited and ended by the loop thread alone; the lock is held for a few
 * instructions.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "device/process/cuda/cuda.h"
#include "util/alloc.h"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14; older systems refuse it, and registering does all */
#define MADV_POPULATE_WRITE 23
#endif

/* What a thread makes at a time: 1.5 ms of zeroing. */
#define SLICE_BYTES ((size_t)4 << 20)

/* With more the memory is no faster. */
#define MAX_THREADS 8u

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned char *start; /* of the range at hand */
    size_t bytes;         /* 0: there is none */
    size_t count, next;   /* slices, and the first that nobody took */
    bool *done;           /* of slices */
    pthread_t threads[MAX_THREADS];
    size_t num_threads;
} range = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

/* Makes the next slice; false: all are taken. */
static bool make_slice(void)
{
    pthread_mutex_lock(&range.lock);
    size_t slice = range.next;
    bool is_one = slice < range.count;
    range.next += is_one;
    pthread_mutex_unlock(&range.lock);
    if (!is_one)
        return false;
    size_t left = range.bytes - slice * SLICE_BYTES;
    madvise(range.start + slice * SLICE_BYTES, left < SLICE_BYTES ? left : SLICE_BYTES,
            MADV_POPULATE_WRITE); /* a wish */
    pthread_mutex_lock(&range.lock);
    range.done[slice] = true;
    pthread_cond_broadcast(&range.moved);
    pthread_mutex_unlock(&range.lock);
    return true;
}

static void *make_slices(void *unused)
{
    (void)unused;
    while (make_slice())
        ;
    return NULL;
}

static size_t threads_for(size_t slices)
{
    cpu_set_t processors;
    size_t count = slices < MAX_THREADS ? slices : MAX_THREADS;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0 &&
        count > (size_t)CPU_COUNT(&processors))
        count = (size_t)CPU_COUNT(&processors);
    return count;
}

/* A range for which it is not worth the threads is left to who registers it. */
static void begin(unsigned char *start, size_t bytes)
{
    size_t count = (bytes + SLICE_BYTES - 1) / SLICE_BYTES, threads = threads_for(count);
    bool *done = threads < 2 ? NULL : sp_alloc_array(count, sizeof *done);
    if (!done)
        return;
    range.start = start;
    range.bytes = bytes;
    range.count = count;
    range.next = 0;
    range.done = done;
    while (range.num_threads < threads &&
           !pthread_create(&range.threads[range.num_threads], NULL, make_slices, NULL))
        range.num_threads++;
}

void sp_cuda_populate_end(void)
{
    while (range.num_threads)
        pthread_join(range.threads[--range.num_threads], NULL);
    free(range.done);
    range.done = NULL;
    range.bytes = 0;
}

/* The slices that [first, end) touches. */
static void await(size_t first, size_t end)
{
    for (size_t i = first / SLICE_BYTES; i * SLICE_BYTES < end; i++) {
        pthread_mutex_lock(&range.lock);
        while (!range.done[i] && range.next > i)
            pthread_cond_wait(&range.moved, &range.lock);
        bool is_done = range.done[i];
        pthread_mutex_unlock(&range.lock);
        if (!is_done && make_slice()) /* no thread has come to it */
            i--;
    }
}

void sp_cuda_populate(void *start, size_t bytes, size_t following)
{
    unsigned char *at = start;
    if (at < range.start || at + bytes > range.start + range.bytes) {
        sp_cuda_populate_end();
        begin(at, bytes + following);
    }
    if (range.bytes)
        await((size_t)(at - range.start), (size_t)(at - range.start) + bytes);
}
