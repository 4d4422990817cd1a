/* The death of a device in whose memory part of a pooled region lies: that part is lost and told
 * of, the rest stays, and the region is whole again for everybody. A kernel of another device that
 * writes there meanwhile touches nothing that is not there, and ends with an error; one that dies
 * while it writes to another's memory leaves what the host had a copy of. */
#include <sched.h>
#include <stdatomic.h>

#include "check_devices.h"
#include "check_loss.h"

enum { MIB = 1 << 20, COUNT = 24 * MIB, BYTES = COUNT * 4, HALF = COUNT / 2, AGENTS = 3 };

static const char source[] =
    "kernel void crash(global uint *p) { *(global volatile uint *)8 = p[0]; }\n"
    "kernel void fill(global uint *p, uint seed) { p[get_global_id(0)] = get_global_id(0) + seed; "
    "}\n"
    "kernel void check(global const uint *p, ulong first, uint seed, global uint *wrong) {\n"
    "    size_t i = first + get_global_id(0);\n"
    "    if (p[i] != i + seed) atomic_inc(wrong);\n"
    "}\n"
    /* Works when it is let, and says that it has begun. */
    "kernel void wait_and_write(global uint *p, ulong n, volatile global atomic_int *turn) {\n"
    "    atomic_store_explicit(turn, 1, memory_order_release, memory_scope_all_svm_devices);\n"
    "    while (atomic_load_explicit(turn, memory_order_acquire, memory_scope_all_svm_devices) != "
    "2);\n"
    "    for (ulong i = 0; i < n; i++) p[i] = 99;\n"
    "}\n"
    "kernel void wait_and_sum(global const uint *p, ulong n, volatile global atomic_int *turn,\n"
    "                         global ulong *sum) {\n"
    "    atomic_store_explicit(turn, 1, memory_order_release, memory_scope_all_svm_devices);\n"
    "    while (atomic_load_explicit(turn, memory_order_acquire, memory_scope_all_svm_devices) != "
    "2);\n"
    "    ulong s = 0;\n"
    "    for (ulong i = 0; i < n; i++) s += p[i];\n"
    "    *sum = s;\n"
    "}\n"
    "kernel void write_and_crash(global uint *p) {\n"
    "    for (int i = 0; i < 100000; i++) p[i] = 99;\n"
    "    *(global volatile uint *)8 = p[0];\n"
    "}\n";

static cl_context context;
static cl_device_id devices[AGENTS];
static cl_command_queue queues[AGENTS];
static cl_program program;
static cl_uint *p, *wrong;

/* Waits for a loss more than `losses`, of the first half of the region or the second. */
static void expect_loss(unsigned losses, bool is_first)
{
    char expected[128];
    size_t first = is_first ? 0 : BYTES / 2;
    snprintf(expected, sizeof expected, "Bytes %zu to %zu of the region at %p (%d bytes)", first,
             first + BYTES / 2 - 1, (void *)p, BYTES);
    wait_for_losses(losses + 1);
    CHECK(strstr(heard.loss, expected) == heard.loss);
}

static cl_event start(int device, size_t count, cl_kernel kernel)
{
    cl_event event;
    CHECK_CL(clEnqueueNDRangeKernel(queues[device], kernel, 1, NULL, &count, NULL, 0, NULL, &event),
             CL_SUCCESS);
    CHECK_CL(clFlush(queues[device]), CL_SUCCESS);
    clReleaseKernel(kernel);
    return event;
}

static cl_kernel with_region(const char *name)
{
    cl_kernel kernel = get_kernel(program, name);
    REQUIRE_CL(clSetKernelArgSVMPointer(kernel, 0, p));
    return kernel;
}

static void fill(int device, cl_uint seed)
{
    cl_kernel kernel = with_region("fill");
    REQUIRE_CL(clSetKernelArg(kernel, 1, sizeof seed, &seed));
    CHECK(end_of(start(device, COUNT, kernel)) == CL_COMPLETE);
}

static cl_uint wrong_on(int device, size_t first, size_t count, cl_uint seed)
{
    cl_uint zero = 0, result = 1;
    cl_ulong from = first;
    cl_kernel kernel = with_region("check");
    REQUIRE_CL(clEnqueueSVMMemFill(queues[device], wrong, &zero, 4, 4, 0, NULL, NULL));
    REQUIRE_CL(clSetKernelArg(kernel, 1, sizeof from, &from));
    REQUIRE_CL(clSetKernelArg(kernel, 2, sizeof seed, &seed));
    REQUIRE_CL(clSetKernelArgSVMPointer(kernel, 3, wrong));
    CHECK(end_of(start(device, count, kernel)) == CL_COMPLETE);
    REQUIRE_CL(clEnqueueSVMMemcpy(queues[device], CL_TRUE, &result, wrong, 4, 0, NULL, NULL));
    return result;
}

