/* See program_internal.h. Making, keeping and ending programs; building them is in program_build.c,
 * binaries are in program_binary.c, queries in program_info.c.
 */
#include <stdlib.h>
#include <string.h>

#include "api/info.h"
#include "api/program_internal.h"
#include "compiler/client.h"
#include "util/alloc.h"

/* --- Builds -------------------------------------------------------------------------------- */

struct sp_build *sp_build_create(const char *options)
{
    struct sp_build *build = sp_alloc(sizeof(*build));
    if (!build)
        return NULL;
    atomic_init(&build->references, 1);
    build->status = CL_BUILD_IN_PROGRESS;
    build->type = CL_PROGRAM_BINARY_TYPE_NONE;
    build->options = sp_strdup(options ? options : "");
    if (!build->options) {
        free(build);
        return NULL;
    }
    return build;
}

struct sp_build *sp_build_reference(struct sp_build *build)
{
    /* Relaxed: who passes a reference on holds one. */
    atomic_fetch_add_explicit(&build->references, 1, memory_order_relaxed);
    return build;
}

static void free_words(char **words, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(words[i]);
    free(words);
}

void sp_build_unreference(struct sp_build *build)
{
    /* Acquire and release: what other threads did with it comes before its end. */
    if (!build || atomic_fetch_sub_explicit(&build->references, 1, memory_order_acq_rel) != 1)
        return;
    sp_executable_unreference(build->executable);
    free_words(build->link_words, build->num_link_words);
    free(build->memory);
    free(build->options);
    free(build->log);
    free(build);
}

bool sp_build_set_link_words(struct sp_build *build, char *const *words, uint32_t count)
{
    char **copies = sp_alloc_array(count, sizeof(*copies));
    for (uint32_t i = 0; copies && i < count; i++) {
        copies[i] = sp_strdup(words[i]);
        if (!copies[i]) {
            free_words(copies, i);
            copies = NULL;
        }
    }
    if (!copies)
        return false;
    build->link_words = copies;
    build->num_link_words = count;
    return true;
}

/* --- Programs ------------------------------------------------------------------------------ */

static void destroy(struct sp_object *object)
{
    cl_program program = (cl_program)object;
    for (cl_uint i = 0; i < program->num_devices; i++) {
        if (program->builds)
            sp_build_unreference(program->builds[i]);
        if (program->binaries)
            free(program->binaries[i].bytes);
        sp_object_unreference(&program->devices[i]->object);
    }
    free(program->builds);
    free(program->binaries);
    free(program->devices);
    free(program->source);
    pthread_mutex_destroy(&program->lock);
    sp_object_unreference(&program->context->object);
    free(program);
}

cl_program sp_program_create(cl_context context, cl_uint num_devices, const cl_device_id *devices,
                             enum sp_program_origin origin)
{
    cl_program program = sp_alloc(sizeof(*program));
    if (!program)
        return NULL;
    program->devices = sp_alloc_array(num_devices, sizeof(cl_device_id));
    program->builds = sp_alloc_array(num_devices, sizeof(struct sp_build *));
    if (!program->devices || !program->builds) {
        free(program->devices);
        free(program->builds);
        free(program);
        return NULL;
    }
    sp_object_init(&program->object, SP_OBJECT_PROGRAM, destroy);
    pthread_mutex_init(&program->lock, NULL);
    program->context = context;
    sp_object_reference(&context->object);
    program->origin = origin;
    program->num_devices = num_devices;
    for (cl_uint i = 0; i < num_devices; i++) {
        program->devices[i] = devices[i];
        sp_object_reference(&devices[i]->object);
    }
    return program;
}

cl_uint sp_program_device_index(cl_program program, cl_device_id device)
{
    cl_uint i = 0;
    while (i < program->num_devices && program->devices[i] != device)
        i++;
    return i;
}

static size_t string_bytes(const char *string, const size_t *lengths, cl_uint i)
{
    return lengths && lengths[i] ? lengths[i] : strlen(string);
}

/* The strings one after the other, without the zeros that may be in them (the specification of
 * CL_PROGRAM_SOURCE). */
