/* What this device exports, and what is known of the memory of other devices.
 *
 * A device whose memory is not one file exports each binding with a file of its own. Exports and
 * their ends are counted, and each completion says how many there were before it. A transfer names
 * the count that the application knew of its source when it was submitted; the record may be read
 * here before the messages are, so it waits until that many are known. So a transfer never meets
 * the part that was at an address before, nor misses the one that is there now. Every wait ends:
 * the application sees to it that what a completion counts was sent (client/peers.c), and tells of
 * the end of the process that a message should come from.
 *
 * News (for all) come one after another from a certain count on. A device that starts later is sent
 * a list of the parts first, taken between two news; until its end, news are old.
 *
 * `exports.lock` is held while a message is sent, so that messages come in the order of their
 * counts: by the loop thread, and by the control thread for a list. The application always reads,
 * so nobody waits for long. `known.lock` is held for a few instructions, and not while the backend
 * is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/process/message.h"
#include "device/process/process.h"
#include "util/alloc.h"

struct part {
    uint64_t start, bytes;
    int file; /* owned */
};

static struct {
    const struct sp_backend *backend;
    int socket;
    pthread_mutex_t lock;
    struct part *parts; /* by start; none overlap */
    size_t count, capacity;
    uint32_t sent; /* changed by the loop thread, under the lock */
} exports = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct peer {
    uint32_t generation; /* of the newest process; 0: none yet */
    uint32_t gone;       /* of the newest process that has ended; 0: none yet */
    bool is_listed;      /* nothing is missing but the news behind `exports` */
    uint32_t exports;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct peer peers[SP_MAX_CLIENT_DEVICES]; /* written by the control thread alone */
} known = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

void sp_peers_init(const struct sp_backend *backend, int socket)
{
    exports.backend = backend;
    exports.socket = socket;
}

/* --- Exports -------------------------------------------------------------------------------------
 */

uint32_t sp_peers_exports(void)
{
    return exports.sent;
}

