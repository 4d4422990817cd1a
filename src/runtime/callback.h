/* The callback thread: where the application's functions are called.
 *
 * One thread, started when it is first needed, calls event callbacks, SVM free callbacks and other
 * functions of the application in the order in which they became due. No lock of the library is
 * held meanwhile, so a callback may call OpenCL; one that blocks delays other callbacks, nothing
 * else.
 */
#ifndef SP_RUNTIME_CALLBACK_H
#define SP_RUNTIME_CALLBACK_H

#include <stdbool.h>

/* Embedded in whatever is to be called; the memory is the job's until `run` is called. */
struct sp_callback_job {
    struct sp_callback_job *next;
    void (*run)(struct sp_callback_job *job);
};

/* Makes sure that the thread runs. 0, or a negative errno. */
int sp_callback_start(void);

/* Whether the caller is on that thread, inside a job. */
bool sp_callback_is_this_thread(void);

/* Queues a job. Where the thread cannot be started, the job runs at once on this thread. */
void sp_callback_post(struct sp_callback_job *job);

#endif
