/* The analyses on small functions: text of IR in, what they find out. */
#include "compiler/cc/effects.h"
#include "compiler/cc/layout.h"
#include "compiler/cc/workgroup/atomics.h"
#include "compiler/cc/workgroup/interleave.h"
#include "compiler/cc/workgroup/masked.h"
#include "compiler/cc/workgroup/narrow.h"
#include "compiler/cc/workgroup/prepare.h"
#include "compiler/cc/workgroup/regions.h"
#include "compiler/cc/workgroup/special.h"
#include "compiler/cc/workgroup/unroll.h"
#include "compiler/kernel_info.h"
#include "ir_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char declarations[] = "declare i64 @__sp_local_id_0() memory(none)\n"
                                   "declare i64 @__sp_group_id_0() memory(none)\n"
                                   "declare void @__sp_barrier() convergent\n";

static void parse(struct parsed *parsed, const char *text)
{
    parse_ir(parsed, declarations, text);
}

static uint32_t block_named(const struct sp_wg_graph *graph, const char *name)
{
    for (uint32_t b = 0; b < graph->num_blocks; b++)
        if (!strcmp(LLVMGetBasicBlockName(graph->blocks[b]), name))
            return b;
    fail_msg("no block %s", name);
    return 0;
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

/* Two nested loops; the inner one's exits leave to the outer latch. */
static const char nest[] = "define void @k(i1 %a, i1 %b) {\n"
                           "entry: br label %outer\n"
                           "outer: br label %inner\n"
                           "inner: br i1 %a, label %body, label %latch\n"
                           "body: br label %inner\n"
                           "latch: br i1 %b, label %outer, label %end\n"
                           "end: ret void\n}\n";

static void test_graph(void **state)
{
    struct parsed parsed;
    struct sp_wg_graph graph;
    (void)state;
    parse(&parsed, nest);
    sp_wg_graph_init(&graph, parsed.function);
    uint32_t inner = block_named(&graph, "inner"), latch = block_named(&graph, "latch");
    uint32_t outer = block_named(&graph, "outer"), body = block_named(&graph, "body");
    assert_int_equal(graph.num_loops, 2);
    assert_int_equal(graph.loops[graph.loop_of[body]].header, inner);
    assert_int_equal(graph.loops[graph.loop_of[latch]].header, outer);
    assert_int_equal(graph.loops[graph.loop_of[inner]].parent, graph.loop_of[latch]);
    assert_int_equal(graph.post_dominator[inner], latch);
    assert_int_equal(graph.post_dominator[latch], block_named(&graph, "end"));
    assert_true(sp_wg_dominates(&graph, inner, latch));
    assert_false(sp_wg_dominates(&graph, body, latch));
    assert_true(graph.order[body] < graph.order[latch]); /* the loop in one piece */
    assert_false(graph.irreducible);
    struct sp_bits influence = sp_bits_create(graph.num_blocks);
    sp_wg_influence(&graph, inner, &influence);
    assert_true(sp_bits_has(&influence, inner));
    assert_true(sp_bits_has(&influence, body));
    assert_int_equal(sp_bits_count(&influence), 2);
    sp_bits_finish(&influence);
    sp_wg_graph_finish(&graph);
    discard_ir(&parsed);
}

static void test_irreducible_flow_is_seen(void **state)
{
    struct parsed parsed;
    struct sp_wg_graph graph;
    (void)state;
    parse(&parsed, "define void @k(i1 %a, i1 %b) {\n"
                   "entry: br i1 %a, label %one, label %two\n"
                   "one: br label %two\n"
                   "two: br i1 %b, label %one, label %end\n"
                   "end: ret void\n}\n");
    sp_wg_graph_init(&graph, parsed.function);
    assert_true(graph.irreducible);
    sp_wg_graph_finish(&graph);
    discard_ir(&parsed);
}

static void test_uniformity(void **state)
{
    struct parsed parsed;
    struct sp_wg_graph graph;
    struct sp_wg_uniformity uniformity;
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(1) %p, i64 %n) {\n"
                   "entry:\n"
                   "  %slot = alloca i64\n"
                   "  %l = call i64 @__sp_local_id_0()\n"
                   "  %g = call i64 @__sp_group_id_0()\n"
                   "  %s = add i64 %g, %n\n"
                   "  %d = add i64 %l, %s\n"
                   "  %u = load i64, ptr addrspace(1) %p\n"
                   "  %c = icmp eq i64 %d, 5\n"
                   "  store i64 %s, ptr %slot\n"
                   "  br i1 %c, label %then, label %join\n"
                   "then:\n"
                   "  store i64 7, ptr %slot\n"
                   "  br label %join\n"
                   "join:\n"
                   "  %phi = phi i64 [ 1, %entry ], [ 2, %then ]\n"
                   "  %old = atomicrmw add ptr addrspace(1) %p, i64 1 seq_cst\n"
                   "  ret void\n}\n");
    sp_wg_graph_init(&graph, parsed.function);
    sp_wg_uniformity_init(&uniformity, &graph, NULL, false);
    static const char *const divergent[] = {"l", "d", "c", "phi", "old", "slot"};
    static const char *const uniform[] = {"g", "s", "u"};
    for (size_t i = 0; i < sizeof(divergent) / sizeof(divergent[0]); i++)
        assert_true(sp_wg_is_divergent(&uniformity, value_named(parsed.function, divergent[i])));
    for (size_t i = 0; i < sizeof(uniform) / sizeof(uniform[0]); i++)
        assert_false(sp_wg_is_divergent(&uniformity, value_named(parsed.function, uniform[i])));
    sp_wg_uniformity_finish(&uniformity, &graph);
    sp_wg_uniformity_init(&uniformity, &graph, NULL, true);
    assert_false(sp_wg_is_divergent(&uniformity, value_named(parsed.function, "slot")));
    sp_wg_uniformity_finish(&uniformity, &graph);
    sp_wg_graph_finish(&graph);
    discard_ir(&parsed);
}

static uint32_t count_barriers(LLVMValueRef function)
{
    uint32_t count = 0;
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value)) {
            assert_null(LLVMIsAPHINode(value));
            if (sp_ir_calls(value, SP_BARRIER_NAME)) {
                assert_true(sp_wg_ends_with_barrier(block));
                count++;
            }
        }
    return count;
}

