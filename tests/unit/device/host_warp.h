/* Warps on the host: what kernels/nvptx/unit.h needs of a GPU, so that tests run the GPU's side of
 * the atomic unit. A work-item is a thread, which says who it is (host_warp, host_lane); a GPU's
 * memory is the process's own, the ring may be shared with another process.
 *
 * What work-items of a warp do together is a meeting: the last one to come hands everybody what all
 * have brought.
 */
#ifndef SP_TESTS_UNIT_HOST_WARP_H
#define SP_TESTS_UNIT_HOST_WARP_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define HOST_LANES 32u

/* UNIT_LAST_PAUSE of unit.h, which comes behind this. */
#define HOST_SLEEP_NS 20000u

struct host_warp {
    pthread_mutex_t lock;
    pthread_cond_t moved[HOST_LANES]; /* the lane's meeting is over */
    uint active;                      /* lanes that take part in each operation */
    struct host_meeting {
        uint group; /* 0: none */
        uint count; /* who has come */
        ulong brought[HOST_LANES];
    } meetings[HOST_LANES]; /* of groups that may overlap: who has left one early is in the next */
    ulong handed[HOST_LANES][HOST_LANES];
    bool is_over[HOST_LANES];
};

static _Thread_local struct host_warp *host_warp;
static _Thread_local uint host_lane;

static inline void host_warp_init(struct host_warp *warp, uint active)
{
    memset(warp, 0, sizeof *warp);
    pthread_mutex_init(&warp->lock, NULL);
    for (uint lane = 0; lane < HOST_LANES; lane++)
        pthread_cond_init(&warp->moved[lane], NULL);
    warp->active = active;
}

static struct host_meeting *host_meeting_of(struct host_warp *warp, uint group)
{
    struct host_meeting *unused = NULL;
    for (uint i = 0; i < HOST_LANES; i++) {
        if (warp->meetings[i].group == group)
            return &warp->meetings[i];
        if (!warp->meetings[i].group)
            unused = &warp->meetings[i];
    }
    unused->group = group;
    return unused;
}

/* `all`, by lane: what each of the group has brought. */
static void host_meet(uint group, ulong value, ulong all[HOST_LANES])
{
    struct host_warp *warp = host_warp;
    if (group == 1u << host_lane) {
        all[host_lane] = value;
        return;
    }
    pthread_mutex_lock(&warp->lock);
    warp->is_over[host_lane] = false;
    struct host_meeting *meeting = host_meeting_of(warp, group);
    meeting->brought[host_lane] = value;
    if (++meeting->count == (uint)__builtin_popcount(group)) {
        for (uint lane = 0; lane < HOST_LANES; lane++)
            if (group >> lane & 1) {
                memcpy(warp->handed[lane], meeting->brought, sizeof warp->handed[lane]);
                warp->is_over[lane] = true;
                pthread_cond_signal(&warp->moved[lane]);
            }
        meeting->count = meeting->group = 0;
    }
    while (!warp->is_over[host_lane])
        pthread_cond_wait(&warp->moved[host_lane], &warp->lock);
    memcpy(all, warp->handed[host_lane], sizeof warp->handed[host_lane]);
    pthread_mutex_unlock(&warp->lock);
}

static uint warp_active(void)
{
    return host_warp ? host_warp->active : 1;
}

static uint warp_lane(void)
{
    return host_lane;
}

static uint warp_match(uint warp, ulong key)
{
    ulong all[HOST_LANES];
    uint mask = 0;
    host_meet(warp, key, all);
    for (uint lane = 0; lane < HOST_LANES; lane++)
        mask |= warp >> lane & 1 && all[lane] == key ? 1u << lane : 0;
    return mask;
}

static uint warp_vote(uint group, bool is_in)
{
    ulong all[HOST_LANES];
    uint mask = 0;
    host_meet(group, is_in, all);
    for (uint lane = 0; lane < HOST_LANES; lane++)
        mask |= group >> lane & 1 && all[lane] ? 1u << lane : 0;
    return mask;
}

static ulong warp_take(uint group, ulong value, uint lane)
{
    ulong all[HOST_LANES];
    host_meet(group, value, all);
    return all[lane];
}

static void warp_sync(uint group)
{
    ulong all[HOST_LANES];
    host_meet(group, 0, all);
}

static void warp_pause(uint nanoseconds)
{
    /* The longest is a sleep, so that patience lasts as long as it does on a GPU however busy the
     * machine is; shorter ones would take longer than they say. */
    if (nanoseconds >= HOST_SLEEP_NS)
        usleep(nanoseconds / 1000);
    else
        sched_yield();
}

static void system_fence(void)
{
#ifdef __SANITIZE_THREAD__
    /* ThreadSanitizer knows no fences; a read-modify-write that all share orders at least as much.
     */
    static uint word;
    __atomic_fetch_add(&word, 1, __ATOMIC_ACQ_REL);
#else
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

static ulong device_add(ulong address, ulong value)
{
    return __atomic_fetch_add((ulong *)address, value, __ATOMIC_RELAXED);
}

static uint device_load(ulong address)
{
    return __atomic_load_n((uint *)address, __ATOMIC_ACQUIRE);
}

static void device_store(ulong address, uint value)
{
    __atomic_store_n((uint *)address, value, __ATOMIC_RELEASE);
}

static ulong device_constant(ulong address)
{
    return *(const ulong *)address;
}

/* In either order, as a GPU may. */
static void host_store_pair(ulong address, ulong first, ulong second)
{
    ulong *words = (ulong *)address;
    bool is_swapped = first >> 3 & 1;
    if (is_swapped)
        __atomic_store_n(&words[1], second, __ATOMIC_RELAXED);
    __atomic_store_n(&words[0], first, __ATOMIC_RELAXED);
    if (!is_swapped)
        __atomic_store_n(&words[1], second, __ATOMIC_RELAXED);
}

static void host_load_pair(ulong address, ulong *first, ulong *second)
{
    ulong *words = (ulong *)address;
    *first = __atomic_load_n(&words[0], __ATOMIC_RELAXED);
    *second = __atomic_load_n(&words[1], __ATOMIC_RELAXED);
}

#include "kernels/nvptx/unit.h"

#endif
