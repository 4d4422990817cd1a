/* A program binary of every type survives a round trip; damaged in any byte, or cut short, it is
 * refused. */
#include "check_program.h"

static unsigned char *get_binary(cl_program program, size_t *size)
{
    unsigned char *bytes;
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *size, size, NULL),
             CL_SUCCESS);
    REQUIRE(*size > 0);
    bytes = malloc(*size);
    CHECK_CL(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL),
             CL_SUCCESS);
    return bytes;
}

static cl_program load(struct check_setup *setup, const unsigned char *bytes, size_t size,
                       cl_int *error)
{
    cl_int status = 99;
    cl_program program =
        clCreateProgramWithBinary(setup->context, 1, &setup->device, &size, &bytes, &status, error);
    CHECK(status == *error);
    return program;
}

static cl_program_binary_type binary_type(cl_program program, cl_device_id device)
{
    cl_program_binary_type type = 77;
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BINARY_TYPE, sizeof type, &type, NULL);
    return type;
}

/* The program's binary makes a program of the same type and content. */
static cl_program round_trip(struct check_setup *setup, cl_program program)
{
    size_t size, again_size;
    cl_int error;
    unsigned char *bytes = get_binary(program, &size);
    cl_program loaded = load(setup, bytes, size, &error);
    REQUIRE_CL(error);
    CHECK(binary_type(loaded, setup->device) == binary_type(program, setup->device));
    unsigned char *again = get_binary(loaded, &again_size);
    CHECK(again_size == size && memcmp(bytes, again, size) == 0);
    free(bytes);
    free(again);
    return loaded;
}

static void check_damage(struct check_setup *setup, cl_program program)
{
    size_t size;
    cl_int error;
    unsigned char *bytes = get_binary(program, &size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= (unsigned char)(1u << (i % 8));
        CHECK(load(setup, bytes, size, &error) == NULL);
        CHECK(error == CL_INVALID_BINARY);
        bytes[i] ^= (unsigned char)(1u << (i % 8));
    }
    for (size_t cut = 1; cut < size; cut += size / 50 + 1) {
        CHECK(load(setup, bytes, cut, &error) == NULL);
        CHECK(error == CL_INVALID_BINARY);
    }
    free(bytes);
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_int error;
    char text[64];
    cl_program program = build(setup.context,
                               "__attribute__((reqd_work_group_size(1, 1, 1)))\n"
                               "__kernel void k(__global int *p) { p[0] = ADD + 1; }\n",
                               "-DADD=6 -cl-kernel-arg-info");
    cl_program loaded = round_trip(&setup, program);
    CHECK_CL_NULL(clCreateKernel(loaded, "k", &check_error), CL_INVALID_PROGRAM_EXECUTABLE);
    CHECK_CL(clCompileProgram(loaded, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL),
             CL_INVALID_OPERATION);
    CHECK_CL(clBuildProgram(loaded, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clGetProgramBuildInfo(loaded, setup.device, CL_PROGRAM_BUILD_OPTIONS, sizeof text,
                                   text, NULL),
             CL_SUCCESS);
    CHECK(strcmp(text, "-DADD=6 -cl-kernel-arg-info") == 0);
    CHECK_CL(clGetProgramInfo(loaded, CL_PROGRAM_SOURCE, sizeof text, text, NULL), CL_SUCCESS);
    CHECK(text[0] == 0);
    CHECK(run_for_int(&setup, loaded, "k") == 7);
    cl_kernel kernel = get_kernel(loaded, "k");
    CHECK_CL(clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_NAME, sizeof text, text, NULL),
             CL_SUCCESS);
    CHECK(strcmp(text, "p") == 0);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    /* And the binary of what was built of a binary. */
    cl_program third = round_trip(&setup, loaded);
    CHECK_CL(clBuildProgram(third, 1, &setup.device, "", NULL, NULL), CL_SUCCESS);
    CHECK(run_for_int(&setup, third, "k") == 7);
    CHECK_CL(clReleaseProgram(third), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(loaded), CL_SUCCESS);
    check_damage(&setup, program);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);

    cl_program object = source_program(setup.context, "int twice(int a) { return 2 * a; }\n");
    CHECK_CL(clCompileProgram(object, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
    cl_program library =
        clLinkProgram(setup.context, 0, NULL, "-create-library", 1, &object, NULL, NULL, &error);
    REQUIRE_CL(error);
    cl_program loaded_library = round_trip(&setup, library);
    CHECK_CL(clReleaseProgram(library), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(object), CL_SUCCESS);

    object =
        source_program(setup.context, "int twice(int a);\n"
                                      "__kernel void k(__global int *p) { p[0] = twice(21); }\n");
    CHECK_CL(clCompileProgram(object, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
    cl_program loaded_object = round_trip(&setup, object);
    CHECK_CL(clReleaseProgram(object), CL_SUCCESS);
    CHECK_CL(clBuildProgram(loaded_object, 0, NULL, NULL, NULL, NULL), CL_INVALID_BINARY);
    cl_program parts[] = {loaded_object, loaded_library};
    cl_program linked = clLinkProgram(setup.context, 0, NULL, NULL, 2, parts, NULL, NULL, &error);
    REQUIRE_CL(error);
    CHECK(run_for_int(&setup, linked, "k") == 42);
    CHECK_CL(clReleaseProgram(linked), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(loaded_object), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(loaded_library), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
