/* Values that loops carry, loops that add up few of them, and loops that each work-item leaves by
 * itself (carried.h, unroll.h, analyse.h): text of IR in, what has a variable or is left. */
#include "compiler/cc/workgroup/analyse.h"
#include "compiler/cc/workgroup/carried.h"
#include "compiler/cc/workgroup/unroll.h"
#include "ir_text.h"

#include <llvm-c/Analysis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char declarations[] = "declare i64 @__sp_local_id_0() memory(none)\n"
                                   "declare i64 @__sp_local_id_1() memory(none)\n"
                                   "declare float @llvm.fma.f32(float, float, float)\n"
                                   "@v = internal addrspace(3) global i64 undef\n";

static void parse(struct parsed *parsed, const char *text)
{
    parse_ir(parsed, declarations, text);
}

struct counts {
    unsigned variables, loads, stores, phis;
};

static struct counts share(struct parsed *parsed)
{
    struct counts counts = {0};
    char *message = NULL;
    LLVMBasicBlockRef block;
    sp_wg_share_variables(parsed->function);
    if (LLVMVerifyModule(parsed->module, LLVMReturnStatusAction, &message))
        fail_msg("%s", message);
    LLVMDisposeMessage(message);
    for (block = LLVMGetFirstBasicBlock(parsed->function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value)) {
            bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
            LLVMValueRef address = load || store ? LLVMGetOperand(value, load ? 0 : 1) : NULL;
            counts.variables += LLVMIsAAllocaInst(value) != NULL;
            counts.loads += load && LLVMIsAAllocaInst(address);
            counts.stores += store && LLVMIsAAllocaInst(address);
            counts.phis += LLVMIsAPHINode(value) != NULL;
        }
    return counts;
}

/* A loop of its question last: sum, its next value and what comes behind are one variable; the
 * counter is the same for all and stays. */
static void test_a_sum_is_one_variable(void **state)
{
    struct parsed parsed;
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(1) %p, i64 %n) {\n"
                   "entry:\n"
                   "  %l = call i64 @__sp_local_id_0()\n"
                   "  %at = getelementptr i64, ptr addrspace(1) %p, i64 %l\n"
                   "  br label %body\n"
                   "body:\n"
                   "  %i = phi i64 [ 0, %entry ], [ %up, %body ]\n"
                   "  %sum = phi i64 [ 7, %entry ], [ %next, %body ]\n"
                   "  %value = load i64, ptr addrspace(1) %at\n"
                   "  %next = add i64 %sum, %value\n"
                   "  %up = add i64 %i, 1\n"
                   "  %more = icmp ult i64 %up, %n\n"
                   "  br i1 %more, label %body, label %end\n"
                   "end:\n"
                   "  %last = phi i64 [ %next, %body ]\n"
                   "  store i64 %last, ptr addrspace(1) %at\n"
                   "  ret void\n}\n");
    struct counts counts = share(&parsed);
    assert_int_equal(counts.variables, 1);
    assert_int_equal(counts.loads, 2);  /* before the sum, and behind the loop */
    assert_int_equal(counts.stores, 2); /* before the loop, and behind the sum */
    assert_int_equal(counts.phis, 1);   /* %i */
    discard_ir(&parsed);
}

/* The question comes first, and under a condition the sum stays as it is. */
static void test_a_sum_made_in_two_ways(void **state)
{
    struct parsed parsed;
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(1) %p, i64 %n) {\n"
                   "entry:\n"
                   "  %l = call i64 @__sp_local_id_0()\n"
                   "  %at = getelementptr i64, ptr addrspace(1) %p, i64 %l\n"
                   "  br label %head\n"
                   "head:\n"
                   "  %i = phi i64 [ 0, %entry ], [ %up, %latch ]\n"
                   "  %sum = phi i64 [ %l, %entry ], [ %next, %latch ]\n"
                   "  %more = icmp ult i64 %i, %n\n"
                   "  br i1 %more, label %body, label %end\n"
                   "body:\n"
                   "  %odd = icmp ugt i64 %sum, %i\n"
                   "  br i1 %odd, label %grow, label %latch\n"
                   "grow:\n"
                   "  %grown = mul i64 %sum, 3\n"
                   "  br label %latch\n"
                   "latch:\n"
                   "  %next = phi i64 [ %sum, %body ], [ %grown, %grow ]\n"
                   "  %up = add i64 %i, 1\n"
                   "  br label %head\n"
                   "end:\n"
                   "  %last = phi i64 [ %sum, %head ]\n"
                   "  store i64 %last, ptr addrspace(1) %at\n"
                   "  ret void\n}\n");
    struct counts counts = share(&parsed);
    assert_int_equal(counts.variables, 1);
    assert_int_equal(counts.loads, 4); /* question, product, the way around it, behind the loop */
    assert_int_equal(counts.stores, 2);
    assert_int_equal(counts.phis, 2); /* %i, %next */
    discard_ir(&parsed);
}

