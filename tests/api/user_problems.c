/* What users of shared virtual memory ran into elsewhere, by the tracker and number of the report;
 * docs/user-problems.md says for each what must happen here. Each is a function; the program runs
 * all of them, or those whose names contain its argument. All use one context over the CPU and two
 * devices with memories of their own. */
#include <pthread.h>
#include <signal.h>

#include "check_devices.h"
#include "check_trace.h"

enum { COUNT = 16384, BYTES = COUNT * 4 };

static const char source[] =
    "kernel void set(global uint *p, uint value) { p[get_global_id(0)] = value; }\n"
    "kernel void add(global uint *p, uint value) { p[get_global_id(0)] += value; }\n"
    "struct box { global uint *data; };\n"
    "kernel void add_boxed(global struct box *b, uint value) {\n"
    "    b->data[get_global_id(0)] += value;\n"
    "}\n"
    "kernel void sum2(global struct box *a, global struct box *b, global uint *out) {\n"
    "    *out = a->data[0] + b->data[0];\n"
    "}\n";

static cl_context context;
static cl_device_id devices[3];
static cl_command_queue queues[3];
static cl_program program;

static void set_up(void)
{
    if (context)
        return;
    context = context_of_all(3, devices, queues, NULL, NULL);
    program = build(context, source, "-cl-std=CL3.0");
}

static void tear_down(void)
{
    if (!context)
        return;
    for (int i = 0; i < 3; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseProgram(program);
    clReleaseContext(context);
}

static cl_kernel kernel_of(const char *name)
{
    return get_kernel(program, name);
}

static cl_uint *alloc(size_t bytes)
{
    cl_uint *p = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
    REQUIRE(p);
    return p;
}

static void finish(int device)
{
    CHECK_CL(clFinish(queues[device]), CL_SUCCESS);
}

static void enqueue(int device, const char *name, cl_uint *p, cl_uint value, cl_event gate)
{
    size_t count = COUNT;
    cl_kernel kernel = kernel_of(name);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[device], kernel, 1, NULL, &count, NULL, gate ? 1 : 0,
                                    gate ? &gate : NULL, NULL),
             CL_SUCCESS);
    clReleaseKernel(kernel);
}

static void *map(int device, cl_uint *p, size_t bytes, cl_map_flags flags)
{
    CHECK_CL(clEnqueueSVMMap(queues[device], CL_TRUE, flags, p, bytes, 0, NULL, NULL), CL_SUCCESS);
    return p;
}

static void unmap(int device, cl_uint *p)
{
    CHECK_CL(clEnqueueSVMUnmap(queues[device], p, 0, NULL, NULL), CL_SUCCESS);
}

/* All COUNT words, as the host sees them through a map of that device's queue. */
static bool is_all(int device, cl_uint *p, cl_uint value)
{
    cl_uint wrong = 0;
    map(device, p, BYTES, CL_MAP_READ);
    for (int i = 0; i < COUNT; i++)
        wrong += p[i] != value;
    unmap(device, p);
    finish(device);
    return wrong == 0;
}

static cl_event new_gate(void)
{
    cl_int error;
    cl_event gate = clCreateUserEvent(context, &error);
    REQUIRE_CL(error);
    return gate;
}

static void open_gate(cl_event gate)
{
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    clReleaseEvent(gate);
}

static void opencl_cts_450_451_what_one_device_wrote_the_other_reads(void)
{
    cl_uint *p = alloc(BYTES);
    enqueue(1, "set", p, 5, NULL);
    finish(1);
    enqueue(2, "add", p, 1, NULL);
    finish(2);
    CHECK(is_all(0, p, 6));
    map(1, p, BYTES, CL_MAP_WRITE);
    p[0] = 6;
    unmap(1, p);
    finish(1);
    enqueue(1, "add", p, 1, NULL);
    finish(1);
    CHECK(is_all(2, p, 7));
    clSVMFree(context, p);
}

