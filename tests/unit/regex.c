// compiler/regex.c: what patterns match, that preference is Perl's, and that broken patterns say where.
#include "regex.h"

#include <string.h>

#include "check.h"
#include "unicode.h"

// The end of the match at the begin of the text; -1: none, -2 - n: n bytes that stay uncut.
static int match(const char *pattern, const char *text) {
    Arena *a = arena_new();
    bool uncut;
    int64_t end = regex_match(regex_compile(a, str(pattern)), str(text), 0, &uncut);
    arena_free(a);
    return (int) (uncut ? -2 - end : end);
}

static void check_patterns(void) {
    static const struct {
        const char *pattern, *text;
        int end;
    } cases[] = {
        {"a", "a", 1},
        {"a", "b", -1},
        {"a", "", -1},
        {"ab|a", "ab", 2},
        {"a|ab", "ab", 1}, // the first alternative wins
        {"(a|ab)(c|bcd)", "abcd", 4},
        {"(ab|a)(bcd|c)", "abcd", 3},
        {"(a|b)*", "abba!", 4},
        {"(a*)*", "aaab", 3},
        {"a?b", "b", 1},
        {"a{3}", "aaaa", 3},
        {"a{3}", "aa", -1},
        {"a{1,3}", "aaaa", 3},
        {"a{2,}b", "aaaab", 5},
        {"(ab){2}", "ababab", 4},
        {"(?:a|b){2,3}c", "abac", 4},
        {"a{0,2}b", "aab", 3},
        {"[a-c]+", "abcd", 3},
        {"[^a-c]+", "xyzа", 5},
        {"[]a]+", "]a]", 3},
        {"[a-]+", "a-a", 3},
        {"[\\]\\\\-]+", "\\]-", 3},
        {"[\\p{L}\\p{N}]+", "aß9x!", 5},
        {"\\p{Lu}\\p{Ll}+", "Écol", 5},
        {"\\p{N}", "½", 2},
        {"\\p{L}", "½", -1},
        {"[\\p{L}&&[^a-z]]+", "ABéc", 4},
        {"[^\\s\\p{L}]+", "1!٣ ", 4},
        {"\\s+", " \t\r\n\xC2\xA0\xE3\x80\x80x", 9},
        {"\\S+", "ab c", 2},
        {"\\d+", "12٣", 2},
        {"(?i:'s|'LL)", "'S", 2},
        {"(?i:'s|'LL)", "'ll", 3},
        {"(?i:[a-c]+)d", "aBCd", 4},
        {"(?i:a)b", "AB", -1},
        {"\\s+(?!\\S)", "   x", 2},
        {"\\s+(?!\\S)", "   ", 3},
        {"\\s+(?!\\S)", " x", -1},
        {"(?!\\S)\\s", " ", 1},
        {"((?=[\\p{L}])([^a-z]))+", "ÉAb", 3},
        {"(?=[ab])[bc]", "b", 1},
        {"(?=[ab])[bc]", "c", -1},
        {"a$", "a", 1},
        {"a$", "ab", -1},
        {"\\s+$|\\s+(*SKIP)", "  ", 2},
        {"\\s+$|\\s+(*SKIP)", "  x", -4},
        {"\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", " \n \n  x", 4},
        {"\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", "  x", 1},
        {"x*", "y", 0},
        {"[\xF0\x90\x80\x80-\xF4\x8F\xBF\xBF]+", "\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF.", 8},
        {"[^a]", "\xFF", 1},
        {"\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s", "     x", 4},
        {"\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s", "   x", 2},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        int end = match(cases[i].pattern, cases[i].text);
        if (end != cases[i].end)
            printf("%s on '%s': %d, expected %d\n", cases[i].pattern, cases[i].text, end, cases[i].end);
        CHECK(end == cases[i].end);
    }
}

static void check_errors(void) {
    static const struct {
        const char *pattern, *message;
    } cases[] = {
        {"a)", "unexpected )"},
        {"(a", "expected )"},
        {"[a", "the pattern ends too early"},
        {"a{2", "expected {m}, {m,} or {m,n}"},
        {"a{3,2}", "expected {m}, {m,} or {m,n}"},
        {"a{x}", "expected a number"},
        {"a{2000}", "more than 1000 repetitions"},
        {"*a", "not implemented here"},
        {"a+?", "lazy and possessive repetition are not implemented"},
        {"\\q", "unknown escape"},
        {"\\p{Xx}", "unknown property"},
        {"\\pL", "expected { after \\p"},
        {"[b-a]", "a range runs backwards"},
        {"[a-\\s]", "a range cannot end with a class"},
        {"(?<n>a)", "unknown kind of group"},
        {"(?=ab)", "only one character can be looked ahead at"},
        {"a\xFF", "the pattern is not UTF-8"},
        {"a\\", "the pattern ends too early"},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Arena *a = arena_new();
        volatile bool failed = true;
        if (!setjmp(fail_guard()->jmp)) regex_compile(a, str(cases[i].pattern)), failed = false;
        const char *message = failed ? fail_guard()->message : "did not fail";
        if (!strstr(message, cases[i].message)) printf("%s: %s\n", cases[i].pattern, message);
        CHECK(strstr(message, cases[i].message));
        fail_unguard();
        arena_free(a);
    }
}

static void check_unicode(void) {
    CHECK(unicode_category('a') == Ll && unicode_category('A') == Lu && unicode_category('0') == Nd);
    CHECK(unicode_category(0x378) == Cn && unicode_category(0x4E00) == Lo && unicode_category(UNICODE_LAST) == Cn);
    CHECK(unicode_category(0x1F600) == So && unicode_category(0xD800) == Cs && unicode_category(0x301) == Mn);
    CHECK(unicode_mask(S("Lu")) == 1u << Lu && unicode_mask(S("Zz")) == 0 && unicode_mask(S("")) == 0);
    uint32_t first, last, next = 0;
    for (int i = 0; unicode_range(i, &first, &last) >= 0; i++) {
        CHECK(first == next && last >= first); // the ranges cover everything, in order
        next = last + 1;
    }
    CHECK(next == UNICODE_LAST + 1);
    static const char *const broken[] = {
        "\x80", "\xC0\x80", "\xC2", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x80\x80\x80\x80"};
    int len;
    for (int i = 0; i < COUNT(broken); i++) CHECK(utf8_next(broken[i], strlen(broken[i]), &len) == -1 && len == 1);
    for (uint32_t code = 0; code <= UNICODE_LAST; code += 97) {
        char text[4];
        int n = utf8_put(text, code);
        CHECK((code >= 0xD800 && code < 0xE000) || (utf8_next(text, (size_t) n, &len) == (int32_t) code && len == n));
    }
}

int main(void) {
    check_patterns();
    check_errors();
    check_unicode();
    return check_done();
}
