/* A linked program on its way to running: its IR, what is known of its kernels, their code for each
 * device, and its program-scope variables.
 *
 * Code is generated from the moment of sp_executable_start on, by a few threads that the whole
 * process shares; who needs a kernel sooner generates it in its own thread. A kernel with barriers
 * or loops over private arrays, and on a GPU every kernel, gets further code for each local size
 * that it is enqueued with, in the background, before other kernels: the code for any local size
 * serves until that is ready.
 *
 * Counted: the last reference may go while code is generated; the memory goes when that ends.
 * Immutable but for the code, so it is read by any thread.
 */
#ifndef SP_COMPILER_EXECUTABLE_H
#define SP_COMPILER_EXECUTABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <CL/cl.h>

#include "compiler/kernel_info.h"
#include "compiler/steps.h"
#include "device/driver.h"

struct sp_executable;
struct sp_values;

/* Where program-scope variables are for a command. */
struct sp_globals_place {
    unsigned char *address; /* NULL: it reaches none */
    struct sp_values *values;
};

/* One of `program` (the result of sp_step_link), for the root devices `roots`. `options` are
 * copied; they go into code generation. A reference to the context is held. 0, one reference, and
 * `program` is empty; or -ENOMEM, and `program` is as it was. */
int sp_executable_create(cl_context context, struct sp_device *const *roots, unsigned num_roots,
                         struct sp_step_result *program, struct sp_words options,
                         struct sp_executable **executable);

/* Begins to generate all code in the background. Never fails: what is not begun now, is when
 * needed. */
void sp_executable_start(struct sp_executable *executable);

struct sp_executable *sp_executable_reference(struct sp_executable *executable);

/* Takes NULL. */
void sp_executable_unreference(struct sp_executable *executable);

const struct sp_program_info *sp_executable_info(const struct sp_executable *executable);
struct sp_bytes sp_executable_ir(const struct sp_executable *executable);

/* The code of `kernel` (an element of the info's kernels) on `root`, generated and loaded now if it
 * is not yet, and the program-scope variables there, which the kernel's command then uses as it
 * uses a buffer (NULL where the kernel reaches none). `local_size`: the size of all work-groups,
 * for which special code may be used; NULL where groups differ in size. 0, or -ENODEV: the
 * executable is not for `root`; -ENOMEM, -ENOSPC: out of memory in this process, or on the device;
 * -EIO: code generation failed, and the context was told why, or the device died. */
int sp_executable_code(struct sp_executable *executable, const struct sp_device *root,
                       const struct sp_kernel_info *kernel, const uint64_t local_size[3],
                       struct sp_code_kernel **code, struct sp_globals_place *globals);

/* What the code for any local size adds to the build log. Where the device has a compiler of its
 * own (sp_device_info.compiles_code), what that says, and why there is no code: waits until all of
 * it is loaded. Elsewhere why there is none for kernels that were asked for, and whose context was
 * told: later failures change nothing in between. To be freed; NULL: nothing, or no memory. With no
 * lock held that generating or loading code takes. */
char *sp_executable_log(struct sp_executable *executable, const struct sp_device *root);

/* Work-items that `kernel` likes to have a multiple of; waits for its code. 0 where there is none.
 */
uint32_t sp_executable_preferred_multiple(struct sp_executable *executable,
                                          const struct sp_device *root,
                                          const struct sp_kernel_info *kernel);

#endif
