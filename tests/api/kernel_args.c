/* Every kind of argument reaches the kernel; every wrong one gets its error and changes nothing. */
#include "check_program.h"

static const char source[] =
    "struct pair { char tag; long value; };\n"
    "__kernel void k(__global int *out, char c, float3 v, struct pair s, __constant int *table,\n"
    "                __local int *scratch, __global int *maybe, double d)\n"
    "{\n"
    "    scratch[0] = c;\n"
    "    out[0] = scratch[0];\n"
    "    out[1] = (int)(v.x + 10 * v.y + 100 * v.z);\n"
    "    out[2] = (int)(s.tag + s.value);\n"
    "    out[3] = table[1];\n"
    "    out[4] = maybe ? maybe[0] : -1;\n"
    "    out[5] = (int)(d * 2);\n"
    "}\n";

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    cl_program program = build(setup.context, source, "");
    cl_kernel kernel = get_kernel(program, "k");
    cl_mem out = int_buffer(setup.context, 6), none = NULL, filled = NULL;
    int constants[2] = {3, 77};
    cl_mem table = clCreateBuffer(setup.context, CL_MEM_COPY_HOST_PTR | CL_MEM_READ_ONLY,
                                  sizeof constants, constants, &error);
    REQUIRE_CL(error);
    struct {
        char tag;
        cl_long value;
    } pair = {1, 200};
    cl_char c = 9;
    cl_float3 v = {{1, 2, 3}};
    cl_double d = 1.5;
    size_t one = 1;

    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
             CL_INVALID_KERNEL_ARGS);

    CHECK_CL(clSetKernelArg(NULL, 0, sizeof out, &out), CL_INVALID_KERNEL);
    CHECK_CL(clSetKernelArg((cl_kernel)program, 0, sizeof out, &out), CL_INVALID_KERNEL);
    CHECK_CL(clSetKernelArg(kernel, 8, sizeof out, &out), CL_INVALID_ARG_INDEX);
    CHECK_CL(clSetKernelArg(kernel, ~0u, sizeof out, &out), CL_INVALID_ARG_INDEX);
    CHECK_CL(clSetKernelArg(kernel, 0, 4, &out), CL_INVALID_ARG_SIZE);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof program, &program), CL_INVALID_MEM_OBJECT);
    CHECK_CL(clSetKernelArg(kernel, 1, 2, &c), CL_INVALID_ARG_SIZE);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof c, NULL), CL_INVALID_ARG_VALUE);
    CHECK_CL(clSetKernelArg(kernel, 2, 12, &v), CL_INVALID_ARG_SIZE);
    CHECK_CL(clSetKernelArg(kernel, 5, 0, NULL), CL_INVALID_ARG_SIZE);
    CHECK_CL(clSetKernelArg(kernel, 5, 16, &c), CL_INVALID_ARG_VALUE);
    cl_context other = clCreateContext(NULL, 1, &setup.device, NULL, NULL, &error);
    REQUIRE_CL(error);
    cl_mem foreign = int_buffer(other, 1);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof foreign, &foreign), CL_INVALID_CONTEXT);
    clReleaseMemObject(foreign);
    clReleaseContext(other);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
             CL_INVALID_KERNEL_ARGS);

    CHECK_CL(clSetKernelArg(kernel, 0, sizeof out, &out), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof c, &c), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 2, sizeof v, &v), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 3, sizeof pair, &pair), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 4, sizeof table, &table), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 5, 16, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 6, sizeof none, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
             CL_INVALID_KERNEL_ARGS);
    CHECK_CL(clSetKernelArg(kernel, 7, sizeof d, &d), CL_SUCCESS);

    static const int expected[6] = {9, 321, 201, 77, -1, 3};
    for (int round = 0; round < 3; round++) {
        CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
                 CL_SUCCESS);
        for (size_t i = 0; i < 6; i++)
            CHECK(read_int(setup.queue, out, i) == (i == 4 && round == 2 ? 77 : expected[i]));
        /* NULL by handle; then a buffer. */
        cl_mem maybe = filled;
        if (round == 1) {
            cl_buffer_region second = {.origin = 0, .size = sizeof(int)};
            cl_mem part = clCreateSubBuffer(out, 0, CL_BUFFER_CREATE_TYPE_REGION, &second, &error);
            REQUIRE_CL(error);
            CHECK_CL(clEnqueueFillBuffer(setup.queue, part, &constants[1], sizeof(int), 0,
                                         sizeof(int), 0, NULL, NULL),
                     CL_SUCCESS);
            CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
            clReleaseMemObject(part);
            maybe = int_buffer(setup.context, 1);
            CHECK_CL(clEnqueueFillBuffer(setup.queue, maybe, &constants[1], sizeof(int), 0,
                                         sizeof(int), 0, NULL, NULL),
                     CL_SUCCESS);
        }
        CHECK_CL(clSetKernelArg(kernel, 6, sizeof maybe, &maybe), CL_SUCCESS);
        /* A call that fails leaves the value. */
        CHECK_CL(clSetKernelArg(kernel, 6, 1, &out), CL_INVALID_ARG_SIZE);
        filled = maybe;
    }

    CHECK_CL(clReleaseMemObject(filled), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(out), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(table), CL_SUCCESS);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
