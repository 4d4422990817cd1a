/* From a seed to a kernel (kernel.h). `together` says that all work-items of a group come here or
 * none: there barriers may stand and uniform variables be written; a jump under a condition that
 * differs is then allowed only to a target that work-items may reach apart. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH 5u /* of nested statements */

struct generator {
    struct kernel *kernel;
    uint64_t state;
    int budget; /* statements left to make */
    unsigned readable_shared, busy_shared;
    unsigned readable_counts, countable, busy_counts;
    enum commuting counting[COUNT_ARRAYS];
};

/* Where a list of statements stands. */
struct scope {
    bool together;
    bool may_return; /* nothing follows for which all must come */
    bool in_loop, loop_together;
    bool can_break, break_together;
    unsigned depth, loops;
    unsigned labels[DEPTH + 1], num_labels;
    bool label_together[DEPTH + 1];
};

static uint64_t draw(struct generator *g)
{
    uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static unsigned below(struct generator *g, unsigned limit)
{
    return (unsigned)(draw(g) % limit);
}

static bool chance(struct generator *g, unsigned in_100)
{
    return below(g, 100) < in_100;
}

static void *grow(void *list, unsigned count, size_t size)
{
    list = realloc(list, (count + 1) * size);
    if (!list)
        abort();
    return list;
}

static void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        abort();
    return memory;
}

static const struct type scalar_int = {BASE_INT, 1};

static struct expression *new_expression(struct generator *g, enum operation operation,
                                         struct type type, bool uniform)
{
    struct kernel *k = g->kernel;
    struct expression *e = allocate(sizeof(*e));
    *e = (struct expression){.operation = operation, .type = type, .uniform = uniform};
    k->expressions = grow(k->expressions, k->num_expressions, sizeof(e));
    k->expressions[k->num_expressions++] = e;
    return e;
}

static struct statement *new_statement(struct generator *g, enum kind kind)
{
    struct kernel *k = g->kernel;
    struct statement *s = allocate(sizeof(*s));
    *s = (struct statement){.kind = kind, .lane = -1};
    k->statements = grow(k->statements, k->num_statements, sizeof(s));
    k->statements[k->num_statements++] = s;
    return s;
}

static unsigned add_variable(struct generator *g, struct variable variable)
{
    struct kernel *k = g->kernel;
    if (!variable.count)
        variable.count = 1;
    variable.offset = k->frame;
    k->frame += variable.count;
    k->variables = grow(k->variables, k->num_variables, sizeof(variable));
    k->variables[k->num_variables] = variable;
    return k->num_variables++;
}

static bool same_type(struct type a, struct type b)
{
    return a.base == b.base && a.lanes == b.lanes;
}

enum wanted { WANT_ANY, WANT_UNIFORM, WANT_WRITABLE, WANT_PLAIN };

static bool is_candidate(const struct variable *v, struct type type, enum wanted wanted)
{
    if (!same_type(v->type, type))
        return false;
    switch (wanted) {
    case WANT_UNIFORM:
        return v->uniform;
    case WANT_WRITABLE:
        return !v->counter && !v->uniform;
    case WANT_PLAIN:
        return !v->counter && !v->uniform && v->count == 1;
    default:
        return true;
    }
}

/* A variable of the type, or -1. */
static int pick_variable(struct generator *g, struct type type, enum wanted wanted)
{
    int picked = -1;
    unsigned seen = 0;
    for (unsigned v = 0; v < g->kernel->num_variables; v++)
        if (is_candidate(&g->kernel->variables[v], type, wanted) && below(g, ++seen) == 0)
            picked = (int)v;
    return picked;
}

static struct expression *make(struct generator *g, struct type type, bool uniform, int depth);

