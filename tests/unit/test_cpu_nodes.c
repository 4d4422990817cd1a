/* device/cpu/nodes and pieces on machines that are not this one: libnuma's answers are the test's.
 * Threads are divided as processors are, every node takes from its own share first, each piece is
 * taken once whoever comes, and without memory for shares all is as on one node. */
#include <numa.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "unit.h"
#include "util/alloc.h"

enum { MAX_NODES = 4, PIECES = 100003, CHUNK = 7, THREADS = 6 };

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

static struct cpu_device device;

static void init_work(struct sp_work *work, uint64_t pieces)
{
    memset(work, 0, sizeof *work);
    work->driver.device = &device.device;
    work->driver.parts = pieces;
    work->driver.chunk = CHUNK;
    sp_cpu_pieces_init(work);
}

static void own_share_comes_first(void **state)
{
    (void)state;
    struct sp_work work;
    struct sp_cpu_pieces taken;
    set_machine(3, (const unsigned[]){2, 1, 1}, 0);
    init_work(&work, 400);
    unsigned begun = 0;
    uint64_t next = 200; /* of node 1's share, which ends at 300, then node 2's, then node 0's */
    while (sp_cpu_pieces_take(&work, 1, &taken)) {
        assert_true(sp_cpu_pieces_left(&work) || next < 200);
        assert_int_equal(taken.first, next);
        assert_true(taken.end > taken.first && taken.end - taken.first <= CHUNK);
        next = taken.end == 400 ? 0 : taken.end;
        begun += taken.is_begin;
    }
    assert_int_equal(next, 200);
    assert_int_equal(begun, 1);
    assert_false(sp_cpu_pieces_left(&work));
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
    assert_true(sp_cpu_pieces_take(&work, 1, &taken));
    assert_int_equal(taken.first, (UINT64_C(1) << 52) * 100);
    sp_cpu_pieces_finish(&work);
}

static struct {
    struct sp_work work;
    atomic_uint times[PIECES], begun;
} shared;

static void *take_all(void *node)
{
    struct sp_cpu_pieces taken;
    while (sp_cpu_pieces_take(&shared.work, (unsigned)(uintptr_t)node, &taken)) {
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
    set_machine(1, (const unsigned[]){6}, 0);
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
        cmocka_unit_test(own_share_comes_first),
        cmocka_unit_test(large_counts_do_not_overflow),
        cmocka_unit_test(each_piece_is_taken_once),
        cmocka_unit_test(goes_on_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
