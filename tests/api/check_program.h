/* What tests of programs and kernels share, beside check.h. */
#ifndef CHECK_PROGRAM_H
#define CHECK_PROGRAM_H

#include "check.h"

/* Prints the build log of the program's first device. */
__attribute__((unused)) static void print_log(cl_program program)
{
    cl_device_id device;
    char log[16384] = "";
    clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof device, &device, NULL);
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    fprintf(stderr, "build log: %s\n", log);
}

/* A program of one source, not built. */
__attribute__((unused)) static cl_program source_program(cl_context context, const char *source)
{
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    REQUIRE_CL(error);
    return program;
}

/* A built program; ends the test with the log where it does not build. */
__attribute__((unused)) static cl_program build(cl_context context, const char *source,
                                                const char *options)
{
    cl_program program = source_program(context, source);
    cl_int error = clBuildProgram(program, 0, NULL, options, NULL, NULL);
    if (error)
        print_log(program);
    REQUIRE_CL(error);
    return program;
}

__attribute__((unused)) static cl_kernel get_kernel(cl_program program, const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    REQUIRE_CL(error);
    return kernel;
}

/* A buffer with `count` ints, all 0. */
__attribute__((unused)) static cl_mem int_buffer(cl_context context, size_t count)
{
    cl_int error;
    int *zeros = calloc(count, sizeof(int));
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                   count * sizeof(int), zeros, &error);
    free(zeros);
    REQUIRE_CL(error);
    return buffer;
}

/* One int of a buffer, after all that is in the queue. */
__attribute__((unused)) static int read_int(cl_command_queue queue, cl_mem buffer, size_t index)
{
    int value = -1;
    REQUIRE_CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, index * sizeof(int), sizeof(int), &value,
                                   0, NULL, NULL));
    return value;
}

/* Runs a kernel whose only argument is an int buffer, with one work-item, and gives the buffer's
 * first int. */
__attribute__((unused)) static int run_for_int(struct check_setup *setup, cl_program program,
                                               const char *name)
{
    cl_kernel kernel = get_kernel(program, name);
    cl_mem buffer = int_buffer(setup->context, 1);
    size_t one = 1;
    REQUIRE_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    REQUIRE_CL(clEnqueueNDRangeKernel(setup->queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
    int value = read_int(setup->queue, buffer, 0);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    return value;
}

#endif
