/* Buffers: every combination of flags that is right or wrong, host pointers, and what a buffer
 * reports. */
#include "check.h"

static struct check_setup setup;

static cl_int create(cl_mem_flags flags, size_t size, void *host)
{
    cl_int error = 12345;
    cl_mem buffer = clCreateBuffer(setup.context, flags, size, host, &error);
    CHECK((buffer != NULL) == (error == CL_SUCCESS));
    if (buffer)
        clReleaseMemObject(buffer);
    return error;
}

static uint64_t number(cl_mem buffer, cl_mem_info param)
{
    uint64_t value = 0;
    CHECK_CL(clGetMemObjectInfo(buffer, param, sizeof value, &value, NULL), CL_SUCCESS);
    return value;
}

int main(void)
{
    check_setup(&setup);
    static char host[4096];
    const cl_mem_flags right[] = {
        0,
        CL_MEM_READ_WRITE,
        CL_MEM_READ_ONLY,
        CL_MEM_WRITE_ONLY,
        CL_MEM_ALLOC_HOST_PTR,
        CL_MEM_HOST_READ_ONLY,
        CL_MEM_HOST_WRITE_ONLY,
        CL_MEM_HOST_NO_ACCESS,
        CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_ALLOC_HOST_PTR,
    };
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        CHECK_CL(create(right[i], 64, NULL), CL_SUCCESS);
    const cl_mem_flags wrong[] = {
        CL_MEM_READ_WRITE | CL_MEM_READ_ONLY,
        CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
        CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS,
        CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY,
        1 << 6,
        (cl_mem_flags)1 << 40,
        CL_MEM_SVM_FINE_GRAIN_BUFFER,
        CL_MEM_KERNEL_READ_AND_WRITE,
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_CL(create(wrong[i], 64, NULL), CL_INVALID_VALUE);
    CHECK_CL(create(CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, 64, host), CL_INVALID_VALUE);
    CHECK_CL(create(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, 64, host), CL_INVALID_VALUE);
    CHECK_CL(create(CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, 64, host), CL_SUCCESS);
    CHECK_CL(create(CL_MEM_USE_HOST_PTR, 64, NULL), CL_INVALID_HOST_PTR);
    CHECK_CL(create(CL_MEM_COPY_HOST_PTR, 64, NULL), CL_INVALID_HOST_PTR);
    CHECK_CL(create(0, 64, host), CL_INVALID_HOST_PTR);
    CHECK_CL(create(0, 0, NULL), CL_INVALID_BUFFER_SIZE);
    CHECK_CL(create(0, SIZE_MAX, NULL), CL_INVALID_BUFFER_SIZE);

    cl_int error;
    const cl_mem_properties none[] = {0}, unknown[] = {0x4444, 1, 0};
    cl_mem buffer = clCreateBufferWithProperties(setup.context, none, 0, 64, NULL, &error);
    REQUIRE_CL(error);
    size_t size = 0;
    CHECK_CL(clGetMemObjectInfo(buffer, CL_MEM_PROPERTIES, 0, NULL, &size), CL_SUCCESS);
    CHECK(size == sizeof none);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL_NULL(clCreateBufferWithProperties(setup.context, unknown, 0, 64, NULL, &check_error),
                  CL_INVALID_PROPERTY);

    /* Copied at once; used in place. */
    memset(host, 1, sizeof host);
    cl_mem copied = clCreateBuffer(setup.context, CL_MEM_COPY_HOST_PTR, 4096, host, &error);
    REQUIRE_CL(error);
    cl_mem used = clCreateBuffer(setup.context, CL_MEM_USE_HOST_PTR, 4096, host, &error);
    REQUIRE_CL(error);
    memset(host, 2, sizeof host);
    char byte = 0;
    CHECK_CL(clEnqueueReadBuffer(setup.queue, copied, CL_TRUE, 77, 1, &byte, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(byte == 1);
    byte = 9;
    CHECK_CL(clEnqueueWriteBuffer(setup.queue, used, CL_TRUE, 77, 1, &byte, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(host[77] == 9);
    void *map =
        clEnqueueMapBuffer(setup.queue, used, CL_TRUE, CL_MAP_READ, 16, 16, 0, NULL, NULL, &error);
    CHECK_CL(error, CL_SUCCESS);
    CHECK(map == host + 16);
    CHECK_CL(clEnqueueUnmapMemObject(setup.queue, used, map, 0, NULL, NULL), CL_SUCCESS);

    CHECK(number(used, CL_MEM_TYPE) == CL_MEM_OBJECT_BUFFER);
    CHECK(number(used, CL_MEM_FLAGS) == CL_MEM_USE_HOST_PTR);
    CHECK(number(used, CL_MEM_SIZE) == 4096);
    CHECK(number(used, CL_MEM_HOST_PTR) == (uintptr_t)host);
    CHECK(number(copied, CL_MEM_HOST_PTR) == 0);
    CHECK(number(used, CL_MEM_REFERENCE_COUNT) == 1);
    CHECK(number(used, CL_MEM_CONTEXT) == (uintptr_t)setup.context);
    CHECK(number(used, CL_MEM_ASSOCIATED_MEMOBJECT) == 0);
    CHECK(number(used, CL_MEM_OFFSET) == 0);
    CHECK(number(used, CL_MEM_USES_SVM_POINTER) == CL_FALSE);
    CHECK_CL(clGetMemObjectInfo(used, 0x1, sizeof size, &size, NULL), CL_INVALID_VALUE);
    CHECK_CL(clGetMemObjectInfo(used, CL_MEM_SIZE, 1, &size, NULL), CL_INVALID_VALUE);
    CHECK_CL(clReleaseMemObject(copied), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(used), CL_SUCCESS);

    /* What the host may not do. */
    cl_mem no_access = clCreateBuffer(setup.context, CL_MEM_HOST_NO_ACCESS, 64, NULL, &error);
    cl_mem read_only = clCreateBuffer(setup.context, CL_MEM_HOST_READ_ONLY, 64, NULL, &error);
    cl_mem write_only = clCreateBuffer(setup.context, CL_MEM_HOST_WRITE_ONLY, 64, NULL, &error);
    REQUIRE(no_access && read_only && write_only);
    struct {
        cl_mem buffer;
        cl_int read, write;
    } cases[] = {
        {no_access, CL_INVALID_OPERATION, CL_INVALID_OPERATION},
        {read_only, CL_SUCCESS, CL_INVALID_OPERATION},
        {write_only, CL_INVALID_OPERATION, CL_SUCCESS},
    };
    const size_t origin[3] = {0}, region[3] = {8, 1, 1};
    for (int i = 0; i < 3; i++) {
        cl_mem b = cases[i].buffer;
        CHECK_CL(clEnqueueReadBuffer(setup.queue, b, CL_TRUE, 0, 8, host, 0, NULL, NULL),
                 cases[i].read);
        CHECK_CL(clEnqueueWriteBuffer(setup.queue, b, CL_TRUE, 0, 8, host, 0, NULL, NULL),
                 cases[i].write);
        CHECK_CL(clEnqueueReadBufferRect(setup.queue, b, CL_TRUE, origin, origin, region, 0, 0, 0,
                                         0, host, 0, NULL, NULL),
                 cases[i].read);
        CHECK_CL(clEnqueueWriteBufferRect(setup.queue, b, CL_TRUE, origin, origin, region, 0, 0, 0,
                                          0, host, 0, NULL, NULL),
                 cases[i].write);
        const cl_map_flags flags[] = {CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION};
        for (int k = 0; k < 3; k++) {
            map =
                clEnqueueMapBuffer(setup.queue, b, CL_TRUE, flags[k], 0, 8, 0, NULL, NULL, &error);
            CHECK_CL(error, k == 0 ? cases[i].read : cases[i].write);
            if (map)
                CHECK_CL(clEnqueueUnmapMemObject(setup.queue, b, map, 0, NULL, NULL), CL_SUCCESS);
        }
        CHECK_CL(clReleaseMemObject(b), CL_SUCCESS);
    }
    check_finish(&setup);
    return check_result();
}