static char *concatenate(cl_uint count, const char **strings, const size_t *lengths)
{
    size_t bytes = 1;
    for (cl_uint i = 0; i < count; i++)
        if (__builtin_add_overflow(bytes, string_bytes(strings[i], lengths, i), &bytes))
            return NULL;
    char *source = sp_alloc(bytes), *end = source;
    if (!source)
        return NULL;
    for (cl_uint i = 0; i < count; i++) {
        const char *from = strings[i];
        size_t left = string_bytes(from, lengths, i);
        while (left) {
            const char *zero = memchr(from, 0, left);
            size_t part = zero ? (size_t)(zero - from) : left;
            memcpy(end, from, part);
            end += part;
            part += zero ? 1 : 0;
            from += part;
            left -= part;
        }
    }
    return source;
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint count,
                                                              const char **strings,
                                                              const size_t *lengths,
                                                              cl_int *errcode_ret)
{
    cl_program program = NULL;
    cl_int error = CL_SUCCESS;
    if (!sp_object_is(context, SP_OBJECT_CONTEXT)) {
        error = CL_INVALID_CONTEXT;
        goto end;
    }
    if (!count || !strings)
        error = CL_INVALID_VALUE;
    for (cl_uint i = 0; !error && i < count; i++)
        if (!strings[i])
            error = CL_INVALID_VALUE;
    if (error)
        goto end;
    /* Ahead of the build that will follow. */
    sp_compiler_start();
    char *source = concatenate(count, strings, lengths);
    if (source)
        program = sp_program_create(context, context->num_devices, context->devices,
                                    SP_PROGRAM_FROM_SOURCE);
    if (program) {
        program->source = source;
    } else {
        free(source);
        error = CL_OUT_OF_HOST_MEMORY;
    }
end:
    sp_error_reply(errcode_ret, error);
    return program;
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithIL(cl_context context, const void *il,
                                                          size_t length, cl_int *errcode_ret)
{
    (void)il;
    (void)length;
    /* No device takes an intermediate language, which comes before the other checks. */
    sp_error_reply(errcode_ret, sp_object_is(context, SP_OBJECT_CONTEXT) ? CL_INVALID_OPERATION
                                                                         : CL_INVALID_CONTEXT);
    return NULL;
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithBuiltInKernels(
    cl_context context, cl_uint num_devices, const cl_device_id *device_list,
    const char *kernel_names, cl_int *errcode_ret)
{
    /* No device has built-in kernels, so that any name is one that is not supported. */
    (void)num_devices;
    (void)device_list;
    (void)kernel_names;
    sp_error_reply(errcode_ret, sp_object_is(context, SP_OBJECT_CONTEXT) ? CL_INVALID_VALUE
                                                                         : CL_INVALID_CONTEXT);
    return NULL;
}

CL_API_ENTRY cl_int CL_API_CALL clRetainProgram(cl_program program)
{
    if (!sp_object_is(program, SP_OBJECT_PROGRAM))
        return CL_INVALID_PROGRAM;
    sp_object_retain(&program->object);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseProgram(cl_program program)
{
    if (!sp_object_is(program, SP_OBJECT_PROGRAM))
        return CL_INVALID_PROGRAM;
    sp_object_release(&program->object);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clSetProgramReleaseCallback(
    cl_program program, void(CL_CALLBACK *pfn_notify)(cl_program program, void *user_data),
    void *user_data)
{
    (void)pfn_notify;
    (void)user_data;
    /* No device has destructors for program-scope variables. */
    return sp_object_is(program, SP_OBJECT_PROGRAM) ? CL_INVALID_OPERATION : CL_INVALID_PROGRAM;
}

CL_API_ENTRY cl_int CL_API_CALL clSetProgramSpecializationConstant(cl_program program,
                                                                   cl_uint spec_id,
                                                                   size_t spec_size,
                                                                   const void *spec_value)
{
    (void)spec_id;
    (void)spec_size;
    (void)spec_value;
    if (!sp_object_is(program, SP_OBJECT_PROGRAM))
        return CL_INVALID_PROGRAM;
    return CL_INVALID_OPERATION; /* no device takes an intermediate language */
}

CL_API_ENTRY cl_int CL_API_CALL clUnloadPlatformCompiler(cl_platform_id platform)
{
    if (!sp_object_is(platform, SP_OBJECT_PLATFORM))
        return CL_INVALID_PLATFORM;
    sp_compiler_stop();
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clUnloadCompiler(void)
{
    sp_compiler_stop();
    return CL_SUCCESS;
}
