/* clSVMAlloc: every kind of request that works, also above 4 GiB, and every one that gives NULL. */
#include "check.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_context context = setup.context;
    const cl_svm_mem_flags fine = CL_MEM_SVM_FINE_GRAIN_BUFFER;

    const cl_svm_mem_flags right[] = {
        0,
        CL_MEM_READ_WRITE,
        CL_MEM_READ_ONLY,
        CL_MEM_WRITE_ONLY,
        fine | CL_MEM_READ_WRITE,
        fine | CL_MEM_SVM_ATOMICS,
        fine | CL_MEM_SVM_ATOMICS | CL_MEM_READ_WRITE,
    };
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        char *p = clSVMAlloc(context, right[i], 1000, 0);
        CHECK(p && (uintptr_t)p % 128 == 0);
        memset(p, 1, 1000);
        clSVMFree(context, p);
    }
    const cl_svm_mem_flags wrong[] = {
        CL_MEM_SVM_ATOMICS,
        CL_MEM_READ_WRITE | CL_MEM_READ_ONLY,
        CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY,
        CL_MEM_USE_HOST_PTR,
        CL_MEM_COPY_HOST_PTR,
        CL_MEM_ALLOC_HOST_PTR,
        CL_MEM_HOST_NO_ACCESS,
        (cl_svm_mem_flags)1 << 33,
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(clSVMAlloc(context, wrong[i], 1000, 0) == NULL);
    for (cl_uint alignment = 1; alignment <= 4096; alignment *= 2) {
        void *p = clSVMAlloc(context, 0, 24, alignment);
        CHECK(p && (uintptr_t)p % alignment == 0);
        clSVMFree(context, p);
    }
    const cl_uint alignments[] = {3, 24, 127, 129, 0x80000000u, 0xffffffffu};
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++)
        CHECK(clSVMAlloc(context, 0, 1000, alignments[i]) == NULL);
    CHECK(clSVMAlloc(context, 0, 0, 0) == NULL);
    CHECK(clSVMAlloc(context, 0, SIZE_MAX, 0) == NULL);
    CHECK(clSVMAlloc((cl_context)setup.device, 0, 1000, 0) == NULL);
    cl_ulong max = 0;
    CHECK_CL(clGetDeviceInfo(setup.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof max, &max, NULL),
             CL_SUCCESS);
    CHECK(clSVMAlloc(context, 0, max + 1, 0) == NULL);

    /* More than 32 bits of size, as far as the device has it; only the ends are touched. */
    size_t large = ((size_t)4 << 30) + 12345;
    if (large <= max) {
        char *p = clSVMAlloc(context, 0, large, 0);
        CHECK(p != NULL);
        if (p) {
            p[0] = 1;
            p[large - 1] = 2;
            cl_uint pattern = 0x11223344, value = 0;
            CHECK_CL(clEnqueueSVMMemFill(setup.queue, p + ((size_t)4 << 30), &pattern, 4, 12344, 0,
                                         NULL, NULL),
                     CL_SUCCESS);
            CHECK_CL(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, &value, p + ((size_t)4 << 30) + 12340,
                                        4, 0, NULL, NULL),
                     CL_SUCCESS);
            CHECK(value == pattern && p[0] == 1 && p[large - 1] == 2);
            clSVMFree(context, p);
        }
    }

    /* Many at once do not overlap. */
    enum { MANY = 500 };
    static unsigned char *many[MANY];
    for (int i = 0; i < MANY; i++) {
        size_t size = 1 + (size_t)i * 37;
        many[i] = clSVMAlloc(context, 0, size, 0);
        REQUIRE(many[i] != NULL);
        memset(many[i], i, size);
    }
    for (int i = 0; i < MANY; i++) {
        size_t size = 1 + (size_t)i * 37;
        CHECK(many[i][0] == (unsigned char)i && many[i][size - 1] == (unsigned char)i);
        clSVMFree(context, many[i]);
    }

    /* Frees of what is not SVM do nothing. */
    int local = 0;
    clSVMFree(context, NULL);
    clSVMFree(context, &local);
    clSVMFree((cl_context)setup.queue, &local);
    cl_int error;
    cl_mem buffer = clCreateBuffer(context, 0, 64, NULL, &error);
    REQUIRE_CL(error);
    char *mapped = clEnqueueMapBuffer(setup.queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 64, 0, NULL,
                                      NULL, &error);
    REQUIRE_CL(error);
    clSVMFree(context, mapped);
    void *other = clSVMAlloc(context, 0, 64, 0);
    CHECK(other != mapped);
    clSVMFree(context, other);
    CHECK_CL(clEnqueueUnmapMemObject(setup.queue, buffer, mapped, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
