/* One region over two devices that is larger than either, through the ICD loader: filled by one and
 * checked by the other, in both directions, by both at once, counted in by both at once, changed by
 * the host in places, given back and had again; and what the death of one device costs; with rates.
 * Each result is checked before its time is printed. Exits with 1 where a result is wrong, and 77
 * where there are not two devices that can share memory.
 *
 *     gpu_pooled [MIB]      three quarters of their memory, at most 200 GiB
 *
 * Virtual devices do as well: SAMEPAGE_DEVICES=virtual:2,mem=256M. The order `by turns` walks the
 * region so that each access lies in another half than the one before it, which is the traffic that
 * a region of interleaved parts would have.
 */
#include <time.h>

#include "../api/check.h"

#define MIB ((size_t)1 << 20)
#define MOST_BYTES ((size_t)200 << 30)
#define ITEMS ((size_t)132 * 2048 * 4)

static const char source[] =
    "#define AT(i) (by_turns ? ((i) >> 1) + ((i) & 1) * (n / 2) : (i))\n"
    "kernel void fill(global ulong2 *p, ulong first, ulong n, ulong seed, int by_turns) {\n"
    "    for (ulong k = get_global_id(0); k < n; k += get_global_size(0)) {\n"
    "        ulong i = first + AT(k);\n"
    "        p[i] = (ulong2)(i * 0x9e3779b97f4a7c15ul + seed, ~i ^ seed);\n"
    "    }\n"
    "}\n"
    "kernel void check(global const ulong2 *p, ulong first, ulong n, ulong seed, int by_turns,\n"
    "                  global ulong *wrong) {\n"
    "    ulong bad = 0;\n"
    "    for (ulong k = get_global_id(0); k < n; k += get_global_size(0)) {\n"
    "        ulong i = first + AT(k);\n"
    "        ulong2 v = p[i];\n"
    "        bad += v.x != i * 0x9e3779b97f4a7c15ul + seed || v.y != (~i ^ seed);\n"
    "    }\n"
    "    if (bad) atom_add(wrong, bad);\n"
    "}\n"
    "kernel void tally(global uint *p, ulong far, uint rounds) {\n"
    "    for (uint i = 0; i < rounds; i++) {\n"
    "        atomic_fetch_add_explicit((global atomic_uint *)p, 1u, memory_order_relaxed,\n"
    "                                  memory_scope_all_svm_devices);\n"
    "        uint old = atomic_load_explicit((global atomic_uint *)(p + far),\n"
    "                                        memory_order_relaxed, memory_scope_all_svm_devices);\n"
    "        while (!atomic_compare_exchange_weak_explicit(\n"
    "            (global atomic_uint *)(p + far), &old, old + 3u, memory_order_relaxed,\n"
    "            memory_order_relaxed, memory_scope_all_svm_devices));\n"
    "    }\n"
    "}\n"
    "kernel void wild(global ulong2 *p) { *(global volatile ulong *)8 = p[0].x; }\n"
    "kernel void touch(global ulong2 *p) { if (get_global_id(0) == 1ul << 40) p[0] = 0; }\n";

static cl_context context;
static cl_device_id devices[2];
static cl_command_queue queues[2];
static cl_kernel fill_kernel, check_kernel, touch_kernel, tally_kernel, wild_kernel;
static cl_ulong *wrong[2];
static cl_ulong *region;
static size_t bytes, count; /* of elements of 16 bytes */

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void row(const char *name, double us, double moved)
{
    if (moved > 0)
        printf("%-56s %12.1f us %9.1f GB/s\n", name, us, moved / us / 1e3);
    else
        printf("%-56s %12.1f us\n", name, us);
    fflush(stdout);
}

static cl_kernel kernel_named(cl_program program, const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    REQUIRE_CL(error);
    return kernel;
}

