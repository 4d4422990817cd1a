/* See layout.h. */
#include "compiler/cc/layout.h"

#include "compiler/cc/text.h"
#include "compiler/cpu_abi.h"

#include <llvm-c/Target.h>
#include <stdlib.h>

/* Arrays in local memory start a cache line: vector accesses then split none. */
#define LINE_BYTES 64u

static void add(struct sp_cc_layout *layout, LLVMValueRef variable, uint64_t bytes,
                uint64_t alignment)
{
    layout->places =
        sp_cc_reallocate(layout->places, (layout->count + 1) * sizeof(*layout->places));
    uint64_t offset = sp_ir_align_up(layout->bytes, alignment);
    layout->places[layout->count++] = (struct sp_cc_place){variable, offset};
    layout->bytes = offset + bytes;
}

static void add_variable(LLVMModuleRef module, struct sp_cc_layout *layout, LLVMValueRef variable)
{
    uint64_t bytes =
        LLVMABISizeOfType(LLVMGetModuleDataLayout(module), LLVMGlobalGetValueType(variable));
    uint64_t alignment = sp_ir_alignment(module, variable);
    if (bytes >= LINE_BYTES && alignment < LINE_BYTES)
        alignment = LINE_BYTES;
    add(layout, variable, bytes, alignment);
}

static unsigned space_of(LLVMValueRef global)
{
    return LLVMGetPointerAddressSpace(LLVMTypeOf(global));
}

void sp_cc_layout_locals(LLVMModuleRef module, LLVMValueRef kernel, struct sp_cc_layout *layout)
{
    for (LLVMValueRef variable = LLVMGetFirstGlobal(module); variable;
         variable = LLVMGetNextGlobal(variable))
        if (space_of(variable) == SP_SPACE_LOCAL && sp_ir_uses_global(kernel, variable))
            add_variable(module, layout, variable);
    LLVMValueRef scratch = LLVMGetNamedFunction(module, SP_GROUP_SCRATCH_NAME);
    if (scratch && sp_ir_uses_global(kernel, scratch))
        add(layout, scratch, SP_CC_GROUP_SCRATCH_BYTES, SP_CPU_SCRATCH_ALIGN);
}

static bool is_placed(LLVMValueRef value, const void *layout)
{
    return LLVMIsAGlobalVariable(value) &&
           (space_of(value) == SP_SPACE_GLOBAL || sp_cc_layout_find(layout, value));
}

void sp_cc_layout_globals(LLVMModuleRef module, struct sp_cc_layout *layout)
{
    LLVMValueRef variable;
    for (variable = LLVMGetFirstGlobal(module); variable; variable = LLVMGetNextGlobal(variable))
        if (space_of(variable) == SP_SPACE_GLOBAL && !LLVMIsDeclaration(variable))
            add_variable(module, layout, variable);
    /* A constant that points to such a variable cannot lie in the object; nor can one that points
     * to it. */
    for (bool changed = true; changed;) {
        changed = false;
        for (variable = LLVMGetFirstGlobal(module); variable;
             variable = LLVMGetNextGlobal(variable)) {
            LLVMValueRef initial = LLVMGetInitializer(variable);
            if (space_of(variable) == SP_SPACE_GLOBAL || space_of(variable) == SP_SPACE_LOCAL ||
                !initial || sp_cc_layout_find(layout, variable) ||
                !sp_ir_constant_holds(initial, is_placed, layout))
                continue;
            add_variable(module, layout, variable);
            changed = true;
        }
    }
}

const struct sp_cc_place *sp_cc_layout_find(const struct sp_cc_layout *layout,
                                            LLVMValueRef variable)
{
    for (size_t i = 0; i < layout->count; i++)
        if (layout->places[i].variable == variable)
            return &layout->places[i];
    return NULL;
}

void sp_cc_layout_finish(struct sp_cc_layout *layout)
{
    free(layout->places);
    *layout = (struct sp_cc_layout){0};
}

struct init {
    LLVMBuilderRef builder;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMValueRef base; /* the function's argument */
    const struct sp_cc_layout *layout;
};

static LLVMValueRef address_at(struct init *init, uint64_t offset)
{
    LLVMValueRef index = LLVMConstInt(LLVMInt64TypeInContext(init->context), offset, false);
    return LLVMBuildGEP2(init->builder, LLVMInt8TypeInContext(init->context), init->base, &index, 1,
                         "");
}

static LLVMValueRef placed_address(LLVMValueRef global, void *data)
{
    struct init *init = data;
    const struct sp_cc_place *place = sp_cc_layout_find(init->layout, global);
    return place ? LLVMBuildAddrSpaceCast(init->builder, address_at(init, place->offset),
                                          LLVMTypeOf(global), "")
                 : NULL;
}

/* Stores the parts that hold addresses one by one, all else whole. */
static void write_initial(struct init *init, LLVMValueRef value, uint64_t offset)
{
    if (LLVMIsNull(value) || LLVMIsUndef(value))
        return;
    LLVMTargetDataRef sizes = LLVMGetModuleDataLayout(init->module);
    LLVMTypeRef type = LLVMTypeOf(value);
    bool holds = sp_ir_constant_holds(value, is_placed, init->layout);
    if (holds && (LLVMIsAConstantStruct(value) || LLVMIsAConstantArray(value))) {
        for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(value); i++) {
            uint64_t inner = LLVMGetTypeKind(type) == LLVMStructTypeKind
                                 ? LLVMOffsetOfElement(sizes, type, i)
                                 : i * LLVMABISizeOfType(sizes, LLVMGetElementType(type));
            write_initial(init, LLVMGetOperand(value, i), offset + inner);
        }
        return;
    }
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMStructTypeKind || kind == LLVMArrayTypeKind) {
        LLVMValueRef copy = LLVMAddGlobal(init->module, type, "sp.initial");
        LLVMSetInitializer(copy, value);
        LLVMSetGlobalConstant(copy, true);
        LLVMSetLinkage(copy, LLVMPrivateLinkage);
        LLVMBuildMemCpy(init->builder, address_at(init, offset), 1, copy,
                        LLVMABIAlignmentOfType(sizes, type),
                        LLVMConstInt(LLVMInt64TypeInContext(init->context),
                                     LLVMABISizeOfType(sizes, type), false));
        return;
    }
    value = sp_ir_rebuild_constant(init->builder, value, placed_address, init);
    LLVMSetAlignment(LLVMBuildStore(init->builder, value, address_at(init, offset)), 1);
}

void sp_cc_add_globals_init(LLVMModuleRef module, const struct sp_cc_layout *layout)
{
    bool needed = false;
    for (size_t i = 0; i < layout->count; i++) {
        LLVMValueRef initial = LLVMGetInitializer(layout->places[i].variable);
        needed |= initial && !LLVMIsNull(initial) && !LLVMIsUndef(initial);
    }
    if (!needed)
        return;
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), &pointer, 1, false);
    LLVMValueRef function = LLVMAddFunction(module, SP_CPU_GLOBALS_INIT_SYMBOL, type);
    struct init init = {.builder = LLVMCreateBuilderInContext(context),
                        .context = context,
                        .module = module,
                        .base = LLVMGetParam(function, 0),
                        .layout = layout};
    LLVMPositionBuilderAtEnd(init.builder, LLVMAppendBasicBlockInContext(context, function, ""));
    for (size_t i = 0; i < layout->count; i++) {
        LLVMValueRef initial = LLVMGetInitializer(layout->places[i].variable);
        if (initial)
            write_initial(&init, initial, layout->places[i].offset);
    }
    LLVMBuildRetVoid(init.builder);
    LLVMDisposeBuilder(init.builder);
}
