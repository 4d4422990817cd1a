/* See client.h. Owns the control socket of the one samepage-cc, and nothing else that outlives a
 * call.
 *
 * Each request has a socket pair of its own, so requests of many threads run side by side; only
 * starting samepage-cc and sending it the far end of that pair happen under the lock. The lock is a
 * leaf: no other is taken under it.
 *
 * After fork() both processes would hold the control socket. The child drops its copy (an atfork
 * handler, which also keeps the lock in order) and starts a samepage-cc of its own when it needs
 * one.
 *
 * How the far side's end is told apart: the request's socket ends when its child is gone, the
 * control socket ends when samepage-cc itself is gone. The second is nobody's fault but that of
 * whoever killed it, so the request is repeated once.
 */
#include "compiler/client.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/spawn.h"
#include "util/thread.h"
#include "util/time.h"

/* samepage-cc keeps the limits of time itself; the library waits this much longer than the wall
 * clock's before it gives up. */
#define GRACE_SECONDS 5u

/* How long the sockets of an ending process take to end, generously. */
#define END_MILLISECONDS 50

/* The largest limits that can be asked for: a day, and 16 TiB. */
#define MAX_SECONDS (24u * 60 * 60)
#define MAX_MEMORY_MIB (UINT64_C(16) << 20)

/* The stack of the thread that starts samepage-cc. */
#define START_STACK_BYTES (128u << 10)

/* The first read of a reply's body; it grows with what really arrives, not with what is announced.
 */
#define FIRST_BODY_BYTES (UINT64_C(256) << 10)

static struct {
    pthread_mutex_t lock;
    int control;         /* -1: samepage-cc was not started, or its end was seen */
    unsigned generation; /* counts starts, and forks of the application */
    unsigned requests;   /* under way */
    char *path;          /* of samepage-cc; NULL until it is asked for */
    bool has_atfork;
    bool is_starting; /* a thread is about to start samepage-cc */
} client = {.lock = PTHREAD_MUTEX_INITIALIZER, .control = -1};

/* --- What the environment says ------------------------------------------------------------- */

/* The number that `name` holds, or `preset` where it is not set or is no number up to `max`. */
static uint64_t number_from_environment(const char *name, uint64_t preset, uint64_t max)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return preset;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno && value <= max)
        return value;
    fprintf(stderr,
            "samepage: %s=%s is not a whole number from 0 to %" PRIu64 "; %" PRIu64
            " is used instead.\n",
            name, text, max, preset);
    return preset;
}

static pthread_once_t limits_once = PTHREAD_ONCE_INIT;
static struct sp_compiler_limits limits;

static void read_limits(void)
{
    limits.seconds = (uint32_t)number_from_environment("SAMEPAGE_BUILD_SECONDS",
                                                       SP_BUILD_SECONDS_DEFAULT, MAX_SECONDS);
    limits.memory_bytes = number_from_environment("SAMEPAGE_BUILD_MEMORY",
                                                  SP_BUILD_MEMORY_MIB_DEFAULT, MAX_MEMORY_MIB)
                          << 20;
}

struct sp_compiler_limits sp_compiler_limits(void)
{
    pthread_once(&limits_once, read_limits);
    return limits;
}

/* With the lock held. */
static const char *path_locked(void)
{
    if (!client.path)
        client.path = sp_spawn_find("SAMEPAGE_CC", "samepage-cc",
                                    (const void *)(uintptr_t)sp_compiler_request);
    return client.path;
}

const char *sp_compiler_path(void)
{
    pthread_mutex_lock(&client.lock);
    const char *path = path_locked();
    pthread_mutex_unlock(&client.lock);
    return path;
}

/* --- samepage-cc itself -------------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&client.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&client.lock);
}

static void after_fork_in_child(void)
{
    if (client.control >= 0)
        close(client.control);
    client.control = -1;
    client.generation++;
    client.requests = 0;
    client.is_starting = false;
    pthread_mutex_unlock(&client.lock);
}

/* With the lock held. Makes sure of a control socket: 0, -ENOENT or another errno of starting. */
static int start_locked(void)
{
    if (client.control >= 0)
        return 0;
    const char *path = path_locked();
    if (!path || sp_alloc_may_fail())
        return -ENOMEM;
    if (!client.has_atfork) {
        if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child))
            return -ENOMEM;
        client.has_atfork = true;
    }
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    static char name[] = "samepage-cc";
    char *const arguments[] = {name, NULL};
    char **environment = sp_spawn_environment();
    struct sp_spawn spawn = {
        .path = path, .arguments = arguments, .environment = environment, .control = pair[1]};
    int error = environment ? sp_spawn_unnoticed(&spawn) : -ENOMEM;
    free(environment);
    close(pair[1]);
    if (error) {
        close(pair[0]);
        return error;
    }
    client.control = pair[0];
    client.generation++;
    return 0;
}

