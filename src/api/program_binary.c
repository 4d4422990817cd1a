/* See program_internal.h. Program binaries: what clGetProgramInfo gives out and
 * clCreateProgramWithBinary takes in.
 *
 * A binary is one message in wire format: what it is and for which kind of device, the options, the
 * bitcode or IR, and for an executable what is known of its kernels; then the digest of all that.
 * Machine code is not in it: the disk cache has that, and a binary survives a change of processor.
 * Any damage shows in the digest; the rest is checked as well, as a binary may be made to deceive.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/info.h"
#include "api/program_internal.h"
#include "compiler/cache.h"
#include "compiler/client.h"
#include "compiler/cpu_abi.h"
#include "compiler/gpu_abi.h"
#include "util/alloc.h"
#include "util/wire.h"

#define BINARY_MAGIC 0x4e425053u /* "SPBN" */
#define BINARY_VERSION 1u
#define SEED_BINARY 5u

/* What the IR depends on beside the kind of device. */
#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#error "Name the processor here, for program binaries."
#endif

enum { FLAG_KERNEL_ARG_INFO = 1, FLAG_UNIFORM_GROUPS = 2, ALL_FLAGS = 3 };

/* More options than a person or a program writes. */
#define MAX_WORDS 4096u

/* --- Writing ------------------------------------------------------------------------------- */

static void put_content(struct sp_wire_writer *writer, cl_device_id device,
                        const struct sp_build *build)
{
    uint32_t flags = (build->kernel_arg_info ? FLAG_KERNEL_ARG_INFO : 0) |
                     (build->uniform_groups ? FLAG_UNIFORM_GROUPS : 0);
    struct sp_bytes code = build->executable ? sp_executable_ir(build->executable) : build->code;
    sp_wire_put_u32(writer, BINARY_MAGIC);
    sp_wire_put_u32(writer, BINARY_VERSION);
    sp_wire_put_u32(writer, SP_CPU_ABI_VERSION);
    sp_wire_put_u32(writer, SP_GPU_ABI_VERSION);
    sp_wire_put_u32(writer, SP_CC_VERSION);
    sp_wire_put_string(writer, MACHINE);
    sp_wire_put_string(writer, device->device->info.driver_name);
    sp_wire_put_u32(writer, build->type);
    sp_wire_put_u32(writer, flags);
    sp_wire_put_string(writer, build->options);
    sp_wire_put_u32(writer, build->num_link_words);
    for (uint32_t i = 0; i < build->num_link_words; i++)
        sp_wire_put_string(writer, build->link_words[i]);
    sp_wire_put_bytes(writer, code.bytes, code.size);
    if (build->executable)
        sp_program_info_encode(sp_executable_info(build->executable), writer);
}

int sp_binary_encode(cl_device_id device, const struct sp_build *build, unsigned char **bytes,
                     size_t *size)
{
    *bytes = NULL;
    *size = 0;
    if (build->type == CL_PROGRAM_BINARY_TYPE_NONE)
        return 0;
    struct sp_wire_writer writer;
    sp_wire_writer_init(&writer);
    put_content(&writer, device, build);
    struct sp_digest digest = {0};
    if (!writer.error)
        digest = sp_digest(writer.bytes, writer.size, SEED_BINARY);
    sp_wire_put_u64(&writer, digest.low);
    sp_wire_put_u64(&writer, digest.high);
    if (writer.error) {
        sp_wire_writer_finish(&writer);
        return -ENOMEM;
    }
    *bytes = writer.bytes;
    *size = writer.size;
    return 0;
}

/* --- Reading ------------------------------------------------------------------------------- */

static bool string_is(struct sp_wire_reader *reader, const char *expected)
{
    size_t size;
    const char *string = sp_wire_get_bytes(reader, &size);
    return string && size == strlen(expected) && memcmp(string, expected, size) == 0;
}