static void opencl_cts_2209_memory_is_freed_behind_the_unmaps_that_are_queued(void)
{
    cl_event gate = new_gate();
    void *p = alloc(BYTES);
    for (int d = 0; d < 3; d++)
        map(d, p, BYTES, CL_MAP_READ);
    for (int d = 0; d < 3; d++) {
        CHECK_CL(clEnqueueSVMUnmap(queues[d], p, 1, &gate, NULL), CL_SUCCESS);
        enqueue(d, "set", p, (cl_uint)d, NULL);
    }
    clSVMFree(context, p); /* the commands that were given it keep it */
    open_gate(gate);
    for (int d = 0; d < 3; d++)
        finish(d);
}

static void pocl_1069_the_array_of_pointers_is_copied(void)
{
    cl_event gate = new_gate();
    void *pointers[2] = {alloc(BYTES), alloc(BYTES)};
    CHECK_CL(clEnqueueSVMFree(queues[1], 2, pointers, NULL, NULL, 1, &gate, NULL), CL_SUCCESS);
    pointers[0] = pointers[1] = (void *)8;
    open_gate(gate);
    finish(1);
}

struct freed {
    pthread_t thread;
    int calls;
};

static void CL_CALLBACK on_free(cl_command_queue queue, cl_uint count, void *pointers[], void *data)
{
    struct freed *freed = data;
    freed->thread = pthread_self();
    freed->calls++;
    /* Whoever holds a lock of the library here would wait for itself. */
    void *other = clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0);
    CHECK(other != NULL);
    clSVMFree(context, other);
    CHECK_CL(clFlush(queue), CL_SUCCESS);
    for (cl_uint i = 0; i < count; i++)
        clSVMFree(context, pointers[i]);
}

static void opencl_docs_977_1016_the_free_callback_has_its_thread_and_no_lock(void)
{
    struct freed freed = {.calls = 0};
    void *p = alloc(BYTES);
    enqueue(1, "set", p, 1, NULL);
    CHECK_CL(clEnqueueSVMFree(queues[1], 1, &p, on_free, &freed, 0, NULL, NULL), CL_SUCCESS);
    finish(1);
    CHECK(freed.calls == 1); /* called before the command's event has ended */
    CHECK(!pthread_equal(freed.thread, pthread_self()));
}

static void rocclr_14_memory_of_the_application_can_be_copied(void)
{
    cl_uint *p = alloc(BYTES), *mine = malloc(BYTES), *back = malloc(BYTES);
    REQUIRE(mine && back);
    for (int i = 0; i < COUNT; i++)
        mine[i] = 9;
    for (int d = 0; d < 3; d++) {
        memset(back, 0, BYTES);
        CHECK_CL(clEnqueueSVMMemcpy(queues[d], CL_FALSE, p, mine, BYTES, 0, NULL, NULL),
                 CL_SUCCESS);
        enqueue(d, "add", p, 1, NULL);
        CHECK_CL(clEnqueueSVMMemcpy(queues[d], CL_TRUE, back, p, BYTES, 0, NULL, NULL), CL_SUCCESS);
        CHECK(back[0] == 10 && back[COUNT - 1] == 10);
    }
    free(mine);
    free(back);
    clSVMFree(context, p);
}

static void pocl_1876_what_pointers_in_memory_lead_to_is_current(void)
{
    cl_kernel kernel = kernel_of("add_boxed");
    cl_uint *data = alloc(BYTES), **box = (cl_uint **)alloc(sizeof *box), value = 0;
    size_t count = COUNT;
    void *named[] = {data};
    map(0, (cl_uint *)box, sizeof *box, CL_MAP_WRITE);
    *box = data;
    unmap(0, (cl_uint *)box);
    finish(0);
    enqueue(2, "set", data, 0, NULL);
    finish(2);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, box), CL_SUCCESS);
    CHECK_CL(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof named, named),
             CL_SUCCESS);
    for (int round = 0; round < 3; round++)
        for (int d = 0; d < 3; d++) { /* the CPU device as well */
            cl_uint add = (cl_uint)d + 1;
            CHECK_CL(clSetKernelArg(kernel, 1, sizeof add, &add), CL_SUCCESS);
            CHECK_CL(
                clEnqueueNDRangeKernel(queues[d], kernel, 1, NULL, &count, NULL, 0, NULL, NULL),
                CL_SUCCESS);
            finish(d);
            value += add;
        }
    CHECK(is_all(0, data, value));
    clReleaseKernel(kernel);
    clSVMFree(context, data);
    clSVMFree(context, box);
}

