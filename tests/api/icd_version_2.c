/* The library as a loader with version 2 of cl_khr_icd sees it: what is exported, the tags,
 * functions by name, and the loader's word in every object. No loader is used here. */
#include "check.h"

#include <CL/cl_icd.h>
#include <dlfcn.h>

/* What each object begins with. */
struct object {
    const cl_icd_dispatch *dispatch;
    void *data;
};

typedef void *(CL_API_CALL *get_address_fn)(const char *name);
typedef void *(CL_API_CALL *get_address_for_platform_fn)(cl_platform_id platform, const char *name);
typedef cl_int(CL_API_CALL *set_data_fn)(cl_platform_id platform, void *data);
typedef cl_int(CL_API_CALL *get_platforms_fn)(cl_uint count, cl_platform_id *platforms,
                                              cl_uint *num_platforms);

static int data; /* the loader's word points here */

#define CHECK_OBJECT(handle)                                                                       \
    CHECK(((struct object *)(handle))->dispatch == ((struct object *)platform)->dispatch &&        \
          ((struct object *)(handle))->data == &data)

int main(void)
{
    char path[4096], library[4096] = "";
    const char *vendors = getenv("OCL_ICD_VENDORS");
    REQUIRE(vendors != NULL);
    snprintf(path, sizeof path, "%s/samepage.icd", vendors);
    FILE *file = fopen(path, "r");
    REQUIRE(file && fgets(library, sizeof library, file));
    fclose(file);
    library[strcspn(library, "\n")] = 0;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle != NULL);

    /* Exported: what the loader looks up, and nothing that would clash with its own symbols. */
    get_address_fn get_address = (get_address_fn)dlsym(handle, "clGetExtensionFunctionAddress");
    get_platforms_fn get_platforms = (get_platforms_fn)dlsym(handle, "clIcdGetPlatformIDsKHR");
    REQUIRE(get_address && get_platforms);
    CHECK(get_address("clIcdGetPlatformIDsKHR") == (void *)get_platforms);
    CHECK(dlsym(handle, "clCreateBuffer") == NULL && dlsym(handle, "sp_alloc") == NULL);
    CHECK(get_address("clGetPlatformInfo") && !get_address("clFinish") && !get_address(NULL));

    cl_platform_id platform = NULL;
    cl_uint count = 0;
    CHECK_CL(get_platforms(0, NULL, &count), CL_SUCCESS);
    CHECK(count == 1);
    CHECK_CL(get_platforms(0, &platform, NULL), CL_INVALID_VALUE);
    CHECK_CL(get_platforms(0, NULL, NULL), CL_INVALID_VALUE);
    REQUIRE_CL(get_platforms(1, &platform, NULL));

    /* The tags of version 2, "OPENCL31". */
    const cl_icd_dispatch *dispatch = ((struct object *)platform)->dispatch;
    CHECK(memcmp(&dispatch->clGetPlatformIDs, "13LCNEPO", 8) == 0);
    CHECK(memcmp(&dispatch->clUnloadCompiler, "13LCNEPO", 8) == 0);

    get_address_for_platform_fn get =
        (get_address_for_platform_fn)get_address("clIcdGetFunctionAddressForPlatformKHR");
    set_data_fn set_data = (set_data_fn)get_address("clIcdSetPlatformDispatchDataKHR");
    REQUIRE(get && set_data);
    CHECK(get(platform, "clFinish") == (void *)dispatch->clFinish);
    CHECK(get(platform, "clUnloadCompiler") && get(platform, "clGetPlatformIDs"));
    CHECK(get(platform, "clGetSVMPointerInfoSAMEPAGE") != NULL);
    CHECK(!get(platform, "clCreateFromGLBuffer") && !get(platform, NULL) && !get(NULL, "clFinish"));
    CHECK(dispatch->clCreateFromGLBuffer == NULL);
    CHECK_CL(set_data(NULL, &data), CL_INVALID_PLATFORM);
    CHECK_CL(set_data(platform, &data), CL_SUCCESS);

    cl_int error;
    cl_device_id device = NULL;
    REQUIRE_CL(dispatch->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = dispatch->clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    REQUIRE_CL(error);
    cl_command_queue queue = dispatch->clCreateCommandQueue(context, device, 0, &error);
    REQUIRE_CL(error);
    cl_mem buffer = dispatch->clCreateBuffer(context, 0, 64, NULL, &error);
    REQUIRE_CL(error);
    cl_event user = dispatch->clCreateUserEvent(context, &error), marker = NULL;
    REQUIRE_CL(error);
    REQUIRE_CL(dispatch->clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker));
    const char *source = "kernel void f(void) {}";
    cl_program program = dispatch->clCreateProgramWithSource(context, 1, &source, NULL, &error);
    REQUIRE_CL(error);
    void *objects[] = {platform, device, context, queue, buffer, user, marker, program};
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
        CHECK_OBJECT(objects[i]);
    CHECK_CL(dispatch->clReleaseProgram(program), CL_SUCCESS);
    CHECK_CL(dispatch->clReleaseEvent(marker), CL_SUCCESS);
    CHECK_CL(dispatch->clReleaseEvent(user), CL_SUCCESS);
    CHECK_CL(dispatch->clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL(dispatch->clReleaseCommandQueue(queue), CL_SUCCESS);
    CHECK_CL(dispatch->clReleaseContext(context), CL_SUCCESS);
    return check_result();
}
