/* table.h: how often each word occurs. A word is a maximal run of ASCII letters; case does not matter.
 *
 * A table belongs to one microthread at a time. Functions that return int return 1, or 0 when there is no memory; then
 * the table is intact but for the word that did not fit.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One word. Up to 16 letters are kept here, lower-case, in head and tail, the first in the lowest byte and zeros after
 * the last; no letter has the top bit. A longer word has the top bit of head set: head is its hash, and long_word its
 * text. A slot whose head is 0 is empty. */
struct slot {
    uint64_t head;
    union {
        uint64_t tail;
        const struct long_word *long_word;
    } u;
    uint64_t count;
};

struct table {
    struct slot *slots; /* open addressing, linear probing, never more than half full */
    unsigned bits;      /* 1 << bits slots */
    uint64_t distinct, words;
    struct arena_block *arena; /* the texts of long words */
};

/* How many bytes table_add_text may read behind a text. */
#define TABLE_PAD 80

struct table *table_new(void);
void table_free(struct table *table);

/* Counts the words of text, which must end with a byte that is no letter and be followed by TABLE_PAD zero bytes. */
int table_add_text(struct table *table, const unsigned char *text, size_t len);

/* Adds the counts of from to those of into. */
int table_merge(struct table *into, const struct table *from);

/* The max most frequent words, most frequent first, equally frequent ones in the order of their bytes. Returns how many
 * there are. The slots live as long as the table stays as it is. */
size_t table_top(const struct table *table, const struct slot **top, size_t max);

/* Writes a slot's word. */
void slot_print(const struct slot *slot, FILE *out);

int is_letter(unsigned char byte);

#endif /* TABLE_H */
