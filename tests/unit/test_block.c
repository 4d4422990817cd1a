/* util/block: blocks come zeroed, belong to one owner at a time whatever threads take and free
 * them, and count as allocations. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "util/alloc.h"
#include "util/block.h"

enum { THREADS = 4, ROUNDS = 300000, SLOTS = 64, BYTES = 200, LARGE = 5000 };

static bool is_zero(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

static void comes_zeroed_again(void **state)
{
    (void)state;
    for (size_t size = 8; size <= LARGE; size += 499) {
        for (int round = 0; round < 3; round++) {
            unsigned char *block = sp_block_alloc(size);
            assert_non_null(block);
            assert_true(is_zero(block, size));
            memset(block, 0xa5, size);
            sp_block_free(block, size);
        }
    }
    sp_block_free(NULL, 8);
}

static void fails_when_memory_does(void **state)
{
    (void)state;
    sp_block_free(sp_block_alloc(BYTES), BYTES); /* one is there to be taken */
    sp_alloc_fail_at(1);
    assert_null(sp_block_alloc(BYTES));
    void *block = sp_block_alloc(BYTES);
    assert_non_null(block);
    sp_block_free(block, BYTES);
    sp_alloc_fail_at(0);
}

/* Blocks wander between threads through the slots: each is taken by one thread and freed by
 * another. */
static _Atomic(void *) slots[SLOTS];
static atomic_uint wrong;

static void *wander(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t *mine = sp_block_alloc(BYTES);
        if (!mine || !is_zero((unsigned char *)mine, BYTES)) {
            atomic_fetch_add(&wrong, 1);
            continue;
        }
        for (size_t w = 0; w < BYTES / sizeof *mine; w++)
            mine[w] = (uintptr_t)mine;
        uint64_t *other = atomic_exchange(&slots[rand_r(&seed) % SLOTS], mine);
        for (size_t w = 0; other && w < BYTES / sizeof *other; w++)
            if (other[w] != (uintptr_t)other)
                atomic_fetch_add(&wrong, 1);
        sp_block_free(other, BYTES);
    }
    return NULL;
}

static void has_one_owner(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wander, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    for (int i = 0; i < SLOTS; i++)
        sp_block_free(slots[i], BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_zeroed_again),
        cmocka_unit_test(fails_when_memory_does),
        cmocka_unit_test(has_one_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
