/* The device processes of an application, found by a mark that it had put into its environment
 * before it started them. */
#ifndef CHECK_PROCESSES_H
#define CHECK_PROCESSES_H

#include <ctype.h>
#include <dirent.h>
#include <unistd.h>

#include "check.h"

#define MARK "SAMEPAGE_TEST_MARK"

/* What a file of /proc holds. */
__attribute__((unused)) static size_t read_process(const char *process, const char *name,
                                                   char *text, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/%s", process, name);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, size, file) : 0;
    if (file)
        fclose(file);
    return length;
}

/* Those with MARK=value, `most` at most: how many. One that is ending has no mark any more. */
__attribute__((unused)) static int find_processes(int value, pid_t *found, int most)
{
    /* By their first argument: one that has started itself again has another name. */
    static const char program[] = "samepage-device";
    static char text[1 << 16];
    char mark[64];
    int count = 0, length = snprintf(mark, sizeof mark, MARK "=%d", value) + 1; /* with its end */
    DIR *folder = opendir("/proc");
    REQUIRE(folder);
    for (struct dirent *entry; (entry = readdir(folder)) && count < most;) {
        if (!isdigit((unsigned char)entry->d_name[0]) ||
            read_process(entry->d_name, "cmdline", text, sizeof text) < sizeof program ||
            memcmp(text, program, sizeof program))
            continue;
        size_t size = read_process(entry->d_name, "environ", text, sizeof text);
        if (memmem(text, size, mark, (size_t)length))
            found[count++] = atoi(entry->d_name);
    }
    closedir(folder);
    return count;
}

__attribute__((unused)) static void set_mark(int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(MARK, text, 1);
}

#endif
