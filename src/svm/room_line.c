/* The line of commands that wait for room (room_line.h). */
#include "svm/room_line.h"

#include <stddef.h>

#include "svm/coherence.h"

void sp_room_line_add(struct sp_room_line *line, struct sp_coherence *coherence)
{
    struct sp_coherence *first = line->ranks;
    while (first && first->agents != coherence->agents)
        first = first->line.next_rank;
    coherence->line = (struct sp_line_place){.ticket = line->tickets++};
    if (first) {
        first->line.last->line.next = coherence;
        first->line.last = coherence;
    } else {
        coherence->line.last = coherence;
        coherence->line.next_rank = line->ranks;
        line->ranks = coherence;
    }
}

bool sp_room_line_has(const struct sp_room_line *line, uint32_t agents)
{
    const struct sp_coherence *first = line->ranks;
    while (first && !(first->agents & agents))
        first = first->line.next_rank;
    return first != NULL;
}

/* The link to the rank whose first came earliest, of those that are not passed; NULL: there is
 * none. */
static struct sp_coherence **find_earliest(struct sp_room_line *line)
{
    struct sp_coherence **earliest = NULL;
    for (struct sp_coherence **link = &line->ranks; *link; link = &(*link)->line.next_rank)
        if (!(*link)->line.is_passed &&
            (!earliest || (*link)->line.ticket < (*earliest)->line.ticket))
            earliest = link;
    return earliest;
}

/* The second of the rank is its first now, or the rank is gone. */
static void leave(struct sp_coherence **link)
{
    struct sp_line_place *place = &(*link)->line;
    if (place->next) {
        place->next->line.last = place->last;
        place->next->line.next_rank = place->next_rank;
        *link = place->next;
    } else {
        *link = place->next_rank;
    }
}

struct sp_coherence *sp_room_line_take(struct sp_room_line *line,
                                       bool (*may_leave)(struct sp_coherence *coherence))
{
    struct sp_coherence *taken = NULL, **end = &taken, **link;
    uint32_t kept = 0; /* agents of those who stay */
    for (struct sp_coherence *first = line->ranks; first; first = first->line.next_rank)
        first->line.is_passed = false;
    while ((link = find_earliest(line))) {
        struct sp_coherence *coherence = *link;
        if (coherence->agents & kept || !may_leave(coherence)) {
            kept |= coherence->agents;
            coherence->line.is_passed = true; /* as are all behind it, who need the same */
            continue;
        }
        leave(link);
        coherence->line.next = NULL;
        *end = coherence;
        end = &coherence->line.next;
    }
    return taken;
}
