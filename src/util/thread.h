/* Threads of the library's own: detached, and with every signal blocked, so that the application's
 * handlers never run on them. */
#ifndef SP_UTIL_THREAD_H
#define SP_UTIL_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* A variable of each thread. Initial-exec: cheap to reach, and LeakSanitizer of GCC 12 cannot find
 * other thread-local memory of a library that was loaded with dlopen. */
#define SP_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

/* Runs `function(argument)` on a new thread. `stack_bytes` 0: the default stack. 0, or a negative
 * errno: then nothing runs. */
static inline int sp_thread_start_detached(void *(*function)(void *), void *argument,
                                           size_t stack_bytes)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error)
        return -error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack_bytes)
        pthread_attr_setstacksize(&attributes, stack_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return -error;
}

#endif