/* The first two devices with memory of their own. */
static int find_devices(void)
{
    cl_device_id all[16];
    cl_uint num_all = 0, found = 0;
    cl_ulong sum = 0, memory = 0;
    if (clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_ALL, 16, all, &num_all))
        return 0;
    for (cl_uint i = 0; i < num_all && i < 16 && found < 2; i++) {
        char name[64] = "";
        cl_device_type type;
        REQUIRE_CL(clGetDeviceInfo(all[i], CL_DEVICE_TYPE, sizeof type, &type, NULL));
        clGetDeviceInfo(all[i], CL_DEVICE_NAME, sizeof name, name, NULL);
        if (type & CL_DEVICE_TYPE_CPU ||
            (!(type & CL_DEVICE_TYPE_GPU) && strncmp(name, "Virtual", 7)))
            continue;
        devices[found++] = all[i];
        REQUIRE_CL(
            clGetDeviceInfo(all[i], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL));
        sum += memory;
    }
    bytes = sum / 4 * 3 < MOST_BYTES ? sum / 4 * 3 : MOST_BYTES;
    return found == 2;
}

static void CL_CALLBACK hear(const char *message, const void *info, size_t size, void *data)
{
    (void)info;
    (void)size;
    (void)data;
    printf("  told: %s\n", message);
}

static void set_up(void)
{
    cl_int error;
    const char *text = source;
    context = clCreateContext(NULL, 2, devices, hear, NULL, &error);
    REQUIRE_CL(error);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    REQUIRE_CL(error);
    REQUIRE_CL(clBuildProgram(program, 0, NULL, "-cl-std=CL3.0", NULL, NULL));
    fill_kernel = kernel_named(program, "fill");
    check_kernel = kernel_named(program, "check");
    touch_kernel = kernel_named(program, "touch");
    tally_kernel = kernel_named(program, "tally");
    wild_kernel = kernel_named(program, "wild");
    clReleaseProgram(program);
    for (int i = 0; i < 2; i++) {
        queues[i] = clCreateCommandQueueWithProperties(context, devices[i], NULL, &error);
        REQUIRE_CL(error);
        wrong[i] = clSVMAlloc(context, CL_MEM_READ_WRITE, 8, 0);
        REQUIRE(wrong[i]);
    }
}

