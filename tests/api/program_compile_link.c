/* Separate compilation: embedded headers, objects, libraries, and what cannot be linked. */
#include "check_program.h"

static cl_program_binary_type binary_type(cl_program program, cl_device_id device)
{
    cl_program_binary_type type = 77;
    CHECK_CL(
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BINARY_TYPE, sizeof type, &type, NULL),
        CL_SUCCESS);
    return type;
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    char log[4096] = "";
    cl_program header = source_program(setup.context, "int helper(int);\n#define PLUS 5\n");
    cl_program empty = source_program(setup.context, "#error not this one\n");
    cl_program main_part = source_program(
        setup.context, "#include <sub/decl.h>\n"
                       "__kernel void k(__global int *p) { p[0] = helper(2) + PLUS; }\n");
    cl_program helper = source_program(setup.context, "int helper(int a) { return a * 10; }\n");

    cl_program headers[] = {header, empty};
    const char *names[] = {"sub/decl.h", "sub/decl.h"};
    CHECK_CL(clCompileProgram(main_part, 0, NULL, "-cl-std=CL2.0", 2, headers, names, NULL, NULL),
             CL_SUCCESS);
    CHECK(binary_type(main_part, setup.device) == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT);
    CHECK_CL_NULL(clCreateKernel(main_part, "k", &check_error), CL_INVALID_PROGRAM_EXECUTABLE);

    /* A program without its helper cannot be linked: that is a program too, with a log. */
    cl_program linked =
        clLinkProgram(setup.context, 0, NULL, NULL, 1, &main_part, NULL, NULL, &error);
    CHECK(error == CL_LINK_PROGRAM_FAILURE);
    REQUIRE(linked);
    CHECK_CL(
        clGetProgramBuildInfo(linked, setup.device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL),
        CL_SUCCESS);
    CHECK(strstr(log, "helper") != NULL);
    CHECK_CL(clReleaseProgram(linked), CL_SUCCESS);

    /* One part compiled, one not. */
    cl_program parts[] = {main_part, helper};
    CHECK_CL_NULL(
        clLinkProgram(setup.context, 1, &setup.device, NULL, 2, parts, NULL, NULL, &check_error),
        CL_INVALID_OPERATION);
    CHECK_CL(clCompileProgram(helper, 1, &setup.device, NULL, 0, NULL, NULL, NULL, NULL),
             CL_SUCCESS);
    linked = clLinkProgram(setup.context, 1, &setup.device, "-cl-fast-relaxed-math", 2, parts, NULL,
                           NULL, &error);
    REQUIRE_CL(error);
    CHECK(binary_type(linked, setup.device) == CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
    CHECK(run_for_int(&setup, linked, "k") == 25);
    CHECK_CL(clBuildProgram(linked, 0, NULL, NULL, NULL, NULL), CL_INVALID_OPERATION);
    CHECK_CL(clCompileProgram(linked, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL),
             CL_INVALID_OPERATION);
    CHECK_CL(clReleaseProgram(linked), CL_SUCCESS);

    /* Through a library. */
    CHECK_CL_NULL(clLinkProgram(setup.context, 0, NULL, "-enable-link-options", 1, &helper, NULL,
                                NULL, &check_error),
                  CL_INVALID_LINKER_OPTIONS);
    cl_program library =
        clLinkProgram(setup.context, 0, NULL, "-create-library -enable-link-options", 1, &helper,
                      NULL, NULL, &error);
    REQUIRE_CL(error);
    CHECK(binary_type(library, setup.device) == CL_PROGRAM_BINARY_TYPE_LIBRARY);
    CHECK_CL(clReleaseProgram(helper), CL_SUCCESS);
    parts[1] = library;
    linked = clLinkProgram(setup.context, 0, NULL, NULL, 2, parts, NULL, NULL, &error);
    REQUIRE_CL(error);
    CHECK_CL(clReleaseProgram(library), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(main_part), CL_SUCCESS);
    CHECK(run_for_int(&setup, linked, "k") == 25);
    CHECK_CL(clReleaseProgram(linked), CL_SUCCESS);

    CHECK_CL(clReleaseProgram(header), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(empty), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
