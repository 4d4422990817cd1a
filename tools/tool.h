/* The parts of the `samepage` command. Each runs one subcommand with its own arguments (argv[0] is
 * the subcommand's name) and returns the exit status. */
#ifndef SP_TOOLS_TOOL_H
#define SP_TOOLS_TOOL_H

int tool_devices(int argc, char **argv);
int tool_stats(int argc, char **argv);

#endif
