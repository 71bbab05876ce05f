// What commands read and write: whole input files, id files, standard output, JSON strings.
#ifndef IO_H
#define IO_H

#include <stddef.h>
#include <stdint.h>

// All return 0, or -1: complaint(). What they return in pointers is malloc'ed, made before the work starts.
int read_file(const char *path, char **bytes, size_t *n);           // "-": standard input
int read_ids(const char *path, int n_vocab, int32_t **ids, int *n); // decimal numbers separated by white space
int parse_ids(const char *name, const char *text, size_t size, int n_vocab, int32_t **ids, int *n);

int out_write(const void *p, size_t n); // standard output, buffered
int out_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
int out_string(const char *z); // as a JSON string
int out_number(double x);      // as a JSON number; null when it is none
int out_flush(void);

#endif
