/* Small AArch64 kernels without libc; KERNEL names the one. The sizes are in tests/machine/test_aarch64.py, too. */
#include <arm_neon.h>
#ifdef __ARM_FEATURE_SVE
#include <arm_sve.h>
#endif

#define N 1000

float a[N], b[N];
double c[N], d[N];
signed char e[16 * N], f[16 * N];
bfloat16_t g[8 * N], h[8 * N];
volatile float sink32;
volatile double sink64;
volatile int sink;

/* N fused multiply-adds */
static inline __attribute__((always_inline)) void scalar(void) {
    float sum = 0;
    for (int i = 0; i < N; i++) sum = __builtin_fmaf(a[i], b[i], sum);
    sink32 = sum;
}

/* N / 4 of four lanes */
static inline __attribute__((always_inline)) void neon(void) {
    float32x4_t sum = vdupq_n_f32(0);
    for (int i = 0; i < N; i += 4) sum = vfmaq_f32(sum, vld1q_f32(a + i), vld1q_f32(b + i));
    sink32 = vgetq_lane_f32(sum, 0);
}

/* N / 2 each of two lanes: multiplication, division, square root, maximum */
static inline __attribute__((always_inline)) void fp64(void) {
    for (int i = 0; i < N; i += 2) {
        float64x2_t x = vld1q_f64(c + i);
        vst1q_f64(d + i, vmaxq_f64(vsqrtq_f64(vdivq_f64(vmulq_f64(x, x), x)), x));
    }
    sink64 = d[1];
}

/* N dot products of 16 products of bytes */
static inline __attribute__((always_inline)) void int8(void) {
    int32x4_t sum = vdupq_n_s32(0);
    for (int i = 0; i < N; i++) sum = vdotq_s32(sum, vld1q_s8(e + 16 * i), vld1q_s8(f + 16 * i));
    sink = vgetq_lane_s32(sum, 0);
}

/* N dot products of 8 products, N small matrix products of 16 */
static inline __attribute__((always_inline)) void bf16(void) {
    float32x4_t sum = vdupq_n_f32(0), matrix = sum;
    for (int i = 0; i < N; i++) {
        bfloat16x8_t x = vld1q_bf16(g + 8 * i), y = vld1q_bf16(h + 8 * i);
        sum = vbfdotq_f32(sum, x, y);
        matrix = vbfmmlaq_f32(matrix, x, y);
    }
    sink32 = vgetq_lane_f32(sum, 0);
    sink32 = vgetq_lane_f32(matrix, 0);
}

#ifdef __ARM_FEATURE_SVE
/* as many as it takes for N, with a predicate, of as many lanes as a vector has; then a sum over one vector */
static inline __attribute__((always_inline)) void sve(void) {
    svfloat32_t sum = svdup_f32(0);
    for (int i = 0; i < N; i += svcntw()) {
        svbool_t on = svwhilelt_b32(i, N);
        sum = svmla_f32_m(on, sum, svld1_f32(on, a + i), svld1_f32(on, b + i));
    }
    sink32 = svaddv_f32(svptrue_b32(), sum);
}
#endif

void _start(void) {
    KERNEL();
    __asm__ volatile("mov x0, #0\n mov x8, #93\n svc #0");
}
