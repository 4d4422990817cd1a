/* device/cpu/nodes and pieces on machines that are not this one: libnuma's answers are the test's.
 * Threads are divided as processors are, every place takes from its own share first and then from
 * those of its node, less at a time towards the end; no two threads begin with one share; each
 * piece is taken once whoever comes, and without memory for shares there is one counter. */
#include <numa.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "unit.h"
#include "util/alloc.h"

enum { MAX_NODES = 4, PIECES = 100003, CHUNK = 7, LEAST = 2, THREADS = 6 };

/* The machine: nodes of so many processors, in turns (0, 1, 0, 1, ... while a node has some left),
 * as threads of cores often are. */
static struct {
    int count; /* -1: there is no NUMA */
    unsigned processors[MAX_NODES];
} machine;

static int node_of(unsigned cpu)
{
    unsigned given[MAX_NODES] = {0}, next = 0;
    for (;;) {
        unsigned before = next;
        for (int node = 0; node < machine.count; node++)
            if (given[node] < machine.processors[node]) {
                given[node]++;
                if (next++ == cpu)
                    return node;
            }
        if (next == before)
            return -1;
    }
}

int numa_available(void)
{
    return machine.count < 0 ? -1 : 0;
}

int numa_max_node(void)
{
    return machine.count - 1;
}

struct bitmask *numa_allocate_cpumask(void)
{
    struct bitmask *mask = calloc(1, sizeof *mask);
    assert_non_null(mask);
    mask->size = 1024;
    mask->maskp = calloc(mask->size / 8 / sizeof *mask->maskp, sizeof *mask->maskp);
    return mask;
}

void numa_bitmask_free(struct bitmask *mask)
{
    free(mask->maskp);
    free(mask);
}

int numa_node_to_cpus(int node, struct bitmask *mask)
{
    const unsigned bits = 8 * sizeof *mask->maskp;
    memset(mask->maskp, 0, mask->size / 8);
    for (unsigned cpu = 0; cpu < mask->size && node_of(cpu) >= 0; cpu++)
        if (node_of(cpu) == node)
            mask->maskp[cpu / bits] |= 1ul << cpu % bits;
    return 0;
}

int numa_bitmask_isbitset(const struct bitmask *mask, unsigned cpu)
{
    const unsigned bits = 8 * sizeof *mask->maskp;
    return mask->maskp[cpu / bits] >> cpu % bits & 1;
}

/* A machine whose process may use the processors from `first` on. */
static void set_machine(int count, const unsigned *processors, unsigned first)
{
    cpu_set_t usable;
    unsigned all = 0;
    machine.count = count;
    for (int node = 0; node < count; node++)
        all += machine.processors[node] = processors[node];
    CPU_ZERO(&usable);
    for (unsigned cpu = first; cpu < (count < 0 ? 8 : all); cpu++)
        CPU_SET(cpu, &usable);
    sp_cpu_nodes_init(&usable);
}

static void nodes_have_their_processors(void **state)
{
    (void)state;
    set_machine(-1, NULL, 0);
    assert_int_equal(sp_cpu_num_nodes(), 1);
    assert_int_equal(CPU_COUNT(sp_cpu_node_processors(0)), 8);
    set_machine(2, (const unsigned[]){4, 4}, 0);
    assert_int_equal(sp_cpu_num_nodes(), 2);
    assert_int_equal(CPU_COUNT(sp_cpu_node_processors(1)), 4);
    assert_true(CPU_ISSET(1, sp_cpu_node_processors(1)));
    assert_false(CPU_ISSET(2, sp_cpu_node_processors(1)));
    /* A node without processors (memory alone), and one whose processors the process may not use,
     * are none. */
    set_machine(3, (const unsigned[]){3, 0, 5}, 0);
    assert_int_equal(sp_cpu_num_nodes(), 2);
    assert_int_equal(CPU_COUNT(sp_cpu_node_processors(1)), 5);
    set_machine(2, (const unsigned[]){1, 4}, 1);
    assert_int_equal(sp_cpu_num_nodes(), 1);
    assert_int_equal(CPU_COUNT(sp_cpu_node_processors(0)), 4);
}

static void threads_are_divided_as_processors_are(void **state)
{
    (void)state;
    static const unsigned machines[][3] = {{4, 4, 0}, {1, 1, 1}, {6, 2, 4}, {1, 7, 0}};
    for (unsigned m = 0; m < 4; m++) {
        unsigned threads[3] = {0}, all = 0;
        set_machine(3, machines[m], 0);
        for (unsigned node = 0; node < 3; node++)
            all += machines[m][node];
        for (unsigned i = 0; i < all; i++)
            threads[sp_cpu_node_of_thread(i, all)]++;
        for (unsigned node = 0; node < sp_cpu_num_nodes(); node++)
            assert_int_equal(threads[node], machines[m][node]);
    }
}

