/* See gpu.h and docs/nvptx.md. The order of work: place variables and cut the program down to the
 * wanted kernels; change address spaces; give each kernel its entry, and inline it; take the
 * target's own functions from its library; replace what the contract leaves open; optimise; emit.
 */
#include "compiler/cc/gpu/gpu.h"

#include "compiler/cc/describe.h"
#include "compiler/cc/gpu/atomics.h"
#include "compiler/cc/gpu/builtins.h"
#include "compiler/cc/gpu/constants.h"
#include "compiler/cc/gpu/counts.h"
#include "compiler/cc/gpu/entry.h"
#include "compiler/cc/gpu/machine.h"
#include "compiler/cc/gpu/negations.h"
#include "compiler/cc/gpu/nulls.h"
#include "compiler/cc/gpu/pairs.h"
#include "compiler/cc/gpu/places.h"
#include "compiler/cc/gpu/precision.h"
#include "compiler/cc/gpu/spaces.h"
#include "compiler/cc/gpu/unaligned.h"
#include "compiler/cc/module.h"
#include "compiler/cc/replaceable.h"
#include "compiler/cc/tools.h"
#include "compiler/cc/workgroup/special.h"
#include "compiler/cc/workgroup/unroll.h"
#include "compiler/gpu_abi.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

/* Work-items that a multiprocessor runs in step. */
#define WARP 32u

/* Makes equal calls of pure functions one. */
#define MERGING "function(sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,gvn)"

/* Vectors mean nothing to the GPU's arithmetic, and hide lanes that nobody uses (the fourth of a
 * float3); their loads and stores stay whole. */
#define TO_SCALARS                                                                                 \
    "function(sroa<modify-cfg>,infer-address-spaces,scalarizer,instcombine<no-verify-fixpoint>,"   \
    "dce)"

/* Nor may optimisation leave any: it makes pairs of 16-bit integers, for which the target has
 * arithmetic but no comparisons. */
#define BACK_TO_SCALARS "function(scalarizer,early-cse,dce)"

#define LIBM_PREFIX "__sp_libm_"
#define NATIVE_PREFIX SP_TARGET_PREFIX "native_"

/* The common definition is correctly rounded, the target's is not. */
#define SQRT_NAME SP_TARGET_PREFIX "sqrtf"

struct work {
    const struct sp_cc_code *code;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMModuleRef library; /* NULL once it is linked */
    LLVMTargetMachineRef machine;
    struct sp_kernel_info *infos; /* of code->kernels */
    struct sp_gpu_entry *entries; /* of code->kernels, then the one of sp_globals_init */
    size_t num_kernels;
    bool optimise, fast;
};

static bool has_option(const struct work *work, const char *option)
{
    return sp_cc_has_option(&work->code->options, option);
}

static bool run(struct work *work, const char *passes, struct sp_cc_text *log)
{
    return !sp_cc_passes_failed(sp_ir_run_passes(work->module, passes, work->machine), log);
}

/* --- IR as LINK left it --------------------------------------------------------------------- */

static void delete_others(struct work *work, LLVMValueRef *kernels)
{
    LLVMValueRef next;
    for (LLVMValueRef f = LLVMGetFirstFunction(work->module); f; f = next) {
        next = LLVMGetNextFunction(f);
        bool is_wanted = !sp_ir_is_definition(f) || sp_cc_is_replaceable(f);
        for (size_t i = 0; i < work->num_kernels; i++)
            is_wanted |= kernels[i] == f;
        if (!is_wanted)
            LLVMDeleteFunction(f);
    }
}

static enum sp_cc_status take_kernels(struct work *work, struct sp_cc_text *log)
{
    LLVMValueRef *kernels = sp_cc_allocate(work->num_kernels * sizeof(*kernels));
    struct sp_cc_layout *locals = sp_cc_allocate(work->num_kernels * sizeof(*locals));
    struct sp_cc_layout globals = {0};
    enum sp_cc_status status = SP_CC_OK;
    /* With any, the driver does not optimise what it compiles; and LLVM's debug sections name
     * variables that it writes under other names. */
    LLVMStripModuleDebugInfo(work->module);
    for (size_t i = 0; i < work->num_kernels && status == SP_CC_OK; i++) {
        const char *name = work->code->kernels.items[i];
        kernels[i] = LLVMGetNamedFunction(work->module, name);
        if (!kernels[i] || !sp_ir_is_definition(kernels[i])) {
            sp_cc_text_format(log, "error: the program has no kernel '%s'\n", name);
            status = SP_CC_BAD_REQUEST;
            break;
        }
        sp_cc_describe(work->module, kernels[i], &work->infos[i]);
        if (work->infos[i].args_bytes > SP_GPU_MAX_ARGS_BYTES) {
            sp_cc_text_format(log,
                              "error: kernel '%s': its arguments take %u bytes, and this device "
                              "takes %u at most; give it a pointer to the rest\n",
                              name, work->infos[i].args_bytes, SP_GPU_MAX_ARGS_BYTES);
            status = SP_CC_SOURCE_ERROR;
            break;
        }
        sp_cc_layout_locals(work->module, kernels[i], &locals[i]);
    }
    if (status == SP_CC_OK) {
        sp_cc_layout_globals(work->module, &globals);
        delete_others(work, kernels);
        sp_gpu_keep_nulls(work->module);
        sp_gpu_place_variables(work->module, kernels, locals, work->num_kernels, &globals);
    }
    for (size_t i = 0; i < work->num_kernels; i++)
        sp_cc_layout_finish(&locals[i]);
    sp_cc_layout_finish(&globals);
    free(locals);
    free(kernels);
    return status;
}

