/* svm/directory: a million random operations on many regions, against an oracle that keeps every
 * byte of every agent and carries every transfer out.
 *
 * The oracle knows for each byte who has its newest version, and who wrote that; of runs it knows
 * nothing. After each operation all of the region is compared: each agent's state is the one that
 * follows from the oracle (so there is one M or E at most, and it excludes all others, and one O at
 * most), each current copy has the newest version, and no two neighbouring runs are equal. Of each
 * list of transfers: it moves exactly what is missing, once, from the nearest who has it, merged.
 *
 * SAMEPAGE_TEST_SEED repeats a test, SAMEPAGE_TEST_OPERATIONS changes its length.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "svm/directory.h"
#include "unit.h"
#include "util/alloc.h"

#define MAX_BYTES 96u
#define REGIONS 48u
#define GARBAGE UINT32_MAX /* what is in a copy that is not current */
#define NOBODY SP_MAX_AGENTS

struct oracle_byte {
    uint32_t newest;  /* 0: nobody has written it */
    uint16_t holders; /* bit a: agent a has the newest */
    uint8_t writer;   /* who wrote it and has had it ever since, or NOBODY */
};

struct region {
    struct sp_directory directory;
    uint32_t bytes, agents;
    struct oracle_byte oracle[MAX_BYTES];
    uint32_t copies[SP_MAX_AGENTS][MAX_BYTES];
    uint8_t lost[MAX_BYTES]; /* as sp_directory_drop told */
};

struct random_test {
    struct region regions[REGIONS];
    struct sp_transfers transfers;
    uint32_t distances[SP_MAX_AGENTS][SP_MAX_AGENTS];
    uint32_t version;
    uint64_t random, seed, done, failures, moved;
};

static struct random_test random_test;

/* xorshift64* (Vigna 2016). */
static uint32_t draw(struct random_test *test, uint32_t below)
{
    test->random ^= test->random >> 12;
    test->random ^= test->random << 25;
    test->random ^= test->random >> 27;
    return (uint32_t)((test->random * UINT64_C(0x2545F4914F6CDD1D) >> 32) * below >> 32);
}

/* CMocka's macros are too slow for some hundred million checks. */
#define check(test, condition)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("%s, seed %llu, operation %llu", #condition,                                  \
                     (unsigned long long)(test)->seed, (unsigned long long)(test)->done);          \
    } while (0)

static enum sp_moesi oracle_state(const struct oracle_byte *byte, uint32_t agent)
{
    if (!(byte->holders >> agent & 1))
        return SP_INVALID;
    if (byte->holders == 1u << agent)
        return byte->writer == agent ? SP_MODIFIED : SP_EXCLUSIVE;
    return byte->writer == agent ? SP_OWNED : SP_SHARED;
}

static void check_region(struct random_test *test, const struct region *region)
{
    const struct sp_directory *directory = &region->directory;
    const struct sp_run *runs = directory->capacity ? directory->runs : &directory->single;
    check(test, directory->count >= 1 && runs[0].first == 0);
    check(test, directory->capacity == 0 ? directory->count == 1
                                         : directory->count <= directory->capacity);
    for (uint32_t i = 0; i < directory->count; i++) {
        uint64_t end = i + 1 < directory->count ? runs[i + 1].first : region->bytes;
        check(test, runs[i].first < end && end <= region->bytes);
        check(test, i == 0 || runs[i].states != runs[i - 1].states);
        for (uint64_t at = runs[i].first; at < end; at++) {
            const struct oracle_byte *byte = &region->oracle[at];
            uint64_t expected = 0;
            for (uint32_t a = 0; a < region->agents; a++) {
                expected |= (uint64_t)oracle_state(byte, a) << (4 * a);
                if (byte->holders >> a & 1)
                    check(test, region->copies[a][at] == byte->newest);
            }
            check(test, runs[i].states == expected);
        }
    }
}

static uint32_t distance_from_table(void *data, uint32_t source, uint32_t destination)
{
    return ((const uint32_t(*)[SP_MAX_AGENTS])data)[source][destination];
}

