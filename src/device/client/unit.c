/* The server of a device's atomic unit: a thread that does what the device's kernels ask for, with
 * the processor's atomics (docs/atomic-unit.md).
 *
 * Invariant: `wanted` is 1 exactly while a kernel is in flight that may ask, and it becomes 1
 * before the process sees the kernel. The thread reads the ring only with `unit.lock` held, and
 * gives that up as soon as `wanted` is 0; so who has set it to 0 and then takes the lock has the
 * ring for himself.
 *
 * A GPU can wake no thread, so the ring is looked at for as long as something may come: without
 * pause while requests come and for SPIN_NS after, then once in NAP_NS.
 *
 * What a request names is foreign input: it must be an operation on a granule of the window's
 * atomic part that is bound on this very device, and stays while the server is inside
 * (atomic_part.h). A request that is not ends the process.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "device/client/client.h"
#include "device/unit.h"
#include "util/futex.h"
#include "util/thread.h"
#include "util/time.h"

/* Whoever takes memory off a device waits for one batch at most: about 10 us. */
#define BATCH 64u

/* As long as a waiting thread looks for the end of a GPU's work. */
#define SPIN_NS UINT64_C(1000000)

/* What a request waits longer after that; 1% of a processor is used. */
#define NAP_NS 50000u

/* Clock reads while nothing comes, one for so many pauses. */
#define PAUSES_PER_CLOCK 32u

#define THREAD_STACK_BYTES ((size_t)128 << 10)

/* Does what has come: how many requests. */
static unsigned serve_batch(struct client_device *device)
{
    struct client_unit *unit = &device->unit;
    struct sp_unit_request request;
    unsigned count = 0;
    if (!sp_unit_take(unit->slots, unit->served, &request))
        return 0;
    sp_atomic_enter(&unit->visitor);
    do {
        if (!sp_unit_is_sane(&request) ||
            !sp_atomic_is_bound(request.address, device->device.agent)) {
            unit->is_bad = true;
            unit->bad_operation = request.operation;
            unit->bad_address = request.address;
            break;
        }
        sp_unit_serve(unit->slots, unit->served++, &request);
        count++;
    } while (count < BATCH && sp_unit_take(unit->slots, unit->served, &request));
    sp_atomic_leave(&unit->visitor);
    return count;
}

static bool is_wanted(struct client_unit *unit)
{
    /* Acquire: pairs with begin, though all that is read then is under a lock. */
    return atomic_load_explicit(&unit->wanted, memory_order_acquire);
}

/* With unit.lock held, until no kernel is in flight that may ask, or the process asked nonsense. */
static void serve_while_wanted(struct client_device *device)
{
    struct client_unit *unit = &device->unit;
    uint64_t quiet_since = sp_time_ns();
    while (is_wanted(unit) && !unit->is_bad) {
        unsigned count = 0;
        for (unsigned i = 0; i < PAUSES_PER_CLOCK && !count && !unit->is_bad; i++) {
            count = serve_batch(device);
            if (!count)
                sp_cpu_pause();
        }
        uint64_t now = sp_time_ns();
        if (count)
            quiet_since = now;
        else if (now - quiet_since > SPIN_NS)
            sp_futex_wait_for(&unit->wanted, 1, NAP_NS);
    }
}

static void *run(void *argument)
{
    struct client_device *device = argument;
    struct client_unit *unit = &device->unit;
    for (;;) {
        while (!is_wanted(unit))
            sp_futex_wait(&unit->wanted, 0);
        pthread_mutex_lock(&unit->lock);
        if (unit->slots)
            serve_while_wanted(device);
        bool is_bad = unit->is_bad, is_useless = is_bad || !unit->slots;
        pthread_mutex_unlock(&unit->lock);
        if (is_bad) {
            /* Relaxed: what was bad is read under unit.lock. */
            atomic_store_explicit(&device->is_broken, true, memory_order_relaxed);
            sp_client_wake(device);
        }
        while (is_useless && is_wanted(unit)) /* close takes it back */
            sp_futex_wait(&unit->wanted, 1);
    }
    return NULL;
}

void sp_client_unit_init(struct client_device *device)
{
    pthread_mutex_init(&device->unit.lock, NULL);
    atomic_init(&device->unit.wanted, 0);
}

void sp_client_unit_open(struct client_device *device, struct sp_rings *rings)
{
    struct client_unit *unit = &device->unit;
    pthread_mutex_lock(&unit->lock);
    unit->slots = rings->unit;
    unit->served = 0;
    unit->is_bad = false;
    pthread_mutex_unlock(&unit->lock);
}

/* With the device's lock held. */
static void set_kernels(struct client_unit *unit, unsigned kernels)
{
    bool was_wanted = unit->kernels > 0;
    unit->kernels = kernels;
    if (was_wanted == (kernels > 0))
        return;
    /* Release: see is_wanted. */
    atomic_store_explicit(&unit->wanted, kernels > 0, memory_order_release);
    sp_futex_wake(&unit->wanted, 1);
}

void sp_client_unit_close(struct client_device *device)
{
    struct client_unit *unit = &device->unit;
    pthread_mutex_lock(&device->lock);
    set_kernels(unit, 0);
    pthread_mutex_unlock(&device->lock);
    pthread_mutex_lock(&unit->lock);
    unit->slots = NULL;
    pthread_mutex_unlock(&unit->lock);
}

bool sp_client_unit_is_for(const struct client_device *device, const struct sp_code_kernel *kernel)
{
    return kernel->has_shared_atomics && device->device.info.is_gpu &&
           (device->device.info.svm_levels & SP_SVM_ATOMICS) && sp_atomic_part_is_used();
}

int sp_client_unit_begin(struct client_device *device)
{
    struct client_unit *unit = &device->unit;
    if (device->lacks_atomics)
        return -ENOTSUP;
    if (!unit->is_visitor) {
        sp_atomic_visitor_add(&unit->visitor);
        unit->is_visitor = true;
    }
    if (!unit->has_thread) {
        if (sp_thread_start_detached(run, device, THREAD_STACK_BYTES))
            return -ENOMEM;
        unit->has_thread = true;
    }
    set_kernels(unit, unit->kernels + 1);
    return 0;
}

void sp_client_unit_end(struct client_device *device)
{
    set_kernels(&device->unit, device->unit.kernels - 1);
}

bool sp_client_unit_blames(const struct client_device *device, char *text, size_t size)
{
    if (!device->unit.is_bad)
        return false;
    snprintf(text, size,
             "asked for atomic operation %" PRIu32 " at 0x%" PRIx64
             ", where it has no memory for atomics of all devices,",
             device->unit.bad_operation, device->unit.bad_address);
    return true;
}

void sp_client_unit_after_fork(struct client_device *device)
{
    struct client_unit *unit = &device->unit;
    pthread_mutex_init(&unit->lock, NULL);
    unit->has_thread = false;
    unit->kernels = 0;
    unit->slots = NULL;
    atomic_store_explicit(&unit->wanted, 0, memory_order_relaxed);
    sp_atomic_leave(&unit->visitor);
}
