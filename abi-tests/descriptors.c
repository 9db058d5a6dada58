/* Registries and descriptors as a program meets them: both names of each function, words in place of pointers, every way in which a
 * descriptor is none, and the reader of descriptors with all that may be wrong about its arguments. */
#include <mc/mc.h>
#include <string.h>

#include "check.h"

static struct {
    unsigned lines;
    int32_t level, code;
    char text[256];
} logged;

static void keep_log(void *user, int32_t level, int32_t code, const char *text) {
    (void)user;
    logged.lines++;
    logged.level = level;
    logged.code = code;
    snprintf(logged.text, sizeof logged.text, "%s", text);
}

/* --- Bytes ------------------------------------------------------------------------------------------------------------ */

static struct {
    uint8_t at[512];
    uint64_t len;
} blob;

static void number(uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++)
        blob.at[blob.len++] = (uint8_t)(value >> (8 * i));
}

static void string(const char *text) {
    number(strlen(text), 4);
    memcpy(blob.at + blob.len, text, strlen(text));
    blob.len += strlen(text);
}

static void numbers(uint64_t a, uint64_t b, uint64_t c) {
    number(a, 8);
    number(b, 8);
    number(c, 8);
}

/* One of each: 32 bytes of head, a state of 32, events of 22 and 26, a row of 40, a role of 16. */
static void make_blob(void) {
    blob.len = 0;
    memcpy(blob.at, "MCHD", 4);
    blob.len = 4;
    number(1, 4);
    string("Ping");
    number(1, 4);
    number(2, 4);
    number(1, 4);
    number(1, 4);
    numbers(7, 100, 0);
    string("Wait");
    number(1, 8);
    number(0, 8);
    number(0, 1);
    string("x");
    number(2, 8);
    number(5, 8);
    number(1, 1);
    string("");
    string("y");
    numbers(7, 1, 0);
    number(11, 8);
    number(12, 8);
    string("peer");
    number(UINT64_MAX, 8);
}

/* --- Thunks and drops ------------------------------------------------------------------------------------------------- */

static mc_dispatch_result_t one(void *ctx, mc_machine_id_t id, uint64_t state, const mc_machine_envelope_t *env,
                                mc_machine_dispatch_txn_t *txn, uint64_t *fault) {
    (void)ctx, (void)id, (void)state, (void)env, (void)txn, (void)fault;
    return MC_DISPATCH_OK;
}
static mc_dispatch_result_t other(void *ctx, mc_machine_id_t id, uint64_t state, const mc_machine_envelope_t *env,
                                  mc_machine_dispatch_txn_t *txn, uint64_t *fault) {
    (void)ctx, (void)id, (void)state, (void)env, (void)txn, (void)fault;
    return MC_DISPATCH_STOP;
}
static void drop(void *box) { (void)box; }

#define SAME(name) CHECK(mc_machine_runtime_##name == __mc_machine_runtime_##name)

static void names(void) {
    SAME(register_thunk);
    SAME(register_thunk_meta);
    SAME(lookup_thunk);
    SAME(register_payload_drop);
    SAME(lookup_payload_drop);
    SAME(register_descriptor);
    SAME(register_thunk_u64);
    SAME(register_thunk_meta_u64);
    SAME(register_payload_drop_u64);
    SAME(register_descriptor_u64);
}

