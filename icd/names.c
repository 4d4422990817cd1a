/* Functions by name: what an application asks for (extension functions), and what a loader asks for
 * (all of them). Constant tables, searched in order: a loader asks once for each name, an
 * application seldom.
 */
#include "icd.h"

#include <string.h>

#include <CL/cl_ext_samepage.h>

#include "entry_points.h"
#include "runtime/context.h"

struct named {
    const char *name;
    void *function;
};

#define NAMED(function) {#function, (void *)function},

static const struct named core_functions[] = {SP_DISPATCHED(NAMED) SP_TAGGED(NAMED)};
static const struct named extension_functions[] = {SP_EXTENSIONS(NAMED)};

static void *find(const struct named *table, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].function;
    return NULL;
}

#define FIND(table, name) find(table, sizeof table / sizeof table[0], name)

/* clGetPlatformInfo is no extension function, but loaders ask for it here (cl_khr_icd). */
SP_EXPORT void *CL_API_CALL clGetExtensionFunctionAddress(const char *func_name)
{
    if (func_name && strcmp(func_name, "clGetPlatformInfo") == 0)
        return (void *)clGetPlatformInfo;
    return FIND(extension_functions, func_name);
}

void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                           const char *func_name)
{
    return sp_object_is(platform, SP_OBJECT_PLATFORM) ? FIND(extension_functions, func_name) : NULL;
}

void *CL_API_CALL clIcdGetFunctionAddressForPlatformKHR(cl_platform_id platform,
                                                        const char *func_name)
{
    if (!sp_object_is(platform, SP_OBJECT_PLATFORM))
        return NULL;
    void *function = FIND(core_functions, func_name);
    return function ? function : FIND(extension_functions, func_name);
}