static void crash(int device)
{
    CHECK(end_of(start(device, 1, with_region("crash"))) < 0);
}

/* `device` dies; its half is lost, and the other is there for both. */
static void test_half(int device, cl_uint seed)
{
    unsigned losses = heard.losses;
    bool is_first = device == 1;
    fill(device, seed);
    crash(device);
    expect_loss(losses, is_first);
    CHECK(wrong_on(3 - device, is_first ? HALF : 0, HALF, seed) == 0);
    CHECK(wrong_on(device, is_first ? HALF : 0, HALF, seed) == 0);
    fill(3 - device, seed + 1);
    CHECK(wrong_on(device, 0, COUNT, seed + 1) == 0 &&
          wrong_on(3 - device, 0, COUNT, seed + 1) == 0);
    CHECK(heard.losses == losses + 1);
}

/* Device 1 dies while a kernel of device 2 waits to use its memory. */
static void test_kernel_on_dead_memory(atomic_int *turn, cl_ulong *sum)
{
    cl_ulong n = HALF, expected = 0;
    for (int writes = 0; writes < 2; writes++) {
        unsigned losses = heard.losses;
        fill(2, 5);
        cl_kernel kernel = with_region(writes ? "wait_and_write" : "wait_and_sum");
        REQUIRE_CL(clSetKernelArg(kernel, 1, sizeof n, &n));
        REQUIRE_CL(clSetKernelArgSVMPointer(kernel, 2, turn));
        if (!writes)
            REQUIRE_CL(clSetKernelArgSVMPointer(kernel, 3, sum));
        atomic_store(turn, 0);
        cl_event waiting = start(2, 1, kernel);
        while (atomic_load(turn) != 1)
            sched_yield();
        crash(1);
        expect_loss(losses, true);
        /* Whoever needs that part again waits until nobody uses what was there. */
        cl_uint seed = 1;
        cl_kernel next = with_region("fill");
        REQUIRE_CL(clSetKernelArg(next, 1, sizeof seed, &seed));
        cl_event after = start(1, 1, next);
        atomic_store(turn, 2);
        if (writes) {
            CHECK(end_of(waiting) < 0);
        } else {
            CHECK(end_of(waiting) == CL_COMPLETE); /* what it read was whole */
            expected = (cl_ulong)HALF * (HALF - 1) / 2 + 5ul * HALF;
            REQUIRE_CL(clEnqueueSVMMap(queues[2], CL_TRUE, CL_MAP_READ, sum, 8, 0, NULL, NULL));
            CHECK(*sum == expected);
            REQUIRE_CL(clEnqueueSVMUnmap(queues[2], sum, 0, NULL, NULL));
            REQUIRE_CL(clFinish(queues[2]));
        }
        CHECK(end_of(after) == CL_COMPLETE);
        CHECK(wrong_on(1, HALF, HALF, 5) == 0 && wrong_on(2, 0, 1, 1) == 0);
    }
    fill(1, 8);
    CHECK(wrong_on(2, 0, COUNT, 8) == 0);
}

/* Device 2 dies while it writes to device 1's memory. */
static void test_writer_dies(void)
{
    unsigned losses = heard.losses;
    fill(1, 3);
    REQUIRE_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, p, BYTES / 4, 0, NULL, NULL));
    REQUIRE_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL));
    REQUIRE_CL(clFinish(queues[0]));
    CHECK(end_of(start(2, 1, with_region("write_and_crash"))) < 0);
    expect_loss(losses, false);
    CHECK(wrong_on(1, 0, HALF, 3) == 0);
    CHECK(wrong_on(2, 0, HALF, 3) == 0);
}

int main(void)
{
    const char *others = getenv("SAMEPAGE_TEST_DEVICES");
    setenv("SAMEPAGE_DEVICES", others ? others : "cpu,virtual:2,mem=64M", 1);
    context = context_of_all(AGENTS, devices, queues, hear, &heard);
    program = build(context, source, "-cl-std=CL3.0");
    wrong = clSVMAlloc(context, CL_MEM_READ_WRITE, 4, 0);
    cl_ulong *sum = clSVMAlloc(context, CL_MEM_READ_WRITE, 8, 0);
    atomic_int *turn = clSVMAlloc(
        context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, 4, 0);
    REQUIRE(wrong && sum && turn);
    p = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    REQUIRE(p);

    for (cl_uint round = 0; round < 2; round++)
        for (int device = 1; device < AGENTS; device++)
            test_half(device, 10 * round + (cl_uint)device);
    test_kernel_on_dead_memory(turn, sum);
    test_writer_dies();

    clSVMFree(context, p);
    clSVMFree(context, wrong);
    clSVMFree(context, sum);
    clSVMFree(context, turn);
    clReleaseProgram(program);
    for (int i = 0; i < AGENTS; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return check_result();
}