/* sum += p[k] over k < n with a barrier, then a divergent loop. */
static const char looped[] = "define void @k(ptr addrspace(1) %p, i64 %n) {\n"
                             "entry:\n"
                             "  %l = call i64 @__sp_local_id_0()\n"
                             "  %at = getelementptr i64, ptr addrspace(1) %p, i64 %l\n"
                             "  br label %loop\n"
                             "loop:\n"
                             "  %k = phi i64 [ 0, %entry ], [ %k1, %loop ]\n"
                             "  %sum = phi i64 [ 0, %entry ], [ %sum1, %loop ]\n"
                             "  %v = load i64, ptr addrspace(1) %at\n"
                             "  call void @__sp_barrier()\n"
                             "  %sum1 = add i64 %sum, %v\n"
                             "  %k1 = add i64 %k, 1\n"
                             "  %more = icmp ult i64 %k1, %n\n"
                             "  br i1 %more, label %loop, label %spin\n"
                             "spin:\n"
                             "  %x = phi i64 [ %sum1, %loop ], [ %x1, %spin ]\n"
                             "  %x1 = lshr i64 %x, 1\n"
                             "  %left = icmp ne i64 %x1, 0\n"
                             "  br i1 %left, label %spin, label %end\n"
                             "end:\n"
                             "  store i64 %x1, ptr addrspace(1) %at\n"
                             "  ret void\n}\n";

static uint32_t count_kind(const struct sp_wg_plan *plan, enum sp_wg_variable_kind kind)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < plan->num_variables; v++)
        count += plan->variables[v].kind == kind;
    return count;
}

static void test_plan(void **state)
{
    struct parsed parsed;
    struct sp_wg_plan plan;
    (void)state;
    parse(&parsed, looped);
    assert_null(sp_wg_prepare(parsed.module, NULL));
    assert_int_equal(count_barriers(parsed.function), 1);
    sp_wg_plan_init(&plan, parsed.function, SP_WG_SCALAR);
    /* Entry, after the barrier, and behind the loop with the barrier. */
    assert_int_equal(plan.num_regions, 3);
    assert_false(plan.counters);
    for (uint32_t r = 0; r < plan.num_regions; r++)
        assert_false(plan.regions[r].masked);
    assert_true(count_kind(&plan, SP_WG_SHARED) >= 1);  /* k */
    assert_true(count_kind(&plan, SP_WG_CONTEXT) >= 2); /* sum, v; never the address */
    for (uint32_t v = 0; v < plan.num_variables; v++)
        assert_int_not_equal(LLVMGetTypeKind(plan.variables[v].type), LLVMPointerTypeKind);
    sp_wg_plan_finish(&plan);
    sp_wg_plan_init(&plan, parsed.function, SP_WG_VECTOR);
    uint32_t masked = 0;
    for (uint32_t r = 0; r < plan.num_regions; r++)
        masked += plan.regions[r].masked;
    assert_int_equal(masked, 1); /* the divergent loop */
    assert_true(plan.counters);
    sp_wg_plan_finish(&plan);
    discard_ir(&parsed);
}

/* Variables of type `kind` in the plan of a loop that loads from p[3n + id], whose address is used
 * behind the loop again. `factor` is an operand of the address. */
static uint32_t variables_behind_a_loop(const char *factor, LLVMTypeKind kind)
{
    struct parsed parsed;
    struct sp_wg_plan plan;
    struct sp_cc_text text = {0};
    uint32_t count = 0;
    sp_cc_text_format(&text,
                      "define void @k(ptr addrspace(1) %%p, i64 %%n) {\n"
                      "entry:\n"
                      "  %%l = call i64 @__sp_local_id_0()\n"
                      "  br label %%loop\n"
                      "loop:\n"
                      "  %%k = phi i64 [ 0, %%entry ], [ %%k1, %%loop ]\n"
                      "  %%m = mul i64 %s, 3\n"
                      "  %%i = add i64 %%m, %%l\n"
                      "  %%at = getelementptr i64, ptr addrspace(1) %%p, i64 %%i\n"
                      "  %%v = load i64, ptr addrspace(1) %%at\n"
                      "  call void @__sp_barrier()\n"
                      "  %%w = add i64 %%v, %%k\n"
                      "  store i64 %%w, ptr addrspace(1) %%at\n"
                      "  %%k1 = add i64 %%k, 1\n"
                      "  %%more = icmp ult i64 %%k1, %%n\n"
                      "  br i1 %%more, label %%loop, label %%end\n"
                      "end:\n"
                      "  store i64 7, ptr addrspace(1) %%at\n"
                      "  ret void\n}\n",
                      factor);
    parse(&parsed, text.bytes);
    assert_null(sp_wg_prepare(parsed.module, NULL));
    sp_wg_plan_init(&plan, parsed.function, SP_WG_SCALAR);
    for (uint32_t v = 0; v < plan.num_variables; v++)
        count += LLVMGetTypeKind(plan.variables[v].type) == kind;
    sp_wg_plan_finish(&plan);
    discard_ir(&parsed);
    sp_cc_text_finish(&text);
    return count;
}

/* Not where it hangs on the turn: behind the loop, the turn is another. */
static void test_addresses_are_computed_anew_behind_loops(void **state)
{
    (void)state;
    assert_int_equal(variables_behind_a_loop("%n", LLVMPointerTypeKind), 0);
    assert_int_not_equal(variables_behind_a_loop("%k", LLVMPointerTypeKind), 0);
}

/* A loop of one work-item stays whole: no region begins in it, in the vector form either. One that
 * many enter is cut. */
static void test_a_loop_of_few_is_not_cut(void **state)
{
    static const char *const predicates[] = {"eq i64 %l, 3", "ult i64 %l, 3"};
    (void)state;
    for (int many = 0; many < 2; many++) {
        struct parsed parsed;
        struct sp_wg_analysis analysis;
        struct sp_cc_text text = {0};
        sp_cc_text_format(&text,
                          "define void @k(ptr addrspace(1) %%p, i64 %%n) {\n"
                          "entry:\n"
                          "  %%l = call i64 @__sp_local_id_0()\n"
                          "  %%c = icmp %s\n"
                          "  br i1 %%c, label %%loop, label %%end\n"
                          "loop:\n"
                          "  %%i = phi i64 [ 0, %%entry ], [ %%i1, %%loop ]\n"
                          "  %%at = getelementptr i64, ptr addrspace(1) %%p, i64 %%i\n"
                          "  store i64 %%l, ptr addrspace(1) %%at\n"
                          "  %%i1 = add i64 %%i, 1\n"
                          "  %%left = icmp ult i64 %%i1, %%n\n"
                          "  br i1 %%left, label %%loop, label %%end\n"
                          "end:\n"
                          "  ret void\n}\n",
                          predicates[many]);
        parse(&parsed, text.bytes);
        assert_null(sp_wg_prepare(parsed.module, NULL));
        sp_wg_analysis_init(&analysis, parsed.function, SP_WG_VECTOR);
        assert_int_equal(sp_bits_has(&analysis.leaders, block_named(&analysis.graph, "loop")),
                         many);
        sp_wg_analysis_finish(&analysis);
        discard_ir(&parsed);
        sp_cc_text_finish(&text);
    }
}

