/* Rows of elements (rows.h, transpose.h, lane_address.h): text of IR in, which accesses are left;
 * and transpositions of numbers. */
#include "compiler/cc/workgroup/lane_address.h"
#include "compiler/cc/workgroup/rows.h"
#include "compiler/cc/workgroup/transpose.h"
#include "ir_text.h"

#include <llvm-c/Analysis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_LANES SP_WG_MOST_LANES
#define LANES 4u

/* --- Transpositions -------------------------------------------------------------------------- */

static uint64_t number_at(LLVMValueRef vector, unsigned element)
{
    LLVMValueRef number = LLVMGetAggregateElement(vector, element);
    assert_non_null(number);
    assert_non_null(LLVMIsAConstantInt(number));
    return LLVMConstIntGetZExtValue(number);
}

static LLVMValueRef numbered(LLVMTypeRef type, unsigned first, unsigned step, unsigned count)
{
    LLVMValueRef numbers[MOST_LANES];
    for (unsigned i = 0; i < count; i++)
        numbers[i] = LLVMConstInt(type, first + i * step, false);
    return LLVMConstVector(numbers, count);
}

/* Element e of row l is 16 l + e. */
static void turn(LLVMBuilderRef builder, LLVMTypeRef type, unsigned lanes, unsigned width)
{
    LLVMValueRef rows[MOST_LANES], columns[MOST_LANES];
    for (unsigned l = 0; l < lanes; l++)
        rows[l] = numbered(type, 16 * l, 1, width);
    sp_wg_rows_to_columns(builder, rows, lanes, width, columns);
    for (unsigned e = 0; e < width; e++)
        for (unsigned l = 0; l < lanes; l++)
            assert_int_equal(number_at(columns[e], l), 16 * l + e);
    for (unsigned e = 0; e < width; e++)
        columns[e] = numbered(type, e, 16, lanes);
    sp_wg_columns_to_rows(builder, columns, lanes, width, rows);
    for (unsigned l = 0; l < lanes; l++) {
        assert_int_equal(LLVMGetVectorSize(LLVMTypeOf(rows[l])), width);
        for (unsigned e = 0; e < width; e++)
            assert_int_equal(number_at(rows[l], e), 16 * l + e);
    }
}

static void test_transpositions(void **state)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    (void)state;
    for (unsigned bits = 32; bits <= 64; bits *= 2)
        for (unsigned lanes = LANES; lanes <= 512 / bits; lanes *= 2)
            for (unsigned width = 2; width <= lanes; width *= 2)
                turn(builder, LLVMIntTypeInContext(context, bits), lanes, width);
    LLVMDisposeBuilder(builder);
    LLVMContextDispose(context);
}

/* --- Which accesses become rows -------------------------------------------------------------- */

struct counts {
    unsigned single_loads, row_loads, gathers, single_stores, row_stores;
    bool row_is_last; /* of the stores */
};

static bool is_vector(LLVMValueRef value)
{
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind;
}

static struct counts count(LLVMValueRef function)
{
    struct counts counts = {0};
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value)) {
            if (LLVMIsALoadInst(value))
                *(is_vector(value) ? &counts.row_loads : &counts.single_loads) += 1;
            if (LLVMIsAStoreInst(value))
                counts.row_is_last = is_vector(LLVMGetOperand(value, 0));
            if (LLVMIsAStoreInst(value))
                *(is_vector(LLVMGetOperand(value, 0)) ? &counts.row_stores
                                                      : &counts.single_stores) += 1;
            counts.gathers += sp_ir_is_intrinsic(value, "llvm.masked.gather.");
        }
    return counts;
}

static const char declarations[] =
    "declare <4 x i32> @llvm.masked.gather.v4i32.v4p1(<4 x ptr addrspace(1)>, i32, <4 x i1>, "
    "<4 x i32>)\n"
    "declare <4 x float> @_ZGVbN4v_sinf(<4 x float>) memory(none)\n"
    "declare void @use(<4 x i32>)\n"
    "declare void @touch()\n";

/* The body of @k's loop, given to it in pieces. %p is where elements are, %i an index for each
 * lane, %id one that counts and %v what is stored. */
