/* Options reach the compiler, whichever way they are written; wrong ones are refused and the
 * context is told. */
#include "check_program.h"

static int reports;

static void CL_CALLBACK count_report(const char *message, const void *info, size_t bytes,
                                     void *user_data)
{
    (void)info;
    (void)bytes;
    (void)user_data;
    CHECK(strlen(message) > 10);
    reports++;
}

int main(void)
{
    struct check_setup setup;
    cl_int error;
    check_setup(&setup);
    cl_context context = clCreateContext(NULL, 1, &setup.device, count_report, NULL, &error);
    REQUIRE_CL(error);
    const char *source = "__kernel void k(__global int *p)\n"
                         "{\n"
                         "    __constant char *text = TEXT;\n"
                         "    p[0] = A + B + sizeof(TEXT) + __OPENCL_C_VERSION__ * 1000;\n"
                         "}\n"
                         "__kernel void s(__global int *p)\n"
                         "{\n"
                         "#warning here\n"
                         "    p[0] = CALL(4);\n"
                         "}\n";
    cl_program program = source_program(context, source);
    struct check_setup inner = setup;
    inner.context = context;
    inner.queue = clCreateCommandQueue(context, setup.device, 0, &error);
    REQUIRE_CL(error);

    CHECK_CL(clBuildProgram(program, 0, NULL, "  -DA=1\t-D B -D TEXT='\\\"' -D \"CALL(x)=x * 2\" ",
                            NULL, NULL),
             CL_BUILD_PROGRAM_FAILURE);
    CHECK_CL(clBuildProgram(program, 0, NULL,
                            "  -DA=1\t-D B -D TEXT=\\\"a\\ b\\\" -D \"CALL(x)=x * 2\" -w", NULL,
                            NULL),
             CL_SUCCESS);
    CHECK(run_for_int(&inner, program, "k") == 1 + 1 + 4 + 120000);
    CHECK(run_for_int(&inner, program, "s") == 8);
    CHECK_CL(clBuildProgram(program, 0, NULL,
                            "-cl-std=CL3.0 -DA=1 -DB=1 -DTEXT=\\\"\\\" -DCALL(x)=x -w", NULL, NULL),
             CL_SUCCESS);
    CHECK(run_for_int(&inner, program, "k") == 1 + 1 + 1 + 300000);
    CHECK_CL(clBuildProgram(program, 0, NULL, "-DA=1 -DB=1 -DTEXT=\\\"\\\" -DCALL(x)=x -Werror",
                            NULL, NULL),
             CL_BUILD_PROGRAM_FAILURE);

    static const char *const accepted[] = {
        "-cl-single-precision-constant",
        "-cl-denorms-are-zero",
        "-cl-fp32-correctly-rounded-divide-sqrt",
        "-cl-opt-disable",
        "-cl-strict-aliasing",
        "-cl-uniform-work-group-size",
        "-cl-no-subgroup-ifp",
        "-cl-mad-enable",
        "-cl-no-signed-zeros",
        "-cl-unsafe-math-optimizations",
        "-cl-finite-math-only",
        "-cl-fast-relaxed-math",
        "-cl-kernel-arg-info",
        "-w",
        "-Werror",
        "-g",
        "-cl-std=CL1.0",
        "-cl-std=CL1.1",
        "-cl-std=CL1.2",
        "-cl-std=CL2.0",
        "-cl-std=CL3.0",
        "-I /",
        "",
        " ",
    };
    cl_program plain = source_program(context, "__kernel void k(__global int *p) { p[0] = 3; }");
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        error = clBuildProgram(plain, 0, NULL, accepted[i], NULL, NULL);
        if (error) {
            fprintf(stderr, "option %s: %d\n", accepted[i], (int)error);
            print_log(plain);
        }
        CHECK(error == CL_SUCCESS);
        CHECK(run_for_int(&inner, plain, "k") == 3);
    }

    static const char *const refused[] = {
        "-cl-std=CL4.0",   "-cl-std=",        "-D",  "-D 1", "-I", "foo", "-foo", "-D \"A",
        "-create-library", "-cl-mad-enablex", "-O3",
    };
    int before = reports;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        CHECK_CL(clBuildProgram(plain, 0, NULL, refused[i], NULL, NULL), CL_INVALID_BUILD_OPTIONS);
    CHECK(reports == before + (int)(sizeof refused / sizeof refused[0]));
    /* The last good build is still there. */
    CHECK(run_for_int(&inner, plain, "k") == 3);

    CHECK_CL(clReleaseProgram(plain), CL_SUCCESS);
    CHECK_CL(clReleaseProgram(program), CL_SUCCESS);
    check_finish(&inner);
    clReleaseCommandQueue(setup.queue);
    clReleaseContext(setup.context);
    return check_result();
}
