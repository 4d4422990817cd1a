/* What queues are made from, what they report, and every error. */
#include "check.h"

static struct check_setup setup;

static cl_int create(cl_queue_properties a, cl_queue_properties b, cl_queue_properties c,
                     cl_queue_properties d)
{
    const cl_queue_properties list[] = {a, b, c, d, 0};
    cl_int error = 12345;
    cl_command_queue queue =
        clCreateCommandQueueWithProperties(setup.context, setup.device, list, &error);
    CHECK((queue != NULL) == (error == CL_SUCCESS));
    if (queue)
        clReleaseCommandQueue(queue);
    return error;
}

int main(void)
{
    check_setup(&setup);
    const cl_queue_properties on_device =
        CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;

    CHECK_CL(create(0, 0, 0, 0), CL_SUCCESS);
    CHECK_CL(create(CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0, 0), CL_SUCCESS);
    CHECK_CL(create(CL_QUEUE_PROPERTIES, on_device, 0, 0), CL_INVALID_QUEUE_PROPERTIES);
    CHECK_CL(create(CL_QUEUE_PROPERTIES, on_device, CL_QUEUE_SIZE, 4096),
             CL_INVALID_QUEUE_PROPERTIES);
    CHECK_CL(create(CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(create(CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE_DEFAULT, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(create(CL_QUEUE_PROPERTIES, 1 << 9, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(create(CL_QUEUE_SIZE, 4096, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(create(0x5555, 1, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(create(CL_QUEUE_PROPERTIES, 0, CL_QUEUE_PROPERTIES, 0), CL_INVALID_VALUE);
    CHECK_CL_NULL(clCreateCommandQueue(setup.context, setup.device, 1 << 9, &check_error),
                  CL_INVALID_VALUE);

    cl_int error;
    const cl_queue_properties list[] = {
        CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    cl_command_queue queue =
        clCreateCommandQueueWithProperties(setup.context, setup.device, list, &error);
    REQUIRE_CL(error);
    cl_command_queue_properties bits = 0;
    CHECK_CL(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof bits, &bits, NULL),
             CL_SUCCESS);
    CHECK(bits == list[1]);
    cl_queue_properties array[8];
    size_t size = 0;
    CHECK_CL(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, sizeof array, array, &size),
             CL_SUCCESS);
    CHECK(size == sizeof list && memcmp(array, list, size) == 0);
    CHECK_CL(clGetCommandQueueInfo(queue, CL_QUEUE_SIZE, sizeof array, array, NULL),
             CL_INVALID_COMMAND_QUEUE);
    cl_command_queue none = queue;
    CHECK_CL(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE_DEFAULT, sizeof none, &none, NULL),
             CL_SUCCESS);
    CHECK(none == NULL);
    cl_context context = NULL;
    CHECK_CL(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL),
             CL_SUCCESS);
    CHECK(context == setup.context);
    CHECK_CL(clGetCommandQueueInfo(queue, 0x1, sizeof array, array, NULL), CL_INVALID_VALUE);
    CHECK_CL(clSetCommandQueueProperty(queue, CL_QUEUE_PROFILING_ENABLE, CL_TRUE, NULL),
             CL_INVALID_OPERATION);
    CHECK_CL(clSetDefaultDeviceCommandQueue(setup.context, setup.device, queue),
             CL_INVALID_OPERATION);
    CHECK_CL(clReleaseCommandQueue(queue), CL_SUCCESS);

    /* Without a list there is none to report. */
    queue = clCreateCommandQueue(setup.context, setup.device, 0, &error);
    REQUIRE_CL(error);
    CHECK_CL(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, 0, NULL, &size), CL_SUCCESS);
    CHECK(size == 0);
    CHECK_CL(clReleaseCommandQueue(queue), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
