/* What loops load ahead of time (ahead.h): text of IR in, how many arrays are asked for. That
 * nothing else changes, the corpus shows. */
#include "compiler/cc/layout.h"
#include "compiler/cc/workgroup/emit.h"
#include "compiler/cc/workgroup/prepare.h"
#include "ir_text.h"

#include <llvm-c/Analysis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char declarations[] = "declare i64 @__sp_local_id_0() memory(none)\n"
                                   "declare void @__sp_barrier() convergent\n"
                                   "@v = internal addrspace(3) global [1024 x i32] undef\n";

/* Prefetches in the function for `form` of a kernel that begins with `before`, and then does `turn`
 * for each %i from %n in steps of %n. There %x is the id, %j is %i + %x, and %a the address of
 * p[%j]. */
static unsigned count(enum sp_wg_form form, const char *before, const char *turn)
{
    static const uint64_t size[3] = {64, 1, 1};
    struct sp_cc_text text = {0};
    struct parsed parsed;
    struct sp_wg_plan plan;
    struct sp_cc_layout locals = {0}, globals = {0};
    struct sp_arg_info arguments[] = {{.kind = SP_ARG_GLOBAL, .align = 8},
                                      {.kind = SP_ARG_GLOBAL, .offset = 8, .align = 8},
                                      {.kind = SP_ARG_VALUE, .offset = 16, .align = 8}};
    struct sp_kernel_info info = {.name = "k", .num_args = 3, .args = arguments};
    unsigned prefetches = 0;
    char *message = NULL;
    sp_cc_text_format(&text,
                      "define void @k(ptr addrspace(1) %%p, ptr addrspace(1) %%q, i64 %%n) {\n"
                      "entry:\n"
                      "  %%x = call i64 @__sp_local_id_0()\n"
                      "%s"
                      "  br label %%body\n"
                      "body:\n"
                      "  %%i = phi i64 [ %%n, %%entry ], [ %%next, %%end ]\n"
                      "  call void @__sp_barrier()\n"
                      "  %%j = add i64 %%i, %%x\n"
                      "  %%a = getelementptr i32, ptr addrspace(1) %%p, i64 %%j\n"
                      "%s"
                      "  br label %%end\n"
                      "end:\n"
                      "  %%next = add i64 %%i, %%n\n"
                      "  %%more = icmp ult i64 %%next, 1000000\n"
                      "  br i1 %%more, label %%body, label %%out\n"
                      "out: ret void\n}\n",
                      before, turn);
    parse_ir(&parsed, declarations, text.bytes);
    assert_null(sp_wg_prepare(parsed.module, NULL));
    sp_wg_plan_init(&plan, parsed.function, form);
    sp_cc_layout_locals(parsed.module, parsed.function, &locals);
    struct sp_wg_environment env = {.module = parsed.module,
                                    .info = &info,
                                    .locals = &locals,
                                    .globals = &globals,
                                    .vector_bits = 512};
    LLVMValueRef function = sp_wg_emit(&plan, &env, "group", form == SP_WG_SCALAR ? NULL : size);
    sp_wg_plan_finish(&plan);
    LLVMDeleteFunction(parsed.function);
    if (LLVMVerifyModule(parsed.module, LLVMReturnStatusAction, &message))
        fail_msg("%s", message);
    LLVMDisposeMessage(message);
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
             value = LLVMGetNextInstruction(value))
            prefetches += sp_ir_is_intrinsic(value, "llvm.prefetch");
    sp_cc_layout_finish(&locals);
    discard_ir(&parsed);
    sp_cc_text_finish(&text);
    return prefetches;
}

static unsigned ahead(const char *turn)
{
    return count(SP_WG_VECTOR, "", turn);
}

#define LOAD "  %v = load i32, ptr addrspace(1) %a\n"
#define KEEP(value)                                                                                \
    "  %s = getelementptr i32, ptr addrspace(3) @v, i64 %x\n"                                      \
    "  store i32 " value ", ptr addrspace(3) %s\n"

static void test_what_a_turn_loads(void **state)
{
    (void)state;
    assert_int_equal(ahead(LOAD KEEP("%v")), 1);
    /* A second array; the same one again, which is near. */
    assert_int_equal(ahead(LOAD "  %b = getelementptr i32, ptr addrspace(1) %q, i64 %j\n"
                                "  %w = load i32, ptr addrspace(1) %b\n"
                                "  %u = add i32 %v, %w\n" KEEP("%u")),
                     2);
    assert_int_equal(ahead(LOAD "  %o = add i64 %j, 1\n"
                                "  %b = getelementptr i32, ptr addrspace(1) %p, i64 %o\n"
                                "  %w = load i32, ptr addrspace(1) %b\n"
                                "  %u = add i32 %v, %w\n" KEEP("%u")),
                     1);
    /* An index from memory is not known ahead. */
    assert_int_equal(ahead("  %v64 = load i64, ptr addrspace(1) %a\n"
                           "  %b = getelementptr i32, ptr addrspace(1) %q, i64 %v64\n"
                           "  %w = load i32, ptr addrspace(1) %b\n" KEEP("%w")),
                     1);
}

static void test_what_no_turn_loads_ahead(void **state)
{
    (void)state;
    /* Work-items one after the other have no turns in common. */
    assert_int_equal(count(SP_WG_SCALAR, "", LOAD KEEP("%v")), 0);
    /* Once only. */
    assert_int_equal(count(SP_WG_VECTOR,
                           "  %f = getelementptr i32, ptr addrspace(1) %p, i64 %x\n"
                           "  %v = load i32, ptr addrspace(1) %f\n" KEEP("%v"),
                           ""),
                     0);
    /* One for all, what is local, what may be passed by, and what may change at any time. */
    assert_int_equal(ahead("  %u = getelementptr i32, ptr addrspace(1) %p, i64 %i\n"
                           "  %v = load i32, ptr addrspace(1) %u\n" KEEP("%v")),
                     0);
    assert_int_equal(ahead("  %t = getelementptr i32, ptr addrspace(3) @v, i64 %j\n"
                           "  %v = load i32, ptr addrspace(3) %t\n" KEEP("%v")),
                     0);
    assert_int_equal(ahead("  %c = icmp ult i64 %x, 7\n"
                           "  br i1 %c, label %some, label %end\n"
                           "some:\n" LOAD KEEP("%v")),
                     0);
    assert_int_equal(ahead("  %v = load volatile i32, ptr addrspace(1) %a\n" KEEP("%v")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_turn_loads),
        cmocka_unit_test(test_what_no_turn_loads_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
