/* A kernel as OpenCL C. See kernel.h for what each kind means; the interpreter says the same. */
#include "kernel.h"

static const char *const base_names[] = {"int", "uint", "long", "ulong", "float"};
static const char *const commuting_names[] = {"add", "or", "xor", "and", "max", "min"};

static void put_type(FILE *out, struct type type)
{
    fputs(base_names[type.base], out);
    if (type.lanes > 1)
        fprintf(out, "%u", type.lanes);
}

static struct type unsigned_of(struct type type)
{
    type.base = type.base == BASE_INT ? BASE_UINT : type.base == BASE_LONG ? BASE_ULONG : type.base;
    return type;
}

static bool is_signed(struct type type)
{
    return type.base == BASE_INT || type.base == BASE_LONG;
}

static void put(FILE *out, const struct kernel *k, const struct expression *e);

/* A variable, or its element at `index`. */
static void put_variable(FILE *out, const struct kernel *k, unsigned which,
                         const struct expression *index)
{
    const struct variable *v = &k->variables[which];
    switch (v->place) {
    case PLACE_VARIABLE:
        fprintf(out, "%c%u", v->counter ? 'i' : v->uniform ? 'u' : 'v', which);
        break;
    case PLACE_FIRST:
    case PLACE_SECOND:
        fprintf(out, "%s.m%u", v->place == PLACE_FIRST ? "one" : "two", v->member);
        break;
    case PLACE_ROW:
        fprintf(out, "rows[gid * %u + ((", ROW_ELEMENTS);
        put(out, k, index);
        fprintf(out, ") & %u)]", ROW_ELEMENTS - 1);
        return;
    case PLACE_COLUMN:
        fputs("columns[((", out);
        put(out, k, index);
        fprintf(out, ") & %u) * items + gid]", COLUMN_ELEMENTS - 1);
        return;
    }
    if (index) {
        fputs("[(", out);
        put(out, k, index);
        fprintf(out, ") & %u]", v->count - 1);
    }
}

static void put_constant(FILE *out, const struct expression *e)
{
    unsigned long long bits = (unsigned long long)e->number;
    switch (e->type.base) {
    case BASE_INT:
        fprintf(out, e->number < 0 ? "(int)0x%llxu" : "%llu", bits & 0xffffffffu);
        break;
    case BASE_UINT:
        fprintf(out, "%lluu", bits);
        break;
    case BASE_LONG:
        fprintf(out, "(long)0x%llxul", bits);
        break;
    case BASE_ULONG:
        fprintf(out, "0x%llxul", bits);
        break;
    case BASE_FLOAT:
        fprintf(out, "(%d.0f)", (int)e->number);
        break;
    }
}

static void put_id(FILE *out, unsigned id)
{
    static const char *const texts[NUM_IDS] = {
        [ID_LINEAR_LOCAL] = "lid",
        [ID_LOCAL_0] = "(int)get_local_id(0)",
        [ID_LOCAL_1] = "(int)get_local_id(1)",
        [ID_LOCAL_2] = "(int)get_local_id(2)",
        [ID_LINEAR_GLOBAL] = "gid",
        [ID_GLOBAL_0] = "(int)get_global_id(0)",
        [ID_GLOBAL_1] = "(int)get_global_id(1)",
        [ID_GROUP_0] = "(int)get_group_id(0)",
        [ID_GROUP_1] = "(int)get_group_id(1)",
        [ID_GROUP_2] = "(int)get_group_id(2)",
        [ID_ITEMS] = "size",
        [ID_LOCAL_SIZE_0] = "(int)get_local_size(0)",
        [ID_ENQUEUED_SIZE_0] = "(int)get_enqueued_local_size(0)",
        [ID_NUM_GROUPS_0] = "(int)get_num_groups(0)",
        [ID_GLOBAL_SIZE_0] = "(int)get_global_size(0)",
        [ID_OFFSET_0] = "(int)get_global_offset(0)",
        [ID_WORK_DIM] = "(int)get_work_dim()",
        [ID_N] = "(int)n",
    };
    fputs(texts[id], out);
}

/* A function of kids, or `(a operator b)`, as format letters a, b, c for kids, T for the type, U
 * for the unsigned one. */
