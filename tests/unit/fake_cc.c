/* In place of samepage-cc for test_client.c: does to each request what its body says after the
 * limits, a string: a command and its operand. One process, one request after the other, but for
 * what takes time. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "compiler/protocol.h"
#include "util/wire.h"

static int receive(void)
{
    struct sp_cc_hello hello;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } ancillary;
    struct iovec data = {&hello, sizeof hello};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &ancillary,
                             .msg_controllen = sizeof ancillary};
    int fd;
    if (recvmsg(SP_CC_CONTROL_FD, &message, 0) != sizeof hello || hello.magic != SP_CC_MAGIC)
        exit(0);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void read_all(int fd, void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(fd, (char *)bytes + done, size - done);
        if (got <= 0)
            exit(1);
        done += (size_t)got;
    }
}

static void write_all(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = send(fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        if (put <= 0)
            return;
        done += (size_t)put;
    }
}

static void answer(int fd, uint32_t kind, uint32_t status, const char *log, const void *rest,
                   size_t rest_size)
{
    struct sp_wire_writer body;
    sp_wire_writer_init(&body);
    sp_wire_put_u32(&body, status);
    sp_wire_put_string(&body, log);
    struct sp_cc_header header = {SP_CC_MAGIC, kind, body.size + rest_size};
    write_all(fd, &header, sizeof header);
    write_all(fd, body.bytes, body.size);
    write_all(fd, rest, rest_size);
    sp_wire_writer_finish(&body);
}

static void serve(int fd)
{
    struct sp_cc_header header;
    read_all(fd, &header, sizeof header);
    unsigned char *body = malloc(header.body_bytes);
    read_all(fd, body, header.body_bytes);
    struct sp_wire_reader reader;
    sp_wire_reader_init(&reader, body, header.body_bytes);
    sp_wire_get_u32(&reader);
    sp_wire_get_u64(&reader);
    char *command = sp_wire_get_string(&reader);
    uint64_t operand = sp_wire_get_u64(&reader);
    if (strcmp(command, "ok") == 0) {
        char *rest = malloc(operand);
        memset(rest, 7, operand);
        answer(fd, header.kind, SP_CC_OK, "fine", rest, operand);
        free(rest);
    } else if (strcmp(command, "status") == 0) {
        answer(fd, header.kind, (uint32_t)operand, "the log", NULL, 0);
    } else if (strcmp(command, "die") == 0) {
        exit(3); /* the whole process: the library sees that it is gone */
    } else if (strcmp(command, "die once") == 0) {
        if (access((const char *)reader.bytes + reader.position, F_OK) == 0)
            answer(fd, header.kind, SP_CC_OK, "second time", NULL, 0);
        else {
            FILE *file = fopen((const char *)reader.bytes + reader.position, "w");
            if (file)
                fclose(file);
            exit(3);
        }
    } else if (strcmp(command, "magic") == 0) {
        header.magic++;
        write_all(fd, &header, sizeof header);
    } else if (strcmp(command, "kind") == 0) {
        answer(fd, header.kind + 1, SP_CC_OK, "", NULL, 0);
    } else if (strcmp(command, "huge") == 0) {
        header.body_bytes = SP_CC_MAX_BODY_BYTES + operand;
        write_all(fd, &header, sizeof header);
    } else if (strcmp(command, "short") == 0) {
        header.body_bytes = 100;
        write_all(fd, &header, sizeof header);
        write_all(fd, "abc", 3);
    } else if (strcmp(command, "log") == 0) { /* a log that is longer than the body */
        unsigned char bytes[12] = {0, 0, 0, 0, 200};
        header.body_bytes = sizeof bytes;
        write_all(fd, &header, sizeof header);
        write_all(fd, bytes, sizeof bytes);
    } else if (strcmp(command, "hang") == 0) {
        if (fork() == 0) { /* others are still served; ends with the library's side */
            struct pollfd watched = {.fd = fd};
            poll(&watched, 1, -1);
            _exit(0);
        }
    } /* anything else: no answer */
    free(command);
    free(body);
    close(fd);
}

int main(void)
{
    signal(SIGCHLD, SIG_IGN);
    for (;;)
        serve(receive());
}
