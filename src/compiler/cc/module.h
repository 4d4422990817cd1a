/* Reading modules as foreign input, and what LLVM says about them. */
#ifndef SP_COMPILER_CC_MODULE_H
#define SP_COMPILER_CC_MODULE_H

#include "compiler/cc/ir.h"
#include "compiler/cc/link.h"
#include "compiler/cc/text.h"

/* A context whose errors and warnings go to `log`. */
LLVMContextRef sp_cc_context_create(struct sp_cc_text *log);

/* Lets them go to another log from now on. */
void sp_cc_context_report_to(LLVMContextRef context, struct sp_cc_text *log);

/* Reads and verifies bitcode or text; NULL, with the reason in the context's log. */
LLVMModuleRef sp_cc_module_read(LLVMContextRef context, struct sp_cc_blob bytes,
                                struct sp_cc_text *log);

/* The bitcode of the module. */
void sp_cc_module_write(LLVMModuleRef module, struct sp_cc_text *bytes);

/* True, and a line in the log, where the module is not valid IR. */
bool sp_cc_module_is_broken(LLVMModuleRef module, const char *when, struct sp_cc_text *log);

/* What passes said: NULL, or a message, which goes to the log and is freed. True where there was
 * one. */
bool sp_cc_passes_failed(char *message, struct sp_cc_text *log);

#endif
