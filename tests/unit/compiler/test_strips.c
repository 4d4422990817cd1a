/* Strips of neighbours (strips.h): text of IR in; how values grow within a strip, what is asked for
 * that, and the loops that come out. */
#include "compiler/cc/workgroup/strips.h"

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

#define WIDTH 16u

/* %l is the place in x, %g the id, %y the place in y, %n and %m are arguments. */
#define KERNEL                                                                                     \
    "declare i64 @__sp_local_id_0() memory(none)\n"                                                \
    "declare i64 @__sp_local_id_1() memory(none)\n"                                                \
    "declare i64 @__sp_group_id_0() memory(none)\n"                                                \
    "declare i64 @__sp_enqueued_local_size_0() memory(none)\n"                                     \
    "declare i64 @__sp_global_offset_0() memory(none)\n"                                           \
    "define void @k(ptr addrspace(1) %%p, i32 %%n, i32 %%m) {\n"                                   \
    "entry: %%x = call i64 @__sp_local_id_0()\n"                                                   \
    "  %%l = trunc i64 %%x to i32\n"                                                               \
    "  %%y64 = call i64 @__sp_local_id_1()\n"                                                      \
    "  %%y = trunc i64 %%y64 to i32\n"                                                             \
    "  %%w = call i64 @__sp_group_id_0()\n"                                                        \
    "  %%s = call i64 @__sp_enqueued_local_size_0()\n"                                             \
    "  %%o = call i64 @__sp_global_offset_0()\n"                                                   \
    "  %%ws = mul i64 %%w, %%s\n"                                                                  \
    "  %%wl = add i64 %%ws, %%x\n"                                                                 \
    "  %%g64 = add i64 %%wl, %%o\n"                                                                \
    "  %%g = trunc i64 %%g64 to i32\n"                                                             \
    "%s"                                                                                           \
    "  %%e = zext i32 %%i to i64\n"                                                                \
    "  %%q = getelementptr i32, ptr addrspace(1) %%p, i64 %%e\n"                                   \
    "  store i32 %%n, ptr addrspace(1) %%q\n"                                                      \
    "  ret void\n}\n"

struct planned {
    struct parsed ir;
    struct sp_wg_plan plan;
    LLVMValueRef index; /* %e, in 64 bits */
};

/* The index of the last access. */
static LLVMValueRef last_index(LLVMValueRef function)
{
    LLVMValueRef index = NULL;
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value))
            if (LLVMIsAGetElementPtrInst(value))
                index = LLVMGetOperand(value, 1);
    assert_non_null(index);
    return index;
}

static void parse(struct planned *parsed, const char *body)
{
    plan_ir(&parsed->ir, &parsed->plan, KERNEL, body);
    parsed->index = last_index(parsed->ir.function);
}

static void discard(struct planned *parsed)
{
    sp_wg_plan_finish(&parsed->plan);
    discard_ir(&parsed->ir);
}

#define NOT_ASKED (-1)
#define STRIDE_LESS_1 "  %k = add i32 %n, -1\n"

