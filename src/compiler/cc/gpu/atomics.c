/* See atomics.h. LLVM 19 knows neither scopes nor most orders of PTX, so each operation becomes one
 * piece of assembly. (PTX ISA, "Memory Consistency Model", atom, ld, st, fence; the mapping of
 * sequential consistency is the one of C++ on PTX: a fence.sc before the operation.)
 *
 * The scope of an operation is kept by its pointer, a call of __sp_target_scoped
 * (kernels/target.h); without one it is the device's. A scope that is no constant counts as the
 * widest. Local memory belongs to one work-group: there every scope is the work-group's.
 *
 * PTX has no minimum and maximum of floating-point numbers: a loop of compare-and-swap.
 *
 * What reads, modifies and writes for all devices goes to the atomic unit where the address wants
 * it (unit.c). */
#include "compiler/cc/gpu/atomics.h"

#include "compiler/cc/gpu/spaces.h"
#include "compiler/cc/gpu/unit.h"
#include "compiler/cc/replaceable.h"
#include "compiler/cc/text.h"

#include <stdlib.h>
#include <string.h>

/* enum memory_scope and memory_order of opencl-c-base.h. */
enum {
    SCOPE_WORK_ITEM,
    SCOPE_WORK_GROUP,
    SCOPE_DEVICE,
    SCOPE_ALL_DEVICES = SP_SCOPE_ALL_DEVICES,
    SCOPE_SUB_GROUP
};
enum { ORDER_RELAXED = 0, ORDER_ACQUIRE = 2, ORDER_RELEASE, ORDER_ACQ_REL, ORDER_SEQ_CST };

struct lowering {
    LLVMModuleRef module;
    LLVMContextRef context;
    LLVMBuilderRef builder;
    const struct sp_gpu_entry *entry;
    struct sp_map scopes; /* atomic instructions with a scope of their own: scope + 1 */
};

static const char *scope_word(unsigned scope)
{
    switch (scope) {
    case SCOPE_WORK_ITEM:
    case SCOPE_WORK_GROUP:
    case SCOPE_SUB_GROUP:
        return ".cta";
    case SCOPE_DEVICE:
        return ".gpu";
    default:
        return ".sys";
    }
}

static unsigned constant_scope(LLVMValueRef value)
{
    if (!LLVMIsAConstantInt(value) || LLVMConstIntGetZExtValue(value) > SCOPE_SUB_GROUP)
        return SCOPE_ALL_DEVICES;
    return (unsigned)LLVMConstIntGetZExtValue(value);
}

static bool is_atomic(LLVMValueRef value)
{
    bool access = LLVMIsALoadInst(value) || LLVMIsAStoreInst(value);
    return LLVMIsAAtomicRMWInst(value) || LLVMIsAAtomicCmpXchgInst(value) ||
           LLVMIsAFenceInst(value) ||
           (access && LLVMGetOrdering(value) != LLVMAtomicOrderingNotAtomic);
}

static unsigned pointer_operand(LLVMValueRef value)
{
    return LLVMIsAStoreInst(value) ? 1 : 0;
}

/* The order of scopes by how far they reach. */
static unsigned reach(unsigned scope)
{
    return scope == SCOPE_SUB_GROUP ? SCOPE_WORK_ITEM : scope;
}

/* The atomic instructions through `pointer` have this scope, or one that reaches further. */
static void note_scope(struct lowering *l, LLVMValueRef pointer, unsigned scope)
{
    for (LLVMUseRef use = LLVMGetFirstUse(pointer); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        uintptr_t before = (uintptr_t)sp_map_get(&l->scopes, user);
        bool is_pointer = is_atomic(user) && LLVMGetOperand(user, pointer_operand(user)) == pointer;
        bool is_choice = LLVMIsAPHINode(user) || LLVMIsASelectInst(user);
        if (!(is_pointer || is_choice) || (before && reach((unsigned)before - 1) >= reach(scope)))
            continue;
        sp_map_set(&l->scopes, user, (void *)(uintptr_t)(scope + 1));
        if (is_choice)
            note_scope(l, user, scope);
    }
}

/* Takes the scopes from the pointers, so that address spaces can be found behind them. */
static void take_scopes(struct lowering *l, LLVMValueRef function)
{
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
            next = LLVMGetNextInstruction(value);
            if (!sp_ir_calls(value, SP_SCOPED_NAME))
                continue;
            note_scope(l, value, constant_scope(LLVMGetOperand(value, 1)));
            LLVMReplaceAllUsesWith(value, LLVMGetOperand(value, 0));
            LLVMInstructionEraseFromParent(value);
        }
    }
}

