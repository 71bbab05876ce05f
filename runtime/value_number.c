// Numbers as Python has them: integers of any size, reals, their arithmetic, reading and writing. See value.h.
// An integer is an int64_t where it fits (V_INT), else sign and magnitude (V_BIG); bool counts as an integer.
#include "chat_template.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Big {
    bool negative;
    size_t n; // words, the last not zero
    uint32_t word[];
};

// ---- magnitudes ----
static Big *big_new(Render *r, size_t n) {
    if (n > limit_big_words)
        raise_error(r, "OverflowError", "an integer of more than %d bits is more than a template may make",
            limit_big_words * 32);
    Big *b = render_take(r, sizeof *b + n * sizeof *b->word);
    b->n = n;
    return b;
}

static void trim(Big *b) {
    while (b->n && !b->word[b->n - 1]) b->n--;
}

static const Big *big_of(Render *r, Value v) {
    if (v.kind == V_BIG) return v.big;
    int64_t i = v.kind == V_BOOL ? v.b : v.i;
    uint64_t m = i < 0 ? 0 - (uint64_t) i : (uint64_t) i;
    Big *b = big_new(r, 2);
    b->negative = i < 0;
    b->word[0] = (uint32_t) m;
    b->word[1] = (uint32_t) (m >> 32);
    trim(b);
    return b;
}

static Value big_value(Big *b) {
    trim(b);
    if (b->n <= 2) {
        uint64_t m = (b->n > 0 ? b->word[0] : 0) | (uint64_t) (b->n > 1 ? b->word[1] : 0) << 32;
        if (!b->negative && m <= INT64_MAX) return integer((int64_t) m);
        if (b->negative && m <= (uint64_t) INT64_MAX + 1) return integer((int64_t) (0 - m));
    }
    return (Value){.kind = V_BIG, .big = b};
}

static int order_magnitude(const Big *a, const Big *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (size_t i = a->n; i-- > 0;) {
        if (a->word[i] != b->word[i]) return a->word[i] < b->word[i] ? -1 : 1;
    }
    return 0;
}

static Big *add_magnitude(Render *r, const Big *a, const Big *b) {
    size_t n = a->n > b->n ? a->n : b->n;
    Big *sum = big_new(r, n + 1);
    uint64_t carry = 0;
    for (size_t i = 0; i < n || carry; i++) {
        carry += (uint64_t) (i < a->n ? a->word[i] : 0) + (i < b->n ? b->word[i] : 0);
        sum->word[i] = (uint32_t) carry;
        carry >>= 32;
    }
    return sum;
}

static Big *sub_magnitude(Render *r, const Big *a, const Big *b) { // a >= b
    Big *rest = big_new(r, a->n);
    int64_t borrow = 0;
    for (size_t i = 0; i < a->n; i++) {
        int64_t d = (int64_t) a->word[i] - (i < b->n ? b->word[i] : 0) + borrow;
        rest->word[i] = (uint32_t) d;
        borrow = d < 0 ? -1 : 0;
    }
    return rest;
}

static Value big_add(Render *r, const Big *a, const Big *b, bool subtract) {
    bool b_negative = b->negative != subtract;
    Big *out;
    if (a->negative == b_negative) {
        out = add_magnitude(r, a, b);
        out->negative = a->negative;
    } else if (order_magnitude(a, b) >= 0) {
        out = sub_magnitude(r, a, b);
        out->negative = a->negative;
    } else {
        out = sub_magnitude(r, b, a);
        out->negative = b_negative;
    }
    return big_value(out);
}

static Value big_mul(Render *r, const Big *a, const Big *b) {
    Big *out = big_new(r, a->n + b->n);
    for (size_t i = 0; i < a->n; i++) {
        uint64_t carry = 0;
        for (size_t k = 0; k < b->n || carry; k++) {
            carry += (uint64_t) a->word[i] * (k < b->n ? b->word[k] : 0) + out->word[i + k];
            out->word[i + k] = (uint32_t) carry;
            carry >>= 32;
        }
    }
    out->negative = a->negative != b->negative;
    return big_value(out);
}

