/* See describe.h. clang describes kernels in function metadata: kernel_arg_type and its kin (one
 * string per argument, with -cl-kernel-arg-info), reqd_work_group_size, work_group_size_hint (three
 * numbers) and vec_type_hint (a value of the type, and whether it is signed). */
#include "compiler/cc/describe.h"

#include "compiler/cc/effects.h"
#include "compiler/cc/layout.h"
#include "compiler/cc/replaceable.h"

#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

#define POINTER_BYTES 8u

/* The operands of a function's metadata node; a count of 0 where there is none. */
struct node {
    LLVMValueRef *operands; /* owned */
    unsigned count;
};

static struct node node_of(LLVMValueRef function, const char *name)
{
    struct node node = {0};
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    unsigned kind = LLVMGetMDKindIDInContext(context, name, (unsigned)strlen(name));
    size_t count;
    LLVMValueMetadataEntry *entries = LLVMGlobalCopyAllMetadata(function, &count);
    for (size_t i = 0; i < count; i++) {
        if (LLVMValueMetadataEntriesGetKind(entries, (unsigned)i) != kind)
            continue;
        LLVMValueRef value =
            LLVMMetadataAsValue(context, LLVMValueMetadataEntriesGetMetadata(entries, (unsigned)i));
        node.count = LLVMGetMDNodeNumOperands(value);
        node.operands = sp_cc_allocate(node.count * sizeof(LLVMValueRef));
        LLVMGetMDNodeOperands(value, node.operands);
        break;
    }
    LLVMDisposeValueMetadataEntries(entries);
    return node;
}

static char *string_at(const struct node *node, unsigned index)
{
    unsigned length = 0;
    const char *text = index < node->count && node->operands[index]
                           ? LLVMGetMDString(node->operands[index], &length)
                           : NULL;
    char *copy = sp_cc_allocate((text ? length : 0) + 1u);
    if (text)
        memcpy(copy, text, length);
    return copy;
}

static uint64_t number_at(const struct node *node, unsigned index)
{
    LLVMValueRef value = index < node->count ? node->operands[index] : NULL;
    return value && LLVMIsAConstantInt(value) ? LLVMConstIntGetZExtValue(value) : 0;
}

static LLVMAttributeRef parameter_attribute(LLVMValueRef kernel, unsigned index, const char *name)
{
    return LLVMGetEnumAttributeAtIndex(kernel, index + 1,
                                       LLVMGetEnumAttributeKindForName(name, strlen(name)));
}

/* The type in memory of a parameter: what byval points to, else its own. */
static LLVMTypeRef parameter_type(LLVMValueRef kernel, unsigned index)
{
    LLVMAttributeRef byval = parameter_attribute(kernel, index, "byval");
    return byval ? LLVMGetTypeAttributeValue(byval) : LLVMTypeOf(LLVMGetParam(kernel, index));
}

