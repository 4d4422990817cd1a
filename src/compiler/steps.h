/* The three steps of a build (compile, link, generate code), each answered by the disk cache or by
 * samepage-cc. Callable from any thread.
 */
#ifndef SP_COMPILER_STEPS_H
#define SP_COMPILER_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "compiler/kernel_info.h"

/* A list of words: options, or names. Not owned by what takes one. */
struct sp_words {
    const char *const *words;
    uint32_t count;
};

struct sp_bytes {
    const void *bytes;
    size_t size;
};

struct sp_header {
    const char *name; /* as #include names it */
    const char *text;
};

/* What a step made. To be ended with sp_step_result_finish in every case. */
struct sp_step_result {
    char *log;                      /* owned; the build log; NULL stands for "" */
    void *memory;                   /* owned; where `code` lies */
    struct sp_bytes code;           /* bitcode, program IR or an image for a device */
    struct sp_program_info *info;   /* owned; sp_step_link of a program, else NULL */
    struct sp_kernel_code *kernels; /* owned; sp_step_generate: as many as kernels were wanted */
    uint32_t num_kernels;
};

/* Each returns 0, or
 *   -EINVAL  the source (or linking it) is wrong: the log says how
 *   -ENOENT  there is no compiler: the log says so
 *   -ENOMEM  out of memory in this process
 *   -EIO     anything else: the log says what. */

/* OpenCL C to bitcode. `options`: words for clang. */
int sp_step_compile(const char *source, struct sp_words options, const struct sp_header *headers,
                    uint32_t num_headers, struct sp_step_result *result);

/* Bitcode to a program. */
int sp_step_link(const struct sp_bytes *inputs, uint32_t num_inputs, struct sp_words options,
                 struct sp_step_result *result);

/* Bitcode to bitcode: one library of all. */
int sp_step_link_library(const struct sp_bytes *inputs, uint32_t num_inputs,
                         struct sp_words options, struct sp_step_result *result);

/* Program IR to an image with `kernels` for a target (sp_device.code_target; NULL: this
 * processor), for groups of local_size (0 0 0: any, and smaller ones at the edges). */
int sp_step_generate(struct sp_bytes ir, const char *target, struct sp_words kernels,
                     const uint64_t local_size[3], struct sp_words options,
                     struct sp_step_result *result);

void sp_step_result_finish(struct sp_step_result *result);

#endif
