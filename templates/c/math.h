//@ needs half.h
// Elementary functions for loops along a row: no branches, no tables, no libm, so that compilers vectorise the loop.
// In, out: f32. exp, log: at most 2 units in the last place; tanh, erf: 1e-6. Infinities and NaN go through.

// a b + c with one rounding where the machine has it, with two elsewhere; never the slow library function.
static inline float fma_f32(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

// `yes ? a : b` by masks: both are computed, so there is no branch that a compiler might make.
static inline float select_f32(int yes, float a, float b) {
    const uint32_t mask = -(uint32_t) yes;
    return float_of_bits((bits_of_float(a) & mask) | (bits_of_float(b) & ~mask));
}

// Were these branches, a compiler could follow a bound through the rest of a loop, which then would not vectorise.
static inline float min_f32(float a, float b) {
    return select_f32(a < b, a, b);
}

static inline float max_f32(float a, float b) {
    return select_f32(a > b, a, b);
}

static inline float abs_f32(float x) {
    return float_of_bits(bits_of_float(x) & 0x7fffffff);
}

// The magnitude of x with the sign of s.
static inline float sign_f32(float x, float s) {
    return float_of_bits((bits_of_float(x) & 0x7fffffff) | (bits_of_float(s) & 0x80000000));
}

// x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by a polynomial. Adding 1.5 * 2^23 rounds to an integer in the low bits.
// The factor 2^n goes on in two halves, each of which is a normal number.
static inline float exp_f32(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float big = 0x1.8p23f, t = fma_f32(x, 0x1.715476p0f, big), n = t - big;
    const float r = fma_f32(n, -0x1.7f7d1cp-20f, fma_f32(n, -0x1.62e400p-1f, x));
    float p = fma_f32(1.39506261e-3f, r, 8.36897032e-3f);
    p = fma_f32(p, r, 4.16662038e-2f);
    p = fma_f32(p, r, 1.66665182e-1f);
    p = fma_f32(p, r, 0.5f);
    p = fma_f32(p, r * r, r) + 1.0f;
    const int32_t i = (int32_t) (bits_of_float(t) - 0x4b400000), half = i >> 1;
    const float s0 = float_of_bits((uint32_t) (half + 127) << 23),
                s1 = float_of_bits((uint32_t) (i - half + 127) << 23);
    return p * s0 * s1;
}

// x = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2). log(0) is -inf, log of a negative number NaN.
static inline float log_f32(float x) {
    const int tiny = x < 0x1p-126f;
    const float y = x * select_f32(tiny, 0x1p23f, 1.0f);
    const uint32_t u = bits_of_float(y) - 0x3f3504f3;
    const float e = (float) ((int32_t) u >> 23) - select_f32(tiny, 23.0f, 0.0f);
    const float f = float_of_bits((u & 0x007fffff) + 0x3f3504f3) - 1.0f;
    float p = fma_f32(6.74503089e-2f, f, -1.17912928e-1f);
    p = fma_f32(p, f, 1.19558728e-1f);
    p = fma_f32(p, f, -1.23894855e-1f);
    p = fma_f32(p, f, 1.42069428e-1f);
    p = fma_f32(p, f, -1.66685373e-1f);
    p = fma_f32(p, f, 2.00028635e-1f);
    p = fma_f32(p, f, -2.50000091e-1f);
    p = fma_f32(p, f, 3.33332991e-1f);
    const float s = f * f;
    p = fma_f32(p * f, s, e * -2.12194440e-4f);
    float v = fma_f32(e, 0.693359375f, f + fma_f32(-0.5f, s, p));
    v = select_f32(x > 0x1.fffffep127f, x, v);
    v = select_f32(x == 0.0f, -__builtin_inff(), v);
    return select_f32(x >= 0.0f, v, __builtin_nanf(""));
}

static inline float tanh_f32(float x) {
    const float a = abs_f32(x), s = x * x;
    float p = fma_f32(-5.71702588e-3f, s, 2.06505685e-2f);
    p = fma_f32(p, s, -5.37434917e-2f);
    p = fma_f32(p, s, 1.33314912e-1f);
    p = fma_f32(p, s, -3.33332839e-1f);
    const float small = fma_f32(p * s, x, x), large = 1.0f - 2.0f / (exp_f32(2.0f * a) + 1.0f);
    return select_f32(a < 0.625f, small, sign_f32(large, x));
}

// Near zero a polynomial; beyond it 1 - exp(-h(|x|)), with h a polynomial that has grown past 16 at 3.9.
static inline float erf_f32(float x) {
    const float a = abs_f32(x), s = x * x, t = a > 4.0f ? 4.0f : a;
    float p = fma_f32(7.88911506e-5f, s, -8.02083994e-4f);
    p = fma_f32(p, s, 5.18953519e-3f);
    p = fma_f32(p, s, -2.68544445e-2f);
    p = fma_f32(p, s, 1.12836002e-1f);
    p = fma_f32(p, s, -3.76126271e-1f);
    p = fma_f32(p, s, 1.28379170e-1f);
    float h = fma_f32(1.69695642e-7f, t, 1.92634282e-5f);
    h = fma_f32(h, t, -4.26509488e-4f);
    h = fma_f32(h, t, 4.15378962e-3f);
    h = fma_f32(h, t, -2.51017885e-2f);
    h = fma_f32(h, t, 1.08278519e-1f);
    h = fma_f32(h, t, 6.33332821e-1f);
    h = fma_f32(h, t, 1.12952737f);
    h = fma_f32(h, t, -1.78126267e-4f);
    const float small = fma_f32(p, x, x), large = sign_f32(1.0f - exp_f32(-h), x);
    return select_f32(a < 1.0f, small, large);
}
