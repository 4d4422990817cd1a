/* The middle: bitcode of sources to one program, its description, and IR for code generation. */
#ifndef SP_COMPILER_CC_LINK_H
#define SP_COMPILER_CC_LINK_H

#include "compiler/cc/text.h"
#include "compiler/protocol.h"

#include <stdbool.h>
#include <stdint.h>

struct sp_program_info;

/* The passes after inlining: to SSA, then what makes the analyses of code generation sharper;
 * nothing that copies or moves a barrier. */
#define SP_CC_CLEANING                                                                             \
    "function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"     \
    "sroa<modify-cfg>,loop-mssa(licm),gvn<no-pre>,dse,instcombine<no-verify-fixpoint>,adce,"       \
    "simplifycfg),"                                                                                \
    "globaldce"

struct sp_cc_blob {
    const void *bytes; /* not owned */
    size_t size;
};

struct sp_cc_link {
    uint32_t flags; /* SP_CC_LINK_ */
    struct sp_cc_strings options;
    struct sp_cc_blob *inputs;
    size_t num_inputs;
};

/* Reads the builtin library for a link to come; for the server, whose children link. Once; later
 * calls do nothing. */
void sp_cc_link_warm_up(void);

/* Links the inputs. On SP_CC_OK `ir` holds bitcode and `info` (zeroed by the caller, ended with
 * sp_cc_program_info_finish) what is known of the kernels. */
enum sp_cc_status sp_cc_link(const struct sp_cc_link *link, struct sp_cc_text *ir,
                             struct sp_program_info *info, struct sp_cc_text *log);

/* Links bitcode files into a library of which a program takes only what it uses: every function
 * becomes linkonce_odr. */
enum sp_cc_status sp_cc_make_library(const struct sp_cc_strings *inputs, const char *output,
                                     struct sp_cc_text *log);

/* Ends an info that sp_cc_link filled in. */
void sp_cc_program_info_finish(struct sp_program_info *info);

#endif
