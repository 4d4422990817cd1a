/* From records of the completion ring to finished works.
 *
 * The ring is read by whoever holds `claim`: the device's thread, or a waiting thread, which then
 * saves two wake-ups. While nobody holds it, application_sleeps is 1 and the process wakes the
 * device's thread; who gives the claim up sets the word and looks at the ring once more (unclaim).
 *
 * What kernels printed is put out before the completions that came after it are looked at.
 *
 * A record is copied out before it is looked at, since the process could change it. The number must
 * be that of a work in flight and the kind one of two, or else the process is broken and is ended.
 *
 * What was read is listed as done under `lock`, in the ring's order, and the calls into the runtime
 * are made from that list by one thread at a time and in that order, with no lock held: a call may
 * submit, free or wait as it likes. A call that itself waits makes the later calls from within (the
 * deliverer knows itself).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/client/client.h"
#include "util/futex.h"
#include "util/time.h"

/* Clock reads while spinning, one for so many pauses. */
#define PAUSES_PER_CLOCK 32u

struct sp_work *sp_in_flight_take(struct in_flight *table, const struct sp_completion *record)
{
    uint64_t number = record->number;
    if (number < table->first || number >= table->next)
        return NULL;
    struct sp_work **place = &table->works[number % SP_MAX_IN_FLIGHT];
    struct sp_work *work = *place;
    if (!work)
        return NULL;
    if (record->kind == SP_COMPLETION_STARTED)
        return work->started && !(work->driver.workers & WORK_STARTED) ? work : NULL;
    if (record->kind != SP_COMPLETION_FINISHED)
        return NULL;
    *place = NULL;
    while (table->first < table->next && !table->works[table->first % SP_MAX_IN_FLIGHT])
        table->first++;
    return work;
}

/* With the lock held. */
static void list_done(struct client_device *device, struct sp_work *work, unsigned due)
{
    work->driver.workers |= due;
    if (!work->driver.listed) {
        work->driver.listed = true;
        work_list_append(&device->done, work);
    }
}

static void start_locked(struct client_device *device, struct sp_work *work)
{
    if (!work->started || (work->driver.workers & WORK_STARTED))
        return;
    list_done(device, work, WORK_STARTED | WORK_START_DUE);
}

void sp_client_finish_locked(struct client_device *device, struct sp_work *work, int error)
{
    atomic_store_explicit(&work->driver.error, error, memory_order_relaxed);
    sp_client_fences_finish(device, work);
    list_done(device, work, WORK_FINISH_DUE);
}

/* Times are the process's word: kept in order, and not in the future. */
static void set_times(struct sp_work *work, const struct sp_completion *record)
{
    uint64_t now = sp_time_ns();
    work->end_ns = record->end_ns && record->end_ns < now ? record->end_ns : now;
    work->start_ns =
        record->start_ns && record->start_ns < work->end_ns ? record->start_ns : work->end_ns;
}

static int clamp_error(int error)
{
    enum { LAST_ERRNO = 4095 }; /* what the kernel's own interface allows */
    return error <= 0 && error >= -LAST_ERRNO ? error : -EIO;
}

static bool is_broken(struct client_device *device)
{
    return atomic_load_explicit(&device->is_broken, memory_order_relaxed);
}

static void set_broken(struct client_device *device)
{
    atomic_store_explicit(&device->is_broken, true, memory_order_relaxed);
}

/* Completions, or something printed. */
static bool has_completions(struct client_device *device, memory_order order)
{
    return atomic_load_explicit(&device->rings->completion_tail, order) !=
               device->completion_head ||
           atomic_load_explicit(&device->rings->print_tail, order) != device->print_head;
}

