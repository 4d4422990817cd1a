/* Starts one process for each platform and round, collects the rows that they print, and shows the
 * medians side by side.
 *
 * A platform is a vendor file of the folder that OCL_ICD_VENDORS names; each process is given
 * just one of them, so that no platform pays for another, and fresh cache folders, so that a first
 * build is a first build. Rounds alternate between the platforms: what disturbs the machine
 * disturbs all.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "table.h"

#define DEFAULT_ROUNDS 3

static struct bench_table table;

/* What the command line asks for. */
struct options {
    const char *platform, *kernels, *chart; /* NULL: not given */
    int rounds;
    bool cpu_time;
};

static const char usage[] =
    "Usage: samepage-bench [OPTION]... [PLATFORM]\n"
    "Measures every platform of the folder OCL_ICD_VENDORS (default /etc/OpenCL/vendors), or "
    "Samepage and\n"
    "those whose vendor file contains PLATFORM, beside plain C with OpenMP. Each result is "
    "checked.\n\n"
    "  --kernels NAME,...  only kernels with one of these in their names; an unknown name lists "
    "all\n"
    "  --chart FILE        write the kernels' speeds relative to plain C as an SVG picture\n"
    "  --rounds N          take the median of N rounds, 1 to 15 (default 3)\n"
    "  --cpu-time          count the processor time of kernels, not the clock: for a machine that "
    "is busy\n"
    "                      with other things. What kernels cost, but not how well processors are "
    "kept busy\n"
    "  --help              this text\n";

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

void bench_kernel_row(const char *name, double value, const char *unit)
{
    printf("kernel\t%s\t%.9g\t%s\n", name, value, unit);
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

/* The measuring processes: rows on standard output. With a choice of kernels nothing else is
 * measured. */
static int measure_platform(const char *kernels, bool cpu_time)
{
    struct bench bench = {0};
    char name[BENCH_NAME_BYTES];
    bench_discovery(&bench);
    bench_must(clGetPlatformInfo(bench.platform, CL_PLATFORM_NAME, sizeof name, name, NULL),
               "clGetPlatformInfo");
    printf("name\t%s\n", name);
    if (!kernels) {
        bench_build(&bench);
        bench_api_rows(&bench);
    }
    return bench_cases(&bench, kernels, cpu_time) ? 0 : 1;
}

static int measure_c(const char *kernels, bool cpu_time)
{
    if (!kernels)
        bench_host_rows();
    return bench_cases(NULL, kernels, cpu_time) ? 0 : 1;
}

/* `only_kernels`: other rows are left out, as they come on the way to the kernels. */
static void read_line(int column, char *line, bool only_kernels)
{
    char *fields[4] = {0};
    int count = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *field = strtok(line, "\t"); field && count < 4; field = strtok(NULL, "\t"))
        fields[count++] = field;
    if (count == 2 && !strcmp(fields[0], "name"))
        snprintf(table.columns[column].name, BENCH_NAME_BYTES, "%s", fields[1]);
    else if (count == 4 && !strcmp(fields[0], "kernel"))
        bench_table_add(&table, column, fields[1], atof(fields[2]), fields[3], true);
    else if (count == 4 && !strcmp(fields[0], "row") && !only_kernels)
        bench_table_add(&table, column, fields[1], atof(fields[2]), fields[3], false);
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
static bool run_process(int column, const char *mode, const struct options *options)
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
        if (options->cpu_time) /* threads that wait count otherwise */
            setenv("OMP_WAIT_POLICY", "passive", 1);
        if (table.columns[column].kind != BENCH_C)
            setenv("OCL_ICD_VENDORS", table.columns[column].vendor_file, 1);
        unsetenv("OCL_ICD_FILENAMES"); /* would put other platforms in front of the column's */
        if (!strcmp(mode, "--devices"))
            setenv("SAMEPAGE_DEVICES", "cpu,virtual:2,mem=1G", 1);
        execl("/proc/self/exe", "samepage-bench", mode, options->cpu_time ? "cpu" : "clock",
              options->kernels, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *input = fdopen(ends[0], "r");
    while (input && fgets(line, sizeof line, input))
        read_line(column, line, options->kernels != NULL);
    if (input)
        fclose(input);
    int status = 1;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        fprintf(stderr, "samepage-bench: %s ended by signal %d\n", table.columns[column].name,
                WTERMSIG(status));
    remove_tree(cache);
    return status == 0;
}

static bool run_column(int column, const struct options *options)
{
    if (table.columns[column].kind == BENCH_C)
        return run_process(column, "--measure-c", options);
    bool is_good = run_process(column, "--measure", options);
    if (table.columns[column].kind == BENCH_SAMEPAGE && !options->kernels)
        is_good = run_process(column, "--devices", options) && is_good;
    return is_good;
}

static void add_column(const char *folder, const char *file)
{
    struct bench_column *column = &table.columns[table.num_columns];
    if (table.num_columns == BENCH_MAX_COLUMNS - 1) /* the last one is plain C */
        return;
    table.num_columns++;
    snprintf(column->vendor_file, sizeof column->vendor_file, "%s/%s", folder, file);
    snprintf(column->name, sizeof column->name, "%.*s", (int)strlen(file) - 4, file);
    if (!strcmp(file, "samepage.icd"))
        column->kind = BENCH_SAMEPAGE;
    else if (strstr(file, "pocl"))
        column->kind = BENCH_POCL;
}

static void add_vendor_files(const char *folder, const char *platform)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        size_t length = strlen(name);
        if (length > 4 && !strcmp(name + length - 4, ".icd") &&
            (!platform || !strcmp(name, "samepage.icd") || strstr(name, platform)))
            add_column(folder, name);
        free(entries[i]);
    }
    free(entries);
}

