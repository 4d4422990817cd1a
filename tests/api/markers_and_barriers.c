/* In an out-of-order queue: a marker without a list waits for all before it, a barrier also holds
 * back all after it, and with a list only the list counts. */
#include "check.h"

#include <unistd.h>

static struct check_setup setup;

static cl_event user(void)
{
    cl_int error;
    cl_event event = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    return event;
}

static cl_event marker(const cl_event *wait)
{
    cl_event event = NULL;
    CHECK_CL(clEnqueueMarkerWithWaitList(setup.queue, wait ? 1 : 0, wait, &event), CL_SUCCESS);
    return event;
}

/* Waits a moment for an event that is to end, or gives one that is not the chance to go wrong. */
static bool ends(cl_event event, int milliseconds)
{
    for (int i = 0; i < milliseconds && check_status(event) != CL_COMPLETE; i++)
        usleep(1000);
    return check_status(event) == CL_COMPLETE;
}

static void release(cl_event *events, int count)
{
    CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
    for (int i = 0; i < count; i++) {
        CHECK_CL(check_status(events[i]), CL_COMPLETE);
        CHECK_CL(clReleaseEvent(events[i]), CL_SUCCESS);
    }
}

int main(void)
{
    check_setup_with(&setup, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_event gate, other, e[8];

    /* Markers. */
    gate = user(), other = user();
    e[0] = marker(&gate);
    e[1] = marker(&other);
    e[2] = marker(NULL); /* all before */
    CHECK_CL(clEnqueueMarkerWithWaitList(setup.queue, 1, &other, &e[3]), CL_SUCCESS);
    CHECK_CL(clSetUserEventStatus(other, CL_COMPLETE), CL_SUCCESS);
    CHECK(ends(e[1], 2000) && ends(e[3], 2000));
    CHECK(!ends(e[0], 5) && !ends(e[2], 5));
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    e[4] = gate, e[5] = other;
    release(e, 6);

    /* A barrier without a list. */
    gate = user();
    e[0] = marker(&gate);
    CHECK_CL(clEnqueueBarrierWithWaitList(setup.queue, 0, NULL, &e[1]), CL_SUCCESS);
    other = user();
    CHECK_CL(clSetUserEventStatus(other, CL_COMPLETE), CL_SUCCESS);
    e[2] = marker(&other); /* its list is done, but the barrier is not */
    CHECK(!ends(e[2], 5) && !ends(e[1], 1));
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    e[3] = gate, e[4] = other;
    release(e, 5);

    /* A barrier with a list waits only for the list, and holds back what follows. */
    gate = user(), other = user();
    e[0] = marker(&gate);
    CHECK_CL(clEnqueueBarrierWithWaitList(setup.queue, 1, &other, &e[1]), CL_SUCCESS);
    cl_event done = user();
    CHECK_CL(clSetUserEventStatus(done, CL_COMPLETE), CL_SUCCESS);
    e[2] = marker(&done);
    CHECK(!ends(e[1], 5) && !ends(e[2], 1));
    CHECK_CL(clSetUserEventStatus(other, CL_COMPLETE), CL_SUCCESS);
    CHECK(ends(e[1], 2000) && ends(e[2], 2000) && !ends(e[0], 1));
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    e[3] = gate, e[4] = other, e[5] = done;
    release(e, 6);

    /* The forms of OpenCL 1.1. */
    gate = user();
    CHECK_CL(clEnqueueWaitForEvents(setup.queue, 1, &gate), CL_SUCCESS);
    CHECK_CL(clEnqueueMarker(setup.queue, &e[0]), CL_SUCCESS);
    CHECK(!ends(e[0], 5));
    CHECK_CL(clEnqueueBarrier(setup.queue), CL_SUCCESS);
    CHECK_CL(clEnqueueMarker(setup.queue, &e[1]), CL_SUCCESS);
    CHECK(!ends(e[1], 5));
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    e[2] = gate;
    release(e, 3);

    const struct {
        bool is_barrier;
        cl_command_type type;
    } types[] = {{false, CL_COMMAND_MARKER}, {true, CL_COMMAND_BARRIER}};
    for (int i = 0; i < 2; i++) {
        cl_command_type type = 0;
        CHECK_CL(types[i].is_barrier ? clEnqueueBarrierWithWaitList(setup.queue, 0, NULL, &e[0])
                                     : clEnqueueMarkerWithWaitList(setup.queue, 0, NULL, &e[0]),
                 CL_SUCCESS);
        CHECK_CL(clGetEventInfo(e[0], CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL), CL_SUCCESS);
        CHECK(type == types[i].type);
        release(e, 1);
    }
    check_finish(&setup);
    return check_result();
}
