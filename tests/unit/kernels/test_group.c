/* Builtins that know of a work-group: each work-item is a thread here (harness.h). */
#include "harness.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct harness *harness;

static int set_up(void **state)
{
    (void)state;
    harness = harness_create(SP_TEST_BITCODE, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    harness_destroy(harness);
    return 0;
}

static void work_item_functions(void **state)
{
    (void)state;
    const struct harness_work_item item = {
        .work_dim = 2,
        .local_id = {3, 1, 0},
        .group_id = {2, 5, 0},
        .local_size = {4, 2, 1},
        .enqueued_local_size = {8, 2, 1},
        .global_size = {20, 12, 1},
        .global_offset = {100, 7, 0},
        .num_groups = {3, 6, 1},
    };
    harness_set_work_item(&item);
    uint64_t r[48];
    ((void (*)(uint64_t *))harness_function(harness, "work_item"))(r);
    for (size_t d = 0; d < 3; d++) {
        assert_int_equal(r[9 * d], item.group_id[d] * item.enqueued_local_size[d] +
                                       item.local_id[d] + item.global_offset[d]);
        assert_int_equal(r[9 * d + 1], item.global_size[d]);
        assert_int_equal(r[9 * d + 2], item.global_offset[d]);
        assert_int_equal(r[9 * d + 3], item.local_id[d]);
        assert_int_equal(r[9 * d + 4], item.local_size[d]);
        assert_int_equal(r[9 * d + 5], item.enqueued_local_size[d]);
        assert_int_equal(r[9 * d + 6], item.group_id[d]);
        assert_int_equal(r[9 * d + 7], item.num_groups[d]);
    }
    static const uint64_t outside[8] = {0, 1, 0, 0, 1, 1, 0, 1};
    for (size_t d = 3; d < 5; d++)
        assert_memory_equal(&r[9 * d], outside, sizeof(outside));
    assert_int_equal(r[45], 2);
    assert_int_equal(r[46], (5 * 2 + 1) * 20 + 2 * 8 + 3);
    assert_int_equal(r[47], 1 * 4 + 3);
}

/* A group of 5 x 3 x 2 at the edge of an NDRange whose groups are larger. */
static const struct harness_work_item group = {
    .work_dim = 3,
    .local_size = {5, 3, 2},
    .enqueued_local_size = {8, 4, 2},
    .global_size = {5, 3, 2},
    .num_groups = {1, 1, 1},
};
#define ITEMS 30

typedef void group_fn(void *, void *, void *);
struct call {
    group_fn *function;
    void *x, *r, *local;
};

static group_fn *function(const char *name)
{
    return (group_fn *)harness_function(harness, name);
}

static void run_call(void *argument)
{
    struct call *call = argument;
    call->function(call->x, call->r, call->local);
}

#define CHECK_COLLECTIVES(T, type, lowest, highest)                                                \
    {                                                                                              \
        T x[ITEMS], r[13 * ITEMS], sum = 0, least = highest, most = lowest;                        \
        for (int i = 0; i < ITEMS; i++)                                                            \
            x[i] = (T)((i * 37 + 11) % 23 + 1);                                                    \
        struct call call = {function("collectives_" type), x, r, NULL};                            \
        harness_run_group(&group, run_call, &call);                                                \
        for (int i = 0; i < ITEMS; i++) {                                                          \
            T *got = r + 13 * i;                                                                   \
            assert_true(got[6] == sum && got[7] == least && got[8] == most);                       \
            sum += x[i];                                                                           \
            least = x[i] < least ? x[i] : least;                                                   \
            most = x[i] > most ? x[i] : most;                                                      \
            assert_true(got[3] == sum && got[4] == least && got[5] == most);                       \
            assert_true(got[9] == x[7] && got[10] == 0 && got[11] == 1 && got[12] == 1);           \
        }                                                                                          \
        for (int i = 0; i < ITEMS; i++)                                                            \
            assert_true(r[13 * i] == sum && r[13 * i + 1] == least && r[13 * i + 2] == most);      \
    }

static void collectives(void **state)
{
    (void)state;
    CHECK_COLLECTIVES(int32_t, "int", INT_MIN, INT_MAX)
    CHECK_COLLECTIVES(uint32_t, "uint", 0, UINT_MAX)
    CHECK_COLLECTIVES(int64_t, "long", INT64_MIN, INT64_MAX)
    CHECK_COLLECTIVES(uint64_t, "ulong", 0, UINT64_MAX)
    CHECK_COLLECTIVES(float, "float", -INFINITY, INFINITY)
    CHECK_COLLECTIVES(double, "double", (double)-INFINITY, (double)INFINITY)
}

static void async_copies(void **state)
{
    (void)state;
    static int x[100], r[300], local[300];
    for (int i = 0; i < 100; i++)
        x[i] = i * i + 1;
    struct call call = {function("async"), x, r, local};
    harness_run_group(&group, run_call, &call);
    for (int i = 0; i < 100; i++)
        assert_int_equal(r[i], x[i]);
    for (int i = 0; i < 20; i++)
        assert_int_equal(r[100 + i], x[5 * i]);
    for (int i = 0; i < 5;
         i++) /* what the first five work-items read; copied up to the group's x size */
        assert_int_equal(r[120 + i], x[i + 1]);
    for (int i = 0; i < 10; i++)
        assert_int_equal(r[200 + 3 * i], x[i]);
    assert_int_equal(r[201], 0);

    _Alignas(16) static float x3[40], r3[40], local3[40];
    for (int i = 0; i < 40; i++)
        x3[i] = (float)i;
    call = (struct call){function("async3"), x3, r3, local3};
    harness_run_group(&group, run_call, &call);
    assert_memory_equal(x3, r3, sizeof(x3));
}

static void fences(void **state)
{
    (void)state;
    struct call call = {function("fences"), NULL, NULL, NULL};
    harness_run_group(&group, run_call, &call);
}

static void pointers_know_their_address_space(void **state)
{
    (void)state;
    int (*address_space)(void *) = (int (*)(void *))harness_function(harness, "address_space");
    int global = 0, private = 0;
    harness_private = &private;
    assert_int_equal(address_space(&global), 1 | 2 << 4);
    assert_int_equal(address_space(harness_group_scratch()), 2 | 1 << 4);
    assert_int_equal(address_space(&private), 4 | 0 << 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_item_functions),
        cmocka_unit_test(collectives),
        cmocka_unit_test(async_copies),
        cmocka_unit_test(fences),
        cmocka_unit_test(pointers_know_their_address_space),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
