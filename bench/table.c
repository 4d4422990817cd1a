/* The table of medians, and what it says about all kernels together. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "table.h"

/* What a kernel should reach of plain C. */
#define AIM 0.9

static struct bench_table_row *row_named(struct bench_table *table, const char *name)
{
    for (int i = 0; i < table->num_rows; i++)
        if (!strcmp(table->rows[i].name, name))
            return &table->rows[i];
    if (table->num_rows == BENCH_MAX_ROWS)
        return NULL;
    struct bench_table_row *row = &table->rows[table->num_rows++];
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

void bench_table_add(struct bench_table *table, int column, const char *name, double value,
                     const char *unit, bool is_kernel)
{
    struct bench_table_row *row = row_named(table, name);
    if (!row || row->counts[column] == BENCH_MAX_ROUNDS)
        return;
    snprintf(row->unit, sizeof row->unit, "%s", unit);
    row->is_kernel = is_kernel;
    row->values[column][row->counts[column]++] = value;
}

int bench_table_column(const struct bench_table *table, enum bench_column_kind kind)
{
    for (int c = 0; c < table->num_columns; c++)
        if (table->columns[c].kind == kind)
            return c;
    return -1;
}

/* The median over the rounds; not a number if one of them had a wrong result. */
static double median_of(struct bench_table_row *row, int column)
{
    for (int i = 0; i < row->counts[column]; i++)
        if (isnan(row->values[column][i]))
            return NAN;
    return bench_median(row->values[column], (size_t)row->counts[column]);
}

double bench_table_ratio(struct bench_table_row *row, int column, int base)
{
    if (column < 0 || base < 0 || !row->counts[column] || !row->counts[base])
        return 0;
    double ratio = median_of(row, column) / median_of(row, base);
    if (strchr(row->unit, '-'))
        ratio = 1 / ratio;
    return isfinite(ratio) ? ratio : 0;
}

static void print_mean(struct bench_table *table, const char *name, int column, int base)
{
    double sum = 0;
    int count = 0;
    for (int r = 0; r < table->num_rows; r++) {
        double ratio = bench_table_ratio(&table->rows[r], column, base);
        if (table->rows[r].is_kernel && ratio > 0) {
            sum += log(ratio);
            count++;
        }
    }
    if (count)
        printf("%-34s %.3g, the geometric mean of %d kernels\n", name, exp(sum / count), count);
}

static void print_behind(struct bench_table *table, const char *what, int column, int base,
                         double limit)
{
    int behind = 0, count = 0;
    for (int r = 0; r < table->num_rows; r++) {
        double ratio = bench_table_ratio(&table->rows[r], column, base);
        if (!table->rows[r].is_kernel || ratio == 0)
            continue;
        count++;
        if (ratio < limit)
            printf("%s %s (%.0f%%)", behind++ ? "," : what, table->rows[r].name, ratio * 100);
    }
    if (behind)
        printf(": %d of %d\n", behind, count);
    else if (count)
        printf("%s none of %d\n", what, count);
}

void bench_table_print(struct bench_table *table)
{
    printf("\n%s\n", table->machine);
    printf("%-40s %-8s", "median of the rounds", "unit");
    for (int c = 0; c < table->num_columns; c++)
        printf(" %18.18s", table->columns[c].name);
    printf("\n");
    for (int r = 0; r < table->num_rows; r++) {
        struct bench_table_row *row = &table->rows[r];
        size_t unit_length = strcspn(row->unit, "-");
        printf("%-40s %-8.*s", row->name, (int)unit_length, row->unit);
        for (int c = 0; c < table->num_columns; c++) {
            if (row->counts[c] && isnan(median_of(row, c)))
                printf(" %18s", "wrong");
            else if (row->counts[c])
                printf(" %18.4g", median_of(row, c));
            else
                printf(" %18s", "-");
        }
        printf("\n");
    }
    int pocl = bench_table_column(table, BENCH_POCL), c = bench_table_column(table, BENCH_C);
    int samepage = bench_table_column(table, BENCH_SAMEPAGE);
    printf("\n");
    print_mean(table, "Samepage / PoCL", samepage, pocl);
    print_mean(table, "Samepage / C with OpenMP", samepage, c);
    if (samepage >= 0 && pocl >= 0)
        print_behind(table, "below PoCL:", samepage, pocl, 1);
    if (samepage >= 0)
        print_behind(table, "below 90% of C with OpenMP:", samepage, c, AIM);
}