static struct sp_cc_text body;
static struct sp_cc_text uses; /* of what is loaded, at the end */

/* The address of lane `lane`, `more` elements behind that with the index. */
static void add_address(const char *name, const char *index, unsigned lane, int more)
{
    sp_cc_text_format(&body,
                      "  %%%s.i%u = extractelement <4 x i64> %s, i64 %u\n"
                      "  %%%s.j%u = add i64 %%%s.i%u, %d\n"
                      "  %%%s.p%u = getelementptr i32, ptr addrspace(1) %%p, i64 %%%s.j%u\n",
                      name, lane, index, lane, name, lane, name, lane, more, name, lane, name,
                      lane);
}

/* A column of loads, with `between` in its middle. */
static void add_loads(const char *name, const char *index, int more, const char *between)
{
    for (unsigned l = 0; l < LANES; l++) {
        add_address(name, index, l, more);
        sp_cc_text_format(&body, "  %%%s.%u = load i32, ptr addrspace(1) %%%s.p%u, align 4\n%s",
                          name, l, name, l, l == 1 ? between : "");
    }
    for (unsigned l = 0; l < LANES; l++) {
        sp_cc_text_format(&body, "  %%%s.v%u = insertelement <4 x i32> ", name, l);
        if (l)
            sp_cc_text_format(&body, "%%%s.v%u", name, l - 1);
        else
            sp_cc_text_format(&body, "poison");
        sp_cc_text_format(&body, ", i32 %%%s.%u, i64 %u\n", name, l, l);
    }
    sp_cc_text_format(&uses, "  call void @use(<4 x i32> %%%s.v3)\n", name);
}

/* A column of stores. */
static void add_stores(const char *name, const char *index, int more)
{
    for (unsigned l = 0; l < LANES; l++) {
        add_address(name, index, l, more);
        sp_cc_text_format(&body,
                          "  %%%s.e%u = extractelement <4 x i32> %%v, i64 %u\n"
                          "  store i32 %%%s.e%u, ptr addrspace(1) %%%s.p%u, align 4\n",
                          name, l, l, name, l, name, l);
    }
}

static struct counts join(void)
{
    struct sp_cc_text text = {0};
    struct parsed parsed;
    char *message = NULL;
    sp_cc_text_format(&text,
                      "define void @k(ptr addrspace(1) %%p, <4 x i64> %%i, i64 %%s, <4 x i32> %%v) "
                      "{\n"
                      "entry:\n"
                      "  %%one = insertelement <4 x i64> poison, i64 %%s, i64 0\n"
                      "  %%all = shufflevector <4 x i64> %%one, <4 x i64> poison, <4 x i32> "
                      "zeroinitializer\n"
                      "  br label %%loop\n"
                      "loop:\n"
                      "  %%ids = phi <4 x i64> [ <i64 0, i64 1, i64 2, i64 3>, %%entry ], [ "
                      "%%next, %%loop ]\n"
                      "  %%id = add <4 x i64> %%ids, %%all\n"
                      "%s%s"
                      "  %%next = add <4 x i64> %%ids, <i64 4, i64 4, i64 4, i64 4>\n"
                      "  br label %%loop\n"
                      "}\n",
                      body.bytes, uses.bytes ? uses.bytes : "");
    parse_ir(&parsed, declarations, text.bytes);
    if (sp_wg_join_rows(parsed.module))
        assert_null(sp_ir_run_passes(parsed.module, "function(dce)", NULL));
    if (LLVMVerifyModule(parsed.module, LLVMReturnStatusAction, &message))
        fail_msg("%s", message);
    LLVMDisposeMessage(message);
    struct counts counts = count(parsed.function);
    discard_ir(&parsed);
    sp_cc_text_finish(&text);
    sp_cc_text_finish(&body);
    sp_cc_text_finish(&uses);
    body = uses = (struct sp_cc_text){0};
    return counts;
}

