/* See program_job.h. The work of a job touches nothing that others see until it is done: each
 * part's outcome is moved into its build at once, under the program's lock, when the status
 * changes.
 *
 * One front half serves all devices, so a source is compiled once for all of them. Lock: the
 * program's, for moments.
 */
#include "api/program_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"
#include "util/thread.h"

/* What a part came to, before it is published. */
struct outcome {
    cl_int error;
    cl_program_binary_type type;
    char *log;
    struct sp_step_result code; /* bitcode of an object or library */
    struct sp_executable *executable;
    char *options;            /* in place of those given, or NULL */
    uint32_t args_bytes;      /* of the kernel that has most */
    struct sp_build *refused; /* a reference; of those devices that do not take so much, or NULL */
    bool kernel_arg_info, uniform_groups, non_uniform_groups;
};

struct sp_job *sp_job_create(enum sp_job_kind kind, cl_program program, cl_uint max_parts)
{
    struct sp_job *job = sp_alloc(sizeof(*job));
    if (!job)
        return NULL;
    job->parts = sp_alloc_array(max_parts, sizeof(*job->parts));
    if (!job->parts) {
        free(job);
        return NULL;
    }
    job->kind = kind;
    job->max_parts = max_parts;
    job->program = program;
    sp_object_reference(&program->object);
    return job;
}

void sp_job_drop_part(struct sp_job *job)
{
    struct sp_job_part *part = &job->parts[--job->num_parts];
    for (cl_uint i = 0; part->inputs && i < part->num_inputs; i++)
        sp_build_unreference(part->inputs[i]);
    for (cl_uint i = 0; part->previous && i < part->num_devices; i++)
        sp_build_unreference(part->previous[i]);
    free(part->inputs);
    free(part->previous);
    free(part->devices);
    sp_build_unreference(part->build);
}

void sp_job_destroy(struct sp_job *job)
{
    if (!job)
        return;
    while (job->num_parts)
        sp_job_drop_part(job);
    for (cl_uint i = 0; i < job->num_headers; i++) {
        sp_object_unreference(&job->header_programs[i]->object);
        free(job->header_names[i]);
    }
    free(job->header_programs);
    free(job->header_names);
    free(job->parts);
    free(job->options_text);
    sp_build_options_finish(&job->options);
    sp_object_unreference(&job->program->object);
    free(job);
}

struct sp_job_part *sp_job_add_part(struct sp_job *job, cl_uint max_devices, cl_uint num_inputs)
{
    struct sp_job_part *part = &job->parts[job->num_parts];
    *part = (struct sp_job_part){.num_inputs = num_inputs};
    job->num_parts++;
    part->build = sp_build_create(job->options_text);
    part->devices = sp_alloc_array(max_devices, sizeof(*part->devices));
    part->previous = sp_alloc_array(max_devices, sizeof(struct sp_build *));
    part->inputs = sp_alloc_array(num_inputs, sizeof(struct sp_build *));
    return part->build && part->devices && part->previous && part->inputs ? part : NULL;
}

void sp_job_install(struct sp_job *job)
{
    for (cl_uint i = 0; i < job->num_parts; i++) {
        struct sp_job_part *part = &job->parts[i];
        for (cl_uint k = 0; k < part->num_devices; k++) {
            struct sp_build **place = &job->program->builds[part->devices[k]];
            part->previous[k] = *place;
            *place = sp_build_reference(part->build);
        }
    }
}

/* --- The work ------------------------------------------------------------------------------ */

static cl_int failure(enum sp_job_kind kind)
{
    switch (kind) {
    case SP_JOB_BUILD:
        return CL_BUILD_PROGRAM_FAILURE;
    case SP_JOB_COMPILE:
        return CL_COMPILE_PROGRAM_FAILURE;
    default:
        return CL_LINK_PROGRAM_FAILURE;
    }
}

/* What a step's error means to the application. */
static cl_int step_failure(const struct sp_job *job, int error)
{
    switch (error) {
    case -ENOENT:
        return job->kind == SP_JOB_LINK ? CL_LINKER_NOT_AVAILABLE : CL_COMPILER_NOT_AVAILABLE;
    case -ENOMEM:
        return CL_OUT_OF_HOST_MEMORY;
    default:
        return failure(job->kind);
    }
}

