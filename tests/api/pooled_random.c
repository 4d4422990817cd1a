/* A property: whatever is done to a pooled region, by its members, the CPU device or the host,
 * every byte reads as the one written last; two members may change different bytes of it at the
 * same time, and an ordinary region takes its room meanwhile. A plain array for each region is the
 * oracle. With a number as its argument it takes that as the seed. */
#include "check_devices.h"

enum { MIB = 1 << 20, AGENTS = 3, STEPS = 300, REGIONS = 3 };

/* Half of the first and all of the second are more than a device has; half of the first and the
 * third are not. */
enum { POOLED = 25 * MIB + 4321, OTHER = 9 * MIB + 7, SMALL = 3 * MIB };
#define MEMORY "22M"

static const char source[] =
    "kernel void add(global uchar *p, ulong first, uchar value) {\n"
    "    p[first + get_global_id(0)] += value;\n"
    "}\n"
    "kernel void copy(global const uchar *from, ulong a, global uchar *to, ulong b) {\n"
    "    to[b + get_global_id(0)] = from[a + get_global_id(0)];\n"
    "}\n";

struct region {
    unsigned char *at, *oracle;
    size_t bytes;
};

static cl_context context;
static cl_device_id devices[AGENTS];
static cl_command_queue queues[AGENTS];
static cl_kernel add_kernel, copy_kernel;
static struct region regions[REGIONS];
static unsigned seed = 20;

static size_t random_below(size_t limit)
{
    size_t high = (size_t)rand_r(&seed);
    return (high << 20 ^ (size_t)rand_r(&seed)) % limit;
}

/* Short ones as often as long ones; at times all of it. */
static void any_range(const struct region *r, size_t *first, size_t *count)
{
    size_t most = random_below(4) ? 1 + random_below(random_below(2) ? 5000 : MIB) : r->bytes;
    *first = random_below(r->bytes);
    *count = 1 + random_below(r->bytes - *first < most ? r->bytes - *first : most);
    if (random_below(10) == 0) {
        *first = 0;
        *count = r->bytes;
    }
}

static struct region *any_region(void)
{
    return &regions[random_below(2) ? 0 : random_below(REGIONS)];
}

/* One thread has it; watched access by access, millions of them take a minute. */
__attribute__((no_sanitize("thread"))) static void add_to_oracle(struct region *r, size_t first,
                                                                 size_t count, unsigned char value)
{
    for (size_t i = first; i < first + count; i++)
        r->oracle[i] = (unsigned char)(r->oracle[i] + value);
}

static void start_add(int agent, struct region *r, size_t first, size_t count, unsigned char value)
{
    cl_ulong from = first;
    REQUIRE_CL(clSetKernelArgSVMPointer(add_kernel, 0, r->at));
    REQUIRE_CL(clSetKernelArg(add_kernel, 1, sizeof from, &from));
    REQUIRE_CL(clSetKernelArg(add_kernel, 2, sizeof value, &value));
    CHECK_CL(
        clEnqueueNDRangeKernel(queues[agent], add_kernel, 1, NULL, &count, NULL, 0, NULL, NULL),
        CL_SUCCESS);
    CHECK_CL(clFlush(queues[agent]), CL_SUCCESS);
    add_to_oracle(r, first, count, value);
}

static void finish(void)
{
    for (int i = 0; i < AGENTS; i++)
        CHECK_CL(clFinish(queues[i]), CL_SUCCESS);
}

static void add_somewhere(int agent, unsigned char value)
{
    size_t first, count;
    struct region *r = any_region();
    any_range(r, &first, &count);
    start_add(agent, r, first, count, value);
    finish();
}

/* Both members at once: one below, the other above a random byte. */
static void add_at_once(unsigned char value)
{
    struct region *r = &regions[0];
    size_t cut = 1 + random_below(r->bytes - 2), low, high;
    for (int i = 0; i < 3; i++) {
        low = random_below(cut);
        high = cut + random_below(r->bytes - cut);
        start_add(1, r, low, 1 + random_below(cut - low), value);
        start_add(2, r, high, 1 + random_below(r->bytes - high), (unsigned char)(value + 1));
        if (random_below(2))
            start_add(random_below(2) ? 1 : 2, &regions[1], random_below(OTHER / 2), OTHER / 2,
                      value);
        if (random_below(2))
            CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
        finish();
    }
}

static void copy_somewhere(int agent)
{
    size_t a, n, b, m;
    struct region *from = any_region(), *to = &regions[(from - regions + 1) % REGIONS];
    bool fits = from != &regions[0]; /* as a whole, beside the other */
    any_range(from, &a, &n);
    any_range(to, &b, &m);
    size_t count = n < m ? n : m;
    if (!fits || random_below(2)) {
        CHECK_CL(clEnqueueSVMMemcpy(queues[agent], CL_TRUE, to->at + b, from->at + a, count, 0,
                                    NULL, NULL),
                 CL_SUCCESS);
    } else {
        cl_ulong from_first = a, to_first = b;
        REQUIRE_CL(clSetKernelArgSVMPointer(copy_kernel, 0, from->at));
        REQUIRE_CL(clSetKernelArg(copy_kernel, 1, sizeof from_first, &from_first));
        REQUIRE_CL(clSetKernelArgSVMPointer(copy_kernel, 2, to->at));
        REQUIRE_CL(clSetKernelArg(copy_kernel, 3, sizeof to_first, &to_first));
        CHECK_CL(clEnqueueNDRangeKernel(queues[agent], copy_kernel, 1, NULL, &count, NULL, 0, NULL,
                                        NULL),
                 CL_SUCCESS);
        CHECK_CL(clFinish(queues[agent]), CL_SUCCESS);
    }
    memcpy(to->oracle + b, from->oracle + a, count);
}

