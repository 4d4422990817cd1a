/* An application that ends, in whatever way, while commands are held back in its device processes
 * for one that never ends: those processes end with it, nothing of it is left, and what is held
 * back of another application goes on. */
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_devices.h"
#include "check_processes.h"

enum { DEVICES = 3, COUNT = 1024, PARKED = 20 };

/* An end takes a few milliseconds; more than this is none. */
#define LIMIT_MS 5000

enum way { EXIT, QUICK_EXIT, UNDERSCORE_EXIT, KILLED, WAYS };

static const char *const names[WAYS] = {"exit", "quick_exit", "_exit", "killed"};

static const char source[] =
    "kernel void wait_for_flag(global atomic_uint *flag, global uint *p) {\n"
    "    while (!atomic_load_explicit(flag, memory_order_acquire, memory_scope_all_svm_devices)) "
    "{}\n"
    "    p[0] = 42;\n"
    "}\n"
    "kernel void step(global uint *p) { p[get_global_id(0)] += 1; }\n";

static struct {
    cl_context context;
    cl_device_id devices[DEVICES];
    cl_command_queue queues[DEVICES];
    cl_kernel wait_for_flag, step;
    cl_uint *flag, *p, *q;
    cl_event last; /* of what is held back */
} own;

static void set_up(void)
{
    own.context = context_of_all(DEVICES, own.devices, own.queues, NULL, NULL);
    cl_program program = build(own.context, source, "-cl-std=CL3.0");
    own.wait_for_flag = get_kernel(program, "wait_for_flag");
    own.step = get_kernel(program, "step");
    clReleaseProgram(program);
    own.flag = clSVMAlloc(
        own.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, 64, 0);
    own.p = clSVMAlloc(own.context, CL_MEM_READ_WRITE, COUNT * 4, 0);
    own.q = clSVMAlloc(own.context, CL_MEM_READ_WRITE, COUNT * 4, 0);
    REQUIRE(own.flag && own.p && own.q);
    cl_uint zero = 0;
    __atomic_store_n(own.flag, 0, __ATOMIC_SEQ_CST);
    CHECK_CL(clEnqueueSVMMemFill(own.queues[1], own.p, &zero, 4, COUNT * 4, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMemFill(own.queues[2], own.q, &zero, 4, COUNT * 4, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFinish(own.queues[1]), CL_SUCCESS);
    CHECK_CL(clFinish(own.queues[2]), CL_SUCCESS);
}

static cl_event enqueue_step(cl_command_queue queue, cl_uint *p, const cl_event *before)
{
    size_t count = COUNT;
    cl_event event = NULL;
    CHECK_CL(clSetKernelArgSVMPointer(own.step, 0, p), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, own.step, 1, NULL, &count, NULL, before ? 1 : 0, before,
                                    &event),
             CL_SUCCESS);
    return event;
}

/* One command runs, and a chain over both devices waits for it there. */
static void park(void)
{
    size_t one = 1;
    CHECK_CL(clSetKernelArgSVMPointer(own.wait_for_flag, 0, own.flag), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(own.wait_for_flag, 1, own.p), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(own.queues[1], own.wait_for_flag, 1, NULL, &one, NULL, 0, NULL,
                                    &own.last),
             CL_SUCCESS);
    for (int i = 0; i < PARKED; i++) {
        cl_event next = enqueue_step(own.queues[2 - i % 2], own.p, &own.last);
        clReleaseEvent(own.last);
        own.last = next;
    }
    /* What has come later has ended, so the second device has taken what came before. */
    cl_int error;
    const cl_queue_properties loose[] = {CL_QUEUE_PROPERTIES,
                                         CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    cl_command_queue queue =
        clCreateCommandQueueWithProperties(own.context, own.devices[2], loose, &error);
    REQUIRE_CL(error);
    cl_event other = enqueue_step(queue, own.q, NULL);
    CHECK_CL(clWaitForEvents(1, &other), CL_SUCCESS);
    clReleaseEvent(other);
    clReleaseCommandQueue(queue);
}

/* --- The application that ends -------------------------------------------------------------------
 */

static int end_in(enum way way, int ready, int go)
{
    char byte = 0;
    set_up();
    park();
    if (check_failures || write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1)
        return 1;
    if (way == UNDERSCORE_EXIT)
        _exit(0);
    if (way == QUICK_EXIT)
        quick_exit(0);
    if (way == EXIT)
        exit(0);
    for (;;)
        pause();
}

/* --- The one that goes on ------------------------------------------------------------------------
 */

/* Its device processes, as descriptors. */
static int open_processes(pid_t application, struct pollfd *opened, int most)
{
    pid_t found[2 * DEVICES];
    int count = find_processes(application, found, most);
    for (int i = 0; i < count; i++) {
        opened[i] = (struct pollfd){.events = POLLIN};
        opened[i].fd = (int)syscall(SYS_pidfd_open, found[i], 0);
        REQUIRE(opened[i].fd >= 0);
    }
    return count;
}

/* How many files of ours there are that would outlive us. */
static int count_left(void)
{
    int count = 0;
    DIR *folder = opendir("/dev/shm");
    if (!folder)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += strstr(entry->d_name, "samepage") != NULL;
    closedir(folder);
    return count;
}

static pid_t start(enum way way, char *program, int *ready, int *go)
{
    int to[2], from[2];
    REQUIRE(!pipe(to) && !pipe(from));
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (!child) {
        char arguments[3][16];
        snprintf(arguments[0], sizeof arguments[0], "%d", way);
        snprintf(arguments[1], sizeof arguments[1], "%d", from[1]);
        snprintf(arguments[2], sizeof arguments[2], "%d", to[0]);
        set_mark(getpid());
        close(to[1]);
        close(from[0]);
        execl("/proc/self/exe", program, arguments[0], arguments[1], arguments[2], (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    *ready = from[0];
    *go = to[1];
    return child;
}

static void another_ends(enum way way, char *program)
{
    int ready, go, status = 0, failures = check_failures;
    char byte = 0;
    struct pollfd processes[2 * DEVICES];
    pid_t child = start(way, program, &ready, &go);
    REQUIRE(read(ready, &byte, 1) == 1);
    int count = open_processes(child, processes, 2 * DEVICES);
    CHECK(count == DEVICES - 1);
    if (way == KILLED)
        CHECK(kill(child, SIGKILL) == 0);
    else
        CHECK(write(go, &byte, 1) == 1);
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(way == KILLED ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0);
    for (int i = 0; i < count; i++) {
        CHECK(poll(&processes[i], 1, LIMIT_MS) == 1);
        close(processes[i].fd);
    }
    close(ready);
    close(go);
    if (check_failures > failures)
        fprintf(stderr, "    where the application ended by: %s\n", names[way]);
}

int main(int argc, char **argv)
{
    setenv("SAMEPAGE_DEVICES", "cpu,virtual:2,mem=64M,threads=2", 1);
    setenv("SAMEPAGE_PATHS", "fixed", 0);
    if (argc == 4)
        return end_in((enum way)atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));
    int left = count_left();
    set_up();
    park();
    for (enum way way = 0; way < WAYS; way++)
        another_ends(way, argv[0]);
    CHECK(count_left() == left);
    /* And here all is as it was. */
    cl_int held = CL_COMPLETE;
    CHECK_CL(clGetEventInfo(own.last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof held, &held, NULL),
             CL_SUCCESS);
    CHECK(held > CL_COMPLETE);
    __atomic_store_n(own.flag, 1, __ATOMIC_SEQ_CST);
    CHECK_CL(clWaitForEvents(1, &own.last), CL_SUCCESS);
    clReleaseEvent(own.last);
    CHECK_CL(clEnqueueSVMMap(own.queues[0], CL_TRUE, CL_MAP_READ, own.p, COUNT * 4, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(own.p[0] == 42 + PARKED && own.p[COUNT - 1] == PARKED);
    CHECK_CL(clEnqueueSVMUnmap(own.queues[0], own.p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(own.queues[0]), CL_SUCCESS);
    clSVMFree(own.context, own.flag);
    clSVMFree(own.context, own.p);
    clSVMFree(own.context, own.q);
    clReleaseKernel(own.wait_for_flag);
    clReleaseKernel(own.step);
    for (int i = 0; i < DEVICES; i++)
        clReleaseCommandQueue(own.queues[i]);
    clReleaseContext(own.context);
    return check_result();
}
