/* Starts one process for each platform and round, collects the rows that they print, and shows the
 * medians side by side.
 *
 * A platform is a vendor file of the folder that OCL_ICD_VENDORS names; each process is given
 * just one of them, so that no platform pays for another, and fresh cache folders, so that a first build is a
 * first build. Rounds alternate between the platforms: what disturbs the machine disturbs all.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 3
#define MAX_COLUMNS 8
#define MAX_ROWS 128
#define NAME_BYTES 96

/* One platform, or the C reference. */
struct column {
    char vendor_file[4096]; /* empty: the reference */
    char name[NAME_BYTES];
};

struct row {
    char name[NAME_BYTES], unit[16];
    double values[MAX_COLUMNS][ROUNDS];
    int counts[MAX_COLUMNS];
};

static struct column columns[MAX_COLUMNS];
static int num_columns;
static struct row rows[MAX_ROWS];
static int num_rows;

void bench_fail(const char *what, cl_int error)
{
    fprintf(stderr, "samepage-bench: %s (OpenCL error %d)\n", what, error);
    exit(1);
}

void bench_row(const char *name, double value, const char *unit)
{
    printf("row\t%s\t%.9g\t%s\n", name, value, unit);
    fflush(stdout);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The measuring process: rows on standard output. */
static int measure(bool is_reference)
{
    if (is_reference) {
        bench_reference_rows();
        return 0;
    }
    struct bench bench = {0};
    char name[NAME_BYTES];
    bench_discovery(&bench);
    bench_must(clGetPlatformInfo(bench.platform, CL_PLATFORM_NAME, sizeof name, name, NULL),
               "clGetPlatformInfo");
    printf("name\t%s\n", name);
    bench_build(&bench);
    bench_api_rows(&bench);
    bench_kernel_rows(&bench);
    return 0;
}

static struct row *row_named(const char *name, const char *unit)
{
    for (int i = 0; i < num_rows; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    if (num_rows == MAX_ROWS)
        return NULL;
    struct row *row = &rows[num_rows++];
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->unit, sizeof row->unit, "%s", unit);
    return row;
}

static void read_line(int column, char *line)
{
    char *fields[4] = {0};
    int count = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *field = strtok(line, "\t"); field && count < 4; field = strtok(NULL, "\t"))
        fields[count++] = field;
    if (count == 2 && !strcmp(fields[0], "name")) {
        snprintf(columns[column].name, NAME_BYTES, "%s", fields[1]);
    } else if (count == 4 && !strcmp(fields[0], "row")) {
        struct row *row = row_named(fields[1], fields[3]);
        if (row && row->counts[column] < ROUNDS)
            row->values[column][row->counts[column]++] = atof(fields[2]);
    }
}

static void remove_tree(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        execlp("rm", "rm", "-rf", path, (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
}

/* One process of one platform. False: it failed, and said why. */
static bool run_process(int column, const char *mode)
{
    int ends[2];
    char cache[] = "/tmp/samepage-bench-XXXXXX";
    char line[512];
    if (!mkdtemp(cache) || pipe(ends)) {
        perror("samepage-bench");
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("SAMEPAGE_CACHE_DIR", cache, 1);
        setenv("POCL_CACHE_DIR", cache, 1);
        setenv("CUDA_CACHE_PATH", cache, 1);
        bool is_reference = !columns[column].vendor_file[0];
        if (!is_reference)
            setenv("OCL_ICD_VENDORS", columns[column].vendor_file, 1);
        if (!strcmp(mode, "--devices"))
            setenv("SAMEPAGE_DEVICES", "cpu,virtual:2,mem=1G", 1);
        execl("/proc/self/exe", "samepage-bench", mode, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *input = fdopen(ends[0], "r");
    while (input && fgets(line, sizeof line, input))
        read_line(column, line);
    if (input)
        fclose(input);
    int status = 1;
    waitpid(child, &status, 0);
    remove_tree(cache);
    return status == 0;
}

static bool run_column(int column)
{
    if (!columns[column].vendor_file[0])
        return run_process(column, "--reference");
    bool is_good = run_process(column, "--measure");
    if (strstr(columns[column].vendor_file, "samepage.icd"))
        is_good = run_process(column, "--devices") && is_good;
    return is_good;
}

static void add_vendor_files(const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        size_t length = strlen(name);
        if (length > 4 && !strcmp(name + length - 4, ".icd") && num_columns < MAX_COLUMNS) {
            struct column *column = &columns[num_columns++];
            snprintf(column->vendor_file, sizeof column->vendor_file, "%s/%s", folder, name);
            snprintf(column->name, sizeof column->name, "%.*s", (int)length - 4, name);
        }
        free(entries[i]);
    }
    free(entries);
}

static void print_table(void)
{
    printf("\n%-34s %-8s", "median of 3 rounds", "unit");
    for (int c = 0; c < num_columns; c++)
        printf(" %22.22s", columns[c].name);
    printf("\n");
    for (int r = 0; r < num_rows; r++) {
        struct row *row = &rows[r];
        size_t unit_length = strcspn(row->unit, "-");
        printf("%-34s %-8.*s", row->name, (int)unit_length, row->unit);
        for (int c = 0; c < num_columns; c++) {
            if (row->counts[c])
                printf(" %22.4g", bench_median(row->values[c], (size_t)row->counts[c]));
            else
                printf(" %22s", "-");
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--measure"))
        return measure(false);
    if (argc > 1 && !strcmp(argv[1], "--reference"))
        return measure(true);
    if (argc > 1 && !strcmp(argv[1], "--devices")) {
        bench_device_rows();
        return 0;
    }
    const char *folder = getenv("OCL_ICD_VENDORS");
    if (argc > 1 && argv[1][0] == '-') {
        printf("Usage: samepage-bench [PLATFORM]\n"
               "Measures every platform of the folder OCL_ICD_VENDORS (default\n"
               "/etc/OpenCL/vendors), or Samepage and those whose vendor file contains PLATFORM.\n");
        return strcmp(argv[1], "--help") ? 2 : 0;
    }
    add_vendor_files(folder && *folder ? folder : "/etc/OpenCL/vendors");
    if (argc > 1) {
        int kept = 0;
        for (int c = 0; c < num_columns; c++)
            if (strstr(columns[c].vendor_file, argv[1]) ||
                strstr(columns[c].vendor_file, "samepage.icd"))
                columns[kept++] = columns[c];
        num_columns = kept;
    }
    if (num_columns == MAX_COLUMNS)
        num_columns--;
    snprintf(columns[num_columns++].name, NAME_BYTES, "C with OpenMP");

    bool is_good = true;
    for (int round = 0; round < ROUNDS; round++) {
        for (int c = 0; c < num_columns; c++) {
            fprintf(stderr, "round %d of %d: %s\n", round + 1, ROUNDS, columns[c].name);
            is_good = run_column(c) && is_good;
        }
    }
    print_table();
    return is_good ? 0 : 1;
}