static struct expression *constant(struct generator *g, struct type type)
{
    static const int64_t numbers[] = {0, 1, 2, 3, 5, 7, 8, 31, 64, 255, 1000, -1, -2, -100};
    struct expression *e;
    if (type.lanes > 1) {
        e = new_expression(g, SPLAT, type, true);
        e->kids[0] = constant(g, (struct type){type.base, 1});
        return e;
    }
    e = new_expression(g, CONSTANT, type, true);
    e->number = numbers[below(g, sizeof(numbers) / sizeof(numbers[0]))];
    if (type.base != BASE_FLOAT && chance(g, 10))
        e->number = (int64_t)draw(g);
    switch (type.base) {
    case BASE_INT:
        e->number = (int32_t)e->number;
        break;
    case BASE_UINT:
        e->number = (uint32_t)e->number;
        break;
    default:
        break;
    }
    return e;
}

static struct expression *identity(struct generator *g, bool uniform)
{
    struct expression *e = new_expression(g, ID, scalar_int, uniform);
    e->which = uniform         ? FIRST_UNIFORM_ID + below(g, NUM_IDS - FIRST_UNIFORM_ID)
               : chance(g, 70) ? ID_LINEAR_LOCAL + below(g, 2) * ID_LINEAR_GLOBAL
                               : below(g, FIRST_UNIFORM_ID);
    return e;
}

static struct expression *shared_read(struct generator *g, bool uniform, int depth)
{
    unsigned array = below(g, SHARED_ARRAYS);
    if (!(g->readable_shared >> array & 1))
        return identity(g, uniform);
    struct expression *e = new_expression(g, SHARED, scalar_int, uniform);
    e->which = array;
    e->kids[0] = make(g, scalar_int, uniform, depth - 1);
    return e;
}

static struct expression *variable_or_constant(struct generator *g, struct type type, bool uniform)
{
    int v = pick_variable(g, type, uniform ? WANT_UNIFORM : WANT_ANY);
    if (v < 0)
        return constant(g, type);
    const struct variable *variable = &g->kernel->variables[v];
    struct expression *e =
        new_expression(g, variable->count > 1 ? ELEMENT : VARIABLE, type, variable->uniform);
    e->which = (unsigned)v;
    if (e->operation == ELEMENT)
        e->kids[0] = chance(g, 50) ? constant(g, scalar_int) : make(g, scalar_int, uniform, 1);
    return e;
}

static struct expression *number(struct generator *g, int64_t value)
{
    struct expression *e = new_expression(g, CONSTANT, scalar_int, true);
    e->number = value;
    return e;
}

static struct expression *joined(struct generator *g, enum operation operation,
                                 struct expression *a, struct expression *b)
{
    struct expression *e = new_expression(g, operation, scalar_int, a->uniform && b->uniform);
    e->kids[0] = a;
    e->kids[1] = b;
    return e;
}

/* An id cut, or moved, at a stride that the launch knows and that is often a multiple of vectors:
 * 2 * id - (id & (stride - 1)), id ^ stride and the like. */
static struct expression *strip_index(struct generator *g)
{
    static const enum operation operations[] = {AND, AND, OR, XOR, SHR};
    enum operation operation = operations[below(g, 5)];
    struct expression *id = identity(g, false), *n = new_expression(g, ID, scalar_int, true);
    n->which = ID_N;
    if (operation != SHR)
        n = joined(g, SHL, n, number(g, 2 + below(g, 4)));
    if (operation == AND && chance(g, 60))
        n = joined(g, SUB, n, number(g, 1));
    struct expression *cut = joined(g, operation, id, n);
    if (chance(g, 50))
        cut = joined(g, chance(g, 50) ? SUB : ADD, joined(g, SHL, id, number(g, 1)), cut);
    return cut;
}