static enum sp_cc_status change_spaces(struct work *work, struct sp_cc_text *log)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(work->machine);
    char *triple = LLVMGetTargetMachineTriple(work->machine);
    LLVMSetModuleDataLayout(work->module, layout);
    LLVMSetTarget(work->module, triple);
    char *text = LLVMPrintModuleToString(work->module);
    struct sp_cc_text respaced = {0};
    sp_gpu_respace(text, &respaced);
    LLVMDisposeModule(work->module);
    work->module =
        sp_cc_module_read(work->context, (struct sp_cc_blob){respaced.bytes, respaced.size}, log);
    sp_cc_text_finish(&respaced);
    LLVMDisposeMessage(text);
    LLVMDisposeMessage(triple);
    LLVMDisposeTargetData(layout);
    return work->module ? SP_CC_OK : SP_CC_INTERNAL;
}

/* --- IR for NVPTX --------------------------------------------------------------------------- */

static LLVMModuleRef read_library(struct work *work, struct sp_cc_text *log)
{
    struct sp_cc_text bytes = {0};
    LLVMModuleRef library = NULL;
    char *path = sp_gpu_library_path();
    if (sp_cc_read_file(path, &bytes)) {
        sp_cc_text_format(log, "error: the builtin library %s cannot be read\n", path);
    } else {
        LLVMMemoryBufferRef buffer =
            LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.bytes, bytes.size, "nvptx");
        if (LLVMGetBitcodeModuleInContext2(work->context, buffer, &library))
            library = NULL;
    }
    sp_cc_text_finish(&bytes);
    free(path);
    return library;
}

static bool library_has(const struct work *work, const char *name)
{
    LLVMValueRef function = LLVMGetNamedFunction(work->library, name);
    return function && !LLVMIsDeclaration(function);
}

/* With fast math, the library's native function of that name, where there is one. */
static void prefer_native(struct work *work, LLVMValueRef function)
{
    const char *name = LLVMGetValueName(function);
    struct sp_cc_text native = {0};
    size_t skip = sp_cc_is_replaceable(function) ? strlen(SP_TARGET_PREFIX) : strlen(LIBM_PREFIX);
    sp_cc_text_format(&native, NATIVE_PREFIX "%s", name + skip);
    if (library_has(work, native.bytes)) {
        LLVMValueRef other = LLVMGetNamedFunction(work->module, native.bytes);
        if (!other)
            other = LLVMAddFunction(work->module, native.bytes, LLVMGlobalGetValueType(function));
        LLVMReplaceAllUsesWith(function, other);
    }
    sp_cc_text_finish(&native);
}

static void delete_body(LLVMValueRef function)
{
    LLVMBasicBlockRef block;
    /* Whatever is left in a block may be used in one deleted later. */
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value; (value = LLVMGetLastInstruction(block));) {
            if (LLVMGetFirstUse(value))
                LLVMReplaceAllUsesWith(value, LLVMGetPoison(LLVMTypeOf(value)));
            LLVMInstructionEraseFromParent(value);
        }
    while ((block = LLVMGetLastBasicBlock(function)))
        LLVMDeleteBasicBlock(block);
    LLVMSetLinkage(function, LLVMExternalLinkage);
}

/* Leaves the common definitions where the target has none of its own; where it has, linking will
 * bring it. */
static enum sp_cc_status choose_definitions(struct work *work, struct sp_cc_text *log)
{
    work->library = read_library(work, log);
    if (!work->library)
        return SP_CC_INTERNAL;
    bool rounds = has_option(work, "-cl-fp32-correctly-rounded-divide-sqrt");
    LLVMValueRef next;
    for (LLVMValueRef f = LLVMGetFirstFunction(work->module); f; f = next) {
        next = LLVMGetNextFunction(f);
        const char *name = LLVMGetValueName(f);
        bool is_replaceable = sp_cc_is_replaceable(f);
        if (work->fast && (is_replaceable || !strncmp(name, LIBM_PREFIX, strlen(LIBM_PREFIX))))
            prefer_native(work, f);
        if (rounds && !strcmp(name, SQRT_NAME))
            continue;
        if (!strcmp(name, SP_SCOPED_NAME) || !strcmp(name, SP_FENCE_NAME) ||
            (is_replaceable && sp_ir_is_definition(f) && library_has(work, name)))
            delete_body(f);
    }
    return SP_CC_OK;
}