/* Puts out what kernels printed. False: nonsense. */
static bool take_prints(struct client_device *device)
{
    struct sp_rings *rings = device->rings;
    uint64_t tail = atomic_load_explicit(&rings->print_tail, memory_order_acquire);
    if (tail == device->print_head)
        return true;
    if (tail - device->print_head > SP_PRINT_RING_BYTES)
        return false;
    while (device->print_head != tail) {
        uint64_t at = device->print_head % SP_PRINT_RING_BYTES, count = tail - device->print_head;
        if (count > SP_PRINT_RING_BYTES - at)
            count = SP_PRINT_RING_BYTES - at;
        fwrite(rings->prints + at, 1, count, stdout);
        device->print_head += count;
    }
    fflush(stdout);
    /* Sequentially consistent, before the look at print_waits (prints.c). */
    atomic_store_explicit(&rings->print_head, tail, memory_order_seq_cst);
    if (atomic_exchange_explicit(&rings->print_waits, 0, memory_order_seq_cst))
        sp_futex_wake_shared(&rings->print_waits, 1);
    return true;
}

/* With the lock held, before the work of the record is finished: transfers that are submitted then
 * name this count. False: it goes backwards. */
static bool set_unexports(struct client_device *device, uint32_t unexports)
{
    uint64_t known = atomic_load_explicit(&device->generation_and_unexports, memory_order_relaxed);
    int32_t more = (int32_t)(unexports - (uint32_t)known);
    if (more)
        atomic_store_explicit(&device->generation_and_unexports,
                              (known & ~UINT64_C(0xffffffff)) | unexports, memory_order_relaxed);
    return more >= 0;
}

bool sp_client_take_completions(struct client_device *device)
{
    struct sp_rings *rings = device->rings;
    /* Acquire: pairs with the store after the records, and after what the works did to memory. */
    uint64_t tail = atomic_load_explicit(&rings->completion_tail, memory_order_acquire);
    if (!is_broken(device) && !take_prints(device))
        set_broken(device);
    if (tail == device->completion_head || is_broken(device))
        return !is_broken(device);
    if (tail - device->completion_head > SP_COMPLETION_RECORDS) {
        set_broken(device);
        return false;
    }
    pthread_mutex_lock(&device->lock);
    while (device->completion_head != tail && !is_broken(device)) {
        struct sp_completion record;
        memcpy(&record, &rings->completions[device->completion_head++ % SP_COMPLETION_RECORDS],
               sizeof record);
        /* The copy is what is judged: the compiler must not read the ring again. */
        atomic_signal_fence(memory_order_seq_cst);
        struct sp_work *work = sp_in_flight_take(&device->in_flight, &record);
        if (!work || !set_unexports(device, record.unexports)) {
            set_broken(device);
            break;
        }
        if (record.kind == SP_COMPLETION_STARTED || record.error != -ECANCELED)
            start_locked(device, work);
        if (record.kind == SP_COMPLETION_FINISHED) {
            if (work->timed)
                set_times(work, &record);
            if (work->kind == SP_WORK_KERNEL) /* only a number to look up, whatever it is */
                work->kernel.undeclared = record.undeclared;
            if (work->driver.workers & WORK_USES_UNIT)
                sp_client_unit_end(device);
            if (record.is_failure) {
                work->driver.workers |= WORK_COUNTS;
                /* Relaxed: who must see it has seen what `finished` did. */
                atomic_fetch_add_explicit(&device->device.failures_coming, 1, memory_order_relaxed);
            }
            device->finished_works++;
            sp_client_finish_locked(device, work, clamp_error(record.error));
        }
    }
    sp_client_flush(device);
    uint32_t announced =
        (uint32_t)atomic_load_explicit(&device->generation_and_unexports, memory_order_relaxed);
    pthread_mutex_unlock(&device->lock);
    /* The device's thread shall see whether they come. */
    if (announced != atomic_load_explicit(&device->unexports_received, memory_order_relaxed))
        sp_client_wake(device);
    return !is_broken(device);
}

