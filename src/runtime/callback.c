/* See callback.h. A list under a lock, and a word that the thread sleeps on: the number of jobs
 * posted so far. The lock is taken last of all and held for a few instructions. */
#include "runtime/callback.h"

#include <pthread.h>
#include <stdbool.h>

#include "util/futex.h"
#include "util/thread.h"

static struct {
    pthread_mutex_t lock;
    struct sp_callback_job *first, *last;
    bool is_running;
    atomic_uint posted; /* counts jobs; the thread sleeps while it has not changed */
} callbacks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct sp_callback_job *take_all(void)
{
    pthread_mutex_lock(&callbacks.lock);
    struct sp_callback_job *jobs = callbacks.first;
    callbacks.first = callbacks.last = NULL;
    pthread_mutex_unlock(&callbacks.lock);
    return jobs;
}

static SP_THREAD_LOCAL bool is_callback_thread;

bool sp_callback_is_this_thread(void)
{
    return is_callback_thread;
}

static void *callback_thread(void *unused)
{
    (void)unused;
    is_callback_thread = true;
    for (;;) {
        /* Read before the list, so that a job posted in between changes the word we sleep on. */
        unsigned posted = atomic_load_explicit(&callbacks.posted, memory_order_acquire);
        struct sp_callback_job *jobs = take_all();
        if (!jobs)
            sp_futex_wait(&callbacks.posted, posted);
        while (jobs) {
            struct sp_callback_job *job = jobs;
            jobs = job->next;
            job->run(job);
        }
    }
    return NULL;
}

/* Threads do not survive fork(): the child starts its own when it needs one, with an empty list. */
static void forget_in_child(void)
{
    pthread_mutex_init(&callbacks.lock, NULL);
    callbacks.first = callbacks.last = NULL;
    callbacks.is_running = false;
}

/* With the lock held. */
static int start_locked(void)
{
    static bool is_registered;
    if (callbacks.is_running)
        return 0;
    if (!is_registered)
        is_registered = pthread_atfork(NULL, NULL, forget_in_child) == 0;
    int error = sp_thread_start_detached(callback_thread, NULL, 0);
    if (error)
        return error;
    callbacks.is_running = true;
    return 0;
}

int sp_callback_start(void)
{
    pthread_mutex_lock(&callbacks.lock);
    int error = start_locked();
    pthread_mutex_unlock(&callbacks.lock);
    return error;
}

void sp_callback_post(struct sp_callback_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&callbacks.lock);
    bool is_queued = start_locked() == 0;
    if (is_queued) {
        if (callbacks.last)
            callbacks.last->next = job;
        else
            callbacks.first = job;
        callbacks.last = job;
        /* Release: pairs with the thread's acquire, though the list itself is under the lock. */
        atomic_fetch_add_explicit(&callbacks.posted, 1, memory_order_release);
    }
    pthread_mutex_unlock(&callbacks.lock);
    if (is_queued)
        sp_futex_wake(&callbacks.posted, 1);
    else
        job->run(job);
}
