/* The atomic unit's protocol: the GPU's side (kernels/nvptx/unit.h, on warps of threads) in one
 * process, the server's (device/unit.h) in another, with a ring in shared memory. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/unit.h"
#include "host_warp.h"
#include "unit/unit.h"

enum { WORDS = 256 };

/* What both processes see. */
struct shared {
    struct sp_unit_slot slots[SP_UNIT_SLOTS];
    uint64_t words[WORDS];
    uint32_t failures; /* of the GPU's process */
};

static struct shared *shared;
static struct sp_gpu_unit unit; /* the GPU's memory */

static void reset(void)
{
    memset(shared, 0, sizeof *shared);
    memset(&unit, 0, sizeof unit);
    unit.slots = (uintptr_t)shared->slots;
}

static ulong ask(uint operation, const void *word, ulong operand, ulong compare)
{
    return unit_perform((ulong)&unit, operation, (ulong)word, operand, compare);
}

/* Serves until the process has ended; `between` (may be NULL) is called now and then. */
static int serve(pid_t child, uint64_t first, void (*between)(void))
{
    struct sp_unit_request request;
    int status = 0;
    uint64_t number = first;
    for (unsigned i = 0;; i++) {
        if (sp_unit_take(shared->slots, number, &request)) {
            assert_true(sp_unit_is_sane(&request));
            sp_unit_serve(shared->slots, number++, &request);
        } else {
            sched_yield();
        }
        if (between)
            between();
        if (i % 64 == 0 && waitpid(child, &status, WNOHANG) == child)
            return status;
    }
}

/* --- Warps ---------------------------------------------------------------------------------------
 */

struct item {
    pthread_t thread;
    struct host_warp *warp;
    uint lane, index;
    void (*function)(struct item *item);
};

static void *run_item(void *argument)
{
    struct item *item = argument;
    host_warp = item->warp;
    host_lane = item->lane;
    item->function(item);
    return NULL;
}

/* In the GPU's process: `count` warps of `lanes` work-items. */
static void run_warps(uint count, uint lanes, void (*function)(struct item *item))
{
    struct item *items = calloc((size_t)count * lanes, sizeof *items);
    struct host_warp *warps = calloc(count, sizeof *warps);
    for (uint w = 0; w < count; w++) {
        host_warp_init(&warps[w], lanes == HOST_LANES ? ~0u : (1u << lanes) - 1);
        for (uint l = 0; l < lanes; l++) {
            struct item *item = &items[w * lanes + l];
            *item = (struct item){
                .warp = &warps[w], .lane = l, .index = w * lanes + l, .function = function};
            if (pthread_create(&item->thread, NULL, run_item, item))
                _exit(2);
        }
    }
    for (uint i = 0; i < count * lanes; i++)
        pthread_join(items[i].thread, NULL);
    free(items);
    free(warps);
}

/* The GPU's process, which is served meanwhile. */
#define ON_GPU(between, ...)                                                                       \
    do {                                                                                           \
        pid_t child = fork();                                                                      \
        assert_true(child >= 0);                                                                   \
        if (child == 0) {                                                                          \
            __VA_ARGS__;                                                                           \
            _exit(0);                                                                              \
        }                                                                                          \
        assert_int_equal(serve(child, 0, between), 0);                                             \
        assert_int_equal(shared->failures, 0);                                                     \
    } while (0)

static void note_failure(void)
{
    __atomic_fetch_add(&shared->failures, 1, __ATOMIC_RELAXED);
}

/* --- Counting ------------------------------------------------------------------------------------
 */

enum { WARPS = 3, ROUNDS = 8 };

static uint64_t added;