bool sp_cc_can_describe(LLVMValueRef kernel, struct sp_cc_text *log)
{
    struct node types = node_of(kernel, "kernel_arg_base_type");
    struct node names = node_of(kernel, "kernel_arg_name");
    bool can = true;
    for (unsigned i = 0; i < LLVMCountParams(kernel); i++) {
        char *type = string_at(&types, i);
        bool foreign = LLVMGetTypeKind(parameter_type(kernel, i)) == LLVMTargetExtTypeKind ||
                       !strncmp(type, "image", 5) || !strcmp(type, "sampler_t") ||
                       !strcmp(type, "queue_t") || !strncmp(type, "pipe", 4);
        if (foreign) {
            char *name = string_at(&names, i);
            sp_cc_text_format(log,
                              "error: kernel '%s': argument %u ('%s') has the type %s, which this "
                              "device does not offer\n",
                              LLVMGetValueName(kernel), i, name, type);
            free(name);
            can = false;
        }
        free(type);
    }
    free(types.operands);
    free(names.operands);
    return can;
}

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length)
        if ((at == text || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

static void describe_pointer(LLVMValueRef parameter, struct sp_arg_info *arg)
{
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(parameter));
    arg->kind = space == SP_SPACE_LOCAL      ? SP_ARG_LOCAL
                : space == SP_SPACE_CONSTANT ? SP_ARG_CONSTANT
                                             : SP_ARG_GLOBAL;
    arg->size = POINTER_BYTES;
    arg->align = POINTER_BYTES;
    arg->effect = sp_cc_effect_of(parameter);
}

static void describe_value(LLVMModuleRef module, LLVMValueRef kernel, unsigned index,
                           struct sp_arg_info *arg)
{
    LLVMTypeRef type = parameter_type(kernel, index);
    LLVMTargetDataRef sizes = LLVMGetModuleDataLayout(module);
    LLVMAttributeRef align = parameter_attribute(kernel, index, "align");
    arg->kind = SP_ARG_VALUE;
    arg->size = (uint32_t)LLVMABISizeOfType(sizes, type);
    arg->align =
        align ? (uint32_t)LLVMGetEnumAttributeValue(align) : LLVMABIAlignmentOfType(sizes, type);
}

static void describe_args(LLVMModuleRef module, LLVMValueRef kernel, struct sp_kernel_info *info)
{
    struct node types = node_of(kernel, "kernel_arg_type");
    struct node names = node_of(kernel, "kernel_arg_name");
    struct node qualifiers = node_of(kernel, "kernel_arg_type_qual");
    uint64_t end = 0;
    info->num_args = LLVMCountParams(kernel);
    info->args = sp_cc_allocate(info->num_args * sizeof(*info->args));
    for (unsigned i = 0; i < info->num_args; i++) {
        struct sp_arg_info *arg = &info->args[i];
        LLVMValueRef parameter = LLVMGetParam(kernel, i);
        char *qualifier = string_at(&qualifiers, i);
        if (LLVMGetTypeKind(LLVMTypeOf(parameter)) == LLVMPointerTypeKind &&
            !parameter_attribute(kernel, i, "byval"))
            describe_pointer(parameter, arg);
        else
            describe_value(module, kernel, i, arg);
        arg->name = string_at(&names, i);
        arg->type_name = string_at(&types, i);
        arg->type_qualifiers = (has_word(qualifier, "const") ? SP_ARG_TYPE_CONST : 0u) |
                               (has_word(qualifier, "restrict") ? SP_ARG_TYPE_RESTRICT : 0u) |
                               (has_word(qualifier, "volatile") ? SP_ARG_TYPE_VOLATILE : 0u);
        free(qualifier);
        end = sp_ir_align_up(end, arg->align);
        arg->offset = (uint32_t)end;
        end += arg->size;
    }
    info->args_bytes = (uint32_t)sp_ir_align_up(end, POINTER_BYTES);
    free(types.operands);
    free(names.operands);
    free(qualifiers.operands);
}

static void add_vector_hint(struct sp_cc_text *text, const struct node *hint)
{
    LLVMTypeRef type = LLVMTypeOf(hint->operands[0]);
    unsigned lanes = 1;
    bool is_signed = number_at(hint, 1);
    const char *name = "int";
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
        lanes = LLVMGetVectorSize(type);
        type = LLVMGetElementType(type);
    }
    switch (LLVMGetTypeKind(type)) {
    case LLVMHalfTypeKind:
        name = "half";
        break;
    case LLVMFloatTypeKind:
        name = "float";
        break;
    case LLVMDoubleTypeKind:
        name = "double";
        break;
    case LLVMIntegerTypeKind: {
        unsigned width = LLVMGetIntTypeWidth(type);
        name = width == 8 ? "char" : width == 16 ? "short" : width == 64 ? "long" : "int";
        if (!is_signed)
            sp_cc_text_format(text, "%svec_type_hint(u%s", text->size ? " " : "", name);
        break;
    }
    default:
        return;
    }
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || is_signed)
        sp_cc_text_format(text, "%svec_type_hint(%s", text->size ? " " : "", name);
    if (lanes > 1)
        sp_cc_text_format(text, "%u", lanes);
    sp_cc_text_format(text, ")");
}

