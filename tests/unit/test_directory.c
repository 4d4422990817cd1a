/* svm/directory: each transition by itself, lists that split and merge, memory that fails. Random
 * operations are in test_directory_random.c. The last test checks nothing: it prints what uses
 * cost.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "svm/directory.h"
#include "unit.h"
#include "util/alloc.h"

#define READ SP_ACCESS_READ
#define READ_WRITE SP_ACCESS_READ_WRITE
#define DISCARD SP_ACCESS_DISCARD

/* Whole lists in a line: "0:M..... 8:OS...." for the first six agents, '.' for I. */
static const char *text_of(const struct sp_directory *directory)
{
    static char text[4096];
    size_t length = 0;
    const struct sp_run *runs = directory->capacity ? directory->runs : &directory->single;
    for (uint32_t i = 0; i < directory->count; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%llu:", i ? " " : "",
                                   (unsigned long long)runs[i].first);
        for (unsigned a = 0; a < 6; a++)
            text[length++] = ".SEOM"[runs[i].states >> (4 * a) & 15];
        text[length] = 0;
    }
    return text;
}

#define assert_runs(directory, expected) assert_string_equal(text_of(directory), expected)

static void acquire(struct sp_directory *directory, uint64_t first, uint64_t end, uint32_t agent,
                    enum sp_access access, struct sp_transfers *transfers)
{
    transfers->count = 0;
    assert_int_equal(
        sp_directory_acquire(directory, first, end, agent, access, NULL, NULL, transfers), 0);
}

static void assert_transfer(const struct sp_transfers *transfers, size_t index, uint64_t first,
                            uint64_t end, uint32_t source, uint32_t destination)
{
    assert_true(index < transfers->count);
    assert_int_equal(transfers->list[index].first, first);
    assert_int_equal(transfers->list[index].end, end);
    assert_int_equal(transfers->list[index].source, source);
    assert_int_equal(transfers->list[index].destination, destination);
}