static const struct {
    const char *body;
    uint64_t slope; /* UINT64_MAX: not known */
    bool aligned;
    int kind; /* of the one question */
    bool pays;
} slopes[] = {
    /* Known without a question, which LLVM sees as well. */
    {"  %i = add i32 %g, 0\n", 1, true, NOT_ASKED, false},
    {"  %i = shl i32 %g, 1\n", UINT64_MAX, false, NOT_ASKED, false} /* may carry */,
    {"  %i = add i32 %g, %n\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %f = add i32 %n, 32\n  %i = add i32 %g, %f\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %f = shl i32 %n, 4\n  %i = add i32 %g, %f\n", 1, true, NOT_ASKED, false},
    /* What may trap is not computed early. */
    {"  %d = udiv i32 %m, %n\n  %f = shl i32 %d, 4\n  %i = add i32 %g, %f\n", UINT64_MAX, false,
     NOT_ASKED, false},
    {"  %d = udiv i32 %n, 3\n  %f = shl i32 %d, 4\n  %i = add i32 %g, %f\n", 1, true, NOT_ASKED,
     false},
    {"  %i = sub i32 %n, %g\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %i = and i32 %g, 63\n", 1, true, NOT_ASKED, false},
    {"  %i = and i32 %g, -32\n", 0, true, NOT_ASKED, false},
    {"  %i = and i32 %g, 7\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %i = lshr i32 %g, 5\n", 0, false, NOT_ASKED, false},
    {"  %i = lshr i32 %g, 2\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %i = mul i32 %g, %n\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %i = xor i32 %g, 5\n", UINT64_MAX, false, NOT_ASKED, false},
    /* One question. */
    {STRIDE_LESS_1 "  %i = and i32 %g, %k\n", 1, true, SP_WG_LOW_ONES, true},
    {STRIDE_LESS_1 "  %i = and i32 %k, %g\n", 1, true, SP_WG_LOW_ONES, true},
    {"  %t = shl i32 -1, %n\n  %k = xor i32 %t, -1\n  %i = and i32 %g, %k\n", 1, true,
     SP_WG_LOW_ONES, true},
    {"  %i = and i32 %g, %n\n", 0, true, SP_WG_LOW_ZEROS, true},
    {"  %k = sub i32 0, %n\n  %i = and i32 %g, %k\n", 0, true, SP_WG_LOW_ZEROS, true},
    {"  %i = xor i32 %g, %n\n", 1, true, SP_WG_LOW_ZEROS, true},
    {"  %i = or i32 %g, %n\n", 1, true, SP_WG_LOW_ZEROS, true},
    {"  %i = urem i32 %g, %n\n", 1, true, SP_WG_DIVISOR, true},
    {"  %i = udiv i32 %g, %n\n", 0, false, SP_WG_DIVISOR, true},
    {"  %i = lshr i32 %g, %n\n", 0, false, SP_WG_SHIFT, true},
    {"  %i = ashr i32 %g, %n\n", 0, false, SP_WG_SHIFT, true},
    {STRIDE_LESS_1 "  %d = shl i32 %g, 1\n  %a = and i32 %g, %k\n  %i = sub i32 %d, %a\n", 1, true,
     SP_WG_LOW_ONES, true},
    /* ... which also says that the stride is a multiple, in whatever order. */
    {"  %i = add i32 %g, %n\n" STRIDE_LESS_1 "  %a = and i32 %g, %k\n  %f = zext i32 %a to i64\n"
     "  %h = getelementptr i32, ptr addrspace(1) %p, i64 %f\n"
     "  store i32 %m, ptr addrspace(1) %h\n",
     1, true, SP_WG_LOW_ONES, true},
    {"  %f = or disjoint i32 %g, %n\n  %i = xor i32 %f, 0\n", UINT64_MAX, false, NOT_ASKED, false},
    /* Out of line: no question helps. */
    {"  %f = add i32 %g, 1\n  %i = xor i32 %f, %n\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %f = shl i32 %g, 1\n  %i = xor i32 %f, %n\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %i = and i32 %g, %y\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %i = xor i32 %g, %l\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %i = sdiv i32 %g, %n\n", UINT64_MAX, false, NOT_ASKED, false},
    {"  %i = udiv i32 %n, %g\n", UINT64_MAX, false, NOT_ASKED, false},
    /* A narrow type may have lost the bits. */
    {"  %t = trunc i32 %g to i8\n  %u = trunc i32 %n to i8\n  %r = xor i8 %t, %u\n"
     "  %i = zext i8 %r to i32\n",
     UINT64_MAX, false, NOT_ASKED, false},
    {"  %t = trunc i32 %g to i16\n  %u = trunc i32 %n to i16\n  %r = xor i16 %t, %u\n"
     "  %i = zext i16 %r to i32\n",
     1, true, SP_WG_LOW_ZEROS, true},
    /* In line, but a wider type would see a carry. */
    {"  %t = trunc i32 %g to i16\n  %u = add i16 %t, 1\n  %i = zext i16 %u to i32\n", UINT64_MAX,
     false, NOT_ASKED, false},
};

static void test_slopes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(slopes) / sizeof(slopes[0]); i++) {
        struct planned parsed;
        struct sp_wg_strips strips;
        parse(&parsed, slopes[i].body);
        /* A kernel that gains nothing is looked at together with one that does. */
        bool pays = sp_wg_strips_init(&strips, &parsed.plan, &parsed.plan.regions[0], WIDTH);
        if (pays != slopes[i].pays)
            fail_msg("%zu: pays %d", i, pays);
        if (pays) {
            const struct sp_wg_slope *slope = sp_wg_slope(&strips, parsed.index);
            if (!slope || slope->slope != slopes[i].slope || slope->aligned != slopes[i].aligned)
                fail_msg("%zu: slope %d", i, slope ? (int)slope->slope : -1);
            assert_int_equal(strips.num_questions, 1);
            assert_int_equal(strips.questions[0].kind, slopes[i].kind);
            sp_wg_strips_finish(&strips);
        }
        discard(&parsed);
    }
}

