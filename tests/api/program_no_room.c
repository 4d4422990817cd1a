/* The compiler where files have no room: what it makes goes through pipes, so code is made without
 * any; where a file is needed, the log says where there is no room, and what to do.
 *
 * A full file system is a limit on the size of files, which needs no privileges: the compiler is
 * started through a script that sets it. */
#include "check_program.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/samepage_no_room_XXXXXX";

/* A kernel whose code is far larger than a block. */
static const char source[] = "__kernel void k(__global int *p) { p[0] = 5; }\n"
                             "__kernel void f(__global float *p)\n"
                             "{ p[0] = sin(p[1]) + pow(p[2], p[3]) + tgamma(p[4]); }\n";

/* `blocks`: of a file's greatest size. */
static void limit_files(const char *blocks)
{
    char path[64];
    snprintf(path, sizeof path, "%s/compiler", folder);
    FILE *script = fopen(path, "w");
    REQUIRE(script);
    fprintf(script, "#!/bin/sh\nulimit -f %s\nexec %s\n", blocks, getenv("SAMEPAGE_TEST_CC"));
    REQUIRE(fclose(script) == 0);
    REQUIRE(chmod(path, 0700) == 0);
    setenv("SAMEPAGE_CC", path, 1);
}

static void check_refused(struct check_setup *setup, cl_program program, cl_int error,
                          cl_int expected, const char *words)
{
    static char log[4096];
    CHECK_CL(error, expected);
    CHECK_CL(
        clGetProgramBuildInfo(program, setup->device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL),
        CL_SUCCESS);
    if (!strstr(log, words) || !strstr(log, "name another folder in TMPDIR")) {
        fprintf(stderr, "log without \"%s\": %s\n", words, log);
        CHECK(!"the log says where there is no room");
    }
}

static void check_code_needs_no_file(struct check_setup *setup)
{
    cl_program program = build(setup->context, source, NULL);
    CHECK(run_for_int(setup, program, "k") == 5);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
}

static void check_no_folder(struct check_setup *setup)
{
    cl_program program = source_program(setup->context, source);
    cl_int error = clBuildProgram(program, 0, NULL, NULL, NULL, NULL);
    check_refused(setup, program, error, CL_BUILD_PROGRAM_FAILURE, "in /nowhere/at all (");
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
}

static void check_full(struct check_setup *setup)
{
    cl_program program = source_program(setup->context, source);
    cl_int error = clBuildProgram(program, 0, NULL, NULL, NULL, NULL);
    check_refused(setup, program, error, CL_BUILD_PROGRAM_FAILURE, "in /tmp/");
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
}

/* A header that is given is a file for clang. */
static void check_large_header(struct check_setup *setup)
{
    char text[8192];
    const char *name = "given.h";
    memset(text, '\n', sizeof text - 1);
    text[sizeof text - 1] = 0;
    cl_program header = source_program(setup->context, text);
    cl_program program =
        source_program(setup->context, "#include \"given.h\"\n__kernel void k(void) {}\n");
    cl_int error = clCompileProgram(program, 0, NULL, NULL, 1, &header, &name, NULL, NULL);
    check_refused(setup, program, error, CL_COMPILE_PROGRAM_FAILURE, "in /tmp/");
    CHECK_CL(clReleaseProgram(header), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
}

/* The compiler is started once a process. */
static void in_child(const char *blocks, const char *temporary,
                     void (*check)(struct check_setup *setup))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct check_setup setup;
        setenv("SAMEPAGE_CACHE", "0", 1);
        setenv("TMPDIR", temporary, 1);
        limit_files(blocks);
        check_setup(&setup);
        check(&setup);
        check_finish(&setup);
        _exit(check_result());
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    REQUIRE(getenv("SAMEPAGE_TEST_CC"));
    REQUIRE(mkdtemp(folder));
    in_child("1", "/tmp", check_code_needs_no_file);
    in_child("0", "/tmp", check_full);
    in_child("1", "/tmp", check_large_header);
    in_child("unlimited", "/nowhere/at all", check_no_folder);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return check_result();
}
