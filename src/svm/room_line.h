/* Commands in line for room: in the order in which they came, and none goes before an earlier one
 * that needs one of the same agents. Commands that need the same agents form a rank of their own,
 * so that what a look at the line costs depends on how many sets of agents wait, not on how many
 * commands.
 *
 * Owns nothing: the commands are linked through their own `line`. Called by bindings.c with its
 * lock held.
 */
#ifndef SP_SVM_ROOM_LINE_H
#define SP_SVM_ROOM_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct sp_coherence;

/* A command's place. While it waits it is in one line only. */
struct sp_line_place {
    /* Of its rank; out of line, of the list that sp_room_line_take gives */
    struct sp_coherence *next;
    uint64_t ticket; /* the earlier, the smaller */
    /* Where it is the first of its rank: */
    struct sp_coherence *last;
    struct sp_coherence *next_rank;
    bool is_passed; /* it, or someone before it that needs one of its agents, stays:
                       sp_room_line_take only */
};

struct sp_room_line {
    struct sp_coherence *ranks; /* the first of each, no order */
    uint64_t tickets;
};

/* Puts a command at the end. Its `agents` stay as they are while it waits. */
void sp_room_line_add(struct sp_room_line *line, struct sp_coherence *coherence);

/* Whether someone in line needs one of these agents. */
bool sp_room_line_has(const struct sp_room_line *line, uint32_t agents);

/* Asks, in order, those before whom nobody stays with whom they share an agent, and takes off the
 * line those who may leave; they are returned as a list through line.next, in order. `may_leave`
 * must not change the line. */
struct sp_coherence *sp_room_line_take(struct sp_room_line *line,
                                       bool (*may_leave)(struct sp_coherence *coherence));

#endif
