/* A region that is larger than each device's memory, in the memory of two devices at one address:
 * each reads and writes all of it, both at once different parts of it, the host maps small pieces,
 * and other regions take its room. What the devices cannot hold together is refused. */
#include "check_devices.h"

enum { MIB = 1 << 20, COUNT = 25 * MIB + 1000, BYTES = COUNT * 4, AGENTS = 3 };

static cl_context context;
static cl_device_id devices[AGENTS];
static cl_command_queue queues[AGENTS];
static cl_program program;
static cl_kernel fill_kernel, check_kernel, add_kernel;
static cl_uint *wrong; /* a small region */

static const char source[] =
    "kernel void fill(global uint *p, ulong first, uint seed) {\n"
    "    size_t i = first + get_global_id(0);\n"
    "    p[i] = (uint)i * 2654435761u + seed;\n"
    "}\n"
    "kernel void check(global const uint *p, ulong first, uint seed, global uint *wrong) {\n"
    "    size_t i = first + get_global_id(0);\n"
    "    if (p[i] != (uint)i * 2654435761u + seed) atomic_inc(wrong);\n"
    "}\n"
    "kernel void add(global uint *p, ulong first, uint value) {\n"
    "    p[first + get_global_id(0)] += value;\n"
    "}\n";

static cl_uint value_at(size_t i, cl_uint seed)
{
    return (cl_uint)i * 2654435761u + seed;
}

static void launch(int agent, cl_kernel kernel, cl_uint *p, size_t first, size_t count,
                   cl_uint value)
{
    cl_ulong from = first;
    REQUIRE_CL(clSetKernelArgSVMPointer(kernel, 0, p));
    REQUIRE_CL(clSetKernelArg(kernel, 1, sizeof from, &from));
    REQUIRE_CL(clSetKernelArg(kernel, 2, sizeof value, &value));
    REQUIRE_CL(clEnqueueNDRangeKernel(queues[agent], kernel, 1, NULL, &count, NULL, 0, NULL, NULL));
}

static void fill(int agent, cl_uint *p, size_t first, size_t count, cl_uint seed)
{
    launch(agent, fill_kernel, p, first, count, seed);
}

static void finish_all(void)
{
    for (int i = 0; i < AGENTS; i++)
        REQUIRE_CL(clFinish(queues[i]));
}

static cl_uint wrong_on(int agent, cl_uint *p, size_t first, size_t count, cl_uint seed)
{
    cl_uint zero = 0, result = 1;
    REQUIRE_CL(clEnqueueSVMMemFill(queues[agent], wrong, &zero, 4, 4, 0, NULL, NULL));
    REQUIRE_CL(clSetKernelArgSVMPointer(check_kernel, 3, wrong));
    launch(agent, check_kernel, p, first, count, seed);
    REQUIRE_CL(clEnqueueSVMMemcpy(queues[agent], CL_TRUE, &result, wrong, 4, 0, NULL, NULL));
    return result;
}

/* The host adds 1 to `count` elements from `first` on. */
static void add_on_host(cl_uint *p, size_t first, size_t count)
{
    REQUIRE_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, p + first, count * 4,
                               0, NULL, NULL));
    for (size_t i = first; i < first + count; i++)
        p[i]++;
    REQUIRE_CL(clEnqueueSVMUnmap(queues[0], p + first, 0, NULL, NULL));
    REQUIRE_CL(clFinish(queues[0]));
}

static void test_fill_and_check(cl_uint *p)
{
    for (int agent = 1; agent < AGENTS; agent++) {
        fill(agent, p, 0, COUNT, 10u * (cl_uint)agent);
        finish_all();
        for (int reader = 1; reader < AGENTS; reader++)
            CHECK(wrong_on(reader, p, 0, COUNT, 10u * (cl_uint)agent) == 0);
    }
    /* A kernel that finds a mistake, so that the others can be believed. */
    CHECK(wrong_on(1, p, 0, COUNT, 7) == COUNT);
}

