/* Programs, as the files api/program*.c and kernel.c share them. Nobody else includes this.
 *
 * A program has one build for each of its devices: what the last clBuildProgram, clCompileProgram,
 * clLinkProgram or clCreateProgramWithBinary left there. A build is counted, since devices share
 * one where they were built together, and kernels and links go on using it. While its status is
 * CL_BUILD_IN_PROGRESS only the job that makes it changes it; after that it is immutable.
 *
 * The program's lock guards `builds`, the status of those in progress, and num_kernels. It is held
 * for moments only, never while something is compiled. No other lock but an executable's is taken
 * under it.
 */
#ifndef SP_API_PROGRAM_INTERNAL_H
#define SP_API_PROGRAM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <CL/cl.h>

#include "api/program.h"
#include "compiler/executable.h"
#include "compiler/steps.h"

struct sp_build {
    atomic_uint references;
    cl_build_status status;
    cl_program_binary_type type; /* of what is below */
    char *options;               /* as the application gave them */
    char *log;                   /* NULL stands for "" */
    bool kernel_arg_info;        /* built with -cl-kernel-arg-info */
    bool uniform_groups;         /* built with -cl-uniform-work-group-size */
    bool non_uniform_groups;     /* work-groups may differ in size */
    char **link_words;           /* options of linking and code generation */
    uint32_t num_link_words;
    void *memory;                     /* where `code` lies */
    struct sp_bytes code;             /* bitcode of a compiled object or library */
    struct sp_executable *executable; /* of an executable that was built, not just loaded */
};

enum sp_program_origin {
    SP_PROGRAM_FROM_SOURCE,
    SP_PROGRAM_FROM_BINARY,
    SP_PROGRAM_FROM_LINK,
};

struct sp_program_binary {
    unsigned char *bytes;
    size_t size;
};

struct _cl_program {
    struct sp_object object;
    cl_context context; /* a reference is held */
    cl_uint num_devices;
    cl_device_id *devices; /* each with a reference */
    enum sp_program_origin origin;
    char *source;                       /* "" for a program that has none */
    struct sp_program_binary *binaries; /* of each device, as loaded; NULL for other origins */
    pthread_mutex_t lock;
    struct sp_build **builds; /* of each device, with a reference; NULL: none */
    cl_uint num_kernels;      /* kernel objects attached */
};

/* --- program.c
 * ------------------------------------------------------------------------------------ */

/* A program without content for `devices`; takes references to them and the context. NULL when out
 * of memory. */
cl_program sp_program_create(cl_context context, cl_uint num_devices, const cl_device_id *devices,
                             enum sp_program_origin origin);

/* Where `device` is in the program's list, or num_devices. */
cl_uint sp_program_device_index(cl_program program, cl_device_id device);

/* A build in progress with a copy of `options` (NULL: ""). NULL when out of memory. */
struct sp_build *sp_build_create(const char *options);
struct sp_build *sp_build_reference(struct sp_build *build);
/* Takes NULL. */
void sp_build_unreference(struct sp_build *build);

/* Copies option words into a build. False when out of memory, and then the build has none. */
bool sp_build_set_link_words(struct sp_build *build, char *const *words, uint32_t count);

static inline struct sp_words sp_build_link_words(const struct sp_build *build)
{
    return (struct sp_words){(const char *const *)build->link_words, build->num_link_words};
}

/* --- program_binary.c
 * ----------------------------------------------------------------------------- */

/* What a program binary holds. */
struct sp_binary_content {
    cl_program_binary_type type;
    bool kernel_arg_info, uniform_groups;
    char *options;     /* owned */
    char **link_words; /* owned, each */
    uint32_t num_link_words;
    struct sp_step_result program; /* owned; the code, and of an executable the info */
};

/* Takes a binary for `device` apart; it may be anything. 0, -EBADMSG where it is no whole binary
 * for that kind of device and this version, -ENOMEM. *content is to be finished in every case. */
int sp_binary_decode(cl_device_id device, const void *bytes, size_t size,
                     struct sp_binary_content *content);
void sp_binary_content_finish(struct sp_binary_content *content);

/* The binary of a finished build for `device`, fresh; NULL and 0 where the build has none. 0 or
 * -ENOMEM. */
int sp_binary_encode(cl_device_id device, const struct sp_build *build, unsigned char **bytes,
                     size_t *size);

#endif
