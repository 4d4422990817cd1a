/* See pairs.h. What a GPU reads from memory is limited by how much it has asked for at one time:
 * with one float for each work-item, and as many work-items as it can hold, an H200 reads triad's
 * arrays with 3200 GB/s, with two with 4090, and with four no more (measured). So a kernel without
 * control flow gets a second entry, a block of which does the work of two neighbouring groups: each
 * instruction stands there twice, for the one group and for the other, and all that is read is
 * asked for before anything is waited for.
 *
 * Work-items of different groups may not depend on each other's order without atomic operations,
 * and kernels with those, or with barriers, have no pair. Nor have large kernels: their registers
 * would leave room for fewer work-items.
 */
#include "compiler/cc/gpu/pairs.h"

#include "compiler/cc/gpu/spaces.h"
#include "compiler/cc/ir.h"
#include "compiler/cc/text.h"
#include "compiler/gpu_abi.h"

#include <stdlib.h>
#include <string.h>

/* Twice these still leave each of 2048 work-items its 32 registers (H200). */
#define MAX_INSTRUCTIONS 96u
#define MAX_ACCESSES 12u

#define GROUP_ID_NAME "llvm.nvvm.read.ptx.sreg.ctaid.x"

struct pair {
    LLVMValueRef *from, *to[2]; /* the entry's values, and what they are for each group */
    unsigned count;
};

static bool has_no_effect(LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    if (LLVMIsAInlineAsm(callee))
        return !LLVMGetInlineAsmHasSideEffects(callee);
    if (!LLVMIsAFunction(callee) || !LLVMGetIntrinsicID(callee))
        return false;
    LLVMAttributeRef memory = LLVMGetEnumAttributeAtIndex(
        callee, at, LLVMGetEnumAttributeKindForName("memory", strlen("memory")));
    LLVMAttributeRef convergent = LLVMGetEnumAttributeAtIndex(
        callee, at, LLVMGetEnumAttributeKindForName("convergent", strlen("convergent")));
    return memory && !LLVMGetEnumAttributeValue(memory) && !convergent;
}

/* Whether `pointer` leads into the parameter block. */
static bool is_parameter(LLVMValueRef function, LLVMValueRef pointer)
{
    while (LLVMIsAGetElementPtrInst(pointer))
        pointer = LLVMGetOperand(pointer, 0);
    return pointer == LLVMGetParam(function, 0);
}

/* An access of global memory that nobody can tell from two at once. Local memory is a group's own,
 * so that two groups cannot share it. */
static bool is_plain_access(LLVMValueRef value, LLVMValueRef pointer)
{
    return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == SP_GPU_SPACE_GLOBAL &&
           !LLVMGetVolatile(value) && LLVMGetOrdering(value) == LLVMAtomicOrderingNotAtomic;
}

/* How many instructions the entry has, or 0 where it has no pair. */
static unsigned count_instructions(LLVMValueRef function)
{
    unsigned count = 0, accesses = 0, reads = 0;
    if (LLVMCountBasicBlocks(function) != 1)
        return 0;
    LLVMValueRef value = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));
    for (; value; value = LLVMGetNextInstruction(value), count++) {
        switch (LLVMGetInstructionOpcode(value)) {
        case LLVMLoad:
            if (is_parameter(function, LLVMGetOperand(value, 0)))
                break;
            if (!is_plain_access(value, LLVMGetOperand(value, 0)))
                return 0;
            accesses++;
            reads++;
            break;
        case LLVMStore:
            if (!is_plain_access(value, LLVMGetOperand(value, 1)))
                return 0;
            accesses++;
            break;
        case LLVMCall:
            if (!has_no_effect(value))
                return 0;
            break;
        case LLVMAlloca:
        case LLVMAtomicRMW:
        case LLVMAtomicCmpXchg:
        case LLVMFence:
        case LLVMUnreachable:
            return 0;
        default:
            break;
        }
    }
    return reads && accesses <= MAX_ACCESSES && count <= MAX_INSTRUCTIONS ? count : 0;
}

