/* samepage stats: runs a program with the trace on and sums up what was moved.
 *
 * The trace has one event a line with its members in a fixed order, as src/svm/trace.c writes
 * them, so it is read without a JSON parser.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <signal.h>
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

/* Which region an address means now. */
struct latest {
    char address[32]; /* first */
    size_t region;
};

/* All that was allocated at one place of the program. */
struct site {
    const char *name;
    uint64_t regions, bytes, moved, transfers;
};

static struct {
    uint64_t moved[MAX_AGENTS][MAX_AGENTS], count[MAX_AGENTS][MAX_AGENTS];
    char reasons[MAX_REASONS][32];
    uint64_t by_reason[MAX_REASONS];
    uint64_t total, transfers, saved, commands, deaths, lost, to_home, to_private;
    struct region *regions;
    size_t num_regions, capacity;
    void *latest; /* tree of struct latest by address */
} stats;

/* The text behind `"key":` up to the next `,` or `}`, or that of a string, without quotes and
 * escapes. */
static bool member(const char *line, const char *key, char *value, size_t size)
{
    char pattern[48];
    size_t length = 0;
    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    const char *found = strstr(line, pattern);
    if (!found)
        return false;
    found += strlen(pattern);
    bool is_string = *found == '"';
    found += is_string;
    for (; *found && length + 1 < size && !strchr(is_string ? "\"" : ",}", *found); found++) {
        if (is_string && *found == '\\' && found[1])
            found++;
        value[length++] = *found;
    }
    value[length] = 0;
    return true;
}

static uint64_t number(const char *line, const char *key)
{
    char text[32];
    return member(line, key, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

static int compare_addresses(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The entry of an address, with region SIZE_MAX where it is new; NULL without memory. */
static struct latest *latest_of(const char *address)
{
    struct latest *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    snprintf(entry->address, sizeof entry->address, "%s", address);
    entry->region = SIZE_MAX;
    struct latest **found = tsearch(entry, &stats.latest, compare_addresses);
    if (!found || *found != entry)
        free(entry);
    return found ? *found : NULL;
}

/* The region of a line, entered at its first mention; an address that is allocated again is a new
 * one. */
static struct region *region_of(const char *line, bool is_new)
{
    char address[32];
    if (!member(line, "region", address, sizeof address))
        return NULL;
    struct latest *latest = latest_of(address);
    if (!latest)
        return NULL;
    if (!is_new && latest->region != SIZE_MAX)
        return &stats.regions[latest->region];
    if (stats.num_regions == stats.capacity) {
        size_t capacity = stats.capacity ? 2 * stats.capacity : 64;
        struct region *regions = realloc(stats.regions, capacity * sizeof *regions);
        if (!regions)
            return NULL;
        stats.regions = regions;
        stats.capacity = capacity;
    }
    latest->region = stats.num_regions++;
    struct region *region = &stats.regions[latest->region];
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

static int compare_places(const void *a, const void *b)
{
    const struct region *x = a, *y = b;
    return strcmp(x->site, y->site);
}

static int compare_sites(const void *a, const void *b)
{
    const struct site *x = a, *y = b;
    return (x->moved < y->moved) - (x->moved > y->moved);
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

/* Where what was allocated moved most. Sorts the regions by their sites. */
static void print_sites(void)
{
    struct site *sites = calloc(stats.num_regions + 1, sizeof *sites), *site = sites;
    if (!sites)
        return;
    qsort(stats.regions, stats.num_regions, sizeof *stats.regions, compare_places);
    for (size_t i = 0; i < stats.num_regions; i++) {
        const struct region *region = &stats.regions[i];
        if (i > 0 && strcmp(region->site, site->name))
            site++;
        site->name = region->site;
        site->regions++;
        site->bytes += region->bytes;
        site->moved += region->moved;
        site->transfers += region->transfers;
    }
    size_t count = stats.num_regions ? (size_t)(site - sites) + 1 : 0;
    qsort(sites, count, sizeof *sites, compare_sites);
    for (size_t i = 0; i < count && i < SHOWN && sites[i].moved; i++) {
        if (i == 0)
            printf("allocation sites whose regions moved most:\n");
        printf("  %12.3f MiB in %" PRIu64 " transfers, %" PRIu64 " regions, %.3f MiB large, from ",
               (double)sites[i].moved / 1048576, sites[i].transfers, sites[i].regions,
               (double)sites[i].bytes / 1048576);
        print_site(sites[i].name);
        printf("\n");
    }
    free(sites);
}

static void print_stats(void)
{
    printf("\n%" PRIu64 " commands, %" PRIu64
           " transfers, %.3f MiB moved; %.3f MiB were current already\n",
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
        printf("  for %-12s %12.3f MiB\n", stats.reasons[i], (double)stats.by_reason[i] / 1048576);
    for (int from = 0; from < MAX_AGENTS; from++)
        for (int to = 0; to < MAX_AGENTS; to++)
            if (stats.count[from][to])
                printf("  agent %d to %d  %12.3f MiB in %" PRIu64 " transfers\n", from, to,
                       (double)stats.moved[from][to] / 1048576, stats.count[from][to]);
    print_sites();
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

static volatile pid_t child;

static void pass_on(int number)
{
    if (child > 0)
        kill(child, number);
}

int tool_stats(int argc, char **argv)
{
    char made[] = "/tmp/samepage-stats-XXXXXX", *line = NULL;
    const char *wanted = getenv("SAMEPAGE_TRACE"), *path = wanted && *wanted ? wanted : made;
    size_t capacity = 0;
    if (argc > 1 && !strcmp(argv[1], "--")) {
        argc--;
        argv++;
    }
    if (argc < 2) {
        fputs("samepage stats: needs the program to run: samepage stats PROGRAM ARGS...\n", stderr);
        return 2;
    }
    int descriptor = path == made ? mkstemp(made) : open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (descriptor < 0 && path != made) {
        fprintf(stderr, "samepage stats: SAMEPAGE_TRACE names %s, which cannot be written (%m)\n",
                path);
        return 1;
    }
    if (descriptor < 0) {
        fprintf(stderr, "samepage stats: no file can be made in /tmp (%m)\n");
        return 1;
    }
    close(descriptor);
    /* Ctrl-C is for the program; what it did until then is summed up all the same. */
    void (*old)(int) = signal(SIGINT, SIG_IGN);
    child = fork();
    if (child == 0) {
        signal(SIGINT, old);
        setenv("SAMEPAGE_TRACE", path, 1);
        execvp(argv[1], argv + 1);
        fprintf(stderr, "samepage stats: %s cannot be run (%m)\n", argv[1]);
        _exit(127);
    }
    signal(SIGTERM, pass_on);
    int status = 1 << 8;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    FILE *file = fopen(path, "r");
    while (file && getline(&line, &capacity, file) > 0)
        read_line(line);
    free(line);
    if (file)
        fclose(file);
    if (path == made)
        unlink(made);
    print_stats();
    tdestroy(stats.latest, free);
    free(stats.regions);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