/* Moves a step's log to the end of the outcome's. Losing one for want of memory is no error. */
static void add_log(struct outcome *outcome, struct sp_step_result *result)
{
    if (!outcome->log || !*outcome->log) {
        free(outcome->log);
        outcome->log = result->log;
        result->log = NULL;
    } else if (result->log && *result->log) {
        char *both = sp_format("%s%s", outcome->log, result->log);
        if (both) {
            free(outcome->log);
            outcome->log = both;
        }
    }
}

static int compile(const struct sp_job *job, struct outcome *outcome,
                   struct sp_step_result *bitcode)
{
    struct sp_words words = {(const char *const *)job->options.compile_words,
                             job->options.num_compile_words};
    struct sp_header *headers = sp_alloc_array(job->num_headers, sizeof(*headers));
    if (!headers)
        return -ENOMEM;
    for (cl_uint i = 0; i < job->num_headers; i++)
        headers[i] = (struct sp_header){job->header_names[i], job->header_programs[i]->source};
    int error = sp_step_compile(job->program->source, words, headers, job->num_headers, bitcode);
    free(headers);
    add_log(outcome, bitcode);
    return error;
}

/* Whether a device of the program takes so many bytes of arguments. */
static bool takes(const struct sp_job *job, cl_uint device, uint32_t args_bytes)
{
    uint32_t most = job->program->devices[device]->device->root->info.max_args_bytes;
    return !most || args_bytes <= most;
}

/* The root devices of those of the part's devices that take what the kernels need, each once. */
static unsigned collect_roots(const struct sp_job *job, const struct sp_job_part *part,
                              uint32_t args_bytes, struct sp_device **roots)
{
    unsigned count = 0;
    for (cl_uint i = 0; i < part->num_devices; i++) {
        struct sp_device *root = job->program->devices[part->devices[i]]->device->root;
        unsigned k = 0;
        if (!takes(job, part->devices[i], args_bytes))
            continue;
        while (k < count && roots[k] != root)
            k++;
        roots[k] = root;
        count = k == count ? count + 1 : count;
    }
    return count;
}

static const struct sp_kernel_info *find_largest(const struct sp_program_info *info)
{
    const struct sp_kernel_info *largest = NULL;
    for (uint32_t i = 0; i < info->num_kernels; i++)
        if (!largest || info->kernels[i].args_bytes > largest->args_bytes)
            largest = &info->kernels[i];
    return largest;
}

/* Says why where the kernel has more arguments than a device of the part takes: in a build of those
 * devices' own, where others take them (num_taking). 0, -ENOMEM, or -EINVAL: no device does. */
static int refuse(const struct sp_job *job, const struct sp_job_part *part, unsigned num_taking,
                  const struct sp_kernel_info *kernel, struct outcome *outcome)
{
    cl_uint i = 0;
    while (i < part->num_devices && takes(job, part->devices[i], kernel->args_bytes))
        i++;
    if (i == part->num_devices)
        return 0;
    char *log =
        sp_format("%serror: kernel '%s': its arguments take %u bytes, and this device takes "
                  "%u at most; give it a pointer to the rest\n",
                  outcome->log ? outcome->log : "", kernel->name, kernel->args_bytes,
                  job->program->devices[part->devices[i]]->device->root->info.max_args_bytes);
    if (log && !num_taking) {
        free(outcome->log);
        outcome->log = log;
        return -EINVAL;
    }
    outcome->refused =
        log ? sp_build_create(outcome->options ? outcome->options : job->options_text) : NULL;
    if (!outcome->refused) {
        free(log);
        return -ENOMEM;
    }
    outcome->refused->status = CL_BUILD_ERROR;
    outcome->refused->log = log;
    return 0;
}

