/* Branches at which most groups agree (agree.h): text of IR in; which they are and what is asked,
 * and the two copies of a region that come out. */
#include "compiler/cc/workgroup/agree.h"

#include "compiler/cc/layout.h"
#include "compiler/cc/workgroup/emit.h"
#include "compiler/cc/workgroup/prepare.h"
#include "ir_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* %g is the id, %l the place in x, %n and %m are arguments; %c decides who stores. */
#define KERNEL                                                                                     \
    "declare i64 @__sp_local_id_0() memory(none)\n"                                                \
    "declare i64 @__sp_local_id_1() memory(none)\n"                                                \
    "declare i64 @__sp_group_id_0() memory(none)\n"                                                \
    "define void @k(ptr addrspace(1) %%p, i32 %%n, i32 %%m) {\n"                                   \
    "entry: %%x = call i64 @__sp_local_id_0()\n"                                                   \
    "  %%l = trunc i64 %%x to i32\n"                                                               \
    "  %%w = call i64 @__sp_group_id_0()\n"                                                        \
    "  %%ws = mul i64 %%w, 60\n"                                                                   \
    "  %%g64 = add i64 %%ws, %%x\n"                                                                \
    "  %%g = trunc i64 %%g64 to i32\n"                                                             \
    "  %%at = getelementptr i32, ptr addrspace(1) %%p, i64 %%g64\n"                                \
    "  %%v = load i32, ptr addrspace(1) %%at\n"                                                    \
    "%s"                                                                                           \
    "  br i1 %%c, label %%yes, label %%no\n"                                                       \
    "yes: store i32 %%n, ptr addrspace(1) %%at\n"                                                  \
    "  br label %%no\n"                                                                            \
    "no: ret void\n}\n"

struct planned {
    struct parsed ir;
    struct sp_wg_plan plan;
};

static void parse(struct planned *parsed, const char *body)
{
    plan_ir(&parsed->ir, &parsed->plan, KERNEL, body);
}

static const struct {
    const char *body;
    int stores; /* whether they are taken all to store; -1: it is not known */
    unsigned questions;
    LLVMIntPredicate predicate; /* of the first */
} branches[] = {
    {"  %c = icmp ult i32 %g, %n\n", 1, 1, LLVMIntULT},
    {"  %c = icmp slt i32 %g, %n\n", 1, 1, LLVMIntSLT},
    {"  %c = icmp ugt i32 %n, %g\n", 1, 1, LLVMIntULT},
    {"  %c = icmp uge i32 %g, %n\n", 0, 1, LLVMIntULT},
    {"  %c = icmp ult i64 %g64, 1000\n", 0, 1, LLVMIntUGT}, /* or UGE: see below */
    {"  %c = icmp ugt i32 %g, 9\n", 1, 1, LLVMIntUGT},
    {"  %c = icmp eq i32 %g, %n\n", 0, 1, LLVMIntNE},
    {"  %c = icmp ne i32 %g, 0\n", 1, 1, LLVMIntNE},
    {"  %i = add i32 %g, %m\n  %c = icmp ult i32 %i, %n\n", 1, 1, LLVMIntULT},
    {"  %i = mul i32 %g, 3\n  %c = icmp ult i32 %i, %n\n", 1, 1, LLVMIntULT},
    {"  %b = sub i32 %n, %m\n  %c = icmp ult i32 %g, %b\n", 1, 1, LLVMIntULT},
    {"  %b = udiv i32 %n, 3\n  %c = icmp ult i32 %g, %b\n", 1, 1, LLVMIntULT},
    {"  %a = icmp ult i32 %g, %n\n  %b = icmp ugt i32 %g, 4\n  %c = and i1 %a, %b\n", 1, 2,
     LLVMIntULT},
    {"  %a = icmp ult i32 %g, %n\n  %b = icmp ne i32 %g, %m\n"
     "  %c = select i1 %a, i1 %b, i1 false\n",
     1, 2, LLVMIntULT},
    {"  %a = icmp eq i32 %g, 0\n  %b = icmp uge i32 %g, %n\n  %c = or i1 %a, %b\n", 0, 2,
     LLVMIntNE},
    {"  %a = icmp eq i32 %g, 0\n  %b = icmp uge i32 %g, %n\n"
     "  %c = select i1 %a, i1 true, i1 %b\n",
     0, 2, LLVMIntNE},
    /* Data, what is the same in each group, and what is the same for all or may trap. */
    {"  %c = icmp ult i32 %v, %n\n", -1, 0, LLVMIntULT},
    {"  %c = icmp ult i32 %l, %n\n", -1, 0, LLVMIntULT},
    {"  %c = icmp ult i32 %m, %n\n", -1, 0, LLVMIntULT},
    {"  %b = udiv i32 %n, %m\n  %c = icmp ult i32 %g, %b\n", -1, 0, LLVMIntULT},
    {"  %b = sdiv i32 %n, -1\n  %s = sdiv i32 %b, %m\n  %c = icmp ult i32 %g, %s\n", -1, 0,
     LLVMIntULT},
    {"  %a = icmp ult i32 %g, %n\n  %b = icmp ult i32 %v, 4\n  %c = and i1 %a, %b\n", -1, 0,
     LLVMIntULT},
    {"  %i = sub i32 %n, %g\n  %c = icmp ult i32 %i, %m\n", -1, 0, LLVMIntULT}, /* it shrinks */
    {"  %y = and i32 %g, 7\n  %c = icmp ult i32 %y, %n\n", -1, 0, LLVMIntULT},
    {"  %i = mul i32 %g, 67108864\n  %c = icmp ult i32 %i, %n\n", -1, 0, LLVMIntULT}, /* wraps */
};

