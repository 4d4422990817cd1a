/* Who is told of whose memory.
 *
 * A process that has said hello meets the others: it is told of the memory of each, and each of its
 * own. From then on until its end, all that it says of its exports goes on to the others
 * (process/peers.c); nothing of that is kept here, so that the application holds no files: a device
 * that exports its memory in parts is asked to list them for each process that it meets.
 *
 * What the process says is judged before it goes on: ranges, files, and counts, which follow one
 * another. A count that a completion announced must have been sent before the completion, so it has
 * come when the socket is empty: nobody waits for a message that does not come.
 *
 * The lock is held while messages are sent, which takes no time (post.c): all processes are told
 * the same, and in the same order.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "device/client/client.h"
#include "svm/heap.h"

#ifndef DMA_BUF_MAGIC
#define DMA_BUF_MAGIC 0x444d4142
#endif

static pthread_mutex_t peers_lock = PTHREAD_MUTEX_INITIALIZER;

static void tell_of_peer(struct client_device *to, struct client_device *of)
{
    struct sp_device_message message = {
        .kind = SP_MESSAGE_PEER, .slot = of->index, .generation = generation_of(of)};
    /* Who cannot be told is about to be found dead. */
    sp_client_send(to, &message, &of->memory_file, 1);
    if (of->memory_file >= 0)
        return;
    message = (struct sp_device_message){
        .kind = SP_MESSAGE_LIST_EXPORTS, .slot = to->index, .generation = generation_of(to)};
    sp_client_send(of, &message, NULL, 0);
}

static void tell_of_end(struct client_device *to, const struct client_device *of)
{
    struct sp_device_message message = {
        .kind = SP_MESSAGE_PEER_GONE, .slot = of->index, .generation = generation_of(of)};
    sp_client_send(to, &message, NULL, 0);
}

void sp_client_meet_peers(struct client_device *device, int memory_file)
{
    pthread_mutex_lock(&peers_lock);
    device->memory_file = memory_file;
    device->has_met = true;
    atomic_store_explicit(&device->exports_received, 0, memory_order_relaxed);
    pthread_mutex_lock(&device->lock);
    uint64_t next = (uint64_t)generation_of(device) + 1;
    atomic_store_explicit(&device->generation_and_exports, next << 32, memory_order_relaxed);
    pthread_mutex_unlock(&device->lock);
    for (unsigned i = 0; i < sp_client_num_devices; i++) {
        struct client_device *peer = &sp_client_devices[i];
        if (peer == device)
            continue;
        if (peer->has_met) {
            tell_of_peer(device, peer);
            tell_of_peer(peer, device);
        } else {
            tell_of_end(device, peer);
        }
    }
    pthread_mutex_unlock(&peers_lock);
}

void sp_client_leave_peers(struct client_device *device)
{
    pthread_mutex_lock(&peers_lock);
    if (device->memory_file >= 0)
        close(device->memory_file);
    device->memory_file = -1;
    bool had_met = device->has_met;
    device->has_met = false;
    for (unsigned i = 0; had_met && i < sp_client_num_devices; i++)
        if (sp_client_devices[i].has_met)
            tell_of_end(&sp_client_devices[i], device);
    pthread_mutex_unlock(&peers_lock);
}

/* --- Exports -------------------------------------------------------------------------------------
 */

static bool is_range(uint64_t start, uint64_t bytes)
{
    uintptr_t window;
    size_t window_bytes;
    sp_window_range(&window, &window_bytes);
    return bytes && start >= window && start - window < window_bytes &&
           bytes <= window_bytes - (start - window) && start % SP_GRANULE_BYTES == 0 &&
           bytes % SP_GRANULE_BYTES == 0;
}

/* Whether peers that map the file can rely on its size. What is no file of pages, such as a handle
 * of a vendor's driver, is judged by who can use it. */
static bool is_part_file(int file, uint64_t bytes)
{
    struct stat status;
    struct statfs system;
    if (file < 0 || fstat(file, &status) || fstatfs(file, &system))
        return false;
    if ((uint64_t)system.f_type == DMA_BUF_MAGIC) { /* whose size never changes */
        off_t end = lseek(file, 0, SEEK_END);
        return end >= 0 && (uint64_t)end >= bytes;
    }
    if (!S_ISREG(status.st_mode))
        return true;
    int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && (uint64_t)status.st_size >= bytes;
}

/* The count of a message for all is the next one; it is then the one that was received. */
static bool count_export(struct client_device *device, const struct sp_device_message *message)
{
    uint32_t received = atomic_load_explicit(&device->exports_received, memory_order_relaxed);
    if (message->reader)
        return (int32_t)(received - message->exports) >= 0;
    if (message->exports != received + 1)
        return false;
    atomic_store_explicit(&device->exports_received, message->exports, memory_order_relaxed);
    return true;
}

int sp_client_take_export(struct client_device *device, const struct sp_device_message *message,
                          int file)
{
    struct sp_device_message told = {.slot = device->index,
                                     .generation = generation_of(device),
                                     .start = message->start,
                                     .bytes = message->bytes,
                                     .exports = message->exports,
                                     .reader = message->reader};
    bool is_sane = count_export(device, message);
    switch (message->kind) {
    case SP_MESSAGE_EXPORT:
        told.kind = SP_MESSAGE_PEER_PART;
        is_sane &= is_range(message->start, message->bytes) && is_part_file(file, message->bytes);
        break;
    case SP_MESSAGE_UNEXPORT:
        told.kind = SP_MESSAGE_PEER_PART_GONE;
        is_sane &= is_range(message->start, message->bytes) && !message->reader;
        break;
    case SP_MESSAGE_LIST_EXPORTS:
        told.kind = SP_MESSAGE_PEER_PARTS_LISTED;
        is_sane &= message->reader != 0;
        break;
    default:
        is_sane = false;
    }
    if (!is_sane)
        return -EBADMSG;
    pthread_mutex_lock(&peers_lock);
    for (unsigned i = 0; i < sp_client_num_devices; i++) {
        struct client_device *peer = &sp_client_devices[i];
        if (peer == device || !peer->has_met)
            continue;
        if (!message->reader ||
            (message->reader == i + 1 && message->reader_generation == generation_of(peer)))
            sp_client_send(peer, &told, &file, 1);
    }
    pthread_mutex_unlock(&peers_lock);
    return 0;
}

bool sp_client_exports_came(struct client_device *device, uint32_t announced)
{
    uint32_t received = atomic_load_explicit(&device->exports_received, memory_order_relaxed);
    return (int32_t)(received - announced) >= 0;
}

void sp_client_peers_after_fork(void)
{
    pthread_mutex_init(&peers_lock, NULL);
    for (unsigned i = 0; i < sp_client_num_devices; i++)
        sp_client_devices[i].has_met = false;
}