static LLVMValueRef add_function(LLVMModuleRef module, LLVMValueRef like, const char *kernel)
{
    static const LLVMAttributeIndex places[] = {(LLVMAttributeIndex)LLVMAttributeFunctionIndex, 1};
    struct sp_cc_text name = {0};
    sp_cc_text_format(&name, SP_GPU_PAIR_SYMBOL_PREFIX "%s", kernel);
    LLVMValueRef function = LLVMAddFunction(module, name.bytes, LLVMGlobalGetValueType(like));
    sp_cc_text_finish(&name);
    LLVMSetFunctionCallConv(function, LLVMGetFunctionCallConv(like));
    for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
        unsigned count = LLVMGetAttributeCountAtIndex(like, places[p]);
        LLVMAttributeRef *attributes = sp_cc_allocate(count * sizeof(LLVMAttributeRef));
        LLVMGetAttributesAtIndex(like, places[p], attributes);
        for (unsigned i = 0; i < count; i++)
            LLVMAddAttributeAtIndex(function, places[p], attributes[i]);
        free(attributes);
    }
    return function;
}

static LLVMValueRef translated(const struct pair *pair, unsigned which, LLVMValueRef value)
{
    for (unsigned i = 0; i < pair->count; i++)
        if (pair->from[i] == value)
            return pair->to[which][i];
    return value;
}

/* The instruction for each of the two groups. */
static void duplicate(struct pair *pair, LLVMBuilderRef at, LLVMValueRef value)
{
    const char *callee = sp_ir_callee(value);
    unsigned place = pair->count;
    pair->from[place] = value;
    for (unsigned which = 0; which < 2; which++) {
        LLVMValueRef clone = LLVMInstructionClone(value);
        for (int i = 0; i < LLVMGetNumOperands(value); i++)
            LLVMSetOperand(clone, (unsigned)i,
                           translated(pair, which, LLVMGetOperand(value, (unsigned)i)));
        LLVMInsertIntoBuilder(at, clone);
        pair->to[which][place] = clone;
    }
    pair->count++;
    if (!callee || strcmp(callee, GROUP_ID_NAME))
        return;
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef first = LLVMBuildNUWMul(at, pair->to[0][place], LLVMConstInt(type, 2, false), "");
    pair->to[0][place] = first;
    pair->to[1][place] = LLVMBuildNUWAdd(at, first, LLVMConstInt(type, 1, false), "");
}

bool sp_gpu_add_pair(LLVMModuleRef module, const struct sp_gpu_entry *entry, const char *kernel)
{
    unsigned count =
        entry->local_size[0] && entry->is_uniform ? count_instructions(entry->function) : 0;
    if (!count)
        return false;
    struct sp_gpu_entry made = *entry;
    made.function = add_function(module, entry->function, kernel);
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMBuilderRef at = LLVMCreateBuilderInContext(context);
    struct pair pair = {0};
    pair.from = sp_cc_allocate((count + 1) * sizeof(LLVMValueRef));
    pair.to[0] = sp_cc_allocate((count + 1) * sizeof(LLVMValueRef));
    pair.to[1] = sp_cc_allocate((count + 1) * sizeof(LLVMValueRef));
    pair.from[0] = LLVMGetParam(entry->function, 0);
    pair.to[0][0] = pair.to[1][0] = LLVMGetParam(made.function, 0);
    pair.count = 1;
    LLVMPositionBuilderAtEnd(at, LLVMAppendBasicBlockInContext(context, made.function, ""));
    LLVMValueRef value = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(entry->function));
    for (; LLVMGetInstructionOpcode(value) != LLVMRet; value = LLVMGetNextInstruction(value))
        duplicate(&pair, at, value);
    LLVMBuildRetVoid(at);
    sp_gpu_annotate_entry(module, &made);
    LLVMDisposeBuilder(at);
    free(pair.from);
    free(pair.to[0]);
    free(pair.to[1]);
    return true;
}
