/* A handle that is NULL, or of the wrong kind, gets the error of the kind that was wanted,
 * everywhere. */
#include "check.h"

/* An object of each kind, as a wrong handle for the others; and NULL. */
static void *handles[8];
enum { NUM_HANDLES = 8 };

static struct check_setup setup;
static char room[256];
static size_t zero3[3], one3[3] = {1, 1, 1};

/* Runs `call` with `wrong` as each handle but those of the kind itself. */
#define EACH(kind, call, expected)                                                                 \
    for (int i = 0; i < NUM_HANDLES; i++) {                                                        \
        kind wrong = (kind)handles[i];                                                             \
        if (handles[i] == skipped)                                                                 \
            continue;                                                                              \
        CHECK_CL(call, expected);                                                                  \
    }

#define EACH_NULL(kind, call, expected)                                                            \
    for (int i = 0; i < NUM_HANDLES; i++) {                                                        \
        kind wrong = (kind)handles[i];                                                             \
        if (handles[i] == skipped)                                                                 \
            continue;                                                                              \
        CHECK_CL_NULL(call, expected);                                                             \
    }

static void check_devices(void)
{
    void *skipped = setup.device;
    cl_uint count;
    cl_ulong time;
    const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    EACH(cl_device_id, clGetDeviceInfo(wrong, CL_DEVICE_TYPE, 8, room, NULL), CL_INVALID_DEVICE)
    EACH(cl_device_id, clRetainDevice(wrong), CL_INVALID_DEVICE)
    EACH(cl_device_id, clReleaseDevice(wrong), CL_INVALID_DEVICE)
    EACH(cl_device_id, clGetHostTimer(wrong, &time), CL_INVALID_DEVICE)
    EACH(cl_device_id, clCreateSubDevices(wrong, equally, 0, NULL, &count), CL_INVALID_DEVICE)
    EACH_NULL(cl_device_id, clCreateContext(NULL, 1, &wrong, NULL, NULL, &check_error),
              CL_INVALID_DEVICE)
    EACH_NULL(cl_device_id, clCreateCommandQueue(setup.context, wrong, 0, &check_error),
              CL_INVALID_DEVICE)
}

static void check_contexts(void)
{
    void *skipped = setup.context;
    cl_uint count;
    EACH(cl_context, clRetainContext(wrong), CL_INVALID_CONTEXT)
    EACH(cl_context, clReleaseContext(wrong), CL_INVALID_CONTEXT)
    EACH(cl_context, clGetContextInfo(wrong, CL_CONTEXT_NUM_DEVICES, 4, room, NULL),
         CL_INVALID_CONTEXT)
    EACH_NULL(cl_context, clCreateBuffer(wrong, 0, 64, NULL, &check_error), CL_INVALID_CONTEXT)
    EACH_NULL(cl_context, clCreateUserEvent(wrong, &check_error), CL_INVALID_CONTEXT)
    EACH_NULL(cl_context, clCreateCommandQueue(wrong, setup.device, 0, &check_error),
              CL_INVALID_CONTEXT)
    EACH_NULL(cl_context,
              clCreateSampler(wrong, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &check_error),
              CL_INVALID_CONTEXT)
    EACH(cl_context, clGetSupportedImageFormats(wrong, 0, CL_MEM_OBJECT_IMAGE2D, 0, NULL, &count),
         CL_INVALID_CONTEXT)
    EACH(cl_context, clSVMAlloc(wrong, 0, 64, 0) == NULL ? CL_SUCCESS : 1, CL_SUCCESS)
}

