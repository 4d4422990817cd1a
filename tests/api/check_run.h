/* For the tests of the checking mode: a test runs itself once for each scenario, with the mode and
 * the devices that it names, and looks at what the other process wrote and how it ended. */
#ifndef CHECK_RUN_H
#define CHECK_RUN_H

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check_child.h"

#define CPU_ONLY "cpu"
#define ALL_DEVICES "cpu,virtual:2,mem=256M"

/* A function that reports name: a frame of its own, which is still there when it calls. */
#define RUN_TOUCH __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls")))

struct run {
    int status; /* of waitpid */
    char text[32768];
};

/* Runs scenario `name` under SAMEPAGE_CHECK=`mode`. */
__attribute__((unused)) static void run_self(struct run *run, const char *mode, const char *devices,
                                             const char *name)
{
    const char *words[] = {"/proc/self/exe", name, NULL};
    setenv("SAMEPAGE_CHECK", mode, 1);
    setenv("SAMEPAGE_DEVICES", devices, 1);
    run->status = run_child(words, true, run->text, sizeof run->text);
}

/* How many reports there are. */
__attribute__((unused)) static unsigned run_reports(const struct run *run)
{
    unsigned count = 0;
    for (const char *at = run->text; (at = strstr(at, "samepage check: ")); at++)
        count++;
    return count;
}

__attribute__((unused)) static void run_failed(const struct run *run, const char *file, int line,
                                               const char *what)
{
    check_failed(file, line, what);
    fprintf(stderr, "--- it wrote:\n%s---\n", run->text);
}

#define CHECK_RUN(run, condition)                                                                  \
    do {                                                                                           \
        if (!(condition))                                                                          \
            run_failed(&(run), __FILE__, __LINE__, "not true: " #condition);                       \
    } while (0)

/* Ended well, after `expected` reports. */
#define CHECK_RUN_REPORTS(run, expected)                                                           \
    do {                                                                                           \
        CHECK_RUN(run, WIFEXITED((run).status) && WEXITSTATUS((run).status) == 0);                 \
        CHECK_RUN(run, run_reports(&(run)) == (expected));                                         \
    } while (0)

/* The text has this, given as for printf. */
__attribute__((unused, format(printf, 4, 5))) static void
run_says(const struct run *run, const char *file, int line, const char *format, ...)
{
    char expected[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected, sizeof expected, format, arguments);
    va_end(arguments);
    if (strstr(run->text, expected))
        return;
    check_failed(file, line, expected);
    fprintf(stderr, "    is not in what it wrote:\n%s---\n", run->text);
}

#define CHECK_SAYS(run, ...) run_says(&(run), __FILE__, __LINE__, __VA_ARGS__)

/* Whether the process can have a userfaultfd, and one that serves system calls. */
__attribute__((unused)) static bool run_can_watch(bool for_kernel)
{
    int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | (for_kernel ? 0 : UFFD_USER_MODE_ONLY));
    if (uffd < 0)
        uffd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (uffd >= 0)
        close(uffd);
    return uffd >= 0;
}

/* Ends the test as skipped where accesses of the host cannot be watched. */
__attribute__((unused)) static void run_require_watch(void)
{
    if (run_can_watch(false))
        return;
    fprintf(stderr, "this system lets the process have no userfaultfd\n");
    exit(77);
}

/* A context of all devices, and a queue on each. */
struct run_setup {
    cl_uint num_devices;
    cl_device_id devices[4];
    cl_command_queue queues[4];
    cl_context context;
};

__attribute__((unused)) static void
run_setup_with(struct run_setup *setup,
               void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *))
{
    cl_int error;
    REQUIRE_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_ALL, 4, setup->devices,
                              &setup->num_devices));
    setup->context =
        clCreateContext(NULL, setup->num_devices, setup->devices, notify, NULL, &error);
    REQUIRE_CL(error);
    for (cl_uint i = 0; i < setup->num_devices; i++) {
        setup->queues[i] =
            clCreateCommandQueueWithProperties(setup->context, setup->devices[i], NULL, &error);
        REQUIRE_CL(error);
    }
}

__attribute__((unused)) static void run_finish(struct run_setup *setup)
{
    for (cl_uint i = 0; i < setup->num_devices; i++) {
        CHECK_CL(clFinish(setup->queues[i]), CL_SUCCESS);
        CHECK_CL(clReleaseCommandQueue(setup->queues[i]), CL_SUCCESS);
    }
    CHECK_CL(clReleaseContext(setup->context), CL_SUCCESS);
}

__attribute__((unused)) static void run_map(struct run_setup *setup, cl_map_flags flags, void *p,
                                            size_t bytes)
{
    CHECK_CL(clEnqueueSVMMap(setup->queues[0], CL_TRUE, flags, p, bytes, 0, NULL, NULL),
             CL_SUCCESS);
}

__attribute__((unused)) static void run_unmap(struct run_setup *setup, void *p)
{
    CHECK_CL(clEnqueueSVMUnmap(setup->queues[0], p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(setup->queues[0]), CL_SUCCESS);
}

__attribute__((unused)) static cl_kernel run_kernel(struct run_setup *setup, const char *source,
                                                    const char *name)
{
    cl_int error;
    cl_program program = clCreateProgramWithSource(setup->context, 1, &source, NULL, &error);
    REQUIRE_CL(error);
    REQUIRE_CL(clBuildProgram(program, 0, NULL, "-cl-std=CL3.0", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, name, &error);
    REQUIRE_CL(error);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    return kernel;
}

#endif
