/* SVM pointers as arguments (inside a region, NULL, system memory), and the execution info of a
 * kernel. */
#include "check_program.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_program program =
        build(setup.context,
              "__kernel void k(__global int *p, __global int *__global *q, int v, __local int *l)\n"
              "{ p[0] = v; if (q) q[0][1] = v + 1; }\n",
              "-cl-std=CL2.0");
    cl_kernel kernel = get_kernel(program, "k");
    size_t one = 1;
    int value = 3;
    int *region =
        clSVMAlloc(setup.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, 4096, 0);
    REQUIRE(region);
    int host[4] = {0, 0, 0, 0};
    int *indirect = host;

    CHECK_CL(clSetKernelArgSVMPointer(NULL, 0, region), CL_INVALID_KERNEL);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 4, region), CL_INVALID_ARG_INDEX);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 2, region), CL_INVALID_ARG_VALUE);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 3, region), CL_INVALID_ARG_VALUE);

    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, region + 100), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 1, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 2, sizeof value, &value), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 3, 4, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
    CHECK(region[100] == 3);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, &host[3]), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 1, &indirect), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
    CHECK(host[3] == 3 && host[1] == 4);

    void *pointers[2] = {region, host};
    cl_bool yes = CL_TRUE, no = CL_FALSE;
    CHECK_CL(clSetKernelExecInfo(NULL, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof pointers, pointers),
             CL_INVALID_KERNEL);
    CHECK_CL(clSetKernelExecInfo(kernel, 0x1, sizeof pointers, pointers), CL_INVALID_VALUE);
    CHECK_CL(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof pointers, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 9, pointers),
             CL_INVALID_VALUE);
    CHECK_CL(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof pointers, pointers),
             CL_SUCCESS);
    CHECK_CL(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(void *), pointers),
             CL_SUCCESS);
    CHECK_CL(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, 1, &yes),
             CL_INVALID_VALUE);
    CHECK_CL(
        clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof yes, NULL),
        CL_INVALID_VALUE);
    CHECK_CL(
        clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof yes, &yes),
        CL_SUCCESS);
    CHECK_CL(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof no, &no),
             CL_SUCCESS);

    clSVMFree(setup.context, region);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
