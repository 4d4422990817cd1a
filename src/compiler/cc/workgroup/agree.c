/* See agree.h. What is compared grows with the local ids (affine.h), so it lies between the values
 * of the first and the last work-item, unless it wraps around in between: which it does not where
 * the last value is no smaller than the first, as it grows by less than half of what its type
 * holds.
 *
 * Which way is asked for is guessed: at "value < bound" that one, since bounds are mostly ends of
 * arrays, but "value > bound" where the bound is a constant, as at a border; never equality; both
 * sides of "and", and neither of "or".
 *
 * Called by emit.c, which asks before the loop over work-items. */
#include "compiler/cc/workgroup/agree.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/affine.h"
#include "compiler/cc/workgroup/masked.h"
#include "compiler/cc/workgroup/shapes.h"

#include <string.h>

/* Of a region, which is emitted twice. */
#define MOST_INSTRUCTIONS 512u

/* Of an expression that is built once more. */
#define MOST_STEPS 32u

struct search {
    const struct sp_wg_plan *plan;
    const struct sp_wg_region *region;
    const uint64_t *local_size;
    struct sp_wg_agreed *agreed;
};

/* --- Expressions ----------------------------------------------------------------------------- */

static bool is_id(LLVMValueRef call)
{
    static const char *const prefixes[] = {
        "__sp_local_id_",    "__sp_group_id_",   "__sp_local_size_",   "__sp_enqueued_local_size_",
        "__sp_global_size_", "__sp_num_groups_", "__sp_global_offset_"};
    const char *name = sp_ir_callee(call);
    for (size_t i = 0; name && i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

/* A load of a variable that is the same for all and stays so. */
bool sp_wg_is_kept(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                   LLVMValueRef load)
{
    LLVMValueRef slot = LLVMGetOperand(load, 0);
    if (!LLVMIsAAllocaInst(slot) || !sp_map_get(&plan->variable_of, slot))
        return false;
    uint32_t v = sp_wg_variable_index(plan, slot);
    return plan->variables[v].kind == SP_WG_SHARED && !sp_bits_has(&region->written, v);
}

LLVMValueRef sp_wg_only_value(LLVMValueRef load)
{
    LLVMValueRef slot = LLVMGetOperand(load, 0), only = NULL;
    for (LLVMUseRef use = LLVMIsAAllocaInst(slot) ? LLVMGetFirstUse(slot) : NULL; use;
         use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsALoadInst(user))
            continue;
        if (!LLVMIsAStoreInst(user) || LLVMGetOperand(user, 0) == slot || only)
            return NULL;
        only = LLVMGetOperand(user, 0);
    }
    return only;
}

static bool is_integer(LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64;
}

/* Nothing that may trap: a division by what may be 0, or may be -1. */
static bool is_harmless(LLVMValueRef value)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode == LLVMSDiv || opcode == LLVMSRem)
        return false;
    if (opcode != LLVMUDiv && opcode != LLVMURem)
        return LLVMIsABinaryOperator(value) || opcode == LLVMTrunc || opcode == LLVMZExt ||
               opcode == LLVMSExt || opcode == LLVMICmp || opcode == LLVMSelect;
    LLVMValueRef by = LLVMGetOperand(value, 1);
    return LLVMIsAConstantInt(by) && LLVMConstIntGetZExtValue(by);
}

/* `always`: of what never changes alone. An expression of a variable that is written once was
 * computed then, perhaps before others changed. */
static bool is_computable(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                          LLVMValueRef value, bool always, unsigned *steps)
{
    if (!is_integer(value) || ++*steps > MOST_STEPS)
        return false;
    if (LLVMIsAConstantInt(value) || LLVMIsAArgument(value))
        return true;
    if (LLVMIsACallInst(value))
        return is_id(value);
    if (LLVMIsALoadInst(value)) {
        LLVMValueRef only = sp_wg_only_value(value);
        return (!always && sp_wg_is_kept(plan, region, value)) ||
               (only && is_computable(plan, region, only, true, steps));
    }
    if (!LLVMIsAInstruction(value) || !is_harmless(value))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!is_computable(plan, region, LLVMGetOperand(value, (unsigned)i), always, steps))
            return false;
    return true;
}