/* Loops in which the old value is asked for when the new one is there, or which hand values on:
 * nothing may change. */
static void test_old_values_that_are_still_needed(void **state)
{
    static const char *const bodies[] = {
        /* used behind the new value */
        "  %next = add i64 %sum, %l\n"
        "  %both = mul i64 %next, %sum\n"
        "  store i64 %both, ptr addrspace(1) %at\n",
        /* h = g; g = l * g */
        "  %next = add i64 %hand, 0\n"
        "  store i64 %sum, ptr addrspace(1) %at\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct parsed parsed;
        struct sp_cc_text text = {0};
        sp_cc_text_format(&text,
                          "define void @k(ptr addrspace(1) %%p, i64 %%n) {\n"
                          "entry:\n"
                          "  %%l = call i64 @__sp_local_id_0()\n"
                          "  %%at = getelementptr i64, ptr addrspace(1) %%p, i64 %%l\n"
                          "  br label %%body\n"
                          "body:\n"
                          "  %%i = phi i64 [ 0, %%entry ], [ %%up, %%body ]\n"
                          "  %%sum = phi i64 [ 7, %%entry ], [ %%next, %%body ]\n"
                          "  %%hand = phi i64 [ %%l, %%entry ], [ %%sum, %%body ]\n"
                          "%s"
                          "  %%up = add i64 %%i, 1\n"
                          "  %%more = icmp ult i64 %%up, %%n\n"
                          "  br i1 %%more, label %%body, label %%end\n"
                          "end: ret void\n}\n",
                          bodies[i]);
        parse(&parsed, text.bytes);
        struct counts counts = share(&parsed);
        assert_int_equal(counts.variables, 0);
        assert_int_equal(counts.phis, 3);
        sp_cc_text_finish(&text);
        discard_ir(&parsed);
    }
}

/* A new value that an inner loop makes, turn by turn, is not there once for all. */
static void test_values_of_an_inner_loop(void **state)
{
    struct parsed parsed;
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(1) %p, i64 %n) {\n"
                   "entry:\n"
                   "  %l = call i64 @__sp_local_id_0()\n"
                   "  %at = getelementptr i64, ptr addrspace(1) %p, i64 %l\n"
                   "  br label %outer\n"
                   "outer:\n"
                   "  %i = phi i64 [ 0, %entry ], [ %up, %latch ]\n"
                   "  %sum = phi i64 [ 7, %entry ], [ %total, %latch ]\n"
                   "  br label %inner\n"
                   "inner:\n"
                   "  %j = phi i64 [ 0, %outer ], [ %right, %inner ]\n"
                   "  %part = phi i64 [ %l, %outer ], [ %next, %inner ]\n"
                   "  %grown = add i64 %part, %sum\n"
                   "  %next = mul i64 %grown, 3\n"
                   "  %right = add i64 %j, 1\n"
                   "  %on = icmp ult i64 %right, %n\n"
                   "  br i1 %on, label %inner, label %latch\n"
                   "latch:\n"
                   "  %total = phi i64 [ %next, %inner ]\n"
                   "  %up = add i64 %i, 1\n"
                   "  %more = icmp ult i64 %up, %n\n"
                   "  br i1 %more, label %outer, label %end\n"
                   "end:\n"
                   "  %last = phi i64 [ %total, %latch ]\n"
                   "  store i64 %last, ptr addrspace(1) %at\n"
                   "  ret void\n}\n");
    struct counts counts = share(&parsed);
    assert_int_equal(counts.variables, 2); /* of %sum, and of %part */
    assert_int_equal(counts.phis, 2);
    discard_ir(&parsed);
}

