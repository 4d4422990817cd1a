/* See link.h. The order of work: link the inputs; take what they use from the builtin library;
 * inline everything into the kernels; clean up; look at what is left; describe it.
 *
 * In the result every kernel is an external definition in the C convention and holds all its code
 * but calls of replaceable functions (replaceable.h); all else is internal. It keeps the triple of
 * spir64: the target is chosen at code generation. */
#include "compiler/cc/link.h"

#include "compiler/cc/describe.h"
#include "compiler/cc/division.h"
#include "compiler/cc/gpu/conversions.h"
#include "compiler/cc/layout.h"
#include "compiler/cc/module.h"
#include "compiler/cc/replaceable.h"
#include "compiler/cc/target.h"
#include "compiler/cc/tools.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Functions that no kernel reaches go first, and those that are called become small before their
 * callers take them in: a program with a large library of its own in front of a few kernels takes a
 * tenth of the time. */
#define INLINING                                                                                   \
    "globaldce,"                                                                                   \
    "cgscc(inline<only-mandatory>,function(sroa<modify-cfg>,early-cse,simplifycfg)),"              \
    "globaldce"

static unsigned attribute_kind(const char *name)
{
    return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

static bool is_kernel(LLVMValueRef function)
{
    return LLVMGetFunctionCallConv(function) == LLVMSPIRKERNELCallConv;
}

/* The name in the source, where it is a plain C or an overloaded builtin's name. */
static char *plain_name(const char *name)
{
    unsigned length = 0;
    int digits = 0;
    if (sscanf(name, "_Z%u%n", &length, &digits) == 1 && strlen(name + digits) >= length) {
        char *plain = sp_cc_allocate(length + 1u);
        memcpy(plain, name + digits, length);
        return plain;
    }
    return sp_cc_copy(name);
}

static bool is_strong(LLVMValueRef global)
{
    return LLVMGetLinkage(global) == LLVMExternalLinkage && !LLVMIsDeclaration(global);
}

/* Says which names of `source` are taken in `program` already. */
static bool has_duplicates(LLVMModuleRef program, LLVMModuleRef source, struct sp_cc_text *log)
{
    bool found = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(source); f; f = LLVMGetNextFunction(f)) {
        LLVMValueRef other = LLVMGetNamedFunction(program, LLVMGetValueName(f));
        if (is_strong(f) && other && is_strong(other)) {
            sp_cc_text_format(log, "error: function '%s' is defined more than once\n",
                              LLVMGetValueName(f));
            found = true;
        }
    }
    for (LLVMValueRef v = LLVMGetFirstGlobal(source); v; v = LLVMGetNextGlobal(v)) {
        LLVMValueRef other = LLVMGetNamedGlobal(program, LLVMGetValueName(v));
        if (is_strong(v) && other && is_strong(other)) {
            sp_cc_text_format(log, "error: variable '%s' is defined more than once\n",
                              LLVMGetValueName(v));
            found = true;
        }
    }
    return found;
}

static enum sp_cc_status link_inputs(const struct sp_cc_link *link, LLVMContextRef context,
                                     LLVMModuleRef program, struct sp_cc_text *log)
{
    for (size_t i = 0; i < link->num_inputs; i++) {
        LLVMModuleRef source = sp_cc_module_read(context, link->inputs[i], log);
        if (!source)
            return SP_CC_BAD_REQUEST;
        if (i == 0) {
            LLVMSetTarget(program, LLVMGetTarget(source));
            LLVMSetDataLayout(program, LLVMGetDataLayoutStr(source));
        }
        if (has_duplicates(program, source, log)) {
            LLVMDisposeModule(source);
            return SP_CC_SOURCE_ERROR;
        }
        if (LLVMLinkModules2(program, source))
            return SP_CC_SOURCE_ERROR;
    }
    return SP_CC_OK;
}

/* The builtin library, of which so far only the names are read; NULL, with a line in the log. The
 * bytes are a copy: the file may be replaced while the library is in use. */
static LLVMModuleRef read_builtins(LLVMContextRef context, struct sp_cc_text *log)
{
    struct sp_cc_text bytes = {0};
    LLVMModuleRef library = NULL;
    char *path = sp_cc_target_builtins_path();
    if (sp_cc_read_file(path, &bytes)) {
        sp_cc_text_format(log, "error: the builtin library %s cannot be read\n", path);
    } else {
        LLVMMemoryBufferRef buffer =
            LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.bytes, bytes.size, "builtins");
        if (LLVMGetBitcodeModuleInContext2(context, buffer, &library))
            library = NULL;
    }
    sp_cc_text_finish(&bytes);
    free(path);
    return library;
}

