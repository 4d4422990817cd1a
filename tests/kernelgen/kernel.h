/* A random kernel as a tree, and what is done with it: generate.c makes it from a seed, print.c
 * writes it as OpenCL C, interpret.c says what it must compute, edit.c makes it smaller.
 *
 * Every kernel ends (loops are bounded by a counter or a masked bound), is free of undefined
 * behaviour (arithmetic on unsigned types, masked indices and shift counts, divisors of 1 to 16,
 * floats that are whole numbers below 4096) and of races: a work-item writes only variables and
 * elements of its own; local memory is written by its owner right after a barrier and read behind
 * the next one; atomic operations on one cell all commute, and their results are not used.
 * Barriers and collectives lie where all work-items of a group come, or none. */
#ifndef SP_TESTS_KERNELGEN_KERNEL_H
#define SP_TESTS_KERNELGEN_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_LANES 16u
#define MAX_ITEMS 1024u /* of a work-group */
#define MAX_STEPS 4u    /* of PARTNERS */
#define INPUTS 512u     /* ints; the second half are all 1: alike, which no compiler can know */
#define SHARED_ARRAYS 2u
#define COUNT_ARRAYS 2u
#define COUNTS 16u
#define CELLS 6u /* of global atomic operations: one for each of enum commuting */

enum base { BASE_INT, BASE_UINT, BASE_LONG, BASE_ULONG, BASE_FLOAT };

struct type {
    enum base base;
    unsigned lanes; /* 1, 2, 3, 4, 8, 16 */
};

enum commuting { ADDS, ORS, XORS, ANDS, MAXES, MINS };

enum operation {
    CONSTANT, /* number */
    VARIABLE, /* which */
    ELEMENT,  /* which[kid 0] */
    INPUT,    /* in[kid 0] */
    SHARED,   /* local array `which`, at kid 0 */
    COUNTED,  /* local array of counts `which`, at kid 0 */
    ID,       /* which: enum id */
    DISGUISE, /* kid 0 + 1, in a way that looks as if it depended on kid 1 */
    ADD,
    SUB,
    MUL,
    MIN,
    MAX,
    AND,
    OR,
    XOR,
    SHL,
    SHR,
    DIV,
    REM,
    LESS, /* of scalars: 0 or 1 */
    EQUAL,
    SELECT,   /* kid 0 (scalar) ? kid 1 : kid 2 */
    BLEND,    /* in each lane kid 0 < kid 1 ? kid 0 : kid 2 */
    NARROW8,  /* to char and back */
    NARROW16, /* to short and back */
    CONVERT,
    SPLAT,
    LANE,    /* which */
    SWIZZLE, /* order */
    FIRST_BINARY = ADD,
    LAST_BINARY = REM,
};

enum id {
    ID_LINEAR_LOCAL,
    ID_LOCAL_0,
    ID_LOCAL_1,
    ID_LOCAL_2,
    ID_LINEAR_GLOBAL,
    ID_GLOBAL_0,
    ID_GLOBAL_1,
    FIRST_UNIFORM_ID,
    ID_GROUP_0 = FIRST_UNIFORM_ID,
    ID_GROUP_1,
    ID_GROUP_2,
    ID_ITEMS, /* of this group */
    ID_LOCAL_SIZE_0,
    ID_ENQUEUED_SIZE_0,
    ID_NUM_GROUPS_0,
    ID_GLOBAL_SIZE_0,
    ID_OFFSET_0,
    ID_WORK_DIM,
    ID_N, /* the argument */
    NUM_IDS,
};

struct expression {
    enum operation operation;
    struct type type;
    struct expression *kids[3];
    unsigned which;
    int64_t number;
    uint8_t order[MAX_LANES];
    bool uniform; /* alike for all work-items of a group that come here together */
};

enum place {
    PLACE_VARIABLE, /* of its own name */
    PLACE_FIRST,    /* a member of the first structure, or of the second */
    PLACE_SECOND,
    PLACE_ROW,    /* in global memory: the elements of a work-item side by side */
    PLACE_COLUMN, /* in global memory: one element of all work-items side by side */
};

struct variable {
    struct type type;
    unsigned count; /* a power of two; 1: no array */
    enum place place;
    unsigned member; /* of a structure */
    bool uniform;
    bool counter; /* written by its loop alone */
    bool dumped;  /* shows in the result at the kernel's end */
    int64_t start;
    unsigned offset; /* of the value in the interpreter's frame */
};