/* Builds assembly that touches memory. */
static LLVMValueRef assemble(struct lowering *l, const char *text, const char *constraints,
                             LLVMTypeRef result, LLVMValueRef *operands, unsigned count)
{
    LLVMTypeRef types[3];
    for (unsigned i = 0; i < count; i++)
        types[i] = LLVMTypeOf(operands[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
    LLVMValueRef assembly =
        LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints), true, false,
                         LLVMInlineAsmDialectATT, false);
    return LLVMBuildCall2(l->builder, type, assembly, operands, count, "");
}

static void fence(struct lowering *l, unsigned order, unsigned scope)
{
    struct sp_cc_text text = {0};
    if (order == ORDER_RELAXED)
        return;
    sp_cc_text_format(&text, "fence%s%s;", order == ORDER_SEQ_CST ? ".sc" : ".acq_rel",
                      scope_word(scope));
    assemble(l, text.bytes, "~{memory}", LLVMVoidTypeInContext(l->context), NULL, 0);
    sp_cc_text_finish(&text);
}

static unsigned order_of(LLVMAtomicOrdering ordering)
{
    switch (ordering) {
    case LLVMAtomicOrderingAcquire:
        return ORDER_ACQUIRE;
    case LLVMAtomicOrderingRelease:
        return ORDER_RELEASE;
    case LLVMAtomicOrderingAcquireRelease:
        return ORDER_ACQ_REL;
    case LLVMAtomicOrderingSequentiallyConsistent:
        return ORDER_SEQ_CST;
    default:
        return ORDER_RELAXED;
    }
}

/* What one operation is made of. */
struct operation {
    LLVMValueRef pointer;
    LLVMTypeRef type;    /* of the value */
    LLVMTypeRef integer; /* as wide */
    unsigned bits;
    unsigned order, scope;
    const char *space; /* ".global", ".shared" or "" */
};

static void operation_init(struct lowering *l, struct operation *operation, LLVMValueRef value,
                           LLVMTypeRef type, unsigned order)
{
    uintptr_t scope = (uintptr_t)sp_map_get(&l->scopes, value);
    operation->pointer = LLVMGetOperand(value, pointer_operand(value));
    operation->type = type;
    operation->order = order;
    operation->scope = scope ? (unsigned)scope - 1 : SCOPE_DEVICE;
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    operation->bits = kind == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type)
                      : kind == LLVMFloatTypeKind ? 32
                                                  : 64;
    operation->integer = LLVMIntTypeInContext(l->context, operation->bits);
    switch (LLVMGetPointerAddressSpace(LLVMTypeOf(operation->pointer))) {
    case SP_GPU_SPACE_GLOBAL:
        operation->space = ".global";
        break;
    case SP_GPU_SPACE_SHARED:
        operation->space = ".shared";
        operation->scope = SCOPE_WORK_GROUP;
        break;
    default:
        operation->space = "";
        break;
    }
}

static const char *order_word(unsigned order)
{
    switch (order) {
    case ORDER_RELAXED:
        return ".relaxed";
    case ORDER_ACQUIRE:
        return ".acquire";
    case ORDER_RELEASE:
        return ".release";
    default:
        return ".acq_rel";
    }
}

static LLVMValueRef as_integer(struct lowering *l, const struct operation *operation,
                               LLVMValueRef value)
{
    if (LLVMGetTypeKind(operation->type) == LLVMPointerTypeKind)
        return LLVMBuildPtrToInt(l->builder, value, operation->integer, "");
    return LLVMBuildBitCast(l->builder, value, operation->integer, "");
}

static LLVMValueRef as_value(struct lowering *l, const struct operation *operation,
                             LLVMValueRef integer)
{
    if (LLVMGetTypeKind(operation->type) == LLVMPointerTypeKind)
        return LLVMBuildIntToPtr(l->builder, integer, operation->type, "");
    return LLVMBuildBitCast(l->builder, integer, operation->type, "");
}

/* The constraint of a register of the operation's width. */
static char letter(const struct operation *operation)
{
    return operation->bits == 64 ? 'l' : operation->bits == 32 ? 'r' : 'h';
}

