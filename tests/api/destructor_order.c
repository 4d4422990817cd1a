/* Destructor callbacks of buffers and contexts are called once, newest first, when the object ends:
 * not before the commands that use it are done. */
#include "check.h"

static char order[16];

static void CL_CALLBACK buffer_destroyed(cl_mem buffer, void *data)
{
    (void)buffer;
    strcat(order, data);
}

static void CL_CALLBACK context_destroyed(cl_context context, void *data)
{
    (void)context;
    strcat(order, data);
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    cl_mem buffer = clCreateBuffer(setup.context, 0, 4096, NULL, &error);
    REQUIRE_CL(error);
    CHECK_CL(clSetMemObjectDestructorCallback(buffer, buffer_destroyed, "1"), CL_SUCCESS);
    CHECK_CL(clSetMemObjectDestructorCallback(buffer, buffer_destroyed, "2"), CL_SUCCESS);
    CHECK_CL(clSetMemObjectDestructorCallback(buffer, buffer_destroyed, "3"), CL_SUCCESS);
    CHECK_CL(clSetMemObjectDestructorCallback(buffer, NULL, NULL), CL_INVALID_VALUE);
    CHECK_CL(clSetContextDestructorCallback(setup.context, context_destroyed, "a"), CL_SUCCESS);
    CHECK_CL(clSetContextDestructorCallback(setup.context, context_destroyed, "b"), CL_SUCCESS);
    CHECK_CL(clSetContextDestructorCallback(setup.context, NULL, NULL), CL_INVALID_VALUE);

    cl_event gate = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    cl_uint pattern = 1;
    CHECK_CL(clEnqueueFillBuffer(setup.queue, buffer, &pattern, 4, 0, 4096, 1, &gate, NULL),
             CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK(strcmp(order, "") == 0);
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
    CHECK(strcmp(order, "321") == 0);

    /* The context lives as long as its queue and event. */
    CHECK_CL(clReleaseContext(setup.context), CL_SUCCESS);
    CHECK_CL(clReleaseCommandQueue(setup.queue), CL_SUCCESS);
    CHECK(strcmp(order, "321") == 0);
    CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);
    CHECK(strcmp(order, "321ba") == 0);
    return check_result();
}
