/* See loss_report.h. Owns the list of contexts that share memory with devices, and what is to be
 * said to each.
 *
 * A death is found on a device's thread with locks of src/svm held, so it is only noted there; the
 * callback thread says it. Two devices may die at once, each on its thread. Shared contexts end on
 * that thread too, so a context that is still in the list when a job runs is alive.
 *
 * Lock: of the list; the last of all, and not held while the application is called.
 */
#include "runtime/loss_report.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/context.h"
#include "svm/coherence.h"
#include "svm/region.h"
#include "util/alloc.h"

/* Ranges that are told one by one for each death and context; of the rest only the sum is told. */
#define MAX_RANGES_TOLD 16u

#define MESSAGE_BYTES 320u

struct listener {
    struct listener *next;
    cl_context context;
};

static struct {
    pthread_mutex_t lock;
    struct listener *first;
    /* To be said once all of a death is noted: who hears of it may use the device at once. In
     * order. */
    struct message *noted, **last_noted;
} listeners = {.lock = PTHREAD_MUTEX_INITIALIZER, .last_noted = &listeners.noted};

struct message {
    struct sp_callback_job job;
    struct message *next;
    const struct sp_device *device;
    cl_context context;
    /* The first of a death to that context, while the death is noted; others may be beside it. */
    const struct sp_arena *arena; /* the context's; else NULL */
    unsigned ranges;
    uint64_t more_ranges, more_bytes;
    char text[MESSAGE_BYTES];
};

/* With the list locked. */
static struct listener *find(cl_context context)
{
    struct listener *listener = listeners.first;
    while (listener && listener->context != context)
        listener = listener->next;
    return listener;
}

static void deliver(struct sp_callback_job *job)
{
    struct message *message = (struct message *)job;
    pthread_mutex_lock(&listeners.lock);
    bool is_alive = find(message->context) != NULL;
    pthread_mutex_unlock(&listeners.lock);
    if (is_alive && message->context->notify)
        sp_context_report(message->context, message->text);
    else if (is_alive)
        fprintf(stderr, "samepage: %s\n", message->text);
    free(message);
}

/* A noted message to fill in; it must not be given up for want of memory: data was lost. With the
 * list locked. */
static struct message *new_message(cl_context context, const struct sp_device *device)
{
    struct message *message;
    do
        message = malloc(sizeof *message);
    while (!message);
    message->job.run = deliver;
    message->context = context;
    message->device = device;
    message->arena = NULL;
    message->next = NULL;
    *listeners.last_noted = message;
    listeners.last_noted = &message->next;
    return message;
}

/* Says what was noted of a device's death. With the list locked. */
static void post_noted(const struct sp_device *device)
{
    struct message **link = &listeners.noted, *message;
    while ((message = *link)) {
        if (message->device != device) {
            link = &message->next;
            continue;
        }
        *link = message->next;
        sp_callback_post(&message->job);
    }
    listeners.last_noted = link;
}

static void note_begin(struct sp_device *device, const char *reason)
{
    pthread_mutex_lock(&listeners.lock);
    for (struct listener *listener = listeners.first; listener; listener = listener->next) {
        bool is_concerned = false;
        for (cl_uint i = 0; i < listener->context->num_devices; i++)
            is_concerned |= listener->context->devices[i]->device->agent == device->agent;
        if (!is_concerned)
            continue;
        struct message *message = new_message(listener->context, device);
        message->arena = listener->context->arena;
        message->ranges = 0;
        message->more_ranges = message->more_bytes = 0;
        snprintf(message->text, sizeof message->text,
                 "%s was lost: %s. Its commands that had not ended fail with CL_OUT_OF_RESOURCES; "
                 "new ones are accepted.",
                 device->info.name, reason);
    }
    pthread_mutex_unlock(&listeners.lock);
}

static void note_range(struct sp_region *region, uint64_t first, uint64_t end,
                       struct sp_device *device)
{
    pthread_mutex_lock(&listeners.lock);
    struct message *death = listeners.noted;
    while (death && (death->device != device || death->arena != region->arena))
        death = death->next;
    if (death && death->ranges < MAX_RANGES_TOLD) {
        death->ranges++;
        struct message *message = new_message(death->context, device);
        snprintf(message->text, sizeof message->text,
                 "Bytes %" PRIu64 " to %" PRIu64 " of the region at %p (%zu bytes) were lost with "
                 "%s, which alone had them; write them again before they are read.",
                 first, end - 1, (void *)region->start, region->bytes, device->info.name);
    } else if (death) {
        death->more_ranges++;
        death->more_bytes += end - first;
    }
    pthread_mutex_unlock(&listeners.lock);
}

static void note_end(struct sp_device *device)
{
    pthread_mutex_lock(&listeners.lock);
    for (struct message *death = listeners.noted; death; death = death->next) {
        if (death->device != device || !death->arena || !death->more_ranges)
            continue;
        struct message *message = new_message(death->context, device);
        snprintf(message->text, sizeof message->text,
                 "%" PRIu64 " more ranges, %" PRIu64 " bytes, were lost with %s; SAMEPAGE_TRACE "
                 "names all of them.",
                 death->more_ranges, death->more_bytes, device->info.name);
    }
    post_noted(device);
    pthread_mutex_unlock(&listeners.lock);
}

const struct sp_loss_reports sp_loss_report = {note_begin, note_range, note_end};

int sp_loss_report_add(cl_context context)
{
    struct listener *listener = sp_alloc(sizeof *listener);
    if (!listener)
        return -ENOMEM;
    listener->context = context;
    pthread_mutex_lock(&listeners.lock);
    listener->next = listeners.first;
    listeners.first = listener;
    pthread_mutex_unlock(&listeners.lock);
    return 0;
}

void sp_loss_report_remove(cl_context context)
{
    struct listener *removed = NULL;
    pthread_mutex_lock(&listeners.lock);
    struct listener **link = &listeners.first;
    while (*link && (*link)->context != context)
        link = &(*link)->next;
    if (*link) {
        removed = *link;
        *link = removed->next;
    }
    pthread_mutex_unlock(&listeners.lock);
    free(removed);
}
