/* A job: one clBuildProgram, clCompileProgram or clLinkProgram whose arguments were found right, on
 * its way to its result. Made by program_build.c, carried out by program_job.c.
 *
 * A job consists of parts: a part makes one build, for the devices of the program that share it,
 * and one that failed for those of them that cannot run its kernels. While it lasts, the builds
 * stand in the program with status CL_BUILD_IN_PROGRESS, and nobody else changes them.
 */
#ifndef SP_API_PROGRAM_JOB_H
#define SP_API_PROGRAM_JOB_H

#include "api/build_options.h"
#include "api/program_internal.h"

enum sp_job_kind { SP_JOB_BUILD, SP_JOB_COMPILE, SP_JOB_LINK };

struct sp_job_part {
    struct sp_build *build; /* what it makes: a reference */
    cl_uint *devices;       /* owned; indices into the program's devices */
    struct sp_build *
        *previous; /* owned; what was there for each device, with a reference, or NULL */
    cl_uint num_devices;
    struct sp_build **inputs; /* owned; SP_JOB_LINK: what is linked, a reference each */
    cl_uint num_inputs;
};

struct sp_job {
    enum sp_job_kind kind;
    cl_program program;              /* a reference */
    struct sp_build_options options; /* owned */
    char *options_text;              /* owned; as given; NULL: none were given */
    struct sp_job_part *parts;       /* owned */
    cl_uint num_parts, max_parts;
    cl_program *header_programs; /* owned; SP_JOB_COMPILE: a reference each */
    char **header_names;         /* owned, each */
    cl_uint num_headers;
    void(CL_CALLBACK *notify)(cl_program program, void *user_data);
    void *user_data;
};

/* A job with room for `max_parts` parts. NULL when out of memory. */
struct sp_job *sp_job_create(enum sp_job_kind kind, cl_program program, cl_uint max_parts);

/* Ends a job, whether it ran or not. Takes NULL. */
void sp_job_destroy(struct sp_job *job);

/* Adds a part with room for `max_devices` devices and `num_inputs` inputs (its caller fills them
 * in). NULL when out of memory. */
struct sp_job_part *sp_job_add_part(struct sp_job *job, cl_uint max_devices, cl_uint num_inputs);

/* Takes the last part back. */
void sp_job_drop_part(struct sp_job *job);

/* With the program's lock held: puts the job's builds, in progress, in their places. */
void sp_job_install(struct sp_job *job);

/* Carries the job out and ends it: here, or, where there is a `notify`, on a thread that then calls
 * that. CL_SUCCESS, CL_BUILD_PROGRAM_FAILURE, CL_COMPILE_PROGRAM_FAILURE, CL_LINK_PROGRAM_FAILURE,
 * CL_COMPILER_NOT_AVAILABLE, CL_OUT_OF_HOST_MEMORY. */
cl_int sp_job_start(struct sp_job *job);

#endif
