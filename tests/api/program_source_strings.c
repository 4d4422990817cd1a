/* A source given in pieces, with and without lengths and with zeros inside, is put together. */
#include "check_program.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    const char *strings[] = {"__kernel void k(__global int *p)XXXX", "{ p[0] = \0 9", "; }\n"};
    const size_t lengths[] = {32, 12, 0};
    cl_int error;
    char text[64];
    size_t size;
    cl_program program = clCreateProgramWithSource(setup.context, 3, strings, lengths, &error);
    REQUIRE_CL(error);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof text, text, &size), CL_SUCCESS);
    CHECK(strcmp(text, "__kernel void k(__global int *p){ p[0] =  9; }\n") == 0);
    CHECK(size == strlen(text) + 1);
    CHECK_CL(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
    CHECK(run_for_int(&setup, program, "k") == 9);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
