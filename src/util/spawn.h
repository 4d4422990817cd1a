/* Starting a program that the application never notices: no SIGCHLD, nothing for its wait(). */
#ifndef SP_UTIL_SPAWN_H
#define SP_UTIL_SPAWN_H

#include <stdbool.h>

/* The descriptor under which the program finds its control socket. */
#define SP_SPAWN_CONTROL_FD 3

struct sp_spawn {
    const char *path;         /* of the program, absolute */
    char *const *arguments;   /* NULL-terminated; the first is the program's name */
    char *const *environment; /* NULL-terminated */
    int control;              /* becomes SP_SPAWN_CONTROL_FD */
    bool keeps_output;        /* standard output stays the application's; else it is /dev/null */
    int *pidfd; /* may be NULL: gets a descriptor of the new process (close-on-exec), or -1
                   where the system knows none */
};

/* Runs a program with /dev/null as its input, standard error kept, and nothing else open; in a
 * session of its own, in the root folder, with default signal handling. Returns once the program is
 * loaded: 0, or the negative errno that kept it from it. */
int sp_spawn_unnoticed(const struct sp_spawn *spawn);

/* Closes every descriptor from `first` on; with raw system calls only, so that a process which
 * shares another one's memory may call it. */
void sp_close_from(int first);

/* The environment for such a program: ours, but for the test of failing allocations, which counts
 * those of this process. To be freed with free(); NULL when out of memory. */
char **sp_spawn_environment(void);

/* The path of a program: what the environment's `variable` says, else `name` in the folder of the
 * library that holds `symbol`. Absolute where it exists. To be freed with free(); NULL when out of
 * memory. */
char *sp_spawn_find(const char *variable, const char *name, const void *symbol);

#endif
