/* clEnqueueSVMFree: the pointers are copied when it is enqueued, memory is freed when what came
 * before is done, and a callback is called instead of freeing. */
#include "check.h"

struct call {
    cl_command_queue queue;
    cl_uint count;
    void *pointers[3];
    int calls;
};

static cl_context context;

static void CL_CALLBACK free_them(cl_command_queue queue, cl_uint count, void *pointers[],
                                  void *data)
{
    struct call *call = data;
    call->queue = queue;
    call->count = count;
    for (cl_uint i = 0; i < count && i < 3; i++) {
        call->pointers[i] = pointers[i];
        clSVMFree(context, pointers[i]);
    }
    call->calls++;
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    context = setup.context;
    cl_int error;
    void *p[3], *kept[3];
    for (int i = 0; i < 3; i++)
        p[i] = kept[i] = clSVMAlloc(context, 0, 4096, 0);

    /* Behind a gate; the caller's array changes meanwhile. */
    cl_event gate = clCreateUserEvent(context, &error), event = NULL;
    REQUIRE_CL(error);
    cl_uint pattern = 7;
    CHECK_CL(clEnqueueSVMMemFill(setup.queue, p[0], &pattern, 4, 4096, 1, &gate, NULL), CL_SUCCESS);
    struct call call = {0};
    CHECK_CL(clEnqueueSVMFree(setup.queue, 3, p, free_them, &call, 0, NULL, &event), CL_SUCCESS);
    memset(p, 0x55, sizeof p);
    CHECK(check_status(event) > CL_COMPLETE && call.calls == 0);
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    CHECK_CL(clWaitForEvents(1, &event), CL_SUCCESS);
    CHECK(call.calls == 1 && call.count == 3 && call.queue == setup.queue);
    CHECK(memcmp(call.pointers, kept, sizeof kept) == 0);
    cl_command_type type = 0;
    CHECK_CL(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL), CL_SUCCESS);
    CHECK(type == CL_COMMAND_SVM_FREE);
    CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);

    /* Without a callback the library frees: many rounds fit into memory only then. */
    for (int i = 0; i < 64; i++) {
        void *large = clSVMAlloc(context, 0, (size_t)64 << 20, 0);
        REQUIRE(large != NULL);
        memset(large, i, 4096);
        CHECK_CL(clEnqueueSVMFree(setup.queue, 1, &large, NULL, NULL, 0, NULL, NULL), CL_SUCCESS);
        CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
    }

    CHECK_CL(clEnqueueSVMFree(setup.queue, 0, NULL, NULL, NULL, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueSVMFree(setup.queue, 1, NULL, NULL, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMFree(setup.queue, 0, p, NULL, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMFree(setup.queue, 1, p, NULL, NULL, 1, NULL, NULL),
             CL_INVALID_EVENT_WAIT_LIST);
    int local;
    void *not_svm = &local;
    CHECK_CL(clEnqueueSVMFree(setup.queue, 1, &not_svm, NULL, NULL, 0, NULL, NULL), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