static void check_queues(void)
{
    void *skipped = setup.queue;
    cl_mem buffer = handles[4];
    cl_event event;
    cl_uint pattern = 0;
    void *svm = clSVMAlloc(setup.context, 0, 64, 0);
    const void *pointers[] = {svm};
    EACH(cl_command_queue, clRetainCommandQueue(wrong), CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clReleaseCommandQueue(wrong), CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clGetCommandQueueInfo(wrong, CL_QUEUE_CONTEXT, 8, room, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clFlush(wrong), CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clFinish(wrong), CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueMarker(wrong, &event), CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueBarrier(wrong), CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueMarkerWithWaitList(wrong, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueReadBuffer(wrong, buffer, 1, 0, 4, room, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueWriteBuffer(wrong, buffer, 1, 0, 4, room, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueCopyBuffer(wrong, buffer, buffer, 0, 4, 4, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueFillBuffer(wrong, buffer, &pattern, 4, 0, 4, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueMigrateMemObjects(wrong, 1, &buffer, 0, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH_NULL(cl_command_queue,
              clEnqueueMapBuffer(wrong, buffer, 1, CL_MAP_READ, 0, 4, 0, NULL, NULL, &check_error),
              CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueUnmapMemObject(wrong, buffer, room, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueSVMMemcpy(wrong, 1, svm, room, 4, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueSVMMemFill(wrong, svm, &pattern, 4, 4, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueSVMMap(wrong, 1, CL_MAP_READ, svm, 4, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueSVMUnmap(wrong, svm, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueSVMFree(wrong, 1, &svm, NULL, NULL, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    EACH(cl_command_queue, clEnqueueSVMMigrateMem(wrong, 1, pointers, NULL, 0, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE)
    clSVMFree(setup.context, svm);
}

static void check_buffers(void)
{
    void *skipped = handles[4];
    cl_mem buffer = handles[4];
    cl_command_queue queue = setup.queue;
    cl_uint pattern = 0;
    const cl_buffer_region region = {0, 4};
    EACH(cl_mem, clRetainMemObject(wrong), CL_INVALID_MEM_OBJECT)
    EACH(cl_mem, clReleaseMemObject(wrong), CL_INVALID_MEM_OBJECT)
    EACH(cl_mem, clGetMemObjectInfo(wrong, CL_MEM_SIZE, 8, room, NULL), CL_INVALID_MEM_OBJECT)
    EACH_NULL(cl_mem,
              clCreateSubBuffer(wrong, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &check_error),
              CL_INVALID_MEM_OBJECT)
    EACH(cl_mem, clEnqueueReadBuffer(queue, wrong, 1, 0, 4, room, 0, NULL, NULL),
         CL_INVALID_MEM_OBJECT)
    EACH(cl_mem, clEnqueueWriteBuffer(queue, wrong, 1, 0, 4, room, 0, NULL, NULL),
         CL_INVALID_MEM_OBJECT)
    EACH(cl_mem, clEnqueueCopyBuffer(queue, wrong, buffer, 0, 0, 4, 0, NULL, NULL),
         CL_INVALID_MEM_OBJECT)
    EACH(cl_mem, clEnqueueCopyBuffer(queue, buffer, wrong, 0, 0, 4, 0, NULL, NULL),
         CL_INVALID_MEM_OBJECT)
    EACH(cl_mem, clEnqueueFillBuffer(queue, wrong, &pattern, 4, 0, 4, 0, NULL, NULL),
         CL_INVALID_MEM_OBJECT)
    EACH(cl_mem, clEnqueueMigrateMemObjects(queue, 1, &wrong, 0, 0, NULL, NULL),
         CL_INVALID_MEM_OBJECT)
    EACH(cl_mem, clEnqueueUnmapMemObject(queue, wrong, room, 0, NULL, NULL), CL_INVALID_MEM_OBJECT)
    EACH_NULL(cl_mem,
              clEnqueueMapBuffer(queue, wrong, 1, CL_MAP_READ, 0, 4, 0, NULL, NULL, &check_error),
              CL_INVALID_MEM_OBJECT)
    EACH(cl_mem,
         clEnqueueReadBufferRect(queue, wrong, 1, zero3, zero3, one3, 0, 0, 0, 0, room, 0, NULL,
                                 NULL),
         CL_INVALID_MEM_OBJECT)
    EACH(cl_mem,
         clEnqueueCopyBufferRect(queue, wrong, buffer, zero3, zero3, one3, 0, 0, 0, 0, 0, NULL,
                                 NULL),
         CL_INVALID_MEM_OBJECT)
    EACH(cl_mem, clGetImageInfo(wrong, CL_IMAGE_WIDTH, 8, room, NULL), CL_INVALID_MEM_OBJECT)
}

static void CL_CALLBACK notify(cl_event event, cl_int status, void *data)
{
    (void)event, (void)status, (void)data;
}

static void check_events(void)
{
    void *skipped = handles[5];
    EACH(cl_event, clRetainEvent(wrong), CL_INVALID_EVENT)
    EACH(cl_event, clReleaseEvent(wrong), CL_INVALID_EVENT)
    EACH(cl_event, clGetEventInfo(wrong, CL_EVENT_CONTEXT, 8, room, NULL), CL_INVALID_EVENT)
    EACH(cl_event, clSetUserEventStatus(wrong, CL_COMPLETE), CL_INVALID_EVENT)
    EACH(cl_event, clGetEventProfilingInfo(wrong, CL_PROFILING_COMMAND_END, 8, room, NULL),
         CL_INVALID_EVENT)
    EACH(cl_event, clSetEventCallback(wrong, CL_COMPLETE, notify, NULL), CL_INVALID_EVENT)
    EACH(cl_event, clWaitForEvents(1, &wrong), CL_INVALID_EVENT)
    EACH(cl_event, clEnqueueWaitForEvents(setup.queue, 1, &wrong), CL_INVALID_EVENT)
    EACH(cl_event, clEnqueueMarkerWithWaitList(setup.queue, 1, &wrong, NULL),
         CL_INVALID_EVENT_WAIT_LIST)
    EACH(cl_event, clEnqueueBarrierWithWaitList(setup.queue, 1, &wrong, NULL),
         CL_INVALID_EVENT_WAIT_LIST)
    EACH(cl_event, clEnqueueReadBuffer(setup.queue, handles[4], 1, 0, 4, room, 1, &wrong, NULL),
         CL_INVALID_EVENT_WAIT_LIST)
}

/* A context of its own, to hold objects of the other context against. */
static void check_other_context(void)
{
    cl_int error;
    cl_context other = clCreateContext(NULL, 1, &setup.device, NULL, NULL, &error);
    REQUIRE_CL(error);
    cl_mem buffer = clCreateBuffer(other, 0, 64, NULL, &error);
    REQUIRE_CL(error);
    cl_event event = clCreateUserEvent(other, &error);
    REQUIRE_CL(error);
    cl_event both[] = {handles[5], event};
    cl_command_queue queue = setup.queue;
    CHECK_CL(clEnqueueReadBuffer(queue, buffer, 1, 0, 4, room, 0, NULL, NULL), CL_INVALID_CONTEXT);
    CHECK_CL(clEnqueueCopyBuffer(queue, handles[4], buffer, 0, 0, 4, 0, NULL, NULL),
             CL_INVALID_CONTEXT);
    CHECK_CL(clEnqueueMarkerWithWaitList(queue, 1, &event, NULL), CL_INVALID_CONTEXT);
    CHECK_CL(clEnqueueWaitForEvents(queue, 1, &event), CL_INVALID_CONTEXT);
    CHECK_CL(clWaitForEvents(2, both), CL_INVALID_CONTEXT);
    CHECK_CL(clWaitForEvents(0, both), CL_INVALID_VALUE);
    CHECK_CL(clWaitForEvents(1, NULL), CL_INVALID_VALUE);
    CHECK_CL(clEnqueueMarkerWithWaitList(queue, 0, both, NULL), CL_INVALID_EVENT_WAIT_LIST);
    CHECK_CL(clEnqueueMarkerWithWaitList(queue, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
    CHECK_CL(clEnqueueMarker(queue, NULL), CL_INVALID_VALUE);
    CHECK_CL(clEnqueueWaitForEvents(queue, 0, both), CL_INVALID_VALUE);
    CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL(clReleaseContext(other), CL_SUCCESS);
}

int main(void)
{
    check_setup(&setup);
    cl_int error;
    handles[1] = setup.platform;
    handles[2] = setup.device;
    handles[3] = setup.context;
    handles[4] = clCreateBuffer(setup.context, 0, 64, NULL, &error);
    REQUIRE_CL(error);
    handles[5] = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    handles[6] = setup.queue;
    const char *source = "kernel void f(void) {}";
    handles[7] = clCreateProgramWithSource(setup.context, 1, &source, NULL, &error);
    REQUIRE_CL(error);

    check_devices();
    check_contexts();
    check_queues();
    check_buffers();
    check_events();
    check_other_context();
    CHECK_CL(clGetPlatformInfo((cl_platform_id)setup.device, CL_PLATFORM_NAME, 64, room, NULL),
             CL_INVALID_PLATFORM);

    CHECK_CL(clReleaseProgram(handles[7]), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(handles[5]), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(handles[4]), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
