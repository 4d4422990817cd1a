/* Mapping buffers: what the host writes is there, the map count, several maps at once, overlapping
 * maps for writing, unmapping what is not mapped. */
#include "check.h"

static struct check_setup setup;

static cl_uint count(cl_mem buffer)
{
    cl_uint value = 12345;
    CHECK_CL(clGetMemObjectInfo(buffer, CL_MEM_MAP_COUNT, sizeof value, &value, NULL), CL_SUCCESS);
    return value;
}

static void *map(cl_mem buffer, cl_map_flags flags, size_t offset, size_t size, cl_int *error)
{
    return clEnqueueMapBuffer(setup.queue, buffer, CL_TRUE, flags, offset, size, 0, NULL, NULL,
                              error);
}

int main(void)
{
    check_setup(&setup);
    cl_int error;
    cl_mem buffer = clCreateBuffer(setup.context, CL_MEM_ALLOC_HOST_PTR, 4096, NULL, &error);
    REQUIRE_CL(error);
    cl_uint zero = 0;
    CHECK_CL(clEnqueueFillBuffer(setup.queue, buffer, &zero, 4, 0, 4096, 0, NULL, NULL),
             CL_SUCCESS);

    unsigned char *a = map(buffer, CL_MAP_WRITE, 0, 1024, &error);
    REQUIRE_CL(error);
    unsigned char *b = map(buffer, CL_MAP_READ | CL_MAP_WRITE, 1024, 1024, &error);
    REQUIRE_CL(error);
    CHECK(count(buffer) == 2 && b == a + 1024);
    CHECK_CL_NULL(map(buffer, CL_MAP_WRITE, 1000, 100, &check_error), CL_INVALID_OPERATION);
    CHECK_CL_NULL(map(buffer, CL_MAP_WRITE_INVALIDATE_REGION, 0, 1, &check_error),
                  CL_INVALID_OPERATION);
    unsigned char *c = map(buffer, CL_MAP_READ, 0, 4096, &error);
    CHECK_CL(error, CL_SUCCESS);
    CHECK(count(buffer) == 3);
    a[5] = 50;
    b[6] = 60;
    CHECK(c[5] == 50 && c[1030] == 60);
    CHECK_CL(clEnqueueUnmapMemObject(setup.queue, buffer, b, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueUnmapMemObject(setup.queue, buffer, b, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_CL(clEnqueueUnmapMemObject(setup.queue, buffer, a, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueUnmapMemObject(setup.queue, buffer, c, 0, NULL, NULL), CL_SUCCESS);
    CHECK(count(buffer) == 0);
    unsigned char bytes[2048];
    CHECK_CL(clEnqueueReadBuffer(setup.queue, buffer, CL_TRUE, 0, 2048, bytes, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(bytes[5] == 50 && bytes[1030] == 60);

    CHECK_CL_NULL(map(buffer, CL_MAP_READ, 0, 0, &check_error), CL_INVALID_VALUE);
    CHECK_CL_NULL(map(buffer, CL_MAP_READ, 4096, 1, &check_error), CL_INVALID_VALUE);
    CHECK_CL_NULL(map(buffer, CL_MAP_READ, SIZE_MAX, 2, &check_error), CL_INVALID_VALUE);
    CHECK_CL_NULL(map(buffer, 1 << 10, 0, 4, &check_error), CL_INVALID_VALUE);
    CHECK_CL_NULL(map(buffer, CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION, 0, 4, &check_error),
                  CL_INVALID_VALUE);
    CHECK_CL(clEnqueueUnmapMemObject(setup.queue, buffer, bytes, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_CL(clEnqueueUnmapMemObject(setup.queue, buffer, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK(count(buffer) == 0);

    /* A blocking map behind a failed event maps nothing. */
    cl_event failed = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    CHECK_CL(clSetUserEventStatus(failed, -1), CL_SUCCESS);
    CHECK_CL_NULL(clEnqueueMapBuffer(setup.queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 16, 1, &failed,
                                     NULL, &check_error),
                  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK(count(buffer) == 0);
    CHECK_CL(clReleaseEvent(failed), CL_SUCCESS);

    /* Events of maps. */
    cl_event event = NULL;
    void *p = clEnqueueMapBuffer(setup.queue, buffer, CL_FALSE, CL_MAP_READ, 0, 16, 0, NULL, &event,
                                 &error);
    CHECK(p && event);
    cl_command_type type = 0;
    CHECK_CL(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL), CL_SUCCESS);
    CHECK(type == CL_COMMAND_MAP_BUFFER);
    CHECK_CL(clWaitForEvents(1, &event), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
    CHECK_CL(clEnqueueUnmapMemObject(setup.queue, buffer, p, 0, NULL, NULL), CL_SUCCESS);

    /* A buffer that ends while it is mapped. */
    p = map(buffer, CL_MAP_WRITE, 0, 16, &error);
    CHECK(p != NULL);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
