// What every instance of a template may use; with SIMDE the AVX-512 intrinsics run on any machine.
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef USE_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
// What SIMDe lacks.
static inline simde__m512 two_halves(simde__m256i h) {
    float f[16];
    _mm256_storeu_ps(f, _mm256_cvtph_ps(_mm256_castsi256_si128(h)));
    _mm256_storeu_ps(f + 8, _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1)));
    return simde_mm512_loadu_ps(f);
}
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps two_halves
static inline simde__m512i widened(simde__m128i v) {
    uint8_t b[16];
    int32_t i[16];
    simde_mm_storeu_si128((simde__m128i *) b, v);
    for (int j = 0; j < 16; j++) i[j] = b[j];
    return simde_mm512_loadu_si512(i);
}
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32 widened
static inline simde__m512 to_floats(simde__m512i v) {
    int32_t i[16];
    float f[16];
    simde_mm512_storeu_si512(i, v);
    for (int j = 0; j < 16; j++) f[j] = (float) i[j];
    return simde_mm512_loadu_ps(f);
}
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps to_floats
static inline simde__m512i shift_signed(simde__m512i v, unsigned n) {
    int32_t i[16];
    simde_mm512_storeu_si512(i, v);
    for (int j = 0; j < 16; j++) i[j] >>= n;
    return simde_mm512_loadu_si512(i);
}
#undef _mm512_srai_epi32
#define _mm512_srai_epi32 shift_signed
#elif defined(__x86_64__)
#include <immintrin.h>
#endif
