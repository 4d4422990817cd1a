/* What a kernel must compute, found by walking its tree for each work-item, with a copy of all
 * variables each. A work-item is a fiber that gives way at barriers; nothing is known here of
 * uniform values, regions or vectors of work-items. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_BYTES 65536u
#define MOST_STEPS 20000u /* statements of one work-item */
#define MOST_ALL 3000000u /* of all: some tenths of a second */

/* Whole numbers: an int's sign extended, a uint's not, a float's as it is. */
struct value {
    int64_t lane[MAX_LANES];
};

enum status { GO_ON, BROKEN, CONTINUED, RETURNED, JUMPED };

struct item {
    ucontext_t context;
    struct value *frame;
    uint64_t local[3];
    unsigned linear;
    unsigned steps;
    unsigned label; /* of a jump on its way */
    bool ended;
};

static struct {
    const struct kernel *kernel;
    const struct shape *shape;
    struct results *results;
    int32_t inputs[INPUTS];
    uint64_t group[3], size[3];
    unsigned items, running;
    unsigned all_steps;
    bool too_long;
    struct item item[MAX_ITEMS];
    int32_t shared[SHARED_ARRAYS][MAX_ITEMS];
    uint64_t pairs[3][2 * MAX_ITEMS]; /* of 8, 32 and 64 bits */
    uint32_t counts[COUNT_ARRAYS][COUNTS];
    int64_t operands[MAX_ITEMS];
    ucontext_t scheduler;
    char *stacks;
} now;

void fill_inputs(int32_t inputs[INPUTS])
{
    for (unsigned i = 0; i < INPUTS / 2; i++)
        inputs[i] = (int32_t)((i * 2654435761u >> 9) % 257) - (i % 5 == 0 ? 120 : 0);
    for (unsigned i = INPUTS / 2; i < INPUTS; i++)
        inputs[i] = 1;
}

static int64_t wrapped(enum base base, uint64_t bits)
{
    return base == BASE_INT    ? (int32_t)(uint32_t)bits
           : base == BASE_UINT ? (int64_t)(uint32_t)bits
                               : (int64_t)bits;
}

static bool is_less(enum base base, int64_t a, int64_t b)
{
    return base == BASE_ULONG ? (uint64_t)a < (uint64_t)b : a < b;
}

static int64_t binary(enum operation operation, enum base base, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b, divisor = (y & 15) + 1;
    if (base == BASE_FLOAT && operation <= MUL)
        return (operation == ADD ? a + b : operation == SUB ? a - b : a * b) % 4096;
    switch (operation) {
    case ADD:
        return wrapped(base, x + y);
    case SUB:
        return wrapped(base, x - y);
    case MUL:
        return wrapped(base, x * y);
    case MIN:
        return is_less(base, b, a) ? b : a;
    case MAX:
        return is_less(base, a, b) ? b : a;
    case AND:
        return a & b;
    case OR:
        return a | b;
    case XOR:
        return a ^ b;
    case SHL:
        return wrapped(base, x << (y & 31));
    case SHR:
        return base == BASE_ULONG ? (int64_t)(x >> (y & 31)) : a >> (y & 31);
    case DIV:
        return base == BASE_ULONG ? (int64_t)(x / divisor) : a / (int64_t)divisor;
    case REM:
        return base == BASE_ULONG ? (int64_t)(x % divisor) : a % (int64_t)divisor;
    default:
        abort();
    }
}

static int64_t converted(enum base from, enum base to, int64_t a)
{
    return to == BASE_FLOAT     ? a & 1023
           : from == BASE_FLOAT ? wrapped(to, (uint64_t)a)
                                : wrapped(to, (uint64_t)a);
}

static struct value evaluate(struct item *item, const struct expression *e);

static int64_t scalar(struct item *item, const struct expression *e)
{
    return evaluate(item, e).lane[0];
}

