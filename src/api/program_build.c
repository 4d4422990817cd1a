/* See program_job.h. clBuildProgram, clCompileProgram and clLinkProgram: check arguments in the
 * specification's order, make a job of them, start it. Nothing is changed before all checks are
 * done; the last ones (what is under way, which kernels there are) and the change itself happen
 * under one hold of the program's lock.
 */
#include <stdlib.h>
#include <string.h>

#include "api/info.h"
#include "api/program_job.h"
#include "util/alloc.h"

typedef void(CL_CALLBACK *notify_fn)(cl_program program, void *user_data);

/* --- Checks that several of them share ----------------------------------------------------- */

static cl_int check_lists(cl_uint num_devices, const cl_device_id *device_list, notify_fn notify,
                          const void *user_data)
{
    if (!device_list != !num_devices)
        return CL_INVALID_VALUE;
    return !notify && user_data ? CL_INVALID_VALUE : CL_SUCCESS;
}

static cl_int check_devices(cl_program program, cl_uint num_devices,
                            const cl_device_id *device_list)
{
    for (cl_uint i = 0; i < num_devices; i++)
        if (sp_program_device_index(program, device_list[i]) == program->num_devices)
            return CL_INVALID_DEVICE;
    return CL_SUCCESS;
}

/* Keeps the options in the job, and takes them apart; tells the context what is wrong with them. */
static cl_int take_options(struct sp_job *job, enum sp_build_options_use use, const char *options)
{
    if (options) {
        job->options_text = sp_strdup(options);
        if (!job->options_text)
            return CL_OUT_OF_HOST_MEMORY;
    }
    cl_int error = sp_build_options_parse(use, options, &job->options);
    if (error && job->options.wrong)
        sp_context_report(job->program->context, job->options.wrong);
    return error;
}

/* With the lock held: nothing is under way for the devices of the job, and no kernel depends on
 * them. */
static cl_int check_idle(const struct sp_job *job)
{
    cl_program program = job->program;
    for (cl_uint i = 0; i < job->num_parts; i++) {
        const struct sp_job_part *part = &job->parts[i];
        for (cl_uint k = 0; k < part->num_devices; k++) {
            const struct sp_build *build = program->builds[part->devices[k]];
            if (build && build->status == CL_BUILD_IN_PROGRESS)
                return CL_INVALID_OPERATION;
        }
    }
    return program->num_kernels ? CL_INVALID_OPERATION : CL_SUCCESS;
}

/* Starts a job of clBuildProgram or clCompileProgram, if the program is idle. Ends the job. */
static cl_int start_if_idle(struct sp_job *job)
{
    cl_program program = job->program;
    pthread_mutex_lock(&program->lock);
    cl_int error = check_idle(job);
    if (!error)
        sp_job_install(job);
    pthread_mutex_unlock(&program->lock);
    if (!error)
        return sp_job_start(job);
    sp_job_destroy(job);
    return error;
}

static bool part_has(const struct sp_job_part *part, cl_uint device)
{
    for (cl_uint i = 0; i < part->num_devices; i++)
        if (part->devices[i] == device)
            return true;
    return false;
}

/* The devices of the call: those of the list, or all. Each once. */
static cl_uint next_device(cl_program program, cl_uint num_devices, const cl_device_id *device_list,
                           cl_uint i)
{
    return num_devices ? sp_program_device_index(program, device_list[i]) : i;
}

/* One part for all devices. */
static cl_int add_common_part(struct sp_job *job, cl_uint num_devices,
                              const cl_device_id *device_list)
{
    cl_uint count = num_devices ? num_devices : job->program->num_devices;
    struct sp_job_part *part = sp_job_add_part(job, count, 0);
    if (!part)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < count; i++) {
        cl_uint device = next_device(job->program, num_devices, device_list, i);
        if (!part_has(part, device))
            part->devices[part->num_devices++] = device;
    }
    return CL_SUCCESS;
}

/* --- clBuildProgram ------------------------------------------------------------------------ */

