/* Loops that keep sums in memory (sums.h), loops along rows (row_turns.h), and kernels of whole
 * vectors (prepare.h): text of IR in, what is left of the stores, who is asked, how many turns are
 * one, and which kernels are of that kind. */
#include "compiler/cc/workgroup/prepare.h"
#include "compiler/cc/workgroup/row_turns.h"
#include "compiler/cc/workgroup/sums.h"
#include "ir_text.h"

#include <llvm-c/Analysis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char declarations[] = "declare i64 @__sp_local_id_0() memory(none)\n"
                                   "declare i64 @__sp_local_id_1() memory(none)\n";

/* A work-item's sum at %sums[its id], of a row that begins at id * %n. */
#define ROW_SUM(BEFORE, ADDRESS, INSIDE)                                                           \
    "define void @k(ptr addrspace(1) %sums, ptr addrspace(1) %in, i32 %n) {\n"                     \
    "entry:\n"                                                                                     \
    "  %l = call i64 @__sp_local_id_0()\n"                                                         \
    "  %m = call i64 @__sp_local_id_1()\n"                                                         \
    "  %i = trunc i64 %l to i32\n"                                                                 \
    "  %place = getelementptr float, ptr addrspace(1) %sums, i64 %l\n"                             \
    "  %result = getelementptr float, ptr addrspace(1) %place, i64 5000\n"                         \
    "  %row = mul nsw i32 %i, %n\n"                                                                \
    "  %far = mul nsw i64 %m, 1000\n"                                                              \
    "  %odd = icmp eq i64 %l, 5\n" BEFORE "before:\n"                                              \
    "  br label %head\n"                                                                           \
    "head:\n"                                                                                      \
    "  %k = phi i32 [ 0, %before ], [ %up, %body ]\n"                                              \
    "  %sum = phi float [ 0.0, %before ], [ %next, %body ]\n"                                      \
    "  %more = icmp slt i32 %k, %n\n"                                                              \
    "  br i1 %more, label %body, label %done\n"                                                    \
    "body:\n" ADDRESS "  %x = load float, ptr addrspace(1) %at\n"                                  \
    "  %next = fadd float %sum, %x\n" INSIDE "  %up = add nuw nsw i32 %k, 1\n"                     \
    "  br label %head\n"                                                                           \
    "done:\n"                                                                                      \
    "  store float %sum, ptr addrspace(1) %result\n"                                               \
    "  br label %end\n"                                                                            \
    "end:\n"                                                                                       \
    "  ret void\n}\n"

#define AT_ONCE "  br label %before\n"
#define SOME_ONLY "  br i1 %odd, label %end, label %before\n"
#define ALONG_A_ROW                                                                                \
    "  %index = add nsw i32 %row, %k\n"                                                            \
    "  %wide = sext i32 %index to i64\n"                                                           \
    "  %at = getelementptr float, ptr addrspace(1) %in, i64 %wide\n"
#define SIDE_BY_SIDE                                                                               \
    "  %turn = zext i32 %k to i64\n"                                                               \
    "  %index = add nsw i64 %l, %turn\n"                                                           \
    "  %at = getelementptr float, ptr addrspace(1) %in, i64 %index\n"
#define SAME_IN_X                                                                                  \
    "  %turn = zext i32 %k to i64\n"                                                               \
    "  %index = add nsw i64 %far, %turn\n"                                                         \
    "  %at = getelementptr float, ptr addrspace(1) %in, i64 %index\n"
#define SAME_ARRAY                                                                                 \
    "  %index = add nsw i32 %row, %k\n"                                                            \
    "  %wide = sext i32 %index to i64\n"                                                           \
    "  %at = getelementptr float, ptr addrspace(1) %sums, i64 %wide\n"
#define STORE_SUM "  store float %next, ptr addrspace(1) %place\n"
#define STORE_ROW "  store float %next, ptr addrspace(1) %at\n"

struct counts {
    unsigned votes, stores, loads, stores_in_loops;
};

static bool is_in_loop(const struct sp_wg_graph *graph, uint32_t block)
{
    return graph->loop_of[block] != SP_WG_NONE;
}

static struct counts count(const struct parsed *parsed)
{
    struct counts counts = {0};
    struct sp_wg_graph graph;
    char *message = NULL;
    if (LLVMVerifyModule(parsed->module, LLVMReturnStatusAction, &message))
        fail_msg("%s", message);
    LLVMDisposeMessage(message);
    sp_wg_graph_init(&graph, parsed->function);
    for (uint32_t b = 0; b < graph.num_blocks; b++)
        for (LLVMValueRef value = LLVMGetFirstInstruction(graph.blocks[b]); value;
             value = LLVMGetNextInstruction(value)) {
            bool store = LLVMIsAStoreInst(value);
            counts.votes += sp_ir_calls(value, SP_ALL_NAME);
            counts.loads += LLVMIsALoadInst(value) != NULL;
            counts.stores += store;
            counts.stores_in_loops += store && is_in_loop(&graph, b);
        }
    sp_wg_graph_finish(&graph);
    return counts;
}

