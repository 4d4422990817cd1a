/* Clang's driver and lld, linked into samepage-cc (SAMEPAGE_STATIC_COMPILER). */
#ifndef SP_COMPILER_CC_LINKED_TOOLS_H
#define SP_COMPILER_CC_LINKED_TOOLS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Do what the program clang, or ld.lld, does with this command line, whose first word is its name:
 * they read standard input, and write to standard output and error. Each at most once in a process,
 * with nothing to follow but its end: LLVM's state, its fatal-error handler included, is theirs.
 * The exit status: 0, 1 for errors in what was given, and others for what is not its fault. */
int sp_cc_linked_clang(int count, char **words);
int sp_cc_linked_lld(int count, char **words);

#ifdef __cplusplus
}
#endif

#endif
