/* Bitwise expressions of three vectors (logic.h): text of IR in, which are one operation, and which
 * one. */
#include "compiler/cc/logic.h"
#include "ir_text.h"

#include <llvm-c/Analysis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ONES "<i32 -1, i32 -1, i32 -1, i32 -1>"

struct found {
    unsigned joined;     /* three operations and more that became one */
    unsigned operations; /* that are left */
    unsigned table;      /* of the last joined, where %a is 11110000, %b 11001100 and %c 10101010 */
};

/* The value of a leaf in row `row` of the table. */
static unsigned bit_of(LLVMValueRef leaf, unsigned row)
{
    while (LLVMIsABitCastInst(leaf))
        leaf = LLVMGetOperand(leaf, 0);
    size_t length;
    const char *name = LLVMGetValueName2(leaf, &length);
    assert_int_equal(length, 1);
    return row >> ('c' - name[0]) & 1;
}

static unsigned table_of(LLVMValueRef call)
{
    unsigned table = (unsigned)LLVMConstIntGetZExtValue(LLVMGetOperand(call, 3)), result = 0;
    for (unsigned row = 0; row < 8; row++) {
        unsigned at = bit_of(LLVMGetOperand(call, 0), row) << 2 |
                      bit_of(LLVMGetOperand(call, 1), row) << 1 |
                      bit_of(LLVMGetOperand(call, 2), row);
        result |= (table >> at & 1) << row;
    }
    return result;
}

static struct found join(const char *type, const char *text)
{
    struct sp_cc_text whole = {0};
    struct parsed parsed;
    struct found found = {0};
    char *message = NULL;
    sp_cc_text_format(
        &whole, "define %s @k(%s %%a, %s %%b, %s %%c, %s %%d, ptr %%p) {\n%s  ret %s %%r\n}\n",
        type, type, type, type, type, text, type);
    parse_ir(&parsed, "", whole.bytes);
    if (sp_cc_join_logic(parsed.module))
        assert_null(sp_ir_run_passes(parsed.module, "function(dce)", NULL));
    if (LLVMVerifyModule(parsed.module, LLVMReturnStatusAction, &message))
        fail_msg("%s", message);
    LLVMDisposeMessage(message);
    LLVMBasicBlockRef block = LLVMGetEntryBasicBlock(parsed.function);
    for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
         value = LLVMGetNextInstruction(value)) {
        found.operations += LLVMIsABinaryOperator(value) != NULL;
        if (sp_ir_is_intrinsic(value, "llvm.x86.avx512.pternlog.")) {
            found.joined++;
            found.table = table_of(value);
        }
    }
    discard_ir(&parsed);
    sp_cc_text_finish(&whole);
    return found;
}

static void assert_joined(const char *type, const char *text, unsigned table)
{
    struct found found = join(type, text);
    assert_int_equal(found.joined, 1);
    assert_int_equal(found.operations, 0);
    assert_int_equal(found.table, table);
}

static void test_functions_of_hashes(void **state)
{
    (void)state;
    /* a ? b : c, in three ways, and the majority. */
    assert_joined("<4 x i32>",
                  "  %x = and <4 x i32> %a, %b\n  %n = xor <4 x i32> %a, " ONES
                  "\n  %y = and <4 x i32> %n, %c\n  %r = or disjoint <4 x i32> %x, %y\n",
                  0xca);
    assert_joined("<4 x i32>",
                  "  %x = xor <4 x i32> %b, %c\n  %y = and <4 x i32> %x, %a\n"
                  "  %r = xor <4 x i32> %y, %c\n",
                  0xca);
    assert_joined("<4 x i32>",
                  "  %n = xor <4 x i32> %a, " ONES "\n  %x = or <4 x i32> %n, %b\n"
                  "  %y = or <4 x i32> %c, %a\n  %r = and <4 x i32> %x, %y\n",
                  0xca);
    assert_joined("<4 x i32>",
                  "  %x = xor <4 x i32> %b, %c\n  %y = and <4 x i32> %a, %x\n"
                  "  %z = and <4 x i32> %b, %c\n  %r = xor <4 x i32> %y, %z\n",
                  0xe8);
}

static void test_every_width(void **state)
{
    static const char *const types[] = {"<4 x i32>", "<8 x i32>",  "<16 x i32>", "<2 x i64>",
                                        "<8 x i64>", "<32 x i16>", "<16 x i8>"};
    static const char *const others[] = {"i32", "<2 x i32>", "<32 x i32>", "<16 x i1>"};
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        snprintf(text, sizeof(text),
                 "  %%x = xor %s %%b, %%c\n  %%y = and %s %%x, %%a\n  %%r = xor "
                 "%s %%y, %%c\n",
                 types[i], types[i], types[i]);
        assert_joined(types[i], text, 0xca);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        snprintf(text, sizeof(text),
                 "  %%x = xor %s %%b, %%c\n  %%y = and %s %%x, %%a\n  %%r = xor "
                 "%s %%y, %%c\n",
                 others[i], others[i], others[i]);
        assert_int_equal(join(others[i], text).joined, 0);
    }
}

/* Two operations are LLVM's; four inputs are too many; what others use too stays. */
static void test_what_stays(void **state)
{
    (void)state;
    struct found found = join("<4 x i32>", "  %x = xor <4 x i32> %b, %c\n"
                                           "  %r = and <4 x i32> %x, %a\n");
    assert_int_equal(found.joined, 0);
    found = join("<4 x i32>", "  %x = xor <4 x i32> %b, %c\n  %y = and <4 x i32> %x, %a\n"
                              "  %r = xor <4 x i32> %y, %d\n");
    assert_int_equal(found.joined, 0);
    found = join("<4 x i32>", "  %x = xor <4 x i32> %b, %c\n  %y = and <4 x i32> %x, %a\n"
                              "  store <4 x i32> %y, ptr %p\n  %r = xor <4 x i32> %y, %c\n");
    assert_int_equal(found.joined, 0);
    /* The larger of two cones: three operations under one that takes a fourth input. */
    found = join("<4 x i32>", "  %x = xor <4 x i32> %b, %c\n  %y = and <4 x i32> %x, %a\n"
                              "  %z = xor <4 x i32> %y, %c\n  %r = add <4 x i32> %z, %d\n");
    assert_int_equal(found.joined, 1);
    assert_int_equal(found.operations, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_of_hashes),
        cmocka_unit_test(test_every_width),
        cmocka_unit_test(test_what_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
