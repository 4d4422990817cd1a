/* How a loader finds the platform, and what it leaves in our objects.
 *
 * Every object begins with the dispatch table and one word that belongs to the loader (cl_khr_icd
 * 2). The table is set before the platform, the first object, is made. The loader sets its word
 * once, before it hands the platform to anyone, so it is written without a lock.
 */
#include "icd.h"

#include "runtime/context.h"

static pthread_once_t dispatch_once = PTHREAD_ONCE_INIT;

static void set_dispatch(void)
{
    sp_object_set_dispatch(&sp_icd_dispatch);
}

SP_EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries, cl_platform_id *platforms,
                                                    cl_uint *num_platforms)
{
    pthread_once(&dispatch_once, set_dispatch);
    return clGetPlatformIDs(num_entries, platforms, num_platforms);
}

cl_int CL_API_CALL clIcdSetPlatformDispatchDataKHR(cl_platform_id platform, void *dispatch_data)
{
    if (!sp_object_is(platform, SP_OBJECT_PLATFORM))
        return CL_INVALID_PLATFORM;
    platform->object.loader_data = dispatch_data;
    for (cl_uint i = 0; i < platform->num_devices; i++)
        platform->devices[i]->object.loader_data = dispatch_data;
    sp_object_set_loader_data(dispatch_data);
    return CL_SUCCESS;
}
