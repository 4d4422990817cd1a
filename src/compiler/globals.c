/* See globals.h. What it owns: the block, and the work that writes the initial values.
 *
 * On a device with memory of its own that is a use of the region like a kernel's: begun, submitted
 * and ended with the work, so the directory knows where the values are. Who enqueues a kernel waits
 * only for its start, which puts it into the device's ring in front of the kernel. A command on its
 * second try, which is to rely on nothing, waits for its end, and has the values written again
 * where that was not well (sp_values.give).
 *
 * Invariant: one such work at a time, and none where the values are given: what kernels have made
 * of them since would be lost. Hence the turn.
 */
#include "compiler/globals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/context.h"
#include "svm/check.h"
#include "svm/coherence.h"
#include "svm/heap.h"
#include "util/alloc.h"
#include "util/gate.h"

/* Set in `life` (sp_device.life, from 1 on): the initial values are about to be submitted. The
 * other bits say by whom. */
#define LIFE_UNDER_WAY (UINT32_C(1) << 31)

/* The initial values on their way. */
struct init {
    struct sp_coherence coherence;
    struct sp_work work;
    struct sp_globals *globals; /* whose executable has a reference: its code writes them */
    atomic_uint references;     /* of who begins it, and of the work; and of who waits */
    uint32_t under_way;         /* this very one, in `life` */
    struct sp_gate begun;       /* the work was submitted, or `error` says why not */
    int error;
};

static void unreference(struct init *init)
{
    /* Acquire and release: what was done with it comes before its end. */
    if (atomic_fetch_sub_explicit(&init->references, 1, memory_order_acq_rel) != 1)
        return;
    sp_executable_unreference(init->globals->executable);
    free(init);
}

/* --- The turn
 * ---------------------------------------------------------------------------------------- */

static bool are_current(const struct sp_globals *globals)
{
    /* Acquire: the work that writes the values is submitted. Relaxed: a device that dies now fails
     * what is submitted. */
    return !globals->device->info.own_memory ||
           atomic_load_explicit(&globals->values.life, memory_order_acquire) ==
               atomic_load_explicit(&globals->device->life, memory_order_relaxed);
}

static void try_for_those(struct sp_globals *globals);

static void tell(struct sp_values_wait *wait, int error)
{
    for (struct sp_values_wait *next; wait; wait = next) {
        next = wait->next;
        wait->given(wait, error);
    }
}

static void take_turn(struct sp_globals *globals)
{
    pthread_mutex_lock(&globals->turn_lock);
    while (globals->has_turn)
        pthread_cond_wait(&globals->turn_over, &globals->turn_lock);
    globals->has_turn = true;
    pthread_mutex_unlock(&globals->turn_lock);
}

/* A command's error comes from a try that was made for it and relied on nothing: where this one was
 * not, since it relied on something, or had begun when the command asked (which may have learned of
 * this very failure before it was told), another one is made, for all of those at once. The caller
 * keeps the executable. */
static void end_turn(struct sp_globals *globals, int error)
{
    pthread_mutex_lock(&globals->turn_lock);
    struct sp_values_wait *tried_for = globals->tried_for, *others = globals->waiting;
    bool is_again = error && others;
    globals->tried_for = is_again ? others : NULL;
    globals->waiting = NULL;
    globals->has_turn = is_again;
    pthread_cond_broadcast(&globals->turn_over);
    pthread_mutex_unlock(&globals->turn_lock);
    tell(tried_for, error);
    if (is_again)
        try_for_those(globals);
    else
        tell(others, error);
}

/* What is tried from now on relies on nothing: it is for those, too, who wait by now. */
static void try_for_all(struct sp_globals *globals)
{
    pthread_mutex_lock(&globals->turn_lock);
    globals->tried_for = globals->waiting;
    globals->waiting = NULL;
    pthread_mutex_unlock(&globals->turn_lock);
}

/* --- Writing them
 * ------------------------------------------------------------------------------------ */

