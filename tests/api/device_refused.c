/* A GPU that is listed because it was there the last time, and cannot be used any more, or is less
 * than it was, or fails at a command: its commands fail, or do not, and the context's error
 * callback says why, of contexts that were made before it was known and after. On the stand-in for
 * CUDA; each program is this one again. A GPU is the default device as long as it can be used. */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t told;
    char text[4096];
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};

static void CL_CALLBACK hear(const char *message, const void *info, size_t size, void *user_data)
{
    (void)info, (void)size, (void)user_data;
    pthread_mutex_lock(&heard.lock);
    size_t length = strlen(heard.text);
    snprintf(heard.text + length, sizeof heard.text - length, "%s\n", message);
    pthread_cond_broadcast(&heard.told);
    pthread_mutex_unlock(&heard.lock);
}

/* Waits for a message with these words, and forgets all. */
static void expect(const char *words)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 300;
    pthread_mutex_lock(&heard.lock);
    while (!strstr(heard.text, words) &&
           pthread_cond_timedwait(&heard.told, &heard.lock, &limit) == 0)
        ;
    if (!strstr(heard.text, words)) {
        check_failed(__FILE__, __LINE__, words);
        fprintf(stderr, "    is not in: %s\n", heard.text);
    }
    heard.text[0] = 0;
    pthread_mutex_unlock(&heard.lock);
}

static cl_bool is_available(cl_device_id device)
{
    cl_bool is_there = 2;
    CHECK_CL(clGetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof is_there, &is_there, NULL),
             CL_SUCCESS);
    return is_there;
}

static bool is_default(cl_device_id device)
{
    cl_device_id found = NULL;
    cl_uint count = 0;
    CHECK_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_DEFAULT, 1, &found, &count),
             CL_SUCCESS);
    CHECK(count == 1);
    return found == device;
}

/* The status of a fill. */
static cl_int fill(cl_context context, cl_device_id device)
{
    cl_int error, status = 12345, pattern = 7;
    cl_event event = NULL;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
    REQUIRE_CL(error);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
    REQUIRE_CL(error);
    if (!clEnqueueFillBuffer(queue, buffer, &pattern, 4, 0, 4096, 0, NULL, &event)) {
        clWaitForEvents(1, &event);
        status = check_status(event);
        clReleaseEvent(event);
    }
    clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue);
    return status;
}

/* The error of reading what a fill made. */
static cl_int read_back(cl_context context, cl_device_id device)
{
    cl_int error, pattern = 7;
    static char bytes[1 << 20];
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
    REQUIRE_CL(error);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof bytes, NULL, &error);
    REQUIRE_CL(error);
    CHECK_CL(clEnqueueFillBuffer(queue, buffer, &pattern, 4, 0, sizeof bytes, 0, NULL, NULL),
             CL_SUCCESS);
    error = clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof bytes, bytes, 0, NULL, NULL);
    clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue);
    return error;
}

static cl_context make_context(cl_device_id *device)
{
    cl_int error;
    cl_context context = clCreateContext(NULL, 1, device, hear, NULL, &error);
    REQUIRE_CL(error);
    return context;
}

static int be_program(const char *name)
{
    cl_device_id device;
    REQUIRE_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_GPU, 1, &device, NULL));
    cl_context context = make_context(&device);
    if (!strcmp(name, "works")) {
        char version[64] = "";
        size_t steps = 0;
        CHECK_CL(clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof version, version, NULL),
                 CL_SUCCESS);
        CHECK(strstr(version, " (CUDA 13.0)"));
        CHECK_CL(clGetDeviceInfo(device, CL_DEVICE_PROFILING_TIMER_RESOLUTION, sizeof steps, &steps,
                                 NULL),
                 CL_SUCCESS);
        CHECK(steps == 500);
        CHECK(fill(context, device) == CL_COMPLETE);
        CHECK(is_available(device) == CL_TRUE && is_default(device));
        pthread_mutex_lock(&heard.lock);
        CHECK(!heard.text[0]);
        pthread_mutex_unlock(&heard.lock);
    } else if (!strcmp(name, "refused")) {
        expect(" was lost: CUDA does not start: a fake error (CUDA error 803); after an update");
        CHECK(fill(context, device) == CL_OUT_OF_RESOURCES);
        CHECK(is_available(device) == CL_FALSE && !is_default(device));
        clReleaseContext(context);
        context = make_context(&device);
        expect("Fake GPU 0 cannot be used: CUDA does not start: a fake error (CUDA error 803); "
               "after an update of the driver its kernel module must be loaded again, or the "
               "machine restarted. Its commands fail with CL_OUT_OF_RESOURCES.");
        CHECK(fill(context, device) == CL_OUT_OF_RESOURCES);
    } else if (!strcmp(name, "reading fails")) {
        CHECK(read_back(context, device) < 0);
        expect("Fake GPU 0 failed at transferring: cuMemcpyDtoHAsync: a fake error (CUDA error "
               "999); nvidia-smi and the "
               "kernel's log may say more.");
        CHECK(is_available(device) == CL_TRUE);
    } else {
        expect("Fake GPU 0 is not what this program was told of it: 504 MiB of memory, not "
               "632. What needs more fails here; a program that starts now is told what is there.");
        CHECK(fill(context, device) == CL_COMPLETE);
        clReleaseContext(context);
        context = make_context(&device);
        expect("Fake GPU 0 is not what this program was told");
        CHECK(is_available(device) == CL_TRUE);
    }
    clReleaseContext(context);
    return check_result();
}

static void run(const char *name, const char *variable, const char *value)
{
    int status;
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (variable)
            setenv(variable, value, 1);
        execl("/proc/self/exe", "device_refused", name, (char *)NULL);
        _exit(127);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    if (status)
        check_failed(__FILE__, __LINE__, name);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/samepage-refused-XXXXXX", command[64];
    if (argc == 2)
        return be_program(argv[1]);
    REQUIRE(mkdtemp(folder));
    setenv("SAMEPAGE_CACHE_DIR", folder, 1);
    setenv("SAMEPAGE_DEVICES", "cpu,cuda:0", 1);
    setenv("FAKE_CUDA_INIT_MILLISECONDS", "300", 1); /* what is remembered comes first */
    run("works", NULL, NULL);
    run("less", "FAKE_CUDA_MEMORY", "0x38000000");
    run("works", NULL, NULL);
    run("reading fails", "FAKE_CUDA_FAILS", "cuMemcpyDtoHAsync=999");
    run("refused", "FAKE_CUDA_FAILS", "cuInit=803");
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK(system(command) == 0);
    return check_result();
}
