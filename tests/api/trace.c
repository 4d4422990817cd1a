/* The trace is whole lines of JSON however the process ends, and whatever the program's file is
 * called; `samepage stats` sums it up by the places that allocated, and leaves it where
 * SAMEPAGE_TRACE names a file. */
#include <signal.h>

#include "check_child.h"
#include "check_devices.h"

enum { COUNT = 4096, REGIONS = 20 };

/* What runs under the trace: one place that allocates many regions which move, another one whose
 * region moves less; then it ends as it is told. */
static int scenario(const char *end)
{
    cl_device_id devices[2];
    cl_command_queue queues[2];
    cl_uint *many[REGIONS];
    cl_context context = context_of_all(2, devices, queues, NULL, NULL);
    for (int i = 0; i < REGIONS; i++)
        REQUIRE(many[i] = clSVMAlloc(context, CL_MEM_READ_WRITE, COUNT, 0));
    cl_uint *one = clSVMAlloc(context, CL_MEM_READ_WRITE, 4 * COUNT, 0);
    REQUIRE(one);
    cl_uint value = 5;
    for (int i = 0; i <= REGIONS; i++) {
        cl_uint *p = i < REGIONS ? many[i] : one;
        const void *pointer = p;
        REQUIRE_CL(clEnqueueSVMMemFill(queues[0], p, &value, 4, i < REGIONS ? COUNT : 4 * COUNT, 0,
                                       NULL, NULL));
        REQUIRE_CL(clFinish(queues[0]));
        REQUIRE_CL(clEnqueueSVMMigrateMem(queues[1], 1, &pointer, NULL, 0, 0, NULL, NULL));
        REQUIRE_CL(clFinish(queues[1]));
    }
    if (!strcmp(end, "abort"))
        abort();
    if (!strcmp(end, "kill"))
        kill(getpid(), SIGKILL);
    for (int i = 0; i < REGIONS; i++)
        clSVMFree(context, many[i]);
    clSVMFree(context, one);
    for (int i = 0; i < 2; i++)
        clReleaseCommandQueue(queues[i]);
    clReleaseContext(context);
    return check_result();
}

/* One object a line: braces and strings are closed within it. */
static bool is_object(const char *line)
{
    int depth = 0;
    bool is_string = false;
    for (; *line && *line != '\n'; line++) {
        if (is_string && *line == '\\' && line[1])
            line++;
        else if (*line == '"')
            is_string = !is_string;
        else if (!is_string && (*line == '{' || *line == '}'))
            depth += *line == '{' ? 1 : -1;
        else if (!is_string && !strchr("abcdefghijklmnopqrstuvwxyz0123456789.-+:,", *line))
            return false;
    }
    return !is_string && depth == 0;
}

/* The lines that speak of `word`; each line must be whole. */
static int check_trace(const char *path, const char *word, bool is_ended)
{
    char *line = NULL, last[8] = "";
    size_t capacity = 0;
    int count = 0;
    FILE *file = fopen(path, "r");
    REQUIRE(file);
    CHECK(getline(&line, &capacity, file) > 0 && !strcmp(line, "[\n"));
    for (ssize_t length; (length = getline(&line, &capacity, file)) > 0;) {
        snprintf(last, sizeof last, "%s", line);
        if (!strcmp(line, "{}]\n"))
            break;
        if (line[length - 1] != '\n' || !is_object(line)) {
            fprintf(stderr, "not whole: %s\n", line);
            check_failed(__FILE__, __LINE__, "a line of the trace is not whole");
        }
        count += strstr(line, word) != NULL;
    }
    CHECK(!is_ended || !strcmp(last, "{}]\n"));
    free(line);
    fclose(file);
    return count;
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return scenario(argv[1]);
    char folder[] = "/tmp/samepage-test-XXXXXX", program[64], trace[64], text[16384];
    const char *tool = getenv("SAMEPAGE_TEST_TOOL");
    REQUIRE(tool && mkdtemp(folder));
    snprintf(program, sizeof program, "%s/a\"b\\c,d}", folder);
    snprintf(trace, sizeof trace, "%s/trace.json", folder);
    char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    REQUIRE(length > 0);
    own[length] = 0;
    REQUIRE(!symlink(own, program)); /* argv[0] is what the loader calls the program */
    setenv("SAMEPAGE_TRACE", trace, 1);
    setenv("SAMEPAGE_DEVICES", "cpu,virtual,mem=64M", 1);
    setenv("SAMEPAGE_PATHS", "fixed", 1); /* else what moves like its neighbours gets a home */
    static const char *const ends[] = {"well", "abort", "kill"};
    for (int i = 0; i < 3; i++) {
        const char *const words[] = {program, ends[i], NULL};
        int status = run_child(words, false, text, sizeof text);
        CHECK(i ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status));
        CHECK(check_trace(trace, "\"reason\":\"migration\"", i == 0) == REGIONS + 1);
        CHECK(check_trace(trace, "\"cat\":\"allocation\"", i == 0) >= REGIONS + 1);
        unlink(trace);
    }
    const char *const words[] = {tool, "stats", "--", program, "well", NULL};
    int status = run_child(words, false, text, sizeof text);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    const char *sites = strstr(text, "allocation sites"),
               *regions = strstr(text, "regions that moved most");
    const char *many = strstr(text, " 20 regions, 0.078 MiB large"),
               *one = strstr(text, " 1 regions, 0.016 MiB");
    if (!sites || !regions || !many || !one || !(sites < many && many < one && one < regions)) {
        fprintf(stderr, "--- samepage stats wrote:\n%s---\n", text);
        check_failed(__FILE__, __LINE__, "samepage stats does not name the sites in order");
    }
    CHECK(check_trace(trace, "transfer", true) > 0); /* it stayed */
    unlink(trace);
    unlink(program);
    rmdir(folder);
    return check_result();
}