/* Does what the list from `start` on asks for; returns how often each byte was moved. */
static void carry_out(struct random_test *test, struct region *region, size_t start,
                      uint32_t destination, bool by_distance, uint8_t *moved)
{
    memset(moved, 0, MAX_BYTES);
    for (size_t i = start; i < test->transfers.count; i++) {
        const struct sp_transfer *transfer = &test->transfers.list[i];
        uint32_t source = transfer->source;
        check(test, transfer->first < transfer->end && transfer->end <= region->bytes);
        check(test, transfer->destination == destination && source != destination);
        check(test, i == start || transfer[-1].end <= transfer->first);
        check(test,
              i == start || transfer[-1].end < transfer->first || transfer[-1].source != source);
        for (uint64_t at = transfer->first; at < transfer->end; at++) {
            uint16_t holders = region->oracle[at].holders;
            check(test, holders >> source & 1);
            for (uint32_t a = 0; by_distance && a < region->agents; a++)
                check(test, !(holders >> a & 1) || test->distances[source][destination] <=
                                                       test->distances[a][destination]);
            region->copies[destination][at] = region->copies[source][at];
            moved[at]++;
            test->moved++;
        }
    }
}

static void leave(struct region *region, uint64_t at, uint32_t agent)
{
    struct oracle_byte *byte = &region->oracle[at];
    byte->holders &= (uint16_t) ~(1u << agent);
    if (byte->writer == agent)
        byte->writer = NOBODY;
    if (!byte->holders)
        byte->newest = 0;
    region->copies[agent][at] = GARBAGE;
}

static void write_byte(struct region *region, uint64_t at, uint32_t agent, uint32_t version)
{
    region->oracle[at] = (struct oracle_byte){version, (uint16_t)(1u << agent), (uint8_t)agent};
    for (uint32_t a = 0; a < region->agents; a++)
        region->copies[a][at] = a == agent ? version : GARBAGE;
}

static void random_acquire(struct random_test *test, struct region *region, uint64_t first,
                           uint64_t end, uint32_t agent, bool fails)
{
    enum sp_access access = (enum sp_access)(SP_ACCESS_READ + draw(test, 3));
    bool by_distance = draw(test, 2);
    size_t start = test->transfers.count;
    uint8_t moved[MAX_BYTES];
    int result = sp_directory_acquire(&region->directory, first, end, agent, access,
                                      by_distance ? distance_from_table : NULL, test->distances,
                                      &test->transfers);
    check(test, result == 0 || (fails && result == -ENOMEM && test->transfers.count == start));
    test->failures += result != 0;
    if (result)
        return;
    carry_out(test, region, start, agent, by_distance, moved);
    for (uint64_t at = 0; at < region->bytes; at++) {
        struct oracle_byte *byte = &region->oracle[at];
        bool inside = at >= first && at < end;
        bool needed =
            inside && access != SP_ACCESS_DISCARD && byte->holders && !(byte->holders >> agent & 1);
        check(test, moved[at] == needed);
        if (!inside)
            continue;
        if (access != SP_ACCESS_DISCARD && byte->holders)
            check(test, region->copies[agent][at] == byte->newest);
        if (access != SP_ACCESS_READ)
            write_byte(region, at, agent, test->version);
        else if (byte->holders)
            byte->holders |= (uint16_t)(1u << agent);
    }
    check(test, sp_directory_is_current(&region->directory, first, end, agent));
}

static void random_evict(struct random_test *test, struct region *region, uint64_t first,
                         uint64_t end, uint32_t agent, bool fails)
{
    uint32_t to = (agent + 1 + draw(test, region->agents - 1)) % region->agents;
    size_t start = test->transfers.count;
    uint8_t moved[MAX_BYTES];
    int result = sp_directory_evict(&region->directory, first, end, agent, to, &test->transfers);
    check(test, result == 0 || (fails && result == -ENOMEM && test->transfers.count == start));
    test->failures += result != 0;
    if (result)
        return;
    carry_out(test, region, start, to, false, moved);
    for (uint64_t at = 0; at < region->bytes; at++) {
        struct oracle_byte *byte = &region->oracle[at];
        bool alone = byte->holders == 1u << agent;
        check(test, moved[at] == (at >= first && at < end && alone));
        if (at < first || at >= end)
            continue;
        if (alone) {
            byte->holders |= (uint16_t)(1u << to);
            if (byte->writer == agent)
                byte->writer = (uint8_t)to;
        }
        leave(region, at, agent);
    }
}

static void mark_lost(void *data, uint64_t first, uint64_t end)
{
    struct region *region = data;
    for (uint64_t at = first; at < end; at++)
        region->lost[at]++;
}

