/* svm/heap and svm/window: regions never overlap, are found by every address in them, are aligned,
 * and never show one arena's data to another. */
#include <stdlib.h>
#include <string.h>

#include "svm/atomic_part.h"
#include "svm/heap.h"
#include "util/thread.h"
#include "unit.h"

static int set_up_window(void **state)
{
    (void)state;
    return sp_window_init();
}

static struct sp_arena *new_arena(void)
{
    struct sp_arena *arena = NULL;
    assert_int_equal(sp_arena_create(false, &arena), 0);
    return arena;
}

static void regions_lie_in_the_window(void **state)
{
    (void)state;
    uintptr_t start;
    size_t bytes;
    struct sp_arena *arena = new_arena();
    sp_window_range(&start, &bytes);
    assert_true(start % SP_GRANULE_BYTES == 0);
    void *small = sp_arena_alloc(arena, 1, 0, 0, SP_PATH_PRIVATE),
         *large = sp_arena_alloc(arena, 10 << 20, 0, 0, SP_PATH_PRIVATE);
    assert_true(sp_window_holds_range(start, bytes, (uintptr_t)small));
    assert_true(sp_window_holds_range(start, bytes, (uintptr_t)large));
    int on_stack;
    assert_false(sp_window_holds_range(start, bytes, (uintptr_t)&on_stack));
    sp_arena_destroy(arena);
}

static void wrong_sizes_and_alignments_give_null(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    assert_null(sp_arena_alloc(arena, 0, 0, 0, SP_PATH_PRIVATE));
    assert_null(sp_arena_alloc(arena, SIZE_MAX, 0, 0, SP_PATH_PRIVATE));
    assert_null(sp_arena_alloc(arena, SIZE_MAX - SP_GRANULE_BYTES, 0, 0, SP_PATH_PRIVATE));
    assert_null(sp_arena_alloc(arena, (size_t)1 << 60, 0, 0, SP_PATH_PRIVATE));
    assert_null(sp_arena_alloc(arena, 1, SP_MAX_ALIGNMENT * 2, 0, SP_PATH_PRIVATE));
    sp_arena_destroy(arena);
}

static void every_alignment_is_kept(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    static const size_t sizes[] = {1, 127, 128, 129, 4095, 4097, 100000, 600000, 3000000};
    for (size_t alignment = 1; alignment <= SP_MAX_ALIGNMENT; alignment *= 2)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            uintptr_t start =
                (uintptr_t)sp_arena_alloc(arena, sizes[i], alignment, 0, SP_PATH_PRIVATE);
            assert_true(start != 0);
            assert_int_equal(start % alignment, 0);
            assert_int_equal(start % SP_MIN_ALIGNMENT, 0);
        }
    sp_arena_destroy(arena);
}

static void regions_are_found_by_interior_addresses(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    struct sp_region_info info;
    static const size_t sizes[] = {1, 100, 4096, 5000, 524288, 524289, 7 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *start = sp_arena_alloc(arena, sizes[i], 0, 40 + i, SP_PATH_PRIVATE);
        assert_non_null(start);
        size_t offsets[] = {0, sizes[i] / 2, sizes[i] - 1};
        for (int k = 0; k < 3; k++) {
            assert_true(sp_region_find(start + offsets[k], &info));
            assert_ptr_equal(info.start, start);
            assert_int_equal(info.bytes, sizes[i]);
            assert_int_equal(info.flags, 40 + i);
            assert_ptr_equal(info.arena, arena);
        }
        assert_false(sp_region_find(start + sizes[i], &info));
        assert_int_equal(sp_arena_free(arena, start), 0);
        assert_false(sp_region_find(start, &info));
    }
    assert_false(sp_region_find(&info, &info));
    assert_false(sp_region_find(NULL, &info));
    sp_arena_destroy(arena);
}

