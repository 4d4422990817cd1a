/* The extensions that Samepage has, in one list, and the two forms in which OpenCL asks for them.
 *
 * A platform lists what all of its devices have and what belongs to the platform alone. Called by
 * platform.c and device_info.c. The list is constant.
 */
#ifndef SP_API_EXTENSIONS_H
#define SP_API_EXTENSIONS_H

#include <stdbool.h>

#include <CL/cl.h>

/* The names, separated by blanks, of what each of `devices` has. with_platform: those of the
 * platform itself as well. Answers as sp_info_reply. */
cl_int sp_extensions_reply_names(const cl_device_id *devices, cl_uint num_devices,
                                 bool with_platform, size_t room, void *out, size_t *bytes_ret);

/* The same as an array of cl_name_version. */
cl_int sp_extensions_reply_versions(const cl_device_id *devices, cl_uint num_devices,
                                    bool with_platform, size_t room, void *out, size_t *bytes_ret);

#endif
