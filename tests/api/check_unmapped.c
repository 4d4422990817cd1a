/* The checking mode finds that the host touches memory that is not mapped: by loads and stores,
 * through the C library, by system calls, behind an unmap; in SVM and in buffers; each once, with
 * place, region and fix. */
#include "check_run.h"

enum { BYTES = 10000 };

static struct run_setup setup;
static volatile unsigned char *p;

enum { ALLOCATE_LINE = __LINE__ + 3 };
static void allocate(void)
{
    p = clSVMAlloc(setup.context, 0, BYTES, 0);
    REQUIRE(p);
}

enum { STORE_LINE = __LINE__ + 3 };
static RUN_TOUCH void store(void)
{
    p[5000] = 1;
}
enum { LOAD_LINE = __LINE__ + 3 };
static RUN_TOUCH unsigned char load(void)
{
    return p[16];
}
enum { COPY_LINE = __LINE__ + 3 };
static RUN_TOUCH void copy(void *to, size_t n)
{
    memcpy(to, (void *)p, n);
}
enum { CALL_LINE = __LINE__ + 3 };
static RUN_TOUCH ssize_t call(int f)
{
    return read(f, (void *)p, 100);
}

static void CL_CALLBACK notify(const char *message, const void *info, size_t size, void *data)
{
    (void)info;
    (void)size;
    (void)data;
    printf("NOTIFIED %s\n", message);
    fflush(stdout);
    static int calls;
    if (calls++)
        return;
    /* It may call OpenCL, and be careless itself. */
    volatile char *own = clSVMAlloc(setup.context, 0, 100, 0);
    CHECK(own != NULL);
    own[5] = 1;
    clSVMFree(setup.context, (void *)own);
}

/* A map begins and ends while a kernel on the CPU uses another part of the buffer; when that has
 * ended, too, the part that was mapped is closed. */
