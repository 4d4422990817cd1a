/* Several devices with memory of their own in one context, sharing pointers: whatever one of them,
 * or the host, wrote, all others read, in SVM, buffers, sub-buffers and buffers over host memory.
 * The devices are virtual ones, whose memory really is separate: a copy that is not made shows. */
#include "check_devices.h"

enum { NUM_DEVICES = 3, AGENTS = NUM_DEVICES + 1 };

static cl_context context;
static cl_device_id devices[NUM_DEVICES];
static cl_command_queue queues[NUM_DEVICES];
static cl_kernel add_kernel, check_kernel, count_kernel;

static const char source[] =
    "kernel void add(global uint *p, uint value) { p[get_global_id(0)] += value; }\n"
    "kernel void check(global const uint *p, uint value, global volatile uint *wrong) {\n"
    "    if (p[get_global_id(0)] != value + get_global_id(0)) atomic_inc(wrong);\n"
    "}\n"
    "global uint calls = 5;\n"
    "kernel void count(global uint *out) { calls += 1; out[0] = calls; }\n";

static void set_up(void)
{
    context = context_of_all(NUM_DEVICES, devices, queues, NULL, NULL);
    cl_program program = build(context, source, "-cl-std=CL3.0");
    add_kernel = get_kernel(program, "add");
    check_kernel = get_kernel(program, "check");
    count_kernel = get_kernel(program, "count");
    clReleaseProgram(program);
}

static void launch(cl_command_queue queue, cl_kernel kernel, size_t count)
{
    REQUIRE_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL));
    REQUIRE_CL(clFinish(queue));
}

/* Agent 0 is the host, agent i device i - 1. */
static void add_to(int agent, cl_uint *p, size_t count, cl_uint value)
{
    if (agent == 0) {
        REQUIRE_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, p, count * 4, 0,
                                   NULL, NULL));
        for (size_t i = 0; i < count; i++)
            p[i] += value;
        REQUIRE_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL));
        REQUIRE_CL(clFinish(queues[0]));
        return;
    }
    REQUIRE_CL(clSetKernelArgSVMPointer(add_kernel, 0, p));
    REQUIRE_CL(clSetKernelArg(add_kernel, 1, sizeof value, &value));
    launch(queues[agent - 1], add_kernel, count);
}

/* How many elements are not value + index, as this agent sees it. */
static cl_uint wrong_for(int agent, const cl_uint *p, size_t count, cl_uint value)
{
    cl_uint wrong = 0;
    cl_int error;
    if (agent == 0) {
        REQUIRE_CL(
            clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, (void *)p, count * 4, 0, NULL, NULL));
        for (size_t i = 0; i < count; i++)
            wrong += p[i] != value + i;
        REQUIRE_CL(clEnqueueSVMUnmap(queues[0], (void *)p, 0, NULL, NULL));
        return wrong;
    }
    cl_mem counter = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof wrong,
                                    &wrong, &error);
    REQUIRE_CL(error);
    REQUIRE_CL(clSetKernelArgSVMPointer(check_kernel, 0, p));
    REQUIRE_CL(clSetKernelArg(check_kernel, 1, sizeof value, &value));
    REQUIRE_CL(clSetKernelArg(check_kernel, 2, sizeof counter, &counter));
    launch(queues[agent - 1], check_kernel, count);
    REQUIRE_CL(
        clEnqueueReadBuffer(queues[0], counter, CL_TRUE, 0, sizeof wrong, &wrong, 0, NULL, NULL));
    clReleaseMemObject(counter);
    return wrong;
}

static cl_uint *new_region(size_t count)
{
    cl_uint *p = clSVMAlloc(context, CL_MEM_READ_WRITE, count * 4, 0);
    REQUIRE(p);
    REQUIRE_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, p, count * 4, 0,
                               NULL, NULL));
    for (size_t i = 0; i < count; i++)
        p[i] = (cl_uint)i;
    REQUIRE_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL));
    REQUIRE_CL(clFinish(queues[0]));
    return p;
}

