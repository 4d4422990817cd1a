/* See code.h. Places of variables are found in the IR as LINK left it, before anything is removed;
 * then the wanted kernels become work-group functions (workgroup/), and LLVM's own pipeline does
 * the rest. */
#include "compiler/cc/code.h"

#include "compiler/cc/describe.h"
#include "compiler/cc/gpu/gpu.h"
#include "compiler/cc/layout.h"
#include "compiler/cc/libm.h"
#include "compiler/cc/logic.h"
#include "compiler/cc/module.h"
#include "compiler/cc/object.h"
#include "compiler/cc/replaceable.h"
#include "compiler/cc/target.h"
#include "compiler/cc/workgroup/emit.h"
#include "compiler/cc/workgroup/ends.h"
#include "compiler/cc/workgroup/metadata.h"
#include "compiler/cc/workgroup/prepare.h"
#include "compiler/cc/workgroup/row_turns.h"
#include "compiler/cc/workgroup/rows.h"
#include "compiler/cc/workgroup/special.h"
#include "compiler/cc/workgroup/sums.h"
#include "compiler/cc/workgroup/turns.h"
#include "compiler/cc/workgroup/unroll.h"
#include "compiler/cpu_abi.h"

#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

/* Instructions of work-group functions beyond which a loop's last work-items are not worth vectors
 * of their own: the rounds of a hash would become machine code a third time (SHA-256: 1.5 s, 1.2
 * without). */
#define LARGE_CODE 3000u

/* Instructions of one block beyond which no vectors are made of neighbours in it (LLVM's SLP),
 * which asks for each pair: 20000 took 8 s, and gave eight vectors (a generator of random numbers
 * in a straight line). */
#define LARGE_BLOCK 5000u

/* Accesses of one block beyond which LLVM's schedulers do not compare each with each (its default
 * is 1000): sixteen numbers of each work-item sorted in a straight line took 0.75 s to become
 * machine code, 0.27 with this, and as much code. */
#define SCHEDULED_ACCESSES "200"

/* Blocks of a kernel beyond which it gets scalar code only: side by side, work-items would go
 * through all of them under masks, and what is kept for each of them takes quadratic time to follow
 * (hashes that put a password of any length at any place: 16000 blocks: 35 s, 9 so). */
#define MANY_BLOCKS 2000u

/* Loops around one another, of which the innermost keeps a sum in memory. */
#define SUM_DEPTH "8"

/* Whether LLVM bets on 1 where it does not know how far apart accesses lie, as the columns of a
 * matrix of n columns, and makes poor code for what is then usual (products of matrices: half as
 * fast with sums in registers, which were kept there for n = 1 alone). */
#define STRIDES_OF_ONE "false"

#define LEAST_LANES 4u /* of any vector: 128 bits of 32-bit numbers */

#define MAX_WORK_GROUP_SIZE 1024u /* SP_MAX_WORK_GROUP_SIZE (docs/compiler-contract.md) */

/* One wanted kernel on its way. */
struct kernel {
    LLVMValueRef function;
    LLVMValueRef special; /* its copy for vector code (special.h), or NULL */
    bool has_vectors;     /* the source's; scalar code keeps them */
    bool writes_rows;     /* sp_wg_writes_rows: scalar code only */
    bool moves_vectors;   /* sp_wg_moves_whole_vectors: scalar code only, with these vectors */
    bool is_maze;         /* of more than MANY_BLOCKS blocks: scalar code only */
    uint64_t size[3];     /* that size; 0 0 0 for any */
    struct sp_kernel_info info;
    struct sp_cc_layout locals;
};

struct work {
    const struct sp_cc_code *code;
    LLVMModuleRef module;
    struct kernel *kernels;
    struct sp_cc_layout globals;
    LLVMTargetMachineRef machine;
    bool optimise;
};

bool sp_cc_has_option(const struct sp_cc_strings *options, const char *option)
{
    for (size_t i = 0; i < options->count; i++)
        if (!strcmp(options->items[i], option))
            return true;
    return false;
}