static void init_finished(struct sp_work *work, int error)
{
    struct init *init = (struct init *)((char *)work - offsetof(struct init, work));
    atomic_uint *life = &init->globals->values.life;
    uint32_t in_life = work->life, under_way = init->under_way;
    bool is_strict = init->coherence.is_strict;
    error = sp_coherence_outcome(&init->coherence, error);
    /* Before the failure is counted, which is when this returns: a command that the device does not
     * know to be behind a failure finds this (docs/device-process.md). Release: pairs with the
     * command's look. */
    if (error)
        atomic_store_explicit(life, 0, memory_order_release);
    else /* who submits it may not have said so yet */
        atomic_compare_exchange_strong_explicit(life, &under_way, in_life, memory_order_release,
                                                memory_order_relaxed);
    sp_coherence_end(&init->coherence, !error);
    if (error == -ENOMEM)
        error = -ENOSPC; /* it was the device's */
    else if (error == -ECANCELED && is_strict)
        error = -EIO; /* a device that does so is not asked for ever */
    end_turn(init->globals, error);
    unreference(init);
}

/* Who asks meanwhile takes the lock, and waits: only behind the work may anybody rely on it. */
static void submit(struct init *init)
{
    struct sp_globals *globals = init->globals;
    uint32_t life = init->work.life, under_way = init->under_way;
    atomic_store_explicit(&globals->values.life, under_way, memory_order_relaxed);
    globals->device->ops->submit(globals->device, &init->work);
    /* Where it has failed by now, that stays. Release: who sees this submits behind the work. */
    atomic_compare_exchange_strong_explicit(&globals->values.life, &under_way, life,
                                            memory_order_release, memory_order_relaxed);
}

static void ranges_ready(struct sp_coherence *coherence)
{
    struct init *init = (struct init *)((char *)coherence - offsetof(struct init, coherence));
    struct sp_globals *globals = init->globals;
    /* Relaxed: who settled last calls this. */
    int error = atomic_load_explicit(&coherence->error, memory_order_relaxed);
    if (error == -ECANCELED && !coherence->is_strict) {
        sp_coherence_restart(coherence);
        coherence->is_strict = true;
        try_for_all(globals);
        sp_coherence_begin(coherence, globals->arena, globals->device->agent);
        return;
    }
    init->error = error;
    if (error) {
        sp_coherence_end(coherence, false);
        end_turn(globals, error);
        unreference(init); /* there is no work */
    } else {
        init->work.failures_seen = sp_coherence_failures_seen(coherence);
        submit(init);
    }
    sp_gate_open(&init->begun);
    unreference(init);
}

/* Has the initial values written on the device, by who has the turn, which ends with that.
 * `is_strict`: relying on nothing that is under way there. NULL: there is no memory, and the turn
 * has not ended. Else with a reference for the caller. */
static struct init *begin_on_device(struct sp_globals *globals, unsigned char *address,
                                    bool is_strict)
{
    struct init *init = sp_alloc(sizeof *init);
    if (!init)
        return NULL;
    init->globals = globals;
    init->under_way = LIFE_UNDER_WAY | (globals->num_turns++ & ~LIFE_UNDER_WAY);
    init->coherence.ready = ranges_ready;
    init->coherence.is_strict = is_strict;
    /* It is the last try of those who wait for it, however long ago their first one was. */
    init->coherence.shortages_before = is_strict ? SP_ALL_SHORTAGES : 0;
    init->coherence.work = &init->work;
    init->work.kind = SP_WORK_INIT_GLOBALS;
    init->work.init.code = globals->code;
    init->work.init.globals = address;
    init->work.finished = init_finished;
    sp_coherence_note_failures(&init->coherence, globals->device);
    if (sp_coherence_touch(&init->coherence, globals->arena, address, 0, SP_ACCESS_READ_WRITE)) {
        free(init);
        return NULL;
    }
    sp_executable_reference(globals->executable);
    atomic_init(&init->references, 3);
    sp_gate_init(&init->begun);
    sp_coherence_begin(&init->coherence, globals->arena, globals->device->agent);
    return init;
}

/* Makes all of them zero, as the host sees them. */
static void clear(struct sp_globals *globals, unsigned char *address)
{
    size_t bytes = sp_executable_info(globals->executable)->globals_bytes;
    struct sp_device *device = globals->device;
    if (sp_check_is_on)
        sp_check_allow(address);
    memset(address, 0, bytes);
    if (!device->info.own_memory)
        device->ops->init_globals(globals->code, address);
    if (sp_check_is_on)
        sp_check_disallow(address);
    sp_region_written(globals->arena, address, bytes);
}

