/* See transpose.h. A register holds lanes / width rows, and there are `width` of them. Work is done
 * in two steps, each of which x86 has instructions for:
 *
 * - In blocks of 128 bits. A block holds PART elements (4 of 32 bits, 2 of 64) of a row; PART
 *   registers with PART neighbouring rows in the same block are turned by unpacking low and high
 *   halves. Each block then holds one element of PART rows.
 * - Of whole blocks. Registers are taken apart into those in even and those in odd places, until
 *   each has the blocks of one element.
 *
 * Rows shorter than a block are taken apart element by element. The way back is the same backwards.
 * The order of rows in registers is what makes the first step end in the lanes' order. */
#include "compiler/cc/workgroup/transpose.h"

#include <stdbool.h>

#define BLOCK_BITS 128u
#define MOST 16u

struct turn {
    LLVMBuilderRef builder;
    LLVMTypeRef i32;
    unsigned lanes, width;
    unsigned part; /* elements of a block; 1 where rows are shorter than a block */
};

static LLVMValueRef shuffle(const struct turn *turn, LLVMValueRef a, LLVMValueRef b,
                            const unsigned *mask, unsigned count)
{
    LLVMValueRef numbers[2 * MOST];
    for (unsigned i = 0; i < count; i++)
        numbers[i] = LLVMConstInt(turn->i32, mask[i], false);
    return LLVMBuildShuffleVector(turn->builder, a, b, LLVMConstVector(numbers, count), "");
}

/* Of each block, the low or high halves of a and b, a piece of `piece` elements in turns. */
static LLVMValueRef unpack(const struct turn *turn, LLVMValueRef a, LLVMValueRef b, unsigned piece,
                           bool high)
{
    unsigned mask[MOST], count = 0;
    for (unsigned block = 0; block < turn->lanes; block += turn->part)
        for (unsigned i = 0; i < turn->part / 2; i += piece)
            for (unsigned side = 0; side < 2; side++)
                for (unsigned k = 0; k < piece; k++)
                    mask[count++] =
                        side * turn->lanes + block + (high ? turn->part / 2 : 0) + i + k;
    return shuffle(turn, a, b, mask, count);
}

/* Turns blocks: element e of block b of registers[r] becomes element r of block b of registers[e].
 */
static void turn_blocks(const struct turn *turn, LLVMValueRef *registers)
{
    LLVMValueRef r[4];
    if (turn->part == 2) {
        r[0] = unpack(turn, registers[0], registers[1], 1, false);
        r[1] = unpack(turn, registers[0], registers[1], 1, true);
        registers[0] = r[0];
        registers[1] = r[1];
    } else if (turn->part == 4) {
        for (unsigned i = 0; i < 4; i++)
            r[i] = unpack(turn, registers[i & 2], registers[(i & 2) + 1], 1, i & 1);
        for (unsigned i = 0; i < 4; i++)
            registers[i] = unpack(turn, r[i >> 1], r[2 + (i >> 1)], 2, i & 1);
    }
}

/* The blocks in even (or odd) places of a, then those of b. */
static LLVMValueRef take_apart(const struct turn *turn, LLVMValueRef a, LLVMValueRef b,
                               unsigned odd)
{
    unsigned mask[MOST];
    for (unsigned i = 0; i < turn->lanes; i++) {
        unsigned block = i / turn->part;
        mask[i] = (2 * block + odd) * turn->part + i % turn->part;
    }
    return shuffle(turn, a, b, mask, turn->lanes);
}

/* The blocks of the low (or high) halves of a and b in turns. */
static LLVMValueRef put_together(const struct turn *turn, LLVMValueRef a, LLVMValueRef b,
                                 unsigned high)
{
    unsigned mask[MOST];
    for (unsigned i = 0; i < turn->lanes; i++) {
        unsigned block = i / turn->part;
        mask[i] = (block & 1) * turn->lanes + high * turn->lanes / 2 + block / 2 * turn->part +
                  i % turn->part;
    }
    return shuffle(turn, a, b, mask, turn->lanes);
}

/* From `count` registers in the order of rows to registers[first], [first + step] ... of `to`, each
 * with one place's blocks of all rows. */
static void part_places(const struct turn *turn, LLVMValueRef *from, unsigned count,
                        LLVMValueRef *to, unsigned first, unsigned step)
{
    LLVMValueRef halves[2][MOST];
    if (count == 1) {
        to[first] = from[0];
        return;
    }
    for (unsigned i = 0; i < count; i += 2)
        for (unsigned odd = 0; odd < 2; odd++)
            halves[odd][i / 2] = take_apart(turn, from[i], from[i + 1], odd);
    part_places(turn, halves[0], count / 2, to, first, 2 * step);
    part_places(turn, halves[1], count / 2, to, first + step, 2 * step);
}

