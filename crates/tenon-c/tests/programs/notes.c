/* How the messages of the interface move, in both representations. */
#include "notes.h"

#include <stdlib.h>
#include <string.h>

static bool say(tenon_failure *failure, tenon_failure_kind kind, size_t offset, uint64_t first, uint64_t second,
                const char *field) {
    failure->kind = kind;
    failure->offset = offset;
    failure->first = first;
    failure->second = second;
    failure->field = field;
    return false;
}

static bool room(tenon_encoder *out, size_t bytes) {
    return (size_t)(out->end - out->at) >= bytes || out->grow(out, bytes);
}

static uint32_t in_order(uint32_t word, bool is_other) {
    return is_other ? __builtin_bswap32(word) : word;
}

static bool is_little(void) {
    const uint32_t one = 1;
    return *(const unsigned char *)&one == 1;
}

static bool put_word(tenon_encoder *out, uint32_t word, bool is_other) {
    if (!room(out, 4)) return false;
    word = in_order(word, is_other);
    memcpy(out->at, &word, 4);
    out->at += 4;
    return true;
}

static bool get_word(tenon_decoder *in, uint32_t *word, bool is_other) {
    if (in->end - in->at < 4)
        return say(&in->failure, TENON_TRUNCATED, in->at - in->base, 4, in->end - in->at, NULL);
    memcpy(word, in->at, 4);
    *word = in_order(*word, is_other);
    in->at += 4;
    return true;
}

static bool put_note(tenon_encoder *out, const note *value, bool is_other, bool is_padded) {
    if (value->text == NULL) return say(&out->failure, TENON_NULL, 0, 0, 0, "note.text");
    size_t length = strlen(value->text), hole = is_padded ? -length & 3 : 0;
    if (length > TEXT_MAX) return say(&out->failure, TENON_TOO_LONG, 0, length, TEXT_MAX, "note.text");
    if (!put_word(out, value->number, is_other) || !put_word(out, length, is_other)) return false;
    if (!room(out, length + hole)) return false;
    memcpy(out->at, value->text, length);
    memset(out->at + length, 0, hole);
    out->at += length + hole;
    return true;
}

static bool get_note(tenon_decoder *in, note *value, bool is_other, bool is_padded) {
    uint32_t length;
    if (!get_word(in, &value->number, is_other) || !get_word(in, &length, is_other)) return false;
    size_t hole = is_padded ? -length & 3 : 0, offset = in->at - in->base;
    if (length > TEXT_MAX)
        return say(&in->failure, TENON_TOO_LONG, offset - 4, length, TEXT_MAX, "note.text");
    if ((size_t)(in->end - in->at) < length + hole)
        return say(&in->failure, TENON_TRUNCATED, offset, length + hole, in->end - in->at, "note.text");
    if (in->payable < length + 1) return say(&in->failure, TENON_TOO_MUCH_MEMORY, offset, 0, 0, "note.text");
    in->payable -= length + 1;
    value->text = malloc(length + 1);
    if (value->text == NULL) return say(&in->failure, TENON_NO_MEMORY, offset, 0, 0, "note.text");
    memcpy(value->text, in->at, length);
    value->text[length] = 0;
    in->at += length + hole;
    return true;
}

static bool put_numbers(tenon_encoder *out, const numbers *value, bool is_other) {
    if (value->count > NUMBERS_MAX)
        return say(&out->failure, TENON_TOO_LONG, 0, value->count, NUMBERS_MAX, "numbers");
    if (!put_word(out, value->count, is_other)) return false;
    for (uint32_t i = 0; i < value->count; i++)
        if (!put_word(out, value->at[i], is_other)) return false;
    return true;
}

