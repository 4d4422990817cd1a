/* See target.h. */
#include "compiler/cc/target.h"

#include "compiler/cc/text.h"
#include "compiler/cc/tools.h"

#include <limits.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUILTINS_NAME "cpu.bc" /* beside samepage-cc (docs/compiler-contract.md) */

/* On AMD's Zen, to version 4 at least, gathers and scatters are many slow steps of microcode, which
 * LLVM 19 takes for fast; without them an FFT in local memory is three times as fast, a scan 1.7.
 */
#define SLOW_GATHERS ",+prefer-no-gather,+prefer-no-scatter"

static struct {
    LLVMTargetRef target;
    char *triple;
    char *cpu;
    char *features;
} host;

/* Owned by the caller. */
static char *host_features(const char *cpu)
{
    struct sp_cc_text features = {0};
    char *of_host = LLVMGetHostCPUFeatures();
    sp_cc_text_format(&features, "%s%s", of_host, strncmp(cpu, "znver", 5) ? "" : SLOW_GATHERS);
    LLVMDisposeMessage(of_host);
    return features.bytes;
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
    host.cpu = LLVMGetHostCPUName();
    host.features = host_features(host.cpu);
    if (LLVMGetTargetFromTriple(host.triple, &host.target, &message)) {
        LLVMDisposeMessage(message);
        host.target = NULL;
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
    if (host.features && strstr(host.features, "+avx512vl") && strstr(host.features, "+avx512bw"))
        return 512;
    return host.features && strstr(host.features, "+avx2") ? 256 : 128;
}

char *sp_cc_target_builtins_path(void)
{
    return sp_cc_target_library_path("SAMEPAGE_BUILTINS", BUILTINS_NAME);
}

char *sp_cc_target_library_path(const char *variable, const char *name)
{
    const char *given = sp_cc_tool_path(variable, NULL);
    struct sp_cc_text path = {0};
    char self[PATH_MAX];
    if (given)
        return sp_cc_copy(given);
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    sp_cc_text_format(&path, "%s/%s", self, name);
    return path.bytes;
}
