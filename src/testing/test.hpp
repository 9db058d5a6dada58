// What a test includes: Test(suite, name [, options]) and the cr_assert_* family. Nothing else of a test runner.
//
// The runner is Criterion, or, where MC_TEST_FORK is set (the sanitizers and Valgrind), the main in test_main.cpp. In
// both every test is a process of its own, so a crash or a hang is that test's alone.
//
// Options are written as designated initialisers in this order: .init, .fini, .signal, .exit_code, .disabled,
// .description, .timeout (seconds; real time).
//
// The assertions are ours under both runners. Criterion's leave a failed test by longjmp, which is undefined from a
// microthread's stack or from a second thread, and its reporting needs more stack than a small microthread has. Ours
// write one line to standard error and leave the process with a status that no test expects. They may be used on any
// stack and thread. cr_skip_test alone belongs on the test's own stack.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include <unistd.h>

#if !defined(MC_TEST_FORK)
#include <criterion/criterion.h>
#endif

namespace mc::testing {

// What the build is, for tests that shrink or skip there.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_tsan = true; // at most 8,128 threads and fibers a process (gcc 12)
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif
#else
inline constexpr bool under_tsan = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_asan = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool under_asan = true;
#else
inline constexpr bool under_asan = false;
#endif
#else
inline constexpr bool under_asan = false;
#endif

#if defined(MC_VALGRIND)
inline constexpr bool under_valgrind = true;
#else
inline constexpr bool under_valgrind = false;
#endif

#if defined(MC_SYS)
inline constexpr bool systematic = true;
#else
inline constexpr bool systematic = false;
#endif

// How much more a long run asks for: rounds, seeds and sizes are multiplied by it. MC_TEST_SCALE in the environment.
inline unsigned scale() {
    const char *text = std::getenv("MC_TEST_SCALE");
    const long value = text == nullptr ? 1 : std::strtol(text, nullptr, 10);
    return value < 1 ? 1U : static_cast<unsigned>(value);
}

// The statuses with which a test leaves its process: no test expects these.
inline constexpr int exit_failed = 101;
inline constexpr int exit_skipped = 102;

// Called before a failed assertion ends the process: the systematic twin prints how to repeat the run.
// (systematic_explorer.cpp sets it, in MC_SYS builds.)
inline void (*failure_hook)() = nullptr;

struct Where {
    const char *file;
    int line;
    const char *expression;
};

// The two sides of a failed comparison, as text; empty where there are none.
struct Sides {
    char left[48] = "";
    char right[48] = "";
};

template <class T> void describe(char (&out)[48], const T &value) {
    if constexpr (std::is_same_v<T, bool>)
        std::snprintf(out, sizeof out, "%s", value ? "true" : "false");
    else if constexpr (std::is_enum_v<T>)
        describe(out, static_cast<std::underlying_type_t<T>>(value));
    else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
        std::snprintf(out, sizeof out, "%lld", static_cast<long long>(value));
    else if constexpr (std::is_integral_v<T>)
        std::snprintf(out, sizeof out, "%llu (0x%llx)", static_cast<unsigned long long>(value),
                      static_cast<unsigned long long>(value));
    else if constexpr (std::is_floating_point_v<T>)
        std::snprintf(out, sizeof out, "%g", static_cast<double>(value));
    else if constexpr (std::is_class_v<T> && std::is_convertible_v<const T &, std::string_view>)
        std::snprintf(out, sizeof out, "%.47s", std::string(std::string_view(value)).c_str());
    else if constexpr (std::is_null_pointer_v<T>)
        std::snprintf(out, sizeof out, "null");
    else if constexpr (std::is_pointer_v<T> && std::is_object_v<std::remove_pointer_t<T>>)
        std::snprintf(out, sizeof out, "%p", static_cast<const volatile void *>(value));
    else
        std::snprintf(out, sizeof out, "(%zu bytes)", sizeof(T));
}

template <class A, class B> Sides sides(const A &left, const B &right) {
    Sides out;
    describe(out.left, left);
    describe(out.right, right);
    return out;
}

// Ends the process at once: destructors and exit handlers of a test that went wrong may hang. write(2) goes past
// whatever standard error's buffer or lock is in the middle of.
[[noreturn]] inline void leave(const Where &where, const Sides &values, const char *message) {
    char line[512];
    const int printed = std::snprintf(
        line, sizeof line, "%s:%d: assertion failed: %s%s%s%s%s%s%s\n", where.file, where.line, where.expression,
        values.left[0] == '\0' ? "" : "\n    left:  ", values.left,
        values.left[0] == '\0' ? "" : "\n    right: ", values.right, *message == '\0' ? "" : "\n    ", message);
    const auto length = printed < 0 ? 0 : static_cast<std::size_t>(printed);
    if (write(STDERR_FILENO, line, length < sizeof line ? length : sizeof line - 1) < 0) {
        // Nobody to tell; the status says it.
    }
    if (failure_hook != nullptr)
        failure_hook();
    _exit(exit_failed);
}

[[noreturn]] inline void fail(const Where &where, const Sides &values) { leave(where, values, ""); }

[[noreturn]] [[gnu::format(printf, 3, 4)]] inline void fail(const Where &where, const Sides &values, const char *format,
                                                            ...) {
    char message[256];
    va_list args;
    va_start(args, format);
    std::vsnprintf(message, sizeof message, format, args);
    va_end(args);
    leave(where, values, message);
}

// The comparisons. Each side is evaluated once; integers of different signedness compare as the language has it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wfloat-equal"
#define MC_TEST_COMPARISON_(name, op)                                                                                  \
    struct name {                                                                                                      \
        template <class A, class B> static bool holds(const A &left, const B &right) { return left op right; }         \
    };
MC_TEST_COMPARISON_(Equal, ==)
MC_TEST_COMPARISON_(NotEqual, !=)
MC_TEST_COMPARISON_(Less, <)
MC_TEST_COMPARISON_(LessEqual, <=)
MC_TEST_COMPARISON_(Greater, >)
MC_TEST_COMPARISON_(GreaterEqual, >=)
#undef MC_TEST_COMPARISON_
#pragma GCC diagnostic pop

template <class Comparison, class A, class B, class... Message>
void compare(const Where &where, const A &left, const B &right, Message... message) {
    if (!Comparison::holds(left, right)) [[unlikely]]
        fail(where, sides(left, right), message...);
}

inline bool same_text(const char *left, const char *right) {
    return left != nullptr && right != nullptr && std::strcmp(left, right) == 0;
}

inline Sides texts(const char *left, const char *right) {
    Sides out;
    std::snprintf(out.left, sizeof out.left, "%s", left == nullptr ? "null" : left);
    std::snprintf(out.right, sizeof out.right, "%s", right == nullptr ? "null" : right);
    return out;
}

} // namespace mc::testing

