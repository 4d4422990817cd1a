/* Failures in a living process (docs/device-process.md): an in-order queue of one device, whose commands change one region
 * that only the host has at first. Who begins first copies it; the others rely on that copy, and on one another, by their
 * place in the ring. A copy can fail.
 *
 * What is modelled
 * - The process takes records in order, counts its failures, and cancels what is stale.
 * - The application is told of ends in order; between a failure that is on its way (`coming`), what is made of it (the
 *   directory, the command) and its count (`counted`), anything else can happen.
 * - Each command takes the count down, is sent behind the one in front of it when that was submitted, and begins again,
 *   strictly, when it was cancelled.
 *
 * What is checked: a work finds the region there, and runs behind the one in front of it; the host's content is not copied
 * over what was changed since; each command ends, and begins twice at most; no deadlock.
 *
 * search:
 * search: -DFAILURES=1
 * search: -DFAILURES=3
 * broken: -DNO_COUNT         nothing is stale
 * broken: -DUNCOUNTED        what is cancelled is no failure
 * broken: -DCOUNTED_FIRST    a failure is counted before anything is made of it
 * broken: -DTAKEN_DOWN_LATE  a command says what is known when it is submitted
 * broken: -DSTILL_SUBMITTED  others are sent behind one that was cancelled, until it begins again
 * broken: -DNOT_STRICT       who begins again does not wait for its copy
 */
#ifndef FAILURES
#define FAILURES 2
#endif
#define COMMANDS 3

mtype = { copy, work };
chan ring = [8] of { mtype, byte, byte };    /* command, what it says of failures (0: nothing) */
chan ends = [8] of { mtype, byte, bit };     /* command, whether it failed or was cancelled */

byte process_failures = 1, coming = 1, counted = 1;
byte left = FAILURES;
bit directory, is_there; /* the device has the region: as the directory says, and in truth */
byte copying;            /* copies under way */
byte changes;            /* works that ran */
byte last;               /* the last command that ran, or ended without */
byte enqueued;
bit is_submitted[COMMANDS + 1], is_cancelled[COMMANDS + 1], has_ended[COMMANDS + 1];
bit has_copied[COMMANDS + 1], has_failed[COMMANDS + 1];

active proctype process()
{
    mtype kind;
    byte command, seen;
end:
    do
    :: ring?kind, command, seen ->
        if
#ifndef NO_COUNT
        :: seen && seen != process_failures ->
            atomic {
#ifdef UNCOUNTED
                if
                :: kind == copy -> process_failures++
                :: else
                fi;
#else
                process_failures++;
#endif
                ends!kind, command, 1
            }
#endif
        :: kind == copy && left && !(seen && seen != process_failures) ->
            atomic { left--; process_failures++; ends!copy, command, 1 }
        :: kind == copy && !(seen && seen != process_failures) ->
            atomic { assert(!changes); is_there = 1; ends!copy, command, 0 }
#ifdef NO_COUNT
        :: kind == copy && seen && seen != process_failures ->
            atomic { assert(!changes); is_there = 1; ends!copy, command, 0 }
        :: kind == work ->
#else
        :: kind == work && !(seen && seen != process_failures) ->
#endif
            atomic {
                assert(is_there && last == command - 1);
                last = command;
                changes++;
                ends!work, command, 0
            }
        fi
    od
}

/* Tells of ends. */
active proctype driver()
{
    mtype kind;
    byte command;
    bit failed;
    bit counts;
end:
    do
    :: ends?kind, command, failed ->
        counts = failed;
#ifdef UNCOUNTED
        counts = failed && kind == copy;
#endif
        coming = coming + counts;
#ifdef COUNTED_FIRST
        counted = counted + counts;
#endif
        atomic {
            if
            :: kind == copy ->
                copying--;
                has_copied[command] = 1;
                has_failed[command] = failed;
                if
                :: failed -> directory = 0
                :: else
                fi
            :: kind == work && failed ->
                is_cancelled[command] = 1;
#ifndef STILL_SUBMITTED
                is_submitted[command] = 0
#endif
            :: else -> has_ended[command] = 1
            fi
        };
#ifndef COUNTED_FIRST
        counted = counted + counts
#endif
    od
}

proctype obey(byte me)
{
    byte seen;
    enqueued == me - 1;
    seen = counted;
    enqueued++;
    is_submitted[me - 1] || has_ended[me - 1];
    atomic {
        if
#ifndef TAKEN_DOWN_LATE
        :: coming != seen -> goto again
#endif
        :: else
        fi;
        if
        :: !directory -> directory = 1; copying++; ring!copy, me, seen
        :: else
        fi
    };
#ifdef TAKEN_DOWN_LATE
    seen = counted;
#endif
    atomic {
        ring!work, me, seen;
        is_submitted[me] = 1
    };
    is_cancelled[me] || has_ended[me];
    if
    :: has_ended[me] -> goto over
    :: else
    fi;
again:
    is_submitted[me] = 0;
    has_ended[me - 1];
    /* Strictly: copies under way are waited for, then its own. */
    atomic {
        !copying;
        has_copied[me] = 0;
        has_failed[me] = 0;
        if
        :: !directory -> directory = 1; copying++; ring!copy, me, 0
        :: else -> has_copied[me] = 1
        fi
    };
#ifndef NOT_STRICT
    has_copied[me];
#endif
    atomic {
        is_cancelled[me] = 0;
        if
        :: has_failed[me] -> assert(last == me - 1); last = me; has_ended[me] = 1
        :: else -> ring!work, me, 0; is_submitted[me] = 1
        fi
    };
    has_ended[me] || is_cancelled[me];
    assert(!is_cancelled[me]);
over:
    skip
}

init
{
    atomic {
        has_ended[0] = 1;
        run obey(1);
        run obey(2);
        run obey(3)
    }
}