/* The library has so many names that reading them takes most of the time of a link. The server does
 * it once, and each child has the result, in a context made for it, from the fork. */
static struct {
    LLVMContextRef context;
    LLVMModuleRef library;
} warm;

void sp_cc_link_warm_up(void)
{
    static struct sp_cc_text ignored; /* a child finds the same error, and tells it */
    static bool done;
    if (done)
        return;
    done = true;
    warm.context = sp_cc_context_create(&ignored);
    warm.library = read_builtins(warm.context, &ignored);
    if (warm.library)
        return;
    LLVMContextDispose(warm.context);
    warm.context = NULL;
}

/* The context of a link, and the library where it is there already. */
static LLVMContextRef take_context(struct sp_cc_text *log, LLVMModuleRef *library)
{
    LLVMContextRef context = warm.context;
    *library = warm.library;
    warm.context = NULL;
    warm.library = NULL;
    if (!context)
        return sp_cc_context_create(log);
    sp_cc_context_report_to(context, log);
    return context;
}

/* Every function of the library is linkonce_odr, so the linker takes what is used; the rest is not
 * even read. The library is gone afterwards. */
static enum sp_cc_status link_builtins(LLVMModuleRef program, LLVMModuleRef library)
{
    return !library || LLVMLinkModules2(program, library) ? SP_CC_INTERNAL : SP_CC_OK;
}

static void remove_attribute(LLVMValueRef function, const char *name)
{
    LLVMRemoveEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                   attribute_kind(name));
}

/* Only the barrier is convergent: a kernel's other code may be moved as any C code. */
static void normalise_calls(LLVMValueRef function)
{
    unsigned convergent = attribute_kind("convergent"), noinline_kind = attribute_kind("noinline");
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef value;
        for (value = LLVMGetFirstInstruction(block); value; value = LLVMGetNextInstruction(value)) {
            if (!LLVMIsACallInst(value))
                continue;
            LLVMSetInstructionCallConv(value, LLVMCCallConv);
            LLVMRemoveCallSiteEnumAttribute(value, at, noinline_kind);
            if (!sp_ir_calls(value, SP_BARRIER_NAME))
                LLVMRemoveCallSiteEnumAttribute(value, at, convergent);
        }
    }
}

static void prepare_function(LLVMContextRef context, LLVMValueRef function)
{
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    bool kernel = is_kernel(function);
    LLVMSetFunctionCallConv(function, LLVMCCallConv);
    if (strcmp(LLVMGetValueName(function), SP_BARRIER_NAME))
        remove_attribute(function, "convergent");
    if (!sp_ir_is_definition(function))
        return;
    remove_attribute(function, "noinline");
    remove_attribute(function, "optnone");
    remove_attribute(function, "norecurse");
    LLVMRemoveStringAttributeAtIndex(function, at, "frame-pointer", 13);
    LLVMRemoveStringAttributeAtIndex(function, at, "stack-protector-buffer-size", 27);
    LLVMAddAttributeAtIndex(function, at,
                            LLVMCreateEnumAttribute(context, attribute_kind("alwaysinline"), 0));
    LLVMSetVisibility(function, LLVMDefaultVisibility);
    LLVMSetLinkage(function, kernel ? LLVMExternalLinkage : LLVMInternalLinkage);
    if (sp_cc_is_replaceable(function))
        sp_cc_keep_replaceable(function);
    normalise_calls(function);
}

/* The scopes that inlining makes of restrict hold for one work-item; code generation interleaves
 * work-items. */
static void drop_alias_scopes(LLVMContextRef context, LLVMValueRef function)
{
    unsigned scope = LLVMGetMDKindIDInContext(context, "alias.scope", 11);
    unsigned noalias = LLVMGetMDKindIDInContext(context, "noalias", 7);
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
            next = LLVMGetNextInstruction(value);
            if (sp_ir_is_intrinsic(value, "llvm.experimental.noalias.scope.decl")) {
                LLVMInstructionEraseFromParent(value);
                continue;
            }
            LLVMSetMetadata(value, scope, NULL);
            LLVMSetMetadata(value, noalias, NULL);
        }
    }
}