static void join_places(const struct turn *turn, LLVMValueRef *from, unsigned first, unsigned step,
                        LLVMValueRef *to, unsigned count)
{
    LLVMValueRef halves[2][MOST];
    if (count == 1) {
        to[0] = from[first];
        return;
    }
    join_places(turn, from, first, 2 * step, halves[0], count / 2);
    join_places(turn, from, first + step, 2 * step, halves[1], count / 2);
    for (unsigned i = 0; i < count; i++)
        to[i] = put_together(turn, halves[0][i / 2], halves[1][i / 2], i & 1);
}

static struct turn begin(LLVMBuilderRef builder, LLVMValueRef vector, unsigned lanes,
                         unsigned width)
{
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(vector));
    LLVMTypeKind kind = LLVMGetTypeKind(element);
    unsigned bits = kind == LLVMFloatTypeKind    ? 32
                    : kind == LLVMDoubleTypeKind ? 64
                                                 : LLVMGetIntTypeWidth(element);
    unsigned part = BLOCK_BITS / bits;
    return (struct turn){builder, LLVMInt32TypeInContext(LLVMGetTypeContext(element)), lanes, width,
                         width < part ? 1 : part};
}

/* The row in piece `piece` of the register number `place` of those with rows `number` of a block.
 */
static unsigned row_in(const struct turn *turn, unsigned place, unsigned number, unsigned piece)
{
    return turn->part * (place * (turn->lanes / turn->width) + piece) + number;
}

/* One register of lanes / width rows. */
static LLVMValueRef gather_rows(const struct turn *turn, LLVMValueRef *rows, unsigned place,
                                unsigned number)
{
    LLVMValueRef pieces[MOST];
    unsigned mask[MOST], count = turn->lanes / turn->width;
    for (unsigned i = 0; i < turn->lanes; i++)
        mask[i] = i;
    for (unsigned i = 0; i < count; i++)
        pieces[i] = rows[row_in(turn, place, number, i)];
    for (unsigned width = turn->width; count > 1; count /= 2, width *= 2)
        for (unsigned i = 0; i < count / 2; i++)
            pieces[i] = shuffle(turn, pieces[2 * i], pieces[2 * i + 1], mask, 2 * width);
    return pieces[0];
}

void sp_wg_rows_to_columns(LLVMBuilderRef builder, LLVMValueRef *rows, unsigned lanes,
                           unsigned width, LLVMValueRef *columns)
{
    struct turn turn = begin(builder, rows[0], lanes, width);
    LLVMValueRef registers[MOST][MOST], places[MOST]; /* by row of a block, then by place */
    unsigned count = width / turn.part;
    for (unsigned place = 0; place < count; place++) {
        LLVMValueRef block[MOST];
        for (unsigned number = 0; number < turn.part; number++)
            block[number] = gather_rows(&turn, rows, place, number);
        turn_blocks(&turn, block);
        for (unsigned number = 0; number < turn.part; number++)
            registers[number][place] = block[number];
    }
    for (unsigned number = 0; number < turn.part; number++) {
        part_places(&turn, registers[number], count, places, 0, 1);
        for (unsigned place = 0; place < count; place++)
            columns[place * turn.part + number] = places[place];
    }
}

void sp_wg_columns_to_rows(LLVMBuilderRef builder, LLVMValueRef *columns, unsigned lanes,
                           unsigned width, LLVMValueRef *rows)
{
    struct turn turn = begin(builder, columns[0], lanes, width);
    LLVMValueRef registers[MOST][MOST], places[MOST];
    unsigned count = width / turn.part, mask[MOST];
    for (unsigned place = 0; place < count; place++) {
        turn_blocks(&turn, columns + place * turn.part);
        for (unsigned number = 0; number < turn.part; number++)
            registers[number][place] = columns[place * turn.part + number];
    }
    for (unsigned number = 0; number < turn.part; number++) {
        join_places(&turn, registers[number], 0, 1, places, count);
        for (unsigned place = 0; place < count; place++)
            for (unsigned piece = 0; piece < lanes / width; piece++) {
                for (unsigned e = 0; e < width; e++)
                    mask[e] = piece * width + e;
                rows[row_in(&turn, place, number, piece)] = shuffle(
                    &turn, places[place], LLVMGetPoison(LLVMTypeOf(places[place])), mask, width);
            }
    }
}
