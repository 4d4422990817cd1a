/* See unit.h. A reply is written when the operation is done, and both are a release: who sees the
 * reply sees the operation, and what the server saw through it. Operations are sequentially
 * consistent, which on x86-64 all locked instructions are anyway. Those that the processor has no
 * instruction for are loops of compare-and-exchange.
 */
#include "device/unit.h"

#include <math.h>
#include <string.h>

#define PAYLOAD ((UINT64_C(1) << SP_UNIT_PAYLOAD_BITS) - 1)

bool sp_unit_take(const struct sp_unit_slot *slots, uint64_t number,
                  struct sp_unit_request *request)
{
    const struct sp_unit_slot *slot = &slots[number % SP_UNIT_SLOTS];
    uint64_t words[4], tag = sp_unit_tag(number);
    for (unsigned i = 4; i-- > 0;) {
        /* Acquire: what the work-items did before they asked is seen by whoever sees what is about
         * to be done for them. */
        words[i] = __atomic_load_n(&slot->request[i], __ATOMIC_ACQUIRE);
        if (words[i] >> SP_UNIT_PAYLOAD_BITS != tag)
            return false;
        words[i] &= PAYLOAD;
    }
    request->address = words[0];
    request->operand = words[1] | words[2] << SP_UNIT_PAYLOAD_BITS;
    request->operation = (uint32_t)(words[2] >> 16 & 0xff);
    request->compare = words[2] >> 24 | words[3] << 24;
    return true;
}

bool sp_unit_is_sane(const struct sp_unit_request *request)
{
    uint32_t kind = request->operation & ~(uint32_t)SP_UNIT_WIDE;
    uint64_t bytes = request->operation & SP_UNIT_WIDE ? 8 : 4;
    return kind >= SP_UNIT_EXCHANGE && kind <= SP_UNIT_LAST && request->address % bytes == 0;
}

static float as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Of two numbers as the word holds them. */
static uint32_t combine_narrow(uint32_t kind, uint32_t a, uint32_t b)
{
    switch (kind) {
    case SP_UNIT_MIN_SIGNED:
        return (int32_t)a < (int32_t)b ? a : b;
    case SP_UNIT_MAX_SIGNED:
        return (int32_t)a > (int32_t)b ? a : b;
    case SP_UNIT_MIN_UNSIGNED:
        return a < b ? a : b;
    case SP_UNIT_MAX_UNSIGNED:
        return a > b ? a : b;
    case SP_UNIT_ADD_FLOAT:
        return float_bits(as_float(a) + as_float(b));
    case SP_UNIT_MIN_FLOAT:
        return float_bits(fminf(as_float(a), as_float(b)));
    default:
        return float_bits(fmaxf(as_float(a), as_float(b)));
    }
}

static uint64_t combine_wide(uint32_t kind, uint64_t a, uint64_t b)
{
    switch (kind) {
    case SP_UNIT_MIN_SIGNED:
        return (int64_t)a < (int64_t)b ? a : b;
    case SP_UNIT_MAX_SIGNED:
        return (int64_t)a > (int64_t)b ? a : b;
    case SP_UNIT_MIN_UNSIGNED:
        return a < b ? a : b;
    case SP_UNIT_MAX_UNSIGNED:
        return a > b ? a : b;
    case SP_UNIT_ADD_FLOAT:
        return double_bits(as_double(a) + as_double(b));
    case SP_UNIT_MIN_FLOAT:
        return double_bits(fmin(as_double(a), as_double(b)));
    default:
        return double_bits(fmax(as_double(a), as_double(b)));
    }
}

/* T: of the word. */
#define PERFORM(T, combine)                                                                        \
    do {                                                                                           \
        T *word = (T *)(uintptr_t)request->address;                                                \
        T operand = (T)request->operand, old = (T)request->compare;                                \
        uint32_t kind = request->operation & ~(uint32_t)SP_UNIT_WIDE;                              \
        switch (kind) {                                                                            \
        case SP_UNIT_EXCHANGE:                                                                     \
            return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);                           \
        case SP_UNIT_ADD:                                                                          \
            return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);                            \
        case SP_UNIT_AND:                                                                          \
            return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);                            \
        case SP_UNIT_OR:                                                                           \
            return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);                             \
        case SP_UNIT_XOR:                                                                          \
            return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);                            \
        case SP_UNIT_COMPARE_EXCHANGE:                                                             \
            __atomic_compare_exchange_n(word, &old, operand, false, __ATOMIC_SEQ_CST,              \
                                        __ATOMIC_SEQ_CST);                                         \
            return old;                                                                            \
        default:                                                                                   \
            old = __atomic_load_n(word, __ATOMIC_RELAXED);                                         \
            while (!__atomic_compare_exchange_n(word, &old, combine(kind, old, operand), true,     \
                                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))               \
                ;                                                                                  \
            return old;                                                                            \
        }                                                                                          \
    } while (0)

static uint64_t perform(const struct sp_unit_request *request)
{
    if (request->operation & SP_UNIT_WIDE)
        PERFORM(uint64_t, combine_wide);
    PERFORM(uint32_t, combine_narrow);
}

void sp_unit_serve(struct sp_unit_slot *slots, uint64_t number,
                   const struct sp_unit_request *request)
{
    struct sp_unit_slot *slot = &slots[number % SP_UNIT_SLOTS];
    uint64_t old = perform(request), tag = sp_unit_tag(number) << SP_UNIT_PAYLOAD_BITS;
    /* Release: whoever sees the reply sees the operation. */
    __atomic_store_n(&slot->reply[1], old >> SP_UNIT_PAYLOAD_BITS | tag, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->reply[0], (old & PAYLOAD) | tag, __ATOMIC_RELEASE);
}
