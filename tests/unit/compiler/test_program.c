/* What LINK says of programs, what it says of wrong ones, and the parts of a kernel that no oracle
 * covers: program-scope variables, structs by value, printf, generic addresses, options. */
#include "harness.h"

#include "compiler/cc/link.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const cl3[] = {"-cl-std=CL3.0", "-w", NULL};
static const struct range one_group = {1, {4, 1, 1}, {4, 1, 1}, {0, 0, 0}};

static void run_source(const char *source, const char *kernel, const struct range *range,
                       const void *args, const uint64_t *local)
{
    struct program program;
    struct object object;
    program_init(&program, source, cl3);
    object_init(&object, &program, local, NULL);
    unsigned char *globals = sp_cc_allocate(program.info.globals_bytes + 1);
    void (*init)(unsigned char *) =
        (void (*)(unsigned char *))dlsym(object.handle, "sp_globals_init");
    if (init)
        init(globals);
    run_object(&object, &program, kernel, range, args, globals);
    free(globals);
    object_finish(&object);
    program_finish(&program);
}

static void test_arguments_are_described(void **state)
{
    static const char source[] =
        "struct s { int a; float3 b; };\n"
        "kernel __attribute__((reqd_work_group_size(8,1,1))) "
        "__attribute__((vec_type_hint(uint4)))\n"
        "void k(global const float *restrict a, constant int *c, local int *l, struct s st,\n"
        "       float3 v, uint n, char t) { l[0] = c[0]; barrier(1); *(global float *)a = n; }\n";
    struct program program;
    (void)state;
    program_init(&program, source, cl3);
    const struct sp_kernel_info *kernel = sp_program_info_find(&program.info, "k");
    assert_non_null(kernel);
    assert_null(sp_program_info_find(&program.info, "j"));
    assert_string_equal(kernel->attributes, "reqd_work_group_size(8,1,1) vec_type_hint(uint4)");
    assert_int_equal(kernel->reqd_local_size[0], 8);
    assert_int_equal(kernel->num_args, 7);
    assert_true(kernel->has_barrier);
    assert_string_equal(kernel->args[0].name, "a");
    assert_string_equal(kernel->args[0].type_name, "float*");
    assert_int_equal(kernel->args[0].type_qualifiers, SP_ARG_TYPE_CONST | SP_ARG_TYPE_RESTRICT);
    assert_int_equal(kernel->args[0].effect, SP_EFFECT_WRITE);
    assert_int_equal(kernel->args[1].kind, SP_ARG_CONSTANT);
    assert_int_equal(kernel->args[1].effect, SP_EFFECT_READ);
    assert_int_equal(kernel->args[2].kind, SP_ARG_LOCAL);
    assert_int_equal(kernel->args[3].size, 32);
    assert_int_equal(kernel->args[3].offset, 32);
    assert_string_equal(kernel->args[3].type_name, "struct s");
    assert_int_equal(kernel->args[4].size, 16);
    assert_string_equal(kernel->args[4].type_name, "float3");
    assert_int_equal(kernel->args[5].offset, 80);
    assert_int_equal(kernel->args[6].size, 1);
    program_finish(&program);
}