static struct expression *leaf(struct generator *g, struct type type, bool uniform, int depth)
{
    if (type.lanes == 1 && type.base == BASE_UINT && g->readable_counts && chance(g, 40)) {
        struct expression *e = new_expression(g, COUNTED, type, uniform);
        e->which = g->readable_counts & 1 ? 0 : 1;
        e->kids[0] = make(g, scalar_int, uniform, depth - 1);
        return e;
    }
    if (same_type(type, scalar_int)) {
        unsigned what = below(g, 100);
        if (what < 20)
            return identity(g, uniform);
        if (what < 35) {
            struct expression *e = new_expression(g, INPUT, type, uniform);
            e->kids[0] = !uniform && chance(g, 25) ? strip_index(g)
                                                   : make(g, scalar_int, uniform, depth - 1);
            return e;
        }
        if (what < 50 && depth > -2)
            return shared_read(g, uniform, depth);
    }
    return chance(g, 12) ? constant(g, type) : variable_or_constant(g, type, uniform);
}

static unsigned some_lanes(struct generator *g)
{
    static const unsigned lanes[] = {2, 3, 4, 8, 16};
    return lanes[below(g, 5)];
}

static struct expression *binary(struct generator *g, struct type type, bool uniform, int depth)
{
    unsigned count =
        type.base == BASE_FLOAT ? MAX - FIRST_BINARY + 1 : LAST_BINARY - FIRST_BINARY + 1;
    struct expression *e =
        new_expression(g, (enum operation)(FIRST_BINARY + below(g, count)), type, uniform);
    e->kids[0] = make(g, type, uniform, depth - 1);
    e->kids[1] = make(g, type, uniform, depth - 1);
    return e;
}

static struct expression *comparison(struct generator *g, bool uniform, int depth)
{
    struct type of = {(enum base)below(g, 5), 1};
    struct expression *e = new_expression(g, chance(g, 70) ? LESS : EQUAL, scalar_int, uniform);
    if (chance(g, 60))
        of = scalar_int;
    e->kids[0] = make(g, of, uniform, depth - 1);
    e->kids[1] = make(g, of, uniform, depth - 1);
    return e;
}

static struct expression *unary(struct generator *g, struct type type, bool uniform, int depth)
{
    unsigned what = below(g, 4);
    struct expression *e;
    if (type.lanes > 1 && what < 2) {
        e = new_expression(g, what ? SWIZZLE : SPLAT, type, uniform);
        for (unsigned i = 0; i < type.lanes; i++)
            e->order[i] = (uint8_t)below(g, type.lanes);
        type.lanes = what ? type.lanes : 1;
    } else if (type.lanes == 1 && what == 0) {
        struct type whole = {type.base, some_lanes(g)};
        e = new_expression(g, LANE, type, uniform);
        e->which = below(g, whole.lanes);
        type = whole;
    } else if (what == 2 && type.base != BASE_FLOAT) {
        e = new_expression(g, chance(g, 50) ? NARROW8 : NARROW16, type, uniform);
    } else {
        e = new_expression(g, CONVERT, type, uniform);
        type.base = (enum base)((type.base + 1 + below(g, 4)) % 5);
    }
    e->kids[0] = make(g, type, uniform, depth - 1);
    return e;
}

static struct expression *make(struct generator *g, struct type type, bool uniform, int depth)
{
    unsigned what = below(g, 100);
    if (depth <= 0 || what < 20)
        return leaf(g, type, uniform, depth);
    if (uniform && same_type(type, scalar_int) && what < 26) {
        struct expression *e = new_expression(g, DISGUISE, type, true);
        e->kids[0] = make(g, type, true, depth - 1);
        e->kids[1] = make(g, type, false, 1);
        return e;
    }
    if (what < 60)
        return binary(g, type, uniform, depth);
    if (what < 80)
        return unary(g, type, uniform, depth);
    if (what < 90 && same_type(type, scalar_int))
        return comparison(g, uniform, depth);
    struct expression *e =
        new_expression(g, type.lanes > 1 && chance(g, 50) ? BLEND : SELECT, type, uniform);
    e->kids[0] = make(g, e->operation == BLEND ? type : scalar_int, uniform, depth - 1);
    e->kids[1] = make(g, type, uniform, depth - 1);
    e->kids[2] = make(g, type, uniform, depth - 1);
    return e;
}

