/* The checking mode finds that the same bytes are used by two devices at once, or by a device while
 * the host has them mapped, and one writes; and says nothing of readers, of other bytes, and of
 * what events order. */
#include <signal.h>

#include "check_run.h"

enum { COUNT = 4096 };

/* Runs long enough that the two meet. */
static const char source[] =
    "kernel void write_it(global uint *p, uint rounds) {\n"
    "  uint x = get_global_id(0);\n"
    "  for (uint i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;\n"
    "  p[get_global_id(0)] = x;\n"
    "}\n"
    "kernel void read_it(global const uint *p, global uint *sum, uint rounds) {\n"
    "  uint x = p[get_global_id(0)];\n"
    "  for (uint i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;\n"
    "  sum[get_global_id(0)] = x;\n"
    "}\n";

static struct run_setup setup;
static cl_uint *p, *sums[2];
static cl_kernel kernels[2];

static cl_event RUN_TOUCH enqueue(int index, bool writes, cl_event after)
{
    size_t count = COUNT;
    cl_uint rounds = 100000;
    cl_event event = NULL;
    cl_kernel kernel = kernels[index] = run_kernel(&setup, source, writes ? "write_it" : "read_it");
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, p), CL_SUCCESS);
    if (!writes)
        CHECK_CL(clSetKernelArgSVMPointer(kernel, 1, sums[index]), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, writes ? 1 : 2, sizeof rounds, &rounds), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queues[1 + index], kernel, 1, NULL, &count, NULL,
                                    after ? 1u : 0u, after ? &after : NULL, &event),
             CL_SUCCESS);
    CHECK_CL(clFlush(setup.queues[1 + index]), CL_SUCCESS);
    return event;
}

/* Two devices, each with its half of a buffer; or both with all of it. */
static void share_buffer(bool in_halves)
{
    const cl_buffer_region halves[2] = {{0, COUNT * 4}, {COUNT * 4, COUNT * 4}};
    size_t count = COUNT;
    cl_uint rounds = 100000;
    cl_int error;
    cl_mem buffer = clCreateBuffer(setup.context, 0, COUNT * 8, NULL, &error), parts[2];
    REQUIRE_CL(error);
    cl_event gate = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    for (int i = 0; i < 2; i++) {
        parts[i] = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &halves[i], &error);
        REQUIRE_CL(error);
        kernels[i] = run_kernel(&setup, source, "write_it");
        CHECK_CL(clSetKernelArg(kernels[i], 0, sizeof buffer, in_halves ? &parts[i] : &buffer),
                 CL_SUCCESS);
        CHECK_CL(clSetKernelArg(kernels[i], 1, sizeof rounds, &rounds), CL_SUCCESS);
        CHECK_CL(clEnqueueNDRangeKernel(setup.queues[1 + i], kernels[i], 1, NULL, &count, NULL, 1,
                                        &gate, NULL),
                 CL_SUCCESS);
    }
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    for (int i = 0; i < 2; i++) {
        CHECK_CL(clFinish(setup.queues[1 + i]), CL_SUCCESS);
        CHECK_CL(clReleaseMemObject(parts[i]), CL_SUCCESS);
    }
    CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
}

