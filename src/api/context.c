/* Contexts: checking what they are made from, and what is asked of them. The object itself is the
 * runtime's (runtime/context.h). The context's lock guards its destructor callbacks; nothing else
 * is locked while it is held.
 */
#include <stdlib.h>

#include "api/destructor.h"
#include "api/device.h"
#include "api/info.h"
#include "runtime/check_report.h"
#include "runtime/context.h"
#include "util/alloc.h"

typedef void(CL_CALLBACK *context_notify)(const char *, const void *, size_t, void *);

/* Reads a property list: its length in words with the 0 (0 for NULL), and the platform, which is
 * ours where none is named. */
static cl_int read_properties(const cl_context_properties *properties, size_t *count,
                              cl_platform_id *platform)
{
    bool has_platform = false, has_user_sync = false;
    *count = 0;
    for (; properties && properties[*count]; *count += 2) {
        cl_context_properties value = properties[*count + 1];
        switch (properties[*count]) {
        case CL_CONTEXT_PLATFORM:
            if (has_platform)
                return CL_INVALID_PROPERTY;
            has_platform = true;
            *platform = (cl_platform_id)value;
            if (!sp_object_is(*platform, SP_OBJECT_PLATFORM))
                return CL_INVALID_PLATFORM;
            break;
        case CL_CONTEXT_INTEROP_USER_SYNC:
            if (has_user_sync || (value != CL_FALSE && value != CL_TRUE))
                return CL_INVALID_PROPERTY;
            has_user_sync = true;
            break;
        default:
            return CL_INVALID_PROPERTY;
        }
    }
    if (properties)
        ++*count;
    if (!has_platform)
        *platform = sp_platform_get();
    return *platform ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

/* Copies the devices that are not in the list yet; their number, or 0 where one is no device. */
static cl_uint copy_unique(cl_uint num_devices, const cl_device_id *devices, cl_device_id *unique)
{
    cl_uint count = 0;
    for (cl_uint i = 0; i < num_devices; i++) {
        if (!sp_object_is(devices[i], SP_OBJECT_DEVICE))
            return 0;
        cl_uint place = 0;
        while (place < count && unique[place] != devices[i])
            place++;
        if (place == count)
            unique[count++] = devices[i];
    }
    return count;
}

static cl_int create(const cl_context_properties *properties, cl_uint num_devices,
                     const cl_device_id *devices, context_notify notify, void *user_data,
                     cl_context *context)
{
    size_t properties_count;
    cl_platform_id platform;
    cl_int error = read_properties(properties, &properties_count, &platform);
    if (error)
        return error;
    if (!devices || num_devices == 0 || (!notify && user_data))
        return CL_INVALID_VALUE;

    cl_device_id *unique = sp_alloc_array(num_devices, sizeof unique[0]);
    if (!unique)
        return CL_OUT_OF_HOST_MEMORY;
    cl_uint count = copy_unique(num_devices, devices, unique);
    error = count == 0 ? CL_INVALID_DEVICE
                       : sp_context_create(count, unique, properties, properties_count, notify,
                                           user_data, context);
    free(unique);
    return error;
}

static cl_int create_from_type(const cl_context_properties *properties, cl_device_type device_type,
                               context_notify notify, void *user_data, cl_context *context)
{
    size_t properties_count;
    cl_platform_id platform;
    cl_int error = read_properties(properties, &properties_count, &platform);
    if (error)
        return error;
    if (!notify && user_data)
        return CL_INVALID_VALUE;
    if (!sp_device_type_is_valid(device_type))
        return CL_INVALID_DEVICE_TYPE;

    cl_device_id *devices = sp_alloc_array(platform->num_devices, sizeof devices[0]);
    if (!devices)
        return CL_OUT_OF_HOST_MEMORY;
    cl_uint count = sp_devices_of_type(platform, device_type, platform->num_devices, devices);
    error = count == 0 ? CL_DEVICE_NOT_FOUND
                       : sp_context_create(count, devices, properties, properties_count, notify,
                                           user_data, context);
    free(devices);
    return error;
}

cl_context CL_API_CALL clCreateContext(const cl_context_properties *properties, cl_uint num_devices,
                                       const cl_device_id *devices, context_notify pfn_notify,
                                       void *user_data, cl_int *errcode_ret)
{
    cl_context context = NULL;
    cl_int error = create(properties, num_devices, devices, pfn_notify, user_data, &context);
    sp_error_reply(errcode_ret, error);
    return error ? NULL : context;
}

cl_context CL_API_CALL clCreateContextFromType(const cl_context_properties *properties,
                                               cl_device_type device_type,
                                               context_notify pfn_notify, void *user_data,
                                               cl_int *errcode_ret)
{
    cl_context context = NULL;
    cl_int error = create_from_type(properties, device_type, pfn_notify, user_data, &context);
    sp_error_reply(errcode_ret, error);
    return error ? NULL : context;
}

cl_int CL_API_CALL clRetainContext(cl_context context)
{
    if (!sp_object_is(context, SP_OBJECT_CONTEXT))
        return CL_INVALID_CONTEXT;
    sp_object_retain(&context->object);
    return CL_SUCCESS;
}

cl_int CL_API_CALL clReleaseContext(cl_context context)
{
    if (!sp_object_is(context, SP_OBJECT_CONTEXT))
        return CL_INVALID_CONTEXT;
    sp_check_report_flush(); /* its callback is called while there is a context */
    sp_object_release(&context->object);
    return CL_SUCCESS;
}

cl_int CL_API_CALL clGetContextInfo(cl_context context, cl_context_info param_name,
                                    size_t param_value_size, void *param_value,
                                    size_t *param_value_size_ret)
{
    if (!sp_object_is(context, SP_OBJECT_CONTEXT))
        return CL_INVALID_CONTEXT;
    switch (param_name) {
    case CL_CONTEXT_REFERENCE_COUNT:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_uint,
                                   sp_object_handles(&context->object));
    case CL_CONTEXT_NUM_DEVICES:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_uint,
                                   context->num_devices);
    case CL_CONTEXT_DEVICES:
        return sp_info_reply(param_value_size, param_value, param_value_size_ret, context->devices,
                             context->num_devices * sizeof context->devices[0]);
    case CL_CONTEXT_PROPERTIES:
        return sp_info_reply(param_value_size, param_value, param_value_size_ret,
                             context->properties,
                             context->properties_count * sizeof context->properties[0]);
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int CL_API_CALL clSetContextDestructorCallback(cl_context context,
                                                  void(CL_CALLBACK *pfn_notify)(cl_context context,
                                                                                void *user_data),
                                                  void *user_data)
{
    if (!sp_object_is(context, SP_OBJECT_CONTEXT))
        return CL_INVALID_CONTEXT;
    if (!pfn_notify)
        return CL_INVALID_VALUE;
    /* A handle is a pointer: both function types are called alike. */
    return sp_destructor_add(&context->lock, &context->destructors,
                             (void(CL_CALLBACK *)(void *, void *))pfn_notify, user_data);
}
