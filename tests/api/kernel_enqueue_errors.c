/* Every wrong launch gets its error, and nothing runs. */
#include "check_program.h"

static struct check_setup setup;
static cl_kernel kernel;

static cl_int launch(cl_uint dim, const size_t *offset, const size_t *global, const size_t *local)
{
    return clEnqueueNDRangeKernel(setup.queue, kernel, dim, offset, global, local, 0, NULL, NULL);
}

#define SIZES(...) ((const size_t[]){__VA_ARGS__})

int main(void)
{
    check_setup(&setup);
    cl_int error;
    cl_program program =
        build(setup.context,
              "__kernel void k(__global int *p) { p[0] = 1; }\n"
              "__kernel __attribute__((reqd_work_group_size(4, 2, 1))) void r(__global int *p)\n"
              "{ atomic_inc(p); }\n"
              "__kernel void l(__local int *p) { p[0] = 1; }\n",
              NULL);
    cl_mem buffer = int_buffer(setup.context, 256);
    size_t max, one = 1;
    cl_event event = NULL;
    kernel = get_kernel(program, "k");
    CHECK_CL(clGetDeviceInfo(setup.device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof max, &max, NULL),
             CL_SUCCESS);
    CHECK_CL(launch(1, NULL, &one, NULL), CL_INVALID_KERNEL_ARGS);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);

    CHECK_CL(clEnqueueNDRangeKernel(NULL, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
             CL_INVALID_COMMAND_QUEUE);
    CHECK_CL(clEnqueueNDRangeKernel((cl_command_queue)setup.context, kernel, 1, NULL, &one, NULL, 0,
                                    NULL, NULL),
             CL_INVALID_COMMAND_QUEUE);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, NULL, 1, NULL, &one, NULL, 0, NULL, NULL),
             CL_INVALID_KERNEL);
    CHECK_CL(
        clEnqueueNDRangeKernel(setup.queue, (cl_kernel)program, 1, NULL, &one, NULL, 0, NULL, NULL),
        CL_INVALID_KERNEL);
    cl_context other = clCreateContext(NULL, 1, &setup.device, NULL, NULL, &error);
    REQUIRE_CL(error);
    cl_command_queue other_queue = clCreateCommandQueue(other, setup.device, 0, &error);
    REQUIRE_CL(error);
    CHECK_CL(clEnqueueNDRangeKernel(other_queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
             CL_INVALID_CONTEXT);
    cl_event foreign = clCreateUserEvent(other, &error);
    REQUIRE_CL(error);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 1, &foreign, NULL),
             CL_INVALID_CONTEXT);
    clReleaseEvent(foreign);
    clReleaseCommandQueue(other_queue);
    clReleaseContext(other);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 1, NULL, &event),
             CL_INVALID_EVENT_WAIT_LIST);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 0, &event, NULL),
             CL_INVALID_EVENT_WAIT_LIST);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &one, NULL, 1, &event, NULL),
             CL_INVALID_EVENT_WAIT_LIST);
    CHECK(event == NULL);

    CHECK_CL(launch(0, NULL, SIZES(1), NULL), CL_INVALID_WORK_DIMENSION);
    CHECK_CL(launch(4, NULL, SIZES(1, 1, 1, 1), NULL), CL_INVALID_WORK_DIMENSION);
    CHECK_CL(launch(1, SIZES(SIZE_MAX), SIZES(1), NULL), CL_INVALID_GLOBAL_OFFSET);
    CHECK_CL(launch(2, SIZES(0, SIZE_MAX - 5), SIZES(1, 6), NULL), CL_INVALID_GLOBAL_OFFSET);
    CHECK_CL(launch(3, NULL, SIZES((size_t)1 << 32, (size_t)1 << 31, 2), NULL),
             CL_INVALID_GLOBAL_WORK_SIZE);
    CHECK_CL(launch(1, NULL, SIZES(4), SIZES(0)), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(launch(1, NULL, SIZES(4), SIZES(3)), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(launch(2, NULL, SIZES(4, 4), SIZES(4, 3)), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(launch(2, NULL, SIZES(max, 2), SIZES(max, 2)), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(launch(1, NULL, SIZES(max * 2), SIZES(max * 2)), CL_INVALID_WORK_ITEM_SIZE);
    CHECK_CL(launch(3, NULL, SIZES(max, max, max), SIZES(max, max, max)),
             CL_INVALID_WORK_GROUP_SIZE);
    CHECK(read_int(setup.queue, buffer, 0) == 0);
    CHECK_CL(launch(1, SIZES(SIZE_MAX - 1), SIZES(1), NULL), CL_SUCCESS);
    CHECK(read_int(setup.queue, buffer, 0) == 1);
    clReleaseKernel(kernel);

    kernel = get_kernel(program, "r");
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    CHECK_CL(launch(2, NULL, SIZES(4, 2), SIZES(2, 4)), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(launch(1, NULL, SIZES(4), SIZES(4)), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(launch(2, NULL, SIZES(6, 2), NULL), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(clEnqueueTask(setup.queue, kernel, 0, NULL, NULL), CL_INVALID_WORK_GROUP_SIZE);
    CHECK_CL(launch(2, NULL, SIZES(8, 4), NULL), CL_SUCCESS);
    CHECK_CL(launch(3, NULL, SIZES(4, 2, 1), SIZES(4, 2, 1)), CL_SUCCESS);
    CHECK(read_int(setup.queue, buffer, 0) == 1 + 32 + 8);
    clReleaseKernel(kernel);

    kernel = get_kernel(program, "l");
    cl_ulong local;
    CHECK_CL(clGetDeviceInfo(setup.device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL),
             CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 0, local + 1, NULL), CL_SUCCESS);
    CHECK_CL(launch(1, NULL, SIZES(1), NULL), CL_OUT_OF_RESOURCES);
    CHECK_CL(clSetKernelArg(kernel, 0, SIZE_MAX, NULL), CL_SUCCESS);
    CHECK_CL(launch(1, NULL, SIZES(1), NULL), CL_OUT_OF_RESOURCES);
    CHECK_CL(clSetKernelArg(kernel, 0, local, NULL), CL_SUCCESS);
    CHECK_CL(launch(1, NULL, SIZES(1), NULL), CL_SUCCESS);
    clReleaseKernel(kernel);

    clReleaseMemObject(buffer);
    clReleaseProgram(program);
    check_finish(&setup);
    return check_result();
}
