/* See loss_report.h. Owns what is to be said of a death to each context.
 *
 * A death is found on a device's thread with locks of src/svm held, so it is only noted there; the
 * callback thread says it. Two devices may die at once, each on its thread.
 *
 * Lock: of what is noted. That of the listeners is taken inside of it; not held while the
 * application is called.
 */
#include "runtime/loss_report.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/context.h"
#include "runtime/listeners.h"
#include "svm/region.h"

/* Ranges that are told one by one for each death and context; of the rest only the sum is told. */
#define MAX_RANGES_TOLD 16u

#define MESSAGE_BYTES 768u

/* To be said once all of a death is noted: who hears of it may use the device at once. In order. */
static struct {
    pthread_mutex_t lock;
    struct message *first, **last;
} noted = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &noted.first};

struct message {
    struct sp_callback_job job;
    struct message *next;
    const struct sp_device *device;
    uint64_t listener; /* the context's number */
    /* The first of a death to that context, while the death is noted; others may be beside it. */
    const struct sp_arena *arena; /* the context's; else NULL */
    unsigned ranges;
    uint64_t more_ranges, more_bytes;
    char text[MESSAGE_BYTES];
};

static void say(cl_context context, void *data)
{
    const struct message *message = data;
    sp_context_tell(context, message->text);
}

static void deliver(struct sp_callback_job *job)
{
    struct message *message = (struct message *)job;
    sp_listeners_visit(message->listener, say, message);
    free(message);
}

/* A noted message to fill in; it must not be given up for want of memory: data was lost. With the
 * lock held. */
static struct message *new_message(uint64_t listener, const struct sp_device *device)
{
    struct message *message;
    do
        message = malloc(sizeof *message);
    while (!message);
    message->job.run = deliver;
    message->listener = listener;
    message->device = device;
    message->arena = NULL;
    message->next = NULL;
    *noted.last = message;
    noted.last = &message->next;
    return message;
}

/* Says what was noted of a device's death. With the lock held. */
static void post_noted(const struct sp_device *device)
{
    struct message **link = &noted.first, *message;
    while ((message = *link)) {
        if (message->device != device) {
            link = &message->next;
            continue;
        }
        *link = message->next;
        sp_callback_post(&message->job);
    }
    noted.last = link;
}

/* A device's death as a context hears of it. */
struct death {
    const struct sp_device *device;
    const char *reason;
};

static void note_death(cl_context context, void *data)
{
    const struct death *death = data;
    bool is_concerned = false;
    for (cl_uint i = 0; i < context->num_devices; i++)
        is_concerned |= context->devices[i]->device->agent == death->device->agent;
    if (!is_concerned)
        return;
    struct message *message = new_message(context->listener, death->device);
    message->arena = context->arena;
    message->ranges = 0;
    message->more_ranges = message->more_bytes = 0;
    const char *next = death->device->is_given_up ? "It is given up: new ones fail as well."
                                                  : "New ones are accepted.";
    snprintf(message->text, sizeof message->text,
             "%s was lost: %s. Its commands that had not ended fail with CL_OUT_OF_RESOURCES. %s",
             death->device->info.name, death->reason, next);
}

static void note_begin(struct sp_device *device, const char *reason)
{
    struct death death = {device, reason};
    pthread_mutex_lock(&noted.lock);
    sp_listeners_each(note_death, &death);
    pthread_mutex_unlock(&noted.lock);
}

static void note_range(struct sp_region *region, uint64_t first, uint64_t end,
                       struct sp_device *device)
{
    pthread_mutex_lock(&noted.lock);
    struct message *death = noted.first;
    while (death && (death->device != device || death->arena != region->arena))
        death = death->next;
    if (death && death->ranges < MAX_RANGES_TOLD) {
        death->ranges++;
        struct message *message = new_message(death->listener, device);
        snprintf(message->text, sizeof message->text,
                 "Bytes %" PRIu64 " to %" PRIu64 " of the region at %p (%zu bytes) were lost with "
                 "%s, which alone had them; write them again before they are read.",
                 first, end - 1, (void *)region->start, region->bytes, device->info.name);
    } else if (death) {
        death->more_ranges++;
        death->more_bytes += end - first;
    }
    pthread_mutex_unlock(&noted.lock);
}

static void note_end(struct sp_device *device)
{
    pthread_mutex_lock(&noted.lock);
    for (struct message *death = noted.first; death; death = death->next) {
        if (death->device != device || !death->arena || !death->more_ranges)
            continue;
        struct message *message = new_message(death->listener, device);
        snprintf(message->text, sizeof message->text,
                 "%" PRIu64 " more ranges, %" PRIu64 " bytes, were lost with %s; SAMEPAGE_TRACE "
                 "names all of them.",
                 death->more_ranges, death->more_bytes, device->info.name);
    }
    post_noted(device);
    pthread_mutex_unlock(&noted.lock);
}

/* --- What else there is to be said ---------------------------------------------------------------
 */

static void post(cl_context context, const struct sp_device *device, const char *text)
{
    struct message *message = malloc(sizeof *message);
    if (!message)
        return; /* nothing was lost by it */
    message->job.run = deliver;
    message->listener = context->listener;
    snprintf(message->text, sizeof message->text, "%.64s %.*s.", device->info.name,
             (int)MESSAGE_BYTES - 128, text);
    sp_callback_post(&message->job);
}

static bool has(cl_context context, const struct sp_device *device)
{
    for (cl_uint i = 0; i < context->num_devices; i++)
        if (context->devices[i]->device == device)
            return true;
    return false;
}

struct notice {
    const struct sp_device *device;
    const char *text;
};

static void post_notice(cl_context context, void *data)
{
    const struct notice *notice = data;
    if (has(context, notice->device))
        post(context, notice->device, notice->text);
}

static const char *notice_of(struct sp_device *device)
{
    return device->ops->notice ? device->ops->notice(device) : NULL;
}

void sp_loss_report_notice(struct sp_device *device, const char *text)
{
    sp_listeners_each(post_notice, &(struct notice){device, text});
}

static void greet_of_end(cl_context context, struct sp_device *device)
{
    char text[MESSAGE_BYTES - 128];
    snprintf(text, sizeof text, "cannot be used: %s. Its commands fail with CL_OUT_OF_RESOURCES",
             device->ops->await_ready(device));
    post(context, device, text);
}

void sp_loss_report_greet(cl_context context)
{
    for (cl_uint i = 0; i < context->num_devices; i++) {
        struct sp_device *device = context->devices[i]->device;
        if (!device->info.own_memory)
            continue;
        const char *text = notice_of(device);
        if (text)
            post(context, device, text);
        if (device->is_given_up && device->ops->await_ready)
            greet_of_end(context, device);
    }
}

const struct sp_loss_reports sp_loss_report = {note_begin, note_range, note_end};