static void random_drop(struct random_test *test, struct region *region, uint32_t agent)
{
    memset(region->lost, 0, sizeof region->lost);
    sp_directory_drop(&region->directory, agent, mark_lost, region);
    for (uint64_t at = 0; at < region->bytes; at++) {
        check(test, region->lost[at] == (region->oracle[at].holders == 1u << agent));
        leave(region, at, agent);
    }
}

static void random_change(struct random_test *test, struct region *region, uint64_t first,
                          uint64_t end, uint32_t agent, bool fails)
{
    bool writes = draw(test, 2);
    int result = writes ? sp_directory_written(&region->directory, first, end, agent)
                        : sp_directory_forget(&region->directory, first, end, agent);
    check(test, result == 0 || (fails && result == -ENOMEM));
    test->failures += result != 0;
    for (uint64_t at = first; at < end && !result; at++)
        if (writes)
            write_byte(region, at, agent, test->version);
        else
            leave(region, at, agent);
}

static void check_queries(struct random_test *test, const struct region *region, uint64_t first,
                          uint64_t end, uint32_t agent)
{
    bool current = true;
    for (uint64_t at = first; at < end; at++)
        current &= !region->oracle[at].holders || (region->oracle[at].holders >> agent & 1);
    check(test, sp_directory_is_current(&region->directory, first, end, agent) == current);
    uint64_t at = draw(test, region->bytes);
    check(test, sp_directory_state(&region->directory, at, agent) ==
                    oracle_state(&region->oracle[at], agent));
}

static void random_step(struct random_test *test)
{
    struct region *region = &test->regions[draw(test, REGIONS)];
    uint32_t agent = draw(test, region->agents), kind = draw(test, 64);
    uint64_t first = draw(test, region->bytes + 1), end = draw(test, region->bytes + 1);
    bool fails = draw(test, 16) == 0;
    if (first > end) {
        uint64_t larger = first;
        first = end;
        end = larger;
    }
    if (kind % 8 == 0)
        first = 0;
    if (kind % 8 == 1)
        end = region->bytes;
    if (draw(test, 4) == 0)
        test->transfers.count = 0;
    test->version++;
    check_queries(test, region, first, end, agent);
    if (fails && draw(test, 2))
        sp_transfers_finish(&test->transfers); /* so that it has to allocate */
    if (fails)
        sp_alloc_fail_at(1 + draw(test, 2));
    if (kind < 44)
        random_acquire(test, region, first, end, agent, fails);
    else if (kind < 54)
        random_change(test, region, first, end, agent, fails);
    else if (kind < 62)
        random_evict(test, region, first, end, agent, fails);
    else
        random_drop(test, region, agent);
    sp_alloc_fail_at(0);
    check_region(test, region);
}

static uint64_t number_from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void random_operations_agree_with_the_oracle(void **state)
{
    (void)state;
    struct random_test *test = &random_test;
    uint64_t operations = number_from_environment("SAMEPAGE_TEST_OPERATIONS", 1000000);
    test->seed = number_from_environment("SAMEPAGE_TEST_SEED", (uint64_t)time(NULL));
    test->random = test->seed * 2 + 1; /* never 0 */
    print_message("SAMEPAGE_TEST_SEED=%llu\n", (unsigned long long)test->seed);
    for (uint32_t i = 0; i < SP_MAX_AGENTS * SP_MAX_AGENTS; i++)
        test->distances[i / SP_MAX_AGENTS][i % SP_MAX_AGENTS] = draw(test, 3);
    for (uint32_t i = 0; i < REGIONS; i++) {
        struct region *region = &test->regions[i];
        region->bytes = 1 + draw(test, i % 4 ? MAX_BYTES / 4 : MAX_BYTES);
        region->agents = 2 + draw(test, i % 4 ? 3 : SP_MAX_AGENTS - 1);
        memset(region->copies, 0xff, sizeof region->copies);
        for (uint32_t at = 0; at < region->bytes; at++)
            region->oracle[at].writer = NOBODY;
        sp_directory_init(&region->directory, region->bytes);
    }
    for (test->done = 0; test->done < operations; test->done++)
        random_step(test);
    print_message("%llu operations, %llu bytes moved, %llu failed allocations\n",
                  (unsigned long long)test->done, (unsigned long long)test->moved,
                  (unsigned long long)test->failures);
    for (uint32_t i = 0; i < REGIONS; i++)
        sp_directory_finish(&test->regions[i].directory);
    sp_transfers_finish(&test->transfers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_agree_with_the_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
