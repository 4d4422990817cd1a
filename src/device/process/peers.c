/* What this device exports, and what is known of the memory of other devices.
 *
 * A device whose memory is not one file exports each binding with a file of its own. Another
 * process fetches a part when it first needs it; then it has it until it is told that the part is
 * gone. Such ends are counted, and each completion says how many there were before it. A transfer
 * names the count that the application knew of its source when it was submitted; the record may be
 * read here before the messages are, so it waits until that many are known. So a transfer never
 * meets the part that was at an address before the one that is there now. And an answer to a fetch
 * comes behind all ends that were sent before it.
 *
 * Every wait ends: with the message, with the source's process, of whose end the application tells,
 * or in time.
 *
 * `exports.lock` is held while an end or an answer is sent, so that they come in this order. The
 * application always reads, so nobody waits for long. `known.lock` is held for a few instructions,
 * and not while the backend is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/process/message.h"
#include "device/process/process.h"
#include "util/alloc.h"

/* An answer takes less than 0.1 ms; this is for a process that does not give one. */
#define ANSWER_SECONDS 10

struct part {
    uint64_t start, bytes;
    int file; /* owned; -1: none */
};

struct parts {
    struct part *list; /* by start; none overlap */
    size_t count, capacity;
};

static struct {
    const struct sp_backend *backend;
    int socket;
    pthread_mutex_t lock;
    struct parts parts; /* that can be fetched */
    uint32_t ended;     /* how many ends were sent. Changed by the loop thread, under the lock */
} exports = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct peer {
    uint32_t generation; /* of the newest process; 0: none yet */
    uint32_t gone;       /* of the newest process that has ended; 0: none yet */
    bool is_in_parts;
    uint32_t unexports;   /* that are known */
    struct parts fetched; /* what the backend has */
    uint32_t answers;     /* to fetches */
    bool is_none;         /* what the last answer says */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;                     /* something of a peer has changed */
    struct peer peers[SP_MAX_CLIENT_DEVICES]; /* changed by the control thread */
} known = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

void sp_peers_init(const struct sp_backend *backend, int socket)
{
    exports.backend = backend;
    exports.socket = socket;
}

/* --- Parts ---------------------------------------------------------------------------------------
 */