static void fill_somewhere(int agent, unsigned char value)
{
    size_t first, count;
    struct region *r = any_region();
    any_range(r, &first, &count);
    CHECK_CL(clEnqueueSVMMemFill(queues[agent], r->at + first, &value, 1, count, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(queues[agent]), CL_SUCCESS);
    memset(r->oracle + first, value, count);
}

static bool is_same(const struct region *r, size_t first, size_t count)
{
    return memcmp(r->at + first, r->oracle + first, count) == 0;
}

static void map_somewhere(unsigned char value)
{
    size_t first, count;
    struct region *r = any_region();
    bool discards = random_below(3) == 0;
    any_range(r, &first, &count);
    CHECK_CL(clEnqueueSVMMap(queues[random_below(AGENTS)], CL_TRUE,
                             discards ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ | CL_MAP_WRITE,
                             r->at + first, count, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(discards || is_same(r, first, count));
    for (size_t i = first; i < first + count; i += discards ? 1 : 1 + random_below(9000))
        r->at[i] = r->oracle[i] = value++;
    CHECK_CL(clEnqueueSVMUnmap(queues[0], r->at + first, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[0]), CL_SUCCESS);
}

static void migrate_somewhere(void)
{
    size_t first, count;
    struct region *r = any_region();
    any_range(r, &first, &count);
    const void *at = r->at + first;
    CHECK_CL(clEnqueueSVMMigrateMem(queues[random_below(AGENTS)], 1, &at, &count,
                                    random_below(2) ? CL_MIGRATE_MEM_OBJECT_HOST : 0, 0, NULL,
                                    NULL),
             CL_SUCCESS);
    finish();
}

static void check_all(int step)
{
    for (int i = 0; i < REGIONS; i++) {
        struct region *r = &regions[i];
        CHECK_CL(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_READ, r->at, r->bytes, 0, NULL, NULL),
                 CL_SUCCESS);
        if (!is_same(r, 0, r->bytes)) {
            printf("region %d is wrong after step %d\n", i, step);
            exit(1);
        }
        CHECK_CL(clEnqueueSVMUnmap(queues[0], r->at, 0, NULL, NULL), CL_SUCCESS);
    }
    finish();
}

static void create(struct region *r, size_t bytes)
{
    unsigned char zero = 0;
    r->bytes = bytes;
    r->at = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
    r->oracle = calloc(bytes, 1);
    REQUIRE(r->at && r->oracle);
    CHECK_CL(clEnqueueSVMMemFill(queues[1], r->at, &zero, 1, bytes, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queues[1]), CL_SUCCESS);
}

static void destroy(struct region *r)
{
    clSVMFree(context, r->at);
    free(r->oracle);
}

static void step(int number)
{
    int agent = (int)random_below(AGENTS);
    unsigned char value = (unsigned char)(number + 1);
    switch (random_below(9)) {
    case 0:
    case 1:
        add_somewhere(agent, value);
        break;
    case 2:
    case 3:
        add_at_once(value);
        break;
    case 4:
        copy_somewhere(agent);
        break;
    case 5:
        fill_somewhere(agent, value);
        break;
    case 6:
    case 7:
        map_somewhere(value);
        break;
    default:
        migrate_somewhere();
    }
}

int main(int argc, char **argv)
{
    const char *others = getenv("SAMEPAGE_TEST_DEVICES");
    setenv("SAMEPAGE_DEVICES", others ? others : "cpu,virtual:2,mem=" MEMORY, 1);
    if (argc > 1)
        seed = (unsigned)strtoul(argv[1], NULL, 10);
    printf("seed %u\n", seed);
    context = context_of_all(AGENTS, devices, queues, NULL, NULL);
    cl_program program = build(context, source, "-cl-std=CL3.0");
    add_kernel = get_kernel(program, "add");
    copy_kernel = get_kernel(program, "copy");
    clReleaseProgram(program);
    create(&regions[0], POOLED);
    create(&regions[1], OTHER);
    create(&regions[2], SMALL);
    for (int i = 0; i < STEPS; i++) {
        step(i);
        if (i % 20 == 19)
            check_all(i);
        if (i % 100 == 99) {
            destroy(&regions[0]);
            create(&regions[0], POOLED);
        }
    }
    for (int i = 0; i < REGIONS; i++)
        destroy(&regions[i]);
    clReleaseKernel(add_kernel);
    clReleaseKernel(copy_kernel);
    for (int i = 0; i < AGENTS; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return check_result();
}
