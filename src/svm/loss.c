/* The death of a device: what was on it is gone, and whoever must know of that is told.
 *
 * The order is that of docs/directory.md: bindings first, so that nothing new is sent there, and no
 * command of the device's next life takes what directories still say for true; then in each region
 * the copies that were on their way from it, and then the directory. What is lost is told range by
 * range.
 */
#include "svm/coherence_internal.h"
#include "svm/trace.h"

static const struct sp_loss_reports *_Atomic loss_reports;

void sp_coherence_set_loss_reports(const struct sp_loss_reports *reports)
{
    /* Release: who reads it sees what it points to. */
    atomic_store_explicit(&loss_reports, reports, memory_order_release);
}

struct loss {
    struct sp_device *device;
    const struct sp_loss_reports *reports; /* or NULL */
    struct sp_region *region;
};

static void lose_range(void *data, uint64_t first, uint64_t end)
{
    struct loss *loss = data;
    if (sp_trace_is_on)
        sp_trace_instant(SP_TRACE_AGENT(loss->device->agent), "fault", "lost",
                         "\"region\":\"%p\",\"first\":%llu,\"end\":%llu",
                         (void *)loss->region->start, (unsigned long long)first,
                         (unsigned long long)end);
    if (loss->reports)
        loss->reports->range(loss->region, first, end, loss->device);
}

static void lose_region(struct sp_region *region, void *data)
{
    struct loss *loss = data;
    loss->region = region;
    pthread_mutex_lock(&region->lock);
    sp_copies_cancel(region, loss->device->agent, lose_range, loss);
    sp_directory_drop(&region->directory, loss->device->agent, lose_range, loss);
    pthread_mutex_unlock(&region->lock);
}

static void device_lost(struct sp_device *device, const char *reason)
{
    const struct sp_loss_reports *reports =
        atomic_load_explicit(&loss_reports, memory_order_acquire);
    struct loss loss = {.device = device, .reports = reports};
    if (sp_trace_is_on)
        sp_trace_instant(SP_TRACE_AGENT(device->agent), "fault", "device process died", "%s", "");
    if (reports)
        reports->begin(device, reason);
    sp_bindings_forget(device->agent);
    sp_arena_forget_home(device->agent);
    sp_arena_for_each_region(lose_region, &loss);
    sp_bindings_recover(device->agent);
    if (reports)
        reports->end(device);
}

void sp_coherence_add_agent(struct sp_device *device)
{
    sp_coherence_note_agent(device);
    sp_bindings_add_agent(device, device_lost);
    sp_trace_name_track(SP_TRACE_AGENT(device->agent), "agent %u: %s", device->agent,
                        device->info.name);
}
