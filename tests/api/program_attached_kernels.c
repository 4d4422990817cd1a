/* A program with kernels cannot be built anew; once they are released it can, even while a command
 * of them waits to run. */
#include "check_program.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    cl_program program =
        build(setup.context, "__kernel void k(__global int *p) { p[0] = VALUE; }", "-DVALUE=1");
    cl_kernel kernel = get_kernel(program, "k"), clone = clCloneKernel(kernel, &error);
    REQUIRE_CL(error);
    CHECK_CL(clBuildProgram(program, 0, NULL, "-DVALUE=2", NULL, NULL), CL_INVALID_OPERATION);
    CHECK_CL(clCompileProgram(program, 0, NULL, "-DVALUE=2", 0, NULL, NULL, NULL, NULL),
             CL_INVALID_OPERATION);
    CHECK_CL(clReleaseKernel(clone), CL_SUCCESS);
    CHECK_CL(clBuildProgram(program, 0, NULL, "-DVALUE=2", NULL, NULL), CL_INVALID_OPERATION);

    /* The command waits for an event; all it needs but the event is let go. */
    cl_event gate = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    cl_mem buffer = int_buffer(setup.context, 1), unread = int_buffer(setup.context, 1);
    size_t one = 1;
    cl_event done;
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 1, &gate, NULL),
             CL_SUCCESS);
    int value = 0;
    CHECK_CL(
        clEnqueueReadBuffer(setup.queue, buffer, CL_FALSE, 0, sizeof value, &value, 0, NULL, &done),
        CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof unread, &unread), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    CHECK_CL(clBuildProgram(program, 0, NULL, "-DVALUE=2", NULL, NULL), CL_SUCCESS);
    struct check_setup other = setup;
    other.queue = clCreateCommandQueue(setup.context, setup.device, 0, &error);
    REQUIRE_CL(error);
    CHECK(run_for_int(&other, program, "k") == 2);
    CHECK_CL(clReleaseCommandQueue(other.queue), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    CHECK_CL(clWaitForEvents(1, &done), CL_SUCCESS);
    CHECK(value == 1);
    CHECK_CL(clReleaseEvent(done), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(unread), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
