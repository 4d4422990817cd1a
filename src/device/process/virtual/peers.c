/* The memory of other devices, mapped at aliases from which transfers copy.
 *
 * One alias for each device, as large as the window: all of its memory file, or its exported parts,
 * each fetched when it is first needed, at its place, with nothing accessible in between; so the
 * copy of a range does not care how the other device has bound it.
 *
 * The files stay open, since a device of a pool maps parts of them at the shared addresses, too.
 *
 * The control thread changes the table and the loop thread uses it, under one lock. The memory of a
 * process that died stays whole as long as it is mapped, so a copy from it ends well: what a
 * transfer uses is replaced, or taken away, when the transfer has ended.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/process/virtual/virtual.h"
#include "device/selection.h"
#include "svm/heap.h"
#include "util/alloc.h"

/* A file whose byte 0 is the window's address `start`. */
struct piece {
    struct piece *next;
    uint64_t start, bytes;
    int file; /* owned */
};

struct peer {
    unsigned char *alias; /* NULL: cannot be reached */
    struct piece *pieces; /* its memory file, or its parts that are present */
    uint32_t generation;  /* 0: none yet */
    bool is_in_parts;
    unsigned char *present; /* in parts: of granules, 1 where there is one; NULL: none was there */
    bool is_in_use;         /* the loop thread copies from it */
};

