/* Everything that a program does with a GPU, once, through the ICD loader, and each result checked:
 * buffers, kernels of each kind, coarse and fine-grain shared memory, local memory, atomics,
 * printf, profiling. Skipped (exit 77) where there is no GPU. */
#include <math.h>

#include "../api/check.h"

#define COUNT (1u << 20)

static const char source[] =
    "__global int counter = 5;\n"
    "kernel void nothing(void) {}\n"
    "kernel void add(global const int *a, global const int *b, global int *c) {\n"
    "  size_t i = get_global_id(0); c[i] = a[i] + b[i]; }\n"
    "kernel void ids(global uint *out) {\n"
    "  size_t x = get_global_id(0) - get_global_offset(0), y = get_global_id(1) - "
    "get_global_offset(1);\n"
    "  out[y * get_global_size(0) + x] = (uint)(get_local_id(0) + 16 * get_local_id(1) +\n"
    "    256 * get_group_id(0) + 65536 * get_group_id(1)) + 16777216 * (uint)get_global_offset(1); "
    "}\n"
    "kernel void sum(global const int *in, global int *out, local int *scratch) {\n"
    "  local int fixed[4]; size_t l = get_local_id(0); scratch[l] = in[get_global_id(0)];\n"
    "  if (l < 4) fixed[l] = 100;\n"
    "  for (size_t step = get_local_size(0) / 2; step; step /= 2) {\n"
    "    barrier(CLK_LOCAL_MEM_FENCE); if (l < step) scratch[l] += scratch[l + step]; }\n"
    "  if (l == 0) out[get_group_id(0)] = scratch[0] + fixed[3]; }\n"
    "kernel void count(global atomic_int *total, global int *old) {\n"
    "  atomic_fetch_add_explicit(total, 1, memory_order_relaxed, memory_scope_device);\n"
    "  atomic_max(old, (int)get_global_id(0)); }\n"
    "kernel void count_up(global int *out) { if (get_global_id(0) == 0) { counter += 2; *out = "
    "counter; } }\n"
    "kernel void maths(global float *f, global double *d) { size_t i = get_global_id(0);\n"
    "  f[i] = sin((float)i) + exp((float)i / 1000.0f) + sqrt((float)i); d[i] = sin((double)i) * "
    "cos((double)i); }\n"
    "kernel void tally(global const int *in, int n, global uint *up, global ulong *down) {\n"
    "  uint below = 0, above = 7; ulong equal = 0; int lowest = in[0];\n"
    "  for (int i = 0; i < n; i++) { below += in[i] < 10; above -= in[i] > 40;\n"
    "    if (in[i] == 17) equal++; if (in[i] < lowest) lowest = in[i]; }\n"
    "  size_t i = get_global_id(0); up[2 * i] = below + lowest; up[2 * i + 1] = above;\n"
    "  down[i] = equal + (in[i] & 1); }\n"
    "kernel void say(int n) { if (get_global_id(0) == 3) printf(\"gpu says %d %s %.2f %v2d\\n\", "
    "n, \"word\", 1.5f, (int2)(7, 8)); }\n"
    "struct node { int value; global struct node *next; };\n"
    "kernel void walk(global struct node *list, global int *out) { int s = 0; for (; list; list = "
    "list->next) s += list->value; *out = s; }\n"
    "kernel void add_one(global int *data) { data[get_global_id(0)] += 1; }\n";

static cl_context context;
static cl_command_queue queue;
static cl_device_id device;
static cl_program program;

static cl_kernel kernel_named(const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    REQUIRE_CL(error);
    return kernel;
}

static void run(cl_kernel kernel, size_t global, size_t local)
{
    CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, local ? &local : NULL, 0, NULL,
                                    NULL),
             CL_SUCCESS);
}

