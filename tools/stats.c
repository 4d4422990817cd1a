/* samepage stats: runs a program with the trace on and sums up what was moved.
 *
 * The trace has one event a line with its members in a fixed order, as src/svm/trace.c writes
 * them, so it is read without a JSON parser.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

#define MAX_AGENTS 16
#define MAX_REASONS 8
#define SHOWN 10

struct region {
    char address[32], site[256];
    uint64_t bytes, moved, transfers, saved;
    uint64_t parts; /* of a pooled region; else 0 */
};

static struct {
    uint64_t moved[MAX_AGENTS][MAX_AGENTS], count[MAX_AGENTS][MAX_AGENTS];
    char reasons[MAX_REASONS][32];
    uint64_t by_reason[MAX_REASONS];
    uint64_t total, transfers, saved, commands, deaths, lost, to_home, to_private;
    struct region *regions;
    size_t num_regions;
} stats;

/* The text behind `"key":` up to the next `,` or `}`, without quotes. */
static bool member(const char *line, const char *key, char *value, size_t size)
{
    char pattern[48];
    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    const char *found = strstr(line, pattern);
    if (!found)
        return false;
    found += strlen(pattern);
    found += *found == '"';
    size_t length = strcspn(found, "\",}");
    snprintf(value, size, "%.*s", (int)length, found);
    return true;
}