static const uint64_t size[3] = {60, 1, 1};

static bool is_same_but_equal(LLVMIntPredicate a, LLVMIntPredicate b)
{
    return a == b || (a == LLVMIntUGE && b == LLVMIntUGT) || (a == LLVMIntUGT && b == LLVMIntUGE);
}

static void test_branches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(branches) / sizeof(branches[0]); i++) {
        struct planned parsed;
        struct sp_wg_agreed agreed;
        parse(&parsed, branches[i].body);
        const struct sp_wg_graph *graph = &parsed.plan.analysis.graph;
        bool found = sp_wg_agree(&parsed.plan, &parsed.plan.regions[0], size, &agreed);
        if (found != (branches[i].stores >= 0))
            fail_msg("%zu: found %d", i, found);
        if (found) {
            assert_int_equal(agreed.num_blocks, 1);
            int way = sp_wg_agreed_way(&agreed, agreed.blocks[0]);
            /* LLVM may have exchanged the ways: the one that is not the end stores. */
            LLVMBasicBlockRef to = graph->blocks[graph->successors[agreed.blocks[0]][way]];
            bool stores = false;
            for (LLVMValueRef value = LLVMGetFirstInstruction(to); value;
                 value = LLVMGetNextInstruction(value))
                stores |= LLVMIsAStoreInst(value) && !LLVMIsAAllocaInst(LLVMGetOperand(value, 1));
            if (stores != branches[i].stores || agreed.num_questions != branches[i].questions ||
                !is_same_but_equal(agreed.questions[0].predicate, branches[i].predicate))
                fail_msg("%zu: stores %d, %u questions, predicate %d", i, stores,
                         agreed.num_questions, (int)agreed.questions[0].predicate);
        }
        assert_int_equal(sp_wg_agreed_way(NULL, 0), -1);
        sp_wg_plan_finish(&parsed.plan);
        discard_ir(&parsed.ir);
    }
}

/* A variable that is written once is what was written, unless that hangs on one that changes. */
static void test_variables(void **state)
{
    static const struct {
        const char *bound;
        bool found;
    } bounds[] = {{"%once", true}, {"%late", false}};
    (void)state;
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        struct sp_cc_text text = {0};
        struct parsed ir;
        struct sp_wg_plan plan;
        struct sp_wg_agreed agreed;
        sp_cc_text_format(
            &text,
            "declare i64 @__sp_local_id_0() memory(none)\n"
            "declare i64 @__sp_group_id_0() memory(none)\n"
            "declare void @__sp_barrier() convergent\n"
            "define void @k(ptr addrspace(1) %%p, i64 %%n) {\n"
            "entry: %%counter = alloca i64\n  %%a = alloca i64\n  %%b = alloca i64\n"
            "  %%twice = mul i64 %%n, 2\n  store i64 %%twice, ptr %%a\n"
            "  store i64 0, ptr %%counter\n  br label %%loop\n"
            "loop: %%k = load i64, ptr %%counter\n  %%more = add i64 %%k, 1\n"
            "  store i64 %%more, ptr %%b\n  store i64 %%more, ptr %%counter\n"
            "  call void @__sp_barrier()\n  br label %%part\n"
            "part: %%x = call i64 @__sp_local_id_0()\n  %%w = call i64 @__sp_group_id_0()\n"
            "  %%ws = mul i64 %%w, 60\n  %%g = add i64 %%ws, %%x\n"
            "  %%once = load i64, ptr %%a\n  %%late = load i64, ptr %%b\n"
            "  %%c = icmp ult i64 %%g, %s\n  br i1 %%c, label %%yes, label %%no\n"
            "yes: %%at = getelementptr i64, ptr addrspace(1) %%p, i64 %%g\n"
            "  store i64 %%n, ptr addrspace(1) %%at\n  br label %%no\n"
            "no: %%again = icmp ult i64 %%late, 9\n  call void @__sp_barrier()\n"
            "  br i1 %%again, label %%loop, label %%end\n"
            "end: ret void\n}\n",
            bounds[i].bound);
        parse_ir(&ir, "", text.bytes);
        sp_wg_plan_init(&plan, ir.function, SP_WG_SCALAR);
        bool found = false;
        for (uint32_t r = 0; r < plan.num_regions; r++) {
            /* As where the region itself writes both: then only what was written counts, before the
             * counter went on. */
            for (uint32_t v = 0; v < plan.num_variables; v++)
                if (strcmp(LLVMGetValueName(plan.variables[v].alloca), "counter"))
                    sp_bits_add(&plan.regions[r].written, v);
            found |= sp_wg_agree(&plan, &plan.regions[r], size, &agreed);
        }
        if (found != bounds[i].found)
            fail_msg("%s: %d", bounds[i].bound, found);
        sp_wg_plan_finish(&plan);
        discard_ir(&ir);
        sp_cc_text_finish(&text);
    }
}