static void test_both_at_once(cl_uint *p)
{
    for (cl_uint round = 0; round < 4; round++) {
        /* Each its half, across the border between their memories in every other round. */
        size_t cut = round % 2 ? COUNT / 3 : COUNT / 2;
        fill(1, p, 0, cut, round);
        fill(2, p, cut, COUNT - cut, round);
        REQUIRE_CL(clFlush(queues[1]));
        finish_all();
        CHECK(wrong_on(1, p, 0, COUNT, round) == 0);
        CHECK(wrong_on(2, p, 0, COUNT, round) == 0);
    }
}

static void test_host(cl_uint *p)
{
    static const size_t places[] = {0, 12345, COUNT / 2 - 5, COUNT / 2, COUNT - 10};
    fill(1, p, 0, COUNT, 5);
    finish_all();
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        add_on_host(p, places[i], 10);
    CHECK(wrong_on(1, p, 0, 10, 6) == 0 && wrong_on(2, p, 10, 12335, 5) == 0 &&
          wrong_on(2, p, 12345, 10, 6) == 0);
    /* The two in the middle overlap by five. */
    CHECK(wrong_on(1, p, COUNT / 2 - 5, 5, 6) == 0 && wrong_on(2, p, COUNT / 2, 5, 7) == 0 &&
          wrong_on(2, p, COUNT / 2 + 5, 5, 6) == 0);
    CHECK(wrong_on(2, p, COUNT - 10, 10, 6) == 0 && wrong_on(1, p, COUNT - 1000, 990, 5) == 0);
    /* The CPU device gets all of it, and gives it back. */
    launch(0, add_kernel, p, 0, COUNT, 1);
    finish_all();
    CHECK(wrong_on(1, p, 20, 12000, 6) == 0 && wrong_on(2, p, COUNT - 10, 10, 7) == 0);
    launch(2, add_kernel, p, 0, COUNT, 1);
    finish_all();
    CHECK(wrong_on(0, p, 20, 12000, 7) == 0 && wrong_on(1, p, COUNT - 1000, 900, 7) == 0);
}

static void test_copies_and_fills(cl_uint *p)
{
    cl_uint pattern = 0x01020304;
    cl_uint *small = clSVMAlloc(context, CL_MEM_READ_WRITE, 8 * MIB, 0);
    REQUIRE(small);
    fill(2, p, 0, COUNT, 0);
    fill(1, small, 0, 2 * MIB, 77);
    finish_all();
    /* Over the border between two homes. */
    REQUIRE_CL(
        clEnqueueSVMMemcpy(queues[1], CL_TRUE, p + COUNT / 2 - MIB, small, 8 * MIB, 0, NULL, NULL));
    launch(2, add_kernel, small, 0, 2 * MIB, 1);
    finish_all();
    REQUIRE_CL(
        clEnqueueSVMMemcpy(queues[2], CL_TRUE, small, p + COUNT / 2 - MIB, 8 * MIB, 0, NULL, NULL));
    CHECK(wrong_on(1, small, 0, 2 * MIB, 77) == 0);
    CHECK(wrong_on(1, p, 0, COUNT / 2 - MIB, 0) == 0);
    CHECK(wrong_on(2, p, COUNT / 2 + MIB, COUNT / 2 - MIB, 0) == 0);
    REQUIRE_CL(clEnqueueSVMMemFill(queues[1], p, &pattern, 4, BYTES, 0, NULL, NULL));
    finish_all();
    REQUIRE_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, p, BYTES, 0, NULL, NULL));
    size_t different = 0;
    for (size_t i = 0; i < COUNT; i++)
        different += p[i] != pattern;
    CHECK(different == 0);
    REQUIRE_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL));
    finish_all();
    clSVMFree(context, small);
}

