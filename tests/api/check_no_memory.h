/* What tests of memory that runs out share: the program runs itself with SAMEPAGE_FAIL_ALLOC=1, 2,
 * ... until a run needs fewer allocations than that, which it tells by succeeding in all calls. */
#ifndef CHECK_NO_MEMORY_H
#define CHECK_NO_MEMORY_H

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

enum { ALL_WORKED = 0, ONE_FAILED = 1, WRONG = 2, MAX_RUNS = 5000 };

static int outcome = ALL_WORKED;
static int calls_made;

/* Whether a call worked; an error must be one of those that stand for want of memory. */
static bool worked(cl_int error, int line)
{
    calls_made++;
    if (error == CL_SUCCESS)
        return true;
    if (outcome == ALL_WORKED)
        outcome = ONE_FAILED;
    if (error != CL_OUT_OF_HOST_MEMORY && error != CL_OUT_OF_RESOURCES &&
        error != CL_MEM_OBJECT_ALLOCATION_FAILURE && error != CL_PLATFORM_NOT_FOUND_KHR) {
        fprintf(stderr, "%s:%d: error %d\n", __FILE__, line, error);
        outcome = WRONG;
    }
    return false;
}

#define WORKED(call) worked((call), __LINE__)

/* Does `use` in a context of the first two devices, with a queue each. */
__attribute__((unused)) static void with_two_devices(void (*use)(cl_context context,
                                                                 cl_command_queue *queues))
{
    cl_platform_id platform;
    cl_device_id devices[2];
    cl_command_queue queues[2];
    cl_int error;
    cl_uint count = 0;
    if (!WORKED(clGetPlatformIDs(1, &platform, &count)) ||
        !WORKED(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices, &count)))
        return;
    cl_context context = clCreateContext(NULL, 2, devices, NULL, NULL, &error);
    if (!WORKED(error))
        return;
    queues[0] = clCreateCommandQueueWithProperties(context, devices[0], NULL, &error);
    if (WORKED(error)) {
        queues[1] = clCreateCommandQueueWithProperties(context, devices[1], NULL, &error);
        if (WORKED(error)) {
            use(context, queues);
            clReleaseCommandQueue(queues[1]);
        }
        clReleaseCommandQueue(queues[0]);
    }
    clReleaseContext(context);
}

static int run_with(const char *self, int failing)
{
    char number[16];
    snprintf(number, sizeof number, "%d", failing);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        setenv("SAMEPAGE_FAIL_ALLOC", number, 1);
        execl("/proc/self/exe", self, "scenario", (char *)NULL);
        _exit(WRONG);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : WRONG;
}

/* The whole test: for main, with what one run is to do. */
static int fail_in_turn(int argc, char **argv, void (*scenario)(void))
{
    if (argc == 2) {
        alarm(600); /* a hang is a failure */
        scenario();
        return outcome;
    }
    int failing = 1, failures = 0, result = ONE_FAILED, in_a_row = 0;
    /* Some allocations can be done without, so one success is not the end. */
    for (; failing < MAX_RUNS && in_a_row < 60; failing++) {
        result = run_with(argv[0], failing);
        in_a_row = result == ALL_WORKED ? in_a_row + 1 : 0;
        failures += result == ONE_FAILED;
        if (result != ALL_WORKED && result != ONE_FAILED) {
            fprintf(stderr, "with allocation %d failing: outcome %d\n", failing, result);
            check_failures++;
        }
    }
    CHECK(failures > 20 && failing < MAX_RUNS);
    printf("%d allocations failed in turn\n", failures);
    return check_result();
}

#endif
