/* See places.h. A variable that is placed is replaced, in every instruction that uses it or a
 * constant with it inside, by its address: an offset from a base. */
#include "compiler/cc/gpu/places.h"

#include "compiler/cc/text.h"
#include "compiler/gpu_abi.h"

#include <llvm-c/Target.h>
#include <string.h>

#define WIDEST_LOAD 16u /* bytes: ld.shared.v4.b32 */

struct placing {
    LLVMModuleRef module;
    LLVMContextRef context;
    LLVMBuilderRef builder;
    const struct sp_cc_layout *locals; /* of the function at hand, or NULL to leave them */
    const struct sp_cc_layout *globals;
};

static LLVMValueRef address(struct placing *p, LLVMValueRef base, uint64_t offset)
{
    LLVMValueRef index = LLVMConstInt(LLVMInt64TypeInContext(p->context), offset, false);
    return LLVMBuildInBoundsGEP2(p->builder, LLVMInt8TypeInContext(p->context), base, &index, 1,
                                 "");
}

static LLVMValueRef globals_base(struct placing *p)
{
    LLVMTypeRef pointer = LLVMPointerTypeInContext(p->context, SP_SPACE_GLOBAL);
    LLVMTypeRef type = LLVMFunctionType(pointer, NULL, 0, false);
    LLVMValueRef function = LLVMGetNamedFunction(p->module, SP_GPU_GLOBALS_NAME);
    if (!function)
        function = LLVMAddFunction(p->module, SP_GPU_GLOBALS_NAME, type);
    return LLVMBuildCall2(p->builder, type, function, NULL, 0, "");
}

static LLVMValueRef local_memory(struct placing *p)
{
    LLVMValueRef memory = LLVMGetNamedGlobal(p->module, SP_GPU_LOCAL_MEMORY_NAME);
    if (memory)
        return memory;
    memory =
        LLVMAddGlobalInAddressSpace(p->module, LLVMArrayType2(LLVMInt8TypeInContext(p->context), 0),
                                    SP_GPU_LOCAL_MEMORY_NAME, SP_SPACE_LOCAL);
    LLVMSetAlignment(memory, SP_GPU_LOCAL_ALIGN);
    return memory;
}

static LLVMValueRef place_of(LLVMValueRef global, void *data)
{
    struct placing *p = data;
    const struct sp_cc_place *place = p->locals ? sp_cc_layout_find(p->locals, global) : NULL;
    if (place)
        return address(p, local_memory(p), place->offset);
    place = sp_cc_layout_find(p->globals, global);
    if (!place)
        return NULL;
    return LLVMBuildAddrSpaceCast(p->builder, address(p, globals_base(p), place->offset),
                                  LLVMTypeOf(global), "");
}

/* The operands of one instruction. What a PHI takes is computed where it comes from. */
static void place_operands(struct placing *p, LLVMValueRef instruction)
{
    bool phi = LLVMIsAPHINode(instruction);
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(instruction); i++) {
        LLVMValueRef operand = LLVMGetOperand(instruction, i);
        if (!operand || !LLVMIsConstant(operand) || LLVMIsAFunction(operand))
            continue;
        LLVMPositionBuilderBefore(
            p->builder,
            phi ? LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(instruction, i)) : instruction);
        LLVMValueRef other = sp_ir_rebuild_constant(p->builder, operand, place_of, p);
        if (other != operand)
            LLVMSetOperand(instruction, i, other);
    }
}

/* A variable of the module's own, once for all functions: no kernel runs in another's group. */
static LLVMValueRef group_scratch(struct placing *p, LLVMValueRef function)
{
    static const char name[] = "__sp_scratch";
    const struct sp_cc_place *place = p->locals ? sp_cc_layout_find(p->locals, function) : NULL;
    if (place)
        return address(p, local_memory(p), place->offset);
    LLVMValueRef scratch = LLVMGetNamedGlobal(p->module, name);
    if (scratch)
        return scratch;
    LLVMTypeRef type = LLVMArrayType2(LLVMInt8TypeInContext(p->context), SP_CC_GROUP_SCRATCH_BYTES);
    scratch = LLVMAddGlobalInAddressSpace(p->module, type, name, SP_SPACE_LOCAL);
    LLVMSetInitializer(scratch, LLVMGetUndef(type));
    LLVMSetLinkage(scratch, LLVMInternalLinkage);
    LLVMSetAlignment(scratch, SP_GPU_LOCAL_ALIGN);
    return scratch;
}

static void place_in_function(struct placing *p, LLVMValueRef function)
{
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
            next = LLVMGetNextInstruction(value);
            if (!sp_ir_calls(value, SP_GROUP_SCRATCH_NAME)) {
                place_operands(p, value);
                continue;
            }
            LLVMPositionBuilderBefore(p->builder, value);
            LLVMReplaceAllUsesWith(value, group_scratch(p, LLVMGetCalledValue(value)));
            LLVMInstructionEraseFromParent(value);
        }
    }
}

/* So that neighbours are loaded together: an array starts where the widest load may. */
static void align_locals(LLVMModuleRef module)
{
    LLVMTargetDataRef sizes = LLVMGetModuleDataLayout(module);
    for (LLVMValueRef v = LLVMGetFirstGlobal(module); v; v = LLVMGetNextGlobal(v))
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(v)) == SP_SPACE_LOCAL &&
            LLVMABISizeOfType(sizes, LLVMGlobalGetValueType(v)) >= WIDEST_LOAD &&
            sp_ir_alignment(module, v) < WIDEST_LOAD)
            LLVMSetAlignment(v, WIDEST_LOAD);
}

void sp_gpu_place_variables(LLVMModuleRef module, LLVMValueRef *kernels,
                            const struct sp_cc_layout *locals, size_t num_kernels,
                            const struct sp_cc_layout *globals)
{
    struct placing p = {
        .module = module, .context = LLVMGetModuleContext(module), .globals = globals};
    p.builder = LLVMCreateBuilderInContext(p.context);
    for (size_t i = 0; i < num_kernels; i++) {
        p.locals = sp_gpu_local_front(locals[i].bytes) ? &locals[i] : NULL;
        place_in_function(&p, kernels[i]);
    }
    align_locals(module);
    sp_cc_add_globals_init(module, globals);
    LLVMDisposeBuilder(p.builder);
}
