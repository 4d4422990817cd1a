/* Common turns of loops (turns.h, affine.h): text of IR in, what is left of its loops. */
#include "compiler/cc/workgroup/affine.h"
#include "compiler/cc/workgroup/analyse.h"
#include "compiler/cc/workgroup/turns.h"
#include "ir_text.h"

#include <llvm-c/Analysis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char declarations[] = "declare i64 @__sp_local_id_0() memory(none)\n"
                                   "declare i64 @__sp_local_id_1() memory(none)\n"
                                   "declare i64 @__sp_local_size_0() memory(none)\n"
                                   "declare i64 @__sp_group_id_0() memory(none)\n"
                                   "declare i64 @__sp_global_size_0() memory(none)\n";

struct analysed {
    struct parsed ir;
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
};

static void parse(struct analysed *parsed, const char *format, ...)
{
    char text[8192];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    *parsed = (struct analysed){0};
    parse_ir(&parsed->ir, declarations, text);
}

static void analyse(struct analysed *parsed)
{
    char *message = NULL;
    if (LLVMVerifyModule(parsed->ir.module, LLVMReturnStatusAction, &message))
        fail_msg("%s", message);
    LLVMDisposeMessage(message);
    sp_wg_graph_init(&parsed->graph, parsed->ir.function);
    sp_wg_uniformity_init(&parsed->uniformity, &parsed->graph, NULL, false);
}

/* Shares turns, and leaves what became of the function to be looked at. */
static bool share(struct analysed *parsed, const uint64_t *known)
{
    bool changed = sp_wg_share_turns(parsed->ir.module, parsed->ir.function, known);
    analyse(parsed);
    return changed;
}

static void discard(struct analysed *parsed)
{
    sp_wg_uniformity_finish(&parsed->uniformity, &parsed->graph);
    sp_wg_graph_finish(&parsed->graph);
    discard_ir(&parsed->ir);
}

static LLVMValueRef value_named(LLVMValueRef function, const char *name)
{
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value))
            if (!strcmp(LLVMGetValueName(value), name))
                return value;
    fail_msg("no value %s", name);
    return NULL;
}

/* The number of the block whose name begins so, or SP_WG_NONE. */
static uint32_t block_like(const struct analysed *parsed, const char *name)
{
    for (uint32_t b = 0; b < parsed->graph.num_blocks; b++)
        if (!strncmp(LLVMGetBasicBlockName(parsed->graph.blocks[b]), name, strlen(name)))
            return b;
    return SP_WG_NONE;
}

static bool is_divergent_branch(const struct analysed *parsed, uint32_t block)
{
    return sp_bits_has(&parsed->uniformity.branches, block);
}

static unsigned count_stores(const struct analysed *parsed)
{
    unsigned count = 0;
    for (uint32_t b = 0; b < parsed->graph.num_blocks; b++)
        for (LLVMValueRef value = LLVMGetFirstInstruction(parsed->graph.blocks[b]); value;
             value = LLVMGetNextInstruction(value))
            count += LLVMIsAStoreInst(value) != NULL;
    return count;
}

/* for (i32 i = START; i PREDICATE BOUND; i += STEP) p[i] = 1 */
static const char loop[] = "define void @k(ptr addrspace(1) %%p, i32 %%n) {\n"
                           "entry:\n"
                           "  %%lid = call i64 @__sp_local_id_0()\n"
                           "  %%l = trunc i64 %%lid to i32\n"
                           "  %%size64 = call i64 @__sp_local_size_0()\n"
                           "  %%size = trunc i64 %%size64 to i32\n"
                           "  %%group64 = call i64 @__sp_group_id_0()\n"
                           "  %%group = trunc i64 %%group64 to i32\n"
                           "  %%done64 = mul i64 %%group64, %%size64\n"
                           "  %%gid64 = add i64 %%done64, %%lid\n"
                           "  %%gid = trunc i64 %%gid64 to i32\n"
                           "  %%square = mul i32 %%l, %%l\n"
                           "  br label %%head\n"
                           "head:\n"
                           "  %%i = phi i32 [ %s, %%entry ], [ %%next, %%body ]\n"
                           "  %%more = icmp %s i32 %%i, %s\n"
                           "  br i1 %%more, label %%body, label %%end\n"
                           "body:\n"
                           "  %%index = zext i32 %%i to i64\n"
                           "  %%at = getelementptr i32, ptr addrspace(1) %%p, i64 %%index\n"
                           "  store i32 1, ptr addrspace(1) %%at\n"
                           "  %%next = add %s i32 %%i, %s\n"
                           "  br label %%head\n"
                           "end: ret void\n}\n";

