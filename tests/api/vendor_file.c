/* A vendor file that points nowhere and one that holds garbage do not keep the loader from the
 * right one beside them. (An empty one makes Khronos' loader load itself, and hang.) */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/samepage-vendors-XXXXXX";

static void write_file(const char *name, const char *content)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs(content, file);
    fclose(file);
}

static void remove_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

int main(int argc, char **argv)
{
    if (argc == 2) { /* the child: with the folder as OCL_ICD_VENDORS */
        struct check_setup setup;
        check_setup(&setup);
        check_finish(&setup);
        return check_result();
    }
    const char *vendors = getenv("OCL_ICD_VENDORS");
    REQUIRE(vendors != NULL);
    char path[4096], library[4096] = "";
    snprintf(path, sizeof path, "%s/samepage.icd", vendors);
    FILE *file = fopen(path, "r");
    REQUIRE(file && fgets(library, sizeof library, file));
    fclose(file);

    REQUIRE(mkdtemp(folder) != NULL);
    write_file("0-nowhere.icd", "/nonexistent/libsamepage.so\n");
    write_file("2-garbage.icd", "\x7f\x01\x02 garbage\n\n");
    write_file("3-samepage.icd", library);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        setenv("OCL_ICD_VENDORS", folder, 1);
        execl("/proc/self/exe", argv[0], "child", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    remove_file("0-nowhere.icd");
    remove_file("2-garbage.icd");
    remove_file("3-samepage.icd");
    rmdir(folder);
    return check_result();
}