static LLVMValueRef lower_load(struct lowering *l, LLVMValueRef value)
{
    struct operation operation;
    struct sp_cc_text text = {0}, constraints = {0};
    operation_init(l, &operation, value, LLVMTypeOf(value), order_of(LLVMGetOrdering(value)));
    if (operation.order == ORDER_SEQ_CST)
        fence(l, ORDER_SEQ_CST, operation.scope);
    sp_cc_text_format(&text, "ld%s%s%s.b%u $0, [$1];",
                      operation.order == ORDER_RELAXED ? ".relaxed" : ".acquire",
                      scope_word(operation.scope), operation.space, operation.bits);
    sp_cc_text_format(&constraints, "=%c,l,~{memory}", letter(&operation));
    LLVMValueRef result =
        assemble(l, text.bytes, constraints.bytes, operation.integer, &operation.pointer, 1);
    sp_cc_text_finish(&text);
    sp_cc_text_finish(&constraints);
    return as_value(l, &operation, result);
}

static void lower_store(struct lowering *l, LLVMValueRef value)
{
    struct operation operation;
    struct sp_cc_text text = {0}, constraints = {0};
    LLVMValueRef stored = LLVMGetOperand(value, 0);
    operation_init(l, &operation, value, LLVMTypeOf(stored), order_of(LLVMGetOrdering(value)));
    if (operation.order == ORDER_SEQ_CST)
        fence(l, ORDER_SEQ_CST, operation.scope);
    sp_cc_text_format(&text, "st%s%s%s.b%u [$0], $1;",
                      operation.order == ORDER_RELEASE ? ".release" : ".relaxed",
                      scope_word(operation.scope), operation.space, operation.bits);
    sp_cc_text_format(&constraints, "l,%c,~{memory}", letter(&operation));
    LLVMValueRef operands[] = {operation.pointer, as_integer(l, &operation, stored)};
    assemble(l, text.bytes, constraints.bytes, LLVMVoidTypeInContext(l->context), operands, 2);
    sp_cc_text_finish(&text);
    sp_cc_text_finish(&constraints);
}

/* After the fence of a sequentially consistent operation. */
static unsigned rest_of_order(struct lowering *l, const struct operation *operation)
{
    if (operation->order != ORDER_SEQ_CST)
        return operation->order;
    fence(l, ORDER_SEQ_CST, operation->scope);
    return ORDER_ACQUIRE;
}

/* Assembly that reads, modifies and writes, or the atomic unit. The operands are the pointer, what
 * to compare with where there are three, and a number. */
static LLVMValueRef modify(struct lowering *l, const struct operation *operation, unsigned code,
                           const char *text, const char *constraints, LLVMTypeRef result,
                           LLVMValueRef *operands, unsigned count)
{
    if (operation->scope != SCOPE_ALL_DEVICES || operation->bits < 32)
        return assemble(l, text, constraints, result, operands, count);
    struct sp_gpu_native native = {.text = text,
                                   .constraints = constraints,
                                   .result = result,
                                   .operands = operands,
                                   .count = count};
    return sp_gpu_unit_or_native(l->module, l->entry, l->builder,
                                 code | (operation->bits == 64 ? SP_UNIT_WIDE : 0u), &native);
}

static LLVMValueRef lower_exchange(struct lowering *l, LLVMValueRef value)
{
    struct operation operation;
    struct sp_cc_text text = {0}, constraints = {0};
    LLVMValueRef expected = LLVMGetOperand(value, 1), desired = LLVMGetOperand(value, 2);
    operation_init(l, &operation, value, LLVMTypeOf(expected),
                   order_of(LLVMGetCmpXchgSuccessOrdering(value)));
    /* The failure's order may be the stronger one. */
    unsigned failure = order_of(LLVMGetCmpXchgFailureOrdering(value));
    if (failure == ORDER_SEQ_CST)
        operation.order = ORDER_SEQ_CST;
    else if (failure == ORDER_ACQUIRE && operation.order == ORDER_RELAXED)
        operation.order = ORDER_ACQUIRE;
    else if (failure == ORDER_ACQUIRE && operation.order == ORDER_RELEASE)
        operation.order = ORDER_ACQ_REL;
    unsigned order = rest_of_order(l, &operation);
    char c = letter(&operation);
    sp_cc_text_format(&text, "atom%s%s%s.cas.b%u $0, [$1], $2, $3;", order_word(order),
                      scope_word(operation.scope), operation.space, operation.bits);
    sp_cc_text_format(&constraints, "=%c,l,%c,%c,~{memory}", c, c, c);
    LLVMValueRef wanted = as_integer(l, &operation, expected);
    LLVMValueRef operands[] = {operation.pointer, wanted, as_integer(l, &operation, desired)};
    LLVMValueRef old = modify(l, &operation, SP_UNIT_COMPARE_EXCHANGE, text.bytes,
                              constraints.bytes, operation.integer, operands, 3);
    LLVMValueRef same = LLVMBuildICmp(l->builder, LLVMIntEQ, old, wanted, "");
    LLVMValueRef pair = LLVMBuildInsertValue(l->builder, LLVMGetPoison(LLVMTypeOf(value)),
                                             as_value(l, &operation, old), 0, "");
    sp_cc_text_finish(&text);
    sp_cc_text_finish(&constraints);
    return LLVMBuildInsertValue(l->builder, pair, same, 1, "");
}

