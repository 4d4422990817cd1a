/* What a kernel does with the memory behind each pointer argument, for the directory. */
#ifndef SP_COMPILER_CC_EFFECTS_H
#define SP_COMPILER_CC_EFFECTS_H

#include "compiler/cc/ir.h"

/* SP_EFFECT_ bits for one parameter of a kernel into which everything is inlined. */
uint32_t sp_cc_effect_of(LLVMValueRef parameter);

/* True where the kernel may reach memory through a pointer that it loaded or made from a number. */
bool sp_cc_follows_pointers(LLVMValueRef kernel);

#endif
