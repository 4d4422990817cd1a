/* The GPU's side of the atomic unit (docs/atomic-unit.md; layouts: gpu_abi.h): what the work-items
 * of a warp that came together do with an atomic operation of all-devices scope.
 *
 * In what OpenCL C and C have in common, on top of a few functions that stand for instructions
 * (unit_device.h; tests have others), so that the same text is the library's, the self-test's of
 * the cuda backend, and the unit tests'. `group` and `warp` are masks of work-items of a warp, by
 * lane; all of a group call what has it as an argument.
 */
#ifndef SP_KERNELS_NVPTX_UNIT_H
#define SP_KERNELS_NVPTX_UNIT_H

/* gpu_abi.h */
#define UNIT_EXCHANGE 1u
#define UNIT_ADD 2u
#define UNIT_AND 3u
#define UNIT_OR 4u
#define UNIT_XOR 5u
#define UNIT_MIN_SIGNED 6u
#define UNIT_MAX_SIGNED 7u
#define UNIT_MIN_UNSIGNED 8u
#define UNIT_MAX_UNSIGNED 9u
#define UNIT_COMPARE_EXCHANGE 10u
#define UNIT_ADD_FLOAT 11u
#define UNIT_WIDE 32u
#define UNIT_SLOTS 4096u
#define UNIT_SLOT_BYTES 64u
#define UNIT_SLOT_REPLY 32u
#define UNIT_PAYLOAD_BITS 48
#define UNIT_PAYLOAD ((1UL << UNIT_PAYLOAD_BITS) - 1)
#define UNIT_TICKETS 8u /* offsets in struct sp_gpu_unit */
#define UNIT_PATIENCE 16u
#define UNIT_TURNS 24u

/* Pauses between looks at what another must change, in nanoseconds. The first is short beside a
 * look over the bus (1.5 us); the last keeps thousands of waiting warps from filling the bus. */
#define UNIT_FIRST_PAUSE 100u
#define UNIT_LAST_PAUSE 20000u

static uint unit_longer(uint nanoseconds)
{
    return nanoseconds < UNIT_LAST_PAUSE ? nanoseconds + nanoseconds / 2 : nanoseconds;
}

static uint unit_lowest(uint mask)
{
    return (uint)__builtin_ctz(mask);
}

static ulong unit_apply(uint operation, ulong a, ulong b)
{
    switch (operation & ~UNIT_WIDE) {
    case UNIT_ADD:
        return a + b;
    case UNIT_AND:
        return a & b;
    case UNIT_OR:
        return a | b;
    case UNIT_XOR:
        return a ^ b;
    case UNIT_MIN_SIGNED:
        return (long)a < (long)b ? a : b;
    case UNIT_MAX_SIGNED:
        return (long)a > (long)b ? a : b;
    case UNIT_MIN_UNSIGNED:
        return a < b ? a : b;
    case UNIT_MAX_UNSIGNED:
        return a > b ? a : b;
    default:
        return b; /* an exchange */
    }
}

/* What one work-item asks of the server, from ticket to reply. */
static ulong unit_request(ulong unit, uint operation, ulong address, ulong operand, ulong compare)
{
    ulong number = device_add(unit + UNIT_TICKETS, 1);
    uint slot = (uint)number % UNIT_SLOTS, turn = (uint)(number / UNIT_SLOTS);
    ulong tag = (number / UNIT_SLOTS + 1) << UNIT_PAYLOAD_BITS;
    ulong place = device_constant(unit) + slot * UNIT_SLOT_BYTES;
    uint pause = UNIT_FIRST_PAUSE;
    ulong low, high, looks = device_constant(unit + UNIT_PATIENCE);
    while (device_load(unit + UNIT_TURNS + 4 * slot) != turn) {
        if (--looks == 0)
            return 0;
        warp_pause(pause);
        pause = unit_longer(pause);
    }
    host_store_pair(place, (address & UNIT_PAYLOAD) | tag, (operand & UNIT_PAYLOAD) | tag);
    host_store_pair(place + 16,
                    (operand >> 48) | (ulong)operation << 16 | (compare & 0xffffff) << 24 | tag,
                    compare >> 24 | tag);
    pause = UNIT_FIRST_PAUSE;
    for (;;) {
        host_load_pair(place + UNIT_SLOT_REPLY, &low, &high);
        if ((low & ~UNIT_PAYLOAD) == tag && (high & ~UNIT_PAYLOAD) == tag)
            break;
        if (--looks == 0)
            return 0;
        warp_pause(pause);
        pause = unit_longer(pause);
    }
    device_store(unit + UNIT_TURNS + 4 * slot, turn + 1);
    return (low & UNIT_PAYLOAD) | high << 48;
}

