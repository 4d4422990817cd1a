/* util/wire: what is written comes back, and nothing that is damaged does. */
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "util/wire.h"

static void write_sample(struct sp_wire_writer *writer)
{
    sp_wire_writer_init(writer);
    sp_wire_put_u32(writer, 0xfedcba98u);
    sp_wire_put_u64(writer, UINT64_C(0x123456789abcdef0));
    sp_wire_put_string(writer, "name");
    sp_wire_put_string(writer, NULL);
    sp_wire_put_bytes(writer, "a\0b", 3);
    assert_int_equal(writer->error, 0);
}

static void values_come_back(void **state)
{
    (void)state;
    struct sp_wire_writer writer;
    struct sp_wire_reader reader;
    size_t size;
    write_sample(&writer);
    sp_wire_reader_init(&reader, writer.bytes, writer.size);
    assert_int_equal(sp_wire_get_u32(&reader), 0xfedcba98u);
    assert_true(sp_wire_get_u64(&reader) == UINT64_C(0x123456789abcdef0));
    char *name = sp_wire_get_string(&reader);
    char *empty = sp_wire_get_string(&reader);
    assert_string_equal(name, "name");
    assert_string_equal(empty, "");
    assert_false(sp_wire_reader_done(&reader));
    const void *bytes = sp_wire_get_bytes(&reader, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(bytes, "a\0b", 3);
    assert_true(sp_wire_reader_done(&reader));
    free(name);
    free(empty);
    sp_wire_writer_finish(&writer);
}

static void order_of_bytes_is_fixed(void **state)
{
    (void)state;
    struct sp_wire_writer writer;
    sp_wire_writer_init(&writer);
    sp_wire_put_u32(&writer, 0x01020304u);
    assert_memory_equal(writer.bytes, "\x04\x03\x02\x01", 4);
    sp_wire_writer_finish(&writer);
}

static void every_cut_is_noticed(void **state)
{
    (void)state;
    struct sp_wire_writer writer;
    write_sample(&writer);
    for (size_t cut = 0; cut < writer.size; cut++) {
        struct sp_wire_reader reader;
        size_t size;
        sp_wire_reader_init(&reader, writer.bytes, cut);
        sp_wire_get_u32(&reader);
        sp_wire_get_u64(&reader);
        free(sp_wire_get_string(&reader));
        free(sp_wire_get_string(&reader));
        sp_wire_get_bytes(&reader, &size);
        assert_true(reader.failed);
        assert_false(sp_wire_reader_done(&reader));
        assert_null(sp_wire_get_bytes(&reader, &size));
        assert_int_equal(size, 0);
        assert_int_equal(sp_wire_get_u64(&reader), 0);
    }
    sp_wire_writer_finish(&writer);
}

static void a_length_beyond_the_end_fails(void **state)
{
    (void)state;
    struct sp_wire_reader reader;
    size_t size;
    sp_wire_reader_init(&reader, "\xff\xff\xff\xff\xff\xff\xff\xffxyz", 11);
    assert_null(sp_wire_get_bytes(&reader, &size));
    assert_true(reader.failed);
}

static void a_zero_inside_a_string_fails(void **state)
{
    (void)state;
    struct sp_wire_writer writer;
    struct sp_wire_reader reader;
    sp_wire_writer_init(&writer);
    sp_wire_put_bytes(&writer, "a\0b", 3);
    sp_wire_reader_init(&reader, writer.bytes, writer.size);
    assert_null(sp_wire_get_string(&reader));
    assert_true(reader.failed);
    sp_wire_writer_finish(&writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(order_of_bytes_is_fixed),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(a_length_beyond_the_end_fails),
        cmocka_unit_test(a_zero_inside_a_string_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
