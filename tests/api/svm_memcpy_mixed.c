/* clEnqueueSVMMemcpy between SVM and ordinary memory in every combination, blocking and not, small
 * and large, aligned and not. */
#include "check.h"

enum { BYTES = 3 << 20 };

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    static unsigned char global[2][BYTES + 64];
    unsigned char *memory[4] = {
        clSVMAlloc(setup.context, 0, BYTES + 64, 0),
        clSVMAlloc(setup.context, CL_MEM_SVM_FINE_GRAIN_BUFFER, BYTES + 64, 0),
        malloc(BYTES + 64),
        global[0],
    };
    REQUIRE(memory[0] && memory[1] && memory[2]);
    unsigned char *expected = global[1];
    const size_t sizes[] = {0, 1, 7, 4096, 100003, BYTES};
    for (int from = 0; from < 4; from++) {
        for (int to = 0; to < 4; to++) {
            if (from == to)
                continue;
            for (size_t k = 0; k < 6; k++) {
                size_t size = sizes[k];
                for (size_t i = 0; i < size; i++)
                    memory[from][i + k] = (unsigned char)(i * 31 + k);
                memset(memory[to], 0xcc, size + 64);
                memset(expected, 0xcc, size + 64);
                memcpy(expected + 3, memory[from] + k, size);
                cl_bool blocking = (from + to + (int)k) % 2 ? CL_TRUE : CL_FALSE;
                CHECK_CL(clEnqueueSVMMemcpy(setup.queue, blocking, memory[to] + 3, memory[from] + k,
                                            size, 0, NULL, NULL),
                         CL_SUCCESS);
                if (!blocking)
                    CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
                CHECK(memcmp(memory[to], expected, size + 64) == 0);
            }
        }
    }
    CHECK_CL(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, NULL, memory[0], 4, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, memory[0], NULL, 4, 0, NULL, NULL),
             CL_INVALID_VALUE);
    cl_int error;
    cl_event failed = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    CHECK_CL(clSetUserEventStatus(failed, -3), CL_SUCCESS);
    memory[0][0] = 1;
    memory[1][0] = 2;
    CHECK_CL(clEnqueueSVMMemcpy(setup.queue, CL_TRUE, memory[0], memory[1], 1, 1, &failed, NULL),
             CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK(memory[0][0] == 1);
    CHECK_CL(clReleaseEvent(failed), CL_SUCCESS);
    clSVMFree(setup.context, memory[0]);
    clSVMFree(setup.context, memory[1]);
    free(memory[2]);
    check_finish(&setup);
    return check_result();
}
