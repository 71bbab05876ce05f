// Whether this processor can run the generated code.
#ifndef CPU_H
#define CPU_H

// `needed`: instruction sets, separated by spaces, as /proc/cpuinfo spells them.
// 0, or -1: complaint() names what is missing.
int cpu_check(const char *needed);

#endif
