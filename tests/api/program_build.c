/* A source builds, its kernels run with the options given, and the queries tell of it. */
#include "check_program.h"

static const char source[] = "__kernel void k(__global int *p) { p[0] = VALUE + 1; }\n"
                             "__kernel void a(__global int *p) { p[0] = 7; }\n";

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_program program = source_program(setup.context, source);
    cl_build_status status = 5;
    cl_program_binary_type type = 5;
    size_t count, size = 5;
    char text[256];

    CHECK_CL(clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BUILD_STATUS, sizeof status,
                                   &status, NULL),
             CL_SUCCESS);
    CHECK(status == CL_BUILD_NONE);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof count, &count, NULL),
             CL_INVALID_PROGRAM_EXECUTABLE);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL),
             CL_SUCCESS);
    CHECK(size == 0);

    CHECK_CL(clBuildProgram(program, 1, &setup.device, "-D VALUE=41 -cl-mad-enable", NULL, NULL),
             CL_SUCCESS);
    CHECK(run_for_int(&setup, program, "k") == 42);
    CHECK(run_for_int(&setup, program, "a") == 7);

    CHECK_CL(clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BUILD_STATUS, sizeof status,
                                   &status, NULL),
             CL_SUCCESS);
    CHECK(status == CL_BUILD_SUCCESS);
    CHECK_CL(clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BINARY_TYPE, sizeof type,
                                   &type, NULL),
             CL_SUCCESS);
    CHECK(type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
    CHECK_CL(clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BUILD_OPTIONS, sizeof text,
                                   text, &size),
             CL_SUCCESS);
    CHECK(strcmp(text, "-D VALUE=41 -cl-mad-enable") == 0 && size == strlen(text) + 1);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof count, &count, NULL),
             CL_SUCCESS);
    CHECK(count == 2);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof text, text, NULL),
             CL_SUCCESS);
    CHECK(strcmp(text, "a;k") == 0);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof text, text, &size), CL_SUCCESS);
    CHECK(strcmp(text, source) == 0 && size == sizeof source);
    cl_bool has = 5;
    CHECK_CL(
        clGetProgramInfo(program, CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT, sizeof has, &has, NULL),
        CL_SUCCESS);
    CHECK(has == CL_FALSE);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_IL, sizeof text, text, &size), CL_SUCCESS);
    CHECK(size == 0);

    /* Built again, with another option. */
    CHECK_CL(clBuildProgram(program, 0, NULL, "-DVALUE=1", NULL, NULL), CL_SUCCESS);
    CHECK(run_for_int(&setup, program, "k") == 2);

    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