static void put_as(FILE *out, const struct kernel *k, const struct expression *e,
                   const char *format)
{
    for (; *format; format++) {
        if (*format >= 'A' && *format <= 'C')
            put(out, k, e->kids[*format - 'A']);
        else if (*format == 'T')
            put_type(out, e->type);
        else if (*format == 'U')
            put_type(out, unsigned_of(e->type));
        else
            fputc(*format, out);
    }
}

static void put_binary(FILE *out, const struct kernel *k, const struct expression *e)
{
    static const char *const signed_formats[] = {[ADD] = "as_T(as_U(A) + as_U(B))",
                                                 [SUB] = "as_T(as_U(A) - as_U(B))",
                                                 [MUL] = "as_T(as_U(A) * as_U(B))",
                                                 [MIN] = "min(A, B)",
                                                 [MAX] = "max(A, B)",
                                                 [AND] = "(A & B)",
                                                 [OR] = "(A | B)",
                                                 [XOR] = "(A ^ B)",
                                                 [SHL] = "as_T(as_U(A) << as_U(B & (T)31))",
                                                 [SHR] = "(A >> (B & (T)31))",
                                                 [DIV] = "(A / ((B & (T)15) + (T)1))",
                                                 [REM] = "(A % ((B & (T)15) + (T)1))"};
    static const char *const unsigned_formats[] = {
        [ADD] = "(A + B)",
        [SUB] = "(A - B)",
        [MUL] = "(A * B)",
        [SHL] = "(A << (B & (T)31))",
    };
    static const char *const float_formats[] = {
        [ADD] = "fold(A + B)", [SUB] = "fold(A - B)", [MUL] = "fold(A * B)",
        [MIN] = "fmin(A, B)",  [MAX] = "fmax(A, B)",
    };
    const char *format = signed_formats[e->operation];
    if (e->type.base == BASE_FLOAT)
        format = float_formats[e->operation];
    else if (!is_signed(e->type) && (e->operation <= MUL || e->operation == SHL))
        format = unsigned_formats[e->operation];
    put_as(out, k, e, format);
}

static void put_conversion(FILE *out, const struct kernel *k, const struct expression *e)
{
    struct type from = e->kids[0]->type, whole = {BASE_INT, e->type.lanes};
    fputs("convert_", out);
    put_type(out, e->type);
    if (e->type.base == BASE_FLOAT) {
        put_as(out, k, e, "(A & (");
        put_type(out, from);
        fputs(")1023)", out);
    } else if (from.base == BASE_FLOAT) {
        fputs("(convert_", out);
        put_type(out, whole);
        put_as(out, k, e, "(A))");
    } else {
        put_as(out, k, e, "(A)");
    }
}

static void put_narrowed(FILE *out, const struct kernel *k, const struct expression *e)
{
    const char *narrow = e->operation == NARROW8 ? "char" : "short";
    put_as(out, k, e, "convert_T(convert_");
    fputs(narrow, out);
    if (e->type.lanes > 1)
        fprintf(out, "%u", e->type.lanes);
    put_as(out, k, e, "(A))");
}

static void put(FILE *out, const struct kernel *k, const struct expression *e)
{
    switch (e->operation) {
    case CONSTANT:
        put_constant(out, e);
        break;
    case VARIABLE:
        put_variable(out, k, e->which, NULL);
        break;
    case ELEMENT:
        put_variable(out, k, e->which, e->kids[0]);
        break;
    case INPUT:
        put_as(out, k, e, "in[(A) & 255]");
        break;
    case SHARED:
        fprintf(out, "shared%u", e->which);
        put_as(out, k, e, "[(uint)(A) % (uint)size]");
        break;
    case COUNTED:
        fprintf(out, "counts%u", e->which);
        put_as(out, k, e, "[(A) & 15]");
        break;
    case ID:
        put_id(out, e->which);
        break;
    case DISGUISE:
        put_as(out, k, e, "as_int(as_uint(A) + as_uint(in[256 + ((B) & 255)]))");
        break;
    case LESS:
        put_as(out, k, e, "(A < B)");
        break;
    case EQUAL:
        put_as(out, k, e, "(A == B)");
        break;
    case SELECT:
        put_as(out, k, e, "((A) != 0 ? B : C)");
        break;
    case BLEND:
        put_as(out, k, e, "((A < B) ? A : C)");
        break;
    case NARROW8:
    case NARROW16:
        put_narrowed(out, k, e);
        break;
    case CONVERT:
        put_conversion(out, k, e);
        break;
    case SPLAT:
        put_as(out, k, e, "((T)(A))");
        break;
    case LANE:
        put_as(out, k, e, "(A)");
        fprintf(out, ".s%x", e->which);
        break;
    case SWIZZLE:
        put_as(out, k, e, "(A).s");
        for (unsigned i = 0; i < e->type.lanes; i++)
            fprintf(out, "%x", e->order[i]);
        break;
    default:
        put_binary(out, k, e);
        break;
    }
}

