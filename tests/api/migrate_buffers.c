/* clEnqueueMigrateMemObjects: keeps the content, takes its place in the order, and every error. */
#include "check.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    cl_mem buffers[2];
    for (int i = 0; i < 2; i++) {
        buffers[i] = clCreateBuffer(setup.context, 0, 4096, NULL, &error);
        REQUIRE_CL(error);
    }
    cl_uint pattern = 11, value = 0;
    CHECK_CL(clEnqueueFillBuffer(setup.queue, buffers[1], &pattern, 4, 0, 4096, 0, NULL, NULL),
             CL_SUCCESS);
    cl_event event = NULL;
    CHECK_CL(clEnqueueMigrateMemObjects(setup.queue, 2, buffers, CL_MIGRATE_MEM_OBJECT_HOST, 0,
                                        NULL, &event),
             CL_SUCCESS);
    CHECK_CL(clEnqueueReadBuffer(setup.queue, buffers[1], CL_TRUE, 100, 4, &value, 1, &event, NULL),
             CL_SUCCESS);
    CHECK(value == pattern);
    CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
    CHECK_CL(clEnqueueMigrateMemObjects(setup.queue, 2, buffers,
                                        CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clEnqueueMigrateMemObjects(setup.queue, 0, buffers, 0, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueMigrateMemObjects(setup.queue, 1, NULL, 0, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_CL(clEnqueueMigrateMemObjects(setup.queue, 2, buffers, 1 << 9, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clReleaseMemObject(buffers[0]), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffers[1]), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
