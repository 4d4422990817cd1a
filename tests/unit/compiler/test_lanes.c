/* Vectors of neighbouring work-items (shapes.h, lanes.h): text of IR in; what is known of its
 * values, and the vectors that come out. */
#include "compiler/cc/layout.h"
#include "compiler/cc/workgroup/emit.h"
#include "compiler/cc/workgroup/lanes.h"
#include "compiler/cc/workgroup/prepare.h"
#include "compiler/cc/workgroup/shapes.h"
#include "ir_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ITEMS 64u
#define LANES 16u

/* In @k's second region the place in x is %x, %z in 32 bits, and %b is the group's first. */
#define KERNEL                                                                                     \
    "declare i64 @__sp_local_id_0() memory(none)\n"                                                \
    "declare i64 @__sp_local_id_1() memory(none)\n"                                                \
    "declare i64 @__sp_group_id_0() memory(none)\n"                                                \
    "declare void @__sp_barrier() convergent\n"                                                    \
    "declare i32 @llvm.umin.i32(i32, i32)\n"                                                       \
    "declare i9 @llvm.bitreverse.i9(i9)\n"                                                         \
    "@v = internal addrspace(3) global [1024 x i32] undef\n"                                       \
    "define void @k(i32 %%n) {\n"                                                                  \
    "entry: call void @__sp_barrier()\n"                                                           \
    "  br label %%body\n"                                                                          \
    "body: %%x = call i64 @__sp_local_id_0()\n"                                                    \
    "  %%y = call i64 @__sp_local_id_1()\n"                                                        \
    "  %%z = trunc i64 %%x to i32\n"                                                               \
    "  %%g = call i64 @__sp_group_id_0()\n"                                                        \
    "  %%w = shl i64 %%g, 6\n"                                                                     \
    "  %%b = trunc i64 %%w to i32\n"                                                               \
    "%s"                                                                                           \
    "  call void @__sp_barrier()\n"                                                                \
    "  ret void\n}\n"

/* ... and the address is that of element %e. */
#define STORE                                                                                      \
    "  %p = getelementptr i32, ptr addrspace(3) @v, i64 %e\n"                                      \
    "  store i32 %n, ptr addrspace(3) %p\n"
#define WIDE "  %e = zext i32 %i to i64\n" STORE

struct planned {
    struct parsed ir;
    struct sp_wg_plan plan;
    const struct sp_wg_region *region; /* the second */
};

static void parse(struct planned *parsed, const char *body)
{
    plan_ir(&parsed->ir, &parsed->plan, KERNEL, body);
    uint32_t leader = parsed->plan.analysis.graph.successors[0][0];
    parsed->region = &parsed->plan.regions[parsed->plan.region_of[leader]];
}

static void discard(struct planned *parsed)
{
    sp_wg_plan_finish(&parsed->plan);
    discard_ir(&parsed->ir);
}

static const uint64_t size[3] = {ITEMS, 4, 1};

/* --- Shapes ---------------------------------------------------------------------------------- */

static uint64_t as_it_is(uint64_t x)
{
    return x;
}

static uint64_t pairs_of_4(uint64_t x)
{
    return 2 * x - (x & 3);
}

static uint64_t pairs_of_64(uint64_t x)
{
    return 2 * x - (x & 63);
}

static uint64_t thirds(uint64_t x)
{
    return x % 3;
}

static uint64_t crossed(uint64_t x)
{
    return x ^ 5;
}

static uint64_t quarters(uint64_t x)
{
    return x / 4;
}

static uint64_t reversed(uint64_t x)
{
    uint64_t result = 0;
    for (unsigned bit = 0; bit < 9; bit++)
        result |= (x >> bit & 1) << (8 - bit);
    return result;
}

static uint64_t below_40(uint64_t x)
{
    return x < 40 ? x : 40;
}

static uint64_t from_the_end(uint64_t x)
{
    return 63 - x;
}

