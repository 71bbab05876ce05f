// A line editor. In: keys. Out: a line of UTF-8, which may hold line feeds that were pasted. The one idea: the line is
// bytes and a cursor; after every key the row is drawn again, scrolled sideways when it is wider than the terminal.
#define _GNU_SOURCE
#include "chat_line.h"
#include "chat_width.h"
#include "error.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { MAX_HISTORY = 500 };

// ---- characters: a letter and the marks on it are one, for the cursor and for erasing ----

static size_t code_end(const Line *l, size_t i) { // of the code point at i
    if (i < l->n) i++;
    while (i < l->n && ((unsigned char) l->text[i] & 0xC0) == 0x80) i++;
    return i;
}

static size_t code_begin(const Line *l, size_t i) { // of the one before i
    if (i > 0) i--;
    while (i > 0 && ((unsigned char) l->text[i] & 0xC0) == 0x80) i--;
    return i;
}

static uint32_t code_at(const Line *l, size_t i) {
    unsigned char c = (unsigned char) l->text[i];
    uint32_t code = c < 0xC0 ? c : c < 0xE0 ? c & 31u : c < 0xF0 ? c & 15u : c & 7u;
    for (size_t k = i + 1, end = code_end(l, i); k < end; k++) code = code << 6 | ((unsigned char) l->text[k] & 63u);
    return code;
}

static bool is_in(uint32_t c, const uint32_t (*ranges)[2], size_t n) {
    size_t low = 0;
    while (low < n) {
        size_t middle = (low + n) / 2;
        if (ranges[middle][1] < c) low = middle + 1;
        else n = middle;
    }
    return ranges[low][0] <= c && c <= ranges[low][1];
}

#define IS_IN(c, ranges) is_in(c, ranges, sizeof ranges / sizeof *(ranges) - 1)

static int columns(uint32_t c) {
    if (c < 0xA0) return 1;
    return IS_IN(c, no_columns) ? 0 : IS_IN(c, two_columns) ? 2 : 1;
}

static size_t after(const Line *l, size_t i) {
    i = code_end(l, i);
    while (i < l->n && columns(code_at(l, i)) == 0) i = code_end(l, i);
    return i;
}

static size_t before(const Line *l, size_t i) {
    i = code_begin(l, i);
    while (i > 0 && columns(code_at(l, i)) == 0) i = code_begin(l, i);
    return i;
}

static int width_of(const Line *l, size_t from, size_t to) {
    int width = 0;
    for (; from < to; from = code_end(l, from)) width += columns(code_at(l, from));
    return width;
}

// ---- the row ----

static void put(const char *p, size_t n) {
    while (n) {
        ssize_t got = write(STDERR_FILENO, p, n);
        if (got < 0 && errno != EINTR) return;
        if (got > 0) p += got, n -= (size_t) got;
    }
}

static void put_z(const char *z) {
    put(z, strlen(z));
}

static void draw(Line *l) {
    struct winsize w;
    int row = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
    int room = row - (int) strlen(l->prompt) - 1;
    if (room < 4) room = 4;
    if (l->first > l->at) l->first = l->at;
    size_t first = l->at; // as far left as there is room
    for (int width = 0; first > l->first; first = code_begin(l, first))
        if ((width += columns(code_at(l, code_begin(l, first)))) >= room) break;
    if (first > l->first) l->first = first;
    put_z("\r"), put_z(l->colour), put_z(l->prompt);
    int used = 0;
    for (size_t i = l->first, end; i < l->n; i = end) {
        end = code_end(l, i);
        uint32_t c = code_at(l, i);
        used += columns(c);
        if (used > room) break;
        if (c == '\n') put_z("\xE2\x8F\x8E");
        else if (c < 32 || (c >= 127 && c < 160)) put_z("?"); // nothing here moves the cursor or sets a colour
        else put(l->text + i, end - i);
    }
    if (*l->colour) put_z("\033[0m");
    put_z("\033[K");
    char move[32];
    int to = (int) strlen(l->prompt) + width_of(l, l->first, l->at);
    snprintf(move, sizeof move, "\r\033[%dC", to);
    put_z(to ? move : "\r");
}

// ---- changes ----

static int need(Line *l, size_t more) {
    if (l->n + more + 1 <= l->cap) return 0;
    size_t cap = 2 * (l->n + more) + 64;
    char *p = realloc(l->text, cap);
    if (!p) return complain("no memory for a line of %zu bytes", cap);
    l->text = p, l->cap = cap;
    return 0;
}