static void places_are_numbered_by_node(void **state)
{
    (void)state;
    set_machine(2, (const unsigned[]){3, 2}, 0);
    assert_int_equal(sp_cpu_num_places(), 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(sp_cpu_place(i)->processors, 1);
        assert_int_equal(sp_cpu_place(i)->first_of_node, i < 3 ? 0 : 3);
        assert_int_equal(sp_cpu_place(i)->end_of_node, i < 3 ? 3 : 5);
    }
    assert_true(sp_cpu_place_here() < 5);
    /* Of many processors some share a place, but none of two nodes. */
    set_machine(2, (const unsigned[]){SP_CPU_MAX_PLACES + 1, SP_CPU_MAX_PLACES - 2}, 0);
    assert_int_equal(sp_cpu_num_places(), SP_CPU_MAX_PLACES);
    set_machine(2, (const unsigned[]){SP_CPU_MAX_PLACES + 1, SP_CPU_MAX_PLACES - 1}, 0);
    assert_int_equal(sp_cpu_num_places(), SP_CPU_MAX_PLACES + 1);
    unsigned last = SP_CPU_MAX_PLACES / 2; /* of node 0: what is left of it */
    assert_int_equal(sp_cpu_place(last)->processors, 1);
    assert_int_equal(sp_cpu_place(last)->end_of_node, last + 1);
    assert_int_equal(sp_cpu_place(last + 1)->processors, 2);
}

static struct cpu_device device;

static void init_work(struct sp_work *work, uint64_t pieces)
{
    memset(work, 0, sizeof *work);
    work->driver.device = &device.device;
    work->driver.parts = pieces;
    work->driver.chunk = CHUNK;
    work->driver.least = LEAST;
    sp_cpu_pieces_init(work);
}

static void own_share_comes_first(void **state)
{
    (void)state;
    struct sp_work work;
    struct sp_cpu_pieces taken;
    set_machine(3, (const unsigned[]){1, 2, 1}, 0);
    init_work(&work, 400);
    unsigned begun = 0;
    /* The second place of node 1, the first, then node 2's and node 0's. */
    static const uint64_t shares[] = {200, 100, 300, 0};
    for (unsigned s = 0; s < 4; s++)
        for (uint64_t next = shares[s]; next < shares[s] + 100; next = taken.end) {
            assert_true(sp_cpu_pieces_left(&work));
            assert_true(sp_cpu_pieces_take(&work, 2, &taken));
            assert_int_equal(taken.first, next);
            uint64_t left = shares[s] + 100 - next, fourth = left / 4;
            uint64_t expected = fourth > CHUNK ? CHUNK : fourth < LEAST ? LEAST : fourth;
            assert_int_equal(taken.end - next, expected > left ? left : expected);
            begun += taken.is_begin;
        }
    assert_int_equal(begun, 1);
    assert_false(sp_cpu_pieces_left(&work));
    assert_false(sp_cpu_pieces_take(&work, 2, &taken));
    sp_cpu_pieces_finish(&work);
}

/* Threads that were on one processor when they came have shares of their own, near ones first. */
static void no_two_threads_begin_with_one_share(void **state)
{
    (void)state;
    struct sp_work work;
    set_machine(2, (const unsigned[]){1, 3}, 0);
    init_work(&work, 400);
    static const unsigned expected[] = {2, 3, 1, 0, 2};
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(sp_cpu_pieces_claim(&work, 2), expected[i]);
    sp_cpu_pieces_finish(&work);
}

/* Bytes of a copy are pieces, too. */
static void large_counts_do_not_overflow(void **state)
{
    (void)state;
    struct sp_work work;
    struct sp_cpu_pieces taken;
    set_machine(2, (const unsigned[]){100, 156}, 0);
    init_work(&work, UINT64_C(1) << 60);
    assert_true(sp_cpu_pieces_take(&work, 50, &taken));
    assert_int_equal(taken.first, (UINT64_C(1) << 52) * 100);
    sp_cpu_pieces_finish(&work);
}

static struct {
    struct sp_work work;
    atomic_uint times[PIECES], begun;
} shared;

static void *take_all(void *place)
{
    struct sp_cpu_pieces taken;
    unsigned share = sp_cpu_pieces_claim(&shared.work, (unsigned)(uintptr_t)place);
    while (sp_cpu_pieces_take(&shared.work, share, &taken)) {
        atomic_fetch_add(&shared.begun, taken.is_begin);
        for (uint64_t i = taken.first; i < taken.end; i++)
            atomic_fetch_add(&shared.times[i], 1);
    }
    return NULL;
}

static void take_by_threads(void)
{
    pthread_t threads[THREADS];
    memset(&shared, 0, sizeof shared);
    init_work(&shared.work, PIECES);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_all, (void *)(i % 3)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(shared.times[i], 1);
    assert_int_equal(shared.begun, 1);
    assert_false(sp_cpu_pieces_left(&shared.work));
}

static void each_piece_is_taken_once(void **state)
{
    (void)state;
    set_machine(3, (const unsigned[]){2, 3, 1}, 0);
    take_by_threads();
    assert_non_null(shared.work.driver.shares);
    sp_cpu_pieces_finish(&shared.work);
    set_machine(1, (const unsigned[]){1}, 0);
    take_by_threads();
    assert_null(shared.work.driver.shares);
    sp_cpu_pieces_finish(&shared.work);
}

static void goes_on_without_memory(void **state)
{
    (void)state;
    set_machine(2, (const unsigned[]){3, 3}, 0);
    sp_alloc_fail_at(1);
    take_by_threads();
    sp_alloc_fail_at(0);
    assert_null(shared.work.driver.shares);
    sp_cpu_pieces_finish(&shared.work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_have_their_processors),
        cmocka_unit_test(threads_are_divided_as_processors_are),
        cmocka_unit_test(places_are_numbered_by_node),
        cmocka_unit_test(own_share_comes_first),
        cmocka_unit_test(no_two_threads_begin_with_one_share),
        cmocka_unit_test(large_counts_do_not_overflow),
        cmocka_unit_test(each_piece_is_taken_once),
        cmocka_unit_test(goes_on_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