static struct expression *question(struct generator *g, bool uniform)
{
    return chance(g, 70) ? comparison(g, uniform, 2) : make(g, scalar_int, uniform, 2);
}

static struct type some_type(struct generator *g)
{
    struct type type = {(enum base)below(g, 5), 1};
    if (chance(g, 40))
        type.base = BASE_INT;
    if (chance(g, 20))
        type.lanes = some_lanes(g);
    return type;
}

static struct statement *assignment(struct generator *g, const struct scope *scope)
{
    struct statement *s = new_statement(g, ASSIGN);
    bool uniform = scope->together && chance(g, 35);
    int v = -1;
    for (unsigned tries = 0; tries < 50 && v < 0; tries++) {
        struct type type = uniform ? (struct type){(enum base)below(g, 3), 1} : some_type(g);
        v = pick_variable(g, type, uniform ? WANT_UNIFORM : WANT_WRITABLE);
        if (v >= 0 && g->kernel->variables[v].counter)
            v = -1;
    }
    if (v < 0)
        v = 0;
    const struct variable *variable = &g->kernel->variables[v];
    struct type type = variable->type;
    s->which = (unsigned)v;
    if (type.lanes > 1 && chance(g, 30)) {
        s->lane = (int)below(g, type.lanes);
        type.lanes = 1;
    }
    if (variable->count > 1)
        s->kids[0] = make(g, scalar_int, false, chance(g, 50) ? 1 : 2);
    s->kids[1] = make(g, type, variable->uniform, 3);
    /* A value that counts how often it is written, for what runs more or less often than it
     * should. */
    if (variable->uniform && chance(g, 60)) {
        struct expression *sum = new_expression(g, ADD, type, true);
        sum->kids[0] = new_expression(g, VARIABLE, type, true);
        sum->kids[0]->which = s->which;
        sum->kids[1] = s->kids[1];
        s->kids[1] = sum;
    }
    return s;
}

static struct statement *choice_of_two(struct generator *g)
{
    struct statement *s = new_statement(g, CHOOSE);
    struct type type = some_type(g);
    int one = pick_variable(g, type, WANT_PLAIN), two = pick_variable(g, type, WANT_PLAIN);
    for (unsigned tries = 0; tries < 4 && two == one; tries++)
        two = pick_variable(g, type, WANT_PLAIN);
    if (one < 0) {
        s->kind = COPY;
        s->which = below(g, 2);
        return s;
    }
    s->which = (unsigned)one;
    s->other = (unsigned)two;
    s->kids[0] = question(g, false);
    s->kids[1] = make(g, type, false, 2);
    return s;
}

static struct statement *list(struct generator *g, const struct scope *scope, unsigned length);

static struct scope inside(const struct scope *scope, bool together)
{
    struct scope inner = *scope;
    inner.together = together;
    inner.depth++;
    return inner;
}

static unsigned some_length(struct generator *g)
{
    return 1 + below(g, 4);
}

static struct statement *exchange(struct generator *g, const struct scope *scope)
{
    unsigned array = below(g, SHARED_ARRAYS), bit = 1u << array;
    if (g->busy_shared & bit) {
        struct statement *s = new_statement(g, BARRIER);
        s->which = below(g, 3);
        return s;
    }
    struct statement *s = new_statement(g, EXCHANGE);
    struct scope inner = inside(scope, true);
    s->which = array;
    s->kids[0] = make(g, scalar_int, false, 3);
    g->busy_shared |= bit;
    g->readable_shared |= bit;
    s->bodies[0] = list(g, &inner, some_length(g));
    g->busy_shared &= ~bit;
    g->readable_shared &= ~bit;
    return s;
}

