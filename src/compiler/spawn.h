/* Starting a program that the application never notices: no SIGCHLD, nothing for its wait(). */
#ifndef SP_COMPILER_SPAWN_H
#define SP_COMPILER_SPAWN_H

/* Runs the program at `path` (absolute) without arguments, with this environment and `control` as
 * its descriptor SP_CC_CONTROL_FD, /dev/null as its input and output, standard error kept, and
 * nothing else open; in a session of its own, in the root folder, with default signal handling.
 * Returns once the program is loaded: 0, or the negative errno that kept it from it. Calls must not
 * overlap. */
int sp_spawn_unnoticed(const char *path, char *const *environment, int control);

#endif
