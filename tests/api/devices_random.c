/* A property: whatever is done to shared memory, through any view of it, on any device or the host,
 * every byte reads as the one written last. Random regions of all sizes and alignments, seen as
 * SVM, as buffers, as buffers over SVM and as sub-buffers that overlap; random commands on random
 * ranges of them in random queues; a plain array per region as the oracle. With a number as its
 * argument it takes that as the seed; without, it takes a fixed one and prints it. */
#include "check.h"

enum { REGIONS = 10, VIEWS = 4, STEPS = 900, MAX_QUEUES = 8 };

static const size_t sizes[REGIONS] = {1,     7,     129,     4096,    4097,
                                      65536, 99999, 1048577, 2097152, 3000001};

struct region {
    size_t bytes;
    unsigned char *svm; /* NULL: a buffer of its own */
    unsigned char *oracle;
    cl_mem views[VIEWS]; /* buffers over all of it, or a part */
    size_t first[VIEWS], length[VIEWS];
    int num_views;
};

static cl_context context;
static cl_command_queue queues[MAX_QUEUES];
static cl_uint num_queues;
static cl_kernel add_svm, add_buffer, copy_kernel;
static struct region regions[REGIONS];
static unsigned seed, origin_align;

static const char source[] =
    "kernel void add(global uchar *p, ulong first, uchar value) {\n"
    "    p[first + get_global_id(0)] += value;\n"
    "}\n"
    "kernel void copy(global const uchar *from, ulong a, global uchar *to, ulong b) {\n"
    "    to[b + get_global_id(0)] = from[a + get_global_id(0)];\n"
    "}\n";

static size_t random_below(size_t limit)
{
    size_t high = (size_t)rand_r(&seed);
    return (high << 20 ^ (size_t)rand_r(&seed)) % limit;
}

static cl_command_queue any_queue(void)
{
    return queues[random_below(num_queues)];
}

static void set_up(void)
{
    cl_device_id devices[MAX_QUEUES];
    cl_uint count = 0, bits = 0;
    cl_int error;
    REQUIRE_CL(
        clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_ALL, MAX_QUEUES / 2, devices, &count));
    REQUIRE(count == 3);
    context = clCreateContext(NULL, count, devices, NULL, NULL, &error);
    REQUIRE_CL(error);
    for (cl_uint i = 0; i < count; i++) {
        static const cl_queue_properties out_of_order[] = {
            CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
        for (int k = 0; k < 2; k++) {
            queues[num_queues++] = clCreateCommandQueueWithProperties(
                context, devices[i], k ? out_of_order : NULL, &error);
            REQUIRE_CL(error);
        }
        REQUIRE_CL(
            clGetDeviceInfo(devices[i], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL));
        origin_align = bits / 8 > origin_align ? bits / 8 : origin_align;
    }
    const char *text = source;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    REQUIRE_CL(error);
    REQUIRE_CL(clBuildProgram(program, 0, NULL, "-cl-std=CL3.0", NULL, NULL));
    add_svm = clCreateKernel(program, "add", &error);
    REQUIRE_CL(error);
    add_buffer = clCreateKernel(program, "add", &error);
    REQUIRE_CL(error);
    copy_kernel = clCreateKernel(program, "copy", &error);
    REQUIRE_CL(error);
    clReleaseProgram(program);
}

static void add_view(struct region *r, cl_mem buffer, size_t first, size_t length)
{
    r->views[r->num_views] = buffer;
    r->first[r->num_views] = first;
    r->length[r->num_views++] = length;
}

