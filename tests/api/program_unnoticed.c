/* The application's signals, children and descriptors never show that a compiler runs; killed, it
 * comes back. */
#include "check_program.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

static char mark[64];

/* The process whose environment has our mark, is not us, and leads a session: samepage-cc, and not
 * a child of it that is about to end. */
static pid_t find_compiler(void)
{
    pid_t found = 0;
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    REQUIRE(folder);
    while ((entry = readdir(folder))) {
        char path[300], text[65536];
        pid_t process = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        if (!process || process == getpid() || getsid(process) != process)
            continue;
        snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
        int fd = open(path, O_RDONLY);
        ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text);
        if (fd >= 0)
            close(fd);
        if (size > 0 && memmem(text, (size_t)size, mark, strlen(mark)))
            found = process;
    }
    closedir(folder);
    return found;
}

static void check_build(struct check_setup *setup, int value)
{
    char options[64];
    snprintf(options, sizeof options, "-DVALUE=%d", value);
    cl_program program =
        build(setup->context, "__kernel void k(__global int *p) { p[0] = VALUE; }", options);
    CHECK(run_for_int(setup, program, "k") == value);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
}

int main(void)
{
    struct check_setup setup;
    snprintf(mark, sizeof mark, "unnoticed-%ld", (long)getpid());
    REQUIRE(setenv("SAMEPAGE_TEST_MARK", mark, 1) == 0);
    setenv("SAMEPAGE_CACHE", "0", 1);
    signal(SIGCHLD, count_signal);
    signal(SIGPIPE, count_signal);
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    check_setup(&setup);
    check_build(&setup, 1);

    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    pid_t compiler = find_compiler();
    REQUIRE(compiler > 0);
    /* It has none of our descriptors: the pipe ends when we close it. */
    close(pipe_ends[1]);
    char byte;
    CHECK(read(pipe_ends[0], &byte, 1) == 0);
    CHECK(kill(compiler, SIGKILL) == 0);
    check_build(&setup, 2);
    pid_t second = find_compiler();
    CHECK(second > 0 && second != compiler);
    CHECK_CL(clUnloadPlatformCompiler(setup.platform), CL_SUCCESS);
    check_build(&setup, 3);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    CHECK(signals == 0);
    check_finish(&setup);
    return check_result();
}