static void launch(int device, cl_kernel kernel, size_t first, size_t n, cl_ulong seed,
                   cl_int by_turns)
{
    cl_ulong from = first, number = n;
    size_t global = ITEMS;
    REQUIRE_CL(clSetKernelArgSVMPointer(kernel, 0, region));
    REQUIRE_CL(clSetKernelArg(kernel, 1, sizeof from, &from));
    REQUIRE_CL(clSetKernelArg(kernel, 2, sizeof number, &number));
    REQUIRE_CL(clSetKernelArg(kernel, 3, sizeof seed, &seed));
    REQUIRE_CL(clSetKernelArg(kernel, 4, sizeof by_turns, &by_turns));
    REQUIRE_CL(
        clEnqueueNDRangeKernel(queues[device], kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
    REQUIRE_CL(clFlush(queues[device]));
}

static void start_fill(int device, size_t first, size_t n, cl_ulong seed, cl_int by_turns)
{
    launch(device, fill_kernel, first, n, seed, by_turns);
}

static void start_check(int device, size_t first, size_t n, cl_ulong seed, cl_int by_turns)
{
    cl_ulong zero = 0;
    REQUIRE_CL(clEnqueueSVMMemFill(queues[device], wrong[device], &zero, 8, 8, 0, NULL, NULL));
    REQUIRE_CL(clSetKernelArgSVMPointer(check_kernel, 5, wrong[device]));
    launch(device, check_kernel, first, n, seed, by_turns);
}

static void finish(void)
{
    REQUIRE_CL(clFinish(queues[0]));
    REQUIRE_CL(clFinish(queues[1]));
}

static cl_ulong found_wrong(int device)
{
    cl_ulong result = 1;
    REQUIRE_CL(
        clEnqueueSVMMemcpy(queues[device], CL_TRUE, &result, wrong[device], 8, 0, NULL, NULL));
    return result;
}

static void fill_and_check(int writer, cl_ulong seed, cl_int by_turns)
{
    static const char *const names[2][2] = {
        {"filled by device 0", "filled by device 1"},
        {"filled by device 0, by turns", "filled by device 1, by turns"}};
    static const char *const check_names[2][2] = {
        {"checked by device 0", "checked by device 1"},
        {"checked by device 0, by turns", "checked by device 1, by turns"}};
    int reader = 1 - writer;
    double start = now_us();
    start_fill(writer, 0, count, seed, by_turns);
    finish();
    double filled = now_us();
    start_check(reader, 0, count, seed, by_turns);
    finish();
    double checked = now_us();
    CHECK(found_wrong(reader) == 0);
    row(names[by_turns][writer], filled - start, (double)bytes);
    row(check_names[by_turns][reader], checked - filled, (double)bytes);
}

/* Each its own half, or the other's. */
static void both_at_once(int own, cl_ulong seed)
{
    size_t half = count / 2;
    double start = now_us();
    start_fill(0, own ? 0 : half, half, seed, 0);
    start_fill(1, own ? half : 0, half, seed, 0);
    finish();
    double filled = now_us();
    start_check(0, own ? 0 : half, half, seed, 0);
    start_check(1, own ? half : 0, half, seed, 0);
    finish();
    double checked = now_us();
    CHECK(found_wrong(0) == 0 && found_wrong(1) == 0);
    row(own ? "each fills its own half" : "each fills the other's half", filled - start,
        (double)half * 32);
    row(own ? "each checks its own half" : "each checks the other's half", checked - filled,
        (double)half * 32);
}

static cl_uint *map_word(size_t at)
{
    cl_uint *word = (cl_uint *)region + at;
    REQUIRE_CL(
        clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, word, 4, 0, NULL, NULL));
    return word;
}

static void unmap_word(cl_uint *word)
{
    REQUIRE_CL(clEnqueueSVMUnmap(queues[0], word, 0, NULL, NULL));
    REQUIRE_CL(clFinish(queues[0]));
}

/* Both devices at once, with their own atomics, in a word of the first half and one of the second:
 * each is in the memory of one of them. */
static void counted_by_both(void)
{
    enum { TALLIES = 1024, ROUNDS = 64 };
    const size_t words[2] = {0, bytes / 4 - 4}, items = TALLIES;
    cl_ulong far = words[1];
    cl_uint rounds = ROUNDS;
    for (int i = 0; i < 2; i++) {
        cl_uint *word = map_word(words[i]);
        *word = 0;
        unmap_word(word);
    }
    double start = now_us();
    REQUIRE_CL(clSetKernelArgSVMPointer(tally_kernel, 0, region));
    REQUIRE_CL(clSetKernelArg(tally_kernel, 1, sizeof far, &far));
    REQUIRE_CL(clSetKernelArg(tally_kernel, 2, sizeof rounds, &rounds));
    for (int device = 0; device < 2; device++) {
        REQUIRE_CL(clEnqueueNDRangeKernel(queues[device], tally_kernel, 1, NULL, &items, NULL, 0,
                                          NULL, NULL));
        REQUIRE_CL(clFlush(queues[device]));
    }
    finish();
    double us = now_us() - start;
    for (int i = 0; i < 2; i++) {
        cl_uint *word = map_word(words[i]);
        CHECK(*word == 2u * TALLIES * ROUNDS * (i ? 3 : 1));
        unmap_word(word);
    }
    row("131,072 additions by each way in two words, by both at once", us, 0);
}

/* The host adds 1 to the first word of an element in each of 64 places. */
static void by_host(cl_ulong seed)
{
    double map_us = 0, unmap_us = 0;
    start_fill(0, 0, count, seed, 0);
    finish();
    for (size_t i = 0; i < 64; i++) {
        size_t at = i * (count / 64);
        double start = now_us();
        REQUIRE_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, region + 2 * at,
                                   4096, 0, NULL, NULL));
        double mapped = now_us();
        CHECK(region[2 * at + 1] == (~(cl_ulong)at ^ seed));
        region[2 * at]++;
        double written = now_us();
        REQUIRE_CL(clEnqueueSVMUnmap(queues[0], region + 2 * at, 0, NULL, NULL));
        REQUIRE_CL(clFinish(queues[0]));
        unmap_us += now_us() - written;
        map_us += mapped - start;
    }
    for (int device = 0; device < 2; device++) {
        double start = now_us();
        start_check(device, 0, count, seed, 0);
        finish();
        CHECK(found_wrong(device) == 64);
        if (device == 0)
            row("checked after the host's changes, which are found", now_us() - start,
                (double)bytes);
    }
    row("the host maps 4 KiB of it", map_us / 64, 0);
    row("the host unmaps them", unmap_us / 64, 0);
}

