/* Rectangular reads, writes and copies against the same loops on the host, for many shapes; and
 * every wrong shape. */
#include "check.h"

enum { BYTES = 1 << 14 };

static struct check_setup setup;
static unsigned char in[BYTES], out[BYTES], expected[BYTES];

static unsigned seed = 1;
static size_t random_below(size_t limit)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % limit;
}

struct side {
    size_t origin[3], row, slice;
};

static void fill_side(struct side *side, const size_t *region)
{
    side->row = region[0] + random_below(5);
    side->slice = side->row * (region[1] + random_below(3));
    for (int i = 0; i < 3; i++)
        side->origin[i] = random_below(4);
}

static void copy(unsigned char *dst, const struct side *d, const unsigned char *src,
                 const struct side *s, const size_t *region)
{
    for (size_t z = 0; z < region[2]; z++)
        for (size_t y = 0; y < region[1]; y++)
            memcpy(dst + (z + d->origin[2]) * d->slice + (y + d->origin[1]) * d->row + d->origin[0],
                   src + (z + s->origin[2]) * s->slice + (y + s->origin[1]) * s->row + s->origin[0],
                   region[0]);
}

static void check_shape(cl_mem a, cl_mem b)
{
    size_t region[3] = {1 + random_below(20), 1 + random_below(10), 1 + random_below(6)};
    struct side buffer, host, other;
    fill_side(&buffer, region);
    fill_side(&host, region);
    fill_side(&other, region);

    for (size_t i = 0; i < BYTES; i++)
        in[i] = (unsigned char)random_below(256);
    memset(expected, 0xee, BYTES);
    REQUIRE_CL(clEnqueueWriteBuffer(setup.queue, a, CL_FALSE, 0, BYTES, expected, 0, NULL, NULL));
    REQUIRE_CL(clEnqueueWriteBuffer(setup.queue, b, CL_TRUE, 0, BYTES, expected, 0, NULL, NULL));
    CHECK_CL(clEnqueueWriteBufferRect(setup.queue, a, CL_FALSE, buffer.origin, host.origin, region,
                                      buffer.row, buffer.slice, host.row, host.slice, in, 0, NULL,
                                      NULL),
             CL_SUCCESS);
    copy(expected, &buffer, in, &host, region);
    CHECK_CL(clEnqueueReadBuffer(setup.queue, a, CL_TRUE, 0, BYTES, out, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(memcmp(out, expected, BYTES) == 0);

    CHECK_CL(clEnqueueCopyBufferRect(setup.queue, a, b, buffer.origin, other.origin, region,
                                     buffer.row, buffer.slice, other.row, other.slice, 0, NULL,
                                     NULL),
             CL_SUCCESS);
    memset(out, 0, BYTES);
    memset(in, 0, BYTES);
    CHECK_CL(clEnqueueReadBufferRect(setup.queue, b, CL_TRUE, other.origin, host.origin, region,
                                     other.row, other.slice, host.row, host.slice, out, 0, NULL,
                                     NULL),
             CL_SUCCESS);
    copy(in, &host, expected, &buffer, region);
    CHECK(memcmp(out, in, BYTES) == 0);
}

static cl_int read_rect(cl_mem buffer, size_t x, size_t width, size_t height, size_t depth,
                        size_t row, size_t slice, size_t host_row, size_t host_slice)
{
    const size_t origin[3] = {x, 0, 0}, host_origin[3] = {0}, region[3] = {width, height, depth};
    return clEnqueueReadBufferRect(setup.queue, buffer, CL_TRUE, origin, host_origin, region, row,
                                   slice, host_row, host_slice, out, 0, NULL, NULL);
}

static cl_int copy_rect(cl_mem buffer, size_t src_x, size_t src_y, size_t dst_x, size_t dst_y,
                        size_t width, size_t height)
{
    const size_t src[3] = {src_x, src_y, 0}, dst[3] = {dst_x, dst_y, 0};
    const size_t region[3] = {width, height, 2};
    return clEnqueueCopyBufferRect(setup.queue, buffer, buffer, src, dst, region, 64, 64 * 32, 64,
                                   64 * 32, 0, NULL, NULL);
}

int main(void)
{
    check_setup(&setup);
    cl_int error;
    cl_mem a = clCreateBuffer(setup.context, 0, BYTES, NULL, &error);
    REQUIRE_CL(error);
    cl_mem b = clCreateBuffer(setup.context, 0, BYTES, NULL, &error);
    REQUIRE_CL(error);
    for (int i = 0; i < 300; i++)
        check_shape(a, b);

    CHECK_CL(read_rect(a, 0, 16, 4, 4, 0, 0, 0, 0), CL_SUCCESS);
    CHECK_CL(read_rect(a, 0, 0, 4, 4, 0, 0, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, 0, 16, 0, 4, 0, 0, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, 0, 16, 4, 0, 0, 0, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, 0, 16, 4, 4, 15, 0, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, 0, 16, 4, 4, 16, 63, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, 0, 16, 4, 4, 16, 65, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, 0, 16, 4, 4, 0, 0, 15, 0), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, 0, 16, 4, 4, 0, 0, 16, 65), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, 1, BYTES, 1, 1, 0, 0, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, 0, 16, SIZE_MAX, 1, SIZE_MAX / 2, 0, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, SIZE_MAX, 16, 1, 1, 0, 0, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(read_rect(a, 0, 16, 2, 2, SIZE_MAX / 2, SIZE_MAX - 1, 0, 0), CL_INVALID_VALUE);

    /* Copies within one buffer: apart, in each other's gaps, and overlapping. */
    CHECK_CL(copy_rect(a, 0, 0, 32, 0, 32, 8), CL_SUCCESS);
    CHECK_CL(copy_rect(a, 0, 0, 0, 8, 64, 8), CL_SUCCESS);
    CHECK_CL(copy_rect(a, 0, 0, 31, 0, 32, 8), CL_MEM_COPY_OVERLAP);
    CHECK_CL(copy_rect(a, 0, 0, 0, 7, 64, 8), CL_MEM_COPY_OVERLAP);
    CHECK_CL(copy_rect(a, 40, 0, 8, 1, 33, 8), CL_MEM_COPY_OVERLAP);
    CHECK_CL(copy_rect(a, 5, 5, 5, 5, 8, 8), CL_MEM_COPY_OVERLAP);
    const size_t origin[3] = {0}, far[3] = {0, 0, 2}, region[3] = {8, 2, 1};
    CHECK_CL(clEnqueueCopyBufferRect(setup.queue, a, a, origin, far, region, 16, 0, 32, 0, 0, NULL,
                                     NULL),
             CL_INVALID_VALUE);
    CHECK_CL(
        clEnqueueCopyBufferRect(setup.queue, a, b, NULL, far, region, 0, 0, 0, 0, 0, NULL, NULL),
        CL_INVALID_VALUE);
    CHECK_CL(
        clEnqueueCopyBufferRect(setup.queue, a, b, origin, far, NULL, 0, 0, 0, 0, 0, NULL, NULL),
        CL_INVALID_VALUE);
    CHECK_CL(clReleaseMemObject(a), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(b), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