static const struct {
    const char *body;
    uint64_t (*item)(uint64_t x); /* NULL: not known */
    unsigned terms;
    uint64_t factor; /* of the first, in elements */
} shapes[] = {
    {"  %i = add i32 %z, 0\n" WIDE, as_it_is, 0, 0},
    {"  %d = shl i32 %z, 1\n  %a = and i32 %z, 3\n  %i = sub i32 %d, %a\n" WIDE, pairs_of_4, 0, 0},
    {"  %d = shl i32 %z, 1\n  %a = and i32 %z, 63\n  %i = sub i32 %d, %a\n" WIDE, pairs_of_64, 0,
     0},
    {"  %i = urem i32 %z, 3\n" WIDE, thirds, 0, 0},
    {"  %i = xor i32 %z, 5\n" WIDE, crossed, 0, 0},
    {"  %i = sub i32 63, %z\n" WIDE, from_the_end, 0, 0},
    {"  %c = icmp slt i32 %z, 40\n  %i = select i1 %c, i32 %z, i32 40\n" WIDE, below_40, 0, 0},
    {"  %t = trunc i64 %x to i9\n  %r = call i9 @llvm.bitreverse.i9(i9 %t)\n"
     "  %e = zext i9 %r to i64\n" STORE,
     reversed, 0, 0},
    /* Below 2^30, so that nothing wraps in 32 bits. */
    {"  %i = add i32 %b, %z\n" WIDE, as_it_is, 1, 64},
    {"  %s = add i32 %b, %z\n  %e = sext i32 %s to i64\n" STORE, as_it_is, 1, 64},
    /* No bit of the group's first place is among the lowest 6. */
    {"  %s = add i32 %b, %z\n  %i = and i32 %s, 63\n" WIDE, as_it_is, 0, 0},
    {"  %s = add i32 %b, %z\n  %i = lshr i32 %s, 2\n" WIDE, quarters, 1, 16},
    {"  %s = add i32 %b, %z\n  %i = and i32 %s, -64\n" WIDE, NULL, 0, 0}, /* one for all */
    {"  %m = mul i64 %y, 64\n  %e = add i64 %m, %x\n" STORE, as_it_is, 1, 64},
    /* What the argument is, nobody knows. */
    {"  %i = or disjoint i32 %n, %z\n" WIDE, as_it_is, 1, 1},
    {"  %i = add nuw i32 %n, %z\n" WIDE, as_it_is, 1, 1},
    {"  %i = add i32 %n, %z\n" WIDE, NULL, 0, 0},
    {"  %i = sub i32 %b, %z\n" WIDE, NULL, 0, 0},
    {"  %s = add i32 %b, %z\n  %i = lshr i32 %s, 7\n" WIDE, NULL, 0, 0},
    {"  %s = mul i32 %n, 8\n  %t = add i32 %s, %z\n  %i = and i32 %t, 63\n" WIDE, NULL, 0, 0},
    {"  %i = udiv i32 %z, %n\n" WIDE, NULL, 0, 0},
    {"  %e = add i64 %x, 0\n  %q = getelementptr i32, ptr addrspace(3) @v, i64 %e\n"
     "  %l = load volatile i32, ptr addrspace(3) %q\n" STORE,
     NULL, 0, 0},
};

static LLVMValueRef stored_address(const struct planned *parsed)
{
    for (uint32_t b = 0; b < parsed->region->num_blocks; b++) {
        LLVMBasicBlockRef block = parsed->plan.analysis.graph.blocks[parsed->region->blocks[b]];
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value))
            if (LLVMIsAStoreInst(value))
                return LLVMGetOperand(value, 1);
    }
    fail_msg("no store");
    return NULL;
}

static void test_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct planned parsed;
        struct sp_wg_shapes of;
        parse(&parsed, shapes[i].body);
        bool known = sp_wg_shapes_init(&of, &parsed.plan, parsed.region, NULL, size, LANES);
        if (known != (shapes[i].item != NULL))
            fail_msg("%s", shapes[i].body);
        if (known) {
            const struct sp_wg_shape *shape = sp_wg_shape(&of, stored_address(&parsed));
            assert_int_equal(shape->kind, SP_WG_ADDRESS);
            assert_ptr_equal(shape->base, LLVMGetNamedGlobal(parsed.ir.module, "v"));
            assert_int_equal(shape->num_terms, shapes[i].terms);
            if (shape->num_terms)
                assert_int_equal(shape->terms[0].factor, shapes[i].factor * 4);
            for (uint64_t x = 0; x < ITEMS; x++)
                assert_int_equal(shape->by_item[x], 4 * shapes[i].item(x));
            sp_wg_shapes_finish(&of);
        }
        discard(&parsed);
    }
}

/* Who is not active in a block does not count: x - 3 is known where x is 3 and more. */
static void test_who_is_active(void **state)
{
    struct planned parsed;
    struct sp_wg_shapes of;
    (void)state;
    parse(&parsed, "  %c = icmp uge i32 %z, 3\n"
                   "  br i1 %c, label %yes, label %join\n"
                   "yes: %i = add i32 %z, -3\n" WIDE "  br label %join\n"
                   "join:\n");
    assert_true(sp_wg_shapes_init(&of, &parsed.plan, parsed.region, NULL, size, LANES));
    for (uint32_t b = 0; b < parsed.region->num_blocks; b++) {
        LLVMBasicBlockRef block = parsed.plan.analysis.graph.blocks[of.blocks[b]];
        bool yes = !strcmp(LLVMGetBasicBlockName(block), "yes");
        bool aside = strstr(LLVMGetBasicBlockName(block), "crit_edge") != NULL;
        for (uint64_t x = 0; x < ITEMS; x++)
            assert_int_equal(of.active[b][x], yes ? x >= 3 : aside ? x < 3 : true);
    }
    sp_wg_shapes_finish(&of);
    discard(&parsed);
}

