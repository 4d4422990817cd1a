/* See module.h. */
#include "compiler/cc/module.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/IRReader.h>
#include <stdlib.h>

static void note(LLVMDiagnosticInfoRef info, void *log)
{
    LLVMDiagnosticSeverity severity = LLVMGetDiagInfoSeverity(info);
    if (severity != LLVMDSError)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    sp_cc_text_format(log, "error: %s\n", text);
    LLVMDisposeMessage(text);
}

LLVMContextRef sp_cc_context_create(struct sp_cc_text *log)
{
    LLVMContextRef context = LLVMContextCreate();
    sp_cc_context_report_to(context, log);
    return context;
}

void sp_cc_context_report_to(LLVMContextRef context, struct sp_cc_text *log)
{
    LLVMContextSetDiagnosticHandler(context, note, log);
}

bool sp_cc_passes_failed(char *message, struct sp_cc_text *log)
{
    if (!message)
        return false;
    sp_cc_text_format(log, "error: %s\n", message);
    free(message);
    return true;
}

bool sp_cc_module_is_broken(LLVMModuleRef module, const char *when, struct sp_cc_text *log)
{
    char *message = NULL;
    bool broken = LLVMVerifyModule(module, LLVMReturnStatusAction, &message);
    if (broken)
        sp_cc_text_format(log, "error: the IR is not valid %s: %s\n", when, message);
    LLVMDisposeMessage(message);
    return broken;
}

LLVMModuleRef sp_cc_module_read(LLVMContextRef context, struct sp_cc_blob bytes,
                                struct sp_cc_text *log)
{
    LLVMModuleRef module = NULL;
    char *message = NULL;
    /* Text must end with a zero, so a copy; LLVMParseIRInContext owns and frees it. */
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.bytes, bytes.size, "program");
    if (LLVMParseIRInContext(context, buffer, &module, &message)) {
        sp_cc_text_format(log, "error: not bitcode of this compiler: %s\n", message);
        LLVMDisposeMessage(message);
        return NULL;
    }
    if (sp_cc_module_is_broken(module, "as given", log)) {
        LLVMDisposeModule(module);
        return NULL;
    }
    return module;
}

void sp_cc_module_write(LLVMModuleRef module, struct sp_cc_text *bytes)
{
    LLVMMemoryBufferRef buffer = LLVMWriteBitcodeToMemoryBuffer(module);
    sp_cc_text_add(bytes, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
}
