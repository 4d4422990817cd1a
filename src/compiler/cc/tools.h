/* Running Clang and lld, and the fresh folder with the few files that they need.
 *
 * A tool is a program, or a function of this one that is called in a process forked for it; either
 * has standard input, output and error, and no other descriptor. It gets the limits that this
 * process has, except that Clang has the stack which it counts on and nobody leaves a core file,
 * and dies with it. What it says and what it makes are read while its standard input is fed, so
 * that neither side waits for the other.
 *
 * What they make comes through a pipe, and lld reads the object that way: a file system without
 * room cannot fail that, nor end lld by SIGBUS, which maps its output. */
#ifndef SP_COMPILER_CC_TOOLS_H
#define SP_COMPILER_CC_TOOLS_H

#include "compiler/cc/text.h"

#include <stdbool.h>
#include <stddef.h>

struct sp_cc_folder {
    char *path; /* owned */
};

/* Makes a folder of mode 700 under TMPDIR or /tmp. 0 or -errno. */
int sp_cc_folder_create(struct sp_cc_folder *folder);

/* The same for the server, named and locked so that a later server can tell whether this one still
 * runs. The lock ends with the process. First removes the folders of this user's servers that were
 * killed. */
int sp_cc_folder_create_server(struct sp_cc_folder *folder);

/* Removes the folder and all in it. */
void sp_cc_folder_destroy(struct sp_cc_folder *folder);

/* Writes `name` below the folder, creating sub-folders. -EINVAL for a name that is empty, absolute,
 * or leaves the folder. */
int sp_cc_folder_write(const struct sp_cc_folder *folder, const char *name, const void *bytes,
                       size_t size);

/* The whole file. 0 or -errno. */
int sp_cc_read_file(const char *path, struct sp_cc_text *bytes);
int sp_cc_write_file(const char *path, const void *bytes, size_t size);

/* A tool that is part of this program: does what its command line says, from its name on, and
 * returns its exit status. Called once in a process of its own (linked_tools/linked_tools.h). */
typedef int sp_cc_linked_tool(int count, char **words);

struct sp_cc_tool {
    const char *name;          /* the first word of its command line: a path, unless it is linked */
    sp_cc_linked_tool *linked; /* NULL: a program */
};

/* Makes Clang and lld parts of this program. Once, before any tool is run. */
void sp_cc_use_linked_tools(sp_cc_linked_tool *clang, sp_cc_linked_tool *lld);

/* The program that the environment names, else what is part of this program, else the program found
 * when this one was built. */
struct sp_cc_tool sp_cc_clang(void);
struct sp_cc_tool sp_cc_lld(void);

/* The path of `name` in the folder of this program; owned by the caller. */
char *sp_cc_path_beside(const char *name);

/* The folder with Clang's own headers: that of the bundle which this program is part of, else that
 * of the Clang found when it was built; owned by the caller. NULL: OpenCL's are in neither. */
char *sp_cc_clang_resources(void);

/* A file that names standard input, for a tool that needs one. */
#define SP_CC_STANDARD_INPUT "/proc/self/fd/0"

/* Runs `tool` with the words behind its name, and `input` at its standard input; what it says goes
 * to `said`, what it writes to standard output to `made`. Returns its exit status (0 to 255), 128 +
 * the signal that ended it, or -errno where it could not be started. */
int sp_cc_run_tool(const struct sp_cc_tool *tool, const struct sp_cc_strings *words,
                   const void *input, size_t input_size, struct sp_cc_text *made,
                   struct sp_cc_text *said);

/* Whether what a tool said is that it ran out of memory. */
bool sp_cc_says_no_memory(const struct sp_cc_text *said);

/* Adds to the log that no file can be written in TMPDIR, and what to do: for the errno of a file's
 * or folder's making. */
void sp_cc_say_no_room(int error, struct sp_cc_text *log);

#endif
