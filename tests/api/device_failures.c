/* Bindings and transfers that fail while their device lives on (SAMEPAGE_VIRTUAL_FAILS): no command
 * runs on what they did not bring. One failure is made good, unnoticed; where it stays so the
 * commands that need it end with an error, without having run, and nothing that anybody had is
 * lost. What has nothing to do with it comes out right, and so does what comes later.
 *
 * The test runs itself once for each failure: the argument names the scenario. */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check_devices.h"

enum { LARGE = 3 << 20, POOLED = 80 << 20, COUNT = 2048, BYTES = COUNT * 4 };

static const char source[] =
    "kernel void step(global uint *p, uint value) {\n"
    "    size_t i = get_global_id(0); p[i] = p[i] * 3 + value;\n"
    "}\n"
    "kernel void mix(global const uint *from, global uint *to, uint value) {\n"
    "    size_t i = get_global_id(0); to[i] = to[i] * 3 + from[i] + value;\n"
    "}\n"
    "kernel void reach(global ulong *p) { *(global uint *)p[0] = 9; }\n"
    "global uint counter = 40;\n"
    "kernel void use_globals(global uint *p) { p[get_global_id(0)] = counter + 2; }\n"
    "kernel void raise(global uint *p) { atomic_inc((volatile global uint *)&counter); p[0] = 1; "
    "}\n"
    "kernel void wait_for_flag(global atomic_uint *flag, global uint *p) {\n"
    "    while (!atomic_load_explicit(flag, memory_order_acquire, memory_scope_all_svm_devices)) "
    "{}\n"
    "    p[0] = 42;\n"
    "}\n";

enum { MAX_DEVICES = 2 };

static cl_context context;
static cl_device_id devices[MAX_DEVICES];
static cl_command_queue queues[MAX_DEVICES];
static cl_kernel step, mix, reach, use_globals, raise_counter, wait_for_flag;

static void set_up_with(cl_uint count,
                        void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *))
{
    context = context_of_all(count, devices, queues, notify, NULL);
    cl_program program = build(context, source, "-cl-std=CL3.0");
    step = get_kernel(program, "step");
    mix = get_kernel(program, "mix");
    reach = get_kernel(program, "reach");
    use_globals = get_kernel(program, "use_globals");
    raise_counter = get_kernel(program, "raise");
    wait_for_flag = get_kernel(program, "wait_for_flag");
    clReleaseProgram(program);
}

static void set_up(cl_uint count)
{
    set_up_with(count, NULL);
}

static void tear_down(cl_uint count)
{
    clReleaseKernel(step);
    clReleaseKernel(mix);
    clReleaseKernel(reach);
    clReleaseKernel(use_globals);
    clReleaseKernel(raise_counter);
    clReleaseKernel(wait_for_flag);
    for (cl_uint i = 0; i < count; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
}

static cl_uint *new_region(size_t bytes, cl_uint value)
{
    cl_uint *p = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
    REQUIRE(p);
    CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_WRITE, p, bytes, 0, NULL, NULL),
             CL_SUCCESS);
    for (size_t i = 0; i < bytes / 4; i++)
        p[i] = value;
    CHECK_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    return p;
}

static cl_event enqueue_step(cl_command_queue queue, cl_uint *p, cl_uint value, cl_uint count,
                             const cl_event *events)
{
    size_t items = COUNT;
    cl_event event = NULL;
    CHECK_CL(clSetKernelArgSVMPointer(step, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(step, 1, sizeof value, &value), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, step, 1, NULL, &items, NULL, count, events, &event),
             CL_SUCCESS);
    return event;
}

/* Whether the first `count` have this value, for the host. */
static bool are(cl_uint *p, size_t count, cl_uint value)
{
    bool is = true;
    CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, p, BYTES, 0, NULL, NULL), CL_SUCCESS);
    for (size_t i = 0; i < count; i++)
        is &= p[i] == value;
    CHECK_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    return is;
}

/* Of all that kernels change. */
static bool is_all(cl_uint *p, cl_uint value)
{
    return are(p, COUNT, value);
}

/* --- One thing that fails
 * -------------------------------------------------------------------------- */

