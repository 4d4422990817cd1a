/* SAMEPAGE_CHECK=forgive makes careless programs right: the host touches memory that is not mapped
 * and finds what devices wrote, and what it writes is there for the next command; kernels that
 * follow pointers to memory that was not declared find it current. The same programs are wrong
 * without. */
#include <pthread.h>

#include "check_run.h"

enum { COUNT = 100000, NODES = 60 };

static const char source[] =
    "typedef struct node { global struct node *next; uint value; } node;\n"
    "kernel void add(global uint *p, uint n) { p[get_global_id(0)] += n; }\n"
    "kernel void visit(global node *list, global uint *result) {\n"
    "  uint sum = 0;\n"
    "  for (; list; list = list->next) { sum += list->value; list->value += 1; }\n"
    "  *result = sum;\n"
    "}\n";

struct node {
    struct node *next;
    cl_uint value;
};

static struct run_setup setup;

static void add_on(cl_uint device, cl_kernel add, cl_uint *p, cl_uint n)
{
    size_t count = COUNT;
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(add, 1, sizeof n, &n), CL_SUCCESS);
    CHECK_CL(
        clEnqueueNDRangeKernel(setup.queues[device], add, 1, NULL, &count, NULL, 0, NULL, NULL),
        CL_SUCCESS);
    CHECK_CL(clFinish(setup.queues[device]), CL_SUCCESS);
}

static cl_uint count_wrong(const cl_uint *p, cl_uint offset)
{
    cl_uint wrong = 0;
    for (cl_uint i = 0; i < COUNT; i++)
        wrong += p[i] != i + offset;
    return wrong;
}

/* Host and devices in turn, and nothing is ever mapped. */
static void array_scenario(void)
{
    cl_kernel add = run_kernel(&setup, source, "add");
    cl_uint *p = clSVMAlloc(setup.context, 0, COUNT * 4, 0);
    REQUIRE(p);
    cl_uint offset = 0;
    for (cl_uint i = 0; i < COUNT; i++)
        p[i] = i;
    for (cl_uint round = 0; round < 3; round++)
        for (cl_uint device = 0; device < setup.num_devices; device++) {
            add_on(device, add, p, 1);
            offset++;
            CHECK(count_wrong(p, offset) == 0);
            for (cl_uint i = 0; i < COUNT; i += 1000)
                p[i] -= 7;
            add_on(setup.num_devices - 1 - device, add, p, 2);
            offset += 2;
            for (cl_uint i = 0; i < COUNT; i += 1000)
                p[i] += 7;
        }
    CHECK(count_wrong(p, offset) == 0);

    /* Mapped for reading, and written all the same. */
    run_map(&setup, CL_MAP_READ, p, COUNT * 4);
    for (cl_uint i = 0; i < COUNT; i += 500)
        p[i] += 1;
    run_unmap(&setup, p);
    add_on(setup.num_devices - 1, add, p, 1);
    for (cl_uint i = 0; i < COUNT; i += 500)
        p[i] -= 1;
    CHECK(count_wrong(p, offset + 1) == 0);
    if (run_can_watch(true)) { /* system calls, too */
        add_on(setup.num_devices - 1, add, p, 1);
        int zero = open("/dev/zero", O_RDONLY);
        CHECK(read(zero, p, COUNT * 4) == COUNT * 4);
        close(zero);
        add_on(0, add, p, 5);
        CHECK(p[0] == 5 && p[COUNT - 1] == 5);
    }
    CHECK_CL(clReleaseKernel(add), CL_SUCCESS);
    clSVMFree(setup.context, p);
}

