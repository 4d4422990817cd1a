/* Sub-buffers share their parent's bytes and keep it alive; flags are inherited and only narrowed;
 * every error. */
#include "check.h"

static struct check_setup setup;

static cl_mem create(cl_mem parent, cl_mem_flags flags, size_t origin, size_t size, cl_int *error)
{
    const cl_buffer_region region = {origin, size};
    return clCreateSubBuffer(parent, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, error);
}

static cl_int flags_error(cl_mem_flags parent_flags, cl_mem_flags flags)
{
    cl_int error;
    cl_mem parent = clCreateBuffer(setup.context, parent_flags, 1024, NULL, &error);
    REQUIRE_CL(error);
    cl_mem sub = create(parent, flags, 0, 64, &error);
    CHECK((sub != NULL) == (error == CL_SUCCESS));
    if (sub)
        CHECK_CL(clReleaseMemObject(sub), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(parent), CL_SUCCESS);
    return error;
}

static void CL_CALLBACK destroyed(cl_mem buffer, void *data)
{
    (void)buffer;
    *(int *)data = 1;
}

int main(void)
{
    check_setup(&setup);
    static char host[4096];
    int is_destroyed = 0;
    cl_int error;
    cl_mem parent =
        clCreateBuffer(setup.context, CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY, 4096, host, &error);
    REQUIRE_CL(error);
    CHECK_CL(clSetMemObjectDestructorCallback(parent, destroyed, &is_destroyed), CL_SUCCESS);
    cl_mem sub = create(parent, CL_MEM_HOST_READ_ONLY, 1024, 512, &error);
    REQUIRE_CL(error);

    cl_mem associated = NULL;
    size_t offset = 0, size = 0;
    cl_mem_flags flags = 0;
    void *host_ptr = NULL;
    CHECK_CL(
        clGetMemObjectInfo(sub, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof associated, &associated, NULL),
        CL_SUCCESS);
    CHECK_CL(clGetMemObjectInfo(sub, CL_MEM_OFFSET, sizeof offset, &offset, NULL), CL_SUCCESS);
    CHECK_CL(clGetMemObjectInfo(sub, CL_MEM_SIZE, sizeof size, &size, NULL), CL_SUCCESS);
    CHECK_CL(clGetMemObjectInfo(sub, CL_MEM_FLAGS, sizeof flags, &flags, NULL), CL_SUCCESS);
    CHECK_CL(clGetMemObjectInfo(sub, CL_MEM_HOST_PTR, sizeof host_ptr, &host_ptr, NULL),
             CL_SUCCESS);
    CHECK(associated == parent && offset == 1024 && size == 512);
    CHECK(flags == (CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY | CL_MEM_HOST_READ_ONLY));
    CHECK(host_ptr == host + 1024);

    CHECK_CL_NULL(create(sub, 0, 0, 64, &check_error), CL_INVALID_MEM_OBJECT);
    CHECK_CL_NULL(create(NULL, 0, 0, 64, &check_error), CL_INVALID_MEM_OBJECT);
    CHECK_CL_NULL(create(parent, 0, 64, 64, &check_error), CL_MISALIGNED_SUB_BUFFER_OFFSET);
    CHECK_CL_NULL(create(parent, 0, 4096, 128, &check_error), CL_INVALID_VALUE);
    CHECK_CL_NULL(create(parent, 0, 128, SIZE_MAX - 64, &check_error), CL_INVALID_VALUE);
    CHECK_CL_NULL(create(parent, 0, 128, 0, &check_error), CL_INVALID_BUFFER_SIZE);
    CHECK_CL_NULL(create(parent, CL_MEM_ALLOC_HOST_PTR, 0, 64, &check_error), CL_INVALID_VALUE);
    CHECK_CL_NULL(clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, &check_error),
                  CL_INVALID_VALUE);
    const cl_buffer_region region = {0, 64};
    CHECK_CL_NULL(clCreateSubBuffer(parent, 0, 0x9, &region, &check_error), CL_INVALID_VALUE);

    CHECK_CL(flags_error(CL_MEM_READ_ONLY, CL_MEM_READ_WRITE), CL_INVALID_VALUE);
    CHECK_CL(flags_error(CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY), CL_INVALID_VALUE);
    CHECK_CL(flags_error(CL_MEM_WRITE_ONLY, CL_MEM_READ_ONLY), CL_INVALID_VALUE);
    CHECK_CL(flags_error(CL_MEM_READ_WRITE, CL_MEM_READ_ONLY), CL_SUCCESS);
    CHECK_CL(flags_error(CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY), CL_INVALID_VALUE);
    CHECK_CL(flags_error(CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY), CL_INVALID_VALUE);
    CHECK_CL(flags_error(CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY), CL_INVALID_VALUE);
    CHECK_CL(flags_error(CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_NO_ACCESS), CL_SUCCESS);

    /* The host access of the part, the bytes of the whole. */
    char byte = 5;
    CHECK_CL(clEnqueueWriteBuffer(setup.queue, sub, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
             CL_INVALID_OPERATION);
    CHECK_CL(clEnqueueWriteBuffer(setup.queue, parent, CL_TRUE, 1030, 1, &byte, 0, NULL, NULL),
             CL_SUCCESS);
    byte = 0;
    CHECK_CL(clEnqueueReadBuffer(setup.queue, sub, CL_TRUE, 6, 1, &byte, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(byte == 5 && host[1030] == 5);
    CHECK_CL(clEnqueueReadBuffer(setup.queue, sub, CL_TRUE, 512, 1, &byte, 0, NULL, NULL),
             CL_INVALID_VALUE);

    /* Two parts of one buffer, which overlap. */
    cl_mem other = create(parent, 0, 1280, 512, &error);
    REQUIRE_CL(error);
    CHECK_CL(clEnqueueCopyBuffer(setup.queue, sub, other, 200, 0, 100, 0, NULL, NULL),
             CL_MEM_COPY_OVERLAP);
    CHECK_CL(clEnqueueCopyBuffer(setup.queue, sub, other, 0, 256, 100, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueCopyBuffer(setup.queue, parent, sub, 1024, 0, 1, 0, NULL, NULL),
             CL_MEM_COPY_OVERLAP);

    CHECK_CL(clReleaseMemObject(parent), CL_SUCCESS);
    CHECK(!is_destroyed);
    CHECK_CL(clReleaseMemObject(other), CL_SUCCESS);
    CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
    CHECK(!is_destroyed);
    CHECK_CL(clReleaseMemObject(sub), CL_SUCCESS);
    CHECK(is_destroyed);
    check_finish(&setup);
    return check_result();
}
