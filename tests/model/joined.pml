/* Works that several commands wait for (docs/device-process.md): the binding of a span, or the initial values of a program's
 * variables. Who needs it first asks for it, the others join. It can fail; and a command can learn that something has failed
 * before it is told what, and begin again while that very work still counts as under way.
 *
 * What is modelled
 * - The device decides how a work ends; from then on its failure is on its way (`coming`), and commands are cancelled.
 * - The application is told, and counts the failure afterwards.
 * - Each command tries twice: loosely, and then strictly, when it waits for the work; a failure of one that was asked for
 *   before that is not its error, and it asks anew, or joins again.
 *
 * What is checked: no command has an error unless two works failed, the second of which was asked for when the command had
 * learned of the first; each command ends; no deadlock.
 *
 * search:
 * search: -DFAILURES=1
 * broken: -DANY_ERROR     the failure of whatever is joined is the command's error
 * broken: -DBUT_THE_LAST  what is under way when a command begins again counts as asked for since
 */
#ifndef FAILURES
#define FAILURES 2
#endif
#define COMMANDS 3
#define TRIES 8

byte left = FAILURES, coming = 1, counted = 1;
byte asked;          /* how often; the last one is the one that is under way or there */
bit is_under_way, is_there;
bit is_bad;          /* decided so */
bit is_decided;
byte told[TRIES];    /* 0: not yet; 1: well; 2: badly */

active proctype device()
{
end:
    do
    :: atomic { is_under_way && !is_decided -> is_decided = 1; is_bad = 0 }
    :: atomic { is_under_way && !is_decided && left -> left--; is_decided = 1; is_bad = 1; coming++ }
    od
}

active proctype driver()
{
end:
    do
    :: atomic {
        is_decided ->
        told[asked] = 1 + is_bad;
        is_there = !is_bad;
        is_under_way = 0;
        is_decided = 0
       }
    :: atomic { counted != coming && !(is_decided && is_bad && counted == coming - 1) -> counted++ }
    od
}

inline find()
{
    if
    :: is_there || is_under_way
    :: else ->
        asked++;
        assert(asked < TRIES);
        is_under_way = 1
    fi;
    mine = asked
}

active [COMMANDS] proctype command()
{
    byte seen, mine, before;
    seen = counted;
    atomic {
        if
        :: coming != seen -> goto strictly
        :: else -> find()
        fi
    };
    if
    :: told[mine] == 1 -> goto over
    :: told[mine] == 2
    :: coming != seen /* cancelled, which is told before the work's end */
    fi;
strictly:
#ifdef BUT_THE_LAST
    before = asked - is_under_way;
#else
    before = asked;
#endif
again:
    atomic { find() };
    told[mine];
    if
    :: told[mine] == 1
#ifdef ANY_ERROR
    :: told[mine] == 2 -> assert(FAILURES - left >= 2)
#else
    :: told[mine] == 2 && mine > before -> assert(FAILURES - left >= 2)
    :: told[mine] == 2 && mine <= before -> goto again
#endif
    fi;
over:
    skip
}
