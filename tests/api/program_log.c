/* Errors of a source come back as the build log, with line and column; the program can be built
 * again. */
#include "check_program.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    const char *source = "#ifndef GOOD\n"
                         "__kernel void k(__global int *p) { p[0] = undeclared; }\n"
                         "#else\n"
                         "__kernel void k(__global int *p) { p[0] = 4; }\n"
                         "#endif\n";
    char log[4096];
    size_t size;
    cl_build_status status;
    cl_program_binary_type type;
    cl_int error;
    cl_program program = source_program(setup.context, source);
    CHECK_CL(clBuildProgram(program, 0, NULL, "", NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
    CHECK_CL(clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BUILD_STATUS, sizeof status,
                                   &status, NULL),
             CL_SUCCESS);
    CHECK(status == CL_BUILD_ERROR);
    CHECK_CL(clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BINARY_TYPE, sizeof type,
                                   &type, NULL),
             CL_SUCCESS);
    CHECK(type == CL_PROGRAM_BINARY_TYPE_NONE);
    CHECK_CL(
        clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BUILD_LOG, sizeof log, log, &size),
        CL_SUCCESS);
    CHECK(size == strlen(log) + 1);
    CHECK(strstr(log, ":2:43: error: use of undeclared identifier 'undeclared'") != NULL);
    CHECK_CL_NULL(clCreateKernel(program, "k", &check_error), CL_INVALID_PROGRAM_EXECUTABLE);

    CHECK_CL(clBuildProgram(program, 0, NULL, "-DGOOD", NULL, NULL), CL_SUCCESS);
    CHECK(run_for_int(&setup, program, "k") == 4);
    CHECK_CL(clCompileProgram(program, 0, NULL, "", 0, NULL, NULL, NULL, NULL),
             CL_COMPILE_PROGRAM_FAILURE);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);

    /* A warning is in the log of a build that succeeds, found in the cache or not. */
    for (int i = 0; i < 2; i++) {
        program = source_program(setup.context, "__kernel void k(__global int *p)\n"
                                                "{\n"
                                                "#warning look here\n"
                                                "}\n");
        error = clBuildProgram(program, 0, NULL, NULL, NULL, NULL);
        CHECK_CL(error, CL_SUCCESS);
        CHECK_CL(clGetProgramBuildInfo(program, setup.device, CL_PROGRAM_BUILD_LOG, sizeof log, log,
                                       NULL),
                 CL_SUCCESS);
        CHECK(strstr(log, "warning: look here") != NULL);
        CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    }
    check_finish(&setup);
    return check_result();
}
