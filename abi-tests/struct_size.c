/* Callers that were compiled against older and newer headers than the library's: a struct that ends early reads as
 * zeros behind its end, one that goes on is taken when what the library does not know is zero and is refused when not.
 * Each struct lies at the end of a page that nothing follows, so reading past struct_size is a crash. */
#define _GNU_SOURCE
#include <mc/mc.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

enum { PAGE = 4096, MOST = 256 };

static unsigned char *page_end;

static void make_page(void) {
    unsigned char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    page_end = page + PAGE;
    CHECK_EQ(mprotect(page_end, PAGE, PROT_NONE), 0);
}

/* A struct of size bytes at the end of the page, aligned as callers' are: the first bytes of from, then zeros. */
static void *place(const void *from, size_t known, uint32_t size) {
    unsigned char *at = page_end - (size + 7) / 8 * 8;
    memset(at, 0xEE, (size_t)(page_end - at)); /* what lies behind size counts for nothing */
    memset(at, 0, size);
    memcpy(at, from, known < size ? known : size);
    memcpy(at, &size, size < sizeof size ? size : sizeof size);
    return at;
}

/* --- mc_spawn_options ------------------------------------------------------------------------------------------------- */

static int32_t seven(void *user) {
    (void)user;
    return 7;
}

static int32_t spawn_with(const mc_spawn_options *options) {
    mc_task_t task = 0;
    int32_t code = mc_spawn(0, seven, NULL, options, &task);
    if (code == MC_OK) {
        int32_t result = 0;
        CHECK_EQ(mc_join(task, MC_FOREVER, &result), MC_OK);
        CHECK_EQ(result, 7);
    } else {
        CHECK_EQ(task, 0); /* untouched on failure */
    }
    return code;
}

static void spawn_options(void *unused) {
    (void)unused;
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    options.stack_size = 65536;
    options.name = "sized";
    CHECK_EQ(spawn_with(NULL), MC_OK);
    CHECK_EQ(spawn_with(&options), MC_OK);

    /* Older: cut behind each field. Four bytes is a struct with nothing but its size. */
    static const uint32_t ends[] = {4, 8, 16, 24};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        CHECK_EQ(spawn_with(place(&options, sizeof options, ends[i])), MC_OK);

    /* What is cut off does not count; what is left does. */
    mc_spawn_options bad = options;
    bad.stack_size = MC_STACK_MAX + 1;
    CHECK_EQ(spawn_with(place(&bad, sizeof bad, 8)), MC_OK);
    CHECK_EQ(spawn_with(place(&bad, sizeof bad, 16)), MC_E_INVAL);
    bad = options;
    bad.flags = 8;
    CHECK_EQ(spawn_with(place(&bad, sizeof bad, 4)), MC_OK);
    CHECK_EQ(spawn_with(place(&bad, sizeof bad, 8)), MC_E_INVAL);

    /* Newer. */
    for (uint32_t size = sizeof options + 1; size <= MOST; size++) {
        unsigned char *newer = place(&options, sizeof options, size);
        CHECK_EQ(spawn_with((void *)newer), MC_OK);
        newer[size - 1] = 1;
        CHECK_EQ(spawn_with((void *)newer), MC_E_VERSION);
        newer[size - 1] = 0;
        newer[sizeof options] = 0x80;
        CHECK_EQ(spawn_with((void *)newer), MC_E_VERSION);
    }

    /* No struct at all: not even struct_size fits. */
    for (uint32_t size = 0; size < 4; size++) {
        options.struct_size = size;
        int32_t code = spawn_with(&options);
        CHECK(code == MC_E_INVAL || code == MC_E_VERSION);
    }
}

/* --- mc_runtime_options and statistics -------------------------------------------------------------------------------- */

static int32_t create_with(const mc_runtime_options *options) {
    mc_runtime_t runtime = 77;
    int32_t code = mc_runtime_create(options, &runtime);
    if (code == MC_OK)
        CHECK_EQ(mc_runtime_destroy(runtime), MC_OK);
    else
        CHECK_EQ(runtime, 77);
    return code;
}

static void runtime_options(void *unused) {
    (void)unused;
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    options.executors = 1;
    options.wheel_segments = 3;
    options.affinity = MC_AFFINITY_RANDOM;
    CHECK_EQ(create_with(NULL), MC_OK);
    for (uint32_t size = 4; size <= sizeof options; size += 4)
        CHECK_EQ(create_with(place(&options, sizeof options, size)), MC_OK);
    options.affinity = 9;
    CHECK_EQ(create_with(place(&options, sizeof options, 48)), MC_OK);
    CHECK_EQ(create_with(place(&options, sizeof options, 52)), MC_E_INVAL);
    options.affinity = 0;
    for (uint32_t size = sizeof options + 1; size <= MOST; size++) {
        unsigned char *newer = place(&options, sizeof options, size);
        CHECK_EQ(create_with((void *)newer), MC_OK);
        newer[size - 1] = 1;
        CHECK_EQ(create_with((void *)newer), MC_E_VERSION);
    }
}