static void test_a_waiting_place_follows_a_divergent_barrier(void **state)
{
    struct parsed parsed;
    struct sp_wg_analysis analysis;
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(1) %p) {\n"
                   "entry:\n"
                   "  %l = call i64 @__sp_local_id_0()\n"
                   "  %c = icmp ult i64 %l, 5\n"
                   "  br i1 %c, label %then, label %join\n"
                   "then:\n"
                   "  call void @__sp_barrier()\n"
                   "  br label %join\n"
                   "join:\n"
                   "  store i64 1, ptr addrspace(1) %p\n"
                   "  ret void\n}\n");
    assert_null(sp_wg_prepare(parsed.module, NULL));
    sp_wg_analysis_init(&analysis, parsed.function, SP_WG_SCALAR);
    uint32_t join = block_named(&analysis.graph, "join");
    assert_true(sp_bits_has(&analysis.leaders, join));
    assert_false(sp_bits_has(&analysis.masked, join));
    assert_int_equal(sp_bits_count(&analysis.masked), 1);
    sp_wg_analysis_finish(&analysis);
    discard_ir(&parsed);
}

/* A division that some work-items skip, and one of a loop, are known; the rest are left alone. */
/* Loops of @k after unrolling: `turns` of them, in which `handed_on` of three variables become the
 * next one's value. */
static uint32_t loops_left(const char *turns, unsigned handed_on, const char *end_of_turn)
{
    struct parsed parsed;
    struct sp_wg_graph graph;
    struct sp_cc_text text = {0};
    sp_cc_text_format(&text,
                      "define void @k(ptr addrspace(1) %%p, i32 %%n) {\n"
                      "entry:\n  br label %%head\n"
                      "head:\n"
                      "  %%i = phi i32 [ 0, %%entry ], [ %%next, %%body ]\n"
                      "  %%a = phi i32 [ 1, %%entry ], [ %%sum, %%body ]\n"
                      "  %%b = phi i32 [ 2, %%entry ], [ %s, %%body ]\n"
                      "  %%c = phi i32 [ 3, %%entry ], [ %s, %%body ]\n"
                      "  %%d = phi i32 [ 4, %%entry ], [ %s, %%body ]\n"
                      "  %%more = icmp ult i32 %%i, %s\n"
                      "  br i1 %%more, label %%body, label %%end\n"
                      "body:\n"
                      "  %%word = getelementptr i32, ptr addrspace(1) %%p, i32 %%i\n"
                      "  %%x = load i32, ptr addrspace(1) %%word\n"
                      "  %%y = xor i32 %%x, %%d\n"
                      "  %%sum = add i32 %%y, %%c\n"
                      "  %%next = add i32 %%i, 1\n"
                      "%s"
                      "  br label %%head\n"
                      "end:\n  store i32 %%a, ptr addrspace(1) %%p\n  ret void\n}\n",
                      handed_on > 0 ? "%a" : "%sum", handed_on > 1 ? "%b" : "%x",
                      handed_on > 2 ? "%c" : "%y", turns, end_of_turn);
    parse(&parsed, text.bytes);
    assert_null(sp_wg_unroll(parsed.module, &parsed.function, 1, NULL));
    assert_false(sp_cc_module_is_broken(parsed.module, "after unrolling", &parsed.log));
    sp_wg_graph_init(&graph, parsed.function);
    uint32_t loops = graph.num_loops;
    unsigned kind = LLVMGetMDKindIDInContext(parsed.context, "llvm.loop", 9);
    for (uint32_t b = 0; b < graph.num_blocks; b++) /* no wish is left for later passes */
        assert_null(LLVMGetMetadata(LLVMGetBasicBlockTerminator(graph.blocks[b]), kind));
    sp_wg_graph_finish(&graph);
    discard_ir(&parsed);
    sp_cc_text_finish(&text);
    return loops;
}

static void test_rounds_are_unrolled(void **state)
{
    (void)state;
    assert_int_equal(loops_left("64", 3, ""), 0);
    assert_int_equal(loops_left("64", 2, ""), 1);     /* a rolling window, no rotation */
    assert_int_equal(loops_left("%n", 3, ""), 1);     /* nobody knows how often */
    assert_int_equal(loops_left("100000", 3, ""), 1); /* too much code */
    assert_int_equal(loops_left("64", 3, "  call void @__sp_barrier()\n"), 1);
}

static void test_unrolling_leaves_switches_alone(void **state)
{
    struct parsed parsed;
    (void)state;
    parse(&parsed, "define void @k(i32 %a) {\n"
                   "entry:\n  switch i32 %a, label %x [ i32 1, label %y\n i32 2, label %z ]\n"
                   "x:\n  ret void\ny:\n  ret void\nz:\n  ret void\n}\n");
    assert_null(sp_wg_unroll(parsed.module, &parsed.function, 1, NULL));
    assert_false(sp_cc_module_is_broken(parsed.module, "after unrolling", &parsed.log));
    discard_ir(&parsed);
}

static unsigned count_vectors(LLVMValueRef function)
{
    unsigned count = 0;
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value))
            count += LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind;
    return count;
}

static void test_vectors_are_kept_where_asked(void **state)
{
    static const char text[] = "define void @%s(ptr addrspace(1) %%p) {\n"
                               "  %%v = load <4 x i32>, ptr addrspace(1) %%p\n"
                               "  %%w = mul <4 x i32> %%v, %%v\n"
                               "  store <4 x i32> %%w, ptr addrspace(1) %%p\n"
                               "  ret void\n}\n";
    struct parsed parsed;
    struct sp_cc_text both = {0};
    (void)state;
    sp_cc_text_format(&both, text, "k");
    sp_cc_text_format(&both, text, "kept");
    parse(&parsed, both.bytes);
    LLVMValueRef kept = LLVMGetNamedFunction(parsed.module, "kept");
    assert_true(sp_wg_uses_vectors(parsed.function));
    sp_wg_keep_vectors(kept);
    assert_null(sp_wg_prepare(parsed.module, NULL));
    assert_false(sp_wg_uses_vectors(parsed.function));
    assert_int_equal(count_vectors(parsed.function), 0);
    assert_int_equal(count_vectors(kept), 2);
    /* LLVM's passes are to see it again. */
    unsigned optnone = LLVMGetEnumAttributeKindForName("optnone", 7);
    assert_null(
        LLVMGetEnumAttributeAtIndex(kept, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, optnone));
    sp_cc_text_finish(&both);
    discard_ir(&parsed);
}

