/* The directory of one region: see directory.h for what it promises, docs/directory.md for the
 * states and the protocol.
 *
 * A run's states are one word, 4 bits for each agent, and neighbouring runs never have equal words.
 * Everything below keeps each word in one form, so that equal content gives equal words:
 *   0              nobody has written it
 *   one holder     M or E, never O or S
 *   more holders   all S, or one O and the others S
 *
 * Every function is a transition, a pure function from a word to the next one, applied to the runs
 * of a range (struct change). It goes in four steps, of which only the first two can fail, and they
 * change nothing that can be seen:
 *   1. measure the window: the runs that the range touches, what is to be moved, and the number of
 *      runs that will stand in their place, at most two more (the range's ends may cut a run each);
 *   2. find room for those runs and for the transfers;
 *   3. append the transfers, from the old words;
 *   4. rebuild the window in place.
 * Nearly always the window is one run whose word stays, and the first step is the last.
 *
 * No lock, no state outside the directory: the region's lock is the caller's.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "svm/directory.h"
#include "util/alloc.h"

#define STATE_BITS 4u
#define STATE_MASK UINT64_C(0xf)

/* The lowest bit of each agent's state. States use three bits, so the fourth is always clear. */
#define EACH_AGENT UINT64_C(0x1111111111111111)

/* No run has these states: no agent's can be 15. */
#define NO_STATES UINT64_MAX

/* The first array of runs, 128 bytes: a range used inside a region makes three. An array of this
 * size is kept when its runs merge again, so that mapping a part in turn does not allocate each
 * time. */
#define FEW_RUNS 8u

/* The first list of transfers, 192 bytes. */
#define FEW_TRANSFERS 8u

/* From a word to the next. `to` is the receiver where something moves. */
typedef uint64_t transition(uint64_t states, uint32_t agent, uint32_t to);

/* Whether a run with this word must be copied to `to` first. */
typedef bool needs_transfer(uint64_t states, uint32_t agent);

/* A transition for a range. */
struct change {
    uint64_t first, end; /* not empty */
    uint32_t agent;
    uint32_t to;
    transition *next;
    needs_transfer *moves; /* NULL: nothing ever moves */
};

/* Where a change takes place: runs [begin, end) are replaced by `made` runs. */
struct window {
    uint32_t begin;
    uint32_t touched_end; /* the range touches [begin, touched_end) */
    uint32_t end;         /* touched_end, or one more: a neighbour behind may merge */
    uint32_t made;
    size_t moved; /* touched runs that need a transfer */
};

/* Words. */

static uint64_t place(uint32_t agent, enum sp_moesi state)
{
    return (uint64_t)state << (STATE_BITS * agent);
}

static enum sp_moesi state_of(uint64_t states, uint32_t agent)
{
    return (enum sp_moesi)(states >> (STATE_BITS * agent) & STATE_MASK);
}

/* Bit 4a is set where agent a has a current copy. */
static uint64_t holders_of(uint64_t states)
{
    return (states | states >> 1 | states >> 2) & EACH_AGENT;
}

static bool is_single(uint64_t holders)
{
    return holders && !(holders & (holders - 1));
}

static uint32_t lowest_agent(uint64_t holders)
{
    return (uint32_t)__builtin_ctzll(holders) / STATE_BITS;
}

static bool is_alone(uint64_t states, uint32_t agent)
{
    return states && states == place(agent, state_of(states, agent));
}

static uint64_t after_read(uint64_t states, uint32_t agent, uint32_t to)
{
    (void)to;
    if (!states || state_of(states, agent))
        return states;
    uint64_t holders = holders_of(states);
    if (is_single(holders)) {
        uint32_t holder = lowest_agent(holders);
        bool changed_it = state_of(states, holder) == SP_MODIFIED;
        states = place(holder, changed_it ? SP_OWNED : SP_SHARED);
    }
    return states | place(agent, SP_SHARED);
}

static uint64_t after_write(uint64_t states, uint32_t agent, uint32_t to)
{
    (void)states;
    (void)to;
    return place(agent, SP_MODIFIED);
}

/* One agent less; a copy that is left alone becomes M if it was O, and else E. */
static uint64_t after_leaving(uint64_t states, uint32_t agent, uint32_t to)
{
    (void)to;
    states &= ~(STATE_MASK << (STATE_BITS * agent));
    uint64_t holders = holders_of(states);
    if (!is_single(holders))
        return states;
    uint32_t holder = lowest_agent(holders);
    switch (state_of(states, holder)) {
    case SP_OWNED:
        return place(holder, SP_MODIFIED);
    case SP_SHARED:
        return place(holder, SP_EXCLUSIVE);
    default:
        return states;
    }
}

