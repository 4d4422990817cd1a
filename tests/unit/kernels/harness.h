/* Runs builtins of the library on the host, without a runtime.
 *
 * A test has a .cl file of plain functions (no kernels) that call builtins over arrays. The harness
 * links its bitcode with cpu.bc, turns it into code for this processor and hands out function
 * pointers. Of what samepage-cc would put in place, the harness has stand-ins: libm under its own
 * names, and work-items that are threads with a real barrier.
 */
#ifndef SP_TESTS_KERNELS_HARNESS_H
#define SP_TESTS_KERNELS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct harness;

/* Loads a test's bitcode; ends the program with a message if that fails. With the library of a GPU
 * (a path, or NULL) its functions take the place of libm and of what it may replace, and the
 * GPU's instructions are computed here, wrong by as much as the GPU's may be. */
struct harness *harness_create(const char *bitcode_path, const char *target_library);
void harness_destroy(struct harness *harness);

/* The address of a function of the test, which must exist. Cast it to the right type. */
void *harness_function(struct harness *harness, const char *name);
/* The same by a printf format. */
void *harness_functionf(struct harness *harness, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Runs what arrays.h defines for a builtin of `num_arguments` array arguments: the scalar form into
 * `result`, then each vector form, and fails the test where one differs in a bit. `bytes` is the
 * size of a result; `floating` takes all NaNs for the same. */
void harness_run_widths(struct harness *harness, const char *name, const char *type,
                        size_t num_arguments, const void *const arguments[], void *result,
                        size_t bytes, bool floating, size_t count);

/* What the work-item functions answer in the calling thread. */
struct harness_work_item {
    uint32_t work_dim;
    size_t local_id[3], group_id[3], local_size[3], enqueued_local_size[3];
    size_t global_size[3], global_offset[3], num_groups[3];
};
void harness_set_work_item(const struct harness_work_item *item);

/* Runs a work-group with a thread for each work-item; `item` says all but the local id. */
void harness_run_group(const struct harness_work_item *item, void (*body)(void *), void *argument);

/* Where __sp_is_local says yes: the scratch memory of the group. */
void *harness_group_scratch(void);
/* What __sp_is_private takes for private memory. */
extern const void *harness_private;

/* Random bits, the same in every run. */
uint64_t harness_random(uint64_t *state);

#endif
