/* See program_internal.h. What can be asked about programs and their builds. Each query takes the
 * program's lock for as long as it looks at builds.
 */
#include <stdlib.h>
#include <string.h>

#include "api/info.h"
#include "api/program_internal.h"
#include "util/alloc.h"

/* With the lock held: the info of the first device that the program was built for, or NULL. */
static const struct sp_program_info *built_info(cl_program program)
{
    for (cl_uint i = 0; i < program->num_devices; i++) {
        const struct sp_build *build = program->builds[i];
        if (build && build->status == CL_BUILD_SUCCESS && build->executable)
            return sp_executable_info(build->executable);
    }
    return NULL;
}

static cl_int reply_kernel_names(const struct sp_query *query, const struct sp_program_info *info)
{
    size_t bytes = 1;
    for (uint32_t i = 0; i < info->num_kernels; i++)
        bytes += strlen(info->kernels[i].name) + (i > 0);
    char *names = sp_alloc(bytes), *end = names;
    if (!names)
        return CL_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < info->num_kernels; i++) {
        if (i > 0)
            *end++ = ';';
        end = stpcpy(end, info->kernels[i].name);
    }
    cl_int error = sp_query_reply(query, names, bytes);
    free(names);
    return error;
}

/* With the lock held: queries that need an executable. */
static cl_int reply_about_kernels(const struct sp_query *query, cl_program program,
                                  cl_program_info name)
{
    const struct sp_program_info *info = built_info(program);
    if (!info)
        return CL_INVALID_PROGRAM_EXECUTABLE;
    switch (name) {
    case CL_PROGRAM_NUM_KERNELS:
        return sp_query_reply(query, &(size_t){info->num_kernels}, sizeof(size_t));
    case CL_PROGRAM_KERNEL_NAMES:
        return reply_kernel_names(query, info);
    default: /* constructors and destructors: OpenCL C has none */
        return sp_query_reply(query, &(cl_bool){CL_FALSE}, sizeof(cl_bool));
    }
}

/* With the lock held: the binary for a device, fresh; NULL and 0 where there is none. */
static int get_binary(cl_program program, cl_uint index, unsigned char **bytes, size_t *size)
{
    const struct sp_build *build = program->builds[index];
    *bytes = NULL;
    *size = 0;
    if (!build)
        return 0;
    if (build->status == CL_BUILD_SUCCESS)
        return sp_binary_encode(program->devices[index], build, bytes, size);
    if (build->status != CL_BUILD_NONE)
        return 0;
    /* Loaded and not built: as it came. */
    const struct sp_program_binary *binary = &program->binaries[index];
    *bytes = (unsigned char *)sp_memdup0(binary->bytes, binary->size);
    *size = *bytes ? binary->size : 0;
    return *bytes ? 0 : -1;
}

static cl_int reply_binary_sizes(const struct sp_query *query, cl_program program)
{
    size_t *sizes = sp_alloc_array(program->num_devices, sizeof(size_t));
    if (!sizes)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int error = CL_SUCCESS;
    for (cl_uint i = 0; !error && i < program->num_devices; i++) {
        unsigned char *bytes;
        if (get_binary(program, i, &bytes, &sizes[i]))
            error = CL_OUT_OF_HOST_MEMORY;
        free(bytes);
    }
    if (!error)
        error = sp_query_reply(query, sizes, program->num_devices * sizeof(size_t));
    free(sizes);
    return error;
}

static cl_int reply_binaries(const struct sp_query *query, cl_program program)
{
    size_t bytes = program->num_devices * sizeof(unsigned char *);
    unsigned char **wanted = query->out;
    if (wanted && query->room < bytes)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; wanted && i < program->num_devices; i++) {
        unsigned char *binary;
        size_t size;
        if (!wanted[i])
            continue;
        if (get_binary(program, i, &binary, &size))
            return CL_OUT_OF_HOST_MEMORY;
        if (size)
            memcpy(wanted[i], binary, size);
        free(binary);
    }
    if (query->bytes_ret)
        *query->bytes_ret = bytes;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetProgramInfo(cl_program program, cl_program_info param_name,
                                                 size_t param_value_size, void *param_value,
                                                 size_t *param_value_size_ret)
{
    struct sp_query query = {param_value_size, param_value, param_value_size_ret};
    cl_int error;
    if (!sp_object_is(program, SP_OBJECT_PROGRAM))
        return CL_INVALID_PROGRAM;
    switch (param_name) {
    case CL_PROGRAM_REFERENCE_COUNT:
        return sp_query_reply(&query, &(cl_uint){sp_object_handles(&program->object)},
                              sizeof(cl_uint));
    case CL_PROGRAM_CONTEXT:
        return sp_query_reply(&query, &program->context, sizeof(cl_context));
    case CL_PROGRAM_NUM_DEVICES:
        return sp_query_reply(&query, &program->num_devices, sizeof(cl_uint));
    case CL_PROGRAM_DEVICES:
        return sp_query_reply(&query, program->devices,
                              program->num_devices * sizeof(cl_device_id));
    case CL_PROGRAM_SOURCE:
        return sp_info_reply_string(param_value_size, param_value, param_value_size_ret,
                                    program->source ? program->source : "");
    case CL_PROGRAM_IL:
        return sp_query_reply(&query, NULL, 0);
    case CL_PROGRAM_BINARY_SIZES:
    case CL_PROGRAM_BINARIES:
        pthread_mutex_lock(&program->lock);
        error = param_name == CL_PROGRAM_BINARIES ? reply_binaries(&query, program)
                                                  : reply_binary_sizes(&query, program);
        pthread_mutex_unlock(&program->lock);
        return error;
    case CL_PROGRAM_NUM_KERNELS:
    case CL_PROGRAM_KERNEL_NAMES:
    case CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT:
    case CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT:
        pthread_mutex_lock(&program->lock);
        error = reply_about_kernels(&query, program, param_name);
        pthread_mutex_unlock(&program->lock);
        return error;
    default:
        return CL_INVALID_VALUE;
    }
}

