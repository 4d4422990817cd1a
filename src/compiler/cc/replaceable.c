/* See replaceable.h. A replaceable function is called, not inlined, through LINK: no pass there
 * looks into it from a caller. One promise of its definition would be believed by the caller all
 * the same, that it returns an argument; so that is withdrawn. */
#include "compiler/cc/replaceable.h"

#include "compiler/cc/link.h"

#include <string.h>

static unsigned attribute_kind(const char *name)
{
    return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

bool sp_cc_is_replaceable(LLVMValueRef function)
{
    return !strncmp(LLVMGetValueName(function), SP_TARGET_PREFIX, strlen(SP_TARGET_PREFIX));
}

void sp_cc_keep_replaceable(LLVMValueRef function)
{
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMRemoveEnumAttributeAtIndex(function, at, attribute_kind("alwaysinline"));
    for (unsigned i = 0; i < LLVMCountParams(function); i++)
        LLVMRemoveEnumAttributeAtIndex(function, i + 1, attribute_kind("returned"));
}

char *sp_cc_take_replaceable(LLVMModuleRef module)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    bool any = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (!sp_cc_is_replaceable(f) || !sp_ir_is_definition(f))
            continue;
        LLVMAddAttributeAtIndex(
            f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
            LLVMCreateEnumAttribute(context, attribute_kind("alwaysinline"), 0));
        any = true;
    }
    return any ? sp_ir_run_passes(module, "always-inline,globaldce," SP_CC_CLEANING, NULL) : NULL;
}
