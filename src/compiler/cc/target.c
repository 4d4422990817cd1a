/* See target.h. */
#include "compiler/cc/target.h"

#include "compiler/cc/text.h"
#include "compiler/cc/tools.h"

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

#define BUILTINS_NAME "cpu.bc" /* beside samepage-cc (docs/compiler-contract.md) */

/* On AMD's Zen, to version 4 at least, gathers and scatters are many slow steps of microcode, which
 * LLVM 19 takes for fast; without them an FFT in local memory is three times as fast, a scan 1.7.
 */
#define SLOW_GATHERS ",+prefer-no-gather,+prefer-no-scatter"

/* `target` is NULL where no code can be made; `problem` says why. */
static struct {
    LLVMTargetRef target;
    char *triple;
    char *cpu;
    char *features;
    uint32_t vector_bits;
    struct sp_cc_text problem;
} host;

/* Those of the x86-64 psABI; index 0 is level 2, the least with SSE4.2. */
static const struct {
    const char *name;
    uint32_t vector_bits;
} levels[] = {{"x86-64-v2", 128}, {"x86-64-v3", 256}, {"x86-64-v4", 512}};

#define NUM_LEVELS (sizeof(levels) / sizeof(levels[0]))
#define FIRST_LEVEL 2u

unsigned sp_cc_target_machine_level(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("x86-64-v4")   ? 4
           : __builtin_cpu_supports("x86-64-v3") ? 3
           : __builtin_cpu_supports("x86-64-v2") ? 2
                                                 : 1;
}

unsigned sp_cc_target_choose_level(const char *wanted, unsigned machine, struct sp_cc_text *problem)
{
    for (unsigned level = FIRST_LEVEL; level < FIRST_LEVEL + NUM_LEVELS; level++) {
        if (strcmp(wanted, levels[level - FIRST_LEVEL].name) != 0)
            continue;
        if (level <= machine)
            return level;
        sp_cc_text_format(problem,
                          "error: SAMEPAGE_CPU is %s, whose instructions this processor has not; "
                          "unset it or take a lower level\n",
                          wanted);
        return 0;
    }
    sp_cc_text_format(problem,
                      "error: SAMEPAGE_CPU is '%s', and must be x86-64-v2, x86-64-v3, x86-64-v4 or "
                      "not set\n",
                      wanted);
    return 0;
}

static uint32_t widest_vectors(const char *features)
{
    if (strstr(features, "+avx512vl") && strstr(features, "+avx512bw"))
        return 512;
    return strstr(features, "+avx2") ? 256 : 128;
}

/* This processor, or what SAMEPAGE_CPU says; false with the problem said. How fast gathers are is
 * the processor's own in either case. */
static bool choose_processor(void)
{
    const char *wanted = getenv("SAMEPAGE_CPU");
    struct sp_cc_text features = {0};
    char *name = LLVMGetHostCPUName(), *of_host = LLVMGetHostCPUFeatures();
    bool is_given = wanted && *wanted;
    unsigned level = 0;
    if (is_given)
        level = sp_cc_target_choose_level(wanted, sp_cc_target_machine_level(), &host.problem);
    host.cpu = sp_cc_copy(level ? levels[level - FIRST_LEVEL].name : name);
    host.vector_bits = level ? levels[level - FIRST_LEVEL].vector_bits : widest_vectors(of_host);
    sp_cc_text_format(&features, "%s%s", level ? "" : of_host,
                      strncmp(name, "znver", 5) ? "" : SLOW_GATHERS + (level ? 1 : 0));
    host.features = features.bytes ? features.bytes : sp_cc_copy("");
    LLVMDisposeMessage(name);
    LLVMDisposeMessage(of_host);
    return level || !is_given;
}

void sp_cc_target_warm_up(void)
{
    char *message = NULL;
    if (host.triple)
        return;
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    host.triple = LLVMGetDefaultTargetTriple();
    if (!choose_processor())
        return;
    if (LLVMGetTargetFromTriple(host.triple, &host.target, &message)) {
        LLVMDisposeMessage(message);
        host.target = NULL;
        sp_cc_text_format(&host.problem, "error: this processor is not known to the compiler\n");
    }
    /* The first machine fills tables that later ones share; a child then finds them filled. */
    LLVMTargetMachineRef machine = sp_cc_target_machine(true);
    if (machine)
        LLVMDisposeTargetMachine(machine);
}

LLVMTargetMachineRef sp_cc_target_machine(bool optimise)
{
    if (!host.target)
        return NULL;
    LLVMTargetMachineOptionsRef options = LLVMCreateTargetMachineOptions();
    LLVMTargetMachineOptionsSetCPU(options, host.cpu);
    LLVMTargetMachineOptionsSetFeatures(options, host.features);
    LLVMTargetMachineOptionsSetRelocMode(options, LLVMRelocPIC);
    LLVMTargetMachineOptionsSetCodeGenOptLevel(options, optimise ? LLVMCodeGenLevelDefault
                                                                 : LLVMCodeGenLevelLess);
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachineWithOptions(host.target, host.triple, options);
    LLVMDisposeTargetMachineOptions(options);
    return machine;
}

uint32_t sp_cc_target_vector_bits(void)
{
    return host.vector_bits;
}

const char *sp_cc_target_problem(void)
{
    return host.problem.bytes;
}

char *sp_cc_target_builtins_path(void)
{
    return sp_cc_target_library_path("SAMEPAGE_BUILTINS", BUILTINS_NAME);
}

char *sp_cc_target_library_path(const char *variable, const char *name)
{
    const char *given = getenv(variable);
    return given && *given ? sp_cc_copy(given) : sp_cc_path_beside(name);
}