static void buffers(void)
{
    cl_int error;
    static int a[COUNT], b[COUNT], c[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        a[i] = (int)i;
        b[i] = (int)(3 * i + 1);
    }
    cl_mem in =
        clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof a, a, &error);
    REQUIRE_CL(error);
    cl_mem more = clCreateBuffer(context, CL_MEM_READ_ONLY, sizeof b, NULL, &error);
    REQUIRE_CL(error);
    cl_mem out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof c, NULL, &error);
    REQUIRE_CL(error);
    cl_kernel kernel = kernel_named("add");
    CHECK_CL(clEnqueueWriteBuffer(queue, more, CL_FALSE, 0, sizeof b, b, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof in, &in), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof more, &more), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 2, sizeof out, &out), CL_SUCCESS);
    run(kernel, COUNT, 0);
    CHECK_CL(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof c, c, 0, NULL, NULL), CL_SUCCESS);
    unsigned wrong = 0;
    for (unsigned i = 0; i < COUNT; i++)
        wrong += c[i] != a[i] + b[i];
    CHECK(wrong == 0);
    /* Fill, copy, rectangle, within the device. */
    const int pattern = 77;
    CHECK_CL(
        clEnqueueFillBuffer(queue, out, &pattern, sizeof pattern, 0, sizeof c / 2, 0, NULL, NULL),
        CL_SUCCESS);
    CHECK_CL(clEnqueueCopyBuffer(queue, in, out, 0, sizeof c / 2, 4096, 0, NULL, NULL), CL_SUCCESS);
    const size_t dst[3] = {0, 1, 0}, src[3] = {4, 2, 0}, region[3] = {64, 3, 2};
    CHECK_CL(clEnqueueCopyBufferRect(queue, in, out, src, dst, region, 256, 2048, 128, 1024, 0,
                                     NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof c, c, 0, NULL, NULL), CL_SUCCESS);
    CHECK(c[1000] == 77);
    CHECK(memcmp((char *)c + sizeof c / 2, a, 4096) == 0);
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++)
            CHECK(memcmp((char *)c + 128 * (y + 1) + 1024 * z,
                         (char *)a + 4 + 256 * (y + 2) + 2048 * z, 64) == 0);
    clReleaseKernel(kernel);
    clReleaseMemObject(in);
    clReleaseMemObject(more);
    clReleaseMemObject(out);
}

static void work_items(void)
{
    cl_kernel kernel = kernel_named("ids");
    const size_t offset[2] = {3, 2}, global[2] = {70, 50}, local[2] = {16, 8};
    unsigned *out = clSVMAlloc(context, CL_MEM_READ_WRITE, 70 * 50 * 4, 0);
    REQUIRE(out);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, out), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 2, offset, global, local, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, out, 70 * 50 * 4, 0, NULL, NULL),
             CL_SUCCESS);
    unsigned wrong = 0;
    for (unsigned y = 0; y < 50; y++)
        for (unsigned x = 0; x < 70; x++)
            wrong += out[y * 70 + x] !=
                     x % 16 + 16 * (y % 8) + 256 * (x / 16) + 65536 * (y / 8) + 16777216 * 2;
    CHECK(wrong == 0);
    CHECK_CL(clEnqueueSVMUnmap(queue, out, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    clSVMFree(context, out);
    clReleaseKernel(kernel);
}

static void local_memory(void)
{
    cl_kernel kernel = kernel_named("sum");
    enum { GROUPS = 64, ITEMS = 256 };
    int *in = clSVMAlloc(context, CL_MEM_READ_WRITE, GROUPS * ITEMS * sizeof(int), 0);
    int *out = clSVMAlloc(context, CL_MEM_READ_WRITE, GROUPS * sizeof(int), 0);
    REQUIRE(in && out);
    CHECK_CL(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, in,
                             GROUPS * ITEMS * sizeof(int), 0, NULL, NULL),
             CL_SUCCESS);
    for (int i = 0; i < GROUPS * ITEMS; i++)
        in[i] = i;
    CHECK_CL(clEnqueueSVMUnmap(queue, in, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, in), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 1, out), CL_SUCCESS);
    for (size_t local_bytes = ITEMS * sizeof(int); local_bytes < 200000; local_bytes *= 10) {
        CHECK_CL(clSetKernelArg(kernel, 2, local_bytes, NULL), CL_SUCCESS);
        run(kernel, GROUPS * ITEMS, ITEMS);
        CHECK_CL(
            clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, out, GROUPS * sizeof(int), 0, NULL, NULL),
            CL_SUCCESS);
        for (int g = 0; g < GROUPS; g++)
            CHECK(out[g] == ITEMS * (ITEMS * g) + ITEMS * (ITEMS - 1) / 2 + 100);
        CHECK_CL(clEnqueueSVMUnmap(queue, out, 0, NULL, NULL), CL_SUCCESS);
    }
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    clSVMFree(context, in);
    clSVMFree(context, out);
    clReleaseKernel(kernel);
}

