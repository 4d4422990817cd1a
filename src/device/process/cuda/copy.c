/* Copies, fills, rectangles and transfers.
 *
 * Large copies are the driver's (DMA). What the driver has no good form for is done by kernels of
 * our own (own_kernels.cl): rectangles, wide patterns, copies within host memory, and many small
 * transfers at once, which would cost the driver 3 us each: those that come one after another are
 * held back in a list, and one kernel carries out the list. It is flushed before anything else is
 * enqueued in its lane or is to come after it, so the order of commands stays what it was; all of
 * one list go the same way, host to device or back, so that none depends on another. Where nothing
 * follows it is flushed too: at once for what the host may be waiting for, and a little later for
 * what goes to the device, whose sender takes longer to name a range than we to take it.
 *
 * Lists lie in host memory that the GPU reads. There are a few, used in turn; one is used again
 * when the kernel that read it has ended.
 */
#include <errno.h>
#include <string.h>

#include "device/process/cuda/cuda.h"
#include "util/time.h"

/* A transfer up to this size is held back: a block of a kernel copies that much in about the time
 * that the driver needs to begin a copy. */
#define SMALL_BYTES (UINT64_C(64) << 10)

/* Small enough for unregistered pages. The driver copies up to 64 KiB of them at once. */
#define BRIEF_BYTES (UINT64_C(16) << 10)

#define RANGES_PER_LIST 1024u
#define NUM_LISTS 4u

/* Fewer ranges than this are copied one by one: a copy takes less than a kernel's start. */
#define MIN_GATHERED 3u

/* How long a list for the device waits for more: a few times what the application needs for the
 * next command (0.3 to 1 us), and little beside what the first copy takes (7 us). */
#define HOLD_NS 4000u

#define BLOCK_THREADS 256u

/* Blocks of a kernel that works on anything large: several for each of a large GPU's
 * multiprocessors. */
#define MAX_BLOCKS 2112u

/* One copy of a list; own_kernels.cl has the same. */
struct sp_cuda_range {
    uint64_t dst, src, bytes;
};

static struct {
    CUfunction gather, fill, fill_wide, copy_rows;
    struct sp_cuda_range *lists[NUM_LISTS];
    uint64_t numbers[RANGES_PER_LIST]; /* whose the ranges of the list at hand are */
    struct {
        enum sp_cuda_lane lane;
        uint64_t mark;
    } readers[NUM_LISTS];   /* the list's last reader */
    unsigned list, count;   /* the list at hand, and ranges in it */
    enum sp_cuda_lane lane; /* IN or OUT: that of the list at hand */
    uint64_t held_ns;       /* since when the last one is held back */
} copies;

int sp_cuda_copy_init(void)
{
    CUmodule module;
    int error =
        sp_cuda_check(sp_cuda.ModuleLoadDataEx(&module, sp_cuda_own_kernels_ptx, 0, NULL, NULL));
    if (!error)
        error = sp_cuda_own_function(module, "sp_gather", &copies.gather);
    if (!error)
        error = sp_cuda_own_function(module, "sp_fill", &copies.fill);
    if (!error)
        error = sp_cuda_own_function(module, "sp_fill_wide", &copies.fill_wide);
    if (!error)
        error = sp_cuda_own_function(module, "sp_copy_rows", &copies.copy_rows);
    for (unsigned i = 0; i < NUM_LISTS && !error; i++) {
        copies.lists[i] = sp_cuda_pinned(RANGES_PER_LIST * sizeof *copies.lists[i]);
        error = copies.lists[i] ? 0 : -ENOMEM;
    }
    return error;
}

static int launch(CUfunction function, uint64_t blocks, const void *parameters, size_t bytes)
{
    const uint32_t grid[3] = {blocks < MAX_BLOCKS ? (uint32_t)blocks : MAX_BLOCKS, 1, 1};
    const uint32_t block[3] = {BLOCK_THREADS, 1, 1};
    return sp_cuda_launch_block(function, grid, block, 0, parameters, bytes, sp_cuda_stream());
}