static void describe_sizes(LLVMValueRef kernel, const char *name, uint32_t sizes[3],
                           struct sp_cc_text *text)
{
    struct node node = node_of(kernel, name);
    if (node.count == 3) {
        for (unsigned d = 0; d < 3; d++)
            sizes[d] = (uint32_t)number_at(&node, d);
        sp_cc_text_format(text, "%s%s(%u,%u,%u)", text->size ? " " : "", name, sizes[0], sizes[1],
                          sizes[2]);
    }
    free(node.operands);
}

static void describe_attributes(LLVMValueRef kernel, struct sp_kernel_info *info)
{
    struct sp_cc_text text = {0};
    describe_sizes(kernel, "reqd_work_group_size", info->reqd_local_size, &text);
    describe_sizes(kernel, "work_group_size_hint", info->hint_local_size, &text);
    struct node hint = node_of(kernel, "vec_type_hint");
    if (hint.count == 2 && hint.operands[0])
        add_vector_hint(&text, &hint);
    free(hint.operands);
    info->attributes = text.bytes ? text.bytes : sp_cc_copy("");
}

/* An atomic operation whose scope is all devices, or not known, and that is more than a load or a
 * store; by its pointer (SP_SCOPED_NAME). */
static bool changes_for_all_devices(LLVMValueRef value)
{
    if (!sp_ir_calls(value, SP_SCOPED_NAME))
        return false;
    LLVMValueRef scope = LLVMGetOperand(value, 1);
    if (LLVMIsAConstantInt(scope) && LLVMConstIntGetZExtValue(scope) != SP_SCOPE_ALL_DEVICES)
        return false;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsALoadInst(user) && !LLVMIsAStoreInst(user))
            return true;
    }
    return false;
}

static void describe_body(LLVMModuleRef module, LLVMValueRef kernel, struct sp_kernel_info *info)
{
    LLVMBasicBlockRef block;
    bool array = false;
    for (block = LLVMGetFirstBasicBlock(kernel); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef value;
        for (value = LLVMGetFirstInstruction(block); value; value = LLVMGetNextInstruction(value)) {
            if (LLVMIsAAllocaInst(value)) {
                info->private_bytes +=
                    LLVMABISizeOfType(LLVMGetModuleDataLayout(module), LLVMGetAllocatedType(value));
                array |= LLVMGetTypeKind(LLVMGetAllocatedType(value)) == LLVMArrayTypeKind;
            }
            info->has_barrier |= sp_ir_calls(value, SP_BARRIER_NAME);
            info->has_shared_atomics |= changes_for_all_devices(value);
        }
    }
    info->loops_over_private = array && LLVMCountBasicBlocks(kernel) > 1;
}

void sp_cc_describe(LLVMModuleRef module, LLVMValueRef kernel, struct sp_kernel_info *info)
{
    struct sp_cc_layout locals = {0}, globals = {0};
    info->name = sp_cc_copy(LLVMGetValueName(kernel));
    describe_args(module, kernel, info);
    describe_attributes(kernel, info);
    describe_body(module, kernel, info);
    sp_cc_layout_locals(module, kernel, &locals);
    sp_cc_layout_globals(module, &globals);
    info->local_static_bytes = locals.bytes;
    for (size_t i = 0; i < globals.count; i++)
        info->uses_globals |= sp_ir_uses_global(kernel, globals.places[i].variable);
    uint32_t followed = sp_cc_followed_effect(kernel);
    info->follows_pointers = followed != 0;
    info->writes_followed = followed & SP_EFFECT_WRITE;
    sp_cc_layout_finish(&locals);
    sp_cc_layout_finish(&globals);
}

void sp_cc_undescribe(struct sp_kernel_info *info)
{
    for (uint32_t i = 0; i < info->num_args; i++) {
        free((char *)info->args[i].name);
        free((char *)info->args[i].type_name);
    }
    free(info->args);
    free((char *)info->name);
    free((char *)info->attributes);
    *info = (struct sp_kernel_info){0};
}