/* The first one of the device fails, and what is done in its place does not. */
static void is_made_good(void)
{
    set_up(1);
    cl_uint *p = new_region(LARGE, 1000);
    CHECK_CL(end_of(enqueue_step(queues[0], p, 7, 0, NULL)), CL_COMPLETE);
    CHECK(is_all(p, 3007));
    clSVMFree(context, p);
    tear_down(1);
}

/* The same of a command that does nothing but move the region. */
static void a_migration_is_made_good(void)
{
    set_up(1);
    cl_event event = NULL;
    cl_uint *p = new_region(LARGE, 1000);
    CHECK_CL(clEnqueueSVMMigrateMem(queues[0], 1, (const void *[]){p}, NULL, 0, 0, NULL, &event),
             CL_SUCCESS);
    CHECK_CL(end_of(event), CL_COMPLETE);
    CHECK_CL(end_of(enqueue_step(queues[0], p, 7, 0, NULL)), CL_COMPLETE);
    CHECK(is_all(p, 3007));
    clSVMFree(context, p);
    tear_down(1);
}

/* One of a region that lies on both devices, on the one or the other. */
static void a_pool_is_made_good(void)
{
    set_up(MAX_DEVICES);
    cl_uint *p = new_region(POOLED, 1000);
    for (int i = 0; i < MAX_DEVICES; i++)
        CHECK_CL(end_of(enqueue_step(queues[i], p, 7, 0, NULL)), CL_COMPLETE);
    CHECK(is_all(p, 3007 * 3 + 7));
    clSVMFree(context, p);
    tear_down(MAX_DEVICES);
}

