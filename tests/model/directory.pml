/* The directory's protocol: the host and two devices, commands that run at the same time, memory
 * that is taken back, devices that die at any moment and come back. docs/directory.md describes it
 * and src/svm/directory.c has the transitions; this is what their callers have to do around them.
 *
 * What is modelled
 * - A region is one unit. `state` is what the directory says, as if each transfer asked for had
 *   been done; `newest` is the truth: whether an agent's memory has what was written last.
 * - A transfer is a step of its own, some time after the acquire that asked for it (`from`).
 *   Sources are chosen freely: distances do not matter for what is right.
 * - Programs are correct: they order a command that writes a region against all others that use it
 *   (`readers`, `writers`: the events). Commands that only read run at the same time.
 * - A command uses regions for reading, for writing, or to overwrite them. A migration is such a
 *   command: it reads, or overwrites if the content is to be undefined; its kernel does nothing.
 * - The host maps for reading, for writing (it reads, and at the unmap it is found to have written,
 *   or not) or to overwrite.
 * - A device that dies loses its memory at once; its client in the application notices later.
 *
 * What is checked, in every reachable state
 * - one writer: M and E exclude all other copies, there is one O at most, and who writes is alone,
 *   when it writes or when its command ends (check);
 * - no stale read: who reads has what was written last, from the first to the last (may_read);
 * - no lost write: somebody has a current copy of what was written, until the death of the agent
 *   that alone had it is reported (check, leave, drop);
 * - no deadlock: once nothing new is started, everything ends (spin's invalid end states).
 *
 * Two searches, both of every reachable state (check_model.sh runs them):
 * search: -DREGIONS=1
 *     all of the above, any number of times.
 * search: -DREGIONS=2
 *     commands that use two regions and hold two locks. So that it takes seconds, without
 *     evictions and overwriting, commands take both regions whenever they may, and of the
 *     two devices, which are alike, the second dies, once.
 *
 * Rules that can be broken by a definition; then the model has to fail, which is checked too:
 * broken: -DREGIONS=1 -DNO_INVALIDATION     a write leaves other copies valid
 * broken: -DREGIONS=1 -DSOURCE_ON_ITS_WAY   a copy that has not arrived yet is taken as a source
 * broken: -DREGIONS=1 -DONE_STEP            others' copies are taken away before what is read has arrived
 * broken: -DREGIONS=1 -DDROP_FIRST          a dead agent is dropped before the transfers from it are cancelled
 * broken: -DREGIONS=1 -DEVICT_IN_USE        a copy is taken back though a command has begun to use it in the meantime
 * broken: -DREGIONS=2 -DLOCKS_AS_THEY_COME  two commands take two locks in different orders
 */
#ifndef REGIONS
#define REGIONS 1
#endif

#define AGENTS 3
#define HOST 0
#define NONE 3 /* no agent; no use */

#define I 0
#define S 1
#define E 2
#define O 3
#define M 4

#define READ 0
#define WRITE 1
#define DISCARD 2

#define AT(r, a) ((r) * AGENTS + (a))

byte state[6];
bit newest[6];
byte from[6] = NONE; /* the source of a transfer on its way to this agent */
bit content[2];      /* something was written, and not reported as lost */
bit unnoticed[2];    /* the host wrote, and the directory does not know yet */
bit lock[2];
byte uses[2];        /* commands, maps and evictions under way */
byte readers[2];     /* the program's order */
bit writers[2];
bit alive[AGENTS] = 1;
bit stopping;        /* nothing new is started */
bit died_once;       /* with two regions only */

#define valid(r, a) (state[AT(r, a)] != I)
#define alone(r, a) (state[AT(r, a)] == M || state[AT(r, a)] == E)
#define held(r) (valid(r, 0) || valid(r, 1) || valid(r, 2))
#define on_its_way(r, a) (from[AT(r, a)] != NONE)
#ifdef SOURCE_ON_ITS_WAY
#define source(r, a) valid(r, a)
#else
#define source(r, a) (valid(r, a) && !on_its_way(r, a))
#endif

/* An acquire waits for its own copy, or for one that it could take. */
#define must_wait(r, a, use)                                                                       \
    ((use) != NONE && (on_its_way(r, a) || ((use) != DISCARD && !valid(r, a) && held(r) &&         \
                                            !source(r, 0) && !source(r, 1) && !source(r, 2))))

#define may_start(r, use)                                                                          \
    ((use) == NONE || (!writers[r] && ((use) == READ || readers[r] == 0)))

