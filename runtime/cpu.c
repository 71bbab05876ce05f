// Compares the instruction sets that the code was compiled for with those of this processor, before any of that code
// runs: a message instead of an illegal instruction. In: the needed names. Out: 0, or a complaint with those missing.
#include "cpu.h"
#include "error.h"
#include <stdio.h>
#include <string.h>

// Whether the word [name, n) is among the words of `list`.
static int has_word(const char *list, const char *name, size_t n) {
    for (const char *p = list; (p = strstr(p, name)) != NULL; p += n) {
        const char before = p == list ? ' ' : p[-1], after = p[n];
        if ((before == ' ' || before == '\t' || before == ':') && (after == ' ' || after == '\0' || after == '\n'))
            return 1;
    }
    return 0;
}

int cpu_check(const char *needed) {
    char text[8192], missing[400] = "", name[64];
    if (!needed[strspn(needed, " ")]) return 0;
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f) return 0; // a system that does not tell; its own tools guard it
    // The first processor is enough, and reading all of a large machine takes milliseconds.
    size_t got = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[got] = '\0';
    char *flags = strstr(text, "\nflags");
    if (!flags) flags = strstr(text, "\nFeatures");
    if (!flags) return 0;
    flags[1 + strcspn(flags + 1, "\n")] = '\0';
    size_t used = 0;
    for (const char *p = needed; *(p += strspn(p, " "));) {
        size_t n = strcspn(p, " ");
        if (n < sizeof name) {
            memcpy(name, p, n);
            name[n] = '\0';
            if (!has_word(flags + 1, name, n) && used + n + 2 < sizeof missing)
                used += (size_t) snprintf(missing + used, sizeof missing - used, "%s%s", used ? " " : "", name);
        }
        p += n;
    }
    if (used)
        return complain(
            "this processor lacks %s, which the program was compiled for; build it on this machine, or with "
            "ggcc build --march x86-64-v3 (or what the processor is)",
            missing);
    return 0;
}
