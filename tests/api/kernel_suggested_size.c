/* The suggested local size is the one that a launch without a local size gets. */
#include "check_program.h"

typedef cl_int(CL_API_CALL *suggest_fn)(cl_command_queue, cl_kernel, cl_uint, const size_t *,
                                        const size_t *, size_t *);

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    suggest_fn suggest = (suggest_fn)clGetExtensionFunctionAddressForPlatform(
        setup.platform, "clGetKernelSuggestedLocalWorkSizeKHR");
    REQUIRE(suggest);
    cl_program program = build(setup.context,
                               "__kernel void k(__global int *p)\n"
                               "{ p[0] = get_local_size(0); p[1] = get_local_size(1);\n"
                               "  p[2] = get_local_size(2); }\n",
                               NULL);
    cl_kernel kernel = get_kernel(program, "k");
    cl_mem buffer = int_buffer(setup.context, 3);
    static const size_t globals[][3] = {{1, 1, 1},       {7, 1, 1},    {64, 1, 1},     {1000, 3, 1},
                                        {4096, 4096, 1}, {17, 19, 23}, {1000003, 1, 1}};
    size_t size[3] = {9, 9, 9}, zero = 0;
    CHECK_CL(suggest(setup.queue, kernel, 1, NULL, globals[0], size), CL_INVALID_KERNEL_ARGS);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    CHECK_CL(suggest(NULL, kernel, 1, NULL, globals[0], size), CL_INVALID_COMMAND_QUEUE);
    CHECK_CL(suggest(setup.queue, NULL, 1, NULL, globals[0], size), CL_INVALID_KERNEL);
    CHECK_CL(suggest(setup.queue, kernel, 4, NULL, globals[0], size), CL_INVALID_WORK_DIMENSION);
    CHECK_CL(suggest(setup.queue, kernel, 1, NULL, NULL, size), CL_INVALID_GLOBAL_WORK_SIZE);
    CHECK_CL(suggest(setup.queue, kernel, 1, NULL, &zero, size), CL_INVALID_GLOBAL_WORK_SIZE);
    CHECK_CL(suggest(setup.queue, kernel, 1, &(size_t){SIZE_MAX}, globals[0], size),
             CL_INVALID_GLOBAL_OFFSET);
    CHECK_CL(suggest(setup.queue, kernel, 1, NULL, globals[0], NULL), CL_INVALID_VALUE);
    CHECK(size[0] == 9);
    for (size_t i = 0; i < sizeof globals / sizeof globals[0]; i++) {
        CHECK_CL(suggest(setup.queue, kernel, 3, NULL, globals[i], size), CL_SUCCESS);
        CHECK_CL(
            clEnqueueNDRangeKernel(setup.queue, kernel, 3, NULL, globals[i], NULL, 0, NULL, NULL),
            CL_SUCCESS);
        for (size_t d = 0; d < 3; d++) {
            CHECK(globals[i][d] % size[d] == 0);
            CHECK(read_int(setup.queue, buffer, d) == (int)size[d]);
        }
    }
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    check_finish(&setup);
    return check_result();
}
