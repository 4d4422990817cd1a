/* What a command follows: works of devices that it comes after, and whose ends it leaves to its
 * device to wait for (docs/ahead.md). It owns how one is followed; command.c owns when.
 *
 * Locks: the followed one's event, alone.
 */
#include "runtime/command_internal.h"
#include "runtime/context.h"

struct sp_device *sp_command_device(const struct sp_command *command)
{
    struct sp_device *device = command->event.queue->device->device;
    bool is_host_work = command->has_work
                            ? command->work.kind != SP_WORK_KERNEL &&
                                  (command->is_outside || command->work.kind == SP_WORK_CALL)
                            : command->is_for_host;
    return device->info.own_memory && is_host_work ? sp_host_device() : device;
}

void sp_follows_drop(struct sp_command *command)
{
    while (command->num_follows)
        sp_object_unreference(&command->follows[--command->num_follows].command->event.object);
}

/* How one that it follows is taken at its begin. */
enum taken {
    FOLLOW_ENDED,    /* it has ended */
    FOLLOW_IN_ORDER, /* the device's order will do */
    FOLLOW_WITH,     /* so it will, behind it, waiting for the same */
    FOLLOW_FENCE,    /* its fence is waited for */
    FOLLOW_MUST_END,
};

/* Whether its device has not died since; else it has failed, but for the news. */
static bool is_of_now(const struct sp_command *command)
{
    /* Relaxed: what is noticed late only ends in an error. */
    return command->work.life ==
           atomic_load_explicit(&sp_command_device(command)->life, memory_order_relaxed);
}

/* Whether the command can wait for the same as one in front of it in its device's order, which is
 * held back: so both are let go at once, in order, and not each when the one before it has ended.
 */
static bool can_wait_with(const struct sp_command *command, const struct sp_command *before)
{
    /* Room is left for promises. */
    return command->work.num_after + before->work.num_after <= SP_MAX_AFTER / 2;
}

/* The fences become the command's, too, with references of its own. */
static enum taken take_follow(struct sp_command *command, struct sp_follow *follow,
                              bool may_be_ahead, cl_int *status)
{
    struct sp_command *before = follow->command;
    struct sp_coherence *coherence = &command->coherence;
    enum taken taken = FOLLOW_MUST_END;
    pthread_mutex_lock(&before->event.lock);
    /* The device's order stops at no error. */
    bool is_in_order = before->is_submitted && !follow->is_explicit &&
                       sp_command_device(before) == sp_command_device(command);
    bool may_wait = before->is_submitted && may_be_ahead && is_of_now(before);
    *status = sp_event_status(&before->event);
    if (*status <= CL_COMPLETE)
        taken = FOLLOW_ENDED;
    else if (is_in_order && !before->is_ahead)
        taken = FOLLOW_IN_ORDER;
    else if (is_in_order && may_wait && can_wait_with(command, before))
        taken = FOLLOW_WITH;
    else if (may_wait && before->work.fence)
        taken = FOLLOW_FENCE;
    /* With the lock held: its own references stay until it has ended, or begins again. */
    for (uint32_t i = 0; taken == FOLLOW_WITH && i < before->work.num_after; i++)
        sp_coherence_follow(coherence, before->work.after[i]);
    if (taken == FOLLOW_FENCE)
        sp_coherence_follow(coherence, before->work.fence);
    pthread_mutex_unlock(&before->event.lock);
    return taken;
}

bool sp_follows_take(struct sp_command *command)
{
    bool may_be_ahead = sp_coherence_may_be_ahead(&command->coherence), must_wait = false;
    unsigned kept = 0;
    for (unsigned i = 0; i < command->num_follows; i++) {
        struct sp_follow follow = command->follows[i];
        cl_int status;
        enum taken taken = take_follow(command, &follow, may_be_ahead, &status);
        if (taken == FOLLOW_ENDED) {
            if (status < 0 && follow.is_explicit)
                atomic_store_explicit(&command->dependency_error, status, memory_order_relaxed);
            sp_object_unreference(&follow.command->event.object);
            continue;
        }
        follow.must_end = taken == FOLLOW_MUST_END;
        must_wait |= follow.must_end;
        command->follows[kept++] = follow;
    }
    command->num_follows = kept;
    if (!must_wait) {
        pthread_mutex_lock(&command->event.lock);
        command->is_ahead = command->coherence.num_followed > 0;
        pthread_mutex_unlock(&command->event.lock);
        return true;
    }
    sp_coherence_unfollow(&command->coherence);
    return false;
}

void sp_follow_offer(struct sp_command *command)
{
    const struct sp_device *device = sp_command_device(command);
    if (!command->event.context->is_shared || !sp_coherence_is_ahead_on() || !command->has_work ||
        command->complete || !device->info.own_memory)
        return;
    command->work.fence = sp_fence_take(device->agent);
}