static void indent(FILE *out, unsigned depth)
{
    fprintf(out, "%*s", (int)depth * 4, "");
}

static void put_list(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth);

static void put_block(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth)
{
    fputs(" {\n", out);
    put_list(out, k, s, depth + 1);
    indent(out, depth);
    fputs("}\n", out);
}

static void put_line(FILE *out, unsigned depth, const char *text)
{
    indent(out, depth);
    fprintf(out, "%s\n", text);
}

#define SYNC "barrier(CLK_LOCAL_MEM_FENCE);"

static void put_assignment(FILE *out, const struct kernel *k, const struct statement *s)
{
    put_variable(out, k, s->which, s->kids[0]);
    if (s->lane >= 0)
        fprintf(out, ".s%x", (unsigned)s->lane);
    fputs(" = ", out);
    put(out, k, s->kids[1]);
    fputs(";\n", out);
}

static void put_collective(FILE *out, const struct kernel *k, const struct statement *s)
{
    static const char *const names[] = {
        "reduce", "scan_inclusive", "scan_exclusive", "broadcast", "any", "all"};
    put_variable(out, k, s->which, NULL);
    fprintf(out, " = work_group_%s", names[s->collective]);
    if (s->collective <= SCAN_EXCLUSIVE)
        fprintf(out, "_%s", commuting_names[s->commuting]);
    fputc('(', out);
    put(out, k, s->kids[0]);
    if (s->collective == BROADCAST) {
        fputs(", (uint)(", out);
        put(out, k, s->kids[1]);
        fputs(") % (uint)get_local_size(0), 0, 0", out);
    }
    fputs(");\n", out);
}

static void put_atomic(FILE *out, const struct kernel *k, const struct statement *s)
{
    fprintf(out, "atomic_%s(", commuting_names[s->commuting]);
    if (s->kind == CELL) {
        fprintf(out, "&cells[%u], ", s->which);
        put(out, k, s->kids[0]);
    } else {
        fprintf(out, "&counts%u[(", s->which);
        put(out, k, s->kids[0]);
        fputs(") & 15], ", out);
        put(out, k, s->kids[1]);
    }
    fputs(");\n", out);
}

static void put_switch(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth)
{
    fputs("switch ((", out);
    put(out, k, s->kids[0]);
    fputs(") & 3) {\n", out);
    for (unsigned b = 0; b < MAX_BODIES; b++) {
        indent(out, depth);
        fprintf(out, "case %u:\n", b);
        put_list(out, k, s->bodies[b], depth + 1);
        if (!(s->falls >> b & 1) || b == MAX_BODIES - 1)
            put_line(out, depth + 1, "break;");
    }
    put_line(out, depth, "}");
}

static void put_step(FILE *out, const struct statement *s)
{
    if (s->step >= STRIDE_CONSTANT)
        fprintf(out, "%u", s->step - STRIDE_CONSTANT);
    else
        put_id(out, s->step);
}

static void put_stride(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth)
{
    const char *type = base_names[k->variables[s->which].type.base];
    unsigned i = s->which;
    fprintf(out, "for (i%u = ", i);
    put_id(out, s->start);
    fprintf(out, "; i%u %s (%s)(((", i, s->inclusive ? "<=" : "<", type);
    put(out, k, s->kids[0]);
    fprintf(out, ") & %d) * ", STRIDE_TURNS);
    put_step(out, s);
    fputs(" + ((", out);
    put(out, k, s->kids[1]);
    fprintf(out, ") & %u)); i%u += ", s->other, i);
    put_step(out, s);
    fputs(")", out);
    put_block(out, k, s->bodies[0], depth);
}