static struct statement *count_phase(struct generator *g, const struct scope *scope)
{
    unsigned array = below(g, COUNT_ARRAYS), bit = 1u << array;
    if (g->busy_counts & bit)
        return exchange(g, scope);
    struct statement *s = new_statement(g, COUNT);
    struct scope inner = inside(scope, true);
    s->which = array;
    s->commuting = g->counting[array] = (enum commuting)below(g, CELLS);
    g->busy_counts |= bit;
    g->countable |= bit;
    s->bodies[0] = list(g, &inner, some_length(g));
    g->countable &= ~bit;
    g->readable_counts |= bit;
    s->bodies[1] = list(g, &inner, some_length(g));
    g->readable_counts &= ~bit;
    g->busy_counts &= ~bit;
    return s;
}

static struct statement *atomic_operation(struct generator *g)
{
    static const struct type type = {BASE_UINT, 1};
    struct statement *s;
    if (g->countable && chance(g, 80)) {
        s = new_statement(g, COUNT_ONE);
        s->which = g->countable & 1 ? 0 : 1;
        s->commuting = g->counting[s->which];
        s->kids[0] = make(g, scalar_int, false, 2);
        s->kids[1] = make(g, type, false, 2);
        return s;
    }
    s = new_statement(g, CELL);
    s->which = below(g, CELLS);
    s->commuting = (enum commuting)s->which;
    s->kids[0] = make(g, type, false, 2);
    return s;
}

static struct statement *collective(struct generator *g)
{
    struct statement *s = new_statement(g, COLLECT);
    s->collective = (enum collective)below(g, NUM_COLLECTIVES);
    bool question_of_all = s->collective == ANY || s->collective == ALL;
    bool uniform = question_of_all || s->collective == REDUCE || s->collective == BROADCAST;
    struct type type = {question_of_all ? BASE_INT : (enum base)below(g, 4), 1};
    int v = pick_variable(g, type, uniform && chance(g, 50) ? WANT_UNIFORM : WANT_PLAIN);
    if (v >= 0 && g->kernel->variables[v].counter)
        v = pick_variable(g, type, WANT_PLAIN);
    if (v < 0 || g->kernel->variables[v].counter) {
        s->kind = BARRIER;
        return s;
    }
    bool is_signed = type.base == BASE_INT || type.base == BASE_LONG;
    s->commuting = chance(g, 50) && !is_signed ? ADDS : chance(g, 50) ? MAXES : MINS;
    s->which = (unsigned)v;
    s->kids[0] = make(g, type, false, 2);
    s->kids[1] = make(g, scalar_int, true, 1);
    return s;
}

static struct statement *partners(struct generator *g)
{
    static const unsigned bits[] = {32, 32, 64, 8};
    struct statement *s = new_statement(g, PARTNERS);
    int v = pick_variable(g, scalar_int, WANT_PLAIN);
    if (v < 0) {
        s->kind = BARRIER;
        return s;
    }
    s->which = (unsigned)v;
    s->bits = bits[below(g, 4)];
    s->kids[0] = make(g, scalar_int, false, 2);
    s->num_steps = 1 + below(g, MAX_STEPS);
    for (unsigned i = 0; i < s->num_steps; i++) {
        s->steps[i].what = (enum step)below(g, NUM_STEPS);
        s->steps[i].distance = below(g, 10);
    }
    return s;
}

static struct statement *branch(struct generator *g, const struct scope *scope)
{
    struct statement *s = new_statement(g, BRANCH);
    bool together = scope->together && chance(g, 50);
    struct scope inner = inside(scope, together);
    s->kids[0] = question(g, together);
    s->bodies[0] = list(g, &inner, some_length(g));
    if (chance(g, 50))
        s->bodies[1] = list(g, &inner, some_length(g));
    return s;
}

static struct statement *switching(struct generator *g, const struct scope *scope)
{
    struct statement *s = new_statement(g, SWITCH);
    bool together = scope->together && chance(g, 50);
    struct scope inner = inside(scope, together);
    inner.can_break = true;
    inner.break_together = together;
    s->kids[0] = make(g, scalar_int, together, 2);
    s->falls = below(g, 16);
    for (unsigned b = 0; b < MAX_BODIES; b++)
        if (chance(g, 80))
            s->bodies[b] = list(g, &inner, 1 + below(g, 2));
    return s;
}

