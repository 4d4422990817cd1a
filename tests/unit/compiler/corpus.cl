/* Kernels that are hard to turn into work-group code. All have one signature, and write out[GID * 4 + 0..3]. */
#define GX (get_global_id(0) - get_global_offset(0))
#define GY (get_global_id(1) - get_global_offset(1))
#define GZ (get_global_id(2) - get_global_offset(2))
#define GID ((int)((GZ * get_global_size(1) + GY) * get_global_size(0) + GX))
#define LID ((int)((get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0)))
#define LSIZE ((int)(get_local_size(0) * get_local_size(1) * get_local_size(2)))
#define KERNEL(name) kernel void name(global const int *in, global int *out, uint n, local int *tmp)
#define SYNC barrier(CLK_LOCAL_MEM_FENCE)

KERNEL(plain) { out[GID * 4] = in[GID] * 3 + (int)n; }

KERNEL(ids)
{
    out[GID * 4] = (int)(get_global_id(0) + get_group_id(1) * 100 + get_num_groups(2) * 10000);
    out[GID * 4 + 1] = (int)(get_local_size(0) + get_enqueued_local_size(0) * 2000 + get_work_dim() * 4000000);
    out[GID * 4 + 2] = (int)(get_global_linear_id() * 1024 + get_local_linear_id());
    out[GID * 4 + 3] = (int)(get_global_size(1) + get_global_offset(0) * 1000 + get_local_id(2) + get_local_size(7) * 7);
}

KERNEL(reverse)
{
    tmp[LID] = in[GID];
    SYNC;
    out[GID * 4] = tmp[LSIZE - 1 - LID];
}

KERNEL(reduce)
{
    int l = LID;
    tmp[l] = in[GID];
    SYNC;
    for (int s = LSIZE; s > 1;) {
        int h = (s + 1) / 2;
        if (l + h < s)
            tmp[l] += tmp[l + h];
        SYNC;
        s = h;
    }
    out[GID * 4] = tmp[0];
}

KERNEL(scan)
{
    int l = LID;
    tmp[l] = in[GID];
    SYNC;
    for (int d = 1; d < LSIZE; d *= 2) {
        int other = l >= d ? tmp[l - d] : 0;
        SYNC;
        tmp[l] += other;
        SYNC;
    }
    out[GID * 4] = tmp[l];
}

KERNEL(uniform_loop)
{
    int sum = 0, l = LID;
    for (uint k = 0; k < n; k++) {
        tmp[l] = in[GID] + (int)k;
        SYNC;
        sum = sum * 3 + tmp[(l + (int)k) % LSIZE];
        SYNC;
    }
    out[GID * 4] = sum;
}

KERNEL(nested_uniform_loops)
{
    int sum = LID, l = LID, count = 0;
    for (uint i = 0; i < n; i++) {
        tmp[l] = sum + (int)i;
        for (uint j = 0; j < i; j++) {
            SYNC;
            sum += tmp[(l + 1) % LSIZE] * (int)(j + 1);
            SYNC;
            tmp[l] = sum;
            count++;
        }
        SYNC;
    }
    out[GID * 4] = sum;
    out[GID * 4 + 1] = count;
}

KERNEL(uniform_branch)
{
    int l = LID, v = in[GID];
    if (n & 1) {
        tmp[l] = v;
        SYNC;
        v += tmp[(l + 1) % LSIZE];
        if (n & 2) {
            SYNC;
            tmp[l] = v;
            SYNC;
            v -= tmp[(l + 2) % LSIZE];
        }
    } else {
        tmp[l] = v * 2;
        SYNC;
        v ^= tmp[LSIZE - 1 - l];
    }
    out[GID * 4] = v;
}

KERNEL(return_before)
{
    out[GID * 4] = 1;
    if (n == 5)
        return;
    tmp[LID] = in[GID];
    SYNC;
    out[GID * 4 + 1] = tmp[LSIZE - 1 - LID];
}

KERNEL(return_after)
{
    tmp[LID] = LID == 0 ? (int)n : 0;
    SYNC;
    int all = tmp[0];
    if (all == 5) {
        out[GID * 4] = 77;
        return;
    }
    SYNC;
    tmp[LID] = in[GID];
    SYNC;
    if (in[GID] & 1)
        return;
    out[GID * 4 + 1] = tmp[LSIZE - 1 - LID];
}

KERNEL(uniform_switch)
{
    int l = LID, v = in[GID];
    switch (n % 4) {
    case 0:
        tmp[l] = v;
        SYNC;
        v = tmp[LSIZE - 1 - l];
        break;
    case 1:
        tmp[l] = v + 1;
        SYNC;
        v = tmp[(l + 1) % LSIZE]; /* fall through */
    case 2:
        SYNC;
        tmp[l] = v;
        SYNC;
        v += tmp[0];
        break;
    default:
        v = -1;
    }
    out[GID * 4] = v;
}

KERNEL(break_and_continue)
{
    int l = LID, v = in[GID];
    uint k = 0;
    for (;;) {
        if (k > n)
            break;
        tmp[l] = v;
        SYNC;
        v += tmp[(l + 1) % LSIZE];
        if (k & 1) {
            k += 2;
            SYNC;
            continue;
        }
        SYNC;
        k++;
    }
    out[GID * 4] = v;
    out[GID * 4 + 1] = (int)k;
}

KERNEL(divergent_loop)
{
    int v = (in[GID] & 1023) + 1, steps = 0;
    while (v != 1) {
        v = v & 1 ? v * 3 + 1 : v / 2;
        steps++;
    }
    tmp[LID] = steps;
    SYNC;
    out[GID * 4] = tmp[LSIZE - 1 - LID];
    out[GID * 4 + 1] = steps;
}

KERNEL(nested_divergent_loops)
{
    int total = 0, v = in[GID] & 15;
    for (int i = 0; i < v; i++) {
        for (int j = i; j < (in[GID] >> 4 & 7) + i % 3; j++) {
            total += i * j + 1;
            if ((total & 63) == 33)
                break;
        }
        if (total > 500)
            break;
        total ^= i;
    }
    out[GID * 4] = total;
}

KERNEL(divergent_in_uniform_barrier_loop)
{
    int l = LID, v = in[GID] & 255;
    for (uint k = 0; k < n; k++) {
        int m = v;
        while (m > 7)
            m = m / 2 - (int)k % 2;
        tmp[l] = m;
        SYNC;
        v += tmp[(l + 3) % LSIZE];
        SYNC;
    }
    out[GID * 4] = v;
}