static void put_sum(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth)
{
    bool row = k->variables[s->which].place == PLACE_ROW;
    fputs("{\n", out);
    indent(out, depth + 1);
    fputs("const int at = (", out);
    put(out, k, s->kids[0]);
    fprintf(out, ") & %u, turns = (", k->variables[s->which].count - 1);
    put(out, k, s->kids[1]);
    fprintf(out, ") & %u, from = ((", s->other);
    put(out, k, s->kids[2]);
    fprintf(out, ") & 255) + %d;\n", SUM_MIDDLE);
    indent(out, depth + 1);
    fputs("for (int turn = 0; turn < turns; turn++)\n", out);
    indent(out, depth + 2);
    const char *at = row ? "rows[gid * 8 + at]" : "columns[at * items + gid]";
    fprintf(out, "%s = (int)((uint)%s * %uu + (uint)in[from + turn * %d]", at, at, s->start,
            SUM_STEP(s));
    if (s->inclusive)
        fprintf(out, " + (uint)%s", row ? "rows[gid * 8 + turn]" : "columns[turn * items + gid]");
    fputs(");\n", out);
    indent(out, depth);
    fputs("}\n", out);
}

static void put_loop(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth)
{
    unsigned i = s->which;
    if (s->kind == FOR) {
        fprintf(out, "for (i%u = 0; i%u < ((", i, i);
        put(out, k, s->kids[0]);
        fprintf(out, ") & %u); i%u++)", s->other, i);
        put_block(out, k, s->bodies[0], depth);
        return;
    }
    fprintf(out, "i%u = 0;\n", i);
    indent(out, depth);
    if (s->kind == WHILE) {
        fputs("while ((", out);
        put(out, k, s->kids[0]);
        fprintf(out, ") != 0 && i%u++ < %u)", i, s->other);
        put_block(out, k, s->bodies[0], depth);
        return;
    }
    fputs("do {\n", out);
    put_list(out, k, s->bodies[0], depth + 1);
    indent(out, depth);
    fputs("} while ((", out);
    put(out, k, s->kids[0]);
    fprintf(out, ") != 0 && ++i%u < %u);\n", i, s->other);
}

static void put_cycle(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth)
{
    fprintf(out, "i%u = 0;\n", s->which);
    indent(out, depth);
    fputs("if ((", out);
    put(out, k, s->kids[0]);
    fprintf(out, ") != 0)\n");
    indent(out, depth + 1);
    fprintf(out, "goto middle%u;\n", s->falls);
    indent(out, depth);
    fprintf(out, "top%u:;\n", s->falls);
    put_list(out, k, s->bodies[0], depth);
    indent(out, depth);
    fprintf(out, "middle%u:;\n", s->falls);
    put_list(out, k, s->bodies[1], depth);
    indent(out, depth);
    fprintf(out, "i%u++;\n", s->which);
    for (unsigned i = 1; i < 3; i++) {
        indent(out, depth);
        fprintf(out, "if (i%u < %u && (", s->which, s->other);
        put(out, k, s->kids[i]);
        fprintf(out, ") != 0)\n");
        indent(out, depth + 1);
        fprintf(out, "goto %s%u;\n", i == 1 ? "top" : "middle", s->falls);
    }
}

static void put_jump(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth)
{
    static const char *const words[] = {"break", "continue", "return"};
    fputs("if ((", out);
    put(out, k, s->kids[0]);
    fputs(") != 0)\n", out);
    indent(out, depth + 1);
    if (s->kind == GOTO)
        fprintf(out, "goto end%u;\n", s->which);
    else
        fprintf(out, "%s;\n", words[s->kind - BREAK]);
}

static void put_branch(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth)
{
    fputs("if ((", out);
    put(out, k, s->kids[0]);
    fputs(") != 0)", out);
    put_block(out, k, s->bodies[0], depth);
    if (s->bodies[1]) {
        indent(out, depth);
        fputs("else", out);
        put_block(out, k, s->bodies[1], depth);
    }
}