static unsigned new_counter(struct generator *g, bool uniform)
{
    g->kernel->num_counters++;
    return add_variable(
        g, (struct variable){
               .type = scalar_int, .uniform = uniform, .counter = true, .dumped = chance(g, 30)});
}

static struct statement *loop(struct generator *g, const struct scope *scope)
{
    static const enum kind kinds[] = {FOR, FOR, WHILE, DO};
    struct statement *s = new_statement(g, kinds[below(g, 4)]);
    bool together = scope->together && chance(g, 55);
    struct scope inner = inside(scope, together);
    inner.loops++;
    inner.in_loop = inner.can_break = true;
    inner.loop_together = inner.break_together = together;
    s->which = new_counter(g, together);
    s->other = s->kind == FOR ? (chance(g, 70) ? 3 : 7) : 1 + below(g, 6);
    s->kids[0] = s->kind == FOR ? make(g, scalar_int, together, 2) : question(g, together);
    s->bodies[0] = list(g, &inner, 1 + some_length(g));
    return s;
}

/* Work-items begin at their ids and go on in equal steps, as over an array or a tile. */
static struct statement *stride(struct generator *g, const struct scope *scope)
{
    static const unsigned starts[] = {ID_LINEAR_LOCAL, ID_LOCAL_0,       ID_LOCAL_0,
                                      ID_LOCAL_1,      ID_LINEAR_GLOBAL, ID_GLOBAL_0};
    static const unsigned steps[] = {ID_ITEMS,
                                     ID_LOCAL_SIZE_0,
                                     ID_GLOBAL_SIZE_0,
                                     STRIDE_CONSTANT + 4,
                                     STRIDE_CONSTANT + 16,
                                     STRIDE_CONSTANT + 64};
    static const enum base bases[] = {BASE_INT, BASE_INT, BASE_UINT, BASE_LONG, BASE_ULONG};
    struct statement *s = new_statement(g, STRIDE);
    struct scope inner = inside(scope, false);
    inner.loops++;
    inner.in_loop = inner.can_break = true;
    inner.loop_together = inner.break_together = false;
    s->which = new_counter(g, false);
    g->kernel->variables[s->which].type.base = bases[below(g, 5)];
    s->start = starts[below(g, 6)];
    s->step = steps[below(g, 6)];
    s->inclusive = chance(g, 20);
    s->other = s->start >= ID_LINEAR_GLOBAL ? 63 : 7;
    bool known = chance(g, 50);
    for (unsigned i = 0; i < 2; i++)
        s->kids[i] = known ? constant(g, scalar_int) : make(g, scalar_int, chance(g, 80), 2);
    s->bodies[0] = list(g, &inner, some_length(g));
    return s;
}

/* A loop that keeps a sum in memory, beside what it reads or over it. */
static struct statement *sum_in_memory(struct generator *g)
{
    struct statement *s = new_statement(g, SUM);
    unsigned place = chance(g, 50) ? PLACE_ROW : PLACE_COLUMN;
    while (g->kernel->variables[s->which].place != place)
        s->which++;
    s->inclusive = chance(g, 25);
    s->other = s->inclusive ? g->kernel->variables[s->which].count - 1 : SUM_TURNS;
    s->start = chance(g, 60) ? 1 : 5;
    s->step = chance(g, 60) ? 3 : below(g, 5);
    s->kids[0] = make(g, scalar_int, false, 1);
    s->kids[1] = make(g, scalar_int, chance(g, 80), 1);
    s->kids[2] = make(g, scalar_int, chance(g, 20), 2);
    return s;
}

static struct statement *cycle(struct generator *g, const struct scope *scope)
{
    struct statement *s = new_statement(g, CYCLE);
    bool together = scope->together && chance(g, 50);
    struct scope inner = inside(scope, together);
    inner.loops++;
    s->which = new_counter(g, together);
    s->other = 1 + below(g, 5);
    s->falls = g->kernel->num_labels++;
    for (unsigned i = 0; i < 3; i++)
        s->kids[i] = question(g, together);
    for (unsigned b = 0; b < 2; b++)
        s->bodies[b] = list(g, &inner, 1 + below(g, 2));
    return s;
}

