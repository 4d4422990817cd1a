/* Compares random kernels (kernel.h) on the device with what they must compute.
 *
 *   kernelgen SEED COUNT      kernels SEED to SEED + COUNT - 1; differences are made small
 *   kernelgen --print SEED [EDITS]
 *   kernelgen --check SEED SHAPE [EDITS]   one kernel and shape; exits with 0 where all is alike
 *   kernelgen --reduce SEED SHAPE
 *
 * Kernels run in child processes, many in one: a kernel that crashes or never ends is a difference
 * too. The interpreter bounds what a kernel may do, so that one of ours that runs for a minute
 * never ends. */
#include "device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH 16u         /* kernels of one program: shares the compiler's start */
#define BATCH_SECONDS 600 /* far above what one takes, with sanitizers and on a busy machine */
#define CHECK_SECONDS 30

enum { ALIKE = 0, DIFFERENT = 1, BROKEN_SETUP = 2, NOT_RUN = 3, SKIPPED = 77 };

static const char *const build_names[] = {"vector", "scalar"};

static bool is_alike(const char *what, const int32_t *got, const int32_t *expected, uint64_t count,
                     FILE *report)
{
    for (uint64_t i = 0; i < count; i++)
        if (got[i] != expected[i]) {
            fprintf(report, "    %s[%llu] is %d, not %d\n", what, (unsigned long long)i, got[i],
                    expected[i]);
            return false;
        }
    return true;
}

static bool are_alike(const struct results *got, const struct results *expected, FILE *report)
{
    return is_alike("out", got->out, expected->out, got->items, report) &&
           is_alike("rows", got->rows, expected->rows, got->items * ROW_ELEMENTS, report) &&
           is_alike("columns", got->columns, expected->columns, got->items * COLUMN_ELEMENTS,
                    report) &&
           is_alike("cells", (const int32_t *)got->cells, (const int32_t *)expected->cells, CELLS,
                    report);
}

/* One kernel over one of its shapes, in both builds. */
static int compare(struct device *device, const struct kernel *kernel, unsigned shape_index,
                   FILE *report)
{
    const struct shape *shape = &kernel->shapes[shape_index];
    struct results expected, got;
    int outcome = ALIKE;
    results_init(&expected, shape);
    if (!kernel_interpret(kernel, shape, &expected))
        outcome = NOT_RUN;
    for (unsigned b = 0; b < NUM_BUILDS && outcome == ALIKE; b++) {
        results_init(&got, shape);
        if (!device_run(device, (enum build)b, kernel->seed, shape, &got)) {
            outcome = BROKEN_SETUP;
        } else if (!are_alike(&got, &expected, report)) {
            fprintf(report, "    seed %llu, shape %u, %s build, ", (unsigned long long)kernel->seed,
                    shape_index, build_names[b]);
            print_shape(report, shape);
            fputs("\n", report);
            outcome = DIFFERENT;
        }
        results_finish(&got);
    }
    results_finish(&expected);
    return outcome;
}

static char *source_of(const struct kernel *kernels, unsigned count)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    print_preamble(out);
    for (unsigned i = 0; i < count; i++)
        print_kernel(out, &kernels[i]);
    fclose(out);
    return text;
}

/* A child's work. Says "different SEED SHAPE" on standard output for each difference, and how many
 * launches were compared. */
static int run_batch(uint64_t seed, unsigned count)
{
    struct kernel kernels[BATCH];
    struct device *device = device_create();
    unsigned compared = 0, left_out = 0;
    if (count > BATCH)
        count = BATCH;
    for (unsigned i = 0; i < count; i++)
        kernel_generate(&kernels[i], seed + i);
    char *source = source_of(kernels, count);
    alarm(BATCH_SECONDS);
    if (!device_build(device, source))
        return BROKEN_SETUP;
    for (unsigned i = 0; i < count; i++)
        for (unsigned s = 0; s < kernels[i].num_shapes; s++) {
            printf("at %llu %u\n", (unsigned long long)kernels[i].seed, s);
            fflush(stdout);
            int outcome = compare(device, &kernels[i], s, stderr);
            compared += outcome != NOT_RUN;
            left_out += outcome == NOT_RUN;
            if (outcome == DIFFERENT || outcome == BROKEN_SETUP) {
                printf("different %llu %u\n", (unsigned long long)kernels[i].seed, s);
                break;
            }
        }
    printf("done %u %u\n", compared, left_out);
    free(source);
    for (unsigned i = 0; i < count; i++)
        kernel_finish(&kernels[i]);
    device_destroy(device);
    return 0;
}