/* --- Vectors --------------------------------------------------------------------------------- */

/* Which regions are worth it: those whose addresses are known but do not grow evenly. */
static void test_which_regions_become_lanes(void **state)
{
    static const char in_order[] = "  %i = add i32 %z, 0\n" WIDE;
    static const char pairs[] = "  %d = shl i32 %z, 1\n  %a = and i32 %z, 3\n"
                                "  %i = sub i32 %d, %a\n" WIDE;
    static const char far[] = "  %t = trunc i64 %x to i9\n"
                              "  %r = call i9 @llvm.bitreverse.i9(i9 %t)\n"
                              "  %e = zext i9 %r to i64\n" STORE;
    static const char loop[] = "  br label %again\n"
                               "again: %k = phi i32 [ 0, %body ], [ %j, %again ]\n"
                               "  %a = xor i32 %z, %k\n  %i = xor i32 %a, 3\n" WIDE
                               "  %j = add i32 %k, %z\n  %more = icmp ult i32 %j, 9\n"
                               "  br i1 %more, label %again, label %end\n"
                               "end:\n";
    static const struct {
        const char *body;
        uint64_t x;
        uint32_t bits;
        bool wanted;
    } expected[] = {
        {pairs, 64, 512, true},  {pairs, 64, 128, true}, {pairs, 24, 512, true},
        {pairs, 37, 512, false}, {pairs, 2, 512, false}, {in_order, 64, 512, false},
        {far, 64, 512, true},    {loop, 64, 512, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct planned parsed;
        const uint64_t of_group[3] = {expected[i].x, 1, 1};
        parse(&parsed, expected[i].body);
        struct sp_wg_lanes *lanes =
            sp_wg_lanes_create(&parsed.plan, parsed.region, NULL, of_group, expected[i].bits);
        if (!!lanes != expected[i].wanted)
            fail_msg("%zu", i);
        sp_wg_lanes_destroy(lanes);
        discard(&parsed);
    }
}

struct counts {
    unsigned loads, stores, masked, shuffles, single; /* `single`: accesses of one i32 */
    unsigned loops, apart; /* accesses that are said to meet no global memory */
};

static struct counts emit(struct planned *parsed, uint32_t bits)
{
    struct sp_cc_layout locals = {0}, globals = {0};
    struct sp_arg_info argument = {.kind = SP_ARG_VALUE, .align = 4};
    struct sp_kernel_info info = {.name = "k", .num_args = 1, .args = &argument};
    struct counts counts = {0};
    sp_cc_layout_locals(parsed->ir.module, parsed->ir.function, &locals);
    struct sp_wg_environment env = {.module = parsed->ir.module,
                                    .info = &info,
                                    .locals = &locals,
                                    .globals = &globals,
                                    .vector_bits = bits};
    LLVMValueRef function = sp_wg_emit(&parsed->plan, &env, "group", size);
    LLVMBasicBlockRef block;
    unsigned noalias = LLVMGetMDKindIDInContext(parsed->ir.context, "noalias", 7);
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        counts.loops += !strncmp(LLVMGetBasicBlockName(block), "lanes", 5);
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value)) {
            bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
            counts.shuffles += LLVMIsAShuffleVectorInst(value) != NULL;
            counts.masked += sp_ir_is_intrinsic(value, "llvm.masked.");
            if ((!load && !store) ||
                LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(value, load ? 0 : 1))) != 3)
                continue;
            LLVMTypeRef type = LLVMTypeOf(load ? value : LLVMGetOperand(value, 0));
            bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
            counts.loads += vector && load;
            counts.stores += vector && store;
            counts.single += !vector;
            counts.apart += LLVMGetMetadata(value, noalias) != NULL;
        }
    }
    /* Regions that copy are vectors, too, and no calls. */
    assert_non_null(LLVMGetStringAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "no-builtin-memcpy", 17));
    delete_source(&parsed->ir);
    sp_cc_layout_finish(&locals);
    return counts;
}