KERNEL(mandelbrot)
{
    float cx = (float)(GID % 37) / 18.0f - 1.5f, cy = (float)(GID / 37 % 29) / 14.0f - 1.0f, x = 0, y = 0;
    int i = 0;
    while (i < 200 && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        i++;
    }
    out[GID * 4] = i;
}

KERNEL(guarded)
{
    if ((uint)GID >= n * 13)
        return;
    int sum = 0;
    for (uint k = 0; k < n; k++)
        sum += in[k] * (GID + 1);
    for (int k = 0; k < (in[GID] & 7); k++)
        sum ^= k << 3;
    out[GID * 4] = sum;
}

KERNEL(divergent_switch)
{
    int v = in[GID], r = 0;
    switch (v & 7) {
    case 0:
        r = 10;
    case 1:
        r += 3;
        break;
    case 2:
        for (int i = 0; i < (v >> 3 & 3); i++)
            r += i;
        break;
    case 5:
        r = v;
    case 6:
        r -= 4;
    default:
        r *= 2;
    }
    tmp[LID] = r;
    SYNC;
    out[GID * 4] = tmp[(LID + 1) % LSIZE];
}

KERNEL(gotos)
{
    int r = 0, v = in[GID] & 63;
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++) {
            r += i * j;
            if (i * 9 + j == v)
                goto out_of_both;
        }
    r = -r;
out_of_both:
    tmp[LID] = r;
    SYNC;
    out[GID * 4] = tmp[LSIZE - 1 - LID] + v;
}

KERNEL(irreducible_divergent)
{
    int v = in[GID] & 31, r = 0;
    if (v & 1)
        goto middle;
top:
    r += 5;
    v--;
middle:
    r = r * 3 + v;
    v -= 2;
    if (v > 0 && r < 100000)
        goto top;
    if (v == -1 && r < 5000)
        goto middle;
    out[GID * 4] = r;
}

KERNEL(irreducible_with_barrier)
{
    int l = LID, v = in[GID];
    uint k = n;
    if (n & 1)
        goto middle;
top:
    tmp[l] = v;
    SYNC;
    v += tmp[(l + 1) % LSIZE];
    SYNC;
    k--;
middle:
    tmp[l] = v * 2;
    SYNC;
    v ^= tmp[LSIZE - 1 - l];
    for (int i = 0; i < (v & 3); i++)
        v += i;
    SYNC;
    k--;
    if ((int)k > 0)
        goto top;
    out[GID * 4] = v;
}

KERNEL(private_array)
{
    int a[8], v = in[GID];
    for (int i = 0; i < 8; i++)
        a[i] = v + i * 7;
    tmp[LID] = a[v & 7];
    SYNC;
    a[(v >> 3) & 7] += tmp[LSIZE - 1 - LID];
    SYNC;
    int s = 0;
    for (int i = 0; i < 8; i++)
        s = s * 5 + a[(i + v) & 7];
    out[GID * 4] = s;
}

struct pair { int a; char c; long b; int d[3]; };
static void change(struct pair *p, int by) { p->a += by; p->d[by & 1] = p->a; p->b -= p->c; }

KERNEL(private_struct)
{
    struct pair p = {in[GID], (char)LID, GID, {1, 2, 3}}, q;
    change(&p, 1);
    tmp[LID] = p.a;
    SYNC;
    q = p;
    change(LID & 1 ? &p : &q, tmp[LSIZE - 1 - LID] & 15);
    SYNC;
    out[GID * 4] = p.a + q.a * 3;
    out[GID * 4 + 1] = (int)(p.b + q.b);
    out[GID * 4 + 2] = p.d[0] + q.d[1] + p.d[2];
}

KERNEL(local_atomics)
{
    local int counts[16], most;
    if (LID == 0)
        most = 0;
    if (LID < 16)
        counts[LID] = 0;
    for (int i = LSIZE + LID; i < 16; i += LSIZE)
        counts[i] = 0;
    SYNC;
    atomic_inc(&counts[in[GID] & 15]);
    atomic_max(&most, in[GID]);
    SYNC;
    out[GID * 4] = counts[LID & 15];
    out[GID * 4 + 1] = most;
}

static int rotate_in_group(local int *t, int v, int by)
{
    t[LID] = v;
    SYNC;
    int r = t[(LID + by) % LSIZE];
    SYNC;
    return r;
}

KERNEL(helper_with_barrier)
{
    int v = rotate_in_group(tmp, in[GID], 1);
    if (n > 2)
        v = rotate_in_group(tmp, v * 2, 3);
    for (uint k = 0; k < n; k++)
        v += rotate_in_group(tmp, v, (int)k);
    out[GID * 4] = v;
}

KERNEL(do_while)
{
    local int go;
    int rounds = 0;
    do {
        SYNC;
        if (LID == 0)
            go = rounds < (int)n;
        SYNC;
        rounds++;
    } while (go);
    out[GID * 4] = rounds;
}

KERNEL(vectors)
{
    int4 a = (int4)(in[GID], LID, GID, (int)n);
    int3 b = a.zyx;
    float4 f = convert_float4(a);
    tmp[LID] = a.x + b.y;
    SYNC;
    a += tmp[LSIZE - 1 - LID];
    b *= a.xyz;
    if (a.x & 1) {
        a = a.wzyx;
        f *= 2.0f;
    }
    SYNC;
    vstore4(a + (int4)(b, 1) + convert_int4(f), GID, out);
}

KERNEL(uniform_updates)
{
    uint k = n, m = 1;
    int v = 0;
    SYNC;
    k = k * 2 + 1;
    tmp[LID] = (int)k;
    SYNC;
    m += k;
    k = m ^ 5;
    v = tmp[LSIZE - 1 - LID];
    SYNC;
    for (uint i = 0; i < 3; i++) {
        m = m * 3 + k;
        v += (int)m;
        if (i == 1)
            SYNC;
        k++;
    }
    out[GID * 4] = v;
    out[GID * 4 + 1] = (int)(k + m);
}

KERNEL(short_circuit)
{
    int v = in[GID], r = 0;
    for (int i = 0; i < 20 && (v > i || (v & 3) == 1) && !(i > 9 && v & 4); i++)
        r += (v >> i & 1) ? i : -1;
    SYNC;
    out[GID * 4] = r;
}