static void put_exchange(FILE *out, const struct kernel *k, const struct statement *s,
                         unsigned depth)
{
    fputs(SYNC "\n", out);
    indent(out, depth);
    fprintf(out, "shared%u[lid] = ", s->which);
    put(out, k, s->kids[0]);
    fputs(";\n", out);
    put_line(out, depth, SYNC);
    put_list(out, k, s->bodies[0], depth);
}

static void put_step_of(FILE *out, const struct statement *s, unsigned step, unsigned depth)
{
    unsigned distance = 1u << s->steps[step].distance, b = s->bits;
    put_line(out, depth, SYNC);
    indent(out, depth);
    switch (s->steps[step].what) {
    case STEP_SORT:
    case STEP_BUTTERFLY:
    case STEP_DIVIDED:
        if (s->steps[step].what == STEP_DIVIDED)
            fprintf(out, "i = p / %u * %u + p %% %u;\n", distance, 2 * distance, distance);
        else
            fprintf(out, "i = 2 * p - (p & %u);\n", distance - 1);
        indent(out, depth);
        fprintf(out, "if (i + %u < 2 * (uint)size) {\n", distance);
        indent(out, depth + 1);
        fprintf(out, "a = pairs%u[i], b = pairs%u[i + %u];\n", b, b, distance);
        indent(out, depth + 1);
        if (s->steps[step].what == STEP_SORT)
            fprintf(out,
                    "pairs%u[i] = i & %u ? min(a, b) : max(a, b), pairs%u[i + %u] = i & %u ? "
                    "max(a, b) : min(a, b);\n",
                    b, 4 * distance, b, distance, 4 * distance);
        else
            fprintf(out, "pairs%u[i] = a + b, pairs%u[i + %u] = a - b;\n", b, b, distance);
        put_line(out, depth, "}");
        break;
    case STEP_SIDE:
        fprintf(out,
                "a = pairs%u[2 * p], b = pairs%u[2 * p + 1], pairs%u[2 * p] = a ^ b, "
                "pairs%u[2 * p + 1] = a + b * 3;\n",
                b, b, b, b);
        break;
    case STEP_LEFT:
        fprintf(out, "a = p >= %u ? pairs%u[p - %u] : 0;\n", distance, b, distance);
        put_line(out, depth, SYNC);
        indent(out, depth);
        fprintf(out, "pairs%u[p] += a;\n", b);
        break;
    case STEP_HALF:
        fprintf(out, "if (p < %u && p + %u < 2 * (uint)size)\n", distance, distance);
        indent(out, depth + 1);
        fprintf(out, "pairs%u[p] += pairs%u[p + %u];\n", b, b, distance);
        break;
    case STEP_BIT:
        fprintf(out, "if (p & %u)\n", distance);
        indent(out, depth + 1);
        fprintf(out, "pairs%u[p] = pairs%u[p] * 3 + 1;\n", b, b);
        indent(out, depth);
        fputs("else if (p % 3 == 1)\n", out);
        indent(out, depth + 1);
        fprintf(out, "pairs%u[p + size] ^= p;\n", b);
        break;
    case STEP_REVERSE:
        fprintf(out, "a = pairs%u[size - 1 - p];\n", b);
        put_line(out, depth, SYNC);
        indent(out, depth);
        fprintf(out, "pairs%u[p] = a;\n", b);
        break;
    case STEP_CROSS:
    case NUM_STEPS:
        fprintf(out, "i = p ^ %u, a = pairs%u[i < 2 * (uint)size ? i : p];\n", distance, b);
        put_line(out, depth, SYNC);
        indent(out, depth);
        fprintf(out, "pairs%u[p] = a;\n", b);
        break;
    }
}