/* Of values that need no question, beside one access that does. */
static void test_slopes_beside_a_question(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(slopes) / sizeof(slopes[0]); i++) {
        struct planned parsed;
        struct sp_wg_strips strips;
        struct sp_cc_text body = {0};
        if (slopes[i].pays)
            continue;
        sp_cc_text_format(&body,
                          "  %%beside = urem i32 %%l, %%m\n"
                          "  %%wide = zext i32 %%beside to i64\n"
                          "  %%at = getelementptr i32, ptr addrspace(1) %%p, i64 %%wide\n"
                          "  store i32 %%m, ptr addrspace(1) %%at\n%s",
                          slopes[i].body);
        parse(&parsed, body.bytes);
        assert_true(sp_wg_strips_init(&strips, &parsed.plan, &parsed.plan.regions[0], WIDTH));
        const struct sp_wg_slope *slope = sp_wg_slope(&strips, parsed.index);
        if ((slope ? slope->slope : UINT64_MAX) != slopes[i].slope)
            fail_msg("%zu: slope %d", i, slope ? (int)slope->slope : -1);
        if (slope)
            assert_int_equal(slope->aligned, slopes[i].aligned);
        sp_wg_strips_finish(&strips);
        discard(&parsed);
        sp_cc_text_finish(&body);
    }
}

/* What a number is asked, as the answer that LLVM folds. */
static void test_answers(void **state)
{
    static const struct {
        enum sp_wg_strip_kind kind;
        uint64_t number;
        bool yes;
    } answers[] = {
        {SP_WG_LOW_ONES, 15, true},   {SP_WG_LOW_ONES, 31, true}, {SP_WG_LOW_ONES, 7, false},
        {SP_WG_LOW_ONES, 16, false},  {SP_WG_LOW_ZEROS, 0, true}, {SP_WG_LOW_ZEROS, 48, true},
        {SP_WG_LOW_ZEROS, 24, false}, {SP_WG_DIVISOR, 0, false},  {SP_WG_DIVISOR, 48, true},
        {SP_WG_DIVISOR, 24, false},   {SP_WG_SHIFT, 4, true},     {SP_WG_SHIFT, 3, false},
    };
    (void)state;
    LLVMContextRef context = LLVMContextCreate();
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    struct sp_wg_strips strips = {.width = WIDTH};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        LLVMValueRef number =
            LLVMConstInt(LLVMInt32TypeInContext(context), answers[i].number, false);
        LLVMValueRef answer = sp_wg_strip_answer(builder, &strips, answers[i].kind, number);
        assert_true(LLVMIsAConstantInt(answer));
        if (LLVMConstIntGetZExtValue(answer) != answers[i].yes)
            fail_msg("%zu", i);
    }
    LLVMDisposeBuilder(builder);
    LLVMContextDispose(context);
}

/* The region is there twice; in strips the remainder is taken once for all, before the loop over
 * the work-items, and without the flags of the source. */
static void test_regions_are_emitted_twice(void **state)
{
    static const char text[] = "  %f = sub nuw i32 %g, 5\n  %d = add i32 %f, 5\n"
                               "  %i = urem i32 %d, %n\n";
    struct planned parsed;
    struct sp_cc_layout locals = {0}, globals = {0};
    struct sp_arg_info arguments[3] = {{.kind = SP_ARG_GLOBAL, .align = 8},
                                       {.kind = SP_ARG_VALUE, .align = 4, .offset = 8},
                                       {.kind = SP_ARG_VALUE, .align = 4, .offset = 12}};
    struct sp_kernel_info info = {.name = "k", .num_args = 3, .args = arguments};
    unsigned in_strip = 0, elsewhere = 0, stores = 0, flags = 0;
    (void)state;
    parse(&parsed, text);
    struct sp_wg_environment env = {.module = parsed.ir.module,
                                    .info = &info,
                                    .locals = &locals,
                                    .globals = &globals,
                                    .vector_bits = 512};
    LLVMValueRef function = sp_wg_emit(&parsed.plan, &env, "group", NULL);
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        const char *name = LLVMGetBasicBlockName(block);
        /* Not "strips", which leads to them. */
        bool strip = !strncmp(name, "strip", 5) && name[5] != 's';
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value)) {
            bool rest = LLVMIsABinaryOperator(value) && LLVMGetInstructionOpcode(value) == LLVMURem;
            in_strip += rest && strip;
            elsewhere += rest && !strip;
            stores += LLVMIsAStoreInst(value) && !LLVMIsAAllocaInst(LLVMGetOperand(value, 1));
            flags += strip && LLVMIsABinaryOperator(value) &&
                     LLVMGetInstructionOpcode(value) == LLVMSub && LLVMGetNUW(value);
        }
    }
    assert_int_equal(in_strip, 1);
    assert_int_equal(elsewhere, 1);
    assert_int_equal(stores, 2);
    assert_int_equal(flags, 0);
    delete_source(&parsed.ir);
    sp_wg_plan_finish(&parsed.plan);
    discard_ir(&parsed.ir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_slopes_beside_a_question),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_regions_are_emitted_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
