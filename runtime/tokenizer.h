// Text to token ids and back, from tables that were built with the model.
// In: a blob of tables (compiler/tokenizer.c writes it, the program maps it) and text or ids. Out: ids or
// bytes. The one idea: every decision that depends on the vocabulary alone was taken at build time; at run
// time there is no parsing and no allocation, and time grows as n log n with the text at worst.
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// ---- using a tokenizer ----

typedef struct TokHeader TokHeader;
typedef struct {
    const uint8_t *base; // the blob
    const TokHeader *head;
} Tokenizer;

enum {
    TOK_FULL = -1,     // more ids than `cap`
    TOK_SCRATCH = -2,  // scratch smaller than tokenize_scratch says
    TOK_TOO_LONG = -3, // text over 1 GiB
};

// false: not a blob of this version, or cut short. The blob must be aligned to 8 bytes and outlive `t`.
bool tokenizer_open(Tokenizer *t, const void *blob, size_t size);
int tok_n_vocab(const Tokenizer *t);

enum {
    TOK_ADD_SPECIAL = 1,   // begin and end the text as the model does (BOS, EOS)
    TOK_PARSE_SPECIAL = 2, // read the text of special tokens as those tokens; user-defined ones are always read
};
// The number of ids, or one of the codes above. `scratch` is aligned to 8 bytes; most of it stays untouched.
int64_t tokenize(const Tokenizer *t, const char *text, size_t n, int flags, int32_t *ids, size_t cap, void *scratch,
    size_t scratch_size);
// The same for a text of which some parts, in order and apart, are text alone: no control token is read there.
typedef struct {
    size_t from, to;
} TokSpan;
int64_t tokenize_but(const Tokenizer *t, const char *text, size_t n, int flags, const TokSpan *plain, size_t n_plain,
    int32_t *ids, size_t cap, void *scratch, size_t scratch_size);
// Bytes of the longest control or unknown token whose text stands at the beginning of this one; 0: none.
size_t tok_special_at(const Tokenizer *t, const char *text, size_t n);
size_t tokenize_scratch(const Tokenizer *t, size_t n); // bytes of scratch for a text of n bytes
size_t tokenize_max_ids(const Tokenizer *t, size_t n); // no text of n bytes gives more ids

typedef enum { TOK_NORMAL = 1, TOK_UNKNOWN, TOK_CONTROL, TOK_USER_DEFINED, TOK_UNUSED, TOK_BYTE } TokType;
TokType tok_type(const Tokenizer *t, int32_t id);
const char *tok_bytes(const Tokenizer *t, int32_t id, size_t *n); // what it stands for; a control token's own text
bool tok_is_eog(const Tokenizer *t, int32_t id);                  // generation ends with it
bool tok_is_suppressed(const Tokenizer *t, int32_t id);           // never to be sampled
typedef enum {
    TOK_BOS,
    TOK_EOS,
    TOK_EOT,
    TOK_EOM,
    TOK_UNK,
    TOK_SEP,
    TOK_PAD,
    TOK_MASK,
    TOK_FIM_PRE,
    TOK_FIM_SUF,
    TOK_FIM_MID,
    TOK_FIM_PAD,
    TOK_FIM_REP,
    TOK_FIM_SEP,
    TOK_ROLES
} TokRole;
int32_t tok_role(const Tokenizer *t, TokRole role); // -1: none
bool tok_adds_bos(const Tokenizer *t);
bool tok_adds_eos(const Tokenizer *t);
int tok_n_stop(const Tokenizer *t); // texts (not tokens) that end generation too
const char *tok_stop(const Tokenizer *t, int i, size_t *n);

// Ids to bytes, as a stream: each call writes whole UTF-8 characters only and keeps a begun one for the next;
// bytes that are no UTF-8 pass as they are.
enum {
    DETOK_SPECIAL = 1, // write the text of control and unknown tokens
    DETOK_WHOLE = 2,   // the ids are a whole text: drop the BOS and EOS and the leading space that encoding put there
    DETOK_CLEAN = 4,   // drop spaces before punctuation and contractions where the model's tokenizer asks for it
};
typedef struct {
    const Tokenizer *t;
    int flags;
    bool started;  // an id was seen
    bool strip;    // one leading space is still to be dropped
    bool held_end; // the last id was the EOS, which counts only if another one follows
    char begun[4]; // a character of which bytes are missing
    int n_begun;
    char open[4]; // cleaning: a space, and what follows it, that may still have to go
    int n_open;
} Detok;
void detok_begin(Detok *d, const Tokenizer *t, int flags);
size_t detok_room(const Tokenizer *t); // each call writes at most this many bytes
size_t detok_put(Detok *d, int32_t id, char *out);
size_t detok_end(Detok *d, char *out);