static uint32_t divide_small(Big *b, uint32_t by) { // in place; the rest
    uint64_t rest = 0;
    for (size_t i = b->n; i-- > 0;) {
        rest = rest << 32 | b->word[i];
        b->word[i] = (uint32_t) (rest / by);
        rest %= by;
    }
    trim(b);
    return (uint32_t) rest;
}

static size_t bits_of(const Big *b) {
    return b->n ? b->n * 32 - (size_t) __builtin_clz(b->word[b->n - 1]) : 0;
}

static Big *shift_left(Render *r, const Big *a, size_t by) {
    Big *out = big_new(r, a->n + by / 32 + 1);
    unsigned bit = by % 32;
    for (size_t i = 0; i < a->n; i++) {
        uint64_t wide = (uint64_t) a->word[i] << bit;
        out->word[i + by / 32] |= (uint32_t) wide;
        out->word[i + by / 32 + 1] |= (uint32_t) (wide >> 32);
    }
    trim(out);
    return out;
}

// Schoolbook division of magnitudes, bit by bit from the top: short, and numbers this long are rare.
static Big *divide_magnitude(Render *r, const Big *a, const Big *b, Big **rest_out) {
    Big *quotient = big_new(r, a->n ? a->n : 1), *rest = big_new(r, b->n + 1);
    rest->n = 0;
    for (size_t i = bits_of(a); i-- > 0;) {
        uint32_t carry = a->word[i / 32] >> (i % 32) & 1;
        for (size_t k = 0; k < rest->n; k++) {
            uint32_t top = rest->word[k] >> 31;
            rest->word[k] = rest->word[k] << 1 | carry;
            carry = top;
        }
        if (carry) rest->word[rest->n++] = carry;
        if (order_magnitude(rest, b) < 0) continue;
        int64_t borrow = 0;
        for (size_t k = 0; k < rest->n; k++) {
            int64_t d = (int64_t) rest->word[k] - (k < b->n ? b->word[k] : 0) + borrow;
            rest->word[k] = (uint32_t) d;
            borrow = d < 0 ? -1 : 0;
        }
        trim(rest);
        quotient->word[i / 32] |= 1u << (i % 32);
    }
    trim(quotient);
    *rest_out = rest;
    return quotient;
}

// Floor division: the rest has the divisor's sign.
static void big_divmod(Render *r, const Big *a, const Big *b, Value *quotient, Value *rest) {
    Big *remainder, *q = divide_magnitude(r, a, b, &remainder);
    q->negative = a->negative != b->negative;
    remainder->negative = a->negative;
    *quotient = big_value(q);
    *rest = big_value(remainder);
    if (remainder->n && a->negative != b->negative) {
        *quotient = sub(r, *quotient, integer(1));
        *rest = big_add(r, big_of(r, *rest), b, false);
    }
}

// The nearest real of the magnitude, ties to even; `sticky`: there is more below. HUGE_VAL: too large.
static double big_magnitude_real(const Big *b, bool sticky, int shift) {
    size_t bits = bits_of(b), drop = bits > 64 ? bits - 64 : 0;
    uint64_t top = 0;
    for (size_t i = 0; i < 64 && drop + i < bits; i++)
        top |= (uint64_t) (b->word[(drop + i) / 32] >> ((drop + i) % 32) & 1) << i;
    for (size_t i = 0; i < drop && !sticky; i++) sticky = b->word[i / 32] >> (i % 32) & 1;
    if (bits > 53) { // round to 53 bits by hand, since the sticky bits count
        unsigned cut = (unsigned) (bits - drop) - 53;
        uint64_t half = cut ? 1ull << (cut - 1) : 0, low = cut ? top & ((1ull << cut) - 1) : 0;
        top = cut ? top >> cut : top;
        if (cut && (low > half || (low == half && (sticky || (top & 1))))) top++;
        return ldexp((double) top, (int) (drop + cut) + shift);
    }
    return ldexp((double) top, shift);
}

static double big_real(Render *r, const Big *b) {
    double x = big_magnitude_real(b, false, 0);
    if (isinf(x)) raise_error(r, "OverflowError", "int too large to convert to float");
    return b->negative ? -x : x;
}

// ---- what all numbers share ----
static bool is_int(Value v) {
    return v.kind == V_BOOL || v.kind == V_INT || v.kind == V_BIG;
}

static int64_t small(Value v) { // of V_BOOL or V_INT
    return v.kind == V_BOOL ? v.b : v.i;
}