/* Makes an executable of a linked program, and begins to generate its code. */
static int make_executable(const struct sp_job *job, const struct sp_job_part *part,
                           struct sp_step_result *linked, struct outcome *outcome)
{
    struct sp_device **roots = sp_alloc_array(part->num_devices, sizeof(struct sp_device *));
    if (!roots)
        return -ENOMEM;
    const struct sp_kernel_info *largest = find_largest(linked->info);
    outcome->args_bytes = largest ? largest->args_bytes : 0;
    unsigned num_roots = collect_roots(job, part, outcome->args_bytes, roots);
    int error = largest ? refuse(job, part, num_roots, largest, outcome) : 0;
    if (!error)
        error = sp_executable_create(job->program->context, roots, num_roots, linked,
                                     sp_build_link_words(part->build), &outcome->executable);
    free(roots);
    if (error)
        return error;
    outcome->type = CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
    sp_executable_start(outcome->executable);
    return 0;
}

static int link_executable(const struct sp_job *job, const struct sp_job_part *part,
                           const struct sp_bytes *inputs, cl_uint num_inputs,
                           struct outcome *outcome)
{
    struct sp_step_result linked = {0};
    int error = sp_step_link(inputs, num_inputs, sp_build_link_words(part->build), &linked);
    add_log(outcome, &linked);
    if (!error)
        error = make_executable(job, part, &linked, outcome);
    sp_step_result_finish(&linked);
    return error;
}

static int keep_link_words(const struct sp_job *job, const struct sp_job_part *part)
{
    return sp_build_set_link_words(part->build, job->options.link_words,
                                   job->options.num_link_words)
               ? 0
               : -ENOMEM;
}

/* clCompileProgram, and clBuildProgram of a source. */
static int run_source(const struct sp_job *job, const struct sp_job_part *part,
                      struct outcome *outcome)
{
    struct sp_step_result bitcode = {0};
    outcome->kernel_arg_info = job->options.kernel_arg_info;
    outcome->uniform_groups = job->options.uniform_groups;
    outcome->non_uniform_groups = job->options.language >= 200 && !job->options.uniform_groups;
    int error = keep_link_words(job, part);
    if (!error)
        error = compile(job, outcome, &bitcode);
    if (!error && job->kind == SP_JOB_BUILD) {
        error = link_executable(job, part, &bitcode.code, 1, outcome);
    } else if (!error) {
        outcome->type = CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT;
        outcome->code = bitcode;
        bitcode = (struct sp_step_result){0};
    }
    sp_step_result_finish(&bitcode);
    return error;
}

/* clBuildProgram of a loaded executable. Its options were settled when it was first built. */
static int run_binary(const struct sp_job *job, const struct sp_job_part *part,
                      struct outcome *outcome)
{
    const struct sp_program_binary *binary = &job->program->binaries[part->devices[0]];
    struct sp_binary_content content;
    int error = sp_binary_decode(job->program->devices[part->devices[0]], binary->bytes,
                                 binary->size, &content);
    if (!error && !sp_build_set_link_words(part->build, content.link_words, content.num_link_words))
        error = -ENOMEM;
    if (!error && !job->options_text) {
        outcome->options = content.options;
        content.options = NULL;
    }
    outcome->kernel_arg_info = content.kernel_arg_info;
    outcome->uniform_groups = content.uniform_groups || job->options.uniform_groups;
    outcome->non_uniform_groups = !outcome->uniform_groups;
    if (!error)
        error = make_executable(job, part, &content.program, outcome);
    sp_binary_content_finish(&content);
    return error;
}

static int run_link(const struct sp_job *job, const struct sp_job_part *part,
                    struct outcome *outcome)
{
    struct sp_bytes *inputs = sp_alloc_array(part->num_inputs, sizeof(*inputs));
    int error = inputs ? keep_link_words(job, part) : -ENOMEM;
    outcome->kernel_arg_info = outcome->non_uniform_groups = true;
    for (cl_uint i = 0; !error && i < part->num_inputs; i++) {
        const struct sp_build *input = part->inputs[i];
        inputs[i] = input->code;
        outcome->kernel_arg_info &= input->kernel_arg_info;
        outcome->uniform_groups |= input->uniform_groups;
        outcome->non_uniform_groups &= input->non_uniform_groups;
    }
    if (!error && job->options.create_library) {
        error = sp_step_link_library(inputs, part->num_inputs, sp_build_link_words(part->build),
                                     &outcome->code);
        add_log(outcome, &outcome->code);
        if (!error)
            outcome->type = CL_PROGRAM_BINARY_TYPE_LIBRARY;
    } else if (!error) {
        error = link_executable(job, part, inputs, part->num_inputs, outcome);
    }
    free(inputs);
    return error;
}