// ---- the blob: written by the compiler, little-endian, offsets in bytes from its start ----

#define TOK_MAGIC "ggcctok2"
#define TOK_SPLITS 8          // splitters applied one within the other, at most
#define TOK_SYMBOLS 0xFFFFFEu // symbols (tokens and parts of tokens), at most: numbers have 24 bits
#define TOK_LENGTHS 1024      // distinct lengths of special tokens, at most

typedef enum {
    TOK_KIND_MERGES = 1, // byte-pair merges by rank
    TOK_KIND_SCORES,     // byte-pair merges by the score of the result
    TOK_KIND_UNIGRAM,    // the cut of the text with the highest sum of scores
    TOK_KIND_TABLE,      // the same from the right, in whole numbers
    TOK_KIND_WORDS,      // words, cut into the longest tokens (WordPiece)
    TOK_KIND_LONGEST,    // the longest token at each place
} TokKind;

enum { // TokHeader.flags
    TOK_F_ADD_BOS = 1,
    TOK_F_ADD_EOS = 2,
    TOK_F_SPACE_PREFIX = 4, // a text that begins or follows a special token gets a space in front
    TOK_F_CLEAN = 8,
    TOK_F_BYTES = 16,        // symbols start as bytes; else as UTF-8 characters
    TOK_F_SPACES = 32,       // U+2581 stands for a space: texts and keys have spaces instead
    TOK_F_WORDS = 64,        // cut before a space wherever no token could span the cut
    TOK_F_STRIPS = 128,      // some token swallows white space beside it
    TOK_F_ADD_SEP = 256,     // a text ends with SEP
    TOK_F_TRIM_SPACES = 512, // UNIGRAM: runs of spaces become one, those at both ends none
    TOK_F_FALLBACK = 1024,   // UNIGRAM: what no token covers becomes bytes, not the unknown token
    TOK_F_BASES = 2048,      // MERGES: between tags, tokens of six bases
    TOK_F_FOLD = 4096,       // MERGES: white space separates texts and goes; characters become what `fold` says
};
enum { // bits of a token
    TOK_A_EOG = 1,
    TOK_A_LSTRIP = 2, // swallows white space on its left, right
    TOK_A_RSTRIP = 4,
    TOK_A_SUPPRESSED = 8,
};

// Symbols are what merging works on: the n_vocab tokens, then parts that merges name and no token spells, and
// spellings of tokens whose key (as it stands in text) differs from what they print.
struct TokHeader {
    char magic[8];
    uint64_t size;
    uint32_t kind, flags, n_vocab, n_symbol;
    int32_t role[TOK_ROLES];
    uint32_t max_key;                    // bytes of the longest key
    uint32_t max_piece;                  // bytes of the longest token
    uint32_t pool, span;                 // bytes; u32[n_symbol + 1]: where in them each symbol is
    uint32_t type, attr;                 // u8[n_vocab] each
    uint32_t spell;                      // i32[n_symbol - n_vocab]: the token that a further symbol spells, -1 for none
    uint32_t rank;                       // SCORES: u32[n_symbol], 0 for the highest score
    uint32_t key, key_mask;              // u32[key_mask + 1]: hash to symbol + 1, 8 more bits of the hash on top
    uint32_t pair, pair_mask;            // MERGES: the same for TokMerge + 1
    uint32_t merge, n_merge;             // TokMerge[], best first
    uint32_t whole;                      // a bit a symbol: text equal to its key is that one token
    uint32_t byte_symbol;                // i32[256]: the symbol of a byte, -1 for none
    uint32_t byte_token;                 // i32[256]: the token for a byte that no token covers, -1 for none
    uint32_t cut;                        // a bit a byte: cut between it and a space
    uint32_t n_split, split[TOK_SPLITS]; // TokSplit each
    uint32_t node;                       // TokNode[]: tree of the special tokens' texts, root first
    uint32_t n_length, length;           // u32[n_length]: lengths of special tokens, longest first
    uint32_t first[2][8];                // a bit a byte that begins a user-defined token, any special token
    uint32_t n_stop, stop;               // u32[n_stop + 1] offsets into the blob
    // Kinds that do not merge:
    uint32_t trie;     // TokCell[]: the keys of the tokens; TOK_F_BASES: of those of bases
    uint32_t score;    // UNIGRAM: float[n_vocab + 1]; TABLE: i32[n_vocab + 1]; the last: of a character no token covers
    uint32_t map;      // UNIGRAM: TokCell[]: bytes to the number of their replacement; 0: nothing is replaced
    uint32_t map_span; // u32[n + 1] offsets into the blob
    uint32_t grow;     // normalising makes a text at most so many times as long; 1 where nothing does
    uint32_t fold;     // WORDS, TOK_F_FOLD: TokFold
    int32_t bases[3];  // TOK_F_BASES: the tokens of the two tags, and of six letters that `trie` does not have
};

