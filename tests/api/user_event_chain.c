/* A very long chain of commands behind one user event: only what depends on it waits, its end lets
 * all of them go without deep recursion, and its failure reaches all of them. */
#include "check.h"

enum { LENGTH = 100000 };

static void check_chain(struct check_setup *setup, cl_command_queue queue, cl_int status)
{
    cl_int error;
    cl_event first = clCreateUserEvent(setup->context, &error);
    REQUIRE_CL(error);
    CHECK(check_status(first) == CL_SUBMITTED);
    cl_event last = first;
    CHECK_CL(clRetainEvent(last), CL_SUCCESS);
    for (int i = 0; i < LENGTH; i++) {
        cl_event next;
        REQUIRE_CL(clEnqueueMarkerWithWaitList(queue, 1, &last, &next));
        clReleaseEvent(last);
        last = next;
    }
    /* Another queue goes on. */
    CHECK_CL(clFinish(setup->queue), CL_SUCCESS);
    CHECK(check_status(last) == CL_QUEUED);
    CHECK_CL(clSetUserEventStatus(first, 1), CL_INVALID_VALUE);
    CHECK_CL(clSetUserEventStatus(first, status), CL_SUCCESS);
    CHECK_CL(clSetUserEventStatus(first, CL_COMPLETE), CL_INVALID_OPERATION);
    CHECK_CL(clWaitForEvents(1, &last),
             status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS);
    CHECK_CL(check_status(last),
             status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_COMPLETE);
    CHECK_CL(clSetUserEventStatus(last, CL_COMPLETE), CL_INVALID_EVENT);
    CHECK_CL(clReleaseEvent(last), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(first), CL_SUCCESS);
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    for (int out_of_order = 0; out_of_order < 2; out_of_order++) {
        cl_command_queue queue =
            clCreateCommandQueue(setup.context, setup.device,
                                 out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &error);
        REQUIRE_CL(error);
        check_chain(&setup, queue, CL_COMPLETE);
        check_chain(&setup, queue, -5);
        CHECK_CL(clReleaseCommandQueue(queue), CL_SUCCESS);
    }
    check_finish(&setup);
    return check_result();
}
