/* What a kernel prints on a device in a process of its own comes out of this process, wherever
 * standard output leads by then, and before the command is told as ended: more than fits into the
 * way there, too. */
#include <fcntl.h>
#include <unistd.h>

#include "check_program.h"

#define LINES 6000 /* of 30 bytes: three times the ring of text */

static const char source[] =
    "kernel void say(int round) {\n"
    "  printf(\"round %d, work-item %8d ok\\n\", round, (int)get_global_id(0)); }\n";

int main(void)
{
    static char text[64], seen[LINES];
    char path[] = "/tmp/samepage-prints-XXXXXX";
    struct check_setup setup;
    setenv("SAMEPAGE_DEVICES", "virtual", 1);
    check_setup(&setup);
    cl_program program = build(setup.context, source, NULL);
    cl_kernel kernel = get_kernel(program, "say");
    int file = mkstemp(path), before = dup(1);
    REQUIRE(file >= 0 && before >= 0);
    for (int round = 0; round < 3; round++) {
        const size_t global = LINES;
        fflush(stdout);
        REQUIRE(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0 && dup2(file, 1) == 1);
        CHECK_CL(clSetKernelArg(kernel, 0, sizeof round, &round), CL_SUCCESS);
        CHECK_CL(clEnqueueNDRangeKernel(setup.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL),
                 CL_SUCCESS);
        CHECK_CL(clFinish(setup.queue), CL_SUCCESS);
        dup2(before, 1);
        FILE *lines = fopen(path, "r");
        REQUIRE(lines);
        memset(seen, 0, sizeof seen);
        unsigned wrong = 0, count = 0;
        while (fgets(text, sizeof text, lines)) {
            int of_round, item;
            if (sscanf(text, "round %d, work-item %d ok", &of_round, &item) != 2 ||
                of_round != round || item < 0 || item >= LINES || seen[item]++)
                wrong++;
            count++;
        }
        fclose(lines);
        CHECK(wrong == 0);
        CHECK(count == LINES);
    }
    unlink(path);
    close(file);
    close(before);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    check_finish(&setup);
    return check_result();
}