static void what_nobody_has_written_never_moves(void **state)
{
    (void)state;
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    sp_directory_init(&directory, 100);
    acquire(&directory, 0, 100, 1, READ, &transfers);
    acquire(&directory, 20, 30, 0, READ, &transfers);
    assert_runs(&directory, "0:......");
    assert_true(sp_directory_is_current(&directory, 0, 100, 5));
    acquire(&directory, 20, 30, 0, READ_WRITE, &transfers);
    assert_int_equal(transfers.count, 0);
    assert_runs(&directory, "0:...... 20:M..... 30:......");
    acquire(&directory, 0, 100, 2, READ, &transfers);
    assert_int_equal(transfers.count, 1);
    assert_transfer(&transfers, 0, 20, 30, 0, 2);
    assert_true(sp_directory_is_current(&directory, 0, 100, 2));
    assert_false(sp_directory_is_current(&directory, 0, 100, 1));
    assert_false(sp_directory_is_current(&directory, 29, 31, 1));
    assert_true(sp_directory_is_current(&directory, 30, 100, 1));
    assert_true(sp_directory_is_current(&directory, 25, 25, 1));
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

/* What one operation makes of one word. */
static void every_transition(void **state)
{
    (void)state;
    enum operation { OP_READ, OP_WRITE, OP_DISCARD, OP_WRITTEN, OP_FORGET, OP_EVICT_TO_0, OP_DROP };
    static const struct {
        const char *before;
        enum operation operation;
        uint32_t agent;
        const char *after;
        int source; /* -1: nothing moves */
    } rows[] = {
        {"......", OP_READ, 1, "......", -1},       {"......", OP_WRITE, 1, ".M....", -1},
        {"......", OP_DISCARD, 1, ".M....", -1},    {"......", OP_WRITTEN, 1, ".M....", -1},
        {"......", OP_FORGET, 1, "......", -1},     {"......", OP_EVICT_TO_0, 1, "......", -1},
        {"......", OP_DROP, 1, "......", -1},       {"M.....", OP_READ, 0, "M.....", -1},
        {"M.....", OP_READ, 1, "OS....", 0},        {"M.....", OP_WRITE, 0, "M.....", -1},
        {"M.....", OP_WRITE, 1, ".M....", 0},       {"M.....", OP_DISCARD, 1, ".M....", -1},
        {"M.....", OP_WRITTEN, 1, ".M....", -1},    {"M.....", OP_FORGET, 0, "......", -1},
        {"M.....", OP_FORGET, 1, "M.....", -1},     {"M.....", OP_EVICT_TO_0, 1, "M.....", -1},
        {"M.....", OP_DROP, 0, "......", -1},       {"M.....", OP_DROP, 1, "M.....", -1},
        {".M....", OP_EVICT_TO_0, 1, "M.....", 1},  {"E.....", OP_READ, 0, "E.....", -1},
        {"E.....", OP_READ, 1, "SS....", 0},        {"E.....", OP_WRITE, 0, "M.....", -1},
        {"E.....", OP_WRITE, 1, ".M....", 0},       {"E.....", OP_DISCARD, 0, "M.....", -1},
        {"E.....", OP_WRITTEN, 0, "M.....", -1},    {"E.....", OP_FORGET, 0, "......", -1},
        {"E.....", OP_DROP, 0, "......", -1},       {".E....", OP_EVICT_TO_0, 1, "E.....", 1},
        {"OS....", OP_READ, 0, "OS....", -1},       {"OS....", OP_READ, 1, "OS....", -1},
        {"OS....", OP_READ, 2, "OSS...", 0},        {"OS....", OP_WRITE, 0, "M.....", -1},
        {"OS....", OP_WRITE, 1, ".M....", -1},      {"OS....", OP_WRITE, 2, "..M...", 0},
        {"OS....", OP_DISCARD, 2, "..M...", -1},    {"OS....", OP_WRITTEN, 1, ".M....", -1},
        {"OS....", OP_FORGET, 0, ".E....", -1},     {"OS....", OP_FORGET, 1, "M.....", -1},
        {"OS....", OP_FORGET, 2, "OS....", -1},     {"OS....", OP_EVICT_TO_0, 1, "M.....", -1},
        {"SO....", OP_EVICT_TO_0, 1, "E.....", -1}, {".OS...", OP_EVICT_TO_0, 1, "..E...", -1},
        {"OS....", OP_DROP, 0, ".E....", -1},       {"OS....", OP_DROP, 1, "M.....", -1},
        {"OSS...", OP_DROP, 0, ".SS...", -1},       {"OSS...", OP_DROP, 2, "OS....", -1},
        {"SS....", OP_READ, 2, "SSS...", 0},        {"SS....", OP_WRITE, 1, ".M....", -1},
        {"SS....", OP_FORGET, 0, ".E....", -1},     {"SSS...", OP_FORGET, 0, ".SS...", -1},
        {"SS....", OP_EVICT_TO_0, 1, "E.....", -1},
    };
    struct sp_transfers transfers = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sp_directory directory;
        char expected[32];
        int result = 0;
        sp_directory_init(&directory, 10);
        for (unsigned a = 0; a < 6; a++)
            directory.single.states |= (uint64_t)(strchr(".SEOM", rows[i].before[a]) - ".SEOM")
                                       << (4 * a);
        transfers.count = 0;
        uint32_t agent = rows[i].agent, receiver = agent;
        switch (rows[i].operation) {
        case OP_READ:
        case OP_WRITE:
        case OP_DISCARD:
            result = sp_directory_acquire(&directory, 0, 10, agent,
                                          (enum sp_access)(READ + rows[i].operation), NULL, NULL,
                                          &transfers);
            break;
        case OP_WRITTEN:
            result = sp_directory_written(&directory, 0, 10, agent);
            break;
        case OP_FORGET:
            result = sp_directory_forget(&directory, 0, 10, agent);
            break;
        case OP_EVICT_TO_0:
            receiver = 0;
            result = sp_directory_evict(&directory, 0, 10, agent, 0, &transfers);
            break;
        case OP_DROP:
            sp_directory_drop(&directory, agent, NULL, NULL);
            break;
        }
        assert_int_equal(result, 0);
        snprintf(expected, sizeof expected, "0:%s", rows[i].after);
        assert_runs(&directory, expected);
        assert_int_equal(transfers.count, rows[i].source >= 0);
        if (rows[i].source >= 0)
            assert_transfer(&transfers, 0, 0, 10, (uint32_t)rows[i].source, receiver);
        for (unsigned a = 0; a < 6; a++)
            assert_int_equal(".SEOM"[sp_directory_state(&directory, 9, a)], rows[i].after[a]);
        sp_directory_finish(&directory);
    }
    sp_transfers_finish(&transfers);
}