static void test_skipped_divisions_vary(void **state)
{
    struct parsed parsed;
    struct sp_wg_plan plan;
    struct sp_map copies = {0}, elsewhere = {0};
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(1) %p, i64 %n, i32 %m) {\n"
                   "entry:\n"
                   "  %l = call i64 @__sp_local_id_0()\n"
                   "  %always = udiv i64 7, %n\n"
                   "  %c = icmp ult i64 %l, %always\n"
                   "  br i1 %c, label %then, label %join\n"
                   "then:\n"
                   "  %some = urem i32 5, %m\n"
                   "  %fixed = sdiv i32 %some, 3\n"
                   "  store i32 %fixed, ptr addrspace(1) %p\n"
                   "  br label %join\n"
                   "join:\n"
                   "  ret void\n}\n");
    assert_null(sp_wg_prepare(parsed.module, NULL));
    sp_wg_plan_init(&plan, parsed.function, SP_WG_VECTOR);
    const struct sp_wg_graph *graph = &plan.analysis.graph;
    uint32_t then = block_named(graph, "then");
    assert_true(sp_wg_is_skipped(&plan, &plan.regions[0], then));
    assert_false(sp_wg_is_skipped(&plan, &plan.regions[0], 0));
    assert_false(sp_wg_is_skipped(&plan, &plan.regions[0], block_named(graph, "join")));
    LLVMValueRef some = value_named(parsed.function, "some");
    LLVMValueRef fixed = value_named(parsed.function, "fixed");
    LLVMValueRef divisor = LLVMGetOperand(some, 1), n = LLVMGetParam(parsed.function, 1);
    assert_true(sp_wg_may_trap(some));
    assert_false(sp_wg_may_trap(fixed));
    sp_map_set(&copies, some, some);
    sp_map_set(&copies, fixed, fixed);
    sp_map_set(&elsewhere, some, some);
    sp_wg_vary_divisors(graph->blocks[then], &copies, &elsewhere, n, n);
    assert_ptr_equal(LLVMGetOperand(some, 1), divisor);
    sp_map_clear(&elsewhere);
    sp_wg_vary_divisors(graph->blocks[then], &copies, &elsewhere, n, n);
    assert_int_equal(LLVMGetInstructionOpcode(LLVMGetOperand(some, 1)), LLVMXor);
    assert_ptr_equal(LLVMGetOperand(LLVMGetOperand(some, 1), 0), divisor);
    assert_true(LLVMIsAConstantInt(LLVMGetOperand(fixed, 1)));
    assert_false(sp_cc_module_is_broken(parsed.module, "here", &parsed.log));
    sp_map_finish(&copies);
    sp_map_finish(&elsewhere);
    sp_wg_plan_finish(&plan);
    discard_ir(&parsed);
}

static void test_layout(void **state)
{
    struct parsed parsed;
    struct sp_cc_layout locals = {0}, globals = {0};
    (void)state;
    parse(&parsed,
          "@a = internal addrspace(3) global i8 undef, align 1\n"
          "@b = internal addrspace(3) global [32 x i32] undef, align 4\n"
          "@other = internal addrspace(3) global i64 undef, align 8\n"
          "@g = internal addrspace(1) global i32 5, align 4\n"
          "@h = internal addrspace(1) global i64 0, align 8\n"
          "@points = internal addrspace(2) constant ptr addrspace(1) @h, align 8\n"
          "@plain = internal addrspace(2) constant i32 1, align 4\n"
          "define void @k() {\n"
          "  store i8 1, ptr addrspace(3) @a\n"
          "  store i32 1, ptr addrspace(3) getelementptr (i32, ptr addrspace(3) @b, i64 3)\n"
          "  ret void\n}\n");
    sp_cc_layout_locals(parsed.module, parsed.function, &locals);
    assert_int_equal(locals.count, 2);
    assert_int_equal(locals.places[1].offset, 64);
    assert_int_equal(locals.bytes, 64 + 128);
    sp_cc_layout_globals(parsed.module, &globals);
    assert_int_equal(globals.count, 3); /* g, h, and the constant that points to h */
    assert_int_equal(globals.places[1].offset, 8);
    assert_int_equal(globals.bytes, 24);
    sp_cc_add_globals_init(parsed.module, &globals);
    assert_non_null(LLVMGetNamedFunction(parsed.module, "sp_globals_init"));
    assert_false(sp_cc_module_is_broken(parsed.module, "here", &parsed.log));
    sp_cc_layout_finish(&locals);
    sp_cc_layout_finish(&globals);
    discard_ir(&parsed);
}

static void test_effects_of_instructions(void **state)
{
    static const uint32_t expected[] = {SP_EFFECT_READ, SP_EFFECT_WRITE,
                                        SP_EFFECT_READ | SP_EFFECT_WRITE, 0,
                                        SP_EFFECT_READ | SP_EFFECT_WRITE | SP_EFFECT_UNKNOWN};
    struct parsed parsed;
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(1) %r, ptr addrspace(1) %w, ptr addrspace(1) %c,\n"
                   "               ptr addrspace(1) %n, ptr addrspace(1) %e) {\n"
                   "  %g = getelementptr i32, ptr addrspace(1) %r, i64 4\n"
                   "  %v = load i32, ptr addrspace(1) %g\n"
                   "  %s = addrspacecast ptr addrspace(1) %w to ptr addrspace(4)\n"
                   "  store i32 %v, ptr addrspace(4) %s\n"
                   "  %x = cmpxchg ptr addrspace(1) %c, i32 0, i32 1 seq_cst seq_cst\n"
                   "  %i = icmp eq ptr addrspace(1) %n, null\n"
                   "  %p = ptrtoint ptr addrspace(1) %e to i64\n"
                   "  ret void\n}\n");
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(sp_cc_effect_of(LLVMGetParam(parsed.function, i)), expected[i]);
    assert_int_equal(sp_cc_followed_effect(parsed.function), 0);
    discard_ir(&parsed);
}

