/* Commands that wait for commands of other devices: each sees what those did, whatever graph they
 * make, and the devices see to it without the application: it may even be stopped. An error goes
 * where the specification says, and a device's death ends what is on it and nothing else.
 *
 * An argument is taken as a seed for the random graphs. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check_devices.h"

enum { COUNT = 2048, BYTES = COUNT * 4 };

/* How well the clocks of two GPUs agree. */
#define CLOCKS_NS 50000u

static const char source[] =
    "kernel void step(global uint *p, uint value) {\n"
    "    size_t i = get_global_id(0); p[i] = p[i] * 3 + value;\n"
    "}\n"
    "kernel void mix(global const uint *from, global uint *to, uint value) {\n"
    "    size_t i = get_global_id(0); to[i] = to[i] * 3 + from[i] + value;\n"
    "}\n"
    "kernel void copy(global const uint *from, global uint *to) {\n"
    "    to[get_global_id(0)] = from[get_global_id(0)];\n"
    "}\n"
    "kernel void wait_for_flag(global atomic_uint *flag, global uint *p, uint then) {\n"
    "    while (!atomic_load_explicit(flag, memory_order_acquire, memory_scope_all_svm_devices)) "
    "{}\n"
    "    if (then) *(global volatile uint *)8 = p[0];\n"
    "    p[0] = 42;\n"
    "}\n";

static cl_context context;
static cl_device_id devices[3];
static cl_command_queue queues[3], loose_queues[3]; /* in order, and not */
static cl_kernel step, mix, copy, wait_for_flag;
static bool is_ahead;

static cl_command_queue new_queue(int device, cl_command_queue_properties properties)
{
    cl_int error;
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties | CL_QUEUE_PROFILING_ENABLE,
                                        0};
    cl_command_queue queue =
        clCreateCommandQueueWithProperties(context, devices[device], list, &error);
    REQUIRE_CL(error);
    return queue;
}

static void CL_CALLBACK ignore(const char *message, const void *info, size_t size, void *user_data)
{
    (void)message;
    (void)info;
    (void)size;
    (void)user_data;
}

static void set_up(void)
{
    cl_command_queue unused[3];
    context = context_of_all(3, devices, unused, ignore, NULL);
    for (int i = 0; i < 3; i++) {
        clReleaseCommandQueue(unused[i]);
        queues[i] = new_queue(i, 0);
        loose_queues[i] = new_queue(i, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    }
    cl_program program = build(context, source, "-cl-std=CL3.0");
    step = get_kernel(program, "step");
    mix = get_kernel(program, "mix");
    copy = get_kernel(program, "copy");
    wait_for_flag = get_kernel(program, "wait_for_flag");
    clReleaseProgram(program);
}

static cl_uint *new_region(void)
{
    cl_uint *p = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    cl_uint zero = 0;
    REQUIRE(p);
    CHECK_CL(clEnqueueSVMMemFill(queues[0], p, &zero, 4, BYTES, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    return p;
}

static cl_uint *new_flag(void)
{
    cl_uint *flag = clSVMAlloc(
        context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, 64, 0);
    REQUIRE(flag);
    __atomic_store_n(flag, 0, __ATOMIC_SEQ_CST);
    return flag;
}

static cl_event launch(cl_command_queue queue, cl_kernel kernel, size_t items, cl_uint count,
                       const cl_event *events)
{
    cl_event event = NULL;
    CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, count, events, &event),
             CL_SUCCESS);
    return event;
}

static cl_event enqueue_step(cl_command_queue queue, cl_uint *p, cl_uint value, cl_uint count,
                             const cl_event *events)
{
    CHECK_CL(clSetKernelArgSVMPointer(step, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(step, 1, sizeof value, &value), CL_SUCCESS);
    return launch(queue, step, COUNT, count, events);
}

static cl_event enqueue_mix(cl_command_queue queue, const cl_uint *from, cl_uint *to, cl_uint value,
                            cl_uint count, const cl_event *events)
{
    CHECK_CL(clSetKernelArgSVMPointer(mix, 0, from), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(mix, 1, to), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(mix, 2, sizeof value, &value), CL_SUCCESS);
    return launch(queue, mix, COUNT, count, events);
}

/* Writes 42 when the flag is set; or crashes. */
static cl_event enqueue_wait(cl_command_queue queue, cl_uint *flag, cl_uint *p, bool crashes)
{
    cl_uint then = crashes;
    CHECK_CL(clSetKernelArgSVMPointer(wait_for_flag, 0, flag), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(wait_for_flag, 1, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(wait_for_flag, 2, sizeof then, &then), CL_SUCCESS);
    return launch(queue, wait_for_flag, 1, 0, NULL);
}

static cl_uint wrong_in(cl_uint *p, const cl_uint *model)
{
    cl_uint wrong = 0;
    CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, p, BYTES, 0, NULL, NULL), CL_SUCCESS);
    for (int i = 0; i < COUNT; i++)
        wrong += p[i] != model[i];
    CHECK_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    return wrong;
}

static cl_uint first_of(cl_uint *p)
{
    CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, p, BYTES, 0, NULL, NULL), CL_SUCCESS);
    cl_uint value = p[0];
    CHECK_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    return value;
}

