/* samepage: what is here, and what a program's shared memory does. See samepage(1). */
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const char usage[] =
    "Usage: samepage COMMAND\n"
    "\n"
    "  devices                  the devices, the window, the levels of shared virtual memory\n"
    "  stats PROGRAM ARGS...    runs a program and says what was moved between whom, and why\n"
    "\n"
    "  --help, --version\n";

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (argc == 3 && !strcmp(argv[2], "--help"))
        command = argv[2];
    if (!strcmp(command, "devices"))
        return tool_devices(argc - 1, argv + 1);
    if (!strcmp(command, "stats"))
        return tool_stats(argc - 1, argv + 1);
    if (!strcmp(command, "--help") || !strcmp(command, "-h")) {
        fputs(usage, stdout);
        return 0;
    }
    if (!strcmp(command, "--version")) {
        puts("samepage " SP_VERSION);
        return 0;
    }
    if (*command)
        fprintf(stderr, "samepage: there is no command '%s'\n", command);
    fputs(usage, stderr);
    return 2;
}