static void test_turns_of_all_are_a_loop_of_its_own(void **state)
{
    static const struct {
        const char *start, *predicate, *flags, *step;
        bool is_signed;
    } cases[] = {
        {"%gid", "ult", "", "%size", false}, {"%l", "ult", "", "%size", false},
        {"%gid", "slt", "", "%size", true},  {"%gid", "ule", "", "48", false},
        {"%gid", "sle", "nsw", "7", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct analysed parsed;
        parse(&parsed, loop, cases[i].start, cases[i].predicate, "%n", cases[i].flags,
              cases[i].step);
        assert_true(share(&parsed, NULL));
        uint32_t common = block_like(&parsed, "common"), turn = block_like(&parsed, "turn");
        uint32_t head = block_like(&parsed, "head"), body = block_like(&parsed, "body");
        assert_int_equal(parsed.graph.num_loops, 2);
        assert_false(is_divergent_branch(&parsed, common));
        assert_true(is_divergent_branch(&parsed, head));
        assert_true(sp_wg_dominates(&parsed.graph, common, head));
        LLVMValueRef latch = LLVMGetBasicBlockTerminator(parsed.graph.blocks[body]);
        assert_true(sp_wg_is_rest(latch));
        /* i, in a common turn, is a sum that does not wrap. */
        LLVMValueRef sum = LLVMGetFirstInstruction(parsed.graph.blocks[turn]);
        while (!LLVMIsABinaryOperator(sum))
            sum = LLVMGetNextInstruction(sum);
        assert_int_equal(LLVMGetInstructionOpcode(sum), LLVMAdd);
        assert_int_equal(LLVMGetNSW(sum), cases[i].is_signed);
        assert_int_equal(LLVMGetNUW(sum), !cases[i].is_signed);
        /* The counter is left of the bound, and by more than the work-items lie apart. */
        LLVMValueRef all =
            LLVMGetCondition(LLVMGetBasicBlockTerminator(parsed.graph.blocks[common]));
        LLVMIntPredicate equal = strstr(cases[i].predicate, "le") ? LLVMIntUGE : LLVMIntUGT;
        assert_int_equal(LLVMGetInstructionOpcode(all), LLVMAnd);
        assert_int_equal(LLVMGetICmpPredicate(LLVMGetOperand(all, 1)), equal);
        assert_int_equal(LLVMGetICmpPredicate(LLVMGetOperand(all, 0)),
                         LLVMGetICmpPredicate(value_named(parsed.ir.function, "more")));
        assert_int_equal(count_stores(&parsed), 2);
        discard(&parsed);
    }
}

/* The counter is compared in more bits than it has: it must not wrap either. */
static void test_a_widened_counter_is_asked_for_its_own_end(void **state)
{
    struct analysed parsed;
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(1) %%p, i64 %%n) {\n"
                   "entry:\n"
                   "  %%lid = call i64 @__sp_local_id_0()\n"
                   "  %%l = trunc i64 %%lid to i32\n"
                   "  br label %%head\n"
                   "head:\n"
                   "  %%i = phi i32 [ %%l, %%entry ], [ %%next, %%body ]\n"
                   "  %%wide = sext i32 %%i to i64\n"
                   "  %%more = icmp ugt i64 %%n, %%wide\n"
                   "  br i1 %%more, label %%body, label %%end\n"
                   "body:\n"
                   "  %%at = getelementptr i32, ptr addrspace(1) %%p, i64 %%wide\n"
                   "  store i32 1, ptr addrspace(1) %%at\n"
                   "  %%next = add i32 %%i, 64\n"
                   "  br label %%head\n"
                   "end: ret void\n}\n");
    assert_true(share(&parsed, (const uint64_t[]){64, 1, 1}));
    uint32_t common = block_like(&parsed, "common");
    LLVMValueRef all = LLVMGetCondition(LLVMGetBasicBlockTerminator(parsed.graph.blocks[common]));
    LLVMValueRef fits = LLVMGetOperand(all, 1);
    assert_int_equal(LLVMGetICmpPredicate(fits), LLVMIntSLE);
    assert_int_equal(LLVMConstIntGetSExtValue(LLVMGetOperand(fits, 1)), INT32_MAX - 63);
    discard(&parsed);
}

