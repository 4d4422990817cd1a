/* See retry.h. What becomes of a command whose work was not done, from the news to where its normal
 * course (command.c) takes it up again. It owns is_cancelled, is_again and run_state.
 *
 * A device does not do a work where something that the work may rely on has failed, and that was
 * not known when the command was enqueued (docs/device-process.md); nor where a work that it
 * follows on another device was not done (docs/ahead.md). Then the command lets go at once of all
 * that it holds, since what it comes after may begin again and need that; it waits until all of
 * that has ended; and it begins a second time, as any other command, but relying on nothing: what
 * it needs is there when its device gets it, or the reason why not is the command's error.
 *
 * Invariant: a command begins twice at most, and one that waits for its second time holds nothing
 * that others may wait for, and is not submitted: nobody streams behind it or follows it.
 *
 * Locks: the command's own event's; none is held while something is undone.
 */
#include "runtime/retry.h"

#include <errno.h>

void sp_retry_undo(struct sp_command *command, int error)
{
    int failed = sp_coherence_restart(&command->coherence);
    command->work_error = failed && error == -ECANCELED ? failed : error;
}

void sp_retry_leave(struct sp_ending *ending, struct sp_command *command)
{
    /* Acquire and release: whoever goes on sees what the other did. */
    if (atomic_fetch_add_explicit(&command->run_state, 1, memory_order_acq_rel) == 1)
        sp_depend_again(ending, command, SP_COMMAND_RUN);
}

void sp_retry_unsubmitted(struct sp_ending *ending, struct sp_command *command)
{
    sp_retry_undo(command, -ECANCELED);
    sp_depend_again(ending, command, SP_COMMAND_RUN);
}

void sp_retry_not_done(struct sp_ending *ending, struct sp_command *command, int error)
{
    bool has_follows = command->num_follows > 0;
    /* First: from then on nobody streams behind it or follows it, so its fences are its own again.
     */
    pthread_mutex_lock(&command->event.lock);
    bool was_submitted = command->is_submitted;
    command->is_cancelled = true;
    command->is_submitted = false;
    pthread_mutex_unlock(&command->event.lock);
    sp_retry_undo(command, error);
    if (has_follows || !was_submitted)
        sp_retry_leave(ending, command); /* whoever submits it has not done with it, or may not */
    else
        sp_depend_again(ending, command, SP_COMMAND_RUN);
}

bool sp_retry_take(struct sp_command *command)
{
    bool is_again = command->work_error == -ECANCELED && !command->is_again &&
                    !atomic_load_explicit(&command->dependency_error, memory_order_relaxed);
    sp_follows_drop(command);
    sp_depend_drop_before(command);
    if (!is_again)
        return false;
    pthread_mutex_lock(&command->event.lock);
    command->is_ahead = command->is_cancelled = false;
    pthread_mutex_unlock(&command->event.lock);
    command->is_again = true;
    atomic_store_explicit(&command->begin_state, 0, memory_order_relaxed);
    atomic_store_explicit(&command->run_state, 0, memory_order_relaxed);
    command->stage = SP_COMMAND_READY;
    return true;
}