static uint64_t linear_global(const struct item *item)
{
    const uint64_t *global = now.shape->global, *local = now.shape->local;
    uint64_t at[3];
    for (unsigned d = 0; d < 3; d++)
        at[d] = now.group[d] * local[d] + item->local[d];
    return (at[2] * global[1] + at[1]) * global[0] + at[0];
}

static int64_t identity(const struct item *item, unsigned id)
{
    const struct shape *shape = now.shape;
    switch ((enum id)id) {
    case ID_LINEAR_LOCAL:
        return item->linear;
    case ID_LOCAL_0:
    case ID_LOCAL_1:
    case ID_LOCAL_2:
        return (int64_t)item->local[id - ID_LOCAL_0];
    case ID_LINEAR_GLOBAL:
        return (int64_t)linear_global(item);
    case ID_GLOBAL_0:
    case ID_GLOBAL_1:
        id -= ID_GLOBAL_0;
        return (int64_t)(shape->offset[id] + now.group[id] * shape->local[id] + item->local[id]);
    case ID_GROUP_0:
    case ID_GROUP_1:
    case ID_GROUP_2:
        return (int64_t)now.group[id - ID_GROUP_0];
    case ID_ITEMS:
        return now.items;
    case ID_LOCAL_SIZE_0:
        return (int64_t)now.size[0];
    case ID_ENQUEUED_SIZE_0:
        return (int64_t)shape->local[0];
    case ID_NUM_GROUPS_0:
        return (int64_t)((shape->global[0] + shape->local[0] - 1) / shape->local[0]);
    case ID_GLOBAL_SIZE_0:
        return (int64_t)shape->global[0];
    case ID_OFFSET_0:
        return (int64_t)shape->offset[0];
    case ID_WORK_DIM:
        return shape->dimensions;
    case ID_N:
        return shape->n;
    case NUM_IDS:
        break;
    }
    abort();
}

/* The place of an element, which for global memory too is in the frame until the end. */
static struct value *place_of(struct item *item, unsigned which, const struct expression *index)
{
    const struct variable *v = &now.kernel->variables[which];
    unsigned at = index ? (unsigned)scalar(item, index) & (v->count - 1) : 0;
    return &item->frame[v->offset + at];
}

static struct value evaluate_lanes(struct item *item, const struct expression *e)
{
    struct value a = evaluate(item, e->kids[0]), b = {{0}}, c = {{0}}, result = {{0}};
    enum base base = e->type.base;
    if (e->kids[1])
        b = evaluate(item, e->kids[1]);
    if (e->kids[2])
        c = evaluate(item, e->kids[2]);
    for (unsigned i = 0; i < e->type.lanes; i++)
        switch (e->operation) {
        case BLEND:
            result.lane[i] = is_less(base, a.lane[i], b.lane[i]) ? a.lane[i] : c.lane[i];
            break;
        case NARROW8:
            result.lane[i] = wrapped(base, (uint64_t)(int8_t)(uint8_t)a.lane[i]);
            break;
        case NARROW16:
            result.lane[i] = wrapped(base, (uint64_t)(int16_t)(uint16_t)a.lane[i]);
            break;
        case CONVERT:
            result.lane[i] = converted(e->kids[0]->type.base, base, a.lane[i]);
            break;
        case SPLAT:
            result.lane[i] = a.lane[0];
            break;
        case SWIZZLE:
            result.lane[i] = a.lane[e->order[i]];
            break;
        default:
            result.lane[i] = binary(e->operation, base, a.lane[i], b.lane[i]);
            break;
        }
    return result;
}

