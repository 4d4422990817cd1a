/* An illegal access on one GPU while another device works on shared data: that GPU's commands fail,
 * nobody else's, and it comes back. With one GPU the other device is the CPU. Skipped (exit 77)
 * where there is no GPU. */
#include "../api/check.h"

#define COUNT (1u << 20)

static const char source[] =
    "kernel void add(global int *data, int n) { data[get_global_id(0)] += n; }\n"
    "kernel void wild(ulong address) { if (get_global_id(0) == 0) *(global int *)address = 1; }\n";

static unsigned reports;

static void CL_CALLBACK on_report(const char *text, const void *info, size_t bytes, void *data)
{
    (void)info, (void)bytes, (void)data;
    reports++;
    printf("  told: %s\n", text);
}

static unsigned count_wrong(cl_command_queue queue, int *data, int expected)
{
    unsigned wrong = 0;
    CHECK_CL(
        clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, data, COUNT * sizeof *data, 0, NULL, NULL),
        CL_SUCCESS);
    for (unsigned i = 0; i < COUNT; i++)
        wrong += data[i] != expected;
    CHECK_CL(clEnqueueSVMUnmap(queue, data, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    return wrong;
}

int main(void)
{
    cl_platform_id platform = check_platform();
    cl_device_id gpus[16], all[17];
    cl_uint num_gpus = 0, num_all = 0;
    cl_int error;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 16, gpus, &num_gpus)) {
        puts("skipped: there is no GPU");
        return 77;
    }
    REQUIRE_CL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 17, all, &num_all));
    cl_device_id faulty = gpus[0], other = num_gpus > 1 ? gpus[1] : all[0];
    if (other == faulty) {
        puts("skipped: there is no second device");
        return 77;
    }
    cl_context context = clCreateContext(NULL, num_all, all, on_report, NULL, &error);
    REQUIRE_CL(error);
    const char *text = source;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    REQUIRE_CL(error);
    REQUIRE_CL(clBuildProgram(program, num_all, all, "", NULL, NULL));
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, faulty, NULL, &error);
    REQUIRE_CL(error);
    cl_command_queue others = clCreateCommandQueueWithProperties(context, other, NULL, &error);
    REQUIRE_CL(error);
    cl_kernel add = clCreateKernel(program, "add", &error),
              wild = clCreateKernel(program, "wild", &error);
    REQUIRE_CL(error);
    int *shared = clSVMAlloc(context, CL_MEM_READ_WRITE, COUNT * sizeof *shared, 0);
    int *own = clSVMAlloc(context, CL_MEM_READ_WRITE, COUNT * sizeof *own, 0);
    REQUIRE(shared && own);
    const int zero = 0, one = 1;
    const size_t global = COUNT;
    CHECK_CL(clEnqueueSVMMemFill(others, shared, &zero, sizeof zero, COUNT * sizeof *shared, 0,
                                 NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(
        clEnqueueSVMMemFill(others, own, &zero, sizeof zero, COUNT * sizeof *own, 0, NULL, NULL),
        CL_SUCCESS);
    CHECK_CL(clFinish(others), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(add, 1, sizeof one, &one), CL_SUCCESS);

    /* Both have worked on the shared data, and each on its own. */
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, shared), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(others, add, 1, NULL, &global, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, own), CL_SUCCESS);
    for (int i = 0; i < 100; i++)
        CHECK_CL(clEnqueueNDRangeKernel(others, add, 1, NULL, &global, NULL, 0, NULL, NULL),
                 CL_SUCCESS);

    cl_event event;
    const cl_ulong address = 0x123456000;
    CHECK_CL(clSetKernelArg(wild, 0, sizeof address, &address), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, wild, 1, NULL, &global, NULL, 0, NULL, &event),
             CL_SUCCESS);
    CHECK_CL(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    printf("  the faulty kernel's status: %d\n", check_status(event));
    CHECK(check_status(event) < 0);
    clReleaseEvent(event);

    CHECK_CL(clFinish(others), CL_SUCCESS);
    CHECK(count_wrong(others, own, 100) == 0);
    CHECK(count_wrong(others, shared, 2) == 0);
    /* And it works again. */
    cl_command_queue again = clCreateCommandQueueWithProperties(context, faulty, NULL, &error);
    REQUIRE_CL(error);
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, shared), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(again, add, 1, NULL, &global, NULL, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(again), CL_SUCCESS);
    CHECK(count_wrong(again, shared, 3) == 0);
    printf("  %u reports; others: right, and the GPU is back\n", reports);
    clSVMFree(context, shared);
    clSVMFree(context, own);
    clReleaseKernel(add);
    clReleaseKernel(wild);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseCommandQueue(others);
    clReleaseCommandQueue(again);
    clReleaseContext(context);
    return check_result();
}