// A trie in two arrays: the child of cell s for byte c is cell[s].child ^ c if its parent is s. Cell 0 is the root.
typedef struct {
    uint32_t child, parent; // parent TOK_NO_CELL: unused
    int32_t value;          // of the key that ends here, -1 for none
} TokCell;
#define TOK_NO_CELL UINT32_MAX

// What becomes of a character in a word: how (2 bits), its bytes' length (6) and place in `pool` (24).
typedef struct {
    uint32_t page; // u16[8704]: code point / 128 to page
    uint32_t rows; // u32[][128]
    uint32_t pool; // bytes
} TokFold;
enum {
    TOK_FOLD_KEEP,
    TOK_FOLD_PUT,
    TOK_FOLD_ALONE,
    TOK_FOLD_SPACE
};                        // as it is; as said; a word by itself; between words
#define TOK_FOLD_MOST 12  // bytes that one character becomes
#define TOK_WORD_MOST 100 // characters of a word; a longer one is unknown

enum { TOK_BASES_BEGIN, TOK_BASES_END, TOK_BASES_OTHER, TOK_BASES = 6 }; // TOK_BASES letters a token
#define TOK_BASES_OPEN "<dna>"
#define TOK_BASES_CLOSE "</dna>"

typedef struct {
    uint32_t left, right, result;
} TokMerge;

typedef struct {
    uint32_t child; // first of its children, which lie together in the order of their bytes
    int32_t id;     // the token that ends here, -1 for none
    uint16_t n_child;
    uint16_t length; // index of its length in TokHeader.length
    uint8_t byte, pad[3];
} TokNode;

// A splitter: a deterministic automaton over classes of code points. next[state + class] is the state after,
// times four, plus 1 when a match ends before this character, 2 when one ends that leaves its text uncut.
// States are premultiplied by the number of classes; 0 is dead, the first after it is the start.
typedef struct {
    uint32_t n_class; // the last is the end of the text
    uint32_t next;    // u32[]
    uint32_t page;    // u16[8704]: code point / 128 to page
    uint32_t classes; // u8[][128]; page 0 is ASCII
    uint32_t groups;  // 1: a match is cut further into groups of three characters, counted from its end
} TokSplit;

static inline uint64_t tok_hash(const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    const uint64_t k = 0x9E3779B97F4A7C15u;
    uint64_t h = n * k, x = 0;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&x, p, 8);
        h = (h ^ x) * k;
        h ^= h >> 32;
    }
    x = 0;
    if (n >= 4) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4);
        x = (uint64_t) high << 32 | low;
    } else if (n) {
        x = (uint64_t) p[0] << 16 | (uint64_t) p[n >> 1] << 8 | p[n - 1];
    }
    h = (h ^ x) * k;
    return h ^ h >> 29;
}

static inline uint64_t tok_pair_hash(uint32_t left, uint32_t right) {
    uint64_t h = ((uint64_t) left << 32 | right) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
    return h * 0xD6E8FEB86659FD93u;
}

// Slots hold 8 bits of the hash, from its top; the place comes from the bits below.
static inline uint32_t tok_slot_place(uint64_t h) {
    return (uint32_t) (h >> 24);
}
static inline uint32_t tok_slot_tag(uint64_t h) {
    return (uint32_t) (h >> 56) << 24;
}

// For the compiler: one word (no splitting) to ids, with room for 34 bytes of scratch a byte.
int64_t tok_encode_word(const Tokenizer *t, const char *word, size_t n, int32_t *ids, size_t cap, void *scratch);
int32_t tok_find(const Tokenizer *t, const void *key, size_t n); // the symbol with this key, -1 for none

#endif
