/* A build that never ends, and one that eats memory, are ended with a log; the next build is fine.
 * Code for a processor that does not exist is refused. */
#include "check_program.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A table of 2^27 numbers: its expression does not fit. */
static const char hungry[] =
    "#define A0 1,\n"
    "#define A1 A0 A0 A0 A0 A0 A0 A0 A0\n#define A2 A1 A1 A1 A1 A1 A1 A1 A1\n"
    "#define A3 A2 A2 A2 A2 A2 A2 A2 A2\n#define A4 A3 A3 A3 A3 A3 A3 A3 A3\n"
    "#define A5 A4 A4 A4 A4 A4 A4 A4 A4\n#define A6 A5 A5 A5 A5 A5 A5 A5 A5\n"
    "#define A7 A6 A6 A6 A6 A6 A6 A6 A6\n#define A8 A7 A7 A7 A7 A7 A7 A7 A7\n"
    "#define A9 A8 A8 A8 A8 A8 A8 A8 A8\n"
    "__constant int t[] = { A9 0 };\n"
    "__kernel void k(__global int *p) { p[0] = t[p[0]]; }\n";

static void check_refused(struct check_setup *setup, const char *source, const char *words)
{
    static char log[1 << 20];
    cl_program program = source_program(setup->context, source);
    CHECK_CL(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
    CHECK_CL(
        clGetProgramBuildInfo(program, setup->device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL),
        CL_SUCCESS);
    if (!strstr(log, words)) {
        fprintf(stderr, "log: %s\n", log);
        CHECK(!"the log says why");
    }
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
}

/* An included pipe that nobody ever writes to: reading it never ends. */
static void check_time(struct check_setup *setup)
{
    char folder[] = "/tmp/samepage_limits_XXXXXX", pipe[64], source[256];
    REQUIRE(mkdtemp(folder));
    snprintf(pipe, sizeof pipe, "%s/pipe.h", folder);
    REQUIRE(mkfifo(pipe, 0600) == 0);
    snprintf(source, sizeof source, "#include \"%s\"\n__kernel void k(void) {}\n", pipe);
    check_refused(setup, source, "1 seconds");
    unlink(pipe);
    rmdir(folder);
}

static void check_memory(struct check_setup *setup)
{
    check_refused(setup, hungry, "400 MiB");
}

static void check_no_processor(const char *name)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct check_setup setup;
        setenv("SAMEPAGE_CPU", name, 1);
        check_setup(&setup);
        check_refused(&setup, "__kernel void k(void) {}", "SAMEPAGE_CPU is 'x86-64-v9'");
        check_finish(&setup);
        _exit(check_result());
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Limits are read once a process. */
static void check_with(const char *name, const char *limit, void (*check)(struct check_setup *))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct check_setup setup;
        setenv(name, limit, 1);
        check_setup(&setup);
        check(&setup);
        cl_program program =
            build(setup.context, "__kernel void k(__global int *p) { p[0] = 6; }", "-DLIMITS");
        CHECK(run_for_int(&setup, program, "k") == 6);
        CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
        check_finish(&setup);
        _exit(check_result());
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    check_no_processor("x86-64-v9");
    check_with("SAMEPAGE_BUILD_SECONDS", "1", check_time);
#if !defined(__SANITIZE_ADDRESS__) &&                                                              \
    !defined(__SANITIZE_THREAD__) /* they need it all themselves */
    check_with("SAMEPAGE_BUILD_MEMORY", "400", check_memory);
#else
    (void)check_memory;
#endif
    return check_result();
}