static struct value evaluate(struct item *item, const struct expression *e)
{
    struct value result;
    enum base kid = e->kids[0] ? e->kids[0]->type.base : BASE_INT;
    result.lane[0] = 0;
    switch (e->operation) {
    case CONSTANT:
        result.lane[0] = e->number;
        return result;
    case VARIABLE:
    case ELEMENT:
        return *place_of(item, e->which, e->kids[0]);
    case INPUT:
        result.lane[0] = now.inputs[scalar(item, e->kids[0]) & 255];
        return result;
    case SHARED:
        result.lane[0] = now.shared[e->which][(uint32_t)scalar(item, e->kids[0]) % now.items];
        return result;
    case COUNTED:
        result.lane[0] = now.counts[e->which][scalar(item, e->kids[0]) & 15];
        return result;
    case ID:
        result.lane[0] = identity(item, e->which);
        return result;
    case DISGUISE:
        result.lane[0] = wrapped(BASE_INT, (uint64_t)scalar(item, e->kids[0]) + 1);
        return result;
    case LESS:
        result.lane[0] = is_less(kid, scalar(item, e->kids[0]), scalar(item, e->kids[1]));
        return result;
    case EQUAL:
        result.lane[0] = scalar(item, e->kids[0]) == scalar(item, e->kids[1]);
        return result;
    case SELECT:
        return evaluate(item, e->kids[scalar(item, e->kids[0]) ? 1 : 2]);
    case LANE:
        result.lane[0] = evaluate(item, e->kids[0]).lane[e->which];
        return result;
    default:
        return evaluate_lanes(item, e);
    }
}

static void wait_for_others(void)
{
    swapcontext(&now.item[now.running].context, &now.scheduler);
}

static uint32_t combined(enum commuting commuting, uint32_t a, uint32_t b)
{
    switch (commuting) {
    case ADDS:
        return a + b;
    case ORS:
        return a | b;
    case XORS:
        return a ^ b;
    case ANDS:
        return a & b;
    case MAXES:
        return a > b ? a : b;
    case MINS:
        return a < b ? a : b;
    }
    abort();
}

static int64_t joined(const struct statement *s, enum base base, int64_t a, int64_t b)
{
    return binary(s->commuting == ADDS ? ADD : s->commuting == MAXES ? MAX : MIN, base, a, b);
}

static int64_t neutral(const struct statement *s, enum base base)
{
    static const int64_t least[] = {INT32_MIN, 0, INT64_MIN, 0};
    static const int64_t most[] = {INT32_MAX, UINT32_MAX, INT64_MAX, -1};
    return s->commuting == ADDS ? 0 : s->commuting == MAXES ? least[base] : most[base];
}

static void collect(struct item *item, const struct statement *s)
{
    enum base base = now.kernel->variables[s->which].type.base;
    int64_t result = neutral(s, base), count = 0;
    unsigned from = (unsigned)((uint32_t)scalar(item, s->kids[1]) % now.size[0]);
    now.operands[item->linear] = scalar(item, s->kids[0]);
    wait_for_others();
    unsigned end = s->collective == SCAN_INCLUSIVE   ? item->linear + 1
                   : s->collective == SCAN_EXCLUSIVE ? item->linear
                                                     : now.items;
    for (unsigned i = 0; i < end; i++) {
        result = joined(s, base, result, now.operands[i]);
        count += now.operands[i] != 0;
    }
    if (s->collective == BROADCAST)
        result = now.operands[from];
    else if (s->collective == ANY)
        result = count != 0;
    else if (s->collective == ALL)
        result = count == now.items;
    wait_for_others();
    place_of(item, s->which, NULL)->lane[0] = result;
}

static enum status run_list(struct item *item, const struct statement *s);

static int64_t *counter(struct item *item, const struct statement *s)
{
    return &place_of(item, s->which, NULL)->lane[0];
}

/* True where the loop ends; *status is then what it passes on. */
static bool leaves(enum status *status)
{
    if (*status == GO_ON || *status == CONTINUED)
        return false;
    if (*status == BROKEN)
        *status = GO_ON;
    return true;
}

