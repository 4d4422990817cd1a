/* Integer division by zero, and of the lowest number by -1: the result is undefined in OpenCL C,
 * but the kernel goes on and all other results are right, in every type and width. */
#include "check.h"

static const char source[] =
    "#define OPS(T, V) \\\n"
    "    kernel void div_##T(global const T *a, global const T *b, global T *q, global T *r) { \\\n"
    "        size_t i = get_global_id(0); q[i] = a[i] / b[i]; r[i] = a[i] % b[i]; } \\\n"
    "    kernel void div_##V(global const T *a, global const T *b, global T *q, global T *r) { \\\n"
    "        size_t i = get_global_id(0); \\\n"
    "        vstore4(vload4(i, a) / vload4(i, b), i, q); vstore4(vload4(i, a) % vload4(i, b), i, "
    "r); }\n"
    "OPS(char, char4) OPS(short, short4) OPS(int, int4) OPS(long, long4)\n"
    "OPS(uchar, uchar4) OPS(ushort, ushort4) OPS(uint, uint4) OPS(ulong, ulong4)\n";

enum { COUNT = 64 };

static const char *const types[] = {"char",  "short",  "int",  "long",
                                    "uchar", "ushort", "uint", "ulong"};

/* Element i of an array of the type's size, sign-extended for the first four types. */
static int64_t element(const unsigned char *array, int i, int bytes, bool is_signed)
{
    uint64_t value = 0;
    memcpy(&value, array + i * bytes, (size_t)bytes);
    int shift = 64 - 8 * bytes;
    return is_signed ? (int64_t)(value << shift) >> shift : (int64_t)value;
}

static void check_type(struct check_setup *setup, cl_program program, int type, bool is_vector)
{
    int bytes = 1 << type % 4, wrong = 0;
    bool is_signed = type < 4;
    cl_int error;
    char name[32];
    unsigned char *arrays[4];
    for (int k = 0; k < 4; k++) {
        arrays[k] = clSVMAlloc(setup->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
                               COUNT * 8, 0);
        REQUIRE(arrays[k]);
        for (int i = 0; i < COUNT * 8; i++)
            arrays[k][i] = (unsigned char)(i * 37 + k * 11 + 1);
    }
    for (int i = 0; i < COUNT; i += 4) { /* every fourth divisor is 0, the next one is all ones */
        memset(arrays[1] + i * bytes, 0, (size_t)bytes);
        memset(arrays[1] + (i + 1) * bytes, 0xff, (size_t)bytes);
        memset(arrays[0] + (i + 1) * bytes, 0, (size_t)bytes);
        arrays[0][(i + 2) * bytes - 1] = 0x80; /* the lowest number, where it is signed */
    }
    snprintf(name, sizeof name, "div_%s%s", types[type], is_vector ? "4" : "");
    cl_kernel kernel = clCreateKernel(program, name, &error);
    REQUIRE_CL(error);
    for (cl_uint k = 0; k < 4; k++)
        REQUIRE_CL(clSetKernelArgSVMPointer(kernel, k, arrays[k]));
    size_t count = is_vector ? COUNT / 4 : COUNT;
    REQUIRE_CL(clEnqueueNDRangeKernel(setup->queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL));
    REQUIRE_CL(clFinish(setup->queue));
    for (int i = 0; i < COUNT; i++) {
        int64_t a = element(arrays[0], i, bytes, is_signed);
        int64_t b = element(arrays[1], i, bytes, is_signed);
        if (b == 0 || (is_signed && b == -1))
            continue;
        int64_t q = is_signed ? a / b : (int64_t)((uint64_t)a / (uint64_t)b);
        int64_t r = is_signed ? a % b : (int64_t)((uint64_t)a % (uint64_t)b);
        wrong += q != element(arrays[2], i, bytes, is_signed);
        wrong += r != element(arrays[3], i, bytes, is_signed);
    }
    if (wrong)
        fprintf(stderr, "%s: %d results are wrong\n", name, wrong);
    CHECK(wrong == 0);
    clReleaseKernel(kernel);
    for (int k = 0; k < 4; k++)
        clSVMFree(setup->context, arrays[k]);
}

int main(void)
{
    struct check_setup setup;
    cl_int error;
    check_setup(&setup);
    const char *text = source;
    cl_program program = clCreateProgramWithSource(setup.context, 1, &text, NULL, &error);
    REQUIRE_CL(error);
    REQUIRE_CL(clBuildProgram(program, 1, &setup.device, "", NULL, NULL));
    for (int type = 0; type < 8; type++)
        for (int is_vector = 0; is_vector < 2; is_vector++)
            check_type(&setup, program, type, is_vector);
    clReleaseProgram(program);
    check_finish(&setup);
    return check_result();
}