/* Ordinary regions take the room of parts, which come back when they are used again. */
static void test_eviction(cl_uint *p)
{
    enum { OTHER = 40 * MIB };
    cl_uint *other = clSVMAlloc(context, CL_MEM_READ_WRITE, OTHER, 0);
    REQUIRE(other);
    for (cl_uint round = 0; round < 3; round++) {
        int agent = 1 + (int)round % 2;
        fill(3 - agent, p, 0, COUNT, round);
        finish_all();
        fill(agent, other, 0, OTHER / 4, round);
        finish_all();
        CHECK(wrong_on(3 - agent, other, 0, OTHER / 4, round) == 0);
        CHECK(wrong_on(agent, p, 0, COUNT, round) == 0);
    }
    /* Both at once, neither of which fits beside the other. */
    for (int i = 0; i < 6; i++) {
        launch(1, add_kernel, p, 0, COUNT, 1);
        launch(2, add_kernel, other, 0, OTHER / 4, 1);
    }
    finish_all();
    CHECK(wrong_on(2, p, 0, COUNT, 2 + 6) == 0);
    CHECK(wrong_on(1, other, 0, OTHER / 4, 2 + 6) == 0);
    clSVMFree(context, other);
}

static void test_limits(void)
{
    cl_ulong most = 0, memory = 0;
    cl_int error;
    REQUIRE_CL(clGetDeviceInfo(devices[1], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL));
    REQUIRE_CL(
        clGetDeviceInfo(devices[1], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL));
    CHECK(most <= memory && most < BYTES);
    void *all = clSVMAlloc(context, CL_MEM_READ_WRITE, 2 * memory, 0);
    CHECK(all);
    clSVMFree(context, all);
    CHECK(!clSVMAlloc(context, CL_MEM_READ_WRITE, 2 * memory + 1, 0));
    CHECK(!clSVMAlloc(context, CL_MEM_READ_WRITE, (size_t)1 << 62, 0));
    CHECK(!clSVMAlloc(context, CL_MEM_READ_WRITE, SIZE_MAX, 0));
    CHECK(!clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, BYTES, 0));
    /* One device alone. */
    cl_context alone = clCreateContext(NULL, 1, &devices[1], NULL, NULL, &error);
    REQUIRE_CL(error);
    CHECK(!clSVMAlloc(alone, CL_MEM_READ_WRITE, most + 1, 0));
    clReleaseContext(alone);
}

static void test_buffers(cl_uint *p)
{
    cl_int error;
    cl_uint got[4] = {0};
    fill(1, p, 0, COUNT, 3);
    finish_all();
    cl_mem buffer = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 60u * MIB, p, &error);
    REQUIRE_CL(error);
    REQUIRE_CL(
        clEnqueueReadBuffer(queues[2], buffer, CL_TRUE, 50u * MIB, sizeof got, got, 0, NULL, NULL));
    for (size_t i = 0; i < 4; i++)
        CHECK(got[i] == value_at(50u * MIB / 4 + i, 3));
    REQUIRE_CL(clEnqueueWriteBuffer(queues[2], buffer, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL));
    clReleaseMemObject(buffer);
    CHECK(wrong_on(1, p, 4, COUNT - 4, 3) == 0 && wrong_on(1, p, 0, 4, 3) == 4);
}

int main(void)
{
    const char *others = getenv("SAMEPAGE_TEST_DEVICES");
    setenv("SAMEPAGE_DEVICES", others ? others : "cpu,virtual:2,mem=64M", 1);
    context = context_of_all(AGENTS, devices, queues, NULL, NULL);
    program = build(context, source, "-cl-std=CL3.0");
    fill_kernel = get_kernel(program, "fill");
    check_kernel = get_kernel(program, "check");
    add_kernel = get_kernel(program, "add");
    wrong = clSVMAlloc(context, CL_MEM_READ_WRITE, 4, 0);
    REQUIRE(wrong);

    test_limits();
    for (int round = 0; round < 2; round++) {
        cl_uint *p = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
        REQUIRE(p);
        test_fill_and_check(p);
        test_both_at_once(p);
        test_host(p);
        test_copies_and_fills(p);
        test_eviction(p);
        test_buffers(p);
        clSVMFree(context, p);
    }

    clSVMFree(context, wrong);
    clReleaseKernel(fill_kernel);
    clReleaseKernel(check_kernel);
    clReleaseKernel(add_kernel);
    clReleaseProgram(program);
    for (int i = 0; i < AGENTS; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return check_result();
}
