/* Filling buffers with patterns of every size, at every kind of place, and each wrong pattern. */
#include "check.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    enum { BYTES = 1 << 16 };
    static unsigned char expected[BYTES], out[BYTES], pattern[256];
    for (int i = 0; i < 256; i++)
        pattern[i] = (unsigned char)(i * 7 + 1);
    cl_int error;
    cl_mem buffer = clCreateBuffer(setup.context, 0, BYTES, NULL, &error);
    REQUIRE_CL(error);
    for (size_t size = 1; size <= 128; size *= 2) {
        for (size_t k = 0; k < 6; k++) {
            const size_t counts[] = {1, 3, 0, 17, BYTES / 128 - 3, (BYTES / size) - 3};
            size_t offset = size * k % 3 * size, bytes = counts[k] * size;
            memset(expected, 0, BYTES);
            REQUIRE_CL(clEnqueueWriteBuffer(setup.queue, buffer, CL_TRUE, 0, BYTES, expected, 0,
                                            NULL, NULL));
            for (size_t i = 0; i < bytes; i++)
                expected[offset + i] = pattern[i % size];
            cl_int result = clEnqueueFillBuffer(setup.queue, buffer, pattern, size, offset, bytes,
                                                0, NULL, NULL);
            CHECK_CL(result,
                     offset % size == 0 && offset + bytes <= BYTES ? CL_SUCCESS : CL_INVALID_VALUE);
            if (result)
                continue;
            CHECK_CL(
                clEnqueueReadBuffer(setup.queue, buffer, CL_TRUE, 0, BYTES, out, 0, NULL, NULL),
                CL_SUCCESS);
            CHECK(memcmp(out, expected, BYTES) == 0);
        }
    }
    const struct {
        const void *pattern;
        size_t pattern_size, offset, size;
    } wrong[] = {
        {NULL, 4, 0, 16},           {pattern, 0, 0, 16},           {pattern, 3, 0, 18},
        {pattern, 256, 0, 256},     {pattern, 8, 4, 16},           {pattern, 8, 8, 12},
        {pattern, 4, 0, BYTES + 4}, {pattern, 4, SIZE_MAX - 3, 8},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_CL(clEnqueueFillBuffer(setup.queue, buffer, wrong[i].pattern, wrong[i].pattern_size,
                                     wrong[i].offset, wrong[i].size, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    /* The pattern is copied when it is enqueued. */
    cl_event gate = clCreateUserEvent(setup.context, &error);
    REQUIRE_CL(error);
    cl_uint value = 42;
    CHECK_CL(clEnqueueFillBuffer(setup.queue, buffer, &value, 4, 0, 64, 1, &gate, NULL),
             CL_SUCCESS);
    value = 43;
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    CHECK_CL(clEnqueueReadBuffer(setup.queue, buffer, CL_TRUE, 60, 4, &value, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(value == 42);
    CHECK_CL(clReleaseEvent(gate), CL_SUCCESS);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