static void test_effects(void **state)
{
    static const char source[] =
        "void put(global int *p, int v) { p[1] = v; }\n"
        "kernel void k(global int *unused, global int *read, global int *written, global int "
        "*both,\n"
        "  global int *counted, global ulong *escapes, global int *selected, int n,\n"
        "  global ulong *followed) {\n"
        "  put(written, read[n]); both[0]++; atomic_inc(counted); *escapes = (ulong)read;\n"
        "  *(n ? selected : written) = 1; *(global int *)followed[0] = 1; }\n"
        "kernel void plain(global int *a, local int *b) { a[0] = b[1]; }\n"
        "struct node { global struct node *next; int value; };\n"
        "kernel void reader(global struct node *n, global int *sum) {\n"
        "  int s = 0; for (; n; n = n->next) s += n->value; *sum = s; }\n";
    static const uint32_t expected[] = {0,
                                        SP_EFFECT_READ | SP_EFFECT_WRITE | SP_EFFECT_UNKNOWN,
                                        SP_EFFECT_WRITE,
                                        SP_EFFECT_READ | SP_EFFECT_WRITE,
                                        SP_EFFECT_READ | SP_EFFECT_WRITE,
                                        SP_EFFECT_WRITE,
                                        SP_EFFECT_WRITE,
                                        0,
                                        SP_EFFECT_READ};
    struct program program;
    (void)state;
    program_init(&program, source, cl3);
    const struct sp_kernel_info *kernel = sp_program_info_find(&program.info, "k");
    for (uint32_t i = 0; i < kernel->num_args; i++)
        assert_int_equal(kernel->args[i].effect, expected[i]);
    assert_true(kernel->follows_pointers);
    assert_true(kernel->writes_followed);
    assert_false(sp_program_info_find(&program.info, "plain")->follows_pointers);
    const struct sp_kernel_info *reader = sp_program_info_find(&program.info, "reader");
    assert_true(reader->follows_pointers);
    assert_false(reader->writes_followed);
    program_finish(&program);
}

static void check_error(const char *source, const char *part)
{
    char *log;
    assert_int_equal(try_program(source, cl3, &log), SP_CC_SOURCE_ERROR);
    if (!strstr(log, part))
        fail_msg("'%s' is not in the log: %s", part, log);
    free(log);
}

static void test_errors_are_told(void **state)
{
    (void)state;
    check_error("kernel void k() {\n  oops;\n}\n", "<source>:2:3: error: use of undeclared");
    check_error("void f(); kernel void k() { f(); }", "function 'f' is used, but defined nowhere");
    check_error("int f(int n) { return n ? f(n - 1) * n : 1; } kernel void k(global int *a) "
                "{ *a = f(*a); }",
                "recursively");
    check_error("#error a reason\n", "a reason");
}

/* Functions of a library of the program's own, each of which calls the one before twice: inlined
 * they would be 2 to the 40th calls. */
static void test_what_no_kernel_reaches_costs_nothing(void **state)
{
    struct sp_cc_text source = {0};
    struct program program;
    (void)state;
    sp_cc_text_format(&source, "int f0(int x) { return x * 3; }\n");
    for (int i = 1; i <= 40; i++)
        sp_cc_text_format(&source, "int f%d(int x) { return f%d(x) + f%d(x + 1); }\n", i, i - 1,
                          i - 1);
    sp_cc_text_format(&source, "kernel void k(global int *a) { *a = f2(*a); }\n");
    program_init(&program, source.bytes, cl3);
    assert_int_equal(program.info.num_kernels, 1);
    program_finish(&program);
    sp_cc_text_finish(&source);
}

static void test_duplicates_are_told(void **state)
{
    (void)state;
    struct program a;
    struct sp_cc_text ir = {0}, log = {0};
    struct sp_program_info info = {0};
    program_init(&a, "kernel void k(global int *p) { *p = 1; }", cl3);
    struct sp_cc_blob twice[2] = {{a.ir.bytes, a.ir.size}, {a.ir.bytes, a.ir.size}};
    struct sp_cc_link link = {.inputs = twice, .num_inputs = 2};
    assert_int_equal(sp_cc_link(&link, &ir, &info, &log), SP_CC_SOURCE_ERROR);
    assert_non_null(strstr(log.bytes, "function 'k' is defined more than once"));
    sp_cc_text_finish(&log);
    struct sp_cc_blob rubbish = {"BC rubbish", 10};
    link = (struct sp_cc_link){.inputs = &rubbish, .num_inputs = 1};
    assert_int_equal(sp_cc_link(&link, &ir, &info, &log), SP_CC_BAD_REQUEST);
    sp_cc_text_finish(&log);
    program_finish(&a);
}

