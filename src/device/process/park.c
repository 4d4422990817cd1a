/* Commands that are held back until the fences that they wait for are reached (docs/ahead.md).
 *
 * A command with fences is copied out of the ring, so that what comes behind it goes on. Each waits
 * for one of its fences at a time. They are looked through, in the order in which they came, when
 * one is new or a device that any of them waits for has reached a fence; what can go on, or never
 * will, is given to the loop. Before the loop takes a command from the ring it takes all of these:
 * so whoever was told of an end, and sends a command because of it, finds that what waited for that
 * end has begun before.
 *
 * Of two commands, the one that came later and waits for all that the other one waits for begins
 * after it.
 *
 * What a record names is checked: nonsense ends the process. What others write into the board is
 * only compared.
 *
 * The loop thread alone comes here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/fence.h"
#include "device/process/process.h"
#include "util/alloc.h"

struct parked {
    struct parked *next;       /* of the ready ones */
    uint32_t reached;          /* so many of its fences are */
    int error;                 /* ready: 0, or why it will not begin */
    struct sp_command command; /* the last member ends with the record */
};

/* A place in the list: apart from the command, so that looking through many is quick. */
struct place {
    sp_fence fence;
    struct parked *parked;
};

static struct {
    struct sp_fence_board *board;
    struct sp_fence_line *own;
    uint32_t index;
    sp_fence fences[SP_MAX_IN_FLIGHT]; /* of commands under way, by number */
    struct place list[SP_MAX_IN_FLIGHT];
    unsigned count;
    struct parked *first_ready, **last_ready;
    bool has_new;
    uint32_t awaited;                     /* bit d: something in the list waits for device d, */
    uint64_t seen[SP_MAX_CLIENT_DEVICES]; /* which had reached so many when it was looked through */
} park = {.last_ready = &park.first_ready};

void sp_park_init(struct sp_fence_board *board, uint32_t index)
{
    park.board = board;
    park.index = index % SP_MAX_CLIENT_DEVICES;
    park.own = &board->lines[park.index];
}

struct sp_fence_line *sp_park_line(void)
{
    return park.own;
}

void sp_park_ended(uint64_t number, int error)
{
    sp_fence *fence = &park.fences[number % SP_MAX_IN_FLIGHT];
    if (*fence)
        sp_fence_reach(park.board, *fence, !error, sp_peers_unexports());
    *fence = 0;
}

static bool is_possible(sp_fence fence)
{
    return sp_fence_device(fence) < SP_MAX_CLIENT_DEVICES &&
           sp_fence_slot(fence) < SP_FENCE_SLOTS && sp_fence_number(fence);
}

int sp_park_take(const struct sp_command *command)
{
    if (command->fence &&
        (!is_possible(command->fence) || sp_fence_device(command->fence) != park.index))
        sp_process_fault(command->number, "a command has a fence that cannot be its own");
    park.fences[command->number % SP_MAX_IN_FLIGHT] = command->fence;
    if (!command->num_after)
        return 0;
    if (command->num_after > SP_MAX_AFTER)
        sp_process_fault(command->number, "a command waits for more fences than it can");
    for (uint32_t i = 0; i < command->num_after; i++)
        if (!is_possible(sp_command_after(command)[i]))
            sp_process_fault(command->number, "a command waits for a fence that cannot be");
    struct parked *parked = park.count < SP_MAX_IN_FLIGHT
                                ? sp_alloc(offsetof(struct parked, command) + command->bytes)
                                : NULL;
    if (!parked)
        return -ENOMEM; /* an end of its own: what waits for the same goes on */
    memcpy(&parked->command, command, command->bytes);
    park.list[park.count++] = (struct place){sp_command_after(command)[0], parked};
    park.has_new = true;
    return 1;
}

/* The source's memory may have changed hands since the record was written: by the end of what it
 * waits for there, at the latest. */
static void learn_unexports(struct sp_command *command, sp_fence fence)
{
    bool names_device =
        (command->kind == SP_COMMAND_TRANSFER || command->kind == SP_COMMAND_BIND_PEER) &&
        command->range.source == sp_fence_device(fence);
    if (!names_device)
        return;
    const struct sp_fence_slot *slot =
        &park.board->lines[sp_fence_device(fence)].slots[sp_fence_slot(fence)];
    uint32_t known = atomic_load_explicit(&slot->unexports, memory_order_relaxed);
    if ((int32_t)(known - command->range.unexports) > 0)
        command->range.unexports = known;
}

/* Goes from fence to fence as far as they are reached; true where it is not held back any more. */
static bool advance(struct place *place)
{
    struct parked *parked = place->parked;
    for (;;) {
        enum sp_fence_state state = sp_fence_look(park.board, place->fence);
        if (state == SP_FENCE_NOT_YET)
            return false;
        if (state == SP_FENCE_BADLY) {
            parked->error = -ECANCELED;
            return true;
        }
        learn_unexports(&parked->command, place->fence);
        if (++parked->reached == parked->command.num_after)
            return true;
        place->fence = sp_command_after(&parked->command)[parked->reached];
    }
}

bool sp_park_has_moved(void)
{
    if (park.first_ready || park.has_new)
        return true;
    for (uint32_t d = 0, left = park.awaited; left; d++, left >>= 1)
        if ((left & 1) &&
            atomic_load_explicit(&park.board->lines[d].ends, memory_order_seq_cst) != park.seen[d])
            return true;
    return false;
}

static void look_through(void)
{
    static bool is_ready[SP_MAX_IN_FLIGHT];
    unsigned kept = 0;
    /* Before the fences: what is reached meanwhile is looked for again. */
    for (uint32_t d = 0; d < SP_MAX_CLIENT_DEVICES; d++)
        park.seen[d] = atomic_load_explicit(&park.board->lines[d].ends, memory_order_acquire);
    park.has_new = false;
    park.awaited = 0;
    /* Backwards, since fences are reached meanwhile: whatever waits for no more than what a later
     * one waits for is found ready with that one, and begins in front of it. */
    for (unsigned i = park.count; i-- > 0;)
        is_ready[i] = advance(&park.list[i]);
    for (unsigned i = 0; i < park.count; i++) {
        struct place place = park.list[i];
        if (is_ready[i]) {
            place.parked->next = NULL;
            *park.last_ready = place.parked;
            park.last_ready = &place.parked->next;
        } else {
            park.awaited |= 1u << sp_fence_device(place.fence);
            park.list[kept++] = place;
        }
    }
    park.count = kept;
}

const struct sp_command *sp_park_next(int *error)
{
    if (!park.count && !park.first_ready)
        return NULL;
    if (!park.first_ready && sp_park_has_moved())
        look_through();
    struct parked *parked = park.first_ready;
    if (!parked)
        return NULL;
    park.first_ready = parked->next;
    if (!park.first_ready)
        park.last_ready = &park.first_ready;
    *error = parked->error;
    return &parked->command;
}

void sp_park_drop(const struct sp_command *command)
{
    free((char *)command - offsetof(struct parked, command));
}

bool sp_park_is_waiting(void)
{
    return park.count || park.first_ready;
}

void sp_park_rest(void)
{
    /* Sequentially consistent, before the look at the fences (fence.c). */
    for (uint32_t d = 0, left = park.awaited; left; d++, left >>= 1)
        if (left & 1)
            atomic_fetch_or_explicit(&park.board->lines[d].awaited_by, 1u << park.index,
                                     memory_order_seq_cst);
}
