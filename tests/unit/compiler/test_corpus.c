/* Every kernel of corpus.cl, over NDRanges of many shapes, gives what the oracle gives: with the
 * local size known to the compiler (a few, or all with SAMEPAGE_TEST_ALL set), and with code for
 * any. Arguments: kernels to run instead of all. With SAMEPAGE_CPU, code for that processor;
 * skipped where this one is older. */
#include "harness.h"

#include "compiler/cc/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OUT_PER_ITEM 4
#define SKIPPED 77

static char **only;
static int only_count;
static unsigned wrong;

/* The first few are also run with their local size known; fewer for the other processors. */
#define KNOWN_RANGES 4
#define KNOWN_RANGES_OF_LEVEL 2

static const struct range ranges[] = {
    {1, {100, 1, 1}, {37, 1, 1}, {0, 0, 0}},    {1, {150, 1, 1}, {64, 1, 1}, {7, 0, 0}},
    {3, {6, 5, 7}, {4, 3, 2}, {1, 2, 3}},       {1, {5, 1, 1}, {1, 1, 1}, {0, 0, 0}},
    {1, {8, 1, 1}, {2, 1, 1}, {3, 0, 0}},       {1, {10, 1, 1}, {3, 1, 1}, {0, 0, 0}},
    {1, {48, 1, 1}, {16, 1, 1}, {0, 0, 0}},     {1, {256, 1, 1}, {256, 1, 1}, {0, 0, 0}},
    {1, {20, 1, 1}, {64, 1, 1}, {0, 0, 0}},     {2, {19, 9, 1}, {8, 4, 1}, {0, 2, 0}},
    {2, {3, 33, 1}, {1, 16, 1}, {0, 0, 0}},     {3, {2, 4, 32}, {2, 2, 16}, {0, 0, 0}},
    {1, {1024, 1, 1}, {1024, 1, 1}, {0, 0, 0}}, {3, {17, 3, 5}, {8, 2, 4}, {0, 9, 1}},
};

struct arguments {
    const int32_t *in;
    int32_t *out;
    uint32_t n, padding;
    uint64_t local_bytes;
};

static bool is_chosen(const char *name)
{
    for (int i = 0; i < only_count; i++)
        if (!strcmp(only[i], name))
            return true;
    return !only_count;
}

static void compare(const struct program *program, const struct object *object,
                    const struct object *oracle, const struct range *range, const char *form)
{
    size_t items = range->global[0] * range->global[1] * range->global[2];
    size_t in_items = items < 64 ? 64 : items, count = items * OUT_PER_ITEM;
    int32_t *in = sp_cc_allocate(in_items * sizeof(*in));
    int32_t *expected = sp_cc_allocate(count * sizeof(*expected));
    int32_t *got = sp_cc_allocate(count * sizeof(*got));
    for (size_t i = 0; i < in_items; i++)
        in[i] = (int32_t)((i * 2654435761u >> 7) % 211 + i % 3);
    for (uint32_t k = 0; k < program->info.num_kernels; k++)
        for (uint32_t n = 2; n <= 5; n += 3) {
            const char *name = program->info.kernels[k].name;
            struct arguments args = {in, expected, n, 0, 1024 * sizeof(int32_t)};
            if (!is_chosen(name))
                continue;
            memset(expected, 0, count * sizeof(*expected));
            memset(got, 0, count * sizeof(*got));
            run_oracle(oracle, program, name, range, &args);
            args.out = got;
            run_object(object, program, name, range, &args, NULL);
            for (size_t i = 0; i < count; i++)
                if (expected[i] != got[i]) {
                    print_error("%s, %s, n %u, local %u %u %u: out[%zu] is %d, not %d\n", name,
                                form, n, (unsigned)range->local[0], (unsigned)range->local[1],
                                (unsigned)range->local[2], i, got[i], expected[i]);
                    wrong++;
                    break;
                }
        }
    free(in);
    free(expected);
    free(got);
}

/* Code for a level of x86-64 has that level's vectors and no wider ones; -1 where this processor
 * has it not. */
static int lanes_of_level(const char *level)
{
    struct sp_cc_text ignored = {0};
    unsigned chosen = sp_cc_target_choose_level(level, sp_cc_target_machine_level(), &ignored);
    sp_cc_text_finish(&ignored);
    return chosen ? 1 << chosen : -1;
}

static void check_lanes(const struct program *program, const struct object *object)
{
    const char *level = getenv("SAMEPAGE_CPU");
    for (uint32_t k = 0; level && k < program->info.num_kernels; k++)
        assert_int_equal(object->codes[k].preferred_multiple, lanes_of_level(level));
}

static void test_corpus(void **state)
{
    static const char *const options[] = {"-cl-std=CL3.0", "-w", NULL};
    char *source = read_text(SP_TEST_FOLDER "/corpus.cl");
    struct program program;
    struct object oracle, any, known;
    size_t num_known = getenv("SAMEPAGE_CPU") ? KNOWN_RANGES_OF_LEVEL : KNOWN_RANGES;
    (void)state;
    program_init(&program, source, options);
    oracle_init(&oracle, &program);
    object_init(&any, &program, NULL, NULL);
    check_lanes(&program, &any);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        compare(&program, &any, &oracle, &ranges[i], "any size");
        if (i >= num_known && !getenv("SAMEPAGE_TEST_ALL"))
            continue;
        object_init(&known, &program, ranges[i].local, NULL);
        compare(&program, &known, &oracle, &ranges[i], "known size");
        object_finish(&known);
    }
    object_finish(&any);
    object_finish(&oracle);
    program_finish(&program);
    free(source);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpus)};
    only = argv + 1;
    only_count = argc - 1;
    if (getenv("SAMEPAGE_CPU") && lanes_of_level(getenv("SAMEPAGE_CPU")) < 0)
        return SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
