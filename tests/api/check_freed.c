/* The checking mode finds accesses after clSVMFree, clEnqueueSVMFree and the release of a buffer,
 * by the host and by kernels, of coarse-grain and fine-grain memory, and does not give freed
 * addresses out again at once; and writes to memory that is mapped for reading. */
#include <sys/stat.h>

#include "check_run.h"

enum { BYTES = 5000 };

static struct run_setup setup;
static volatile cl_uint *p;

enum { LOAD_LINE = __LINE__ + 3 };
static RUN_TOUCH cl_uint load(void)
{
    return p[4];
}
enum { STORE_LINE = __LINE__ + 3 };
static RUN_TOUCH void store(void)
{
    p[1000] = 1;
}
enum { END_LINE = __LINE__ + 3 };
static RUN_TOUCH void end(void)
{
    clSVMFree(setup.context, (void *)p);
}

static const char source[] = "kernel void use(global uint *p) { p[get_global_id(0)] += 1; }\n";

static RUN_TOUCH void use_freed(cl_uint device)
{
    size_t count = 16;
    cl_kernel kernel = run_kernel(&setup, source, "use");
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, (void *)p), CL_SUCCESS);
    end();
    CHECK_CL(
        clEnqueueNDRangeKernel(setup.queues[device], kernel, 1, NULL, &count, NULL, 0, NULL, NULL),
        CL_SUCCESS);
    clFinish(setup.queues[device]);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
}

/* Bytes of the file behind shared memory. */
static size_t file_bytes(void)
{
    for (int file = 3; file < 100; file++) {
        char path[64], name[64] = "";
        struct stat status;
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        if (readlink(path, name, sizeof name - 1) > 0 && strstr(name, "samepage-window") &&
            fstat(file, &status) == 0)
            return (size_t)status.st_blocks * 512;
    }
    CHECK(!"found the file");
    return 0;
}

/* What was freed keeps its addresses, but no memory. */
static void free_much(void)
{
    enum { TIMES = 100, LARGE = 1 << 20 };
    for (int i = 0; i < TIMES; i++) {
        void *large = clSVMAlloc(setup.context, 0, LARGE, 0);
        REQUIRE(large);
        run_map(&setup, CL_MAP_WRITE, large, LARGE);
        memset(large, 1, LARGE);
        run_unmap(&setup, large);
        clSVMFree(setup.context, large);
    }
    CHECK(file_bytes() < 10 * LARGE);
}

/* The kernel is enqueued, and has not even begun. */
static RUN_TOUCH void free_too_early(cl_uint device, bool is_twice)
{
    size_t count = 16;
    cl_int error;
    cl_event gate = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    cl_kernel kernel = run_kernel(&setup, source, "use");
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, (void *)p), CL_SUCCESS);
    CHECK_CL(
        clEnqueueNDRangeKernel(setup.queues[device], kernel, 1, NULL, &count, NULL, 1, &gate, NULL),
        CL_SUCCESS);
    end();
    if (is_twice)
        end();
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    CHECK_CL(clFinish(setup.queues[device]), CL_SUCCESS);
    CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
}