static struct counts keep_sums(struct parsed *parsed, const char *text)
{
    parse_ir(parsed, declarations, text);
    char *error = sp_wg_keep_sums(parsed->module, &parsed->function, 1, NULL);
    assert_null(error);
    return count(parsed);
}

/* Two loops: the one that runs where the places do not overlap stores behind it. All of a group
 * answer together. */
static void test_a_sum_is_stored_once(void **state)
{
    struct parsed parsed;
    (void)state;
    struct counts counts = keep_sums(&parsed, ROW_SUM(AT_ONCE, ALONG_A_ROW, STORE_SUM));
    assert_int_equal(counts.votes, 1);
    assert_int_equal(counts.stores, 3); /* the last is the result */
    assert_int_equal(counts.stores_in_loops, 1);
    discard_ir(&parsed);
}

/* Where work-items are parted each runs alone, and asks for itself. */
static void test_parted_work_items_ask_for_themselves(void **state)
{
    struct parsed parsed;
    (void)state;
    struct counts counts = keep_sums(
        &parsed, ROW_SUM(SOME_ONLY "other:\n  br label %before\n", ALONG_A_ROW, STORE_SUM));
    assert_int_equal(counts.stores_in_loops, 1);
    assert_int_equal(counts.stores, 3); /* the last is the result */
    discard_ir(&parsed);
}

/* LLVM's versioning asks nothing of two places in one array: such a loop stays as it is. */
static void test_a_sum_in_the_array_that_is_read(void **state)
{
    struct parsed parsed;
    (void)state;
    struct counts counts = keep_sums(&parsed, ROW_SUM(AT_ONCE, SAME_ARRAY, STORE_SUM));
    assert_int_equal(counts.votes, 0);
    assert_int_equal(counts.stores, 2);
    assert_int_equal(counts.stores_in_loops, 1);
    discard_ir(&parsed);
}

/* A store to another place in each turn is no sum. */
static void test_a_row_is_no_sum(void **state)
{
    struct parsed parsed;
    (void)state;
    struct counts counts = keep_sums(&parsed, ROW_SUM(AT_ONCE, ALONG_A_ROW, STORE_ROW));
    assert_int_equal(counts.votes, 0);
    assert_int_equal(counts.stores, 2);
    discard_ir(&parsed);
}

/* The region ends behind the vote, in code for vectors alone; its answer is the same for all. */
static void test_a_region_ends_behind_a_vote(void **state)
{
    struct parsed parsed;
    struct sp_wg_plan plan;
    (void)state;
    keep_sums(&parsed, ROW_SUM(AT_ONCE, ALONG_A_ROW, STORE_SUM));
    assert_null(sp_wg_prepare(parsed.module, NULL));
    for (int form = SP_WG_SCALAR; form <= SP_WG_VECTOR; form++) {
        unsigned votes = 0;
        sp_wg_plan_init(&plan, parsed.function, (enum sp_wg_form)form);
        const struct sp_wg_graph *graph = &plan.analysis.graph;
        for (uint32_t b = 0; b < graph->num_blocks; b++) {
            if (!sp_wg_ends_with_vote(graph->blocks[b]))
                continue;
            votes++;
            assert_int_equal(sp_bits_has(&plan.analysis.leaders, graph->successors[b][0]),
                             form == SP_WG_VECTOR);
            LLVMValueRef next = LLVMGetBasicBlockTerminator(graph->blocks[graph->successors[b][0]]);
            assert_false(sp_wg_is_divergent(&plan.analysis.uniformity, LLVMGetCondition(next)));
        }
        assert_int_equal(votes, 1);
        sp_wg_plan_finish(&plan);
    }
    discard_ir(&parsed);
}

static unsigned loads_when_widened(const char *text, uint32_t vector_bits)
{
    struct parsed parsed;
    parse_ir(&parsed, declarations, text);
    char *error = sp_wg_widen_row_turns(parsed.module, &parsed.function, 1, vector_bits, NULL);
    assert_null(error);
    struct counts counts = count(&parsed);
    discard_ir(&parsed);
    return counts.loads;
}