static struct statement *labelled(struct generator *g, const struct scope *scope)
{
    struct statement *s = new_statement(g, LABELLED);
    struct scope inner = inside(scope, scope->together && chance(g, 60));
    s->which = g->kernel->num_labels++;
    inner.label_together[inner.num_labels] = inner.together;
    inner.labels[inner.num_labels++] = s->which;
    s->bodies[0] = list(g, &inner, 1 + some_length(g));
    return s;
}

/* A jump that the scope allows, or an assignment. */
static struct statement *jump(struct generator *g, const struct scope *scope)
{
    struct statement *s;
    unsigned what = below(g, 100), label = 0;
    bool apart; /* the target may be reached apart */
    enum kind kind;
    if (what < 35 && scope->can_break) {
        kind = BREAK;
        apart = !scope->break_together;
    } else if (what < 60 && scope->in_loop) {
        kind = CONTINUE;
        apart = !scope->loop_together;
    } else if (what < 90 && scope->num_labels) {
        kind = GOTO;
        label = below(g, scope->num_labels);
        apart = !scope->label_together[label];
        label = scope->labels[label];
    } else if (chance(g, scope->depth ? 50 : 20)) {
        kind = RETURN;
        apart = scope->may_return;
    } else {
        return assignment(g, scope);
    }
    if (!apart && !scope->together)
        return assignment(g, scope);
    s = new_statement(g, kind);
    s->which = label;
    s->kids[0] = question(g, !apart);
    return s;
}

static struct statement *statement(struct generator *g, const struct scope *scope)
{
    unsigned what = below(g, 100);
    bool deep = scope->depth >= DEPTH || g->budget <= 0;
    g->budget--;
    if (!deep && scope->together && scope->loops < 3 && chance(g, 8))
        return stride(g, scope);
    if (chance(g, 6))
        return sum_in_memory(g);
    if (what < 30 || (deep && what < 60))
        return assignment(g, scope);
    if (what < 35)
        return choice_of_two(g);
    if (what < 42)
        return atomic_operation(g);
    if (what < 50)
        return jump(g, scope);
    if (deep)
        return assignment(g, scope);
    if (what < 62 && scope->together)
        return exchange(g, scope);
    if (what < 66 && scope->together)
        return count_phase(g, scope);
    if (what < 69 && scope->together)
        return collective(g);
    if (what < 74 && scope->together)
        return partners(g);
    if (what < 80)
        return branch(g, scope);
    if (what < 84)
        return switching(g, scope);
    if (what < 88)
        return labelled(g, scope);
    if (scope->loops >= 3)
        return branch(g, scope);
    if (what < 90)
        return cycle(g, scope);
    return chance(g, 40) ? stride(g, scope) : loop(g, scope);
}

static struct statement *list(struct generator *g, const struct scope *scope, unsigned length)
{
    struct statement *first = NULL, **at = &first;
    for (unsigned i = 0; i < length; i++) {
        *at = statement(g, scope);
        at = &(*at)->next;
    }
    return first;
}

