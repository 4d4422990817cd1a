/* The kernels of the benchmark as an expert writes them in C with OpenMP, and their sizes. Each
 * function does what the launches of the case of the same name do, on the same memory. Those of
 * reference_exact.c are compiled as C says; those of reference_fast.c, which compute with floating
 * point and have a tolerance, with -ffast-math.
 */
#ifndef SP_BENCH_REFERENCE_H
#define SP_BENCH_REFERENCE_H

enum {
    TRIAD_N = 1 << 24,
    REDUCTION_N = 1 << 23,
    REDUCTION_LOCAL = 256,
    TRANSCENDENTALS_N = 1 << 20,
    CHASE_N = 1 << 20,
    CHASE_HOPS = 1 << 20,
    HISTOGRAM_N = 1 << 22,
    HISTOGRAM_BINS = 256,
    SCAN_N = 1 << 22,
    SPMV_ROWS = 1 << 17,
    SPMV_PER_ROW = 16, /* on average; from half to one and a half */
    SORT_N = 1 << 18,

    MATMUL_N = 512,
    MANDELBROT_N = 1024,
    MANDELBROT_LIMIT = 256,
    STENCIL_N = 2048,
    STENCIL3D_X = 256,
    STENCIL3D_Y = 256,
    STENCIL3D_Z = 128,
    CONVOLUTION_N = 2048,
    CONVOLUTION_RADIUS = 2,
    TRANSPOSE_N = 2048,

    NBODY_N = 4096,
    FFT_SIZE = 512,
    FFT_BATCH = 4096,
    BLACK_SCHOLES_N = 1 << 20,
    SHA_N = 1 << 16,
    KMEANS_N = 1 << 18,
    KMEANS_CENTERS = 16,
    KMEANS_COORDINATES = 8,
    MONTE_CARLO_ITEMS = 1 << 16,
    MONTE_CARLO_SAMPLES = 256,
};

#define BLACK_SCHOLES_RATE 0.02f
#define BLACK_SCHOLES_VOLATILITY 0.3f

/* reference_exact.c */
void bench_c_chase(void *const *memory);
void bench_c_histogram(void *const *memory);
void bench_c_scan(void *const *memory);
void bench_c_sort(void *const *memory);
void bench_c_transpose(void *const *memory);
void bench_c_sha256(void *const *memory);
void bench_c_kmeans(void *const *memory);
void bench_c_monte_carlo(void *const *memory);

/* reference_fast.c */
void bench_c_triad(void *const *memory);
void bench_c_reduction(void *const *memory);
void bench_c_transcendentals(void *const *memory);
void bench_c_spmv(void *const *memory);
void bench_c_matmul(void *const *memory);
void bench_c_mandelbrot(void *const *memory);
void bench_c_stencil(void *const *memory);
void bench_c_stencil3d(void *const *memory);
void bench_c_convolution(void *const *memory);
void bench_c_nbody(void *const *memory);
void bench_c_fft(void *const *memory);
void bench_c_black_scholes(void *const *memory);

#endif
