/* PTX: what makes kernels fast on NVIDIA GPUs. */
#include "ptx.h"

#include "compiler/gpu_abi.h"

#include <stdlib.h>

/* A difference of squares shares its products with their sum. */
static void keeps_products_whole(void **state)
{
    (void)state;
    char *ptx = compile("__kernel void k(__global float *out, float x, float y, float z)\n"
                        "{\n"
                        "    out[0] = x * x - y * y;\n"
                        "    out[1] = x * x + y * y;\n"
                        "    out[2] = z - -x * -y;\n"
                        "}\n");
    assert_int_equal(count(ptx, "mul.rn.f32"), 1);
    assert_int_equal(count(ptx, "fma.rn.f32"), 3);
    free(ptx);
}

/* Two groups at once: what both read is asked for before anything is written. */
static void pairs_groups(void **state)
{
    (void)state;
    static const uint64_t local[3] = {256, 1, 1};
    const char *source = "__kernel void k(__global float *a, __global const float *b)\n"
                         "{\n"
                         "    size_t i = get_global_id(0);\n"
                         "    a[i] += 3 * b[i] / 7;\n"
                         "}\n";
    char *any = compile(source), *ptx = compile_with(source, local, version_3);
    assert_has_not(any, SP_GPU_PAIR_SYMBOL_PREFIX);
    const char *pair = strstr(ptx, ".entry " SP_GPU_PAIR_SYMBOL_PREFIX "k(");
    assert_non_null(pair);
    assert_has(pair, ".reqntid 256, 1, 1");
    assert_int_equal(count(pair, "ld.global.f32"), 4);
    assert_int_equal(count(pair, "st.global.f32"), 2);
    assert_int_equal(count(strstr(pair, "st.global.f32"), "ld.global.f32"), 0);
    assert_has(ptx, ".entry " SP_GPU_KERNEL_SYMBOL_PREFIX "k(");
    free(any);
    free(ptx);
}

/* Kernels whose groups may meet, or whose work-items are not all alike, have no pair. */
static void pairs_only_what_may_be(void **state)
{
    (void)state;
    static const uint64_t local[3] = {64, 1, 1};
    static const char *const bodies[] = {
        "l[get_local_id(0)] = a[i]; barrier(CLK_LOCAL_MEM_FENCE); a[i] = l[0];",
        "l[get_local_id(0)] = a[i]; a[i] = l[get_local_id(0)] + 1;",
        "atomic_inc(a + i);",
        "a[i] = atomic_add(a, 1) + a[i + 1];",
        "if (a[i]) b[i] = 1;",
        "b[i] = ((volatile __global int *)a)[i];",
        "b[i] = a[i]; mem_fence(CLK_GLOBAL_MEM_FENCE); b[i + 1] = a[i + 1];",
        "b[i] = printf(\"%d\", a[i]);",
        "int p[9]; p[a[i] & 7] = 1; p[a[i + 1] & 7] = 2; b[i] = p[a[i + 2] & 7];",
        "b[i] = 1;",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct sp_cc_text source = {0};
        sp_cc_text_format(&source,
                          "__kernel void k(__global int *a, __global int *b, __local int *l)\n"
                          "{ size_t i = get_global_id(0); %s }\n",
                          bodies[i]);
        char *ptx = compile_with(source.bytes, local, version_3);
        assert_has_not(ptx, SP_GPU_PAIR_SYMBOL_PREFIX);
        free(ptx);
        sp_cc_text_finish(&source);
    }
}

/* A private array whose places a loop's counter says: in registers where the turns are known. */
static void keeps_arrays_in_registers(void **state)
{
    (void)state;
    static const char *const plain[] = {"-cl-std=CL3.0", "-cl-opt-disable", NULL};
    const char *source = "__kernel void k(__global uint *out, __global const uint *in)\n"
                         "{\n"
                         "    uint w[16], i = get_global_id(0), sum = 0;\n"
                         "    for (uint j = 0; j < 16; j++)\n"
                         "        w[j] = in[i * 16 + j];\n"
                         "    for (uint j = 0; j < 64; j++) {\n"
                         "        w[j & 15] += rotate(w[(j + 14) & 15], 7u) ^ w[(j + 1) & 15];\n"
                         "        sum += w[j & 15] ^ j;\n"
                         "    }\n"
                         "    out[i] = sum;\n"
                         "}\n";
    char *ptx = compile(source), *slow = compile_with(source, NULL, plain);
    assert_has(slow, ".local");
    assert_has_not(ptx, ".local");
    assert_int_equal(count(ptx, "shf.l.wrap.b32"), 64);
    free(ptx);
    free(slow);
}

/* Rounds that hand words from variable to variable, without an array. */
static void straightens_rounds(void **state)
{
    (void)state;
    char *ptx = compile("__kernel void k(__global uint *out, uint a, uint b, uint c, uint d)\n"
                        "{\n"
                        "    for (uint i = 0; i < 40; i++) {\n"
                        "        uint t = rotate(a, 5u) + (b ^ c) + d + i;\n"
                        "        d = c;\n"
                        "        c = b;\n"
                        "        b = a;\n"
                        "        a = t;\n"
                        "    }\n"
                        "    out[get_global_id(0)] = a ^ b ^ c ^ d;\n"
                        "}\n");
    assert_int_equal(count(ptx, "shf.l.wrap.b32"), 40);
    free(ptx);
}

/* Where the run says how often, it is a loop. */
static void leaves_loops_of_unknown_turns(void **state)
{
    (void)state;
    char *ptx = compile("__kernel void k(__global uint *out, uint n)\n"
                        "{\n"
                        "    uint w[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
                        "    for (uint j = 0; j < n; j++)\n"
                        "        w[j & 7] += w[(j + 3) & 7];\n"
                        "    out[get_global_id(0)] = w[n & 7];\n"
                        "}\n");
    assert_has(ptx, ".local");
    assert_has(ptx, "bra");
    free(ptx);
}

/* A condition that is counted guards the addition; where the old value is needed it does not. */
static void counts_under_conditions(void **state)
{
    (void)state;
    char *ptx = compile("__kernel void k(__global ulong *out, __global const float *in, uint n)\n"
                        "{\n"
                        "    uint up = 0, down = 0;\n"
                        "    ulong far = 0;\n"
                        "    for (uint i = 0; i < n; i++) {\n"
                        "        up += in[i] < 1;\n"
                        "        down -= in[i] > 2;\n"
                        "        if (in[i] == 3)\n"
                        "            far++;\n"
                        "    }\n"
                        "    out[0] = up, out[1] = down, out[2] = far;\n"
                        "}\n");
    /* What no condition guards has a tab in front of it. */
    assert_has(ptx, " add.s32 ");
    assert_has(ptx, ", -1;");
    assert_has(ptx, " add.s64 ");
    assert_has_not(ptx, "selp");
    free(ptx);
    ptx = compile("__kernel void k(__global uint *out, __global const float *in)\n"
                  "{\n"
                  "    uint old = out[2];\n"
                  "    out[0] = old + (in[0] < 1);\n"
                  "    out[1] = old * 7;\n"
                  "}\n");
    assert_has(ptx, "selp");
    free(ptx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_products_whole),    cmocka_unit_test(pairs_groups),
        cmocka_unit_test(pairs_only_what_may_be),  cmocka_unit_test(keeps_arrays_in_registers),
        cmocka_unit_test(straightens_rounds),      cmocka_unit_test(leaves_loops_of_unknown_turns),
        cmocka_unit_test(counts_under_conditions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
