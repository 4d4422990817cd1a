/* From works to records of the command ring.
 *
 * submit never waits: what does not fit into the ring or the table of works in flight is listed as
 * pending, in order, and written when works finish, which they do as long as there are any. So a
 * call of the runtime from within `finished` may submit as much as it likes.
 *
 * The ring is written under `lock`, and published by its tail. Nothing of what the process could
 * have changed decides where we write: the tail is our own copy, and the head is checked against
 * it.
 */
#include <errno.h>
#include <string.h>

#include "device/client/client.h"
#include "util/thread.h"

/* Calls into the runtime and, from there, the application's functions are not made on it, but it
 * may destroy objects. */
#define BURY_STACK_BYTES (256u << 10)

/* The agent's place as the record names it: 0; -EINVAL where there is no such agent; -EIO where it
 * is in another life than that by now (0: any). */
static int place_of(struct client_device *device, uint32_t agent, uint32_t life, uint32_t *place,
                    struct sp_command *command)
{
    if (agent == 0) {
        *place = SP_PLACE_HOST;
        return 0;
    }
    if (agent == device->device.agent) {
        *place = SP_PLACE_OWN;
        return 0;
    }
    for (unsigned i = 0; i < sp_client_num_devices; i++) {
        struct client_device *peer = &sp_client_devices[i];
        if (peer->device.agent != agent)
            continue;
        *place = peer->index;
        /* What the work needs there has completed, and the caller knows of it; or it waits for a
         * fence, which tells the process of the rest (park.c). Acquire: for the life below. This
         * process is told of that memory, or of its end, sooner or later. */
        uint64_t known =
            atomic_load_explicit(&peer->generation_and_unexports, memory_order_acquire);
        command->range.generation = (uint32_t)(known >> 32);
        command->range.unexports = (uint32_t)known;
        /* After the process's number was read: that of a next one comes after the next life. */
        return life && life != atomic_load_explicit(&peer->device.life, memory_order_seq_cst) ? -EIO
                                                                                              : 0;
    }
    return -EINVAL;
}

/* Bytes of the record but for its fences, before rounding; 0 where there is none for this kind. */
static size_t record_bytes(const struct sp_work *work)
{
    switch (work->kind) {
    case SP_WORK_KERNEL:
        return offsetof(struct sp_command, kernel.args) + (size_t)work->kernel.kernel->args_bytes;
    case SP_WORK_FILL:
        return offsetof(struct sp_command, fill.pattern) + work->fill.pattern_bytes;
    case SP_WORK_TRANSFER:
        if (work->range.pieces)
            return sizeof(struct sp_command) + work->range.num_pieces * sizeof(struct sp_piece);
        return sizeof(struct sp_command);
    case SP_WORK_COPY:
    case SP_WORK_COPY_RECT:
    case SP_WORK_BIND:
    case SP_WORK_BIND_PEER:
    case SP_WORK_UNBIND:
    case SP_WORK_DECLARE:
    case SP_WORK_INIT_GLOBALS:
        return sizeof(struct sp_command);
    case SP_WORK_CALL:
        break;
    }
    return 0;
}

static void encode_kernel(const struct sp_work *work, struct sp_command *command)
{
    const struct sp_code_kernel *kernel = work->kernel.kernel;
    const struct sp_ndrange *range = &work->kernel.range;
    command->kind = SP_COMMAND_KERNEL;
    command->kernel.slot = kernel->code->slot;
    command->kernel.index = kernel->index;
    command->kernel.args_bytes = kernel->args_bytes;
    command->kernel.work_dim = range->work_dim;
    command->kernel.globals = (uintptr_t)work->kernel.globals;
    command->kernel.ticket = work->kernel.ticket;
    for (unsigned d = 0; d < 3; d++) {
        command->kernel.global_offset[d] = range->global_offset[d];
        command->kernel.global_size[d] = range->global_size[d];
        command->kernel.local_size[d] = range->local_size[d];
    }
    if (kernel->args_bytes)
        memcpy(command->kernel.args, work->kernel.args, kernel->args_bytes);
}

