/* Program-scope variables of several devices: each has its own, in its own memory, whose pointers
 * may be stored and followed; they survive eviction, start again with the initial values after the
 * device has died, and go with the program while commands still use them. Where the initial values
 * cannot be written, no kernel runs without them. */
#include <sys/wait.h>
#include <unistd.h>

#include "check_devices.h"
#include "check_loss.h"

enum { DEVICES = 3, WORDS = 2 << 20, BUFFERS = 12, BUFFER_BYTES = 8 << 20 };

static const char source[] =
    "global int counter = 40;\n"
    "global int *global place = &counter;\n"
    "global uint table[2 << 20];\n"
    "kernel void add(global ulong *p) { p[0] = counter += 2; p[1] = (ulong)&counter; }\n"
    "kernel void store(global ulong *p) { p[0] = (ulong)(place + 0); }\n"
    "kernel void follow(global ulong *p) { global int *at = (global int *)p[0]; *at += 100; }\n"
    "kernel void fill(global ulong *p) { table[get_global_id(0)] = get_global_id(0) * 7; }\n"
    "kernel void count(global ulong *p) {\n"
    "    if (table[get_global_id(0)] == get_global_id(0) * 7) atomic_inc((global uint *)p);\n"
    "}\n"
    "kernel void crash(global ulong *p) { *(global volatile uint *)8 = p[0]; }\n"
    "kernel void touch(global uint *p) { p[get_global_id(0)] = 1; }\n";

static cl_context context;
static cl_device_id devices[DEVICES];
static cl_command_queue queues[DEVICES];
static cl_program program;
static cl_ulong *result;

static cl_int launch(int device, const char *name, size_t size)
{
    cl_kernel kernel = get_kernel(program, name);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, result), CL_SUCCESS);
    cl_int error =
        clEnqueueNDRangeKernel(queues[device], kernel, 1, NULL, &size, NULL, 0, NULL, NULL);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    return error;
}

static void set_result(cl_ulong value)
{
    CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_WRITE, result, 16, 0, NULL, NULL),
             CL_SUCCESS);
    result[0] = value;
    CHECK_CL(clEnqueueSVMUnmap(queues[0], result, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
}

/* The first word of the result after a kernel; the second one in *second. */
static cl_ulong run(int device, const char *name, size_t size, cl_ulong *second)
{
    CHECK_CL(launch(device, name, size), CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMap(queues[device], CL_TRUE, CL_MAP_READ, result, 16, 0, NULL, NULL),
             CL_SUCCESS);
    cl_ulong first = result[0];
    if (second)
        *second = result[1];
    CHECK_CL(clEnqueueSVMUnmap(queues[device], result, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[device]), CL_SUCCESS);
    return first;
}

static void each_device_has_its_own(void)
{
    for (int device = 0; device < DEVICES; device++)
        for (int i = 0; i <= device; i++)
            CHECK(run(device, "add", 1, NULL) == (cl_ulong)(42 + 2 * i));
    for (int device = 0; device < DEVICES; device++) {
        cl_ulong address;
        CHECK(run(device, "add", 1, &address) == (cl_ulong)(44 + 2 * device));
        /* What the host sees there is only the host's device's own. */
        int seen = *(volatile int *)(uintptr_t)address;
        CHECK((seen == 44 + 2 * device) == (device == 0));
    }
}

/* Passes more through a device than its memory holds, with the variables idle. */
static void evict(int device)
{
    cl_kernel touch = get_kernel(program, "touch");
    size_t size = BUFFER_BYTES / 4;
    void *buffers[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = clSVMAlloc(context, CL_MEM_READ_WRITE, BUFFER_BYTES, 0);
        REQUIRE(buffers[i]);
        CHECK_CL(clSetKernelArgSVMPointer(touch, 0, buffers[i]), CL_SUCCESS);
        CHECK_CL(clEnqueueNDRangeKernel(queues[device], touch, 1, NULL, &size, NULL, 0, NULL, NULL),
                 CL_SUCCESS);
    }
    CHECK_CL(clFinish(queues[device]), CL_SUCCESS);
    for (int i = 0; i < BUFFERS; i++)
        clSVMFree(context, buffers[i]);
    CHECK_CL(clReleaseKernel(touch), CL_SUCCESS);
}

/* By a kernel that does not name the variable, of which the device has nothing just then. */
static void pointers_are_followed(int device)
{
    cl_ulong before = run(device, "add", 1, NULL);
    run(device, "store", 1, NULL);
    evict(device);
    CHECK_CL(launch(device, "follow", 1), CL_SUCCESS);
    CHECK(run(device, "add", 1, NULL) == before + 102);
}

static void they_survive_eviction(int device)
{
    run(device, "fill", WORDS, NULL);
    evict(device);
    set_result(0);
    CHECK(run(device, "count", WORDS, NULL) == WORDS);
}

static void death_starts_them_again(int device, int other)
{
    cl_ulong before = run(other, "add", 1, NULL);
    CHECK(run(device, "add", 1, NULL) > 42);
    CHECK_CL(launch(device, "crash", 1), CL_SUCCESS);
    clFinish(queues[device]);
    wait_for_deaths(1);
    CHECK(run(device, "add", 1, NULL) == 42);
    run(device, "store", 1, NULL);
    CHECK_CL(launch(device, "follow", 1), CL_SUCCESS);
    CHECK(run(device, "add", 1, NULL) == 144);
    CHECK(run(other, "add", 1, NULL) == before + 2);
    set_result(0);
    CHECK(run(device, "count", WORDS, NULL) == 1); /* zeros again */
}

/* The first use of a program is also its last, and nobody waits. */
static void they_go_with_the_program(int device)
{
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    for (int i = 0; i < 20; i++) {
        program = build(context, source, "-cl-std=CL3.0");
        CHECK_CL(launch(device, "add", 1), CL_SUCCESS);
        CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    }
    CHECK_CL(clFinish(queues[device]), CL_SUCCESS);
    program = build(context, source, "-cl-std=CL3.0");
    CHECK(run(device, "add", 1, NULL) == 42);
}

/* More than the device has. */
static void too_large_is_said(int device)
{
    static const char large[] = "global uint huge[100 << 20];\n"
                                "kernel void use(global ulong *p) { p[0] = ++huge[*p]; }\n";
    cl_program kept = program;
    program = build(context, large, "-cl-std=CL3.0");
    CHECK_CL(launch(device, "use", 1), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    set_result(5);
    CHECK(run(0, "use", 1, NULL) == 1); /* the host's device has room */
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    program = kept;
}

static const char small[] =
    "global uint zeros[500], three = 3;\n"
    "kernel void peek(global ulong *p) { ulong sum = three;\n"
    "    for (int i = 0; i < 500; i++) sum += zeros[i];\n"
    "    *p = sum; }\n"
    "kernel void soil(global ulong *p) { for (int i = 0; i < 500; i++) zeros[i] = i + 1; }\n";

/* Whether a kernel says that it is done. Where it cannot begin, that was said at once. */
static bool complete(const char *name)
{
    cl_kernel kernel = get_kernel(program, name);
    cl_event event = NULL;
    cl_int status = -1;
    size_t size = 1;
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, result), CL_SUCCESS);
    if (!clEnqueueNDRangeKernel(queues[1], kernel, 1, NULL, &size, NULL, 0, NULL, &event))
        status = end_of(event);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    return status == CL_COMPLETE;
}