static void test_loads_side_by_side(void **state)
{
    (void)state;
    add_loads("a", "%i", 7, ""); /* in any order */
    add_loads("b", "%i", 5, "");
    add_loads("c", "%i", 4, "");
    add_loads("d", "%i", 6, "");
    struct counts counts = join();
    assert_int_equal(counts.row_loads, LANES);
    assert_int_equal(counts.single_loads, 0);
}

/* Two and two; one alone. */
static void test_rows_have_no_gaps(void **state)
{
    (void)state;
    add_loads("a", "%i", 0, "");
    add_loads("b", "%i", 1, "");
    add_loads("c", "%i", 3, "");
    add_loads("d", "%i", 4, "");
    add_loads("e", "%i", 6, "");
    struct counts counts = join();
    assert_int_equal(counts.row_loads, 2 * LANES);
    assert_int_equal(counts.single_loads, LANES);
}

static void test_loads_of_other_places(void **state)
{
    (void)state;
    add_loads("a", "%i", 0, "");
    add_loads("b", "%id", 1, "");
    assert_int_equal(join().single_loads, 2 * LANES);
}

/* Between columns, and within one. What neither reads nor writes is no matter. */
static void test_loads_stay_where_something_may_write(void **state)
{
    static const char *const writes[] = {
        "  store i64 %s, ptr addrspace(1) %p\n",
        "  fence acquire\n",
        "  call void @touch()\n",
        "  %w = load volatile i32, ptr addrspace(1) %p\n",
        "  %w = atomicrmw add ptr addrspace(1) %p, i32 1 monotonic\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        add_loads("a", "%i", 0, "");
        sp_cc_text_format(&body, "%s", writes[i]);
        add_loads("b", "%i", 1, "");
        assert_int_equal(join().row_loads, 0);
        add_loads("a", "%i", 0, writes[i]);
        add_loads("b", "%i", 1, "");
        assert_int_equal(join().row_loads, 0);
    }
    add_loads("a", "%i", 0, "  call void @touch()\n");
    add_loads("b", "%i", 1, "  call void @touch()\n");
    assert_int_equal(join().row_loads, 0);
    add_loads("a", "%i", 0, "");
    sp_cc_text_format(&body, "  %%f = bitcast <4 x i32> %%a.v3 to <4 x float>\n"
                             "  %%w = call <4 x float> @_ZGVbN4v_sinf(<4 x float> %%f)\n");
    add_loads("b", "%i", 1, "");
    assert_int_equal(join().row_loads, LANES);
}

/* Words of a message that belongs to the id: an index of 32 bits, which wraps. */
static void test_indices_of_32_bits(void **state)
{
    (void)state;
    sp_cc_text_format(&body, "  %%t = trunc <4 x i64> %%id to <4 x i32>\n"
                             "  %%m = shl <4 x i32> %%t, <i32 2, i32 2, i32 2, i32 2>\n"
                             "  %%o = or disjoint <4 x i32> %%m, <i32 1, i32 1, i32 1, i32 1>\n"
                             "  %%x = zext <4 x i32> %%m to <4 x i64>\n"
                             "  %%y = zext <4 x i32> %%o to <4 x i64>\n");
    add_loads("a", "%x", 0, "");
    add_loads("b", "%y", 0, "");
    assert_int_equal(join().row_loads, LANES);
    /* One more may be nothing. */
    sp_cc_text_format(&body, "  %%t = trunc <4 x i64> %%id to <4 x i32>\n"
                             "  %%o = add <4 x i32> %%t, <i32 1, i32 1, i32 1, i32 1>\n"
                             "  %%x = zext <4 x i32> %%t to <4 x i64>\n"
                             "  %%y = zext <4 x i32> %%o to <4 x i64>\n");
    add_loads("a", "%x", 0, "");
    add_loads("b", "%y", 0, "");
    assert_int_equal(join().row_loads, 0);
}