static bool is_known_declaration(const char *name)
{
    return !strncmp(name, "llvm.", 5) || !strncmp(name, "__sp_", 5) || !strcmp(name, "printf");
}

/* After inlining, a call of a definition is one that the function reaches from itself. */
static bool has_recursion(LLVMModuleRef program, struct sp_cc_text *log)
{
    bool found = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(program); f; f = LLVMGetNextFunction(f)) {
        LLVMBasicBlockRef block;
        for (block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block)) {
            LLVMValueRef value;
            for (value = LLVMGetFirstInstruction(block); value && !found;
                 value = LLVMGetNextInstruction(value)) {
                LLVMValueRef called = LLVMIsACallInst(value) ? LLVMGetCalledValue(value) : NULL;
                if (!called || (LLVMIsAFunction(called) &&
                                (!sp_ir_is_definition(called) || sp_cc_is_replaceable(called))))
                    continue;
                if (LLVMIsAInlineAsm(called))
                    sp_cc_text_format(log, "error: assembly is not allowed in OpenCL C\n");
                else
                    sp_cc_text_format(
                        log, "error: function '%s' is called recursively or through a pointer\n",
                        LLVMIsAFunction(called) ? LLVMGetValueName(called) : "?");
                found = true;
            }
        }
    }
    return found;
}

static bool has_undefined(LLVMModuleRef program, struct sp_cc_text *log)
{
    bool found = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(program); f; f = LLVMGetNextFunction(f)) {
        const char *name = LLVMGetValueName(f);
        if (sp_ir_is_definition(f) || !LLVMGetFirstUse(f) || is_known_declaration(name))
            continue;
        char *plain = plain_name(name);
        sp_cc_text_format(log, "error: function '%s' is used, but defined nowhere\n", plain);
        free(plain);
        found = true;
    }
    for (LLVMValueRef v = LLVMGetFirstGlobal(program); v; v = LLVMGetNextGlobal(v)) {
        if (!LLVMIsDeclaration(v) || !LLVMGetFirstUse(v))
            continue;
        sp_cc_text_format(log, "error: variable '%s' is used, but defined nowhere\n",
                          LLVMGetValueName(v));
        found = true;
    }
    return found;
}

static enum sp_cc_status inline_all(LLVMContextRef context, LLVMModuleRef program,
                                    struct sp_cc_text *log)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(program); f; f = LLVMGetNextFunction(f))
        if (is_kernel(f) && sp_ir_is_definition(f) && !sp_cc_can_describe(f, log))
            return SP_CC_SOURCE_ERROR;
    for (LLVMValueRef f = LLVMGetFirstFunction(program); f; f = LLVMGetNextFunction(f))
        prepare_function(context, f);
    for (LLVMValueRef v = LLVMGetFirstGlobal(program); v; v = LLVMGetNextGlobal(v)) {
        LLVMSetVisibility(v, LLVMDefaultVisibility);
        if (!LLVMIsDeclaration(v))
            LLVMSetLinkage(v, LLVMInternalLinkage);
    }
    sp_cc_guard_divisions(program);
    if (sp_cc_passes_failed(sp_ir_run_passes(program, INLINING, NULL), log))
        return SP_CC_INTERNAL;
    if (has_undefined(program, log) || has_recursion(program, log))
        return SP_CC_SOURCE_ERROR;
    for (LLVMValueRef f = LLVMGetFirstFunction(program); f; f = LLVMGetNextFunction(f))
        drop_alias_scopes(context, f);
    return sp_cc_passes_failed(sp_ir_run_passes(program, SP_CC_CLEANING, NULL), log)
               ? SP_CC_INTERNAL
               : SP_CC_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct sp_kernel_info *)a)->name,
                  ((const struct sp_kernel_info *)b)->name);
}

