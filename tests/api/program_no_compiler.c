/* Without samepage-cc, builds say so; with a program in its place that is not samepage-cc, too. */
#include "check_program.h"

#include <sys/wait.h>
#include <unistd.h>

static int reports;

static void CL_CALLBACK note(const char *message, const void *info, size_t bytes, void *user_data)
{
    (void)info;
    (void)bytes;
    (void)user_data;
    reports += strstr(message, "SAMEPAGE_CC") != NULL;
}

static int check_with(const char *compiler)
{
    setenv("SAMEPAGE_CC", compiler, 1);
    cl_device_id device;
    cl_int error;
    char log[1024] = "";
    REQUIRE_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, note, NULL, &error);
    REQUIRE_CL(error);
    cl_program program = source_program(context, "__kernel void k(void) { /* no compiler */ }");
    CHECK_CL(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), CL_COMPILER_NOT_AVAILABLE);
    CHECK_CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL),
             CL_SUCCESS);
    CHECK(strstr(log, compiler) != NULL && strstr(log, "SAMEPAGE_CC") != NULL);
    CHECK(reports == 1);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    CHECK_CL(clReleaseContext(context), CL_SUCCESS);
    return check_result();
}

int main(void)
{
    static const char *const compilers[] = {"/nowhere/samepage-cc", "/bin/true", "/",
                                            "/etc/passwd"};
    for (size_t i = 0; i < sizeof compilers / sizeof compilers[0]; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(check_with(compilers[i]));
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    return check_result();
}