/* One region goes to and fro, and all of it is enqueued before anybody waits. */
static void a_long_chain_over_two_devices(void)
{
    enum { ROUNDS = 1000 };
    cl_uint *p = new_region(), *q = new_region();
    static cl_uint model[COUNT], other[COUNT];
    cl_event last = NULL;
    memset(model, 0, sizeof model);
    memset(other, 0, sizeof other);
    for (cl_uint i = 0; i < 2 * ROUNDS; i++) {
        cl_command_queue queue = queues[1 + i % 2];
        cl_event event = i % 5 == 4 ? enqueue_mix(queue, p, q, i, last ? 1 : 0, last ? &last : NULL)
                                    : enqueue_step(queue, p, i, last ? 1 : 0, last ? &last : NULL);
        for (int k = 0; k < COUNT; k++)
            if (i % 5 == 4)
                other[k] = other[k] * 3 + model[k] + i;
            else
                model[k] = model[k] * 3 + i;
        if (last)
            clReleaseEvent(last);
        last = event;
    }
    CHECK_CL(end_of(last), CL_COMPLETE);
    CHECK(wrong_in(p, model) == 0);
    CHECK(wrong_in(q, other) == 0);
    clSVMFree(context, p);
    clSVMFree(context, q);
}

/* --- Random graphs -------------------------------------------------------------------------------
 */

enum { REGIONS = 5, COMMANDS = 120, MAX_WAITS = 12 };

struct node {
    cl_event event;
    cl_uint *from, *to;
};

/* What a region's next user has to wait for. */
struct region {
    cl_uint *p;
    cl_uint model[COUNT];
    int writer;            /* the last; -1: none */
    int readers[COMMANDS]; /* since then */
    int num_readers;
};

static struct region regions[REGIONS];
static cl_event events[COMMANDS];
static unsigned seed;

static int below(int limit)
{
    return (int)((unsigned)rand_r(&seed) / 7 % (unsigned)limit);
}

/* Adds an event that a command must come after, unless its queue's order says so. */
static void wait_for(cl_event *list, cl_uint *count, int node)
{
    if (node < 0)
        return;
    for (cl_uint i = 0; i < *count; i++)
        if (list[i] == events[node])
            return;
    list[(*count)++] = events[node];
}

static void use(struct region *region, int node, bool writes, cl_event *list, cl_uint *count)
{
    wait_for(list, count, region->writer);
    if (!writes) {
        region->readers[region->num_readers++] = node;
        return;
    }
    for (int i = 0; i < region->num_readers; i++)
        wait_for(list, count, region->readers[i]);
    region->writer = node;
    region->num_readers = 0;
}

