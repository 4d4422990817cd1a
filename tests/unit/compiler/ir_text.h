/* For tests of passes: text of IR, read into a module of its own. */
#ifndef SP_TESTS_UNIT_COMPILER_IR_TEXT_H
#define SP_TESTS_UNIT_COMPILER_IR_TEXT_H

#include "compiler/cc/module.h"
#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/regions.h"

struct parsed {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMValueRef function; /* @k */
    struct sp_cc_text log;
};

/* Reads `declarations` and then `text`; the test fails, with LLVM's words, where that is no IR. */
void parse_ir(struct parsed *parsed, const char *declarations, const char *text);
void discard_ir(struct parsed *parsed);

/* The same of `kernel`, a format for the text with one %s, and its body; prepared, and with a plan
 * for vectors, which is the caller's to finish. */
void plan_ir(struct parsed *parsed, struct sp_wg_plan *plan, const char *kernel, const char *body);

/* Deletes @k, from which others were made; the test fails where what is left is no sound module. */
void delete_source(struct parsed *parsed);

#endif