static void create_region(int i)
{
    struct region *r = &regions[i];
    unsigned char zero = 0;
    cl_int error;
    r->bytes = sizes[i];
    r->num_views = 0;
    r->oracle = calloc(r->bytes, 1);
    REQUIRE(r->oracle);
    if (i % 3 != 2) {
        cl_uint alignment = random_below(2) ? 0 : 1u << random_below(8);
        r->svm = clSVMAlloc(context, CL_MEM_READ_WRITE, r->bytes, alignment);
        REQUIRE(r->svm);
        add_view(r,
                 clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, r->bytes, r->svm,
                                &error),
                 0, r->bytes);
    } else {
        r->svm = NULL;
        add_view(r, clCreateBuffer(context, CL_MEM_READ_WRITE, r->bytes, NULL, &error), 0,
                 r->bytes);
    }
    REQUIRE_CL(error);
    while (r->num_views < VIEWS && r->bytes > 2 * origin_align) {
        cl_buffer_region part;
        part.origin = random_below(r->bytes / 2 / origin_align) * origin_align;
        part.size = 1 + random_below(r->bytes - part.origin);
        cl_mem view = clCreateSubBuffer(r->views[0], CL_MEM_READ_WRITE,
                                        CL_BUFFER_CREATE_TYPE_REGION, &part, &error);
        REQUIRE_CL(error);
        add_view(r, view, part.origin, part.size);
    }
    cl_command_queue queue = any_queue();
    CHECK_CL(clEnqueueFillBuffer(queue, r->views[0], &zero, 1, 0, r->bytes, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
}

static void destroy_region(int i)
{
    struct region *r = &regions[i];
    for (int v = r->num_views - 1; v >= 0; v--)
        clReleaseMemObject(r->views[v]);
    if (r->svm)
        clSVMFree(context, r->svm);
    free(r->oracle);
}

/* A range of a view: [*first, *first + *count) of the region. */
static int any_range(const struct region *r, size_t *first, size_t *count)
{
    int v = (int)random_below((size_t)r->num_views);
    size_t from = random_below(r->length[v]);
    *count = 1 + random_below(r->length[v] - from);
    if (random_below(8) == 0) {
        from = 0;
        *count = r->length[v];
    }
    *first = r->first[v] + from;
    return v;
}

static void run(cl_command_queue queue, cl_kernel kernel, size_t count)
{
    CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
}

static void add_somewhere(struct region *r, unsigned char value)
{
    size_t first, count;
    int v = any_range(r, &first, &count);
    bool is_svm = r->svm && random_below(2);
    cl_kernel kernel = is_svm ? add_svm : add_buffer;
    cl_ulong from = is_svm ? first : first - r->first[v];
    if (is_svm)
        CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, r->svm), CL_SUCCESS);
    else
        CHECK_CL(clSetKernelArg(kernel, 0, sizeof(cl_mem), &r->views[v]), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof from, &from), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 2, sizeof value, &value), CL_SUCCESS);
    run(any_queue(), kernel, count);
    for (size_t i = first; i < first + count; i++)
        r->oracle[i] = (unsigned char)(r->oracle[i] + value);
}

static void copy_somewhere(struct region *from, struct region *to)
{
    size_t a, n, b, m;
    cl_command_queue queue = any_queue();
    int v = any_range(from, &a, &n), w = any_range(to, &b, &m);
    size_t count = n < m ? n : m;
    cl_ulong from_first = a - from->first[v], to_first = b - to->first[w];
    if (from->svm && to->svm && random_below(3) == 0) {
        CHECK_CL(
            clEnqueueSVMMemcpy(queue, CL_TRUE, to->svm + b, from->svm + a, count, 0, NULL, NULL),
            CL_SUCCESS);
    } else if (random_below(2)) {
        CHECK_CL(clEnqueueCopyBuffer(queue, from->views[v], to->views[w], from_first, to_first,
                                     count, 0, NULL, NULL),
                 CL_SUCCESS);
        CHECK_CL(clFinish(queue), CL_SUCCESS);
    } else {
        CHECK_CL(clSetKernelArg(copy_kernel, 0, sizeof(cl_mem), &from->views[v]), CL_SUCCESS);
        CHECK_CL(clSetKernelArg(copy_kernel, 1, sizeof from_first, &from_first), CL_SUCCESS);
        CHECK_CL(clSetKernelArg(copy_kernel, 2, sizeof(cl_mem), &to->views[w]), CL_SUCCESS);
        CHECK_CL(clSetKernelArg(copy_kernel, 3, sizeof to_first, &to_first), CL_SUCCESS);
        run(queue, copy_kernel, count);
    }
    memcpy(to->oracle + b, from->oracle + a, count);
}

