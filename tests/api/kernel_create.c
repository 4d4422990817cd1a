/* Kernels are made by name or all at once, counted, described and copied. */
#include "check_program.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_program program = build(setup.context,
                               "__attribute__((reqd_work_group_size(2, 1, 1)))\n"
                               "__kernel void b(__global int *p, int v) { p[0] = v; }\n"
                               "__kernel void a(void) {}\n",
                               NULL);
    cl_kernel kernels[3] = {NULL, NULL, NULL}, kernel;
    cl_uint count = 99;
    char text[128];
    size_t size;
    cl_int error;

    CHECK_CL_NULL(clCreateKernel(NULL, "a", &check_error), CL_INVALID_PROGRAM);
    CHECK_CL_NULL(clCreateKernel((cl_program)setup.queue, "a", &check_error), CL_INVALID_PROGRAM);
    CHECK_CL_NULL(clCreateKernel(program, NULL, &check_error), CL_INVALID_VALUE);
    CHECK_CL_NULL(clCreateKernel(program, "c", &check_error), CL_INVALID_KERNEL_NAME);
    CHECK_CL_NULL(clCreateKernel(program, "", &check_error), CL_INVALID_KERNEL_NAME);

    CHECK_CL(clCreateKernelsInProgram(NULL, 0, NULL, &count), CL_INVALID_PROGRAM);
    CHECK_CL(clCreateKernelsInProgram(program, 1, kernels, &count), CL_INVALID_VALUE);
    CHECK(count == 99 && !kernels[0]);
    CHECK_CL(clCreateKernelsInProgram(program, 0, NULL, &count), CL_SUCCESS);
    CHECK(count == 2);
    CHECK_CL(clCreateKernelsInProgram(program, 3, kernels, &count), CL_SUCCESS);
    CHECK(count == 2 && kernels[0] && kernels[1] && !kernels[2]);
    for (cl_uint i = 0; i < 2; i++)
        CHECK_CL(clReleaseKernel(kernels[i]), CL_SUCCESS);

    kernel = get_kernel(program, "b");
    CHECK_CL(clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof text, text, &size),
             CL_SUCCESS);
    CHECK(strcmp(text, "b") == 0 && size == 2);
    CHECK_CL(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL), CL_SUCCESS);
    CHECK(count == 2);
    CHECK_CL(clGetKernelInfo(kernel, CL_KERNEL_ATTRIBUTES, sizeof text, text, NULL), CL_SUCCESS);
    if (strstr(text, "reqd_work_group_size(2,1,1)") == NULL &&
        strstr(text, "reqd_work_group_size(2, 1, 1)") == NULL)
        fprintf(stderr, "attributes: %s\n", text);
    CHECK(strstr(text, "reqd_work_group_size(2") != NULL);
    cl_program its_program;
    cl_context its_context;
    CHECK_CL(clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof its_program, &its_program, NULL),
             CL_SUCCESS);
    CHECK_CL(clGetKernelInfo(kernel, CL_KERNEL_CONTEXT, sizeof its_context, &its_context, NULL),
             CL_SUCCESS);
    CHECK(its_program == program && its_context == setup.context);
    CHECK_CL(clGetKernelInfo(NULL, CL_KERNEL_NUM_ARGS, 0, NULL, &size), CL_INVALID_KERNEL);
    CHECK_CL(clGetKernelInfo(kernel, 0x1, 0, NULL, &size), CL_INVALID_VALUE);
    CHECK_CL(clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, 1, text, &size), CL_INVALID_VALUE);
    CHECK_CL(clRetainKernel(NULL), CL_INVALID_KERNEL);
    CHECK_CL(clReleaseKernel((cl_kernel)program), CL_INVALID_KERNEL);
    CHECK_CL(clRetainKernel(kernel), CL_SUCCESS);
    CHECK_CL(clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof count, &count, NULL),
             CL_SUCCESS);
    CHECK(count == 2);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);

    /* A copy has the arguments, and from then on its own. */
    cl_mem buffer = int_buffer(setup.context, 1);
    int value = 5, other = 6;
    size_t two = 2;
    CHECK_CL_NULL(clCloneKernel(NULL, &check_error), CL_INVALID_KERNEL);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
    cl_kernel clone = clCloneKernel(kernel, &error);
    REQUIRE_CL(error);
    CHECK_CL(clGetKernelInfo(clone, CL_KERNEL_REFERENCE_COUNT, sizeof count, &count, NULL),
             CL_SUCCESS);
    CHECK(count == 1);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof other, &other), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, clone, 1, NULL, &two, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(read_int(setup.queue, buffer, 0) == 5);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &two, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(read_int(setup.queue, buffer, 0) == 6);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    /* The copy alone keeps the program. */
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, clone, 1, NULL, &two, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(read_int(setup.queue, buffer, 0) == 5);
    CHECK_CL(clReleaseKernel(clone), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
