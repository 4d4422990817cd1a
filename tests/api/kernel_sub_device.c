/* A program built for a device runs on its parts, each with a queue of its own, and counts as built
 * for them; one built for a part does not for the whole. */
#include "check_program.h"

static void check_build(cl_program program, cl_device_id device, cl_build_status expected)
{
    cl_build_status status;
    CHECK_CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status,
                                   NULL),
             CL_SUCCESS);
    CHECK(status == expected);
}

int main(void)
{
    cl_device_id device, parts[2], devices[3];
    cl_uint count = 0;
    cl_int error;
    REQUIRE_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    error = clCreateSubDevices(device, equally, 2, parts, &count);
    if (error == CL_INVALID_VALUE || error == CL_DEVICE_PARTITION_FAILED || count != 2)
        return 0; /* a machine with one processor, or with many */
    REQUIRE_CL(error);
    devices[0] = device;
    devices[1] = parts[0];
    devices[2] = parts[1];
    cl_context context = clCreateContext(NULL, 3, devices, NULL, NULL, &error);
    REQUIRE_CL(error);
    cl_program program = source_program(context, "__kernel void k(__global int *p) { p[0]++; }");
    CHECK_CL(clBuildProgram(program, 1, &parts[0], NULL, NULL, NULL), CL_SUCCESS);
    for (int i = 0; i < 3; i++)
        check_build(program, devices[i], i == 1 ? CL_BUILD_SUCCESS : CL_BUILD_NONE);
    cl_kernel kernel = get_kernel(program, "k");
    cl_mem buffer = int_buffer(context, 1);
    size_t one = 1;
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    for (int i = 0; i < 3; i++) {
        cl_command_queue queue = clCreateCommandQueue(context, devices[i], 0, &error);
        REQUIRE_CL(error);
        CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
                 i == 1 ? CL_SUCCESS : CL_INVALID_PROGRAM_EXECUTABLE);
        CHECK_CL(clFinish(queue), CL_SUCCESS);
        clReleaseCommandQueue(queue);
    }
    clReleaseKernel(kernel);
    clReleaseProgram(program);

    program = source_program(context, "__kernel void k(__global int *p) { p[0]++; }");
    CHECK_CL(clBuildProgram(program, 1, &device, NULL, NULL, NULL), CL_SUCCESS);
    kernel = get_kernel(program, "k");
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    for (int i = 0; i < 3; i++) {
        cl_command_queue queue = clCreateCommandQueue(context, devices[i], 0, &error);
        REQUIRE_CL(error);
        CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
                 CL_SUCCESS);
        CHECK(read_int(queue, buffer, 0) == 2 + i);
        clReleaseCommandQueue(queue);
    }
    for (int i = 0; i < 3; i++)
        check_build(program, devices[i], CL_BUILD_SUCCESS);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseContext(context);
    clReleaseDevice(parts[0]);
    clReleaseDevice(parts[1]);
    return check_result();
}