static enum sp_cc_status link_library(struct work *work)
{
    LLVMModuleRef library = work->library;
    work->library = NULL;
    if (LLVMLinkModules2(work->module, library))
        return SP_CC_INTERNAL;
    return SP_CC_OK;
}

/* Everything but entries and the atomic unit becomes part of them; what the library calls late,
 * only with `late`. */
static bool inline_all(struct work *work, bool late, struct sp_cc_text *log)
{
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    unsigned always = LLVMGetEnumAttributeKindForName("alwaysinline", 12);
    unsigned never = LLVMGetEnumAttributeKindForName("noinline", 8);
    unsigned none = LLVMGetEnumAttributeKindForName("optnone", 7);
    for (LLVMValueRef f = LLVMGetFirstFunction(work->module); f; f = LLVMGetNextFunction(f)) {
        bool is_entry = false;
        for (size_t i = 0; i <= work->num_kernels; i++)
            is_entry |= f == work->entries[i].function;
        if (is_entry || !sp_ir_is_definition(f))
            continue;
        LLVMSetLinkage(f, LLVMInternalLinkage);
        if ((!late && LLVMGetEnumAttributeAtIndex(f, at, never)) ||
            !strcmp(LLVMGetValueName(f), SP_GPU_UNIT_NAME))
            continue;
        LLVMRemoveEnumAttributeAtIndex(f, at, never);
        LLVMRemoveEnumAttributeAtIndex(f, at, none);
        LLVMAddAttributeAtIndex(f, at, LLVMCreateEnumAttribute(work->context, always, 0));
    }
    return run(work, "always-inline,globaldce", log);
}

static void add_string_attribute(struct work *work, LLVMValueRef function, const char *name,
                                 const char *value)
{
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(work->context, name, (unsigned)strlen(name),
                                                      value, (unsigned)strlen(value)));
}

static enum sp_cc_status make_entries(struct work *work, struct sp_cc_text *log)
{
    bool is_uniform = has_option(work, "-cl-uniform-work-group-size");
    for (size_t i = 0; i < work->num_kernels; i++) {
        struct sp_gpu_entry *entry = &work->entries[i];
        const struct sp_kernel_info *info = &work->infos[i];
        entry->is_uniform = is_uniform || work->code->local_size[0];
        for (int d = 0; d < 3; d++)
            entry->local_size[d] =
                info->reqd_local_size[0] ? info->reqd_local_size[d] : work->code->local_size[d];
        sp_gpu_add_entry(work->module, LLVMGetNamedFunction(work->module, info->name), info, entry);
    }
    sp_gpu_add_globals_entry(work->module, &work->entries[work->num_kernels]);
    if (!inline_all(work, true, log))
        return SP_CC_INTERNAL;
    for (size_t i = 0; i <= work->num_kernels; i++) {
        struct sp_gpu_entry *entry = &work->entries[i];
        if (!entry->function)
            continue;
        sp_gpu_replace_builtins(work->module, entry);
        sp_gpu_annotate_entry(work->module, entry);
        if (sp_cc_passes_failed(sp_gpu_lower_atomics(work->module, entry, work->machine), log))
            return SP_CC_INTERNAL;
    }
    return SP_CC_OK;
}

static bool has_undefined(struct work *work, struct sp_cc_text *log)
{
    bool found = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(work->module); f; f = LLVMGetNextFunction(f)) {
        const char *name = LLVMGetValueName(f);
        if (sp_ir_is_definition(f) || !LLVMGetFirstUse(f) || !strncmp(name, "llvm.", 5))
            continue;
        sp_cc_text_format(log, "error: the library for this device has no function %s\n", name);
        found = true;
    }
    return found;
}

static enum sp_cc_status emit(struct work *work, struct sp_cc_text *image, struct sp_cc_text *log)
{
    LLVMMemoryBufferRef code = NULL;
    char *message = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(work->machine, work->module, LLVMAssemblyFile, &message,
                                            &code)) {
        sp_cc_text_format(log, "error: no code: %s\n", message);
        LLVMDisposeMessage(message);
        return SP_CC_INTERNAL;
    }
    sp_cc_text_add(image, LLVMGetBufferStart(code), LLVMGetBufferSize(code));
    sp_cc_text_add(image, "", 1); /* the terminating zero is part of the image */
    LLVMDisposeMemoryBuffer(code);
    return SP_CC_OK;
}

