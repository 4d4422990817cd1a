/* See device.h. */
#include "device.h"

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdlib.h>
#include <string.h>

struct device {
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    cl_program programs[NUM_BUILDS];
};

static cl_platform_id find_platform(void)
{
    cl_platform_id platforms[16];
    cl_uint count = 0;
    clGetPlatformIDs(16, platforms, &count);
    for (cl_uint i = 0; i < count && i < 16; i++) {
        char name[64] = "";
        clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL);
        if (!strcmp(name, "Samepage"))
            return platforms[i];
    }
    fprintf(stderr, "no Samepage platform among %u; is OCL_ICD_VENDORS set?\n", (unsigned)count);
    exit(2);
}

struct device *device_create(void)
{
    struct device *device = calloc(1, sizeof(*device));
    cl_int error = CL_SUCCESS;
    if (!device)
        abort();
    clGetDeviceIDs(find_platform(), CL_DEVICE_TYPE_ALL, 1, &device->id, NULL);
    device->context = clCreateContext(NULL, 1, &device->id, NULL, NULL, &error);
    device->queue = clCreateCommandQueueWithProperties(device->context, device->id, NULL, &error);
    if (error) {
        fprintf(stderr, "no queue: error %d\n", (int)error);
        exit(2);
    }
    return device;
}

static void release_programs(struct device *device)
{
    for (unsigned b = 0; b < NUM_BUILDS; b++)
        if (device->programs[b])
            clReleaseProgram(device->programs[b]);
    memset(device->programs, 0, sizeof(device->programs));
}

void device_destroy(struct device *device)
{
    release_programs(device);
    clReleaseCommandQueue(device->queue);
    clReleaseContext(device->context);
    free(device);
}

bool device_build(struct device *device, const char *source)
{
    static const char *const options[] = {
        [BUILD_VECTOR] = "-w -cl-std=CL3.0",
        [BUILD_SCALAR] = "-w -cl-std=CL3.0 -cl-opt-disable",
    };
    release_programs(device);
    for (unsigned b = 0; b < NUM_BUILDS; b++) {
        static char log[16384];
        device->programs[b] = clCreateProgramWithSource(device->context, 1, &source, NULL, NULL);
        if (!clBuildProgram(device->programs[b], 0, NULL, options[b], NULL, NULL))
            continue;
        clGetProgramBuildInfo(device->programs[b], device->id, CL_PROGRAM_BUILD_LOG, sizeof(log),
                              log, NULL);
        fprintf(stderr, "does not build with %s:\n%s\n", options[b], log);
        return false;
    }
    return true;
}

/* The buffers of one launch: those that a kernel writes, in the order of its arguments. */
enum { OUT, ROWS, COLUMNS, CELLS_BUFFER, NUM_WRITTEN };

struct launch {
    struct device *device;
    cl_kernel kernel;
    cl_mem in, written[NUM_WRITTEN];
    size_t bytes[NUM_WRITTEN];
    void *host[NUM_WRITTEN];
    cl_int error;
};

static cl_mem make_buffer(struct launch *launch, size_t bytes, void *contents)
{
    cl_int error;
    cl_mem buffer = clCreateBuffer(
        launch->device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, contents, &error);
    launch->error |= error;
    return buffer;
}

static void make_buffers(struct launch *launch, struct results *results)
{
    int32_t inputs[INPUTS];
    const size_t item = sizeof(int32_t);
    size_t bytes[NUM_WRITTEN] = {results->items * item, results->items * item * ROW_ELEMENTS,
                                 results->items * item * COLUMN_ELEMENTS, CELLS * item};
    void *host[NUM_WRITTEN] = {results->out, results->rows, results->columns, results->cells};
    fill_inputs(inputs);
    launch->in = make_buffer(launch, sizeof(inputs), inputs);
    for (unsigned i = 0; i < NUM_WRITTEN; i++) {
        launch->bytes[i] = bytes[i];
        launch->host[i] = host[i];
        launch->written[i] = make_buffer(launch, bytes[i], host[i]);
    }
}

static void go(struct launch *launch, const struct shape *shape)
{
    cl_kernel kernel = launch->kernel;
    cl_command_queue queue = launch->device->queue;
    size_t global[3], local[3], offset[3];
    cl_uint n = shape->n;
    for (unsigned d = 0; d < 3; d++) {
        global[d] = shape->global[d];
        local[d] = shape->local[d];
        offset[d] = shape->offset[d];
    }
    launch->error |= clSetKernelArg(kernel, 0, sizeof(cl_mem), &launch->in);
    for (cl_uint i = 0; i < NUM_WRITTEN; i++)
        launch->error |= clSetKernelArg(kernel, 1 + i, sizeof(cl_mem), &launch->written[i]);
    launch->error |= clSetKernelArg(kernel, 5, sizeof(n), &n);
    launch->error |=
        clSetKernelArg(kernel, 6, local[0] * local[1] * local[2] * sizeof(cl_int), NULL);
    launch->error |= clEnqueueNDRangeKernel(queue, kernel, shape->dimensions, offset, global, local,
                                            0, NULL, NULL);
    for (unsigned i = 0; i < NUM_WRITTEN; i++)
        launch->error |= clEnqueueReadBuffer(queue, launch->written[i], CL_TRUE, 0,
                                             launch->bytes[i], launch->host[i], 0, NULL, NULL);
}

bool device_run(struct device *device, enum build build, uint64_t seed, const struct shape *shape,
                struct results *results)
{
    struct launch launch = {.device = device};
    char name[32];
    snprintf(name, sizeof(name), "k%llu", (unsigned long long)seed);
    launch.kernel = clCreateKernel(device->programs[build], name, &launch.error);
    make_buffers(&launch, results);
    if (launch.kernel && !launch.error)
        go(&launch, shape);
    for (unsigned i = 0; i < NUM_WRITTEN; i++)
        if (launch.written[i])
            clReleaseMemObject(launch.written[i]);
    if (launch.in)
        clReleaseMemObject(launch.in);
    if (launch.kernel)
        clReleaseKernel(launch.kernel);
    if (launch.error)
        fprintf(stderr, "%s: OpenCL error %d\n", name, (int)launch.error);
    return !launch.error;
}