static void test_program_scope_variables(void **state)
{
    static const char source[] =
        "global int g = 5; global int *gp = &g; global int zero[3];\n"
        "global struct { char c; global int *p[2]; float f; } s = {7, {0, &zero[1]}, 0.5f};\n"
        "constant int table[4] = {10, 20, 30, 40};\n"
        "kernel void k(global int *out) {\n"
        "  size_t i = get_global_id(0); static global int hits = 100;\n"
        "  if (i == 0) { *gp += 1; *s.p[1] = g; }\n"
        "  barrier(CLK_GLOBAL_MEM_FENCE); atomic_inc(&hits); barrier(CLK_GLOBAL_MEM_FENCE);\n"
        "  out[i] = g * 1000 + zero[1] * 100 + table[i] + s.c + (int)(s.f * 2) + hits; }\n";
    int32_t out[4] = {0};
    const int32_t *args[] = {out};
    (void)state;
    run_source(source, "k", &one_group, args, NULL);
    for (int i = 0; i < 4; i++)
        assert_int_equal(out[i], 6000 + 600 + (i + 1) * 10 + 7 + 1 + 104);
}

static void test_struct_by_value(void **state)
{
    static const char source[] =
        "struct s { int a; int4 b; short c[3]; };\n"
        "void bump(struct s *p, int by) { p->a += by; p->c[by % 3] = (short)by; }\n"
        "kernel void k(global int *out, struct s v, struct s w) { int i = get_global_id(0);\n"
        "  bump(&v, i); barrier(1); out[i] = v.a + v.c[i % 3] + w.b.z + w.c[1]; }\n";
    struct {
        int32_t *out;
        int64_t padding;
        struct {
            int32_t a, fill[3], b[4];
            int16_t c[3], more[5];
        } v, w;
    } args = {.v = {.a = 100}, .w = {.b = {0, 0, 3000, 0}, .c = {0, 9, 0}}};
    int32_t out[4] = {0};
    (void)state;
    args.out = out;
    run_source(source, "k", &one_group, &args, NULL);
    for (int i = 0; i < 4; i++)
        assert_int_equal(out[i], 100 + i + i + 3000 + 9);
}

static void test_printf(void **state)
{
    static const char source[] = "kernel void k(int n, float3 v) { printf(\"%d %s %f %v3f %v4hhd "
                                 "%ld\\n\", n, \"text\", 2.5f, v,\n"
                                 "   (char4)(1, 2, 3, 4), (long)n << 40); }\n";
    struct {
        int32_t n, fill[3];
        float v[4];
    } args = {7, {0}, {1, 2, 3, 0}};
    const struct range single = {1, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}};
    (void)state;
    sp_cc_text_finish(&printed);
    run_source(source, "k", &single, &args, NULL);
    assert_string_equal(printed.bytes, "[%d %s %f %v3f %v4hhd %ld\n] 7 'text' 2.5 1 2 3 1 2 3 4 "
                                       "7696581394432");
    sp_cc_text_finish(&printed);
}

static void test_generic_addresses(void **state)
{
    static const char source[] =
        "int kind(int *p) { return to_local(p) ? 1 : to_private(p) ? 2 : to_global(p) ? 3 : 0; }\n"
        "kernel void k(global int *out) { local int l; int mine[4] = {1, 2, 3, 4};\n"
        "  int i = get_global_id(0); int *p = i == 0 ? (int *)&l : i == 1 ? &mine[i] : (int "
        "*)out;\n"
        "  l = 0; barrier(1); *p += 0; out[i + 4] = kind(p); }\n";
    int32_t out[8] = {0};
    const int32_t *args[] = {out};
    const uint64_t four[3] = {4, 1, 1};
    (void)state;
    for (int known = 0; known < 2; known++) {
        memset(out, 0, sizeof(out));
        run_source(source, "k", &one_group, args, known ? four : NULL);
        assert_int_equal(out[4], 1);
        assert_int_equal(out[5], 2);
        assert_int_equal(out[6], 3);
        assert_int_equal(out[7], 3);
    }
}

