/* Commands that fail although nothing is wrong, while the process lives on: for tests of what
 * becomes of those that rely on them. On a GPU that happens where others have taken its memory.
 *
 * SAMEPAGE_VIRTUAL_FAILS=KIND:N:COUNT, for each virtual device and each of its processes: the N-th
 * command of that kind, counted from 1, and the COUNT - 1 that follow it, fail with -ENOMEM, with
 * nothing done. KIND is bind, arrival (a transfer to the device), departure (one to the host), init
 * (initial values of a program's variables), or any: a bind or an arrival. ":COUNT" may be
 * missing: 1. With "@D" behind it only virtual device D does so, counted from 0.
 *
 * SAMEPAGE_VIRTUAL_FAILS=beyond:N: the device has memory for N granules only, whatever it said.
 *
 * The loop thread alone comes here.
 */
#include <stdlib.h>
#include <string.h>

#include "device/process/virtual/virtual.h"

enum { BINDS = 1, ARRIVALS = 2, DEPARTURES = 4, INITS = 8 };

static struct {
    unsigned kinds; /* 0: it is off */
    uint64_t seen, first, end;
} fails;

void sp_virtual_fails_init(uint32_t ordinal)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } kinds[] = {{"bind:", BINDS},
                 {"arrival:", ARRIVALS},
                 {"departure:", DEPARTURES},
                 {"init:", INITS},
                 {"any:", BINDS | ARRIVALS}};
    const char *text = getenv("SAMEPAGE_VIRTUAL_FAILS");
    for (size_t i = 0; text && i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t length = strlen(kinds[i].name);
        if (strncmp(text, kinds[i].name, length) != 0)
            continue;
        char *end;
        fails.first = strtoull(text + length, &end, 10);
        fails.end = fails.first + (*end == ':' ? strtoull(end + 1, &end, 10) : 1);
        if (*end != '@' || strtoull(end + 1, NULL, 10) == ordinal)
            fails.kinds = kinds[i].kinds;
    }
}

static unsigned kind_of(const struct sp_command *command)
{
    switch (command->kind) {
    case SP_COMMAND_BIND_PRIVATE:
    case SP_COMMAND_BIND_HOME:
    case SP_COMMAND_BIND_PEER:
        return BINDS;
    case SP_COMMAND_TRANSFER:
        return command->range.destination == SP_PLACE_HOST ? DEPARTURES : ARRIVALS;
    case SP_COMMAND_INIT_GLOBALS:
        return INITS;
    default:
        return 0;
    }
}

uint64_t sp_virtual_fails_beyond(uint64_t granules)
{
    const char *text = getenv("SAMEPAGE_VIRTUAL_FAILS");
    uint64_t chosen =
        text && !strncmp(text, "beyond:", 7) ? strtoull(text + 7, NULL, 10) : granules;
    return chosen < granules ? chosen : granules;
}

bool sp_virtual_fails(const struct sp_command *command)
{
    if (!(fails.kinds & kind_of(command)))
        return false;
    fails.seen++;
    return fails.seen >= fails.first && fails.seen < fails.end;
}