static void close_control_locked(void)
{
    close(client.control);
    client.control = -1;
}

static void *start_thread(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&client.lock);
    client.is_starting = false;
    (void)start_locked();
    pthread_mutex_unlock(&client.lock);
    return NULL;
}

void sp_compiler_start(void)
{
    pthread_mutex_lock(&client.lock);
    /* On a thread of its own: loading a program takes up to milliseconds, which the caller need not
     * wait. */
    if (client.control < 0 && !client.is_starting && !sp_alloc_may_fail())
        client.is_starting = sp_thread_start_detached(start_thread, NULL, START_STACK_BYTES) == 0;
    pthread_mutex_unlock(&client.lock);
}

void sp_compiler_stop(void)
{
    pthread_mutex_lock(&client.lock);
    if (client.control >= 0 && !client.requests)
        close_control_locked();
    pthread_mutex_unlock(&client.lock);
}

/* Hands `fd` to samepage-cc: 0; -EAGAIN while its queue is full; or the errno of a broken socket.
 */
static int send_hello_locked(int fd)
{
    struct sp_cc_hello hello = {.magic = SP_CC_MAGIC, .version = SP_CC_VERSION};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } ancillary = {.bytes = {0}};
    struct iovec data = {&hello, sizeof(hello)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &ancillary,
                             .msg_controllen = sizeof(ancillary)};
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(part), &fd, sizeof(int));
    ssize_t sent;
    do
        sent = sendmsg(client.control, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

/* --- One request --------------------------------------------------------------------------- */

struct call {
    int fd;               /* this side of the request's socket pair; -1: none */
    unsigned generation;  /* of the samepage-cc that has the other side */
    uint64_t deadline_ns; /* UINT64_MAX: none */
};

/* Milliseconds for poll until `deadline_ns`: -1 without one, 0 once it passed. */
static int poll_timeout(uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return -1;
    uint64_t now = sp_time_ns();
    if (now >= deadline_ns)
        return 0;
    uint64_t left = (deadline_ns - now) / 1000000 + 1;
    return left > INT_MAX ? INT_MAX : (int)left;
}

/* Waits for one of `events` on `fd`: 0, -ETIMEDOUT or an errno. */
static int wait_for(int fd, short events, uint64_t deadline_ns, short *revents)
{
    for (;;) {
        struct pollfd watched = {.fd = fd, .events = events};
        int ready = poll(&watched, 1, poll_timeout(deadline_ns));
        if (ready > 0) {
            *revents = watched.revents;
            return 0;
        }
        if (ready == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

/* A socket pair whose far end samepage-cc has, started if need be. Once a request it may find that
 * samepage-cc has gone, and start it again. */
static int call_open(struct call *call)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    int error;
    bool started_again = false;
    for (;;) {
        pthread_mutex_lock(&client.lock);
        error = start_locked();
        if (!error)
            error = send_hello_locked(pair[1]);
        bool is_full = error == -EAGAIN;
        bool is_gone = error == -EPIPE || error == -ECONNRESET || error == -ENOTCONN;
        int control = is_full ? dup(client.control) : -1;
        if (is_gone)
            close_control_locked();
        if (!error) {
            client.requests++;
            call->generation = client.generation;
        }
        pthread_mutex_unlock(&client.lock);
        if (is_full) {
            short ignored;
            error = control < 0 ? -errno : wait_for(control, POLLOUT, call->deadline_ns, &ignored);
            if (control >= 0)
                close(control);
            if (error)
                break;
        } else if (is_gone && !started_again) {
            started_again = true;
        } else {
            break;
        }
    }
    close(pair[1]);
    if (error) {
        close(pair[0]);
        return error;
    }
    call->fd = pair[0];
    return 0;
}

/* Ends the call. Whether the samepage-cc that it went to has gone meanwhile. A process's sockets
 * end one after the other, in no order that we know: after a call without an answer
 * (`is_unanswered`) the control socket is given a moment to end too. Others wait with us for that
 * long, in a rare case. */
static bool call_close(struct call *call, bool is_unanswered)
{
    close(call->fd);
    call->fd = -1;
    pthread_mutex_lock(&client.lock);
    bool is_gone = client.generation != call->generation || client.control < 0;
    if (client.generation == call->generation)
        client.requests--;
    if (!is_gone) {
        /* samepage-cc never writes to this socket: anything but silence is its end. */
        struct pollfd watched = {.fd = client.control, .events = POLLIN};
        is_gone = poll(&watched, 1, is_unanswered ? END_MILLISECONDS : 0) > 0;
        if (is_gone)
            close_control_locked();
    }
    pthread_mutex_unlock(&client.lock);
    return is_gone;
}

/* Room for bytes that arrive after `have`: up to twice as much as is there, `announced` at most. */
static int grow_body(struct sp_compiler_reply *reply, size_t *capacity, size_t have,
                     uint64_t announced)
{
    if (have < *capacity)
        return 0;
    uint64_t larger = *capacity ? 2 * (uint64_t)*capacity : FIRST_BODY_BYTES;
    if (larger > announced)
        larger = announced;
    unsigned char *body = sp_realloc(reply->body, larger);
    if (!body)
        return -ENOMEM;
    reply->body = body;
    *capacity = larger;
    return 0;
}

/* The state of a conversation: what is sent, what is received. */
struct exchange {
    const struct call *call;
    enum sp_cc_kind kind;
    struct sp_cc_header request, answer;
    const unsigned char *body;
    size_t body_bytes;
    size_t sent;     /* of header and body together */
    size_t received; /* likewise */
    size_t capacity; /* of reply->body */
};

/* Sends what the socket takes. The far side may answer and go without reading all: not an error. */
static int send_some(struct exchange *exchange)
{
    const unsigned char *bytes = (const unsigned char *)&exchange->request + exchange->sent;
    size_t size = sizeof(exchange->request) - exchange->sent;
    if (exchange->sent >= sizeof(exchange->request)) {
        size_t done = exchange->sent - sizeof(exchange->request);
        bytes = exchange->body + done;
        size = exchange->body_bytes - done;
    }
    ssize_t sent = send(exchange->call->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
        exchange->sent += (size_t)sent;
    else if (errno == EPIPE || errno == ECONNRESET)
        exchange->sent = sizeof(exchange->request) + exchange->body_bytes;
    else if (errno != EAGAIN && errno != EINTR)
        return -errno;
    return 0;
}

/* Takes what is there: 0, -EPIPE at the far side's end, -EBADMSG for a wrong header. */
static int receive_some(struct exchange *exchange, struct sp_compiler_reply *reply)
{
    unsigned char *room = (unsigned char *)&exchange->answer + exchange->received;
    size_t size = sizeof(exchange->answer) - exchange->received;
    if (exchange->received >= sizeof(exchange->answer)) {
        size_t done = exchange->received - sizeof(exchange->answer);
        int error = grow_body(reply, &exchange->capacity, done, exchange->answer.body_bytes);
        if (error)
            return error;
        room = reply->body + done;
        size = exchange->capacity - done;
    }
    ssize_t got = recv(exchange->call->fd, room, size, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : errno == ECONNRESET ? -EPIPE : -errno;
    if (got == 0)
        return -EPIPE;
    exchange->received += (size_t)got;
    if (exchange->received == sizeof(exchange->answer) &&
        (exchange->answer.magic != SP_CC_MAGIC || exchange->answer.kind != exchange->kind ||
         exchange->answer.body_bytes == 0 || exchange->answer.body_bytes > SP_CC_MAX_BODY_BYTES))
        return -EBADMSG;
    return 0;
}

/* Carries the request out and the reply in. */
static int converse(const struct call *call, enum sp_cc_kind kind, const void *body,
                    size_t body_bytes, struct sp_compiler_reply *reply)
{
    struct exchange exchange = {
        .call = call,
        .kind = kind,
        .request = {.magic = SP_CC_MAGIC, .kind = kind, .body_bytes = body_bytes},
        .body = body,
        .body_bytes = body_bytes,
    };
    size_t to_send = sizeof(exchange.request) + body_bytes;
    for (;;) {
        short events = POLLIN | (exchange.sent < to_send ? POLLOUT : 0), revents;
        int error = wait_for(call->fd, events, call->deadline_ns, &revents);
        if (!error && (revents & POLLOUT) && exchange.sent < to_send)
            error = send_some(&exchange);
        if (!error && (revents & (POLLIN | POLLHUP | POLLERR)))
            error = receive_some(&exchange, reply);
        if (error)
            return error;
        if (exchange.received >= sizeof(exchange.answer) &&
            exchange.received - sizeof(exchange.answer) == exchange.answer.body_bytes) {
            reply->body_bytes = exchange.answer.body_bytes;
            return 0;
        }
    }
}

/* How long a request may take by the clock on the wall; 0: any time. */
static uint64_t wall_seconds(void)
{
    return (uint64_t)sp_compiler_limits().seconds * SP_CC_WALL_TIMES;
}

/* What a person is told. `was_long`: the request used up its time; `has_died`: samepage-cc itself
 * ended, twice. */
static char *explain(int error, bool was_long, bool has_died)
{
    const char *path = sp_compiler_path();
    uint64_t mib = sp_compiler_limits().memory_bytes >> 20;
    switch (error) {
    case -ENOENT:
        if (has_died)
            return sp_format("The compiler %s ended twice without an answer: it was killed, or is "
                             "not of Samepage; SAMEPAGE_CC names another.\n",
                             path ? path : "samepage-cc");
        return sp_format("The compiler %s is not there or does not run; install it beside the "
                         "library, or name it in SAMEPAGE_CC.\n",
                         path ? path : "samepage-cc");
    case -EPIPE:
        if (!was_long)
            return sp_format(
                "The compiler ended without an answer: it crashed, or needed more than "
                "%" PRIu64 " MiB; SAMEPAGE_BUILD_MEMORY sets another limit.\n",
                mib);
        __attribute__((fallthrough));
    case -ETIMEDOUT:
        return sp_format("The compiler gave no answer for %" PRIu64
                         " seconds, %u times the %" PRIu32
                         " that it may compute; SAMEPAGE_BUILD_SECONDS sets another limit.\n",
                         wall_seconds(), SP_CC_WALL_TIMES, sp_compiler_limits().seconds);
    case -EBADMSG:
        return sp_format("The answer of the compiler %s was not understood; it must be of the same "
                         "version as the library.\n",
                         path ? path : "samepage-cc");
    case -ENOMEM:
        return sp_strdup("Memory ran out in this process during the build.\n");
    default:
        return sp_format("The compiler cannot be reached (%s).\n", strerror(-error));
    }
}

/* Errors of starting a program all mean one thing to the caller. */
static int start_error(int error)
{
    switch (error) {
    case -ENOMEM:
    case -EMFILE:
    case -ENFILE:
    case -ETIMEDOUT:
        return error;
    case -EAGAIN: /* no process left */
        return -ENOMEM;
    default:
        return -ENOENT;
    }
}

int sp_compiler_request(enum sp_cc_kind kind, const void *body, size_t body_bytes,
                        struct sp_compiler_reply *reply)
{
    uint64_t seconds = wall_seconds();
    *reply = (struct sp_compiler_reply){0};
    bool was_long = false, has_died = false;
    int error;
    if (body_bytes > SP_CC_MAX_BODY_BYTES) {
        reply->log = sp_format("The program is larger than %" PRIu64 " bytes; split it.\n",
                               (uint64_t)SP_CC_MAX_BODY_BYTES);
        return -EBADMSG;
    }
    for (int attempt = 0;; attempt++) {
        uint64_t start_ns = sp_time_ns();
        struct call call = {.fd = -1, .deadline_ns = UINT64_MAX};
        if (seconds)
            call.deadline_ns = start_ns + (seconds + GRACE_SECONDS) * UINT64_C(1000000000);
        error = call_open(&call);
        if (error) {
            error = start_error(error);
            break;
        }
        error = converse(&call, kind, body, body_bytes, reply);
        bool is_gone = call_close(&call, error == -EPIPE);
        if (!error)
            break;
        free(reply->body);
        reply->body = NULL;
        was_long = seconds && sp_time_ns() - start_ns >= seconds * UINT64_C(1000000000);
        if (error != -EPIPE || !is_gone || was_long)
            break;
        if (attempt > 0) {
            error = -ENOENT;
            has_died = true;
            break;
        }
    }
    if (!error)
        error = sp_compiler_reply_open(reply);
    if (error) {
        sp_compiler_reply_finish(reply);
        reply->log = explain(error, was_long, has_died);
    }
    return error;
}

int sp_compiler_reply_open(struct sp_compiler_reply *reply)
{
    struct sp_wire_reader reader;
    sp_wire_reader_init(&reader, reply->body, reply->body_bytes);
    reply->status = sp_wire_get_u32(&reader);
    reply->log = sp_wire_get_string(&reader);
    reply->rest = reader.position;
    if (reader.failed || reply->status > SP_CC_LAST_STATUS)
        return -EBADMSG;
    return reply->log ? 0 : -ENOMEM;
}

void sp_compiler_reply_finish(struct sp_compiler_reply *reply)
{
    free(reply->body);
    free(reply->log);
    *reply = (struct sp_compiler_reply){0};
}
