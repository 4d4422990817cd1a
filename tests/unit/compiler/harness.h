/* Runs kernels twice: as samepage-cc makes them, and by an oracle that knows no work-group code.
 *
 * The oracle compiles the linked program as it is, one call per work-item, with ids and barrier as
 * calls into this program; each work-item is a fiber (ucontext) that gives way at barriers. */
#ifndef SP_TESTS_UNIT_COMPILER_HARNESS_H
#define SP_TESTS_UNIT_COMPILER_HARNESS_H

#include "compiler/cc/text.h"
#include "compiler/kernel_info.h"
#include "compiler/protocol.h"

#include <stdint.h>

struct program {
    struct sp_cc_text ir;
    struct sp_program_info info;
};

/* Compiles and links; the test fails where that fails. */
void program_init(struct program *program, const char *source, const char *const *options);
void program_finish(struct program *program);

/* Compiles and links a source that may be wrong: the status of the step that failed, or SP_CC_OK.
 * The log, to be freed, in *log. */
enum sp_cc_status try_program(const char *source, const char *const *options, char **log);

/* Loaded code of all kernels of a program. */
struct object {
    void *handle;
    struct sp_kernel_code *codes; /* in the order of program->info.kernels */
};
void object_init(struct object *object, const struct program *program, const uint64_t local[3],
                 const char *const *options);
void oracle_init(struct object *object, const struct program *program);
void object_finish(struct object *object);

struct range {
    uint32_t dimensions;
    uint64_t global[3], local[3], offset[3];
};

/* args is an argument block; the value of a __local argument is the bytes that it names. */
void run_object(const struct object *object, const struct program *program, const char *kernel,
                const struct range *range, const void *args, unsigned char *globals);
void run_oracle(const struct object *object, const struct program *program, const char *kernel,
                const struct range *range, const void *args);

/* What printf calls of run_object have printed, as text; emptied by whoever reads it. */
extern struct sp_cc_text printed;

char *read_text(const char *path);

#endif