static void only_a_start_can_be_freed_and_once(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena(), *other = new_arena();
    static const size_t sizes[] = {4096, 8 << 20};
    for (int i = 0; i < 2; i++) {
        unsigned char *start = sp_arena_alloc(arena, sizes[i], 0, 0, SP_PATH_PRIVATE);
        assert_int_equal(sp_arena_free(arena, start + 128), -22);
        assert_int_equal(sp_arena_free(other, start), -22);
        assert_int_equal(sp_arena_free(arena, start), 0);
        assert_int_equal(sp_arena_free(arena, start), -22);
    }
    assert_int_equal(sp_arena_free(arena, &arena), -22);
    sp_arena_destroy(arena);
    sp_arena_destroy(other);
}

static int is_zero(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return 0;
    return 1;
}

/* Fills regions of one arena, ends it, and looks for its bytes in the next one, which gets the
 * same addresses. */
static void another_arena_sees_zeroes(void **state)
{
    (void)state;
    enum { COUNT = 300, SMALL = 4000, LARGE = 5 << 20 };
    struct sp_arena *first = new_arena();
    unsigned char *addresses[COUNT];
    for (int i = 0; i < COUNT; i++) {
        addresses[i] = sp_arena_alloc(first, SMALL, 0, 0, SP_PATH_PRIVATE);
        memset(addresses[i], 0xa5, SMALL);
        if (i % 3 == 0)
            sp_arena_free(first, addresses[i]);
    }
    unsigned char *large = sp_arena_alloc(first, LARGE, 0, 0, SP_PATH_PRIVATE);
    memset(large, 0xa5, LARGE);
    sp_arena_destroy(first);

    struct sp_arena *second = new_arena();
    int reused = 0;
    for (int i = 0; i < COUNT; i++) {
        unsigned char *start = sp_arena_alloc(second, SMALL, 0, 0, SP_PATH_PRIVATE);
        for (int k = 0; k < COUNT; k++)
            reused += start == addresses[k];
        assert_true(is_zero(start, SMALL));
    }
    assert_true(reused > 0); /* else this test shows nothing */
    assert_true(is_zero(sp_arena_alloc(second, LARGE, 0, 0, SP_PATH_PRIVATE), LARGE));
    sp_arena_destroy(second);
}

/* Random allocation and freeing against a list of what should be there. */
static void random_use_keeps_contents(void **state)
{
    (void)state;
    enum { SLOTS = 3000, STEPS = 200000 };
    struct slot {
        unsigned char *start, mark;
        size_t bytes;
    } *slots = calloc(SLOTS, sizeof *slots);
    struct sp_arena *arenas[2] = {new_arena(), new_arena()};
    unsigned seed = 20261129;
    assert_non_null(slots);
    for (int step = 0; step < STEPS; step++) {
        int i = rand_r(&seed) % SLOTS;
        struct slot *slot = &slots[i];
        struct sp_arena *arena = arenas[i % 2];
        if (slot->start) {
            struct sp_region_info info;
            assert_true(sp_region_find(slot->start + (unsigned)rand_r(&seed) % slot->bytes, &info));
            assert_ptr_equal(info.start, slot->start);
            assert_ptr_equal(info.arena, arena);
            assert_int_equal(slot->start[0], slot->mark);
            assert_int_equal(slot->start[slot->bytes - 1], slot->mark);
            assert_int_equal(sp_arena_free(arena, slot->start), 0);
            slot->start = NULL;
        } else {
            int is_large = rand_r(&seed) % 100 == 0;
            slot->bytes = 1 + (unsigned)rand_r(&seed) % (is_large ? 4000000u : 6000u);
            slot->mark = (unsigned char)step;
            slot->start = sp_arena_alloc(arena, slot->bytes, 0, 0, SP_PATH_PRIVATE);
            assert_non_null(slot->start);
            slot->start[0] = slot->start[slot->bytes - 1] = slot->mark;
        }
    }
    sp_arena_destroy(arenas[0]);
    sp_arena_destroy(arenas[1]);
    free(slots);
}