static bool is_wanted(const struct work *work, LLVMValueRef function)
{
    for (size_t i = 0; i < work->code->kernels.count; i++)
        if (work->kernels[i].function == function)
            return true;
    return false;
}

static enum sp_cc_status find_kernels(struct work *work, struct sp_cc_text *log)
{
    for (size_t i = 0; i < work->code->kernels.count; i++) {
        const char *name = work->code->kernels.items[i];
        LLVMValueRef function = LLVMGetNamedFunction(work->module, name);
        if (!function || !sp_ir_is_definition(function)) {
            sp_cc_text_format(log, "error: the program has no kernel '%s'\n", name);
            return SP_CC_BAD_REQUEST;
        }
        work->kernels[i].function = function;
        sp_cc_describe(work->module, function, &work->kernels[i].info);
        sp_cc_layout_locals(work->module, function, &work->kernels[i].locals);
        work->kernels[i].has_vectors = sp_wg_uses_vectors(function);
        work->kernels[i].moves_vectors =
            sp_wg_moves_whole_vectors(function, sp_cc_target_vector_bits());
        work->kernels[i].is_maze = LLVMCountBasicBlocks(function) > MANY_BLOCKS;
    }
    sp_cc_layout_globals(work->module, &work->globals);
    return SP_CC_OK;
}

/* Scopes narrower than the system become the system's: never weaker, and the same instructions on a
 * CPU. */
static void widen_atomics(LLVMValueRef function)
{
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value)) {
            bool access = LLVMIsALoadInst(value) || LLVMIsAStoreInst(value);
            if (LLVMIsAFenceInst(value) || LLVMIsAAtomicRMWInst(value) ||
                LLVMIsAAtomicCmpXchgInst(value) ||
                (access && LLVMGetOrdering(value) != LLVMAtomicOrderingNotAtomic))
                LLVMSetAtomicSingleThread(value, false);
        }
}

static void keep_wanted(struct work *work)
{
    LLVMValueRef next;
    for (LLVMValueRef f = LLVMGetFirstFunction(work->module); f; f = next) {
        next = LLVMGetNextFunction(f);
        if (!sp_ir_is_definition(f))
            continue;
        if (is_wanted(work, f))
            widen_atomics(f);
        else
            LLVMDeleteFunction(f);
    }
}

static void set_target(struct work *work)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(work->machine);
    char *triple = LLVMGetTargetMachineTriple(work->machine);
    LLVMSetModuleDataLayout(work->module, layout);
    LLVMSetTarget(work->module, triple);
    LLVMDisposeMessage(triple);
    LLVMDisposeTargetData(layout);
}

static bool is_known(const uint64_t size[3])
{
    return size[0] && size[1] && size[2] && size[0] <= MAX_WORK_GROUP_SIZE &&
           size[1] <= MAX_WORK_GROUP_SIZE && size[2] <= MAX_WORK_GROUP_SIZE &&
           size[0] * size[1] * size[2] <= MAX_WORK_GROUP_SIZE;
}

/* The size that the kernel must be launched with, else the one asked for; 0 0 0 for any. */
static void choose_size(const struct work *work, const struct kernel *kernel, uint64_t size[3])
{
    for (int d = 0; d < 3; d++)
        size[d] = kernel->info.reqd_local_size[d];
    if (!is_known(size))
        memcpy(size, work->code->local_size, 3 * sizeof(uint64_t));
    if (!is_known(size))
        memset(size, 0, 3 * sizeof(uint64_t));
}

/* What the forms of one kernel are emitted from. */
struct forming {
    struct sp_wg_environment env;
    const struct kernel *kernel;
    struct sp_kernel_code *result;
};

static void take_plan(struct forming *forming, struct sp_wg_plan *plan, enum sp_wg_form form)
{
    const struct kernel *kernel = forming->kernel;
    bool special = kernel->special && form != SP_WG_SCALAR;
    sp_wg_plan_init(plan, special ? kernel->special : kernel->function, form);
    if (forming->result->context_item_bytes < plan->item_bytes)
        forming->result->context_item_bytes = plan->item_bytes;
}