KERNEL(bools)
{
    int v = in[GID];
    bool odd = v & 1, big = v > 50;
    SYNC;
    tmp[LID] = odd != big;
    SYNC;
    bool other = tmp[LSIZE - 1 - LID];
    SYNC;
    out[GID * 4] = (odd ? 1 : 0) + (big ? 2 : 0) + (other ? 4 : 0);
}

KERNEL(guarded_uniform_loop)
{
    int sum = 0;
    if (in[GID] & 1) {
        for (uint k = 0; k < n; k++) {
            sum += in[k] ^ GID;
            for (int j = 0; j < (in[GID] & 3); j++)
                sum += j;
        }
        sum *= 2;
    } else {
        sum = -1;
    }
    SYNC;
    out[GID * 4] = sum;
}

KERNEL(many_types)
{
    char c = (char)in[GID];
    short s = (short)(in[GID] * 3);
    long l = (long)in[GID] << 33;
    double d = in[GID] * 0.5;
    uchar2 u = (uchar2)(c, 7);
    global const int *p = in + GID;
    local int *q = tmp + LID;
    *q = 5;
    SYNC;
    c += *q;
    s ^= c;
    l += s;
    d += (double)l;
    u += (uchar2)(1, c);
    q = tmp + (LSIZE - 1 - LID);
    SYNC;
    out[GID * 4] = c + s + *q;
    out[GID * 4 + 1] = (int)(l >> 31);
    out[GID * 4 + 2] = (int)(d / 1e9);
    out[GID * 4 + 3] = u.x + u.y * 256 + *p;
}

KERNEL(collectives)
{
    int v = in[GID] & 255;
    out[GID * 4] = work_group_reduce_add(v);
    out[GID * 4 + 1] = work_group_scan_inclusive_add(v);
    out[GID * 4 + 2] = work_group_broadcast(v, 0, 0, 0) + work_group_scan_exclusive_max(v);
    out[GID * 4 + 3] = work_group_any(v > 250) + 2 * work_group_all(v > 1);
}

KERNEL(apparently_divergent)
{
    int v = in[GID];
    if (LID < 100000) {
        tmp[LID] = v;
        SYNC;
        v += tmp[LSIZE - 1 - LID];
        while (LID + (int)n > 100000) {
            SYNC;
            v++;
        }
        SYNC;
    }
    out[GID * 4] = v;
}

KERNEL(continues)
{
    int r = 0, v = in[GID] & 127;
    for (uint k = 0; k < n * 4; k++) {
        if ((v + (int)k) % 3 == 0)
            continue;
        if (v > 60) {
            v -= 7;
            if (v & 1)
                continue;
            r++;
        } else if (v < 3)
            break;
        for (int j = 0; j < v; j += 5) {
            if (j == 15)
                continue;
            r += j;
        }
        v--;
    }
    SYNC;
    out[GID * 4] = r;
    out[GID * 4 + 1] = v;
}

KERNEL(loaded_trip_count)
{
    int count = in[0] & 7, v = in[GID];
    for (int k = 0; k < count; k++) {
        tmp[LID] = v;
        SYNC;
        v = v * 3 + tmp[(LID + 1) % LSIZE];
        SYNC;
    }
    out[GID * 4] = v;
}

KERNEL(global_atomics)
{
    atomic_add(out, in[GID] & 15);
    if (in[GID] & 1)
        atomic_inc(out + 1);
}

KERNEL(divergent_then_barrier_loop)
{
    int v = in[GID] & 31, l = LID;
    for (uint k = 0; k < n; k++) {
        if (v & 1) {
            for (int i = 0; i < (v & 3); i++)
                v += i;
        } else if (v & 2) {
            v -= 3;
        }
        tmp[l] = v;
        SYNC;
        if (l & 1)
            v += tmp[(l + 1) % LSIZE];
        SYNC;
        if (k == 2)
            break;
    }
    out[GID * 4] = v;
}

KERNEL(matrix)
{
    local float a[8][8];
    float sum = 0;
    int l = LID;
    for (uint t = 0; t < n; t++) {
        for (int i = l; i < 64; i += LSIZE)
            a[i / 8][i % 8] = (float)((in[(i + (int)t) % 64] & 15) + (int)t);
        SYNC;
        for (int k = 0; k < 8; k++)
            sum += a[k][l & 7] * a[l >> 3 & 7][k];
        SYNC;
    }
    out[GID * 4] = (int)sum;
}

KERNEL(dead_and_infinite)
{
    int v = in[GID];
    if (n > 1000000)
        for (;;)
            out[GID * 4 + 1] = v;
    SYNC;
    if (v == 123456789 && n > 100000)
        __builtin_unreachable();
    out[GID * 4] = v + 1;
}

KERNEL(arrays_of_one_size)
{
    int v = in[GID], a[16], b[3][5];
    short s[8];
    for (int i = 0; i < 16; i++)
        a[i] = v + i;
    for (int i = 0; i < 15; i++)
        b[i / 5][i % 5] = v * i;
    for (int i = 0; i < 8; i++)
        s[i] = (short)(v >> i);
    tmp[LID] = a[v & 15];
    SYNC;
    for (uint k = 0; k < n; k++)
        a[k & 15] += a[(k + 1) & 15] ^ s[k & 7];
    for (int k = 0; k < (v & 7); k++)
        b[k % 3][v & 3] -= s[7 - k];
    out[GID * 4] = a[v & 15] + b[(v & 3) % 3][n % 5];
    out[GID * 4 + 1] = a[n & 15] + tmp[LSIZE - 1 - LID];
    out[GID * 4 + 2] = s[v & 7];
    out[GID * 4 + 3] = b[2][4];
}

void stir(int *p, uint n)
{
    for (uint i = 0; i < n; i++)
        p[i & 7] = p[(i + 3) & 7] * 5 + (int)i;
}

KERNEL(arrays_through_pointers)
{
    int v = in[GID], a[8], *end = a + 7;
    int4 q[2];
    for (int i = 0; i < 8; i++)
        end[-i] = v + i;
    stir(a, n);
    q[0] = q[1] = (int4)(v, v + 1, v + 2, v + 3);
    q[n & 1] = vload4(1, a);
    SYNC;
    q[1] += q[0];
    stir(v & 1 ? a : (int *)q, n + 1);
    out[GID * 4] = a[v & 7];
    out[GID * 4 + 1] = ((int *)q)[v & 7];
    out[GID * 4 + 2] = end[-(int)(n & 7)];
}