static void put_partners(FILE *out, const struct kernel *k, const struct statement *s,
                         unsigned depth)
{
    const char *type = s->bits == 8 ? "uchar" : s->bits == 32 ? "uint" : "ulong";
    fputs("{\n", out);
    indent(out, depth + 1);
    fprintf(out, "uint i, p = lid;\n");
    indent(out, depth + 1);
    fprintf(out, "%s a, b;\n", type);
    put_line(out, depth + 1, SYNC);
    indent(out, depth + 1);
    fprintf(out, "pairs%u[p] = ", s->bits);
    put(out, k, s->kids[0]);
    fputs(";\n", out);
    indent(out, depth + 1);
    fprintf(out, "pairs%u[p + size] = p * 7;\n", s->bits);
    for (unsigned step = 0; step < s->num_steps; step++)
        put_step_of(out, s, step, depth + 1);
    put_line(out, depth + 1, SYNC);
    indent(out, depth + 1);
    put_variable(out, k, s->which, NULL);
    fprintf(out, " = (int)((uint)pairs%u[p] + (uint)pairs%u[p + size] * 31);\n", s->bits, s->bits);
    put_line(out, depth, "}");
}

static void put_count(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth)
{
    bool ones = s->commuting == ANDS || s->commuting == MINS;
    fputs(SYNC "\n", out);
    indent(out, depth);
    fputs("for (int c = lid; c < 16; c += size)\n", out);
    indent(out, depth + 1);
    fprintf(out, "counts%u[c] = %s;\n", s->which, ones ? "0xffffffffu" : "0");
    put_line(out, depth, SYNC);
    put_list(out, k, s->bodies[0], depth);
    put_line(out, depth, SYNC);
    put_list(out, k, s->bodies[1], depth);
}

static void put_statement(FILE *out, const struct kernel *k, const struct statement *s,
                          unsigned depth)
{
    static const char *const fences[] = {"CLK_LOCAL_MEM_FENCE", "CLK_GLOBAL_MEM_FENCE",
                                         "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"};
    switch (s->kind) {
    case ASSIGN:
        put_assignment(out, k, s);
        break;
    case CHOOSE:
        fputs("*((", out);
        put(out, k, s->kids[0]);
        fputs(") != 0 ? &", out);
        put_variable(out, k, s->which, NULL);
        fputs(" : &", out);
        put_variable(out, k, s->other, NULL);
        fputs(") = ", out);
        put(out, k, s->kids[1]);
        fputs(";\n", out);
        break;
    case COPY:
        fputs(s->which ? "two = one;\n" : "one = two;\n", out);
        break;
    case BARRIER:
        fprintf(out, "barrier(%s);\n", fences[s->which % 3]);
        break;
    case EXCHANGE:
        put_exchange(out, k, s, depth);
        break;
    case PARTNERS:
        put_partners(out, k, s, depth);
        break;
    case COUNT:
        put_count(out, k, s, depth);
        break;
    case COUNT_ONE:
    case CELL:
        put_atomic(out, k, s);
        break;
    case COLLECT:
        put_collective(out, k, s);
        break;
    case BRANCH:
        put_branch(out, k, s, depth);
        break;
    case SWITCH:
        put_switch(out, k, s, depth);
        break;
    case SUM:
        put_sum(out, k, s, depth);
        break;
    case STRIDE:
        put_stride(out, k, s, depth);
        break;
    case FOR:
    case WHILE:
    case DO:
        put_loop(out, k, s, depth);
        break;
    case BREAK:
    case CONTINUE:
    case RETURN:
    case GOTO:
        put_jump(out, k, s, depth);
        break;
    case LABELLED:
        fputs("{\n", out);
        put_list(out, k, s->bodies[0], depth + 1);
        indent(out, depth);
        fprintf(out, "}\n");
        indent(out, depth);
        fprintf(out, "end%u:;\n", s->which);
        break;
    case CYCLE:
        put_cycle(out, k, s, depth);
        break;
    }
}

static void put_list(FILE *out, const struct kernel *k, const struct statement *s, unsigned depth)
{
    for (; s; s = s->next) {
        if (s->dropped)
            continue;
        if (s->opened) {
            put_list(out, k, s->bodies[0], depth);
            continue;
        }
        indent(out, depth);
        put_statement(out, k, s, depth);
    }
}