static int make_on_device(struct sp_globals *globals, unsigned char *address)
{
    take_turn(globals);
    if (are_current(globals)) { /* a command on its second try was faster */
        end_turn(globals, 0);
        return 0;
    }
    clear(globals, address);
    struct init *init = begin_on_device(globals, address, false);
    if (!init) {
        end_turn(globals, -ENOMEM);
        return -ENOMEM;
    }
    sp_gate_wait(&init->begun);
    int error = init->error;
    unreference(init);
    return error;
}

/* With the lock held. */
static int make(struct sp_globals *globals, struct sp_code *code)
{
    unsigned char *address = atomic_load_explicit(&globals->address, memory_order_relaxed);
    bool is_new = !address;
    int error = 0;
    if (is_new) {
        size_t bytes = sp_executable_info(globals->executable)->globals_bytes;
        address = sp_arena_alloc(globals->arena, bytes, 0, SP_REGION_IS_BUFFER, SP_PATH_PRIVATE);
        globals->code = code;
    }
    if (!address)
        return -ENOMEM;
    if (globals->device->info.own_memory)
        error = make_on_device(globals, address);
    else
        clear(globals, address);
    if (error && is_new)
        sp_arena_free(globals->arena, address);
    if (error)
        return error;
    /* Release: pairs with sp_globals_get; the values are there, or submitted. */
    atomic_store_explicit(&globals->address, address, memory_order_release);
    return 0;
}

int sp_globals_get(struct sp_globals *globals, struct sp_code *code, unsigned char **address)
{
    int error = 0;
    /* Acquire: the initial values are there, or submitted. */
    *address = atomic_load_explicit(&globals->address, memory_order_acquire);
    if (*address && are_current(globals))
        return 0;
    pthread_mutex_lock(&globals->lock);
    *address = atomic_load_explicit(&globals->address, memory_order_relaxed);
    if (!*address || !are_current(globals))
        error = make(globals, code);
    *address = atomic_load_explicit(&globals->address, memory_order_relaxed);
    pthread_mutex_unlock(&globals->lock);
    return error;
}

/* By who has the turn, for `tried_for`: relying on nothing. */
static void try_for_those(struct sp_globals *globals)
{
    /* Relaxed: who asks has the address from sp_globals_get. */
    unsigned char *address = atomic_load_explicit(&globals->address, memory_order_relaxed);
    struct sp_executable *executable = sp_executable_reference(globals->executable);
    clear(globals, address);
    struct init *init = begin_on_device(globals, address, true);
    if (init)
        unreference(init);
    else
        end_turn(globals, -ENOMEM);
    sp_executable_unreference(executable);
}

/* sp_values.give */
static void give(struct sp_values *values, struct sp_values_wait *wait)
{
    struct sp_globals *globals = (struct sp_globals *)values;
    pthread_mutex_lock(&globals->turn_lock);
    bool is_given = !globals->has_turn && are_current(globals);
    bool is_first = !globals->has_turn && !is_given;
    if (!is_given) {
        struct sp_values_wait **list = is_first ? &globals->tried_for : &globals->waiting;
        wait->next = *list;
        *list = wait;
        globals->has_turn = true;
    }
    pthread_mutex_unlock(&globals->turn_lock);
    if (is_given)
        wait->given(wait, 0);
    if (is_first)
        try_for_those(globals);
}

void sp_globals_init(struct sp_globals *globals, struct sp_executable *executable,
                     struct sp_arena *arena, struct sp_device *device)
{
    atomic_init(&globals->values.life, 0);
    globals->values.give = give;
    globals->executable = executable;
    globals->arena = arena;
    globals->device = device;
    pthread_mutex_init(&globals->lock, NULL);
    atomic_init(&globals->address, NULL);
    pthread_mutex_init(&globals->turn_lock, NULL);
    pthread_cond_init(&globals->turn_over, NULL);
}

void sp_globals_finish(struct sp_globals *globals)
{
    unsigned char *address = atomic_load_explicit(&globals->address, memory_order_relaxed);
    if (address)
        sp_arena_free(globals->arena, address);
    pthread_cond_destroy(&globals->turn_over);
    pthread_mutex_destroy(&globals->turn_lock);
    pthread_mutex_destroy(&globals->lock);
}

bool sp_globals_exist(const struct sp_globals *globals)
{
    return atomic_load_explicit(&globals->address, memory_order_relaxed) != NULL;
}