KERNEL(arrays_of_bytes)
{
    int v = in[GID];
    union {
        int words[4];
        uchar bytes[16];
    } u;
    uchar c[16];
    for (int i = 0; i < 4; i++)
        u.words[i] = v + i * 1000;
    for (uint k = 0; k < 16; k++)
        c[k] = u.bytes[(k + n) & 15];
    SYNC;
    for (int i = 0; i < (v & 15); i++)
        u.bytes[i] = c[15 - i];
    out[GID * 4] = u.words[v & 3];
    out[GID * 4 + 1] = c[v & 15];
    out[GID * 4 + 2] = c[n & 15];
}

/* Every width, with lanes moved, chosen and written one at a time across a barrier. */
#define WIDTH_STEP(type, width)                                                                    \
    {                                                                                              \
        type##width v = (type##width)((type)in[GID]);                                              \
        v.s1 += (type)LID;                                                                         \
        SYNC;                                                                                      \
        tmp[LID] = (int)v.s0;                                                                      \
        SYNC;                                                                                      \
        v *= (type##width)((type)(tmp[LSIZE - 1 - LID] & 7));                                      \
        if (in[GID] & 1)                                                                           \
            v.s01 = v.s10;                                                                         \
        for (int i = 0; i < (in[GID] & 3); i++)                                                    \
            v += (type##width)((type)i);                                                           \
        h = h * 31 + (int)v.s0;                                                                    \
        h = h * 31 + (int)v.s1;                                                                    \
    }
KERNEL(every_width)
{
    int h = 0;
    WIDTH_STEP(int, 2)
    WIDTH_STEP(short, 3)
    WIDTH_STEP(float, 4)
    out[GID * 4] = h;
    h = 0;
    WIDTH_STEP(ulong, 8)
    WIDTH_STEP(uchar, 16)
    out[GID * 4 + 1] = h;
}

KERNEL(whole_vectors)
{
    int16 a = (int16)(in[GID]);
    int8 b = (int8)(LID, 1, 2, 3, 4, 5, 6, 7);
    a.sfedcba98 = b;
    SYNC;
    long3 c = convert_long3(a.s2f4) << 33;
    uchar8 d = convert_uchar8(b * in[GID]);
    private char16 stored[2];
    vstore16(convert_char16(a), 0, (private char *)stored);
    stored[1] = stored[0].s0123456789abcdef;
    SYNC;
    a = select(a, a.sf0e1d2c3b4a59687, (int16)(b, b) > (int16)(LID & 7));
    stored[in[GID] & 1].s5 = (char)LID;
    out[GID * 4] = a.s0 + a.s7 * 3 + a.sf * 5;
    out[GID * 4 + 1] = (int)(c.x >> 33) + (int)(c.z >> 35);
    out[GID * 4 + 2] = d.s1 + d.s7 * 256;
    out[GID * 4 + 3] = stored[0].s5 * 1000 + stored[1].s5 + stored[1].sf;
}

KERNEL(goto_over_barriers)
{
    int l = LID, v = in[GID];
    for (uint k = 0; k < n; k++) {
        tmp[l] = v;
        SYNC;
        v += tmp[(l + 1) % LSIZE];
        for (uint j = 0; j < 3; j++) {
            SYNC;
            if (k + j == 4)
                goto out_of_both;
            tmp[l] = v ^ (int)j;
            SYNC;
            v -= tmp[(l + 2) % LSIZE];
            if (j == 1)
                goto next;
        }
        v = -v;
    next:
        SYNC;
    }
    v *= 3;
out_of_both:
    SYNC;
    tmp[l] = v;
    SYNC;
    out[GID * 4] = tmp[LSIZE - 1 - l];
}

KERNEL(switch_in_barrier_loop)
{
    int l = LID, v = in[GID];
    for (uint k = 0; k < n + 2; k++) {
        switch (k & 3) {
        case 0:
            SYNC;
            tmp[l] = v;
            SYNC;
            break;
        case 1:
            if (v & 1)
                v += 3;
            else
                for (int i = 0; i < (v & 3); i++)
                    v += i;
            continue;
        case 2:
            v += tmp[(l + 1) % LSIZE]; /* fall through */
        default:
            SYNC;
            tmp[l] = v + (int)k;
            SYNC;
            v ^= tmp[LSIZE - 1 - l];
        }
        SYNC;
    }
    out[GID * 4] = v;
}

KERNEL(returns_in_loops)
{
    int v = in[GID] & 63;
    tmp[LID] = v;
    SYNC;
    out[GID * 4] = v;
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j <= i; j++) {
            v += tmp[(LID + j) % LSIZE] & 3;
            if (v > 80) {
                out[GID * 4 + 1] = i * 8 + j;
                return;
            }
        }
        if ((v & 7) == 3)
            return;
        out[GID * 4 + 2] = v;
    }
    out[GID * 4 + 3] = v;
}

/* What looks as if it differed and does not: all work-items come to the barriers. */
KERNEL(barrier_under_equal_data)
{
    int v = in[GID], l = LID, rounds = 0;
    tmp[l] = (int)n;
    SYNC;
    int same = tmp[(l * 7 + 3) % LSIZE];
    SYNC;
    if (same > 1) {
        for (int k = 0; k < same; k++) {
            tmp[l] = v;
            SYNC;
            if (tmp[l] & 1)
                v += 5;
            if (same == 5 && k == 3)
                break;
            v += tmp[LSIZE - 1 - l];
            SYNC;
            rounds++;
        }
    }
    SYNC;
    tmp[l] = v;
    SYNC;
    out[GID * 4] = tmp[(l + 1) % LSIZE];
    out[GID * 4 + 1] = rounds;
}

struct wide {
    char c;
    long l[2];
    float4 f;
    struct pair p;
};

