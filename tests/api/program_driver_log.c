/* What a GPU's driver says when it compiles the code is in the build log; code that it refuses
 * fails where it is enqueued, and the context's callback is told what it said. The driver is the
 * stand-in of tests/unit/device/fake_cuda, which goes by the kernels' names. */
#include "check_program.h"

static char told[4096];

static void CL_CALLBACK tell(const char *text, const void *info, size_t size, void *data)
{
    (void)info, (void)size, (void)data;
    snprintf(told, sizeof told, "%s", text);
}

static const char *log_of(cl_program program, cl_device_id device)
{
    static char log[4096];
    size_t size = 0;
    CHECK_CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size),
             CL_SUCCESS);
    CHECK_CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL),
             CL_SUCCESS);
    CHECK(size == strlen(log) + 1);
    return log;
}

int main(void)
{
    cl_device_id device;
    cl_int error;
    REQUIRE_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_GPU, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, tell, NULL, &error);
    REQUIRE_CL(error);
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
    REQUIRE_CL(error);

    /* Nothing, then behind what the build itself has to say. */
    cl_program program = build(context, "__kernel void k(__global int *p) { *p = 1; }", NULL);
    CHECK(!*log_of(program, device));
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    program = build(context,
                    "#warning look here\n"
                    "__kernel void advised(__global int *p) { *p = 1; }\n"
                    "__kernel void b(__global int *p) { *p = 2; }\n"
                    "__kernel void c(__global int *p) { *p = 3; }\n"
                    "__kernel void d_advised(__global int *p) { *p = 4; }\n",
                    NULL);
    const char *log = log_of(program, device);
    const char *first = strstr(log, "fake: this could be? better\n");
    const char *warning = strstr(log, "warning: look here");
    CHECK(warning && first && warning < first);
    /* Two kernels are one piece of code, so the last is in another one. */
    CHECK(first && strstr(first + 1, "fake: this could be? better\n"));
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);

    program = build(context, "__kernel void wrong(__global int *p) { *p = 1; }", NULL);
    log = log_of(program, device);
    CHECK(strstr(log, "The generated code of kernel wrong cannot be loaded on "));
    CHECK(strstr(log, "CUDA error 218):\nfake: this is wrong\n"));
    cl_kernel kernel = get_kernel(program, "wrong");
    cl_mem buffer = int_buffer(context, 1);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &(size_t){1}, NULL, 0, NULL, NULL),
             CL_OUT_OF_RESOURCES);
    CHECK(strstr(told, "fake: this is wrong\n"));

    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    CHECK_CL(clReleaseCommandQueue(queue), CL_SUCCESS);
    CHECK_CL(clReleaseContext(context), CL_SUCCESS);
    return check_result();
}