static void fill_somewhere(struct region *r, unsigned char value)
{
    size_t first, count;
    cl_command_queue queue = any_queue();
    int v = any_range(r, &first, &count);
    if (r->svm && random_below(2))
        CHECK_CL(clEnqueueSVMMemFill(queue, r->svm + first, &value, 1, count, 0, NULL, NULL),
                 CL_SUCCESS);
    else
        CHECK_CL(clEnqueueFillBuffer(queue, r->views[v], &value, 1, first - r->first[v], count, 0,
                                     NULL, NULL),
                 CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    memset(r->oracle + first, value, count);
}

static void write_somewhere(struct region *r, unsigned char value)
{
    size_t first, count;
    int v = any_range(r, &first, &count);
    unsigned char *data = malloc(count);
    REQUIRE(data);
    for (size_t i = 0; i < count; i++)
        data[i] = (unsigned char)(value + i);
    CHECK_CL(clEnqueueWriteBuffer(any_queue(), r->views[v], CL_TRUE, first - r->first[v], count,
                                  data, 0, NULL, NULL),
             CL_SUCCESS);
    memcpy(r->oracle + first, data, count);
    free(data);
}

static void check_somewhere(struct region *r)
{
    size_t first, count;
    int v = any_range(r, &first, &count);
    unsigned char *data = malloc(count);
    REQUIRE(data);
    CHECK_CL(clEnqueueReadBuffer(any_queue(), r->views[v], CL_TRUE, first - r->first[v], count,
                                 data, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(memcmp(data, r->oracle + first, count) == 0);
    free(data);
}

/* Maps a range, checks it where its content is defined, and writes a few bytes of it where it may.
 */
static void map_somewhere(struct region *r, unsigned char value)
{
    static const cl_map_flags all_flags[] = {CL_MAP_READ, CL_MAP_WRITE, CL_MAP_READ | CL_MAP_WRITE,
                                             CL_MAP_WRITE_INVALIDATE_REGION};
    size_t first, count;
    cl_int error = CL_SUCCESS;
    cl_command_queue queue = any_queue();
    int v = any_range(r, &first, &count);
    cl_map_flags flags = all_flags[random_below(4)];
    bool is_svm = r->svm && random_below(2);
    unsigned char *p = is_svm ? r->svm + first : NULL;
    if (is_svm)
        error = clEnqueueSVMMap(queue, CL_TRUE, flags, p, count, 0, NULL, NULL);
    else
        p = clEnqueueMapBuffer(queue, r->views[v], CL_TRUE, flags, first - r->first[v], count, 0,
                               NULL, NULL, &error);
    REQUIRE_CL(error);
    if (flags == CL_MAP_WRITE_INVALIDATE_REGION) {
        memset(p, value, count);
        memset(r->oracle + first, value, count);
    } else {
        CHECK(memcmp(p, r->oracle + first, count) == 0);
        for (int i = 0; flags & CL_MAP_WRITE && i < 5; i++) {
            size_t at = random_below(count);
            p[at] = r->oracle[first + at] = (unsigned char)(value + i);
        }
    }
    if (is_svm)
        CHECK_CL(clEnqueueSVMUnmap(queue, p, 0, NULL, NULL), CL_SUCCESS);
    else
        CHECK_CL(clEnqueueUnmapMemObject(queue, r->views[v], p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
}

static void migrate_somewhere(struct region *r)
{
    cl_command_queue queue = any_queue();
    cl_mem_migration_flags flags = random_below(2) ? CL_MIGRATE_MEM_OBJECT_HOST : 0;
    CHECK_CL(clEnqueueMigrateMemObjects(queue, 1, &r->views[random_below((size_t)r->num_views)],
                                        flags, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
}

static void step(void)
{
    struct region *r = &regions[random_below(REGIONS)];
    struct region *other = &regions[random_below(REGIONS)];
    unsigned char value = (unsigned char)random_below(256);
    switch (random_below(9)) {
    case 0:
    case 1:
        add_somewhere(r, value);
        break;
    case 2:
        if (r != other)
            copy_somewhere(r, other);
        break;
    case 3:
        fill_somewhere(r, value);
        break;
    case 4:
        write_somewhere(r, value);
        break;
    case 5:
        check_somewhere(r);
        break;
    case 6:
    case 7:
        map_somewhere(r, value);
        break;
    case 8:
        if (random_below(4)) {
            migrate_somewhere(r);
        } else {
            int i = (int)(r - regions);
            destroy_region(i);
            create_region(i);
        }
        break;
    }
}

int main(int argc, char **argv)
{
    const char *others = getenv("SAMEPAGE_TEST_DEVICES");
    setenv("SAMEPAGE_DEVICES", others ? others : "cpu,virtual:2,mem=16M", 1);
    unsigned given = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20261130;
    printf("seed %u\n", given);
    seed = given;
    set_up();
    for (int i = 0; i < REGIONS; i++)
        create_region(i);
    for (int i = 0; i < STEPS && !check_failures; i++)
        step();
    for (int i = 0; i < REGIONS; i++) {
        if (!check_failures)
            check_somewhere(&regions[i]);
        destroy_region(i);
    }
    clReleaseKernel(add_svm);
    clReleaseKernel(add_buffer);
    clReleaseKernel(copy_kernel);
    for (cl_uint i = 0; i < num_queues; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return check_result();
}
