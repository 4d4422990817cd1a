/* The end of local memory (ends.h): text of IR in; which stores and loads are left, and how lanes
 * are taken out of vectors. */
#include "compiler/cc/workgroup/ends.h"

#include "ir_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* %s is local memory, %g global, %v a vector and %f a float. */
#define KERNEL                                                                                     \
    "declare void @use(<16 x float>, <2 x float>) memory(none)\n"                                  \
    "define void @k(ptr noalias %%s, ptr addrspace(1) %%g, <16 x float> %%v, float %%f, i64 %%n) " \
    "{\n"                                                                                          \
    "entry:\n%s  br label %%end\n"                                                                 \
    "end: ret void\n}\n"

/* All of @k's second operands that are local memory, and what else is there. */
struct counts {
    unsigned stores, loads, global, shuffles, single, casts, calls, kept;
    int lane;            /* the first that a shuffle takes */
    LLVMTypeKind stored; /* the elements that go to global memory */
};

static struct counts finish(const char *body, bool marked)
{
    struct sp_cc_text text = {0};
    struct parsed ir;
    struct counts counts = {0};
    LLVMBasicBlockRef block;
    sp_cc_text_format(&text, KERNEL, body);
    parse_ir(&ir, "", text.bytes);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(ir.context);
    LLVMPositionBuilderBefore(builder,
                              LLVMGetBasicBlockTerminator(LLVMGetLastBasicBlock(ir.function)));
    if (marked)
        sp_wg_mark_end(builder, ir.module, LLVMGetParam(ir.function, 0));
    LLVMDisposeBuilder(builder);
    assert_null(sp_wg_finish_ends(ir.module, NULL));
    for (block = LLVMGetFirstBasicBlock(ir.function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value)) {
            bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
            bool global =
                (load || store) &&
                LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(value, load ? 0 : 1))) == 1;
            counts.global += global;
            counts.kept += load && LLVMGetVolatile(value);
            counts.loads += load && !global;
            counts.stores += store && !global;
            counts.shuffles += LLVMIsAShuffleVectorInst(value) != NULL;
            if (LLVMIsAShuffleVectorInst(value))
                counts.lane = LLVMGetMaskValue(value, 0);
            LLVMTypeRef type = global && store ? LLVMTypeOf(LLVMGetOperand(value, 0)) : NULL;
            if (type && LLVMGetTypeKind(type) == LLVMVectorTypeKind)
                counts.stored = LLVMGetTypeKind(LLVMGetElementType(type));
            counts.single += LLVMIsAExtractElementInst(value) != NULL;
            counts.casts += LLVMIsABitCastInst(value) || LLVMIsATruncInst(value);
            counts.calls += LLVMIsACallInst(value) != NULL;
        }
    assert_false(sp_cc_module_is_broken(ir.module, "in the test", &ir.log));
    discard_ir(&ir);
    sp_cc_text_finish(&text);
    return counts;
}

#define AT(name, bytes) "  %" name " = getelementptr i8, ptr %s, i64 " bytes "\n"
#define HALF(bytes)                                                                                \
    "  store <16 x float> %v, ptr %s\n" AT("p",                                                    \
                                           bytes) "  %a = load <8 x float>, ptr %p\n"              \
                                                  "  store <8 x float> %a, ptr addrspace(1) %g\n"

static void test_what_nobody_reads_is_not_stored(void **state)
{
    (void)state;
    struct counts counts =
        finish("  store float %f, ptr %s\n" AT("p", "64") "  store float %f, ptr %p\n"
                                                          "  store float %f, ptr addrspace(1) %g\n",
               true);
    assert_int_equal(counts.stores, 0);
    assert_int_equal(counts.global, 1);
    assert_int_equal(counts.calls, 0); /* nor is the mark left */
    /* Who is not told keeps all. */
    counts = finish("  store float %f, ptr %s\n", false);
    assert_int_equal(counts.stores, 1);
}

