// The last message of each thread. In: a format and its arguments. Out: -1, so that `return complain(...)` reads well.
// Messages are cut at a fixed length rather than allocated: an error about memory must not need any.
#include "error.h"
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[1024];

int complain(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return -1;
}

const char *complaint(void) {
    return message[0] ? message : "unknown failure";
}
