/* Program-scope variables: one block of memory for each executable and root device.
 *
 * It is an ordinary region of the context's arena, of the private path: a kernel that may reach it
 * names it as it names a buffer, so it lies in the device's own memory, is evicted and comes back,
 * and is lost with the device as any other. A device that has died starts with the initial values
 * again; and where they could not be written, commands that were to find them have them written
 * once more when they begin again, or fail.
 */
#ifndef SP_COMPILER_GLOBALS_H
#define SP_COMPILER_GLOBALS_H

#include <pthread.h>
#include <stdatomic.h>

#include "compiler/executable.h"
#include "runtime/values.h"

struct sp_globals {
    struct sp_values values; /* first: what commands see of them */
    /* The same from sp_globals_init on: */
    struct sp_executable *executable; /* which owns this */
    struct sp_arena *arena;
    struct sp_device *device;
    pthread_mutex_t lock;             /* of who makes them; comes before all locks of svm/ */
    _Atomic(unsigned char *) address; /* NULL until first used */
    struct sp_code *code;             /* set before `address`, once */
    /* Own memory: the turn, which one work has that writes the initial values, from before it
     * begins until it has ended. Its lock comes last, and is held for a few instructions. */
    pthread_mutex_t turn_lock;
    pthread_cond_t turn_over;
    bool has_turn;                    /* somebody */
    struct sp_values_wait *tried_for; /* asked before that one began, who relies on nothing */
    struct sp_values_wait *waiting;   /* the others who wait for that one's end */
    uint32_t num_turns;               /* whoever has the turn counts it */
};

/* `arena`: the context's. */
void sp_globals_init(struct sp_globals *globals, struct sp_executable *executable,
                     struct sp_arena *arena, struct sp_device *device);

/* Gives the memory back. No work that uses it is left. */
void sp_globals_finish(struct sp_globals *globals);

/* Whether anybody has asked for them. */
bool sp_globals_exist(const struct sp_globals *globals);

/* Their address, which stays the same. At first, and in each new life of the device, they get their
 * initial values, by `code` of the executable: works that are submitted to the device afterwards
 * find them, unless values.life says otherwise then. Waits until there is room for them on the
 * device. 0, -ENOMEM, -ENOSPC, or -EIO where the device has died meanwhile. */
int sp_globals_get(struct sp_globals *globals, struct sp_code *code, unsigned char **address);

#endif
