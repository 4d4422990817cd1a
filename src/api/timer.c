/* Device and host timers: one clock (util/time.h), so the two timestamps are the same. */
#include <CL/cl.h>

#include "runtime/context.h"
#include "util/time.h"

cl_int CL_API_CALL clGetDeviceAndHostTimer(cl_device_id device, cl_ulong *device_timestamp,
                                           cl_ulong *host_timestamp)
{
    if (!sp_object_is(device, SP_OBJECT_DEVICE))
        return CL_INVALID_DEVICE;
    if (!device_timestamp || !host_timestamp)
        return CL_INVALID_VALUE;
    *device_timestamp = *host_timestamp = sp_time_ns();
    return CL_SUCCESS;
}

cl_int CL_API_CALL clGetHostTimer(cl_device_id device, cl_ulong *host_timestamp)
{
    if (!sp_object_is(device, SP_OBJECT_DEVICE))
        return CL_INVALID_DEVICE;
    if (!host_timestamp)
        return CL_INVALID_VALUE;
    *host_timestamp = sp_time_ns();
    return CL_SUCCESS;
}
