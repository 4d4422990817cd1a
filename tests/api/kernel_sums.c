/* A loop that keeps a sum in memory, or writes a row, gives what it gives turn by turn: whether the
 * sum lies elsewhere, in what the loop reads, or there for one work-item alone. */
#include "check_program.h"

#define ITEMS 192u
#define STRIDE 70u
#define ROWS (ITEMS * STRIDE)
#define ELEMENTS (ROWS + ITEMS) /* behind the rows is a place for each sum */

static const char source[] =
    "kernel void sum(global T *out, global const T *in, global const int *place, int n, int from)\n"
    "{\n"
    "    int i = get_global_id(0), at = place[i];\n"
    "    for (int k = 0; k < n; k++)\n"
    "        out[at] = out[at] * HALF + in[i * 70 + from + k];\n"
    "}\n"
    "kernel void two(global T *out, global const T *in, global const int *place, int n, int from)\n"
    "{\n"
    "    int i = get_global_id(0), at = place[i];\n"
    "    if (i >= ITEMS - 3)\n"
    "        return;\n"
    "    T sum = 0;\n"
    "    for (int k = n; k > 0; k--) {\n"
    "        out[at] += in[i * 70 + from + k] + in[i * 70 + k / 2];\n"
    "        sum = sum * HALF + in[i * 70 + k];\n"
    "    }\n"
    "    out[at] = out[at] * HALF + sum;\n"
    "}\n"
    "kernel void row(global T *out, global const T *in, global const int *place, int n, int from)\n"
    "{\n"
    "    int i = get_global_id(0);\n"
    "    for (int k = 0; k < n; k++)\n"
    "        out[i * 70 + k + 1] = out[i * 70 + k] * HALF + in[i * 70 + from + k];\n"
    "}\n";

static const char *const names[] = {"sum", "two", "row"};

union number {
    int as_int;
    float as_float;
};

/* Where the sum of a work-item lies. */
enum places { BEHIND, IN_ITS_ROW, ONE_IN_ITS_ROW, NUM_PLACES };

struct run {
    bool is_float, same; /* `out` and `in` are one buffer */
    enum places places;
    size_t local; /* 0: the platform's choice */
    int n, from;
};

static int place_of(const struct run *run, unsigned item)
{
    bool inside =
        run->places == IN_ITS_ROW || (run->places == ONE_IN_ITS_ROW && item == ITEMS / 2 + 5);
    return (int)(inside ? item * STRIDE + 3 : ROWS + item);
}

static union number add(const struct run *run, union number sum, bool halve, union number more)
{
    if (run->is_float)
        sum.as_float = sum.as_float * (halve ? 0.5f : 1.0f) + more.as_float;
    else
        sum.as_int = (int)((unsigned)sum.as_int * (halve ? 3u : 1u) + (unsigned)more.as_int);
    return sum;
}

static void run_in_c(const struct run *run, int kernel, union number *out, const union number *in)
{
    for (unsigned i = 0; i < ITEMS; i++) {
        const union number *row = in + i * STRIDE;
        union number *at = &out[place_of(run, i)], sum = {0};
        if (kernel == 0)
            for (int k = 0; k < run->n; k++)
                *at = add(run, *at, true, row[run->from + k]);
        if (kernel == 1 && i < ITEMS - 3) {
            for (int k = run->n; k > 0; k--) {
                *at = add(run, *at, false, add(run, row[run->from + k], false, row[k / 2]));
                sum = add(run, sum, true, row[k]);
            }
            *at = add(run, *at, true, sum);
        }
        if (kernel == 2)
            for (int k = 0; k < run->n; k++)
                out[i * STRIDE + (unsigned)k + 1] =
                    add(run, out[i * STRIDE + (unsigned)k], true, row[run->from + k]);
    }
}

static void fill(const struct run *run, union number *numbers, unsigned seed)
{
    for (unsigned i = 0; i < ELEMENTS; i++) {
        int value = (int)((i + seed) * 2654435761u >> 20);
        if (run->is_float)
            numbers[i].as_float = (float)value / 7.0f;
        else
            numbers[i].as_int = value;
    }
}

static cl_mem copy_of(struct check_setup *setup, const void *from, size_t bytes)
{
    cl_int error;
    cl_mem buffer = clCreateBuffer(setup->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes,
                                   (void *)from, &error);
    REQUIRE_CL(error);
    return buffer;
}

static void compare(struct check_setup *setup, cl_kernel kernel, int which, const struct run *run)
{
    static union number out[ELEMENTS], in[ELEMENTS], got[ELEMENTS];
    static int places[ITEMS];
    size_t global = ITEMS;
    fill(run, out, 1);
    fill(run, in, 77);
    for (unsigned i = 0; i < ITEMS; i++)
        places[i] = place_of(run, i);
    cl_mem buffers[3] = {copy_of(setup, out, sizeof out), copy_of(setup, in, sizeof in),
                         copy_of(setup, places, sizeof places)};
    for (unsigned i = 0; i < 3; i++)
        CHECK_CL(clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[run->same && i == 1 ? 0 : i]),
                 CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 3, sizeof run->n, &run->n), CL_SUCCESS);
    CHECK_CL(clSetKernelArg(kernel, 4, sizeof run->from, &run->from), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(setup->queue, kernel, 1, NULL, &global,
                                    run->local ? &run->local : NULL, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(
        clEnqueueReadBuffer(setup->queue, buffers[0], CL_TRUE, 0, sizeof got, got, 0, NULL, NULL),
        CL_SUCCESS);
    run_in_c(run, which, out, run->same ? out : in);
    for (unsigned i = 0; i < ELEMENTS; i++)
        if (memcmp(&got[i], &out[i], sizeof got[i])) {
            fprintf(stderr, "%s, %s, %s, places %d, local %zu, n %d: element %u differs\n",
                    names[which], run->is_float ? "float" : "int",
                    run->same ? "one buffer" : "two buffers", run->places, run->local, run->n, i);
            check_failures++;
            break;
        }
    for (unsigned i = 0; i < 3; i++)
        clReleaseMemObject(buffers[i]);
}

int main(void)
{
    static const int turns[] = {0, 1, 3, 16, 17, 40};
    static const size_t locals[] = {0, 16, 37, 64};
    struct check_setup setup;
    check_setup(&setup);
    for (int is_float = 0; is_float < 2; is_float++) {
        cl_program program = build(setup.context, source,
                                   is_float ? "-cl-std=CL3.0 -D T=float -D HALF=0.5f -D ITEMS=192"
                                            : "-cl-std=CL3.0 -D T=int -D HALF=3 -D ITEMS=192");
        for (int which = 0; which < 3; which++) {
            cl_kernel kernel = get_kernel(program, names[which]);
            for (unsigned i = 0; i < 2 * NUM_PLACES * 4 * 6; i++) {
                struct run run = {
                    is_float,          i % 2,         (enum places)(i / 2 % NUM_PLACES),
                    locals[i / 6 % 4], turns[i / 24], 1};
                compare(&setup, kernel, which, &run);
            }
            clReleaseKernel(kernel);
        }
        clReleaseProgram(program);
    }
    check_finish(&setup);
    return check_result();
}
