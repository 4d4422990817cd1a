/* Every platform query answers, in every way of asking, and wrong questions get their errors. */
#include "check.h"

static void check_query(cl_platform_id platform, cl_platform_info param)
{
    char value[4096];
    size_t size = 0;
    CHECK_CL(clGetPlatformInfo(platform, param, 0, NULL, &size), CL_SUCCESS);
    CHECK(size > 0 && size <= sizeof value);
    CHECK_CL(clGetPlatformInfo(platform, param, size, value, NULL), CL_SUCCESS);
    CHECK_CL(clGetPlatformInfo(platform, param, size - 1, value, NULL), CL_INVALID_VALUE);
}

int main(void)
{
    cl_platform_id platform = check_platform();
    const cl_platform_info params[] = {
        CL_PLATFORM_PROFILE,
        CL_PLATFORM_VERSION,
        CL_PLATFORM_NAME,
        CL_PLATFORM_VENDOR,
        CL_PLATFORM_EXTENSIONS,
        CL_PLATFORM_HOST_TIMER_RESOLUTION,
        CL_PLATFORM_NUMERIC_VERSION,
        CL_PLATFORM_ICD_SUFFIX_KHR,
        CL_PLATFORM_EXTENSIONS_WITH_VERSION,
    };
    for (size_t i = 0; i < sizeof params / sizeof params[0]; i++)
        check_query(platform, params[i]);

    char text[4096];
    CHECK_CL(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof text, text, NULL), CL_SUCCESS);
    CHECK(strncmp(text, "OpenCL 3.0 Samepage ", 20) == 0);
    CHECK_CL(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof text, text, NULL),
             CL_SUCCESS);
    CHECK(strstr(text, "cl_khr_icd"));

    /* Both lists of extensions are the same, and name none twice. */
    cl_name_version versions[64];
    size_t size;
    CHECK_CL(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION, sizeof versions,
                               versions, &size),
             CL_SUCCESS);
    size_t length = 0;
    for (size_t i = 0; i < size / sizeof versions[0]; i++) {
        CHECK(strstr(text, versions[i].name));
        length += strlen(versions[i].name) + 1;
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(versions[k].name, versions[i].name) != 0);
    }
    CHECK(length == strlen(text) + 1);

    cl_version version;
    CHECK_CL(
        clGetPlatformInfo(platform, CL_PLATFORM_NUMERIC_VERSION, sizeof version, &version, NULL),
        CL_SUCCESS);
    CHECK(version == CL_MAKE_VERSION(3, 0, 0));

    CHECK_CL(clGetPlatformInfo(platform, 0x1234, sizeof text, text, NULL), CL_INVALID_VALUE);
    CHECK_CL(clGetPlatformIDs(0, &platform, NULL), CL_INVALID_VALUE);
    CHECK_CL(clGetPlatformIDs(0, NULL, NULL), CL_INVALID_VALUE);
    return check_result();
}
