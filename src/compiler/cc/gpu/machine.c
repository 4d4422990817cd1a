/* See machine.h. PTX is compiled further by the driver, for whatever GPU there is: code for an
 * older architecture runs on a newer one. */
#include "compiler/cc/gpu/machine.h"

#include "compiler/cc/target.h"

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY_NAME "nvptx.bc" /* beside samepage-cc (docs/nvptx.md) */
#define TARGET_PREFIX "nvptx64:sm_"
#define TRIPLE "nvptx64-nvidia-cuda"

/* What LLVM 19 knows, from the first on whose barriers do not count threads that have ended
 * (gpu_abi.h). */
static const unsigned architectures[] = {70, 72, 75, 80, 86, 87, 89, 90};

/* Left alone, LLVM 19 writes PTX 6.0 and 6.1 for those before it. */
#define FIRST_WITH_PTX_63 75u

/* 0 where the target is not one of ours. */
static unsigned architecture_of(const char *target)
{
    unsigned asked = 0, best = 0;
    if (strncmp(target, TARGET_PREFIX, strlen(TARGET_PREFIX)) ||
        sscanf(target + strlen(TARGET_PREFIX), "%u", &asked) != 1)
        return 0;
    for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++)
        if (architectures[i] <= asked)
            best = architectures[i];
    return best;
}

LLVMTargetMachineRef sp_gpu_machine(const char *target, bool optimise, struct sp_cc_text *log)
{
    unsigned architecture = architecture_of(target);
    LLVMTargetRef found;
    char *message = NULL;
    if (!architecture) {
        sp_cc_text_format(
            log, "error: no code can be made for '%s'; a target is " TARGET_PREFIX "%u or newer\n",
            target, architectures[0]);
        return NULL;
    }
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    if (LLVMGetTargetFromTriple(TRIPLE, &found, &message)) {
        sp_cc_text_format(log, "error: LLVM was built without code for NVIDIA GPUs: %s\n", message);
        LLVMDisposeMessage(message);
        return NULL;
    }
    char name[16];
    snprintf(name, sizeof(name), "sm_%u", architecture);
    LLVMTargetMachineOptionsRef options = LLVMCreateTargetMachineOptions();
    LLVMTargetMachineOptionsSetCPU(options, name);
    /* The atomic unit is written with activemask, of PTX 6.2, and nanosleep, of 6.3. */
    if (architecture < FIRST_WITH_PTX_63)
        LLVMTargetMachineOptionsSetFeatures(options, "+ptx63");
    LLVMTargetMachineOptionsSetRelocMode(options, LLVMRelocPIC);
    /* With any smaller one, tables of pointers become differences of addresses, which PTX cannot
     * say. */
    LLVMTargetMachineOptionsSetCodeModel(options, LLVMCodeModelLarge);
    LLVMTargetMachineOptionsSetCodeGenOptLevel(options, optimise ? LLVMCodeGenLevelAggressive
                                                                 : LLVMCodeGenLevelLess);
    LLVMTargetMachineRef machine = LLVMCreateTargetMachineWithOptions(found, TRIPLE, options);
    LLVMDisposeTargetMachineOptions(options);
    return machine;
}

char *sp_gpu_library_path(void)
{
    return sp_cc_target_library_path("SAMEPAGE_BUILTINS_NVPTX", LIBRARY_NAME);
}
