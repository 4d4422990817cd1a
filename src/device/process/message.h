/* Sending and receiving the socket messages of protocol.h, on either side. */
#ifndef SP_DEVICE_PROCESS_MESSAGE_H
#define SP_DEVICE_PROCESS_MESSAGE_H

#include "device/process/protocol.h"

/* Sends `message` (magic and version are filled in) with `num_files` descriptors, which stay the
 * caller's; those below 0 are left out. 0 or a negative errno: -EAGAIN where `is_waiting` is false
 * and there is no room. */
int sp_message_send(int socket, bool is_waiting, struct sp_device_message *message,
                    const int *files, unsigned num_files);

/* Receives one; files[] gets up to SP_MAX_MESSAGE_FILES descriptors (close-on-exec, the caller's)
 * and -1 behind them. 0; -EPIPE at the socket's end; -EBADMSG for what is no message: then there
 * are no files; -EAGAIN where `is_waiting` is false and there is none. */
int sp_message_receive(int socket, bool is_waiting, struct sp_device_message *message,
                       int files[SP_MAX_MESSAGE_FILES]);

#endif