static void scenario(const char *name)
{
    run_setup_with(&setup, NULL);
    bool is_fine = !strcmp(name, "fine");
    p = clSVMAlloc(setup.context, is_fine ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0, BYTES, 0);
    REQUIRE(p);
    if (is_fine) {
        store();
        end();
        load();
    } else if (!strcmp(name, "free")) {
        end();
        load();
        store();
    } else if (!strcmp(name, "enqueued")) {
        void *list[] = {(void *)p};
        CHECK_CL(clEnqueueSVMFree(setup.queues[0], 1, list, NULL, NULL, 0, NULL, NULL), CL_SUCCESS);
        CHECK_CL(clFinish(setup.queues[0]), CL_SUCCESS);
        load();
    } else if (!strcmp(name, "enqueued_late")) {
        /* It is freed by another thread, for this call. */
        void *list[] = {(void *)p};
        cl_int error;
        cl_event gate = clCreateUserEvent(setup.context, &error), done = NULL;
        REQUIRE_CL(error);
        CHECK_CL(clEnqueueBarrierWithWaitList(setup.queues[0], 1, &gate, NULL), CL_SUCCESS);
        CHECK_CL(clEnqueueSVMFree(setup.queues[0], 1, list, NULL, NULL, 0, NULL, &done),
                 CL_SUCCESS);
        CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        CHECK_CL(clWaitForEvents(1, &done), CL_SUCCESS);
        CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);
        CHECK_CL(clReleaseEvent(done), CL_SUCCESS);
        load();
    } else if (!strcmp(name, "twice")) {
        end();
        end();
        end();
    } else if (!strcmp(name, "twice_enqueued")) {
        void *list[] = {(void *)p};
        end();
        CHECK_CL(clEnqueueSVMFree(setup.queues[0], 1, list, NULL, NULL, 0, NULL, NULL), CL_SUCCESS);
        CHECK_CL(clFinish(setup.queues[0]), CL_SUCCESS);
    } else if (!strcmp(name, "much")) {
        free_much();
        end();
    } else if (!strcmp(name, "too_early")) {
        free_too_early(setup.num_devices - 1, false);
    } else if (!strcmp(name, "twice_too_early")) {
        free_too_early(setup.num_devices - 1, true);
    } else if (!strcmp(name, "kernel")) {
        use_freed(setup.num_devices - 1);
    } else if (!strcmp(name, "again")) {
        /* Addresses are not used again while a program may still hold them. */
        volatile cl_uint *first = p;
        for (int i = 0; i < 1000; i++) {
            end();
            p = clSVMAlloc(setup.context, 0, BYTES, 0);
            REQUIRE(p && p != first);
        }
        end();
    } else if (!strcmp(name, "read_only")) {
        run_map(&setup, CL_MAP_READ, (void *)p, BYTES);
        load();
        store();
        store();
        run_unmap(&setup, (void *)p);
        end();
    } else if (!strcmp(name, "both_maps")) {
        /* One for writing beside it makes writing right, until that ends. */
        run_map(&setup, CL_MAP_READ, (void *)p, BYTES);
        run_map(&setup, CL_MAP_WRITE, (void *)(p + 1000), 4);
        store();
        run_unmap(&setup, (void *)(p + 1000));
        load();
        store();
        run_unmap(&setup, (void *)p);
        end();
    }
    run_finish(&setup);
}

static void check_on(const char *devices)
{
    static const char *const freed[] = {"free", "fine", "enqueued", "enqueued_late"};
    struct run run;
    for (int i = 0; i < 4; i++) {
        run_self(&run, "1", devices, freed[i]);
        CHECK_RUN_REPORTS(run, i == 0 ? 2u : 1u);
        CHECK_SAYS(run, "the host read memory that was freed, in load (");
        CHECK_SAYS(run, "check_freed.c:%d)", LOAD_LINE);
        CHECK_SAYS(run, "byte 16 of the SVM allocation of 5000 bytes at 0x");
        CHECK_SAYS(run, "allocated in scenario (");
        CHECK_SAYS(run, "fix: free the memory after its last use");
        if (i < 2)
            CHECK_SAYS(run, "freed in end (");
        else
            CHECK_SAYS(run, "freed in scenario (");
    }

    run_self(&run, "1", devices, "kernel");
    CHECK_RUN(run, run_reports(&run) == 1);
    CHECK_SAYS(run, "kernel 'use' on ");
    CHECK_SAYS(run, "enqueued in use_freed (");
    CHECK_SAYS(run, " used memory that was freed");

    run_self(&run, "1", devices, "too_early");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "kernel 'use' on ");
    CHECK_SAYS(run, "enqueued in free_too_early (");
    CHECK_SAYS(run, " used memory that was freed");
    CHECK_SAYS(run, ", freed in end (");

    static const char *const twice[] = {"twice", "twice_enqueued", "twice_too_early"};
    for (int i = 0; i < 3; i++) {
        run_self(&run, "1", devices, twice[i]);
        CHECK_RUN_REPORTS(run, i == 2 ? 2u : 1u);
        CHECK_SAYS(run, "the host freed memory that was freed, in %s (",
                   i == 1 ? "scenario" : "end");
        CHECK_SAYS(run, "byte 0 of the SVM allocation of 5000 bytes at 0x");
        CHECK_SAYS(run, ", freed in end (");
        CHECK_SAYS(run, "check_freed.c:%d)", END_LINE);
        CHECK_SAYS(run, "fix: free the memory once");
    }

    run_self(&run, "abort", devices, "again");
    CHECK_RUN_REPORTS(run, 0);
    run_self(&run, "abort", devices, "much");
    CHECK_RUN_REPORTS(run, 0);

    run_self(&run, "1", devices, "read_only");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "the host wrote to memory that is mapped for reading only, in store (");
    CHECK_SAYS(run, "check_freed.c:%d)", STORE_LINE);
    CHECK_SAYS(run, "fix: add CL_MAP_WRITE to the flags of the map");

    run_self(&run, "1", devices, "both_maps");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "mapped for reading only, in store (");
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