static void atomics_and_globals(void)
{
    cl_kernel count = kernel_named("count"), up = kernel_named("count_up");
    int *data = clSVMAlloc(context, CL_MEM_READ_WRITE, 4096, 0);
    const int zero = 0;
    REQUIRE(data);
    CHECK_CL(clEnqueueSVMMemFill(queue, data, &zero, sizeof zero, 4096, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(count, 0, data), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(count, 1, data + 1), CL_SUCCESS);
    run(count, COUNT, 0);
    CHECK_CL(clSetKernelArgSVMPointer(up, 0, data + 2), CL_SUCCESS);
    run(up, 32, 0);
    run(up, 32, 0);
    CHECK_CL(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, data, 4096, 0, NULL, NULL), CL_SUCCESS);
    CHECK(data[0] == COUNT);
    CHECK(data[1] == COUNT - 1);
    CHECK(data[2] == 9);
    CHECK_CL(clEnqueueSVMUnmap(queue, data, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    clSVMFree(context, data);
    clReleaseKernel(count);
    clReleaseKernel(up);
}

static void mathematics(void)
{
    enum { ITEMS = 5000 };
    cl_kernel kernel = kernel_named("maths");
    float *f = clSVMAlloc(context, CL_MEM_READ_WRITE, ITEMS * sizeof *f, 0);
    double *d = clSVMAlloc(context, CL_MEM_READ_WRITE, ITEMS * sizeof *d, 0);
    REQUIRE(f && d);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, f), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 1, d), CL_SUCCESS);
    run(kernel, ITEMS, 0);
    CHECK_CL(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, f, ITEMS * sizeof *f, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, d, ITEMS * sizeof *d, 0, NULL, NULL),
             CL_SUCCESS);
    unsigned wrong = 0;
    for (int i = 0; i < ITEMS; i++) {
        double e = sin(i) + exp(i / 1000.0) + sqrt(i);
        wrong += fabs(f[i] - e) > 1e-5 * (fabs(e) + 1) || fabs(d[i] - sin(i) * cos(i)) > 1e-14;
    }
    CHECK(wrong == 0);
    CHECK_CL(clEnqueueSVMUnmap(queue, f, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueSVMUnmap(queue, d, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    clSVMFree(context, f);
    clSVMFree(context, d);
    clReleaseKernel(kernel);
}

struct node {
    int value;
    struct node *next;
};

/* A list whose nodes lie in regions of their own, by pointers that are the host's. */
static void pointers_in_memory(cl_svm_mem_flags flags)
{
    enum { NODES = 100 };
    struct node *nodes[NODES];
    cl_kernel kernel = kernel_named("walk");
    int *out = clSVMAlloc(context, flags, sizeof *out, 0);
    bool is_fine = flags & CL_MEM_SVM_FINE_GRAIN_BUFFER;
    REQUIRE(out);
    for (int i = 0; i < NODES; i++) {
        nodes[i] = clSVMAlloc(context, flags, sizeof *nodes[i], 0);
        REQUIRE(nodes[i]);
    }
    for (int i = 0; i < NODES; i++) {
        if (!is_fine)
            CHECK_CL(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, nodes[i], sizeof *nodes[i], 0,
                                     NULL, NULL),
                     CL_SUCCESS);
        nodes[i]->value = i;
        nodes[i]->next = i + 1 < NODES ? nodes[i + 1] : NULL;
        if (!is_fine)
            CHECK_CL(clEnqueueSVMUnmap(queue, nodes[i], 0, NULL, NULL), CL_SUCCESS);
    }
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, nodes[0]), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 1, out), CL_SUCCESS);
    CHECK_CL(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof nodes, nodes),
             CL_SUCCESS);
    run(kernel, 1, 1);
    if (is_fine)
        CHECK_CL(clFinish(queue), CL_SUCCESS);
    else
        CHECK_CL(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, out, sizeof *out, 0, NULL, NULL),
                 CL_SUCCESS);
    CHECK(*out == NODES * (NODES - 1) / 2);
    if (!is_fine)
        CHECK_CL(clEnqueueSVMUnmap(queue, out, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    for (int i = 0; i < NODES; i++)
        clSVMFree(context, nodes[i]);
    clSVMFree(context, out);
    clReleaseKernel(kernel);
}

/* Conditions as numbers. */
static void counting(void)
{
    enum { ITEMS = 1000 };
    cl_kernel kernel = kernel_named("tally");
    int *in = clSVMAlloc(context, CL_MEM_READ_WRITE, ITEMS * sizeof *in, 0), n = ITEMS;
    cl_uint *up = clSVMAlloc(context, CL_MEM_READ_WRITE, ITEMS * 2 * sizeof *up, 0);
    cl_ulong *down = clSVMAlloc(context, CL_MEM_READ_WRITE, ITEMS * sizeof *down, 0);
    cl_uint below = 0, above = 7, wrong = 0;
    cl_ulong equal = 0;
    REQUIRE(in && up && down);
    CHECK_CL(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, in, ITEMS * sizeof *in, 0, NULL, NULL),
             CL_SUCCESS);
    for (int i = 0; i < ITEMS; i++) {
        in[i] = i * 37 % 53;
        below += in[i] < 10;
        above -= in[i] > 40;
        equal += in[i] == 17;
    }
    CHECK_CL(clEnqueueSVMUnmap(queue, in, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, in), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof n, &n), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 2, up), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 3, down), CL_SUCCESS);
    run(kernel, ITEMS, 0);
    CHECK_CL(
        clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, up, ITEMS * 2 * sizeof *up, 0, NULL, NULL),
        CL_SUCCESS);
    CHECK_CL(
        clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, down, ITEMS * sizeof *down, 0, NULL, NULL),
        CL_SUCCESS);
    for (int i = 0; i < ITEMS; i++)
        wrong += up[2 * i] != below || up[2 * i + 1] != above ||
                 down[i] != equal + (cl_ulong)(i * 37 % 53 & 1);
    CHECK(wrong == 0);
    CHECK_CL(clEnqueueSVMUnmap(queue, up, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueSVMUnmap(queue, down, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    clSVMFree(context, in);
    clSVMFree(context, up);
    clSVMFree(context, down);
    clReleaseKernel(kernel);
}

/* Host and GPU in turn, the host writing here and there. */
static void turns(void)
{
    enum { BYTES = 64 << 20, INTS = BYTES / 4 };
    cl_kernel kernel = kernel_named("add_one");
    int *data = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    const int zero = 0;
    REQUIRE(data);
    CHECK_CL(clEnqueueSVMMemFill(queue, data, &zero, sizeof zero, BYTES, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, data), CL_SUCCESS);
    for (int round = 1; round <= 4; round++) {
        run(kernel, INTS, 0);
        CHECK_CL(
            clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, data, BYTES, 0, NULL, NULL),
            CL_SUCCESS);
        unsigned wrong = 0;
        for (int i = 0; i < INTS; i++)
            wrong += data[i] != (i % 16384 == 5 ? 10 * (round - 1) + round : round);
        CHECK(wrong == 0);
        for (int i = 5; i < INTS; i += 16384)
            data[i] += 10;
        CHECK_CL(clEnqueueSVMUnmap(queue, data, 0, NULL, NULL), CL_SUCCESS);
    }
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    clSVMFree(context, data);
    clReleaseKernel(kernel);
}

static void printing_and_times(void)
{
    cl_kernel say = kernel_named("say");
    const int n = 42;
    const size_t global = 64;
    cl_event event;
    cl_ulong times[4];
    CHECK_CL(clSetKernelArg(say, 0, sizeof n, &n), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, say, 1, NULL, &global, NULL, 0, NULL, &event),
             CL_SUCCESS);
    CHECK_CL(clWaitForEvents(1, &event), CL_SUCCESS);
    for (cl_uint i = 0; i < 4; i++)
        CHECK_CL(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + i, sizeof times[i],
                                         &times[i], NULL),
                 CL_SUCCESS);
    CHECK(times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3]);
    CHECK(times[3] - times[0] < 1000000000);
    clReleaseEvent(event);
    clReleaseKernel(say);
}

