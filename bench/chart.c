/* The kernels as a picture: for each one bar of PoCL, Samepage and plain C, which is 100%. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table.h"

/* In the picture's units, which are pixels at its natural size. */
#define WIDTH 840
#define LABELS 190 /* the names, left of the bars */
#define SCALE 260  /* 100% */
#define MOST 2.2   /* longer bars are cut; their number says how long they are */
#define BAR 9
#define KERNEL (3 * BAR + 11)
#define TOP 66

static const enum bench_column_kind order[3] = {BENCH_POCL, BENCH_SAMEPAGE, BENCH_C};
static const char *const classes[3] = {"pocl", "samepage", "c"};
static const char *const names[3] = {"PoCL", "Samepage", "C with OpenMP"};

static const char head[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
    "role=\"img\">\n"
    "<title>Speed of kernels relative to hand-written C with OpenMP</title>\n"
    "<style>\n"
    "  text {font: 12px sans-serif; fill: #1f2328}\n"
    "  .title {font-size: 15px; font-weight: bold}\n"
    "  .small {font-size: 10px; fill: #59636e}\n"
    "  .paper {fill: #ffffff}\n"
    "  .grid {stroke: #d1d9e0}\n"
    "  .pocl {fill: #d4762c} .samepage {fill: #2563c9} .c {fill: #8c959f}\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    text {fill: #e6edf3} .small {fill: #9198a1} .paper {fill: #0d1117} .grid {stroke: "
    "#3d444d}\n"
    "    .pocl {fill: #f0a35e} .samepage {fill: #6ea8fe} .c {fill: #7d8590}\n"
    "  }\n"
    "</style>\n"
    "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n";

/* Text with what XML forbids replaced. */
static void put_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", file);
        else if (*text == '<')
            fputs("&lt;", file);
        else
            fputc(*text, file);
    }
}

static void put_scale(FILE *file, int height)
{
    for (int percent = 0; percent <= 200; percent += 50) {
        int x = LABELS + percent * SCALE / 100;
        fprintf(file, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", x, x,
                TOP - 6, height - 28);
        fprintf(file,
                "<text class=\"small\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d%%</text>\n", x,
                TOP - 10, percent);
    }
}

static void put_kernel(FILE *file, struct bench_table *table, struct bench_table_row *row, int y)
{
    int c = bench_table_column(table, BENCH_C);
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LABELS - 8, y + 2 * BAR);
    put_text(file, row->name);
    fprintf(file, "</text>\n");
    for (int i = 0; i < 3; i++) {
        double ratio = bench_table_ratio(row, bench_table_column(table, order[i]), c);
        int bar_y = y + i * BAR;
        double length = fmax(fmin(ratio, MOST) * SCALE, 1);
        if (ratio <= 0)
            continue;
        fprintf(file,
                "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>"
                "<text class=\"small\" x=\"%.1f\" y=\"%d\">%.0f%%</text>\n",
                classes[i], LABELS, bar_y, length, BAR - 1, LABELS + length + 4, bar_y + BAR - 1,
                ratio * 100);
    }
}

bool bench_chart_write(struct bench_table *table, const char *path)
{
    int c = bench_table_column(table, BENCH_C), shown = 0;
    for (int r = 0; r < table->num_rows; r++)
        shown += table->rows[r].is_kernel && table->rows[r].counts[c] > 0;
    int height = TOP + shown * KERNEL + 30, y = TOP;
    FILE *file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "samepage-bench: cannot write the chart %s: %s\n", path, strerror(errno));
        return false;
    }
    fprintf(file, head, WIDTH, height, WIDTH, height, WIDTH, height);
    fprintf(file, "<text class=\"title\" x=\"16\" y=\"24\">Speed relative to hand-written C with "
                  "OpenMP (longer is faster)</text>\n");
    for (int i = 0; i < 3; i++)
        fprintf(file,
                "<rect class=\"%s\" x=\"%d\" y=\"33\" width=\"10\" height=\"10\"/>"
                "<text x=\"%d\" y=\"42\">%s</text>\n",
                classes[i], 16 + 100 * i, 30 + 100 * i, names[i]);
    put_scale(file, height);
    for (int r = 0; r < table->num_rows; r++)
        if (table->rows[r].is_kernel && table->rows[r].counts[c] > 0) {
            put_kernel(file, table, &table->rows[r], y);
            y += KERNEL;
        }
    fprintf(file, "<text class=\"small\" x=\"16\" y=\"%d\">", height - 10);
    put_text(file, table->machine);
    fprintf(file, "</text>\n</svg>\n");
    if (ferror(file) | fclose(file)) {
        fprintf(stderr, "samepage-bench: writing the chart %s failed: %s\n", path, strerror(errno));
        return false;
    }
    return true;
}
