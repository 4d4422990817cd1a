/* Commands ahead of what they wait for (docs/ahead.md): a chain over two devices, each command with the one before it
 * in its wait list, all of them on one region.
 *
 * What is modelled
 * - A command reads the region, changes or overwrites it, and what it makes of it is a version of its own: its number.
 * - Each begins when the one before it was submitted: it looks at what the directory says and at what is listed, and is
 *   promised a copy where the newest change is on the other device.
 * - A device takes what is in its ring, and lets parked copies and works go when the fences that they wait for are
 *   reached. The application notices ends later, those of the two devices in any order.
 * - A device may die once, at any time: its memory is gone, what ran there and was not noticed has failed. What is sent
 *   to it later runs in its next life.
 * - Now and then the memory of a device is taken away, and bound anew, where no command has pins on it and nobody
 *   copies from it.
 *
 * What is checked: who reads has the version that the last change in front of it made; when all has ended, whoever the
 * directory names has what was written last; no deadlock.
 *
 * check_model.sh runs each of these: a search of all states, and rules broken by a definition, which must fail.
 * search:
 * broken: -DNO_LIST          what is being changed is not looked at: the directory's old holder is taken for true
 * broken: -DNO_DEFER         an end is noted before those in front of it
 * broken: -DNO_COPY_FENCE    a work waits for what it follows, but not for its promised copy
 * broken: -DKEPT_AT_ONCE     the directory says that a promise was made when it is given
 * broken: -DDAMAGE           a copy that was made though the change's command failed is trusted as what was there
 * broken: -DFORGETFUL        a cancelled copy is forgotten where it was to go, and with it what was there
 * broken: -DSOURCE_TAKEN     a promise that is kept does not keep its source
 * broken: -DOLD_LIFE         what a device was to make before it died is taken for what it will have made
 * broken: -DNO_CANCEL        a death leaves alone what was promised from there, and kept
 */
#define COMMANDS 3
#define HOST 2
#define GARBAGE 9

#define READ 0
#define CHANGE 1
#define OVERWRITE 2

#define NOT_YET 0
#define WELL 1
#define BADLY 2

#define NONE 7

byte memory[3];   /* versions: of the devices, of the host */
bit directory[3]; /* who holds it */
bit is_lost;      /* somebody was told that it is */
bit has_died;

/* Of commands. */
byte device[COMMANDS], use[COMMANDS];
bit is_submitted[COMMANDS], is_listed[COMMANDS], is_noted[COMMANDS], has_ended[COMMANDS], has_failed[COMMANDS];
bit waits[COMMANDS];        /* for the fence of the one before it */
byte fence[COMMANDS];       /* of the work */
byte told[COMMANDS];        /* how the work ended, on the way to the application */
byte supplier[COMMANDS];    /* of its promise; NONE */
byte copy_fence[COMMANDS];
bit is_made[COMMANDS];      /* the copy took place */
bit copy_is_known[COMMANDS]; /* its end was told to the application */
bit is_dropped[COMMANDS];
bit life[2], life_of[COMMANDS];
byte truth; /* the last change that was noted */
byte expects[COMMANDS];

/* A dropped promise of which it is not known yet whether it came. */
#define is_unknown(x) (is_dropped[x] && !copy_is_known[x])

#define is_of_now(x) (life_of[x] == life[device[x]])

byte c, s, i; /* within atomic steps only */

inline find_supplier(command)
{
    s = NONE;
    i = 0;
    do
    :: i < command ->
        if
        :: is_listed[i] && !is_noted[i] -> s = i
        :: else
        fi;
        i++
    :: else -> break
    od
}

/* It must see the last change in front of it that was not known to have failed when it began. Where one has failed
 * since, though its fence was reached, the command is going to have failed, too. */
inline check_reads(command)
{
    assert(is_lost || memory[device[command]] == expects[command] || (command > 0 && has_failed[0]) ||
           (command > 1 && has_failed[1]))
}

inline bring(to)
{
    if
    :: directory[to] || (!directory[0] && !directory[1] && !directory[HOST])
    :: !directory[to] && directory[HOST] -> memory[to] = memory[HOST]; directory[to] = 1
    :: !directory[to] && directory[0] -> memory[to] = memory[0]; directory[to] = 1
    :: !directory[to] && directory[1] -> memory[to] = memory[1]; directory[to] = 1
    fi
}

init {
    atomic {
        if
        :: directory[0] = 1 /* some agent has the first content alone */
        :: directory[1] = 1
        :: directory[HOST] = 1
        fi;
        i = 0;
        do
        :: i < 3 ->
            memory[i] = (directory[i] -> 0 : GARBAGE);
            i++
        :: else -> break
        od;
        supplier[0] = NONE;
        supplier[1] = NONE;
        supplier[2] = NONE;
        run application();
        run processor(0);
        run processor(1);
        run client();
        run fate()
    }
}

