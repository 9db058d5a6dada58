/* table.c: finding words in text and counting them.
 *
 * Counting is what wordcount spends its time on, so this is the one part that is written for speed:
 *   - words are found 64 bytes at a time, from a bit mask of what is a letter: a loop that looks at byte after byte
 *     mispredicts a branch at nearly every word's end, which costs more than all the rest;
 *   - nearly all words have at most 16 letters. They are two integers: compared and hashed as such, without a pointer to
 *     follow and without an allocation.
 */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#define EACH_BYTE UINT64_C(0x0101010101010101)
#define LONG_WORD (UINT64_C(1) << 63) /* in slot.head */
#define SHORT_MAX 16
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / the golden ratio: spreads what it multiplies to the top bits */

/* --- Letters --------------------------------------------------------------------------------------------------------- */

/* Eight bytes, the first of them lowest. */
static inline uint64_t load(const unsigned char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline uint64_t lower_case(uint64_t letters) { return letters | 0x20 * EACH_BYTE; }

int is_letter(unsigned char byte) { return (unsigned char)((byte | 0x20) - 'a') < 26; }

/* Bit i says whether the i-th of 8 bytes is a letter. Each byte's top bit does the work: in from_a it is set when the
 * byte, lower-cased, is at least 'a', in past_z when it is beyond 'z'; the byte's own is clear in ASCII. Seven-bit
 * additions do not carry into the next byte. The multiplication collects the eight top bits in the top byte. */
static inline uint64_t letters_of_8(const unsigned char *bytes) {
    uint64_t raw = load(bytes);
    uint64_t low = lower_case(raw) & 0x7f * EACH_BYTE;
    uint64_t from_a = low + (0x80 - 'a') * EACH_BYTE;
    uint64_t past_z = low + (0x80 - 'z' - 1) * EACH_BYTE;
    uint64_t is = from_a & ~past_z & ~raw & 0x80 * EACH_BYTE;
    return (is >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

static inline uint64_t letters_of_64(const unsigned char *bytes) {
    uint64_t mask = 0;
    for (unsigned i = 0; i < 64; i += 8)
        mask |= letters_of_8(bytes + i) << i;
    return mask;
}

/* --- Long words ------------------------------------------------------------------------------------------------------ */

struct long_word {
    size_t len;
    unsigned char text[]; /* lower-case */
};

/* Long words are never freed one by one: they are cut from blocks. */
struct arena_block {
    struct arena_block *next;
    size_t used, size;
    unsigned char bytes[];
};
enum { ARENA_BLOCK = 64 * 1024 };

static void *arena_take(struct table *table, size_t size) {
    struct arena_block *block = table->arena;
    size = (size + 7) & ~(size_t)7;
    if (block == NULL || block->size - block->used < size) {
        size_t room = size > ARENA_BLOCK ? size : ARENA_BLOCK;
        if ((block = malloc(sizeof *block + room)) == NULL)
            return NULL;
        *block = (struct arena_block){table->arena, 0, room};
        table->arena = block;
    }
    block->used += size;
    return block->bytes + block->used - size;
}

static inline uint64_t mix(uint64_t hash) {
    hash *= GOLDEN;
    return hash ^ hash >> 32;
}

/* Of more than 16 letters: eight at a time, the last eight overlapping. */
static uint64_t hash_of_long(const unsigned char *text, size_t len) {
    uint64_t hash = mix(len);
    for (size_t i = 0; i + 8 < len; i += 8)
        hash = mix(hash ^ lower_case(load(text + i)));
    return mix(hash ^ lower_case(load(text + len - 8))) | LONG_WORD;
}

/* text may be in either case. */
static int is_long_word(const struct long_word *word, const unsigned char *text, size_t len) {
    if (word->len != len)
        return 0;
    for (size_t i = 0; i + 8 < len; i += 8)
        if (load(word->text + i) != lower_case(load(text + i)))
            return 0;
    return load(word->text + len - 8) == lower_case(load(text + len - 8));
}

/* --- The table ------------------------------------------------------------------------------------------------------- */

struct table *table_new(void) {
    struct table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return NULL;
    table->bits = 12;
    table->slots = calloc((size_t)1 << table->bits, sizeof *table->slots);
    if (table->slots == NULL) {
        free(table);
        return NULL;
    }
    return table;
}

void table_free(struct table *table) {
    if (table == NULL)
        return;
    for (struct arena_block *block = table->arena, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    free(table->slots);
    free(table);
}

/* The place at which the search for a word starts: the top bits of its hash. A long word's head is its hash already, but
 * for the top bit, which is always set. */
static inline size_t home_of(const struct table *table, uint64_t head, uint64_t tail) {
    uint64_t hash = head & LONG_WORD ? head << 1 : (head ^ tail * UINT64_C(0xd6e8feb86659fd93)) * GOLDEN;
    return (size_t)(hash >> (64 - table->bits));
}

static inline size_t after(const struct table *table, size_t at) { return (at + 1) & (((size_t)1 << table->bits) - 1); }

static int grow(struct table *table) {
    struct table bigger = {.bits = table->bits + 1};
    bigger.slots = calloc((size_t)1 << bigger.bits, sizeof *bigger.slots);
    if (bigger.slots == NULL)
        return 0;
    for (size_t i = 0; i >> table->bits == 0; i++) {
        const struct slot *slot = &table->slots[i];
        if (slot->head == 0)
            continue;
        size_t at = home_of(&bigger, slot->head, slot->u.tail);
        while (bigger.slots[at].head != 0)
            at = after(&bigger, at);
        bigger.slots[at] = *slot;
    }
    free(table->slots);
    table->slots = bigger.slots;
    table->bits = bigger.bits;
    return 1;
}

/* Fills an empty slot. Growing first would be simpler, but would cost a check for each word instead of each new one. */
static int take_slot(struct table *table, size_t at, struct slot with) {
    table->slots[at] = with;
    table->words += with.count;
    table->distinct++;
    return table->distinct << 1 >> table->bits == 0 || grow(table);
}

static inline int add_short(struct table *table, uint64_t head, uint64_t tail, uint64_t count) {
    for (size_t at = home_of(table, head, tail);; at = after(table, at)) {
        struct slot *slot = &table->slots[at];
        if (slot->head == head && slot->u.tail == tail) {
            slot->count += count;
            table->words += count;
            return 1;
        }
        if (slot->head == 0)
            return take_slot(table, at, (struct slot){head, {.tail = tail}, count});
    }
}

static int add_long(struct table *table, const unsigned char *text, size_t len, uint64_t count) {
    uint64_t head = hash_of_long(text, len);
    size_t at = home_of(table, head, 0);
    for (; table->slots[at].head != 0; at = after(table, at)) {
        struct slot *slot = &table->slots[at];
        if (slot->head == head && is_long_word(slot->u.long_word, text, len)) {
            slot->count += count;
            table->words += count;
            return 1;
        }
    }
    struct long_word *word = arena_take(table, sizeof *word + len);
    if (word == NULL)
        return 0;
    word->len = len;
    for (size_t i = 0; i < len; i++)
        word->text[i] = text[i] | 0x20;
    return take_slot(table, at, (struct slot){head, {.long_word = word}, count});
}

/* All ones in the len lowest bytes; len <= 8. */
static inline uint64_t low_bytes(size_t len) { return len == 0 ? 0 : UINT64_MAX >> (64 - 8 * len); }

static inline int add_word(struct table *table, const unsigned char *text, size_t len) {
    if (len > SHORT_MAX)
        return add_long(table, text, len, 1);
    uint64_t head = lower_case(load(text)) & low_bytes(len < 8 ? len : 8);
    uint64_t tail = lower_case(load(text + 8)) & low_bytes(len < 8 ? 0 : len - 8);
    return add_short(table, head, tail, 1);
}

/* A bit of edges says that a word starts or ends there: the byte is a letter and the one before it is none, or the other
 * way round. So starts and ends alternate, and since the text does not end with a letter, every start has its end. */
int table_add_text(struct table *table, const unsigned char *text, size_t len) {
    const unsigned char *start = NULL;
    uint64_t before = 0; /* whether the last byte of the previous 64 is a letter */
    for (size_t at = 0; at < len; at += 64) {
        uint64_t letters = letters_of_64(text + at);
        uint64_t edges = letters ^ (letters << 1 | before);
        before = letters >> 63;
        for (; edges != 0; edges &= edges - 1) {
            const unsigned char *edge = text + at + __builtin_ctzll(edges);
            if (start == NULL) {
                start = edge;
                continue;
            }
            if (!add_word(table, start, (size_t)(edge - start)))
                return 0;
            start = NULL;
        }
    }
    return 1;
}

int table_merge(struct table *into, const struct table *from) {
    for (size_t i = 0; i >> from->bits == 0; i++) {
        const struct slot *slot = &from->slots[i];
        if (slot->head & LONG_WORD) {
            if (!add_long(into, slot->u.long_word->text, slot->u.long_word->len, slot->count))
                return 0;
        } else if (slot->head != 0 && !add_short(into, slot->head, slot->u.tail, slot->count)) {
            return 0;
        }
    }
    return 1;
}

/* --- The most frequent words ----------------------------------------------------------------------------------------- */

/* The letters of a slot's word; those of a short one are put into room. */
static const unsigned char *spell(const struct slot *slot, unsigned char room[SHORT_MAX], size_t *len) {
    if (slot->head & LONG_WORD) {
        *len = slot->u.long_word->len;
        return slot->u.long_word->text;
    }
    for (*len = 0; *len < SHORT_MAX; ++*len) {
        uint64_t half = *len < 8 ? slot->head : slot->u.tail;
        room[*len] = (unsigned char)(half >> *len % 8 * 8);
        if (room[*len] == 0)
            break;
    }
    return room;
}

void slot_print(const struct slot *slot, FILE *out) {
    unsigned char room[SHORT_MAX];
    size_t len;
    const unsigned char *text = spell(slot, room, &len);
    fwrite(text, 1, len, out);
}

static int goes_before(const struct slot *a, const struct slot *b) {
    unsigned char room_a[SHORT_MAX], room_b[SHORT_MAX];
    size_t len_a, len_b;
    if (a->count != b->count)
        return a->count > b->count;
    const unsigned char *text_a = spell(a, room_a, &len_a), *text_b = spell(b, room_b, &len_b);
    int order = memcmp(text_a, text_b, len_a < len_b ? len_a : len_b);
    return order != 0 ? order < 0 : len_a < len_b;
}

size_t table_top(const struct table *table, const struct slot **top, size_t max) {
    size_t found = 0;
    for (size_t i = 0; i >> table->bits == 0; i++) {
        const struct slot *slot = &table->slots[i];
        if (slot->head == 0 || (found == max && !goes_before(slot, top[max - 1])))
            continue;
        size_t at = found < max ? found++ : max - 1;
        for (; at > 0 && goes_before(slot, top[at - 1]); at--)
            top[at] = top[at - 1];
        top[at] = slot;
    }
    return found;
}
