/* Every wrong argument of the functions that make, build and ask about programs gets its error. */
#include "check_program.h"

static const char source[] = "__kernel void k(__global int *p) { p[0] = 1; }";

static void CL_CALLBACK ignore(cl_program program, void *user_data)
{
    (void)program;
    (void)user_data;
}

static void check_creation(struct check_setup *setup)
{
    const char *strings[2] = {source, NULL}, *text = source;
    size_t length = 3;
    const unsigned char *binary = (const unsigned char *)"abc", *none = NULL;
    cl_int status = 5;
    CHECK_CL_NULL(clCreateProgramWithSource(NULL, 1, &text, NULL, &check_error),
                  CL_INVALID_CONTEXT);
    CHECK_CL_NULL(clCreateProgramWithSource((cl_context)setup->queue, 1, &text, NULL, &check_error),
                  CL_INVALID_CONTEXT);
    CHECK_CL_NULL(clCreateProgramWithSource(setup->context, 0, &text, NULL, &check_error),
                  CL_INVALID_VALUE);
    CHECK_CL_NULL(clCreateProgramWithSource(setup->context, 1, NULL, NULL, &check_error),
                  CL_INVALID_VALUE);
    CHECK_CL_NULL(clCreateProgramWithSource(setup->context, 2, strings, NULL, &check_error),
                  CL_INVALID_VALUE);
    CHECK(clCreateProgramWithSource(setup->context, 2, strings, NULL, NULL) == NULL);

    CHECK_CL_NULL(clCreateProgramWithIL(NULL, "x", 1, &check_error), CL_INVALID_CONTEXT);
    CHECK_CL_NULL(clCreateProgramWithIL(setup->context, "x", 1, &check_error),
                  CL_INVALID_OPERATION);
    CHECK_CL_NULL(clCreateProgramWithBuiltInKernels(NULL, 1, &setup->device, "a", &check_error),
                  CL_INVALID_CONTEXT);
    CHECK_CL_NULL(
        clCreateProgramWithBuiltInKernels(setup->context, 0, &setup->device, "a", &check_error),
        CL_INVALID_VALUE);
    CHECK_CL_NULL(
        clCreateProgramWithBuiltInKernels(setup->context, 1, &setup->device, "a", &check_error),
        CL_INVALID_VALUE);

    CHECK_CL_NULL(
        clCreateProgramWithBinary(NULL, 1, &setup->device, &length, &binary, &status, &check_error),
        CL_INVALID_CONTEXT);
    CHECK_CL_NULL(clCreateProgramWithBinary(setup->context, 0, &setup->device, &length, &binary,
                                            &status, &check_error),
                  CL_INVALID_VALUE);
    CHECK_CL_NULL(
        clCreateProgramWithBinary(setup->context, 1, NULL, &length, &binary, &status, &check_error),
        CL_INVALID_VALUE);
    CHECK_CL_NULL(clCreateProgramWithBinary(setup->context, 1, (cl_device_id *)&setup->queue,
                                            &length, &binary, &status, &check_error),
                  CL_INVALID_DEVICE);
    CHECK_CL_NULL(clCreateProgramWithBinary(setup->context, 1, &setup->device, NULL, &binary,
                                            &status, &check_error),
                  CL_INVALID_VALUE);
    CHECK_CL_NULL(clCreateProgramWithBinary(setup->context, 1, &setup->device, &length, NULL,
                                            &status, &check_error),
                  CL_INVALID_VALUE);
    CHECK_CL_NULL(clCreateProgramWithBinary(setup->context, 1, &setup->device, &length, &none,
                                            &status, &check_error),
                  CL_INVALID_VALUE);
    CHECK(status == CL_INVALID_VALUE);
    CHECK_CL_NULL(clCreateProgramWithBinary(setup->context, 1, &setup->device, &length, &binary,
                                            &status, &check_error),
                  CL_INVALID_BINARY);
    CHECK(status == CL_INVALID_BINARY);
}

