// The CPU targets: which instruction sets a compiler's -march gives, what of them the templates use, and their costs.
#include "target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *const base_folders[] = {"c", NULL};
static const char *const avx2_folders[] = {"c", "c-avx2", NULL};
static const char *const avx512_folders[] = {"c", "c-avx2", "c-avx512", NULL};

// The preprocessor's name of an instruction set and /proc/cpuinfo's.
static const struct {
    const char *macro, *flag;
} sets[] = {
    {"__SSE3__", "pni"},
    {"__SSSE3__", "ssse3"},
    {"__SSE4_1__", "sse4_1"},
    {"__SSE4_2__", "sse4_2"},
    {"__POPCNT__", "popcnt"},
    {"__AVX__", "avx"},
    {"__AVX2__", "avx2"},
    {"__FMA__", "fma"},
    {"__F16C__", "f16c"},
    {"__BMI__", "bmi1"},
    {"__BMI2__", "bmi2"},
    {"__AVX512F__", "avx512f"},
    {"__AVX512BW__", "avx512bw"},
    {"__AVX512DQ__", "avx512dq"},
    {"__AVX512VL__", "avx512vl"},
    {"__AVX512VNNI__", "avx512_vnni"},
    {"__AVX512BF16__", "avx512_bf16"},
    {"__AVX512VBMI__", "avx512vbmi"},
    {"__ARM_FEATURE_DOTPROD", "asimddp"},
    {"__ARM_FEATURE_FP16_VECTOR_ARITHMETIC", "asimdhp"},
    {"__ARM_FEATURE_MATMUL_INT8", "i8mm"},
};

// gcc 12 loses stores: when it relates the pointers of a loop to one another (ivopts), a store through one may be
// taken for a store to a local array behind another, and dropped. It happened to quantize_q8 with an inlined
// square root before it.
// And its -O2 vectorises only loops that leave no rest: the cost model is -O3's.
static const char *const gcc_flags[] = {"-fvect-cost-model=dynamic", "-fno-ivopts", NULL};

// clang unrolls at -O2, too: twice the time for nothing.
static const char *const clang_flags[] = {"-fno-unroll-loops", NULL};

// All of immintrin.h takes half a second to read, for instruction sets that no kernel here uses. Its parts are to be
// included by it alone, so they are told that they are (gcc by one name, clang by the other).
static const char avx2_includes[] = "// Parts of immintrin.h, all of which takes half a second to read.\n"
                                    "#define _IMMINTRIN_H_INCLUDED\n"
                                    "#define __IMMINTRIN_H\n"
                                    "#include <smmintrin.h>\n"
                                    "#include <avxintrin.h>\n"
                                    "#include <avx2intrin.h>\n"
                                    "#include <f16cintrin.h>\n"
                                    "#include <fmaintrin.h>\n";

// math.h of the templates: inline, vectorisable, the same on every machine.
static const char *const c_functions[][2] = {
    {"exp", "exp_f32"},
    {"log", "log_f32"},
    {"tanh", "tanh_f32"},
    {"erf", "erf_f32"},
    {"sqrt", "sqrtf"},
    {"fabs", "fabsf"},
    {"floor", "floorf"},
    {"fmin", "min_f32"},
    {"fmax", "max_f32"},
    {"pow", "powf"},
    {NULL, NULL},
};

static bool defined(Str macros, const char *name) {
    size_t n = strlen(name);
    for (const char *p = macros.p; p && p + n + 8 < macros.p + macros.n;) {
        if (!strncmp(p, "#define ", 8) && !strncmp(p + 8, name, n) && p[8 + n] == ' ') return true;
        p = memchr(p, '\n', (size_t) (macros.p + macros.n - p));
        if (p) p++;
    }
    return false;
}

static void shell_word(Out *o, const char *s) {
    out(o, "'");
    for (; *s; s++) *s == '\'' ? out(o, "'\\''") : out(o, "%c", *s);
    out(o, "'");
}

// What `cc -march=... -dM -E` defines. No shell sees a file's name unquoted.
static Str predefined(Arena *a, const char *cc, const char *march) {
    const char *path = str_z(a, str_fmt(a, "%s/macros", temp_dir()));
    for (const char *p = march; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-_", *p))
            fail("--march %s: not the name of an instruction set", str_show(a, str(march)));
    Out o = out_new(a);
    shell_word(&o, cc);
    out(&o, " -march=%s -dM -E -x c /dev/null >", march);
    shell_word(&o, path);
    out(&o, " 2>&1");
    int status = system(str_z(a, out_text(&o)));
    if (status != 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)
        fail("no C compiler: %s was not found; install the package gcc (or clang), or name one with --cc PATH", cc);
    Str text = file_read(a, path);
    // What it says about a name that it does not know is no macro, and not nothing.
    if (status != 0 && (text.n == 0 || str_starts(text, "#define ")))
        fail("%s: what %s defines broke off after %zu bytes; is the disk full? free some space, or set TMPDIR", path,
            cc, text.n);
    if (status != 0)
        fail("%s does not know --march %s: %s", cc, march, str_show(a, (Str){text.p, text.n > 70 ? 70 : text.n}));
    return text;
}

const Target *target_for(Arena *a, const char *cc, const char *march) {
    Str macros = predefined(a, cc, march);
    Target *t = NEW(a, Target);
    Out cpu = out_new(a);
    for (int i = 0; i < COUNT(sets); i++)
        if (defined(macros, sets[i].macro)) out(&cpu, "%s%s", cpu.n ? " " : "", sets[i].flag);
    bool avx2 = defined(macros, "__AVX2__") && defined(macros, "__FMA__") && defined(macros, "__F16C__");
    bool avx512 = avx2 && defined(macros, "__AVX512F__") && defined(macros, "__AVX512BW__") &&
        defined(macros, "__AVX512VL__") && defined(macros, "__AVX512DQ__") && defined(macros, "__AVX512VNNI__");
    *t = (Target){
        .name = avx512 ? "c-avx512"
            : avx2     ? "c-avx2"
                       : "c",
        .folders = avx512 ? avx512_folders
            : avx2        ? avx2_folders
                          : base_folders,
        .cpu = str_z(a, out_text(&cpu)),
        .packs = avx2,
        .flags = defined(macros, "__clang__") ? clang_flags : gcc_flags,
        .includes = avx512 ? "#include <immintrin.h>\n"
            : avx2         ? avx2_includes
                           : "",
        .functions = c_functions,
        .piece_bytes = 24 << 10,
        .max_pieces = 32,
    };
    return t;
}

bool target_packs(const Target *t, int type, int64_t in) {
    const Format *f = format_of(type);
    return t->packs && f && f->pack && in % 32 == 0;
}