/* In a process whose devices fail: a kernel that says it is done has found the variables as they
 * are to be, and later ones do so as well. */
static int run_failing(void)
{
    enum { ROUNDS = 6 };
    cl_ulong expected = 40;
    int good = 0;
    context = context_of_all(2, devices, queues, NULL, NULL);
    program = build(context, source, "-cl-std=CL3.0");
    result = clSVMAlloc(context, CL_MEM_READ_WRITE, 16, 0);
    REQUIRE(result);
    for (int i = 0; i < ROUNDS; i++) {
        if (!complete("add"))
            continue;
        expected += 2;
        good++;
        if (clEnqueueSVMMap(queues[1], CL_TRUE, CL_MAP_READ, result, 16, 0, NULL, NULL))
            continue;
        CHECK(result[0] == expected);
        CHECK_CL(clEnqueueSVMUnmap(queues[1], result, 0, NULL, NULL), CL_SUCCESS);
    }
    CHECK(good >= ROUNDS - 2);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    /* One program after the other has the same memory, in which its zeros are zeros again. */
    for (int i = 0; i < ROUNDS; i++) {
        program = build(context, small, "-cl-std=CL3.0");
        if (complete("peek")) {
            cl_ulong *seen = result;
            if (!clEnqueueSVMMap(queues[1], CL_TRUE, CL_MAP_READ, seen, 16, 0, NULL, NULL)) {
                CHECK(seen[0] == 3);
                CHECK_CL(clEnqueueSVMUnmap(queues[1], seen, 0, NULL, NULL), CL_SUCCESS);
            }
        }
        complete("soil");
        CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    }
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    return check_result();
}

static void failures_are_said(const char *self)
{
    static const char *const kinds[] = {"init", "arrival", "bind"};
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (int n = 1; n <= 8; n++) {
            char which[32];
            int status = 0;
            snprintf(which, sizeof which, "%s:%d", kinds[kind], n);
            pid_t child = fork();
            REQUIRE(child >= 0);
            if (child == 0) {
                setenv("SAMEPAGE_DEVICES", "cpu,virtual,mem=64M", 1);
                setenv("SAMEPAGE_VIRTUAL_FAILS", which, 1);
                execl("/proc/self/exe", self, "failing", NULL);
                _exit(127);
            }
            REQUIRE(waitpid(child, &status, 0) == child);
            if (!WIFEXITED(status) || WEXITSTATUS(status))
                fprintf(stderr, "with %s:\n", which);
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_failing();
    failures_are_said(argv[0]);
    const char *others = getenv("SAMEPAGE_TEST_DEVICES");
    setenv("SAMEPAGE_DEVICES", others ? others : "cpu,virtual:2,mem=64M", 1);
    context = context_of_all(DEVICES, devices, queues, hear, &heard);
    program = build(context, source, "-cl-std=CL3.0");
    result = clSVMAlloc(context, CL_MEM_READ_WRITE, 16, 0);
    REQUIRE(result);
    each_device_has_its_own();
    for (int device = 0; device < DEVICES; device++) {
        pointers_are_followed(device);
        they_survive_eviction(device);
    }
    death_starts_them_again(1, 2);
    they_go_with_the_program(2);
    if (!others) /* where it is known how much they have */
        too_large_is_said(1);
    clSVMFree(context, result);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    for (int device = 0; device < DEVICES; device++)
        CHECK_CL(clReleaseCommandQueue(queues[device]), CL_SUCCESS);
    CHECK_CL(clReleaseContext(context), CL_SUCCESS);
    return check_result();
}