static void a_region_can_be_larger_than_4_gib(void **state)
{
    (void)state;
    struct sp_arena *arena = new_arena();
    size_t bytes = ((size_t)5 << 30) + 4096;
    unsigned char *start = sp_arena_alloc(arena, bytes, 0, 0, SP_PATH_PRIVATE);
    assert_non_null(start);
    start[0] = 1;
    start[bytes - 1] = 2;
    struct sp_region_info info;
    assert_true(sp_region_find(start + bytes - 1, &info));
    assert_int_equal(info.bytes, bytes);
    sp_arena_destroy(arena);
}

/* --- The part for atomics of all agents ----------------------------------------------------------
 */

static bool is_in_atomic_part(const void *address)
{
    uintptr_t start;
    size_t bytes;
    sp_atomic_part(&start, &bytes);
    return (uintptr_t)address - start < bytes;
}

static struct sp_arena *new_shared_arena(void)
{
    struct sp_arena *arena = NULL;
    assert_int_equal(sp_arena_create(true, &arena), 0);
    return arena;
}

/* Those regions and no others, small and large; and what is freed there comes back there. */
static void atomic_regions_have_a_part_of_their_own(void **state)
{
    (void)state;
    static const size_t sizes[] = {4, 1000, 100000, 3000000, 300 << 20};
    struct sp_arena *arena = new_shared_arena();
    assert_false(sp_atomic_part_is_used());
    for (int round = 0; round < 3; round++) {
        void *regions[3][5];
        for (size_t i = 0; i < 5; i++)
            for (int path = 0; path < 3; path++) {
                regions[path][i] = sp_arena_alloc(arena, sizes[i], 0, 0, (enum sp_path)path);
                assert_non_null(regions[path][i]);
                assert_int_equal(is_in_atomic_part(regions[path][i]), path == SP_PATH_ATOMIC);
                assert_int_equal(is_in_atomic_part((char *)regions[path][i] + sizes[i] - 1),
                                 path == SP_PATH_ATOMIC);
            }
        assert_true(sp_atomic_part_is_used());
        for (size_t i = 0; i < 5; i++)
            for (int path = 0; path < 3; path++)
                assert_int_equal(sp_arena_free(arena, regions[path][i]), 0);
    }
    sp_arena_destroy(arena);
    assert_false(sp_atomic_part_is_used());
}

/* Neither takes room of the other, and they do not grow together where they touch. */
static void the_parts_stay_apart(void **state)
{
    (void)state;
    uintptr_t window, part;
    size_t window_bytes, part_bytes;
    struct sp_arena *arena = new_shared_arena();
    sp_window_range(&window, &window_bytes);
    sp_atomic_part(&part, &part_bytes);
    assert_int_equal(part + part_bytes, window + window_bytes);
    assert_true(part_bytes >= window_bytes / 17);
    for (int round = 0; round < 2; round++) {
        void *ordinary = sp_arena_alloc(arena, part - window, 0, 0, SP_PATH_HOME);
        assert_int_equal((uintptr_t)ordinary, window);
        void *atomic = sp_arena_alloc(arena, part_bytes, 0, 0, SP_PATH_ATOMIC);
        assert_int_equal((uintptr_t)atomic, part);
        assert_null(sp_arena_alloc(arena, 1, 0, 0, SP_PATH_ATOMIC));
        assert_null(sp_arena_alloc(arena, 1, 0, 0, SP_PATH_HOME));
        assert_int_equal(sp_arena_free(arena, round ? ordinary : atomic), 0);
        assert_int_equal(sp_arena_free(arena, round ? atomic : ordinary), 0);
        assert_null(sp_arena_alloc(arena, part - window + 1, 0, 0, SP_PATH_HOME));
        assert_null(sp_arena_alloc(arena, part_bytes + 1, 0, 0, SP_PATH_ATOMIC));
    }
    sp_arena_destroy(arena);
}