/* The operation and type of an atom instruction, or NULL where there is none; *negate: on the
 * negated operand. */
static const char *atom_word(LLVMAtomicRMWBinOp op, bool is_wide, bool *negate)
{
    *negate = op == LLVMAtomicRMWBinOpSub || op == LLVMAtomicRMWBinOpFSub;
    switch (op) {
    case LLVMAtomicRMWBinOpXchg:
        return is_wide ? "exch.b64" : "exch.b32";
    case LLVMAtomicRMWBinOpAdd:
    case LLVMAtomicRMWBinOpSub:
        return is_wide ? "add.u64" : "add.u32";
    case LLVMAtomicRMWBinOpFAdd:
    case LLVMAtomicRMWBinOpFSub:
        return is_wide ? "add.f64" : "add.f32";
    case LLVMAtomicRMWBinOpAnd:
        return is_wide ? "and.b64" : "and.b32";
    case LLVMAtomicRMWBinOpOr:
        return is_wide ? "or.b64" : "or.b32";
    case LLVMAtomicRMWBinOpXor:
        return is_wide ? "xor.b64" : "xor.b32";
    case LLVMAtomicRMWBinOpMax:
        return is_wide ? "max.s64" : "max.s32";
    case LLVMAtomicRMWBinOpMin:
        return is_wide ? "min.s64" : "min.s32";
    case LLVMAtomicRMWBinOpUMax:
        return is_wide ? "max.u64" : "max.u32";
    case LLVMAtomicRMWBinOpUMin:
        return is_wide ? "min.u64" : "min.u32";
    default:
        return NULL;
    }
}

static unsigned unit_operation(LLVMAtomicRMWBinOp op)
{
    switch (op) {
    case LLVMAtomicRMWBinOpAdd:
    case LLVMAtomicRMWBinOpSub: /* the operand is negated */
        return SP_UNIT_ADD;
    case LLVMAtomicRMWBinOpFAdd:
    case LLVMAtomicRMWBinOpFSub:
        return SP_UNIT_ADD_FLOAT;
    case LLVMAtomicRMWBinOpAnd:
        return SP_UNIT_AND;
    case LLVMAtomicRMWBinOpOr:
        return SP_UNIT_OR;
    case LLVMAtomicRMWBinOpXor:
        return SP_UNIT_XOR;
    case LLVMAtomicRMWBinOpMax:
        return SP_UNIT_MAX_SIGNED;
    case LLVMAtomicRMWBinOpMin:
        return SP_UNIT_MIN_SIGNED;
    case LLVMAtomicRMWBinOpUMax:
        return SP_UNIT_MAX_UNSIGNED;
    case LLVMAtomicRMWBinOpUMin:
        return SP_UNIT_MIN_UNSIGNED;
    case LLVMAtomicRMWBinOpFMin:
        return SP_UNIT_MIN_FLOAT;
    case LLVMAtomicRMWBinOpFMax:
        return SP_UNIT_MAX_FLOAT;
    default:
        return SP_UNIT_EXCHANGE;
    }
}

/* Minimum or maximum of floating-point numbers. */
static void add_loop(struct sp_cc_text *text, const struct operation *operation, unsigned order,
                     bool is_minimum)
{
    const char *scope = scope_word(operation->scope), *space = operation->space;
    unsigned bits = operation->bits;
    sp_cc_text_format(text,
                      "{ .reg .b%u old, new, seen; .reg .pred differs;\n"
                      "ld.relaxed%s%s.b%u seen, [$1];\n"
                      "again:\n"
                      "mov.b%u old, seen;\n"
                      "%s.f%u new, old, $2;\n"
                      "atom%s%s%s.cas.b%u seen, [$1], old, new;\n"
                      "setp.ne.b%u differs, seen, old;\n"
                      "@differs bra again;\n"
                      "mov.b%u $0, old; }",
                      bits, scope, space, bits, bits, is_minimum ? "min" : "max", bits,
                      order_word(order), scope, space, bits, bits, bits);
}