/* As many turns of a row as a vector has lanes, and a loop for those that remain. */
static void test_turns_along_a_row_are_one(void **state)
{
    (void)state;
    assert_int_equal(loads_when_widened(ROW_SUM(AT_ONCE, ALONG_A_ROW, ""), 512), 17);
    assert_int_equal(loads_when_widened(ROW_SUM(AT_ONCE, ALONG_A_ROW, ""), 128), 5);
}

/* Not where work-items side by side load neighbours, or all the same; nor where one of them may not
 * come; nor where something is stored in each turn. */
static void test_other_turns_stay(void **state)
{
    (void)state;
    assert_int_equal(loads_when_widened(ROW_SUM(AT_ONCE, SIDE_BY_SIDE, ""), 512), 1);
    assert_int_equal(loads_when_widened(ROW_SUM(AT_ONCE, SAME_IN_X, ""), 512), 1);
    assert_int_equal(
        loads_when_widened(ROW_SUM(AT_ONCE "other:\n  br i1 %odd, label %end, label %before\n",
                                   ALONG_A_ROW, STORE_SUM),
                           512),
        1);
    assert_int_equal(loads_when_widened(ROW_SUM(AT_ONCE, ALONG_A_ROW, STORE_SUM), 512), 1);
}

static bool writes_rows(const char *text)
{
    struct parsed parsed;
    parse_ir(&parsed, declarations, text);
    bool writes = sp_wg_writes_rows(parsed.function);
    discard_ir(&parsed);
    return writes;
}

static void test_who_writes_rows(void **state)
{
    (void)state;
    assert_true(writes_rows(ROW_SUM(AT_ONCE, ALONG_A_ROW, STORE_ROW)));
    assert_false(writes_rows(ROW_SUM(AT_ONCE, SIDE_BY_SIDE, STORE_ROW)));
    assert_false(writes_rows(ROW_SUM(AT_ONCE, ALONG_A_ROW, STORE_SUM)));
    assert_false(writes_rows(ROW_SUM(AT_ONCE, ALONG_A_ROW, "")));
}

static bool moves_whole_vectors(const char *body, uint32_t vector_bits)
{
    struct parsed parsed;
    struct sp_cc_text text = {0};
    sp_cc_text_format(&text,
                      "define void @k(ptr addrspace(1) %%p, ptr addrspace(1) %%q) {\n"
                      "  %%l = call i64 @__sp_local_id_0()\n"
                      "  %%from = getelementptr <8 x float>, ptr addrspace(1) %%p, i64 %%l\n"
                      "  %%to = getelementptr <8 x float>, ptr addrspace(1) %%q, i64 %%l\n"
                      "%s  ret void\n}\n",
                      body);
    parse_ir(&parsed, declarations, text.bytes);
    bool moves = sp_wg_moves_whole_vectors(parsed.function, vector_bits);
    discard_ir(&parsed);
    sp_cc_text_finish(&text);
    return moves;
}

/* Vectors of half a register at least, and little else; narrow ones are worth more side by side,
 * as are numbers one by one, and operations that follow one another. */
static void test_who_moves_whole_vectors(void **state)
{
#define MOVE                                                                                       \
    "  %x = load <8 x float>, ptr addrspace(1) %from\n"                                            \
    "  store <8 x float> %x, ptr addrspace(1) %to\n"
    (void)state;
    assert_true(moves_whole_vectors(MOVE, 256));
    assert_true(moves_whole_vectors(MOVE, 512));
    assert_false(moves_whole_vectors(MOVE, 1024));
    assert_false(moves_whole_vectors(MOVE "  store float 0.0, ptr addrspace(1) %q\n", 512));
    assert_false(moves_whole_vectors("  %x = load <8 x float>, ptr addrspace(1) %from\n"
                                     "  %a = fmul <8 x float> %x, %x\n"
                                     "  %b = fmul <8 x float> %a, %x\n"
                                     "  %c = fmul <8 x float> %b, %x\n"
                                     "  %d = fmul <8 x float> %c, %x\n"
                                     "  %e = fmul <8 x float> %d, %x\n"
                                     "  store <8 x float> %e, ptr addrspace(1) %to\n",
                                     512));
    assert_false(moves_whole_vectors("", 512));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sum_is_stored_once),
        cmocka_unit_test(test_parted_work_items_ask_for_themselves),
        cmocka_unit_test(test_a_sum_in_the_array_that_is_read),
        cmocka_unit_test(test_a_row_is_no_sum),
        cmocka_unit_test(test_a_region_ends_behind_a_vote),
        cmocka_unit_test(test_turns_along_a_row_are_one),
        cmocka_unit_test(test_other_turns_stay),
        cmocka_unit_test(test_who_writes_rows),
        cmocka_unit_test(test_who_moves_whole_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