static bool goes_round(struct item *item, const struct statement *s)
{
    int64_t *i = counter(item, s);
    if (s->kind == FOR)
        return *i < (scalar(item, s->kids[0]) & s->other);
    if (!scalar(item, s->kids[0]))
        return false;
    return s->kind == WHILE ? (*i)++ < s->other : ++*i < s->other;
}

static enum status loop(struct item *item, const struct statement *s)
{
    enum status status = GO_ON;
    *counter(item, s) = 0;
    bool more = s->kind == DO || goes_round(item, s);
    while (more) {
        status = run_list(item, s->bodies[0]);
        if (leaves(&status))
            return status;
        if (s->kind == FOR)
            ++*counter(item, s);
        more = goes_round(item, s);
    }
    return GO_ON;
}

static enum status stride(struct item *item, const struct statement *s)
{
    int64_t step =
        s->step >= STRIDE_CONSTANT ? (int64_t)s->step - STRIDE_CONSTANT : identity(item, s->step);
    for (*counter(item, s) = identity(item, s->start);; *counter(item, s) += step) {
        int64_t bound = (scalar(item, s->kids[0]) & STRIDE_TURNS) * step +
                        (scalar(item, s->kids[1]) & s->other) + s->inclusive;
        if (*counter(item, s) >= bound)
            return GO_ON;
        enum status status = run_list(item, s->bodies[0]);
        if (leaves(&status))
            return status;
    }
}

static enum status cycle(struct item *item, const struct statement *s)
{
    *counter(item, s) = 0;
    bool skips = scalar(item, s->kids[0]) != 0;
    for (;;) {
        enum status status = skips ? GO_ON : run_list(item, s->bodies[0]);
        if (status == GO_ON)
            status = run_list(item, s->bodies[1]);
        if (status != GO_ON)
            return status;
        ++*counter(item, s);
        if (*counter(item, s) >= s->other)
            return GO_ON;
        if (scalar(item, s->kids[1]))
            skips = false;
        else if (scalar(item, s->kids[2]))
            skips = true;
        else
            return GO_ON;
    }
}

static enum status choose_case(struct item *item, const struct statement *s)
{
    unsigned b = (unsigned)scalar(item, s->kids[0]) & 3;
    for (bool more = true; more && b < MAX_BODIES; b++) {
        enum status status = run_list(item, s->bodies[b]);
        if (status != GO_ON)
            return status == BROKEN ? GO_ON : status;
        more = s->falls >> b & 1;
    }
    return GO_ON;
}

static enum status exchange(struct item *item, const struct statement *s)
{
    wait_for_others();
    now.shared[s->which][item->linear] = (int32_t)scalar(item, s->kids[0]);
    wait_for_others();
    return run_list(item, s->bodies[0]);
}

static uint64_t *pair(unsigned bits, uint64_t at)
{
    return &now.pairs[bits == 8 ? 0 : bits == 32 ? 1 : 2][at];
}

/* Elements are whole numbers of 64 bits here, cut to their width when they are written. */
static void put_pair(const struct statement *s, uint64_t at, uint64_t value)
{
    *pair(s->bits, at) = s->bits == 64 ? value : value & ((UINT64_C(1) << s->bits) - 1);
}