static uint64_t after_damage(uint64_t states, uint32_t agent, uint32_t to)
{
    return is_alone(states, agent) ? states : after_leaving(states, agent, to);
}

static uint64_t after_evicting(uint64_t states, uint32_t agent, uint32_t to)
{
    return is_alone(states, agent) ? place(to, state_of(states, agent))
                                   : after_leaving(states, agent, to);
}

static bool read_needs_transfer(uint64_t states, uint32_t agent)
{
    return states && !state_of(states, agent);
}

/* Transfers. */

void sp_transfers_finish(struct sp_transfers *transfers)
{
    free(transfers->list);
    *transfers = (struct sp_transfers){0};
}

static int reserve_transfers(struct sp_transfers *transfers, size_t more)
{
    if (more <= transfers->capacity - transfers->count)
        return 0;
    size_t needed = transfers->count + more, capacity = transfers->capacity * 2;
    if (capacity < FEW_TRANSFERS)
        capacity = FEW_TRANSFERS;
    if (capacity < needed)
        capacity = needed;
    if (capacity > SIZE_MAX / sizeof *transfers->list)
        return -ENOMEM;
    struct sp_transfer *list = sp_realloc(transfers->list, capacity * sizeof *list);
    if (!list)
        return -ENOMEM;
    transfers->list = list;
    transfers->capacity = capacity;
    return 0;
}

/* The nearest holder, then the one of which least was asked, then the lowest. There is one. */
static uint32_t choose_source(uint64_t holders, uint32_t destination, sp_distance *distance,
                              void *data, const struct sp_transfers *transfers)
{
    uint32_t best = lowest_agent(holders), best_distance = 0;
    if (is_single(holders))
        return best;
    if (distance)
        best_distance = distance(data, best, destination);
    for (holders &= holders - 1; holders; holders &= holders - 1) {
        uint32_t agent = lowest_agent(holders);
        uint32_t its_distance = distance ? distance(data, agent, destination) : 0;
        if (its_distance < best_distance ||
            (its_distance == best_distance && transfers->asked[agent] < transfers->asked[best])) {
            best = agent;
            best_distance = its_distance;
        }
    }
    return best;
}

/* Room for it was reserved. Offsets of other calls may be of other regions: only transfers from
 * `start` on are merged with. Runs come in order, so only the last one can touch. */
static void append_transfer(struct sp_transfers *transfers, size_t start, struct sp_transfer added)
{
    transfers->asked[added.source] += added.end - added.first;
    if (transfers->count > start) {
        struct sp_transfer *last = &transfers->list[transfers->count - 1];
        if (last->end == added.first && last->source == added.source) {
            last->end = added.end;
            return;
        }
    }
    transfers->list[transfers->count++] = added;
}

/* Runs. */

void sp_directory_init(struct sp_directory *directory, uint64_t bytes)
{
    assert(bytes > 0);
    *directory = (struct sp_directory){.bytes = bytes, .count = 1};
}

void sp_directory_finish(struct sp_directory *directory)
{
    if (directory->capacity)
        free(directory->runs);
    sp_directory_init(directory, directory->bytes);
}

static struct sp_run *runs_of(struct sp_directory *directory)
{
    return directory->capacity ? directory->runs : &directory->single;
}

static const struct sp_run *const_runs_of(const struct sp_directory *directory)
{
    return directory->capacity ? directory->runs : &directory->single;
}