static int check_one(uint64_t seed, unsigned shape, const char *edits)
{
    struct kernel kernel;
    kernel_generate(&kernel, seed);
    kernel_edit(&kernel, edits);
    if (shape >= kernel.num_shapes) {
        fprintf(stderr, "kernel %llu has %u shapes\n", (unsigned long long)seed, kernel.num_shapes);
        return BROKEN_SETUP;
    }
    alarm(CHECK_SECONDS);
    struct device *device = device_create();
    char *source = source_of(&kernel, 1);
    int outcome =
        device_build(device, source) ? compare(device, &kernel, shape, stderr) : BROKEN_SETUP;
    free(source);
    kernel_finish(&kernel);
    device_destroy(device);
    return outcome;
}

static char self[4096];

/* How a child with these edits fails, or 0 where it does not: the signal, or its exit status. */
static int failure(uint64_t seed, unsigned shape, const char *edits)
{
    char number[32], place[16];
    snprintf(number, sizeof(number), "%llu", (unsigned long long)seed);
    snprintf(place, sizeof(place), "%u", shape);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(BROKEN_SETUP);
        execl(self, self, "--check", number, place, edits, (char *)NULL);
        _exit(BROKEN_SETUP);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 0;
    if (WIFSIGNALED(status))
        return 256 + WTERMSIG(status);
    return WEXITSTATUS(status) == NOT_RUN ? 0 : WEXITSTATUS(status);
}

struct reduction {
    uint64_t seed;
    unsigned shape;
    int as; /* the failure to keep */
    char *edits;
};

/* Adds an edit if the kernel still fails in the same way. */
static bool try_edit(struct reduction *r, char what, unsigned number)
{
    struct kernel kernel;
    kernel_generate(&kernel, r->seed);
    kernel_edit(&kernel, r->edits);
    bool fits = edit_fits(&kernel, what, number);
    kernel_finish(&kernel);
    if (!fits)
        return false;
    char *longer;
    if (asprintf(&longer, "%s%c%u,", r->edits, what, number) < 0)
        abort();
    if (failure(r->seed, r->shape, longer) != r->as) {
        free(longer);
        return false;
    }
    free(r->edits);
    r->edits = longer;
    return true;
}

static bool try_all(struct reduction *r, char what, unsigned count)
{
    bool any = false;
    for (unsigned i = 0; i < count; i++)
        any |= try_edit(r, what, i);
    return any;
}

static void reduce(uint64_t seed, unsigned shape)
{
    struct reduction r = {.seed = seed, .shape = shape, .edits = strdup("")};
    struct kernel kernel;
    r.as = failure(seed, shape, r.edits);
    if (!r.as) {
        fprintf(stderr, "kernel %llu alone does not fail\n", (unsigned long long)seed);
        free(r.edits);
        return;
    }
    kernel_generate(&kernel, seed);
    unsigned statements = kernel.num_statements, expressions = kernel.num_expressions;
    unsigned variables = kernel.num_variables;
    kernel_finish(&kernel);
    for (bool more = true; more;) {
        more = try_all(&r, 'd', statements);
        more |= try_all(&r, 'u', statements);
        more |= try_all(&r, 'v', variables);
        for (const char *what = "zabc"; *what; what++)
            more |= try_all(&r, *what, expressions);
    }
    kernel_generate(&kernel, seed);
    kernel_edit(&kernel, r.edits);
    fprintf(stderr, "kernel %llu, made small (--check %llu %u %s):\n", (unsigned long long)seed,
            (unsigned long long)seed, shape, r.edits);
    print_preamble(stderr);
    print_kernel(stderr, &kernel);
    fputs("// ", stderr);
    print_shape(stderr, &kernel.shapes[shape]);
    fputs("\n", stderr);
    kernel_finish(&kernel);
    free(r.edits);
}