static uint64_t blocks_for(uint64_t items)
{
    return (items + BLOCK_THREADS - 1) / BLOCK_THREADS;
}

/* --- Lists
 * ----------------------------------------------------------------------------------------
 */

static int copy_range(enum sp_cuda_lane lane, const struct sp_cuda_range *range)
{
    CUstream stream = sp_cuda_lane(lane);
    if (lane == SP_CUDA_IN)
        return sp_cuda_check(sp_cuda.MemcpyHtoDAsync(
            range->dst, (const void *)(uintptr_t)range->src, range->bytes, stream));
    return sp_cuda_check(
        sp_cuda.MemcpyDtoHAsync((void *)(uintptr_t)range->dst, range->src, range->bytes, stream));
}

void sp_cuda_copy_flush(enum sp_cuda_lane lane)
{
    struct sp_cuda_range *list = copies.lists[copies.list];
    unsigned count = copies.count, done = 0;
    int error = 0;
    if (!count || copies.lane != lane)
        return;
    copies.count = 0;
    if (count < MIN_GATHERED) {
        for (; done < count && !error; done += !error)
            error = copy_range(lane, &list[done]);
    } else {
        const uint32_t grid[3] = {count, 1, 1}, block[3] = {BLOCK_THREADS, 1, 1};
        const CUdeviceptr parameters = (uintptr_t)list;
        error = sp_cuda_launch_block(copies.gather, grid, block, 0, &parameters, sizeof parameters,
                                     sp_cuda_lane(lane));
        copies.readers[copies.list].lane = lane;
        copies.readers[copies.list].mark = sp_cuda_lane_mark(lane);
        copies.list = (copies.list + 1) % NUM_LISTS;
    }
    for (; error && done < count; done++)
        sp_cuda_stream_fail(lane, copies.numbers[done], error);
}

bool sp_cuda_copy_may_wait(enum sp_cuda_lane lane, bool has_more)
{
    return copies.count && copies.lane == lane && (lane == SP_CUDA_IN || has_more) &&
           sp_time_ns() - copies.held_ns < HOLD_NS;
}

static void hold_back(enum sp_cuda_lane lane, const struct sp_cuda_range *range, uint64_t number)
{
    if (copies.count == RANGES_PER_LIST || (copies.count && copies.lane != lane))
        sp_cuda_copy_flush(copies.lane);
    if (!copies.count && !sp_cuda_lane_has_passed(copies.readers[copies.list].lane,
                                                  copies.readers[copies.list].mark))
        sp_cuda_lane_drain(copies.readers[copies.list].lane);
    copies.lane = lane;
    copies.numbers[copies.count] = number;
    copies.lists[copies.list][copies.count++] = *range;
    sp_cuda_lane_touch(lane);
}

/* --- Transfers -----------------------------------------------------------------------------------
 */

/* Unregistered pages are read when the copy is enqueued, and written before it returns: that is
 * right only where no copy to the host is under way; and for one to the host, where it has nothing
 * to wait for. */
static bool may_be_brief(enum sp_cuda_lane lane, uint64_t bytes)
{
    return bytes <= BRIEF_BYTES && !copies.count && sp_cuda_lane_is_idle(SP_CUDA_OUT) &&
           (lane == SP_CUDA_IN || !sp_cuda_stream_is_behind());
}

static int transfer_host(const struct sp_command *command, enum sp_cuda_lane lane)
{
    uint64_t start = command->range.start, bytes = command->range.bytes;
    while (bytes) {
        void *host;
        uint64_t count;
        bool is_registered;
        int error = sp_cuda_memory_host(start, bytes, may_be_brief(lane, bytes), &host, &count,
                                        &is_registered);
        if (error)
            return error;
        uint64_t at = (uintptr_t)host;
        struct sp_cuda_range range = lane == SP_CUDA_IN ? (struct sp_cuda_range){start, at, count}
                                                        : (struct sp_cuda_range){at, start, count};
        if (is_registered && count <= SMALL_BYTES)
            hold_back(lane, &range, command->number);
        else
            error = copy_range(lane, &range);
        if (error)
            return error;
        start += count;
        bytes -= count;
    }
    return 0;
}

