/* What moves between devices, as the trace tells it: data that is only read moves once to each,
 * also through pointers; data that goes to and fro gets a home that all see, until the pattern
 * ends; what a command reads comes while it waits, unless somebody is going to change it. */
#include "check_devices.h"
#include "check_trace.h"

enum { COUNT = 16384, BYTES = COUNT * 4 };

static const char source[] =
    "struct node { global struct node *next; uint value; };\n"
    "kernel void add(global uint *p, uint value) { p[get_global_id(0)] += value; }\n"
    "kernel void total(global struct node *n, global uint *sum) {\n"
    "    uint s = 0;\n"
    "    for (; n; n = n->next) s += n->value;\n"
    "    *sum = s;\n"
    "}\n"
    "kernel void first(global const uint *p, global uint *out) { *out = p[0] + p[16383]; }\n";

struct node {
    struct node *next;
    cl_uint value;
};

static cl_context context;
static cl_device_id devices[3];
static cl_command_queue queues[3];
static cl_program program;
static cl_kernel kernels[4];
static unsigned num_kernels;

static void set_up(void)
{
    context = context_of_all(3, devices, queues, NULL, NULL);
    program = build(context, source, "-cl-std=CL3.0");
}

static cl_kernel kernel_of(const char *name)
{
    cl_kernel kernel = get_kernel(program, name);
    REQUIRE(num_kernels < sizeof kernels / sizeof kernels[0]);
    kernels[num_kernels++] = kernel;
    return kernel;
}

/* Every region goes with the context. */
static void tear_down(void)
{
    for (unsigned i = 0; i < num_kernels; i++)
        clReleaseKernel(kernels[i]);
    for (int i = 0; i < 3; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseProgram(program);
    clReleaseContext(context);
}

static void overwrite(cl_uint *p, size_t bytes, cl_uint value)
{
    REQUIRE_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, p, bytes, 0,
                               NULL, NULL));
    for (size_t i = 0; i < bytes / 4; i++)
        p[i] = value;
    REQUIRE_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL));
    REQUIRE_CL(clFinish(queues[0]));
}

static void *filled(size_t bytes, cl_uint value)
{
    cl_uint *p = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
    REQUIRE(p);
    overwrite(p, bytes, value);
    return p;
}

static void launch(int device, cl_kernel kernel, size_t count)
{
    CHECK_CL(clEnqueueNDRangeKernel(queues[device], kernel, 1, NULL, &count, NULL, 0, NULL, NULL),
             CL_SUCCESS);
}

static void expect(const cl_uint *p, cl_uint value)
{
    cl_uint wrong = 0;
    CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, (void *)p, BYTES, 0, NULL, NULL),
             CL_SUCCESS);
    for (int i = 0; i < COUNT; i++)
        wrong += p[i] != value;
    CHECK(wrong == 0);
    CHECK_CL(clEnqueueSVMUnmap(queues[0], (void *)p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
}

/* --- A list that is only read
 * ----------------------------------------------------------------------- */

enum { NODES = 1000 };

static void two_devices_walk_a_list(void)
{
    set_up();
    cl_kernel total = kernel_of("total");
    struct node *nodes = filled(NODES * sizeof *nodes, 0);
    cl_uint *sums[2] = {filled(4, 0), filled(4, 0)};
    REQUIRE_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_WRITE, nodes, NODES * sizeof *nodes, 0,
                               NULL, NULL));
    for (cl_uint i = 0; i < NODES; i++)
        nodes[i] = (struct node){i + 1 < NODES ? &nodes[i + 1] : NULL, i};
    REQUIRE_CL(clEnqueueSVMUnmap(queues[0], nodes, 0, NULL, NULL));
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    for (int round = 0; round < 5; round++) {
        if (round == 1)
            check_trace_phase(queues[0]);
        for (int d = 1; d <= 2; d++) {
            CHECK_CL(clSetKernelArgSVMPointer(total, 0, nodes), CL_SUCCESS);
            CHECK_CL(clSetKernelArgSVMPointer(total, 1, sums[d - 1]), CL_SUCCESS);
            launch(d, total, 1);
            CHECK_CL(clFinish(queues[d]), CL_SUCCESS);
        }
    }
    check_trace_phase(queues[0]);
    for (int d = 0; d < 2; d++) {
        CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, sums[d], 4, 0, NULL, NULL),
                 CL_SUCCESS);
        CHECK(*sums[d] == NODES * (NODES - 1) / 2);
        CHECK_CL(clEnqueueSVMUnmap(queues[0], sums[d], 0, NULL, NULL), CL_SUCCESS);
    }
    tear_down();
}

static void a_list_that_is_only_read_moves_once(void)
{
    struct check_trace trace = check_trace_run(two_devices_walk_a_list, NULL);
    CHECK(trace.phases == 3);
    CHECK(trace.phase[0].moved >= 2 * NODES * sizeof(struct node));
    CHECK(trace.phase[1].moved == 0);
}

/* --- To and fro
 * ------------------------------------------------------------------------------------- */

enum { ROUNDS = 10, STEADY = 40 };

