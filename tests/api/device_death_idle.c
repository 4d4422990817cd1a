/* Device processes that are killed before their devices were given any work: the context hears of
 * it, and the devices take work afterwards, with data of every kind. */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "check_devices.h"
#include "check_loss.h"

enum { DEVICES = 3, COUNT = 1000 };

#define MARK "SAMEPAGE_TEST_MARK"

static const char source[] = "kernel void add(global uint *p) { p[get_global_id(0)] += 1; }\n";

/* What a file of /proc holds, with a zero behind it. */
static size_t read_file(const char *pid, const char *name, char *text, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    return length;
}

/* Kills the device processes that have this test's mark in their environment until `count` have
 * been: they are started beside this, and one that is killed takes its time to end, and comes
 * again. */
static void kill_processes(const char *mark, int count)
{
    static char text[1 << 16];
    int killed[DEVICES], num_killed = 0;
    DIR *folder = opendir("/proc");
    REQUIRE(folder);
    while (num_killed < count) {
        struct dirent *entry = readdir(folder);
        if (!entry) {
            rewinddir(folder);
            continue;
        }
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        int process = atoi(entry->d_name), i = 0;
        while (i < num_killed && killed[i] != process)
            i++;
        if (i < num_killed)
            continue;
        read_file(entry->d_name, "comm", text, sizeof text);
        if (strncmp(text, "samepage-dev", 12))
            continue;
        size_t length = read_file(entry->d_name, "environ", text, sizeof text);
        if (memmem(text, length, mark, strlen(mark)) && !kill(process, SIGKILL))
            killed[num_killed++] = process;
    }
    closedir(folder);
}

static void use(cl_context context, cl_command_queue queue, cl_kernel kernel,
                cl_svm_mem_flags flags)
{
    size_t count = COUNT;
    cl_uint five = 5, wrong = 0;
    cl_uint *p = clSVMAlloc(context, flags, COUNT * 4, 0);
    REQUIRE(p);
    CHECK_CL(clEnqueueSVMMemFill(queue, p, &five, 4, COUNT * 4, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, p), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, p, COUNT * 4, 0, NULL, NULL), CL_SUCCESS);
    for (int i = 0; i < COUNT; i++)
        wrong += p[i] != 6;
    CHECK(wrong == 0);
    CHECK_CL(clEnqueueSVMUnmap(queue, p, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    clSVMFree(context, p);
}

int main(void)
{
    char mark[64], value[32];
    cl_device_id devices[DEVICES];
    cl_command_queue queues[DEVICES];
    snprintf(value, sizeof value, "%d", (int)getpid());
    snprintf(mark, sizeof mark, MARK "=%s", value);
    setenv(MARK, value, 1);
    setenv("SAMEPAGE_DEVICES", "cpu,virtual:2,mem=64M", 1);
    cl_context context = context_of_all(DEVICES, devices, queues, hear, &heard);
    kill_processes(mark, DEVICES - 1);
    wait_for_deaths(DEVICES - 1);
    cl_program program = build(context, source, "");
    cl_kernel kernel = get_kernel(program, "add");
    for (int i = 1; i < DEVICES; i++) {
        use(context, queues[i], kernel, CL_MEM_READ_WRITE);
        use(context, queues[i], kernel, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER);
    }
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    for (int i = 0; i < DEVICES; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return check_result();
}
