/* Mapping, unmapping and migrating SVM: order, events, and every error. */
#include "check.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    enum { BYTES = 1 << 20 };
    cl_uint *svm = clSVMAlloc(setup.context, 0, BYTES, 0);
    REQUIRE(svm != NULL);

    /* A blocking map sees what the fill before it wrote. */
    for (cl_uint i = 1; i <= 50; i++) {
        CHECK_CL(clEnqueueSVMMemFill(setup.queue, svm, &i, 4, BYTES, 0, NULL, NULL), CL_SUCCESS);
        CHECK_CL(clEnqueueSVMMap(setup.queue, CL_TRUE, CL_MAP_READ, svm, BYTES, 0, NULL, NULL),
                 CL_SUCCESS);
        CHECK(svm[0] == i && svm[BYTES / 4 - 1] == i);
        CHECK_CL(clEnqueueSVMUnmap(setup.queue, svm, 0, NULL, NULL), CL_SUCCESS);
    }

    /* A map that does not block, behind a gate. */
    cl_int error;
    cl_event gate = clCreateUserEvent(setup.context, &error), map = NULL, unmap = NULL;
    REQUIRE_CL(error);
    cl_uint value = 0x77;
    CHECK_CL(clEnqueueSVMMemFill(setup.queue, svm, &value, 4, BYTES, 1, &gate, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMap(setup.queue, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, svm, BYTES, 0, NULL,
                             &map),
             CL_SUCCESS);
    CHECK(check_status(map) > CL_COMPLETE);
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    CHECK_CL(clWaitForEvents(1, &map), CL_SUCCESS);
    CHECK(svm[0] == value);
    CHECK_CL(clEnqueueSVMUnmap(setup.queue, svm + 5, 1, &map, &unmap), CL_SUCCESS);
    CHECK_CL(clWaitForEvents(1, &unmap), CL_SUCCESS);
    const struct {
        cl_event event;
        cl_command_type type;
    } types[] = {{map, CL_COMMAND_SVM_MAP}, {unmap, CL_COMMAND_SVM_UNMAP}};
    for (int i = 0; i < 2; i++) {
        cl_command_type type = 0;
        CHECK_CL(clGetEventInfo(types[i].event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL),
                 CL_SUCCESS);
        CHECK(type == types[i].type);
        CHECK_CL(clReleaseEvent(types[i].event), CL_SUCCESS);
    }
    CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);

    CHECK_CL(clEnqueueSVMMap(setup.queue, CL_TRUE, CL_MAP_READ, NULL, 4, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMMap(setup.queue, CL_TRUE, CL_MAP_READ, svm, 0, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMMap(setup.queue, CL_TRUE, 1 << 7, svm, 4, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMMap(setup.queue, CL_TRUE, CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION,
                             svm, 4, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMUnmap(setup.queue, NULL, 0, NULL, NULL), CL_INVALID_VALUE);

    const void *pointers[] = {svm, svm + 16};
    const size_t sizes[] = {0, BYTES - 64}, too_much[] = {0, BYTES - 63};
    const void *outside[] = {svm, &value};
    CHECK_CL(clEnqueueSVMMigrateMem(setup.queue, 2, pointers, sizes, 0, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(
        clEnqueueSVMMigrateMem(setup.queue, 2, pointers, NULL,
                               CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED,
                               0, NULL, NULL),
        CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMigrateMem(setup.queue, 2, pointers, too_much, 0, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMMigrateMem(setup.queue, 2, outside, sizes, 0, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMMigrateMem(setup.queue, 0, pointers, sizes, 0, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMMigrateMem(setup.queue, 1, NULL, sizes, 0, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMMigrateMem(setup.queue, 1, pointers, sizes, 1 << 5, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
    clSVMFree(setup.context, svm);
    check_finish(&setup);
    return check_result();
}
