/* Streams of commands in one queue, with nobody waiting in between: each sees what those in front
 * of it did, whether they read, changed or overwrote it, in part or as a whole, on the same device
 * or the host, and also where all of it does not fit the device at once. */
#include "check_devices.h"

enum { COUNT = 4096, BYTES = COUNT * 4 };

static const char source[] =
    "kernel void add(global uint *p, uint value) { p[get_global_id(0)] += value; }\n"
    "kernel void copy(global const uint *from, global uint *to) {\n"
    "    to[get_global_id(0)] = from[get_global_id(0)];\n"
    "}\n"
    "kernel void wait_for_flag(global atomic_uint *flag, global uint *p) {\n"
    "    while (!atomic_load_explicit(flag, memory_order_acquire, memory_scope_all_svm_devices)) "
    "{}\n"
    "    p[0] = 42;\n"
    "}\n";

static cl_context context;
static cl_command_queue queues[3];
static cl_kernel add, copy, wait_for_flag;

static void set_up(void)
{
    cl_device_id devices[3];
    context = context_of_all(3, devices, queues, NULL, NULL);
    cl_program program = build(context, source, "-cl-std=CL3.0");
    add = get_kernel(program, "add");
    copy = get_kernel(program, "copy");
    wait_for_flag = get_kernel(program, "wait_for_flag");
    clReleaseProgram(program);
}

static void enqueue_add(int device, cl_uint *p, size_t count, cl_uint value)
{
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(add, 1, sizeof value, &value), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[device], add, 1, NULL, &count, NULL, 0, NULL, NULL),
             CL_SUCCESS);
}

static void enqueue_copy(int device, const cl_uint *from, cl_uint *to)
{
    size_t count = COUNT;
    CHECK_CL(clSetKernelArgSVMPointer(copy, 0, from), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(copy, 1, to), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[device], copy, 1, NULL, &count, NULL, 0, NULL, NULL),
             CL_SUCCESS);
}

static void enqueue_fill(int device, cl_uint *p, size_t first, size_t count, cl_uint value)
{
    CHECK_CL(clEnqueueSVMMemFill(queues[device], p + first, &value, sizeof value, count * 4, 0,
                                 NULL, NULL),
             CL_SUCCESS);
}

/* A model of the memory beside the memory: random commands, checked at the end of each stream. */
static void random_streams_agree_with_a_model(void)
{
    enum { REGIONS = 4, STREAMS = 60, STEPS = 40 };
    static cl_uint model[REGIONS][COUNT];
    cl_uint *p[REGIONS];
    unsigned seed = 11;
    for (int r = 0; r < REGIONS; r++) {
        p[r] = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
        REQUIRE(p[r]);
        enqueue_fill(0, p[r], 0, COUNT, 0);
    }
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    for (int s = 0; s < STREAMS; s++) {
        int device = (int)((unsigned)rand_r(&seed) % 3);
        for (int step = 0; step < STEPS; step++) {
            int r = rand_r(&seed) % REGIONS,
                other = (r + 1 + rand_r(&seed) % (REGIONS - 1)) % REGIONS;
            size_t first = (unsigned)rand_r(&seed) % COUNT;
            size_t count = 1 + (unsigned)rand_r(&seed) % (COUNT - first);
            cl_uint value = (cl_uint)(s * STEPS + step);
            switch (rand_r(&seed) % 5) {
            case 0:
                enqueue_add(device, p[r], COUNT, value);
                for (int i = 0; i < COUNT; i++)
                    model[r][i] += value;
                break;
            case 1: /* overwrites a part */
                enqueue_fill(device, p[r], first, count, value);
                for (size_t i = first; i < first + count; i++)
                    model[r][i] = value;
                break;
            case 2: /* overwrites all of it */
                enqueue_fill(device, p[r], 0, COUNT, value);
                for (int i = 0; i < COUNT; i++)
                    model[r][i] = value;
                break;
            case 3:
                enqueue_copy(device, p[r], p[other]);
                memcpy(model[other], model[r], BYTES);
                break;
            case 4: /* a part from elsewhere: the host's memory now and then */
                if (rand_r(&seed) % 4) {
                    CHECK_CL(clEnqueueSVMMemcpy(queues[device], CL_FALSE, p[r] + first,
                                                p[other] + first, count * 4, 0, NULL, NULL),
                             CL_SUCCESS);
                    memcpy(&model[r][first], &model[other][first], count * 4);
                } else {
                    static cl_uint from[COUNT];
                    CHECK_CL(clFinish(queues[device]), CL_SUCCESS);
                    for (int i = 0; i < COUNT; i++)
                        from[i] = value + (cl_uint)i;
                    CHECK_CL(clEnqueueSVMMemcpy(queues[device], CL_FALSE, p[r] + first, from,
                                                count * 4, 0, NULL, NULL),
                             CL_SUCCESS);
                    memcpy(&model[r][first], from, count * 4);
                }
                break;
            }
        }
        CHECK_CL(clFinish(queues[device]), CL_SUCCESS);
        for (int r = 0; r < REGIONS; r++) {
            CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, p[r], BYTES, 0, NULL, NULL),
                     CL_SUCCESS);
            CHECK(memcmp(p[r], model[r], BYTES) == 0);
            CHECK_CL(clEnqueueSVMUnmap(queues[0], p[r], 0, NULL, NULL), CL_SUCCESS);
        }
        CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    }
    for (int r = 0; r < REGIONS; r++)
        clSVMFree(context, p[r]);
}