static LLVMValueRef emit_form(struct forming *forming, enum sp_wg_form form, const char *name,
                              const uint64_t *size)
{
    struct sp_wg_plan plan;
    take_plan(forming, &plan, form);
    LLVMValueRef function = sp_wg_emit(&plan, &forming->env, name, size);
    sp_wg_plan_finish(&plan);
    return function;
}

static LLVMValueRef hidden(LLVMValueRef function)
{
    LLVMSetLinkage(function, LLVMInternalLinkage);
    return function;
}

/* Code for groups that agree at the kernel's first branch, and `other` for the rest. */
static LLVMValueRef emit_agreed(struct forming *forming, const char *name, const uint64_t *size,
                                LLVMValueRef other)
{
    struct sp_wg_plan plan;
    take_plan(forming, &plan, SP_WG_AGREED);
    LLVMValueRef agreed = hidden(sp_wg_emit(&plan, &forming->env, "agreed", size));
    LLVMValueRef function = sp_wg_emit_agreement(&plan, &forming->env, name, size, agreed, other);
    sp_wg_plan_finish(&plan);
    return function;
}

/* Every kernel has a scalar form for any group, and a vector form for most: of the whole known
 * size, or, where none is known, of some length in x. */
static void form_work_group(struct work *work, const struct kernel *kernel, LLVMMetadataRef group,
                            struct sp_kernel_code *result)
{
    struct forming forming = {.env = {.module = work->module,
                                      .info = &kernel->info,
                                      .locals = &kernel->locals,
                                      .globals = &work->globals,
                                      .access_group = group,
                                      .vector_bits = sp_cc_target_vector_bits()},
                              .kernel = kernel,
                              .result = result};
    struct sp_cc_text name = {0};
    sp_cc_text_format(&name, SP_CPU_KERNEL_SYMBOL_PREFIX "%s", kernel->info.name);
    result->context_fixed_bytes = 0;
    result->context_item_bytes = 0;
    result->preferred_multiple = forming.env.vector_bits / 32;
    const uint64_t *known = kernel->size[0] ? kernel->size : NULL;
    LLVMValueRef whole = kernel->special ? kernel->special : kernel->function;
    if (work->optimise && !kernel->is_maze && !kernel->writes_rows && !kernel->moves_vectors &&
        !sp_wg_vectors_lose(kernel->has_vectors ? whole : kernel->function)) {
        LLVMValueRef any = hidden(emit_form(&forming, SP_WG_SCALAR, "any", NULL));
        LLVMValueRef full = sp_wg_agreement_pays(whole)
                                ? emit_agreed(&forming, "full", known, any)
                                : emit_form(&forming, SP_WG_VECTOR, "full", known);
        sp_wg_emit_choice(&forming.env, name.bytes, known, hidden(full), any);
    } else {
        emit_form(&forming, SP_WG_SCALAR, name.bytes, NULL);
    }
    sp_cc_text_finish(&name);
}

/* The kernels as written are of no more use, and hold the last calls of functions that do not
 * exist. */
static void delete_kernels(struct work *work)
{
    for (size_t i = 0; i < work->code->kernels.count; i++) {
        if (work->kernels[i].function)
            LLVMDeleteFunction(work->kernels[i].function);
        if (work->kernels[i].special)
            LLVMDeleteFunction(work->kernels[i].special);
    }
}

/* Copies for vector code: of kernels whose local size is known, where it is a constant, of those
 * with loops over private arrays, whose turns hang on no size, and of those with vectors of their
 * own, which become scalars there. */
static bool gets_copy(const struct work *work, const struct kernel *kernel, bool known)
{
    if (!work->optimise || kernel->is_maze || kernel->moves_vectors)
        return false;
    return known ? kernel->size[0]
                 : !kernel->size[0] && (kernel->info.loops_over_private || kernel->has_vectors);
}