static void every_pair_agrees(void)
{
    enum { COUNT = 20000 };
    cl_uint *p = new_region(COUNT), value = 0;
    for (int writer = 0; writer <= NUM_DEVICES; writer++)
        for (int reader = 0; reader <= NUM_DEVICES; reader++) {
            add_to(writer, p, COUNT, 3);
            value += 3;
            CHECK(wrong_for(reader, p, COUNT, value) == 0);
        }
    clSVMFree(context, p);
}

/* Many regions, small and large, used by anyone in any order. */
static void a_random_mix_agrees(void)
{
    enum { REGIONS = 8, STEPS = 300 };
    static const size_t counts[REGIONS] = {1, 60, 1000, 1024, 5000, 100000, 600000, 1300000};
    cl_uint *regions[REGIONS], values[REGIONS] = {0};
    unsigned seed = 7;
    for (int r = 0; r < REGIONS; r++)
        regions[r] = new_region(counts[r]);
    for (int step = 0; step < STEPS; step++) {
        int r = rand_r(&seed) % REGIONS, agent = (unsigned)rand_r(&seed) % (NUM_DEVICES + 1);
        if (rand_r(&seed) % 2) {
            values[r] += (cl_uint)step;
            add_to(agent, regions[r], counts[r], (cl_uint)step);
        } else {
            CHECK(wrong_for(agent, regions[r], counts[r], values[r]) == 0);
        }
    }
    for (int r = 0; r < REGIONS; r++)
        clSVMFree(context, regions[r]);
}

static void fine_grain_needs_no_map(void)
{
    enum { COUNT = 5000 };
    cl_uint *p =
        clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, COUNT * 4, 0);
    REQUIRE(p);
    for (cl_uint i = 0; i < COUNT; i++)
        p[i] = i;
    for (cl_uint d = 0; d < NUM_DEVICES; d++)
        add_to((int)d + 1, p, COUNT, 10);
    cl_uint wrong = 0;
    for (cl_uint i = 0; i < COUNT; i++)
        wrong += p[i] != i + 10 * NUM_DEVICES;
    CHECK(wrong == 0);
    clSVMFree(context, p);
}

/* A buffer, its halves as sub-buffers, and the same bytes read and written by commands of every
 * queue. */
static void buffers_and_their_parts_agree(void)
{
    enum { COUNT = 4096 };
    cl_uint host[COUNT];
    cl_int error;
    cl_mem whole = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof host, NULL, &error);
    REQUIRE_CL(error);
    cl_buffer_region halves[2] = {{0, sizeof host / 2}, {sizeof host / 2, sizeof host / 2}};
    for (cl_uint d = 0; d < NUM_DEVICES; d++) {
        cl_uint zero = 0, one = 1, wrong = 0;
        REQUIRE_CL(clEnqueueFillBuffer(queues[d], whole, &zero, 4, 0, sizeof host, 0, NULL, NULL));
        REQUIRE_CL(clFinish(queues[d]));
        for (int h = 0; h < 2; h++) {
            cl_mem part =
                clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &halves[h], &error);
            REQUIRE_CL(error);
            REQUIRE_CL(clSetKernelArg(add_kernel, 0, sizeof part, &part));
            REQUIRE_CL(clSetKernelArg(add_kernel, 1, sizeof one, &one));
            launch(queues[(d + (cl_uint)h) % NUM_DEVICES], add_kernel, COUNT / 2);
            clReleaseMemObject(part);
        }
        REQUIRE_CL(clEnqueueReadBuffer(queues[(d + 2) % NUM_DEVICES], whole, CL_TRUE, 0,
                                       sizeof host, host, 0, NULL, NULL));
        for (int i = 0; i < COUNT; i++)
            wrong += host[i] != 1;
        CHECK(wrong == 0);
    }
    clReleaseMemObject(whole);
}

