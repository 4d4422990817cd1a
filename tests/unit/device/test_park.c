/* process/park.c alone: in which order commands that are held back are let go. Fences are reached
 * in between two looks at them, wherever that can be, so that nothing is left to chance. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/fence.h"
#include "device/process/process.h"
#include "unit/unit.h"

/* Lists of up to as many of the fences in any order: 3 + 3 * 2 + 3 * 2 * 1. */
enum { FENCES = 3, COMMANDS = 3, LISTS = 15 };

/* More than there are looks at fences while three commands are looked through once. */
#define LAST_LOOK 7u

static struct sp_fence_board board;
static const uint32_t own = 2, device_of[FENCES] = {0, 1, 1};
static uint64_t number; /* of all fences of this scene */

static struct {
    unsigned at[FENCES]; /* it is reached when so many looks have been taken */
    int bad;             /* the one that is reached badly; FENCES: none */
    bool is_reached[FENCES];
    unsigned looks;
} world;

static struct {
    unsigned count, fences[FENCES];
} lists[LISTS];

/* --- What park.c calls --------------------------------------------------------------------------
 */

static void reach(unsigned fence)
{
    if (world.is_reached[fence])
        return;
    world.is_reached[fence] = true;
    atomic_fetch_add(&board.lines[device_of[fence]].ends, 1);
}

static void reach_what_is_due(void)
{
    for (unsigned i = 0; i < FENCES; i++)
        if (world.at[i] <= world.looks)
            reach(i);
}

enum sp_fence_state sp_fence_look(const struct sp_fence_board *at, sp_fence fence)
{
    unsigned slot = sp_fence_slot(fence);
    assert_ptr_equal(at, &board);
    assert_true(slot < FENCES && sp_fence_number(fence) == number);
    reach_what_is_due();
    world.looks++;
    if (!world.is_reached[slot])
        return SP_FENCE_NOT_YET;
    return (int)slot == world.bad ? SP_FENCE_BADLY : SP_FENCE_WELL;
}

void sp_fence_reach(struct sp_fence_board *at, sp_fence fence, bool is_well, uint32_t unexports)
{
    (void)at;
    (void)fence;
    (void)is_well;
    (void)unexports;
    fail(); /* nothing has a fence of its own */
}

uint32_t sp_peers_unexports(void)
{
    return 0;
}

void sp_process_fault(uint64_t command, const char *reason)
{
    (void)command;
    print_error("%s\n", reason);
    abort();
}

/* --- Scenes -------------------------------------------------------------------------------------
 */

static unsigned list_of[COMMANDS]; /* what each waits for */
static unsigned order[COMMANDS], num_taken, num_begun;

static bool names(unsigned list, unsigned fence)
{
    for (unsigned i = 0; i < lists[list].count; i++)
        if (lists[list].fences[i] == fence)
            return true;
    return false;
}

/* Whether `later` waits for all that `earlier` waits for. */
static bool covers(unsigned later, unsigned earlier)
{
    for (unsigned i = 0; i < lists[earlier].count; i++)
        if (!names(later, lists[earlier].fences[i]))
            return false;
    return true;
}

static void take(unsigned index)
{
    static union {
        struct sp_command command;
        unsigned char bytes[4 * SP_RECORD_BYTES];
    } record;
    unsigned list = list_of[index];
    record.command = (struct sp_command){.bytes = sizeof record,
                                         .kind = SP_COMMAND_FILL,
                                         .number = index + 1,
                                         .num_after = lists[list].count};
    sp_fence *after = (sp_fence *)sp_command_after(&record.command);
    for (unsigned i = 0; i < lists[list].count; i++)
        after[i] = sp_fence_of(device_of[lists[list].fences[i]], lists[list].fences[i], number);
    assert_int_equal(sp_park_take(&record.command), 1);
    num_taken++;
}

