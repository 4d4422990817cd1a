/* Bitwise expressions of three vectors, which are one instruction of AVX-512. */
#ifndef SP_COMPILER_CC_LOGIC_H
#define SP_COMPILER_CC_LOGIC_H

#include <llvm-c/Core.h>
#include <stdbool.h>

/* Joins those of three operations and more, for a processor with AVX-512VL; LLVM 19 joins two. The
 * module is past the optimiser. True where something changed: what is of no more use is left to be
 * removed (dce). */
bool sp_cc_join_logic(LLVMModuleRef module);

#endif