static void the_last_agent_is_like_the_others(void **state)
{
    (void)state;
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    sp_directory_init(&directory, 10);
    acquire(&directory, 0, 10, 15, DISCARD, &transfers);
    acquire(&directory, 0, 10, 14, READ, &transfers);
    assert_transfer(&transfers, 0, 0, 10, 15, 14);
    assert_int_equal(sp_directory_state(&directory, 0, 15), SP_OWNED);
    assert_int_equal(sp_directory_state(&directory, 0, 14), SP_SHARED);
    sp_directory_drop(&directory, 15, NULL, NULL);
    assert_int_equal(sp_directory_state(&directory, 0, 15), SP_INVALID);
    assert_int_equal(sp_directory_state(&directory, 0, 14), SP_EXCLUSIVE);
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

static void ranges_split_and_neighbours_merge(void **state)
{
    (void)state;
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    sp_directory_init(&directory, 100);
    acquire(&directory, 0, 100, 0, DISCARD, &transfers);
    assert_runs(&directory, "0:M.....");
    acquire(&directory, 40, 60, 1, READ, &transfers);
    assert_runs(&directory, "0:M..... 40:OS.... 60:M.....");
    acquire(&directory, 0, 10, 1, READ_WRITE, &transfers);
    acquire(&directory, 90, 100, 1, READ_WRITE, &transfers);
    assert_runs(&directory, "0:.M.... 10:M..... 40:OS.... 60:M..... 90:.M....");
    /* Onto the next run, exactly and beyond it. */
    acquire(&directory, 10, 40, 1, READ, &transfers);
    assert_runs(&directory, "0:.M.... 10:OS.... 60:M..... 90:.M....");
    acquire(&directory, 5, 95, 0, READ_WRITE, &transfers);
    assert_int_equal(transfers.count, 2);
    assert_transfer(&transfers, 0, 5, 10, 1, 0);
    assert_transfer(&transfers, 1, 90, 95, 1, 0);
    assert_runs(&directory, "0:.M.... 5:M..... 95:.M....");
    /* Both neighbours at once, in the middle and at the ends. */
    acquire(&directory, 5, 95, 1, DISCARD, &transfers);
    assert_runs(&directory, "0:.M....");
    acquire(&directory, 0, 5, 0, DISCARD, &transfers);
    acquire(&directory, 95, 100, 0, DISCARD, &transfers);
    acquire(&directory, 5, 95, 0, DISCARD, &transfers);
    assert_runs(&directory, "0:M.....");
    /* A neighbour before, a neighbour behind. */
    acquire(&directory, 30, 60, 1, DISCARD, &transfers);
    acquire(&directory, 30, 40, 0, DISCARD, &transfers);
    assert_runs(&directory, "0:M..... 40:.M.... 60:M.....");
    acquire(&directory, 50, 60, 0, DISCARD, &transfers);
    assert_runs(&directory, "0:M..... 40:.M.... 50:M.....");
    acquire(&directory, 40, 40, 0, DISCARD, &transfers);
    assert_runs(&directory, "0:M..... 40:.M.... 50:M.....");
    assert_int_equal(sp_directory_state(&directory, 39, 0), SP_MODIFIED);
    assert_int_equal(sp_directory_state(&directory, 40, 0), SP_INVALID);
    assert_int_equal(sp_directory_state(&directory, 49, 1), SP_MODIFIED);
    assert_int_equal(sp_directory_state(&directory, 50, 1), SP_INVALID);
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

/* What is damaged goes where others have a copy, and stays where it is the only one. */
static void distrust_leaves_only_copies(void **state)
{
    (void)state;
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    sp_directory_init(&directory, 40);
    acquire(&directory, 0, 30, 1, DISCARD, &transfers);
    acquire(&directory, 10, 20, 0, READ, &transfers);
    acquire(&directory, 20, 30, 0, READ, &transfers);
    acquire(&directory, 20, 30, 2, READ, &transfers);
    assert_runs(&directory, "0:.M.... 10:SO.... 20:SOS... 30:......");
    assert_true(sp_directory_is_alone(&directory, 9, 30, 1));
    assert_false(sp_directory_is_alone(&directory, 10, 40, 1));
    assert_false(sp_directory_is_alone(&directory, 0, 40, 0));
    assert_int_equal(sp_directory_distrust(&directory, 5, 40, 1), 0);
    assert_runs(&directory, "0:.M.... 10:E..... 20:S.S... 30:......");
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

static void written_and_forget_take_parts(void **state)
{
    (void)state;
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    sp_directory_init(&directory, 100);
    acquire(&directory, 0, 100, 1, DISCARD, &transfers);
    acquire(&directory, 0, 100, 0, READ, &transfers);
    assert_int_equal(sp_directory_written(&directory, 20, 30, 0), 0);
    assert_runs(&directory, "0:SO.... 20:M..... 30:SO....");
    assert_int_equal(sp_directory_forget(&directory, 25, 50, 0), 0);
    assert_runs(&directory, "0:SO.... 20:M..... 25:...... 30:.M.... 50:SO....");
    assert_int_equal(sp_directory_forget(&directory, 0, 100, 1), 0);
    assert_runs(&directory, "0:E..... 20:M..... 25:...... 50:E.....");
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

static void evict_moves_only_what_is_held_alone(void **state)
{
    (void)state;
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    sp_directory_init(&directory, 100);
    acquire(&directory, 0, 100, 1, DISCARD, &transfers);
    acquire(&directory, 40, 60, 2, READ, &transfers);
    transfers.count = 0;
    assert_int_equal(sp_directory_evict(&directory, 10, 90, 1, 0, &transfers), 0);
    assert_int_equal(transfers.count, 2);
    assert_transfer(&transfers, 0, 10, 40, 1, 0);
    assert_transfer(&transfers, 1, 60, 90, 1, 0);
    assert_runs(&directory, "0:.M.... 10:M..... 40:..E... 60:M..... 90:.M....");
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

struct lost_list {
    unsigned count;
    uint64_t first[8], end[8];
};

static void note_lost(void *data, uint64_t first, uint64_t end)
{
    struct lost_list *lost = data;
    assert_true(lost->count < 8);
    lost->first[lost->count] = first;
    lost->end[lost->count++] = end;
}

static void drop_reports_what_was_held_alone(void **state)
{
    (void)state;
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    struct lost_list lost = {0};
    sp_directory_init(&directory, 100);
    acquire(&directory, 10, 90, 1, DISCARD, &transfers);
    acquire(&directory, 40, 60, 2, READ, &transfers);
    acquire(&directory, 10, 20, 2, READ_WRITE, &transfers);
    acquire(&directory, 10, 20, 1, READ, &transfers);
    assert_int_equal(sp_directory_forget(&directory, 10, 20, 2), 0);
    assert_runs(&directory, "0:...... 10:.E.... 20:.M.... 40:.OS... 60:.M.... 90:......");
    sp_directory_drop(&directory, 3, note_lost, &lost);
    assert_int_equal(lost.count, 0);
    sp_directory_drop(&directory, 1, note_lost, &lost);
    /* E and M that touch are one loss. */
    assert_int_equal(lost.count, 2);
    assert_int_equal(lost.first[0], 10);
    assert_int_equal(lost.end[0], 40);
    assert_int_equal(lost.first[1], 60);
    assert_int_equal(lost.end[1], 90);
    assert_runs(&directory, "0:...... 40:..E... 60:......");
    sp_directory_drop(&directory, 2, note_lost, &lost);
    assert_int_equal(lost.count, 3);
    assert_runs(&directory, "0:......");
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

static uint32_t distance_from_table(void *data, uint32_t source, uint32_t destination)
{
    return ((const uint32_t(*)[SP_MAX_AGENTS])data)[source][destination];
}

static void sources_are_near_and_take_turns(void **state)
{
    (void)state;
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    uint32_t table[SP_MAX_AGENTS][SP_MAX_AGENTS] = {
        [0] = {[3] = 9}, [1] = {[3] = 2}, [2] = {[3] = 2}};
    sp_directory_init(&directory, 100);
    acquire(&directory, 0, 100, 0, DISCARD, &transfers);
    acquire(&directory, 0, 100, 1, READ, &transfers);
    acquire(&directory, 0, 100, 2, READ, &transfers);
    transfers.count = 0;
    /* Pieces that do not touch, of one list: 1 and 2 are as near, 0 is far. */
    for (uint64_t at = 0; at < 60; at += 20)
        assert_int_equal(sp_directory_acquire(&directory, at, at + 10, 3, READ, distance_from_table,
                                              table, &transfers),
                         0);
    assert_int_equal(transfers.count, 3);
    assert_transfer(&transfers, 0, 0, 10, 1, 3);
    assert_transfer(&transfers, 1, 20, 30, 2, 3);
    assert_transfer(&transfers, 2, 40, 50, 1, 3);
    /* A new list starts with no load. */
    transfers.count = 0;
    assert_int_equal(
        sp_directory_acquire(&directory, 60, 70, 3, READ, distance_from_table, table, &transfers),
        0);
    assert_transfer(&transfers, 0, 60, 70, 1, 3);
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

static void touching_transfers_of_one_source_merge(void **state)
{
    (void)state;
    struct sp_directory directory, other;
    struct sp_transfers transfers = {0};
    sp_directory_init(&directory, 100);
    sp_directory_init(&other, 100);
    acquire(&other, 0, 100, 0, DISCARD, &transfers);
    acquire(&directory, 0, 100, 0, DISCARD, &transfers);
    acquire(&directory, 30, 50, 2, READ, &transfers);
    acquire(&directory, 70, 80, 1, READ, &transfers);
    transfers.count = 0;
    assert_int_equal(
        sp_directory_acquire(&directory, 0, 100, 1, READ_WRITE, NULL, NULL, &transfers), 0);
    /* 30 to 50 comes from 2, of which less was asked. */
    assert_int_equal(transfers.count, 4);
    assert_transfer(&transfers, 0, 0, 30, 0, 1);
    assert_transfer(&transfers, 1, 30, 50, 2, 1);
    assert_transfer(&transfers, 2, 50, 70, 0, 1);
    assert_transfer(&transfers, 3, 80, 100, 0, 1);
    acquire(&directory, 0, 100, 0, DISCARD, &transfers);
    acquire(&directory, 0, 50, 1, DISCARD, &transfers);
    acquire(&directory, 50, 100, 2, READ, &transfers);
    acquire(&directory, 50, 100, 0, READ_WRITE, &transfers);
    acquire(&directory, 0, 50, 0, READ, &transfers);
    /* Two runs, and one source for both: the lower one where two are as good. */
    acquire(&directory, 0, 100, 2, READ, &transfers);
    assert_int_equal(transfers.count, 1);
    assert_transfer(&transfers, 0, 0, 100, 0, 2);
    assert_int_equal(sp_directory_forget(&directory, 0, 100, 1), 0);
    assert_int_equal(sp_directory_forget(&directory, 0, 100, 2), 0);
    assert_runs(&directory, "0:E..... 50:M.....");
    acquire(&directory, 0, 100, 3, READ, &transfers);
    assert_int_equal(transfers.count, 1);
    assert_transfer(&transfers, 0, 0, 100, 0, 3);
    /* Another call may be about another region: it is not merged with. */
    acquire(&directory, 0, 50, 4, READ, &transfers);
    assert_int_equal(sp_directory_acquire(&other, 50, 100, 4, READ, NULL, NULL, &transfers), 0);
    assert_int_equal(transfers.count, 2);
    sp_directory_finish(&directory);
    sp_directory_finish(&other);
    sp_transfers_finish(&transfers);
}

static void sizes_know_no_limit(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, (uint64_t)1 << 44, UINT64_MAX};
    struct sp_transfers transfers = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct sp_directory directory;
        uint64_t bytes = sizes[i];
        sp_directory_init(&directory, bytes);
        acquire(&directory, 0, bytes, 1, READ_WRITE, &transfers);
        acquire(&directory, bytes - 1, bytes, 2, READ_WRITE, &transfers);
        assert_transfer(&transfers, 0, bytes - 1, bytes, 1, 2);
        assert_int_equal(directory.count, bytes > 1 ? 2 : 1);
        acquire(&directory, 0, bytes, 2, READ, &transfers);
        assert_int_equal(transfers.count, bytes > 1);
        if (bytes > 1)
            assert_transfer(&transfers, 0, 0, bytes - 1, 1, 2);
        acquire(&directory, 0, bytes, 2, READ_WRITE, &transfers);
        assert_int_equal(directory.count, 1);
        sp_directory_finish(&directory);
    }
    sp_transfers_finish(&transfers);
}

/* Ten thousand pieces, which merge again; the array goes back. */
static void many_runs_come_and_go(void **state)
{
    (void)state;
    enum { PIECES = 10000 };
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    sp_directory_init(&directory, PIECES * 2);
    for (uint64_t i = 0; i < PIECES; i++) {
        uint64_t at = i * 7919 % PIECES * 2;
        acquire(&directory, at, at + 1, (uint32_t)(i & 1), DISCARD, &transfers);
    }
    assert_int_equal(directory.count, PIECES * 2);
    acquire(&directory, 0, PIECES * 2, 3, READ, &transfers);
    assert_int_equal(transfers.count, PIECES);
    acquire(&directory, 0, PIECES * 2, 3, READ_WRITE, &transfers);
    assert_int_equal(directory.count, 1);
    assert_int_equal(directory.capacity, 0);
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

/* Lets each allocation of an operation fail in turn, until none is left. Returns how many failed.
 */
static unsigned fail_each_acquire(unsigned pieces)
{
    unsigned n;
    for (n = 1;; n++) {
        struct sp_directory directory;
        struct sp_transfers transfers = {0};
        char before[4096];
        sp_directory_init(&directory, 400);
        acquire(&directory, 0, 400, 0, DISCARD, &transfers);
        for (unsigned i = 0; i < pieces; i++)
            acquire(&directory, i * 8 + 4, i * 8 + 8, 2, DISCARD, &transfers);
        snprintf(before, sizeof before, "%s", text_of(&directory));
        sp_alloc_fail_at(n);
        int result = sp_directory_acquire(&directory, 2, 398, 1, READ, NULL, NULL, &transfers);
        sp_alloc_fail_at(0);
        if (result) {
            assert_int_equal(result, -ENOMEM);
            assert_int_equal(transfers.count, 0);
            assert_runs(&directory, before);
            transfers.count = 0;
            assert_int_equal(
                sp_directory_acquire(&directory, 2, 398, 1, READ, NULL, NULL, &transfers), 0);
        }
        assert_int_equal(transfers.count, pieces * 2 + 1);
        assert_int_equal(directory.count, pieces * 2 + 3);
        sp_directory_finish(&directory);
        sp_transfers_finish(&transfers);
        if (!result)
            return n - 1;
    }
}

static void failing_memory_changes_nothing(void **state)
{
    (void)state;
    for (unsigned pieces = 0; pieces < 40; pieces++) {
        unsigned failed = fail_each_acquire(pieces);
        assert_true(failed <= 2);
        assert_true(pieces > 0 || failed == 2); /* the first runs and the first transfers */
    }
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    sp_directory_init(&directory, 100);
    acquire(&directory, 0, 100, 1, DISCARD, &transfers);
    sp_alloc_fail_at(1);
    assert_int_equal(sp_directory_written(&directory, 10, 20, 0), -ENOMEM);
    sp_alloc_fail_at(1);
    assert_int_equal(sp_directory_forget(&directory, 10, 20, 1), -ENOMEM);
    sp_alloc_fail_at(1);
    assert_int_equal(sp_directory_evict(&directory, 10, 20, 1, 0, &transfers), -ENOMEM);
    sp_alloc_fail_at(2);
    assert_int_equal(sp_directory_evict(&directory, 10, 20, 1, 0, &transfers), -ENOMEM);
    assert_int_equal(transfers.count, 0);
    assert_runs(&directory, "0:.M....");
    /* A use that changes nothing needs no memory, nor does one of the whole region. */
    sp_alloc_fail_at(1);
    acquire(&directory, 10, 20, 1, READ_WRITE, &transfers);
    acquire(&directory, 0, 100, 2, DISCARD, &transfers);
    sp_directory_drop(&directory, 2, NULL, NULL);
    sp_alloc_fail_at(0);
    assert_runs(&directory, "0:......");
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

static uint64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void print_speed(const char *what, const struct sp_directory *directory, uint64_t ns,
                        unsigned times)
{
    print_message("%-50s %6u runs %7.1f ns\n", what, directory->count, (double)ns / times);
}

static void speed_is_printed(void **state)
{
    (void)state;
    enum { TIMES = 100000, FEWER = 5000, PIECES = 10000 };
    struct sp_directory directory;
    struct sp_transfers transfers = {0};
    uint64_t bytes = (uint64_t)1 << 40, piece = bytes / (2 * PIECES);
    sp_directory_init(&directory, bytes);
    acquire(&directory, 0, bytes, 1, DISCARD, &transfers);

    uint64_t start = processor_ns();
    for (unsigned i = 0; i < TIMES; i++)
        acquire(&directory, 0, bytes, 1, READ_WRITE, &transfers);
    print_speed("acquire of what is there", &directory, processor_ns() - start, TIMES);
    start = processor_ns();
    for (unsigned i = 0; i < TIMES; i++)
        acquire(&directory, 0, bytes, i & 1, READ_WRITE, &transfers);
    print_speed("ping-pong of a region", &directory, processor_ns() - start, TIMES);
    start = processor_ns();
    for (unsigned i = 0; i < TIMES; i++)
        acquire(&directory, 4096, 8192, i & 1, READ_WRITE, &transfers);
    print_speed("ping-pong of a page in it", &directory, processor_ns() - start, TIMES);

    for (uint64_t i = 0; i < PIECES; i++)
        acquire(&directory, 2 * i * piece, (2 * i + 1) * piece, 2, DISCARD, &transfers);
    start = processor_ns();
    for (uint64_t i = 0; i < TIMES; i++) {
        uint64_t at = i * 7919 % PIECES * 2 * piece;
        acquire(&directory, at, at + piece, 2, READ_WRITE, &transfers);
    }
    print_speed("acquire of what is there, among many runs", &directory, processor_ns() - start,
                TIMES);
    start = processor_ns();
    for (uint64_t i = 0; i < FEWER; i++) {
        uint64_t at = (i / 2) * 7919 % PIECES * 2 * piece + 64;
        acquire(&directory, at, at + 64, i & 1 ? 2 : 3, READ_WRITE, &transfers);
    }
    print_speed("split and merge, among many runs", &directory, processor_ns() - start, FEWER);
    sp_directory_finish(&directory);
    sp_transfers_finish(&transfers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_has_written_never_moves),
        cmocka_unit_test(every_transition),
        cmocka_unit_test(the_last_agent_is_like_the_others),
        cmocka_unit_test(ranges_split_and_neighbours_merge),
        cmocka_unit_test(written_and_forget_take_parts),
        cmocka_unit_test(distrust_leaves_only_copies),
        cmocka_unit_test(evict_moves_only_what_is_held_alone),
        cmocka_unit_test(drop_reports_what_was_held_alone),
        cmocka_unit_test(sources_are_near_and_take_turns),
        cmocka_unit_test(touching_transfers_of_one_source_merge),
        cmocka_unit_test(sizes_know_no_limit),
        cmocka_unit_test(many_runs_come_and_go),
        cmocka_unit_test(failing_memory_changes_nothing),
        cmocka_unit_test(speed_is_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