/* The log of a build and what became of its code since (sp_executable_log). With no lock held: from
 * its end on a build does not change. */
static cl_int reply_log(const struct sp_query *query, struct sp_build *build,
                        const struct sp_device *root)
{
    const char *text = build->log ? build->log : "";
    char *said = sp_executable_log(build->executable, root);
    char *both = said ? sp_format("%s%s", text, said) : NULL;
    cl_int error = said && !both
                       ? CL_OUT_OF_HOST_MEMORY
                       : sp_query_reply(query, both ? both : text, strlen(both ? both : text) + 1);
    free(said);
    free(both);
    return error;
}

/* With the lock held. `build` is NULL where nothing was done for the device. */
static cl_int reply_about_build(const struct sp_query *query, const struct sp_build *build,
                                cl_program_build_info name)
{
    bool was_performed = build && build->status != CL_BUILD_NONE;
    const char *text = "";
    size_t globals = 0;
    switch (name) {
    case CL_PROGRAM_BUILD_STATUS:
        return sp_query_reply(query, &(cl_build_status){build ? build->status : CL_BUILD_NONE},
                              sizeof(cl_build_status));
    case CL_PROGRAM_BUILD_OPTIONS:
        if (was_performed)
            text = build->options;
        return sp_query_reply(query, text, strlen(text) + 1);
    case CL_PROGRAM_BUILD_LOG:
        if (was_performed && build->log)
            text = build->log;
        return sp_query_reply(query, text, strlen(text) + 1);
    case CL_PROGRAM_BINARY_TYPE:
        return sp_query_reply(
            query, &(cl_program_binary_type){build ? build->type : CL_PROGRAM_BINARY_TYPE_NONE},
            sizeof(cl_program_binary_type));
    case CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE:
        if (build && build->executable)
            globals = sp_executable_info(build->executable)->globals_bytes;
        return sp_query_reply(query, &globals, sizeof(globals));
    default:
        return CL_INVALID_VALUE;
    }
}

/* With the lock held: the build that kernels on `device` come from: its own or, failing that, that
 * of the nearest device that it is a part of. NULL: none. */
static struct sp_build *build_for(cl_program program, cl_device_id device)
{
    for (; device; device = device->parent) {
        cl_uint index = sp_program_device_index(program, device);
        if (index < program->num_devices && program->builds[index])
            return program->builds[index];
    }
    return NULL;
}

CL_API_ENTRY cl_int CL_API_CALL clGetProgramBuildInfo(cl_program program, cl_device_id device,
                                                      cl_program_build_info param_name,
                                                      size_t param_value_size, void *param_value,
                                                      size_t *param_value_size_ret)
{
    struct sp_query query = {param_value_size, param_value, param_value_size_ret};
    if (!sp_object_is(program, SP_OBJECT_PROGRAM))
        return CL_INVALID_PROGRAM;
    if (sp_program_device_index(program, device) == program->num_devices)
        return CL_INVALID_DEVICE;
    pthread_mutex_lock(&program->lock);
    struct sp_build *build = build_for(program, device);
    if (param_name == CL_PROGRAM_BUILD_LOG && build && build->status == CL_BUILD_SUCCESS &&
        build->executable) {
        sp_build_reference(build);
        pthread_mutex_unlock(&program->lock);
        cl_int error = reply_log(&query, build, device->device->root);
        sp_build_unreference(build);
        return error;
    }
    cl_int error = reply_about_build(&query, build, param_name);
    pthread_mutex_unlock(&program->lock);
    return error;
}
