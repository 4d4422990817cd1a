/* Sleeping on a word of memory, and the pause of a short spin. */
#ifndef SP_UTIL_FUTEX_H
#define SP_UTIL_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word is `value`; may return early for no reason. True: a waker ended it. */
static inline bool sp_futex_wait(atomic_uint *word, unsigned value)
{
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0) == 0;
}

/* As sp_futex_wait, for so long at most; less than a second. */
static inline void sp_futex_wait_for(atomic_uint *word, unsigned value, uint32_t nanoseconds)
{
    struct timespec time = {.tv_nsec = (long)nanoseconds};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
}

/* Wakes up to `count` sleepers. The caller has changed the word already. How many there were. */
static inline unsigned sp_futex_wake(atomic_uint *word, int count)
{
    return (unsigned)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* The same two on a word in memory that processes share. */
static inline void sp_futex_wait_shared(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static inline void sp_futex_wake_shared(atomic_uint *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}

static inline void sp_cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