static void registries(void) {
    CHECK(mc_machine_runtime_lookup_thunk(1) == NULL && mc_machine_runtime_lookup_thunk(0) == NULL);
    mc_machine_runtime_register_thunk(1, one);
    __mc_machine_runtime_register_thunk_meta_u64(2, (uint64_t)(uintptr_t)other, 3);
    mc_machine_runtime_register_thunk(0, one);
    mc_machine_runtime_register_thunk(1, NULL);
    __mc_machine_runtime_register_thunk_u64(2, 0);
    CHECK(__mc_machine_runtime_lookup_thunk(0) == NULL);
    CHECK(__mc_machine_runtime_lookup_thunk(1) == one && mc_machine_runtime_lookup_thunk(2) == other);
    __mc_machine_runtime_register_thunk_u64(1, (uint64_t)(uintptr_t)other);
    CHECK(mc_machine_runtime_lookup_thunk(1) == other);

    CHECK(mc_machine_runtime_lookup_payload_drop(1) == NULL);
    mc_machine_runtime_register_payload_drop(1, drop);
    __mc_machine_runtime_register_payload_drop_u64(MC_PAYLOAD_LAYOUT_ID_MASK, (uint64_t)(uintptr_t)drop);
    mc_machine_runtime_register_payload_drop(0, drop);
    mc_machine_runtime_register_payload_drop(1, NULL);
    CHECK(mc_machine_runtime_lookup_payload_drop(0) == NULL && mc_machine_runtime_lookup_payload_drop(2) == NULL);
    CHECK(mc_machine_runtime_lookup_payload_drop(1) == drop);
    CHECK(__mc_machine_runtime_lookup_payload_drop(UINT64_MAX) == drop); /* the bit of the owner is no layout's */
}

/* --- Descriptors ------------------------------------------------------------------------------------------------------ */

static int32_t parse(char *error, uint64_t size) {
    return mc_machine_descriptor_parse(blob.at, blob.len, NULL, NULL, error, size);
}

/* Neither is told of anything but by the text, which both tell alike. */
static void refused(const char *why) {
    char error[MC_MACHINE_DESCRIPTOR_ERROR_BYTES] = "";
    unsigned before = logged.lines;
    CHECK_EQ(parse(error, sizeof error), MC_E_INVAL);
    CHECK_EQ(logged.lines, before);
    CHECK_EQ(mc_machine_runtime_register_descriptor(blob.at, blob.len), 0);
    CHECK_EQ(logged.lines, before + 1);
    CHECK_EQ(logged.level, MC_LOG_ERROR);
    CHECK_EQ(logged.code, MC_E_INVAL);
    if (strcmp(error, why) != 0 || strcmp(logged.text + strlen("descriptor: "), why) != 0) {
        fprintf(stderr, "said: %s\nlogged: %s\nnot: %s\n", error, logged.text, why);
        exit(1);
    }
}

static void descriptors(void) {
    make_blob();
    uint64_t len = blob.len;
    CHECK_EQ(mc_machine_runtime_register_descriptor(blob.at, len), 1);
    CHECK_EQ(__mc_machine_runtime_register_descriptor_u64((uint64_t)(uintptr_t)blob.at, len), 2);
    CHECK_EQ(parse(NULL, 0), MC_OK);
    for (uint64_t cut = 0; cut < len; cut++) {
        blob.len = cut;
        CHECK_EQ(parse(NULL, 0), MC_E_INVAL);
        CHECK_EQ(mc_machine_runtime_register_descriptor(blob.at, cut), 0);
    }
    blob.len = len + 1;
    refused("offset 168: 1 bytes too many");
    blob.len = len;
    blob.at[0] = 'm';
    refused("offset 0: it does not begin with \"MCHD\"");
    make_blob();
    blob.at[4] = 2;
    refused("offset 4: schema 2, and only 1 is known");
    make_blob();
    blob.at[11] = 0x80;
    refused("offset 12: head: 2147483652 bytes are wanted, and 156 are left");
    make_blob();
    blob.at[80] = 9;
    refused("offset 80: event 0: key kind 9 is neither 0 nor 1");
    make_blob();
    blob.at[24] = 4;
    refused("offset 16: 1 states, 2 events, 4 rows and 1 roles need 242 bytes, and 136 are left");
    CHECK_EQ(mc_machine_runtime_register_descriptor(NULL, 0), 0);
    CHECK_EQ(mc_machine_runtime_register_descriptor_u64(0, UINT64_MAX), 0);
    make_blob();
    CHECK_EQ(mc_machine_runtime_register_descriptor(blob.at, blob.len), 3);
}

