/* See message.h. Both sides use these, so nothing here trusts what arrives: its size, its magic
 * number and the number of files are checked, and files of a message that is refused are closed. */
#include "device/process/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union ancillary {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(SP_MAX_MESSAGE_FILES * sizeof(int))];
};

int sp_message_send(int socket, bool is_waiting, struct sp_device_message *message,
                    const int *files, unsigned num_files)
{
    union ancillary ancillary = {.bytes = {0}};
    struct iovec data = {message, sizeof *message};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
    int sent_files[SP_MAX_MESSAGE_FILES];
    unsigned count = 0;

    message->magic = SP_DEVICE_MAGIC;
    message->version = SP_DEVICE_VERSION;
    for (unsigned i = 0; i < num_files && count < SP_MAX_MESSAGE_FILES; i++)
        if (files[i] >= 0)
            sent_files[count++] = files[i];
    if (count) {
        header.msg_control = &ancillary;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(part), sent_files, count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &header, MSG_NOSIGNAL | (is_waiting ? 0 : MSG_DONTWAIT));
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

static unsigned take_files(struct msghdr *header, int files[SP_MAX_MESSAGE_FILES])
{
    unsigned count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t here = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here; i++) {
            int file;
            memcpy(&file, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
            if (count < SP_MAX_MESSAGE_FILES)
                files[count++] = file;
            else
                close(file);
        }
    }
    return count;
}

int sp_message_receive(int socket, bool is_waiting, struct sp_device_message *message,
                       int files[SP_MAX_MESSAGE_FILES])
{
    union ancillary ancillary;
    struct iovec data = {message, sizeof *message};
    struct msghdr header = {.msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = &ancillary,
                            .msg_controllen = sizeof ancillary};
    ssize_t got;
    for (unsigned i = 0; i < SP_MAX_MESSAGE_FILES; i++)
        files[i] = -1;
    do
        got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | (is_waiting ? 0 : MSG_DONTWAIT));
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    if (got == 0)
        return -EPIPE;
    unsigned count = take_files(&header, files);
    if (got == sizeof *message && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
        message->magic == SP_DEVICE_MAGIC && message->version == SP_DEVICE_VERSION)
        return 0;
    for (unsigned i = 0; i < count; i++) {
        close(files[i]);
        files[i] = -1;
    }
    return -EBADMSG;
}