static void pocl_2305_lists_of_pointers_are_independent(void)
{
    cl_kernel one = kernel_of("sum2"), two = kernel_of("sum2");
    cl_uint *a = alloc(BYTES), *b = alloc(BYTES), *out = alloc(4);
    cl_uint **boxes[2] = {(cl_uint **)alloc(sizeof(cl_uint *)),
                          (cl_uint **)alloc(sizeof(cl_uint *))};
    void *both[] = {a, b}, *other[] = {out};
    size_t count = 1;
    for (int i = 0; i < 2; i++) {
        map(0, (cl_uint *)boxes[i], sizeof(cl_uint *), CL_MAP_WRITE);
        *boxes[i] = i ? b : a;
        unmap(0, (cl_uint *)boxes[i]);
    }
    finish(0);
    enqueue(1, "set", a, 3, NULL);
    enqueue(1, "set", b, 4, NULL);
    finish(1);
    CHECK_CL(clSetKernelArgSVMPointer(one, 0, boxes[0]), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(one, 1, boxes[1]), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(one, 2, out), CL_SUCCESS);
    CHECK_CL(clSetKernelExecInfo(one, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof both, both), CL_SUCCESS);
    CHECK_CL(clSetKernelExecInfo(two, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof other, other),
             CL_SUCCESS);
    CHECK_CL(clSetKernelExecInfo(two, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[2], one, 1, NULL, &count, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    finish(2);
    map(0, out, 4, CL_MAP_READ);
    CHECK(*out == 7);
    unmap(0, out);
    finish(0);
    void *all[] = {a, b, out, boxes[0], boxes[1]};
    for (int i = 0; i < 5; i++)
        clSVMFree(context, all[i]);
    clReleaseKernel(one);
    clReleaseKernel(two);
}

static void opencl_docs_1370_a_buffer_over_shared_memory_agrees_with_it(void)
{
    cl_int error;
    cl_uint *p = alloc(BYTES), seven = 7, word = 0;
    cl_mem buffer =
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, BYTES, p, &error);
    REQUIRE_CL(error);
    enqueue(1, "set", p, 1, NULL);
    finish(1);
    CHECK_CL(clEnqueueFillBuffer(queues[2], buffer, &seven, 4, 0, BYTES, 0, NULL, NULL),
             CL_SUCCESS);
    finish(2);
    enqueue(1, "add", p, 1, NULL);
    finish(1);
    CHECK_CL(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, BYTES - 4, 4, &word, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(word == 8);
    CHECK(is_all(2, p, 8));
    clReleaseMemObject(buffer);
    clSVMFree(context, p);
}

static struct sigaction at_first[NSIG]; /* before the library was used */
static int *volatile nowhere;

static void note_signal_handlers(void)
{
    for (int s = 1; s < NSIG; s++)
        sigaction(s, NULL, &at_first[s]);
}

static void on_fault(int signal_number)
{
    (void)signal_number;
    _exit(42);
}

static void chipstar_1110_signal_handlers_are_the_applications(void)
{
    int status = 0;
    struct sigaction before, after;
    for (int s = 1; s < NSIG; s++)
        if (sigaction(s, NULL, &after) == 0)
            CHECK(after.sa_handler == at_first[s].sa_handler);
    signal(SIGSEGV, on_fault);
    sigaction(SIGSEGV, NULL, &before);
    cl_uint *p = alloc(BYTES);
    enqueue(1, "set", p, 1, NULL);
    finish(1);
    CHECK(is_all(0, p, 1));
    sigaction(SIGSEGV, NULL, &after);
    CHECK(before.sa_handler == after.sa_handler);
    pid_t child = fork();
    if (child == 0) {
        *nowhere = 1;
        _exit(1);
    }
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    signal(SIGSEGV, SIG_DFL);
    clSVMFree(context, p);
}

enum { COPIERS = 4, COPIES = 100 };

static void *copy_in_parallel(void *argument)
{
    cl_uint *p = argument, *mine = malloc(BYTES);
    REQUIRE(mine);
    for (cl_uint i = 0; i < COPIES; i++) {
        int d = (int)(i % 3);
        for (int w = 0; w < COUNT; w++)
            mine[w] = i;
        CHECK_CL(clEnqueueSVMMemcpy(queues[d], CL_TRUE, p, mine, BYTES, 0, NULL, NULL), CL_SUCCESS);
        memset(mine, 0xff, BYTES);
        CHECK_CL(clEnqueueSVMMemcpy(queues[(d + 1) % 3], CL_TRUE, mine, p, BYTES, 0, NULL, NULL),
                 CL_SUCCESS);
        CHECK(mine[0] == i && mine[COUNT - 1] == i);
    }
    free(mine);
    return NULL;
}

static void chipstar_1594_copies_run_in_parallel(void)
{
    pthread_t threads[COPIERS];
    cl_uint *regions[COPIERS];
    for (int i = 0; i < COPIERS; i++) {
        regions[i] = alloc(BYTES);
        REQUIRE(pthread_create(&threads[i], NULL, copy_in_parallel, regions[i]) == 0);
    }
    for (int i = 0; i < COPIERS; i++) {
        pthread_join(threads[i], NULL);
        clSVMFree(context, regions[i]);
    }
}

static void rocm_systems_8493_no_two_regions_share_an_address(void)
{
    enum { EACH = 200 };
    cl_int error;
    struct {
        char *start;
        size_t bytes;
        cl_context context;
    } all[3 * EACH];
    cl_context own[3];
    for (int d = 0; d < 3; d++) {
        own[d] = clCreateContext(NULL, 1, &devices[d], NULL, NULL, &error);
        REQUIRE_CL(error);
    }
    for (int i = 0; i < 3 * EACH; i++) {
        all[i].bytes = (size_t)(i + 1) * 317;
        all[i].context = own[i % 3];
        all[i].start = clSVMAlloc(own[i % 3], CL_MEM_READ_WRITE, all[i].bytes, 0);
        REQUIRE(all[i].start);
        for (int k = 0; k < i; k++)
            CHECK(all[i].start >= all[k].start + all[k].bytes ||
                  all[k].start >= all[i].start + all[i].bytes);
    }
    for (int i = 0; i < 3 * EACH; i++)
        clSVMFree(all[i].context, all[i].start);
    for (int d = 0; d < 3; d++)
        clReleaseContext(own[d]);
}

static void pocl_1969_overlapping_sub_buffers_agree(void)
{
    enum { QUARTER = BYTES / 4 };
    cl_int error;
    cl_uint one = 1, two = 2, words[COUNT];
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &error);
    REQUIRE_CL(error);
    cl_buffer_region low = {0, 3 * QUARTER}, high = {QUARTER, 3 * QUARTER};
    cl_mem first = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &low, &error);
    REQUIRE_CL(error);
    cl_mem second = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &high, &error);
    REQUIRE_CL(error);
    CHECK_CL(clEnqueueFillBuffer(queues[1], first, &one, 4, 0, low.size, 0, NULL, NULL),
             CL_SUCCESS);
    finish(1);
    CHECK_CL(clEnqueueFillBuffer(queues[2], second, &two, 4, 0, high.size, 0, NULL, NULL),
             CL_SUCCESS);
    finish(2);
    cl_kernel add = kernel_of("add");
    size_t count = low.size / 4;
    CHECK_CL(clSetKernelArg(add, 0, sizeof first, &first), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(add, 1, sizeof one, &one), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[1], add, 1, NULL, &count, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    finish(1);
    CHECK_CL(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, BYTES, words, 0, NULL, NULL),
             CL_SUCCESS);
    for (int i = 0; i < COUNT; i++)
        CHECK(words[i] == (i < COUNT / 4 ? 2u : i < 3 * COUNT / 4 ? 3u : 2u));
    clReleaseKernel(add);
    clReleaseMemObject(first);
    clReleaseMemObject(second);
    clReleaseMemObject(buffer);
}