static void test_known_numbers_leave_no_loop(void **state)
{
    static const struct {
        uint64_t size;
        const char *predicate, *bound, *flags, *step;
        unsigned loops, stores;
        bool changed;
    } cases[] = {
        {256, "ult", "256", "", "256", 0, 2, true}, /* one turn, and none */
        {16, "ult", "20", "", "16", 0, 2, true},    /* one turn, and one for some */
        {256, "ult", "10", "", "256", 0, 1, true},  /* some take one */
        {256, "ule", "255", "", "256", 0, 2, true},
        {256, "ult", "600", "", "256", 1, 2, true}, /* two turns, and one for some */
        {64, "ult", "100", "", "16", 2, 2, true},   /* work-items overtake each other */
        {64, "ult", "64", "", "16", 1, 2, true},    /* one turn of all, some have more */
        {64, "slt", "%n", "nsw", "64", 1, 2, true}, /* may not overflow */
        {64, "slt", "%n", "nsw", "63", 2, 2, true},
        {64, "slt", "%n", "", "64", 2, 2, true}, /* may wrap around */
        {64, "ult", "%n", "nsw", "64", 2, 2, true},
        {64, "ult", "2147483647", "", "64", 2, 2, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct analysed parsed;
        const uint64_t known[3] = {cases[i].size, 1, 1};
        parse(&parsed, loop, "%l", cases[i].predicate, cases[i].bound, cases[i].flags,
              cases[i].step);
        assert_int_equal(share(&parsed, known), cases[i].changed);
        if (parsed.graph.num_loops != cases[i].loops || count_stores(&parsed) != cases[i].stores)
            fail_msg("case %zu: %u loops, %u stores", i, parsed.graph.num_loops,
                     count_stores(&parsed));
        discard(&parsed);
    }
}

/* Of any local size: steps of that size leave one turn. */
static void test_steps_of_the_local_size_leave_one_turn(void **state)
{
    struct analysed parsed;
    (void)state;
    parse(&parsed, loop, "%l", "ult", "300", "", "%size");
    assert_true(share(&parsed, NULL));
    assert_int_equal(parsed.graph.num_loops, 1);
    assert_true(block_like(&parsed, "done") != SP_WG_NONE);
    discard(&parsed);
}

static void test_what_is_left_as_it_was(void **state)
{
    static const struct {
        const char *start, *predicate, *bound, *step;
    } cases[] = {
        {"%l", "ne", "%n", "%size"},       {"%l", "ugt", "%n", "%size"},
        {"%square", "ult", "%n", "%size"}, {"%l", "ult", "%l", "%size"},
        {"%l", "ult", "%n", "%l"},         {"%l", "ult", "%n", "%i"},
        {"0", "ult", "%n", "%size"}, /* all alike already */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct analysed parsed;
        parse(&parsed, loop, cases[i].start, cases[i].predicate, cases[i].bound, "", cases[i].step);
        if (share(&parsed, NULL))
            fail_msg("case %zu is changed", i);
        discard(&parsed);
    }
}

/* A loop with more than its own end, or whose question writes. `break` leaves at a time of its own,
 * and a header is run once more than the turns. */
static void test_loops_of_other_shapes_stay(void **state)
{
    static const char *const texts[] = {
        "define void @k(ptr addrspace(1) %%p, i32 %%n) {\n"
        "entry:\n"
        "  %%lid = call i64 @__sp_local_id_0()\n"
        "  %%l = trunc i64 %%lid to i32\n"
        "  br label %%head\n"
        "head:\n"
        "  %%i = phi i32 [ %%l, %%entry ], [ %%next, %%body ]\n"
        "  store i32 %%i, ptr addrspace(1) %%p\n"
        "  %%more = icmp ult i32 %%i, %%n\n"
        "  br i1 %%more, label %%body, label %%end\n"
        "body:\n"
        "  %%next = add i32 %%i, 64\n"
        "  br label %%head\n"
        "end: ret void\n}\n",
        "define void @k(ptr addrspace(1) %%p, i32 %%n) {\n"
        "entry:\n"
        "  %%lid = call i64 @__sp_local_id_0()\n"
        "  %%l = trunc i64 %%lid to i32\n"
        "  br label %%head\n"
        "head:\n"
        "  %%i = phi i32 [ %%l, %%entry ], [ %%next, %%body ]\n"
        "  %%more = icmp ult i32 %%i, %%n\n"
        "  br i1 %%more, label %%middle, label %%end\n"
        "middle:\n"
        "  %%found = load i1, ptr addrspace(1) %%p\n"
        "  br i1 %%found, label %%end, label %%body\n"
        "body:\n"
        "  %%next = add i32 %%i, 64\n"
        "  br label %%head\n"
        "end: ret void\n}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct analysed parsed;
        parse(&parsed, texts[i]);
        assert_false(share(&parsed, (const uint64_t[]){64, 1, 1}));
        discard(&parsed);
    }
}

/* if (local_id_1 < 3) for (i = local_id_0; i < 20; i += STEP): no loop for all, but straight code
 * where one turn, and one for some, is all. */
static void test_under_a_condition_only_straight_code_is_made(void **state)
{
    static const struct {
        const char *step;
        bool changed;
    } cases[] = {{"16", true}, {"4", false}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct analysed parsed;
        parse(&parsed,
              "define void @k(ptr addrspace(1) %%p) {\n"
              "first: br label %%entry\n"
              "entry:\n"
              "  %%l = call i64 @__sp_local_id_0()\n"
              "  %%row = call i64 @__sp_local_id_1()\n"
              "  %%few = icmp ult i64 %%row, 3\n"
              "  br i1 %%few, label %%before, label %%end\n"
              "before: br label %%head\n"
              "head:\n"
              "  %%i = phi i64 [ %%l, %%before ], [ %%next, %%body ]\n"
              "  %%sum = phi i64 [ 0, %%before ], [ %%more, %%body ]\n"
              "  %%on = icmp ult i64 %%i, 20\n"
              "  br i1 %%on, label %%body, label %%out\n"
              "body:\n"
              "  %%more = add i64 %%sum, %%i\n"
              "  %%next = add i64 %%i, %s\n"
              "  br label %%head\n"
              "out:\n"
              "  %%last = phi i64 [ %%sum, %%head ]\n"
              "  store i64 %%last, ptr addrspace(1) %%p\n"
              "  br label %%end\n"
              "end: ret void\n}\n",
              cases[i].step);
        assert_int_equal(share(&parsed, (const uint64_t[]){16, 16, 1}), cases[i].changed);
        assert_int_equal(parsed.graph.num_loops, !cases[i].changed);
        if (cases[i].changed) /* after no turn of the rest, or after one */
            assert_int_equal(LLVMCountIncoming(value_named(parsed.ir.function, "last")), 2);
        discard(&parsed);
    }
}

/* A tile with a border, filled in two nested loops: straight code. */
static void test_nested_loops(void **state)
{
    struct analysed parsed;
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(3) %%p) {\n"
                   "entry:\n"
                   "  %%x = call i64 @__sp_local_id_0()\n"
                   "  %%y = call i64 @__sp_local_id_1()\n"
                   "  br label %%rows\n"
                   "rows:\n"
                   "  %%j = phi i64 [ %%y, %%entry ], [ %%down, %%below ]\n"
                   "  %%in = icmp ult i64 %%j, 20\n"
                   "  br i1 %%in, label %%left, label %%end\n"
                   "left: br label %%columns\n"
                   "columns:\n"
                   "  %%i = phi i64 [ %%x, %%left ], [ %%right, %%element ]\n"
                   "  %%on = icmp ult i64 %%i, 20\n"
                   "  br i1 %%on, label %%element, label %%below\n"
                   "element:\n"
                   "  %%row = getelementptr [20 x i32], ptr addrspace(3) %%p, i64 %%j\n"
                   "  %%at = getelementptr i32, ptr addrspace(3) %%row, i64 %%i\n"
                   "  store i32 1, ptr addrspace(3) %%at\n"
                   "  %%right = add i64 %%i, 16\n"
                   "  br label %%columns\n"
                   "below:\n"
                   "  %%down = add i64 %%j, 16\n"
                   "  br label %%rows\n"
                   "end: ret void\n}\n");
    assert_true(share(&parsed, (const uint64_t[]){16, 16, 1}));
    assert_int_equal(parsed.graph.num_loops, 0);
    assert_int_equal(count_stores(&parsed), 4);
    discard(&parsed);
}

