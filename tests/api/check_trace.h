/* Tests of what moved: a scenario runs in a process of its own with SAMEPAGE_TRACE set, and its
 * trace is read afterwards. Markers divide it into phases: check_trace_phase in the scenario starts
 * the next one. */
#ifndef CHECK_TRACE_H
#define CHECK_TRACE_H

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { CHECK_TRACE_PHASES = 16 };

struct check_trace {
    int phases; /* markers seen, plus one */
    struct {
        unsigned long long moved, prefetched, evicted, acquires, to_home, to_private;
    } phase[CHECK_TRACE_PHASES];
};

/* In the scenario: what was enqueued before belongs to the phase before; the queue is finished. */
__attribute__((unused)) static void check_trace_phase(cl_command_queue queue)
{
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    CHECK_CL(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
}

static void check_trace_line(struct check_trace *trace, const char *line)
{
    const char *bytes = strstr(line, "\"bytes\":");
    int p = trace->phases - 1;
    if (strstr(line, "\"cat\":\"command\"") && strstr(line, "\"name\":\"marker\""))
        trace->phases++;
    else if (strstr(line, "\"name\":\"acquire"))
        trace->phase[p].acquires++;
    else if (strstr(line, "\"cat\":\"path\""))
        strstr(line, "to home") ? trace->phase[p].to_home++ : trace->phase[p].to_private++;
    else if (strstr(line, "\"cat\":\"transfer\"") && bytes) {
        unsigned long long count = strtoull(bytes + strlen("\"bytes\":"), NULL, 10);
        if (strstr(line, "\"prefetch\""))
            trace->phase[p].prefetched += count;
        else if (strstr(line, "\"eviction\""))
            trace->phase[p].evicted += count;
        else
            trace->phase[p].moved += count;
    }
    REQUIRE(trace->phases <= CHECK_TRACE_PHASES);
}

/* Runs `scenario` in a child, before this process has used OpenCL, with one more variable of the
 * environment ("NAME=VALUE"; or NULL), and reads its trace. */
static struct check_trace check_trace_run(void (*scenario)(void), char *variable)
{
    struct check_trace trace = {.phases = 1};
    char path[] = "/tmp/samepage-trace-XXXXXX", line[4096];
    int status = 0, fd = mkstemp(path);
    REQUIRE(fd >= 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        setenv("SAMEPAGE_TRACE", path, 1);
        if (variable)
            putenv(variable);
        scenario();
        exit(check_result());
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    FILE *file = fdopen(fd, "r");
    REQUIRE(file);
    while (fgets(line, sizeof line, file))
        check_trace_line(&trace, line);
    fclose(file);
    unlink(path);
    return trace;
}

#endif
