/* Callbacks come for each status that was asked for, also where it was reached before, and report
 * an error as such. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

struct seen {
    cl_int status;
    int calls;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void CL_CALLBACK notify(cl_event event, cl_int status, void *data)
{
    CHECK(event != NULL);
    pthread_mutex_lock(&lock);
    struct seen *seen = data;
    seen->status = status;
    seen->calls++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for(struct seen *seen)
{
    pthread_mutex_lock(&lock);
    while (seen->calls == 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static int calls_of(struct seen *seen)
{
    pthread_mutex_lock(&lock);
    int calls = seen->calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    cl_event user = clCreateUserEvent(setup.context, &error), marker = NULL;
    REQUIRE_CL(error);
    REQUIRE_CL(clEnqueueMarkerWithWaitList(setup.queue, 1, &user, &marker));

    struct seen submitted = {0}, running = {0}, complete = {0}, late = {0};
    CHECK_CL(clSetEventCallback(marker, CL_SUBMITTED, notify, &submitted), CL_SUCCESS);
    CHECK_CL(clSetEventCallback(marker, CL_RUNNING, notify, &running), CL_SUCCESS);
    CHECK_CL(clSetEventCallback(marker, CL_COMPLETE, notify, &complete), CL_SUCCESS);
    CHECK(calls_of(&complete) == 0 && calls_of(&running) == 0);
    CHECK_CL(clSetUserEventStatus(user, CL_COMPLETE), CL_SUCCESS);
    wait_for(&submitted);
    wait_for(&running);
    wait_for(&complete);
    CHECK(submitted.status == CL_SUBMITTED && running.status == CL_RUNNING &&
          complete.status == CL_COMPLETE);
    CHECK_CL(clSetEventCallback(marker, CL_COMPLETE, notify, &late), CL_SUCCESS);
    wait_for(&late);
    CHECK(late.status == CL_COMPLETE);
    CHECK_CL(clReleaseEvent(marker), CL_SUCCESS);

    /* A user event is submitted from the start. */
    struct seen now = {0};
    CHECK_CL(clReleaseEvent(user), CL_SUCCESS);
    user = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    CHECK_CL(clSetEventCallback(user, CL_SUBMITTED, notify, &now), CL_SUCCESS);
    wait_for(&now);
    CHECK(now.status == CL_SUBMITTED);

    /* An error. */
    struct seen failed = {0}, follower = {0};
    REQUIRE_CL(clEnqueueMarkerWithWaitList(setup.queue, 1, &user, &marker));
    CHECK_CL(clSetEventCallback(user, CL_COMPLETE, notify, &failed), CL_SUCCESS);
    CHECK_CL(clSetEventCallback(marker, CL_COMPLETE, notify, &follower), CL_SUCCESS);
    CHECK_CL(clSetUserEventStatus(user, -77), CL_SUCCESS);
    wait_for(&failed);
    wait_for(&follower);
    CHECK(failed.status == -77 && follower.status < 0);
    CHECK(failed.calls == 1 && submitted.calls == 1 && complete.calls == 1);

    CHECK_CL(clSetEventCallback(user, CL_COMPLETE, NULL, NULL), CL_INVALID_VALUE);
    CHECK_CL(clSetEventCallback(user, CL_QUEUED, notify, NULL), CL_INVALID_VALUE);
    CHECK_CL(clSetEventCallback(user, -1, notify, NULL), CL_INVALID_VALUE);
    CHECK_CL(clReleaseEvent(marker), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(user), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