/* With the program's lock held: the builds that the part found go back to their places. */
static void swap_builds(const struct sp_job *job, const struct sp_job_part *part)
{
    for (cl_uint i = 0; i < part->num_devices; i++) {
        struct sp_build **place = &job->program->builds[part->devices[i]];
        struct sp_build *build = *place;
        *place = part->previous[i];
        part->previous[i] = build;
    }
}

/* With the program's lock held: devices that were refused have that for their build. */
static void place_refused(const struct sp_job *job, const struct sp_job_part *part,
                          const struct outcome *outcome)
{
    for (cl_uint i = 0; i < part->num_devices; i++) {
        struct sp_build **place = &job->program->builds[part->devices[i]];
        if (takes(job, part->devices[i], outcome->args_bytes))
            continue;
        sp_build_unreference(*place); /* the part has another reference */
        *place = sp_build_reference(outcome->refused);
    }
}

/* Shows the outcome to everybody. From here on the build does not change. */
static void publish(const struct sp_job *job, const struct sp_job_part *part,
                    struct outcome *outcome)
{
    struct sp_build *build = part->build;
    pthread_mutex_lock(&job->program->lock);
    build->status = outcome->error ? CL_BUILD_ERROR : CL_BUILD_SUCCESS;
    build->log = outcome->log;
    if (outcome->options) {
        free(build->options);
        build->options = outcome->options;
    }
    /* Memory ran out: the call fails, and a call that fails changes nothing. */
    if (outcome->error == CL_OUT_OF_HOST_MEMORY && !job->notify)
        swap_builds(job, part);
    if (!outcome->error) {
        build->type = outcome->type;
        build->kernel_arg_info = outcome->kernel_arg_info;
        build->uniform_groups = outcome->uniform_groups;
        build->non_uniform_groups = outcome->non_uniform_groups;
        build->executable = outcome->executable;
        build->memory = outcome->code.memory;
        build->code = outcome->code.code;
        outcome->code.memory = NULL;
    }
    if (!outcome->error && outcome->refused)
        place_refused(job, part, outcome);
    pthread_mutex_unlock(&job->program->lock);
    sp_step_result_finish(&outcome->code);
}

static cl_int run_part(const struct sp_job *job, const struct sp_job_part *part)
{
    struct outcome outcome = {.type = CL_PROGRAM_BINARY_TYPE_NONE};
    int error;
    if (job->kind == SP_JOB_LINK)
        error = run_link(job, part, &outcome);
    else if (job->program->origin == SP_PROGRAM_FROM_BINARY)
        error = run_binary(job, part, &outcome);
    else
        error = run_source(job, part, &outcome);
    outcome.error = error ? step_failure(job, error) : CL_SUCCESS;
    if (error == -ENOENT && outcome.log)
        sp_context_report(job->program->context, outcome.log);
    publish(job, part, &outcome);
    bool is_refused = outcome.refused;
    sp_build_unreference(outcome.refused);
    return is_refused && !outcome.error ? failure(job->kind) : outcome.error;
}

static cl_int run(const struct sp_job *job)
{
    cl_int error = CL_SUCCESS;
    for (cl_uint i = 0; i < job->num_parts; i++) {
        cl_int part_error = run_part(job, &job->parts[i]);
        error = error ? error : part_error;
    }
    return error;
}

static void *job_thread(void *argument)
{
    struct sp_job *job = argument;
    run(job);
    job->notify(job->program, job->user_data);
    sp_job_destroy(job);
    return NULL;
}

cl_int sp_job_start(struct sp_job *job)
{
    if (job->notify && !sp_alloc_may_fail() && sp_thread_start_detached(job_thread, job, 0) == 0)
        return CL_SUCCESS;
    /* Here and now: as is wanted, or, for want of a thread, as is allowed. */
    cl_int error = run(job);
    if (job->notify) {
        job->notify(job->program, job->user_data);
        error = CL_SUCCESS;
    }
    sp_job_destroy(job);
    return error;
}