void sp_client_deliver(struct client_device *device, struct sp_gate *gate)
{
    pthread_mutex_lock(&device->lock);
    if (device->is_delivering && !pthread_equal(device->deliverer, pthread_self())) {
        pthread_mutex_unlock(&device->lock);
        return;
    }
    bool is_outer = !device->is_delivering;
    bool is_left = false;
    uint32_t life;
    device->is_delivering = true;
    device->deliverer = pthread_self();
    while (device->done.first && !is_left) {
        struct sp_work *work = work_list_take(&device->done);
        unsigned due = work->driver.workers & (WORK_START_DUE | WORK_FINISH_DUE);
        bool counts = (due & WORK_FINISH_DUE) && (work->driver.workers & WORK_COUNTS);
        int error = atomic_load_explicit(&work->driver.error, memory_order_relaxed);
        work->driver.listed = false;
        work->driver.workers &= ~due;
        life = device->device.life;
        pthread_mutex_unlock(&device->lock);
        if (due & WORK_START_DUE)
            work->started(work);
        if (due & WORK_FINISH_DUE)
            work->finished(work, error);
        is_left = gate && sp_gate_is_open(gate);
        pthread_mutex_lock(&device->lock);
        /* Release: who reads it finds what was made of the failure. The next process counts its
         * own. */
        if (counts && life == device->device.life)
            atomic_fetch_add_explicit(&device->device.failures, 1, memory_order_release);
    }
    is_left = device->done.first != NULL;
    if (is_outer)
        device->is_delivering = false;
    pthread_mutex_unlock(&device->lock);
    if (is_left && is_outer)
        sp_client_wake(device); /* our wait is over; the rest is the device's thread's */
}

void sp_client_unclaim(struct client_device *device)
{
    struct sp_rings *rings = device->rings;
    for (;;) {
        /* Sequentially consistent, before the look at the tail: the process stores the tail, then
         * looks at this word. One of the two sees the other. */
        if (rings)
            atomic_store_explicit(&rings->application_sleeps, 1, memory_order_seq_cst);
        bool is_more = rings && !is_broken(device) && has_completions(device, memory_order_seq_cst);
        if (!is_more)
            break;
        atomic_store_explicit(&rings->application_sleeps, 0, memory_order_relaxed);
        sp_client_take_completions(device);
    }
    bool is_end = is_broken(device);
    pthread_mutex_unlock(&device->claim);
    if (is_end)
        sp_client_wake(device);
}

/* With the claim held: polls the ring until something came, the gate opened, or time is up. */
static void poll_completions(struct client_device *device, struct sp_gate *gate, uint64_t end)
{
    /* Relaxed: at worst the process wakes the device's thread once too often. */
    atomic_store_explicit(&device->rings->application_sleeps, 0, memory_order_relaxed);
    do {
        for (unsigned i = 0; i < PAUSES_PER_CLOCK; i++) {
            if (has_completions(device, memory_order_acquire)) {
                sp_client_take_completions(device);
                return;
            }
            if (sp_gate_is_open(gate))
                return;
            sp_cpu_pause();
        }
    } while (sp_time_ns() < end);
}

void sp_client_wait(struct sp_device *given, struct sp_gate *gate, const void *stream)
{
    struct client_device *device = client_of(given);
    (void)stream;
    uint64_t spin_ns = device->spin_us * UINT64_C(1000);
    uint64_t end = sp_time_ns() + spin_ns;
    while (!sp_gate_is_open(gate) && sp_time_ns() < end) {
        if (pthread_mutex_trylock(&device->claim) == 0) {
            if (device->rings && !is_broken(device))
                poll_completions(device, gate, end);
            sp_client_unclaim(device);
            sp_client_deliver(device, gate);
        } else {
            for (unsigned i = 0; i < PAUSES_PER_CLOCK && !sp_gate_is_open(gate); i++)
                sp_cpu_pause();
        }
    }
    /* Asleep inside a call that the deliverer made, nobody else would make the calls that open the
     * gate. */
    while (!sp_gate_is_open(gate)) {
        pthread_mutex_lock(&device->lock);
        bool is_nested = device->is_delivering && pthread_equal(device->deliverer, pthread_self());
        pthread_mutex_unlock(&device->lock);
        if (!is_nested)
            break;
        pthread_mutex_lock(&device->claim);
        if (device->rings && !is_broken(device))
            poll_completions(device, gate, sp_time_ns() + spin_ns);
        sp_client_unclaim(device);
        sp_client_deliver(device, gate);
    }
    sp_gate_wait(gate);
}