static int encode_range(struct client_device *device, const struct sp_work *work,
                        struct sp_command *command)
{
    command->range.start = work->range.start;
    command->range.bytes = work->range.bytes;
    command->range.generation = command->range.unexports = 0;
    command->range.ticket = work->kind == SP_WORK_DECLARE ? work->range.ticket : 0;
    if (work->kind == SP_WORK_BIND_PEER) {
        command->kind = SP_COMMAND_BIND_PEER;
        return place_of(device, work->range.source, 0, &command->range.source, command);
    }
    if (work->kind != SP_WORK_TRANSFER) {
        command->kind = work->kind == SP_WORK_UNBIND    ? SP_COMMAND_UNBIND
                        : work->kind == SP_WORK_DECLARE ? SP_COMMAND_DECLARE
                        : work->range.is_home           ? SP_COMMAND_BIND_HOME
                                                        : SP_COMMAND_BIND_PRIVATE;
        return 0;
    }
    command->kind = SP_COMMAND_TRANSFER;
    command->range.num_pieces = work->range.pieces ? work->range.num_pieces : 0;
    if (work->range.pieces)
        memcpy(command->range.pieces, work->range.pieces,
               work->range.num_pieces * sizeof(struct sp_piece));
    int error = place_of(device, work->range.source, work->range.source_life,
                         &command->range.source, command);
    return error
               ? error
               : place_of(device, work->range.destination, 0, &command->range.destination, command);
}

/* With command->bytes set: what it comes after, and relies on. */
static void encode_order(const struct sp_work *work, struct sp_command *command)
{
    command->fence = work->fence;
    command->failures_seen = work->failures_seen;
    command->num_after = work->num_after;
    if (work->num_after)
        memcpy((sp_fence *)sp_command_after(command), work->after,
               work->num_after * sizeof work->after[0]);
}

static int encode(struct client_device *device, const struct sp_work *work,
                  struct sp_command *command)
{
    command->flags = (uint16_t)((work->timed ? SP_COMMAND_TIMED : 0) |
                                (work->started ? SP_COMMAND_TELL_START : 0) |
                                (work->driver.workers & WORK_USES_UNIT ? SP_COMMAND_ATOMICS : 0) |
                                work->beside * SP_COMMAND_BESIDE_WORKS);
    switch (work->kind) {
    case SP_WORK_KERNEL:
        encode_kernel(work, command);
        return 0;
    case SP_WORK_COPY:
        command->kind = SP_COMMAND_COPY;
        command->copy.dst = (uintptr_t)work->copy.dst;
        command->copy.src = (uintptr_t)work->copy.src;
        command->copy.bytes = work->copy.bytes;
        return 0;
    case SP_WORK_COPY_RECT:
        command->kind = SP_COMMAND_RECT;
        command->rect.dst = (uintptr_t)work->rect.dst;
        command->rect.src = (uintptr_t)work->rect.src;
        command->rect.rect = work->rect.rect;
        return 0;
    case SP_WORK_FILL:
        command->kind = SP_COMMAND_FILL;
        command->fill.dst = (uintptr_t)work->fill.dst;
        command->fill.bytes = work->fill.bytes;
        command->fill.pattern_bytes = (uint32_t)work->fill.pattern_bytes;
        memcpy(command->fill.pattern, work->fill.pattern, work->fill.pattern_bytes);
        return 0;
    case SP_WORK_INIT_GLOBALS:
        command->kind = SP_COMMAND_INIT_GLOBALS;
        command->init_globals.slot = work->init.code->slot;
        command->init_globals.globals = (uintptr_t)work->init.globals;
        return 0;
    default:
        return encode_range(device, work, command);
    }
}

/* With the lock held: the place of a record of `bytes`, which is a multiple of SP_RECORD_BYTES, or
 * NULL. */
static struct sp_command *take_room(struct client_device *device, uint64_t bytes)
{
    struct sp_rings *rings = device->rings;
    uint64_t offset = device->command_tail % SP_COMMAND_RING_BYTES;
    uint64_t to_end = SP_COMMAND_RING_BYTES - offset;
    uint64_t skipped = bytes > to_end ? to_end : 0;
    /* Acquire: the process reads no more of what lies before the head. */
    uint64_t head = atomic_load_explicit(&rings->command_head, memory_order_acquire);
    uint64_t used = device->command_tail - head;
    if (used > SP_COMMAND_RING_BYTES) {
        atomic_store_explicit(&device->is_broken, true, memory_order_relaxed);
        sp_client_wake(device);
        return NULL;
    }
    if (skipped + bytes > SP_COMMAND_RING_BYTES - used)
        return NULL;
    if (skipped) {
        struct sp_command *skip = (struct sp_command *)(rings->commands + offset);
        /* Not the whole struct: the rest of the ring may be shorter than that. */
        skip->bytes = (uint32_t)skipped;
        skip->kind = SP_COMMAND_SKIP;
        device->command_tail += skipped;
        offset = 0;
    }
    return (struct sp_command *)(rings->commands + offset);
}

enum outcome { WRITTEN, NO_ROOM, REFUSED };

/* With the lock held: writes the work's record, but does not publish it. REFUSED: it is finished
 * with an error. */
