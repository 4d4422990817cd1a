/* The machine that code is made for: this one. */
#ifndef SP_COMPILER_CC_TARGET_H
#define SP_COMPILER_CC_TARGET_H

#include <llvm-c/TargetMachine.h>
#include <stdbool.h>
#include <stdint.h>

/* Sets LLVM up; once, before any other use of it, and in the server before the first fork. */
void sp_cc_target_warm_up(void);

/* A machine for this processor, position-independent code; to be ended with
 * LLVMDisposeTargetMachine. NULL where LLVM does not know the processor's architecture. */
LLVMTargetMachineRef sp_cc_target_machine(bool optimise);

/* Bits of the widest vector that code should use: 512, 256 or 128. */
uint32_t sp_cc_target_vector_bits(void);

/* Where the builtin library lies from which LINK takes; to be freed. */
char *sp_cc_target_builtins_path(void);

/* Where a library lies: what the environment's variable says, else the name beside this program; to
 * be freed. */
char *sp_cc_target_library_path(const char *variable, const char *name);

#endif