static uint64_t number(const char *line, const char *key)
{
    char text[32];
    return member(line, key, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

/* The region of a line, entered at its first mention; an address that is allocated again is a new one. */
static struct region *region_of(const char *line, bool is_new)
{
    char address[32];
    if (!member(line, "region", address, sizeof address))
        return NULL;
    for (size_t i = stats.num_regions; !is_new && i-- > 0;)
        if (!strcmp(stats.regions[i].address, address))
            return &stats.regions[i];
    struct region *regions =
        realloc(stats.regions, (stats.num_regions + 1) * sizeof *stats.regions);
    if (!regions)
        return NULL;
    stats.regions = regions;
    struct region *region = &regions[stats.num_regions++];
    memset(region, 0, sizeof *region);
    snprintf(region->address, sizeof region->address, "%s", address);
    return region;
}

static void add_reason(const char *reason, uint64_t bytes)
{
    for (int i = 0; i < MAX_REASONS; i++) {
        if (!stats.reasons[i][0])
            snprintf(stats.reasons[i], sizeof stats.reasons[i], "%s", reason);
        if (!strcmp(stats.reasons[i], reason)) {
            stats.by_reason[i] += bytes;
            return;
        }
    }
}

static void read_line(const char *line)
{
    char category[32], reason[32];
    if (!member(line, "cat", category, sizeof category))
        return;
    if (!strcmp(category, "command")) {
        stats.commands++;
    } else if (!strcmp(category, "fault")) {
        bool is_loss = strstr(line, "\"name\":\"lost\"") != NULL;
        stats.deaths += !is_loss;
        if (is_loss)
            stats.lost += number(line, "end") - number(line, "first");
    } else if (!strcmp(category, "path")) {
        bool is_home = strstr(line, "\"name\":\"to home\"") != NULL;
        stats.to_home += is_home;
        stats.to_private += !is_home;
    } else if (!strcmp(category, "allocation")) {
        struct region *region = region_of(line, true);
        if (region) {
            region->bytes = number(line, "bytes");
            region->parts = number(line, "parts");
            member(line, "site", region->site, sizeof region->site);
        }
    } else if (!strcmp(category, "transfer")) {
        uint64_t from = number(line, "from"), to = number(line, "to");
        uint64_t bytes = number(line, "bytes");
        struct region *region = region_of(line, false);
        if (from >= MAX_AGENTS || to >= MAX_AGENTS)
            return;
        stats.moved[from][to] += bytes;
        stats.count[from][to]++;
        stats.total += bytes;
        stats.transfers++;
        if (member(line, "reason", reason, sizeof reason))
            add_reason(reason, bytes);
        if (region) {
            region->moved += bytes;
            region->transfers++;
        }
    } else if (!strcmp(category, "directory")) {
        uint64_t saved = number(line, "bytes") - number(line, "moved");
        struct region *region = region_of(line, false);
        stats.saved += saved;
        if (region)
            region->saved += saved;
    }
}

static int compare_regions(const void *a, const void *b)
{
    const struct region *x = a, *y = b;
    return (x->moved < y->moved) - (x->moved > y->moved);
}

/* "object+0xoffset" as a function and line, where addr2line is there and knows; else as it is. */
static void print_site(const char *site)
{
    char command[400], function[128] = "", line[200] = "";
    const char *plus = strrchr(site, '+');
    if (plus && !strchr(site, '\'')) {
        snprintf(command, sizeof command, "addr2line -f -e '%.*s' %s 2>/dev/null",
                 (int)(plus - site), site, plus + 1);
        FILE *pipe = popen(command, "r");
        if (pipe) {
            if (fgets(function, sizeof function, pipe))
                function[strcspn(function, "\n")] = 0;
            if (fgets(line, sizeof line, pipe))
                line[strcspn(line, "\n ")] = 0;
            pclose(pipe);
        }
    }
    if (*function && *function != '?')
        printf("%s (%s)", function, line);
    else
        printf("%s", *site ? site : "-");
}

static void print_stats(void)
{
    printf("\n%" PRIu64 " commands, %" PRIu64 " transfers, %.3f MiB moved; %.3f MiB were current already\n",
           stats.commands, stats.transfers, (double)stats.total / 1048576,
           (double)stats.saved / 1048576);
    if (stats.deaths)
        printf("%" PRIu64 " device processes died, %.3f MiB were lost with them\n", stats.deaths,
               (double)stats.lost / 1048576);
    if (stats.to_home)
        printf("%" PRIu64 " times data that went to and fro got a home, %" PRIu64
               " times it left it again\n",
               stats.to_home, stats.to_private);
    for (int i = 0; i < MAX_REASONS && stats.reasons[i][0]; i++)
        printf("  for %-12s %12.3f MiB\n", stats.reasons[i],
               (double)stats.by_reason[i] / 1048576);
    for (int from = 0; from < MAX_AGENTS; from++)
        for (int to = 0; to < MAX_AGENTS; to++)
            if (stats.count[from][to])
                printf("  agent %d to %d  %12.3f MiB in %" PRIu64 " transfers\n", from, to,
                       (double)stats.moved[from][to] / 1048576, stats.count[from][to]);
    qsort(stats.regions, stats.num_regions, sizeof *stats.regions, compare_regions);
    for (size_t i = 0; i < stats.num_regions && i < SHOWN && stats.regions[i].moved; i++) {
        struct region *region = &stats.regions[i];
        if (i == 0)
            printf("regions that moved most:\n");
        printf("  %-16s %12.3f MiB in %" PRIu64 " transfers, %.3f MiB large, from ",
               region->address, (double)region->moved / 1048576, region->transfers,
               (double)region->bytes / 1048576);
        print_site(region->site);
        if (region->parts)
            printf(", pooled in %" PRIu64 " parts", region->parts);
        printf("\n");
    }
}

int tool_stats(int argc, char **argv)
{
    char path[] = "/tmp/samepage-stats-XXXXXX", *line = NULL;
    size_t capacity = 0;
    if (argc < 2) {
        fputs("samepage stats: needs the program to run: samepage stats PROGRAM ARGS...\n", stderr);
        return 2;
    }
    int descriptor = mkstemp(path);
    if (descriptor < 0) {
        fprintf(stderr, "samepage stats: no file can be made in /tmp (%m)\n");
        return 1;
    }
    close(descriptor);
    pid_t child = fork();
    if (child == 0) {
        setenv("SAMEPAGE_TRACE", path, 1);
        execvp(argv[1], argv + 1);
        fprintf(stderr, "samepage stats: %s cannot be run (%m)\n", argv[1]);
        _exit(127);
    }
    int status = 1 << 8;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    FILE *file = fopen(path, "r");
    while (file && getline(&line, &capacity, file) > 0)
        read_line(line);
    free(line);
    if (file)
        fclose(file);
    unlink(path);
    print_stats();
    free(stats.regions);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