static void opencl_cts_1661_only_what_depends_on_an_event_waits_for_it(void)
{
    cl_event gate = new_gate();
    cl_uint *p = alloc(BYTES), *q = alloc(BYTES);
    enqueue(1, "set", p, 1, gate);
    for (int d = 0; d < 3; d += 2) {
        enqueue(d, "set", q, 2, NULL);
        finish(d);
        CHECK(is_all(d, q, 2));
    }
    open_gate(gate);
    finish(1);
    CHECK(is_all(1, p, 1));
    clSVMFree(context, p);
    clSVMFree(context, q);
}

static void compute_runtime_916_and_pocl_1465_devices_allocate_together(void)
{
    cl_int error;
    cl_context pair = clCreateContext(NULL, 2, devices + 1, NULL, NULL, &error);
    REQUIRE_CL(error);
    static const size_t sizes[] = {1, 1024, 4096, 1 << 20, 48 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *p = clSVMAlloc(pair, CL_MEM_READ_WRITE, sizes[i], 0);
        CHECK(p != NULL);
        clSVMFree(pair, p);
        p = clSVMAlloc(pair, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, sizes[i], 0);
        CHECK(p != NULL);
        clSVMFree(pair, p);
    }
    cl_ulong most = 0;
    CHECK_CL(clGetDeviceInfo(devices[1], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL),
             CL_SUCCESS);
    /* Where both see the memory of the other, it lies in both. */
    void *larger = clSVMAlloc(pair, CL_MEM_READ_WRITE, most + 1, 0);
    CHECK(larger != NULL);
    clSVMFree(pair, larger);
    CHECK(clSVMAlloc(pair, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, most + 1, 0) == NULL);
    clCreateBuffer(pair, CL_MEM_READ_WRITE, most + 1, NULL, &error);
    CHECK(error == CL_INVALID_BUFFER_SIZE);
    clReleaseContext(pair);
}