static bool ends_own_loop(const char *bound, const char *block_name)
{
    struct parsed parsed;
    struct sp_wg_analysis analysis;
    struct sp_cc_text text = {0};
    bool ends = false;
    sp_cc_text_format(&text,
                      "define void @k(ptr addrspace(1) %%p, i64 %%n) {\n"
                      "entry:\n"
                      "  %%i = alloca i64\n"
                      "  %%l = call i64 @__sp_local_id_0()\n"
                      "  store i64 0, ptr %%i\n"
                      "  br label %%head\n"
                      "head:\n"
                      "  %%at = load i64, ptr %%i\n"
                      "  %%more = icmp ult i64 %%at, %s\n"
                      "  br i1 %%more, label %%body, label %%end\n"
                      "body:\n"
                      "  %%up = add i64 %%at, 1\n"
                      "  store i64 %%up, ptr %%i\n"
                      "  br label %%head\n"
                      "end: ret void\n}\n",
                      bound);
    parse(&parsed, text.bytes);
    sp_wg_analysis_init(&analysis, parsed.function, SP_WG_SCALAR);
    for (uint32_t b = 0; b < analysis.graph.num_blocks; b++)
        if (!strcmp(LLVMGetBasicBlockName(analysis.graph.blocks[b]), block_name))
            ends = sp_wg_ends_own_loop(&analysis, b);
    sp_wg_analysis_finish(&analysis);
    sp_cc_text_finish(&text);
    discard_ir(&parsed);
    return ends;
}

static void test_loops_of_a_length_of_their_own(void **state)
{
    (void)state;
    assert_true(ends_own_loop("%l", "body"));
    assert_false(ends_own_loop("%l", "entry"));
    assert_false(ends_own_loop("%n", "body")); /* of the same length for all */
}

/* Loops left of `for (i < turns) sum += load of p[index]` (or 1 where `sum` is "0"), which stands
 * beside another that adds nothing up. `other` is the index of a second load, and `more` what else
 * a turn does. */
static uint32_t loops_left_with(const char *turns, const char *index, const char *other,
                                const char *sum, const char *more)
{
    struct parsed parsed;
    struct sp_wg_graph graph;
    struct sp_cc_text text = {0};
    sp_cc_text_format(&text,
                      "define void @k(ptr addrspace(1) %%p, i64 %%n) {\n"
                      "entry:\n"
                      "  %%x = call i64 @__sp_local_id_0()\n"
                      "  %%y = call i64 @__sp_local_id_1()\n"
                      "  %%row = mul i64 %%y, %%n\n"
                      "  %%xy = add i64 %%row, %%x\n"
                      "  %%few = icmp ult i64 %%x, 5\n"
                      "  br label %%body\n"
                      "body:\n"
                      "  %%i = phi i64 [ 0, %%entry ], [ %%up, %%body ]\n"
                      "  %%sum = phi i64 [ 7, %%entry ], [ %%next, %%body ]\n"
                      "  %%place = mul i64 %%i, %%n\n"
                      "  %%one = add i64 %%place, %s\n"
                      "  %%two = add i64 %%place, %s\n"
                      "  %%a = getelementptr i64, ptr addrspace(1) %%p, i64 %%one\n"
                      "  %%b = getelementptr i64, ptr addrspace(1) %%p, i64 %%two\n"
                      "  %%c = load i64, ptr addrspace(1) %%a\n"
                      "  %%d = load i64, ptr addrspace(1) %%b\n"
                      "  %%cd = mul i64 %%c, %%d\n"
                      "  %%next = add i64 %s, %%cd\n"
                      "%s"
                      "  %%up = add i64 %%i, 1\n"
                      "  %%more = icmp ult i64 %%up, %s\n"
                      "  br i1 %%more, label %%body, label %%between\n"
                      "between:\n"
                      "  %%total = phi i64 [ %%next, %%body ]\n"
                      "  %%out = getelementptr i64, ptr addrspace(1) %%p, i64 %%xy\n"
                      "  store i64 %%total, ptr addrspace(1) %%out\n"
                      "  br label %%again\n"
                      "again:\n"
                      "  %%j = phi i64 [ 0, %%between ], [ %%on, %%again ]\n"
                      "  %%e = getelementptr i64, ptr addrspace(1) %%out, i64 %%j\n"
                      "  store i64 %%j, ptr addrspace(1) %%e\n"
                      "  %%on = add i64 %%j, 1\n"
                      "  %%stay = icmp ult i64 %%on, 4\n"
                      "  br i1 %%stay, label %%again, label %%end\n"
                      "end: ret void\n}\n",
                      index, other, sum, more, turns);
    parse(&parsed, text.bytes);
    assert_null(sp_wg_unroll(parsed.module, &parsed.function, 1, NULL));
    sp_wg_graph_init(&graph, parsed.function);
    uint32_t loops = graph.num_loops;
    sp_wg_graph_finish(&graph);
    sp_cc_text_finish(&text);
    discard_ir(&parsed);
    return loops;
}