KERNEL(private_structs_of_vectors)
{
    struct wide a = {1, {2, in[GID]}, (float4)(1, 2, 3, (float)LID), {4, 5, 6, {7, 8, 9}}}, b = a;
    struct wide many[2] = {a, b};
    for (int i = 0; i < (in[GID] & 3); i++)
        many[i & 1].p.d[i] += many[(i + 1) & 1].p.a;
    SYNC;
    tmp[LID] = many[1].p.d[1];
    SYNC;
    struct wide *one = in[GID] & 1 ? &many[0] : &b;
    one->f.yx = one->f.xw;
    one->l[LID & 1] += tmp[LSIZE - 1 - LID];
    a = *one;
    SYNC;
    out[GID * 4] = (int)(a.f.x * 8 + a.f.y + b.f.w);
    out[GID * 4 + 1] = (int)(a.l[0] + a.l[1] * 3 + many[0].l[0]);
    out[GID * 4 + 2] = many[0].p.d[0] + many[1].p.d[1] * 5 + many[0].p.d[2] * 9;
}

KERNEL(divergent_local_atomics)
{
    local uint cells[8];
    for (int i = LID; i < 8; i += LSIZE)
        cells[i] = i == 1 || i == 4 ? 0xffffffffu : 0;
    SYNC;
    for (int i = 0; i < (in[GID] & 3); i++) {
        atomic_add(&cells[0], (uint)(in[GID] + i));
        if (in[GID] & 4)
            atomic_and(&cells[1], ~(1u << (i + (LID & 15))));
        else
            atomic_or(&cells[2], 1u << (LID & 31));
    }
    if (in[GID] & 8) {
        atomic_xor(&cells[3], (uint)in[GID] * 77u);
        atomic_min(&cells[4], (uint)in[GID]);
    }
    SYNC;
    out[GID * 4] = (int)(cells[0] + cells[3]);
    out[GID * 4 + 1] = (int)cells[1];
    out[GID * 4 + 2] = (int)cells[2];
    out[GID * 4 + 3] = (int)cells[4];
}

KERNEL(collectives_in_loops)
{
    long sum = 0;
    uint most = 0;
    for (uint k = 0; k < n; k++) {
        uint v = (uint)in[GID] ^ k;
        sum += work_group_scan_exclusive_add((long)v);
        if (k & 1)
            most = work_group_reduce_max(v + most);
        else if (work_group_all(v < 200u))
            sum -= work_group_broadcast(v, k % get_local_size(0), 0, 0);
        sum += work_group_scan_inclusive_min((int)v);
    }
    out[GID * 4] = (int)sum;
    out[GID * 4 + 1] = (int)most;
}

KERNEL(uniform_nest_under_divergence)
{
    int v = in[GID], r = 0;
    if (v & 2)
        for (uint i = 0; i < n; i++)
            for (uint j = 0; j < i; j++) {
                r += (int)(i * j) + v;
                for (int k = 0; k < (v & 3) && r < 5000; k++)
                    r ^= k + (int)j;
            }
    else
        do {
            r -= v & 15;
            v--;
        } while (v > 3 && (v & 7));
    SYNC;
    out[GID * 4] = r;
    out[GID * 4 + 1] = v;
}

KERNEL(irreducible_nested_in_loop)
{
    int v = in[GID] & 31, r = 0;
    for (uint k = 0; k < n; k++) {
        int fuel = 0;
        tmp[LID] = v;
        SYNC;
        v = tmp[(LID + 1) % LSIZE];
        SYNC;
        if (v & 1)
            goto middle;
    top:
        r += 5;
    middle:
        r = r * 3 + v;
        if (++fuel < 4 && (r & 3) == 1)
            goto top;
        if (fuel < 6 && (r & 3) == 2)
            goto middle;
        if (n == 5 && k == 4)
            break;
    }
    out[GID * 4] = r;
    out[GID * 4 + 1] = v;
}

/* Quotients that are the same for all, needed by some, and part of an address: the first of a
 * vector of work-items needs none. */
KERNEL(some_divide)
{
    int x = 0, y = 0, v = in[GID];
    if (LID % 8 == 5)
        x = in[5 % (n + 3)];
    tmp[LID] = v;
    SYNC;
    for (int i = 0; i < (v & 3); i++)
        if (LID & 2)
            y += tmp[(int)(n * 7) % LSIZE] + tmp[(n / 2u + 9u) % (uint)LSIZE];
    for (int i = 0; i < 16; i++)
        if (in[i] & 1)
            y ^= in[(1000 / ((int)n + v % 2)) & 31] + i;
    out[GID * 4] = x;
    out[GID * 4 + 1] = y;
}

KERNEL(uniform_loop_of_divergent_loops)
{
    int v = in[GID], r = 0;
    uint u = n;
    for (uint k = 0; k < n; k++) {
        if (v & 1)
            for (int i = 0; i < (v & 3); i++)
                r += i + v;
        u = u * 3 + k;
        r ^= (int)u;
        v = v / 2 + 1;
    }
    out[GID * 4] = r;
    out[GID * 4 + 1] = (int)u;
}

/* Rounds of a hash, which are unrolled wholly. */
KERNEL(rounds)
{
    uint w[16], a = n, b = 2, c = (uint)LID, d = 4;
    for (uint i = 0; i < 16; i++)
        w[i] = (uint)in[(GID + i) & 31] * (i + 1);
    for (uint i = 0; i < 48; i++) {
        if (i >= 16)
            w[i & 15] += rotate(w[(i + 1) & 15], 7u) ^ w[(i + 9) & 15];
        uint next = d + rotate(a, 5u) + (b ^ (c & a)) + w[i & 15] + i;
        d = c;
        c = b;
        b = a;
        a = next;
    }
    uint x = a, y = b, z = c, t = (uint)in[GID & 15]; /* and with an end for each work-item */
    for (uint i = 0; i < 20; i++) {
        uint next = x * 3 + t;
        if (next % 11 == n)
            break;
        t = z;
        z = y;
        y = x;
        x = next;
    }
    out[GID * 4] = (int)a;
    out[GID * 4 + 1] = (int)(b + c * 3);
    out[GID * 4 + 2] = (int)(d ^ t);
    out[GID * 4 + 3] = (int)(x + y * 5 + z * 7);
}

/* Partners in local memory, at distances of powers of two. tmp has 1024 ints. */
KERNEL(pairs_sorted)
{
    local uint v[2048];
    uint l = LID, size = LSIZE;
    v[l] = (uint)in[GID] * 77;
    v[l + size] = (uint)in[GID & 31] ^ 21;
    for (uint d = 256; d > 0; d /= 2) {
        SYNC;
        uint i = 2 * l - (l & (d - 1));
        if (i + d < 2 * size) {
            uint a = v[i], b = v[i + d];
            v[i] = (i & (4 * d)) ? min(a, b) : max(a, b);
            v[i + d] = (i & (4 * d)) ? max(a, b) : min(a, b);
        }
    }
    SYNC;
    out[GID * 4] = (int)v[l];
    out[GID * 4 + 1] = (int)v[l + size];
}