/* The first part that ends behind `address`. */
static size_t find_part(uint64_t address)
{
    size_t first = 0, end = exports.count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (exports.parts[middle].start + exports.parts[middle].bytes <= address)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static int keep_part(uint64_t start, uint64_t bytes, int file)
{
    if (exports.count == exports.capacity) {
        size_t larger = exports.capacity ? 2 * exports.capacity : 64;
        struct part *parts = sp_realloc(exports.parts, larger * sizeof *parts);
        if (!parts)
            return -ENOMEM;
        exports.parts = parts;
        exports.capacity = larger;
    }
    int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return -errno;
    size_t at = find_part(start);
    memmove(exports.parts + at + 1, exports.parts + at,
            (exports.count - at) * sizeof *exports.parts);
    exports.parts[at] = (struct part){.start = start, .bytes = bytes, .file = own};
    exports.count++;
    return 0;
}

static bool drop_parts(uint64_t start, uint64_t bytes)
{
    size_t first = find_part(start), end = first;
    while (end < exports.count && exports.parts[end].start < start + bytes)
        close(exports.parts[end++].file);
    memmove(exports.parts + first, exports.parts + end,
            (exports.count - end) * sizeof *exports.parts);
    exports.count -= end - first;
    return end != first;
}

static int send_news(enum sp_message_kind kind, uint64_t start, uint64_t bytes, int file)
{
    struct sp_device_message message = {
        .kind = kind, .start = start, .bytes = bytes, .exports = exports.sent};
    return sp_message_send(exports.socket, true, &message, &file, 1);
}

void sp_process_export(uint64_t start, uint64_t bytes, int file)
{
    pthread_mutex_lock(&exports.lock);
    exports.sent++;
    int error = keep_part(start, bytes, file);
    if (!error) {
        error = send_news(SP_MESSAGE_EXPORT, start, bytes, file);
        if (error)
            drop_parts(start, bytes);
    }
    /* The count must come all the same. Where not even this can be sent the application is gone. */
    if (error)
        send_news(SP_MESSAGE_UNEXPORT, start, bytes, -1);
    pthread_mutex_unlock(&exports.lock);
}

void sp_process_unexport(uint64_t start, uint64_t bytes)
{
    pthread_mutex_lock(&exports.lock);
    if (drop_parts(start, bytes)) {
        exports.sent++;
        send_news(SP_MESSAGE_UNEXPORT, start, bytes, -1);
    }
    pthread_mutex_unlock(&exports.lock);
}

static void list_exports(uint32_t index, uint32_t generation)
{
    struct sp_device_message message = {
        .kind = SP_MESSAGE_EXPORT, .reader = index + 1, .reader_generation = generation};
    pthread_mutex_lock(&exports.lock);
    message.exports = exports.sent;
    for (size_t i = 0; i < exports.count; i++) {
        const struct part *part = &exports.parts[i];
        message.start = part->start;
        message.bytes = part->bytes;
        /* One that cannot be sent cannot be reached from there. */
        sp_message_send(exports.socket, true, &message, &part->file, 1);
    }
    message.kind = SP_MESSAGE_LIST_EXPORTS;
    message.start = message.bytes = 0;
    sp_message_send(exports.socket, true, &message, NULL, 0);
    pthread_mutex_unlock(&exports.lock);
}

/* --- What is known of others ---------------------------------------------------------------------
 */

static void set_peer(struct peer *peer, struct peer now)
{
    pthread_mutex_lock(&known.lock);
    *peer = now;
    pthread_cond_broadcast(&known.moved);
    pthread_mutex_unlock(&known.lock);
}

/* Whether the message says something new of the newest process of that device. */
static bool is_new(const struct peer *peer, const struct sp_device_message *message)
{
    return peer->generation == message->generation && (message->reader != 0) == !peer->is_listed;
}

bool sp_peers_serve(const struct sp_device_message *message, int *files)
{
    const struct sp_backend *backend = exports.backend;
    uint32_t index = message->slot;
    struct peer *peer = &known.peers[index % SP_MAX_CLIENT_DEVICES];
    struct peer now = *peer;
    switch (message->kind) {
    case SP_MESSAGE_LIST_EXPORTS:
        list_exports(index, message->generation);
        return true;
    case SP_MESSAGE_PEER:
        now.generation = message->generation;
        now.is_listed = files[0] >= 0;
        now.exports = 0;
        backend->peer(index, message->generation, files[0]);
        files[0] = -1;
        break;
    case SP_MESSAGE_PEER_GONE:
        now.gone = message->generation;
        break;
    case SP_MESSAGE_PEER_PART:
        if (!is_new(peer, message))
            return true;
        if (backend->peer_part && files[0] >= 0) {
            backend->peer_part(index, message->generation, message->start, message->bytes,
                               files[0]);
            files[0] = -1;
        }
        if (!message->reader)
            now.exports = message->exports;
        break;
    case SP_MESSAGE_PEER_PART_GONE:
        if (!is_new(peer, message))
            return true;
        if (backend->peer_part_gone)
            backend->peer_part_gone(index, message->generation, message->start, message->bytes);
        now.exports = message->exports;
        break;
    case SP_MESSAGE_PEER_PARTS_LISTED:
        if (!is_new(peer, message))
            return true;
        now.is_listed = true;
        now.exports = message->exports;
        break;
    default:
        return false;
    }
    set_peer(peer, now);
    return true;
}

int sp_process_await_peer(const struct sp_command *transfer)
{
    uint32_t index = transfer->range.source, generation = transfer->range.generation;
    int error = 0;
    if (index >= SP_MAX_CLIENT_DEVICES || !generation)
        return -ENODEV;
    const struct peer *peer = &known.peers[index];
    pthread_mutex_lock(&known.lock);
    for (;;) {
        /* Counts are compared by their distance: they may wrap. */
        int32_t newer = (int32_t)(peer->generation - generation);
        int32_t known_more = (int32_t)(peer->exports - transfer->range.exports);
        if (newer == 0 && peer->is_listed && known_more >= 0)
            break;
        if (newer > 0 || (peer->gone && (int32_t)(peer->gone - generation) >= 0)) {
            error = -EIO;
            break;
        }
        pthread_cond_wait(&known.moved, &known.lock);
    }
    pthread_mutex_unlock(&known.lock);
    return error;
}