static bool make_copies(struct work *work, bool known, struct sp_cc_text *log)
{
    size_t count = 0, all = work->code->kernels.count;
    LLVMValueRef *kernels = sp_cc_allocate(all * sizeof(LLVMValueRef));
    LLVMValueRef *copies = sp_cc_allocate(all * sizeof(LLVMValueRef));
    bool made = true;
    for (size_t i = 0; i < all; i++)
        if (gets_copy(work, &work->kernels[i], known))
            kernels[count++] = work->kernels[i].function;
    if (count && !sp_wg_copy_kernels(work->module, kernels, count, copies)) {
        sp_cc_text_format(log, "error: kernels cannot be copied\n");
        made = false;
    }
    size_t next = 0;
    for (size_t i = 0; i < all && next < count && made; i++)
        if (work->kernels[i].function == kernels[next]) {
            work->kernels[i].special = copies[next++];
            if (known)
                sp_wg_fix_local_size(work->kernels[i].special, work->kernels[i].size);
        }
    free(kernels);
    free(copies);
    return made;
}

/* Work-items that become vectors need scalars to be made of. Scalar code, and code for fewer than
 * any vector has lanes, works with the source's own vectors: a program that has one work-item in
 * each group has nothing else (the hashes of a password cracker: 2 to 3 times as fast). */
static void keep_as_written(struct work *work)
{
    for (size_t i = 0; i < work->code->kernels.count; i++) {
        struct kernel *kernel = &work->kernels[i];
        if (kernel->special || kernel->is_maze || kernel->moves_vectors || !work->optimise)
            sp_wg_keep_vectors(kernel->function);
        if (kernel->is_maze && !kernel->info.has_barrier)
            sp_wg_keep_values(kernel->function);
        if (kernel->special && kernel->size[0] &&
            kernel->size[0] * kernel->size[1] * kernel->size[2] < LEAST_LANES)
            sp_wg_keep_vectors(kernel->special);
    }
}

static bool make_special(struct work *work, struct sp_cc_text *log)
{
    for (size_t i = 0; i < work->code->kernels.count; i++)
        choose_size(work, &work->kernels[i], work->kernels[i].size);
    return make_copies(work, true, log) && make_copies(work, false, log);
}

/* Straightens the copies of one sort (gets_copy). A message on failure, to be freed, else NULL. */
static char *straighten(const struct work *work, bool known)
{
    size_t count = 0, all = work->code->kernels.count;
    LLVMValueRef *copies = sp_cc_allocate(all * sizeof(LLVMValueRef));
    for (size_t i = 0; i < all; i++)
        if (gets_copy(work, &work->kernels[i], known))
            copies[count++] = work->kernels[i].special;
    char *error = NULL;
    if (count)
        error = sp_wg_straighten(work->module, copies, count, known, work->machine);
    free(copies);
    return error;
}

/* What vector code is made of; the scalar form beside a copy keeps its loops: unrolled it would
 * take as long to make as all the rest. */
static char *unroll(const struct work *work)
{
    size_t count = work->code->kernels.count;
    LLVMValueRef *kernels = sp_cc_allocate(count * sizeof(LLVMValueRef));
    for (size_t i = 0; i < count; i++)
        kernels[i] =
            work->kernels[i].special ? work->kernels[i].special : work->kernels[i].function;
    char *error = sp_wg_unroll(work->module, kernels, count, work->machine);
    if (!error)
        error = sp_wg_widen_row_turns(work->module, kernels, count, sp_cc_target_vector_bits(),
                                      work->machine);
    free(kernels);
    return error;
}

/* An option of LLVM's for the whole process, which makes the code of one request, as a rule; tests
 * make more. It cannot be taken back, nor given twice. */
static void tell_llvm(const char *option, bool *is_said)
{
    const char *const words[] = {"samepage-cc", option};
    if (!*is_said)
        LLVMParseCommandLineOptions(2, words, NULL);
    *is_said = true;
}

/* Loops in which LLVM's versioning would see too little that stays in place, or that lie too deep:
 * which loops it is for is said by marks. */
