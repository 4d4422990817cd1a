/* Each allocation in turn fails once: the call that needed it gives an error of its kind and
 * changes nothing, and the same call then succeeds. */
#include "check_program.h"

#include <sys/wait.h>
#include <unistd.h>

#define MAX_ALLOCATIONS 2000

/* Some failures are borne in silence (the cache's, a thread's). So many allocations in a row that
 * nobody complained about are taken for the end. */
#define QUIET_ENOUGH 60

/* What a child ends with that saw a failure and got over it. */
#define FAILED_WELL 3

static int failures;

/* A call may fail for want of memory once; then it must succeed. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        cl_int try_error = (call);                                                                 \
        if (try_error == CL_OUT_OF_HOST_MEMORY || try_error == CL_OUT_OF_RESOURCES ||              \
            try_error == CL_MEM_OBJECT_ALLOCATION_FAILURE)                                         \
            failures++, try_error = (call);                                                        \
        if (try_error != CL_SUCCESS) {                                                             \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, (int)try_error);         \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define TRY_MAKE(variable, call)                                                                   \
    do {                                                                                           \
        cl_int make_error = CL_SUCCESS, *error = &make_error;                                      \
        (variable) = (call);                                                                       \
        if (!(variable) &&                                                                         \
            (make_error == CL_OUT_OF_HOST_MEMORY || make_error == CL_OUT_OF_RESOURCES ||           \
             make_error == CL_MEM_OBJECT_ALLOCATION_FAILURE))                                      \
            failures++, (variable) = (call);                                                       \
        if (!(variable)) {                                                                         \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, (int)make_error);        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static int all_of_it(void)
{
    const char *source = "__global int g = 2;\n"
                         "__kernel void k(__global int *p, __local int *l)\n"
                         "{ l[0] = g; barrier(CLK_LOCAL_MEM_FENCE); p[0] = l[0] + 40; }\n";
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program, loaded;
    cl_kernel kernel, clone;
    cl_mem buffer;
    cl_uint count = 0;
    size_t one = 1, size;
    int value = 0;
    cl_int status;
    for (int i = 0; i < 3 && !count; i++) /* a loader may drop a platform that fails */
        clGetPlatformIDs(1, &platform, &count);
    if (!count)
        return FAILED_WELL;
    TRY(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    TRY_MAKE(context, clCreateContext(NULL, 1, &device, NULL, NULL, error));
    TRY_MAKE(queue, clCreateCommandQueue(context, device, 0, error));
    TRY_MAKE(program, clCreateProgramWithSource(context, 1, &source, NULL, error));
    TRY(clBuildProgram(program, 0, NULL, "-cl-std=CL2.0 -D A=\"b c\" -I /", NULL, NULL));
    TRY(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL));
    unsigned char *bytes = malloc(size);
    TRY(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL));
    TRY_MAKE(loaded, clCreateProgramWithBinary(context, 1, &device, &size,
                                               (const unsigned char **)&bytes, &status, error));
    free(bytes);
    TRY(clBuildProgram(loaded, 0, NULL, NULL, NULL, NULL));
    TRY_MAKE(kernel, clCreateKernel(loaded, "k", error));
    TRY_MAKE(buffer, clCreateBuffer(context, 0, 64, NULL, error));
    TRY(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    TRY(clSetKernelArg(kernel, 1, 64, NULL));
    TRY(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(void *), &(void *){NULL}));
    TRY_MAKE(clone, clCloneKernel(kernel, error));
    TRY(clEnqueueNDRangeKernel(queue, clone, 1, NULL, &one, NULL, 0, NULL, NULL));
    TRY(clFinish(queue));
    TRY(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof value, &value, 0, NULL, NULL));
    clReleaseKernel(clone);
    clReleaseKernel(kernel);
    clReleaseProgram(loaded);
    clReleaseProgram(program);
    clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    /* A command whose memory ran out while it ran did not do its work, and said so in its event. */
    if (value != 42 && value != 0)
        return 1;
    return failures || !value ? FAILED_WELL : 0;
}

int main(int argc, char **argv)
{
    int first = argc > 1 ? atoi(argv[1]) : 1, last = argc > 1 ? first : MAX_ALLOCATIONS;
    for (int n = first, quiet = 0; n <= last && quiet < QUIET_ENOUGH; n++) {
        char text[16];
        int status = -1;
        snprintf(text, sizeof text, "%d", n);
        pid_t child = fork();
        if (child == 0) {
            setenv("SAMEPAGE_FAIL_ALLOC", text, 1);
            exit(all_of_it());
        }
        REQUIRE(waitpid(child, &status, 0) == child);
        bool failed_well = WIFEXITED(status) && WEXITSTATUS(status) == FAILED_WELL;
        if (status && !failed_well) {
            fprintf(stderr, "allocation %d: status %#x\n", n, status);
            CHECK(!"survives it");
        }
        quiet = failed_well ? 0 : quiet + 1;
        if (n == last || quiet == QUIET_ENOUGH)
            printf("%d allocations\n", n - quiet);
    }
    return check_result();
}