/* Only arrays of which nothing but accesses of one size is seen may be taken apart. */
static void test_what_may_be_interleaved(void **state)
{
    (void)state;
    static const char text[] =
        "define void @k(ptr %out, i64 %i, i32 %v) {\n"
        "  %indexed = alloca [8 x i32]\n"
        "  %bytes = alloca [8 x i32]\n"
        "  %cast = alloca [4 x [2 x i32]]\n"
        "  %escapes = alloca [8 x i32]\n"
        "  %two.sizes = alloca [8 x i32]\n"
        "  %between = alloca [8 x i32]\n"
        "  %odd = alloca [8 x i32]\n"
        "  %chosen = alloca [8 x i32]\n"
        "  %volatile = alloca [8 x i32]\n"
        "  %p0 = getelementptr [8 x i32], ptr %indexed, i64 0, i64 %i\n"
        "  store i32 %v, ptr %p0\n"
        "  %p1 = getelementptr i8, ptr %bytes, i64 12\n"
        "  store i32 %v, ptr %p1\n"
        "  %p2 = addrspacecast ptr %cast to ptr addrspace(4)\n"
        "  %p3 = getelementptr [2 x i32], ptr addrspace(4) %p2, i64 %i, i64 1\n"
        "  store float 1.0, ptr addrspace(4) %p3\n"
        "  store i32 %v, ptr %escapes\n"
        "  store ptr %escapes, ptr %out\n"
        "  store i32 %v, ptr %two.sizes\n"
        "  store i64 %i, ptr %two.sizes\n"
        "  %p4 = getelementptr i8, ptr %between, i64 %i\n"
        "  store i32 %v, ptr %p4\n"
        "  %p5 = getelementptr i8, ptr %odd, i64 2\n"
        "  store i32 %v, ptr %p5\n"
        "  %c = icmp eq i32 %v, 0\n"
        "  %p6 = select i1 %c, ptr %chosen, ptr %out\n"
        "  store i32 %v, ptr %chosen\n"
        "  store i32 %v, ptr %p6\n"
        "  store volatile i32 %v, ptr %volatile\n"
        "  ret void\n"
        "}\n";
    static const struct {
        const char *name;
        uint32_t unit;
    } expected[] = {{"indexed", 4}, {"bytes", 4}, {"cast", 4},   {"escapes", 0}, {"two.sizes", 0},
                    {"between", 0}, {"odd", 0},   {"chosen", 0}, {"volatile", 0}};
    struct parsed parsed;
    parse(&parsed, text);
    LLVMTargetDataRef sizes = LLVMGetModuleDataLayout(parsed.module);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        LLVMValueRef array = value_named(parsed.function, expected[i].name);
        if (sp_wg_interleave_unit(array, sizes) != expected[i].unit)
            fail_msg("%s: not %u", expected[i].name, expected[i].unit);
    }
    assert_ptr_equal(sp_wg_address_root(value_named(parsed.function, "p3")),
                     value_named(parsed.function, "cast"));
    assert_null(sp_wg_address_root(value_named(parsed.function, "p6")));
    discard_ir(&parsed);
}

/* A loop over k from a start of its own, left when k reaches an end; %s is its work. */
#define OWN_LOOP                                                                                   \
    "define void @k(ptr %%p, ptr %%q) {\n"                                                         \
    "  %%slot = alloca i64\n"                                                                      \
    "  %%l = call i64 @__sp_local_id_0()\n"                                                        \
    "  store i64 %%l, ptr %%slot\n"                                                                \
    "  br label %%loop\n"                                                                          \
    "loop:\n"                                                                                      \
    "  %%k = load i64, ptr %%slot\n"                                                               \
    "%s"                                                                                           \
    "  %%next = add i64 %%k, 1\n"                                                                  \
    "  store i64 %%next, ptr %%slot\n"                                                             \
    "  %%more = icmp ult i64 %%next, 100\n"                                                        \
    "  br i1 %%more, label %%loop, label %%end\n"                                                  \
    "end:\n"                                                                                       \
    "%s"                                                                                           \
    "  ret void\n"                                                                                 \
    "}\n"

static void test_where_vectors_lose(void **state)
{
    (void)state;
    static const char follow[] = "  %a = getelementptr float, ptr %p, i64 %k\n"
                                 "  %x = load float, ptr %a\n";
    static const char compute[] = "  %a = mul i64 %k, %k\n"
                                  "  %b = xor i64 %a, 7\n"
                                  "  %c = mul i64 %b, %k\n";
    static const char both[] = "  %e = getelementptr float, ptr %p, i64 %k\n"
                               "  %x = load float, ptr %e\n"
                               "  %a = fmul float %x, %x\n"
                               "  %b = fadd float %a, %x\n"
                               "  %c = fmul float %b, %a\n";
    static const struct {
        const char *work, *end;
        bool lose;
    } expected[] = {{follow, "", true},
                    {compute, "", false},
                    {both, "", false},
                    {follow, "  call void @__sp_barrier()\n  br label %last\nlast:\n", false}};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct sp_cc_text text = {0};
        struct parsed parsed;
        sp_cc_text_format(&text, OWN_LOOP, expected[i].work, expected[i].end);
        parse(&parsed, text.bytes);
        assert_int_equal(sp_wg_vectors_lose(parsed.function), expected[i].lose);
        discard_ir(&parsed);
        sp_cc_text_finish(&text);
    }
}

/* A loop of which the counter starts at `start` and becomes `step` in each turn, as long as `more`.
 */
#define COUNTING_LOOP                                                                              \
    "define void @k(i32 %%n, ptr addrspace(3) %%l) {\n"                                            \
    "entry: br label %%loop\n"                                                                     \
    "loop: %%i = phi i32 [ %s, %%entry ], [ %%next, %%loop ]\n"                                    \
    "  %%j = phi i32 [ 0, %%entry ], [ %%k, %%loop ]\n"                                            \
    "  %%k = add i32 %%j, %%n\n"                                                                   \
    "  call void @__sp_barrier()\n"                                                                \
    "  %%next = %s\n"                                                                              \
    "  %%more = icmp %s\n"                                                                         \
    "  br i1 %%more, label %%loop, label %%end\n"                                                  \
    "end: ret void\n}\n"

