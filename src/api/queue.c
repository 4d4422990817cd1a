/* Command queues: checking what they are made from, and what is asked of them. The object itself is
 * the runtime's (runtime/queue.h). There are no on-device queues: their properties are
 * understood, so that a wrong one can be told from one that is not supported. No state, no lock.
 */
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS /* clSetCommandQueueProperty */
#include "runtime/queue.h"

#include "api/info.h"
#include "runtime/context.h"

#define HOST_PROPERTIES                                                                            \
    ((cl_command_queue_properties)(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE |                        \
                                   CL_QUEUE_PROFILING_ENABLE))
#define DEVICE_PROPERTIES                                                                          \
    ((cl_command_queue_properties)(CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT))

static cl_int check_property_bits(cl_command_queue_properties bits)
{
    if (bits & ~(HOST_PROPERTIES | DEVICE_PROPERTIES))
        return CL_INVALID_VALUE;
    if (bits & CL_QUEUE_ON_DEVICE_DEFAULT && !(bits & CL_QUEUE_ON_DEVICE))
        return CL_INVALID_VALUE;
    if (bits & CL_QUEUE_ON_DEVICE && !(bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE))
        return CL_INVALID_VALUE;
    return bits & DEVICE_PROPERTIES ? CL_INVALID_QUEUE_PROPERTIES : CL_SUCCESS;
}

static cl_int read_properties(const cl_queue_properties *properties,
                              cl_command_queue_properties *bits)
{
    bool has_bits = false, has_size = false;
    *bits = 0;
    for (; properties && properties[0]; properties += 2) {
        switch (properties[0]) {
        case CL_QUEUE_PROPERTIES:
            if (has_bits)
                return CL_INVALID_VALUE;
            has_bits = true;
            *bits = properties[1];
            break;
        case CL_QUEUE_SIZE:
            if (has_size)
                return CL_INVALID_VALUE;
            has_size = true;
            break;
        default:
            return CL_INVALID_VALUE;
        }
    }
    if (has_size && !(*bits & CL_QUEUE_ON_DEVICE))
        return CL_INVALID_VALUE;
    return check_property_bits(*bits);
}

static cl_int check_device(cl_context context, cl_device_id device)
{
    if (!sp_object_is(context, SP_OBJECT_CONTEXT))
        return CL_INVALID_CONTEXT;
    if (!sp_object_is(device, SP_OBJECT_DEVICE) || !sp_context_has(context, device))
        return CL_INVALID_DEVICE;
    return CL_SUCCESS;
}

cl_command_queue CL_API_CALL
clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                   const cl_queue_properties *properties, cl_int *errcode_ret)
{
    cl_command_queue queue = NULL;
    cl_command_queue_properties bits = 0;
    cl_int error = check_device(context, device);
    if (!error)
        error = read_properties(properties, &bits);
    if (!error)
        error = sp_queue_create(context, device, bits, properties, &queue);
    sp_error_reply(errcode_ret, error);
    return error ? NULL : queue;
}

cl_command_queue CL_API_CALL clCreateCommandQueue(cl_context context, cl_device_id device,
                                                  cl_command_queue_properties properties,
                                                  cl_int *errcode_ret)
{
    cl_command_queue queue = NULL;
    cl_int error = check_device(context, device);
    if (!error)
        error = properties & DEVICE_PROPERTIES ? CL_INVALID_VALUE : check_property_bits(properties);
    if (!error)
        error = sp_queue_create(context, device, properties, NULL, &queue);
    sp_error_reply(errcode_ret, error);
    return error ? NULL : queue;
}

cl_int CL_API_CALL clSetDefaultDeviceCommandQueue(cl_context context, cl_device_id device,
                                                  cl_command_queue command_queue)
{
    (void)command_queue;
    cl_int error = check_device(context, device);
    return error ? error : CL_INVALID_OPERATION;
}

cl_int CL_API_CALL clRetainCommandQueue(cl_command_queue command_queue)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    sp_object_retain(&command_queue->object);
    return CL_SUCCESS;
}

cl_int CL_API_CALL clReleaseCommandQueue(cl_command_queue command_queue)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    cl_int error = sp_queue_flush(command_queue);
    sp_object_release(&command_queue->object);
    return error;
}

cl_int CL_API_CALL clGetCommandQueueInfo(cl_command_queue command_queue,
                                         cl_command_queue_info param_name, size_t param_value_size,
                                         void *param_value, size_t *param_value_size_ret)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    switch (param_name) {
    case CL_QUEUE_CONTEXT:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_context,
                                   command_queue->context);
    case CL_QUEUE_DEVICE:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret,
                                   cl_device_id, command_queue->device);
    case CL_QUEUE_REFERENCE_COUNT:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_uint,
                                   sp_object_handles(&command_queue->object));
    case CL_QUEUE_PROPERTIES:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret,
                                   cl_command_queue_properties, command_queue->properties);
    case CL_QUEUE_PROPERTIES_ARRAY:
        return sp_info_reply(
            param_value_size, param_value, param_value_size_ret, command_queue->properties_array,
            command_queue->properties_count * sizeof command_queue->properties_array[0]);
    case CL_QUEUE_DEVICE_DEFAULT:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret,
                                   cl_command_queue, NULL);
    case CL_QUEUE_SIZE:
        return CL_INVALID_COMMAND_QUEUE; /* of on-device queues only */
    default:
        return CL_INVALID_VALUE;
    }
}

/* The specification lets a device of OpenCL 1.1 and later always refuse. */
cl_int CL_API_CALL clSetCommandQueueProperty(cl_command_queue command_queue,
                                             cl_command_queue_properties properties, cl_bool enable,
                                             cl_command_queue_properties *old_properties)
{
    (void)properties;
    (void)enable;
    (void)old_properties;
    return sp_object_is(command_queue, SP_OBJECT_QUEUE) ? CL_INVALID_OPERATION
                                                        : CL_INVALID_COMMAND_QUEUE;
}

cl_int CL_API_CALL clFlush(cl_command_queue command_queue)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    return sp_queue_flush(command_queue);
}

cl_int CL_API_CALL clFinish(cl_command_queue command_queue)
{
    if (!sp_object_is(command_queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    return sp_queue_finish(command_queue);
}
