/* The extension cl_samepage_svm_info: what is known of a pointer. */
#include "check.h"

#include <CL/cl_ext_samepage.h>

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    clGetSVMPointerInfoSAMEPAGE_fn info =
        (clGetSVMPointerInfoSAMEPAGE_fn)clGetExtensionFunctionAddressForPlatform(
            setup.platform, "clGetSVMPointerInfoSAMEPAGE");
    REQUIRE(info != NULL);
    CHECK(clGetExtensionFunctionAddressForPlatform(setup.platform, "clNoSuchFunction") == NULL);
    char extensions[4096];
    CHECK_CL(
        clGetDeviceInfo(setup.device, CL_DEVICE_EXTENSIONS, sizeof extensions, extensions, NULL),
        CL_SUCCESS);
    CHECK(strstr(extensions, CL_SAMEPAGE_SVM_INFO_EXTENSION_NAME));

    const cl_svm_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
    char *svm = clSVMAlloc(setup.context, flags, 1000, 0);
    REQUIRE(svm != NULL);
    const size_t offsets[] = {0, 1, 999};
    for (int i = 0; i < 3; i++) {
        void *base = NULL;
        size_t size = 0;
        cl_svm_mem_flags found = 0;
        cl_svm_path_samepage path = 0;
        char *p = svm + offsets[i];
        CHECK_CL(info(setup.context, p, CL_SVM_POINTER_BASE_SAMEPAGE, sizeof base, &base, NULL),
                 CL_SUCCESS);
        CHECK_CL(info(setup.context, p, CL_SVM_POINTER_SIZE_SAMEPAGE, sizeof size, &size, NULL),
                 CL_SUCCESS);
        CHECK_CL(info(setup.context, p, CL_SVM_POINTER_FLAGS_SAMEPAGE, sizeof found, &found, NULL),
                 CL_SUCCESS);
        CHECK_CL(info(setup.context, p, CL_SVM_POINTER_PATH_SAMEPAGE, sizeof path, &path, NULL),
                 CL_SUCCESS);
        CHECK(base == svm && size == 1000 && found == flags && path == CL_SVM_PATH_HOME_SAMEPAGE);
    }
    cl_svm_path_samepage path = 0;
    size_t size = 0;
    int local;
    CHECK_CL(info(setup.context, &local, CL_SVM_POINTER_PATH_SAMEPAGE, sizeof path, &path, &size),
             CL_SUCCESS);
    CHECK(path == CL_SVM_PATH_SYSTEM_SAMEPAGE && size == sizeof path);
    CHECK_CL(info(setup.context, &local, CL_SVM_POINTER_SIZE_SAMEPAGE, sizeof size, &size, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(info(setup.context, svm, CL_SVM_POINTER_SIZE_SAMEPAGE, 2, &size, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(info(setup.context, svm, 1, sizeof size, &size, NULL), CL_INVALID_VALUE);
    CHECK_CL(info(setup.context, NULL, CL_SVM_POINTER_PATH_SAMEPAGE, sizeof path, &path, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(
        info((cl_context)setup.device, svm, CL_SVM_POINTER_PATH_SAMEPAGE, sizeof path, &path, NULL),
        CL_INVALID_CONTEXT);
    clSVMFree(setup.context, svm);
    CHECK_CL(info(setup.context, svm, CL_SVM_POINTER_SIZE_SAMEPAGE, sizeof size, &size, NULL),
             CL_INVALID_VALUE);
    check_finish(&setup);
    return check_result();
}
