/* The front half: OpenCL C source to bitcode, by running clang. */
#ifndef SP_COMPILER_CC_FRONT_H
#define SP_COMPILER_CC_FRONT_H

#include "compiler/cc/text.h"
#include "compiler/protocol.h"

struct sp_cc_source {
    const char *text;
    size_t size;
    struct sp_cc_strings options;
    struct sp_cc_strings header_names; /* what #include finds before any folder */
    struct sp_cc_strings header_texts; /* as many */
};

/* Compiles `source`. On SP_CC_OK `bitcode` holds the module and `dependencies` the absolute paths
 * of the files included from disk. `log` gets clang's errors and warnings in any case. */
enum sp_cc_status sp_cc_compile(const struct sp_cc_source *source, struct sp_cc_text *bitcode,
                                struct sp_cc_strings *dependencies, struct sp_cc_text *log);

#endif
