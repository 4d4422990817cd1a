/* svm/room_line: who waits for room leaves in order, nobody overtakes an earlier one that needs one
 * of the same agents, and of a rank that must stay only the first is asked. The order is checked
 * against a plain walk through an array. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "svm/coherence.h"
#include "svm/room_line.h"
#include "unit.h"

enum { COMMANDS = 4000, STEPS = 20000, AGENTS = 5, LONG_LINE = 100000 };

static struct sp_coherence commands[LONG_LINE];
static bool has_room[LONG_LINE];
static unsigned asked;

static bool may_leave(struct sp_coherence *coherence)
{
    asked++;
    return has_room[coherence - commands];
}

/* The line as an array, and the rule as a walk through it. */
static struct {
    unsigned numbers[COMMANDS];
    unsigned count;
} model;

static unsigned model_take(unsigned *taken)
{
    unsigned count = 0, kept = 0;
    uint32_t blocked = 0;
    for (unsigned i = 0; i < model.count; i++) {
        unsigned number = model.numbers[i];
        if (commands[number].agents & blocked || !has_room[number]) {
            blocked |= commands[number].agents;
            model.numbers[kept++] = number;
        } else {
            taken[count++] = number;
        }
    }
    model.count = kept;
    return count;
}

static bool model_has(uint32_t agents)
{
    for (unsigned i = 0; i < model.count; i++)
        if (commands[model.numbers[i]].agents & agents)
            return true;
    return false;
}

static void agrees_with_a_walk(void **state)
{
    (void)state;
    static bool is_in_line[COMMANDS];
    static unsigned expected[COMMANDS];
    struct sp_room_line line = {0};
    unsigned seed = 20261130;
    memset(&model, 0, sizeof model);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned number = (unsigned)rand_r(&seed) % COMMANDS;
        if (!is_in_line[number] && rand_r(&seed) % 8) {
            commands[number].agents = 1u << rand_r(&seed) % AGENTS;
            if (rand_r(&seed) % 3 == 0)
                commands[number].agents |= 1u << rand_r(&seed) % AGENTS;
            has_room[number] = rand_r(&seed) % 2;
            is_in_line[number] = true;
            model.numbers[model.count++] = number;
            sp_room_line_add(&line, &commands[number]);
        } else if (is_in_line[number]) {
            has_room[number] = true;
        }
        uint32_t agents = (uint32_t)rand_r(&seed) % (1u << AGENTS);
        assert_int_equal(sp_room_line_has(&line, agents), model_has(agents));
        if (step % 5)
            continue;
        unsigned count = model_take(expected);
        struct sp_coherence *taken = sp_room_line_take(&line, may_leave);
        for (unsigned i = 0; i < count; i++, taken = taken->line.next) {
            assert_non_null(taken);
            assert_ptr_equal(taken, &commands[expected[i]]);
            is_in_line[expected[i]] = false;
        }
        assert_null(taken);
    }
}

static void asks_the_first_of_each_rank(void **state)
{
    (void)state;
    struct sp_room_line line = {0};
    for (unsigned i = 0; i < LONG_LINE; i++) {
        commands[i].agents = i % 2 ? 4 : 2;
        has_room[i] = false;
        sp_room_line_add(&line, &commands[i]);
    }
    for (unsigned i = 0; i < LONG_LINE; i++) {
        has_room[i] = true;
        asked = 0;
        struct sp_coherence *taken = sp_room_line_take(&line, may_leave);
        assert_ptr_equal(taken, &commands[i]);
        assert_null(taken->line.next);
        assert_true(asked <= 3); /* it, the one behind it, the other rank's first */
    }
    assert_false(sp_room_line_has(&line, 6));
    assert_null(sp_room_line_take(&line, may_leave));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_walk),
        cmocka_unit_test(asks_the_first_of_each_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