/* The digest at the end is the digest of the rest. */
static bool is_whole(const unsigned char *bytes, size_t size, size_t *content_size)
{
    struct sp_wire_reader reader;
    if (size < sizeof(struct sp_digest))
        return false;
    *content_size = size - sizeof(struct sp_digest);
    sp_wire_reader_init(&reader, bytes + *content_size, sizeof(struct sp_digest));
    struct sp_digest expected = sp_digest(bytes, *content_size, SEED_BINARY);
    uint64_t low = sp_wire_get_u64(&reader), high = sp_wire_get_u64(&reader);
    return low == expected.low && high == expected.high;
}

static bool header_is_right(struct sp_wire_reader *reader, cl_device_id device)
{
    return sp_wire_get_u32(reader) == BINARY_MAGIC && sp_wire_get_u32(reader) == BINARY_VERSION &&
           sp_wire_get_u32(reader) == SP_CPU_ABI_VERSION &&
           sp_wire_get_u32(reader) == SP_GPU_ABI_VERSION &&
           sp_wire_get_u32(reader) == SP_CC_VERSION && string_is(reader, MACHINE) &&
           string_is(reader, device->device->info.driver_name);
}

static int get_words(struct sp_wire_reader *reader, struct sp_binary_content *content)
{
    uint32_t count = sp_wire_get_u32(reader);
    if (reader->failed || count > MAX_WORDS)
        return -EBADMSG;
    content->link_words = sp_alloc_array(count, sizeof(char *));
    if (!content->link_words)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        content->link_words[i] = sp_wire_get_string(reader);
        if (!content->link_words[i])
            return reader->failed ? -EBADMSG : -ENOMEM;
        content->num_link_words = i + 1;
    }
    return 0;
}

static int get_program(struct sp_wire_reader *reader, struct sp_binary_content *content)
{
    size_t size;
    const void *code = sp_wire_get_bytes(reader, &size);
    if (!code)
        return -EBADMSG;
    content->program.memory = sp_memdup0(code, size);
    if (!content->program.memory)
        return -ENOMEM;
    content->program.code = (struct sp_bytes){content->program.memory, size};
    if (content->type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE) {
        int error = sp_program_info_decode(reader, &content->program.info);
        if (error) {
            content->program.info = NULL;
            return error;
        }
    }
    return sp_wire_reader_done(reader) ? 0 : -EBADMSG;
}

int sp_binary_decode(cl_device_id device, const void *bytes, size_t size,
                     struct sp_binary_content *content)
{
    struct sp_wire_reader reader;
    size_t content_size;
    *content = (struct sp_binary_content){0};
    if (!is_whole(bytes, size, &content_size))
        return -EBADMSG;
    sp_wire_reader_init(&reader, bytes, content_size);
    if (!header_is_right(&reader, device))
        return -EBADMSG;
    content->type = sp_wire_get_u32(&reader);
    uint32_t flags = sp_wire_get_u32(&reader);
    if (flags > ALL_FLAGS || (content->type != CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT &&
                              content->type != CL_PROGRAM_BINARY_TYPE_LIBRARY &&
                              content->type != CL_PROGRAM_BINARY_TYPE_EXECUTABLE))
        return -EBADMSG;
    content->kernel_arg_info = flags & FLAG_KERNEL_ARG_INFO;
    content->uniform_groups = flags & FLAG_UNIFORM_GROUPS;
    content->options = sp_wire_get_string(&reader);
    if (!content->options)
        return reader.failed ? -EBADMSG : -ENOMEM;
    int error = get_words(&reader, content);
    return error ? error : get_program(&reader, content);
}

void sp_binary_content_finish(struct sp_binary_content *content)
{
    for (uint32_t i = 0; i < content->num_link_words; i++)
        free(content->link_words[i]);
    free(content->link_words);
    free(content->options);
    sp_step_result_finish(&content->program);
    *content = (struct sp_binary_content){0};
}