KERNEL(butterflies)
{
    local int2 v[2048];
    local uchar bytes[2048];
    local long longs[2048];
    int l = LID, size = LSIZE;
    v[l] = (int2)(in[GID], l);
    v[l + size] = (int2)(l * 3, in[GID & 31]);
    bytes[l] = bytes[l + size] = (uchar)in[GID];
    longs[l] = longs[l + size] = in[GID] - 50;
    for (int d = 1; d <= 64; d *= 2) {
        SYNC;
        int place = l & (d - 1), i = l / d * d * 2 + l % d;
        if (i + d < 2 * size) {
            int2 w = (int2)(in[place], in[place + d]), a = v[i], b = v[i + d];
            int2 t = (int2)(b.x * w.x - b.y * w.y, b.x * w.y + b.y * w.x);
            v[i] = a + t;
            v[i + d] = a - t;
            uchar x = bytes[i], y = bytes[i + d];
            bytes[i] = x + y;
            bytes[i + d] = x - y;
            long f = longs[i], g = longs[i + d];
            longs[i] = f > g ? f : g;
            longs[i + d] = f > g ? g : f;
        }
    }
    SYNC;
    out[GID * 4] = v[l].x + v[l + size].x * 5;
    out[GID * 4 + 1] = v[l].y - v[l + size].y * 5;
    out[GID * 4 + 2] = bytes[l] + bytes[l + size] * 256;
    out[GID * 4 + 3] = (int)(longs[l] * 3 + longs[l + size]);
}

/* Work-items part on their place: by a bit, a remainder, a bound; with numbers kept over the meeting. */
KERNEL(places)
{
    local int v[2048];
    int l = LID, size = LSIZE, kept = l * 5;
    v[l] = in[GID];
    v[l + size] = l;
    SYNC;
    int t = l >= 5 ? v[l - 5] : (int)n;
    if (l & 8)
        kept += v[l ^ 8];
    else if (l % 3 == 1)
        kept ^= v[(l ^ 1) < size ? l ^ 1 : l];
    SYNC;
    if (l % 5 == 2)
        v[l] += t;
    else if (l < 21)
        v[l + size] = kept + v[l + size] * 3;
    SYNC;
    int side = v[2 * l], other = v[2 * l + 1];
    SYNC;
    v[2 * size - 1 - l] = side - 2 * other;
    SYNC;
    out[GID * 4] = v[l];
    out[GID * 4 + 1] = v[l + size];
    out[GID * 4 + 2] = kept;
    out[GID * 4 + 3] = t;
}

/* Loops from the id in equal steps (docs/common-turns.md), where the counter wraps around: for some work-items before the
 * first turn, for others behind it. */
KERNEL(stride_wraps)
{
    uint turns = 0, sum = 0;
    for (uint i = 0xfffffff9u + (uint)LID; i < 0xf0000000u; i += 0x78000000u) {
        turns++;
        sum += i;
    }
    for (uint i = 0xefffff00u + (uint)LID + (n & 3); i < 0xf0000000u; i += 0x78000000u) {
        turns += 100;
        sum ^= i;
    }
    out[GID * 4] = (int)turns;
    out[GID * 4 + 1] = (int)sum;
}

KERNEL(stride_ends_at_the_largest)
{
    uint turns = 0;
    int last = 0;
    for (int i = 0x7fffffff - 2048 + LID; i < 0x7fffffff - 20; i += 16) {
        turns++;
        last ^= i;
    }
    for (long i = get_local_id(0); i <= (long)(n & 31); i += 3)
        turns += 1000;
    out[GID * 4] = (int)turns;
    out[GID * 4 + 1] = last;
}

/* The counter is compared in more bits than it has, and with a bound below 0. */
KERNEL(stride_widened)
{
    int turns = 0;
    long bound = 40 + (long)(n & 31), below = (long)(n & 31) - 100;
    for (uint i = (uint)LID; i < (ulong)bound; i += 5)
        turns++;
    for (int i = LID - 150; i < below; i += 7)
        turns += 100;
    for (ushort i = (ushort)LID; i < 300; i += 64)
        turns += 10000;
    out[GID * 4] = turns;
}

/* The bound is in memory, and each turn of the loop changes it, for all at once. */
KERNEL(stride_of_a_changing_bound)
{
    int sum = 0;
    if (LID == 0)
        tmp[0] = 3 * LSIZE;
    SYNC;
    uint step = LSIZE;
    for (uint i = LID; i < (uint)tmp[0]; i += step) {
        sum += (int)i;
        SYNC;
        if (LID == 0)
            tmp[0] += (int)i < 2 * LSIZE ? LSIZE : 0;
        SYNC;
    }
    out[GID * 4] = sum;
}

/* A tile with a border, and rows that some work-items have one more of. */
KERNEL(stride_tile)
{
    local int tile[20][23];
    uint sx = get_local_size(0), sy = get_local_size(1);
    if (get_local_id(2) == 0)
        for (uint y = get_local_id(1); y < 20; y += sy)
            for (uint x = get_local_id(0); x < 23; x += sx)
                tile[y][x] = (int)(y * 100 + x);
    SYNC;
    int sum = 0;
    for (uint y = get_local_id(1); y < 20; y += 8)
        for (uint x = get_local_id(0); x < 23; x += 16)
            sum += tile[19 - y][x];
    out[GID * 4] = sum;
}

/* What a loop carries, in several ways at once. */
KERNEL(carried_values)
{
    int a = LID, b = 1, c = in[GID], last = 0;
    for (uint i = 0; i < 6 + (n & 1); i++) {
        last = a;
        a += c * (int)i;
        if (a & 1)
            b += last;
        c ^= b;
    }
    float sum = 0;
    for (uint i = 0; i < 9; i++)
        sum += (float)(in[GID] % 8) * (float)i;
    out[GID * 4] = a + last;
    out[GID * 4 + 1] = b;
    out[GID * 4 + 2] = c;
    out[GID * 4 + 3] = (int)sum;
}

/* Elements of one work-item that lie side by side: a message's words, a record found by an index, pairs, and
 * numbers of 64 bits; and results of which each has some. */
