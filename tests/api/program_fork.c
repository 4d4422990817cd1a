/* After fork() parent and child both go on building, each with a compiler of its own; and exec
 * leaves nothing open. */
#include "check_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_build(struct check_setup *setup, int value)
{
    char options[64];
    size_t count = 0;
    snprintf(options, sizeof options, "-DVALUE=%d", value);
    cl_program program = build(setup->context,
                               "__kernel void k(__global int *p) { p[0] = VALUE; }\n"
                               "__kernel void l(__global int *p) { p[0] = VALUE; }\n",
                               options);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof count, &count, NULL),
             CL_SUCCESS);
    CHECK(count == 2);
    /* Asking for the code waits for it, whoever makes it. */
    cl_kernel kernel = get_kernel(program, "k");
    size_t multiple = 0;
    CHECK_CL(clGetKernelWorkGroupInfo(kernel, setup->device,
                                      CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof multiple,
                                      &multiple, NULL),
             CL_SUCCESS);
    CHECK(multiple > 0);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
}

int main(int argc, char **argv)
{
    struct check_setup setup;
    if (argc > 1) { /* after exec */
        for (int fd = 3; fd < 256; fd++)
            CHECK(fcntl(fd, F_GETFD) < 0);
        return check_result();
    }
#ifdef __SANITIZE_THREAD__
    return 0; /* ThreadSanitizer ends the child of a process with threads */
#endif
    for (int fd = 3; fd < 256; fd++) /* what we got from who runs us is not what we look for */
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    setenv("SAMEPAGE_CACHE", "0", 1);
    check_setup(&setup);
    /* Code of this one is still being made when the process forks. */
    cl_program early = build(setup.context,
                             "__kernel void a(__global float *p) { p[0] = sin(p[0]); }\n"
                             "__kernel void b(__global float *p) { p[0] = cos(p[0]); }\n"
                             "__kernel void c(__global float *p) { p[0] = exp(p[0]); }\n"
                             "__kernel void d(__global float *p) { p[0] = log(p[0]); }\n",
                             NULL);
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        cl_kernel kernel = get_kernel(early, "d");
        size_t multiple = 0;
        CHECK_CL(clGetKernelWorkGroupInfo(kernel, setup.device,
                                          CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
                                          sizeof multiple, &multiple, NULL),
                 CL_SUCCESS);
        CHECK(multiple > 0);
        check_build(&setup, 10);
        _exit(check_result());
    }
    check_build(&setup, 20);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    check_build(&setup, 30);
    child = fork();
    if (child == 0) {
        char *const words[] = {argv[0], "again", NULL};
        execv("/proc/self/exe", words);
        _exit(9);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK_CL(clReleaseProgram(early), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
