/* See object.h. The object is linked against the libraries that this process itself would get
 * (libm, libmvec, libc, and libgcc for conversions of half), by their full paths, so that no
 * development package is needed; only those used are recorded. An undefined symbol is an error
 * here, not at loading. */
#include "compiler/cc/object.h"

#include "compiler/cc/tools.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static void add_library(struct sp_cc_strings *words, const char *name)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    struct link_map *map;
    if (!library)
        return;
    if (!dlinfo(library, RTLD_DI_LINKMAP, &map) && map->l_name[0])
        sp_cc_strings_add(words, map->l_name);
    dlclose(library);
}

/* What the end of lld means; its own words are in the log. */
static enum sp_cc_status judge_failure(const struct sp_cc_tool *lld, int exit_status,
                                       struct sp_cc_text *log)
{
    if (exit_status < 0)
        sp_cc_text_format(log, "error: %s cannot be run (%s)\n", lld->name, strerror(-exit_status));
    else
        sp_cc_text_format(log, "error: %s could not link the kernels (%d)\n", lld->name,
                          exit_status);
    return sp_cc_says_no_memory(log) ? SP_CC_NO_MEMORY : SP_CC_INTERNAL;
}

enum sp_cc_status sp_cc_make_object(LLVMModuleRef module, LLVMTargetMachineRef machine,
                                    struct sp_cc_text *object, struct sp_cc_text *log)
{
    static const char *const options[] = {"-shared",     "--as-needed", "--build-id=none",
                                          "--threads=1", "-z",          "defs",
                                          "-o",          "-",           SP_CC_STANDARD_INPUT};
    static const char *const libraries[] = {"libm.so.6", "libmvec.so.1", "libc.so.6",
                                            "libgcc_s.so.1"};
    LLVMMemoryBufferRef code = NULL;
    struct sp_cc_strings words = {0};
    char *message = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &code)) {
        sp_cc_text_format(log, "error: no machine code: %s\n", message);
        LLVMDisposeMessage(message);
        return SP_CC_INTERNAL;
    }
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        sp_cc_strings_add(&words, options[i]);
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        add_library(&words, libraries[i]);
    struct sp_cc_tool lld = sp_cc_lld();
    int exit_status = sp_cc_run_tool(&lld, &words, LLVMGetBufferStart(code),
                                     LLVMGetBufferSize(code), object, log);
    sp_cc_strings_finish(&words);
    LLVMDisposeMemoryBuffer(code);
    return exit_status ? judge_failure(&lld, exit_status, log) : SP_CC_OK;
}