double to_real(Render *r, Value v) {
    return v.kind == V_REAL ? v.x : v.kind == V_BIG ? big_real(r, v.big) : (double) small(v);
}

// A real with a value of an integer's: as an integer, for exact comparison.
static int compare_int_real(Value a, double x) {
    if (isnan(x)) return 2;
    if (a.kind == V_BIG) {
        if (isinf(x)) return x > 0 ? -1 : 1;
        double big = big_magnitude_real(a.big, false, 0);
        if (a.big->negative) big = -big;
        return big < x ? -1 : big > x;
    }
    if (x >= 9223372036854775808.0) return -1;
    if (x < -9223372036854775808.0) return 1;
    int64_t whole = (int64_t) x;
    if (small(a) != whole) return small(a) < whole ? -1 : 1;
    double rest = x - (double) whole;
    return rest > 0 ? -1 : rest < 0;
}

int compare_numbers(Value a, Value b) {
    if (a.kind == V_REAL && b.kind == V_REAL) return isnan(a.x) || isnan(b.x) ? 2 : a.x < b.x ? -1 : a.x > b.x;
    if (a.kind == V_REAL) {
        int c = compare_int_real(b, a.x);
        return c == 2 ? 2 : -c;
    }
    if (b.kind == V_REAL) return compare_int_real(a, b.x);
    if (a.kind != V_BIG && b.kind != V_BIG) return small(a) < small(b) ? -1 : small(a) > small(b);
    bool a_negative = a.kind == V_BIG ? a.big->negative : small(a) < 0,
         b_negative = b.kind == V_BIG ? b.big->negative : small(b) < 0;
    if (a_negative != b_negative) return a_negative ? -1 : 1;
    int c = a.kind != V_BIG ? -1 : b.kind != V_BIG ? 1 : order_magnitude(a.big, b.big);
    return a_negative ? -c : c;
}

uint64_t hash_number(Value v) {
    if (v.kind == V_BIG) return v.big->word[0] ^ (uint64_t) v.big->word[1] << 32;
    if (v.kind != V_REAL) return (uint64_t) small(v);
    if (v.x >= -9223372036854775808.0 && v.x < 9223372036854775808.0 && v.x == (double) (int64_t) v.x)
        return (uint64_t) (int64_t) v.x;
    uint64_t bits; // of a real beyond 64 bits that equals a Big the hashes differ: such keys are kept apart
    memcpy(&bits, &v.x, sizeof bits);
    return bits;
}

int64_t index_clamped(Render *r, Value v) {
    if (v.kind == V_BIG) return v.big->negative ? INT64_MIN : INT64_MAX;
    return index_of(r, v);
}

int64_t index_of(Render *r, Value v) {
    if (v.kind == V_BOOL || v.kind == V_INT) return small(v);
    if (v.kind == V_BIG) raise_error(r, "OverflowError", "Python int too large to convert to C ssize_t");
    raise_error(r, "TypeError", "'%s' object cannot be interpreted as an integer", type_name(v));
}

// ---- arithmetic ----
_Noreturn static void no_operator(Render *r, const char *sign, Value a, Value b) {
    if (is_undefined(a)) raise_undefined(r, a);
    if (is_undefined(b)) raise_undefined(r, b);
    raise_error(r, "TypeError", "unsupported operand type(s) for %s: '%s' and '%s'", sign, type_name(a), type_name(b));
}

static Value join_lists(Render *r, Value a, Value b) {
    Value out = a.kind == V_LIST ? list_of(r, NULL, 0) : tuple_of(r, NULL, 0);
    List *list = render_take(r, sizeof *list);
    list->n = a.list->n + b.list->n;
    list->v = render_take_n(r, list->n, sizeof *list->v);
    if (a.list->n) memcpy(list->v, a.list->v, a.list->n * sizeof *list->v);
    if (b.list->n) memcpy(list->v + a.list->n, b.list->v, b.list->n * sizeof *list->v);
    out.list = list;
    return out;
}