static void take_step(const struct statement *s, unsigned step, uint64_t p)
{
    uint64_t distance = UINT64_C(1) << s->steps[step].distance, items = now.items;
    uint64_t i = 2 * p - (p & (distance - 1)), a, b;
    switch (s->steps[step].what) {
    case STEP_SORT:
    case STEP_BUTTERFLY:
    case STEP_DIVIDED:
        if (i + distance >= 2 * items)
            return;
        a = *pair(s->bits, i);
        b = *pair(s->bits, i + distance);
        if (s->steps[step].what == STEP_SORT) {
            bool rises = i & (4 * distance);
            put_pair(s, i, (a < b) == rises ? a : b);
            put_pair(s, i + distance, (a < b) == rises ? b : a);
        } else {
            put_pair(s, i, a + b);
            put_pair(s, i + distance, a - b);
        }
        return;
    case STEP_SIDE:
        a = *pair(s->bits, 2 * p);
        b = *pair(s->bits, 2 * p + 1);
        put_pair(s, 2 * p, a ^ b);
        put_pair(s, 2 * p + 1, a + b * 3);
        return;
    case STEP_LEFT:
        a = p >= distance ? *pair(s->bits, p - distance) : 0;
        wait_for_others();
        put_pair(s, p, *pair(s->bits, p) + a);
        return;
    case STEP_HALF:
        if (p < distance && p + distance < 2 * items)
            put_pair(s, p, *pair(s->bits, p) + *pair(s->bits, p + distance));
        return;
    case STEP_BIT:
        if (p & distance)
            put_pair(s, p, *pair(s->bits, p) * 3 + 1);
        else if (p % 3 == 1)
            put_pair(s, p + items, *pair(s->bits, p + items) ^ p);
        return;
    case STEP_REVERSE:
        a = *pair(s->bits, items - 1 - p);
        wait_for_others();
        put_pair(s, p, a);
        return;
    case STEP_CROSS:
    case NUM_STEPS:
        i = p ^ distance;
        a = *pair(s->bits, i < 2 * items ? i : p);
        wait_for_others();
        put_pair(s, p, a);
        return;
    }
}

static void partners(struct item *item, const struct statement *s)
{
    uint64_t p = item->linear;
    wait_for_others();
    put_pair(s, p, (uint64_t)scalar(item, s->kids[0]));
    put_pair(s, p + now.items, p * 7);
    for (unsigned step = 0; step < s->num_steps; step++) {
        wait_for_others();
        take_step(s, step, p);
    }
    wait_for_others();
    uint64_t sum = *pair(s->bits, p) + *pair(s->bits, p + now.items) * 31;
    place_of(item, s->which, NULL)->lane[0] = (int32_t)sum;
}

static enum status count_phase(struct item *item, const struct statement *s)
{
    bool ones = s->commuting == ANDS || s->commuting == MINS;
    wait_for_others();
    for (unsigned c = item->linear; c < COUNTS; c += now.items)
        now.counts[s->which][c] = ones ? UINT32_MAX : 0;
    wait_for_others();
    enum status status = run_list(item, s->bodies[0]);
    if (status != GO_ON)
        return status;
    wait_for_others();
    return run_list(item, s->bodies[1]);
}

static enum status jump(struct item *item, const struct statement *s, enum status status)
{
    if (!scalar(item, s->kids[0]))
        return GO_ON;
    item->label = s->which;
    return status;
}

static void assign(struct item *item, const struct statement *s)
{
    struct value value = evaluate(item, s->kids[1]);
    struct value *place = place_of(item, s->which, s->kids[0]);
    if (s->lane < 0)
        *place = value;
    else
        place->lane[s->lane] = value.lane[0];
}

static void sum_in_memory(struct item *item, const struct statement *s)
{
    const struct variable *variable = &now.kernel->variables[s->which];
    struct value *elements = &item->frame[variable->offset];
    int64_t at = scalar(item, s->kids[0]) & (variable->count - 1);
    int64_t turns = scalar(item, s->kids[1]) & s->other;
    int64_t from = (scalar(item, s->kids[2]) & 255) + SUM_MIDDLE;
    for (int64_t turn = 0; turn < turns; turn++) {
        uint32_t sum = (uint32_t)elements[at].lane[0] * s->start +
                       (uint32_t)now.inputs[from + turn * SUM_STEP(s)];
        if (s->inclusive)
            sum += (uint32_t)elements[turn].lane[0];
        elements[at].lane[0] = (int32_t)sum;
    }
}

