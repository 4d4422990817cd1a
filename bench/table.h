/* What the processes of a benchmark measured: rows of values for columns, which are platforms or
 * plain C. One process fills and prints one table. */
#ifndef SP_BENCH_TABLE_H
#define SP_BENCH_TABLE_H

#include <stdbool.h>

#define BENCH_MAX_COLUMNS 8
#define BENCH_MAX_ROWS 128
#define BENCH_MAX_ROUNDS 15
#define BENCH_NAME_BYTES 96

enum bench_column_kind { BENCH_OTHER, BENCH_POCL, BENCH_SAMEPAGE, BENCH_C };

struct bench_column {
    enum bench_column_kind kind;
    char vendor_file[4096]; /* empty for plain C */
    char name[BENCH_NAME_BYTES];
};

struct bench_table_row {
    char name[BENCH_NAME_BYTES], unit[16]; /* unit as in bench_row */
    bool is_kernel;
    double values[BENCH_MAX_COLUMNS][BENCH_MAX_ROUNDS];
    int counts[BENCH_MAX_COLUMNS];
};

struct bench_table {
    struct bench_column columns[BENCH_MAX_COLUMNS];
    int num_columns;
    struct bench_table_row rows[BENCH_MAX_ROWS];
    int num_rows;
    char machine[512]; /* processor, load and date, for people */
};

/* Adds one measured value; what does not fit is dropped. */
void bench_table_add(struct bench_table *table, int column, const char *name, double value,
                     const char *unit, bool is_kernel);

/* The first column of this kind, or -1. */
int bench_table_column(const struct bench_table *table, enum bench_column_kind kind);

/* The speed of `column` in a row as a multiple of that of `base`, more being better; 0 if one of
 * them has no value or a wrong result. */
double bench_table_ratio(struct bench_table_row *row, int column, int base);

/* Prints all, then the means over the kernels. */
void bench_table_print(struct bench_table *table);

/* Writes the kernels' speeds relative to plain C as an SVG picture. False: could not, and said why.
 */
bool bench_chart_write(struct bench_table *table, const char *path);

#endif
