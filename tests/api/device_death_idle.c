/* Device processes that are killed before their devices were given any work: the context hears of
 * it, and the devices take work afterwards, with data of every kind. */
#include <signal.h>
#include <unistd.h>

#include "check_devices.h"
#include "check_loss.h"
#include "check_processes.h"

enum { DEVICES = 3, COUNT = 1000 };

static const char source[] = "kernel void add(global uint *p) { p[get_global_id(0)] += 1; }\n";

/* Kills device processes of this test until `count` have been: they are started beside this, and
 * one that is killed takes its time to end, and comes again. */
static void kill_processes(int count)
{
    pid_t found[2 * DEVICES], killed[DEVICES];
    int num_killed = 0;
    while (num_killed < count) {
        int num_found = find_processes(getpid(), found, 2 * DEVICES);
        for (int i = 0; i < num_found && num_killed < count; i++) {
            bool was_killed = false;
            for (int k = 0; k < num_killed; k++)
                was_killed |= killed[k] == found[i];
            if (!was_killed && !kill(found[i], SIGKILL))
                killed[num_killed++] = found[i];
        }
    }
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
    cl_device_id devices[DEVICES];
    cl_command_queue queues[DEVICES];
    set_mark(getpid());
    setenv("SAMEPAGE_DEVICES", "cpu,virtual:2,mem=64M", 1);
    cl_context context = context_of_all(DEVICES, devices, queues, hear, &heard);
    kill_processes(DEVICES - 1);
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
