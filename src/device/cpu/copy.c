/* Copies and fills on all cores.
 *
 * A work is cut into pieces; a piece of a large work goes past the caches with streaming stores,
 * since what is larger than the last cache would be evicted before it is read again and a normal
 * store would first read the line that it overwrites. A rectangle's pieces are rows.
 */
#include <stdint.h>
#include <string.h>

#include "device/cpu/cpu.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* One piece: a few of these keep every core busy to the end, and starting one is nothing beside it.
 */
#define PIECE_BYTES (UINT64_C(1) << 20)

/* From here on waking other threads (5 us) pays: about what one core copies in 20 us. */
#define PARALLEL_MIN_BYTES (UINT64_C(256) << 10)

/* From here on stores go past the caches: beyond what a core's share of a last-level cache holds.
 */
#define STREAM_MIN_BYTES (UINT64_C(4) << 20)

#define STREAM_BLOCK_BYTES 64u

#if defined(__x86_64__)
static void copy_streaming(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    size_t head = -(uintptr_t)dst & (STREAM_BLOCK_BYTES - 1);
    if (head > bytes)
        head = bytes;
    memcpy(dst, src, head);
    dst += head;
    src += head;
    bytes -= head;
    for (; bytes >= STREAM_BLOCK_BYTES; bytes -= STREAM_BLOCK_BYTES) {
        __builtin_prefetch(src + 8 * STREAM_BLOCK_BYTES, 0, 0);
        __m128i a = _mm_loadu_si128((const __m128i *)src);
        __m128i b = _mm_loadu_si128((const __m128i *)src + 1);
        __m128i c = _mm_loadu_si128((const __m128i *)src + 2);
        __m128i d = _mm_loadu_si128((const __m128i *)src + 3);
        _mm_stream_si128((__m128i *)dst, a);
        _mm_stream_si128((__m128i *)dst + 1, b);
        _mm_stream_si128((__m128i *)dst + 2, c);
        _mm_stream_si128((__m128i *)dst + 3, d);
        dst += STREAM_BLOCK_BYTES;
        src += STREAM_BLOCK_BYTES;
    }
    _mm_sfence(); /* streaming stores are not ordered with the stores that tell of the end */
    memcpy(dst, src, bytes);
}

/* `block` is what stands at every multiple of its size; dst is aligned to it. */
static void fill_streaming(unsigned char *dst, const unsigned char *block, size_t bytes)
{
    __m128i part[SP_MAX_PATTERN_BYTES / 16];
    for (unsigned i = 0; i < SP_MAX_PATTERN_BYTES / 16; i++)
        part[i] = _mm_loadu_si128((const __m128i *)block + i);
    for (; bytes >= SP_MAX_PATTERN_BYTES; bytes -= SP_MAX_PATTERN_BYTES) {
        for (unsigned i = 0; i < SP_MAX_PATTERN_BYTES / 16; i++)
            _mm_stream_si128((__m128i *)dst + i, part[i]);
        dst += SP_MAX_PATTERN_BYTES;
    }
    _mm_sfence();
    memcpy(dst, block, bytes);
}
#else
static void copy_streaming(unsigned char *dst, const unsigned char *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static void fill_streaming(unsigned char *dst, const unsigned char *block, size_t bytes)
{
    for (; bytes >= SP_MAX_PATTERN_BYTES; bytes -= SP_MAX_PATTERN_BYTES) {
        memcpy(dst, block, SP_MAX_PATTERN_BYTES);
        dst += SP_MAX_PATTERN_BYTES;
    }
    memcpy(dst, block, bytes);
}
#endif

static bool plan_bytes(struct sp_work *work, uint64_t bytes, unsigned threads)
{
    work->driver.parts = bytes;
    if (bytes < PARALLEL_MIN_BYTES || threads == 1) {
        work->driver.chunk = bytes;
        return false;
    }
    work->driver.chunk = PIECE_BYTES;
    if (bytes < threads * PIECE_BYTES) {
        /* An even share, in whole pages. */
        uint64_t share = bytes / threads;
        work->driver.chunk = (share + 4095) & ~UINT64_C(4095);
    }
    return true;
}

static bool plan_rect(struct sp_work *work, unsigned threads)
{
    const struct sp_rect *rect = &work->rect.rect;
    work->driver.parts = (uint64_t)rect->height * rect->depth;
    uint64_t bytes = work->driver.parts * rect->width;
    if (bytes < PARALLEL_MIN_BYTES || threads == 1) {
        work->driver.chunk = work->driver.parts;
        return false;
    }
    uint64_t rows = PIECE_BYTES / rect->width;
    work->driver.chunk = rows ? rows : 1;
    return true;
}

bool sp_cpu_copy_plan(struct sp_work *work, unsigned threads)
{
    bool is_heavy = work->kind == SP_WORK_COPY   ? plan_bytes(work, work->copy.bytes, threads)
                    : work->kind == SP_WORK_FILL ? plan_bytes(work, work->fill.bytes, threads)
                                                 : plan_rect(work, threads);
    work->driver.least = work->driver.chunk;
    return is_heavy;
}

static void run_fill(struct sp_work *work, uint64_t first, uint64_t end)
{
    unsigned char *start = work->fill.dst;
    size_t pattern_bytes = work->fill.pattern_bytes;
    unsigned char *dst = start + first;
    size_t bytes = end - first;

    if (pattern_bytes == 1 && work->fill.bytes < STREAM_MIN_BYTES) {
        memset(dst, work->fill.pattern[0], bytes);
        return;
    }
    /* One block as it must stand at a multiple of its own size, whatever the pattern's phase there.
     */
    unsigned char block[SP_MAX_PATTERN_BYTES];
    size_t head = -(uintptr_t)dst & (SP_MAX_PATTERN_BYTES - 1);
    if (head > bytes)
        head = bytes;
    size_t phase = (size_t)(first + head) % pattern_bytes;
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = work->fill.pattern[(phase + i) % pattern_bytes];
    for (size_t i = 0; i < head; i++)
        dst[i] = work->fill.pattern[(first + i) % pattern_bytes];
    dst += head;
    bytes -= head;
    if (work->fill.bytes >= STREAM_MIN_BYTES) {
        fill_streaming(dst, block, bytes);
        return;
    }
    for (; bytes >= sizeof block; bytes -= sizeof block) {
        memcpy(dst, block, sizeof block);
        dst += sizeof block;
    }
    memcpy(dst, block, bytes);
}

static void run_rect(struct sp_work *work, uint64_t first, uint64_t end)
{
    const struct sp_rect *rect = &work->rect.rect;
    for (uint64_t row = first; row < end; row++) {
        size_t y = row % rect->height, z = row / rect->height;
        memcpy((unsigned char *)work->rect.dst + z * rect->dst_slice_pitch +
                   y * rect->dst_row_pitch,
               (const unsigned char *)work->rect.src + z * rect->src_slice_pitch +
                   y * rect->src_row_pitch,
               rect->width);
    }
}

int sp_cpu_copy_run(struct sp_work *work, uint64_t first, uint64_t end)
{
    switch (work->kind) {
    case SP_WORK_COPY: {
        unsigned char *dst = (unsigned char *)work->copy.dst + first;
        const unsigned char *src = (const unsigned char *)work->copy.src + first;
        if (work->copy.bytes >= STREAM_MIN_BYTES)
            copy_streaming(dst, src, end - first);
        else
            memcpy(dst, src, end - first);
        break;
    }
    case SP_WORK_FILL:
        run_fill(work, first, end);
        break;
    default:
        run_rect(work, first, end);
        break;
    }
    return 0;
}