static void test_turns_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *start, *step, *more;
        unsigned turns;
    } expected[] = {
        {"0", "add i32 %i, 1", "ult i32 %next, 9", 9},
        {"128", "lshr i32 %i, 1", "ne i32 %next, 0", 8},
        {"10", "sub i32 %i, 3", "sgt i32 %next, -5", 5},
        {"0", "add i32 %i, 1", "ult i32 %next, 64", 64},
        {"0", "add i32 %i, 1", "ult i32 %next, 65", 0}, /* more than asked for */
        {"0", "add i32 %i, 1", "ult i32 %next, %n", 0}, /* not constant: the bound, */
        {"%n", "add i32 %i, 1", "ult i32 %next, 9", 0}, /* the start, */
        {"0", "add i32 %i, %n", "ult i32 %next, 9", 0}, /* the step */
        {"0", "add i32 %i, 1", "ult i32 %k, 9", 0},     /* another counter */
        {"0", "shl i32 %i, 40", "ult i32 %next, 9", 0}, /* no value */
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct sp_cc_text text = {0};
        struct parsed parsed;
        struct sp_wg_graph graph;
        sp_cc_text_format(&text, COUNTING_LOOP, expected[i].start, expected[i].step,
                          expected[i].more);
        parse(&parsed, text.bytes);
        sp_wg_graph_init(&graph, parsed.function);
        assert_int_equal(sp_wg_loop_turns(&graph, 0, 64), expected[i].turns);
        sp_wg_graph_finish(&graph);
        discard_ir(&parsed);
        sp_cc_text_finish(&text);
    }
}

static unsigned count_calls(LLVMValueRef function, const char *name)
{
    unsigned count = 0;
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value))
            count += sp_ir_calls(value, name);
    return count;
}

/* An inner loop that depends on the outer one's counter, both on the local size; and a variable,
 * which both the kernel and its copy use. */
static const char nested_steps[] = "declare i64 @__sp_local_size_0() memory(none)\n"
                                   "@v = internal addrspace(3) global [16 x i32] undef\n"
                                   "define void @k() {\n"
                                   "entry: %size = call i64 @__sp_local_size_0()\n"
                                   "  br label %outer\n"
                                   "outer: %i = phi i64 [ 1, %entry ], [ %twice, %latch ]\n"
                                   "  br label %inner\n"
                                   "inner: %j = phi i64 [ %i, %outer ], [ %half, %inner ]\n"
                                   "  %p = getelementptr i32, ptr addrspace(3) @v, i64 %j\n"
                                   "  store i32 1, ptr addrspace(3) %p\n"
                                   "  call void @__sp_barrier()\n"
                                   "  %half = lshr i64 %j, 1\n"
                                   "  %more = icmp ne i64 %half, 0\n"
                                   "  br i1 %more, label %inner, label %latch\n"
                                   "latch: %twice = shl i64 %i, 1\n"
                                   "  %again = icmp ult i64 %twice, %size\n"
                                   "  br i1 %again, label %outer, label %end\n"
                                   "end: ret void\n}\n";

static void test_a_copy_for_a_local_size_has_no_loops(void **state)
{
    struct parsed parsed;
    struct sp_wg_graph graph;
    LLVMValueRef copy;
    static const uint64_t size[3] = {16, 1, 1};
    (void)state;
    parse(&parsed, nested_steps);
    LLVMValueRef variable = LLVMGetNamedGlobal(parsed.module, "v");
    assert_true(sp_wg_copy_kernels(parsed.module, &parsed.function, 1, &copy));
    assert_ptr_not_equal(copy, parsed.function);
    assert_ptr_equal(LLVMGetNamedGlobal(parsed.module, "v"), variable);
    assert_int_equal(LLVMGetLinkage(variable), LLVMInternalLinkage);
    assert_true(sp_ir_uses_global(copy, variable));
    sp_wg_fix_local_size(copy, size);
    /* Loops with barriers only where they are wanted. */
    assert_null(sp_wg_straighten(parsed.module, &copy, 1, false, NULL));
    assert_int_equal(count_calls(copy, SP_BARRIER_NAME), 1);
    assert_null(sp_wg_straighten(parsed.module, &copy, 1, true, NULL));
    assert_int_equal(count_calls(copy, SP_BARRIER_NAME), 1 + 2 + 3 + 4);
    sp_wg_graph_init(&graph, copy);
    assert_int_equal(graph.num_loops, 0);
    sp_wg_graph_finish(&graph);
    /* The kernel itself is for any size. */
    sp_wg_graph_init(&graph, parsed.function);
    assert_int_equal(graph.num_loops, 2);
    sp_wg_graph_finish(&graph);
    assert_int_equal(count_calls(parsed.function, "__sp_local_size_0"), 1);
    assert_false(sp_cc_module_is_broken(parsed.module, "in the test", &parsed.log));
    discard_ir(&parsed);
}

/* A loop without barrier is shared by the work-items: it stays, but over a private array. */
static void test_which_loops_are_unrolled(void **state)
{
    static const char text[] = "define void @k(ptr addrspace(1) %%g) {\n"
                               "entry: %%a = alloca [8 x i32]\n"
                               "  br label %%loop\n"
                               "loop: %%i = phi i64 [ 0, %%entry ], [ %%next, %%loop ]\n"
                               "  %%p = getelementptr i32, ptr %s, i64 %%i\n"
                               "  store volatile i32 1, ptr %s %%p\n"
                               "  %%next = add i64 %%i, 1\n"
                               "  %%more = icmp ne i64 %%next, 8\n"
                               "  br i1 %%more, label %%loop, label %%end\n"
                               "end: ret void\n}\n";
    (void)state;
    for (int private = 0; private < 2; private ++) {
        struct sp_cc_text whole = {0};
        struct parsed parsed;
        struct sp_wg_graph graph;
        sp_cc_text_format(&whole, text, private ? "%a" : "addrspace(1) %g",
                          private ? "" : "addrspace(1)");
        parse(&parsed, whole.bytes);
        assert_null(sp_wg_straighten(parsed.module, &parsed.function, 1, false, NULL));
        sp_wg_graph_init(&graph, parsed.function);
        assert_int_equal(graph.num_loops, !private);
        sp_wg_graph_finish(&graph);
        discard_ir(&parsed);
        sp_cc_text_finish(&whole);
    }
}

/* The same sum of two ways is computed where they meet, without what holds on one way only; a PHI
 * behind it, of two numbers, stays. */