Value add(Render *r, Value a, Value b) {
    if (a.kind == V_STR) {
        if (b.kind == V_STR) return str_add(r, a, b);
        if (is_undefined(b)) raise_undefined(r, b);
        if (!a.markup) raise_error(r, "TypeError", "can only concatenate str (not \"%s\") to str", type_name(b));
    }
    if (is_number(a) && is_number(b)) {
        if (a.kind == V_REAL || b.kind == V_REAL) return real(to_real(r, a) + to_real(r, b));
        int64_t sum;
        if (a.kind != V_BIG && b.kind != V_BIG && !__builtin_add_overflow(small(a), small(b), &sum))
            return integer(sum);
        return big_add(r, big_of(r, a), big_of(r, b), false);
    }
    if ((a.kind == V_LIST || a.kind == V_TUPLE) && a.kind == b.kind) return join_lists(r, a, b);
    if ((a.kind == V_LIST || a.kind == V_TUPLE) && !is_undefined(b)) {
        raise_error(r, "TypeError", "can only concatenate %s (not \"%s\") to %s", a.kind == V_LIST ? "list" : "tuple",
            type_name(b), a.kind == V_LIST ? "list" : "tuple");
    }
    no_operator(r, "+", a, b);
}

Value sub(Render *r, Value a, Value b) {
    if (!is_number(a) || !is_number(b)) no_operator(r, "-", a, b);
    if (a.kind == V_REAL || b.kind == V_REAL) return real(to_real(r, a) - to_real(r, b));
    int64_t rest;
    if (a.kind != V_BIG && b.kind != V_BIG && !__builtin_sub_overflow(small(a), small(b), &rest)) return integer(rest);
    return big_add(r, big_of(r, a), big_of(r, b), true);
}

static Value repeat_list(Render *r, Value a, int64_t n) {
    if (n < 0) n = 0;
    if (a.list->n && n > (int64_t) (r->size / sizeof(Value)))
        n = (int64_t) (r->size / sizeof(Value)); // fails for want of memory
    List *list = render_take(r, sizeof *list);
    list->n = a.list->n * (size_t) n;
    list->v = render_take_n(r, list->n, sizeof *list->v);
    for (size_t i = 0; i < list->n; i++) list->v[i] = a.list->v[i % a.list->n];
    return (Value){.kind = a.kind, .list = list};
}

static bool repeats(Value v) {
    return v.kind == V_STR || v.kind == V_LIST || v.kind == V_TUPLE;
}

Value mul(Render *r, Value a, Value b) {
    if (is_markup(a) && !is_int(b)) index_of(r, b); // Markup has a method of its own: TypeError
    if (is_undefined(a)) raise_undefined(r, a);
    if (is_markup(b) && !is_int(a)) index_of(r, a);
    if (is_undefined(b)) raise_undefined(r, b);
    if (is_int(a) && repeats(b)) {
        Value swap = a;
        a = b;
        b = swap;
    }
    if (repeats(a)) {
        if (!is_int(b)) {
            Value other = repeats(b) && !repeats(a) ? a : b;
            raise_error(r, "TypeError", "can't multiply sequence by non-int of type '%s'", type_name(other));
        }
        if (b.kind == V_BIG) raise_error(r, "OverflowError", "cannot fit 'int' into an index-sized integer");
        return a.kind == V_STR ? str_repeat(r, a, index_of(r, b)) : repeat_list(r, a, index_of(r, b));
    }
    if (repeats(b)) raise_error(r, "TypeError", "can't multiply sequence by non-int of type '%s'", type_name(a));
    if (!is_number(a) || !is_number(b)) no_operator(r, "*", a, b);
    if (a.kind == V_REAL || b.kind == V_REAL) return real(to_real(r, a) * to_real(r, b));
    int64_t product;
    if (a.kind != V_BIG && b.kind != V_BIG && !__builtin_mul_overflow(small(a), small(b), &product))
        return integer(product);
    return big_mul(r, big_of(r, a), big_of(r, b));
}

// Integers divided give the nearest real of the true quotient: enough bits of it, and whether there are more.
static double divide_big(Render *r, const Big *a, const Big *b) {
    int shift = 66 - (int) bits_of(a) + (int) bits_of(b);
    Big *rest, *quotient;
    if (shift >= 0) quotient = divide_magnitude(r, shift_left(r, a, (size_t) shift), b, &rest);
    else quotient = divide_magnitude(r, a, shift_left(r, b, (size_t) -shift), &rest);
    double x = big_magnitude_real(quotient, rest->n > 0, -shift);
    if (isinf(x)) raise_error(r, "OverflowError", "integer division result too large for a float");
    return a->negative != b->negative ? -x : x;
}

