/* The option strings of clBuildProgram, clCompileProgram and clLinkProgram, taken apart. */
#ifndef SP_API_BUILD_OPTIONS_H
#define SP_API_BUILD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <CL/cl.h>

enum sp_build_options_use {
    SP_OPTIONS_BUILD,
    SP_OPTIONS_COMPILE,
    SP_OPTIONS_LINK,
};

struct sp_build_options {
    /* Words for samepage-cc: an option each, its value in the same word, folders absolute. */
    char **compile_words; /* owned; for compilation; -cl-std= is always among them */
    uint32_t num_compile_words;
    char **link_words; /* owned; for linking and code generation */
    uint32_t num_link_words;
    unsigned language;    /* OpenCL C version times 100: 100, 110, 120, 200, 300 */
    bool has_folders;     /* -I was given */
    bool uniform_groups;  /* -cl-uniform-work-group-size */
    bool kernel_arg_info; /* -cl-kernel-arg-info */
    bool create_library;  /* -create-library */
    char *wrong; /* owned; set with an invalid-options error: one sentence for people, or NULL */
};

/* Takes `text` (NULL: no options) apart. CL_SUCCESS; CL_INVALID_BUILD_OPTIONS,
 * CL_INVALID_COMPILER_OPTIONS or CL_INVALID_LINKER_OPTIONS according to `use`;
 * CL_OUT_OF_HOST_MEMORY. *options is to be ended with sp_build_options_finish in every case. */
cl_int sp_build_options_parse(enum sp_build_options_use use, const char *text,
                              struct sp_build_options *options);

/* Adds the current folder to those that are searched for included files, after all others. False
 * when out of memory. */
bool sp_build_options_search_here(struct sp_build_options *options);

void sp_build_options_finish(struct sp_build_options *options);

#endif
