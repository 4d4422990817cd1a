/* The one clock of the library: nanoseconds of CLOCK_MONOTONIC. Event profiling and
 * clGetHostTimer report it, so that all of them can be compared. */
#ifndef SP_UTIL_TIME_H
#define SP_UTIL_TIME_H

#include <stdint.h>
#include <time.h>

static inline uint64_t sp_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