static void scenario(const char *name)
{
    cl_uint zero = 0;
    cl_int error;
    run_setup_with(&setup, NULL);
    p = clSVMAlloc(setup.context, 0, COUNT * 4, 0);
    sums[0] = clSVMAlloc(setup.context, 0, COUNT * 4, 0);
    sums[1] = clSVMAlloc(setup.context, 0, COUNT * 4, 0);
    REQUIRE(p && sums[0] && sums[1]);
    CHECK_CL(clEnqueueSVMMemFill(setup.queues[0], p, &zero, 4, COUNT * 4, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(setup.queues[0]), CL_SUCCESS);
    cl_event gate = clCreateUserEvent(setup.context, &error), first = NULL, second = NULL;
    REQUIRE_CL(error);
    bool both_write = !strcmp(name, "writers"), both_read = !strcmp(name, "readers");
    if (both_write || both_read || !strcmp(name, "mixed")) {
        first = enqueue(0, !both_read, gate);
        second = enqueue(1, both_write, gate);
        CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    } else if (!strcmp(name, "ordered")) {
        first = enqueue(0, true, NULL);
        second = enqueue(1, true, first);
    } else if (!strcmp(name, "halves") || !strcmp(name, "buffer")) {
        share_buffer(!strcmp(name, "halves"));
    } else if (!strcmp(name, "mapped")) {
        run_map(&setup, CL_MAP_READ, p, COUNT * 4);
        first = enqueue(0, true, NULL);
    } else if (!strcmp(name, "mapped_to_write")) {
        run_map(&setup, CL_MAP_WRITE, p, COUNT * 4);
        first = enqueue(0, false, NULL);
    } else if (!strcmp(name, "mapped_to_read")) {
        run_map(&setup, CL_MAP_READ, p, COUNT * 4);
        first = enqueue(0, false, NULL);
    } else if (!strcmp(name, "mapped_late")) {
        /* Another queue does not wait for the kernel. */
        first = enqueue(0, true, NULL);
        CHECK_CL(
            clEnqueueSVMMap(setup.queues[0], CL_FALSE, CL_MAP_READ, p, COUNT * 4, 0, NULL, &second),
            CL_SUCCESS);
    }
    if (first)
        CHECK_CL(clWaitForEvents(1, &first), CL_SUCCESS);
    if (second)
        CHECK_CL(clWaitForEvents(1, &second), CL_SUCCESS);
    if (!strncmp(name, "mapped", 6))
        run_unmap(&setup, p);
    clReleaseEvent(gate);
    if (first)
        clReleaseEvent(first);
    if (second)
        clReleaseEvent(second);
    for (int i = 0; i < 2; i++)
        if (kernels[i])
            CHECK_CL(clReleaseKernel(kernels[i]), CL_SUCCESS);
    clSVMFree(setup.context, p);
    clSVMFree(setup.context, sums[0]);
    clSVMFree(setup.context, sums[1]);
    run_finish(&setup);
}

int main(int argc, char **argv)
{
    struct run run;
    if (argc > 1) {
        scenario(argv[1]);
        return check_result();
    }
    run_self(&run, "1", ALL_DEVICES, "writers");
    CHECK_RUN_REPORTS(run, 1);
    /* Which of the two came second does not matter. */
    CHECK_SAYS(run, "memory is used twice at once: by kernel 'write_it' on Virtual device ");
    CHECK_SAYS(run, "kernel 'write_it' on Virtual device 0, enqueued in enqueue (");
    CHECK_SAYS(run, "kernel 'write_it' on Virtual device 1, enqueued in enqueue (");
    CHECK_SAYS(run, "from byte 0 of the SVM allocation of 16384 bytes at 0x");
    CHECK_SAYS(run, "fix: let one command wait for the other's event");

    run_self(&run, "1", ALL_DEVICES, "mixed");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "by kernel 'read_it' on Virtual device 1");
    CHECK_SAYS(run, "by kernel 'write_it' on Virtual device 0");

    static const char *const mapped[] = {"mapped", "mapped_to_write"};
    for (int i = 0; i < 2; i++) {
        run_self(&run, "1", ALL_DEVICES, mapped[i]);
        CHECK_RUN_REPORTS(run, 1);
        CHECK_SAYS(run, "memory is used twice at once: by kernel '%s' on Virtual device 0",
                   i ? "read_it" : "write_it");
        CHECK_SAYS(run, "and by the host, which has it mapped");
        CHECK_SAYS(run, "fix: unmap the memory before the command");
    }

    run_self(&run, "1", ALL_DEVICES, "mapped_late");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "memory is used twice at once: by a map");
    CHECK_SAYS(run, "and by kernel 'write_it' on Virtual device 0");

    run_self(&run, "1", ALL_DEVICES, "buffer");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "from byte 0 of the buffer of 32768 bytes at 0x");
    CHECK_SAYS(run, "created in share_buffer (");

    static const char *const right[] = {"readers", "ordered", "mapped_to_read", "halves"};
    for (int i = 0; i < 4; i++) {
        run_self(&run, "abort", ALL_DEVICES, right[i]);
        CHECK_RUN_REPORTS(run, 0);
    }

    run_self(&run, "abort", ALL_DEVICES, "writers");
    CHECK_RUN(run, WIFSIGNALED(run.status) && WTERMSIG(run.status) == SIGABRT);
    return check_result();
}
