/* Memory running out at every allocation in turn while a pooled region is used: each call or
 * command gives an error of its kind, nothing hangs, and a value that was written without an error
 * is read back. */
#include "check_no_memory.h"

enum { MIB = 1 << 20, BYTES = 20 * MIB };

static bool finished(cl_command_queue queue, cl_int error, cl_event event)
{
    cl_int status = error;
    if (!WORKED(error))
        return false;
    WORKED(clFlush(queue));
    clWaitForEvents(1, &event);
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    clReleaseEvent(event);
    return WORKED(status);
}

static bool fill(cl_command_queue queue, unsigned char *p, size_t bytes, unsigned char value)
{
    cl_event event = NULL;
    cl_int error = clEnqueueSVMMemFill(queue, p, &value, 1, bytes, 0, NULL, &event);
    return finished(queue, error, event);
}

static void expect(cl_command_queue queue, unsigned char *p, unsigned char value)
{
    unsigned char got = 0;
    if (WORKED(clEnqueueSVMMemcpy(queue, CL_TRUE, &got, p, 1, 0, NULL, NULL)) && got != value) {
        fprintf(stderr, "%d in place of %d\n", got, value);
        outcome = WRONG;
    }
}

static void use(cl_context context, cl_command_queue *queues)
{
    unsigned char *p = clSVMAlloc(context, 0, BYTES, 0);
    unsigned char *other = clSVMAlloc(context, 0, 12 * MIB, 0);
    WORKED(p && other ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY);
    for (unsigned char i = 0; p && i < 2; i++) {
        if (fill(queues[i], p, BYTES, 10 + i)) {
            expect(queues[1 - i], p + 5, 10 + i);
            expect(queues[i], p + BYTES - 5, 10 + i);
        }
        if (other && fill(queues[i], other, 12 * MIB, i)) /* takes room of parts */
            expect(queues[1 - i], other + 6 * MIB, i);
        if (WORKED(clEnqueueSVMMap(queues[i], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, p + 100, 100, 0,
                                   NULL, NULL))) {
            p[100] = 77;
            while (!WORKED(clEnqueueSVMUnmap(queues[i], p + 100, 0, NULL, NULL)) &&
                   outcome != WRONG)
                ;
            WORKED(clFinish(queues[i]));
            expect(queues[1 - i], p + 100, 77);
        }
    }
    clSVMFree(context, other);
    clSVMFree(context, p);
}

static void scenario(void)
{
    with_two_devices(use);
}

int main(int argc, char **argv)
{
    setenv("SAMEPAGE_DEVICES", "virtual:2,mem=16M", 1);
    return fail_in_turn(argc, argv, scenario);
}