static void touch(int device)
{
    size_t one = 1;
    REQUIRE_CL(clSetKernelArgSVMPointer(touch_kernel, 0, region));
    REQUIRE_CL(
        clEnqueueNDRangeKernel(queues[device], touch_kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
    finish();
}

static void allocate(const char *when)
{
    char name[96];
    double start = now_us();
    region = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
    double allocated = now_us();
    REQUIRE(region);
    touch(0);
    double first = now_us();
    touch(1);
    double second = now_us();
    snprintf(name, sizeof name, "allocated, %s", when);
    row(name, allocated - start, 0);
    row("first use on device 0: both bind, zero and map", first - allocated, 0);
    row("first use on device 1", second - first, 0);
    for (int device = 0; device < 2; device++) {
        start = now_us();
        for (int i = 0; i < 100; i++)
            touch(device);
        snprintf(name, sizeof name, "a kernel on device %d with its finish", device);
        row(name, (now_us() - start) / 100, 0);
    }
}

/* Device 0 dies with what was in its memory, which is the first part of the region; the last
 * quarter is in that of device 1. */
static void by_a_death(cl_ulong seed)
{
    size_t one = 1, quarter = count / 4;
    cl_int status = 0;
    cl_event died;
    start_fill(0, 0, count, seed, 0);
    finish();
    REQUIRE_CL(clSetKernelArgSVMPointer(wild_kernel, 0, region));
    double start = now_us();
    REQUIRE_CL(clEnqueueNDRangeKernel(queues[0], wild_kernel, 1, NULL, &one, NULL, 0, NULL, &died));
    clWaitForEvents(1, &died);
    row("an illegal access of device 0, until its event told of it", now_us() - start, 0);
    REQUIRE_CL(
        clGetEventInfo(died, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    CHECK(status < 0);
    clReleaseEvent(died);
    start_check(1, count - quarter, quarter, seed, 0);
    finish();
    CHECK(found_wrong(1) == 0);
    row("device 1 checked the last quarter, after both parts were bound", now_us() - start, 0);
    fill_and_check(1, seed + 1, 0);
    fill_and_check(0, seed + 2, 0);
}

int main(int argc, char **argv)
{
    if (!find_devices()) {
        puts("skipped: there are no two devices with memory of their own");
        return 77;
    }
    if (argc > 1)
        bytes = strtoull(argv[1], NULL, 10) * MIB;
    count = bytes / 32 * 2; /* even */
    bytes = count * 16;
    set_up();
    printf("%.1f GiB over two devices\n", (double)bytes / (double)(1 << 30));
    CHECK(!clSVMAlloc(context, CL_MEM_READ_WRITE, (size_t)1 << 42, 0));
    allocate("the first time");
    for (cl_int by_turns = 0; by_turns < 2; by_turns++)
        for (int writer = 0; writer < 2; writer++)
            fill_and_check(writer, 100u * (cl_ulong)by_turns + (cl_ulong)writer + 1, by_turns);
    both_at_once(1, 31);
    both_at_once(0, 32);
    counted_by_both();
    by_host(33);
    double start = now_us();
    clSVMFree(context, region);
    row("given back", now_us() - start, 0);
    allocate("again");
    fill_and_check(1, 41, 0);
    by_a_death(51);
    clSVMFree(context, region);
    return check_result();
}
