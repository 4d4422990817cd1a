/* A launch without work-items succeeds: it waits for its events and ends. */
#include "check_program.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    cl_program program = build(setup.context, "__kernel void k(__global int *p) { p[0]++; }", NULL);
    cl_kernel kernel = get_kernel(program, "k");
    cl_mem buffer = int_buffer(setup.context, 1);
    const size_t sizes[3] = {4, 0, 4}, local[3] = {1, 1, 1};
    cl_event gate = clCreateUserEvent(setup.context, &error), event;
    REQUIRE_CL(error);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 2, NULL, NULL, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 3, NULL, sizes, local, 1, &gate, &event),
             CL_SUCCESS);
    CHECK(check_status(event) > CL_COMPLETE);
    cl_command_type type;
    CHECK_CL(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL), CL_SUCCESS);
    CHECK(type == CL_COMMAND_NDRANGE_KERNEL);
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    CHECK_CL(clWaitForEvents(1, &event), CL_SUCCESS);
    CHECK(check_status(event) == CL_COMPLETE);
    CHECK(read_int(setup.queue, buffer, 0) == 0);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 0, NULL, NULL, NULL, 0, NULL, NULL),
             CL_INVALID_WORK_DIMENSION);
    clReleaseEvent(event);
    clReleaseEvent(gate);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    check_finish(&setup);
    return check_result();
}