static uint32_t loops_left(const char *turns, const char *index, const char *other, const char *sum)
{
    return loops_left_with(turns, index, other, sum, "");
}

static void test_short_sums_are_unrolled(void **state)
{
    (void)state;
    assert_int_equal(loops_left("8", "%xy", "%xy", "%sum"), 1); /* the loop beside it stays */
    assert_int_equal(loops_left("8", "%xy", "0", "%sum"), 1);   /* shared by all */
    assert_int_equal(loops_left("16", "%xy", "%xy", "%sum"), 1);
    assert_int_equal(loops_left("18", "%xy", "%xy", "%sum"), 2); /* too long */
    assert_int_equal(loops_left("%n", "%xy", "%xy", "%sum"), 2); /* nobody knows how long */
    assert_int_equal(loops_left("8", "%row", "%x", "%sum"), 2);  /* serve a column, and a row */
    assert_int_equal(loops_left("8", "%xy", "%x", "%sum"), 2);
    assert_int_equal(loops_left("8", "0", "0", "%i"), 2); /* no sum of each work-item */
}

static void test_short_additions_in_local_memory_are_unrolled(void **state)
{
    static const char adds[] = "  %old = atomicrmw add ptr addrspace(3) @v, i64 %c monotonic\n";
    static const char adds_for_row[] =
        "  %of = getelementptr i64, ptr addrspace(1) %p, i64 %row\n"
        "  %some = load i64, ptr addrspace(1) %of\n"
        "  %old = atomicrmw add ptr addrspace(3) @v, i64 %some monotonic\n";
    static const char adds_globally[] =
        "  %old = atomicrmw add ptr addrspace(1) %p, i64 %c monotonic\n";
    static const char looks[] = "  %old = atomicrmw add ptr addrspace(3) @v, i64 %c monotonic\n"
                                "  store i64 %old, ptr addrspace(1) %a\n";
    (void)state;
    assert_int_equal(loops_left_with("8", "0", "0", "%i", adds), 1);
    assert_int_equal(loops_left_with("18", "0", "0", "%i", adds), 2);
    assert_int_equal(loops_left_with("8", "0", "0", "%i", adds_for_row), 2);
    assert_int_equal(loops_left_with("8", "0", "0", "%i", adds_globally), 2);
    assert_int_equal(loops_left_with("8", "0", "0", "%i", looks), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sum_is_one_variable),
        cmocka_unit_test(test_a_sum_made_in_two_ways),
        cmocka_unit_test(test_old_values_that_are_still_needed),
        cmocka_unit_test(test_values_of_an_inner_loop),
        cmocka_unit_test(test_loops_of_a_length_of_their_own),
        cmocka_unit_test(test_short_sums_are_unrolled),
        cmocka_unit_test(test_short_additions_in_local_memory_are_unrolled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