static void describe_program(LLVMModuleRef program, struct sp_program_info *info)
{
    struct sp_cc_layout globals = {0};
    for (LLVMValueRef f = LLVMGetFirstFunction(program); f; f = LLVMGetNextFunction(f)) {
        if (!sp_ir_is_definition(f) || sp_cc_is_replaceable(f))
            continue;
        info->kernels =
            sp_cc_reallocate(info->kernels, (info->num_kernels + 1) * sizeof(*info->kernels));
        info->kernels[info->num_kernels] = (struct sp_kernel_info){0};
        sp_cc_describe(program, f, &info->kernels[info->num_kernels++]);
    }
    if (info->num_kernels)
        qsort(info->kernels, info->num_kernels, sizeof(*info->kernels), by_name);
    sp_cc_layout_globals(program, &globals);
    info->globals_bytes = globals.bytes;
    sp_cc_layout_finish(&globals);
}

void sp_cc_program_info_finish(struct sp_program_info *info)
{
    for (uint32_t i = 0; i < info->num_kernels; i++)
        sp_cc_undescribe(&info->kernels[i]);
    free(info->kernels);
    *info = (struct sp_program_info){0};
}

enum sp_cc_status sp_cc_link(const struct sp_cc_link *link, struct sp_cc_text *ir,
                             struct sp_program_info *info, struct sp_cc_text *log)
{
    bool library = link->flags & SP_CC_LINK_LIBRARY;
    LLVMModuleRef builtins = NULL;
    LLVMContextRef context = library ? sp_cc_context_create(log) : take_context(log, &builtins);
    LLVMModuleRef program = LLVMModuleCreateWithNameInContext("program", context);
    enum sp_cc_status status = link_inputs(link, context, program, log);
    if (status == SP_CC_OK && !library) {
        status = link_builtins(program, builtins ? builtins : read_builtins(context, log));
        builtins = NULL;
    }
    if (status == SP_CC_OK && !library)
        status = inline_all(context, program, log);
    if (status == SP_CC_OK && sp_cc_module_is_broken(program, "after linking", log))
        status = SP_CC_INTERNAL;
    if (status == SP_CC_OK) {
        if (!library)
            describe_program(program, info);
        sp_cc_module_write(program, ir);
        sp_ir_dump(program, "link");
    }
    if (builtins)
        LLVMDisposeModule(builtins);
    LLVMDisposeModule(program);
    LLVMContextDispose(context);
    return status;
}

enum sp_cc_status sp_cc_make_library(const struct sp_cc_strings *inputs, const char *output,
                                     struct sp_cc_text *log)
{
    struct sp_cc_text *files = sp_cc_allocate(inputs->count * sizeof(*files));
    struct sp_cc_link link = {.num_inputs = inputs->count};
    struct sp_cc_text bitcode = {0};
    LLVMContextRef context = sp_cc_context_create(log);
    LLVMModuleRef library = LLVMModuleCreateWithNameInContext("builtins", context);
    enum sp_cc_status status = SP_CC_INTERNAL;
    link.inputs = sp_cc_allocate(inputs->count * sizeof(*link.inputs));
    for (size_t i = 0; i < inputs->count; i++) {
        if (sp_cc_read_file(inputs->items[i], &files[i])) {
            sp_cc_text_format(log, "error: %s cannot be read\n", inputs->items[i]);
            goto end;
        }
        link.inputs[i] = (struct sp_cc_blob){files[i].bytes, files[i].size};
    }
    status = link_inputs(&link, context, library, log);
    if (status != SP_CC_OK)
        goto end;
    for (LLVMValueRef f = LLVMGetFirstFunction(library); f; f = LLVMGetNextFunction(f))
        if (sp_ir_is_definition(f))
            LLVMSetLinkage(f, LLVMLinkOnceODRLinkage);
    for (LLVMValueRef v = LLVMGetFirstGlobal(library); v; v = LLVMGetNextGlobal(v))
        if (is_strong(v))
            LLVMSetLinkage(v, LLVMLinkOnceODRLinkage);
    if (!strncmp(LLVMGetTarget(library), "nvptx", 5))
        sp_gpu_saturate_conversions(library);
    sp_cc_module_write(library, &bitcode);
    if (sp_cc_write_file(output, bitcode.bytes, bitcode.size)) {
        sp_cc_text_format(log, "error: %s cannot be written\n", output);
        status = SP_CC_INTERNAL;
    }
end:
    for (size_t i = 0; i < inputs->count; i++)
        sp_cc_text_finish(&files[i]);
    free(files);
    free(link.inputs);
    sp_cc_text_finish(&bitcode);
    LLVMDisposeModule(library);
    LLVMContextDispose(context);
    return status;
}