static void test_what_is_read_is_stored(void **state)
{
    (void)state;
    /* Somewhere else, perhaps, at a distance that is not known. */
    struct counts counts =
        finish("  store float %f, ptr %s\n  %p = getelementptr float, ptr %s, i64 %n\n"
               "  %a = load float, ptr %p\n"
               "  store float %a, ptr addrspace(1) %g\n",
               true);
    assert_int_equal(counts.stores, 1);
    assert_int_equal(counts.loads, 1);
    /* By a load that then gets the value itself. */
    counts = finish("  store float %f, ptr %s\n  %a = load float, ptr %s\n"
                    "  store float %a, ptr addrspace(1) %g\n",
                    true);
    assert_int_equal(counts.stores, 0);
    assert_int_equal(counts.loads, 0);
    assert_int_equal(counts.global, 1);
}

static void test_lanes_of_a_vector_are_shuffled(void **state)
{
    static const char *const halves[] = {HALF("0"), HALF("32"), HALF("12")};
    static const int lanes[] = {0, 8, 3};
    (void)state;
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
        struct counts counts = finish(halves[i], true);
        assert_int_equal(counts.stores, 0);
        assert_int_equal(counts.shuffles, 1);
        assert_int_equal(counts.lane, lanes[i]);
        assert_int_equal(counts.casts, 0);
    }
    struct counts counts = finish(
        "  store <16 x float> %v, ptr %s\n" AT("p", "20") "  %a = load float, ptr %p\n"
                                                          "  store float %a, ptr addrspace(1) %g\n",
        true);
    assert_int_equal(counts.single, 1);
    assert_int_equal(counts.casts + counts.stores, 0);
    /* Not in the middle of a lane, nor of another type. */
    counts = finish(HALF("14"), true);
    assert_int_equal(counts.shuffles, 0);
    counts = finish("  store <16 x float> %v, ptr %s\n" AT(
                        "p", "32") "  %a = load <4 x double>, ptr %p\n"
                                   "  store <4 x double> %a, ptr addrspace(1) %g\n",
                    true);
    assert_int_equal(counts.stores, 0);
    assert_int_not_equal(counts.stored, LLVMFloatTypeKind);
}

/* Rows of loads keep their order; others are free. */
static void test_rows_stay_in_order(void **state)
{
    static const struct {
        unsigned bytes[5];
        unsigned kept;
    } rows[] = {{{0, 64, 128, 192, 256}, 5},
                {{0, 64, 192, 256, 64}, 4},
                {{256, 192, 128, 64, 0}, 0},
                {{0, 64, 128, 64, 128}, 0},
                {{64, 64, 128, 192, 256}, 4}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sp_cc_text text = {0};
        for (unsigned k = 0; k < 5; k++)
            sp_cc_text_format(&text,
                              "  %%p%u = getelementptr i8, ptr addrspace(1) %%g, i64 %u\n"
                              "  %%a%u = load <16 x float>, ptr addrspace(1) %%p%u\n"
                              "  %%q%u = getelementptr float, ptr %%s, i64 %%n\n"
                              "  store <16 x float> %%a%u, ptr %%q%u\n"
                              "  %%r%u = load <2 x float>, ptr %%q%u, align 4\n"
                              "  call void @use(<16 x float> %%a%u, <2 x float> %%r%u)\n",
                              k, rows[i].bytes[k] + 1024, k, k, k, k, k, k, k, k, k);
        struct counts counts = finish(text.bytes, true);
        if (counts.kept != rows[i].kept)
            fail_msg("%zu: %u", i, counts.kept);
        sp_cc_text_finish(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_nobody_reads_is_not_stored),
        cmocka_unit_test(test_what_is_read_is_stored),
        cmocka_unit_test(test_lanes_of_a_vector_are_shuffled),
        cmocka_unit_test(test_rows_stay_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