#define copies(r, what)                                                                            \
    ((state[AT(r, 0)] == what) + (state[AT(r, 1)] == what) + (state[AT(r, 2)] == what))
#define has_newest(r, a)                                                                           \
    (!valid(r, a) || on_its_way(r, a) || !alive[a] || newest[AT(r, a)])

inline check(r)
{
    assert(copies(r, M) + copies(r, E) <= 1 && copies(r, O) <= 1);
    assert(copies(r, M) + copies(r, E) == 0 || copies(r, I) == 2);
    assert(!content[r] || unnoticed[r] || held(r));
    assert(!content[r] || unnoticed[r] ||
           (has_newest(r, 0) && has_newest(r, 1) && has_newest(r, 2)))
}

inline start(r, use)
{
    if
    :: use == NONE
    :: use == READ -> readers[r]++
    :: else -> writers[r] = 1
    fi
}

inline finish(r, use)
{
    if
    :: use == NONE
    :: use == READ -> readers[r]--
    :: else -> writers[r] = 0
    fi
}

/* What a write does to the truth. */
inline write(r, a)
{
    newest[AT(r, 0)] = 0;
    newest[AT(r, 1)] = 0;
    newest[AT(r, 2)] = 0;
    newest[AT(r, a)] = 1;
    content[r] = 1
}

/* The directory's transitions. */

inline own(r, a)
{
#ifndef NO_INVALIDATION
    state[AT(r, 0)] = I;
    state[AT(r, 1)] = I;
    state[AT(r, 2)] = I;
#endif
    state[AT(r, a)] = M
}

inline settle(r, a)
{
    if
    :: state[AT(r, a)] == S && copies(r, I) == 2 -> state[AT(r, a)] = E
    :: state[AT(r, a)] == O && copies(r, I) == 2 -> state[AT(r, a)] = M
    :: else
    fi
}

inline leave(r, a)
{
    assert(!alone(r, a) || !alive[a]); /* only a death may lose something */
    state[AT(r, a)] = I;
    newest[AT(r, a)] = 0;
    settle(r, 0);
    settle(r, 1);
    settle(r, 2)
}

/* Within an atomic step. Ends with `taken` as the source, or NONE. */
inline acquire(r, a, use)
{
    taken = NONE;
    if
    :: use == NONE || use == DISCARD || valid(r, a) || !held(r)
    :: else ->
        if
        :: source(r, 0) -> taken = 0
        :: source(r, 1) -> taken = 1
        :: source(r, 2) -> taken = 2
        fi;
        from[AT(r, a)] = taken;
        state[AT(r, a)] = S;
        if
        :: state[AT(r, taken)] == M -> state[AT(r, taken)] = O
        :: state[AT(r, taken)] == E -> state[AT(r, taken)] = S
        :: else
        fi
    fi;
    if
    :: use == NONE
    :: else -> uses[r]++
    fi;
    if
    :: use == DISCARD -> own(r, a); write(r, a)
#ifdef ONE_STEP
    :: use == WRITE -> own(r, a)
#else
    :: use == WRITE && taken == NONE -> own(r, a)
#endif
    :: else
    fi;
    check(r)
}

/* A copy arrives. It may have been taken away in the meantime: then it is nothing. */
inline arrive(r, a)
{
    newest[AT(r, a)] = newest[AT(r, from[AT(r, a)])] && valid(r, a);
    from[AT(r, a)] = NONE;
    check(r)
}

/* Takes back what was on its way from a dead agent; what it had is still the dead agent's then. */
inline cancel_one(r, dead, a)
{
    if
    :: from[AT(r, a)] == dead ->
        from[AT(r, a)] = NONE;
        if
        :: valid(r, a) -> leave(r, a)
        :: else
        fi
    :: else
    fi
}

inline cancel(r, dead)
{
    from[AT(r, dead)] = NONE;
    cancel_one(r, dead, 0);
    cancel_one(r, dead, 1);
    cancel_one(r, dead, 2)
}

inline drop(r, dead)
{
    if
    :: alone(r, dead) -> content[r] = 0 /* reported */
    :: else
    fi;
    leave(r, dead)
}

inline bury(r, d)
{
    atomic {
        !lock[r] ->
#ifdef DROP_FIRST
        drop(r, d);
        cancel(r, d);
#else
        cancel(r, d);
        drop(r, d);
#endif
        check(r)
    }
}

/* Processes. */

#define may_read(r, a, use) ((use) == NONE || !content[r] || newest[AT(r, a)])

