/* The machine that code is made for: this one, or a level of x86-64 that it includes, if the
 * environment's SAMEPAGE_CPU names one. */
#ifndef SP_COMPILER_CC_TARGET_H
#define SP_COMPILER_CC_TARGET_H

#include "compiler/cc/text.h"

#include <llvm-c/TargetMachine.h>
#include <stdbool.h>
#include <stdint.h>

/* Sets LLVM up; once, before any other use of it, and in the server before the first fork. */
void sp_cc_target_warm_up(void);

/* A machine for the processor, position-independent code; to be ended with
 * LLVMDisposeTargetMachine. NULL where no code can be made: see sp_cc_target_problem. */
LLVMTargetMachineRef sp_cc_target_machine(bool optimise);

/* Why there is no machine, a line for the log; NULL if there is one. */
const char *sp_cc_target_problem(void);

/* The highest level of x86-64, 1 to 4, all of whose instructions this processor has. */
unsigned sp_cc_target_machine_level(void);

/* The level that `wanted` ("x86-64-v3") names, of those that a processor of level `machine` runs; 0
 * and a line in *problem where there is none. */
unsigned sp_cc_target_choose_level(const char *wanted, unsigned machine,
                                   struct sp_cc_text *problem);

/* Bits of the widest vector that code should use: 512, 256 or 128. */
uint32_t sp_cc_target_vector_bits(void);

/* Where the builtin library lies from which LINK takes; to be freed. */
char *sp_cc_target_builtins_path(void);

/* Where a library lies: what the environment's variable says, else the name beside this program; to
 * be freed. */
char *sp_cc_target_library_path(const char *variable, const char *name);

#endif