/* The processor's name, the number of processors that this process may use, the load and the date.
 */
static void describe_machine(bool cpu_time)
{
    char line[256], model[128] = "an unknown processor";
    char date[32] = "";
    double load = 0;
    time_t now = time(NULL);
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %127[^\n]", model) == 1)
            break;
    if (file)
        fclose(file);
    getloadavg(&load, 1);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime(&now));
    snprintf(table.machine, sizeof table.machine,
             "%s, %ld processors, load before it began %.1f, %s, %s", model,
             sysconf(_SC_NPROCESSORS_ONLN), load, date, cpu_time ? "processor time" : "clock");
}

static void read_options(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        {"kernels", required_argument, NULL, 'k'}, {"chart", required_argument, NULL, 'c'},
        {"rounds", required_argument, NULL, 'r'},  {"cpu-time", no_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},          {0}};
    int option;
    char *end;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            exit(0);
        } else if (option == 'k') {
            options->kernels = optarg;
            if (!bench_filter_is_known(optarg))
                exit(2);
        } else if (option == 'b') {
            options->cpu_time = true;
        } else if (option == 'c') {
            options->chart = optarg;
        } else if (option == 'r') {
            options->rounds = (int)strtol(optarg, &end, 10);
            if (*end || options->rounds < 1 || options->rounds > BENCH_MAX_ROUNDS) {
                fprintf(stderr, "samepage-bench: --rounds takes 1 to %d, not '%s'\n",
                        BENCH_MAX_ROUNDS, optarg);
                exit(2);
            }
        } else {
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (optind < argc)
        options->platform = argv[optind];
}

int main(int argc, char **argv)
{
    struct options options = {.rounds = DEFAULT_ROUNDS};
    const char *folder = getenv("OCL_ICD_VENDORS");
    if (argc > 2 && !strcmp(argv[1], "--measure"))
        return measure_platform(argv[3], !strcmp(argv[2], "cpu"));
    if (argc > 2 && !strcmp(argv[1], "--measure-c"))
        return measure_c(argv[3], !strcmp(argv[2], "cpu"));
    if (argc > 1 && !strcmp(argv[1], "--devices")) {
        bench_device_rows();
        return 0;
    }
    read_options(argc, argv, &options);
    describe_machine(options.cpu_time);
    add_vendor_files(folder && *folder ? folder : "/etc/OpenCL/vendors", options.platform);
    table.columns[table.num_columns].kind = BENCH_C;
    snprintf(table.columns[table.num_columns++].name, BENCH_NAME_BYTES, "C with OpenMP");

    bool is_good = true;
    for (int round = 0; round < options.rounds; round++) {
        for (int c = 0; c < table.num_columns; c++) {
            fprintf(stderr, "round %d of %d: %s\n", round + 1, options.rounds,
                    table.columns[c].name);
            is_good = run_column(c, &options) && is_good;
        }
    }
    bench_table_print(&table);
    if (options.chart)
        is_good = bench_chart_write(&table, options.chart) && is_good;
    return is_good ? 0 : 1;
}
