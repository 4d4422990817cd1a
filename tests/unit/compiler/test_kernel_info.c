/* What is known of a program, there and back, and as damaged input. */
#include "compiler/kernel_info.h"
#include "util/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct sp_arg_info args[] = {
    {SP_ARG_GLOBAL, 8, 8, 0, SP_ARG_TYPE_CONST, SP_EFFECT_READ, "a", "float*"},
    {SP_ARG_VALUE, 16, 16, 16, 0, 0, "v", "float3"},
};
static struct sp_kernel_info kernels[] = {
    {.name = "one",
     .attributes = "",
     .num_args = 2,
     .args = args,
     .args_bytes = 32,
     .reqd_local_size = {8, 1, 1},
     .local_static_bytes = 256,
     .has_barrier = true},
    {.name = "two",
     .attributes = "vec_type_hint(int)",
     .follows_pointers = true,
     .writes_followed = true},
};
static const struct sp_program_info program = {2, kernels, 40, NULL};

static void test_there_and_back(void **state)
{
    struct sp_wire_writer writer;
    struct sp_wire_reader reader;
    struct sp_program_info *info = NULL;
    (void)state;
    sp_wire_writer_init(&writer);
    sp_program_info_encode(&program, &writer);
    sp_wire_reader_init(&reader, writer.bytes, writer.size);
    assert_int_equal(sp_program_info_decode(&reader, &info), 0);
    assert_true(sp_wire_reader_done(&reader));
    const struct sp_kernel_info *one = sp_program_info_find(info, "one");
    assert_non_null(one);
    assert_int_equal(one->num_args, 2);
    assert_string_equal(one->args[1].type_name, "float3");
    assert_int_equal(one->args[1].offset, 16);
    assert_int_equal(one->reqd_local_size[0], 8);
    assert_int_equal(one->local_static_bytes, 256);
    assert_true(one->has_barrier);
    assert_true(sp_program_info_find(info, "two")->follows_pointers);
    assert_true(sp_program_info_find(info, "two")->writes_followed);
    assert_false(one->writes_followed);
    assert_null(sp_program_info_find(info, "three"));
    assert_int_equal(info->globals_bytes, 40);
    sp_program_info_destroy(info);
    sp_program_info_destroy(NULL);
    sp_wire_writer_finish(&writer);
}

/* The smallest kernels there can be, many: the check of a count against what is left must let them
 * pass. */
static void test_many_small_kernels(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct sp_kernel_info small[8];
    const struct sp_program_info many = {8, small, 0, NULL};
    struct sp_wire_writer writer;
    struct sp_wire_reader reader;
    struct sp_program_info *info = NULL;
    (void)state;
    for (int i = 0; i < 8; i++)
        small[i] = (struct sp_kernel_info){.name = names[i], .attributes = ""};
    sp_wire_writer_init(&writer);
    sp_program_info_encode(&many, &writer);
    sp_wire_reader_init(&reader, writer.bytes, writer.size);
    assert_int_equal(sp_program_info_decode(&reader, &info), 0);
    sp_program_info_destroy(info);
    sp_wire_writer_finish(&writer);
}

/* Every shorter message fails; every changed byte fails or gives an info that can be ended. */
static void test_damage(void **state)
{
    struct sp_wire_writer writer;
    struct sp_wire_reader reader;
    struct sp_program_info *info;
    (void)state;
    sp_wire_writer_init(&writer);
    sp_program_info_encode(&program, &writer);
    for (size_t size = 0; size < writer.size; size++) {
        sp_wire_reader_init(&reader, writer.bytes, size);
        assert_int_equal(sp_program_info_decode(&reader, &info), -EBADMSG);
    }
    for (size_t at = 0; at < writer.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            writer.bytes[at] ^= (unsigned char)(1u << bit);
            sp_wire_reader_init(&reader, writer.bytes, writer.size);
            if (!sp_program_info_decode(&reader, &info))
                sp_program_info_destroy(info);
            writer.bytes[at] ^= (unsigned char)(1u << bit);
        }
    sp_wire_writer_finish(&writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_there_and_back),
                                       cmocka_unit_test(test_many_small_kernels),
                                       cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