static void add_one(void)
{
    __atomic_fetch_add(&shared->words[0], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add((uint32_t *)&shared->words[1], 1, __ATOMIC_RELAXED);
    added++;
}

static void count_up(struct item *item)
{
    for (uint i = 0; i < ROUNDS; i++) {
        ask(UNIT_ADD | UNIT_WIDE, &shared->words[0], 1, 0);
        ask(UNIT_ADD, &shared->words[1], item->index % 5, 0);
        /* Each old value once: a bit for each. */
        ulong old = ask(UNIT_ADD | UNIT_WIDE, &shared->words[2], 1, 0);
        if (old >= WARPS * HOST_LANES * ROUNDS ||
            __atomic_fetch_or(&shared->words[8 + old / 64], 1ul << old % 64, __ATOMIC_RELAXED) &
                1ul << old % 64)
            note_failure();
    }
}

static void host_and_warps_count_together(void **state)
{
    (void)state;
    uint64_t sum = 0, all = WARPS * HOST_LANES * ROUNDS;
    reset();
    added = 0;
    ON_GPU(add_one, run_warps(WARPS, HOST_LANES, count_up));
    for (uint i = 0; i < WARPS * HOST_LANES; i++)
        sum += i % 5 * ROUNDS;
    assert_int_equal(shared->words[0], all + added);
    assert_int_equal((uint32_t)shared->words[1], (uint32_t)(sum + added));
    assert_int_equal(shared->words[2], all);
}

/* --- Operations ----------------------------------------------------------------------------------
 */

static const uint operations[] = {UNIT_EXCHANGE,   UNIT_ADD,          UNIT_AND,
                                  UNIT_OR,         UNIT_XOR,          UNIT_MIN_SIGNED,
                                  UNIT_MAX_SIGNED, UNIT_MIN_UNSIGNED, UNIT_MAX_UNSIGNED};
#define NUM_OPERATIONS (sizeof operations / sizeof operations[0])

/* The operand of a lane: all different, or all the same. */
static ulong operand_of(uint lane, bool is_same)
{
    return is_same ? 0x8123456789abcdeful : (lane + 3) * 0x9e3779b97f4a7c15ul;
}

static ulong as_operand(uint operation, ulong value)
{
    bool is_signed =
        (operation & ~UNIT_WIDE) == UNIT_MIN_SIGNED || (operation & ~UNIT_WIDE) == UNIT_MAX_SIGNED;
    return operation & UNIT_WIDE ? value : is_signed ? (ulong)(long)(int)value : (uint)value;
}

/* As the host would do it, alone. */
static ulong apply_plainly(uint operation, ulong old, ulong operand)
{
    bool is_wide = operation & UNIT_WIDE;
    switch (operation & ~UNIT_WIDE) {
    case UNIT_EXCHANGE:
        return operand;
    case UNIT_ADD:
        return old + operand;
    case UNIT_AND:
        return old & operand;
    case UNIT_OR:
        return old | operand;
    case UNIT_XOR:
        return old ^ operand;
    case UNIT_MIN_SIGNED:
        return (is_wide ? (long)old < (long)operand : (int)old < (int)operand) ? old : operand;
    case UNIT_MAX_SIGNED:
        return (is_wide ? (long)old > (long)operand : (int)old > (int)operand) ? old : operand;
    case UNIT_MIN_UNSIGNED:
        return (is_wide ? old < operand : (uint)old < (uint)operand) ? old : operand;
    default:
        return (is_wide ? old > operand : (uint)old > (uint)operand) ? old : operand;
    }
}

static ulong cut(uint operation, ulong value)
{
    return operation & UNIT_WIDE ? value : (uint)value;
}

/* Lanes of three words among each other; each old value is what those in front have left. */
static void do_all(struct item *item)
{
    for (uint i = 0; i < 4 * NUM_OPERATIONS; i++) {
        uint operation = operations[i / 4] | (i & 1 ? UNIT_WIDE : 0);
        bool is_same = i & 2;
        uint64_t *word = &shared->words[3 * i + item->lane % 3];
        ulong expected = cut(operation, 0x40000000ul << (item->lane % 3 * 8));
        for (uint l = item->lane % 3; l < item->lane; l += 3)
            expected =
                apply_plainly(operation, expected, as_operand(operation, operand_of(l, is_same)));
        ulong old = ask(operation, word, as_operand(operation, operand_of(item->lane, is_same)), 0);
        if (cut(operation, old) != cut(operation, expected)) {
            fprintf(stderr, "operation %u lane %u: %lx, expected %lx\n", operation, item->lane, old,
                    expected);
            note_failure();
        }
    }
}

static void combined_operations_are_in_a_row(void **state)
{
    (void)state;
    reset();
    for (uint i = 0; i < 12 * NUM_OPERATIONS; i++)
        shared->words[i] = 0x40000000ul << (i % 3 * 8);
    ON_GPU(NULL, run_warps(1, HOST_LANES, do_all));
    for (uint i = 0; i < 4 * NUM_OPERATIONS; i++)
        for (uint w = 0; w < 3; w++) {
            uint operation = operations[i / 4] | (i & 1 ? UNIT_WIDE : 0);
            ulong before = 0x40000000ul << (w * 8), expected = cut(operation, before);
            for (uint l = w; l < HOST_LANES; l += 3)
                expected =
                    apply_plainly(operation, expected, as_operand(operation, operand_of(l, i & 2)));
            expected = cut(operation, expected);
            if (!(operation & UNIT_WIDE)) /* the upper half is another word */
                expected |= before & ~0xfffffffful;
            assert_int_equal(shared->words[3 * i + w], expected);
        }
}

/* Lanes of one word, of two, and of their own; in one round all of them change it. */
static void exchange_up(struct item *item)
{
    for (uint i = 0; i < ROUNDS; i++) {
        uint operation = UNIT_COMPARE_EXCHANGE | (i & 1 ? UNIT_WIDE : 0);
        uint64_t *word = &shared->words[i & 1 ? 0 : 1 + item->lane % 2];
        ulong expected = 0;
        for (bool is_done = false; warp_vote(warp_active(), is_done) != warp_active();) {
            /* All stay together, which these warps must: who is done asks for what fails. */
            ulong old = is_done ? ask(operation, &shared->words[10 + item->index], 1, 1)
                                : ask(operation, word, expected + 1, expected);
            is_done |= old == expected;
            expected = old;
        }
    }
}

static void compare_exchanges_change_once(void **state)
{
    (void)state;
    reset();
    ON_GPU(NULL, run_warps(2, 8, exchange_up));
    assert_int_equal(shared->words[0], 2 * 8 * ROUNDS / 2);
    assert_int_equal(shared->words[1] + shared->words[2], 2 * 8 * ROUNDS / 2);
}

/* Those that fail behind the leader's ask nothing. */
static void fail_together(struct item *item)
{
    ulong old = ask(UNIT_COMPARE_EXCHANGE, &shared->words[0], 100 + item->lane, 0);
    if (old != (item->lane ? 100 : 0) || unit.tickets != 1)
        note_failure();
}

static void failures_are_combined(void **state)
{
    (void)state;
    reset();
    ON_GPU(NULL, run_warps(1, HOST_LANES, fail_together));
    assert_int_equal(shared->words[0], 100);
}

static ulong bits_of(double value)
{
    ulong bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static ulong bits_of_float(float value)
{
    uint bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void add_floats(struct item *item)
{
    ask(UNIT_ADD_FLOAT, &shared->words[0], bits_of_float(1.5f), 0);
    ask(UNIT_ADD_FLOAT | UNIT_WIDE, &shared->words[1], bits_of(0.25), 0);
    ask(SP_UNIT_MIN_FLOAT, &shared->words[2], bits_of_float((float)item->lane - 5), 0);
    ask(SP_UNIT_MAX_FLOAT | UNIT_WIDE, &shared->words[3], bits_of((double)item->lane), 0);
    /* Too small to change it, one by one. */
    ask(UNIT_ADD_FLOAT, &shared->words[4], bits_of_float(1), 0);
}

static void floats_are_added_one_by_one(void **state)
{
    (void)state;
    reset();
    shared->words[4] = bits_of_float(0x1p+25f);
    ON_GPU(NULL, run_warps(1, HOST_LANES, add_floats));
    assert_int_equal(shared->words[0], bits_of_float(48));
    assert_int_equal(shared->words[1], bits_of(8));
    assert_int_equal(shared->words[2], bits_of_float(-5));
    assert_int_equal(shared->words[3], bits_of(31));
    assert_int_equal(shared->words[4], bits_of_float(0x1p+25f));
}

/* --- The ring ------------------------------------------------------------------------------------
 */

static void set_request(struct sp_unit_slot *slot, uint64_t tag, uint64_t address)
{
    const uint64_t words[4] = {address, 1, (uint64_t)SP_UNIT_ADD << 16, 0};
    for (int i = 0; i < 4; i++)
        slot->request[i] = words[i] | tag << SP_UNIT_PAYLOAD_BITS;
}

/* Whatever the order in which its words come. */
static void requests_are_taken_whole(void **state)
{
    (void)state;
    struct sp_unit_request request;
    for (unsigned order = 0; order < 24; order++) {
        struct sp_unit_slot whole;
        unsigned places[4] = {0, 1, 2, 3}, code = order;
        for (unsigned i = 0; i < 4; i++, code /= 4) {
            unsigned j = i + code % (4 - i), place = places[i];
            places[i] = places[j];
            places[j] = place;
        }
        reset();
        set_request(&whole, sp_unit_tag(7), (uintptr_t)&shared->words[3]);
        for (unsigned i = 0; i < 4; i++) {
            assert_false(sp_unit_take(shared->slots, 7, &request));
            shared->slots[7].request[places[i]] = whole.request[places[i]];
        }
        assert_true(sp_unit_take(shared->slots, 7, &request));
        assert_int_equal(request.address, (uintptr_t)&shared->words[3]);
        assert_int_equal(request.operation, SP_UNIT_ADD);
        assert_false(sp_unit_take(shared->slots, 7 + SP_UNIT_SLOTS, &request));
        assert_false(sp_unit_take(shared->slots, 8, &request));
    }
}

static void all_bits_arrive(struct item *item)
{
    (void)item;
    ulong old = ask(UNIT_COMPARE_EXCHANGE | UNIT_WIDE, &shared->words[0], 0xfedcba9876543210ul,
                    0x0123456789abcdeful);
    if (old != 0x0123456789abcdeful)
        note_failure();
    old = ask(UNIT_EXCHANGE | UNIT_WIDE, &shared->words[0], ~0ul, 0);
    if (old != 0xfedcba9876543210ul)
        note_failure();
}

static void wide_numbers_are_whole(void **state)
{
    (void)state;
    reset();
    shared->words[0] = 0x0123456789abcdeful;
    ON_GPU(NULL, run_warps(1, 1, all_bits_arrive));
    assert_int_equal(shared->words[0], ~0ul);
}

static void *ask_once(void *word)
{
    ask(UNIT_ADD, word, 1, 0);
    return NULL;
}

struct answer {
    atomic_bool is_there;
    ulong old;
};

static void *ask_for_answer(void *argument)
{
    struct answer *answer = argument;
    answer->old = ask(UNIT_ADD | UNIT_WIDE, &shared->words[0], 1, 0);
    atomic_store(&answer->is_there, true);
    return NULL;
}

/* Either half may come first. */
static void replies_are_taken_whole(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        struct sp_unit_request request;
        struct answer answer = {.is_there = false};
        const uint64_t tag = sp_unit_tag(0) << SP_UNIT_PAYLOAD_BITS;
        const uint64_t reply[2] = {0x456789abcdef | tag, 0x0123 | tag};
        pthread_t thread;
        reset();
        assert_int_equal(pthread_create(&thread, NULL, ask_for_answer, &answer), 0);
        while (!sp_unit_take(shared->slots, 0, &request))
            sched_yield();
        __atomic_store_n(&shared->slots[0].reply[first], reply[first], __ATOMIC_RELEASE);
        for (int i = 0; i < 1000; i++)
            sched_yield();
        assert_false(atomic_load(&answer.is_there));
        __atomic_store_n(&shared->slots[0].reply[!first], reply[!first], __ATOMIC_RELEASE);
        pthread_join(thread, NULL);
        assert_int_equal(answer.old, 0x0123456789abcdeful);
    }
}

/* With all slots taken, who comes waits for the turn of its slot, and touches nothing before. */
static void a_full_ring_is_waited_for(void **state)
{
    (void)state;
    struct sp_unit_request request;
    pthread_t thread;
    reset();
    unit.tickets =
        SP_UNIT_SLOTS + 5; /* the slot's owner of the turn before has not read its reply */
    set_request(&shared->slots[5], sp_unit_tag(5), (uintptr_t)&shared->words[0]);
    const struct sp_unit_slot before = shared->slots[5];
    assert_int_equal(pthread_create(&thread, NULL, ask_once, &shared->words[1]), 0);
    while (__atomic_load_n(&unit.tickets, __ATOMIC_RELAXED) == SP_UNIT_SLOTS + 5)
        sched_yield();
    for (int i = 0; i < 1000; i++)
        sched_yield();
    assert_memory_equal(&shared->slots[5], &before, sizeof before);
    assert_true(sp_unit_take(shared->slots, 5, &request));
    sp_unit_serve(shared->slots, 5, &request);
    device_store((ulong)&unit.turns[5], 1);
    while (!sp_unit_take(shared->slots, SP_UNIT_SLOTS + 5, &request))
        sched_yield();
    assert_int_equal(shared->words[1], 0);
    sp_unit_serve(shared->slots, SP_UNIT_SLOTS + 5, &request);
    pthread_join(thread, NULL);
    assert_int_equal(shared->words[0], 1);
    assert_int_equal(shared->words[1], 1);
    assert_int_equal(unit.turns[5], 2);
}

/* Tags come again after 65,536 turns, turns after 2^32; no reply of another turn is taken. */
static void numbers_may_wrap(void **state)
{
    (void)state;
    static const uint64_t starts[] = {65533, 65534, UINT32_MAX - 1};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        struct sp_unit_request request;
        reset();
        for (uint64_t turn = starts[i]; turn < starts[i] + 5; turn++) {
            pthread_t thread;
            uint64_t number = turn * SP_UNIT_SLOTS + 9;
            if (turn == starts[i]) { /* what the turn before has left */
                unit.turns[9] = (uint32_t)turn;
                set_request(&shared->slots[9], sp_unit_tag(number - SP_UNIT_SLOTS), 4);
                shared->slots[9].reply[0] = shared->slots[9].reply[1] =
                    sp_unit_tag(number - SP_UNIT_SLOTS) << SP_UNIT_PAYLOAD_BITS;
            }
            unit.tickets = number;
            assert_false(sp_unit_take(shared->slots, number, &request));
            assert_int_equal(pthread_create(&thread, NULL, ask_once, &shared->words[0]), 0);
            while (!sp_unit_take(shared->slots, number, &request))
                sched_yield();
            sp_unit_serve(shared->slots, number, &request);
            pthread_join(thread, NULL);
        }
        assert_int_equal(shared->words[0], 5);
        assert_int_equal(unit.turns[9], (uint32_t)(starts[i] + 5));
    }
}

static void requests_are_judged(void **state)
{
    (void)state;
    for (uint32_t operation = 0; operation < 256; operation++)
        for (uint64_t offset = 0; offset < 8; offset++) {
            struct sp_unit_request request = {.address = 0x1000 + offset, .operation = operation};
            uint32_t kind = operation & ~(uint32_t)SP_UNIT_WIDE;
            bool is_sane = kind >= 1 && kind <= SP_UNIT_LAST &&
                           offset % (operation & SP_UNIT_WIDE ? 8 : 4) == 0;
            assert_int_equal(sp_unit_is_sane(&request), is_sane);
        }
}

/* Nobody serves. */
static void patience_ends(void **state)
{
    (void)state;
    reset();
    unit.patience = 100;
    assert_int_equal(ask(UNIT_ADD, &shared->words[0], 1, 0), 0);
    assert_int_equal(shared->words[0], 0);
}

static void count_for_ever(struct item *item)
{
    for (;;)
        ask(UNIT_ADD, &shared->words[item->index % 2], 1, 0);
}

static pid_t victim;

static void kill_in_the_middle(void)
{
    if (victim && __atomic_load_n(&shared->words[0], __ATOMIC_RELAXED) > 100) {
        kill(victim, SIGKILL);
        victim = 0;
    }
}

/* The server finds what was whole, and nothing else; a ring that is zeroed is a new one. */
static void a_death_in_the_middle(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        reset();
        victim = fork();
        assert_true(victim >= 0);
        if (victim == 0)
            run_warps(2, 4, count_for_ever);
        int status = serve(victim, 0, kill_in_the_middle);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        host_and_warps_count_together(NULL);
    }
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_and_warps_count_together),
        cmocka_unit_test(combined_operations_are_in_a_row),
        cmocka_unit_test(compare_exchanges_change_once),
        cmocka_unit_test(failures_are_combined),
        cmocka_unit_test(floats_are_added_one_by_one),
        cmocka_unit_test(requests_are_taken_whole),
        cmocka_unit_test(replies_are_taken_whole),
        cmocka_unit_test(wide_numbers_are_whole),
        cmocka_unit_test(a_full_ring_is_waited_for),
        cmocka_unit_test(numbers_may_wrap),
        cmocka_unit_test(requests_are_judged),
        cmocka_unit_test(patience_ends),
        cmocka_unit_test(a_death_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