inline release()
{
    if
    :: acquired && use0 != NONE -> uses[0]--
    :: else
    fi;
    if
    :: acquired && use1 != NONE -> uses[1]--
    :: else
    fi;
    finish(0, use0);
    finish(1, use1);
    use0 = NONE;
    use1 = NONE;
    waits0 = 0;
    waits1 = 0;
    acquired = 0
}

#ifdef LOCKS_AS_THEY_COME
#define FIRST(d) ((d) == 1 -> 0 : 1)
#else
#define FIRST(d) 0
#endif
#define SECOND(d) (1 - FIRST(d))

#define uses_both (use0 != NONE && use1 != NONE)
#define arrives(r, d) (on_its_way(r, d) && alive[from[AT(r, d)]])
#define writes(use) ((use) == WRITE || (use) == DISCARD)
#define upgrades(use, waits) ((use) == WRITE && (waits))
#define late(r, use, waits) (upgrades(use, waits) && state[AT(r, d)] != M)

/* A device's commands, one after the other, and its client in the application. */
proctype device(byte d)
{
    byte use0 = NONE, use1 = NONE; /* of the two regions */
    byte taken = NONE;
    bit waits0, waits1; /* a transfer was asked for */
    bit acquired;

end:
    if
    :: atomic { !alive[d] -> goto died }
    :: atomic {
        alive[d] && !stopping ->
        if
        :: may_start(0, READ) -> use0 = READ
        :: may_start(0, WRITE) -> use0 = WRITE
#if REGIONS == 1
        :: may_start(0, DISCARD) -> use0 = DISCARD
#endif
        :: else
        fi;
#if REGIONS == 2
        if
        :: may_start(1, READ) -> use1 = READ
        :: may_start(1, WRITE) -> use1 = WRITE
        :: else
        fi;
#endif
        if
        :: use0 == NONE && use1 == NONE -> goto end
        :: else -> start(0, use0); start(1, use1)
        fi
       }
    fi;

    /* Locks in order of address; the last one and the acquire are one step. The client does not
     * know yet whether the device lives. */
locks:
    if
    :: atomic { !uses_both }
    :: atomic { uses_both && !lock[FIRST(d)] -> lock[FIRST(d)] = 1 }
    fi;
    atomic {
        (use0 == NONE || (uses_both && FIRST(d) == 0) || !lock[0]) &&
        (use1 == NONE || (uses_both && FIRST(d) == 1) || !lock[1]) ->
        if
        :: uses_both -> lock[FIRST(d)] = 0
        :: else
        fi;
        if
        :: must_wait(0, d, use0) || must_wait(1, d, use1) -> goto wait
        :: else
        fi;
        acquire(0, d, use0);
        waits0 = taken != NONE;
        acquire(1, d, use1);
        waits1 = taken != NONE;
        taken = NONE;
        acquired = 1
    };

    /* The ring: transfers, in any order, then the kernel. From a dead source nothing arrives, until
     * the source's client cancels it. */
transfers:
    if
    :: atomic { !alive[d] -> goto died }
    :: atomic { alive[d] && arrives(0, d) -> arrive(0, d); goto transfers }
    :: atomic { alive[d] && arrives(1, d) -> arrive(1, d); goto transfers }
    :: atomic {
        /* The second step of a write whose transfer has arrived. It moves nothing. It may be taken
         * here, before the kernel starts ... */
        alive[d] && !on_its_way(0, d) && !on_its_way(1, d) &&
        (!upgrades(use0, waits0) || !lock[0]) && (!upgrades(use1, waits1) || !lock[1]) ->
        if
        :: (waits0 && !valid(0, d)) || (waits1 && !valid(1, d)) ->
            release(); /* its source died: the command ends with an error */
            goto end
        :: else
        fi;
#if REGIONS == 1
        if
        :: goto kernel /* ... or when the command ends */
        :: skip
        fi;
#endif
        if
        :: upgrades(use0, waits0) -> own(0, d); check(0)
        :: else
        fi;
        if
        :: upgrades(use1, waits1) -> own(1, d); check(1)
        :: else
        fi
       }
    fi;
kernel:
    atomic {
        if
        :: !alive[d] -> goto died
        :: else
        fi;
        assert(may_read(0, d, use0) && may_read(1, d, use1));
        if
        :: writes(use0) && !late(0, use0, waits0) -> assert(alone(0, d)); write(0, d); check(0)
        :: else
        fi;
        if
        :: writes(use1) && !late(1, use1, waits1) -> assert(alone(1, d)); write(1, d); check(1)
        :: else
        fi
    };
    /* What a command wrote counts when it has ended. */
    if
    :: atomic { !alive[d] -> goto died }
    :: atomic {
        alive[d] && !(late(0, use0, waits0) && lock[0]) && !(late(1, use1, waits1) && lock[1]) ->
        assert(may_read(0, d, use0) && may_read(1, d, use1));
        if
        :: late(0, use0, waits0) -> own(0, d); write(0, d); check(0)
        :: else
        fi;
        if
        :: late(1, use1, waits1) -> own(1, d); write(1, d); check(1)
        :: else
        fi;
        release();
        goto end
       }
    fi;

wait:
    if
    :: atomic { !must_wait(0, d, use0) && !must_wait(1, d, use1) -> goto locks }
    :: atomic { !alive[d] }
    fi;

    /* The client has noticed: regions one after the other, then a new process, then the events. */
died:
    bury(0, d);
#if REGIONS == 2
    bury(1, d);
#endif
    atomic {
        alive[d] = 1;
        release();
        goto end
    }
}

