/* With a callback, building, compiling and linking go on by themselves; the callback sees the
 * result. */
#include "check_program.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t called = PTHREAD_COND_INITIALIZER;
static int calls;
static cl_program seen;
static cl_build_status seen_status;

static void CL_CALLBACK note(cl_program program, void *user_data)
{
    cl_build_status status = 55;
    clGetProgramBuildInfo(program, user_data, CL_PROGRAM_BUILD_STATUS, sizeof status, &status,
                          NULL);
    pthread_mutex_lock(&lock);
    seen = program;
    seen_status = status;
    calls++;
    pthread_cond_broadcast(&called);
    pthread_mutex_unlock(&lock);
}

static void wait_for_calls(int wanted)
{
    pthread_mutex_lock(&lock);
    while (calls < wanted)
        pthread_cond_wait(&called, &lock);
    pthread_mutex_unlock(&lock);
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    cl_program program =
        source_program(setup.context, "__kernel void k(__global int *p) { p[0] = 8; }");
    CHECK_CL(clBuildProgram(program, 0, NULL, NULL, note, setup.device), CL_SUCCESS);
    wait_for_calls(1);
    CHECK(seen == program && seen_status == CL_BUILD_SUCCESS);
    CHECK(run_for_int(&setup, program, "k") == 8);

    /* While one build is under way another is refused; which is caught depends on the speed. */
    CHECK_CL(clBuildProgram(program, 0, NULL, "-DX=1", note, setup.device), CL_SUCCESS);
    error = clBuildProgram(program, 0, NULL, "-DX=2", note, setup.device);
    CHECK(error == CL_SUCCESS || error == CL_INVALID_OPERATION);
    int wanted = error ? 2 : 3;
    wait_for_calls(wanted);

    CHECK_CL(clCompileProgram(program, 0, NULL, NULL, 0, NULL, NULL, note, setup.device),
             CL_SUCCESS);
    wait_for_calls(++wanted);
    CHECK(seen_status == CL_BUILD_SUCCESS);
    cl_program linked =
        clLinkProgram(setup.context, 0, NULL, NULL, 1, &program, note, setup.device, &error);
    REQUIRE_CL(error);
    wait_for_calls(++wanted);
    CHECK(seen == linked && seen_status == CL_BUILD_SUCCESS);
    CHECK(run_for_int(&setup, linked, "k") == 8);
    CHECK_CL(clReleaseProgram(linked), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);

    /* A failure is told by the callback only; a program may be released meanwhile. */
    program = source_program(setup.context, "__kernel void k( { }");
    CHECK_CL(clBuildProgram(program, 1, &setup.device, NULL, note, setup.device), CL_SUCCESS);
    wait_for_calls(++wanted);
    CHECK(seen_status == CL_BUILD_ERROR);
    CHECK_CL(clBuildProgram(program, 0, NULL, "-DY", note, setup.device), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    wait_for_calls(++wanted);
    check_finish(&setup);
    return check_result();
}
