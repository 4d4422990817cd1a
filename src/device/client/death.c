/* How a device's process died, in words, and what it was about. Called by the device's thread, with
 * the claim held and all completions taken. No state; the device's lock while its works are looked
 * at.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "device/client/client.h"

static const char *work_name(const struct sp_work *work)
{
    switch (work->kind) {
    case SP_WORK_KERNEL:
        return "running kernel";
    case SP_WORK_COPY:
    case SP_WORK_COPY_RECT:
        return "copying";
    case SP_WORK_FILL:
        return "filling";
    case SP_WORK_TRANSFER:
        return "transferring";
    case SP_WORK_INIT_GLOBALS:
        return "writing initial values of a program";
    default:
        return "binding memory";
    }
}

/* It ended in the middle of its life, or left word of why it never began one. */
static void describe_end(struct client_device *device, struct client_death *death)
{
    const struct sp_rings *rings = device->rings;
    enum client_end end = death->end;
    char what[SP_FAULT_REASON_BYTES] = "ended, or was ended from outside,", at[32] = "",
         doing[160] = "before it was ready";
    unsigned number = atomic_load_explicit(&rings->fault_signal, memory_order_relaxed);
    uint64_t address = atomic_load_explicit(&rings->fault_address, memory_order_relaxed);
    const char *name = number < NSIG ? sigdescr_np((int)number) : NULL;
    char said[SP_FAULT_REASON_BYTES];
    memcpy(said, rings->fault_reason, sizeof said);
    said[sizeof said - 1] = 0;
    if (end == END_LIMIT)
        snprintf(what, sizeof what, "ran for more than %" PRIu64 " s (SAMEPAGE_KERNEL_SECONDS)",
                 sp_client_limit_ns / 1000000000);
    else if (end == END_NONSENSE && sp_client_unit_blames(device, what, sizeof what))
        ; /* said */
    else if (end == END_NONSENSE)
        snprintf(what, sizeof what, "sent what is not understood");
    else if (end == END_DEAF)
        snprintf(what, sizeof what, "did not read its messages");
    else if (number)
        snprintf(what, sizeof what, "signal %u (%s)", number, name ? name : "unknown");
    else if (*said)
        snprintf(what, sizeof what, "%s", said);
    if (end == END_DEATH && number && address)
        snprintf(at, sizeof at, " at address 0x%" PRIx64, address);

    pthread_mutex_lock(&device->lock);
    struct in_flight *table = &device->in_flight;
    uint64_t running = atomic_load_explicit(&rings->running, memory_order_relaxed);
    const struct sp_work *work = running >= table->first && running < table->next
                                     ? table->works[running % SP_MAX_IN_FLIGHT]
                                     : NULL;
    if (!work && end == END_LIMIT && table->first < table->next)
        work = table->works[table->first % SP_MAX_IN_FLIGHT];
    device->device.fault.address = 0;
    if (end == END_DEATH && number && work && work->kind == SP_WORK_KERNEL) {
        device->device.fault.address = address;
        snprintf(device->device.fault.kernel, SP_FAULT_NAME_BYTES, "%s", work->kernel.kernel->name);
    }
    if (work && work->kind == SP_WORK_KERNEL)
        snprintf(doing, sizeof doing, "while running kernel '%.100s'", work->kernel.kernel->name);
    else if (work)
        snprintf(doing, sizeof doing, "while %s", work_name(work));
    else if (!death->error)
        snprintf(doing, sizeof doing, "while idle");
    pthread_mutex_unlock(&device->lock);
    snprintf(death->reason, sizeof death->reason, "%s%s %s", what, at, doing);
}

/* What can be done about a program that could not be run, as a clause. */
static void add_advice(struct client_death *death)
{
    size_t length = strlen(death->reason), room = sizeof death->reason - length;
    if (death->error == -ENOENT)
        snprintf(death->reason + length, room,
                 "; samepage-device must lie beside the library, or be named in "
                 "SAMEPAGE_DEVICE_PROGRAM");
    else if (death->error == -EACCES || death->error == -ENOEXEC)
        snprintf(death->reason + length, room, "; %.150s must be a program that this user may run",
                 death->program);
}

static bool has_left_word(const struct sp_rings *rings)
{
    return atomic_load_explicit(&rings->fault_signal, memory_order_relaxed) ||
           rings->fault_reason[0];
}

void sp_client_describe_death(struct client_device *device, struct client_death *death)
{
    if (death->is_refused)
        snprintf(death->reason, sizeof death->reason, "%s", death->refusal);
    else if (!death->error || (death->error == -EPIPE && has_left_word(device->rings)))
        describe_end(device, death);
    else
        snprintf(death->reason, sizeof death->reason, "its process could not be started (%s)",
                 death->error == -EPIPE ? "it ended before it was ready" : strerror(-death->error));
    if (death->is_missing)
        add_advice(death);
}