static void test_operations_are_joined(void **state)
{
    struct parsed parsed;
    (void)state;
    parse(&parsed, "define void @k(ptr addrspace(1) %g, ptr addrspace(1) %h) {\n"
                   "entry: %x = load volatile i64, ptr addrspace(1) %g\n"
                   "  %c = icmp ult i64 %x, 100\n"
                   "  br i1 %c, label %yes, label %no\n"
                   "yes: %a = add nuw i64 %x, 1\n"
                   "  store volatile i64 %a, ptr addrspace(1) %g\n"
                   "  br label %join\n"
                   "no: %b = add i64 %x, 1\n"
                   "  store volatile i64 %b, ptr addrspace(1) %h\n"
                   "  br label %join\n"
                   "join: %sum = phi i64 [ %a, %yes ], [ %b, %no ]\n"
                   "  %other = phi i64 [ 5, %yes ], [ 7, %no ]\n"
                   "  store volatile i64 %sum, ptr addrspace(1) %g\n"
                   "  store volatile i64 %other, ptr addrspace(1) %g\n"
                   "  ret void\n}\n");
    assert_null(sp_wg_straighten(parsed.module, &parsed.function, 1, true, NULL));
    assert_false(sp_cc_module_is_broken(parsed.module, "in the test", &parsed.log));
    LLVMValueRef phi = LLVMGetFirstInstruction(LLVMGetLastBasicBlock(parsed.function));
    assert_non_null(LLVMIsAPHINode(phi));
    assert_non_null(LLVMIsAConstantInt(LLVMGetIncomingValue(phi, 0)));
    LLVMValueRef sum = LLVMGetNextInstruction(phi);
    assert_int_equal(LLVMGetInstructionOpcode(sum), LLVMAdd);
    assert_false(LLVMGetNUW(sum));
    assert_ptr_equal(LLVMGetOperand(LLVMGetNextInstruction(sum), 0), sum);
    discard_ir(&parsed);
}

/* Between two barriers, what the work-items with `condition` do. */
#define GUARDED                                                                                    \
    "declare i64 @__sp_local_id_1() memory(none)\n"                                                \
    "define void @k(ptr addrspace(3) %%l, i32 %%n) {\n"                                            \
    "entry: call void @__sp_barrier()\n"                                                           \
    "  br label %%asked\n"                                                                         \
    "asked: %%x = call i64 @__sp_local_id_0()\n"                                                   \
    "  %%y = call i64 @__sp_local_id_1()\n"                                                        \
    "  %%z = trunc i64 %%x to i32\n"                                                               \
    "  %%c = icmp %s\n"                                                                            \
    "  br i1 %%c, label %s\n"                                                                      \
    "yes: store i32 1, ptr addrspace(3) %%l\n"                                                     \
    "  br label %%join\n"                                                                          \
    "no: %s br label %%join\n"                                                                     \
    "join: call void @__sp_barrier()\n"                                                            \
    "  ret void\n}\n"

static void test_loops_over_work_items_are_narrowed(void **state)
{
    static const char yes[] = "%yes, label %no", no[] = "%no, label %yes";
    static const struct {
        const char *condition, *ways, *otherwise;
        unsigned dimension, first, end; /* 0, 0: all */
    } expected[] = {
        {"ult i64 %x, 8", yes, "", 0, 0, 8},
        {"ult i64 %x, 8", no, "", 0, 8, 64},
        {"slt i32 %z, 8", yes, "", 0, 0, 8},
        {"ule i64 %x, 8", yes, "", 0, 0, 9},
        {"ugt i64 %x, 8", yes, "", 0, 9, 64},
        {"uge i64 %x, 8", yes, "", 0, 8, 64},
        {"eq i64 %x, 5", yes, "", 0, 5, 6},
        {"eq i64 %x, 0", no, "", 0, 1, 64},
        {"eq i64 %x, 63", no, "", 0, 0, 63},
        {"ult i64 %y, 2", yes, "", 1, 0, 2},
        {"eq i64 %x, 5", no, "", 0, 0, 0},    /* two pieces */
        {"ult i64 %x, 100", no, "", 0, 0, 0}, /* nobody */
        {"ult i32 %z, %n", yes, "", 0, 0, 0}, /* not constant */
        {"slt i64 %x, -1", yes, "", 0, 0, 0},
        {"ult i64 %x, 8", yes, "store i32 2, ptr addrspace(3) %l\n", 0, 0, 0}, /* others work too */
    };
    static const uint64_t size[3] = {64, 4, 1};
    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct sp_cc_text text = {0};
        struct parsed parsed;
        struct sp_wg_plan plan;
        struct sp_wg_narrowing narrowing;
        sp_cc_text_format(&text, GUARDED, expected[i].condition, expected[i].ways,
                          expected[i].otherwise);
        parse(&parsed, text.bytes);
        assert_null(sp_wg_prepare(parsed.module, NULL));
        sp_wg_plan_init(&plan, parsed.function, SP_WG_VECTOR);
        assert_int_equal(plan.num_regions, 3);
        uint32_t leader = plan.analysis.graph.successors[0][0];
        sp_wg_narrow(&plan, &plan.regions[plan.region_of[leader]], size, &narrowing);
        bool all = !expected[i].end;
        assert_int_equal(narrowing.num_decisions, !all);
        for (unsigned d = 0; d < 3; d++) {
            bool narrowed = !all && d == expected[i].dimension;
            assert_int_equal(narrowing.first[d], narrowed ? expected[i].first : 0);
            assert_int_equal(narrowing.end[d], narrowed ? expected[i].end : size[d]);
        }
        sp_wg_plan_finish(&plan);
        discard_ir(&parsed);
        sp_cc_text_finish(&text);
    }
}

