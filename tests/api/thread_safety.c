/* Many threads on one context: queues of their own and one that is shared, buffers, SVM, events,
 * and waits across threads. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 6, ROUNDS = 300, BYTES = 8192 };

static struct check_setup setup;
static cl_command_queue shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cl_event last; /* some thread's newest event; under lock */

/* Replaces the event that all threads see; gives back the one before, with its reference. */
static cl_event publish(cl_event event)
{
    pthread_mutex_lock(&lock);
    cl_event before = last;
    last = event;
    pthread_mutex_unlock(&lock);
    return before;
}

static void *work(void *argument)
{
    cl_uint me = (cl_uint)(uintptr_t)argument + 1;
    cl_int error;
    cl_command_queue own = clCreateCommandQueue(
        setup.context, setup.device, me % 2 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &error);
    REQUIRE_CL(error);
    for (cl_uint round = 0; round < ROUNDS; round++) {
        cl_uint pattern = me * 100000 + round, out = 0;
        cl_mem buffer = clCreateBuffer(setup.context, 0, BYTES, NULL, &error);
        REQUIRE_CL(error);
        cl_uint *svm = clSVMAlloc(setup.context, 0, BYTES, 0);
        REQUIRE(svm != NULL);
        cl_event filled = NULL, copied = NULL;
        cl_command_queue queue = round % 3 ? own : shared;
        REQUIRE_CL(clEnqueueSVMMemFill(queue, svm, &pattern, 4, BYTES, 0, NULL, &filled));
        REQUIRE_CL(
            clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, BYTES, svm, 1, &filled, &copied));
        cl_event other = publish(filled);
        if (other) {
            cl_event both[] = {copied, other};
            REQUIRE_CL(clWaitForEvents(2, both));
            clReleaseEvent(other);
        }
        REQUIRE_CL(clEnqueueReadBuffer(own, buffer, CL_TRUE, BYTES - 4, 4, &out, 1, &copied, NULL));
        if (out != pattern) {
            fprintf(stderr, "thread %u round %u: %u\n", me, round, out);
            exit(1);
        }
        clReleaseEvent(copied);
        clReleaseMemObject(buffer);
        void *freed = svm;
        REQUIRE_CL(clEnqueueSVMFree(queue, 1, &freed, NULL, NULL, 0, NULL, NULL));
        if (round % 16 == 0)
            REQUIRE_CL(clFinish(queue));
    }
    REQUIRE_CL(clFinish(own));
    clReleaseCommandQueue(own);
    return NULL;
}

int main(void)
{
    check_setup(&setup);
    shared = setup.queue;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    clReleaseEvent(last);
    check_finish(&setup);
    return check_result();
}