/* What a device that has died was to make is waited for: it has failed. */
#ifdef OLD_LIFE
#define is_old(x) 0
#else
#define is_old(x) (is_submitted[x] && !has_ended[x] && !is_of_now(x))
#endif
#define may_begin(x) ((x) == 0 || !is_old(0) && ((x) == 1 || !is_old(1)))

proctype application()
{
    byte next = 0;
    do
    :: next < COMMANDS ->
        atomic {
            (next == 0 || is_submitted[next - 1] || has_ended[next - 1]) && may_begin(next) && !is_unknown(1) &&
                !is_unknown(2) ->
            if
            :: device[next] = 0
            :: device[next] = 1
            fi;
            if
            :: use[next] = READ
            :: use[next] = CHANGE
            :: use[next] = OVERWRITE
            fi;
            life_of[next] = life[device[next]];
            find_supplier(next);
            if
            :: next > 0 && has_ended[next - 1] && has_failed[next - 1] ->
                has_failed[next] = 1;
                has_ended[next] = 1;
                fence[next] = BADLY
            :: else ->
                if
                :: next > 0 && !has_ended[next - 1] -> waits[next] = 1
                :: else
                fi;
                expects[next] = (s == NONE -> truth : s + 1);
#ifdef NO_LIST
                s = NONE;
#endif
                if
                :: use[next] == OVERWRITE
                :: use[next] != OVERWRITE && s == NONE -> bring(device[next])
                :: use[next] != OVERWRITE && s != NONE && device[s] == device[next]
                :: use[next] != OVERWRITE && s != NONE && device[s] != device[next] ->
                    supplier[next] = s;
#ifdef KEPT_AT_ONCE
                    directory[device[next]] = 1;
#endif
                fi;
                if
                :: use[next] != READ -> is_listed[next] = 1
                :: else
                fi;
                is_submitted[next] = 1
            fi;
            s = 0;
            i = 0;
            next++
        }
    :: else -> break
    od;
    /* All has ended: whoever is named has what was written last. */
    atomic {
        has_ended[0] && has_ended[1] && has_ended[2] && (supplier[0] == NONE || copy_is_known[0]) &&
            (supplier[1] == NONE || copy_is_known[1]) && (supplier[2] == NONE || copy_is_known[2]);
        i = 0;
        do
        :: i < 3 ->
            assert(is_lost || !directory[i] || memory[i] == truth);
            i++
        :: else -> break
        od;
        assert(is_lost || directory[0] || directory[1] || directory[HOST])
    }
}

#define is_over(x) (fence[x] != NOT_YET)

/* The promised copy of a command, on its device. */
inline let_copy_go(command)
{
    if
    :: fence[command - 1] == WELL && fence[supplier[command]] == WELL && is_of_now(command) &&
           is_of_now(supplier[command]) ->
        memory[device[command]] = memory[device[supplier[command]]];
        is_made[command] = 1;
        copy_fence[command] = WELL
    :: else -> copy_fence[command] = BADLY
    fi
}

inline let_work_go(command)
{
    if
    :: is_of_now(command) && (!waits[command] || fence[command - 1] == WELL) && copy_fence[command] != BADLY ->
        if
        :: use[command] != OVERWRITE -> check_reads(command)
        :: else
        fi;
        if
        :: use[command] != READ -> memory[device[command]] = command + 1
        :: else
        fi;
        told[command] = WELL
    :: else -> told[command] = BADLY
    fi;
    fence[command] = told[command]
}

#ifdef NO_COPY_FENCE
#define has_copy(x) 1
#else
#define has_copy(x) (supplier[x] == NONE || copy_fence[x] != NOT_YET)
#endif

proctype processor(byte own)
{
    byte at = 0;
end:
    do
    :: atomic {
        at < COMMANDS && at > 0 && is_submitted[at] && device[at] == own && supplier[at] != NONE &&
            copy_fence[at] == NOT_YET && is_over(at - 1) && is_over(supplier[at]) ->
        let_copy_go(at)
       }
    :: atomic {
        at < COMMANDS && is_submitted[at] && device[at] == own && told[at] == NOT_YET && has_copy(at) &&
            (!waits[at] || is_over(at - 1)) ->
        let_work_go(at)
       }
    :: at < COMMANDS && (fence[at] != NOT_YET || (is_submitted[at] && device[at] != own)) &&
           (supplier[at] == NONE || copy_fence[at] != NOT_YET || (is_submitted[at] && device[at] != own)) ->
        at++
    od
}

/* What is known of the copy's end where the change's command has failed. */
inline forget_damage(command)
{
#ifdef FORGETFUL
    directory[device[command]] = 0
#else
#ifdef DAMAGE
    skip
#else
    if
    :: is_made[command] && directory[device[command]] ->
        directory[device[command]] = 0;
        if
        :: !directory[0] && !directory[1] && !directory[HOST] -> /* it is what is left of the change */
            directory[device[command]] = 1;
            truth = memory[device[command]]
        :: else
        fi
    :: else
    fi
#endif
#endif
}

