/* Kernels of tens of thousands of blocks and variables: what is found out of them takes no memory
 * for each pair. */
#include "compiler/cc/workgroup/prepare.h"
#include "compiler/cc/workgroup/regions.h"
#include "ir_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

/* Work-items part and meet again this often, each time with a variable of its own: a bit for each
 * pair of block and variable would be 300 MB, and the blocks that each branch decides over as
 * much. */
#define PLACES 30000u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST_KIB (4l << 20) /* what was freed is kept */
#else
#define MOST_KIB (200l << 10)
#endif

static const char declarations[] = "declare i64 @__sp_local_id_0() memory(none)\n"
                                   "declare void @__sp_barrier() convergent\n";

static void add_place(struct sp_cc_text *text, const char *label, unsigned i)
{
    sp_cc_text_format(text,
                      "%s%u:\n"
                      "  %%r%u = load i32, ptr %%v%u\n"
                      "  %%c%u = icmp ugt i32 %%r%u, %u\n"
                      "  br i1 %%c%u, label %%t%u, label %%e%u\n"
                      "t%u:\n"
                      "  %%x%u = mul i32 %%r%u, 3\n"
                      "  store i32 %%x%u, ptr %%v%u\n"
                      "  br label %%b%u\n"
                      "e%u:\n"
                      "  store i32 %u, ptr %%v%u\n"
                      "  br label %%b%u\n",
                      label, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1, i + 1, i, i, i + 1,
                      i + 1);
}

/* @k goes through all places, with a barrier in the middle if wanted. */
static void make(struct parsed *parsed, bool has_barrier)
{
    struct sp_cc_text text = {0};
    sp_cc_text_format(&text, "define void @k(ptr %%p) {\nentry:\n");
    for (unsigned i = 0; i <= PLACES; i++)
        sp_cc_text_format(&text, "  %%v%u = alloca i32\n", i);
    sp_cc_text_format(&text, "  %%id = call i64 @__sp_local_id_0()\n"
                             "  %%id32 = trunc i64 %%id to i32\n"
                             "  store i32 %%id32, ptr %%v0\n"
                             "  br label %%b0\n");
    for (unsigned i = 0; i < PLACES; i++) {
        bool here = has_barrier && i == PLACES / 2;
        if (here)
            sp_cc_text_format(&text, "b%u:\n  call void @__sp_barrier()\n  br label %%m%u\n", i, i);
        add_place(&text, here ? "m" : "b", i);
    }
    sp_cc_text_format(&text,
                      "b%u:\n  %%r = load i32, ptr %%v%u\n  store i32 %%r, ptr %%p\n"
                      "  ret void\n}\n",
                      PLACES, PLACES);
    parse_ir(parsed, declarations, text.bytes);
    sp_cc_text_finish(&text);
}

static long peak_kib(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
}

static void test_one_region(void **state)
{
    struct parsed parsed;
    struct sp_wg_plan plan;
    (void)state;
    make(&parsed, false);
    long before = peak_kib();
    sp_wg_plan_init(&plan, parsed.function, SP_WG_SCALAR);
    assert_in_range(peak_kib() - before, 0, MOST_KIB);
    assert_int_equal(plan.analysis.graph.num_blocks, 3 * PLACES + 2);
    assert_int_equal(plan.num_regions, 1);
    assert_int_equal(plan.num_variables, PLACES + 1);
    assert_int_equal(sp_bits_count(&plan.analysis.uniformity.branches), PLACES);
    assert_int_equal(sp_bits_count(&plan.regions[0].touched), PLACES + 1);
    assert_int_equal(sp_bits_count(&plan.regions[0].exposed), 0);
    assert_int_equal(plan.item_bytes, 0);
    sp_wg_plan_finish(&plan);
    discard_ir(&parsed);
}

/* One variable is needed behind the barrier, by all work-items, which are together there. */
static void test_two_regions(void **state)
{
    struct parsed parsed;
    struct sp_wg_plan plan;
    (void)state;
    make(&parsed, true);
    long before = peak_kib();
    sp_wg_plan_init(&plan, parsed.function, SP_WG_SCALAR);
    assert_in_range(peak_kib() - before, 0, MOST_KIB);
    assert_int_equal(plan.num_regions, 2);
    assert_int_equal(sp_bits_count(&plan.regions[0].exposed), 0);
    assert_int_equal(sp_bits_count(&plan.regions[1].exposed), 1);
    assert_true(sp_bits_has(&plan.regions[1].exposed, PLACES / 2));
    assert_true(sp_bits_has(&plan.regions[0].defined, PLACES / 2));
    assert_true(sp_wg_is_stored(&plan.regions[0], PLACES / 2));
    assert_false(sp_wg_is_loaded(&plan.regions[0], PLACES / 2));
    assert_true(sp_wg_is_loaded(&plan.regions[1], PLACES / 2));
    assert_int_equal(plan.item_bytes, 4);
    sp_wg_plan_finish(&plan);
    discard_ir(&parsed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_region),
        cmocka_unit_test(test_two_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