/* A grid-stride loop whose bound is asked for anew, and may change in the loop. */
static void test_a_bound_is_asked_for_in_each_turn(void **state)
{
    struct analysed parsed;
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(1) %%p, ptr addrspace(1) %%n) {\n"
                   "entry:\n"
                   "  %%l = call i64 @__sp_local_id_0()\n"
                   "  br label %%head\n"
                   "head:\n"
                   "  %%i = phi i64 [ %%l, %%entry ], [ %%next, %%body ]\n"
                   "  %%bound = load i64, ptr addrspace(1) %%n\n"
                   "  %%more = icmp ult i64 %%i, %%bound\n"
                   "  br i1 %%more, label %%body, label %%end\n"
                   "body:\n"
                   "  %%at = getelementptr i64, ptr addrspace(1) %%p, i64 %%i\n"
                   "  store i64 %%bound, ptr addrspace(1) %%at\n"
                   "  %%step = call i64 @__sp_global_size_0()\n"
                   "  %%next = add i64 %%i, %%step\n"
                   "  br label %%head\n"
                   "end: ret void\n}\n");
    assert_true(share(&parsed, NULL));
    assert_int_equal(parsed.graph.num_loops, 2);
    LLVMBasicBlockRef common = parsed.graph.blocks[block_like(&parsed, "common")];
    LLVMValueRef load = LLVMGetNextInstruction(LLVMGetFirstInstruction(common));
    assert_true(LLVMIsALoadInst(load));
    discard(&parsed);
}

