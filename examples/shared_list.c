/* Linked lists that host and device build together, with raw pointers and nothing else.
 *
 * The host builds lists whose nodes point to each other. A kernel follows every list to its end and
 * hangs new nodes behind it, taken from a shared pool with an atomic counter. The host then follows
 * the same pointers and checks every node. This is done once for each kind of shared virtual memory
 * that the device has:
 *
 *   coarse grain   clSVMAlloc; the host maps the memory while it uses it
 *   fine grain     clSVMAlloc with CL_MEM_SVM_FINE_GRAIN_BUFFER; no mapping. With atomics host
 *                  and device even take nodes from the pool at the same time
 *   system         plain malloc
 *
 * An ordinary OpenCL program: it uses whatever platform the loader offers (the first argument picks
 * one by a part of its name; Samepage is preferred).
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <CL/cl.h>

#define LISTS 20000u
#define HOST_NODES 8u     /* in each list before the kernel runs */
#define DEVICE_NODES 4u   /* that the kernel adds to each */
#define HOST_EXTRA 50000u /* nodes that the host takes from the pool while the kernel runs */

/* The same layout on both sides: pointers are pointers. */
struct node {
    struct node *next;
    uint32_t list;
    uint32_t rank;
    uint64_t check;
};

struct shared {
    struct node **heads; /* LISTS of them */
    struct node *pool;
    atomic_uint used; /* nodes taken from the pool, by anyone */
    uint32_t capacity;
};

static const char source[] =
    "struct node { __global struct node *next; uint list; uint rank; ulong check; };\n"
    "struct shared {\n"
    "    __global struct node *__global *heads;\n"
    "    __global struct node *pool;\n"
    "    atomic_uint used;\n"
    "    uint capacity;\n"
    "};\n"
    "__kernel void extend(__global struct shared *s, uint count)\n"
    "{\n"
    "    uint list = get_global_id(0);\n"
    "    __global struct node *last = s->heads[list];\n"
    "    while (last->next)\n"
    "        last = last->next;\n"
    "    for (uint i = 0; i < count; i++) {\n"
    "        uint index = atomic_fetch_add_explicit(&s->used, 1u, memory_order_relaxed,\n"
    "                                               SHARED_SCOPE);\n"
    "        if (index >= s->capacity)\n"
    "            return;\n"
    "        __global struct node *node = s->pool + index;\n"
    "        node->next = 0;\n"
    "        node->list = list;\n"
    "        node->rank = last->rank + 1;\n"
    "        node->check = last->check * 31 + node->rank;\n"
    "        last->next = node;\n"
    "        last = node;\n"
    "    }\n"
    "}\n";

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void must(cl_int result, const char *what)
{
    if (result != CL_SUCCESS)
        fail("shared_list: %s failed with OpenCL error %d", what, result);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct setup {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_kernel kernel;
    cl_device_svm_capabilities levels;
};

static cl_platform_id find_platform(const char *wanted)
{
    cl_platform_id platforms[16];
    cl_uint count = 0;
    char name[256];
    must(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs");
    for (cl_uint i = 0; i < count && i < 16; i++) {
        must(clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL),
             "clGetPlatformInfo");
        if (strstr(name, wanted))
            return platforms[i];
    }
    fail("shared_list: the OpenCL loader knows no platform whose name contains '%s'", wanted);
    return NULL;
}

static struct setup set_up(const char *wanted)
{
    struct setup s;
    char name[256];
    cl_int result;
    cl_platform_id platform = find_platform(wanted);
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &s.device, NULL), "clGetDeviceIDs");
    must(clGetDeviceInfo(s.device, CL_DEVICE_NAME, sizeof name, name, NULL), "clGetDeviceInfo");
    must(clGetDeviceInfo(s.device, CL_DEVICE_SVM_CAPABILITIES, sizeof s.levels, &s.levels, NULL),
         "clGetDeviceInfo");
    s.context = clCreateContext(NULL, 1, &s.device, NULL, NULL, &result);
    must(result, "clCreateContext");
    s.queue = clCreateCommandQueueWithProperties(s.context, s.device, NULL, &result);
    must(result, "clCreateCommandQueueWithProperties");

    const char *text = source;
    bool atomics = s.levels & CL_DEVICE_SVM_ATOMICS;
    cl_program program = clCreateProgramWithSource(s.context, 1, &text, NULL, &result);
    must(result, "clCreateProgramWithSource");
    result = clBuildProgram(program, 1, &s.device,
                            atomics ? "-cl-std=CL3.0 -DSHARED_SCOPE=memory_scope_all_svm_devices"
                                    : "-cl-std=CL3.0 -DSHARED_SCOPE=memory_scope_device",
                            NULL, NULL);
    if (result != CL_SUCCESS) {
        char log[4096] = "";
        clGetProgramBuildInfo(program, s.device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        fail("shared_list: the kernel does not build (%d):\n%s", result, log);
    }
    s.kernel = clCreateKernel(program, "extend", &result);
    must(result, "clCreateKernel");
    clReleaseProgram(program);
    printf("Device: %s\n\n", name);
    return s;
}

