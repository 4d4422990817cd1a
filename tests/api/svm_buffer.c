/* Buffers over SVM (CL_MEM_USE_HOST_PTR): both are the same bytes, the buffer says that it uses
 * SVM, and its size is held against the allocation's. */
#include "check.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    char *svm = clSVMAlloc(setup.context, 0, 4096, 0);
    REQUIRE(svm != NULL);
    CHECK_CL(
        clEnqueueSVMMap(setup.queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, svm, 4096, 0, NULL, NULL),
        CL_SUCCESS);
    memset(svm, 1, 4096);
    cl_mem whole = clCreateBuffer(setup.context, CL_MEM_USE_HOST_PTR, 4096, svm, &error);
    REQUIRE_CL(error);
    cl_mem inner = clCreateBuffer(setup.context, CL_MEM_USE_HOST_PTR, 1024, svm + 3072, &error);
    REQUIRE_CL(error);
    const cl_buffer_region region = {1024, 1024};
    cl_mem sub = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    REQUIRE_CL(error);
    cl_mem buffers[] = {whole, inner, sub};
    for (int i = 0; i < 3; i++) {
        cl_bool uses = CL_FALSE;
        CHECK_CL(clGetMemObjectInfo(buffers[i], CL_MEM_USES_SVM_POINTER, sizeof uses, &uses, NULL),
                 CL_SUCCESS);
        CHECK(uses == CL_TRUE);
    }
    cl_mem copied = clCreateBuffer(setup.context, CL_MEM_COPY_HOST_PTR, 4096, svm, &error);
    REQUIRE_CL(error);
    cl_bool uses = CL_TRUE;
    CHECK_CL(clGetMemObjectInfo(copied, CL_MEM_USES_SVM_POINTER, sizeof uses, &uses, NULL),
             CL_SUCCESS);
    CHECK(uses == CL_FALSE);
    CHECK_CL(clEnqueueSVMUnmap(setup.queue, svm, 0, NULL, NULL), CL_SUCCESS);

    cl_uint pattern = 0x0a0a0a0a;
    CHECK_CL(clEnqueueFillBuffer(setup.queue, inner, &pattern, 4, 0, 1024, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(
        clEnqueueSVMMap(setup.queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, svm, 4096, 0, NULL, NULL),
        CL_SUCCESS);
    CHECK(svm[3071] == 1 && svm[3072] == 10 && svm[4095] == 10);
    svm[1024] = 33;
    CHECK_CL(clEnqueueSVMUnmap(setup.queue, svm, 0, NULL, NULL), CL_SUCCESS);
    char *map =
        clEnqueueMapBuffer(setup.queue, sub, CL_TRUE, CL_MAP_READ, 0, 1, 0, NULL, NULL, &error);
    CHECK(map == svm + 1024 && *map == 33);
    CHECK_CL(clEnqueueUnmapMemObject(setup.queue, sub, map, 0, NULL, NULL), CL_SUCCESS);

    CHECK_CL_NULL(clCreateBuffer(setup.context, CL_MEM_USE_HOST_PTR, 4097, svm, &check_error),
                  CL_INVALID_BUFFER_SIZE);
    CHECK_CL_NULL(clCreateBuffer(setup.context, CL_MEM_COPY_HOST_PTR, 4097, svm, &check_error),
                  CL_INVALID_BUFFER_SIZE);
    CHECK_CL_NULL(
        clCreateBuffer(setup.context, CL_MEM_USE_HOST_PTR, 1025, svm + 3072, &check_error),
        CL_INVALID_BUFFER_SIZE);
    CHECK_CL(clReleaseMemObject(sub), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(copied), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(inner), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(whole), CL_SUCCESS);
    CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
    clSVMFree(setup.context, svm);
    check_finish(&setup);
    return check_result();
}
