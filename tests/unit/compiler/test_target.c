/* What processor code is made for: SAMEPAGE_CPU's, if this one includes it. */
#include "compiler/cc/target.h"

#include <llvm-c/Core.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_level(const char *wanted, unsigned machine, unsigned expected, const char *says)
{
    struct sp_cc_text problem = {0};
    assert_int_equal(sp_cc_target_choose_level(wanted, machine, &problem), expected);
    if (expected)
        assert_null(problem.bytes);
    else
        assert_non_null(strstr(problem.bytes, says));
    sp_cc_text_finish(&problem);
}

static void test_levels(void **state)
{
    (void)state;
    check_level("x86-64-v2", 2, 2, NULL);
    check_level("x86-64-v3", 3, 3, NULL);
    check_level("x86-64-v4", 4, 4, NULL);
    check_level("x86-64-v2", 4, 2, NULL);
    check_level("x86-64-v3", 4, 3, NULL);
    check_level("x86-64-v2", 1, 0, "this processor has not");
    check_level("x86-64-v3", 2, 0, "SAMEPAGE_CPU is x86-64-v3, whose instructions");
    check_level("x86-64-v4", 3, 0, "this processor has not");
    check_level("x86-64-v5", 4, 0, "must be x86-64-v2");
    check_level("x86-64-v", 4, 0, "must be x86-64-v2");
    check_level("haswell", 4, 0, "SAMEPAGE_CPU is 'haswell'");
}

/* The machine of a process is chosen once, so this is the only test here that chooses one. */
static void test_machine_is_of_the_level(void **state)
{
    (void)state;
    if (sp_cc_target_machine_level() < 2)
        skip();
    setenv("SAMEPAGE_CPU", "x86-64-v2", 1);
    sp_cc_target_warm_up();
    assert_null(sp_cc_target_problem());
    assert_int_equal(sp_cc_target_vector_bits(), 128);
    LLVMTargetMachineRef machine = sp_cc_target_machine(true);
    char *cpu = LLVMGetTargetMachineCPU(machine);
    char *features = LLVMGetTargetMachineFeatureString(machine);
    assert_string_equal(cpu, "x86-64-v2");
    assert_null(strstr(features, "+avx"));
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    LLVMDisposeTargetMachine(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_machine_is_of_the_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