static bool exact(Value v) { // as a real
    return v.kind == V_BOOL || (v.kind == V_INT && v.i >= -(1ll << 53) && v.i <= 1ll << 53);
}

Value divide(Render *r, Value a, Value b) {
    if (!is_number(a) || !is_number(b)) no_operator(r, "/", a, b);
    bool reals = a.kind == V_REAL || b.kind == V_REAL;
    if (reals || (exact(a) && exact(b))) {
        double x = to_real(r, a), y = to_real(r, b);
        if (y == 0) raise_error(r, "ZeroDivisionError", reals ? "float division by zero" : "division by zero");
        return real(x / y);
    }
    const Big *divisor = big_of(r, b);
    if (!divisor->n) raise_error(r, "ZeroDivisionError", "division by zero");
    return real(divide_big(r, big_of(r, a), divisor));
}

static void real_divmod(Render *r, double a, double b, const char *message, double *quotient, double *rest) {
    if (b == 0) raise_error(r, "ZeroDivisionError", "%s", message);
    double m = fmod(a, b), d = (a - m) / b;
    if (m != 0) {
        if ((b < 0) != (m < 0)) {
            m += b;
            d -= 1;
        }
    } else {
        m = copysign(0.0, b);
    }
    double whole = d != 0 ? floor(d) : copysign(0.0, a / b);
    if (d != 0 && d - whole > 0.5) whole += 1;
    *quotient = whole;
    *rest = m;
}

static void int_divmod(Render *r, Value a, Value b, const char *message, Value *quotient, Value *rest) {
    if (b.kind != V_BIG && small(b) == 0) raise_error(r, "ZeroDivisionError", "%s", message);
    if (a.kind == V_BIG || b.kind == V_BIG || (small(a) == INT64_MIN && small(b) == -1)) {
        big_divmod(r, big_of(r, a), big_of(r, b), quotient, rest);
        return;
    }
    int64_t x = small(a), y = small(b), q = x / y, m = x % y;
    if (m && (m < 0) != (y < 0)) {
        q--;
        m += y;
    }
    *quotient = integer(q);
    *rest = integer(m);
}

static Value divmod(Render *r, const char *sign, Value a, Value b, bool want_rest) {
    if (!is_number(a) || !is_number(b)) no_operator(r, sign, a, b);
    if (a.kind == V_REAL || b.kind == V_REAL) {
        double quotient, rest;
        real_divmod(r, to_real(r, a), to_real(r, b), want_rest ? "float modulo" : "float floor division by zero",
            &quotient, &rest);
        return real(want_rest ? rest : quotient);
    }
    Value quotient, rest;
    int_divmod(r, a, b, want_rest ? "integer modulo by zero" : "integer division or modulo by zero", &quotient, &rest);
    return want_rest ? rest : quotient;
}

Value floordiv(Render *r, Value a, Value b) {
    return divmod(r, "//", a, b, false);
}

Value mod(Render *r, Value a, Value b) {
    if (a.kind == V_STR) return str_percent(r, a, b);
    return divmod(r, "%", a, b, true);
}

static Value int_power(Render *r, Value base, int64_t n) {
    Value out = integer(1);
    for (;; n >>= 1) {
        if (n & 1) out = mul(r, out, base);
        if (n <= 1) return out;
        base = mul(r, base, base);
    }
}

static double real_power(Render *r, double a, double b) {
    if (a == 0 && b < 0) raise_error(r, "ZeroDivisionError", "0.0 cannot be raised to a negative power");
    if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b))
        raise_error(r, "TypeError", "complex numbers are not supported in templates");
    double x = pow(a, b);
    if (isinf(x) && isfinite(a) && isfinite(b))
        raise_error(r, "OverflowError", "(34, 'Numerical result out of range')");
    return x;
}