static int insert(Line *l, const char *p, size_t n) {
    if (need(l, n)) return -1;
    memmove(l->text + l->at + n, l->text + l->at, l->n - l->at);
    memcpy(l->text + l->at, p, n);
    l->n += n, l->at += n;
    return 0;
}

static void erase(Line *l, size_t from, size_t to) {
    memmove(l->text + from, l->text + to, l->n - to);
    l->n -= to - from;
    l->at = from;
}

static size_t word_left(const Line *l) {
    size_t i = l->at;
    while (i && l->text[i - 1] == ' ') i--;
    while (i && l->text[i - 1] != ' ') i--;
    return i;
}

static size_t word_right(const Line *l) {
    size_t i = l->at;
    while (i < l->n && l->text[i] == ' ') i++;
    while (i < l->n && l->text[i] != ' ') i++;
    return i;
}

static int browse(Line *l, int step) {
    int to = l->browsing + step;
    if (to < 0 || to > l->n_history) return 0;
    if (l->browsing == l->n_history) {
        free(l->draft);
        l->draft = strndup(l->text ? l->text : "", l->n);
    }
    const char *z = to == l->n_history ? l->draft : l->history[to];
    l->browsing = to;
    l->n = l->at = l->first = 0;
    return z ? insert(l, z, strlen(z)) : 0;
}

int line_remember(Line *l, const char *text, size_t n) {
    if (!n ||
        (l->n_history && strlen(l->history[l->n_history - 1]) == n && !memcmp(l->history[l->n_history - 1], text, n)))
        return 0;
    if (!l->history) l->history = calloc(MAX_HISTORY, sizeof *l->history);
    char *copy = strndup(text, n);
    if (!l->history || !copy) {
        free(copy);
        return complain("no memory for the history of lines");
    }
    if (l->n_history == MAX_HISTORY) {
        free(l->history[0]);
        memmove(l->history, l->history + 1, (MAX_HISTORY - 1) * sizeof *l->history);
        l->n_history--;
    }
    l->history[l->n_history++] = copy;
    return 0;
}

// ---- keys ----

static volatile sig_atomic_t resized;

static void on_resize(int signal) {
    (void) signal;
    resized = 1;
}

enum { NO_KEY = -2 }; // the window has another size: draw again

static int key(void) { // a byte; -1: none any more
    unsigned char c;
    ssize_t got;
    while ((got = read(STDIN_FILENO, &c, 1)) < 0 && errno == EINTR)
        if (resized) return resized = 0, NO_KEY;
    return got == 1 ? c : -1;
}

static int key_of_sequence(void) { // within one, a new size can wait
    int c;
    while ((c = key()) == NO_KEY) resized = 0;
    return c;
}

static bool more_within(int milliseconds) {
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, milliseconds) == 1;
}

// Pasted text up to ESC [ 201 ~: taken as it is. It is gathered apart, then put in its place.
static int paste(Line *l) {
    static const char end[] = "\033[201~";
    Line pasted = {0};
    size_t seen = 0;
    int result = 0;
    for (int c; !result && seen < sizeof end - 1 && (c = key_of_sequence()) >= 0;) {
        char byte = c == '\r' ? '\n' : (char) c;
        result = insert(&pasted, &byte, 1);
        seen = c == end[seen] ? seen + 1 : c == end[0];
    }
    if (!result) result = insert(l, pasted.text, pasted.n - (seen == sizeof end - 1 ? seen : 0));
    free(pasted.text);
    return result;
}

// What follows ESC.
static int escape_key(Line *l) {
    char number[16] = "";
    size_t n = 0;
    if (!more_within(50)) return 0;
    int c = key_of_sequence();
    if (c == 'b') l->at = word_left(l);
    if (c == 'f') l->at = word_right(l);
    if (c != '[' && c != 'O') return 0;
    while ((c = key_of_sequence()) >= 0 && (c < 0x40 || c > 0x7E))
        if (n + 1 < sizeof number) number[n++] = (char) c, number[n] = '\0';
    bool word = strstr(number, ";5") || strstr(number, ";3");
    switch (c) {
    case 'A': return browse(l, -1);
    case 'B': return browse(l, 1);
    case 'C': l->at = word ? word_right(l) : after(l, l->at); break;
    case 'D': l->at = word ? word_left(l) : before(l, l->at); break;
    case 'H': l->at = 0; break;
    case 'F': l->at = l->n; break;
    case '~':
        if (!strcmp(number, "1") || !strcmp(number, "7")) l->at = 0;
        else if (!strcmp(number, "4") || !strcmp(number, "8")) l->at = l->n;
        else if (!strcmp(number, "3")) erase(l, l->at, after(l, l->at));
        else if (!strcmp(number, "200")) return paste(l);
        break;
    default: break;
    }
    return 0;
}