static void copy_structure(struct item *item, bool to_second)
{
    const struct variable *variables = now.kernel->variables;
    for (unsigned v = 0; v < now.kernel->num_variables; v++)
        for (unsigned w = 0; w < now.kernel->num_variables; w++)
            if (variables[v].place == (to_second ? PLACE_SECOND : PLACE_FIRST) &&
                variables[w].place == (to_second ? PLACE_FIRST : PLACE_SECOND) &&
                variables[v].member == variables[w].member)
                memcpy(&item->frame[variables[v].offset], &item->frame[variables[w].offset],
                       variables[v].count * sizeof(struct value));
}

static enum status run_statement(struct item *item, const struct statement *s)
{
    enum status status;
    uint32_t *cell;
    switch (s->kind) {
    case ASSIGN:
        assign(item, s);
        return GO_ON;
    case CHOOSE:
        *place_of(item, scalar(item, s->kids[0]) ? s->which : s->other, NULL) =
            evaluate(item, s->kids[1]);
        return GO_ON;
    case COPY:
        copy_structure(item, s->which);
        return GO_ON;
    case BARRIER:
        wait_for_others();
        return GO_ON;
    case EXCHANGE:
        return exchange(item, s);
    case PARTNERS:
        partners(item, s);
        return GO_ON;
    case COUNT:
        return count_phase(item, s);
    case COUNT_ONE:
        cell = &now.counts[s->which][scalar(item, s->kids[0]) & 15];
        *cell = combined(s->commuting, *cell, (uint32_t)scalar(item, s->kids[1]));
        return GO_ON;
    case CELL:
        cell = &now.results->cells[s->which];
        *cell = combined(s->commuting, *cell, (uint32_t)scalar(item, s->kids[0]));
        return GO_ON;
    case COLLECT:
        collect(item, s);
        return GO_ON;
    case BRANCH:
        return run_list(item, s->bodies[scalar(item, s->kids[0]) ? 0 : 1]);
    case SWITCH:
        return choose_case(item, s);
    case SUM:
        sum_in_memory(item, s);
        return GO_ON;
    case STRIDE:
        return stride(item, s);
    case FOR:
    case WHILE:
    case DO:
        return loop(item, s);
    case BREAK:
        return jump(item, s, BROKEN);
    case CONTINUE:
        return jump(item, s, CONTINUED);
    case RETURN:
        return jump(item, s, RETURNED);
    case GOTO:
        return jump(item, s, JUMPED);
    case LABELLED:
        status = run_list(item, s->bodies[0]);
        return status == JUMPED && item->label == s->which ? GO_ON : status;
    case CYCLE:
        return cycle(item, s);
    }
    abort();
}

static enum status run_list(struct item *item, const struct statement *s)
{
    for (; s; s = s->next) {
        if (s->dropped)
            continue;
        if (++item->steps > MOST_STEPS || ++now.all_steps > MOST_ALL)
            now.too_long = true;
        if (now.too_long) /* this work-item never runs on */
            for (;;)
                wait_for_others();
        enum status status = s->opened ? run_list(item, s->bodies[0]) : run_statement(item, s);
        if (status != GO_ON)
            return status;
    }
    return GO_ON;
}

static void dump(const struct item *item)
{
    const struct kernel *k = now.kernel;
    uint32_t h = 7;
    for (unsigned v = 0; v < k->num_variables; v++) {
        const struct variable *variable = &k->variables[v];
        for (unsigned i = 0; variable->dumped && i < variable->count; i++)
            for (unsigned lane = 0; lane < variable->type.lanes; lane++)
                h = h * 31 + (uint32_t)item->frame[variable->offset + i].lane[lane];
    }
    now.results->out[linear_global(item)] = (int32_t)h;
}

static void run_item(void)
{
    struct item *item = &now.item[now.running];
    uint64_t at = linear_global(item);
    if (run_list(item, now.kernel->body) != RETURNED)
        dump(item);
    for (unsigned v = 0; v < now.kernel->num_variables; v++) {
        const struct variable *variable = &now.kernel->variables[v];
        for (unsigned i = 0; i < variable->count; i++) {
            int32_t value = (int32_t)item->frame[variable->offset + i].lane[0];
            if (variable->place == PLACE_ROW)
                now.results->rows[at * ROW_ELEMENTS + i] = value;
            if (variable->place == PLACE_COLUMN)
                now.results->columns[i * now.results->items + at] = value;
        }
    }
    item->ended = true;
}