/* A private array that is indexed by a loop's counter lies in memory behind the caches; with the
 * loop unrolled it is registers. The target's own rules leave loops of more than a few turns. */
static bool straighten(struct work *work, struct sp_cc_text *log)
{
    LLVMValueRef *kernels = sp_cc_allocate(work->num_kernels * sizeof(*kernels));
    for (size_t i = 0; i < work->num_kernels; i++)
        kernels[i] = work->entries[i].function;
    char *error = sp_wg_straighten(work->module, kernels, work->num_kernels, false, work->machine);
    if (!error)
        error = sp_wg_unroll(work->module, kernels, work->num_kernels, work->machine);
    free(kernels);
    return !sp_cc_passes_failed(error, log);
}

static enum sp_cc_status generate(struct work *work, struct sp_cc_text *image,
                                  struct sp_cc_text *log)
{
    enum sp_cc_status status = take_kernels(work, log);
    if (status == SP_CC_OK)
        status = change_spaces(work, log);
    if (status != SP_CC_OK)
        return status;
    sp_ir_dump(work->module, "gpu-spaces");
    status = choose_definitions(work, log);
    if (status == SP_CC_OK)
        status = make_entries(work, log);
    if (status == SP_CC_OK)
        status = link_library(work);
    if (status != SP_CC_OK)
        return status;
    if (!inline_all(work, false, log))
        return SP_CC_INTERNAL;
    sp_gpu_negate_products(work->module);
    if (!run(work, MERGING, log) || !inline_all(work, true, log))
        return SP_CC_INTERNAL;
    for (size_t i = 0; i < work->num_kernels; i++) /* what the library asks for */
        sp_gpu_replace_builtins(work->module, &work->entries[i]);
    if (!run(work, TO_SCALARS, log))
        return SP_CC_INTERNAL;
    if (work->optimise && !straighten(work, log))
        return SP_CC_INTERNAL;
    sp_ir_dump(work->module, "gpu-entries");
    if (sp_cc_module_is_broken(work->module, "after making entries", log))
        return SP_CC_INTERNAL;
    if (!run(work, work->optimise ? "default<O3>" : "default<O1>", log) ||
        !run(work, BACK_TO_SCALARS, log) || has_undefined(work, log))
        return SP_CC_INTERNAL;
    bool flush = has_option(work, "-cl-denorms-are-zero"), has_pairs = false;
    for (size_t i = 0; i < work->num_kernels; i++) {
        sp_gpu_relax_divisions(work->module, work->entries[i].function, flush);
        sp_gpu_split_unaligned(work->module, work->entries[i].function);
        sp_gpu_guard_edges(work->module, &work->entries[i]);
        if (flush)
            add_string_attribute(work, work->entries[i].function, "denormal-fp-math-f32",
                                 "preserve-sign,preserve-sign");
        if (work->optimise)
            has_pairs |= sp_gpu_add_pair(work->module, &work->entries[i], work->infos[i].name);
    }
    if (has_pairs && !run(work, MERGING, log))
        return SP_CC_INTERNAL;
    if (work->optimise)
        sp_gpu_count_under_conditions(work->module);
    sp_gpu_pad_constants(work->module);
    sp_ir_dump(work->module, "gpu-optimised");
    return emit(work, image, log);
}

enum sp_cc_status sp_cc_gpu_code(const struct sp_cc_code *code, struct sp_cc_text *image,
                                 struct sp_kernel_code *kernels, struct sp_cc_text *log)
{
    struct work work = {.code = code, .num_kernels = code->kernels.count};
    work.optimise = !sp_cc_has_option(&code->options, "-cl-opt-disable");
    work.fast = work.optimise && sp_cc_has_option(&code->options, "-cl-fast-relaxed-math");
    work.machine = sp_gpu_machine(code->target, work.optimise, log);
    if (!work.machine)
        return SP_CC_BAD_REQUEST;
    enum sp_cc_status status = SP_CC_BAD_REQUEST;
    work.context = sp_cc_context_create(log);
    work.infos = sp_cc_allocate(work.num_kernels * sizeof(*work.infos));
    work.entries = sp_cc_allocate((work.num_kernels + 1) * sizeof(*work.entries));
    work.module = sp_cc_module_read(work.context, code->ir, log);
    if (work.module)
        status = generate(&work, image, log);
    for (size_t i = 0; i < work.num_kernels; i++) {
        sp_cc_undescribe(&work.infos[i]);
        kernels[i] =
            (struct sp_kernel_code){.name = code->kernels.items[i], .preferred_multiple = WARP};
    }
    free(work.infos);
    free(work.entries);
    if (work.library)
        LLVMDisposeModule(work.library);
    if (work.module)
        LLVMDisposeModule(work.module);
    LLVMDisposeTargetMachine(work.machine);
    LLVMContextDispose(work.context);
    return status;
}
