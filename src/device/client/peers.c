/* Who is told of whose memory.
 *
 * A process that has said hello meets the others: it is told of the memory of each, and each of its
 * own. From then on until its end, the ends of its exports go on to all others, what it fetches
 * goes to the device that it asks, and the answer back (process/peers.c). Nothing of that is kept
 * here, so that the application holds no files.
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
        .kind = SP_MESSAGE_PEER,
        .slot = of->index,
        .generation = generation_of(of),
        .unexports = atomic_load_explicit(&of->unexports_received, memory_order_relaxed)};
    /* Who cannot be told is about to be found dead. */
    sp_client_send(to, &message, &of->memory_file, 1);
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
    atomic_store_explicit(&device->unexports_received, 0, memory_order_relaxed);
    pthread_mutex_lock(&device->lock);
    uint64_t next = (uint64_t)generation_of(device) + 1;
    /* Release: who reads it sees that the life before is over. */
    atomic_store_explicit(&device->generation_and_unexports, next << 32, memory_order_release);
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

/* With the lock of peers held: tells all others that a part is gone. -EBADMSG where the count is
 * not the next one. */
static int tell_of_unexport(struct client_device *device, const struct sp_device_message *message)
{
    struct sp_device_message told = *message;
    uint32_t received = atomic_load_explicit(&device->unexports_received, memory_order_relaxed);
    if (message->unexports != received + 1)
        return -EBADMSG;
    /* Under the lock: who meets the device from now on is told the new count. */
    atomic_store_explicit(&device->unexports_received, message->unexports, memory_order_relaxed);
    told.kind = SP_MESSAGE_PEER_PART_GONE;
    told.slot = device->index;
    told.generation = generation_of(device);
    for (unsigned i = 0; i < sp_client_num_devices; i++)
        if (&sp_client_devices[i] != device && sp_client_devices[i].has_met)
            sp_client_send(&sp_client_devices[i], &told, NULL, 0);
    return 0;
}

/* With the lock of peers held: the process of that number, unless it is another by now. Whoever
 * waits for it is told of its end. */
static struct client_device *find_process(uint32_t index, uint32_t generation)
{
    struct client_device *found = index < sp_client_num_devices ? &sp_client_devices[index] : NULL;
    return found && found->has_met && generation_of(found) == generation ? found : NULL;
}

static void pass_fetch(struct client_device *device, const struct sp_device_message *message)
{
    struct client_device *asked = find_process(message->slot, message->generation);
    struct sp_device_message told = {.kind = SP_MESSAGE_FETCH,
                                     .start = message->start,
                                     .reader = device->index,
                                     .reader_generation = generation_of(device)};
    if (asked && asked != device)
        sp_client_send(asked, &told, NULL, 0);
}

static void pass_answer(struct client_device *device, const struct sp_device_message *message,
                        int file)
{
    struct client_device *reader = find_process(message->reader, message->reader_generation);
    struct sp_device_message told = {.kind = SP_MESSAGE_PEER_PART,
                                     .slot = device->index,
                                     .generation = generation_of(device),
                                     .start = message->start,
                                     .bytes = message->bytes};
    if (reader && reader != device)
        sp_client_send(reader, &told, &file, 1);
}

int sp_client_take_export(struct client_device *device, const struct sp_device_message *message,
                          int file)
{
    bool is_part = is_range(message->start, message->bytes);
    int error = 0;
    pthread_mutex_lock(&peers_lock);
    if (message->kind == SP_MESSAGE_UNEXPORT && is_part)
        error = tell_of_unexport(device, message);
    else if (message->kind == SP_MESSAGE_FETCH)
        pass_fetch(device, message);
    else if (message->kind == SP_MESSAGE_EXPORT &&
             ((is_part && is_part_file(file, message->bytes)) || (!message->bytes && file < 0)))
        pass_answer(device, message, file);
    else
        error = -EBADMSG;
    pthread_mutex_unlock(&peers_lock);
    return error;
}

bool sp_client_unexports_came(struct client_device *device, uint32_t announced)
{
    uint32_t received = atomic_load_explicit(&device->unexports_received, memory_order_relaxed);
    return (int32_t)(received - announced) >= 0;
}

void sp_client_peers_after_fork(void)
{
    pthread_mutex_init(&peers_lock, NULL);
    for (unsigned i = 0; i < sp_client_num_devices; i++)
        sp_client_devices[i].has_met = false;
}