#undef cr_assert
#undef cr_assert_not
#undef cr_assert_fail
#undef cr_assert_eq
#undef cr_assert_neq
#undef cr_assert_lt
#undef cr_assert_leq
#undef cr_assert_gt
#undef cr_assert_geq
#undef cr_assert_null
#undef cr_assert_not_null
#undef cr_assert_str_eq
#undef cr_skip_test

#define MC_TEST_WHERE_(text)                                                                                           \
    ::mc::testing::Where { __FILE__, __LINE__, text }
#define MC_TEST_ASSERT_(condition, text, ...)                                                                          \
    do {                                                                                                               \
        if (!(condition)) [[unlikely]]                                                                                 \
            ::mc::testing::fail(                                                                                       \
                MC_TEST_WHERE_(text), ::mc::testing::Sides {} __VA_OPT__(, ) __VA_ARGS__);                             \
    } while (0)
#define MC_TEST_COMPARE_(comparison, op, left, right, ...)                                                             \
    ::mc::testing::compare<::mc::testing::comparison>(MC_TEST_WHERE_(#left " " op " " #right), left,                   \
                                                      right __VA_OPT__(, ) __VA_ARGS__)

// Each takes, after its operands, an optional printf format and arguments.
#define cr_assert(condition, ...) MC_TEST_ASSERT_(condition, #condition, __VA_ARGS__)
#define cr_assert_not(condition, ...) MC_TEST_ASSERT_(!(condition), "!(" #condition ")", __VA_ARGS__)
#define cr_assert_fail(...) MC_TEST_ASSERT_(false, "not reached", __VA_ARGS__)
#define cr_assert_eq(left, right, ...) MC_TEST_COMPARE_(Equal, "==", left, right, __VA_ARGS__)
#define cr_assert_neq(left, right, ...) MC_TEST_COMPARE_(NotEqual, "!=", left, right, __VA_ARGS__)
#define cr_assert_lt(left, right, ...) MC_TEST_COMPARE_(Less, "<", left, right, __VA_ARGS__)
#define cr_assert_leq(left, right, ...) MC_TEST_COMPARE_(LessEqual, "<=", left, right, __VA_ARGS__)
#define cr_assert_gt(left, right, ...) MC_TEST_COMPARE_(Greater, ">", left, right, __VA_ARGS__)
#define cr_assert_geq(left, right, ...) MC_TEST_COMPARE_(GreaterEqual, ">=", left, right, __VA_ARGS__)
#define cr_assert_null(pointer, ...) MC_TEST_ASSERT_((pointer) == nullptr, #pointer " is null", __VA_ARGS__)
#define cr_assert_not_null(pointer, ...) MC_TEST_ASSERT_((pointer) != nullptr, #pointer " is not null", __VA_ARGS__)
#define cr_assert_str_eq(left, right, ...)                                                                             \
    do {                                                                                                               \
        const char *mc_left_ = (left), *mc_right_ = (right);                                                           \
        if (!::mc::testing::same_text(mc_left_, mc_right_)) [[unlikely]]                                               \
            ::mc::testing::fail(MC_TEST_WHERE_(#left " == " #right),                                                   \
                                ::mc::testing::texts(mc_left_, mc_right_) __VA_OPT__(, ) __VA_ARGS__);                 \
    } while (0)

// Seconds that a test may take when it does not say; --timeout lowers it, and a test's own too.
#define MC_TEST_TIMEOUT 60

#if !defined(MC_TEST_FORK)

// Criterion stops only tests that have a timeout of their own, whatever --timeout says. Of two, the later counts.
#undef Test
#define Test(suite, name, ...)                                                                                         \
    CR_EXPAND(CR_TEST_BASE(suite, name, .timeout = MC_TEST_TIMEOUT __VA_OPT__(, ) __VA_ARGS__, .sentinel_ = 0))

#define cr_skip_test(...) criterion_skip_test("" __VA_ARGS__)

#else

namespace mc::testing {

// As Criterion's, in its order, so that one designated initialiser serves both.
struct Options {
    void (*init)() = nullptr;
    void (*fini)() = nullptr;
    int signal = 0;
    int exit_code = 0;
    bool disabled = false;
    const char *description = nullptr;
    double timeout = MC_TEST_TIMEOUT;
};

struct Case {
    const char *suite;
    const char *name;
    void (*run)();
    Options options;
    Case *next;
};

// All tests of this executable, in no order; test_main.cpp sorts them.
inline Case *first_case = nullptr;

struct Registration {
    explicit Registration(Case &test) {
        test.next = first_case;
        first_case = &test;
    }
};

template <class... Message> [[noreturn]] void skip(Message... message) {
    if constexpr (sizeof...(message) != 0)
        std::fprintf(stderr, message...);
    std::fputc('\n', stderr);
    _exit(exit_skipped);
}

} // namespace mc::testing

#define cr_skip_test(...) ::mc::testing::skip(__VA_ARGS__)

#define Test(suite, name, ...)                                                                                         \
    static void mc_test_##suite##_##name##_run();                                                                      \
    static ::mc::testing::Case mc_test_##suite##_##name##_case{#suite, #name, mc_test_##suite##_##name##_run,          \
                                                               ::mc::testing::Options{__VA_ARGS__}, nullptr};          \
    static const ::mc::testing::Registration mc_test_##suite##_##name##_registration{mc_test_##suite##_##name##_case}; \
    static void mc_test_##suite##_##name##_run()

#endif
