/* Devices: which there are, and the counts of sub-devices. What a device is, device_info.c tells;
 * how it is divided, sub_devices.c. Root devices live as long as the process and are not
 * counted. No state, no lock.
 */
#include "api/device.h"

#define NAMED_TYPES                                                                                \
    ((cl_device_type)(CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU |           \
                      CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM))

bool sp_device_type_is_valid(cl_device_type type)
{
    return type == CL_DEVICE_TYPE_ALL || (type != 0 && (type & ~NAMED_TYPES) == 0);
}

cl_device_type sp_device_type(cl_device_id device)
{
    const struct sp_device_info *info = &device->device->info;
    if (info->is_cpu)
        return CL_DEVICE_TYPE_CPU;
    return info->is_gpu ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_ACCELERATOR;
}

/* A GPU before the CPU, since programs that ask for no device in particular want speed; but none
 * that cannot be used. */
static cl_device_id default_device(cl_platform_id platform)
{
    for (cl_uint i = 0; i < platform->num_devices; i++) {
        const struct sp_device *device = platform->devices[i]->device;
        if (device->info.is_gpu && !device->is_given_up)
            return platform->devices[i];
    }
    return platform->num_devices ? platform->devices[0] : NULL;
}

cl_uint sp_devices_of_type(cl_platform_id platform, cl_device_type type, cl_uint room,
                           cl_device_id *devices)
{
    cl_device_id preferred = type & CL_DEVICE_TYPE_DEFAULT ? default_device(platform) : NULL;
    cl_uint count = 0;
    for (cl_uint i = 0; i < platform->num_devices; i++) {
        cl_device_id device = platform->devices[i];
        if (!(type & sp_device_type(device)) && device != preferred)
            continue;
        if (devices && count < room)
            devices[count] = device;
        count++;
    }
    return count;
}

cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type device_type,
                                  cl_uint num_entries, cl_device_id *devices, cl_uint *num_devices)
{
    if (!sp_object_is(platform, SP_OBJECT_PLATFORM))
        return CL_INVALID_PLATFORM;
    if (!sp_device_type_is_valid(device_type))
        return CL_INVALID_DEVICE_TYPE;
    if ((devices && num_entries == 0) || (!devices && !num_devices))
        return CL_INVALID_VALUE;

    cl_uint count = sp_devices_of_type(platform, device_type, num_entries, devices);
    if (count == 0)
        return CL_DEVICE_NOT_FOUND;
    if (num_devices)
        *num_devices = count;
    return CL_SUCCESS;
}

cl_int CL_API_CALL clRetainDevice(cl_device_id device)
{
    if (!sp_object_is(device, SP_OBJECT_DEVICE))
        return CL_INVALID_DEVICE;
    if (device->parent)
        sp_object_retain(&device->object);
    return CL_SUCCESS;
}

cl_int CL_API_CALL clReleaseDevice(cl_device_id device)
{
    if (!sp_object_is(device, SP_OBJECT_DEVICE))
        return CL_INVALID_DEVICE;
    if (device->parent)
        sp_object_release(&device->object);
    return CL_SUCCESS;
}