static void a_buffer_over_host_memory_is_current_when_mapped(void)
{
    enum { COUNT = 3000 };
    static cl_uint host[COUNT];
    cl_uint five = 5;
    cl_int error;
    for (cl_uint i = 0; i < COUNT; i++)
        host[i] = i;
    cl_mem buffer =
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof host, host, &error);
    REQUIRE_CL(error);
    for (cl_uint d = 0; d < NUM_DEVICES; d++) {
        REQUIRE_CL(clSetKernelArg(add_kernel, 0, sizeof buffer, &buffer));
        REQUIRE_CL(clSetKernelArg(add_kernel, 1, sizeof five, &five));
        launch(queues[d], add_kernel, COUNT);
        cl_uint wrong = 0;
        cl_uint *mapped = clEnqueueMapBuffer(queues[d], buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                             0, sizeof host, 0, NULL, NULL, &error);
        REQUIRE_CL(error);
        CHECK(mapped == host);
        for (cl_uint i = 0; i < COUNT; i++)
            wrong += host[i] != i + 6 * d + 5;
        CHECK(wrong == 0);
        for (cl_uint i = 0; i < COUNT; i++)
            host[i]++;
        REQUIRE_CL(clEnqueueUnmapMemObject(queues[d], buffer, mapped, 0, NULL, NULL));
        REQUIRE_CL(clFinish(queues[d]));
    }
    clReleaseMemObject(buffer);
}

static void migrating_moves_and_keeps_the_content(void)
{
    enum { COUNT = 10000 };
    cl_uint *p = new_region(COUNT);
    const void *pointers[] = {p};
    for (cl_uint d = 0; d < NUM_DEVICES; d++) {
        CHECK_CL(clEnqueueSVMMigrateMem(queues[d], 1, pointers, NULL, 0, 0, NULL, NULL),
                 CL_SUCCESS);
        REQUIRE_CL(clFinish(queues[d]));
        CHECK(wrong_for((int)d + 1, p, COUNT, 0) == 0);
    }
    CHECK_CL(clEnqueueSVMMigrateMem(queues[1], 1, pointers, NULL, CL_MIGRATE_MEM_OBJECT_HOST, 0,
                                    NULL, NULL),
             CL_SUCCESS);
    REQUIRE_CL(clFinish(queues[1]));
    CHECK(wrong_for(0, p, COUNT, 0) == 0);
    clSVMFree(context, p);
}

static void program_scope_variables_are_each_devices_own(void)
{
    cl_int error;
    cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, 4, NULL, &error);
    REQUIRE_CL(error);
    REQUIRE_CL(clSetKernelArg(count_kernel, 0, sizeof out, &out));
    for (cl_uint d = 0; d < NUM_DEVICES; d++)
        for (cl_uint call = 1; call <= 2; call++) {
            cl_uint seen = 0;
            launch(queues[d], count_kernel, 1);
            REQUIRE_CL(clEnqueueReadBuffer(queues[d], out, CL_TRUE, 0, 4, &seen, 0, NULL, NULL));
            CHECK(seen == 5 + call);
        }
    clReleaseMemObject(out);
}

int main(void)
{
    const char *others = getenv("SAMEPAGE_TEST_DEVICES");
    setenv("SAMEPAGE_DEVICES", others ? others : "cpu,virtual:2,mem=64M", 1);
    set_up();
    every_pair_agrees();
    a_random_mix_agrees();
    fine_grain_needs_no_map();
    buffers_and_their_parts_agree();
    a_buffer_over_host_memory_is_current_when_mapped();
    migrating_moves_and_keeps_the_content();
    program_scope_variables_are_each_devices_own();
    clReleaseKernel(add_kernel);
    clReleaseKernel(check_kernel);
    clReleaseKernel(count_kernel);
    for (cl_uint i = 0; i < NUM_DEVICES; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return check_result();
}
