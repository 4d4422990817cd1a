/* Makes a kernel smaller (kernel.h). Any edit leaves a kernel that ends and has no races: loops,
 * indices and barriers carry their bounds and their company with them. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

static bool reaches_expression(const struct expression *from, const struct expression *sought)
{
    if (!from || from == sought)
        return from == sought;
    for (unsigned i = 0; i < 3; i++)
        if (reaches_expression(from->kids[i], sought))
            return true;
    return false;
}

/* Whether the statement or the expression still shows in the text. */
static bool shows(const struct statement *s, const struct statement *statement,
                  const struct expression *expression)
{
    for (; s; s = s->next) {
        if (s->dropped)
            continue;
        if (s == statement)
            return true;
        for (unsigned i = 0; i < 3 && !s->opened; i++)
            if (expression && reaches_expression(s->kids[i], expression))
                return true;
        for (unsigned b = 0; b < MAX_BODIES; b++)
            if ((b == 0 || !s->opened) && shows(s->bodies[b], statement, expression))
                return true;
    }
    return false;
}

static bool has_jump_to(const struct statement *s, unsigned label)
{
    for (; s; s = s->next) {
        if (s->dropped)
            continue;
        if (s->kind == GOTO && s->which == label)
            return true;
        for (unsigned b = 0; b < MAX_BODIES; b++)
            if ((b == 0 || !s->opened) && has_jump_to(s->bodies[b], label))
                return true;
    }
    return false;
}

static bool can_open(const struct statement *s)
{
    if (s->opened)
        return false;
    return s->kind == BRANCH || (s->kind == LABELLED && !has_jump_to(s->bodies[0], s->which));
}

static bool is_zero(const struct expression *e)
{
    return e->operation == CONSTANT && e->number == 0;
}

bool edit_fits(const struct kernel *kernel, char what, unsigned number)
{
    if (what == 'v')
        return number < kernel->num_variables && kernel->variables[number].dumped;
    if (what == 'd' || what == 'u') {
        if (number >= kernel->num_statements)
            return false;
        const struct statement *s = kernel->statements[number];
        return shows(kernel->body, s, NULL) && (what == 'd' || can_open(s));
    }
    if (number >= kernel->num_expressions)
        return false;
    const struct expression *e = kernel->expressions[number];
    if (!shows(kernel->body, NULL, e))
        return false;
    if (what == 'z')
        return !is_zero(e) && !(e->operation == SPLAT && is_zero(e->kids[0]));
    if (what < 'a' || what > 'c')
        return false;
    const struct expression *kid = e->kids[what - 'a'];
    return kid && kid->type.base == e->type.base && kid->type.lanes == e->type.lanes;
}

static void make_zero(struct kernel *kernel, struct expression *e)
{
    struct type type = e->type;
    *e = (struct expression){.operation = CONSTANT, .type = type, .uniform = true};
    if (type.lanes == 1)
        return;
    struct expression *zero = malloc(sizeof(*zero));
    kernel->expressions =
        realloc(kernel->expressions, (kernel->num_expressions + 1) * sizeof(*kernel->expressions));
    if (!zero || !kernel->expressions)
        abort();
    kernel->expressions[kernel->num_expressions++] = zero;
    *zero = *e;
    zero->type.lanes = 1;
    e->operation = SPLAT;
    e->kids[0] = zero;
}

static void edit(struct kernel *kernel, char what, unsigned number)
{
    if (!edit_fits(kernel, what, number))
        return;
    switch (what) {
    case 'v':
        kernel->variables[number].dumped = false;
        break;
    case 'd':
        kernel->statements[number]->dropped = true;
        break;
    case 'u':
        kernel->statements[number]->opened = true;
        break;
    case 'z':
        make_zero(kernel, kernel->expressions[number]);
        break;
    default: {
        struct expression *e = kernel->expressions[number];
        struct expression kid = *e->kids[what - 'a'];
        *e = kid;
        break;
    }
    }
}

void kernel_edit(struct kernel *kernel, const char *edits)
{
    while (*edits) {
        char *end;
        char what = *edits;
        unsigned number = (unsigned)strtoul(edits + 1, &end, 10);
        edit(kernel, what, number);
        edits = *end == ',' ? end + 1 : end;
        if (end == edits && *edits != what)
            continue;
    }
}
