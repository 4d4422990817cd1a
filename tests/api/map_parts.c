/* The host has a part of a buffer or an SVM allocation mapped for writing while commands use
 * another part of it: what each wrote is there afterwards, whatever moved in between. Sizes that
 * are watched and that are not; reading and changing kernels, on a device and on the CPU; a
 * migration; a kernel that is still running at the unmap. */
#include "check_devices.h"

enum { DEVICES = 3, SIZES = 3, BEFORE = 1, MAPPED = 7, ADDED = 2, PARTS = 3 };

static const char source[] =
    "kernel void add(global uint *p, uint n) {\n"
    "    for (uint i = get_global_id(0); i < n; i += get_global_size(0)) p[i] += 2;\n"
    "}\n"
    "kernel void read(global const uint *p, uint n, global uint *sum) {\n"
    "    uint s = 0;\n"
    "    for (uint i = 0; i < n; i++) s += p[i];\n"
    "    *sum = s;\n"
    "}\n"
    "kernel void count_wrong(global const uint *p, uint n, global atomic_uint *wrong, uint first, "
    "uint second) {\n"
    "    uint s = 0;\n"
    "    for (uint i = get_global_id(0); i < 2 * n; i += get_global_size(0)) s += p[i] != (i < n ? "
    "first : second);\n"
    "    atomic_fetch_add_explicit(wrong, s, memory_order_relaxed, memory_scope_device);\n"
    "}\n"
    "kernel void add_late(global uint *p, uint n, global atomic_uint *flag) {\n"
    "    atomic_store(flag, 1);\n"
    "    while (atomic_load(flag) != 2) ;\n"
    "    for (uint i = 0; i < n; i++) p[i] += 2;\n"
    "}\n";

enum between { READ, ADD, ADD_ON_CPU, ADD_THEN_CPU, MIGRATE, ADD_LATE, BETWEENS };
static const char *const between_names[] = {
    "read", "add", "add on the CPU", "add, then on the CPU", "migrate", "add late"};
static const cl_map_flags map_flags[] = {CL_MAP_WRITE, CL_MAP_READ | CL_MAP_WRITE,
                                         CL_MAP_WRITE_INVALIDATE_REGION};

static cl_context context;
static cl_device_id devices[DEVICES];
static cl_command_queue queues[DEVICES];
static cl_program program;
static _Atomic cl_uint *flag;
static cl_uint *sum;

/* One object of `bytes` that is mapped from its middle on. */
struct object {
    size_t bytes;
    cl_mem buffer; /* or */
    cl_uint *svm;
};

static cl_kernel kernel_for(const struct object *object, const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    cl_uint half = (cl_uint)(object->bytes / 8);
    REQUIRE_CL(error);
    if (object->buffer)
        CHECK_CL(clSetKernelArg(kernel, 0, sizeof object->buffer, &object->buffer), CL_SUCCESS);
    else
        CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, object->svm), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof half, &half), CL_SUCCESS);
    return kernel;
}