static LLVMValueRef lower_read_modify_write(struct lowering *l, LLVMValueRef value)
{
    struct operation operation;
    struct sp_cc_text text = {0}, constraints = {0};
    LLVMValueRef operand = LLVMGetOperand(value, 1);
    LLVMAtomicRMWBinOp op = LLVMGetAtomicRMWBinOp(value);
    bool is_minimum = op == LLVMAtomicRMWBinOpFMin, negate;
    bool is_loop = is_minimum || op == LLVMAtomicRMWBinOpFMax;
    bool is_float = is_loop || op == LLVMAtomicRMWBinOpFAdd || op == LLVMAtomicRMWBinOpFSub;
    operation_init(l, &operation, value, LLVMTypeOf(operand), order_of(LLVMGetOrdering(value)));
    const char *word = atom_word(op, operation.bits == 64, &negate);
    if ((!word && !is_loop) || (operation.bits != 32 && operation.bits != 64))
        return NULL;
    if (negate)
        operand = is_float ? LLVMBuildFNeg(l->builder, operand, "")
                           : LLVMBuildNeg(l->builder, operand, "");
    if (!is_float)
        operand = as_integer(l, &operation, operand);
    unsigned order = rest_of_order(l, &operation);
    char c = is_float ? (operation.bits == 64 ? 'd' : 'f') : letter(&operation);
    char result_letter = is_loop ? letter(&operation) : c;
    if (is_loop)
        add_loop(&text, &operation, order, is_minimum);
    else
        sp_cc_text_format(&text, "atom%s%s%s.%s $0, [$1], $2;", order_word(order),
                          scope_word(operation.scope), operation.space, word);
    /* A loop's result must not take the place of an operand. */
    sp_cc_text_format(&constraints, "=%s%c,l,%c,~{memory}", is_loop ? "&" : "", result_letter, c);
    LLVMValueRef operands[] = {operation.pointer, operand};
    LLVMValueRef result =
        modify(l, &operation, unit_operation(op), text.bytes, constraints.bytes,
               is_float && !is_loop ? operation.type : operation.integer, operands, 2);
    sp_cc_text_finish(&text);
    sp_cc_text_finish(&constraints);
    return is_float && !is_loop ? result : as_value(l, &operation, result);
}

/* True where the instruction is replaced. */
static bool lower(struct lowering *l, LLVMValueRef value, LLVMValueRef *result)
{
    *result = NULL;
    if (sp_ir_calls(value, SP_FENCE_NAME)) {
        LLVMValueRef order = LLVMGetOperand(value, 0);
        fence(l,
              LLVMIsAConstantInt(order) ? (unsigned)LLVMConstIntGetZExtValue(order) : ORDER_SEQ_CST,
              constant_scope(LLVMGetOperand(value, 1)));
        return true;
    }
    if (!is_atomic(value))
        return false;
    if (LLVMIsAFenceInst(value))
        fence(l, LLVMIsAtomicSingleThread(value) ? ORDER_RELAXED : order_of(LLVMGetOrdering(value)),
              SCOPE_ALL_DEVICES);
    else if (LLVMIsALoadInst(value))
        *result = lower_load(l, value);
    else if (LLVMIsAStoreInst(value))
        lower_store(l, value);
    else if (LLVMIsAAtomicCmpXchgInst(value))
        *result = lower_exchange(l, value);
    else {
        *result = lower_read_modify_write(l, value);
        return *result != NULL;
    }
    return true;
}

char *sp_gpu_lower_atomics(LLVMModuleRef module, const struct sp_gpu_entry *entry,
                           LLVMTargetMachineRef machine)
{
    struct lowering l = {.module = module, .context = LLVMGetModuleContext(module), .entry = entry};
    LLVMValueRef function = entry->function;
    LLVMBasicBlockRef block;
    take_scopes(&l, function);
    /* The pass changes operands in place, so what is noted of an instruction stays true. */
    char *error = sp_ir_run_passes(module, "function(infer-address-spaces)", machine);
    l.builder = LLVMCreateBuilderInContext(l.context);
    for (block = LLVMGetFirstBasicBlock(function); block && !error;
         block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
            LLVMValueRef result;
            next = LLVMGetNextInstruction(value);
            LLVMPositionBuilderBefore(l.builder, value);
            if (!lower(&l, value, &result))
                continue;
            if (result)
                LLVMReplaceAllUsesWith(value, result);
            LLVMInstructionEraseFromParent(value);
        }
    }
    LLVMDisposeBuilder(l.builder);
    sp_map_finish(&l.scopes);
    return error;
}
