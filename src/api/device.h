/* What the rest of src/api asks about devices. */
#ifndef SP_API_DEVICE_H
#define SP_API_DEVICE_H

#include <stdbool.h>

#include <CL/cl.h>

#include "runtime/context.h"

/* Alignment of sub-buffer offsets, in bytes, on every device: the size of the largest type, long16
 * (CL_DEVICE_MEM_BASE_ADDR_ALIGN, which counts bits). */
#define SP_MEM_BASE_ALIGN_BYTES 128u

/* Whether `type` is something that clGetDeviceIDs and clCreateContextFromType may be given. */
bool sp_device_type_is_valid(cl_device_type type);

/* The type that `device` reports. */
cl_device_type sp_device_type(cl_device_id device);

/* Writes up to `room` of the root devices of `platform` that `type` names to `devices` (NULL: none
 * are written), and returns how many there are. The default device is the first GPU that can be
 * used now, or else the first of all. */
cl_uint sp_devices_of_type(cl_platform_id platform, cl_device_type type, cl_uint room,
                           cl_device_id *devices);

/* Whether `device` can be divided at all. */
bool sp_device_is_partitionable(cl_device_id device);

#endif
