// mc/csp/spawn.hpp: microthreads that run callables, their exceptions, and the runtime. C++17.
//
// Success: what returns an endpoint has started a microthread; microthread_error says that it has not.
//
// An exception that leaves a microthread goes down the channel that spawn returned, else to global_exception_handler, else
// the program terminates. By then everything that the callable held has been destroyed.
#ifndef MC_CSP_SPAWN_HPP
#define MC_CSP_SPAWN_HPP

#include <mc/csp/endpoint.hpp>
#include <mc/scope.h>

#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace csp {

namespace detail {

// Sends it away, so that whoever gets it holds it alone. A microthread that ends inside a cancelled scope tells all the same.
inline bool tell(const writer<std::exception_ptr> &to, std::exception_ptr &exception) {
    int result = action_access::run(to << std::ref(exception));
    while (result == MC_E_CANCELED && mc_scope_leave() == MC_OK)
        result = action_access::run(to << std::ref(exception));
    return result > 0;
}

inline void report(const writer<std::exception_ptr> &to, std::exception_ptr &exception) noexcept {
    if (!tell(to, exception) && !tell(writer<std::exception_ptr>(global_exception_handler), exception))
        std::rethrow_exception(exception); // terminates, and says with what
}

// f(end...); an f that insists on variables gets them as such.
template <class F, class... End> void hand_over(F &f, End &&...ends) {
    if constexpr (std::is_invocable_v<F &, End &&...>)
        static_cast<void>(f(std::forward<End>(ends)...));
    else
        static_cast<void>(f(ends...));
}

template <class F> struct spawned {
    F function;
    writer<std::exception_ptr> failure;

    static void entry(void *data) {
        std::unique_ptr<spawned> self(static_cast<spawned *>(data));
        const writer<std::exception_ptr> failure = std::move(self->failure);
        std::exception_ptr exception;
        try {
            F function = std::move(self->function);
            self.reset(); // what could only be copied out of it must not live until somebody has been told
            static_cast<void>(function());
        } catch (...) {
            exception = std::current_exception();
        }
        if (exception != nullptr) // not in the handler: telling waits
            report(failure, exception);
    }
};

// A microthread whose exception goes to failure, or, when that is empty, to the global handler.
template <class F> void start(F &&f, writer<std::exception_ptr> failure = {}) {
    using Function = std::decay_t<F>;
    std::unique_ptr<spawned<Function>> data(new spawned<Function>{std::forward<F>(f), std::move(failure)});
    if (csp_spawn(&spawned<Function>::entry, data.get()) == 0)
        throw microthread_error("spawn failed");
    (void)data.release(); // the microthread's, which may have ended by now
}

} // namespace detail

// Runs f() in a microthread. The reader gets the exception that leaves it, if one does, and is dead when it has ended.
template <class F> reader<std::exception_ptr> spawn(F &&f) {
    reader<std::exception_ptr> failure;
    detail::start(std::forward<F>(f), ++failure);
    return failure;
}

// Waits for a microthread's end, or for its exception, which it sends as its last act, and throws that. An empty reader has ended.
// microthread_error: the wait ended first.
inline void join(reader<std::exception_ptr> failure) {
    std::exception_ptr exception;
    const int result = detail::action_access::run(failure >> exception);
    if (result > 0)
        std::rethrow_exception(exception);
    if (result < -1)
        throw microthread_error("join failed", result);
}

// A microthread f(reader<T>); what is written to the result goes there. Its exception goes to the global handler, as that of the
// next two.
template <class T, class F> writer<T> spawn_consumer(F &&f) {
    writer<T> w;
    reader<T> r = --w;
    detail::start(
        [f = std::decay_t<F>(std::forward<F>(f)), r = std::move(r)]() mutable { detail::hand_over(f, std::move(r)); });
    return w;
}

// A microthread f(writer<T>); what it writes comes out of the result.
template <class T, class F> reader<T> spawn_producer(F &&f) {
    reader<T> r;
    writer<T> w = ++r;
    detail::start(
        [f = std::decay_t<F>(std::forward<F>(f)), w = std::move(w)]() mutable { detail::hand_over(f, std::move(w)); });
    return r;
}

// A microthread f(reader<T>, writer<T>) between the two ends of the result.
template <class T, class F> channel<T> spawn_filter(F &&f) {
    channel<T> in;
    channel<T> out;
    detail::start([f = std::decay_t<F>(std::forward<F>(f)), r = --in, w = ++out]() mutable {
        detail::hand_over(f, std::move(r), std::move(w));
    });
    return channel<T>(++in, --out);
}

template <class T> class range;

namespace detail {

// A range as the source of an iterator: its exception comes behind its last message.
template <class T> class range_source {
public:
    range_source() = default;
    range_source(const range<T> *from) : from_(from) {} // NOLINT: as read_source
    explicit operator bool() const noexcept { return from_ != nullptr && from_->source(); }
    csp_reader internal_reader() const noexcept { return from_->source().internal_reader(); }
    void ended() const { join(from_->except()); }
    friend bool operator==(const range_source &a, const range_source &b) noexcept {
        return bool(a) == bool(b) && (!a || a.from_ == b.from_);
    }

private:
    const range<T> *from_ = nullptr;
};

} // namespace detail

// The messages of a producer, and at their end its exception, which the iteration throws.
template <class T> class range {
public:
    using iterator = detail::message_iterator<T, detail::range_source<T>>;

    range(reader<T> source, reader<std::exception_ptr> except) noexcept
        : source_(std::move(source)), except_(std::move(except)) {}

    iterator begin() const { return iterator(detail::range_source<T>(this)); }
    iterator end() const { return iterator(); }

    const reader<T> &source() const noexcept { return source_; }
    const reader<std::exception_ptr> &except() const noexcept { return except_; }

private:
    reader<T> source_;
    reader<std::exception_ptr> except_;
};

template <class T, class F> range<T> spawn_range(F &&f) {
    reader<T> r;
    writer<T> w = ++r;
    auto except = spawn(
        [f = std::decay_t<F>(std::forward<F>(f)), w = std::move(w)]() mutable { detail::hand_over(f, std::move(w)); });
    return range<T>(std::move(r), std::move(except));
}

// --- the runtime ---

// As csp_init_runtime, 0: one executor for each processor. False: it was refused, and the log says why.
inline bool init_runtime(int executors = 0) noexcept { return csp_init_runtime(executors) != 0; }
inline void shutdown_runtime() noexcept { csp_shutdown_runtime(); }

namespace detail {
struct scheduler {
    std::mutex mutex;
    std::function<void()> run; // guarded by mutex
};
inline scheduler the_scheduler;
} // namespace detail

// What schedule() does from now on; an empty function restores csp_schedule().
inline void set_scheduler(std::function<void()> f) {
    const std::lock_guard<std::mutex> guard(detail::the_scheduler.mutex);
    detail::the_scheduler.run.swap(f);
}

// Runs microthreads until none can run any more: csp_schedule(), or what set_scheduler was given.
inline void schedule() {
    std::function<void()> run;
    {
        const std::lock_guard<std::mutex> guard(detail::the_scheduler.mutex);
        run = detail::the_scheduler.run;
    }
    if (run)
        run();
    else
        csp_schedule();
}

} // namespace csp

#endif // MC_CSP_SPAWN_HPP