/* A list that nobody declares: the kernel reads it and changes it. */
static void list_scenario(void)
{
    cl_kernel visit = run_kernel(&setup, source, "visit");
    struct node *nodes[NODES], *list = NULL;
    cl_uint *result = clSVMAlloc(setup.context, 0, sizeof *result, 0), expected = 0;
    size_t one = 1;
    REQUIRE(result);
    for (cl_uint i = 0; i < NODES; i++) {
        nodes[i] = clSVMAlloc(setup.context, 0, sizeof *nodes[i], 0);
        REQUIRE(nodes[i]);
        *nodes[i] = (struct node){list, i};
        list = nodes[i];
        expected += i;
    }
    for (cl_uint round = 0; round < 4; round++) {
        cl_uint device = round % setup.num_devices;
        CHECK_CL(clSetKernelArgSVMPointer(visit, 0, list), CL_SUCCESS);
        CHECK_CL(clSetKernelArgSVMPointer(visit, 1, result), CL_SUCCESS);
        CHECK_CL(
            clEnqueueNDRangeKernel(setup.queues[device], visit, 1, NULL, &one, NULL, 0, NULL, NULL),
            CL_SUCCESS);
        CHECK_CL(clFinish(setup.queues[device]), CL_SUCCESS);
        CHECK(*result == expected);
        expected += NODES;
        nodes[round]->value += 100;
        expected += 100;
    }
    CHECK(nodes[NODES - 1]->value == NODES - 1 + 4);
    CHECK_CL(clReleaseKernel(visit), CL_SUCCESS);
    for (cl_uint i = 0; i < NODES; i++)
        clSVMFree(setup.context, nodes[i]);
    clSVMFree(setup.context, result);
}

/* Several threads, each with memory of its own and all devices in turn; and one array that all of
 * them read. */
enum { THREADS = 4, ROUNDS = 12, SMALL = 5000 };

static cl_uint *common;

static void *work_alone(void *argument)
{
    cl_uint number = (cl_uint)(uintptr_t)argument;
    cl_kernel add = run_kernel(&setup, source, "add");
    cl_uint *p = clSVMAlloc(setup.context, 0, SMALL * 4, 0), wrong = 0, one = 1;
    size_t count = SMALL;
    REQUIRE(p);
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(add, 1, sizeof one, &one), CL_SUCCESS);
    for (cl_uint i = 0; i < SMALL; i++)
        p[i] = i + number;
    for (cl_uint round = 0; round < ROUNDS; round++) {
        cl_event event;
        CHECK_CL(clEnqueueNDRangeKernel(setup.queues[(round + number) % setup.num_devices], add, 1,
                                        NULL, &count, NULL, 0, NULL, &event),
                 CL_SUCCESS);
        CHECK_CL(clWaitForEvents(1, &event), CL_SUCCESS);
        CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
        for (cl_uint i = round; i < SMALL; i += 7) {
            wrong += p[i] != i + number + 2 * round + 1;
            wrong += common[i] != i + 1;
        }
        for (cl_uint i = 0; i < SMALL; i++)
            p[i]++;
    }
    CHECK(wrong == 0);
    CHECK_CL(clReleaseKernel(add), CL_SUCCESS);
    clSVMFree(setup.context, p);
    return NULL;
}

static void threads_scenario(void)
{
    pthread_t threads[THREADS];
    cl_uint one = 1;
    size_t count = SMALL;
    cl_kernel add = run_kernel(&setup, source, "add");
    common = clSVMAlloc(setup.context, 0, SMALL * 4, 0);
    REQUIRE(common);
    for (cl_uint i = 0; i < SMALL; i++)
        common[i] = i;
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, common), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(add, 1, sizeof one, &one), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queues[setup.num_devices - 1], add, 1, NULL, &count, NULL,
                                    0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(setup.queues[setup.num_devices - 1]), CL_SUCCESS);
    for (uintptr_t i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, work_alone, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_CL(clReleaseKernel(add), CL_SUCCESS);
    clSVMFree(setup.context, common);
}

static void scenario(const char *name)
{
    run_setup_with(&setup, NULL);
    if (!strcmp(name, "array"))
        array_scenario();
    else if (!strcmp(name, "threads"))
        threads_scenario();
    else
        list_scenario();
    run_finish(&setup);
}

int main(int argc, char **argv)
{
    struct run run;
    if (argc > 1) {
        scenario(argv[1]);
        return check_result();
    }
    run_require_watch();
    static const char *const devices[] = {CPU_ONLY, ALL_DEVICES};
    static const char *const names[] = {"array", "list", "threads"};
    for (int d = 0; d < 2; d++)
        for (int n = 0; n < 3; n++) {
            run_self(&run, "forgive", devices[d], names[n]);
            CHECK_RUN_REPORTS(run, 0);
        }
    /* So that the test can fail. */
    run_self(&run, "0", ALL_DEVICES, "array");
    CHECK_RUN(run, WEXITSTATUS(run.status) != 0);
    return check_result();
}