static char *keep_sums(const struct work *work)
{
    static bool share_said, depth_said;
    tell_llvm("-licm-versioning-invariant-threshold=1", &share_said);
    tell_llvm("-licm-versioning-max-depth-threshold=" SUM_DEPTH, &depth_said);
    size_t count = work->code->kernels.count;
    LLVMValueRef *kernels = sp_cc_allocate(2 * count * sizeof(LLVMValueRef));
    size_t num = 0;
    for (size_t i = 0; i < count; i++) {
        if (work->kernels[i].is_maze)
            continue;
        kernels[num++] = work->kernels[i].function;
        if (work->kernels[i].special)
            kernels[num++] = work->kernels[i].special;
    }
    char *error = sp_wg_keep_sums(work->module, kernels, num, work->machine);
    free(kernels);
    return error;
}

/* Loops that suit work-items side by side: first common turns, which are seen before loops are
 * rotated, then those that go away. */
static bool shape_loops(struct work *work, struct sp_cc_text *log)
{
    static bool stride_said;
    tell_llvm("-enable-mem-access-versioning=" STRIDES_OF_ONE, &stride_said);
    char *error = sp_ir_run_passes(work->module, SP_WG_CLOSED_LOOPS, work->machine);
    for (size_t i = 0; i < work->code->kernels.count && !error; i++) {
        const struct kernel *kernel = &work->kernels[i];
        sp_wg_share_turns(work->module, kernel->function, NULL);
        if (kernel->special)
            sp_wg_share_turns(work->module, kernel->special, kernel->size[0] ? kernel->size : NULL);
    }
    if (!error)
        error = straighten(work, true);
    if (!error)
        error = straighten(work, false);
    if (!error)
        error = keep_sums(work);
    if (!error)
        error = unroll(work);
    for (size_t i = 0; i < work->code->kernels.count && !error; i++) {
        struct kernel *kernel = &work->kernels[i];
        kernel->writes_rows =
            sp_wg_writes_rows(kernel->special ? kernel->special : kernel->function);
    }
    return !sp_cc_passes_failed(error, log);
}

/* Instructions of the whole module, and in *largest those of its largest block. */
static unsigned count_instructions(LLVMModuleRef module, unsigned *largest)
{
    unsigned count = 0;
    LLVMBasicBlockRef block;
    *largest = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block)) {
            unsigned before = count;
            for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
                 value = LLVMGetNextInstruction(value))
                count++;
            if (count - before > *largest)
                *largest = count - before;
        }
    return count;
}

/* What would take long and is worth little in large code. */
static void spare_time(LLVMModuleRef module, bool has_maze)
{
    static bool accesses_said, rests_said, neighbours_said, domains_said;
    unsigned largest, count = count_instructions(module, &largest);
    tell_llvm("-dag-maps-huge-region=" SCHEDULED_ACCESSES, &accesses_said);
    if (count > LARGE_CODE)
        tell_llvm("-enable-epilogue-vectorization=false", &rests_said);
    if (largest > LARGE_BLOCK || has_maze) /* of 48000 blocks: 21 s in LLVM's passes, 10 without */
        tell_llvm("-vectorize-slp=false", &neighbours_said);
    if (has_maze) /* bits moved from one sort of register to another: half of all machine code's
                     time */
        tell_llvm("-disable-x86-domain-reassignment", &domains_said);
}

static bool run(struct work *work, const char *passes, struct sp_cc_text *log)
{
    return !sp_cc_passes_failed(sp_ir_run_passes(work->module, passes, work->machine), log);
}

/* Division stays a division where precision may be less (-cl-fast-relaxed-math): an estimate of 12
 * bits, improved once, is off by 3 ulp, of which 2.5 are allowed (OpenCL C 3.0, 7.4), and improved
 * twice it takes as long (Zen 4). */