int main(void)
{
    cl_int error;
    char log[8192] = "", name[128] = "";
    cl_device_svm_capabilities svm = 0;
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    if (clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_GPU, 1, &device, NULL)) {
        puts("skipped: there is no GPU");
        return 77;
    }
    CHECK_CL(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL), CL_SUCCESS);
    CHECK_CL(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL),
             CL_SUCCESS);
    printf("%s\n", name);
    fflush(stdout);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    REQUIRE_CL(error);
    queue = clCreateCommandQueueWithProperties(context, device, properties, &error);
    REQUIRE_CL(error);
    const char *text = source;
    program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    REQUIRE_CL(error);
    error = clBuildProgram(program, 1, &device, "-cl-std=CL3.0", NULL, NULL);
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    if (error)
        fprintf(stderr, "build: %d\n%s\n", error, log);
    REQUIRE_CL(error);
    const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"buffers", buffers},
                 {"work items", work_items},
                 {"local memory", local_memory},
                 {"atomics and globals", atomics_and_globals},
                 {"mathematics", mathematics},
                 {"counting", counting},
                 {"turns", turns},
                 {"printing and times", printing_and_times}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int before = check_failures;
        parts[i].run();
        printf("%-20s %s\n", parts[i].name, check_failures == before ? "right" : "WRONG");
        fflush(stdout);
    }
    pointers_in_memory(CL_MEM_READ_WRITE);
    printf("%-20s %s\n", "coarse pointers", check_failures ? "see above" : "right");
    if (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER)
        pointers_in_memory(CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER);
    printf("%-20s %s\n", "fine pointers", check_failures ? "see above" : "right");
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return check_result();
}