/* All of the command's range. */
static int transfer_range(const struct sp_command *command)
{
    uint64_t start = command->range.start, bytes = command->range.bytes;
    uint32_t source = command->range.source, destination = command->range.destination;
    if (!sp_cuda_memory_is_bound(start, bytes, true))
        return -EFAULT;
    if (source == SP_PLACE_OWN && destination == SP_PLACE_HOST)
        return transfer_host(command, SP_CUDA_OUT);
    if (source == SP_PLACE_HOST && destination == SP_PLACE_OWN)
        return transfer_host(command, SP_CUDA_IN);
    return destination == SP_PLACE_OWN && source != SP_PLACE_OWN ? sp_cuda_peers_copy(command)
                                                                 : -EINVAL;
}

int sp_cuda_transfer(const struct sp_command *command)
{
    int error = 0;
    if (!command->range.num_pieces)
        error = transfer_range(command);
    struct sp_command piece = *command;
    for (uint64_t i = 0; i < command->range.num_pieces && !error; i++) {
        piece.range.start = command->range.pieces[i].start;
        piece.range.bytes = command->range.pieces[i].bytes;
        error = transfer_range(&piece);
    }
    sp_cuda_populate_end();
    if (copies.count)
        copies.held_ns = sp_time_ns();
    return error;
}

/* --- Within the device ---------------------------------------------------------------------------
 */

struct rows {
    uint64_t dst, src, width, height, rows, dst_row, dst_slice, src_row, src_slice;
};

static bool is_on_host(enum sp_cuda_place place)
{
    return place == SP_CUDA_HOME;
}

/* Between two bindings. */
static int copy_between(uint64_t dst, enum sp_cuda_place to, uint64_t src, enum sp_cuda_place from,
                        uint64_t bytes)
{
    CUstream stream = sp_cuda_stream();
    if (!is_on_host(to) && !is_on_host(from))
        return sp_cuda_check(sp_cuda.MemcpyDtoDAsync(dst, src, bytes, stream));
    if (!is_on_host(to))
        return sp_cuda_check(
            sp_cuda.MemcpyHtoDAsync(dst, (const void *)(uintptr_t)src, bytes, stream));
    if (!is_on_host(from))
        return sp_cuda_check(sp_cuda.MemcpyDtoHAsync((void *)(uintptr_t)dst, src, bytes, stream));
    /* Within host memory the driver would let a thread of the host copy. Lines of a page each, so
     * that all blocks have some. */
    const uint64_t line = bytes < 4096 ? bytes : 4096, lines = bytes / line, rest = bytes % line;
    struct rows rows = {dst, src, line, lines, lines, line, 0, line, 0};
    int error = launch(copies.copy_rows, lines, &rows, sizeof rows);
    if (!error && rest) {
        rows = (struct rows){dst + lines * line, src + lines * line, rest, 1, 1, 0, 0, 0, 0};
        error = launch(copies.copy_rows, 1, &rows, sizeof rows);
    }
    return error;
}

int sp_cuda_copy(uint64_t dst, uint64_t src, uint64_t bytes)
{
    int error =
        sp_cuda_memory_is_bound(dst, bytes, false) && sp_cuda_memory_is_bound(src, bytes, false)
            ? 0
            : -EFAULT;
    while (!error && bytes) {
        uint64_t count;
        enum sp_cuda_place to = sp_cuda_memory_place(dst, bytes, &count);
        enum sp_cuda_place from = sp_cuda_memory_place(src, count, &count);
        error = copy_between(dst, to, src, from, count);
        dst += count;
        src += count;
        bytes -= count;
    }
    return error;
}

static uint64_t rect_bytes(const struct sp_rect *rect, size_t row_pitch, size_t slice_pitch)
{
    return (rect->depth - 1) * slice_pitch + (rect->height - 1) * row_pitch + rect->width;
}