/* The application's thread: maps and unmaps; it ends the run. */
active proctype host()
{
    byte r, use = NONE, taken = NONE;
    bit waits;

idle:
    if
    :: atomic { stopping = 1 -> goto stop }
    :: atomic {
        if
        :: r = 0
#if REGIONS == 2
        :: r = 1
#endif
        fi;
        if
        :: may_start(r, READ) -> use = READ
        :: may_start(r, WRITE) -> use = WRITE
#if REGIONS == 1
        :: may_start(r, DISCARD) -> use = DISCARD
#endif
        :: else -> r = 0; goto idle
        fi;
        start(r, use)
       }
    fi;
    atomic {
        !lock[r] && !must_wait(r, HOST, use) ->
        if
        :: use == DISCARD -> acquire(r, HOST, DISCARD)
        :: else -> acquire(r, HOST, READ)
        fi;
        waits = taken != NONE;
        taken = NONE
    };
    /* Sent by the device that has it. */
    atomic {
        if
        :: !on_its_way(r, HOST)
        :: arrives(r, HOST) -> arrive(r, HOST)
        fi;
        if
        :: waits && !valid(r, HOST) -> skip
        :: else ->
            assert(may_read(r, HOST, use));
            if
            :: use == WRITE -> write(r, HOST); unnoticed[r] = 1
            :: skip
            fi
        fi
    };
    atomic {
        !lock[r] ->
        assert((waits && !valid(r, HOST)) || may_read(r, HOST, use));
        if
        :: unnoticed[r] -> own(r, HOST); unnoticed[r] = 0
        :: else
        fi;
        uses[r]--;
        finish(r, use);
        check(r);
        use = NONE;
        waits = 0;
        r = 0;
        goto idle
    };
stop:
    skip
}

/* Takes a device's copy of a region that is not in use back to the host. */
#if REGIONS == 1
active proctype evictor()
{
    byte r, d, taken = NONE;

    do
    :: atomic { stopping -> break }
    :: atomic {
        !stopping ->
        if
        :: d = 1
        :: d = 2
        fi;
        if
        :: !lock[r] && uses[r] == 0 && valid(r, d) && !must_wait(r, HOST, READ) ->
            acquire(r, HOST, READ);
            taken = NONE
        :: else -> goto not_now
        fi
       };
        atomic {
            if
            :: !on_its_way(r, HOST)
            :: arrives(r, HOST) -> arrive(r, HOST)
            fi
        };
        atomic {
            !lock[r] ->
            if
#ifdef EVICT_IN_USE
            :: valid(r, d) && !alone(r, d) -> leave(r, d)
#else
            :: uses[r] == 1 && valid(r, d) && !alone(r, d) -> leave(r, d)
#endif
            :: else
            fi;
            uses[r]--;
            check(r)
        };
not_now:
        atomic { d = 0 }
    od
}

#endif

active proctype killer()
{
    byte d;

    do
    :: atomic { stopping -> break }
    :: atomic {
        !stopping ->
        if
        :: d = 2
#if REGIONS == 1
        :: d = 1
#endif
        fi;
        if
        :: alive[d] && !died_once ->
            died_once = REGIONS == 2;
            alive[d] = 0;
            newest[AT(0, d)] = 0;
            newest[AT(1, d)] = 0
        :: else
        fi;
        d = 0
       }
    od
}

init
{
    atomic { run device(1); run device(2) }
}
