/* Whatever the cache folder is (a file, garbage, another's, gone), builds work and give what the
 * source says. */
#include "check_program.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64] = "/tmp/samepage_cache_XXXXXX";

/* Builds and runs in a process of its own, since the cache is opened once a process. */
static void check_build(const char *cache_dir, int value)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct check_setup setup;
        char options[64];
        setenv("SAMEPAGE_CACHE_DIR", cache_dir, 1);
        snprintf(options, sizeof options, "-DVALUE=%d", value);
        check_setup(&setup);
        cl_program program =
            build(setup.context, "__kernel void k(__global int *p) { p[0] = VALUE; }", options);
        CHECK(run_for_int(&setup, program, "k") == value);
        CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
        check_finish(&setup);
        _exit(check_result());
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Calls `change` for each file of the folder; returns how many there are. */
static int for_each(void (*change)(const char *path))
{
    int count = 0;
    DIR *directory = opendir(folder);
    struct dirent *entry;
    REQUIRE(directory);
    while ((entry = readdir(directory))) {
        char path[400];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        change(path);
        count++;
    }
    closedir(directory);
    return count;
}

static void leave(const char *path)
{
    (void)path;
}

static void flip(const char *path)
{
    int fd = open(path, O_RDWR);
    struct stat status;
    REQUIRE(fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 100);
    char byte;
    off_t place = status.st_size * 2 / 3;
    REQUIRE(pread(fd, &byte, 1, place) == 1);
    byte ^= 4;
    REQUIRE(pwrite(fd, &byte, 1, place) == 1);
    close(fd);
}

static void empty(const char *path)
{
    REQUIRE(truncate(path, 0) == 0);
}

static void garble(const char *path)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    REQUIRE(fd >= 0 && write(fd, "garbage garbage", 15) == 15);
    close(fd);
}

static void make_folder_of(const char *path)
{
    REQUIRE(unlink(path) == 0 && mkdir(path, 0700) == 0);
}

static void make_pipe_of(const char *path)
{
    rmdir(path);
    unlink(path);
    REQUIRE(mkfifo(path, 0600) == 0);
}

static void take_away(const char *path)
{
    if (unlink(path))
        rmdir(path);
}

int main(void)
{
    char path[128];
    struct stat status;
    REQUIRE(mkdtemp(folder));
    setenv("SAMEPAGE_CACHE_SIZE", "64", 1);

    /* A file in place of the folder, and below a file. */
    snprintf(path, sizeof path, "%s/file", folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    check_build(path, 1);
    strcat(path, "/below");
    check_build(path, 1);
    for_each(take_away);

    /* A folder that anybody can write to is not trusted. */
    REQUIRE(chmod(folder, 0777) == 0);
    check_build(folder, 2);
    CHECK(for_each(leave) == 0);
    REQUIRE(chmod(folder, 0700) == 0);
    if (geteuid() == 0) { /* nor is one of another user */
        REQUIRE(chown(folder, 12345, 12345) == 0);
        check_build(folder, 3);
        CHECK(for_each(leave) == 0);
        REQUIRE(chown(folder, 0, 0) == 0);
    } else {
        REQUIRE(chmod(folder, 0500) == 0);
        check_build(folder, 3);
        REQUIRE(chmod(folder, 0700) == 0);
    }

    /* It is used, and its damage is seen through. */
    check_build(folder, 4);
    CHECK(for_each(leave) == 3);
    check_build(folder, 4);
    CHECK(for_each(leave) == 3);
    setenv("SAMEPAGE_CPU", "x86-64-v2", 1); /* other code, kept beside it */
    check_build(folder, 4);
    CHECK(for_each(leave) == 6);
    unsetenv("SAMEPAGE_CPU");
    check_build(folder, 4);
    CHECK(for_each(leave) == 6);
    for_each(take_away);
    check_build(folder, 4);
    CHECK(for_each(leave) == 3);
    for_each(flip);
    check_build(folder, 4);
    for_each(empty);
    check_build(folder, 4);
    for_each(garble);
    check_build(folder, 4);
    CHECK(for_each(leave) == 3);
    for_each(make_folder_of);
    check_build(folder, 4);
    for_each(make_pipe_of);
    check_build(folder, 4);
    for_each(take_away);

    /* It is made, with what is above it, for this user alone. */
    snprintf(path, sizeof path, "%s/one/two", folder);
    check_build(path, 5);
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0700);
    /* Switched off, it is left alone. */
    setenv("SAMEPAGE_CACHE", "0", 1);
    for_each(leave);
    check_build(folder, 6);

    snprintf(path, sizeof path, "rm -r %s", folder);
    CHECK(system(path) == 0);
    return check_result();
}
