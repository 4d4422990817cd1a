/* See entry.h. An entry has one parameter, the block, given by value: so its layout is gpu_abi.h's,
 * whatever rules PTX has for parameters of other types. LLVM turns reads of it into reads of
 * parameter memory as long as they are loads; at the first memcpy it would copy the whole block to
 * the stack, byte by byte. */
#include "compiler/cc/gpu/entry.h"

#include "compiler/cc/describe.h"
#include "compiler/cc/gpu/places.h"
#include "compiler/cc/gpu/spaces.h"
#include "compiler/cc/text.h"
#include "compiler/gpu_abi.h"

#include <llvm-c/Target.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTX_KERNEL_CALL_CONV 71u /* llvm::CallingConv::PTX_Kernel */

/* More would move the block: ptxas aligns it in the constant bank, where parameters start at a
 * multiple of 16, and the driver would have to know by how much. */
#define BLOCK_ALIGN 16u

#define WIDEST_COPY 8u            /* bytes that a struct is copied by */
#define MAX_WORK_GROUP_SIZE 1024u /* SP_MAX_WORK_GROUP_SIZE (docs/compiler-contract.md) */

static unsigned attribute_kind(const char *name)
{
    return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

static LLVMValueRef block_address(LLVMBuilderRef builder, LLVMValueRef function, uint64_t offset)
{
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    LLVMValueRef index = LLVMConstInt(LLVMInt64TypeInContext(context), offset, false);
    return LLVMBuildInBoundsGEP2(builder, LLVMInt8TypeInContext(context), LLVMGetParam(function, 0),
                                 &index, 1, "");
}

LLVMValueRef sp_gpu_launch_member(const struct sp_gpu_entry *entry, LLVMBuilderRef builder,
                                  uint64_t offset)
{
    return block_address(builder, entry->function, entry->launch_offset + offset);
}

static void add_entry_function(LLVMModuleRef module, const char *name, uint64_t block_bytes,
                               struct sp_gpu_entry *entry)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(context, SP_GPU_SPACE_GENERIC);
    LLVMTypeRef block = LLVMArrayType2(LLVMInt8TypeInContext(context), block_bytes);
    entry->function = LLVMAddFunction(
        module, name, LLVMFunctionType(LLVMVoidTypeInContext(context), &pointer, 1, false));
    LLVMSetFunctionCallConv(entry->function, PTX_KERNEL_CALL_CONV);
    LLVMAddAttributeAtIndex(entry->function, 1,
                            LLVMCreateTypeAttribute(context, attribute_kind("byval"), block));
    LLVMAddAttributeAtIndex(entry->function, 1,
                            LLVMCreateEnumAttribute(context, attribute_kind("align"), BLOCK_ALIGN));
    LLVMAddAttributeAtIndex(entry->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(context, attribute_kind("nounwind"), 0));
}

/* A copy of the work-item's own of a struct; where the kernel only reads it, LLVM removes it. */
static LLVMValueRef copy_argument(LLVMBuilderRef builder, LLVMValueRef function, LLVMTypeRef type,
                                  const struct sp_arg_info *arg)
{
    LLVMContextRef context = LLVMGetTypeContext(type);
    LLVMTypeRef byte = LLVMInt8TypeInContext(context), i64 = LLVMInt64TypeInContext(context);
    uint32_t step = arg->align < WIDEST_COPY ? arg->align : WIDEST_COPY;
    LLVMTypeRef unit = LLVMIntTypeInContext(context, step * 8);
    LLVMValueRef copy = LLVMBuildAlloca(builder, type, arg->name);
    LLVMSetAlignment(copy, arg->align);
    for (uint32_t offset = 0; offset < arg->size; offset += step) {
        LLVMValueRef index = LLVMConstInt(i64, offset, false);
        LLVMValueRef part = LLVMBuildLoad2(
            builder, unit, block_address(builder, function, arg->offset + offset), "");
        LLVMSetAlignment(part, step);
        LLVMValueRef store = LLVMBuildStore(
            builder, part, LLVMBuildInBoundsGEP2(builder, byte, copy, &index, 1, ""));
        LLVMSetAlignment(store, step);
    }
    return copy;
}