static void map_beside_kernel(void)
{
    static const char source[] =
        "kernel void spin(global uint *p, uint rounds) {\n"
        "  uint x = get_global_id(0);\n"
        "  for (uint i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;\n"
        "  p[get_global_id(0)] = x;\n"
        "}\n";
    const cl_buffer_region part = {0, 4096};
    cl_uint rounds = 200000;
    size_t count = 1024;
    cl_int error;
    cl_mem buffer = clCreateBuffer(setup.context, 0, 4 * 4096, NULL, &error);
    REQUIRE_CL(error);
    cl_mem sub = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &error);
    REQUIRE_CL(error);
    cl_command_queue other =
        clCreateCommandQueueWithProperties(setup.context, setup.devices[0], NULL, &error);
    REQUIRE_CL(error);
    cl_kernel kernel = run_kernel(&setup, source, "spin");
    CHECK_CL(clSetKernelArg(kernel, 0, sizeof sub, &sub), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 1, sizeof rounds, &rounds), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup.queues[0], kernel, 1, NULL, &count, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFlush(setup.queues[0]), CL_SUCCESS);
    clSVMFree(setup.context, (void *)p);
    p = clEnqueueMapBuffer(other, buffer, CL_TRUE, CL_MAP_WRITE, 2 * 4096, 2 * 4096, 0, NULL, NULL,
                           &error);
    REQUIRE_CL(error);
    store();
    CHECK_CL(clEnqueueUnmapMemObject(other, buffer, (void *)p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(other), CL_SUCCESS);
    CHECK_CL(clFinish(setup.queues[0]), CL_SUCCESS);
    load();
    p = NULL;
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    CHECK_CL(clReleaseCommandQueue(other), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(sub), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
}

static void scenario(const char *name)
{
    bool is_told = !strcmp(name, "told");
    run_setup_with(&setup, is_told ? notify : NULL);
    allocate();
    if (!strcmp(name, "store") || is_told) {
        for (int i = 0; i < 5; i++)
            store();
        CHECK(p[5000] == 1);
    } else if (!strcmp(name, "load")) {
        load();
    } else if (!strcmp(name, "copy")) {
        static unsigned char bytes[BYTES];
        copy(bytes, (size_t)getpid() % 5 + 3000);
    } else if (!strcmp(name, "call")) {
        int zero = open("/dev/zero", O_RDONLY);
        CHECK(call(zero) == 100);
        close(zero);
    } else if (!strcmp(name, "behind")) {
        run_map(&setup, CL_MAP_WRITE, (void *)p, BYTES);
        store();
        run_unmap(&setup, (void *)p);
        store();
    } else if (!strcmp(name, "part")) {
        /* Only some pages are mapped; load() is on another one than store(). */
        run_map(&setup, CL_MAP_READ | CL_MAP_WRITE, (void *)(p + 4096), 4096);
        store();
        load();
        run_unmap(&setup, (void *)(p + 4096));
    } else if (!strcmp(name, "buffer")) {
        cl_int error;
        cl_mem buffer = clCreateBuffer(setup.context, 0, BYTES, NULL, &error);
        REQUIRE_CL(error);
        clSVMFree(setup.context, (void *)p);
        p = clEnqueueMapBuffer(setup.queues[0], buffer, CL_TRUE, CL_MAP_WRITE, 0, BYTES, 0, NULL,
                               NULL, &error);
        REQUIRE_CL(error);
        store();
        CHECK_CL(clEnqueueUnmapMemObject(setup.queues[0], buffer, (void *)p, 0, NULL, NULL),
                 CL_SUCCESS);
        CHECK_CL(clFinish(setup.queues[0]), CL_SUCCESS);
        load();
        CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
        p = NULL;
    } else if (!strcmp(name, "beside")) {
        map_beside_kernel();
    } else if (!strcmp(name, "right")) {
        run_map(&setup, CL_MAP_WRITE_INVALIDATE_REGION, (void *)p, BYTES);
        memset((void *)p, 7, BYTES);
        run_unmap(&setup, (void *)p);
        run_map(&setup, CL_MAP_READ, (void *)p, BYTES);
        run_map(&setup, CL_MAP_READ, (void *)p, 100);
        CHECK(load() == 7);
        run_unmap(&setup, (void *)p);
        CHECK(p[9999] == 7);
        run_unmap(&setup, (void *)p);
        unsigned char copied[BYTES] = {0};
        CHECK_CL(
            clEnqueueSVMMemcpy(setup.queues[0], CL_TRUE, copied, (void *)p, BYTES, 0, NULL, NULL),
            CL_SUCCESS);
        CHECK(copied[0] == 7 && copied[9999] == 7);
    }
    if (p)
        clSVMFree(setup.context, (void *)p);
    run_finish(&setup);
}

static void check_on(const char *devices)
{
    struct run run;
    run_self(&run, "1", devices, "store");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "the host wrote to memory that is not mapped, in store (");
    CHECK_SAYS(run, "check_unmapped.c:%d)", STORE_LINE);
    CHECK_SAYS(run, "byte 5000 of the SVM allocation of 10000 bytes at 0x");
    CHECK_SAYS(run, "allocated in allocate (");
    CHECK_SAYS(run, "check_unmapped.c:%d)", ALLOCATE_LINE);
    CHECK_SAYS(run, "fix: map the memory with clEnqueueSVMMap and CL_MAP_WRITE");

    run_self(&run, "1", devices, "load");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "the host read memory that is not mapped, in load (");
    CHECK_SAYS(run, "check_unmapped.c:%d)", LOAD_LINE);
    CHECK_SAYS(run, "byte 16 of");

    run_self(&run, "1", devices, "copy");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "the host read memory that is not mapped, in copy (");
    CHECK_SAYS(run, "check_unmapped.c:%d)", COPY_LINE);

    if (run_can_watch(true)) {
        run_self(&run, "1", devices, "call");
        CHECK_RUN_REPORTS(run, 1);
        CHECK_SAYS(run, "the host wrote to memory that is not mapped, in call (");
        CHECK_SAYS(run, "check_unmapped.c:%d)", CALL_LINE);
    }

    run_self(&run, "1", devices, "behind");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "in store (");

    run_self(&run, "1", devices, "part");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "in load (");

    run_self(&run, "1", devices, "buffer");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "the host read memory that is not mapped, in load (");
    CHECK_SAYS(run, "of the buffer of 10000 bytes at 0x");
    CHECK_SAYS(run, "fix: map the buffer with clEnqueueMapBuffer and CL_MAP_READ");

    run_self(&run, "1", devices, "beside");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "the host read memory that is not mapped, in load (");

    run_self(&run, "1", devices, "told");
    CHECK_RUN_REPORTS(run, 4);
    CHECK_SAYS(run, "\nsamepage check: the host wrote to memory that is not mapped, in notify (");
    CHECK_SAYS(run,
               "NOTIFIED samepage check: the host wrote to memory that is not mapped, in notify");
    CHECK_SAYS(run,
               "NOTIFIED samepage check: the host wrote to memory that is not mapped, in store");

    run_self(&run, "1", devices, "right");
    CHECK_RUN_REPORTS(run, 0);

    /* Off, nothing is said, whatever is done. */
    run_self(&run, "0", devices, "load");
    CHECK_RUN_REPORTS(run, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        scenario(argv[1]);
        return check_result();
    }
    run_require_watch();
    check_on(CPU_ONLY);
    check_on(ALL_DEVICES);
    return check_result();
}