/* Whether the value can be built before the loop over work-items, for one of them, without a trap:
 * an expression of ids, arguments and variables that are the same for all and that the region does
 * not write. */
static bool can_recompute(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                          LLVMValueRef value)
{
    unsigned steps = 0;
    return is_computable(plan, region, value, false, &steps);
}

LLVMValueRef sp_wg_recompute(LLVMBuilderRef builder, LLVMValueRef instruction,
                             const LLVMValueRef operands[3])
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    if (LLVMIsACastInst(instruction))
        return LLVMBuildCast(builder, opcode, operands[0], LLVMTypeOf(instruction), "");
    if (opcode == LLVMICmp)
        return LLVMBuildICmp(builder, LLVMGetICmpPredicate(instruction), operands[0], operands[1],
                             "");
    if (opcode == LLVMSelect)
        return LLVMBuildSelect(builder, operands[0], operands[1], operands[2], "");
    /* A sum also for a work-item of which nobody said that the bits are apart. */
    if (opcode == LLVMOr && LLVMGetIsDisjoint(instruction))
        opcode = LLVMAdd;
    return LLVMBuildBinOp(builder, opcode, operands[0], operands[1], "");
}

/* --- Branches -------------------------------------------------------------------------------- */

/* The two sides of "a && b", or with `any` of "a || b", as operations or as choices. */
static bool is_logical(LLVMValueRef condition, bool any, LLVMValueRef sides[2])
{
    LLVMOpcode opcode = LLVMIsAInstruction(condition) ? LLVMGetInstructionOpcode(condition) : 0;
    if (opcode == (any ? LLVMOr : LLVMAnd)) {
        sides[0] = LLVMGetOperand(condition, 0);
        sides[1] = LLVMGetOperand(condition, 1);
        return true;
    }
    if (opcode != LLVMSelect)
        return false;
    LLVMValueRef fixed = LLVMGetOperand(condition, any ? 1 : 2);
    sides[0] = LLVMGetOperand(condition, 0);
    sides[1] = LLVMGetOperand(condition, any ? 2 : 1);
    return LLVMIsAConstantInt(fixed) && (LLVMConstIntGetZExtValue(fixed) != 0) == any;
}

static bool is_not(LLVMValueRef condition, LLVMValueRef *inner)
{
    if (!LLVMIsABinaryOperator(condition) || LLVMGetInstructionOpcode(condition) != LLVMXor ||
        !LLVMIsAConstantInt(LLVMGetOperand(condition, 1)))
        return false;
    *inner = LLVMGetOperand(condition, 0);
    return true;
}

/* A comparison of what grows with a work-item's ids, and hangs on the group, with a bound that is
 * the same for all. */
static bool read_comparison(const struct search *search, LLVMValueRef comparison,
                            struct sp_wg_agree_question *question)
{
    const struct sp_wg_uniformity *uniformity = &search->plan->analysis.uniformity;
    struct sp_wg_affine affine;
    if (!LLVMIsAICmpInst(comparison) || !is_integer(LLVMGetOperand(comparison, 0)))
        return false;
    question->value = LLVMGetOperand(comparison, 0);
    question->bound = LLVMGetOperand(comparison, 1);
    question->predicate = LLVMGetICmpPredicate(comparison);
    if (!sp_wg_is_divergent(uniformity, question->value)) {
        question->value = LLVMGetOperand(comparison, 1);
        question->bound = LLVMGetOperand(comparison, 0);
        question->predicate = sp_ir_swapped(question->predicate);
    }
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(question->value));
    return sp_wg_is_divergent(uniformity, question->value) &&
           !sp_wg_is_divergent(uniformity, question->bound) &&
           sp_wg_affine_of(uniformity, question->value, &affine) && affine.based &&
           sp_wg_affine_reach(&affine, search->local_size) < UINT64_C(1) << (width - 1) &&
           can_recompute(search->plan, search->region, question->value) &&
           can_recompute(search->plan, search->region, question->bound);
}

static bool is_below(LLVMIntPredicate predicate)
{
    return predicate == LLVMIntULT || predicate == LLVMIntULE || predicate == LLVMIntSLT ||
           predicate == LLVMIntSLE;
}

