// JSON to values and back, as Python's json module does both: key order, whole numbers apart from reals, integers
// of any size, NaN and the infinities. See value.h for the values, chat_template.h for where failures go.
#ifndef JSON_H
#define JSON_H

#include "value.h"

Value json_read(
    Render *r, const char *p, size_t n); // one value and nothing after; fails with JSONDecodeError: ... line, column

typedef struct {
    bool ensure_ascii, sort_keys;
    Value indent;            // MISSING or none: on one line
    Value item_sep, key_sep; // texts
} JsonStyle;
Value json_write(Render *r, Value v, const JsonStyle *style);

#endif
