/* A command's second try. For command.c. */
#ifndef SP_RUNTIME_RETRY_H
#define SP_RUNTIME_RETRY_H

#include "runtime/depend.h"

/* The command was not done, for that reason (a negative errno; 0: it is to fail whatever comes): it
 * is as before its begin and holds nothing. Its device does not have its work. No lock is held. */
void sp_retry_undo(struct sp_command *command, int error);

/* It was found before its work was handed over that its device would cancel it, or had no memory
 * for what it needs: undone, and taken up at SP_COMMAND_RUN when all that it comes after has ended.
 * No lock is held. */
void sp_retry_unsubmitted(struct sp_ending *ending, struct sp_command *command);

/* Its device has told that it did not do the work (-ECANCELED, or an error of a command that
 * follows others): as sp_retry_unsubmitted, once the thread that submits has done with it
 * (sp_retry_leave). Called once for each submission, with no lock held. */
void sp_retry_not_done(struct sp_ending *ending, struct sp_command *command, int error);

/* The work of a command that follows others, or that was cancelled, is over (told by the device) or
 * done with (by the thread that submitted it): the second of the two calls lets the command be
 * taken up at SP_COMMAND_RUN when all that it comes after has ended. */
void sp_retry_leave(struct sp_ending *ending, struct sp_command *command);

/* At SP_COMMAND_RUN. True: it begins again, relying on nothing, and is to be taken up at
 * SP_COMMAND_READY. False: work_error is how its work ended. It follows nobody any more. Nobody
 * else has the command; no lock is held. */
bool sp_retry_take(struct sp_command *command);

#endif