static bool get_numbers(tenon_decoder *in, numbers *value, bool is_other) {
    uint32_t count;
    if (!get_word(in, &count, is_other)) return false;
    size_t offset = in->at - in->base, bytes = (size_t)count * 4;
    if (count > NUMBERS_MAX) return say(&in->failure, TENON_TOO_LONG, offset - 4, count, NUMBERS_MAX, "numbers");
    if ((size_t)(in->end - in->at) < bytes)
        return say(&in->failure, TENON_TRUNCATED, offset, bytes, in->end - in->at, "numbers");
    if (in->payable < bytes) return say(&in->failure, TENON_TOO_MUCH_MEMORY, offset, 0, 0, "numbers");
    in->payable -= bytes;
    value->at = malloc(bytes + 1);
    if (value->at == NULL) return say(&in->failure, TENON_NO_MEMORY, offset, 0, 0, "numbers");
    value->count = count;
    for (uint32_t i = 0; i < count; i++)
        if (!get_word(in, &value->at[i], is_other)) return false;
    return true;
}

static bool word_to_xdr(tenon_encoder *out, const void *value) {
    return put_word(out, *(const uint32_t *)value, is_little());
}
static bool word_of_xdr(tenon_decoder *in, void *value) { return get_word(in, value, is_little()); }
static bool word_to_lean(tenon_encoder *out, const void *value) {
    return put_word(out, *(const uint32_t *)value, false);
}
static bool word_of_lean(tenon_decoder *in, void *value) { return get_word(in, value, in->swapped); }
static bool note_to_xdr(tenon_encoder *out, const void *value) { return put_note(out, value, is_little(), true); }
static bool note_of_xdr(tenon_decoder *in, void *value) { return get_note(in, value, is_little(), true); }
static bool note_to_lean(tenon_encoder *out, const void *value) { return put_note(out, value, false, false); }
static bool note_of_lean(tenon_decoder *in, void *value) { return get_note(in, value, in->swapped, false); }
static bool numbers_to_xdr(tenon_encoder *out, const void *value) { return put_numbers(out, value, is_little()); }
static bool numbers_of_xdr(tenon_decoder *in, void *value) { return get_numbers(in, value, is_little()); }
static bool numbers_to_lean(tenon_encoder *out, const void *value) { return put_numbers(out, value, false); }
static bool numbers_of_lean(tenon_decoder *in, void *value) { return get_numbers(in, value, in->swapped); }

static void free_note(void *value) { free(((note *)value)->text); }
static void free_numbers(void *value) { free(((numbers *)value)->at); }

static const tenon_message word_message = {sizeof(uint32_t), _Alignof(uint32_t), word_to_xdr,
                                           word_of_xdr,      word_to_lean,       word_of_lean,
                                           NULL, NULL, 0, 0};
static const tenon_message note_message = {sizeof(note), _Alignof(note), note_to_xdr, note_of_xdr,
                                           note_to_lean, note_of_lean,   free_note, NULL, 0, 0};
static const tenon_message numbers_message = {sizeof(numbers), _Alignof(numbers), numbers_to_xdr, numbers_of_xdr,
                                              numbers_to_lean, numbers_of_lean,   free_numbers, NULL, 0, 0};

static const tenon_procedure procedures[PROCEDURES] = {
    {1, "echo", &note_message, &note_message},
    {2, "refuse", &word_message, &word_message},
    {3, "wait", &word_message, NULL},
    {4, "who", NULL, &note_message},
    {5, "reverse", &numbers_message, &numbers_message},
    {6, "die", NULL, NULL},
    {9, "large", &word_message, &numbers_message},
    {12, "unserved", NULL, NULL},
};

static const tenon_part part = {"note", 0x1111, 0, 0}, other_part = {"note", 0x2222, 0, 0};

const tenon_interface notes = {0x20000abc, 1, "NOTES", 0xaaaa, &part, 1, procedures, PROCEDURES};
const tenon_interface notes_changed = {0x20000abc, 1, "NOTES", 0xbbbb, &other_part, 1, procedures, PROCEDURES};
const tenon_interface nobody = {0x20000abd, 1, "NOBODY", 0, NULL, 0, procedures, PROCEDURES};
