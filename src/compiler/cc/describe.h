/* What LINK says of a kernel (kernel_info.h), read from its IR and clang's metadata. CODE uses the
 * same for the places of arguments. */
#ifndef SP_COMPILER_CC_DESCRIBE_H
#define SP_COMPILER_CC_DESCRIBE_H

#include "compiler/cc/ir.h"
#include "compiler/cc/text.h"
#include "compiler/kernel_info.h"

/* Fills in `info`; strings and args are owned by it until sp_cc_undescribe. */
void sp_cc_describe(LLVMModuleRef module, LLVMValueRef kernel, struct sp_kernel_info *info);
void sp_cc_undescribe(struct sp_kernel_info *info);

/* False, and a sentence in the log, where an argument's type is none that the devices offer. */
bool sp_cc_can_describe(LLVMValueRef kernel, struct sp_cc_text *log);

#endif
