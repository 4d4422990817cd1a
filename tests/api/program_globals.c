/* Program-scope variables start with their values, are shared by the program's kernels and live as
 * long as the build. */
#include "check_program.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    const char *source = "__global int counter = 40;\n"
                         "__global int zeros[1000];\n"
                         "__constant int table[3] = {1, 2, 3};\n"
                         "__kernel void add(__global int *p) { p[0] = counter += table[1]; }\n"
                         "__kernel void get(__global int *p) { p[0] = counter + zeros[999]; }\n"
                         "__kernel void none(__global int *p) { p[0] = 1; }\n";
    cl_program program = build(setup.context, source, "-cl-std=CL2.0");
    size_t bytes = 0;
    CHECK_CL(clGetProgramBuildInfo(program, setup.device,
                                   CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, sizeof bytes,
                                   &bytes, NULL),
             CL_SUCCESS);
    CHECK(bytes >= 4004 && bytes < 8192);
    CHECK(run_for_int(&setup, program, "none") == 1);
    CHECK(run_for_int(&setup, program, "get") == 40);
    CHECK(run_for_int(&setup, program, "add") == 42);
    CHECK(run_for_int(&setup, program, "add") == 44);
    CHECK(run_for_int(&setup, program, "get") == 44);
    CHECK_CL(clBuildProgram(program, 0, NULL, "-cl-std=CL2.0", NULL, NULL), CL_SUCCESS);
    CHECK(run_for_int(&setup, program, "get") == 40);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