static void keep_divisions(LLVMModuleRef module)
{
    static const char kind[] = "reciprocal-estimates", value[] = "!divf,!vec-divf";
    LLVMAttributeRef attribute = LLVMCreateStringAttribute(
        LLVMGetModuleContext(module), kind, (unsigned)strlen(kind), value, (unsigned)strlen(value));
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (sp_ir_is_definition(f))
            LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

/* What LLVM's vectors of work-items leave to be done. */
static bool finish_vectors(struct work *work, struct sp_cc_text *log)
{
    bool changed = sp_wg_join_rows(work->module);
    if (sp_cc_target_vector_bits() == 512)
        changed |= sp_cc_join_logic(work->module);
    return !changed || run(work, "function(dce)", log);
}

static enum sp_cc_status generate(struct work *work, struct sp_kernel_code *results,
                                  struct sp_cc_text *object, struct sp_cc_text *log)
{
    LLVMMetadataRef group = sp_wg_access_group(LLVMGetModuleContext(work->module));
    keep_wanted(work);
    set_target(work);
    if (work->optimise && (!make_special(work, log) || !shape_loops(work, log)))
        return SP_CC_INTERNAL;
    keep_as_written(work);
    if (sp_cc_passes_failed(sp_wg_prepare(work->module, work->machine), log))
        return SP_CC_INTERNAL;
    sp_ir_dump(work->module, "prepared");
    bool has_maze = false;
    for (size_t i = 0; i < work->code->kernels.count; i++) {
        results[i].name = work->code->kernels.items[i];
        form_work_group(work, &work->kernels[i], group, &results[i]);
        has_maze |= work->kernels[i].is_maze;
    }
    delete_kernels(work);
    keep_divisions(work->module);
    sp_cc_add_globals_init(work->module, &work->globals);
    sp_cc_bind_libm(work->module, sp_cc_target_vector_bits());
    sp_ir_dump(work->module, "workgroup");
    if (sp_cc_module_is_broken(work->module, "after work-group formation", log))
        return SP_CC_INTERNAL;
    spare_time(work->module, has_maze);
    if (!run(work, work->optimise ? "globaldce,default<O3>" : "globaldce,default<O1>", log))
        return SP_CC_INTERNAL;
    if (sp_cc_passes_failed(sp_wg_finish_ends(work->module, work->machine), log))
        return SP_CC_INTERNAL;
    if (work->optimise && !finish_vectors(work, log))
        return SP_CC_INTERNAL;
    sp_ir_dump(work->module, "optimised");
    return sp_cc_make_object(work->module, work->machine, object, log);
}

enum sp_cc_status sp_cc_code(const struct sp_cc_code *code, struct sp_cc_text *object,
                             struct sp_kernel_code *results, struct sp_cc_text *log)
{
    if (code->target && *code->target)
        return sp_cc_gpu_code(code, object, results, log);
    struct work work = {.code = code,
                        .optimise = !sp_cc_has_option(&code->options, "-cl-opt-disable")};
    LLVMContextRef context = sp_cc_context_create(log);
    enum sp_cc_status status = SP_CC_BAD_REQUEST;
    work.kernels = sp_cc_allocate(code->kernels.count * sizeof(*work.kernels));
    work.machine = sp_cc_target_machine(work.optimise);
    work.module = sp_cc_module_read(context, code->ir, log);
    if (!work.machine) {
        sp_cc_text_format(log, "%s", sp_cc_target_problem());
        status = SP_CC_INTERNAL;
    } else if (work.module) {
        status = sp_cc_passes_failed(sp_cc_take_replaceable(work.module), log)
                     ? SP_CC_INTERNAL
                     : find_kernels(&work, log);
        if (status == SP_CC_OK)
            status = generate(&work, results, object, log);
    }
    for (size_t i = 0; i < code->kernels.count; i++) {
        sp_cc_undescribe(&work.kernels[i].info);
        sp_cc_layout_finish(&work.kernels[i].locals);
    }
    free(work.kernels);
    sp_cc_layout_finish(&work.globals);
    if (work.module)
        LLVMDisposeModule(work.module);
    if (work.machine)
        LLVMDisposeTargetMachine(work.machine);
    LLVMContextDispose(context);
    return status;
}
