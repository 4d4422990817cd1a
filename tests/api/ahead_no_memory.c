/* Memory running out at every allocation in turn, also in the devices' processes, while commands of
 * two devices wait for each other: each call or command gives an error of its kind, nothing hangs,
 * and what was done without an error is read back. */
#include "check_no_memory.h"

enum { BYTES = 8192, TURNS = 3 };

/* The end of a command that may not have been enqueued. */
static bool has_ended_well(cl_event event)
{
    cl_int status = CL_OUT_OF_HOST_MEMORY;
    if (!event)
        return false;
    clWaitForEvents(1, &event);
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return WORKED(status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? CL_OUT_OF_HOST_MEMORY
                                                                         : status);
}

static void use(cl_context context, cl_command_queue *queues)
{
    unsigned char *p = clSVMAlloc(context, 0, BYTES, 0), *q = clSVMAlloc(context, 0, BYTES, 0);
    cl_event events[2 * TURNS] = {NULL};
    bool is_whole = WORKED(p && q ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY);
    /* Each copies what the one before it wrote, on the other device. */
    for (int i = 0; is_whole && i < 2 * TURNS; i++) {
        unsigned char value = (unsigned char)(i + 1);
        const cl_event *last = i ? &events[i - 1] : NULL;
        is_whole =
            WORKED(i % 2 ? clEnqueueSVMMemcpy(queues[1], CL_FALSE, q, p, BYTES, 1, last, &events[i])
                         : clEnqueueSVMMemFill(queues[0], p, &value, 1, BYTES, i ? 1 : 0, last,
                                               &events[i]));
    }
    for (int i = 0; i < 2 * TURNS; i++)
        is_whole &= has_ended_well(events[i]);
    for (int i = 0; i < 2 * TURNS; i++)
        if (events[i])
            clReleaseEvent(events[i]);
    unsigned char got = 0;
    if (is_whole && WORKED(clEnqueueSVMMemcpy(queues[0], CL_TRUE, &got, q + 5, 1, 0, NULL, NULL)) &&
        got != 2 * TURNS - 1) {
        fprintf(stderr, "%d in place of %d\n", got, 2 * TURNS - 1);
        outcome = WRONG;
    }
    clSVMFree(context, p);
    clSVMFree(context, q);
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