enum memory { COARSE, FINE, SYSTEM };

static void *allocate(const struct setup *s, enum memory memory, size_t bytes)
{
    cl_svm_mem_flags flags = CL_MEM_READ_WRITE;
    void *pointer;
    if (memory == FINE)
        flags |= CL_MEM_SVM_FINE_GRAIN_BUFFER;
    if (memory == FINE && (s->levels & CL_DEVICE_SVM_ATOMICS))
        flags |= CL_MEM_SVM_ATOMICS;
    pointer = memory == SYSTEM ? malloc(bytes) : clSVMAlloc(s->context, flags, bytes, 0);
    if (!pointer)
        fail("shared_list: no memory for %zu bytes", bytes);
    return pointer;
}

static void release(const struct setup *s, enum memory memory, void *pointer)
{
    if (memory == SYSTEM)
        free(pointer);
    else
        clSVMFree(s->context, pointer);
}

static void map(const struct setup *s, enum memory memory, void *pointer, size_t bytes)
{
    if (memory == COARSE)
        must(clEnqueueSVMMap(s->queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, pointer, bytes, 0, NULL,
                             NULL),
             "clEnqueueSVMMap");
}

static void unmap(const struct setup *s, enum memory memory, void *pointer)
{
    if (memory == COARSE)
        must(clEnqueueSVMUnmap(s->queue, pointer, 0, NULL, NULL), "clEnqueueSVMUnmap");
}

/* Follows every list and checks each node; returns how many there are. */
static size_t check_lists(const struct shared *shared)
{
    size_t nodes = 0;
    for (uint32_t list = 0; list < LISTS; list++) {
        uint64_t check = list;
        uint32_t rank = 0;
        for (const struct node *node = shared->heads[list]; node; node = node->next) {
            if (rank > 0)
                check = check * 31 + rank;
            if (node->list != list || node->rank != rank || node->check != check)
                fail("shared_list: node %u of list %u is wrong: it says list %u, rank %u", rank,
                     list, node->list, node->rank);
            rank++;
        }
        if (rank != HOST_NODES + DEVICE_NODES)
            fail("shared_list: list %u has %u nodes instead of %u", list, rank,
                 HOST_NODES + DEVICE_NODES);
        nodes += rank;
    }
    return nodes;
}

