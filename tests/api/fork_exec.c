/* An application that uses OpenCL may fork and exec: the child program works by itself, a child
 * that only exits leaves the parent's objects and threads alone, and open files do not leak into
 * it. */
#include "check.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

static void use(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    cl_mem buffer = clCreateBuffer(setup.context, 0, 4096, NULL, &error);
    REQUIRE_CL(error);
    cl_uint pattern = 5, value = 0;
    CHECK_CL(clEnqueueFillBuffer(setup.queue, buffer, &pattern, 4, 0, 4096, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clEnqueueReadBuffer(setup.queue, buffer, CL_TRUE, 4000, 4, &value, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(value == 5);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    check_finish(&setup);
}

static int count_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    REQUIRE(folder != NULL);
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int wait_for(pid_t child)
{
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
    if (argc == 2) { /* the child program */
        CHECK(count_files() == atoi(argv[1]));
        use();
        return check_result();
    }
    char files[16];
    snprintf(files, sizeof files, "%d", count_files());
    use();
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            execl("/proc/self/exe", argv[0], files, (char *)NULL);
            _exit(127);
        }
        CHECK(wait_for(child) == 0);
        child = fork();
        REQUIRE(child >= 0);
        if (child == 0)
            exit(0);
        CHECK(wait_for(child) == 0);
        use();
    }
    return check_result();
}