static void marks_say_who_has_bound_what(void **state)
{
    (void)state;
    uintptr_t part;
    size_t bytes;
    sp_atomic_part(&part, &bytes);
    sp_atomic_mark(part + SP_GRANULE_BYTES, 2 * SP_GRANULE_BYTES, 3);
    sp_atomic_mark(part + 2 * SP_GRANULE_BYTES, SP_GRANULE_BYTES, 15);
    sp_atomic_mark(part - SP_GRANULE_BYTES, SP_GRANULE_BYTES, 3); /* nobody's business */
    assert_false(sp_atomic_is_bound(part - 1, 3));
    assert_false(sp_atomic_is_bound(part + SP_GRANULE_BYTES - 1, 3));
    assert_true(sp_atomic_is_bound(part + SP_GRANULE_BYTES, 3));
    assert_true(sp_atomic_is_bound(part + 3 * SP_GRANULE_BYTES - 1, 3));
    assert_false(sp_atomic_is_bound(part + 3 * SP_GRANULE_BYTES, 3));
    assert_false(sp_atomic_is_bound(part + SP_GRANULE_BYTES, 15));
    assert_false(sp_atomic_is_bound(0, 3));
    assert_false(sp_atomic_is_bound(part + bytes, 3));
    sp_atomic_unmark(part + 2 * SP_GRANULE_BYTES, SP_GRANULE_BYTES, 3);
    assert_false(sp_atomic_is_bound(part + 2 * SP_GRANULE_BYTES, 3));
    assert_true(sp_atomic_is_bound(part + 2 * SP_GRANULE_BYTES, 15));
    sp_atomic_unmark(part + SP_GRANULE_BYTES, 2 * SP_GRANULE_BYTES, 3);
    sp_atomic_unmark(part + 2 * SP_GRANULE_BYTES, SP_GRANULE_BYTES, 15);
    assert_false(sp_atomic_is_bound(part + 2 * SP_GRANULE_BYTES, 15));
}

static struct sp_atomic_visitor visitor;
static atomic_bool is_unmarked;

static void *take_mark_off(void *unused)
{
    uintptr_t part;
    size_t bytes;
    (void)unused;
    sp_atomic_part(&part, &bytes);
    sp_atomic_unmark(part, SP_GRANULE_BYTES, 1);
    atomic_store(&is_unmarked, true);
    return NULL;
}

/* Who takes memory away waits until nobody is inside; who comes after finds it gone. */
static void a_mark_outlasts_its_visitors(void **state)
{
    (void)state;
    uintptr_t part;
    size_t bytes;
    sp_atomic_part(&part, &bytes);
    sp_atomic_visitor_add(&visitor);
    sp_atomic_mark(part, SP_GRANULE_BYTES, 1);
    sp_atomic_enter(&visitor);
    assert_true(sp_atomic_is_bound(part, 1));
    assert_int_equal(sp_thread_start_detached(take_mark_off, NULL, 0), 0);
    while (sp_atomic_is_bound(part, 1))
        sched_yield();
    for (int i = 0; i < 1000; i++)
        sched_yield();
    assert_false(atomic_load(&is_unmarked));
    sp_atomic_leave(&visitor);
    while (!atomic_load(&is_unmarked))
        sched_yield();
    sp_atomic_enter(&visitor);
    assert_false(sp_atomic_is_bound(part, 1));
    sp_atomic_leave(&visitor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_lie_in_the_window),
        cmocka_unit_test(wrong_sizes_and_alignments_give_null),
        cmocka_unit_test(every_alignment_is_kept),
        cmocka_unit_test(regions_are_found_by_interior_addresses),
        cmocka_unit_test(only_a_start_can_be_freed_and_once),
        cmocka_unit_test(another_arena_sees_zeroes),
        cmocka_unit_test(random_use_keeps_contents),
        cmocka_unit_test(a_region_can_be_larger_than_4_gib),
        cmocka_unit_test(atomic_regions_have_a_part_of_their_own),
        cmocka_unit_test(the_parts_stay_apart),
        cmocka_unit_test(marks_say_who_has_bound_what),
        cmocka_unit_test(a_mark_outlasts_its_visitors),
    };
    return cmocka_run_group_tests(tests, set_up_window, NULL);
}