/* As the loop, before it takes the next command. */
static void begin_what_can(void)
{
    bool was_reached[FENCES];
    bool has_begun[COMMANDS] = {false};
    const struct sp_command *command;
    int error = 0;
    memcpy(was_reached, world.is_reached, sizeof was_reached);
    while ((command = sp_park_next(&error))) {
        unsigned index = (unsigned)command->number - 1;
        bool is_bad = names(list_of[index], (unsigned)world.bad);
        for (unsigned i = 0; i < FENCES; i++)
            assert_true(is_bad || world.is_reached[i] || !names(list_of[index], i));
        assert_int_equal(error, is_bad ? -ECANCELED : 0);
        order[num_begun++] = index;
        sp_park_drop(command);
    }
    /* Who is told of an end finds that what waited for that has begun. */
    for (unsigned i = 0; i < num_begun; i++)
        has_begun[order[i]] = true;
    for (unsigned index = 0; index < num_taken; index++) {
        bool is_due = true;
        for (unsigned i = 0; i < FENCES; i++)
            is_due &= was_reached[i] || !names(list_of[index], i);
        assert_true(has_begun[index] || !is_due);
    }
}

static void check_order(void)
{
    assert_int_equal(num_begun, COMMANDS);
    for (unsigned i = 0; i < COMMANDS; i++)
        for (unsigned k = i + 1; k < COMMANDS; k++) /* k was let go after i */
            if (order[k] < order[i] && covers(list_of[order[i]], list_of[order[k]]) &&
                !names(list_of[order[i]], (unsigned)world.bad))
                fail_msg("%u was to begin after %u, and did before: fences at looks %u, %u, %u",
                         order[i], order[k], world.at[0], world.at[1], world.at[2]);
}

/* Each comes when what was there has been looked at; or all before that (is_burst). */
static void play(bool is_burst)
{
    number++;
    num_taken = num_begun = 0;
    world.looks = 0;
    memset(world.is_reached, 0, sizeof world.is_reached);
    for (unsigned i = 0; i < COMMANDS; i++) {
        if (!is_burst)
            begin_what_can();
        take(i);
    }
    begin_what_can();
    for (unsigned i = 0; i < FENCES; i++) {
        reach(i);
        begin_what_can();
    }
    assert_false(sp_park_is_waiting());
    check_order();
}

/* --- Tests --------------------------------------------------------------------------------------
 */

static int set_up(void **state)
{
    (void)state;
    sp_park_init(&board, own);
    unsigned made = 0;
    for (unsigned a = 0; a < FENCES; a++) {
        lists[made].count = 1;
        lists[made++].fences[0] = a;
        for (unsigned b = 0; b < FENCES; b++) {
            if (b == a)
                continue;
            lists[made].count = 2;
            lists[made].fences[0] = a;
            lists[made++].fences[1] = b;
            lists[made].count = FENCES;
            lists[made].fences[0] = a;
            lists[made].fences[1] = b;
            lists[made++].fences[2] = FENCES - a - b;
        }
    }
    return made == LISTS ? 0 : -1;
}

/* With the fences reached at any look, or after all. */
static void at_all_looks(bool is_burst)
{
    for (world.at[0] = 0; world.at[0] <= LAST_LOOK; world.at[0]++)
        for (world.at[1] = 0; world.at[1] <= LAST_LOOK; world.at[1]++)
            for (world.at[2] = 0; world.at[2] <= LAST_LOOK; world.at[2]++)
                play(is_burst);
}

static void at_any_time(int bad)
{
    world.bad = bad;
    for (unsigned lists_taken = 0; lists_taken < LISTS * LISTS * LISTS; lists_taken++) {
        list_of[0] = lists_taken % LISTS;
        list_of[1] = lists_taken / LISTS % LISTS;
        list_of[2] = lists_taken / LISTS / LISTS;
        at_all_looks(false);
        at_all_looks(true);
    }
}

/* Of two commands, the later one that waits for all that the other one waits for begins after it.
 */
static void who_waits_for_more_begins_later(void **state)
{
    (void)state;
    at_any_time(FENCES);
}

static void what_must_not_begin_stands_in_nobodys_way(void **state)
{
    (void)state;
    at_any_time(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_more_begins_later),
        cmocka_unit_test(what_must_not_begin_stands_in_nobodys_way),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