/* --- Reading ---------------------------------------------------------------------------------------------------------- */

static char told[256];

static void tell(void *user, const char *what, uint64_t value, const char *text, uint64_t len) {
    CHECK(user == told);
    snprintf(told + strlen(told), sizeof told - strlen(told), "%s %llu %.*s;", what, (unsigned long long)value,
             (int)len, text);
}
static void on_head(void *user, const mc_machine_descriptor_head *head) {
    tell(user, "head", head->states + 10 * head->events + 100 * head->rows + 1000 * head->roles, head->name,
         head->name_len);
}
static void on_state(void *user, const mc_machine_descriptor_state *state) {
    tell(user, "state", state->tag + state->type_def + state->layout, state->name, state->name_len);
}
static void on_event(void *user, const mc_machine_descriptor_event *event) {
    tell(user, "event", event->kind + event->layout, event->name, event->name_len);
    tell(user, "second", event->key_kind, event->second_name, event->second_name_len);
}
static void on_row(void *user, const mc_machine_dispatch_row_t *row) {
    tell(user, "row", row->state_local_thunk_id * row->fallback_thunk_id, "", 0);
    CHECK(row->state_tag == 7 && row->event_kind == 1 && row->request_site_key == 0);
}
static void on_role(void *user, const mc_machine_descriptor_role *role) {
    tell(user, "role", role->def, role->path, role->path_len);
}

static int32_t read_with(const mc_machine_descriptor_visitor *visitor, char *error, uint64_t size) {
    told[0] = 0;
    return mc_machine_descriptor_parse(blob.at, blob.len, visitor, told, error, size);
}

static void reading(void) {
    mc_machine_descriptor_visitor visitor = MC_MACHINE_DESCRIPTOR_VISITOR_INIT;
    make_blob();
    CHECK_EQ(read_with(&visitor, NULL, 0), MC_OK);
    CHECK_EQ(strlen(told), 0);
    visitor.row = on_row;
    CHECK_EQ(read_with(&visitor, NULL, 0), MC_OK);
    CHECK_EQ(strcmp(told, "row 132 ;"), 0);
    visitor.head = on_head;
    visitor.state = on_state;
    visitor.event = on_event;
    visitor.role = on_role;
    char error[8] = "before";
    CHECK_EQ(read_with(&visitor, error, sizeof error), MC_OK);
    CHECK_EQ(strcmp(told, "head 1121 Ping;state 107 Wait;event 1 x;second 0 ;event 7 ;second 1 y;row 132 ;"
                          "role 18446744073709551615 peer;"),
             0);
    CHECK_EQ(strcmp(error, "before"), 0);

    visitor.reserved = 1;
    CHECK_EQ(read_with(&visitor, error, sizeof error), MC_E_INVAL);
    CHECK_EQ(strcmp(error, "before"), 0);
    visitor.reserved = 0;
    blob.len--;
    CHECK_EQ(read_with(&visitor, error, sizeof error), MC_E_INVAL);
    CHECK_EQ(strcmp(error, "offset "), 0); /* cut, with its end */
    CHECK_EQ(strlen(told), 0);
    memcpy(error, "before", 7);
    CHECK_EQ(read_with(&visitor, error, 0), MC_E_INVAL);
    CHECK_EQ(strcmp(error, "before"), 0);
    CHECK_EQ(read_with(&visitor, error, 1), MC_E_INVAL);
    CHECK_EQ(strlen(error), 0);
    CHECK_EQ(read_with(&visitor, NULL, UINT64_MAX), MC_E_INVAL);
    CHECK_EQ(mc_machine_descriptor_parse(NULL, 0, &visitor, told, error, sizeof error), MC_E_INVAL);
    CHECK_EQ(mc_machine_descriptor_parse(NULL, UINT64_MAX, NULL, NULL, NULL, 0), MC_E_INVAL);
}

int main(void) {
    mc_set_log_hook(keep_log, NULL);
    names();
    registries();
    descriptors();
    reading();
    return 0;
}