static void clhpp_3_an_alignment_is_a_power_of_two(void)
{
    CHECK(clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 3) == NULL);
    CHECK(clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 96) == NULL);
    void *p = clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 64);
    CHECK(p && (uintptr_t)p % 64 == 0);
    clSVMFree(context, p);
}

/* --- What moves, from the trace
 * --------------------------------------------------------------------- */

static void maps_of_all_kinds(void)
{
    set_up();
    cl_uint *p = alloc(BYTES);
    enqueue(1, "set", p, 1, NULL);
    check_trace_phase(queues[1]);
    map(1, p, BYTES, CL_MAP_READ); /* 1: moves once, and the device keeps its copy */
    unmap(1, p);
    finish(1);
    check_trace_phase(queues[1]);
    map(1, p, BYTES, CL_MAP_READ); /* 2: nothing */
    unmap(1, p);
    enqueue(1, "add", p, 1, NULL);
    check_trace_phase(queues[1]);
    map(1, p, BYTES, CL_MAP_WRITE_INVALIDATE_REGION); /* 3: nothing */
    for (int i = 0; i < COUNT; i++)
        p[i] = 3;
    unmap(1, p);
    finish(1);
    check_trace_phase(queues[1]);
    CHECK(is_all(0, p, 3));
    tear_down();
}

static void pocl_flags_of_a_map_count(void)
{
    struct check_trace trace = check_trace_run(maps_of_all_kinds, NULL);
    CHECK(trace.phase[1].moved == BYTES);
    CHECK(trace.phase[2].moved == 0);
    CHECK(trace.phase[3].moved == 0);
}

static void migrations(void)
{
    set_up();
    cl_uint *p = alloc(BYTES);
    const void *pointers[] = {p};
    enqueue(1, "set", p, 1, NULL);
    check_trace_phase(queues[1]);
    CHECK_CL(clEnqueueSVMMigrateMem(queues[2], 1, pointers, NULL, 0, 0, NULL, NULL), CL_SUCCESS);
    finish(2);
    check_trace_phase(queues[2]); /* 2: used where it is now */
    enqueue(2, "add", p, 1, NULL);
    check_trace_phase(queues[2]);
    CHECK_CL(clEnqueueSVMMigrateMem(queues[2], 1, pointers, NULL, CL_MIGRATE_MEM_OBJECT_HOST, 0,
                                    NULL, NULL),
             CL_SUCCESS);
    finish(2);
    check_trace_phase(queues[2]); /* 4: used where it is now */
    CHECK(is_all(0, p, 2));
    tear_down();
}