static void two_devices_take_turns(void)
{
    set_up();
    cl_kernel add = kernel_of("add");
    cl_uint *p = filled(BYTES, 0), one = 1, value = 0;
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(add, 1, sizeof one, &one), CL_SUCCESS);
    for (int round = 0; round < ROUNDS; round++)
        for (int d = 1; d <= 2; d++, value++) {
            launch(d, add, COUNT);
            CHECK_CL(clFinish(queues[d]), CL_SUCCESS);
        }
    check_trace_phase(queues[0]);
    for (int round = 0; round < ROUNDS; round++)
        for (int d = 1; d <= 2; d++, value++) {
            launch(d, add, COUNT);
            CHECK_CL(clFinish(queues[d]), CL_SUCCESS);
        }
    expect(p, value);
    check_trace_phase(queues[0]);
    for (int i = 0; i < STEADY; i++, value++) {
        launch(1, add, COUNT);
        CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    }
    check_trace_phase(queues[0]);
    launch(2, add, COUNT);
    CHECK_CL(clFinish(queues[2]), CL_SUCCESS);
    expect(p, value + 1);
    clSVMFree(context, p);
    tear_down();
}

static void data_that_goes_to_and_fro_gets_a_home_until_the_pattern_ends(void)
{
    struct check_trace trace = check_trace_run(two_devices_take_turns, NULL);
    CHECK(trace.phases == 4);
    CHECK(trace.phase[0].to_home == 1 && trace.phase[0].to_private == 0);
    CHECK(trace.phase[0].moved >= 8 * BYTES && trace.phase[0].moved <= 10 * BYTES);
    CHECK(trace.phase[1].moved == 0 && trace.phase[1].to_private == 0);
    CHECK(trace.phase[2].to_private == 1);
    CHECK(trace.phase[2].moved == BYTES); /* to the one device that uses it */
    CHECK(trace.phase[3].moved == 2 * BYTES);
}

static void fixed_paths_copy_each_time(void)
{
    static char variable[] = "SAMEPAGE_PATHS=fixed";
    struct check_trace trace = check_trace_run(two_devices_take_turns, variable);
    CHECK(trace.phase[0].to_home == 0);
    CHECK(trace.phase[0].moved == 2 * ROUNDS * BYTES);
    CHECK(trace.phase[1].moved == (2 * ROUNDS + 1) * BYTES);
}

/* --- Reading ahead
 * ---------------------------------------------------------------------------------- */

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

static void launch_behind(int device, cl_kernel kernel, size_t count, cl_event gate)
{
    CHECK_CL(clEnqueueNDRangeKernel(queues[device], kernel, 1, NULL, &count, NULL, 1, &gate, NULL),
             CL_SUCCESS);
}

static void expect_word(cl_uint *p, cl_uint value)
{
    CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, p, 4, 0, NULL, NULL), CL_SUCCESS);
    CHECK(*p == value);
    CHECK_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
}

static void commands_wait_for_gates(void)
{
    set_up();
    cl_kernel first = kernel_of("first"), add = kernel_of("add");
    cl_uint *p = filled(BYTES, 5), *out = filled(4, 0), seven = 7;
    CHECK_CL(clSetKernelArgSVMPointer(first, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(first, 1, out), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(add, 0, p), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(add, 1, sizeof seven, &seven), CL_SUCCESS);

    /* 0: nobody is going to change it. */
    cl_event gate = new_gate();
    launch_behind(1, first, 1, gate);
    open_gate(gate);
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    expect_word(out, 10);
    /* Device 1 loses its copy, and device 2 has one: the next phase brings nothing there. */
    overwrite(p, BYTES, 5);
    launch(2, first, 1);
    CHECK_CL(clFinish(queues[2]), CL_SUCCESS);
    expect_word(out, 10);
    check_trace_phase(queues[0]);

    /* 1: a command in front is going to change it, on another device. */
    gate = new_gate();
    launch_behind(2, add, COUNT, gate);
    cl_event added;
    CHECK_CL(clEnqueueMarkerWithWaitList(queues[2], 0, NULL, &added), CL_SUCCESS);
    launch_behind(1, first, 1, added);
    clReleaseEvent(added);
    open_gate(gate);
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    expect_word(out, 24);
    check_trace_phase(queues[0]);

    /* 3 (the marker of `added` counts): the host has it mapped for writing. */
    CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, p, BYTES, 0, NULL,
                             NULL),
             CL_SUCCESS);
    gate = new_gate();
    launch_behind(1, first, 1, gate);
    for (int i = 0; i < COUNT; i++)
        p[i] = 50;
    CHECK_CL(clEnqueueSVMUnmap(queues[0], p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
    open_gate(gate);
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
    expect_word(out, 100);
    check_trace_phase(queues[0]);
    tear_down();
}

static void what_a_command_reads_comes_while_it_waits(void)
{
    struct check_trace trace = check_trace_run(commands_wait_for_gates, NULL);
    REQUIRE(trace.phases == 5);
    CHECK(trace.phase[0].prefetched == BYTES + 4); /* and where the result goes */
    CHECK(trace.phase[0].moved == BYTES + 3 * 4);  /* to device 2, and the results */
    CHECK(trace.phase[1].prefetched + trace.phase[2].prefetched < BYTES);
    CHECK(trace.phase[3].prefetched < BYTES);
}

int main(void)
{
    setenv("SAMEPAGE_DEVICES", "cpu,virtual:2,mem=64M", 1);
    a_list_that_is_only_read_moves_once();
    data_that_goes_to_and_fro_gets_a_home_until_the_pattern_ends();
    fixed_paths_copy_each_time();
    what_a_command_reads_comes_while_it_waits();
    return check_result();
}