static void launch(const struct object *object, int device, const char *name)
{
    size_t one = 1;
    cl_kernel kernel = kernel_for(object, name);
    if (!strcmp(name, "read"))
        CHECK_CL(clSetKernelArgSVMPointer(kernel, 2, sum), CL_SUCCESS);
    if (!strcmp(name, "add_late"))
        CHECK_CL(clSetKernelArgSVMPointer(kernel, 2, (void *)flag), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[device], kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
}

static void finish(void)
{
    for (int i = 0; i < DEVICES; i++)
        CHECK_CL(clFinish(queues[i]), CL_SUCCESS);
}

static cl_uint *map(const struct object *object, cl_map_flags flags, size_t first)
{
    size_t bytes = object->bytes - first;
    cl_int error;
    if (object->buffer) {
        cl_uint *mapped = clEnqueueMapBuffer(queues[0], object->buffer, CL_TRUE, flags, first,
                                             bytes, 0, NULL, NULL, &error);
        REQUIRE_CL(error);
        return mapped;
    }
    cl_uint *mapped = object->svm + first / 4;
    REQUIRE_CL(clEnqueueSVMMap(queues[0], CL_TRUE, flags, mapped, bytes, 0, NULL, NULL));
    return mapped;
}

static void unmap(const struct object *object, cl_uint *mapped)
{
    if (object->buffer)
        CHECK_CL(clEnqueueUnmapMemObject(queues[0], object->buffer, mapped, 0, NULL, NULL),
                 CL_SUCCESS);
    else
        CHECK_CL(clEnqueueSVMUnmap(queues[0], mapped, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
}

static void migrate(const struct object *object)
{
    const void *pointer = object->svm;
    if (object->buffer)
        CHECK_CL(clEnqueueMigrateMemObjects(queues[1], 1, &object->buffer, 0, 0, NULL, NULL),
                 CL_SUCCESS);
    else
        CHECK_CL(clEnqueueSVMMigrateMem(queues[1], 1, &pointer, NULL, 0, 0, NULL, NULL),
                 CL_SUCCESS);
}

/* The host writes the nth of `PARTS` parts of what it has mapped. */
static void write_part(const struct object *object, cl_uint *mapped, size_t part)
{
    size_t words = object->bytes / 8;
    for (size_t i = words * part / PARTS; i < words * (part + 1) / PARTS; i++)
        mapped[i] = MAPPED;
}

/* How much was added to each word of the first half. */
static cl_uint use_first_half(const struct object *object, enum between between, cl_uint *mapped)
{
    switch (between) {
    case READ:
        launch(object, 1, "read");
        return 0;
    case ADD:
        launch(object, 1, "add");
        return ADDED;
    case ADD_ON_CPU:
        launch(object, 0, "add");
        return ADDED;
    case ADD_THEN_CPU:
        launch(object, 1, "add");
        finish();
        write_part(object, mapped, 1);
        launch(object, 0, "add");
        return 2 * ADDED;
    case MIGRATE:
        migrate(object);
        return 0;
    default:
        *flag = 0;
        launch(object, 1, "add_late");
        CHECK_CL(clFlush(queues[1]), CL_SUCCESS);
        while (*flag != 1)
            ;
        return ADDED;
    }
}

static void fill(const struct object *object, cl_uint value)
{
    cl_command_queue queue = queues[2];
    if (object->buffer)
        CHECK_CL(
            clEnqueueFillBuffer(queue, object->buffer, &value, 4, 0, object->bytes, 0, NULL, NULL),
            CL_SUCCESS);
    else
        CHECK_CL(clEnqueueSVMMemFill(queue, object->svm, &value, 4, object->bytes, 0, NULL, NULL),
                 CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
}

static size_t count_on_host(const struct object *object, cl_uint first, cl_uint second)
{
    size_t words = object->bytes / 4, wrong = 0;
    cl_uint *mapped = map(object, CL_MAP_READ, 0);
    for (size_t i = 0; i < words; i++)
        wrong += mapped[i] != (i < words / 2 ? first : second);
    unmap(object, mapped);
    return wrong;
}

/* A kernel, since a copy to the host reads whoever has it. */
static size_t count_on_device(const struct object *object, int device, cl_uint first,
                              cl_uint second)
{
    size_t items = 64;
    cl_uint wrong = 0;
    cl_kernel kernel = kernel_for(object, "count_wrong");
    CHECK_CL(clEnqueueSVMMemFill(queues[device], sum, &wrong, 4, 4, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 2, sum), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 3, sizeof first, &first), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 4, sizeof second, &second), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queues[device], kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMemcpy(queues[device], CL_TRUE, &wrong, sum, 4, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    return wrong;
}

static void try_one(const struct object *object, cl_map_flags flags, enum between between,
                    int reader)
{
    fill(object, BEFORE);
    cl_uint *mapped = map(object, flags, object->bytes / 2);
    write_part(object, mapped, 0);
    cl_uint added = use_first_half(object, between, mapped);
    if (between != ADD_LATE)
        finish();
    for (size_t part = 1; part < PARTS; part++)
        write_part(object, mapped, part);
    unmap(object, mapped);
    *flag = 2;
    finish();
    size_t wrong = reader ? count_on_device(object, reader, BEFORE + added, MAPPED)
                          : count_on_host(object, BEFORE + added, MAPPED);
    if (wrong)
        fprintf(stderr, "%s of %zu bytes, map flags %u, %s, read by %d: %zu words are wrong\n",
                object->buffer ? "buffer" : "SVM", object->bytes, (unsigned)flags,
                between_names[between], reader, wrong);
    CHECK(wrong == 0);
}

/* An object for each, since one that goes to and fro would move to where all see it. */
static void try_all(bool is_buffer, size_t bytes)
{
    cl_int error = CL_SUCCESS;
    for (unsigned f = 0; f < sizeof map_flags / sizeof map_flags[0]; f++)
        for (enum between between = READ; between < BETWEENS; between++)
            for (int reader = 0; reader < DEVICES; reader++) {
                struct object object = {.bytes = bytes};
                if (is_buffer)
                    object.buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &error);
                else
                    object.svm = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
                REQUIRE_CL(error);
                REQUIRE(object.buffer || object.svm);
                try_one(&object, map_flags[f], between, reader);
                if (is_buffer)
                    clReleaseMemObject(object.buffer);
                clSVMFree(context, object.svm);
            }
}

int main(void)
{
    static const size_t sizes[SIZES] = {128, 64 << 10, 6 << 20};
    setenv("SAMEPAGE_DEVICES", "cpu,virtual:2,mem=64M", 1);
    context = context_of_all(DEVICES, devices, queues, NULL, NULL);
    program = build(context, source, "-cl-std=CL3.0");
    flag = clSVMAlloc(context, CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, 64, 0);
    sum = clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0);
    REQUIRE(flag && sum);
    for (int s = 0; s < SIZES; s++) {
        try_all(true, sizes[s]);
        try_all(false, sizes[s]);
    }
    clSVMFree(context, (void *)flag);
    clSVMFree(context, sum);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    for (int i = 0; i < DEVICES; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return check_result();
}