static void demonstrate(const struct setup *s, enum memory memory, const char *name)
{
    static bool launched; /* the first launch may have to compile */
    const char *note = launched ? "" : " with compiling";
    launched = true;
    double start = now_ms();
    uint32_t capacity = LISTS * (HOST_NODES + DEVICE_NODES) + HOST_EXTRA;
    size_t pool_bytes = capacity * sizeof(struct node);
    size_t heads_bytes = LISTS * sizeof(struct node *);
    bool together = memory != COARSE && (s->levels & CL_DEVICE_SVM_ATOMICS);
    struct shared *shared = allocate(s, memory, sizeof *shared);
    struct node *pool = allocate(s, memory, pool_bytes);
    struct node **heads = allocate(s, memory, heads_bytes);

    map(s, memory, shared, sizeof *shared);
    map(s, memory, pool, pool_bytes);
    map(s, memory, heads, heads_bytes);
    shared->heads = heads;
    shared->pool = pool;
    shared->capacity = capacity;
    atomic_init(&shared->used, 0);
    for (uint32_t list = 0; list < LISTS; list++) {
        struct node *previous = NULL;
        for (uint32_t rank = 0; rank < HOST_NODES; rank++) {
            struct node *node = &pool[atomic_fetch_add(&shared->used, 1)];
            node->next = NULL;
            node->list = list;
            node->rank = rank;
            node->check = previous ? previous->check * 31 + rank : list;
            if (previous)
                previous->next = node;
            else
                heads[list] = node;
            previous = node;
        }
    }
    unmap(s, memory, heads);
    unmap(s, memory, pool);
    unmap(s, memory, shared);

    /* The kernel reaches pool and heads only through pointers in memory: say so. */
    cl_uint count = DEVICE_NODES;
    size_t lists = LISTS;
    void *reached[] = {pool, heads};
    must(clSetKernelArgSVMPointer(s->kernel, 0, shared), "clSetKernelArgSVMPointer");
    must(clSetKernelArg(s->kernel, 1, sizeof count, &count), "clSetKernelArg");
    if (memory == SYSTEM) {
        cl_bool yes = CL_TRUE;
        must(clSetKernelExecInfo(s->kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof yes,
                                 &yes),
             "clSetKernelExecInfo");
    } else {
        must(clSetKernelExecInfo(s->kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof reached, reached),
             "clSetKernelExecInfo");
    }
    must(clEnqueueNDRangeKernel(s->queue, s->kernel, 1, NULL, &lists, NULL, 0, NULL, NULL),
         "clEnqueueNDRangeKernel");
    must(clFlush(s->queue), "clFlush");
    if (together) {
        for (uint32_t i = 0; i < HOST_EXTRA; i++)
            atomic_fetch_add_explicit(&shared->used, 1, memory_order_relaxed);
    }
    must(clFinish(s->queue), "clFinish");

    map(s, memory, shared, sizeof *shared);
    map(s, memory, pool, pool_bytes);
    map(s, memory, heads, heads_bytes);
    size_t nodes = check_lists(shared);
    uint32_t used = atomic_load(&shared->used);
    uint32_t expected = LISTS * (HOST_NODES + DEVICE_NODES) + (together ? HOST_EXTRA : 0);
    if (used != expected)
        fail("shared_list: the pool's counter says %u instead of %u", used, expected);
    unmap(s, memory, heads);
    unmap(s, memory, pool);
    unmap(s, memory, shared);
    must(clFinish(s->queue), "clFinish");
    release(s, memory, heads);
    release(s, memory, pool);
    release(s, memory, shared);

    double took = now_ms() - start;
    printf(
        "  %-26s%u lists, %u nodes by the host, %u by the device: all %zu correct  (%.0f ms%s)\n",
        name, LISTS, LISTS * HOST_NODES, LISTS * DEVICE_NODES, nodes, took, note);
    if (together)
        printf("  %-26shost and device counted in one word at the same time: %u, exact\n", "",
               used);
}

int main(int argc, char **argv)
{
    struct setup s = set_up(argc > 1 ? argv[1] : "Samepage");
    if (s.levels & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER)
        demonstrate(&s, COARSE, "Coarse grain (mapped)");
    if (s.levels & CL_DEVICE_SVM_FINE_GRAIN_BUFFER)
        demonstrate(&s, FINE, "Fine grain (not mapped)");
    if (s.levels & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM)
        demonstrate(&s, SYSTEM, "System (plain malloc)");
    printf("\nEvery pointer meant the same on both sides.\n");
    clReleaseKernel(s.kernel);
    clReleaseCommandQueue(s.queue);
    clReleaseContext(s.context);
    return 0;
}
