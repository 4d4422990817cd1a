/* Files are included from -I folders and from where the application is; when one changes, so does
 * the build, cache or not. */
#include "check_program.h"

#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    REQUIRE(file);
    fputs(text, file);
    fclose(file);
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    char folder[] = "/tmp/samepage_include_XXXXXX", options[128];
    REQUIRE(mkdtemp(folder));
    REQUIRE(chdir(folder) == 0);
    REQUIRE(mkdir("with space", 0700) == 0);
    const char *source = "#include \"value.h\"\n"
                         "__kernel void k(__global int *p) { p[0] = VALUE; }\n";
    write_file("with space/value.h", "#define VALUE 11\n");
    write_file("value.h", "#define VALUE 22\n");

    cl_program program = source_program(setup.context, source);
    snprintf(options, sizeof options, "-I \"%s/with space\"", folder);
    CHECK_CL(clBuildProgram(program, 0, NULL, options, NULL, NULL), CL_SUCCESS);
    CHECK(run_for_int(&setup, program, "k") == 11);
    CHECK_CL(clBuildProgram(program, 0, NULL, "-I\"with space\"", NULL, NULL), CL_SUCCESS);
    CHECK(run_for_int(&setup, program, "k") == 11);
    CHECK_CL(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
    CHECK(run_for_int(&setup, program, "k") == 22);

    /* Old enough to be kept in the cache; then changed. */
    struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    for (int value = 100; value < 103; value++) {
        char text[64];
        snprintf(text, sizeof text, "#define VALUE %d\n", value);
        write_file("value.h", text);
        REQUIRE(utimensat(-100 /* AT_FDCWD */, "value.h", old, 0) == 0);
        for (int i = 0; i < 2; i++) {
            CHECK_CL(clBuildProgram(program, 0, NULL, "-I .", NULL, NULL), CL_SUCCESS);
            CHECK(run_for_int(&setup, program, "k") == value);
        }
    }
    REQUIRE(unlink("value.h") == 0);
    CHECK_CL(clBuildProgram(program, 0, NULL, "-I .", NULL, NULL), CL_BUILD_PROGRAM_FAILURE);

    unlink("with space/value.h");
    rmdir("with space");
    REQUIRE(chdir("/") == 0);
    rmdir(folder);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
