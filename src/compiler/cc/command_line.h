/* samepage-cc with arguments: one compilation, link or code generation, for people, tests and the
 * build. */
#ifndef SP_COMPILER_CC_COMMAND_LINE_H
#define SP_COMPILER_CC_COMMAND_LINE_H

/* Returns the exit status: 0; 1 where the work failed, with the log at standard error; 2 for wrong
 * arguments. */
int sp_cc_command_line(int argc, char **argv);

#endif
