/* Commands behind one another (docs/directory.md): one in-order queue of a device whose ring keeps the order, and the
 * host, which uses the memory when the queue is empty. A command begins when the one in front of it was submitted; the
 * directory learns of what it changed when its end is noticed, some time after it ran.
 *
 * What is modelled
 * - A region of two halves; a command uses one of them or both, as one range: to read, to change, or to overwrite.
 * - `directory`: what the directory says of each half; `newest`: the truth, whether an agent's memory has what was written
 *   last in the program's order.
 * - The ring holds transfers and works in order; two commands at most are under way.
 * - `overwriting`: the halves that a command under way overwrites.
 *
 * What is checked: who reads has what was written last; when all has ended, what the directory says is true; no deadlock.
 *
 * check_model.sh runs each of these: a search of all states, and rules broken by a definition, which must fail.
 * search:
 * broken: -DNO_LIST          what is being overwritten is not looked at: old content is fetched over new
 * broken: -DPART_IS_WHOLE    a command that overwrites a part of what is needed is taken for one that supplies all of it
 * EARLY_END      the end is noticed before the work has run
 */
#define HOST 0
#define DEVICE 1

#define READ 1
#define CHANGE 2
#define OVERWRITE 3

#define LOW 1
#define HIGH 2
#define BOTH 3

#define AT(half, agent) ((half) * 2 + (agent))

/* Records of the ring. */
mtype = { transfer, work };
chan ring = [6] of { mtype, byte, byte, byte }; /* kind, halves, use, command */
chan ended = [2] of { byte, byte, byte };       /* halves, use, command: not noticed yet */

bit directory[4] = 1;
bit newest[4] = 1; /* both have the same first content */
byte overwriting[2];
bit is_under_way[2];

#define is_current(halves, agent)                                                                  \
    ((!((halves) & LOW) || directory[AT(0, agent)]) && (!((halves) & HIGH) || directory[AT(1, agent)]))

inline wrote(halves, agent)
{
    if
    :: halves & LOW -> newest[AT(0, agent)] = 1; newest[AT(0, 1 - (agent))] = 0
    :: else
    fi;
    if
    :: halves & HIGH -> newest[AT(1, agent)] = 1; newest[AT(1, 1 - (agent))] = 0
    :: else
    fi
}

inline note_written(halves, agent)
{
    if
    :: halves & LOW -> directory[AT(0, agent)] = 1; directory[AT(0, 1 - (agent))] = 0
    :: else
    fi;
    if
    :: halves & HIGH -> directory[AT(1, agent)] = 1; directory[AT(1, 1 - (agent))] = 0
    :: else
    fi
}

#define has_newest(halves, agent)                                                                  \
    ((!((halves) & LOW) || newest[AT(0, agent)]) && (!((halves) & HIGH) || newest[AT(1, agent)]))

#ifdef NO_LIST
#define overlaps(c, halves) 0
#else
#define overlaps(c, halves) (overwriting[c] & (halves))
#endif
#ifdef PART_IS_WHOLE
#define supplies(c, halves) overlaps(c, halves)
#else
#define supplies(c, halves) ((overwriting[c] & (halves)) == (halves))
#endif

/* The application's thread: commands one after the other, now and then the host. */
active proctype application()
{
    byte command = 0, use, halves, other;
    do
    :: atomic {
        !is_under_way[command] ->
        if
        :: use = READ
        :: use = CHANGE
        :: use = OVERWRITE
        fi;
        if
        :: halves = LOW
        :: halves = HIGH
        :: halves = BOTH
        fi;
        is_under_way[command] = 1;
        other = 1 - command
       }
       if
       :: atomic {
            use == OVERWRITE || is_current(halves, DEVICE) || supplies(other, halves) -> skip
          }
       :: atomic {
            use != OVERWRITE && !is_current(halves, DEVICE) && !overlaps(other, halves) ->
            if
            :: halves & LOW && !directory[AT(0, DEVICE)] ->
                ring!transfer, LOW, 0, 0;
                directory[AT(0, DEVICE)] = 1
            :: else
            fi;
            if
            :: halves & HIGH && !directory[AT(1, DEVICE)] ->
                ring!transfer, HIGH, 0, 0;
                directory[AT(1, DEVICE)] = 1
            :: else
            fi
          }
       fi;
       atomic {
            if
            :: use == OVERWRITE -> overwriting[command] = halves
            :: else
            fi;
            ring!work, halves, use, command;
            command = other
       }
    :: atomic { /* the host maps it, and writes it or not */
        !is_under_way[0] && !is_under_way[1] ->
        assert(!directory[AT(0, HOST)] || newest[AT(0, HOST)]);
        assert(!directory[AT(1, HOST)] || newest[AT(1, HOST)]);
        assert(!directory[AT(0, DEVICE)] || newest[AT(0, DEVICE)]);
        assert(!directory[AT(1, DEVICE)] || newest[AT(1, DEVICE)]);
        if
        :: halves = LOW
        :: halves = HIGH
        :: halves = BOTH
        fi;
        if
        :: halves & LOW && !directory[AT(0, HOST)] ->
            newest[AT(0, HOST)] = newest[AT(0, DEVICE)];
            directory[AT(0, HOST)] = 1
        :: else
        fi;
        if
        :: halves & HIGH && !directory[AT(1, HOST)] ->
            newest[AT(1, HOST)] = newest[AT(1, DEVICE)];
            directory[AT(1, HOST)] = 1
        :: else
        fi;
        assert(has_newest(halves, HOST));
        if
        :: wrote(halves, HOST); note_written(halves, HOST)
        :: skip
        fi
       }
    od
}

active proctype device()
{
    byte halves, use, command;
end:
    do
    :: atomic {
        ring?transfer, halves, use, command ->
        if
        :: halves & LOW -> newest[AT(0, DEVICE)] = newest[AT(0, HOST)]
        :: else
        fi;
        if
        :: halves & HIGH -> newest[AT(1, DEVICE)] = newest[AT(1, HOST)]
        :: else
        fi
       }
    :: atomic {
        ring?work, halves, use, command ->
        assert(use == OVERWRITE || has_newest(halves, DEVICE));
        if
        :: use != READ -> wrote(halves, DEVICE)
        :: else
        fi;
        ended!halves, use, command
       }
    od
}

/* The thread that notices ends, in the ring's order. */
active proctype client()
{
    byte halves, use, command;
end:
    do
    :: atomic {
        ended?halves, use, command ->
        if
        :: use != READ -> note_written(halves, DEVICE)
        :: else
        fi;
        overwriting[command] = 0;
        is_under_way[command] = 0
       }
    od
}