static void enqueue_random(int node)
{
    static cl_event list[COMMANDS + MAX_WAITS];
    cl_uint count = 0, value = (cl_uint)rand_r(&seed);
    int device = below(8) ? 1 + below(2) : 0;
    cl_command_queue queue = below(2) ? queues[device] : loose_queues[device];
    struct region *to = &regions[below(REGIONS)], *from = &regions[below(REGIONS)];
    size_t first = (size_t)below(COUNT), items = 1 + (size_t)below((int)(COUNT - first));
    int kind = below(6);
    if (from == to && kind != 0)
        kind = 1;
    if (kind >= 2 && kind != 5)
        use(from, node, false, list, &count);
    use(to, node, true, list, &count);
    while (node && below(3) == 0 && count < COMMANDS)
        wait_for(list, &count, below(node)); /* for no reason */
    cl_event *waits = count ? list : NULL;
    switch (kind) {
    case 0:
    case 1:
        events[node] = enqueue_step(queue, to->p, value, count, waits);
        for (int i = 0; i < COUNT; i++)
            to->model[i] = to->model[i] * 3 + value;
        break;
    case 2:
        events[node] = enqueue_mix(queue, from->p, to->p, value, count, waits);
        for (int i = 0; i < COUNT; i++)
            to->model[i] = to->model[i] * 3 + from->model[i] + value;
        break;
    case 3: /* overwrites all of it */
        CHECK_CL(clSetKernelArgSVMPointer(copy, 0, from->p), CL_SUCCESS);
        CHECK_CL(clSetKernelArgSVMPointer(copy, 1, to->p), CL_SUCCESS);
        events[node] = launch(queue, copy, COUNT, count, waits);
        memcpy(to->model, from->model, BYTES);
        break;
    case 4: /* a part from elsewhere */
        CHECK_CL(clEnqueueSVMMemcpy(queue, CL_FALSE, to->p + first, from->p + first, items * 4,
                                    count, waits, &events[node]),
                 CL_SUCCESS);
        memcpy(to->model + first, from->model + first, items * 4);
        break;
    default: /* overwrites a part */
        CHECK_CL(clEnqueueSVMMemFill(queue, to->p + first, &value, 4, items * 4, count, waits,
                                     &events[node]),
                 CL_SUCCESS);
        for (size_t i = first; i < first + items; i++)
            to->model[i] = value;
        break;
    }
    if (below(40) == 0)
        clFlush(queue);
}

static void random_graphs_agree_with_a_model(int rounds)
{
    printf("seed %u\n", seed);
    for (int r = 0; r < REGIONS; r++) {
        regions[r].p = new_region();
        memset(regions[r].model, 0, BYTES);
    }
    for (int round = 0; round < rounds; round++) {
        for (int r = 0; r < REGIONS; r++) {
            regions[r].writer = -1;
            regions[r].num_readers = 0;
        }
        for (int node = 0; node < COMMANDS; node++)
            enqueue_random(node);
        CHECK_CL(clWaitForEvents(COMMANDS, events), CL_SUCCESS);
        for (int node = 0; node < COMMANDS; node++)
            clReleaseEvent(events[node]);
        for (int r = 0; r < REGIONS; r++)
            CHECK(wrong_in(regions[r].p, regions[r].model) == 0);
    }
    for (int r = 0; r < REGIONS; r++)
        clSVMFree(context, regions[r].p);
}

/* --- Without the application ---------------------------------------------------------------------
 */

static cl_ulong time_of(cl_event event, cl_profiling_info what)
{
    cl_ulong time = 0;
    CHECK_CL(clGetEventProfilingInfo(event, what, sizeof time, &time, NULL), CL_SUCCESS);
    return time;
}

static cl_ulong now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (cl_ulong)time.tv_sec * 1000000000 + (cl_ulong)time.tv_nsec;
}

static bool is_stopped(pid_t process)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "re");
    if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (file)
        fclose(file);
    return state == 'T';
}

/* In another process: stops the application, lets the first command go, and the application only
 * when the last command has come to its end, or for long has not. */
static pid_t stop_meanwhile(cl_uint *flag, const cl_uint *reached, volatile cl_ulong *continued)
{
    enum { MILLISECOND = 1000, WITHOUT = 200, AHEAD = 60000 };
    pid_t parent = getpid(), child = fork();
    REQUIRE(child >= 0);
    if (child)
        return child;
    kill(parent, SIGSTOP);
    while (!is_stopped(parent))
        usleep(MILLISECOND);
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < (is_ahead ? AHEAD : WITHOUT); i++) {
        if (__atomic_load_n(reached, __ATOMIC_SEQ_CST))
            break;
        usleep(MILLISECOND);
    }
    *continued = now();
    kill(parent, SIGCONT);
    _exit(0);
}