static void test_values_that_grow_with_ids(void **state)
{
    struct analysed parsed;
    struct sp_wg_affine affine;
    struct sp_wg_multiple size = {1, 1}, items = {1, 3};
    uint64_t number;
    (void)state;
    parse(&parsed, "define void @k(i32 %%n) {\n"
                   "  %%x = call i64 @__sp_local_id_0()\n"
                   "  %%y = call i64 @__sp_local_id_1()\n"
                   "  %%size = call i64 @__sp_local_size_0()\n"
                   "  %%row = mul i64 %%size, %%y\n"
                   "  %%linear = add i64 %%row, %%x\n"
                   "  %%short = trunc i64 %%linear to i32\n"
                   "  %%moved = add i32 %%short, %%n\n"
                   "  %%twice = shl i32 %%short, 1\n"
                   "  %%five = add i32 %%twice, 5\n"
                   "  %%wide = zext i32 %%moved to i64\n"
                   "  %%cut = trunc i64 %%x to i32\n"
                   "  %%again = zext i32 %%cut to i64\n"
                   "  %%low = and i64 %%x, 4294967295\n"
                   "  %%lower = and i64 %%x, 7\n"
                   "  %%square = mul i64 %%x, %%x\n"
                   "  ret void\n}\n");
    analyse(&parsed);
    LLVMValueRef f = parsed.ir.function;
    assert_true(sp_wg_affine_of(&parsed.uniformity, value_named(f, "linear"), &affine));
    assert_false(affine.based);
    assert_int_equal(affine.ids[0].factor, 1);
    assert_int_equal(affine.ids[1].factor, 1);
    assert_int_equal(affine.ids[1].sizes, 1);
    assert_false(sp_wg_affine_fills(&affine, &size, NULL));
    assert_true(sp_wg_affine_fills(&affine, &items, NULL));
    assert_int_equal(sp_wg_affine_reach(&affine, (const uint64_t[]){16, 4, 1}), 15 + 16 * 3);
    assert_true(sp_wg_affine_of(&parsed.uniformity, value_named(f, "moved"), &affine));
    assert_true(affine.based);
    assert_true(sp_wg_affine_of(&parsed.uniformity, value_named(f, "five"), &affine));
    assert_int_equal(affine.ids[0].factor, 2);
    assert_true(sp_wg_first_number(value_named(f, "five"), &number) && number == 5);
    assert_false(sp_wg_first_number(value_named(f, "moved"), &number));
    assert_true(sp_wg_affine_of(&parsed.uniformity, value_named(f, "again"), &affine));
    assert_true(sp_wg_affine_of(&parsed.uniformity, value_named(f, "low"), &affine));
    assert_false(sp_wg_affine_of(&parsed.uniformity, value_named(f, "wide"), &affine)); /* wraps */
    assert_false(sp_wg_affine_of(&parsed.uniformity, value_named(f, "lower"), &affine));
    assert_false(sp_wg_affine_of(&parsed.uniformity, value_named(f, "square"), &affine));
    discard(&parsed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_of_all_are_a_loop_of_its_own),
        cmocka_unit_test(test_a_widened_counter_is_asked_for_its_own_end),
        cmocka_unit_test(test_known_numbers_leave_no_loop),
        cmocka_unit_test(test_steps_of_the_local_size_leave_one_turn),
        cmocka_unit_test(test_what_is_left_as_it_was),
        cmocka_unit_test(test_loops_of_other_shapes_stay),
        cmocka_unit_test(test_under_a_condition_only_straight_code_is_made),
        cmocka_unit_test(test_nested_loops),
        cmocka_unit_test(test_a_bound_is_asked_for_in_each_turn),
        cmocka_unit_test(test_values_that_grow_with_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
