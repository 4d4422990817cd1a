/* See globals.h. What it owns: the block, and the work that writes the initial values.
 *
 * On a device with memory of its own that is a use of the region like a kernel's: begun, submitted
 * and ended with the work, so the directory knows where the values are. Only its start is waited
 * for, which puts it into the device's ring in front of who asked.
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

void sp_globals_init(struct sp_globals *globals)
{
    pthread_mutex_init(&globals->lock, NULL);
    atomic_init(&globals->address, NULL);
    atomic_init(&globals->life, 0);
}

void sp_globals_finish(struct sp_globals *globals, struct sp_arena *arena)
{
    unsigned char *address = atomic_load_explicit(&globals->address, memory_order_relaxed);
    if (address)
        sp_arena_free(arena, address);
    pthread_mutex_destroy(&globals->lock);
}

bool sp_globals_exist(const struct sp_globals *globals)
{
    return atomic_load_explicit(&globals->address, memory_order_relaxed) != NULL;
}

/* No life (sp_device.life, from 1 on): the initial values are about to be submitted. */
#define LIFE_UNDER_WAY UINT32_MAX

/* The initial values on their way. */
struct init {
    struct sp_coherence coherence;
    struct sp_work work;
    struct sp_device *device;
    struct sp_globals *globals;       /* the executable's */
    struct sp_executable *executable; /* a reference: its code writes them */
    atomic_uint references;           /* of who waits, and of the work */
    struct sp_gate begun;             /* the work was submitted, or `error` says why not */
    int error;
};

static void unreference(struct init *init)
{
    /* Acquire and release: what was done with it comes before its end. */
    if (atomic_fetch_sub_explicit(&init->references, 1, memory_order_acq_rel) != 1)
        return;
    sp_executable_unreference(init->executable);
    free(init);
}

static void init_finished(struct sp_work *work, int error)
{
    struct init *init = (struct init *)((char *)work - offsetof(struct init, work));
    error = sp_coherence_outcome(&init->coherence, error);
    /* Before the failure is counted, which is when this returns: a command that the device does not
     * know to be behind a failure finds this (docs/device-process.md). Release: pairs with the
     * command's look. */
    if (error)
        atomic_store_explicit(&init->globals->life, 0, memory_order_release);
    sp_coherence_end(&init->coherence, !error);
    unreference(init);
}

/* Who asks meanwhile takes the lock, and waits: only behind the work may anybody rely on it. */
static void submit(struct init *init, uint32_t life)
{
    atomic_uint *known = &init->globals->life;
    uint32_t under_way = LIFE_UNDER_WAY;
    atomic_store_explicit(known, under_way, memory_order_relaxed);
    init->device->ops->submit(init->device, &init->work); /* the work may be gone when it returns */
    /* Where it has failed by now, that stays. Release: who sees this submits behind the work. */
    atomic_compare_exchange_strong_explicit(known, &under_way, life, memory_order_release,
                                            memory_order_relaxed);
}

static void ranges_ready(struct sp_coherence *coherence)
{
    struct init *init = (struct init *)((char *)coherence - offsetof(struct init, coherence));
    /* Relaxed: who settled last calls this. */
    init->error = atomic_load_explicit(&coherence->error, memory_order_relaxed);
    if (init->error) {
        sp_coherence_end(coherence, false);
        unreference(init); /* there is no work */
    } else {
        init->work.failures_seen = sp_coherence_failures_seen(coherence);
        submit(init, init->work.life);
    }
    sp_gate_open(&init->begun); /* who waits has a reference until then */
}

/* Has the initial values written on the device. `is_strict`: relying on nothing that is under way
 * there. With the lock held. */
static int try_on_device(struct sp_globals *globals, struct sp_executable *executable,
                         struct sp_arena *arena, struct sp_device *device, struct sp_code *code,
                         unsigned char *address, bool is_strict)
{
    struct init *init = sp_alloc(sizeof *init);
    if (!init)
        return -ENOMEM;
    init->device = device;
    init->globals = globals;
    init->coherence.ready = ranges_ready;
    init->coherence.is_strict = is_strict;
    init->coherence.work = &init->work;
    init->work.kind = SP_WORK_INIT_GLOBALS;
    init->work.init.code = code;
    init->work.init.globals = address;
    init->work.finished = init_finished;
    sp_coherence_note_failures(&init->coherence, device);
    int error = sp_coherence_touch(&init->coherence, arena, address, 0, SP_ACCESS_READ_WRITE);
    if (error) {
        free(init);
        return error;
    }
    init->executable = sp_executable_reference(executable);
    atomic_init(&init->references, 2);
    sp_gate_init(&init->begun);
    sp_coherence_begin(&init->coherence, arena, device->agent);
    sp_gate_wait(&init->begun);
    error = init->error;
    unreference(init);
    return error;
}

static int init_on_device(struct sp_globals *globals, struct sp_executable *executable,
                          struct sp_arena *arena, struct sp_device *device, struct sp_code *code,
                          unsigned char *address)
{
    int error = try_on_device(globals, executable, arena, device, code, address, false);
    return error == -ECANCELED
               ? try_on_device(globals, executable, arena, device, code, address, true)
               : error;
}

static bool are_current(const struct sp_globals *globals, const struct sp_device *device)
{
    /* Acquire: the work that writes the values is submitted. Relaxed: a device that dies now fails
     * what is submitted. */
    return !device->info.own_memory ||
           atomic_load_explicit(&globals->life, memory_order_acquire) ==
               atomic_load_explicit(&device->life, memory_order_relaxed);
}

/* With the lock held. */
static int make(struct sp_globals *globals, struct sp_executable *executable,
                struct sp_arena *arena, struct sp_device *device, struct sp_code *code)
{
    size_t bytes = sp_executable_info(executable)->globals_bytes;
    unsigned char *address = atomic_load_explicit(&globals->address, memory_order_relaxed);
    bool is_new = !address;
    int error = 0;
    if (is_new)
        address = sp_arena_alloc(arena, bytes, 0, SP_REGION_IS_BUFFER, SP_PATH_PRIVATE);
    if (!address)
        return -ENOMEM;
    if (sp_check_is_on)
        sp_check_allow(address);
    memset(address, 0, bytes);
    if (!device->info.own_memory)
        device->ops->init_globals(code, address);
    if (sp_check_is_on)
        sp_check_disallow(address);
    sp_region_written(arena, address, bytes);
    if (device->info.own_memory)
        error = init_on_device(globals, executable, arena, device, code, address);
    if (error && is_new)
        sp_arena_free(arena, address);
    if (error)
        return error;
    /* Release: pairs with sp_globals_get; the values are there, or submitted. */
    atomic_store_explicit(&globals->address, address, memory_order_release);
    return 0;
}

int sp_globals_get(struct sp_globals *globals, struct sp_executable *executable,
                   struct sp_arena *arena, struct sp_device *device, struct sp_code *code,
                   unsigned char **address)
{
    int error = 0;
    /* Acquire: the initial values are there, or submitted. */
    *address = atomic_load_explicit(&globals->address, memory_order_acquire);
    if (*address && are_current(globals, device))
        return 0;
    pthread_mutex_lock(&globals->lock);
    *address = atomic_load_explicit(&globals->address, memory_order_relaxed);
    if (!*address || !are_current(globals, device))
        error = make(globals, executable, arena, device, code);
    *address = atomic_load_explicit(&globals->address, memory_order_relaxed);
    pthread_mutex_unlock(&globals->lock);
    return error;
}