/* --- clCreateProgramWithBinary ------------------------------------------------------------- */

/* Loads one device's binary: CL_SUCCESS, CL_INVALID_BINARY, CL_OUT_OF_HOST_MEMORY. */
static cl_int load(cl_program program, cl_uint index, const unsigned char *bytes, size_t size)
{
    struct sp_binary_content content;
    struct sp_build *build = NULL;
    struct sp_program_binary *binary = &program->binaries[index];
    int error = sp_binary_decode(program->devices[index], bytes, size, &content);
    if (error)
        goto end;
    error = -ENOMEM;
    build = sp_build_create(content.options);
    binary->bytes = (unsigned char *)sp_memdup0(bytes, size);
    if (!build || !binary->bytes ||
        !sp_build_set_link_words(build, content.link_words, content.num_link_words))
        goto end;
    binary->size = size;
    build->status = CL_BUILD_NONE;
    build->type = content.type;
    build->kernel_arg_info = content.kernel_arg_info;
    build->uniform_groups = content.uniform_groups;
    build->non_uniform_groups = !content.uniform_groups;
    if (content.type != CL_PROGRAM_BINARY_TYPE_EXECUTABLE) {
        build->memory = content.program.memory;
        build->code = content.program.code;
        content.program.memory = NULL;
    }
    program->builds[index] = build;
    build = NULL;
    error = 0;
end:
    sp_build_unreference(build);
    sp_binary_content_finish(&content);
    return !error ? CL_SUCCESS : error == -ENOMEM ? CL_OUT_OF_HOST_MEMORY : CL_INVALID_BINARY;
}

static cl_int check_devices(cl_context context, cl_uint num_devices,
                            const cl_device_id *device_list)
{
    if (!device_list || !num_devices)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_devices; i++)
        if (!sp_object_is(device_list[i], SP_OBJECT_DEVICE) ||
            !sp_context_has(context, device_list[i]))
            return CL_INVALID_DEVICE;
    return CL_SUCCESS;
}

/* Every entry must be there; `binary_status` says which are not. */
static cl_int check_binaries(cl_uint num_devices, const size_t *lengths,
                             const unsigned char **binaries, cl_int *binary_status)
{
    cl_int error = CL_SUCCESS;
    if (!lengths || !binaries)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_devices; i++) {
        bool is_there = lengths[i] && binaries[i];
        if (binary_status)
            binary_status[i] = is_there ? CL_SUCCESS : CL_INVALID_VALUE;
        if (!is_there)
            error = CL_INVALID_VALUE;
    }
    return error;
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithBinary(
    cl_context context, cl_uint num_devices, const cl_device_id *device_list, const size_t *lengths,
    const unsigned char **binaries, cl_int *binary_status, cl_int *errcode_ret)
{
    cl_program program = NULL;
    cl_int error = CL_INVALID_CONTEXT;
    if (!sp_object_is(context, SP_OBJECT_CONTEXT))
        goto end;
    error = check_devices(context, num_devices, device_list);
    if (!error)
        error = check_binaries(num_devices, lengths, binaries, binary_status);
    if (error)
        goto end;
    sp_compiler_start();
    error = CL_OUT_OF_HOST_MEMORY;
    program = sp_program_create(context, num_devices, device_list, SP_PROGRAM_FROM_BINARY);
    if (!program)
        goto end;
    program->binaries = sp_alloc_array(num_devices, sizeof(*program->binaries));
    if (!program->binaries)
        goto end;
    error = CL_SUCCESS;
    for (cl_uint i = 0; i < num_devices; i++) {
        cl_int status = load(program, i, binaries[i], lengths[i]);
        if (binary_status)
            binary_status[i] = status;
        if (!error)
            error = status;
    }
end:
    if (error && program) {
        sp_object_release(&program->object);
        program = NULL;
    }
    sp_error_reply(errcode_ret, error);
    return program;
}
