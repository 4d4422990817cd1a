/* Messages to a device's process. Who sends one never waits for the process: threads of several
 * devices tell each other's processes of memory, and must not wait for each other in a circle. What
 * the socket has no room for waits in a list, which the device's thread sends when there is room.
 *
 * The list, and all writing to the socket, is under `socket_lock`; messages go out in the order in
 * which they came. A process that lets too many wait does not read any more, and is ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/client/client.h"
#include "device/process/message.h"
#include "util/alloc.h"

/* Behind the few hundred that a socket holds; 4 MiB. Few have files: a process is sent one only
 * when it asks for it, or with code that somebody waits for. */
#define MAX_LETTERS 16384u

static void destroy_letter(struct client_letter *letter)
{
    for (unsigned i = 0; letter && i < SP_MAX_MESSAGE_FILES; i++)
        if (letter->files[i] >= 0)
            close(letter->files[i]);
    free(letter);
}

static struct client_letter *take_letter(struct client_device *device)
{
    struct client_letter *letter = device->first_letter;
    device->first_letter = letter->next;
    if (!letter->next)
        device->last_letter = NULL;
    device->num_letters--;
    return letter;
}

static int keep_letter(struct client_device *device, const struct sp_device_message *message,
                       const int *files, unsigned num_files)
{
    struct client_letter *letter =
        device->num_letters < MAX_LETTERS ? sp_alloc(sizeof *letter) : NULL;
    if (!letter)
        return -ENOBUFS;
    letter->message = *message;
    unsigned count = 0;
    int error = 0;
    for (unsigned i = 0; i < SP_MAX_MESSAGE_FILES; i++)
        letter->files[i] = -1;
    for (unsigned i = 0; i < num_files && !error; i++) {
        if (files[i] < 0)
            continue;
        letter->files[count] = fcntl(files[i], F_DUPFD_CLOEXEC, 0);
        if (letter->files[count++] < 0)
            error = -errno;
    }
    if (error) {
        destroy_letter(letter);
        return error;
    }
    if (device->last_letter)
        device->last_letter->next = letter;
    else
        device->first_letter = letter;
    device->last_letter = letter;
    device->num_letters++;
    return 0;
}

int sp_client_send(struct client_device *device, struct sp_device_message *message,
                   const int *files, unsigned num_files)
{
    bool is_kept = false;
    int error = -EPIPE;
    pthread_mutex_lock(&device->socket_lock);
    if (device->socket >= 0)
        error = device->first_letter
                    ? -EAGAIN
                    : sp_message_send(device->socket, false, message, files, num_files);
    if (error == -EAGAIN) {
        error = keep_letter(device, message, files, num_files);
        device->is_deaf |= error != 0; /* a message that is missing would be waited for */
        is_kept = true;
    }
    pthread_mutex_unlock(&device->socket_lock);
    if (is_kept)
        sp_client_wake(device);
    return error;
}

short sp_client_socket_events(struct client_device *device)
{
    pthread_mutex_lock(&device->socket_lock);
    bool is_waiting = device->first_letter != NULL;
    pthread_mutex_unlock(&device->socket_lock);
    return is_waiting ? POLLIN | POLLOUT : POLLIN;
}

bool sp_client_send_letters(struct client_device *device)
{
    int error = 0;
    pthread_mutex_lock(&device->socket_lock);
    bool is_deaf = device->is_deaf;
    while (device->first_letter && error != -EAGAIN) {
        struct client_letter *letter = device->first_letter;
        error = sp_message_send(device->socket, false, &letter->message, letter->files,
                                SP_MAX_MESSAGE_FILES);
        if (error != -EAGAIN) /* another error is the end, which is noticed elsewhere */
            destroy_letter(take_letter(device));
    }
    pthread_mutex_unlock(&device->socket_lock);
    return !is_deaf;
}

void sp_client_forget_letters(struct client_device *device)
{
    while (device->first_letter)
        destroy_letter(take_letter(device));
    device->is_deaf = false;
}