/* One argument from the block. */
static LLVMValueRef load_argument(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef kernel,
                                  unsigned index, const struct sp_arg_info *arg,
                                  LLVMValueRef function)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef type = LLVMTypeOf(LLVMGetParam(kernel, index));
    LLVMValueRef at = block_address(builder, function, arg->offset);
    if (arg->kind == SP_ARG_LOCAL) {
        LLVMValueRef memory = LLVMGetNamedGlobal(module, SP_GPU_LOCAL_MEMORY_NAME);
        if (!memory) {
            memory = LLVMAddGlobalInAddressSpace(module,
                                                 LLVMArrayType2(LLVMInt8TypeInContext(context), 0),
                                                 SP_GPU_LOCAL_MEMORY_NAME, SP_GPU_SPACE_SHARED);
            LLVMSetAlignment(memory, SP_GPU_LOCAL_ALIGN);
        }
        /* The memory that a block has is far below 2^32 bytes. */
        LLVMTypeRef i32 = LLVMInt32TypeInContext(context);
        LLVMValueRef offset = LLVMBuildLoad2(builder, i32, at, "");
        LLVMSetAlignment(offset, 8);
        LLVMValueRef units =
            LLVMBuildExactUDiv(builder, offset, LLVMConstInt(i32, SP_GPU_LOCAL_ALIGN, false), "");
        LLVMTypeRef unit = LLVMArrayType2(LLVMInt8TypeInContext(context), SP_GPU_LOCAL_ALIGN);
        return LLVMBuildInBoundsGEP2(builder, unit, memory, &units, 1, "");
    }
    LLVMAttributeRef byval =
        LLVMGetEnumAttributeAtIndex(kernel, index + 1, attribute_kind("byval"));
    if (!byval) {
        LLVMValueRef value = LLVMBuildLoad2(builder, type, at, arg->name);
        LLVMSetAlignment(value, arg->align < BLOCK_ALIGN ? arg->align : BLOCK_ALIGN);
        return value;
    }
    LLVMRemoveEnumAttributeAtIndex(kernel, index + 1, attribute_kind("byval"));
    return copy_argument(builder, function, LLVMGetTypeAttributeValue(byval), arg);
}

void sp_gpu_add_entry(LLVMModuleRef module, LLVMValueRef kernel, const struct sp_kernel_info *info,
                      struct sp_gpu_entry *entry)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMValueRef *values = sp_cc_allocate(info->num_args * sizeof(LLVMValueRef));
    struct sp_cc_text name = {0};
    sp_cc_text_format(&name, SP_GPU_KERNEL_SYMBOL_PREFIX "%s", info->name);
    entry->launch_offset = sp_gpu_launch_offset(info->args_bytes);
    add_entry_function(module, name.bytes, entry->launch_offset + sizeof(struct sp_gpu_launch),
                       entry);
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(context, entry->function, "");
    LLVMPositionBuilderAtEnd(builder, start);
    for (uint32_t i = 0; i < info->num_args; i++)
        values[i] = load_argument(module, builder, kernel, i, &info->args[i], entry->function);
    LLVMBuildCall2(builder, LLVMGlobalGetValueType(kernel), kernel, values, info->num_args, "");
    LLVMBuildRetVoid(builder);
    LLVMSetLinkage(kernel, LLVMInternalLinkage);
    LLVMAddAttributeAtIndex(kernel, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(context, attribute_kind("alwaysinline"), 0));
    LLVMDisposeBuilder(builder);
    free(values);
    sp_cc_text_finish(&name);
}

void sp_gpu_add_globals_entry(LLVMModuleRef module, struct sp_gpu_entry *entry)
{
    static const char inner_name[] = "globals_init";
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMValueRef inner = LLVMGetNamedFunction(module, SP_GPU_GLOBALS_INIT_SYMBOL);
    *entry = (struct sp_gpu_entry){.local_size = {1, 1, 1}, .is_uniform = true};
    if (!inner)
        return;
    LLVMSetValueName2(inner, inner_name, strlen(inner_name));
    LLVMSetLinkage(inner, LLVMInternalLinkage);
    add_entry_function(module, SP_GPU_GLOBALS_INIT_SYMBOL, sizeof(struct sp_gpu_launch), entry);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, entry->function, ""));
    LLVMValueRef globals = LLVMBuildLoad2(
        builder, LLVMPointerTypeInContext(context, SP_GPU_SPACE_GLOBAL),
        sp_gpu_launch_member(entry, builder, offsetof(struct sp_gpu_launch, globals)), "");
    globals = LLVMBuildAddrSpaceCast(builder, globals,
                                     LLVMPointerTypeInContext(context, SP_GPU_SPACE_GENERIC), "");
    LLVMBuildCall2(builder, LLVMGlobalGetValueType(inner), inner, &globals, 1, "");
    LLVMBuildRetVoid(builder);
    LLVMDisposeBuilder(builder);
    LLVMAddAttributeAtIndex(inner, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(context, attribute_kind("alwaysinline"), 0));
}

static void annotate(LLVMModuleRef module, LLVMValueRef function, const char *what, uint64_t value)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMMetadataRef parts[] = {
        LLVMValueAsMetadata(function),
        LLVMMDStringInContext2(context, what, strlen(what)),
        LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(context), value, false)),
    };
    LLVMAddNamedMetadataOperand(
        module, "nvvm.annotations",
        LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, parts, 3)));
}

void sp_gpu_annotate_entry(LLVMModuleRef module, const struct sp_gpu_entry *entry)
{
    static const char *const required[] = {"reqntidx", "reqntidy", "reqntidz"};
    annotate(module, entry->function, "kernel", 1);
    if (entry->local_size[0])
        for (int d = 0; d < 3; d++)
            annotate(module, entry->function, required[d], entry->local_size[d]);
    else /* any group may be launched: registers for all its work-items */
        annotate(module, entry->function, "maxntidx", MAX_WORK_GROUP_SIZE);
}