/* 4 regions of 6 MiB on devices of 16 MiB: at most two fit, and the third command of the stream
 * must wait for the first to leave room. */
static void a_stream_over_more_than_fits(void)
{
    enum { REGIONS = 4, WORDS = 6 << 18, ROUNDS = 6 };
    cl_uint *p[REGIONS];
    for (int r = 0; r < REGIONS; r++) {
        p[r] = clSVMAlloc(context, CL_MEM_READ_WRITE, WORDS * 4, 0);
        REQUIRE(p[r]);
        enqueue_fill(1, p[r], 0, WORDS, (cl_uint)r);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int r = 0; r < REGIONS; r++)
            enqueue_add(1, p[r], WORDS, 10);
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    for (int r = 0; r < REGIONS; r++) {
        cl_uint wrong = 0;
        CHECK_CL(clEnqueueSVMMap(queues[1], CL_TRUE, CL_MAP_READ, p[r], WORDS * 4, 0, NULL, NULL),
                 CL_SUCCESS);
        for (size_t i = 0; i < WORDS; i++)
            wrong += p[r][i] != (cl_uint)r + 10 * ROUNDS;
        CHECK(wrong == 0);
        CHECK_CL(clEnqueueSVMUnmap(queues[1], p[r], 0, NULL, NULL), CL_SUCCESS);
    }
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    for (int r = 0; r < REGIONS; r++)
        clSVMFree(context, p[r]);
}

/* What can never fit is an error of that command alone. */
static void what_never_fits_is_an_error(void)
{
    enum { WORDS = 5 << 20 };
    cl_uint *from = clSVMAlloc(context, CL_MEM_READ_WRITE, (size_t)WORDS * 2, 0);
    cl_uint *to = clSVMAlloc(context, CL_MEM_READ_WRITE, (size_t)WORDS * 2, 0);
    REQUIRE(from && to);
    cl_event copied;
    cl_int status = 0;
    size_t count = 1;
    enqueue_fill(1, from, 0, WORDS / 2, 3);
    CHECK_CL(clSetKernelArgSVMPointer(copy, 0, from), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(copy, 1, to), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[1], copy, 1, NULL, &count, NULL, 0, NULL, &copied),
             CL_SUCCESS);
    clFinish(queues[1]);
    CHECK_CL(
        clGetEventInfo(copied, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL),
        CL_SUCCESS);
    CHECK_CL(status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    clReleaseEvent(copied);
    enqueue_add(1, from, 1, 4);
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    clSVMFree(context, from);
    clSVMFree(context, to);
}