static void neo_rocm_pocl_a_migration_moves(void)
{
    struct check_trace trace = check_trace_run(migrations, NULL);
    REQUIRE(trace.phases == 5);
    CHECK(trace.phase[1].moved == BYTES);
    CHECK(trace.phase[2].moved == 0);
    CHECK(trace.phase[3].moved == BYTES);
    CHECK(trace.phase[4].moved == 0);
}

static void launches_among_regions(void)
{
    enum { REGIONS = 500 };
    set_up();
    cl_uint *p = alloc(BYTES), *others[REGIONS];
    for (int i = 0; i < REGIONS; i++) {
        others[i] = alloc(256);
        map(0, others[i], 256, CL_MAP_WRITE_INVALIDATE_REGION);
        memset(others[i], 1, 256);
        unmap(0, others[i]);
    }
    enqueue(1, "set", p, 1, NULL);
    check_trace_phase(queues[1]);
    for (cl_uint i = 0; i < 10; i++)
        enqueue(1, "add", p, 1, NULL);
    check_trace_phase(queues[1]);
    tear_down();
}

/* Its cost in time is a row of the bench. */
static void pocl_1942_a_launch_looks_only_at_what_it_uses(void)
{
    struct check_trace trace = check_trace_run(launches_among_regions, NULL);
    CHECK(trace.phase[1].moved == 0);
    CHECK(trace.phase[1].acquires == 10);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*function)(void);
        bool forks; /* before this process has used OpenCL */
    } problems[] = {
#define PROBLEM(function, forks) {#function, function, forks}
        PROBLEM(pocl_flags_of_a_map_count, true),
        PROBLEM(neo_rocm_pocl_a_migration_moves, true),
        PROBLEM(pocl_1942_a_launch_looks_only_at_what_it_uses, true),
        PROBLEM(opencl_cts_450_451_what_one_device_wrote_the_other_reads, false),
        PROBLEM(opencl_cts_2209_memory_is_freed_behind_the_unmaps_that_are_queued, false),
        PROBLEM(pocl_1069_the_array_of_pointers_is_copied, false),
        PROBLEM(opencl_docs_977_1016_the_free_callback_has_its_thread_and_no_lock, false),
        PROBLEM(rocclr_14_memory_of_the_application_can_be_copied, false),
        PROBLEM(pocl_1876_what_pointers_in_memory_lead_to_is_current, false),
        PROBLEM(pocl_2305_lists_of_pointers_are_independent, false),
        PROBLEM(opencl_docs_1370_a_buffer_over_shared_memory_agrees_with_it, false),
        PROBLEM(chipstar_1110_signal_handlers_are_the_applications, false),
        PROBLEM(chipstar_1594_copies_run_in_parallel, false),
        PROBLEM(rocm_systems_8493_no_two_regions_share_an_address, false),
        PROBLEM(pocl_1969_overlapping_sub_buffers_agree, false),
        PROBLEM(opencl_cts_1661_only_what_depends_on_an_event_waits_for_it, false),
        PROBLEM(compute_runtime_916_and_pocl_1465_devices_allocate_together, false),
        PROBLEM(clhpp_3_an_alignment_is_a_power_of_two, false),
    };
    setenv("SAMEPAGE_DEVICES", "cpu,virtual:2,mem=64M", 1);
    note_signal_handlers();
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        int before = check_failures;
        if (argc > 1 && !strstr(problems[i].name, argv[1]))
            continue;
        if (!problems[i].forks)
            set_up();
        problems[i].function();
        printf("%s: %s\n", check_failures > before ? "FAILED" : "ok", problems[i].name);
    }
    tear_down();
    return check_result();
}
