/* What every test program shares: checks that say where they failed, and a context and queue of the
 * Samepage platform.
 *
 * A failed CHECK is printed and counted, and the program goes on; main returns check_result(). What
 * nothing can go on without is a REQUIRE.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

static int check_failures;
__attribute__((unused)) static cl_int check_error; /* see CHECK_CL_NULL */

__attribute__((unused)) static int check_result(void)
{
    return check_failures ? 1 : 0;
}

__attribute__((unused)) static void check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    check_failures++;
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(__FILE__, __LINE__, "not true: " #condition);                             \
    } while (0)

/* `call` gives an error code; it is to be `expected`. */
#define CHECK_CL(call, expected)                                                                   \
    do {                                                                                           \
        cl_int check_is = (call);                                                                  \
        if (check_is != (expected)) {                                                              \
            check_failed(__FILE__, __LINE__, #call);                                               \
            fprintf(stderr, "    gives %d, expected %s\n", (int)check_is, #expected);              \
        }                                                                                          \
    } while (0)

/* `call` ends in &check_error and is to give NULL with that error. */
#define CHECK_CL_NULL(call, expected)                                                              \
    do {                                                                                           \
        check_error = 12345;                                                                       \
        CHECK((call) == NULL);                                                                     \
        if (check_error != (expected)) {                                                           \
            check_failed(__FILE__, __LINE__, #call);                                               \
            fprintf(stderr, "    gives %d, expected %s\n", (int)check_error, #expected);           \
        }                                                                                          \
    } while (0)

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            check_failed(__FILE__, __LINE__, "needed: " #condition);                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define REQUIRE_CL(call) REQUIRE((call) == CL_SUCCESS)

/* What most tests begin with. */
struct check_setup {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
};

/* The Samepage platform; ends the program where there is none. */
__attribute__((unused)) static cl_platform_id check_platform(void)
{
    cl_platform_id platforms[16];
    cl_uint count = 0;
    REQUIRE_CL(clGetPlatformIDs(16, platforms, &count));
    for (cl_uint i = 0; i < count && i < 16; i++) {
        char name[64] = "";
        clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL);
        if (strcmp(name, "Samepage") == 0)
            return platforms[i];
    }
    fprintf(stderr, "no Samepage platform among %u; is OCL_ICD_VENDORS set?\n", (unsigned)count);
    exit(1);
}

/* Its first device, a context of it, and a queue with these properties. */
__attribute__((unused)) static void check_setup_with(struct check_setup *setup,
                                                     cl_command_queue_properties properties)
{
    cl_int error;
    setup->platform = check_platform();
    REQUIRE_CL(clGetDeviceIDs(setup->platform, CL_DEVICE_TYPE_ALL, 1, &setup->device, NULL));
    setup->context = clCreateContext(NULL, 1, &setup->device, NULL, NULL, &error);
    REQUIRE_CL(error);
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
    setup->queue = clCreateCommandQueueWithProperties(setup->context, setup->device, list, &error);
    REQUIRE_CL(error);
}

__attribute__((unused)) static void check_setup(struct check_setup *setup)
{
    check_setup_with(setup, 0);
}

__attribute__((unused)) static void check_finish(struct check_setup *setup)
{
    CHECK_CL(clFinish(setup->queue), CL_SUCCESS);
    CHECK_CL(clReleaseCommandQueue(setup->queue), CL_SUCCESS);
    CHECK_CL(clReleaseContext(setup->context), CL_SUCCESS);
}

/* The execution status of an event, or the error of asking for it. */
__attribute__((unused)) static cl_int check_status(cl_event event)
{
    cl_int status = 12345;
    cl_int error =
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return error ? error : status;
}

#endif