struct totals {
    unsigned compared, left_out, failed;
};

static void fail(struct totals *totals, uint64_t seed, unsigned shape, const char *how)
{
    totals->failed++;
    fprintf(stderr, "kernel %llu, shape %u: %s\n", (unsigned long long)seed, shape, how);
    fflush(stderr);
    reduce(seed, shape);
}

static void run_child(struct totals *totals, uint64_t seed, unsigned count)
{
    char command[4200], line[128];
    unsigned long long at = seed, wrong[BATCH];
    unsigned shape = 0, wrong_shape[BATCH], num_wrong = 0;
    bool done = false;
    snprintf(command, sizeof(command), "'%s' --batch %llu %u", self, (unsigned long long)seed,
             count);
    FILE *child = popen(command, "r");
    if (!child)
        abort();
    while (fgets(line, sizeof(line), child)) {
        unsigned compared, left_out;
        sscanf(line, "at %llu %u", &at, &shape);
        if (num_wrong < BATCH &&
            sscanf(line, "different %llu %u", &wrong[num_wrong], &wrong_shape[num_wrong]) == 2)
            num_wrong++;
        if (sscanf(line, "done %u %u", &compared, &left_out) == 2) {
            totals->compared += compared;
            totals->left_out += left_out;
            done = true;
        }
    }
    pclose(child);
    for (unsigned i = 0; i < num_wrong; i++)
        fail(totals, wrong[i], wrong_shape[i], "different");
    if (!done)
        fail(totals, at, shape, "does not build, crashes or never ends");
}

/* Whether this processor runs the code that SAMEPAGE_CPU asks for. */
static bool can_run(const char *level)
{
    __builtin_cpu_init();
    if (!strcmp(level, "x86-64-v2"))
        return __builtin_cpu_supports("x86-64-v2");
    if (!strcmp(level, "x86-64-v3"))
        return __builtin_cpu_supports("x86-64-v3");
    return true;
}

static int run_all(uint64_t seed, unsigned count)
{
    struct totals totals = {0};
    const char *level = getenv("SAMEPAGE_CPU");
    if (level && !can_run(level)) {
        printf("skipped: this processor has not all instructions of %s\n", level);
        return SKIPPED;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("kernels from seed %llu\n", (unsigned long long)seed);
    for (unsigned done = 0; done < count; done += BATCH)
        run_child(&totals, seed + done, count - done < BATCH ? count - done : BATCH);
    printf("%u kernels, %u launches compared in both builds, %u too long to compare, %u failed\n",
           count, totals.compared, totals.left_out, totals.failed);
    return totals.failed || !totals.compared;
}

static void print_one(uint64_t seed, const char *edits)
{
    struct kernel kernel;
    kernel_generate(&kernel, seed);
    kernel_edit(&kernel, edits);
    print_preamble(stdout);
    print_kernel(stdout, &kernel);
    for (unsigned s = 0; s < kernel.num_shapes; s++) {
        printf("// shape %u: ", s);
        print_shape(stdout, &kernel.shapes[s]);
        puts("");
    }
    kernel_finish(&kernel);
}

int main(int argc, char **argv)
{
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    const char *mode = argc > 1 ? argv[1] : "";
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    unsigned number = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    if (length < 0)
        abort();
    if (argc == 3 && mode[0] != '-')
        return run_all(strtoull(mode, NULL, 10), (unsigned)seed);
    if (argc == 4 && !strcmp(mode, "--batch"))
        return run_batch(seed, number);
    if (argc >= 4 && !strcmp(mode, "--check"))
        return check_one(seed, number, argc > 4 ? argv[4] : "");
    if (argc >= 3 && !strcmp(mode, "--print")) {
        print_one(seed, argc > 3 ? argv[3] : "");
        return 0;
    }
    if (argc == 4 && !strcmp(mode, "--reduce")) {
        reduce(seed, number);
        return 0;
    }
    fprintf(stderr, "usage: kernelgen SEED COUNT, or --print SEED [EDITS], --check SEED SHAPE "
                    "[EDITS], --reduce SEED SHAPE\n");
    return BROKEN_SETUP;
}