static enum outcome write_work(struct client_device *device, struct sp_work *work)
{
    struct in_flight *table = &device->in_flight;
    size_t bytes = record_bytes(work);
    int error = bytes == 0 ? -ENOTSUP : bytes > SP_MAX_COMMAND_BYTES ? -E2BIG : 0;
    if (!error) {
        if (table->next - table->first >= SP_MAX_IN_FLIGHT)
            return NO_ROOM;
        bytes += work->num_after * sizeof work->after[0];
        bytes = (bytes + SP_RECORD_BYTES - 1) & ~(size_t)(SP_RECORD_BYTES - 1);
        struct sp_command *command = take_room(device, bytes);
        if (!command)
            return NO_ROOM;
        if (work->kind == SP_WORK_KERNEL && sp_client_unit_is_for(device, work->kernel.kernel)) {
            error = sp_client_unit_begin(device);
            work->driver.workers |= error ? 0 : WORK_USES_UNIT;
        }
        if (!error)
            error = encode(device, work, command);
        if (!error) {
            command->bytes = (uint32_t)bytes;
            encode_order(work, command);
            command->number = table->next;
            table->works[table->next++ % SP_MAX_IN_FLIGHT] = work;
            device->command_tail += bytes;
            return WRITTEN;
        }
    }
    if (work->driver.workers & WORK_USES_UNIT)
        sp_client_unit_end(device);
    sp_client_finish_locked(device, work, error);
    return REFUSED;
}

/* With the lock held. */
static void publish(struct client_device *device)
{
    struct sp_fence_line *line = sp_client_fence_line(device);
    /* A release of the records; sequentially consistent, before the look at process_sleeps
     * (loop.c). */
    atomic_store_explicit(&device->rings->command_tail, device->command_tail, memory_order_seq_cst);
    if (line)
        sp_fence_wake(line);
}

void sp_client_flush(struct client_device *device)
{
    if (device->state != CLIENT_RUNNING)
        return;
    bool is_any = false;
    while (device->pending.first) {
        struct sp_work *work = work_list_take(&device->pending);
        enum outcome outcome = write_work(device, work);
        if (outcome == NO_ROOM) {
            /* Back to the front. */
            work->driver.next = device->pending.first;
            device->pending.first = work;
            if (!device->pending.last)
                device->pending.last = work;
            break;
        }
        is_any |= outcome == WRITTEN;
    }
    if (is_any)
        publish(device);
}

/* Calls what is due of a device that has no thread any more. */
static void *bury(void *argument)
{
    struct client_device *device = argument;
    bool is_more = true;
    while (is_more) {
        sp_client_deliver(device, NULL);
        pthread_mutex_lock(&device->lock);
        is_more = device->done.first && !device->is_delivering;
        device->is_burying = is_more;
        pthread_mutex_unlock(&device->lock);
    }
    return NULL;
}

/* Who submits may hold locks that `finished` takes, so works that end at once are ended by another
 * thread. Where none can be started they stay due, for the next thread that waits. */
static void have_delivered(struct client_device *device)
{
    pthread_mutex_lock(&device->lock);
    bool is_dead = device->state == CLIENT_DEAD;
    bool is_needed = is_dead && !device->is_burying;
    if (is_needed)
        device->is_burying = sp_thread_start_detached(bury, device, BURY_STACK_BYTES) == 0;
    pthread_mutex_unlock(&device->lock);
    if (!is_dead)
        sp_client_wake(device);
}

void sp_client_submit(struct sp_device *given, struct sp_work *work)
{
    struct client_device *device = client_of(given);
    bool is_due = false, is_first = false;
    work->driver.device = given;
    work->driver.listed = false;
    work->driver.workers = 0;
    atomic_init(&work->driver.error, 0);

    pthread_mutex_lock(&device->lock);
    if (device->state == CLIENT_DEAD || (work->life && work->life != given->life)) {
        sp_client_finish_locked(device, work, -EIO);
        is_due = true;
    } else if (device->state == CLIENT_RUNNING && !device->pending.first) {
        is_first = device->in_flight.first == device->in_flight.next;
        switch (write_work(device, work)) {
        case WRITTEN:
            publish(device);
            break;
        case NO_ROOM:
            work_list_append(&device->pending, work);
            break;
        case REFUSED:
            is_due = true;
            break;
        }
    } else {
        work_list_append(&device->pending, work);
    }
    pthread_mutex_unlock(&device->lock);
    if (is_due)
        have_delivered(device);
    else if (is_first && sp_client_limit_ns)
        sp_client_wake(device); /* it keeps the time from now on */
}