int sp_cuda_copy_rect(const struct sp_command *command)
{
    const struct sp_rect *rect = &command->rect.rect;
    uint64_t dst = command->rect.dst, src = command->rect.src;
    if (!rect->width || !rect->height || !rect->depth)
        return 0;
    if (!sp_cuda_memory_is_bound(dst, rect_bytes(rect, rect->dst_row_pitch, rect->dst_slice_pitch),
                                 false) ||
        !sp_cuda_memory_is_bound(src, rect_bytes(rect, rect->src_row_pitch, rect->src_slice_pitch),
                                 false))
        return -EFAULT;
    const struct rows rows = {dst,
                              src,
                              rect->width,
                              rect->height,
                              (uint64_t)rect->height * rect->depth,
                              rect->dst_row_pitch,
                              rect->dst_slice_pitch,
                              rect->src_row_pitch,
                              rect->src_slice_pitch};
    return launch(copies.copy_rows, rows.rows, &rows, sizeof rows);
}

/* The pattern again and again, in 16-byte parts, as far as it goes. */
static int fill_wide(uint64_t dst, uint64_t count, const unsigned char *pattern, uint64_t bytes)
{
    struct {
        uint64_t dst, count, parts, reserved;
        unsigned char pattern[SP_MAX_PATTERN_BYTES];
    } parameters = {.dst = dst, .count = count, .parts = bytes < 16 ? 1 : bytes / 16};
    for (uint64_t i = 0; i < 16 || i < bytes; i++)
        parameters.pattern[i] = pattern[i % bytes];
    return launch(copies.fill_wide, blocks_for(count), &parameters, sizeof parameters);
}

static int fill_rest(uint64_t dst, uint64_t bytes, const unsigned char *pattern,
                     uint64_t pattern_bytes)
{
    struct {
        uint64_t dst, bytes, pattern_bytes;
        unsigned char pattern[SP_MAX_PATTERN_BYTES];
    } parameters = {.dst = dst, .bytes = bytes, .pattern_bytes = pattern_bytes};
    memcpy(parameters.pattern, pattern, pattern_bytes);
    return launch(copies.fill, blocks_for(bytes), &parameters, sizeof parameters);
}

/* Inside one binding. */
static int fill_piece(uint64_t dst, uint64_t bytes, const unsigned char *pattern, uint64_t size)
{
    if (size <= 4 && !(dst % size)) {
        uint32_t value = 0;
        memcpy(&value, pattern, size);
        CUstream stream = sp_cuda_stream();
        return sp_cuda_check(
            size == 1   ? sp_cuda.MemsetD8Async(dst, (unsigned char)value, bytes, stream)
            : size == 2 ? sp_cuda.MemsetD16Async(dst, (unsigned short)value, bytes / 2, stream)
                        : sp_cuda.MemsetD32Async(dst, value, bytes / 4, stream));
    }
    uint64_t wide = dst % 16 ? 0 : bytes / 16;
    int error = wide ? fill_wide(dst, wide, pattern, size) : 0;
    /* 16 is a multiple of any smaller pattern, and larger ones leave no rest. */
    if (!error && wide * 16 < bytes)
        error = fill_rest(dst + wide * 16, bytes - wide * 16, pattern, size);
    return error;
}

int sp_cuda_fill(const struct sp_command *command)
{
    uint64_t dst = command->fill.dst, bytes = command->fill.bytes;
    uint64_t size = command->fill.pattern_bytes, count = 0;
    if (!size || size > SP_MAX_PATTERN_BYTES || (size & (size - 1)))
        return -EINVAL;
    int error = sp_cuda_memory_is_bound(dst, bytes, false) ? 0 : -EFAULT;
    for (; !error && bytes; dst += count, bytes -= count) {
        sp_cuda_memory_place(dst, bytes, &count);
        error = fill_piece(dst, count, command->fill.pattern, size);
    }
    return error;
}
