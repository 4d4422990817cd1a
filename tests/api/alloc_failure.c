/* Memory running out at every allocation in turn: each call then gives an error of its kind,
 * nothing crashes or hangs, and what went before still works. */
#include "check_no_memory.h"

static void CL_CALLBACK event_notify(cl_event event, cl_int status, void *data)
{
    (void)event, (void)status, (void)data;
}

static void CL_CALLBACK buffer_notify(cl_mem buffer, void *data)
{
    (void)buffer, (void)data;
}

static void CL_CALLBACK context_notify(cl_context context, void *data)
{
    (void)context, (void)data;
}

static void use_queue(cl_context context, cl_command_queue queue, cl_mem buffer)
{
    cl_int error;
    cl_uint pattern = 1, value = 0;
    const size_t origin[3] = {0}, region[3] = {4, 2, 2};
    char room[64];
    const cl_buffer_region part = {128, 128};
    cl_event user = clCreateUserEvent(context, &error), event = NULL;
    if (!WORKED(error))
        user = NULL;
    if (user)
        WORKED(clSetEventCallback(user, CL_COMPLETE, event_notify, NULL));
    WORKED(clEnqueueFillBuffer(queue, buffer, &pattern, 4, 0, 4096, user ? 1 : 0,
                               user ? &user : NULL, NULL));
    WORKED(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    if (user) {
        WORKED(clSetUserEventStatus(user, CL_COMPLETE));
        clReleaseEvent(user);
    }
    if (event) {
        WORKED(clWaitForEvents(1, &event));
        clReleaseEvent(event);
    }
    /* One of the queues has no order of its own: each step is waited for. */
    WORKED(clFinish(queue));
    WORKED(clEnqueueCopyBuffer(queue, buffer, buffer, 0, 2048, 1024, 0, NULL, NULL));
    WORKED(clFinish(queue));
    WORKED(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 2048, 4, &value, 0, NULL, NULL));
    WORKED(clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, origin, origin, region, 0, 0, 0, 0,
                                    room, 0, NULL, NULL));
    void *mapped =
        clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &error);
    if (WORKED(error))
        while (!WORKED(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL)) &&
               outcome != WRONG)
            ;
    cl_mem sub = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &error);
    if (WORKED(error))
        clReleaseMemObject(sub);
    WORKED(clSetMemObjectDestructorCallback(buffer, buffer_notify, NULL));
    WORKED(clEnqueueMigrateMemObjects(queue, 1, &buffer, 0, 0, NULL, NULL));
    WORKED(clEnqueueBarrier(queue));
}

static void use_svm(cl_context context, cl_command_queue queue)
{
    cl_uint pattern = 1;
    for (size_t size = 64; size <= (size_t)16 << 20; size *= 512) {
        char *svm = clSVMAlloc(context, 0, size, 0);
        if (!WORKED(svm ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY))
            continue;
        WORKED(clEnqueueSVMMemFill(queue, svm, &pattern, 4, 64, 0, NULL, NULL));
        WORKED(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, svm, 64, 0, NULL, NULL));
        WORKED(clEnqueueSVMUnmap(queue, svm, 0, NULL, NULL));
        WORKED(clFinish(queue));
        void *pointer = svm;
        if (!WORKED(clEnqueueSVMFree(queue, 1, &pointer, NULL, NULL, 0, NULL, NULL)))
            clSVMFree(context, svm);
    }
}

/* One run of everything; goes on after a failure as far as objects are there. */
static void scenario(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    cl_uint count = 0;
    if (!WORKED(clGetPlatformIDs(1, &platform, &count)) ||
        !WORKED(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL)))
        return;
    const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_device_id parts[256];
    cl_uint num_parts = 0;
    error = clCreateSubDevices(device, equally, 256, parts, &num_parts);
    if (error != CL_DEVICE_PARTITION_FAILED && WORKED(error))
        for (cl_uint i = 0; i < num_parts; i++)
            clReleaseDevice(parts[i]);

    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)platform, 0};
    cl_context context = clCreateContext(properties, 1, &device, NULL, NULL, &error);
    if (!WORKED(error))
        return;
    WORKED(clSetContextDestructorCallback(context, context_notify, NULL));
    for (int i = 0; i < 2; i++) {
        const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES,
                                            i ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, 0};
        cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, list, &error);
        if (!WORKED(error))
            continue;
        cl_mem buffer = clCreateBuffer(context, 0, 4096, NULL, &error);
        if (WORKED(error)) {
            use_queue(context, queue, buffer);
            clReleaseMemObject(buffer);
        }
        use_svm(context, queue);
        WORKED(clFinish(queue));
        clReleaseCommandQueue(queue);
    }
    clReleaseContext(context);
}

int main(int argc, char **argv)
{
    return fail_in_turn(argc, argv, scenario);
}