/* The promises of `command`, which has ended well, or not. */
inline settle(command, good)
{
    c = 1;
    do
    :: c < COMMANDS ->
        if
        :: supplier[c] == command && good && !(copy_is_known[c] && copy_fence[c] == BADLY) && is_of_now(c) ->
            directory[device[c]] = 1
        :: supplier[c] == command && !good ->
            is_dropped[c] = 1;
            if
            :: copy_is_known[c] -> forget_damage(c)
            :: else
            fi
        :: else
        fi;
        c++
    :: else -> break
    od
}

/* Notices the end of a command's work, and of its copy. */
inline notice(command)
{
    if
    :: told[command] == WELL && is_of_now(command) ->
        if
        :: use[command] != READ ->
            directory[0] = 0;
            directory[1] = 0;
            directory[HOST] = 0;
            directory[device[command]] = 1;
            truth = command + 1;
            is_noted[command] = 1;
            settle(command, 1)
        :: else
        fi;
        has_failed[command] = (command > 0 -> has_failed[command - 1] : 0)
    :: else ->
        has_failed[command] = 1;
        settle(command, 0)
    fi;
    is_listed[command] = 0;
    has_ended[command] = 1;
    c = 0
}

inline notice_copy(command)
{
    copy_is_known[command] = 1;
    if
    :: is_dropped[command] -> forget_damage(command)
    :: !is_dropped[command] && is_noted[supplier[command]] && copy_fence[command] == BADLY ->
        directory[device[command]] = 0
    :: else
    fi
}

#ifdef NO_DEFER
#define may_note(x) 1
#else
#define may_note(x) ((x) == 0 || has_ended[(x) - 1])
#endif

/* A device tells of ends in order: that of the copy before that of the work which waits for it. */
#define may_be_told(x) (supplier[x] == NONE || copy_is_known[x])

#define may_notice(x)                                                                                                  \
    (is_submitted[x] && told[x] != NOT_YET && !has_ended[x] && may_note(x) && may_be_told(x))
#define may_notice_copy(x) (is_submitted[x] && supplier[x] != NONE && copy_fence[x] != NOT_YET && !copy_is_known[x])

proctype client()
{
end:
    do
    :: atomic { may_notice(0) -> notice(0) }
    :: atomic { may_notice(1) -> notice(1) }
    :: atomic { may_notice(2) -> notice(2) }
    :: atomic { may_notice_copy(1) -> notice_copy(1) }
    :: atomic { may_notice_copy(2) -> notice_copy(2) }
    od
}

inline fail(command, dead)
{
    if
    :: is_submitted[command] && device[command] == dead && !has_ended[command] ->
        told[command] = BADLY;
        if
        :: fence[command] == NOT_YET -> fence[command] = BADLY
        :: else
        fi;
        if
        :: supplier[command] != NONE && copy_fence[command] == NOT_YET -> copy_fence[command] = BADLY
        :: else
        fi
    :: else
    fi
}

/* A promise that is kept is a copy under way as any other. */
#ifdef SOURCE_TAKEN
#define is_read(x, d) 0
#else
#define is_read(x, d) (is_submitted[x] && supplier[x] != NONE && !copy_is_known[x] && device[supplier[x]] == d)
#endif

#define has_pins(d)                                                                                                    \
    ((is_submitted[0] && !has_ended[0] && device[0] == d) || (is_submitted[1] && !has_ended[1] && device[1] == d) ||   \
     (is_submitted[2] && !has_ended[2] && device[2] == d) || is_read(1, d) || is_read(2, d))

/* A death cancels first: kept promises from there will not bring anything. */
inline cancel(command, dead)
{
    if
    :: supplier[command] != NONE && device[supplier[command]] == dead && is_noted[supplier[command]] &&
           !copy_is_known[command] -> directory[device[command]] = 0
    :: else
    fi
}

inline die(dead)
{
    has_died = 1;
#ifndef NO_CANCEL
    cancel(1, dead);
    cancel(2, dead);
#endif
    life[dead] = 1;
    memory[dead] = GARBAGE;
    if
    :: directory[dead] ->
        directory[dead] = 0;
        if
        :: !directory[0] && !directory[1] && !directory[HOST] -> is_lost = 1
        :: else
        fi
    :: else
    fi;
    fail(0, dead);
    fail(1, dead);
    fail(2, dead)
}

/* Taken away, and bound for something else: the only content goes to the host. */
inline take_away(d)
{
    if
    :: directory[d] && !directory[1 - d] && !directory[HOST] ->
        memory[HOST] = memory[d];
        directory[HOST] = 1
    :: else
    fi;
    directory[d] = 0;
    memory[d] = GARBAGE
}

proctype fate()
{
    bit has_taken[2];
end:
    do
    :: atomic { !has_died -> die(0) }
    :: atomic { !has_died -> die(1) }
    :: atomic { !has_pins(0) && !has_taken[0] -> has_taken[0] = 1; take_away(0) }
    :: atomic { !has_pins(1) && !has_taken[1] -> has_taken[1] = 1; take_away(1) }
    od
}