/* What the condition is for most groups. */
static bool guess(const struct search *search, LLVMValueRef condition)
{
    LLVMValueRef sides[2], inner;
    struct sp_wg_agree_question question;
    if (is_not(condition, &inner))
        return !guess(search, inner);
    if (is_logical(condition, false, sides))
        return true;
    if (is_logical(condition, true, sides) || !read_comparison(search, condition, &question) ||
        question.predicate == LLVMIntEQ)
        return false;
    return question.predicate == LLVMIntNE ||
           is_below(question.predicate) != !!LLVMIsAConstantInt(question.bound);
}

/* Notes what makes the condition `truth` for all. False where that is not known, or too much. */
static bool ask(const struct search *search, LLVMValueRef condition, bool truth)
{
    struct sp_wg_agreed *agreed = search->agreed;
    struct sp_wg_agree_question question;
    LLVMValueRef sides[2], inner;
    if (is_not(condition, &inner))
        return ask(search, inner, !truth);
    if (is_logical(condition, !truth, sides))
        return ask(search, sides[0], truth) && ask(search, sides[1], truth);
    if (!read_comparison(search, condition, &question) ||
        agreed->num_questions == SP_WG_MOST_AGREED)
        return false;
    if (!truth)
        question.predicate = sp_ir_opposite(question.predicate);
    agreed->questions[agreed->num_questions++] = question;
    return question.predicate != LLVMIntEQ;
}

static void ask_block(const struct search *search, uint32_t block)
{
    const struct sp_wg_graph *graph = &search->plan->analysis.graph;
    struct sp_wg_agreed *agreed = search->agreed;
    unsigned before = agreed->num_questions;
    if (!sp_bits_has(&search->plan->analysis.uniformity.branches, block) ||
        agreed->num_blocks == SP_WG_MOST_AGREED)
        return;
    LLVMValueRef condition = LLVMGetCondition(LLVMGetBasicBlockTerminator(graph->blocks[block]));
    bool truth = guess(search, condition);
    if (!ask(search, condition, truth)) {
        agreed->num_questions = before;
        return;
    }
    agreed->blocks[agreed->num_blocks] = block;
    agreed->ways[agreed->num_blocks++] = truth ? 0 : 1;
}

bool sp_wg_agree(const struct sp_wg_plan *plan, const struct sp_wg_region *region,
                 const uint64_t *local_size, struct sp_wg_agreed *agreed)
{
    const struct search search = {plan, region, local_size, agreed};
    unsigned instructions = 0, accesses = 0;
    *agreed = (struct sp_wg_agreed){0};
    if (region->masked || region->counts)
        return false;
    for (uint32_t i = 0; i < region->num_blocks; i++) {
        LLVMBasicBlockRef block = plan->analysis.graph.blocks[region->blocks[i]];
        LLVMValueRef address;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value), instructions++)
            accesses += sp_wg_is_access(plan, value, &address);
        ask_block(&search, region->blocks[i]);
    }
    return agreed->num_blocks && accesses && instructions <= MOST_INSTRUCTIONS;
}

int sp_wg_agreed_way(const struct sp_wg_agreed *agreed, uint32_t block)
{
    for (unsigned i = 0; agreed && i < agreed->num_blocks; i++)
        if (agreed->blocks[i] == block)
            return agreed->ways[i];
    return -1;
}

LLVMValueRef sp_wg_agree_answer(LLVMBuilderRef b, LLVMIntPredicate predicate, LLVMValueRef first,
                                LLVMValueRef last, LLVMValueRef bound)
{
    bool is_signed = predicate == LLVMIntSLT || predicate == LLVMIntSLE ||
                     predicate == LLVMIntSGT || predicate == LLVMIntSGE;
    LLVMValueRef in_order = LLVMBuildICmp(b, is_signed ? LLVMIntSLE : LLVMIntULE, first, last, "");
    LLVMValueRef holds;
    if (predicate == LLVMIntNE)
        holds = LLVMBuildOr(b, LLVMBuildICmp(b, LLVMIntUGT, first, bound, ""),
                            LLVMBuildICmp(b, LLVMIntULT, last, bound, ""), "");
    else
        holds = LLVMBuildICmp(b, predicate, is_below(predicate) ? last : first, bound, "");
    return LLVMBuildAnd(b, in_order, holds, "");
}