static void add_variables(struct generator *g)
{
    static const struct type members[] = {
        {BASE_INT, 1}, {BASE_LONG, 1}, {BASE_UINT, 1}, {BASE_INT, 4}, {BASE_FLOAT, 1}};
    for (unsigned place = PLACE_FIRST; place <= PLACE_SECOND; place++)
        for (unsigned m = 0; m < sizeof(members) / sizeof(members[0]); m++)
            add_variable(g, (struct variable){.type = members[m],
                                              .count = m == 2 ? 4 : 1,
                                              .place = (enum place)place,
                                              .member = m,
                                              .dumped = chance(g, 50)});
    add_variable(g,
                 (struct variable){.type = scalar_int, .count = ROW_ELEMENTS, .place = PLACE_ROW});
    add_variable(
        g, (struct variable){.type = scalar_int, .count = COLUMN_ELEMENTS, .place = PLACE_COLUMN});
    unsigned count = 5 + below(g, 7);
    for (unsigned i = 0; i < count; i++) {
        struct variable v = {
            .type = some_type(g), .dumped = chance(g, 60), .start = (int64_t)below(g, 100)};
        if (i >= 4 && chance(g, 25))
            v.count = v.type.lanes > 4 ? 2 : 1u << (1 + below(g, 3));
        if (i < 2)
            v.type = scalar_int;
        add_variable(g, v);
    }
    for (unsigned i = 0; i < 4; i++)
        add_variable(g, (struct variable){.type = {(enum base)(i % 3), 1},
                                          .uniform = true,
                                          .dumped = chance(g, 60),
                                          .start = (int64_t)below(g, 9)});
}

static const uint64_t locals[][3] = {{1, 1, 1},  {2, 1, 1},   {3, 1, 1},  {16, 1, 1}, {37, 1, 1},
                                     {64, 1, 1}, {256, 1, 1}, {64, 1, 1}, {16, 1, 1}, {1024, 1, 1},
                                     {8, 4, 1},  {16, 16, 1}, {1, 16, 1}, {5, 3, 1},  {4, 3, 2},
                                     {2, 2, 16}, {1, 1, 8},   {16, 2, 4}, {8, 1, 1},  {9, 1, 1}};

static void add_shapes(struct generator *g)
{
    struct kernel *k = g->kernel;
    const uint64_t *size = NULL;
    k->size_required = chance(g, 50);
    k->num_shapes = k->size_required ? 2 : MAX_SHAPES;
    for (unsigned i = 0; i < k->num_shapes; i++) {
        struct shape *shape = &k->shapes[i];
        if (!size || !k->size_required)
            size = locals[below(g, sizeof(locals) / sizeof(locals[0]))];
        shape->dimensions = size[2] > 1 ? 3 : size[1] > 1 ? 2 : 1;
        shape->n = below(g, 9);
        for (unsigned d = 0; d < 3; d++) {
            bool used = d < shape->dimensions;
            shape->local[d] = size[d];
            shape->global[d] = used ? size[d] * (1 + below(g, size[d] > 100 ? 2 : 3)) : 1;
            if (used && chance(g, 40))
                shape->global[d] -= below(g, (unsigned)size[d]);
            if (used && chance(g, 30))
                shape->offset[d] = below(g, 40);
        }
    }
}

void kernel_generate(struct kernel *kernel, uint64_t seed)
{
    struct generator g = {.kernel = kernel, .state = seed * UINT64_C(0x2545f4914f6cdd1d)};
    struct scope scope = {.together = true};
    *kernel = (struct kernel){.seed = seed};
    g.budget = 4 + (int)below(&g, 20);
    add_variables(&g);
    add_shapes(&g);
    /* First what all do together, then what each may leave at any point. */
    struct statement *first = chance(&g, 75) ? list(&g, &scope, 1 + below(&g, 5)) : NULL;
    if (chance(&g, 30)) {
        struct statement *rest = first;
        first = partners(&g);
        first->next = rest;
    }
    struct statement **end = &first;
    while (*end)
        end = &(*end)->next;
    scope.together = false;
    scope.may_return = true;
    if (!first || chance(&g, 50))
        *end = list(&g, &scope, 1 + below(&g, 5));
    kernel->body = first;
}

void kernel_finish(struct kernel *kernel)
{
    for (unsigned i = 0; i < kernel->num_expressions; i++)
        free(kernel->expressions[i]);
    for (unsigned i = 0; i < kernel->num_statements; i++)
        free(kernel->statements[i]);
    free(kernel->expressions);
    free(kernel->statements);
    free(kernel->variables);
    *kernel = (struct kernel){0};
}
