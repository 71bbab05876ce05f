// What every instance of a template may use; with SIMDE the AVX-512 intrinsics run on any machine.
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef USE_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif
