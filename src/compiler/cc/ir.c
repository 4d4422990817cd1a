/* See ir.h. */
#include "compiler/cc/ir.h"

#include "compiler/cc/text.h"

#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <string.h>

struct sp_map_entry {
    const void *key;
    void *value;
};

static size_t place(const struct sp_map *map, const void *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> 20) & (map->capacity - 1);
    while (map->entries[at].key && map->entries[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

void sp_map_set(struct sp_map *map, const void *key, void *value)
{
    if (map->count * 2 >= map->capacity) {
        struct sp_map larger = {.capacity = map->capacity ? map->capacity * 2 : 64};
        larger.entries = sp_cc_allocate(larger.capacity * sizeof(*larger.entries));
        for (size_t i = 0; i < map->capacity; i++)
            if (map->entries[i].key)
                larger.entries[place(&larger, map->entries[i].key)] = map->entries[i];
        larger.count = map->count;
        free(map->entries);
        *map = larger;
    }
    struct sp_map_entry *entry = &map->entries[place(map, key)];
    map->count += !entry->key;
    *entry = (struct sp_map_entry){key, value};
}

void *sp_map_get(const struct sp_map *map, const void *key)
{
    return map->capacity ? map->entries[place(map, key)].value : NULL;
}

void sp_map_clear(struct sp_map *map)
{
    if (map->count)
        memset(map->entries, 0, map->capacity * sizeof(*map->entries));
    map->count = 0;
}

void sp_map_finish(struct sp_map *map)
{
    free(map->entries);
    *map = (struct sp_map){0};
}

const char *sp_ir_callee(LLVMValueRef value)
{
    if (!LLVMIsACallInst(value))
        return NULL;
    LLVMValueRef called = LLVMGetCalledValue(value);
    size_t length;
    return LLVMIsAFunction(called) ? LLVMGetValueName2(called, &length) : NULL;
}

bool sp_ir_calls(LLVMValueRef value, const char *name)
{
    const char *callee = sp_ir_callee(value);
    return callee && !strcmp(callee, name);
}

bool sp_ir_is_computation(LLVMValueRef value)
{
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMICmp:
    case LLVMSelect:
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMBitCast:
    case LLVMAddrSpaceCast:
    case LLVMGetElementPtr:
        return true;
    default:
        return false;
    }
}

bool sp_ir_is_intrinsic(LLVMValueRef value, const char *prefix)
{
    const char *callee = sp_ir_callee(value);
    return callee && !strncmp(callee, prefix, strlen(prefix));
}

LLVMIntPredicate sp_ir_opposite(LLVMIntPredicate predicate)
{
    switch (predicate) {
    case LLVMIntEQ:
        return LLVMIntNE;
    case LLVMIntNE:
        return LLVMIntEQ;
    case LLVMIntUGT:
        return LLVMIntULE;
    case LLVMIntUGE:
        return LLVMIntULT;
    case LLVMIntULT:
        return LLVMIntUGE;
    case LLVMIntULE:
        return LLVMIntUGT;
    case LLVMIntSGT:
        return LLVMIntSLE;
    case LLVMIntSGE:
        return LLVMIntSLT;
    case LLVMIntSLT:
        return LLVMIntSGE;
    case LLVMIntSLE:
        return LLVMIntSGT;
    }
    return predicate;
}

LLVMIntPredicate sp_ir_swapped(LLVMIntPredicate predicate)
{
    switch (predicate) {
    case LLVMIntUGT:
        return LLVMIntULT;
    case LLVMIntUGE:
        return LLVMIntULE;
    case LLVMIntSGT:
        return LLVMIntSLT;
    case LLVMIntSGE:
        return LLVMIntSLE;
    case LLVMIntULT:
        return LLVMIntUGT;
    case LLVMIntULE:
        return LLVMIntUGE;
    case LLVMIntSLT:
        return LLVMIntSGT;
    case LLVMIntSLE:
        return LLVMIntSGE;
    default:
        return predicate;
    }
}

bool sp_ir_is_definition(LLVMValueRef function)
{
    return LLVMCountBasicBlocks(function) > 0;
}

static bool has_parts(LLVMValueRef constant)
{
    return LLVMIsAConstantExpr(constant) || LLVMIsAConstantStruct(constant) ||
           LLVMIsAConstantArray(constant) || LLVMIsAConstantVector(constant);
}

bool sp_ir_constant_holds(LLVMValueRef constant, bool (*test)(LLVMValueRef, const void *),
                          const void *data)
{
    if (test(constant, data))
        return true;
    if (!has_parts(constant))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(constant); i++)
        if (sp_ir_constant_holds(LLVMGetOperand(constant, (unsigned)i), test, data))
            return true;
    return false;
}