static void check_building(struct check_setup *setup, cl_program program)
{
    cl_device_id wrong = (cl_device_id)setup->context;
    const char *name = "a.h";
    CHECK_CL(clBuildProgram(NULL, 0, NULL, NULL, NULL, NULL), CL_INVALID_PROGRAM);
    CHECK_CL(clBuildProgram((cl_program)setup->context, 0, NULL, NULL, NULL, NULL),
             CL_INVALID_PROGRAM);
    CHECK_CL(clBuildProgram(program, 1, NULL, NULL, NULL, NULL), CL_INVALID_VALUE);
    CHECK_CL(clBuildProgram(program, 0, &setup->device, NULL, NULL, NULL), CL_INVALID_VALUE);
    CHECK_CL(clBuildProgram(program, 0, NULL, NULL, NULL, program), CL_INVALID_VALUE);
    CHECK_CL(clBuildProgram(program, 1, &wrong, NULL, NULL, NULL), CL_INVALID_DEVICE);
    CHECK_CL(clBuildProgram(program, 0, NULL, "-unknown", NULL, NULL), CL_INVALID_BUILD_OPTIONS);

    CHECK_CL(clCompileProgram(NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL), CL_INVALID_PROGRAM);
    CHECK_CL(clCompileProgram(program, 1, NULL, NULL, 0, NULL, NULL, NULL, NULL), CL_INVALID_VALUE);
    CHECK_CL(clCompileProgram(program, 0, NULL, NULL, 1, NULL, &name, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clCompileProgram(program, 0, NULL, NULL, 1, &program, NULL, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clCompileProgram(program, 0, NULL, NULL, 0, &program, &name, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clCompileProgram(program, 0, NULL, NULL, 0, NULL, NULL, NULL, program),
             CL_INVALID_VALUE);
    CHECK_CL(clCompileProgram(program, 1, &wrong, NULL, 0, NULL, NULL, NULL, NULL),
             CL_INVALID_DEVICE);
    CHECK_CL(clCompileProgram(program, 0, NULL, "-unknown", 0, NULL, NULL, NULL, NULL),
             CL_INVALID_COMPILER_OPTIONS);

    CHECK_CL_NULL(clLinkProgram(NULL, 0, NULL, NULL, 1, &program, NULL, NULL, &check_error),
                  CL_INVALID_CONTEXT);
    CHECK_CL_NULL(
        clLinkProgram(setup->context, 1, NULL, NULL, 1, &program, NULL, NULL, &check_error),
        CL_INVALID_VALUE);
    CHECK_CL_NULL(
        clLinkProgram(setup->context, 0, NULL, NULL, 0, &program, NULL, NULL, &check_error),
        CL_INVALID_VALUE);
    CHECK_CL_NULL(clLinkProgram(setup->context, 0, NULL, NULL, 1, NULL, NULL, NULL, &check_error),
                  CL_INVALID_VALUE);
    CHECK_CL_NULL(clLinkProgram(setup->context, 0, NULL, NULL, 1, (cl_program *)&setup->context,
                                NULL, NULL, &check_error),
                  CL_INVALID_PROGRAM);
    CHECK_CL_NULL(
        clLinkProgram(setup->context, 0, NULL, NULL, 1, &program, NULL, program, &check_error),
        CL_INVALID_VALUE);
    CHECK_CL_NULL(
        clLinkProgram(setup->context, 1, &wrong, NULL, 1, &program, NULL, NULL, &check_error),
        CL_INVALID_DEVICE);
    CHECK_CL_NULL(
        clLinkProgram(setup->context, 0, NULL, "-DX", 1, &program, NULL, NULL, &check_error),
        CL_INVALID_LINKER_OPTIONS);
    /* Nothing was compiled. */
    CHECK_CL_NULL(
        clLinkProgram(setup->context, 0, NULL, NULL, 1, &program, ignore, NULL, &check_error),
        CL_INVALID_OPERATION);
}

static void check_queries(struct check_setup *setup, cl_program program)
{
    char room[4];
    size_t size;
    CHECK_CL(clGetProgramInfo(NULL, CL_PROGRAM_CONTEXT, 0, NULL, &size), CL_INVALID_PROGRAM);
    CHECK_CL(clGetProgramInfo(program, 0x1, 0, NULL, &size), CL_INVALID_VALUE);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof room, room, &size),
             CL_INVALID_VALUE);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof room, room, &size),
             CL_INVALID_VALUE);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &size),
             CL_INVALID_PROGRAM_EXECUTABLE);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT, 0, NULL, &size),
             CL_INVALID_PROGRAM_EXECUTABLE);
    CHECK_CL(clGetProgramBuildInfo(NULL, setup->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size),
             CL_INVALID_PROGRAM);
    CHECK_CL(clGetProgramBuildInfo(program, NULL, CL_PROGRAM_BUILD_LOG, 0, NULL, &size),
             CL_INVALID_DEVICE);
    CHECK_CL(clGetProgramBuildInfo(program, setup->device, 0x1, 0, NULL, &size), CL_INVALID_VALUE);
    CHECK_CL(clGetProgramBuildInfo(program, setup->device, CL_PROGRAM_BUILD_STATUS, 1, room, &size),
             CL_INVALID_VALUE);
    CHECK_CL(clRetainProgram(NULL), CL_INVALID_PROGRAM);
    CHECK_CL(clReleaseProgram((cl_program)setup->queue), CL_INVALID_PROGRAM);
    CHECK_CL(clSetProgramReleaseCallback(NULL, ignore, NULL), CL_INVALID_PROGRAM);
    CHECK_CL(clSetProgramReleaseCallback(program, ignore, NULL), CL_INVALID_OPERATION);
    CHECK_CL(clSetProgramSpecializationConstant(program, 0, 1, room), CL_INVALID_OPERATION);
    CHECK_CL(clUnloadPlatformCompiler((cl_platform_id)setup->context), CL_INVALID_PLATFORM);
    CHECK_CL(clUnloadPlatformCompiler(setup->platform), CL_SUCCESS);
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    check_creation(&setup);
    cl_program program = source_program(setup.context, source);
    check_building(&setup, program);
    check_queries(&setup, program);
    /* None of it left anything behind. */
    CHECK_CL(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
    CHECK(run_for_int(&setup, program, "k") == 1);
    cl_uint count = 0;
    CHECK_CL(clRetainProgram(program), CL_SUCCESS);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof count, &count, NULL),
             CL_SUCCESS);
    CHECK(count == 2);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