enum kind {
    ASSIGN,    /* variable which[kid 0] or its lane = kid 1 */
    CHOOSE,    /* *(kid 0 ? &which : &other) = kid 1 */
    COPY,      /* first structure = second, or the other way where which is 1 */
    BARRIER,   /* which: the fences */
    EXCHANGE,  /* local array which: written by all; body 0 reads it */
    PARTNERS,  /* all write two elements each, take steps, and put theirs into variable which */
    COUNT,     /* counts which: set; body 0 may count; body 1 reads */
    COUNT_ONE, /* an atomic operation on counts which, at kid 0, by kid 1 */
    CELL,      /* one on global cell which, by kid 0 */
    COLLECT,   /* variable which = collective function of kid 0 */
    BRANCH,    /* kid 0 ? body 0 : body 1 */
    SWITCH,    /* kid 0 & 3: bodies, falling through where the bit of `falls` is set */
    FOR,       /* counter which to kid 0 & other */
    SUM,       /* element kid 0 of variable which, in global memory, grows in kid 1 & other turns */
    STRIDE,    /* counter which from id `start` in steps of `step`, to a sum of kids 0 and 1 */
    WHILE,     /* at most `other` times while kid 0 */
    DO,        /* the same with the question last */
    BREAK,     /* where kid 0 */
    CONTINUE,
    RETURN,
    GOTO,     /* label which */
    LABELLED, /* body 0, then label which */
    CYCLE,    /* two entries: kid 0 jumps to body 1; kid 1, kid 2 go back to body 0, body 1 */
};

/* What work-items do with elements of a local array of twice as many, between two barriers, at a
 * distance of a power of two. */
enum step {
    STEP_SORT,      /* pairs, by a bit of the place: the smaller first, or the larger */
    STEP_BUTTERFLY, /* sum and difference of pairs */
    STEP_DIVIDED,   /* the same pairs, found by division */
    STEP_SIDE,      /* elements side by side */
    STEP_LEFT,      /* adds what lies to the left, where there is something */
    STEP_HALF,      /* the lower work-items add what lies above */
    STEP_BIT,       /* by a bit of the place, and a remainder */
    STEP_REVERSE,
    STEP_CROSS, /* takes the element whose number has one other bit */
    NUM_STEPS,
};

enum collective {
    REDUCE,
    SCAN_INCLUSIVE,
    SCAN_EXCLUSIVE,
    BROADCAST, /* from place kid 1 in x, 0 in y and z */
    ANY,
    ALL,
    NUM_COLLECTIVES,
};

#define MAX_BODIES 4u

/* A SUM adds in[(kid 2 & 255) + SUM_MIDDLE + turn * step], and with `inclusive` the element of its
 * own variable whose number is the turn's. */
#define SUM_MIDDLE 128
#define SUM_STEP(s) ((int)(s)->step - 2) /* -2 to 2 */
#define SUM_TURNS 63u

/* A STRIDE ends at (kid 0 & STRIDE_TURNS) * step + (kid 1 & other). */
#define STRIDE_CONSTANT 1000u
#define STRIDE_TURNS 3

struct statement {
    enum kind kind;
    struct statement *next;
    struct expression *kids[3];
    struct statement *bodies[MAX_BODIES];
    unsigned which, other, falls;
    unsigned start, step; /* of STRIDE: an enum id, and one, or STRIDE_CONSTANT and a number */
                          /* of SUM: what it is multiplied by in each turn, and SUM_STEP */
    bool inclusive;       /* of STRIDE: the bound, too, is a turn; of SUM: above */
    int lane;             /* of ASSIGN; -1: all */
    enum commuting commuting;
    enum collective collective;
    struct {
        enum step what;
        unsigned distance; /* its logarithm */
    } steps[MAX_STEPS];
    unsigned num_steps, bits; /* of PARTNERS: of an element, 8, 32 or 64 */
    bool dropped;
    bool opened; /* a BRANCH of which only body 0 is left */
};

struct shape {
    unsigned dimensions;
    uint64_t global[3], local[3], offset[3];
    unsigned n;
};

#define MAX_SHAPES 3u

struct kernel {
    uint64_t seed;
    struct variable *variables;
    struct expression **expressions; /* all, in the order of their making: edits name them so */
    struct statement **statements;
    unsigned num_variables, num_expressions, num_statements;
    unsigned num_counters, num_labels, frame; /* values of a work-item */
    struct statement *body;
    struct shape shapes[MAX_SHAPES];
    unsigned num_shapes;
    bool size_required; /* reqd_work_group_size of the shapes, which all have one local size */
};

void kernel_generate(struct kernel *kernel, uint64_t seed);
void kernel_finish(struct kernel *kernel);

/* What all kernels of a source begin with, and one of them. */
void print_preamble(FILE *out);
void print_kernel(FILE *out, const struct kernel *kernel);
void print_shape(FILE *out, const struct shape *shape);

/* Elements of all work-items in a PLACE_ROW or PLACE_COLUMN variable; the first of either is an
 * argument of every kernel. */
#define ROW_ELEMENTS 8u
#define COLUMN_ELEMENTS 4u
struct results {
    int32_t *out; /* one for each work-item */
    int32_t *rows, *columns;
    uint32_t cells[CELLS];
    uint64_t items;
};
void results_init(struct results *results, const struct shape *shape); /* as kernels find them */
void results_finish(struct results *results);

/* The contents of `in`, for all kernels. */
void fill_inputs(int32_t inputs[INPUTS]);

/* Fills in what the kernel computes. False where it takes too long. */
bool kernel_interpret(const struct kernel *kernel, const struct shape *shape,
                      struct results *results);

/* Applies edits, as in "d3,u7,c12,a5": drop or unwrap a statement, make an expression a constant or
 * its kid a, b or c. Edits that fit nothing are left out. */
void kernel_edit(struct kernel *kernel, const char *edits);
bool edit_fits(const struct kernel *kernel, char what, unsigned number);

#endif
