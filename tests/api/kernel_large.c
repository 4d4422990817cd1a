/* Kernels of thousands of blocks, as hashes of passwords are that put a part at any place:
 * functions with a case for each place, called many times, all inlined. What they compute is
 * compared with the same functions run by the host; with a barrier in between, work-items wait for
 * each other among parted ways. */
#include "check_program.h"

#include <stdint.h>

#define ITEMS 64
#define WORDS 8

/* The same text for the host and for OpenCL C. */
#define SHARED(...)                                                                                \
    __VA_ARGS__                                                                                    \
    static const char shared[] = #__VA_ARGS__;

/* clang-format off */
SHARED(
static uint32_t part(uint32_t a, uint32_t b, uint32_t bytes)
{
    return bytes ? a << 8 * bytes | b >> (32 - 8 * bytes) : a;
}

static void put(uint32_t w[8], uint32_t place, uint32_t value)
{
    uint32_t b = place % 4;
    switch (place / 4 % 16) {
    case 0: w[0] ^= part(value, 0, b); w[1] += part(0, value, b); break;
    case 1: w[1] ^= part(value, 1, b); w[2] += part(1, value, b); break;
    case 2: w[2] ^= part(value, 2, b); w[3] += part(2, value, b); break;
    case 3: w[3] ^= part(value, 3, b); w[4] += part(3, value, b); break;
    case 4: w[4] ^= part(value, 4, b); w[5] += part(4, value, b); break;
    case 5: w[5] ^= part(value, 5, b); w[6] += part(5, value, b); break;
    case 6: w[6] ^= part(value, 6, b); w[7] += part(6, value, b); break;
    case 7: w[7] ^= part(value, 7, b); w[0] += part(7, value, b); break;
    case 8: w[0] += part(value, 8, b); w[2] ^= part(8, value, b); break;
    case 9: w[1] += part(value, 9, b); w[3] ^= part(9, value, b); break;
    case 10: w[2] += part(value, 10, b); w[4] ^= part(10, value, b); break;
    case 11: w[3] += part(value, 11, b); w[5] ^= part(11, value, b); break;
    case 12: w[4] += part(value, 12, b); w[6] ^= part(12, value, b); break;
    case 13: w[5] += part(value, 13, b); w[7] ^= part(13, value, b); break;
    case 14: w[6] += part(value, 14, b); w[0] ^= part(14, value, b); break;
    default: w[7] += part(value, 15, b); w[1] ^= part(15, value, b); break;
    }
}

static void put_four(uint32_t w[8], uint32_t n)
{
    put(w, w[n % 8], n);
    put(w, w[(n + 3) % 8] + n, w[(n + 1) % 8]);
    put(w, w[(n + 5) % 8] ^ n, w[(n + 2) % 8]);
    if (w[n % 8] & 1)
        put(w, n, w[(n + 4) % 8]);
}

static void put_many(uint32_t w[8])
{
    put_four(w, 1); put_four(w, 2); put_four(w, 3); put_four(w, 4);
    put_four(w, 5); put_four(w, 6); put_four(w, 7); put_four(w, 8);
    put_four(w, 9); put_four(w, 10); put_four(w, 11); put_four(w, 12);
    put_four(w, 13); put_four(w, 14); put_four(w, 15); put_four(w, 16);
    put_four(w, 17);
}
)
/* clang-format on */

static const char kernels[] =
    "__kernel void plain(__global uint *p)\n"
    "{\n"
    "    uint w[8];\n"
    "    for (int i = 0; i < 8; i++) w[i] = p[get_global_id(0) * 8 + i];\n"
    "    put_many(w);\n"
    "    for (int i = 0; i < 8; i++) p[get_global_id(0) * 8 + i] = w[i];\n"
    "}\n"
    "__kernel void together(__global uint *p, __local uint *l)\n"
    "{\n"
    "    uint w[8];\n"
    "    for (int i = 0; i < 8; i++) w[i] = p[get_global_id(0) * 8 + i];\n"
    "    put_many(w);\n"
    "    l[get_local_id(0)] = w[3];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    w[5] += l[get_local_size(0) - 1 - get_local_id(0)];\n"
    "    if (w[0] & 2) put_four(w, 21);\n"
    "    for (int i = 0; i < 8; i++) p[get_global_id(0) * 8 + i] = w[i];\n"
    "}\n";

static void fill(uint32_t words[ITEMS][WORDS])
{
    uint32_t next = 12345;
    for (int i = 0; i < ITEMS * WORDS; i++)
        words[i / WORDS][i % WORDS] = next = next * 1664525 + 1013904223;
}

static void expect_plain(uint32_t words[ITEMS][WORDS], unsigned local)
{
    (void)local;
    for (int i = 0; i < ITEMS; i++)
        put_many(words[i]);
}

static void expect_together(uint32_t words[ITEMS][WORDS], unsigned local)
{
    uint32_t fourth[ITEMS];
    for (unsigned i = 0; i < ITEMS; i++) {
        put_many(words[i]);
        fourth[i] = words[i][3];
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        words[i][5] += fourth[i / local * local + local - 1 - i % local];
        if (words[i][0] & 2)
            put_four(words[i], 21);
    }
}

static void check(const struct check_setup *setup, cl_program program, const char *name,
                  size_t local, void (*expect)(uint32_t words[ITEMS][WORDS], unsigned local))
{
    static uint32_t words[ITEMS][WORDS], expected[ITEMS][WORDS];
    cl_int error;
    fill(words);
    fill(expected);
    expect(expected, (unsigned)local);
    cl_kernel kernel = get_kernel(program, name);
    cl_mem buffer = clCreateBuffer(setup->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                   sizeof words, words, &error);
    REQUIRE_CL(error);
    REQUIRE_CL(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    if (expect == expect_together)
        REQUIRE_CL(clSetKernelArg(kernel, 1, local * sizeof(uint32_t), NULL));
    REQUIRE_CL(clEnqueueNDRangeKernel(setup->queue, kernel, 1, NULL, &(size_t){ITEMS}, &local, 0,
                                      NULL, NULL));
    REQUIRE_CL(
        clEnqueueReadBuffer(setup->queue, buffer, CL_TRUE, 0, sizeof words, words, 0, NULL, NULL));
    CHECK(memcmp(words, expected, sizeof words) == 0);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
}

int main(void)
{
    struct check_setup setup;
    char source[sizeof shared + sizeof kernels + 64];
    check_setup(&setup);
    snprintf(source, sizeof source, "typedef uint uint32_t;\n%s\n%s", shared, kernels);
    cl_program program = build(setup.context, source, "-cl-std=CL2.0");
    check(&setup, program, "plain", 16, expect_plain);
    check(&setup, program, "together", 16, expect_together);
    check(&setup, program, "together", 64, expect_together);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