/* The first two fail, so that the command does not run. */
static void is_an_error(void)
{
    set_up(1);
    cl_uint *p = new_region(LARGE, 1000);
    CHECK_CL(end_of(enqueue_step(queues[0], p, 7, 0, NULL)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    CHECK(is_all(p, 1000));
    CHECK_CL(end_of(enqueue_step(queues[0], p, 7, 0, NULL)), CL_COMPLETE);
    CHECK(is_all(p, 3007));
    clSVMFree(context, p);
    tear_down(1);
}

static cl_event hold_queue(cl_command_queue queue, cl_uint *flag, cl_uint *p)
{
    cl_event event;
    size_t one = 1;
    CHECK_CL(clSetKernelArgSVMPointer(wait_for_flag, 0, flag), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(wait_for_flag, 1, p), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, wait_for_flag, 1, NULL, &one, NULL, 0, NULL, &event),
             CL_SUCCESS);
    return event;
}

/* Behind a kernel that runs until it is told not to, two queues fill the ring: in one what is to
 * fail, since the device has less memory than it said, and in the other what must come out right.
 */
static void others_come_out_right(void)
{
    enum { DEPTH = 40 };
    cl_int error;
    set_up(1);
    cl_command_queue failing =
        clCreateCommandQueueWithProperties(context, devices[0], NULL, &error);
    REQUIRE_CL(error);
    cl_uint *flag = clSVMAlloc(
        context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, 64, 0);
    cl_uint *held = new_region(LARGE, 0), *other = new_region(LARGE, 1),
            *fails = new_region(5 * LARGE, 1000);
    REQUIRE(flag);
    __atomic_store_n(flag, 0, __ATOMIC_SEQ_CST);
    cl_event holding = hold_queue(queues[0], flag, held), events[DEPTH], bad[DEPTH];
    cl_uint expected = 1;
    for (cl_uint i = 0; i < DEPTH; i++) {
        events[i] = enqueue_step(queues[0], other, i, 0, NULL);
        bad[i] = enqueue_step(failing, fails, i, 0, NULL);
        expected = expected * 3 + i;
    }
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    CHECK_CL(end_of(holding), CL_COMPLETE);
    for (cl_uint i = 0; i < DEPTH; i++) {
        CHECK_CL(end_of(events[i]), CL_COMPLETE);
        CHECK_CL(end_of(bad[i]), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    }
    CHECK(is_all(other, expected));
    CHECK(is_all(fails, 1000));
    CHECK(are(held, 1, 42));
    clSVMFree(context, flag);
    clSVMFree(context, held);
    clSVMFree(context, other);
    clSVMFree(context, fails);
    clReleaseCommandQueue(failing);
    tear_down(1);
}

/* The pages of all agents, which kernels reach without naming them, cannot be bound: then no kernel
 * runs, until they can. */
static void home_is_needed(void)
{
    set_up(1);
    cl_uint *fine = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, LARGE, 0);
    cl_uint *p = new_region(LARGE, 1000);
    REQUIRE(fine);
    fine[0] = 5;
    CHECK_CL(end_of(enqueue_step(queues[0], p, 7, 0, NULL)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    CHECK(is_all(p, 1000));
    /* How many of the failures that command met is a matter of time; it met two at least. */
    cl_int status = CL_OUT_OF_RESOURCES;
    for (int i = 0; i < 3 && status != CL_COMPLETE; i++) {
        CHECK(fine[0] == 5);
        status = end_of(enqueue_step(queues[0], fine, 7, 0, NULL));
        CHECK(status == CL_COMPLETE || status == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    }
    CHECK_CL(status, CL_COMPLETE);
    CHECK(fine[0] == 22);
    CHECK_CL(end_of(enqueue_step(queues[0], p, 7, 0, NULL)), CL_COMPLETE);
    CHECK(is_all(p, 3007));
    clSVMFree(context, fine);
    clSVMFree(context, p);
    tear_down(1);
}

/* The same, of a kernel that only follows a pointer there. The second binding and the third fail.
 */
static void home_is_reached_unnamed(void)
{
    size_t one = 1;
    set_up(1);
    cl_uint *p = new_region(LARGE, 0);
    CHECK_CL(end_of(enqueue_step(queues[0], p, 0, 0, NULL)), CL_COMPLETE);
    cl_uint *fine = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, LARGE, 0);
    REQUIRE(fine);
    fine[0] = 5;
    CHECK_CL(clEnqueueSVMMemcpy(queues[0], CL_TRUE, p, &fine, sizeof fine, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(reach, 0, p), CL_SUCCESS);
    for (int i = 0; i < 2; i++) {
        cl_event event = NULL;
        CHECK_CL(clEnqueueNDRangeKernel(queues[0], reach, 1, NULL, &one, NULL, 0, NULL, &event),
                 CL_SUCCESS);
        CHECK_CL(end_of(event), i ? CL_COMPLETE : CL_MEM_OBJECT_ALLOCATION_FAILURE);
        CHECK(fine[0] == (i ? 9 : 5));
    }
    clSVMFree(context, fine);
    clSVMFree(context, p);
    tear_down(1);
}

/* What is no kernel reaches only what it names, and has nothing to do with that. The first binding
 * is well. */
static void home_is_not_needed(void)
{
    static const cl_uint value = 6;
    cl_event events[4];
    set_up(1);
    cl_uint *p = new_region(LARGE, 1000), *q = new_region(BYTES, 50);
    CHECK_CL(end_of(enqueue_step(queues[0], p, 7, 0, NULL)), CL_COMPLETE);
    cl_uint *fine = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, LARGE, 0);
    REQUIRE(fine);
    CHECK_CL(clEnqueueMarkerWithWaitList(queues[0], 0, NULL, &events[0]), CL_SUCCESS);
    CHECK_CL(
        clEnqueueSVMMigrateMem(queues[0], 1, (const void *[]){p}, NULL, 0, 0, NULL, &events[1]),
        CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMemFill(queues[0], p, &value, 4, BYTES / 2, 0, NULL, &events[2]),
             CL_SUCCESS);
    CHECK_CL(
        clEnqueueSVMMemcpy(queues[0], CL_FALSE, p + COUNT / 2, p, BYTES / 2, 0, NULL, &events[3]),
        CL_SUCCESS);
    for (int i = 0; i < 4; i++)
        CHECK_CL(end_of(events[i]), CL_COMPLETE);
    CHECK(is_all(p, 6));
    CHECK_CL(end_of(enqueue_step(queues[0], p, 7, 0, NULL)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    CHECK(is_all(p, 6) && is_all(q, 50));
    clSVMFree(context, fine);
    clSVMFree(context, p);
    clSVMFree(context, q);
    tear_down(1);
}

/* A transfer to the host fails twice: so does the map, and nothing else. */
static void a_map_fails(void)
{
    set_up(1);
    cl_uint *p = new_region(LARGE, 1000);
    CHECK_CL(end_of(enqueue_step(queues[0], p, 7, 0, NULL)), CL_COMPLETE);
    CHECK(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, p, BYTES, 0, NULL, NULL) != CL_SUCCESS);
    CHECK_CL(end_of(enqueue_step(queues[0], p, 7, 0, NULL)), CL_COMPLETE);
    CHECK(is_all(p, 3007 * 3 + 7));
    clSVMFree(context, p);
    tear_down(1);
}

static struct {
    pthread_mutex_t lock;
    unsigned lost;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void CL_CALLBACK hear(const char *message, const void *info, size_t size, void *data)
{
    (void)info, (void)size, (void)data;
    pthread_mutex_lock(&heard.lock);
    heard.lost += strstr(message, "what it alone had of them is lost") != NULL;
    pthread_mutex_unlock(&heard.lock);
}

/* What leaves the device to make room cannot be copied to the host: that is said. */
static void an_eviction_fails(void)
{
    enum { REGION = 3, HALF = 30 << 20 };
    set_up_with(1, hear);
    cl_uint *p[REGION];
    for (int r = 0; r < REGION; r++) { /* two of them fill it */
        p[r] = new_region(HALF, 1);
        CHECK_CL(end_of(enqueue_step(queues[0], p[r], 4, 0, NULL)), CL_COMPLETE);
    }
    CHECK(is_all(p[2], 7) && is_all(p[1], 7));
    clSVMFree(context, p[0]);
    cl_uint *again = new_region(LARGE, 2);
    CHECK_CL(end_of(enqueue_step(queues[0], again, 4, 0, NULL)), CL_COMPLETE);
    CHECK(is_all(again, 10));
    clSVMFree(context, again);
    clSVMFree(context, p[1]);
    clSVMFree(context, p[2]);
    tear_down(1); /* waits for the callbacks */
    CHECK(heard.lost == 1);
}

/* The device has less than it said: what is not in use leaves room, and what can never fit is an
 * error. */
static void others_have_its_memory(void)
{
    enum { TURNS = 3, IN_TURN = 6 };
    cl_uint *p[IN_TURN], expected = 1;
    set_up(1);
    for (int r = 0; r < IN_TURN; r++)
        p[r] = new_region(LARGE, 1);
    for (cl_uint turn = 0; turn < TURNS; turn++) {
        for (int r = 0; r < IN_TURN; r++)
            CHECK_CL(end_of(enqueue_step(queues[0], p[r], turn, 0, NULL)), CL_COMPLETE);
        expected = expected * 3 + turn;
    }
    for (cl_uint turn = 0; turn < TURNS; turn++) { /* with nobody waiting in between */
        for (int r = 0; r < IN_TURN; r++)
            clReleaseEvent(enqueue_step(queues[0], p[r], turn, 0, NULL));
        expected = expected * 3 + turn;
    }
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    for (int r = 0; r < IN_TURN; r++)
        CHECK(is_all(p[r], expected));
    cl_uint *large = clSVMAlloc(context, CL_MEM_READ_WRITE, 5 * LARGE, 0);
    REQUIRE(large);
    CHECK_CL(end_of(enqueue_step(queues[0], large, 0, 0, NULL)), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    for (int r = 0; r < IN_TURN; r++) {
        CHECK(is_all(p[r], expected));
        clSVMFree(context, p[r]);
    }
    clSVMFree(context, large);
    tear_down(1);
}

/* The same for a command that begins again when its device would be asked for more memory once
 * more, since what it comes after, on another device, took that long. */
static void room_is_made_later(void)
{
    enum { IDLE = 2 };
    static const struct timespec longer = {1, 200000000}; /* than SHORT_NS (bindings.c) */
    set_up(MAX_DEVICES);
    cl_uint *flag = clSVMAlloc(
        context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, 64, 0);
    cl_uint *idle[IDLE], *held = new_region(LARGE, 0), *p = new_region(LARGE, 1);
    REQUIRE(flag);
    __atomic_store_n(flag, 0, __ATOMIC_SEQ_CST);
    for (int i = 0; i < IDLE; i++) { /* these fill it */
        idle[i] = new_region(LARGE, 1);
        CHECK_CL(end_of(enqueue_step(queues[1], idle[i], 4, 0, NULL)), CL_COMPLETE);
    }
    cl_event holding = hold_queue(queues[0], flag, held);
    clFlush(queues[0]);
    cl_event event = enqueue_step(queues[1], p, 5, 1, &holding);
    clFlush(queues[1]);
    nanosleep(&longer, NULL);
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    CHECK_CL(end_of(holding), CL_COMPLETE);
    CHECK_CL(end_of(event), CL_COMPLETE);
    CHECK(is_all(p, 8));
    for (int i = 0; i < IDLE; i++) {
        CHECK(is_all(idle[i], 7));
        clSVMFree(context, idle[i]);
    }
    clSVMFree(context, flag);
    clSVMFree(context, held);
    clSVMFree(context, p);
    tear_down(MAX_DEVICES);
}

/* Two commands of two queues whose bindings find no memory at the same time: for each of them in
 * turn what is not in use leaves room. */
static void room_is_made_for_two(void)
{
    enum { IDLE = 2, TWO = 2 };
    set_up(1);
    cl_int error;
    cl_command_queue own[TWO];
    cl_uint *idle[IDLE], *p[TWO];
    for (int i = 0; i < IDLE; i++) { /* these fill it */
        idle[i] = new_region(LARGE, 1);
        CHECK_CL(end_of(enqueue_step(queues[0], idle[i], 4, 0, NULL)), CL_COMPLETE);
    }
    cl_event events[TWO], gate = clCreateUserEvent(context, &error);
    REQUIRE_CL(error);
    for (int i = 0; i < TWO; i++) {
        p[i] = new_region(LARGE, 1);
        own[i] = clCreateCommandQueueWithProperties(context, devices[0], NULL, &error);
        REQUIRE_CL(error);
        events[i] = enqueue_step(own[i], p[i], 5, 1, &gate);
    }
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    clReleaseEvent(gate);
    for (int i = 0; i < TWO; i++) {
        CHECK_CL(end_of(events[i]), CL_COMPLETE);
        CHECK(is_all(p[i], 8));
        clReleaseCommandQueue(own[i]);
        clSVMFree(context, p[i]);
    }
    for (int i = 0; i < IDLE; i++) {
        CHECK(is_all(idle[i], 7));
        clSVMFree(context, idle[i]);
    }
    tear_down(1);
}

/* Kernels find the initial values of the program, or do not run. One failure is made good. */
static void initial_values(void)
{
    enum { LAUNCHES = 6 };
    const char *count = strchr(strchr(getenv("SAMEPAGE_VIRTUAL_FAILS"), ':') + 1, ':');
    set_up(1);
    cl_uint *p[LAUNCHES];
    cl_event events[LAUNCHES];
    cl_int status = CL_COMPLETE;
    unsigned failed = 0;
    size_t items = COUNT;
    for (int i = 0; i < LAUNCHES; i++) {
        p[i] = new_region(LARGE, 1);
        CHECK_CL(clSetKernelArgSVMPointer(use_globals, 0, p[i]), CL_SUCCESS);
        if (clEnqueueNDRangeKernel(queues[0], use_globals, 1, NULL, &items, NULL, 0, NULL,
                                   &events[i]))
            events[i] = NULL;
        CHECK(events[i] || i < 2); /* there is nothing that it could use */
    }
    for (int i = 0; i < LAUNCHES; i++) {
        status = events[i] ? end_of(events[i]) : CL_MEM_OBJECT_ALLOCATION_FAILURE;
        CHECK(is_all(p[i], status == CL_COMPLETE ? 42 : 1));
        CHECK(status == CL_COMPLETE || status == CL_MEM_OBJECT_ALLOCATION_FAILURE);
        failed += status != CL_COMPLETE;
        clSVMFree(context, p[i]);
    }
    CHECK_CL(status, CL_COMPLETE);
    CHECK(count ? failed <= 2 : !failed);
    tear_down(1);
}

/* Commands of several queues, all of which begin again, find the values given once: what the first
 * ones make of them is not lost. */
static void values_are_given_once(void)
{
    enum { QUEUES = 4, LAUNCHES = 3 };
    cl_command_queue own[QUEUES];
    cl_uint *p[QUEUES], *seen;
    cl_int error;
    cl_uint good = 0;
    size_t one = 1, items = COUNT;
    set_up(1);
    seen = new_region(BYTES, 0);
    for (int q = 0; q < QUEUES; q++) {
        p[q] = new_region(BYTES, 0);
        own[q] = clCreateCommandQueueWithProperties(context, devices[0], NULL, &error);
        REQUIRE_CL(error);
    }
    cl_event events[QUEUES * LAUNCHES];
    for (int i = 0; i < QUEUES * LAUNCHES; i++) {
        CHECK_CL(clSetKernelArgSVMPointer(raise_counter, 0, p[i % QUEUES]), CL_SUCCESS);
        CHECK_CL(clEnqueueNDRangeKernel(own[i % QUEUES], raise_counter, 1, NULL, &one, NULL, 0,
                                        NULL, &events[i]),
                 CL_SUCCESS);
    }
    for (int i = 0; i < QUEUES * LAUNCHES; i++)
        good += end_of(events[i]) == CL_COMPLETE;
    CHECK(good == QUEUES * LAUNCHES);
    CHECK_CL(clSetKernelArgSVMPointer(use_globals, 0, seen), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[0], use_globals, 1, NULL, &items, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(is_all(seen, 40 + good + 2));
    for (int q = 0; q < QUEUES; q++) {
        CHECK_CL(clReleaseCommandQueue(own[q]), CL_SUCCESS);
        clSVMFree(context, p[q]);
    }
    clSVMFree(context, seen);
    tear_down(1);
}

/* --- Random commands
 * ------------------------------------------------------------------------------- */

enum { REGIONS = 4, ROUNDS = 8, MAX_ROUNDS = 60, STEPS = 24 };

/* One command, and what it does to the model if it ends well. */
struct issued {
    cl_event event;
    int kind, to, from;
    cl_uint value;
    size_t first, count;
};

static cl_uint *regions[REGIONS], model[REGIONS][COUNT];

static void apply(const struct issued *issued)
{
    cl_uint *to = model[issued->to];
    const cl_uint *from = model[issued->from];
    for (size_t i = 0; i < COUNT && issued->kind < 2; i++)
        to[i] = issued->kind == 0 ? to[i] * 3 + issued->value : to[i] * 3 + from[i] + issued->value;
    for (size_t i = issued->first; i < issued->first + issued->count && issued->kind >= 2; i++)
        to[i] = issued->kind == 2 ? issued->value : from[i];
}

static void issue(struct issued *issued, cl_command_queue queue, cl_uint count,
                  const cl_event *events)
{
    size_t items = COUNT;
    cl_uint *to = regions[issued->to], *from = regions[issued->from];
    switch (issued->kind) {
    case 0:
        issued->event = enqueue_step(queue, to, issued->value, count, events);
        break;
    case 1:
        CHECK_CL(clSetKernelArgSVMPointer(mix, 0, from), CL_SUCCESS);
        CHECK_CL(clSetKernelArgSVMPointer(mix, 1, to), CL_SUCCESS);
        CHECK_CL(clSetKernelArg(mix, 2, sizeof issued->value, &issued->value), CL_SUCCESS);
        CHECK_CL(clEnqueueNDRangeKernel(queue, mix, 1, NULL, &items, NULL, count, events,
                                        &issued->event),
                 CL_SUCCESS);
        break;
    case 2:
        CHECK_CL(clEnqueueSVMMemFill(queue, to + issued->first, &issued->value, 4,
                                     issued->count * 4, count, events, &issued->event),
                 CL_SUCCESS);
        break;
    default:
        CHECK_CL(clEnqueueSVMMemcpy(queue, CL_FALSE, to + issued->first, from + issued->first,
                                    issued->count * 4, count, events, &issued->event),
                 CL_SUCCESS);
        break;
    }
    clFlush(queue);
}

/* A round of commands on one device without events, or on both, each behind the last ones that had
 * to do with its regions. What ends well counts, in order. */
static unsigned play_round(unsigned *seed, unsigned round)
{
    struct issued issued[STEPS];
    int last[REGIONS], one = rand_r(seed) % 3 ? -1 : rand_r(seed) % MAX_DEVICES;
    unsigned errors = 0;
    memset(last, 0xff, sizeof last);
    if (round % 2) { /* the host changes something in between */
        int r = rand_r(seed) % REGIONS;
        CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, regions[r], BYTES,
                                 0, NULL, NULL),
                 CL_SUCCESS);
        for (size_t i = 0; i < COUNT; i += 3)
            model[r][i] = regions[r][i] = round;
        CHECK_CL(clEnqueueSVMUnmap(queues[0], regions[r], 0, NULL, NULL), CL_SUCCESS);
        CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    }
    for (int s = 0; s < STEPS; s++) {
        struct issued *new = &issued[s];
        cl_event events[2];
        cl_uint count = 0;
        *new = (struct issued){
            .kind = rand_r(seed) % 4, .to = rand_r(seed) % REGIONS, .value = (cl_uint)rand_r(seed)};
        new->from = (new->to + 1 + rand_r(seed) % (REGIONS - 1)) % REGIONS;
        new->first = (size_t)rand_r(seed) % 2 * (COUNT / 4);
        new->count = rand_r(seed) % 2 ? COUNT - new->first : COUNT / 2;
        if (one < 0 && last[new->to] >= 0)
            events[count++] = issued[last[new->to]].event;
        if (one < 0 && last[new->from] >= 0 && last[new->from] != last[new->to])
            events[count++] = issued[last[new->from]].event;
        issue(new, queues[one < 0 ? rand_r(seed) % MAX_DEVICES : one], count,
              count ? events : NULL);
        last[new->to] = last[new->from] = s;
    }
    for (int i = 0; i < MAX_DEVICES; i++)
        clFinish(queues[i]);
    for (int s = 0; s < STEPS; s++) {
        cl_int status = end_of(issued[s].event);
        CHECK(status <= 0);
        errors += status < 0;
        if (status == CL_COMPLETE)
            apply(&issued[s]);
    }
    return errors;
}

static void compare_all(const char *what, unsigned round)
{
    for (int r = 0; r < REGIONS; r++) {
        CHECK_CL(
            clEnqueueSVMMap(queues[r % 2], CL_TRUE, CL_MAP_READ, regions[r], BYTES, 0, NULL, NULL),
            CL_SUCCESS);
        if (memcmp(regions[r], model[r], BYTES) != 0) {
            fprintf(stderr, "%s: region %d is wrong after round %u\n", what, r, round);
            CHECK(false);
        }
        CHECK_CL(clEnqueueSVMUnmap(queues[r % 2], regions[r], 0, NULL, NULL), CL_SUCCESS);
        CHECK_CL(clFinish(queues[r % 2]), CL_SUCCESS);
    }
}

static void random_commands(void)
{
    const char *what = getenv("SAMEPAGE_VIRTUAL_FAILS");
    const char *chosen = getenv("SAMEPAGE_TEST_SEED");
    unsigned seed = chosen ? (unsigned)atoi(chosen) : 1, errors = 1;
    set_up(MAX_DEVICES);
    for (int r = 0; r < REGIONS; r++) {
        regions[r] = new_region(r % 2 ? LARGE : BYTES, (cl_uint)r);
        for (size_t i = 0; i < COUNT; i++)
            model[r][i] = (cl_uint)r;
    }
    for (unsigned round = 0; round < ROUNDS || (errors && round < MAX_ROUNDS); round++) {
        errors = play_round(&seed, round);
        compare_all(what, round);
    }
    CHECK(errors == 0); /* by now what was to fail has failed */
    for (int r = 0; r < REGIONS; r++)
        clSVMFree(context, regions[r]);
    tear_down(MAX_DEVICES);
}

/* --- Scenarios
 * ------------------------------------------------------------------------------------- */

static const struct scenario {
    const char *name, *devices, *fails;
    void (*run)(void);
} scenarios[] = {
    {"arrival", "virtual,mem=64M", "arrival:1", is_made_good},
    {"bind", "virtual,mem=64M", "bind:1", is_made_good},
    {"departure", "virtual,mem=64M", "departure:1", is_made_good},
    {"migration", "virtual,mem=64M", "arrival:1", a_migration_is_made_good},
    {"migrated", "virtual,mem=64M", "bind:1", a_migration_is_made_good},
    {"pool", "virtual:2,mem=64M", NULL, a_pool_is_made_good},
    {"arrivals", "virtual,mem=64M", "arrival:1:2", is_an_error},
    {"binds", "virtual,mem=64M", "bind:1:2", is_an_error},
    {"others", "virtual,mem=64M", "beyond:6", others_come_out_right},
    {"home", "virtual,mem=64M", "bind:1:4", home_is_needed},
    {"beyond", "virtual,mem=64M", "beyond:6", others_have_its_memory},
    {"later", "virtual:2,mem=64M", "beyond:5", room_is_made_later},
    {"two", "virtual,mem=64M", "beyond:5", room_is_made_for_two},
    {"reach", "virtual,mem=64M", "bind:2:2", home_is_reached_unnamed},
    {"named", "virtual,mem=64M", "bind:2:9", home_is_not_needed},
    {"map", "virtual,mem=64M", "departure:1:2", a_map_fails},
    {"eviction", "virtual,mem=64M", "departure:1", an_eviction_fails},
    {"once", "virtual,mem=64M", "init:1", values_are_given_once},
    {"globals", "virtual,mem=64M", NULL, initial_values},
    {"random", "virtual:2,mem=64M", NULL, random_commands},
};

/* Runs the test for a scenario, in a process of its own. */
static void run(const struct scenario *scenario, const char *fails, const char *seed)
{
    int status = -1;
    if (scenario->run == home_is_reached_unnamed && getenv("SAMEPAGE_CHECK"))
        return; /* as it should not be */
    fflush(NULL);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        setenv("SAMEPAGE_DEVICES", scenario->devices, 1);
        setenv("SAMEPAGE_VIRTUAL_FAILS", fails, 1);
        setenv("SAMEPAGE_TEST_SEED", seed, 1);
        alarm(600); /* a hang is a failure */
        execl("/proc/self/exe", "device_failures", scenario->name, NULL);
        _exit(127);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    if (status)
        fprintf(stderr, "scenario %s with %s, seed %s: status %d\n", scenario->name, fails, seed,
                status);
    CHECK(status == 0);
}

static const struct scenario *find(const char *name)
{
    const struct scenario *scenario = scenarios;
    while (strcmp(scenario->name, name) != 0)
        scenario++;
    return scenario;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if (argc > 1 && !strcmp(argv[1], scenarios[i].name)) {
            scenarios[i].run();
            return check_result();
        }
        if (argc == 1 && scenarios[i].fails)
            run(&scenarios[i], scenarios[i].fails, "1");
    }
    if (argc > 1) {
        fprintf(stderr, "There is no scenario %s.\n", argv[1]);
        return 1;
    }
    for (int n = 0; n < 24; n++) {
        static const char *const forms[] = {"bind:%d@%d", "arrival:%d@%d", "departure:%d@%d"};
        char fails[32];
        snprintf(fails, sizeof fails, forms[n % 3], n / 6 + 1, n / 3 % 2);
        run(find("pool"), fails, "1");
    }
    for (int n = 0; n < 16; n++) {
        static const char *const forms[] = {"any:%d", "any:%d:2", "init:%d", "init:%d:2"};
        char fails[32];
        snprintf(fails, sizeof fails, forms[n % 4], n / 4 + 1);
        run(find("globals"), fails, "1");
    }
    /* Some that were not right once: a promise to where a command begins again, a command that
     * failed and held what that needed, a failed copy under what was written since. */
    const struct scenario *random = find("random");
    run(random, "bind:4", "9");
    run(random, "any:18:7", "29");
    run(random, "any:3:2", "142");
    run(random, "arrival:11:9", "138");
    for (int n = 1; n <= 60; n++) {
        static const char *const forms[] = {"any:%d", "any:%d:2", "any:%d:5"};
        char fails[32], seed[16];
        snprintf(fails, sizeof fails, forms[n % 3], n);
        snprintf(seed, sizeof seed, "%d", n);
        run(random, fails, seed);
    }
    return check_result();
}
