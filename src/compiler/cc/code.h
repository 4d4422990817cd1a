/* The back halves: program IR to a shared object for this processor (cpu_abi.h), here, or to an
 * image for a GPU (gpu_abi.h, in gpu/). */
#ifndef SP_COMPILER_CC_CODE_H
#define SP_COMPILER_CC_CODE_H

#include "compiler/cc/link.h"
#include "compiler/cc/text.h"
#include "compiler/protocol.h"

#include <stdbool.h>
#include <stdint.h>

struct sp_kernel_code;

struct sp_cc_code {
    struct sp_cc_blob ir; /* from sp_cc_link */
    struct sp_cc_strings kernels;
    uint64_t local_size[3]; /* 0 0 0: any */
    struct sp_cc_strings options;
    const char *target; /* protocol.h, CODE; NULL or "": this processor */
};

bool sp_cc_has_option(const struct sp_cc_strings *options, const char *option);

/* Generates code. On SP_CC_OK `object` holds the image and kernels[i] (an array of
 * code->kernels.count, names not owned) describes code->kernels.items[i]. */
enum sp_cc_status sp_cc_code(const struct sp_cc_code *code, struct sp_cc_text *object,
                             struct sp_kernel_code *kernels, struct sp_cc_text *log);

#endif
