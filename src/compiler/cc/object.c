/* See object.h. The object is linked against the libraries that this process itself would get
 * (libm, libmvec, libc, and libgcc for conversions of half), by their full paths, so that no
 * development package is needed; only those used are recorded. An undefined symbol is an error
 * here, not at loading. */
#include "compiler/cc/object.h"

#include "compiler/cc/tools.h"

#include <dlfcn.h>
#include <link.h>

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

static enum sp_cc_status link_object(const struct sp_cc_folder *folder, struct sp_cc_text *object,
                                     struct sp_cc_text *log)
{
    static const char *const libraries[] = {"libm.so.6", "libmvec.so.1", "libc.so.6",
                                            "libgcc_s.so.1"};
    struct sp_cc_strings words = {0};
    struct sp_cc_text output = {0};
    enum sp_cc_status status = SP_CC_INTERNAL;
    struct sp_cc_tool lld = sp_cc_lld();
    sp_cc_strings_add(&words, lld.name);
    sp_cc_strings_add(&words, "-shared");
    sp_cc_strings_add(&words, "--as-needed");
    sp_cc_strings_add(&words, "--build-id=none");
    sp_cc_strings_add(&words, "--threads=1");
    sp_cc_strings_add(&words, "-z");
    sp_cc_strings_add(&words, "defs");
    sp_cc_strings_format(&words, "%s/code.o", folder->path);
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        add_library(&words, libraries[i]);
    sp_cc_text_format(&output, "%s/code.so", folder->path);
    sp_cc_strings_add(&words, "-o");
    sp_cc_strings_add(&words, output.bytes);
    int exit_status = sp_cc_run_tool(&lld, &words, NULL, 0, log);
    if (exit_status)
        sp_cc_text_format(log, "error: %s could not link the kernels (%d)\n", words.items[0],
                          exit_status);
    else if (!sp_cc_read_file(output.bytes, object))
        status = SP_CC_OK;
    sp_cc_text_finish(&output);
    sp_cc_strings_finish(&words);
    return status;
}

enum sp_cc_status sp_cc_make_object(LLVMModuleRef module, LLVMTargetMachineRef machine,
                                    struct sp_cc_text *object, struct sp_cc_text *log)
{
    LLVMMemoryBufferRef code = NULL;
    struct sp_cc_folder folder = {0};
    struct sp_cc_text path = {0};
    char *message = NULL;
    enum sp_cc_status status = SP_CC_INTERNAL;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &code)) {
        sp_cc_text_format(log, "error: no machine code: %s\n", message);
        LLVMDisposeMessage(message);
        return status;
    }
    if (!sp_cc_folder_create(&folder)) {
        sp_cc_text_format(&path, "%s/code.o", folder.path);
        if (!sp_cc_write_file(path.bytes, LLVMGetBufferStart(code), LLVMGetBufferSize(code)))
            status = link_object(&folder, object, log);
    }
    sp_cc_folder_destroy(&folder);
    sp_cc_text_finish(&path);
    LLVMDisposeMemoryBuffer(code);
    return status;
}