static struct {
    unsigned char *window;
    size_t window_bytes;
    pthread_mutex_t lock;
    pthread_cond_t moved; /* a peer is in use no more */
    struct peer peers[SP_MAX_CLIENT_DEVICES];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

void sp_virtual_peers_init(const struct sp_backend_setup *setup)
{
    table.window = setup->window;
    table.window_bytes = setup->window_bytes;
}

/* All of `file`, or with -1 nothing yet, in place of `before` where that is not NULL: so restarts
 * use up no addresses. NULL: it cannot be mapped. */
static unsigned char *map_alias(int file, unsigned char *before)
{
    int flags = (file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | MAP_NORESERVE |
                (before ? MAP_FIXED : 0);
    void *alias =
        mmap(before, table.window_bytes, file >= 0 ? PROT_READ : PROT_NONE, flags, file, 0);
    if (alias == MAP_FAILED)
        return NULL;
    if (file >= 0)
        madvise(alias, table.window_bytes, MADV_HUGEPAGE); /* a wish */
    return alias;
}

/* With the lock held. */
static void await_end_of_use(struct peer *peer)
{
    while (peer->is_in_use)
        pthread_cond_wait(&table.moved, &table.lock);
}

/* Closes the files of what lies in the range. */
static void drop_pieces(struct peer *peer, uint64_t start, uint64_t bytes)
{
    for (struct piece **link = &peer->pieces; *link;) {
        struct piece *piece = *link;
        if (piece->start < start || piece->start - start >= bytes) {
            link = &piece->next;
            continue;
        }
        *link = piece->next;
        close(piece->file);
        free(piece);
    }
}

/* Takes over the file. Where that is not kept the peer's memory can be copied from, but not mapped
 * here. */
static void add_piece(struct peer *peer, uint64_t start, uint64_t bytes, int file)
{
    struct piece *piece = sp_alloc(sizeof *piece);
    if (!piece) {
        close(file);
        return;
    }
    *piece = (struct piece){peer->pieces, start, bytes, file};
    peer->pieces = piece;
}

void sp_virtual_peer(uint32_t index, uint32_t generation, int file)
{
    if (index < SP_MAX_CLIENT_DEVICES) {
        pthread_mutex_lock(&table.lock);
        struct peer *peer = &table.peers[index];
        await_end_of_use(peer);
        peer->alias = map_alias(file, peer->alias);
        peer->generation = generation;
        peer->is_in_parts = file < 0;
        free(peer->present);
        peer->present = NULL;
        drop_pieces(peer, (uintptr_t)table.window, table.window_bytes);
        if (file >= 0)
            add_piece(peer, (uintptr_t)table.window, table.window_bytes, file);
        pthread_mutex_unlock(&table.lock);
    } else if (file >= 0) {
        close(file);
    }
}

/* With the lock held: the peer, if it is that process; and the granules, if they are some. */
static struct peer *find_peer(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes,
                              uint64_t *first, uint64_t *end)
{
    struct peer *peer = index < SP_MAX_CLIENT_DEVICES ? &table.peers[index] : NULL;
    if (!peer || peer->generation != generation || !peer->is_in_parts || !peer->alias ||
        !sp_virtual_whole_granules(start, bytes, first, end))
        return NULL;
    if (!peer->present)
        peer->present = sp_alloc(table.window_bytes / SP_GRANULE_BYTES);
    return peer->present ? peer : NULL;
}

void sp_virtual_peer_part(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes,
                          int file)
{
    uint64_t first, end;
    pthread_mutex_lock(&table.lock);
    struct peer *peer = find_peer(index, generation, start, bytes, &first, &end);
    if (peer && mmap(peer->alias + first * SP_GRANULE_BYTES, bytes, PROT_READ,
                     MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) != MAP_FAILED) {
        memset(peer->present + first, 1, end - first);
        add_piece(peer, start, bytes, file);
        file = -1;
    }
    pthread_mutex_unlock(&table.lock);
    if (file >= 0)
        close(file);
}

void sp_virtual_peer_part_gone(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes)
{
    uint64_t first, end;
    pthread_mutex_lock(&table.lock);
    struct peer *peer = find_peer(index, generation, start, bytes, &first, &end);
    if (peer) {
        await_end_of_use(peer);
        memset(peer->present + first, 0, end - first);
        drop_pieces(peer, start, bytes);
        /* Where this fails the memory lives on, and nobody reaches it. */
        mmap(peer->alias + first * SP_GRANULE_BYTES, bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    pthread_mutex_unlock(&table.lock);
}

static bool are_present(const struct peer *peer, uint64_t start, uint64_t bytes)
{
    uint64_t first, end;
    if (!peer->is_in_parts)
        return true;
    return peer->present && sp_virtual_granules(start, bytes, &first, &end) &&
           (first == end || !memchr(peer->present + first, 0, end - first));
}

int sp_virtual_peer_use(const struct sp_command *transfer, unsigned char **alias)
{
    int error = sp_process_await_peer(transfer);
    if (error)
        return error;
    pthread_mutex_lock(&table.lock);
    struct peer *peer = &table.peers[transfer->range.source];
    if (peer->generation != transfer->range.generation)
        error = -EIO; /* a newer one holds other data than what was asked for */
    else if (!peer->alias || !are_present(peer, transfer->range.start, transfer->range.bytes))
        error = -ENODEV;
    else
        peer->is_in_use = true;
    *alias = peer->alias;
    pthread_mutex_unlock(&table.lock);
    return error;
}

void sp_virtual_peer_end_use(const struct sp_command *transfer)
{
    pthread_mutex_lock(&table.lock);
    table.peers[transfer->range.source].is_in_use = false;
    pthread_cond_broadcast(&table.moved);
    pthread_mutex_unlock(&table.lock);
}

/* With the lock held: the piece in which `address` lies, or NULL. */
static const struct piece *piece_at(const struct peer *peer, uint64_t address)
{
    const struct piece *piece = peer->pieces;
    while (piece && (address < piece->start || address - piece->start >= piece->bytes))
        piece = piece->next;
    return piece;
}

static int map_pieces(const struct peer *peer, uint64_t start, uint64_t bytes)
{
    while (bytes) {
        const struct piece *piece = piece_at(peer, start);
        if (!piece)
            return -ENODEV;
        uint64_t offset = start - piece->start;
        uint64_t count = bytes < piece->bytes - offset ? bytes : piece->bytes - offset;
        void *at = (void *)(uintptr_t)start;
        if (mmap(at, count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                 piece->file, (off_t)offset) == MAP_FAILED)
            return -ENOMEM;
        madvise(at, count, MADV_HUGEPAGE); /* a wish */
        start += count;
        bytes -= count;
    }
    return 0;
}

int sp_virtual_peer_map(const struct sp_command *command)
{
    int error = sp_process_await_peer(command);
    if (error)
        return error;
    pthread_mutex_lock(&table.lock);
    const struct peer *peer = &table.peers[command->range.source];
    error = peer->generation != command->range.generation
                ? -EIO
                : map_pieces(peer, command->range.start, command->range.bytes);
    pthread_mutex_unlock(&table.lock);
    return error;
}