/* Each listed device has an executable loaded (not an object or library). */
static cl_int check_loaded(cl_program program, cl_uint num_devices, const cl_device_id *device_list)
{
    cl_int error = CL_SUCCESS;
    cl_uint count = num_devices ? num_devices : program->num_devices;
    pthread_mutex_lock(&program->lock);
    for (cl_uint i = 0; i < count; i++) {
        const struct sp_build *build =
            program->builds[next_device(program, num_devices, device_list, i)];
        if (build->type == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT ||
            build->type == CL_PROGRAM_BINARY_TYPE_LIBRARY)
            error = CL_INVALID_BINARY;
    }
    pthread_mutex_unlock(&program->lock);
    return error;
}

/* A part for each device, since each has a binary of its own. */
static cl_int add_binary_parts(struct sp_job *job, cl_uint num_devices,
                               const cl_device_id *device_list)
{
    cl_uint count = num_devices ? num_devices : job->program->num_devices;
    for (cl_uint i = 0; i < count; i++) {
        cl_uint device = next_device(job->program, num_devices, device_list, i);
        bool is_new = true;
        for (cl_uint k = 0; k < job->num_parts; k++)
            is_new = is_new && !part_has(&job->parts[k], device);
        if (!is_new)
            continue;
        struct sp_job_part *part = sp_job_add_part(job, 1, 0);
        if (!part)
            return CL_OUT_OF_HOST_MEMORY;
        part->devices[part->num_devices++] = device;
    }
    return CL_SUCCESS;
}

/* Included files without a folder are searched where the application is, as all drivers do. */
static cl_int search_here(struct sp_job *job)
{
    if (!strstr(job->program->source, "include"))
        return CL_SUCCESS;
    return sp_build_options_search_here(&job->options) ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(
    cl_program program, cl_uint num_devices, const cl_device_id *device_list, const char *options,
    void(CL_CALLBACK *pfn_notify)(cl_program program, void *user_data), void *user_data)
{
    struct sp_job *job = NULL;
    if (!sp_object_is(program, SP_OBJECT_PROGRAM))
        return CL_INVALID_PROGRAM;
    cl_int error = check_lists(num_devices, device_list, pfn_notify, user_data);
    if (!error)
        error = check_devices(program, num_devices, device_list);
    if (!error && program->origin == SP_PROGRAM_FROM_BINARY)
        error = check_loaded(program, num_devices, device_list);
    if (error)
        return error;
    job = sp_job_create(SP_JOB_BUILD, program, program->num_devices);
    if (!job)
        return CL_OUT_OF_HOST_MEMORY;
    job->notify = pfn_notify;
    job->user_data = user_data;
    error = take_options(job, SP_OPTIONS_BUILD, options);
    if (!error && program->origin == SP_PROGRAM_FROM_LINK)
        error = CL_INVALID_OPERATION;
    if (!error && program->origin == SP_PROGRAM_FROM_BINARY) {
        error = add_binary_parts(job, num_devices, device_list);
    } else if (!error) {
        error = search_here(job);
        if (!error)
            error = add_common_part(job, num_devices, device_list);
    }
    if (!error)
        return start_if_idle(job);
    sp_job_destroy(job);
    return error;
}

/* --- clCompileProgram ---------------------------------------------------------------------- */

static cl_int check_headers(cl_program program, cl_uint num_headers, const cl_program *headers,
                            const char **names)
{
    if (num_headers ? !headers || !names : headers || names)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_headers; i++) {
        if (!names[i])
            return CL_INVALID_VALUE;
        if (!sp_object_is(headers[i], SP_OBJECT_PROGRAM) ||
            headers[i]->origin != SP_PROGRAM_FROM_SOURCE)
            return CL_INVALID_PROGRAM;
        if (headers[i]->context != program->context)
            return CL_INVALID_CONTEXT;
    }
    return CL_SUCCESS;
}

/* Of several headers of one name the first counts (the specification). */
static bool has_header(const struct sp_job *job, const char *name)
{
    for (cl_uint i = 0; i < job->num_headers; i++)
        if (strcmp(job->header_names[i], name) == 0)
            return true;
    return false;
}

