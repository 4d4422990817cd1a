/* See constants.h. LLVM 19 writes the bytes of a constant int3 without the four behind it, so that
 * all that follows in an array or structure lies four bytes too low. Here such a vector becomes an
 * array of four, and a structure a packed one with its gaps filled.
 */
#include "compiler/cc/gpu/constants.h"

#include "compiler/cc/text.h"
#include "compiler/cc/tools.h"

#include <llvm-c/Target.h>
#include <stdbool.h>
#include <stdlib.h>

static uint64_t size_of(LLVMTargetDataRef layout, LLVMTypeRef type)
{
    return LLVMABISizeOfType(layout, type);
}

/* Elements of a vector with those that its size has room for. */
static unsigned padded_lanes(LLVMTargetDataRef layout, LLVMTypeRef vector)
{
    LLVMTypeRef element = LLVMGetElementType(vector);
    return (unsigned)(size_of(layout, vector) / size_of(layout, element));
}

static bool has_padding(LLVMTargetDataRef layout, LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMVectorTypeKind:
        return padded_lanes(layout, type) > LLVMGetVectorSize(type);
    case LLVMArrayTypeKind:
        return has_padding(layout, LLVMGetElementType(type));
    case LLVMStructTypeKind:
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            if (has_padding(layout, LLVMStructGetTypeAtIndex(type, i)))
                return true;
        return false;
    default:
        return false;
    }
}

/* The bytes between a member of a structure, which then has `type`, and the next one, or the end.
 */
static uint64_t gap_behind(LLVMTargetDataRef layout, LLVMTypeRef structure, unsigned member)
{
    unsigned count = LLVMCountStructElementTypes(structure);
    uint64_t end = member + 1 < count ? LLVMOffsetOfElement(layout, structure, member + 1)
                                      : size_of(layout, structure);
    return end - LLVMOffsetOfElement(layout, structure, member) -
           size_of(layout, LLVMStructGetTypeAtIndex(structure, member));
}

static LLVMTypeRef bytes_type(LLVMTypeRef structure, uint64_t bytes)
{
    return LLVMArrayType2(LLVMInt8TypeInContext(LLVMGetTypeContext(structure)), bytes);
}

/* The type with padding spelt out. */
static LLVMTypeRef pad_type(LLVMTargetDataRef layout, LLVMTypeRef type)
{
    if (!has_padding(layout, type))
        return type;
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        return LLVMArrayType2(LLVMGetElementType(type), padded_lanes(layout, type));
    if (LLVMGetTypeKind(type) == LLVMArrayTypeKind)
        return LLVMArrayType2(pad_type(layout, LLVMGetElementType(type)),
                              LLVMGetArrayLength2(type));
    unsigned count = LLVMCountStructElementTypes(type), made = 0;
    LLVMTypeRef *members = sp_cc_allocate(2 * count * sizeof(LLVMTypeRef));
    for (unsigned i = 0; i < count; i++) {
        members[made++] = pad_type(layout, LLVMStructGetTypeAtIndex(type, i));
        if (gap_behind(layout, type, i))
            members[made++] = bytes_type(type, gap_behind(layout, type, i));
    }
    LLVMTypeRef padded = LLVMStructTypeInContext(LLVMGetTypeContext(type), members, made, true);
    free(members);
    return padded;
}

/* The constant in the type that pad_type gives its own; NULL where it is not written out. */
static LLVMValueRef pad(LLVMTargetDataRef layout, LLVMValueRef constant)
{
    LLVMTypeRef type = LLVMTypeOf(constant), padded = pad_type(layout, type);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (padded == type)
        return constant;
    if (LLVMIsNull(constant) || LLVMIsUndef(constant))
        return LLVMConstNull(padded);
    bool is_structure = kind == LLVMStructTypeKind;
    size_t count = is_structure                ? LLVMCountStructElementTypes(type)
                   : kind == LLVMArrayTypeKind ? LLVMGetArrayLength2(type)
                                               : LLVMGetVectorSize(type);
    size_t room = is_structure                ? LLVMCountStructElementTypes(padded)
                  : kind == LLVMArrayTypeKind ? count
                                              : LLVMGetArrayLength2(padded);
    LLVMValueRef *values = sp_cc_allocate((room + 1) * sizeof(LLVMValueRef)), whole = NULL;
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        LLVMValueRef element = LLVMGetAggregateElement(constant, (unsigned)i);
        values[made] = element ? pad(layout, element) : NULL;
        if (!values[made++])
            goto out;
        if (is_structure && gap_behind(layout, type, (unsigned)i))
            values[made++] = LLVMConstNull(bytes_type(type, gap_behind(layout, type, (unsigned)i)));
    }
    for (; made < room; made++) /* the vector's own */
        values[made] = LLVMConstNull(LLVMGetElementType(padded));
    whole = is_structure
                ? LLVMConstStructInContext(LLVMGetTypeContext(type), values, (unsigned)room, true)
                : LLVMConstArray2(LLVMGetElementType(padded), values, room);
out:
    free(values);
    return whole;
}

static void pad_variable(LLVMModuleRef module, LLVMTargetDataRef layout, LLVMValueRef variable)
{
    LLVMValueRef initial = LLVMGetInitializer(variable);
    LLVMTypeRef type = LLVMGlobalGetValueType(variable);
    LLVMValueRef padded = initial && has_padding(layout, type) ? pad(layout, initial) : NULL;
    if (!padded)
        return;
    struct sp_cc_text text = {0};
    size_t length;
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(variable));
    unsigned alignment = LLVMGetAlignment(variable);
    LLVMValueRef other = LLVMAddGlobalInAddressSpace(module, LLVMTypeOf(padded), "", space);
    LLVMSetInitializer(other, padded);
    LLVMSetAlignment(other, alignment ? alignment : LLVMABIAlignmentOfType(layout, type));
    LLVMSetGlobalConstant(other, LLVMIsGlobalConstant(variable));
    LLVMSetLinkage(other, LLVMGetLinkage(variable));
    LLVMSetUnnamedAddress(other, LLVMGetUnnamedAddress(variable));
    LLVMReplaceAllUsesWith(variable, other);
    const char *name = LLVMGetValueName2(variable, &length);
    sp_cc_text_add(&text, name, length);
    LLVMDeleteGlobal(variable);
    LLVMSetValueName2(other, text.bytes, text.size);
    sp_cc_text_finish(&text);
}

void sp_gpu_pad_constants(LLVMModuleRef module)
{
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(module);
    LLVMValueRef next;
    for (LLVMValueRef variable = LLVMGetFirstGlobal(module); variable; variable = next) {
        next = LLVMGetNextGlobal(variable);
        pad_variable(module, layout, variable);
    }
}