/* The leader's request, with the order that all of the group need before and after it. */
static ulong unit_ask(ulong unit, uint group, uint operation, ulong address, ulong operand,
                      ulong compare)
{
    uint leader = unit_lowest(group);
    ulong old = 0;
    warp_sync(group);
    system_fence();
    if (warp_lane() == leader)
        old = unit_request(unit, operation, address, operand, compare);
    old = warp_take(group, old, leader);
    system_fence();
    warp_sync(group);
    return old;
}

static ulong unit_compare_exchange(ulong unit, uint group, uint operation, ulong address,
                                   ulong operand, ulong compare)
{
    for (;;) {
        uint leader = unit_lowest(group);
        bool is_leader = warp_lane() == leader;
        ulong old = unit_ask(unit, group, operation, address, operand, compare);
        ulong expected = warp_take(group, compare, leader);
        ulong desired = warp_take(group, operand, leader);
        ulong left = old == expected ? desired : old;
        /* Right behind the leader's operation: failed. */
        uint others = warp_vote(group, !is_leader && compare == left);
        if (is_leader)
            return old;
        if (compare != left)
            return left;
        group = others;
    }
}

static ulong unit_combined(ulong unit, uint group, uint operation, ulong address, ulong operand)
{
    uint lane = warp_lane(), leader = unit_lowest(group);
    uint before_mask = group & ((1u << lane) - 1);
    uint kind = operation & ~UNIT_WIDE;
    ulong before = operand,
          total = operand; /* of those in front, where there are any; and of all */
    if (group & (group - 1)) {
        bool is_same = operand == warp_take(group, operand, leader);
        if (warp_vote(group, is_same) == group) {
            uint count = (uint)__builtin_popcount(group);
            uint in_front = (uint)__builtin_popcount(before_mask);
            if (kind == UNIT_ADD) {
                total = operand * count;
                before = operand * in_front;
            } else if (kind == UNIT_XOR) {
                total = count & 1 ? operand : 0;
                before = in_front & 1 ? operand : 0;
            }
        } else {
            uint rest = group & (group - 1);
            total = before = warp_take(group, operand, leader);
            for (; rest; rest &= rest - 1) {
                uint next = unit_lowest(rest);
                total = unit_apply(operation, total, warp_take(group, operand, next));
                if (next < lane)
                    before = total;
            }
        }
    }
    ulong old = unit_ask(unit, group, operation, address, total, 0);
    if (lane == leader)
        return old;
    if (operation == UNIT_MIN_SIGNED || operation == UNIT_MAX_SIGNED)
        old = (ulong)(long)(int)old;
    return unit_apply(operation, old, before);
}

/* An operation of gpu_abi.h on the word at `address`: its old value, of which 32 bits count where
 * the word has no more. */
static ulong unit_perform(ulong unit, uint operation, ulong address, ulong operand, ulong compare)
{
    uint kind = operation & ~UNIT_WIDE;
    if (kind >= UNIT_ADD_FLOAT)
        return unit_ask(unit, 1u << warp_lane(), operation, address, operand, compare);
    /* Nothing between the two: who is there at the first comes to the second. */
    uint group = warp_match(warp_active(), address | (ulong)operation << UNIT_PAYLOAD_BITS);
    if (kind == UNIT_COMPARE_EXCHANGE)
        return unit_compare_exchange(unit, group, operation, address, operand, compare);
    return unit_combined(unit, group, operation, address, operand);
}

#endif
