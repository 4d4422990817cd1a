/* A kernel with more arguments than a device takes is not built for that device, which the build
 * log says in one sentence; for others it is. The GPU is the stand-in of
 * tests/unit/device/fake_cuda. */
#include "check_program.h"

/* Of the GPU: a pointer, and a struct with the rest. */
#define MOST 4216

static const char source[] =
    "#warning look here\n"
    "struct s { ulong words[WORDS]; };\n"
    "kernel void many(global ulong *out, struct s s) { *out = s.words[WORDS - 1]; }\n"
    "kernel void few(global ulong *out) { *out = 1; }\n";

static cl_context context;
static cl_device_id gpu, cpu;

static const char *log_of(cl_program program, cl_device_id device)
{
    static char log[4096];
    CHECK_CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL),
             CL_SUCCESS);
    return log;
}

static cl_build_status status_of_build(cl_program program, cl_device_id device)
{
    cl_build_status status = CL_BUILD_NONE;
    CHECK_CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status,
                                   NULL),
             CL_SUCCESS);
    return status;
}

static const char *options_for(size_t args_bytes)
{
    static char options[64];
    snprintf(options, sizeof options, "-cl-std=CL3.0 -DWORDS=%zu", (args_bytes - 8) / 8);
    return options;
}

static cl_program new_program(void)
{
    const char *text = source;
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    REQUIRE_CL(error);
    return program;
}

static void check_refused(cl_program program)
{
    const char *log = log_of(program, gpu);
    CHECK(status_of_build(program, gpu) == CL_BUILD_ERROR);
    CHECK(strstr(log, "warning: look here"));
    CHECK(strstr(log, "error: kernel 'many': its arguments take 4224 bytes, and this device takes "
                      "4216 at most; give it a pointer to the rest\n"));
}

static cl_ulong run_on(cl_device_id device, cl_kernel kernel, cl_int expected)
{
    cl_ulong result = 0, words[MOST / 8] = {0};
    cl_int error;
    size_t one = 1;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
    REQUIRE_CL(error);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof result, NULL, &error);
    REQUIRE_CL(error);
    words[MOST / 8 - 1] = 42;
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof words, words), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL), expected);
    if (!expected)
        CHECK_CL(
            clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof result, &result, 0, NULL, NULL),
            CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL(clReleaseCommandQueue(queue), CL_SUCCESS);
    return result;
}

static void devices_say_how_many(void)
{
    size_t most = 0;
    CHECK_CL(clGetDeviceInfo(gpu, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof most, &most, NULL),
             CL_SUCCESS);
    CHECK(most == MOST);
    CHECK_CL(clGetDeviceInfo(cpu, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof most, &most, NULL),
             CL_SUCCESS);
    CHECK(most >= 1024);
}

static void as_many_are_built(void)
{
    cl_program program = new_program();
    CHECK_CL(clBuildProgram(program, 0, NULL, options_for(MOST), NULL, NULL), CL_SUCCESS);
    CHECK(status_of_build(program, gpu) == CL_BUILD_SUCCESS);
    CHECK(!strstr(log_of(program, gpu), "error"));
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
}

static void more_are_built_for_others(void)
{
    cl_int error;
    cl_program program = new_program();
    CHECK_CL(clBuildProgram(program, 0, NULL, options_for(MOST + 8), NULL, NULL),
             CL_BUILD_PROGRAM_FAILURE);
    check_refused(program);
    CHECK(status_of_build(program, cpu) == CL_BUILD_SUCCESS);
    CHECK(!strstr(log_of(program, cpu), "error"));
    cl_kernel kernel = clCreateKernel(program, "many", &error);
    REQUIRE_CL(error);
    CHECK(run_on(cpu, kernel, CL_SUCCESS) == 42);
    run_on(gpu, kernel, CL_INVALID_PROGRAM_EXECUTABLE);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);

    /* Again, with fewer: the refusal is over. */
    CHECK_CL(clBuildProgram(program, 0, NULL, options_for(MOST), NULL, NULL), CL_SUCCESS);
    CHECK(status_of_build(program, gpu) == CL_BUILD_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
}

static void more_are_built_for_nobody(void)
{
    cl_int error = CL_SUCCESS;
    cl_program program = new_program();
    CHECK_CL(clBuildProgram(program, 1, &gpu, options_for(MOST + 8), NULL, NULL),
             CL_BUILD_PROGRAM_FAILURE);
    check_refused(program);
    CHECK(!clCreateKernel(program, "few", &error));
    CHECK_CL(error, CL_INVALID_PROGRAM_EXECUTABLE);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
}

static void more_are_compiled_and_not_linked(void)
{
    cl_int error = CL_SUCCESS;
    cl_program object = new_program();
    CHECK_CL(clCompileProgram(object, 0, NULL, options_for(MOST + 8), 0, NULL, NULL, NULL, NULL),
             CL_SUCCESS);
    cl_program program = clLinkProgram(context, 0, NULL, NULL, 1, &object, NULL, NULL, &error);
    CHECK_CL(error, CL_LINK_PROGRAM_FAILURE);
    REQUIRE(program);
    CHECK(status_of_build(program, gpu) == CL_BUILD_ERROR);
    CHECK(strstr(log_of(program, gpu), "error: kernel 'many'"));
    CHECK(status_of_build(program, cpu) == CL_BUILD_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(object), CL_SUCCESS);
}

int main(void)
{
    cl_int error;
    REQUIRE_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_GPU, 1, &gpu, NULL));
    REQUIRE_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_CPU, 1, &cpu, NULL));
    context = clCreateContext(NULL, 2, (cl_device_id[]){cpu, gpu}, NULL, NULL, &error);
    REQUIRE_CL(error);
    devices_say_how_many();
    as_many_are_built();
    more_are_built_for_others();
    more_are_built_for_nobody();
    more_are_compiled_and_not_linked();
    CHECK_CL(clReleaseContext(context), CL_SUCCESS);
    return check_result();
}