static void test_options(void **state)
{
    static const char source[] = "kernel void k(global float *a) { size_t i = get_global_id(0); "
                                 "a[i] = a[i] * 3.0f + VALUE / a[i]; }";
    static const char *const options[] = {"-DVALUE=2.0f",
                                          "-cl-std=CL2.0",
                                          "-cl-fast-relaxed-math",
                                          "-cl-mad-enable",
                                          "-cl-finite-math-only",
                                          "-cl-no-signed-zeros",
                                          "-cl-unsafe-math-optimizations",
                                          "-cl-denorms-are-zero",
                                          "-cl-fp32-correctly-rounded-divide-sqrt",
                                          "-cl-opt-disable",
                                          "-cl-single-precision-constant",
                                          "-cl-strict-aliasing",
                                          "-cl-uniform-work-group-size",
                                          NULL};
    struct program program;
    struct object object;
    float a[4] = {1, 2, 4, 8};
    const float *args[] = {a};
    (void)state;
    for (int with = 0; with < 2; with++) {
        const char *const *used = with ? options : (const char *const[]){"-DVALUE=2.0f", NULL};
        program_init(&program, source, used);
        object_init(&object, &program, NULL, used);
        float before = a[1];
        run_object(&object, &program, "k", &one_group, args, NULL);
        assert_float_equal(a[1], before * 3 + 2 / before, 1e-5f);
        object_finish(&object);
        program_finish(&program);
    }
}

static void test_features(void **state)
{
    static const char *const macros =
        "#ifdef __IMAGE_SUPPORT__\n#error images\n#endif\n"
        "#if __OPENCL_VERSION__ != 300 || !defined(__ENDIAN_LITTLE__)\n#error version\n#endif\n"
        "#if EXPECTED != __OPENCL_C_VERSION__\n#error language\n#endif\n"
        "#if !defined(cl_khr_fp64) || defined(cl_khr_fp16)\n#error extensions\n#endif\n"
        "#ifndef cl_khr_extended_bit_ops\n#error extended_bit_ops\n#endif\n"
        "#if defined(cl_khr_subgroup_shuffle) || defined(cl_khr_integer_dot_product) || "
        "defined(cl_ext_float_atomics) || defined(cl_khr_kernel_clock)\n"
        "#error extensions that the device does not have\n#endif\n"
        "#if EXPECTED == 300 && (!defined(__opencl_c_work_group_collective_functions) || "
        "!defined(__opencl_c_atomic_order_seq_cst) || !defined(__opencl_c_atomic_order_acq_rel) || "
        "!defined(__opencl_c_atomic_scope_device) || "
        "!defined(__opencl_c_atomic_scope_all_devices) || !defined(__opencl_c_fp64) || "
        "!defined(__opencl_c_generic_address_space) || "
        "!defined(__opencl_c_program_scope_global_variables))\n#error features\n#endif\n"
        "#if EXPECTED == 300 && (defined(__opencl_c_read_write_images) || "
        "defined(__opencl_c_images) || defined(__opencl_c_pipes) || "
        "defined(__opencl_c_device_enqueue) || defined(__opencl_c_subgroups))\n"
        "#error features that the device does not have\n#endif\n";
    static const char *const by_default[] = {"-DEXPECTED=120", NULL};
    static const char *const second[] = {"-DEXPECTED=200", "-cl-std=CL2.0", NULL};
    static const char *const third[] = {"-DEXPECTED=300", "-cl-std=CL1.2", "-cl-std=CL3.0", NULL};
    const char *const *const options[] = {by_default, second, third};
    char *log;
    (void)state;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (try_program(macros, options[i], &log) != SP_CC_OK)
            fail_msg("%s", log);
        free(log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments_are_described),
        cmocka_unit_test(test_effects),
        cmocka_unit_test(test_errors_are_told),
        cmocka_unit_test(test_what_no_kernel_reaches_costs_nothing),
        cmocka_unit_test(test_duplicates_are_told),
        cmocka_unit_test(test_program_scope_variables),
        cmocka_unit_test(test_struct_by_value),
        cmocka_unit_test(test_printf),
        cmocka_unit_test(test_generic_addresses),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
