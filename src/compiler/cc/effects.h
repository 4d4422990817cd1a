/* What a kernel does with the memory behind each pointer argument, for the directory. */
#ifndef SP_COMPILER_CC_EFFECTS_H
#define SP_COMPILER_CC_EFFECTS_H

#include "compiler/cc/ir.h"

/* SP_EFFECT_ bits for one parameter of a kernel into which everything is inlined. */
uint32_t sp_cc_effect_of(LLVMValueRef parameter);

/* What the kernel does through pointers that it loaded from memory or made from numbers:
 * SP_EFFECT_READ, SP_EFFECT_WRITE, both, or 0 where it follows none. */
uint32_t sp_cc_followed_effect(LLVMValueRef kernel);

#endif