Value power(Render *r, Value a, Value b) {
    if (!is_number(a) || !is_number(b)) no_operator(r, "** or pow()", a, b);
    if (a.kind == V_REAL || b.kind == V_REAL) return real(real_power(r, to_real(r, a), to_real(r, b)));
    if (b.kind == V_BIG || small(b) < 0) {
        if (b.kind == V_BIG && !b.big->negative) {
            if (a.kind != V_BIG && small(a) >= -1 && small(a) <= 1)
                return small(a) < 0 && (b.big->word[0] & 1) == 0 ? integer(1) : integer(small(a));
            raise_error(r, "OverflowError", "an integer of more than %d bits is more than a template may make",
                limit_big_words * 32);
        }
        return real(real_power(r, to_real(r, a), to_real(r, b)));
    }
    if (a.kind != V_BIG && small(a) >= -1 && small(a) <= 1)
        return integer(small(b) == 0 ? 1 : small(a) < 0 && small(b) % 2 == 0 ? 1 : small(a));
    return int_power(r, a.kind == V_BOOL ? integer(a.b) : a, small(b));
}

Value negate(Render *r, Value a) {
    if (is_undefined(a)) raise_undefined(r, a);
    if (!is_number(a)) raise_error(r, "TypeError", "bad operand type for unary -: '%s'", type_name(a));
    return a.kind == V_REAL ? real(-a.x) : sub(r, integer(0), a);
}

Value positive(Render *r, Value a) {
    if (is_undefined(a)) raise_undefined(r, a);
    if (!is_number(a)) raise_error(r, "TypeError", "bad operand type for unary +: '%s'", type_name(a));
    return a.kind == V_BOOL ? integer(a.b) : a;
}

Value number_abs(Render *r, Value v) {
    if (!is_number(v)) raise_error(r, "TypeError", "bad operand type for abs(): '%s'", type_name(v));
    if (v.kind == V_REAL) return real(fabs(v.x));
    return compare_numbers(v, integer(0)) < 0 ? negate(r, v) : positive(r, v);
}

Value number_round(Render *r, Value v, int64_t digits) {
    if (v.kind != V_REAL) {
        if (digits >= 0) return positive(r, v);
        if (digits < -19) return integer(0);
        Value unit = int_power(r, integer(10), -digits), quotient, rest;
        int_divmod(r, v, unit, "", &quotient, &rest);
        int half = compare_numbers(mul(r, rest, integer(2)), unit);
        Value odd, whole;
        int_divmod(r, quotient, integer(2), "", &whole, &odd);
        if (half > 0 || (half == 0 && odd.i)) quotient = add(r, quotient, integer(1));
        return mul(r, quotient, unit);
    }
    if (!isfinite(v.x) || digits > 323) return v;
    if (digits < -308) return real(copysign(0.0, v.x));
    char line[800];
    if (digits >= 0) {
        snprintf(line, sizeof line, "%.*f", (int) digits, v.x); // correctly rounded, ties by the exact value
        return real(strtod(line, NULL));
    }
    double unit = pow(10, (double) -digits), y = v.x / unit, z = nearbyint(y);
    return real(z * unit);
}

// ---- reading ----
Value int_from_real(Render *r, double x) {
    if (isnan(x)) raise_error(r, "ValueError", "cannot convert float NaN to integer");
    if (isinf(x)) raise_error(r, "OverflowError", "cannot convert float infinity to integer");
    if (x > -9.2e18 && x < 9.2e18) return integer((int64_t) x);
    int exponent;
    double m = frexp(fabs(x), &exponent);
    Value whole = integer((int64_t) ldexp(m, 53));
    Big *b = shift_left(r, big_of(r, whole), (size_t) exponent - 53);
    b->negative = x < 0;
    return big_value(b);
}

static int digit_of(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'z' ? (c | 32) - 'a' + 10 : 99;
}

