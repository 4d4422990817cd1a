/* What a kernel tells of itself on a device, and of its arguments. */
#include "check_program.h"

static const char source[] =
    "__attribute__((reqd_work_group_size(8, 2, 1)))\n"
    "__kernel void k(__global const int *restrict in, __constant float *table,\n"
    "                __local volatile uint4 *scratch, unsigned int n, __global int *const out)\n"
    "{\n"
    "    __local int own[100];\n"
    "    own[get_local_id(0)] = in[n];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    scratch[0].x = own[7 - get_local_id(0)];\n"
    "    out[get_global_id(0)] = scratch[0].x + (int)table[0];\n"
    "}\n"
    "__kernel void plain(__global int *p) { p[0] = 1; }\n";

static void check_arg(cl_kernel kernel, cl_uint index, cl_kernel_arg_address_qualifier address,
                      cl_kernel_arg_type_qualifier type_qualifier, const char *type,
                      const char *name)
{
    cl_kernel_arg_address_qualifier is_address = 0;
    cl_kernel_arg_access_qualifier access = 0;
    cl_kernel_arg_type_qualifier is_qualifier = 99;
    char text[64];
    CHECK_CL(clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof is_address,
                                &is_address, NULL),
             CL_SUCCESS);
    CHECK(is_address == address);
    CHECK_CL(clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof access,
                                &access, NULL),
             CL_SUCCESS);
    CHECK(access == CL_KERNEL_ARG_ACCESS_NONE);
    CHECK_CL(clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof is_qualifier,
                                &is_qualifier, NULL),
             CL_SUCCESS);
    CHECK(is_qualifier == type_qualifier);
    CHECK_CL(clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof text, text, NULL),
             CL_SUCCESS);
    CHECK(strcmp(text, type) == 0);
    CHECK_CL(clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_NAME, sizeof text, text, NULL),
             CL_SUCCESS);
    CHECK(strcmp(text, name) == 0);
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_program program = build(setup.context, source, "-cl-kernel-arg-info");
    cl_kernel kernel = get_kernel(program, "k"), plain = get_kernel(program, "plain");
    size_t size, sizes[3], max;
    cl_ulong bytes;
    char room[2];

    CHECK_CL(clGetDeviceInfo(setup.device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof max, &max, NULL),
             CL_SUCCESS);
    CHECK_CL(
        clGetKernelWorkGroupInfo(kernel, NULL, CL_KERNEL_WORK_GROUP_SIZE, sizeof size, &size, NULL),
        CL_SUCCESS);
    CHECK(size >= 16 && size <= max);
    CHECK_CL(clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                      sizeof sizes, sizes, NULL),
             CL_SUCCESS);
    CHECK(sizes[0] == 8 && sizes[1] == 2 && sizes[2] == 1);
    CHECK_CL(clGetKernelWorkGroupInfo(plain, setup.device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                      sizeof sizes, sizes, NULL),
             CL_SUCCESS);
    CHECK(sizes[0] == 0 && sizes[1] == 0 && sizes[2] == 0);
    CHECK_CL(clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes,
                                      &bytes, NULL),
             CL_SUCCESS);
    CHECK(bytes >= 400 && bytes < 1024);
    cl_ulong before = bytes;
    CHECK_CL(clSetKernelArg(kernel, 2, 1000, NULL), CL_SUCCESS);
    CHECK_CL(clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes,
                                      &bytes, NULL),
             CL_SUCCESS);
    CHECK(bytes >= before + 1000);
    CHECK_CL(clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_PRIVATE_MEM_SIZE,
                                      sizeof bytes, &bytes, NULL),
             CL_SUCCESS);
    CHECK_CL(clGetKernelWorkGroupInfo(kernel, setup.device,
                                      CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof size,
                                      &size, NULL),
             CL_SUCCESS);
    CHECK(size >= 1 && size <= max);

    CHECK_CL(
        clGetKernelWorkGroupInfo(NULL, setup.device, CL_KERNEL_WORK_GROUP_SIZE, 0, NULL, &size),
        CL_INVALID_KERNEL);
    CHECK_CL(clGetKernelWorkGroupInfo(kernel, (cl_device_id)setup.queue, CL_KERNEL_WORK_GROUP_SIZE,
                                      0, NULL, &size),
             CL_INVALID_DEVICE);
    CHECK_CL(clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_GLOBAL_WORK_SIZE,
                                      sizeof sizes, sizes, &size),
             CL_INVALID_VALUE);
    CHECK_CL(clGetKernelWorkGroupInfo(kernel, setup.device, 0x1, 0, NULL, &size), CL_INVALID_VALUE);
    CHECK_CL(
        clGetKernelWorkGroupInfo(kernel, setup.device, CL_KERNEL_WORK_GROUP_SIZE, 2, room, &size),
        CL_INVALID_VALUE);
    CHECK_CL(clGetKernelSubGroupInfo(NULL, setup.device, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, NULL, 0,
                                     NULL, &size),
             CL_INVALID_KERNEL);
    CHECK_CL(clGetKernelSubGroupInfo(kernel, (cl_device_id)setup.queue,
                                     CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, NULL, 0, NULL, &size),
             CL_INVALID_DEVICE);
    CHECK_CL(clGetKernelSubGroupInfo(kernel, setup.device, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, NULL, 0,
                                     NULL, &size),
             CL_INVALID_OPERATION);

    check_arg(kernel, 0, CL_KERNEL_ARG_ADDRESS_GLOBAL,
              CL_KERNEL_ARG_TYPE_CONST | CL_KERNEL_ARG_TYPE_RESTRICT, "int*", "in");
    check_arg(kernel, 1, CL_KERNEL_ARG_ADDRESS_CONSTANT, CL_KERNEL_ARG_TYPE_CONST, "float*",
              "table");
    check_arg(kernel, 2, CL_KERNEL_ARG_ADDRESS_LOCAL, CL_KERNEL_ARG_TYPE_VOLATILE, "uint4*",
              "scratch");
    check_arg(kernel, 3, CL_KERNEL_ARG_ADDRESS_PRIVATE, CL_KERNEL_ARG_TYPE_NONE, "uint", "n");
    check_arg(kernel, 4, CL_KERNEL_ARG_ADDRESS_GLOBAL, CL_KERNEL_ARG_TYPE_NONE, "int*", "out");
    CHECK_CL(clGetKernelArgInfo(NULL, 0, CL_KERNEL_ARG_NAME, 0, NULL, &size), CL_INVALID_KERNEL);
    CHECK_CL(clGetKernelArgInfo(kernel, 5, CL_KERNEL_ARG_NAME, 0, NULL, &size),
             CL_INVALID_ARG_INDEX);
    CHECK_CL(clGetKernelArgInfo(kernel, 0, 0x1, 0, NULL, &size), CL_INVALID_VALUE);
    CHECK_CL(clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_NAME, 2, room, &size), CL_INVALID_VALUE);
    clReleaseKernel(kernel);
    clReleaseKernel(plain);
    clReleaseProgram(program);

    program = build(setup.context, "__kernel void k(int a) {}", NULL);
    kernel = get_kernel(program, "k");
    CHECK_CL(clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_NAME, 0, NULL, &size),
             CL_KERNEL_ARG_INFO_NOT_AVAILABLE);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    check_finish(&setup);
    return check_result();
}