enum {
    CTRL_A = 1,
    CTRL_B,
    CTRL_C,
    CTRL_D,
    CTRL_E,
    CTRL_F,
    CTRL_H = 8,
    CTRL_K = 11,
    CTRL_L,
    CTRL_N = 14,
    CTRL_P = 16,
    CTRL_U = 21,
    CTRL_W = 23,
    ESC = 27,
    DELETE = 127
};

// One key's work. 0: go on; 1: the line is done; 2: end of input; 3: Ctrl-C; -1: complaint().
static int act(Line *l, int c) {
    char byte = (char) c;
    switch (c) {
    case NO_KEY: return 0;
    case -1: return l->n ? 1 : 2;
    case '\r':
    case '\n': return 1;
    case CTRL_C: return 3;
    case CTRL_D:
        if (!l->n) return 2;
        erase(l, l->at, after(l, l->at));
        return 0;
    case CTRL_A: l->at = 0; return 0;
    case CTRL_E: l->at = l->n; return 0;
    case CTRL_B: l->at = before(l, l->at); return 0;
    case CTRL_F: l->at = after(l, l->at); return 0;
    case CTRL_H:
    case DELETE: erase(l, before(l, l->at), l->at); return 0;
    case CTRL_K: erase(l, l->at, l->n); return 0;
    case CTRL_U: erase(l, 0, l->at); return 0;
    case CTRL_W: erase(l, word_left(l), l->at); return 0;
    case CTRL_L: put_z("\033[H\033[2J"); return 0;
    case CTRL_P: return browse(l, -1);
    case CTRL_N: return browse(l, 1);
    case ESC: return escape_key(l);
    default: return c >= 32 || c == '\t' ? insert(l, &byte, 1) : 0;
    }
}

static LineResult edit(Line *l) {
    struct termios old, raw;
    if (tcgetattr(STDIN_FILENO, &old)) return complain("the terminal does not answer: %s", strerror(errno));
    raw = old;
    raw.c_iflag &= ~(tcflag_t) (ICRNL | IXON | ISTRIP | INPCK);
    raw.c_lflag &= ~(tcflag_t) (ECHO | ICANON | IEXTEN | ISIG);
    raw.c_cc[VMIN] = 1, raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    struct sigaction action = {.sa_handler = on_resize}, before_action;
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, &before_action);
    put_z("\033[?2004h"); // pasted text comes between marks
    int done;
    do {
        if (!more_within(0)) draw(l); // of many keys at once the last one's line is enough
        done = act(l, key());
    } while (!done);
    l->at = l->n;
    if (done > 0) draw(l);
    put_z(done == 3 ? "^C\033[?2004l\r\n" : "\033[?2004l\r\n");
    tcsetattr(STDIN_FILENO, TCSADRAIN, &old);
    sigaction(SIGWINCH, &before_action, NULL);
    return done < 0 ? LINE_ERROR : done == 1 ? LINE_TEXT : done == 2 ? LINE_END : LINE_BREAK;
}

static LineResult just_read(Line *l) {
    for (int c;;) {
        c = getc(stdin);
        if (c == EOF || c == '\n') {
            if (c == EOF && ferror(stdin)) {
                if (errno != EINTR) return complain("cannot read standard input: %s", strerror(errno));
                clearerr(stdin);
                return LINE_BREAK;
            }
            if (c == EOF && !l->n) return LINE_END;
            if (l->n && l->text[l->n - 1] == '\r') l->n--;
            return LINE_TEXT;
        }
        char byte = (char) c;
        if (insert(l, &byte, 1)) return LINE_ERROR;
    }
}

LineResult line_read(Line *l, const char *prompt) {
    l->prompt = prompt;
    l->n = l->at = l->first = 0;
    l->browsing = l->n_history;
    if (need(l, 0)) return LINE_ERROR;
    if (l->dumb) put_z(prompt);
    LineResult result = l->terminal ? edit(l) : just_read(l);
    l->text[l->n] = '\0';
    return result;
}

void line_open(Line *l) {
    const char *term = getenv("TERM"), *none = getenv("NO_COLOR");
    memset(l, 0, sizeof *l);
    bool person = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    l->dumb = person && term && !strcmp(term, "dumb");
    l->terminal = person && !l->dumb;
    l->colour = l->terminal && !(none && *none) ? "\033[1;32m" : "";
}

void line_close(Line *l) {
    for (int i = 0; i < l->n_history; i++) free(l->history[i]);
    free(l->history);
    free(l->draft);
    free(l->text);
    memset(l, 0, sizeof *l);
}