Value int_parse(Render *r, const char *p, size_t n, int base, bool *ok) {
    const char *end = p + n;
    *ok = false;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    bool prefixed = end - p > 2 && p[0] == '0' && digit_of(p[1]) > 10;
    int marked_base = prefixed ? ((p[1] | 32) == 'x' ? 16 : (p[1] | 32) == 'o' ? 8 : (p[1] | 32) == 'b' ? 2 : 0) : 0;
    bool zero_base = base == 0;
    if (marked_base && (base == 0 || base == marked_base)) {
        base = marked_base;
        p += 2;
        if (p < end && *p == '_') p++;
        zero_base = false;
    }
    if (base == 0) base = 10;
    Value out = integer(0);
    bool any = false, last_line = true, nonzero = false;
    const char *first = p;
    size_t digits = 0;
    for (; p < end; p++) {
        if (*p == '_' && !last_line) {
            last_line = true;
            continue;
        }
        int d = digit_of(*p);
        if (d >= base) return out;
        out = add(r, mul(r, out, integer(base)), integer(d));
        any = true;
        last_line = false;
        nonzero |= d != 0;
        if (++digits > 4300 && (base & (base - 1))) {
            raise_error(r, "ValueError",
                "Exceeds the limit (4300 digits) for integer string conversion: value has %td digits; use "
                "sys.set_int_max_str_digits() to increase the limit",
                end - first);
        }
    }
    if (!any || last_line || (zero_base && *first == '0' && nonzero)) return out;
    *ok = true;
    return negative ? negate(r, out) : out;
}

bool real_parse(const char *p, size_t n, double *x) {
    char line[512];
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '_') {
            bool between = i && i + 1 < n && p[i - 1] >= '0' && p[i - 1] <= '9' && p[i + 1] >= '0' && p[i + 1] <= '9';
            if (!between) return false;
            continue;
        }
        if (k + 1 == sizeof line || p[i] == 0) return false;
        line[k++] = p[i];
    }
    line[k] = 0;
    const char *body = line + (line[0] == '-' || line[0] == '+');
    static const char *words[] = {"inf", "infinity", "nan"};
    bool word = false;
    for (int i = 0; i < 3; i++) {
        size_t j = 0;
        while (body[j] && words[i][j] && (body[j] | 32) == words[i][j]) j++;
        word |= !body[j] && !words[i][j];
    }
    if (!word &&
        (!k || body[strspn(body, "0123456789.eE+-")] || !strpbrk(body, "0123456789") || *body == '-' || *body == '+'))
        return false;
    char *end;
    *x = strtod(line, &end);
    return *end == 0;
}

// ---- writing ----
void put_real(char out[40], double x) {
    if (isnan(x) || isinf(x)) {
        strcpy(out, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
        return;
    }
    char line[40];
    int digits = 1;
    for (; digits <= 17; digits++) {
        snprintf(line, sizeof line, "%.*e", digits - 1, x);
        if (strtod(line, NULL) == x) break;
    }
    char *e = strchr(line, 'e');
    int exponent = atoi(e + 1);
    if (exponent < -4 || exponent >= 16) {
        *e = 0;
        snprintf(out, 40, "%.30se%s%02d", line, exponent < 0 ? "-" : "+", abs(exponent) % 1000);
    } else if (exponent >= digits - 1) {
        snprintf(out, 40, "%.1f", x);
    } else {
        snprintf(out, 40, "%.*f", digits - 1 - exponent, x);
    }
}

void put_int_base(Render *r, Buffer *b, Value v, unsigned base) {
    if (v.kind != V_BIG && base == 10) {
        buffer_format(r, b, "%lld", (long long) small(v));
        return;
    }
    const Big *big = big_of(r, v);
    if (base == 10 && bits_of(big) > 14280) {
        raise_error(r, "ValueError",
            "Exceeds the limit (4300 digits) for integer string conversion; use sys.set_int_max_str_digits() to "
            "increase the limit");
    }
    Big *rest = big_new(r, big->n);
    memcpy(rest->word, big->word, big->n * sizeof *big->word);
    size_t room = big->n * 32 + 2, n = room;
    char *line = render_take_text(r, room);
    do {
        uint32_t chunk = divide_small(rest, base == 10 ? 1000000000u : base);
        for (int i = 0; i < (base == 10 ? 9 : 1); i++, chunk /= base) {
            if (rest->n || chunk || (i == 0)) line[--n] = "0123456789abcdef"[chunk % base];
        }
    } while (rest->n);
    if (big->negative) line[--n] = '-';
    buffer_add(r, b, line + n, room - n);
}

void put_number(Render *r, Buffer *b, Value v) {
    char line[40];
    if (v.kind == V_BOOL) {
        buffer_z(r, b, v.b ? "True" : "False");
    } else if (v.kind == V_REAL) {
        put_real(line, v.x);
        buffer_z(r, b, line);
    } else {
        put_int_base(r, b, v, 10);
    }
}
