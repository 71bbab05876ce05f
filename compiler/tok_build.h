// A vocabulary on its way from the metadata to the blob; shared by the tok_*.c.
#ifndef TOK_BUILD_H
#define TOK_BUILD_H

#include "../runtime/tokenizer.h"
#include "regex.h"
#include "tokenizer.h"

#define TOK_KEY "tokenizer.ggml."

typedef struct {
    Str key;       // bytes as they stand in a text; empty: no text leads to it
    int32_t spell; // the token, -1: part of one only
} Symbol;

typedef struct {
    Str key;
    int32_t value;
} TrieKey;

typedef struct {
    Arena *arena;
    const Gguf *gguf;
    const TokenizerOptions *options;
    TokHeader head; // filled as things become known; offsets at the end
    Str kind, pre;
    int n_vocab;
    Str *text;  // of each token, as the file spells it
    Str *piece; // what it prints
    uint8_t *type, *attr;
    uint8_t *given_type; // as the file says, before the texts of tokens said more
    Symbol *symbol;      // the tokens first
    int n_symbol, cap_symbol;
    uint32_t *slot, slot_mask;      // keys to symbol + 1
    uint32_t *text_slot, text_mask; // texts to token + 1
    uint32_t *rank;                 // SCORES: of each symbol
    TokMerge *merge;
    int n_merge;
    int32_t byte_symbol[256], byte_token[256];
    bool ignore_merges, always_bos;
    bool whole_newlines; // a run of newlines that is a token is that token
    Regex *split[TOK_SPLITS];
    bool groups[TOK_SPLITS];
    TokCell *trie, *map; // kinds that do not merge
    uint32_t n_trie, n_map;
    Str score;        // the bytes of TokHeader.score
    Str *replacement; // of the map's values
    int n_replacement;
    uint16_t *fold_page;
    uint32_t *fold_rows, n_fold_row;
    Str fold_pool;
} TokBuild;

// Metadata, checked: NULL when the key is absent.
const GgufValue *tok_array(const TokBuild *b, const char *key, GgufKind elem, uint64_t n); // n 0: any length
int32_t tok_text_id(const TokBuild *b, Str text); // the token spelled so in the file, -1

int32_t tok_symbol(const TokBuild *b, Str key);     // -1: none
int32_t tok_intern(TokBuild *b, Str key);           // made when there is none
void tok_set_key(TokBuild *b, int32_t id, Str key); // how token id stands in a text
void tok_bytes_from_names(TokBuild *b);             // from <0xXX>, then characters, then the unknown token
bool tok_in_utf8(int byte);                         // UTF-8 has this byte
bool tok_byte_name(Str text, int *byte);            // <0xXX>
Str tok_byte_piece(const TokBuild *b, int id);      // of a token of type byte
Str tok_join(Arena *a, Str left, Str right);        // NULs and all
Str tok_spaced(const TokBuild *b, Str text);        // U+2581 as spaces

double *tok_scores(const TokBuild *b); // of each token; no NaN
// The cells of a trie of these keys, which get sorted; of equal keys the highest value counts.
TokCell *tok_trie(Arena *a, TrieKey *keys, int n, uint32_t *n_cell);
// The same for the vocabulary: keys[id] is how the token stands in a text, empty for none.
void tok_trie_of_keys(TokBuild *b, const Str *keys);
void tok_fold_text(TokBuild *b, bool lower); // TOK_F_FOLD: white space is no text, letters are in lower case if so
bool tok_flag(const TokBuild *b, const char *key, bool otherwise);

// tok_KIND.c: keys, symbols, merges or scores of the vocabulary.
void tok_build_merges(TokBuild *b);
void tok_build_scores(TokBuild *b);
void tok_build_unigram(TokBuild *b);
void tok_build_table(TokBuild *b);
void tok_build_words(TokBuild *b);
void tok_build_longest(TokBuild *b);

void tok_roles(TokBuild *b); // tok_special.c: roles, types, attributes, EOG
Str tok_blob(TokBuild *b);   // tok_blob.c: the tables

#endif
