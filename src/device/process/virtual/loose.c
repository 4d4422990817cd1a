/* A virtual device that makes use of what commands say that they may run beside
 * (SP_COMMAND_BESIDE_), as a GPU with several streams does: for tests, in which nothing that was
 * said may turn out to be wrong. SAMEPAGE_VIRTUAL_LOOSE=N switches it on; N seeds the order.
 *
 * Commands are held back in three lanes: works, transfers to the device and transfers to the host.
 * Each lane keeps its order. What a command does not say that it may run beside is done before the
 * command is put into its lane; from then on it may run at any time. When that is a generator of
 * random numbers says, and at the latest when nothing more has come for a while. So a transfer
 * overtakes kernels, and kernels overtake transfers, far more than on any hardware.
 *
 * The loop thread alone comes here.
 */
#include <stdlib.h>
#include <string.h>

#include "device/process/virtual/virtual.h"
#include "util/alloc.h"

/* Held back at most. */
#define MAX_HELD 64u

/* Looks of the loop, of some 30 ns each, until what is held back is done though nothing else comes.
 */
#define MAX_PATIENCE 4096u

enum lane { WORKS, ARRIVALS, DEPARTURES, NUM_LANES };

struct held {
    struct held *next;
    void *code;
    struct sp_command command; /* the last member ends with the record */
};

static struct {
    struct held *first[NUM_LANES], **last[NUM_LANES];
    unsigned count, patience;
    uint64_t random; /* 0: it is off */
} loose;

void sp_virtual_loose_init(void)
{
    const char *seed = getenv("SAMEPAGE_VIRTUAL_LOOSE");
    loose.random = seed ? strtoull(seed, NULL, 10) * 2 + 1 : 0;
    for (unsigned l = 0; l < NUM_LANES; l++)
        loose.last[l] = &loose.first[l];
}

/* xorshift64* */
static unsigned draw(unsigned below)
{
    loose.random ^= loose.random >> 12;
    loose.random ^= loose.random << 25;
    loose.random ^= loose.random >> 27;
    return (unsigned)(loose.random * UINT64_C(0x2545f4914f6cdd1d) >> 33) % below;
}

static void run_first(enum lane lane)
{
    struct held *held = loose.first[lane];
    loose.first[lane] = held->next;
    if (!held->next)
        loose.last[lane] = &loose.first[lane];
    loose.count--;
    sp_virtual_run(&held->command, held->code);
    free(held);
}

static void run_lane(enum lane lane)
{
    while (loose.first[lane])
        run_first(lane);
}

static void run_all(void)
{
    while (loose.count) {
        enum lane lane = draw(NUM_LANES);
        if (loose.first[lane])
            run_first(lane);
    }
}

static enum lane lane_of(const struct sp_command *command)
{
    if (command->kind != SP_COMMAND_TRANSFER)
        return WORKS;
    return command->range.destination == SP_PLACE_HOST ? DEPARTURES : ARRIVALS;
}

static bool may_be_held(const struct sp_command *command)
{
    switch (command->kind) {
    case SP_COMMAND_KERNEL:
        return !command->kernel.ticket;
    case SP_COMMAND_COPY:
    case SP_COMMAND_RECT:
    case SP_COMMAND_FILL:
    case SP_COMMAND_TRANSFER:
        return true;
    default:
        return false; /* what is bound or declared changes for all */
    }
}

bool sp_virtual_loose_take(const struct sp_command *command, void *code)
{
    static const uint16_t beside[NUM_LANES] = {SP_COMMAND_BESIDE_WORKS, SP_COMMAND_BESIDE_ARRIVALS,
                                               SP_COMMAND_BESIDE_DEPARTURES};
    if (!loose.random)
        return false;
    struct held *held = NULL;
    if (may_be_held(command) && loose.count < MAX_HELD)
        held = sp_alloc(offsetof(struct held, command) + command->bytes);
    if (!held) {
        run_all();
        return false;
    }
    enum lane lane = lane_of(command);
    for (unsigned l = 0; l < NUM_LANES; l++)
        if (l != lane && !(command->flags & beside[l]))
            run_lane(l);
    memcpy(&held->command, command, command->bytes);
    held->code = code;
    held->next = NULL;
    *loose.last[lane] = held;
    loose.last[lane] = &held->next;
    loose.count++;
    loose.patience = draw(MAX_PATIENCE);
    for (unsigned runs = draw(3); runs; runs--) {
        lane = draw(NUM_LANES);
        if (loose.first[lane])
            run_first(lane);
    }
    return true;
}

bool sp_virtual_loose_progress(bool has_more)
{
    if (!has_more && loose.count && loose.patience-- == 0)
        run_all();
    return loose.count;
}

void sp_virtual_loose_rest(void)
{
    run_all();
    sp_process_wake();
}
