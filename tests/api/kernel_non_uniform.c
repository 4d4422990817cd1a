/* Work-groups may differ in size for OpenCL C 2.0 and newer, unless the build forbids it. */
#include "check_program.h"

static const char source[] = "__kernel void k(__global int *p)\n"
                             "{\n"
                             "    p[get_global_id(0)] = get_local_size(0) * 1000 +\n"
                             "#if __OPENCL_C_VERSION__ >= 200\n"
                             "        get_enqueued_local_size(0);\n"
                             "#else\n"
                             "        get_local_size(0);\n"
                             "#endif\n"
                             "}\n";

static cl_int run(struct check_setup *setup, const char *options, size_t global, size_t local,
                  int *values)
{
    cl_program program = build(setup->context, source, options);
    cl_kernel kernel = get_kernel(program, "k");
    cl_mem buffer = int_buffer(setup->context, global);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    cl_int error =
        clEnqueueNDRangeKernel(setup->queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    CHECK_CL(clEnqueueReadBuffer(setup->queue, buffer, CL_TRUE, 0, global * sizeof(int), values, 0,
                                 NULL, NULL),
             CL_SUCCESS);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    return error;
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    int values[64];
    CHECK_CL(run(&setup, "", 10, 4, values), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(run(&setup, "-cl-std=CL1.2", 10, 4, values), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(run(&setup, "-cl-std=CL2.0 -cl-uniform-work-group-size", 10, 4, values),
             CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(run(&setup, "-cl-std=CL2.0 -cl-uniform-work-group-size", 12, 4, values), CL_SUCCESS);
    CHECK(values[11] == 4004);
    CHECK_CL(run(&setup, "-cl-std=CL2.0", 10, 4, values), CL_SUCCESS);
    for (int i = 0; i < 10; i++)
        CHECK(values[i] == (i < 8 ? 4004 : 2004));
    CHECK_CL(run(&setup, "-cl-std=CL3.0", 10, 64, values), CL_SUCCESS);
    for (int i = 0; i < 10; i++)
        CHECK(values[i] == 10064);
    check_finish(&setup);
    return check_result();
}
