/* A kernel that crashes ends its device's process and nothing else: its event tells of an error,
 * waiting returns, the other devices go on, what another agent had a copy of is intact, and the
 * device takes new work. The context's error callback is told of it, and of each range that only
 * the dead device had. */
#include "check_devices.h"
#include "check_loss.h"

static const char source[] =
    "kernel void crash(global uint *p) { *(global volatile uint *)8 = p[0]; }\n"
    "kernel void add(global uint *p, uint value) { p[get_global_id(0)] += value; }\n";

enum { COUNT = 10000 };

static cl_context context;
static cl_device_id devices[3];
static cl_command_queue queues[3];
static cl_kernel crash, add;

static void add_on(int device, cl_uint *p, cl_uint value)
{
    size_t count = COUNT;
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(add, 1, sizeof value, &value), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[device], add, 1, NULL, &count, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(queues[device]), CL_SUCCESS);
}

static void expect(cl_uint *p, cl_uint value)
{
    cl_uint wrong = 0;
    CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, p, COUNT * 4, 0, NULL, NULL),
             CL_SUCCESS);
    for (cl_uint i = 0; i < COUNT; i++)
        wrong += p[i] != value;
    CHECK(wrong == 0);
    CHECK_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
}

int main(void)
{
    const char *others = getenv("SAMEPAGE_TEST_DEVICES");
    setenv("SAMEPAGE_DEVICES", others ? others : "cpu,virtual:2,mem=64M", 1);
    cl_uint zero = 0;
    cl_int status = 0;
    context = context_of_all(3, devices, queues, hear, &heard);
    cl_program program = build(context, source, "-cl-std=CL3.0");
    crash = get_kernel(program, "crash");
    add = get_kernel(program, "add");

    cl_uint *p = clSVMAlloc(context, CL_MEM_READ_WRITE, COUNT * 4, 0);
    REQUIRE(p);
    CHECK_CL(clEnqueueSVMMemFill(queues[0], p, &zero, sizeof zero, COUNT * 4, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    add_on(1, p, 1);
    expect(p, 1); /* from here on the host has a copy, too */

    for (int round = 0; round < 3; round++) {
        cl_event crashed, after;
        size_t one = 1;
        CHECK_CL(clSetKernelArgSVMPointer(crash, 0, p), CL_SUCCESS);
        CHECK_CL(clEnqueueNDRangeKernel(queues[1], crash, 1, NULL, &one, NULL, 0, NULL, &crashed),
                 CL_SUCCESS);
        CHECK_CL(clEnqueueMarkerWithWaitList(queues[2], 1, &crashed, &after), CL_SUCCESS);
        CHECK_CL(clWaitForEvents(1, &crashed), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        CHECK_CL(clGetEventInfo(crashed, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                                NULL),
                 CL_SUCCESS);
        CHECK(status < 0);
        CHECK_CL(clFinish(queues[2]), CL_SUCCESS);
        clReleaseEvent(crashed);
        clReleaseEvent(after);
        add_on(2, p, 1);
        expect(p, 2 + 2 * (cl_uint)round);
        add_on(1, p, 1); /* the restarted one */
        expect(p, 3 + 2 * (cl_uint)round);
    }
    CHECK(heard.losses == 0); /* the host had a copy each time */

    /* The first half of `q` is on device 1 alone, the second half on the host. It is larger than
     * `p`, so it does not lie beside that at home, where nothing can be lost. */
    enum { HALF = COUNT * 4 };
    cl_uchar *q = clSVMAlloc(context, CL_MEM_READ_WRITE, 2 * HALF, 0);
    REQUIRE(q);
    CHECK_CL(clEnqueueSVMMemFill(queues[0], q + HALF, &zero, sizeof zero, HALF, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMemFill(queues[1], q, &zero, sizeof zero, HALF, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    size_t one = 1;
    char expected[128];
    CHECK_CL(clEnqueueNDRangeKernel(queues[1], crash, 1, NULL, &one, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    clFinish(queues[1]);
    wait_for_losses(1);
    CHECK(heard.losses == 1 && heard.deaths == 4);
    CHECK(strstr(heard.death, " was lost: signal 11"));
    snprintf(expected, sizeof expected, "Bytes 0 to %d of the region at %p (%d bytes)", HALF - 1,
             (void *)q, 2 * HALF);
    CHECK(strstr(heard.loss, expected) == heard.loss);
    clSVMFree(context, q);

    clSVMFree(context, p);
    clReleaseKernel(crash);
    clReleaseKernel(add);
    clReleaseProgram(program);
    for (int i = 0; i < 3; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return check_result();
}
