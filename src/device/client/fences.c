/* Who has which fence (docs/ahead.md): the board that all device processes share, and the slots of
 * each device on it.
 *
 * A slot is taken for one work, with a number that it never had before, and is free again with the
 * last reference: of that work, and of works that wait for it (sp_work.after), each of which is
 * kept until that work has finished. So nobody ever looks for a fence in a slot that has moved on.
 *
 * A device's process reaches the fences of its works. Those of works that failed without it are
 * reached here, badly: of a process that died, and of works that never got to one. Nobody else
 * writes here by then.
 *
 * Each line's lock is held for a few instructions, inside of any other.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/client/client.h"
#include "util/alloc.h"

struct line {
    pthread_mutex_t lock;
    uint16_t free[SP_FENCE_SLOTS];
    unsigned num_free;
    uint64_t numbers[SP_FENCE_SLOTS]; /* last taken */
    atomic_uint references[SP_FENCE_SLOTS];
};

static struct {
    struct sp_fence_board *board; /* NULL: none, or this is the child of a fork */
    int file;
    struct line lines[SP_MAX_CLIENT_DEVICES];
} fences = {.file = -1};

static void init_line(struct line *line)
{
    pthread_mutex_init(&line->lock, NULL);
    for (unsigned i = 0; i < SP_FENCE_SLOTS; i++)
        line->free[i] = (uint16_t)(SP_FENCE_SLOTS - 1 - i);
    line->num_free = SP_FENCE_SLOTS;
}

int sp_client_fences_init(void)
{
    if (fences.board)
        return 0;
    if (sp_alloc_may_fail())
        return -ENOMEM;
    int file = memfd_create("samepage-fences", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return -errno;
    struct sp_fence_board *board = MAP_FAILED;
    /* Sealed, so that no process can take it away from under the others. */
    if (!ftruncate(file, sizeof *board) &&
        !fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (board == MAP_FAILED || madvise(board, sizeof *board, MADV_DONTFORK)) {
        int error = -errno;
        if (board != MAP_FAILED)
            munmap(board, sizeof *board);
        close(file);
        return error;
    }
    for (unsigned d = 0; d < SP_MAX_CLIENT_DEVICES; d++)
        init_line(&fences.lines[d]);
    fences.file = file;
    fences.board = board;
    return 0;
}

int sp_client_fences_file(void)
{
    return fences.file;
}

struct sp_fence_line *sp_client_fence_line(const struct client_device *device)
{
    return fences.board ? &fences.board->lines[device->index] : NULL;
}

sp_fence sp_client_take_fence(struct sp_device *device)
{
    struct client_device *client = client_of(device);
    uint32_t index = client->index;
    struct line *line = &fences.lines[index];
    sp_fence fence = 0;
    if (!fences.board)
        return 0;
    /* Who waits for it may name the process, to copy from it, before that is known. */
    pthread_mutex_lock(&client->lock);
    bool is_running = client->state == CLIENT_RUNNING;
    pthread_mutex_unlock(&client->lock);
    if (!is_running)
        return 0;
    pthread_mutex_lock(&line->lock);
    if (line->num_free) {
        uint32_t slot = line->free[--line->num_free];
        fence = sp_fence_of(index, slot, ++line->numbers[slot]);
        atomic_store_explicit(&line->references[slot], 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&line->lock);
    return fence;
}

void sp_client_keep_fence(sp_fence fence)
{
    /* Relaxed: the caller has a reference, or knows of one. */
    atomic_fetch_add_explicit(
        &fences.lines[sp_fence_device(fence)].references[sp_fence_slot(fence)], 1,
        memory_order_relaxed);
}

void sp_client_drop_fence(sp_fence fence)
{
    struct line *line = &fences.lines[sp_fence_device(fence)];
    uint32_t slot = sp_fence_slot(fence);
    /* Acquire and release: all that was done about it comes before it is taken again. */
    if (atomic_fetch_sub_explicit(&line->references[slot], 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_lock(&line->lock);
    line->free[line->num_free++] = (uint16_t)slot;
    pthread_mutex_unlock(&line->lock);
}

void sp_client_fences_finish(struct client_device *device, const struct sp_work *work)
{
    if (work->fence && fences.board)
        sp_fence_reach(fences.board, work->fence, false,
                       (uint32_t)atomic_load_explicit(&device->generation_and_unexports,
                                                      memory_order_relaxed));
}

bool sp_client_fences_are_reached(const struct sp_work *work)
{
    for (uint32_t i = 0; i < work->num_after; i++)
        if (fences.board && sp_fence_look(fences.board, work->after[i]) == SP_FENCE_NOT_YET)
            return false;
    return true;
}

void sp_client_fences_after_fork(void)
{
    fences.board = NULL; /* not mapped here */
    if (fences.file >= 0)
        close(fences.file);
    fences.file = -1;
    for (unsigned d = 0; d < SP_MAX_CLIENT_DEVICES; d++)
        pthread_mutex_init(&fences.lines[d].lock, NULL);
}