/* The run that holds `offset`. */
static uint32_t find_run(const struct sp_directory *directory, uint64_t offset)
{
    const struct sp_run *runs = const_runs_of(directory);
    uint32_t low = 0, high = directory->count; /* low's begins at or before it, high's behind it */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (runs[middle].first <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint64_t run_end(const struct sp_directory *directory, uint32_t index)
{
    return index + 1 < directory->count ? const_runs_of(directory)[index + 1].first
                                        : directory->bytes;
}

static int reserve_runs(struct sp_directory *directory, uint64_t count)
{
    if (count <= directory->capacity || count == 1)
        return 0;
    if (count > UINT32_MAX)
        return -ENOMEM;
    uint64_t capacity = (uint64_t)directory->capacity * 2;
    if (capacity < FEW_RUNS)
        capacity = FEW_RUNS;
    if (capacity < count)
        capacity = count;
    if (capacity > UINT32_MAX)
        capacity = UINT32_MAX;
    struct sp_run single = directory->single;
    struct sp_run *runs =
        sp_realloc(directory->capacity ? directory->runs : NULL, (size_t)capacity * sizeof *runs);
    if (!runs)
        return -ENOMEM;
    if (!directory->capacity)
        runs[0] = single;
    directory->runs = runs;
    directory->capacity = (uint32_t)capacity;
    return 0;
}

/* Gives back an array of which three quarters stand empty. It keeps half of the rest free, so that
 * growing and shrinking in turn does not copy each time. */
static void shrink_runs(struct sp_directory *directory)
{
    if (directory->capacity <= FEW_RUNS || directory->count > directory->capacity / 4)
        return;
    if (directory->count == 1) {
        struct sp_run single = directory->runs[0];
        free(directory->runs);
        directory->single = single;
        directory->capacity = 0;
        return;
    }
    uint32_t capacity = directory->count * 2 < FEW_RUNS ? FEW_RUNS : directory->count * 2;
    struct sp_run *runs = sp_realloc(directory->runs, capacity * sizeof *runs);
    if (!runs)
        return; /* it stays as it is */
    directory->runs = runs;
    directory->capacity = capacity;
}

/* Runs on their way into a window; with runs == NULL they are only counted. */
struct output {
    struct sp_run *runs;
    uint32_t count;
    uint64_t states; /* of the run before the next one */
};

static void put(struct output *output, uint64_t first, uint64_t states)
{
    if (states == output->states)
        return;
    output->states = states;
    if (output->runs)
        output->runs[output->count] = (struct sp_run){first, states};
    output->count++;
}

/* What stands in the window after the change: the part before the range, the touched runs with
 * their next words, and what follows, merged. Only the first part can make it write ahead of where
 * it reads, by one run, so it reads one run ahead and works in place. Returns the number of runs.
 */
static uint32_t rebuild(const struct sp_directory *directory, const struct change *change,
                        const struct window *window, struct sp_run *to)
{
    const struct sp_run *runs = const_runs_of(directory);
    struct sp_run run = runs[window->begin];
    uint64_t old_states = 0;
    struct output output = {.runs = to, .states = NO_STATES};
    if (window->begin > 0)
        output.states = runs[window->begin - 1].states;

    if (run.first < change->first)
        put(&output, run.first, run.states);
    for (uint32_t i = window->begin; i < window->touched_end; i++) {
        struct sp_run ahead = {.first = directory->bytes};
        if (i + 1 < directory->count)
            ahead = runs[i + 1];
        put(&output, run.first < change->first ? change->first : run.first,
            change->next(run.states, change->agent, change->to));
        old_states = run.states;
        run = ahead;
    }
    if (run.first > change->end)
        put(&output, change->end, old_states);
    else if (change->end < directory->bytes)
        put(&output, run.first, run.states);
    return output.count;
}

/* False if the change changes nothing; then nothing has to be moved either. */
static bool measure(const struct sp_directory *directory, const struct change *change,
                    struct window *window)
{
    const struct sp_run *runs = const_runs_of(directory);
    bool changes = false;
    uint32_t i = find_run(directory, change->first);
    *window = (struct window){.begin = i};
    do {
        uint64_t states = runs[i].states;
        changes |= change->next(states, change->agent, change->to) != states;
        window->moved += change->moves && change->moves(states, change->agent);
        i++;
    } while (i < directory->count && runs[i].first < change->end);
    if (!changes)
        return false;
    window->touched_end = i;
    window->end = i + (i < directory->count && runs[i].first == change->end);
    window->made = rebuild(directory, change, window, NULL);
    return true;
}

static uint64_t count_after(const struct sp_directory *directory, const struct window *window)
{
    return (uint64_t)directory->count - (window->end - window->begin) + window->made;
}

/* Room for it was reserved. */
static void apply(struct sp_directory *directory, const struct change *change,
                  const struct window *window)
{
    struct sp_run *runs = runs_of(directory);
    struct sp_run *behind = runs + window->end, *behind_after = runs + window->begin + window->made;
    size_t behind_bytes = (directory->count - window->end) * sizeof *runs;
    uint32_t count = (uint32_t)count_after(directory, window);

    /* What is behind makes room before, or closes up after. The one run of it that rebuild may read
     * is still in its old place as well, and nothing has been written over it by then. */
    if (behind_after > behind)
        memmove(behind_after, behind, behind_bytes);
    rebuild(directory, change, window, runs + window->begin);
    if (behind_after < behind)
        memmove(behind_after, behind, behind_bytes);
    directory->count = count;
    shrink_runs(directory);
}

static void append_transfers(const struct sp_directory *directory, const struct change *change,
                             const struct window *window, sp_distance *distance, void *data,
                             struct sp_transfers *transfers)
{
    const struct sp_run *runs = const_runs_of(directory);
    size_t start = transfers->count;
    if (start == 0)
        memset(transfers->asked, 0, sizeof transfers->asked);
    for (uint32_t i = window->begin; i < window->touched_end; i++) {
        if (!change->moves(runs[i].states, change->agent))
            continue;
        uint64_t end = run_end(directory, i);
        struct sp_transfer transfer = {
            .first = runs[i].first < change->first ? change->first : runs[i].first,
            .end = end > change->end ? change->end : end,
            .source =
                choose_source(holders_of(runs[i].states), change->to, distance, data, transfers),
            .destination = change->to,
        };
        append_transfer(transfers, start, transfer);
    }
}

static bool is_valid(const struct sp_directory *directory, const struct change *change)
{
    return change->first <= change->end && change->end <= directory->bytes &&
           change->agent < SP_MAX_AGENTS && change->to < SP_MAX_AGENTS;
}

static int change_range(struct sp_directory *directory, const struct change *change,
                        sp_distance *distance, void *data, struct sp_transfers *transfers)
{
    struct window window;
    assert(is_valid(directory, change));
    if (change->first == change->end || !measure(directory, change, &window))
        return 0;
    if (reserve_runs(directory, count_after(directory, &window)))
        return -ENOMEM;
    if (window.moved) {
        if (reserve_transfers(transfers, window.moved))
            return -ENOMEM;
        append_transfers(directory, change, &window, distance, data, transfers);
    }
    apply(directory, change, &window);
    return 0;
}

/* The interface. */

int sp_directory_acquire(struct sp_directory *directory, uint64_t first, uint64_t end,
                         uint32_t agent, enum sp_access access, sp_distance *distance, void *data,
                         struct sp_transfers *transfers)
{
    struct change change = {
        .first = first,
        .end = end,
        .agent = agent,
        .to = agent,
        .next = access == SP_ACCESS_READ ? after_read : after_write,
        .moves = access == SP_ACCESS_DISCARD ? NULL : read_needs_transfer,
    };
    return change_range(directory, &change, distance, data, transfers);
}

int sp_directory_written(struct sp_directory *directory, uint64_t first, uint64_t end,
                         uint32_t agent)
{
    struct change change = {first, end, agent, agent, after_write, NULL};
    return change_range(directory, &change, NULL, NULL, NULL);
}

int sp_directory_forget(struct sp_directory *directory, uint64_t first, uint64_t end,
                        uint32_t agent)
{
    struct change change = {first, end, agent, agent, after_leaving, NULL};
    return change_range(directory, &change, NULL, NULL, NULL);
}

int sp_directory_distrust(struct sp_directory *directory, uint64_t first, uint64_t end,
                          uint32_t agent)
{
    struct change change = {first, end, agent, agent, after_damage, NULL};
    return change_range(directory, &change, NULL, NULL, NULL);
}

int sp_directory_evict(struct sp_directory *directory, uint64_t first, uint64_t end, uint32_t agent,
                       uint32_t to, struct sp_transfers *transfers)
{
    struct change change = {first, end, agent, to, after_evicting, is_alone};
    assert(agent != to);
    return change_range(directory, &change, NULL, NULL, transfers);
}

/* M and E may be neighbours: what is lost is told in ranges as large as can be. */
static void tell_lost(const struct sp_directory *directory, uint32_t agent,
                      void (*lost)(void *data, uint64_t first, uint64_t end), void *data)
{
    const struct sp_run *runs = const_runs_of(directory);
    for (uint32_t i = 0; i < directory->count; i++) {
        if (!is_alone(runs[i].states, agent))
            continue;
        uint64_t first = runs[i].first;
        while (i + 1 < directory->count && is_alone(runs[i + 1].states, agent))
            i++;
        lost(data, first, run_end(directory, i));
    }
}

void sp_directory_drop(struct sp_directory *directory, uint32_t agent,
                       void (*lost)(void *data, uint64_t first, uint64_t end), void *data_of_lost)
{
    struct change change = {0, directory->bytes, agent, agent, after_leaving, NULL};
    struct window window;
    assert(is_valid(directory, &change));
    if (!measure(directory, &change, &window))
        return;
    if (lost)
        tell_lost(directory, agent, lost, data_of_lost);
    apply(directory, &change, &window);
}

enum sp_moesi sp_directory_state(const struct sp_directory *directory, uint64_t offset,
                                 uint32_t agent)
{
    assert(offset < directory->bytes && agent < SP_MAX_AGENTS);
    return state_of(const_runs_of(directory)[find_run(directory, offset)].states, agent);
}

bool sp_directory_is_alone(const struct sp_directory *directory, uint64_t first, uint64_t end,
                           uint32_t agent)
{
    const struct sp_run *runs = const_runs_of(directory);
    assert(first < end && end <= directory->bytes && agent < SP_MAX_AGENTS);
    for (uint32_t i = find_run(directory, first); i < directory->count && runs[i].first < end; i++)
        if (is_alone(runs[i].states, agent))
            return true;
    return false;
}

bool sp_directory_is_held(const struct sp_directory *directory, uint64_t first, uint64_t end)
{
    const struct sp_run *runs = const_runs_of(directory);
    assert(first <= end && end <= directory->bytes);
    if (first == end)
        return true;
    for (uint32_t i = find_run(directory, first); i < directory->count && runs[i].first < end; i++)
        if (!runs[i].states)
            return false;
    return true;
}

bool sp_directory_is_current(const struct sp_directory *directory, uint64_t first, uint64_t end,
                             uint32_t agent)
{
    const struct sp_run *runs = const_runs_of(directory);
    assert(first <= end && end <= directory->bytes && agent < SP_MAX_AGENTS);
    if (first == end)
        return true;
    for (uint32_t i = find_run(directory, first); i < directory->count && runs[i].first < end; i++)
        if (read_needs_transfer(runs[i].states, agent))
            return false;
    return true;
}

/* Whether the states of a run have what is looked for. */
struct search {
    bool (*is_found)(const struct search *search, uint64_t states);
    uint32_t agent;
    sp_distance *distance;
    void *data;
};

/* The next part of [*first, *end) whose runs have it: true, and its ends. */
static bool find_part(const struct sp_directory *directory, uint64_t *first, uint64_t *end,
                      const struct search *search)
{
    const struct sp_run *runs = const_runs_of(directory);
    assert(*first <= *end && *end <= directory->bytes);
    if (*first == *end)
        return false;
    uint32_t i = find_run(directory, *first);
    while (i < directory->count && runs[i].first < *end &&
           !search->is_found(search, runs[i].states))
        i++;
    if (i == directory->count || runs[i].first >= *end)
        return false;
    if (runs[i].first > *first)
        *first = runs[i].first;
    while (i < directory->count && runs[i].first < *end && search->is_found(search, runs[i].states))
        i++;
    if (i < directory->count && runs[i].first < *end)
        *end = runs[i].first;
    return true;
}

static bool is_out_of_reach(const struct search *search, uint64_t states)
{
    if (!read_needs_transfer(states, search->agent))
        return false;
    for (uint64_t holders = holders_of(states); holders; holders &= holders - 1)
        if (search->distance(search->data, lowest_agent(holders), search->agent) != SP_OUT_OF_REACH)
            return false;
    return true;
}

bool sp_directory_out_of_reach(const struct sp_directory *directory, uint64_t *first, uint64_t *end,
                               uint32_t agent, sp_distance *distance, void *data)
{
    const struct search search = {is_out_of_reach, agent, distance, data};
    assert(agent < SP_MAX_AGENTS);
    return find_part(directory, first, end, &search);
}

static bool is_unheld(const struct search *search, uint64_t states)
{
    (void)search;
    return !states;
}

bool sp_directory_unheld(const struct sp_directory *directory, uint64_t *first, uint64_t *end)
{
    const struct search search = {.is_found = is_unheld};
    return find_part(directory, first, end, &search);
}

size_t sp_directory_runs_in(const struct sp_directory *directory, uint64_t first, uint64_t end)
{
    assert(first <= end && end <= directory->bytes);
    if (first == end)
        return 0;
    return (size_t)find_run(directory, end - 1) - find_run(directory, first) + 1;
}