KERNEL(rows_of_words)
{
    uint id = (uint)GID, sum = 0, other = 0;
    for (uint k = 0; k < 16; k++)
        sum = rotate(sum, 3u) + (uint)in[(id & 3) * 16 + k];
    uint record = (uint)in[GID] & 7;
    for (uint k = 0; k < 8; k++)
        other = other * 31 + (uint)in[record * 8 + k];
    uint at = id * 4;
    out[at + 2] = (int)(sum >> 1);
    out[at] = (int)sum;
    out[at + 3] = in[(id * 5 & 15) * 2] - in[(id * 5 & 15) * 2 + 1];
    out[at + 1] = (int)other;
}

KERNEL(rows_of_longs)
{
    global const long *from = (global const long *)in;
    uint row = (uint)GID * 3 & 7;
    long a = from[row * 4], b = from[row * 4 + 1], c = from[row * 4 + 2], d = from[row * 4 + 3];
    for (uint k = 0; k < n; k++)
        a = a * 5 + (b ^ c) - d;
    global long *to = (global long *)out;
    to[(uint)GID * 2] = a;
    to[(uint)GID * 2 + 1] = b * c + d;
}

KERNEL(rows_in_local_memory)
{
    int sum = 0;
    if (LSIZE > 64) {
        out[GID * 4] = 7;
        return;
    }
    for (uint k = 0; k < 16; k++)
        tmp[((uint)LID & 63) * 16 + k] = in[GID] * (int)k + LID;
    SYNC;
    for (uint k = 0; k < 16; k++)
        sum = sum * 3 + tmp[(uint)(LSIZE - 1 - LID) * 16 + k];
    out[GID * 4] = sum;
}

/* What a work-item adds in local memory in a row, and addresses that are used in loops and behind them. */
KERNEL(additions_in_a_row)
{
    local int sums[8 * 8], counts[8];
    for (uint k = (uint)LID; k < 64; k += (uint)LSIZE)
        sums[k] = 0;
    for (uint k = (uint)LID; k < 8; k += (uint)LSIZE)
        counts[k] = 0;
    SYNC;
    uint best = 0;
    int least = INT_MAX;
    uint place = (uint)GID & 7;
    for (uint c = 0; c < 6; c++) {
        int distance = 0;
        for (uint d = 0; d < 8; d++)
            distance += abs(in[d * (n + 1) + place] - (int)(c * 31 + d * n));
        if (distance < least) {
            least = distance;
            best = c;
        }
    }
    for (uint d = 0; d < 8; d++)
        atomic_add(&sums[best * 8 + d], in[d * (n + 1) + place] + (int)d);
    atomic_inc(&counts[best]);
    SYNC;
    int sum = 0;
    for (uint k = 0; k < 64; k++)
        sum = sum * 5 + sums[k];
    out[GID * 4] = sum;
    out[GID * 4 + 1] = counts[GID & 7];
    out[GID * 4 + 2] = (int)best;
}

KERNEL(address_of_the_last_turn)
{
    uint at = 0;
    int sum = 0;
    for (uint k = 0; k < n + 2; k++) {
        at = k * 3 + ((uint)GID & 15);
        tmp[LID] = in[at];
        SYNC;
        sum += tmp[(LID + 1) % LSIZE];
        SYNC;
    }
    out[GID * 4] = sum + in[at];
}

/* Strips of neighbours, whose addresses are in a row if a number of the launch is of some kind:
 * 16 or 64 (n - 1 times 16), 16 or 40 (8 times n), 16 or 128. */
#define STRIDE ((n - 1) * 16)

KERNEL(strips_of_masks)
{
    uint l = LID, stride = STRIDE, odd = 8 * n, i = 2 * l - (l & (stride - 1));
    int sum = in[i & 63] * 3 + in[(i + stride) & 63];
    sum += in[(2 * l - (l & (odd - 1))) & 63] * 5 + in[(l & stride) & 63] * 7;
    sum += in[(l & ~(stride - 1)) & 63] * 11 + in[(l | stride) & 63] * 13;
    ulong wide = get_global_id(0), mask = (1ul << (n + 2)) - 1;
    out[GID * 4] = sum;
    out[GID * 4 + 1] = in[(wide & mask) & 63];
    out[GID * 4 + 2] = ((i & (stride << 1)) == 0) == (in[i & 63] > in[(i + stride) & 63]);
}

KERNEL(strips_of_partners)
{
    uint l = LID, partner = l ^ STRIDE, other = l ^ (8 * n);
    tmp[partner] = in[GID] + (int)l;
    SYNC;
    int own = tmp[partner];
    SYNC;
    tmp[other] = own * 3;
    SYNC;
    out[GID * 4] = tmp[other];
    out[GID * 4 + 1] = in[(partner + 16) & 63];
}

KERNEL(strips_of_quotients)
{
    uint l = LID, stride = STRIDE, bits = n + 2;
    ulong wide = get_global_id(0), odd = 8 * n;
    int sum = in[(l / stride * 2 * stride + l % stride) & 63];
    sum += in[((l >> bits << (bits + 1)) + (l & ((1u << bits) - 1))) & 63] * 3;
    sum += in[(wide / odd + wide % odd) & 63] * 5 + in[(int)(l >> n) & 63] * 7;
    if (in[GID] & 4) /* a divisor that is 0 where nobody divides */
        sum += in[(l % (stride + (in[GID] & 4) - 4)) & 63];
    if (n > 9)
        sum += in[l / (n - n / 2 * 2 - n % 2) & 63];
    out[GID * 4] = sum;
}

/* The first of a strip has no part in it, and its index is below 0. */
KERNEL(strips_in_part)
{
    int x = (int)get_local_id(0) - 5, stride = (int)STRIDE, sum = 0;
    if (x >= 0) {
        sum = in[(x ^ stride) & 63];
        if (in[GID] & 1)
            sum += in[((x + 5) & (stride - 1)) & 63] * 3;
        tmp[((x + 5) ^ stride) & 1023] = sum;
    }
    ushort small = (ushort)(x + 5), some = (ushort)STRIDE;
    uchar tiny = (uchar)(x + 5), part = (uchar)STRIDE;
    out[GID * 4] = sum;
    out[GID * 4 + 1] = in[(ushort)(small ^ some) & 63] + 3 * in[(uchar)(tiny & (uchar)(part - 1)) & 63];
    out[GID * 4 + 2] = in[(short)((short)small % (short)some) & 63];
}