bool sp_ir_uses_global(LLVMValueRef function, LLVMValueRef global)
{
    for (LLVMUseRef use = LLVMGetFirstUse(global); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAInstruction(user)) {
            if (LLVMGetBasicBlockParent(LLVMGetInstructionParent(user)) == function)
                return true;
        } else if (LLVMIsConstant(user) && sp_ir_uses_global(function, user)) {
            return true;
        }
    }
    return false;
}

static LLVMValueRef rebuild_expression(LLVMBuilderRef builder, LLVMValueRef constant,
                                       LLVMValueRef *parts, unsigned count)
{
    LLVMOpcode opcode = LLVMGetConstOpcode(constant);
    if (opcode == LLVMGetElementPtr) {
        LLVMValueRef gep = LLVMBuildGEP2(builder, LLVMGetGEPSourceElementType(constant), parts[0],
                                         parts + 1, count - 1, "");
        if (LLVMIsAGetElementPtrInst(gep))
            LLVMSetIsInBounds(gep, LLVMIsInBounds(constant));
        return gep;
    }
    if (count == 1)
        return LLVMBuildCast(builder, opcode, parts[0], LLVMTypeOf(constant), "");
    return LLVMBuildBinOp(builder, opcode, parts[0], parts[1], "");
}

static LLVMValueRef rebuild_aggregate(LLVMBuilderRef builder, LLVMValueRef constant,
                                      LLVMValueRef *parts, unsigned count)
{
    LLVMValueRef whole = LLVMGetPoison(LLVMTypeOf(constant));
    LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(constant)));
    bool vector = LLVMIsAConstantVector(constant);
    for (unsigned i = 0; i < count; i++)
        whole = vector ? LLVMBuildInsertElement(builder, whole, parts[i],
                                                LLVMConstInt(i32, i, false), "")
                       : LLVMBuildInsertValue(builder, whole, parts[i], i, "");
    return whole;
}

LLVMValueRef sp_ir_rebuild_constant(LLVMBuilderRef builder, LLVMValueRef constant,
                                    sp_ir_replace_fn *replace, void *data)
{
    if (LLVMIsAGlobalValue(constant)) {
        LLVMValueRef other = replace(constant, data);
        return other ? other : constant;
    }
    if (!has_parts(constant))
        return constant;
    unsigned count = (unsigned)LLVMGetNumOperands(constant);
    LLVMValueRef *parts = sp_cc_allocate(count * sizeof(LLVMValueRef));
    bool changed = false;
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef part = LLVMGetOperand(constant, i);
        parts[i] = sp_ir_rebuild_constant(builder, part, replace, data);
        changed |= parts[i] != part;
    }
    LLVMValueRef result = constant;
    if (changed)
        result = LLVMIsAConstantExpr(constant) ? rebuild_expression(builder, constant, parts, count)
                                               : rebuild_aggregate(builder, constant, parts, count);
    free(parts);
    return result;
}

uint32_t sp_ir_alignment(LLVMModuleRef module, LLVMValueRef global)
{
    unsigned written = LLVMGetAlignment(global);
    return written ? written
                   : LLVMABIAlignmentOfType(LLVMGetModuleDataLayout(module),
                                            LLVMGlobalGetValueType(global));
}

uint64_t sp_ir_align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

char *sp_ir_run_passes(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, passes, machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return NULL;
    char *message = LLVMGetErrorMessage(error);
    char *copy = sp_cc_copy(message);
    LLVMDisposeErrorMessage(message);
    return copy;
}

void sp_ir_dump(LLVMModuleRef module, const char *name)
{
    const char *folder = getenv("SAMEPAGE_CC_DUMP");
    if (!folder || !*folder)
        return;
    struct sp_cc_text path = {0};
    char *message = NULL;
    sp_cc_text_format(&path, "%s/%s.ll", folder, name);
    if (LLVMPrintModuleToFile(module, path.bytes, &message))
        LLVMDisposeMessage(message);
    sp_cc_text_finish(&path);
}

bool sp_ir_has_one_use(LLVMValueRef value)
{
    LLVMUseRef use = LLVMGetFirstUse(value);
    return use && !LLVMGetNextUse(use);
}

void sp_ir_each_instruction(LLVMModuleRef module,
                            void (*visit)(LLVMBuilderRef builder, LLVMValueRef value))
{
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
    LLVMBasicBlockRef block;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block)) {
            LLVMValueRef next;
            for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
                next = LLVMGetNextInstruction(value);
                visit(builder, value);
            }
        }
    LLVMDisposeBuilder(builder);
}
