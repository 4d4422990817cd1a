/* The platform's entry points. There is one platform, found and set up by src/runtime; this file
 * checks arguments and answers. No state, no lock.
 */
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "api/extensions.h"
#include "api/info.h"
#include "runtime/context.h"

/* clock_gettime gives nanoseconds (util/time.h). */
#define HOST_TIMER_RESOLUTION_NS 1u

cl_int CL_API_CALL clGetPlatformIDs(cl_uint num_entries, cl_platform_id *platforms,
                                    cl_uint *num_platforms)
{
    if ((platforms && num_entries == 0) || (!platforms && !num_platforms))
        return CL_INVALID_VALUE;
    cl_platform_id platform = sp_platform_get();
    if (!platform)
        return CL_OUT_OF_HOST_MEMORY;
    if (platforms)
        platforms[0] = platform;
    if (num_platforms)
        *num_platforms = 1;
    return CL_SUCCESS;
}

cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info param_name,
                                     size_t param_value_size, void *param_value,
                                     size_t *param_value_size_ret)
{
    if (!sp_object_is(platform, SP_OBJECT_PLATFORM))
        return CL_INVALID_PLATFORM;

    const char *string = NULL;
    switch (param_name) {
    case CL_PLATFORM_PROFILE:
        string = "FULL_PROFILE";
        break;
    case CL_PLATFORM_VERSION:
        string = "OpenCL 3.0 Samepage " SP_VERSION;
        break;
    case CL_PLATFORM_NAME:
    case CL_PLATFORM_VENDOR:
        string = "Samepage";
        break;
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        string = "SAMEPAGE";
        break;
    case CL_PLATFORM_EXTENSIONS:
        return sp_extensions_reply_names(platform->devices, platform->num_devices, true,
                                         param_value_size, param_value, param_value_size_ret);
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
        return sp_extensions_reply_versions(platform->devices, platform->num_devices, true,
                                            param_value_size, param_value, param_value_size_ret);
    case CL_PLATFORM_NUMERIC_VERSION:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_version,
                                   CL_MAKE_VERSION(3, 0, 0));
    case CL_PLATFORM_HOST_TIMER_RESOLUTION:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_ulong,
                                   HOST_TIMER_RESOLUTION_NS);
    default:
        return CL_INVALID_VALUE;
    }
    return sp_info_reply_string(param_value_size, param_value, param_value_size_ret, string);
}