/* The answer that LLVM folds, in 32 bits. */
static void test_answers(void **state)
{
    static const struct {
        LLVMIntPredicate predicate;
        uint32_t first, last, bound;
        bool yes;
    } answers[] = {
        {LLVMIntULT, 0, 59, 60, true},
        {LLVMIntULT, 0, 59, 59, false},
        {LLVMIntULE, 0, 59, 59, true},
        {LLVMIntUGT, 10, 69, 9, true},
        {LLVMIntUGT, 10, 69, 10, false},
        {LLVMIntUGE, 10, 69, 10, true},
        {LLVMIntULT, 0xffffffe0, 27, 60, false}, /* it wraps: the first is not below 60 */
        {LLVMIntUGT, 0xffffffe0, 27, 9, false},
        {LLVMIntSLT, 0xffffffe0, 27, 60, true}, /* -32 to 27 */
        {LLVMIntSGT, 0xffffffe0, 27, 0xffffffdf, true},
        {LLVMIntSLT, 0x7ffffff0, 0x80000010, 0, false},
        {LLVMIntSGE, 0x7ffffff0, 0x80000010, 0, false},
        {LLVMIntNE, 10, 69, 9, true},
        {LLVMIntNE, 10, 69, 70, true},
        {LLVMIntNE, 10, 69, 10, false},
        {LLVMIntNE, 10, 69, 69, false},
        {LLVMIntNE, 10, 69, 30, false},
        {LLVMIntNE, 0xffffffe0, 27, 50, false}, /* 50 is none of them, but that is not looked for */
    };
    (void)state;
    LLVMContextRef context = LLVMContextCreate();
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMTypeRef i32 = LLVMInt32TypeInContext(context);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        LLVMValueRef answer = sp_wg_agree_answer(
            builder, answers[i].predicate, LLVMConstInt(i32, answers[i].first, false),
            LLVMConstInt(i32, answers[i].last, false), LLVMConstInt(i32, answers[i].bound, false));
        assert_true(LLVMIsAConstantInt(answer));
        if (LLVMConstIntGetZExtValue(answer) != answers[i].yes)
            fail_msg("%zu", i);
    }
    LLVMDisposeBuilder(builder);
    LLVMContextDispose(context);
}

/* Two copies: in the first, which is there for groups that agree, nobody asks again. */
static void test_regions_are_emitted_twice(void **state)
{
    struct planned parsed;
    struct sp_cc_layout locals = {0}, globals = {0};
    struct sp_arg_info arguments[3] = {{.kind = SP_ARG_GLOBAL, .align = 8},
                                       {.kind = SP_ARG_VALUE, .align = 4, .offset = 8},
                                       {.kind = SP_ARG_VALUE, .align = 4, .offset = 12}};
    struct sp_kernel_info info = {.name = "k", .num_args = 3, .args = arguments};
    unsigned stores = 0, questions = 0;
    (void)state;
    parse(&parsed, "  %c = icmp ult i32 %g, %n\n");
    struct sp_wg_environment env = {.module = parsed.ir.module,
                                    .info = &info,
                                    .locals = &locals,
                                    .globals = &globals,
                                    .vector_bits = 512};
    LLVMValueRef function = sp_wg_emit(&parsed.plan, &env, "group", size);
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value)) {
            LLVMTypeRef i32 = LLVMInt32TypeInContext(parsed.ir.context);
            stores += LLVMIsAStoreInst(value) && !LLVMIsAAllocaInst(LLVMGetOperand(value, 1));
            questions += LLVMIsAICmpInst(value) && LLVMTypeOf(LLVMGetOperand(value, 0)) == i32 &&
                         LLVMGetICmpPredicate(value) == LLVMIntULT && LLVMGetFirstUse(value) &&
                         LLVMIsABranchInst(LLVMGetUser(LLVMGetFirstUse(value)));
        }
    assert_int_equal(stores, 2);
    assert_int_equal(questions, 1); /* that of the second copy's work-items */
    delete_source(&parsed.ir);
    sp_wg_plan_finish(&parsed.plan);
    discard_ir(&parsed.ir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_regions_are_emitted_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
