/* What contexts are made from: properties, devices and types, each wrong in turn. */
#include "check.h"

static void CL_CALLBACK notify(const char *message, const void *info, size_t size, void *data)
{
    (void)message, (void)info, (void)size, (void)data;
}

static cl_platform_id platform;
static cl_device_id device;

static cl_int create(cl_context_properties a, cl_context_properties b, cl_context_properties c,
                     cl_context_properties d)
{
    const cl_context_properties list[] = {a, b, c, d, 0};
    cl_int error = 12345;
    cl_context context = clCreateContext(list, 1, &device, NULL, NULL, &error);
    CHECK((context != NULL) == (error == CL_SUCCESS));
    if (context)
        clReleaseContext(context);
    return error;
}

int main(void)
{
    platform = check_platform();
    REQUIRE_CL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context_properties p = (cl_context_properties)platform;

    CHECK_CL(create(CL_CONTEXT_PLATFORM, p, 0, 0), CL_SUCCESS);
    CHECK_CL(create(CL_CONTEXT_INTEROP_USER_SYNC, CL_TRUE, 0, 0), CL_SUCCESS);
    CHECK_CL(create(CL_CONTEXT_PLATFORM, p, CL_CONTEXT_PLATFORM, p), CL_INVALID_PROPERTY);
    CHECK_CL(create(CL_CONTEXT_PLATFORM, p, 0x4321, 1), CL_INVALID_PROPERTY);
    CHECK_CL(create(CL_CONTEXT_PLATFORM, p, CL_CONTEXT_INTEROP_USER_SYNC, 7), CL_INVALID_PROPERTY);

    CHECK_CL_NULL(clCreateContext(NULL, 1, &device, NULL, &platform, &check_error),
                  CL_INVALID_VALUE);
    CHECK_CL_NULL(clCreateContext(NULL, 0, &device, NULL, NULL, &check_error), CL_INVALID_VALUE);

    /* A device twice counts once; a device that is none is refused. */
    cl_int error;
    cl_device_id twice[] = {device, device};
    const cl_context_properties list[] = {CL_CONTEXT_PLATFORM, p, 0};
    cl_context context = clCreateContext(list, 2, twice, notify, &platform, &error);
    REQUIRE_CL(error);
    cl_uint count = 0;
    CHECK_CL(clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof count, &count, NULL),
             CL_SUCCESS);
    CHECK(count == 1);
    cl_device_id wrong[] = {device, (cl_device_id)context};
    CHECK_CL_NULL(clCreateContext(NULL, 2, wrong, NULL, NULL, &check_error), CL_INVALID_DEVICE);

    /* Queries. */
    cl_context_properties given[8];
    size_t size = 0;
    CHECK_CL(clGetContextInfo(context, CL_CONTEXT_PROPERTIES, sizeof given, given, &size),
             CL_SUCCESS);
    CHECK(size == sizeof list && memcmp(given, list, size) == 0);
    cl_device_id devices[4];
    CHECK_CL(clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, &size),
             CL_SUCCESS);
    CHECK(size == sizeof device && devices[0] == device);
    CHECK_CL(clGetContextInfo(context, CL_CONTEXT_DEVICES, 1, devices, &size), CL_INVALID_VALUE);
    CHECK_CL(clGetContextInfo(context, 0x1111, sizeof devices, devices, &size), CL_INVALID_VALUE);
    CHECK_CL(clReleaseContext(context), CL_SUCCESS);

    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    REQUIRE_CL(error);
    CHECK_CL(clGetContextInfo(context, CL_CONTEXT_PROPERTIES, 0, NULL, &size), CL_SUCCESS);
    CHECK(size == 0);
    CHECK_CL(clReleaseContext(context), CL_SUCCESS);

    /* By type. */
    context = clCreateContextFromType(list, CL_DEVICE_TYPE_ALL, NULL, NULL, &error);
    CHECK_CL(error, CL_SUCCESS);
    CHECK_CL(clReleaseContext(context), CL_SUCCESS);
    CHECK_CL_NULL(clCreateContextFromType(list, CL_DEVICE_TYPE_CUSTOM, NULL, NULL, &check_error),
                  CL_DEVICE_NOT_FOUND);
    CHECK_CL_NULL(clCreateContextFromType(list, 0, NULL, NULL, &check_error),
                  CL_INVALID_DEVICE_TYPE);
    CHECK_CL_NULL(clCreateContextFromType(list, 1 << 24, NULL, NULL, &check_error),
                  CL_INVALID_DEVICE_TYPE);
    CHECK_CL_NULL(clCreateContextFromType(list, CL_DEVICE_TYPE_ALL, NULL, &platform, &check_error),
                  CL_INVALID_VALUE);
    return check_result();
}