static void test_which_atomics_are_plain(void **state)
{
    static const char text[] =
        "@v = internal addrspace(3) global [16 x i32] undef\n"
        "define void @k(ptr addrspace(1) %g, ptr addrspace(3) %l, ptr addrspace(4) %any) {\n"
        "  %p = getelementptr i32, ptr addrspace(3) @v, i64 3\n"
        "  %q = addrspacecast ptr addrspace(3) %l to ptr addrspace(4)\n"
        "  %r = getelementptr i32, ptr addrspace(4) %q, i64 3\n"
        "  %local = atomicrmw add ptr addrspace(3) %p, i32 1 seq_cst\n"
        "  %cast = atomicrmw umax ptr addrspace(4) %r, i32 1 monotonic\n"
        "  %exchange = cmpxchg ptr addrspace(3) %l, i32 0, i32 1 seq_cst seq_cst\n"
        "  %global = atomicrmw add ptr addrspace(1) %g, i32 1 monotonic\n"
        "  %generic = atomicrmw add ptr addrspace(4) %any, i32 1 monotonic\n"
        "  %nand = atomicrmw nand ptr addrspace(3) %l, i32 1 monotonic\n"
        "  %load = load atomic i32, ptr addrspace(3) %l monotonic, align 4\n"
        "  ret void\n}\n";
    static const struct {
        const char *name;
        bool plain;
    } expected[] = {{"local", true},    {"cast", true},  {"exchange", true}, {"global", false},
                    {"generic", false}, {"nand", false}, {"load", false}};
    struct parsed parsed;
    (void)state;
    parse(&parsed, text);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_int_equal(sp_wg_is_local_atomic(value_named(parsed.function, expected[i].name)),
                         expected[i].plain);
    discard_ir(&parsed);
}

/* A context variable is loaded where the region may read it first, or may leave it unwritten and
 * stores it all the same; a region that always writes it first only stores it. */
static void test_when_the_context_is_loaded(void **state)
{
    static const char text[] =
        "define void @k(ptr addrspace(1) %g, i32 %u) {\n"
        "entry: %a = alloca i32\n"
        "  %x = call i64 @__sp_local_id_0()\n"
        "  %z = trunc i64 %x to i32\n"
        "  store i32 %z, ptr %a\n" /* region 0: always */
        "  call void @__sp_barrier()\n"
        "  br label %some\n"
        "some: %y = call i64 @__sp_local_id_0()\n" /* region 1: on one way only */
        "  %c = icmp ult i64 %y, 3\n"
        "  br i1 %c, label %writes, label %met\n"
        "writes: store i32 7, ptr %a\n"
        "  br label %met\n"
        "met: call void @__sp_barrier()\n"
        "  br label %reads\n"
        "reads: %v = load i32, ptr %a\n" /* region 2: reads, and nobody after it */
        "  store i32 %v, ptr addrspace(1) %g\n"
        "  store i32 0, ptr %a\n"
        "  ret void\n}\n";
    static const bool loaded[] = {false, true, true}, stored[] = {true, true, false};
    struct parsed parsed;
    struct sp_wg_plan plan;
    (void)state;
    parse(&parsed, text);
    sp_wg_plan_init(&plan, parsed.function, SP_WG_VECTOR);
    assert_int_equal(plan.num_regions, 3);
    uint32_t a = sp_wg_variable_index(&plan, value_named(parsed.function, "a"));
    assert_int_equal(plan.variables[a].kind, SP_WG_CONTEXT);
    static const char *const leaders[] = {"entry", "some", "reads"};
    for (unsigned r = 0; r < 3; r++) {
        const struct sp_wg_region *region =
            &plan.regions[plan.region_of[block_named(&plan.analysis.graph, leaders[r])]];
        assert_int_equal(sp_wg_is_loaded(region, a), loaded[r]);
        assert_int_equal(sp_wg_is_stored(region, a), stored[r]);
    }
    sp_wg_plan_finish(&plan);
    discard_ir(&parsed);
}

/* A loop up to a bound that differs between work-items parts them; one up to a shared bound does
 * not, though its body does. */
static void test_uniformity_of_a_loops_bound(void **state)
{
    static const char text[] = "define void @k(i64 %%n, ptr addrspace(1) %%g) {\n"
                               "entry: %%x = call i64 @__sp_local_id_0()\n"
                               "  %%slot = alloca i64\n"
                               "  store i64 0, ptr %%slot\n"
                               "  br label %%loop\n"
                               "loop: %%i = load i64, ptr %%slot\n"
                               "  %%next = add i64 %%i, 1\n"
                               "  store i64 %%next, ptr %%slot\n"
                               "  %%p = getelementptr i64, ptr addrspace(1) %%g, i64 %%x\n"
                               "  store i64 %%i, ptr addrspace(1) %%p\n"
                               "  %%more = icmp ult i64 %%next, %%%s\n"
                               "  br i1 %%more, label %%loop, label %%end\n"
                               "end: ret void\n}\n";
    (void)state;
    for (int divergent = 0; divergent < 2; divergent++) {
        struct sp_cc_text whole = {0};
        struct parsed parsed;
        struct sp_wg_graph graph;
        struct sp_wg_uniformity uniformity;
        sp_cc_text_format(&whole, text, divergent ? "x" : "n");
        parse(&parsed, whole.bytes);
        sp_wg_graph_init(&graph, parsed.function);
        sp_wg_uniformity_init(&uniformity, &graph, NULL, false);
        static const char *const values[] = {"more", "i", "next", "slot"};
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(
                sp_wg_is_divergent(&uniformity, value_named(parsed.function, values[i])),
                divergent);
        uint32_t loop = block_named(&graph, "loop");
        assert_int_equal(sp_bits_has(&uniformity.branches, loop), divergent);
        assert_int_equal(sp_bits_has(&uniformity.parted, loop), divergent);
        sp_wg_uniformity_finish(&uniformity, &graph);
        sp_wg_graph_finish(&graph);
        discard_ir(&parsed);
        sp_cc_text_finish(&whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_irreducible_flow_is_seen),
        cmocka_unit_test(test_uniformity),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_addresses_are_computed_anew_behind_loops),
        cmocka_unit_test(test_a_loop_of_few_is_not_cut),
        cmocka_unit_test(test_a_waiting_place_follows_a_divergent_barrier),
        cmocka_unit_test(test_rounds_are_unrolled),
        cmocka_unit_test(test_unrolling_leaves_switches_alone),
        cmocka_unit_test(test_vectors_are_kept_where_asked),
        cmocka_unit_test(test_skipped_divisions_vary),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_effects_of_instructions),
        cmocka_unit_test(test_what_may_be_interleaved),
        cmocka_unit_test(test_where_vectors_lose),
        cmocka_unit_test(test_turns_are_counted),
        cmocka_unit_test(test_a_copy_for_a_local_size_has_no_loops),
        cmocka_unit_test(test_which_loops_are_unrolled),
        cmocka_unit_test(test_operations_are_joined),
        cmocka_unit_test(test_loops_over_work_items_are_narrowed),
        cmocka_unit_test(test_which_atomics_are_plain),
        cmocka_unit_test(test_when_the_context_is_loaded),
        cmocka_unit_test(test_uniformity_of_a_loops_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