static void start_item(unsigned linear)
{
    const struct kernel *k = now.kernel;
    struct item *item = &now.item[linear];
    item->linear = linear;
    item->steps = 0;
    item->ended = false;
    item->local[0] = linear % now.size[0];
    item->local[1] = linear / now.size[0] % now.size[1];
    item->local[2] = linear / now.size[0] / now.size[1];
    item->frame = calloc(k->frame, sizeof(struct value));
    if (!item->frame)
        abort();
    for (unsigned v = 0; v < k->num_variables; v++)
        for (unsigned i = 0; i < k->variables[v].count; i++)
            for (unsigned lane = 0; lane < k->variables[v].type.lanes; lane++)
                item->frame[k->variables[v].offset + i].lane[lane] = k->variables[v].start;
    getcontext(&item->context);
    item->context.uc_stack.ss_sp = now.stacks + (size_t)linear * STACK_BYTES;
    item->context.uc_stack.ss_size = STACK_BYTES;
    item->context.uc_link = &now.scheduler;
    makecontext(&item->context, run_item, 0);
}

/* Last to first, as no compiler would put them. */
static void run_group(void)
{
    bool left = true;
    now.items = (unsigned)(now.size[0] * now.size[1] * now.size[2]);
    for (unsigned i = 0; i < now.items; i++)
        start_item(i);
    while (left && !now.too_long) {
        left = false;
        for (unsigned i = now.items; i-- > 0;) {
            if (now.item[i].ended)
                continue;
            now.running = i;
            swapcontext(&now.scheduler, &now.item[i].context);
            left |= !now.item[i].ended;
        }
    }
    for (unsigned i = 0; i < now.items; i++)
        free(now.item[i].frame);
}

static void *zeros(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        abort();
    return memory;
}

void results_init(struct results *results, const struct shape *shape)
{
    uint64_t items = shape->global[0] * shape->global[1] * shape->global[2];
    *results = (struct results){
        .out = zeros(items, sizeof(int32_t)),
        .rows = zeros(items * ROW_ELEMENTS, sizeof(int32_t)),
        .columns = zeros(items * COLUMN_ELEMENTS, sizeof(int32_t)),
        .items = items,
    };
    results->cells[ANDS] = results->cells[MINS] = UINT32_MAX;
}

void results_finish(struct results *results)
{
    free(results->out);
    free(results->rows);
    free(results->columns);
}

bool kernel_interpret(const struct kernel *kernel, const struct shape *shape,
                      struct results *results)
{
    uint64_t groups[3], count;
    now.kernel = kernel;
    now.shape = shape;
    now.results = results;
    now.all_steps = 0;
    now.too_long = false;
    fill_inputs(now.inputs);
    if (!now.stacks)
        now.stacks = malloc((size_t)MAX_ITEMS * STACK_BYTES);
    if (!now.stacks)
        abort();
    for (unsigned d = 0; d < 3; d++)
        groups[d] = (shape->global[d] + shape->local[d] - 1) / shape->local[d];
    count = groups[0] * groups[1] * groups[2];
    for (uint64_t g = 0; g < count && !now.too_long; g++) {
        now.group[0] = g % groups[0];
        now.group[1] = g / groups[0] % groups[1];
        now.group[2] = g / groups[0] / groups[1];
        for (unsigned d = 0; d < 3; d++) {
            uint64_t left = shape->global[d] - now.group[d] * shape->local[d];
            now.size[d] = left < shape->local[d] ? left : shape->local[d];
        }
        run_group();
    }
    return !now.too_long;
}
