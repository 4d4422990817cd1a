/* From optimised IR to a shared object that the CPU driver can load. */
#ifndef SP_COMPILER_CC_OBJECT_H
#define SP_COMPILER_CC_OBJECT_H

#include "compiler/cc/text.h"
#include "compiler/protocol.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

enum sp_cc_status sp_cc_make_object(LLVMModuleRef module, LLVMTargetMachineRef machine,
                                    struct sp_cc_text *object, struct sp_cc_text *log);

#endif
