/* The checking mode finds kernels that follow a pointer to memory that was not declared, on a
 * device and on the CPU: whether that memory was never there or happens to be bound from before;
 * the kernel's and the other devices' data stay. Kernels with all declared are left alone. */
#include <signal.h>

#include "check_run.h"

enum { COUNT = 1000 };

static const char source[] = "typedef struct node { global struct node *next; uint value; } node;\n"
                             "kernel void sum(global node *list, global uint *result) {\n"
                             "  uint sum = 0;\n"
                             "  for (; list; list = list->next) sum += list->value;\n"
                             "  *result = sum;\n"
                             "}\n"
                             "kernel void add(global uint *p) { p[get_global_id(0)] += 1; }\n";

struct node {
    struct node *next;
    cl_uint value;
};

static struct run_setup setup;

static RUN_TOUCH void run_sum(cl_uint device, cl_kernel kernel)
{
    size_t one = 1;
    CHECK_CL(
        clEnqueueNDRangeKernel(setup.queues[device], kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
        CL_SUCCESS);
    CHECK_CL(clFinish(setup.queues[device]), CL_SUCCESS);
}

static struct node *make_node(struct node *next, cl_uint value, cl_svm_mem_flags flags)
{
    struct node *node = clSVMAlloc(setup.context, flags, sizeof *node, 0);
    REQUIRE(node);
    run_map(&setup, CL_MAP_WRITE_INVALIDATE_REGION, node, sizeof *node);
    node->next = next;
    node->value = value;
    run_unmap(&setup, node);
    return node;
}

static void scenario(const char *name)
{
    run_setup_with(&setup, NULL);
    cl_uint device = setup.num_devices - 1;
    bool is_fine = !strcmp(name, "fine");
    struct node *last = make_node(NULL, 30, is_fine ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0);
    struct node *first = make_node(last, 12, 0);
    cl_uint *result = clSVMAlloc(setup.context, 0, sizeof *result, 0);
    REQUIRE(result);
    cl_kernel sum = run_kernel(&setup, source, "sum");
    CHECK_CL(clSetKernelArgSVMPointer(sum, 0, first), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(sum, 1, result), CL_SUCCESS);
    if (!strcmp(name, "declared") || !strcmp(name, "bound")) {
        void *list[] = {last};
        CHECK_CL(clSetKernelExecInfo(sum, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof list, list),
                 CL_SUCCESS);
        run_sum(device, sum);
        if (!strcmp(name, "bound")) /* from here on it is there, and current */
            CHECK_CL(clSetKernelExecInfo(sum, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, NULL), CL_SUCCESS);
    }
    run_sum(device, sum);
    run_map(&setup, CL_MAP_READ, result, sizeof *result);
    CHECK(*result == 42);
    run_unmap(&setup, result);
    CHECK_CL(clReleaseKernel(sum), CL_SUCCESS);
    clSVMFree(setup.context, first);
    clSVMFree(setup.context, last);
    clSVMFree(setup.context, result);
    run_finish(&setup);
}

/* The memory was never there: the device's process dies of it, and is back for what comes next. */
static void lost_scenario(void)
{
    run_setup_with(&setup, NULL);
    struct node *last = make_node(NULL, 30, 0);
    struct node *first = make_node(last, 12, 0);
    cl_uint *result = clSVMAlloc(setup.context, 0, sizeof *result, 0);
    cl_kernel sum = run_kernel(&setup, source, "sum");
    CHECK_CL(clSetKernelArgSVMPointer(sum, 0, first), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(sum, 1, result), CL_SUCCESS);
    for (int i = 0; i < 2; i++) {
        size_t one = 1;
        cl_event event;
        CHECK_CL(clEnqueueNDRangeKernel(setup.queues[1], sum, 1, NULL, &one, NULL, 0, NULL, &event),
                 CL_SUCCESS);
        cl_int ended = clWaitForEvents(1, &event);
        CHECK(ended == (i ? CL_SUCCESS : CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST));
        CHECK_CL(clReleaseEvent(event), CL_SUCCESS);
        void *list[] = {last};
        CHECK_CL(clSetKernelExecInfo(sum, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof list, list),
                 CL_SUCCESS);
    }
    run_map(&setup, CL_MAP_READ, result, sizeof *result);
    CHECK(*result == 42);
    run_unmap(&setup, result);
    CHECK_CL(clReleaseKernel(sum), CL_SUCCESS);
    run_finish(&setup);
}

static void check_says(const struct run *run)
{
    CHECK_SAYS(*run, "kernel 'sum' on ");
    CHECK_SAYS(*run, "enqueued in run_sum (");
    CHECK_SAYS(*run, "check_undeclared.c:");
    CHECK_SAYS(*run, " followed a pointer to memory that was not declared\n");
    CHECK_SAYS(*run, "of the SVM allocation of 16 bytes at 0x");
    CHECK_SAYS(*run, "allocated in make_node (");
    CHECK_SAYS(*run,
               "fix: name the memory with clSetKernelExecInfo and CL_KERNEL_EXEC_INFO_SVM_PTRS");
}

int main(int argc, char **argv)
{
    struct run run;
    if (argc > 1) {
        if (!strcmp(argv[1], "lost"))
            lost_scenario();
        else
            scenario(argv[1]);
        return check_result();
    }
    if (run_can_watch(false)) {
        run_self(&run, "1", CPU_ONLY, "undeclared");
        CHECK_RUN_REPORTS(run, 1);
        check_says(&run);
    }
    run_self(&run, "1", ALL_DEVICES, "bound");
    CHECK_RUN_REPORTS(run, 1);
    check_says(&run);

    run_self(&run, "1", ALL_DEVICES, "fine");
    CHECK_RUN_REPORTS(run, 1);
    check_says(&run);

    run_self(&run, "1", ALL_DEVICES, "lost");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "kernel 'sum' on Virtual device 0, enqueued in lost_scenario (");
    CHECK_SAYS(run, "memory that was not declared");

    run_self(&run, "abort", ALL_DEVICES, "bound");
    CHECK_RUN(run, WIFSIGNALED(run.status) && WTERMSIG(run.status) == SIGABRT);
    CHECK_RUN(run, run_reports(&run) == 1);

    run_self(&run, "abort", CPU_ONLY, "declared");
    CHECK_RUN_REPORTS(run, 0);
    run_self(&run, "abort", ALL_DEVICES, "declared");
    CHECK_RUN_REPORTS(run, 0);
    return check_result();
}