/* What the library fills: as much of it as the caller has, and zeros behind what it knows. */
static void statistics(void *unused) {
    (void)unused;
    mc_runtime_counters known = MC_RUNTIME_COUNTERS_INIT;
    CHECK_EQ(mc_runtime_stats(0, &known), MC_OK);
    CHECK_EQ(known.executors, 1);
    for (uint32_t size = 4; size <= MOST; size += 4) {
        mc_runtime_counters *stats = place(&known, sizeof known, size);
        memset((unsigned char *)stats + 4, 0x77, size - 4);
        CHECK_EQ(mc_runtime_stats(0, stats), MC_OK);
        CHECK_EQ(stats->struct_size, size);
        if (size > 4)
            CHECK_EQ(stats->executors, 1);
        if (size > sizeof known)
            CHECK_EQ(((unsigned char *)stats)[size - 1], 0);
        mc_executor_counters *one = place(&known, sizeof known, size);
        CHECK_EQ(mc_runtime_executor_stats(0, 0, one), MC_OK);
        CHECK_EQ(one->struct_size, size);
    }
    for (uint32_t size = 0; size < 4; size++) {
        known.struct_size = size;
        CHECK_EQ(mc_runtime_stats(0, &known), MC_E_INVAL);
    }
}

/* --- mc_allocator ----------------------------------------------------------------------------------------------------- */

static void *allocate(void *user, uint64_t size, uint64_t align) {
    void *memory = NULL;
    (void)user;
    return posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, size) == 0 ? memory : NULL;
}

static void release(void *user, void *memory, uint64_t size, uint64_t align) {
    (void)user, (void)size, (void)align;
    free(memory);
}

/* --- mc_machine_descriptor_visitor ------------------------------------------------------------------------------------- */

static void count_state(void *user, const mc_machine_descriptor_state *state) {
    (void)state;
    ++*(int *)user;
}
static void count_row(void *user, const mc_machine_dispatch_row_t *row) {
    (void)row;
    *(int *)user += 10;
}

static int32_t parse_with(const mc_machine_descriptor_visitor *visitor, int *told) {
    static const uint8_t bytes[96 + 4] = {'M', 'C', 'H', 'D', 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1};
    *told = 0;
    return mc_machine_descriptor_parse(bytes, 28 + 28 + 40, visitor, told, NULL, 0);
}

static void descriptor_visitor(void *unused) {
    (void)unused;
    int told = 0;
    mc_machine_descriptor_visitor visitor = MC_MACHINE_DESCRIPTOR_VISITOR_INIT;
    visitor.state = count_state;
    visitor.row = count_row;
    static const struct {
        uint32_t size;
        int told;
    } ends[] = {{4, 0}, {8, 0}, {16, 0}, {24, 1}, {32, 1}, {40, 11}, {48, 11}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        CHECK_EQ(parse_with(place(&visitor, sizeof visitor, ends[i].size), &told), MC_OK);
        CHECK_EQ(told, ends[i].told);
    }
    for (uint32_t size = sizeof visitor + 1; size <= MOST; size++) {
        unsigned char *newer = place(&visitor, sizeof visitor, size);
        CHECK_EQ(parse_with((void *)newer, &told), MC_OK);
        CHECK_EQ(told, 11);
        newer[size - 1] = 1;
        CHECK_EQ(parse_with((void *)newer, &told), MC_E_VERSION);
        CHECK_EQ(told, 0);
    }
    for (uint32_t size = 0; size < 4; size++) {
        visitor.struct_size = size;
        CHECK_EQ(parse_with(&visitor, &told), MC_E_INVAL);
    }
}

struct attempt {
    uint32_t size;
    unsigned char last; /* the last byte, when the struct is larger than ours */
    int32_t expected;
};

static void set_allocator(void *argument) {
    const struct attempt *attempt = argument;
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = allocate;
    allocator.free = release;
    unsigned char *at = place(&allocator, sizeof allocator, attempt->size);
    if (attempt->size > sizeof allocator)
        at[attempt->size - 1] = attempt->last;
    CHECK_EQ(mc_set_allocator((void *)at), attempt->expected);
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    CHECK_EQ(spawn_with(&options), MC_OK); /* whichever allocator it is now */
    if (attempt->expected == MC_OK)
        CHECK_EQ(mc_set_allocator((void *)at), MC_E_BUSY);
}

int main(void) {
    static struct attempt attempts[] = {
        {4, 0, MC_E_INVAL},    {8, 0, MC_E_INVAL}, {16, 0, MC_E_INVAL},     {24, 0, MC_OK},
        {32, 0, MC_OK},        {33, 0, MC_OK},     {33, 1, MC_E_VERSION},   {40, 0, MC_OK},
        {40, 9, MC_E_VERSION}, {MOST, 0, MC_OK},   {MOST, 1, MC_E_VERSION},
    };
    make_page();
    CHECK_EQ(in_child(spawn_options, NULL), 0);
    CHECK_EQ(in_child(runtime_options, NULL), 0);
    CHECK_EQ(in_child(statistics, NULL), 0);
    CHECK_EQ(in_child(descriptor_visitor, NULL), 0);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        if (in_child(set_allocator, &attempts[i]) != 0) {
            fprintf(stderr, "mc_allocator of %u bytes, the last %u\n", attempts[i].size, attempts[i].last);
            return 1;
        }
    }
    CHECK_EQ(mc_set_allocator(NULL), MC_E_INVAL);
    return 0;
}
