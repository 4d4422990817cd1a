/* Profiling times are in order, on the device timer's scale, and only there where they were asked
 * for. */
#include "check.h"

int main(void)
{
    struct check_setup setup;
    check_setup_with(&setup, CL_QUEUE_PROFILING_ENABLE);
    cl_int error;
    enum { BYTES = 4 << 20 };
    cl_mem buffer = clCreateBuffer(setup.context, 0, BYTES, NULL, &error);
    REQUIRE_CL(error);
    cl_ulong before = 0, after = 0, host = 0;
    CHECK_CL(clGetDeviceAndHostTimer(setup.device, &before, &host), CL_SUCCESS);

    cl_event gate = clCreateUserEvent(setup.context, &error), events[3];
    REQUIRE_CL(error);
    cl_uint pattern = 3;
    REQUIRE_CL(
        clEnqueueFillBuffer(setup.queue, buffer, &pattern, 4, 0, BYTES, 1, &gate, &events[0]));
    REQUIRE_CL(clEnqueueMarkerWithWaitList(setup.queue, 0, NULL, &events[1]));
    REQUIRE(clEnqueueMapBuffer(setup.queue, buffer, CL_FALSE, CL_MAP_READ, 0, 4, 0, NULL,
                               &events[2], &error));
    cl_ulong time = 0;
    CHECK_CL(clGetEventProfilingInfo(events[0], CL_PROFILING_COMMAND_QUEUED, 8, &time, NULL),
             CL_PROFILING_INFO_NOT_AVAILABLE);
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    CHECK_CL(clWaitForEvents(3, events), CL_SUCCESS);
    CHECK_CL(clGetDeviceAndHostTimer(setup.device, &after, &host), CL_SUCCESS);

    const cl_profiling_info order[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                       CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END,
                                       CL_PROFILING_COMMAND_COMPLETE};
    for (int e = 0; e < 3; e++) {
        cl_ulong last = before;
        for (int i = 0; i < 5; i++) {
            size_t size = 0;
            CHECK_CL(clGetEventProfilingInfo(events[e], order[i], sizeof time, &time, &size),
                     CL_SUCCESS);
            CHECK(size == 8 && time >= last && time <= after);
            last = time;
        }
    }
    cl_ulong start = 0, end = 0;
    clGetEventProfilingInfo(events[0], CL_PROFILING_COMMAND_START, 8, &start, NULL);
    clGetEventProfilingInfo(events[0], CL_PROFILING_COMMAND_END, 8, &end, NULL);
    CHECK(end > start);
    CHECK_CL(clGetEventProfilingInfo(events[0], 0x1, 8, &time, NULL), CL_INVALID_VALUE);
    CHECK_CL(clGetEventProfilingInfo(events[0], CL_PROFILING_COMMAND_END, 4, &time, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clGetEventProfilingInfo(gate, CL_PROFILING_COMMAND_END, 8, &time, NULL),
             CL_PROFILING_INFO_NOT_AVAILABLE);
    for (int e = 0; e < 3; e++)
        CHECK_CL(clReleaseEvent(events[e]), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);

    cl_command_queue plain = clCreateCommandQueue(setup.context, setup.device, 0, &error);
    REQUIRE_CL(error);
    REQUIRE_CL(clEnqueueMarkerWithWaitList(plain, 0, NULL, &events[0]));
    CHECK_CL(clWaitForEvents(1, events), CL_SUCCESS);
    CHECK_CL(clGetEventProfilingInfo(events[0], CL_PROFILING_COMMAND_END, 8, &time, NULL),
             CL_PROFILING_INFO_NOT_AVAILABLE);
    CHECK_CL(clReleaseEvent(events[0]), CL_SUCCESS);
    CHECK_CL(clReleaseCommandQueue(plain), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
