/* clEnqueueTask runs one work-item; clEnqueueNativeKernel a function of the host on copied
 * arguments. */
#include "check_program.h"

struct arguments {
    int add;
    int *memory;
    cl_mem *unused;
};

static void CL_CALLBACK native(void *argument)
{
    struct arguments *arguments = argument;
    arguments->memory[0] += arguments->add;
}

static void CL_CALLBACK without_arguments(void *argument)
{
    CHECK(argument == NULL || argument != NULL); /* nothing is promised of it */
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_program program = build(setup.context,
                               "__kernel void k(__global int *p)\n"
                               "{ p[0] += get_global_size(0) * 10 + get_local_size(0); }\n",
                               NULL);
    cl_kernel kernel = get_kernel(program, "k");
    cl_mem buffer = int_buffer(setup.context, 1);
    CHECK_CL(clEnqueueTask(setup.queue, kernel, 0, NULL, NULL), CL_INVALID_KERNEL_ARGS);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    cl_event event;
    cl_command_type type;
    CHECK_CL(clEnqueueTask(setup.queue, kernel, 0, NULL, &event), CL_SUCCESS);
    CHECK_CL(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL), CL_SUCCESS);
    CHECK(type == CL_COMMAND_TASK);
    clReleaseEvent(event);

    struct arguments arguments = {.add = 100, .memory = (int *)buffer};
    const void *places[] = {&arguments.memory}, *outside[] = {&event};
    CHECK_CL(clEnqueueNativeKernel(NULL, native, &arguments, sizeof arguments, 1, &buffer, places,
                                   0, NULL, NULL),
             CL_INVALID_COMMAND_QUEUE);
    CHECK_CL(clEnqueueNativeKernel(setup.queue, NULL, &arguments, sizeof arguments, 1, &buffer,
                                   places, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueNativeKernel(setup.queue, native, NULL, 4, 0, NULL, NULL, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueNativeKernel(setup.queue, native, NULL, 0, 1, &buffer, places, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(
        clEnqueueNativeKernel(setup.queue, native, &arguments, 0, 0, NULL, NULL, 0, NULL, NULL),
        CL_INVALID_VALUE);
    CHECK_CL(clEnqueueNativeKernel(setup.queue, native, &arguments, sizeof arguments, 1, NULL,
                                   places, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueNativeKernel(setup.queue, native, &arguments, sizeof arguments, 1, &buffer,
                                   NULL, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueNativeKernel(setup.queue, native, &arguments, sizeof arguments, 0, &buffer,
                                   places, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueNativeKernel(setup.queue, native, &arguments, sizeof arguments, 1,
                                   (cl_mem *)&program, places, 0, NULL, NULL),
             CL_INVALID_MEM_OBJECT);
    CHECK_CL(clEnqueueNativeKernel(setup.queue, native, &arguments, sizeof arguments, 1, &buffer,
                                   outside, 0, NULL, NULL),
             CL_INVALID_VALUE);
    CHECK_CL(clEnqueueNativeKernel(setup.queue, native, &arguments, sizeof arguments, 1, &buffer,
                                   places, 1, NULL, NULL),
             CL_INVALID_EVENT_WAIT_LIST);

    CHECK_CL(clEnqueueNativeKernel(setup.queue, native, &arguments, sizeof arguments, 1, &buffer,
                                   places, 0, NULL, NULL),
             CL_SUCCESS);
    arguments.add = 7;
    CHECK_CL(clEnqueueNativeKernel(setup.queue, without_arguments, NULL, 0, 0, NULL, NULL, 0, NULL,
                                   NULL),
             CL_SUCCESS);
    CHECK(read_int(setup.queue, buffer, 0) == 111);
    CHECK(arguments.memory == (int *)buffer);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    check_finish(&setup);
    return check_result();
}