/* The stride is a variable that all work-items share. */
KERNEL(strips_in_a_loop)
{
    uint l = LID, size = LSIZE & ~31u;
    int sum = 0;
    for (uint stride = STRIDE; stride > 0; stride >>= 1) {
        tmp[l] = in[GID] + (int)stride;
        SYNC;
        uint partner = l ^ stride;
        if (partner < (uint)LSIZE)
            sum = sum * 3 + tmp[partner];
        if (l < size)
            sum += tmp[l & (stride - 1)] - tmp[(l & ~(stride - 1)) & 1023];
        SYNC;
    }
    out[GID * 4] = sum;
}

/* Conditions on which all work-items of most groups agree, and those of some do not. */
KERNEL(agreed_bounds)
{
    uint i = (uint)get_global_id(0), bound = n * 29, low = 0u - 20;
    int sum = 0, j = (int)i - 30;
    if (i < bound)
        sum += in[i & 63];
    if (i + low < bound) /* wraps around within a group, to below the bound and to above */
        sum += in[i & 31] * 3;
    if (j > -3 && j < (int)bound)
        sum += in[(uint)(j + 40) & 63] * 5;
    if (!(i == 0 || i == bound || (uint)get_global_id(1) == n))
        sum += in[(i + 1) & 63] * 7;
    if ((ushort)(i * 600) < (ushort)(bound * 300))
        sum += in[(i + 2) & 63] * 11;
    if ((char)i >= (char)n)
        sum += in[(i + 3) & 63] * 13;
    out[GID * 4] = sum;
    if (i * 3 >= bound)
        return;
    out[GID * 4 + 1] = sum + 1;
    if (get_global_id(0) + get_global_id(1) != n + 60)
        out[GID * 4 + 2] = sum + 2;
}

KERNEL(agreed_between_barriers)
{
    uint i = (uint)get_global_id(0), end = 100 / n;
    int4 v = i < end ? (int4)(in[i & 63], in[(i + 1) & 63], in[(i + 2) & 63], in[(i + 3) & 63]) : (int4)(0);
    for (uint k = 0; k < n; k++) {
        tmp[LID] = v.x + (int)k;
        SYNC;
        if (i + k < end - k) /* both change from turn to turn */
            v.y += tmp[(LID + 1) % LSIZE] * (int)k;
        end -= k & 1;
        if (i < end)
            v.z += (int)end;
        SYNC;
    }
    if (i < end)
        *(global int4 *)(out + GID * 4) = v + tmp[LID];
    if (LID == LSIZE - 1)
        out[GID * 4 + 1] = tmp[LID];
}

/* Vectors of all widths that live across barriers, branches and loops. */
KERNEL(wide_vectors)
{
    int v = in[GID];
    int16 a = (int16)(v) + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    char3 c = convert_char3(a.s0af * LID);
    double4 d = convert_double4(a.s4567) * 0.5;
    ushort8 s = convert_ushort8(a.hi) ^ (ushort)n;
    int4 mask = a.s048c > (int4)(v + 5);
    for (int i = 0; i < (int)n % 5; i++) {
        tmp[LID] = a.s3 + i;
        SYNC;
        a = rotate(a, (int16)(i + 1)) + tmp[LSIZE - 1 - LID];
        if (a.s0 & 2) {
            a = a.sfedcba9876543210;
            mask = ~mask;
            d += convert_double4(mask);
        }
        c += convert_char3(a.s123);
        SYNC;
    }
    if (any(mask))
        s -= convert_ushort8(a.lo);
    while (a.s5 > 100 || a.s5 < -100)
        a /= (int16)(3, 5, 7, 0, 2, 9, -1, 4, 3, 5, 7, 11, 2, 6, 9, 4);
    out[GID * 4] = a.s0 + a.s5 * 3 + a.s6 + a.sf;
    out[GID * 4 + 1] = c.x + c.y * 5 + c.z * 7;
    out[GID * 4 + 2] = (int)(fabs(d.x) + d.y * 3 - d.w);
    out[GID * 4 + 3] = s.s0 + s.s3 + s.s7 + dot(convert_float4(mask), (float4)(1, 2, 3, 4));
}

KERNEL(vectors_in_arrays)
{
    uint4 w[4], sum = (uint4)(GID, LID, n, 1);
    for (uint i = 0; i < 4; i++)
        w[i] = (uint4)((uint)in[GID] + i) * sum;
    for (uint i = 0; i < 20 + n % 3; i++) {
        uint4 next = (w[i & 3] << 7 | w[i & 3] >> 25) ^ w[(i + 1) & 3].wxyz;
        sum = select(sum + next, sum - next, next > sum);
        w[i & 3] = next;
    }
    vstore4(as_int4(sum), GID, out);
}

/* So many blocks that there is scalar code only. */
#define CASE(i)                                                                                    \
    case i:                                                                                        \
        x = x * 3 + i;                                                                             \
        y ^= x >> (i & 7);                                                                         \
        break;
#define CASES(i) CASE(i) CASE(i + 1) CASE(i + 2) CASE(i + 3) CASE(i + 4) CASE(i + 5) CASE(i + 6) CASE(i + 7)
#define TURNING                                                                                    \
    switch ((x ^ y) & 63) {                                                                        \
        CASES(0) CASES(8) CASES(16) CASES(24) CASES(32) CASES(40) CASES(48) CASES(56)              \
    }
#define TURNINGS TURNING TURNING TURNING TURNING TURNING TURNING TURNING TURNING

KERNEL(maze)
{
    uint x = (uint)in[GID], y = n;
    uint4 v = (uint4)(x, y, x + y, 1);
    for (uint i = 0; i < n % 3; i++) {
        TURNINGS TURNINGS
        v += (uint4)(x, y, 0, i);
        tmp[LID] = (int)x;
        SYNC;
        y += (uint)tmp[LSIZE - 1 - LID];
        SYNC;
    }
    TURNINGS TURNINGS
    vstore4(as_int4(v ^ (uint4)(x, y, x, y)), GID, out);
}

/* Divided where not all come, in groups so small that vectors of the source stay whole. */
KERNEL(vectors_divided)
{
    int2 v = {in[GID], (int)n};
    for (int i = LID; i < 9; i += 4)
        if (in[(GID + i) & 31] & 1)
            v = v / ((v.yx & 15) + 1) + in[i];
    out[GID * 4] = v.x;
    out[GID * 4 + 1] = v.y;
}
