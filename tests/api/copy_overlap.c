/* Copies that overlap are refused, those that touch are not. */
#include "check.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    cl_mem buffer = clCreateBuffer(setup.context, 0, 4096, NULL, &error);
    REQUIRE_CL(error);
    const struct {
        size_t src, dst, size;
        cl_int result;
    } cases[] = {
        {0, 100, 100, CL_SUCCESS},          {100, 0, 100, CL_SUCCESS},
        {0, 99, 100, CL_MEM_COPY_OVERLAP},  {99, 0, 100, CL_MEM_COPY_OVERLAP},
        {50, 50, 100, CL_MEM_COPY_OVERLAP}, {50, 50, 0, CL_SUCCESS},
        {0, 4096, 0, CL_SUCCESS},           {0, 4097, 0, CL_INVALID_VALUE},
        {0, 4000, 97, CL_INVALID_VALUE},    {4000, 0, 97, CL_INVALID_VALUE},
        {SIZE_MAX, 0, 2, CL_INVALID_VALUE}, {0, SIZE_MAX - 1, 2, CL_INVALID_VALUE},
        {0, 1, SIZE_MAX, CL_INVALID_VALUE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_CL(clEnqueueCopyBuffer(setup.queue, buffer, buffer, cases[i].src, cases[i].dst,
                                     cases[i].size, 0, NULL, NULL),
                 cases[i].result);

    char *svm = clSVMAlloc(setup.context, CL_MEM_READ_WRITE, 4096, 0);
    REQUIRE(svm != NULL);
    CHECK_CL(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, svm, svm + 64, 64, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, svm, svm + 63, 64, 0, NULL, NULL),
             CL_MEM_COPY_OVERLAP);
    CHECK_CL(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, svm + 63, svm, 64, 0, NULL, NULL),
             CL_MEM_COPY_OVERLAP);
    CHECK_CL(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, svm, svm, 64, 0, NULL, NULL),
             CL_MEM_COPY_OVERLAP);
    CHECK_CL(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, svm, svm, 0, 0, NULL, NULL), CL_SUCCESS);
    clSVMFree(setup.context, svm);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