/* Pairs at distance 4: two vectors, from which both sides are shuffled, and back. */
static void test_pairs_are_shuffled(void **state)
{
    static const char body[] = "  %d = shl i32 %z, 1\n  %o = and i32 %z, 3\n"
                               "  %i = sub i32 %d, %o\n  %e = zext i32 %i to i64\n"
                               "  %p = getelementptr i32, ptr addrspace(3) @v, i64 %e\n"
                               "  %j = add i32 %i, 4\n  %f = zext i32 %j to i64\n"
                               "  %q = getelementptr i32, ptr addrspace(3) @v, i64 %f\n"
                               "  %s = load i32, ptr addrspace(3) %p\n"
                               "  %t = load i32, ptr addrspace(3) %q\n"
                               "  %u = add i32 %s, %t\n  %w2 = sub i32 %s, %t\n"
                               "  store i32 %u, ptr addrspace(3) %p\n"
                               "  store i32 %w2, ptr addrspace(3) %q\n";
    struct planned parsed;
    (void)state;
    parse(&parsed, body);
    struct counts counts = emit(&parsed, 512);
    assert_int_equal(counts.loads, 4); /* each of the two by both sides */
    assert_int_equal(counts.stores, 2);
    assert_int_equal(counts.shuffles, 4);
    assert_int_equal(counts.single, 0);
    assert_int_equal(counts.loops, 1);
    assert_int_equal(counts.apart, counts.loads + counts.stores);
    sp_wg_plan_finish(&parsed.plan);
    discard_ir(&parsed.ir);
    /* With four lanes each side is one vector. */
    parse(&parsed, body);
    counts = emit(&parsed, 128);
    assert_int_equal(counts.loads, 2);
    assert_int_equal(counts.stores, 2);
    assert_int_equal(counts.shuffles, 0);
    assert_int_equal(counts.single, 0);
    sp_wg_plan_finish(&parsed.plan);
    discard_ir(&parsed.ir);
}

/* What lies between the stored elements stays as it is. */
static void test_stores_with_gaps_stay_single(void **state)
{
    struct planned parsed;
    (void)state;
    parse(&parsed, "  %d = shl i32 %z, 1\n  %o = and i32 %z, 3\n  %i = sub i32 %d, %o\n" WIDE);
    struct counts counts = emit(&parsed, 512);
    assert_int_equal(counts.stores, 0);
    assert_int_equal(counts.single, LANES);
    sp_wg_plan_finish(&parsed.plan);
    discard_ir(&parsed.ir);
}

/* The addresses of (x & 31) come again after two chunks: the loop over these is the outer one, in
 * which LLVM then loads them once. */
static void test_loads_that_come_again(void **state)
{
    static const char body[] = "  %%m = and i64 %%x, %d\n  %%t = trunc i64 %%m to i9\n"
                               "  %%r = call i9 @llvm.bitreverse.i9(i9 %%t)\n"
                               "  %%e = zext i9 %%r to i64\n"
                               "  %%p = getelementptr i32, ptr addrspace(3) @v, i64 %%e\n"
                               "  %%s = load i32, ptr addrspace(3) %%p\n"
                               "  %%f = add i64 %%x, 512\n"
                               "  %%q = getelementptr i32, ptr addrspace(3) @v, i64 %%f\n"
                               "  store i32 %%s, ptr addrspace(3) %%q\n";
    static const struct {
        int mask;
        unsigned loops;
    } expected[] = {{15, 1}, {31, 2}, {63, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct sp_cc_text text = {0};
        struct planned parsed;
        sp_cc_text_format(&text, body, expected[i].mask);
        parse(&parsed, text.bytes);
        struct counts counts = emit(&parsed, 512);
        assert_int_equal(counts.loops, expected[i].loops);
        assert_int_equal(counts.single, LANES);
        sp_wg_plan_finish(&parsed.plan);
        discard_ir(&parsed.ir);
        sp_cc_text_finish(&text);
    }
}

/* x >= 3 parts the first chunk: it alone loads under a mask. */
static void test_parted_work_items_have_a_mask(void **state)
{
    struct planned parsed;
    (void)state;
    parse(&parsed, "  %c = icmp uge i32 %z, 3\n"
                   "  br i1 %c, label %yes, label %join\n"
                   "yes: %i = add i32 %z, -3\n  %e = zext i32 %i to i64\n"
                   "  %p = getelementptr i32, ptr addrspace(3) @v, i64 %e\n"
                   "  %s = load i32, ptr addrspace(3) %p\n"
                   "  br label %join\n"
                   "join: %t = phi i32 [ %s, %yes ], [ 0, %body ]\n"
                   "  %f = add i64 %x, 64\n"
                   "  %q = getelementptr i32, ptr addrspace(3) @v, i64 %f\n"
                   "  store i32 %t, ptr addrspace(3) %q\n");
    struct counts counts = emit(&parsed, 512);
    assert_int_equal(counts.masked, 1);
    assert_int_equal(counts.loads, 1);
    assert_int_equal(counts.stores, 2);
    assert_int_equal(counts.single, 0);
    sp_wg_plan_finish(&parsed.plan);
    discard_ir(&parsed.ir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_who_is_active),
        cmocka_unit_test(test_which_regions_become_lanes),
        cmocka_unit_test(test_pairs_are_shuffled),
        cmocka_unit_test(test_stores_with_gaps_stay_single),
        cmocka_unit_test(test_loads_that_come_again),
        cmocka_unit_test(test_parted_work_items_have_a_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
