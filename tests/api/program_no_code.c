/* A program that builds, and whose code then cannot be made: the launch fails, and why is told
 * once, to the context's callback or on standard error, and stands in the build log.
 *
 * The linker, which only code generation runs, is a script that does what each case needs to the
 * compiler. */
#include "check_program.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE_BYTES 4096

static const char source[] = "__kernel void first(__global int *p) { p[0] = 1; }\n"
                             "__kernel void second(__global int *p) { p[0] = 2; }\n";

static char folder[] = "/tmp/samepage_no_code_XXXXXX";

static struct {
    int count;
    char text[MESSAGE_BYTES];
} told;

static void CL_CALLBACK tell(const char *text, const void *info, size_t size, void *data)
{
    (void)info, (void)size, (void)data;
    told.count++;
    snprintf(told.text, sizeof told.text, "%s", text);
}

static void check_words(const char *what, const char *text, const char *words)
{
    if (strstr(text, words) && strstr(text, "Kernels first and second cannot run on "))
        return;
    fprintf(stderr, "%s without \"%s\": %s\n", what, words, text);
    CHECK(!"it says why");
}

static const char *log_of(cl_program program, cl_device_id device)
{
    static char log[MESSAGE_BYTES];
    CHECK_CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL),
             CL_SUCCESS);
    return log;
}

/* Launches both kernels, which have their code in common. */
static void launch(cl_context context, cl_device_id device, cl_program program, cl_int expected)
{
    cl_int error;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &error);
    REQUIRE_CL(error);
    cl_mem buffer = int_buffer(context, 1);
    for (int i = 0; i < 3; i++) {
        cl_kernel kernel = get_kernel(program, i ? "second" : "first");
        CHECK_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
        CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &(size_t){1}, NULL, 0, NULL, NULL),
                 expected);
        CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    }
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL(clReleaseCommandQueue(queue), CL_SUCCESS);
}

/* `words`: NULL where nobody looks at what is said. `is_tried_again`: each launch tells, as each
 * tries. */
static void check_launch(bool with_callback, const char *words, bool is_tried_again)
{
    cl_device_id device;
    cl_int error;
    REQUIRE_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_CPU, 1, &device, NULL));
    cl_context context =
        clCreateContext(NULL, 1, &device, with_callback ? tell : NULL, NULL, &error);
    REQUIRE_CL(error);
    cl_program program = build(context, source, NULL);
    CHECK(!*log_of(program, device));
    launch(context, device, program, CL_OUT_OF_RESOURCES);
    if (words) {
        check_words("log", log_of(program, device), words);
        CHECK(log_of(program, device)[strlen(log_of(program, device)) - 1] == '\n');
        CHECK(told.count == (!with_callback ? 0 : is_tried_again ? 3 : 1));
    }
    if (words && with_callback) {
        check_words("callback", told.text, words);
        CHECK(told.text[strlen(told.text) - 1] != '\n');
    }
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    CHECK_CL(clReleaseContext(context), CL_SUCCESS);
}

static void write_linker(const char *commands)
{
    char path[64];
    snprintf(path, sizeof path, "%s/linker", folder);
    FILE *script = fopen(path, "w");
    REQUIRE(script);
    fprintf(script, "#!/bin/sh\n%s\n", commands);
    REQUIRE(fclose(script) == 0);
    REQUIRE(chmod(path, 0700) == 0);
    setenv("SAMEPAGE_LLD", path, 1);
}

static void in_child(void (*check)(const void *data), const void *data)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        check(data);
        _exit(check_result());
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

struct cause {
    const char *commands, *words;
    bool is_tried_again;
};

static void check_cause(const void *data)
{
    const struct cause *cause = data;
    write_linker(cause->commands);
    setenv("SAMEPAGE_BUILD_SECONDS", "1", 1);
    check_launch(true, cause->words, cause->is_tried_again);
}

/* Nobody but standard error is there to be told. */
static void check_standard_error(const void *data)
{
    char path[64], text[MESSAGE_BYTES] = "";
    const struct cause *cause = data;
    int before = dup(STDERR_FILENO);
    snprintf(path, sizeof path, "%s/said", folder);
    FILE *said = fopen(path, "w+");
    REQUIRE(said && dup2(fileno(said), STDERR_FILENO) >= 0);
    write_linker(cause->commands);
    check_launch(false, cause->words, false);
    REQUIRE(dup2(before, STDERR_FILENO) >= 0);
    rewind(said);
    size_t got = fread(text, 1, sizeof text - 1, said);
    fclose(said);
    text[got] = 0;
    check_words("standard error", text, cause->words);
    CHECK(strncmp(text, "samepage: ", 10) == 0);
    CHECK(strchr(text, '\n') == text + got - 1); /* once, one line */
}

/* Source and program from the cache, so that only code generation asks for memory. */
static void check_memory(const void *data)
{
    (void)data;
    unsetenv("SAMEPAGE_LLD");
    setenv("SAMEPAGE_BUILD_MEMORY", "24", 1);
    check_launch(true, "The build needed more than 24 MiB; SAMEPAGE_BUILD_MEMORY", false);
}

int main(void)
{
    static const struct cause causes[] = {
        {"exit 1", "could not link the kernels (1)", false},
        {"sleep 2; exit 1", "could not link the kernels (1)", false}, /* waits, computes nothing */
        {"kill -KILL $PPID", "was killed", false},
        {"kill -SEGV $PPID; sleep 10", "crashed (signal 11", false},
        {"kill -KILL $(cut -d ' ' -f 4 /proc/$PPID/stat); sleep 10", "ended twice", true},
        {"while :; do :; done", "more than 1 seconds of processor time; SAMEPAGE_BUILD_SECONDS",
         false},
        {"sleep 100", "not ended after 10 seconds, 10 times the 1 seconds", false},
    };
    REQUIRE(mkdtemp(folder));
    setenv("SAMEPAGE_CACHE_DIR", folder, 1);
#ifdef __SANITIZE_ADDRESS__ /* which makes something of its own of the compiler's crash */
    setenv("ASAN_OPTIONS", "handle_segv=0:detect_leaks=0", 1);
#endif
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        in_child(check_cause, &causes[i]);
    in_child(check_standard_error, &causes[0]);
#if !defined(__SANITIZE_ADDRESS__) &&                                                              \
    !defined(__SANITIZE_THREAD__) /* they need it all themselves */
    in_child(check_memory, NULL);
#else
    (void)check_memory;
#endif
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return check_result();
}