static void put_declaration(FILE *out, const struct kernel *k, unsigned which)
{
    const struct variable *v = &k->variables[which];
    indent(out, 1);
    put_type(out, v->type);
    fputc(' ', out);
    put_variable(out, k, which, NULL);
    if (v->count > 1) {
        fprintf(out, "[%u] = {", v->count);
        for (unsigned i = 0; i < v->count; i++)
            fprintf(out, "%s%lld", i ? ", " : "", (long long)v->start);
        fputc('}', out);
    } else {
        fprintf(out, " = %lld", (long long)v->start);
    }
    fputs(";\n", out);
}

/* Folds a variable into the result: each lane of each element. */
static void put_dump(FILE *out, const struct kernel *k, unsigned which)
{
    const struct variable *v = &k->variables[which];
    for (unsigned i = 0; i < v->count; i++)
        for (unsigned lane = 0; lane < v->type.lanes; lane++) {
            fputs("    h = h * 31u + (uint)(int)", out);
            put_variable(out, k, which, NULL);
            if (v->count > 1)
                fprintf(out, "[%u]", i);
            if (v->type.lanes > 1)
                fprintf(out, ".s%x", lane);
            fputs(";\n", out);
        }
}

void print_preamble(FILE *out)
{
    static const char *const widths[] = {"", "2", "3", "4", "8", "16"};
    fputs("struct pair { int m0; long m1; uint m2[4]; int4 m3; float m4; };\n", out);
    for (unsigned i = 0; i < 6; i++)
        fprintf(out,
                "float%s __attribute__((overloadable)) fold(float%s x) "
                "{ return x - 4096.0f * trunc(x * (1.0f / 4096.0f)); }\n",
                widths[i], widths[i]);
}

void print_kernel(FILE *out, const struct kernel *k)
{
    const uint64_t *size = k->shapes[0].local;
    if (k->size_required)
        fprintf(out, "__attribute__((reqd_work_group_size(%u, %u, %u)))\n", (unsigned)size[0],
                (unsigned)size[1], (unsigned)size[2]);
    fprintf(out,
            "kernel void k%llu(global const int *in, global int *out, global int *rows, "
            "global int *columns,\n                global uint *cells, uint n, "
            "local int *shared0)\n{\n",
            (unsigned long long)k->seed);
    fprintf(out, "    local int shared1[%u];\n    local uint counts0[16], counts1[16];\n",
            MAX_ITEMS);
    fprintf(out,
            "    local uchar pairs8[%u];\n    local uint pairs32[%u];\n"
            "    local ulong pairs64[%u];\n",
            2 * MAX_ITEMS, 2 * MAX_ITEMS, 2 * MAX_ITEMS);
    fputs("    const int lid = (int)((get_local_id(2) * get_local_size(1) + get_local_id(1)) * "
          "get_local_size(0) + get_local_id(0));\n"
          "    const int size = (int)(get_local_size(0) * get_local_size(1) * get_local_size(2));\n"
          "    const int items = (int)(get_global_size(0) * get_global_size(1) * "
          "get_global_size(2));\n"
          "    const int gid = (int)(((get_global_id(2) - get_global_offset(2)) * "
          "get_global_size(1) + get_global_id(1) - get_global_offset(1)) * get_global_size(0) + "
          "get_global_id(0) - get_global_offset(0));\n"
          "    struct pair one = {0}, two = {0};\n",
          out);
    for (unsigned v = 0; v < k->num_variables; v++)
        if (k->variables[v].place == PLACE_VARIABLE)
            put_declaration(out, k, v);
    put_list(out, k, k->body, 1);
    fputs("    uint h = 7;\n", out);
    for (unsigned v = 0; v < k->num_variables; v++)
        if (k->variables[v].dumped)
            put_dump(out, k, v);
    fputs("    out[gid] = (int)h;\n}\n", out);
}

void print_shape(FILE *out, const struct shape *shape)
{
    fprintf(out, "global %u %u %u, local %u %u %u, offset %u %u %u, n %u",
            (unsigned)shape->global[0], (unsigned)shape->global[1], (unsigned)shape->global[2],
            (unsigned)shape->local[0], (unsigned)shape->local[1], (unsigned)shape->local[2],
            (unsigned)shape->offset[0], (unsigned)shape->offset[1], (unsigned)shape->offset[2],
            shape->n);
}