/* A kernel that runs until the flag is set. */
static cl_event enqueue_wait(cl_command_queue queue, cl_uint *flag, cl_uint *p)
{
    cl_event event;
    size_t one = 1;
    __atomic_store_n(flag, 0, __ATOMIC_SEQ_CST);
    CHECK_CL(clSetKernelArgSVMPointer(wait_for_flag, 0, flag), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(wait_for_flag, 1, p), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, wait_for_flag, 1, NULL, &one, NULL, 0, NULL, &event),
             CL_SUCCESS);
    return event;
}

static cl_uint *new_flag(void)
{
    cl_uint *flag = clSVMAlloc(
        context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, 64, 0);
    REQUIRE(flag);
    return flag;
}

/* In an in-order queue, the end of one command says that all before it have ended: also of one that
 * could not even begin, because what it waited for failed. */
static void what_failed_ends_behind_what_is_before_it(void)
{
    cl_int error;
    cl_uint *flag = new_flag(), *p = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    REQUIRE(p);
    enqueue_fill(1, p, 0, COUNT, 7);
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    cl_event user = clCreateUserEvent(context, &error), running, failed;
    REQUIRE_CL(error);
    running = enqueue_wait(queues[1], flag, p);
    size_t count = 1;
    cl_uint one = 1;
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(add, 1, sizeof one, &one), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[1], add, 1, NULL, &count, NULL, 1, &user, &failed),
             CL_SUCCESS);
    CHECK_CL(clSetUserEventStatus(user, -1), CL_SUCCESS);
    CHECK(status_of(failed) > CL_COMPLETE);
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    clFinish(queues[1]);
    CHECK(status_of(running) == CL_COMPLETE);
    CHECK(status_of(failed) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK_CL(clEnqueueSVMMap(queues[1], CL_TRUE, CL_MAP_READ, p, BYTES, 0, NULL, NULL), CL_SUCCESS);
    CHECK(p[0] == 42);
    CHECK_CL(clEnqueueSVMUnmap(queues[1], p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    clReleaseEvent(user);
    clReleaseEvent(running);
    clReleaseEvent(failed);
    clSVMFree(context, flag);
    clSVMFree(context, p);
}

/* Thousands of commands that wait for room, each of which leaves room for the next when it ends: no
 * recursion. */
static void a_long_line_waits_for_room(void)
{
    enum { LINE = 30000, LARGE = 12 << 20 };
    static const cl_queue_properties out_of_order[] = {CL_QUEUE_PROPERTIES,
                                                       CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    cl_int error;
    cl_device_id device;
    CHECK_CL(clGetCommandQueueInfo(queues[1], CL_QUEUE_DEVICE, sizeof device, &device, NULL),
             CL_SUCCESS);
    cl_command_queue queue =
        clCreateCommandQueueWithProperties(context, device, out_of_order, &error);
    REQUIRE_CL(error);
    cl_uint *flag = new_flag();
    void *regions[3];
    for (int i = 0; i < 3; i++) {
        regions[i] = clSVMAlloc(context, CL_MEM_READ_WRITE, LARGE, 0);
        REQUIRE(regions[i]);
    }
    cl_event running = enqueue_wait(queue, flag, regions[0]); /* and nothing else has room */
    for (int i = 0; i < LINE; i++) {
        const void *pointer = regions[1 + i % 2];
        REQUIRE_CL(clEnqueueSVMMigrateMem(queue, 1, &pointer, NULL, 0, 0, NULL, NULL));
    }
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    CHECK(status_of(running) == CL_COMPLETE);
    clReleaseEvent(running);
    clReleaseCommandQueue(queue);
    clSVMFree(context, flag);
    for (int i = 0; i < 3; i++)
        clSVMFree(context, regions[i]);
}

int main(void)
{
    const char *others = getenv("SAMEPAGE_TEST_DEVICES");
    setenv("SAMEPAGE_DEVICES", others ? others : "cpu,virtual:2,mem=16M", 1);
    set_up();
    random_streams_agree_with_a_model();
    if (!others) { /* the rest knows how large they are */
        a_stream_over_more_than_fits();
        what_never_fits_is_an_error();
        what_failed_ends_behind_what_is_before_it();
        a_long_line_waits_for_room();
    }
    clReleaseKernel(add);
    clReleaseKernel(copy);
    clReleaseKernel(wait_for_flag);
    for (int i = 0; i < 3; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return check_result();
}