static void nobody_needs_the_application(void)
{
    cl_uint *flag = new_flag(), *reached = new_flag(), *p = new_region(), *q = new_region();
    volatile cl_ulong *continued =
        mmap(NULL, sizeof *continued, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(continued != MAP_FAILED);
    cl_event first = enqueue_wait(queues[1], flag, p, false);
    cl_event second = enqueue_mix(queues[2], p, q, 1, 1, &first);
    cl_event third = enqueue_step(queues[1], q, 5, 1, &second);
    CHECK_CL(clSetKernelArgSVMPointer(step, 0, reached), CL_SUCCESS);
    cl_event fourth = launch(queues[1], step, 1, 0, NULL); /* writes the 5 there, too */
    CHECK_CL(clFlush(queues[1]), CL_SUCCESS);
    pid_t child = stop_meanwhile(flag, reached, continued);
    CHECK_CL(end_of(fourth), CL_COMPLETE);
    CHECK_CL(clWaitForEvents(1, &third), CL_SUCCESS);
    while (waitpid(child, NULL, 0) < 0)
        ;
    cl_ulong ended = time_of(first, CL_PROFILING_COMMAND_END);
    cl_ulong started = time_of(second, CL_PROFILING_COMMAND_START);
    printf("the second began %.3f ms after the first had ended, the third ended %.3f ms %s the "
           "application went on\n",
           (double)(started - ended) / 1e6,
           (double)(cl_long)(*continued - time_of(third, CL_PROFILING_COMMAND_END)) / 1e6,
           "before");
    CHECK(started + CLOCKS_NS >= ended);
    CHECK(!is_ahead || time_of(third, CL_PROFILING_COMMAND_END) < *continued);
    CHECK(is_ahead || started > *continued);
    CHECK(first_of(q) == (42 + 1) * 3 + 5);
    clReleaseEvent(first);
    clReleaseEvent(second);
    clReleaseEvent(third);
    munmap((void *)continued, sizeof *continued);
    clSVMFree(context, flag);
    clSVMFree(context, reached);
    clSVMFree(context, p);
    clSVMFree(context, q);
}

/* What waits for another device is in nobody's way. */
static void others_go_on_meanwhile(void)
{
    cl_uint *flag = new_flag(), *p = new_region(), *q = new_region(), *r = new_region();
    cl_event first = enqueue_wait(queues[1], flag, p, false);
    cl_event held = enqueue_mix(queues[2], p, q, 1, 1, &first);
    cl_event free_one = enqueue_step(loose_queues[2], r, 7, 0, NULL);
    CHECK_CL(end_of(free_one), CL_COMPLETE);
    CHECK(status_of(held) > CL_RUNNING && status_of(first) > CL_COMPLETE);
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    CHECK_CL(end_of(held), CL_COMPLETE);
    CHECK_CL(end_of(first), CL_COMPLETE);
    CHECK(first_of(q) == 43);
    CHECK(first_of(r) == 7);
    clSVMFree(context, flag);
    clSVMFree(context, p);
    clSVMFree(context, q);
    clSVMFree(context, r);
}

/* All that is behind one dependency, or behind several, in a queue is in order. */
static void a_stream_goes_on_behind_a_dependency(void)
{
    enum { STREAM = 300 };
    cl_uint *flag = new_flag(), *p = new_region(), *q = new_region();
    static cl_uint model[COUNT];
    cl_event gate = enqueue_wait(queues[1], flag, p, false), last;
    memset(model, 0, sizeof model);
    cl_event head = enqueue_mix(queues[2], p, q, 1, 1, &gate);
    for (cl_uint i = 0; i < STREAM; i++) {
        if (i % 100 == 50) { /* one more, which the rest of the stream waits for, too */
            const cl_event both[] = {gate, head}; /* which reads what this changes */
            cl_event next = enqueue_step(loose_queues[1], p, i, 2, both);
            clReleaseEvent(gate);
            gate = next;
        }
        last = enqueue_step(queues[2], q, i, i % 100 == 50 ? 1 : 0, i % 100 == 50 ? &gate : NULL);
        if (i + 1 < STREAM)
            clReleaseEvent(last);
    }
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    CHECK_CL(end_of(last), CL_COMPLETE);
    CHECK_CL(end_of(head), CL_COMPLETE);
    CHECK_CL(end_of(gate), CL_COMPLETE);
    for (int k = 0; k < COUNT; k++) {
        model[k] = (k ? 0 : 42) + 1;
        for (cl_uint i = 0; i < STREAM; i++)
            model[k] = model[k] * 3 + i;
    }
    CHECK(wrong_in(q, model) == 0);
    clSVMFree(context, flag);
    clSVMFree(context, p);
    clSVMFree(context, q);
}

/* --- Errors --------------------------------------------------------------------------------------
 */

static void an_error_goes_down_the_wait_lists(void)
{
    cl_int error;
    cl_uint *p = new_region(), *q = new_region();
    cl_event user = clCreateUserEvent(context, &error);
    REQUIRE_CL(error);
    cl_event first = enqueue_step(queues[1], p, 1, 1, &user);
    cl_event second = enqueue_mix(queues[2], p, q, 1, 1, &first);
    cl_event behind = enqueue_step(queues[2], q, 5, 0, NULL); /* waits for nobody's success */
    cl_event third = enqueue_step(queues[1], q, 1, 1, &second);
    CHECK_CL(clSetUserEventStatus(user, -5), CL_SUCCESS);
    CHECK_CL(end_of(third), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK_CL(end_of(second), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK_CL(end_of(first), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK_CL(end_of(behind), CL_COMPLETE);
    clReleaseEvent(user);
    CHECK(first_of(p) == 0);
    CHECK(first_of(q) == 5);
    clSVMFree(context, p);
    clSVMFree(context, q);
}

/* The device dies on which what is waited for runs. */
static void the_death_of_what_is_waited_for(void)
{
    cl_uint *flag = new_flag(), *p = new_region(), *q = new_region();
    cl_event first = enqueue_wait(queues[1], flag, p, true);
    cl_event second = enqueue_mix(queues[2], p, q, 1, 1, &first);
    cl_event behind = enqueue_step(queues[2], q, 5, 0, NULL);
    cl_event third = enqueue_step(loose_queues[2], q, 2, 1, &behind);
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    CHECK_CL(end_of(third), CL_COMPLETE);
    CHECK_CL(end_of(behind), CL_COMPLETE);
    CHECK_CL(end_of(second), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK(end_of(first) < 0);
    CHECK(first_of(q) == 5 * 3 + 2);
    CHECK_CL(end_of(enqueue_step(queues[1], q, 1, 0, NULL)), CL_COMPLETE);
    CHECK(first_of(q) == (5 * 3 + 2) * 3 + 1);
    clSVMFree(context, flag);
    clSVMFree(context, p);
    clSVMFree(context, q);
}

/* The device dies on which something waits. */
static void the_death_of_who_waits(bool both)
{
    cl_uint *flag = new_flag(), *other = new_flag(), *p = new_region(), *q = new_region(),
            *r = new_region();
    cl_event first = enqueue_wait(queues[1], flag, p, both);
    cl_event second = enqueue_mix(queues[2], p, q, 1, 1, &first);
    cl_event third = enqueue_step(queues[1], q, 1, 1, &second);
    cl_event crash = enqueue_wait(loose_queues[2], other, r, true);
    __atomic_store_n(other, 1, __ATOMIC_SEQ_CST);
    if (!both)
        CHECK(end_of(crash) < 0);
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    if (both)
        CHECK(end_of(crash) < 0);
    if (!is_ahead && !both) { /* the second came to the next life */
        CHECK_CL(end_of(third), CL_COMPLETE);
        CHECK_CL(end_of(second), CL_COMPLETE);
    } else {
        CHECK_CL(end_of(third), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        CHECK(end_of(second) < 0);
    }
    cl_int status = end_of(first);
    CHECK(both ? status < 0 : status == CL_COMPLETE);
    if (!both)
        CHECK(first_of(p) == 42);
    cl_uint before = is_ahead || both ? 0 : 43 * 3 + 1;
    CHECK(first_of(q) == before);
    for (int i = 1; i < 3; i++)
        CHECK_CL(end_of(enqueue_step(queues[i], q, 1, 0, NULL)), CL_COMPLETE);
    CHECK(first_of(q) == (before * 3 + 1) * 3 + 1);
    clSVMFree(context, flag);
    clSVMFree(context, other);
    clSVMFree(context, p);
    clSVMFree(context, q);
    clSVMFree(context, r);
}

int main(int argc, char **argv)
{
    const char *others = getenv("SAMEPAGE_TEST_DEVICES");
    const char *switched = getenv("SAMEPAGE_AHEAD");
    setenv("SAMEPAGE_DEVICES", others ? others : "cpu,virtual:2,mem=64M,threads=2", 1);
    setenv("SAMEPAGE_PATHS", "fixed", 0); /* with a home for all, nothing would be copied */
    is_ahead = !switched || strcmp(switched, "0") != 0;
    seed = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
    set_up();
    a_long_chain_over_two_devices();
    random_graphs_agree_with_a_model(argc > 2 ? atoi(argv[2]) : 30);
    others_go_on_meanwhile();
    a_stream_goes_on_behind_a_dependency();
    an_error_goes_down_the_wait_lists();
    nobody_needs_the_application();
    the_death_of_what_is_waited_for();
    the_death_of_who_waits(false);
    the_death_of_who_waits(true);
    clReleaseKernel(step);
    clReleaseKernel(mix);
    clReleaseKernel(copy);
    clReleaseKernel(wait_for_flag);
    for (int i = 0; i < 3; i++) {
        clReleaseCommandQueue(queues[i]);
        clReleaseCommandQueue(loose_queues[i]);
    }
    clReleaseContext(context);
    return check_result();
}