static struct counts join_gathers(const char *mask)
{
    for (unsigned e = 0; e < 4; e++)
        sp_cc_text_format(&body,
                          "  %%j%u = add <4 x i64> %%i, <i64 %u, i64 %u, i64 %u, i64 %u>\n"
                          "  %%q%u = getelementptr i32, ptr addrspace(1) %%p, <4 x i64> %%j%u\n"
                          "  %%g%u = call <4 x i32> @llvm.masked.gather.v4i32.v4p1(<4 x ptr "
                          "addrspace(1)> %%q%u, i32 4, <4 x i1> %s, <4 x i32> poison)\n",
                          e, e, e, e, e, e, e, e, e, mask);
    for (unsigned e = 0; e < 4; e++)
        sp_cc_text_format(&uses, "  call void @use(<4 x i32> %%g%u)\n", e);
    return join();
}

static void test_gathers(void **state)
{
    (void)state;
    struct counts counts = join_gathers("<i1 true, i1 true, i1 true, i1 true>");
    assert_int_equal(counts.row_loads, LANES);
    assert_int_equal(counts.gathers, 0);
    counts = join_gathers("<i1 true, i1 true, i1 false, i1 true>");
    assert_int_equal(counts.row_loads, 0);
    assert_int_equal(counts.gathers, 4);
}

/* Four words of each work-item: `index` is 4 times its id, or `other`. */
static struct counts join_stores(const char *index, const char *between)
{
    sp_cc_text_format(&body, "  %%t = shl <4 x i64> %%id, <i64 2, i64 2, i64 2, i64 2>\n"
                             "  %%x = and <4 x i64> %%t, <i64 4294967292, i64 4294967292, i64 "
                             "4294967292, i64 4294967292>\n"
                             "  %%h = mul <4 x i64> %%id, <i64 3, i64 3, i64 3, i64 3>\n"
                             "  %%m = sub <4 x i64> zeroinitializer, %%h\n"
                             "  %%w = shl <4 x i64> %%id, <i64 62, i64 62, i64 62, i64 62>\n"
                             "  %%l = and <4 x i64> %%t, <i64 7, i64 7, i64 7, i64 7>\n");
    add_stores("a", index, 0);
    add_stores("b", index, 3);
    sp_cc_text_format(&body, "%s", between);
    add_stores("c", index, 1);
    add_stores("d", index, 2);
    return join();
}

static void test_stores_side_by_side(void **state)
{
    (void)state;
    assert_int_equal(join_stores("%x", "").row_stores, LANES);
    assert_int_equal(join_stores("%x", "").single_stores, 0);
    /* Lanes lie over each other: every third word, up or down, any, or none but two. */
    assert_int_equal(join_stores("%h", "").row_stores, 0);
    assert_int_equal(join_stores("%m", "").row_stores, 0);
    assert_int_equal(join_stores("%i", "").row_stores, 0);
    assert_int_equal(join_stores("%l", "").row_stores, 0);
    assert_int_equal(join_stores("%w", "").row_stores, 0);
}

static void test_stores_keep_their_order(void **state)
{
    (void)state;
    /* The second pair only: the first is not side by side. */
    struct counts counts = join_stores("%x", "  fence release\n");
    assert_int_equal(counts.row_stores, LANES);
    assert_int_equal(counts.single_stores, 2 * LANES);
    counts = join_stores("%x", "  %r = load i32, ptr addrspace(1) %p\n"
                               "  store i32 %r, ptr addrspace(1) %p\n");
    assert_int_equal(counts.row_stores, LANES);
    assert_int_equal(counts.single_stores, 2 * LANES + 1);
    /* The same word twice. */
    sp_cc_text_format(&body, "  %%x = shl <4 x i64> %%id, <i64 2, i64 2, i64 2, i64 2>\n");
    add_stores("a", "%x", 0);
    add_stores("b", "%x", 1);
    add_stores("c", "%x", 0);
    counts = join();
    assert_int_equal(counts.row_stores, LANES);
    assert_int_equal(counts.single_stores, LANES);
    assert_false(counts.row_is_last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpositions),
        cmocka_unit_test(test_loads_side_by_side),
        cmocka_unit_test(test_rows_have_no_gaps),
        cmocka_unit_test(test_loads_of_other_places),
        cmocka_unit_test(test_loads_stay_where_something_may_write),
        cmocka_unit_test(test_indices_of_32_bits),
        cmocka_unit_test(test_gathers),
        cmocka_unit_test(test_stores_side_by_side),
        cmocka_unit_test(test_stores_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