static cl_int take_headers(struct sp_job *job, cl_uint num_headers, const cl_program *headers,
                           const char **names)
{
    job->header_programs = sp_alloc_array(num_headers, sizeof(cl_program));
    job->header_names = sp_alloc_array(num_headers, sizeof(char *));
    if (!job->header_programs || !job->header_names)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < num_headers; i++) {
        if (has_header(job, names[i]))
            continue;
        char *name = sp_strdup(names[i]);
        if (!name)
            return CL_OUT_OF_HOST_MEMORY;
        job->header_names[job->num_headers] = name;
        job->header_programs[job->num_headers] = headers[i];
        job->num_headers++;
        sp_object_reference(&headers[i]->object);
    }
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clCompileProgram(
    cl_program program, cl_uint num_devices, const cl_device_id *device_list, const char *options,
    cl_uint num_input_headers, const cl_program *input_headers, const char **header_include_names,
    void(CL_CALLBACK *pfn_notify)(cl_program program, void *user_data), void *user_data)
{
    if (!sp_object_is(program, SP_OBJECT_PROGRAM))
        return CL_INVALID_PROGRAM;
    cl_int error = check_lists(num_devices, device_list, pfn_notify, user_data);
    if (!error)
        error = check_headers(program, num_input_headers, input_headers, header_include_names);
    if (!error)
        error = check_devices(program, num_devices, device_list);
    if (error)
        return error;
    struct sp_job *job = sp_job_create(SP_JOB_COMPILE, program, 1);
    if (!job)
        return CL_OUT_OF_HOST_MEMORY;
    job->notify = pfn_notify;
    job->user_data = user_data;
    error = take_options(job, SP_OPTIONS_COMPILE, options);
    if (!error && program->origin != SP_PROGRAM_FROM_SOURCE)
        error = CL_INVALID_OPERATION;
    if (!error)
        error = search_here(job);
    if (!error)
        error = take_headers(job, num_input_headers, input_headers, header_include_names);
    if (!error)
        error = add_common_part(job, num_devices, device_list);
    if (!error)
        return start_if_idle(job);
    sp_job_destroy(job);
    return error;
}

/* --- clLinkProgram ------------------------------------------------------------------------- */

static cl_int check_inputs(cl_context context, cl_uint num_programs, const cl_program *programs)
{
    if (!num_programs || !programs)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_programs; i++) {
        if (!sp_object_is(programs[i], SP_OBJECT_PROGRAM))
            return CL_INVALID_PROGRAM;
        if (programs[i]->context != context)
            return CL_INVALID_CONTEXT;
    }
    return CL_SUCCESS;
}

/* A reference to what an input program has to link for a device or, failing that, for the device
 * that it is a part of. NULL: nothing. CL_INVALID_OPERATION while that is being made. */
static cl_int take_input(cl_program program, cl_device_id device, struct sp_build **input)
{
    cl_int error = CL_SUCCESS;
    *input = NULL;
    pthread_mutex_lock(&program->lock);
    for (; device && !error && !*input; device = device->parent) {
        cl_uint index = sp_program_device_index(program, device);
        struct sp_build *build = index < program->num_devices ? program->builds[index] : NULL;
        if (!build)
            continue;
        if (build->status == CL_BUILD_IN_PROGRESS)
            error = CL_INVALID_OPERATION;
        else if (build->type == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT ||
                 build->type == CL_PROGRAM_BINARY_TYPE_LIBRARY)
            *input = sp_build_reference(build);
    }
    pthread_mutex_unlock(&program->lock);
    return error;
}

/* Takes the inputs of one device into the part: all, or (*is_empty) none. */
static cl_int take_inputs(struct sp_job_part *part, cl_device_id device, const cl_program *programs,
                          bool *is_empty)
{
    cl_uint found = 0;
    for (cl_uint i = 0; i < part->num_inputs; i++) {
        cl_int error = take_input(programs[i], device, &part->inputs[i]);
        if (error)
            return error;
        found += part->inputs[i] != NULL;
    }
    *is_empty = !found;
    return found == 0 || found == part->num_inputs ? CL_SUCCESS : CL_INVALID_OPERATION;
}

static bool same_inputs(const struct sp_job_part *a, const struct sp_job_part *b)
{
    return memcmp(a->inputs, b->inputs, a->num_inputs * sizeof(struct sp_build *)) == 0;
}

