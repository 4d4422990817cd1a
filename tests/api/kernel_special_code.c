/* A kernel with barriers gives the same results for every local size, before and after code for
 * that very size is ready. */
#include "check_program.h"

#include <time.h>

#define ITEMS 960

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_program program = build(setup.context,
                               "__kernel void sum(__global int *p, __local int *t)\n"
                               "{\n"
                               "    int l = get_local_id(0), n = get_local_size(0), s = 0;\n"
                               "    t[l] = get_global_id(0);\n"
                               "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                               "    for (int i = 0; i < n; i++)\n"
                               "        s += t[(l + i) % n];\n"
                               "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                               "    p[get_global_id(0)] = s;\n"
                               "}\n",
                               NULL);
    cl_kernel kernel = get_kernel(program, "sum");
    cl_mem buffer = int_buffer(setup.context, ITEMS);
    static const size_t sizes[] = {1, 2, 3, 5, 8, 16, 32, 40, 64, 96, 120, 320};
    const size_t global = ITEMS;
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 1, 1024 * sizeof(int), NULL), CL_SUCCESS);
    for (int round = 0; round < 200; round++) {
        size_t local = sizes[(size_t)round % (sizeof sizes / sizeof sizes[0])];
        int values[ITEMS];
        CHECK_CL(
            clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL),
            CL_SUCCESS);
        CHECK_CL(clEnqueueReadBuffer(setup.queue, buffer, CL_TRUE, 0, sizeof values, values, 0,
                                     NULL, NULL),
                 CL_SUCCESS);
        for (size_t i = 0; i < ITEMS; i++) {
            size_t first = i / local * local;
            REQUIRE(values[i] == (int)(local * first + local * (local - 1) / 2));
        }
        struct timespec moment = {.tv_nsec = 3000000};
        nanosleep(&moment, NULL);
    }
    /* Let go while code may still be made. */
    for (size_t local = 480; local > 128; local /= 2)
        CHECK_CL(
            clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL),
            CL_SUCCESS);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    check_finish(&setup);
    return check_result();
}