/* The first part that ends behind `address`; parts->count: none does. */
static size_t find_part(const struct parts *parts, uint64_t address)
{
    size_t first = 0, end = parts->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (parts->list[middle].start + parts->list[middle].bytes <= address)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* The part in which `address` lies, or NULL. */
static const struct part *part_at(const struct parts *parts, uint64_t address)
{
    size_t at = find_part(parts, address);
    return at < parts->count && parts->list[at].start <= address ? &parts->list[at] : NULL;
}

/* Takes over the file, unless there is not enough memory. */
static int add_part(struct parts *parts, uint64_t start, uint64_t bytes, int file)
{
    if (parts->count == parts->capacity) {
        size_t larger = parts->capacity ? 2 * parts->capacity : 64;
        struct part *list = sp_realloc(parts->list, larger * sizeof *list);
        if (!list)
            return -ENOMEM;
        parts->list = list;
        parts->capacity = larger;
    }
    size_t at = find_part(parts, start);
    memmove(parts->list + at + 1, parts->list + at, (parts->count - at) * sizeof *parts->list);
    parts->list[at] = (struct part){.start = start, .bytes = bytes, .file = file};
    parts->count++;
    return 0;
}

/* Drops all that touch the range: whether there were any. */
static bool drop_parts(struct parts *parts, uint64_t start, uint64_t bytes)
{
    size_t first = find_part(parts, start), end = first;
    for (; end < parts->count && parts->list[end].start < start + bytes; end++)
        if (parts->list[end].file >= 0)
            close(parts->list[end].file);
    if (end == first)
        return false;
    memmove(parts->list + first, parts->list + end, (parts->count - end) * sizeof *parts->list);
    parts->count -= end - first;
    return true;
}

/* --- Exports -------------------------------------------------------------------------------------
 */

uint32_t sp_peers_unexports(void)
{
    return exports.ended;
}

void sp_process_export(uint64_t start, uint64_t bytes, int file)
{
    int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_lock(&exports.lock);
    int error = own < 0 ? -errno : add_part(&exports.parts, start, bytes, own);
    pthread_mutex_unlock(&exports.lock);
    if (error && own >= 0)
        close(own); /* a part that is not kept is not found */
}

void sp_process_unexport(uint64_t start, uint64_t bytes)
{
    struct sp_device_message message = {
        .kind = SP_MESSAGE_UNEXPORT, .start = start, .bytes = bytes};
    pthread_mutex_lock(&exports.lock);
    if (drop_parts(&exports.parts, start, bytes)) {
        message.unexports = ++exports.ended;
        sp_message_send(exports.socket, true, &message, NULL, 0);
    }
    pthread_mutex_unlock(&exports.lock);
}

static void answer_fetch(const struct sp_device_message *fetch)
{
    struct sp_device_message answer = {.kind = SP_MESSAGE_EXPORT,
                                       .start = fetch->start,
                                       .reader = fetch->reader,
                                       .reader_generation = fetch->reader_generation};
    int file = -1;
    pthread_mutex_lock(&exports.lock);
    const struct part *part = part_at(&exports.parts, fetch->start);
    if (part) {
        answer.start = part->start;
        answer.bytes = part->bytes;
        file = part->file;
    }
    sp_message_send(exports.socket, true, &answer, &file, 1);
    pthread_mutex_unlock(&exports.lock);
}

/* --- What is known of others ---------------------------------------------------------------------
 */

/* A part for the backend; false: it has none. */
static bool take_part(struct peer *peer, const struct sp_device_message *message, int *files)
{
    if (files[0] < 0 || !exports.backend->peer_part || peer->generation != message->generation)
        return false;
    exports.backend->peer_part(message->slot, message->generation, message->start, message->bytes,
                               files[0]);
    files[0] = -1;
    return true;
}

bool sp_peers_serve(const struct sp_device_message *message, int *files)
{
    const struct sp_backend *backend = exports.backend;
    uint32_t index = message->slot, generation = message->generation;
    struct peer *peer = &known.peers[index % SP_MAX_CLIENT_DEVICES];
    bool is_in_parts = files[0] < 0, is_part = false;

    /* The backend first: what is known here, it knows. */
    if (message->kind == SP_MESSAGE_FETCH) {
        answer_fetch(message);
        return true;
    }
    if (message->kind == SP_MESSAGE_PEER) {
        backend->peer(index, generation, files[0]);
        files[0] = -1;
    } else if (message->kind == SP_MESSAGE_PEER_PART_GONE && backend->peer_part_gone) {
        backend->peer_part_gone(index, generation, message->start, message->bytes);
    } else if (message->kind == SP_MESSAGE_PEER_PART) {
        is_part = take_part(peer, message, files);
    }

    bool is_known = true;
    pthread_mutex_lock(&known.lock);
    switch (message->kind) {
    case SP_MESSAGE_PEER:
        peer->generation = generation;
        peer->is_in_parts = is_in_parts;
        peer->unexports = message->unexports;
        peer->fetched.count = 0;
        break;
    case SP_MESSAGE_PEER_GONE:
        peer->gone = generation;
        break;
    case SP_MESSAGE_PEER_PART_GONE:
        peer->unexports = message->unexports;
        drop_parts(&peer->fetched, message->start, message->bytes);
        break;
    case SP_MESSAGE_PEER_PART:
        peer->answers++;
        drop_parts(&peer->fetched, message->start, message->bytes);
        peer->is_none = !is_part || add_part(&peer->fetched, message->start, message->bytes, -1);
        break;
    default:
        is_known = false;
    }
    pthread_cond_broadcast(&known.moved);
    pthread_mutex_unlock(&known.lock);
    return is_known;
}

/* With `known.lock` held: sleeps until something moved. 0, or the error that ends the wait for that
 * process. */
static int await_move(const struct peer *peer, uint32_t generation, const struct timespec *limit)
{
    if ((int32_t)(peer->generation - generation) > 0 ||
        (peer->gone && (int32_t)(peer->gone - generation) >= 0))
        return -EIO;
    return -pthread_cond_timedwait(&known.moved, &known.lock, limit);
}

static void set_limit(struct timespec *limit)
{
    clock_gettime(CLOCK_REALTIME, limit);
    limit->tv_sec += ANSWER_SECONDS;
}

/* With `known.lock` held, which is given up meanwhile: asks for the part at this address. */
static int fetch_part(const struct peer *peer, const struct sp_command *transfer, uint64_t address)
{
    struct sp_device_message message = {.kind = SP_MESSAGE_FETCH,
                                        .slot = transfer->range.source,
                                        .generation = transfer->range.generation,
                                        .start = address};
    struct timespec limit;
    uint32_t before = peer->answers;
    set_limit(&limit);
    pthread_mutex_unlock(&known.lock);
    int error = sp_message_send(exports.socket, true, &message, NULL, 0);
    pthread_mutex_lock(&known.lock);
    while (!error && peer->answers == before)
        error = await_move(peer, message.generation, &limit);
    return !error && peer->is_none ? -ENODEV : error;
}

/* With `known.lock` held: the first address of the range that was not fetched; its end: all was. */
static uint64_t find_missing(const struct peer *peer, uint64_t start, uint64_t end)
{
    const struct part *part;
    while (peer->is_in_parts && start < end && (part = part_at(&peer->fetched, start)))
        start = part->start + part->bytes;
    return peer->is_in_parts && start < end ? start : end;
}

int sp_process_await_peer(const struct sp_command *transfer)
{
    uint32_t index = transfer->range.source, generation = transfer->range.generation;
    uint64_t start = transfer->range.start, end = start + transfer->range.bytes;
    struct timespec limit = {0};
    int error = 0;
    if (index >= SP_MAX_CLIENT_DEVICES || !generation)
        return -ENODEV;
    const struct peer *peer = &known.peers[index];
    pthread_mutex_lock(&known.lock);
    /* Counts are compared by their distance: they may wrap. */
    while (!error && (peer->generation != generation ||
                      (int32_t)(peer->unexports - transfer->range.unexports) < 0)) {
        if (!limit.tv_sec)
            set_limit(&limit);
        error = await_move(peer, generation, &limit);
    }
    /* Asked for once: what comes may be something else, where the source is mad. */
    while (!error && (start = find_missing(peer, start, end)) != end) {
        error = fetch_part(peer, transfer, start);
        if (!error && peer->generation == generation && !part_at(&peer->fetched, start))
            error = -ENODEV;
    }
    pthread_mutex_unlock(&known.lock);
    return error;
}

void sp_process_forget_part(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes)
{
    struct peer *peer = &known.peers[index % SP_MAX_CLIENT_DEVICES];
    pthread_mutex_lock(&known.lock);
    if (peer->generation == generation)
        drop_parts(&peer->fetched, start, bytes);
    pthread_mutex_unlock(&known.lock);
}