/* A part for the devices that link the same things. Devices without anything to link have none. */
static cl_int add_link_parts(struct sp_job *job, cl_uint num_programs, const cl_program *programs)
{
    cl_program program = job->program;
    for (cl_uint i = 0; i < program->num_devices; i++) {
        bool is_empty;
        struct sp_job_part *part = sp_job_add_part(job, program->num_devices, num_programs);
        if (!part)
            return CL_OUT_OF_HOST_MEMORY;
        cl_int error = take_inputs(part, program->devices[i], programs, &is_empty);
        if (error)
            return error;
        cl_uint same = 0;
        while (same < job->num_parts - 1 && !same_inputs(&job->parts[same], part))
            same++;
        if (is_empty || same < job->num_parts - 1)
            sp_job_drop_part(job);
        if (!is_empty)
            job->parts[same].devices[job->parts[same].num_devices++] = i;
    }
    /* With nothing to link anywhere, no program was compiled. */
    return job->num_parts ? CL_SUCCESS : CL_INVALID_OPERATION;
}

static cl_int check_link(cl_context context, cl_uint num_devices, const cl_device_id *device_list,
                         cl_uint num_programs, const cl_program *programs, notify_fn notify,
                         const void *user_data)
{
    if (!sp_object_is(context, SP_OBJECT_CONTEXT))
        return CL_INVALID_CONTEXT;
    if (!device_list != !num_devices)
        return CL_INVALID_VALUE;
    cl_int error = check_inputs(context, num_programs, programs);
    if (error)
        return error;
    if (!notify && user_data)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_devices; i++)
        if (!sp_object_is(device_list[i], SP_OBJECT_DEVICE) ||
            !sp_context_has(context, device_list[i]))
            return CL_INVALID_DEVICE;
    return CL_SUCCESS;
}

/* The listed devices, each once: how many. */
static cl_uint unique_devices(cl_uint num_devices, const cl_device_id *device_list,
                              cl_device_id *unique)
{
    cl_uint count = 0;
    for (cl_uint i = 0; i < num_devices; i++) {
        cl_uint k = 0;
        while (k < count && unique[k] != device_list[i])
            k++;
        unique[k] = device_list[i];
        count = k == count ? count + 1 : count;
    }
    return count;
}

/* The program that a link will fill. NULL when out of memory. */
static cl_program create_result(cl_context context, cl_uint num_devices,
                                const cl_device_id *device_list)
{
    if (!num_devices)
        return sp_program_create(context, context->num_devices, context->devices,
                                 SP_PROGRAM_FROM_LINK);
    cl_device_id *unique = sp_alloc_array(num_devices, sizeof(cl_device_id));
    if (!unique)
        return NULL;
    cl_uint count = unique_devices(num_devices, device_list, unique);
    cl_program program = sp_program_create(context, count, unique, SP_PROGRAM_FROM_LINK);
    free(unique);
    return program;
}

CL_API_ENTRY cl_program CL_API_CALL
clLinkProgram(cl_context context, cl_uint num_devices, const cl_device_id *device_list,
              const char *options, cl_uint num_input_programs, const cl_program *input_programs,
              void(CL_CALLBACK *pfn_notify)(cl_program program, void *user_data), void *user_data,
              cl_int *errcode_ret)
{
    cl_program program = NULL;
    struct sp_job *job = NULL;
    cl_int error = check_link(context, num_devices, device_list, num_input_programs, input_programs,
                              pfn_notify, user_data);
    if (error)
        goto err;
    error = CL_OUT_OF_HOST_MEMORY;
    program = create_result(context, num_devices, device_list);
    if (!program)
        goto err;
    job = sp_job_create(SP_JOB_LINK, program, program->num_devices);
    if (!job)
        goto err;
    job->notify = pfn_notify;
    job->user_data = user_data;
    error = take_options(job, SP_OPTIONS_LINK, options);
    if (!error)
        error = add_link_parts(job, num_input_programs, input_programs);
    if (error)
        goto err;
    sp_job_install(job);
    error = sp_job_start(job);
    job = NULL;
    if (!error || error == CL_LINK_PROGRAM_FAILURE) {
        sp_error_reply(errcode_ret, error);
        return program;
    }
err:
    sp_job_destroy(job);
    if (program)
        sp_object_release(&program->object);
    sp_error_reply(errcode_ret, error);
    return NULL;
}
