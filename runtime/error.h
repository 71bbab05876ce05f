// How the runtime says that something went wrong: complain() keeps one message for this thread and returns -1, which
// every caller hands up; main prints it after "error: ". A message says what was found, what was expected, what to do.
#ifndef ERROR_H
#define ERROR_H

int complain(const char *format, ...) __attribute__((format(printf, 1, 2))); // always -1
const char *complaint(void);                                                 // the last message of this thread

#endif
