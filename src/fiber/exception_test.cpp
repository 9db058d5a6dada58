// C++ exceptions are a fiber's own: those that it handles, those in flight, however switches interleave.
#include "fiber/test_fiber.hpp"

#include <exception>
#include <stdexcept>
#include <string>

using namespace mc;
using namespace mc::fiber;
using mc::fiber::testing::Fiber;
using mc::fiber::testing::Here;

namespace {

struct Tagged {
    int tag;
};

// Runs fibers with tags 1..count round-robin until all have ended.
void run_interleaved(Fiber::Body body, int count) {
    Here here;
    int tags[16];
    Fiber *fibers[16];
    for (int i = 0; i != count; ++i) {
        tags[i] = i + 1;
        fibers[i] = new Fiber(body, &tags[i]);
    }
    for (int left = count; left != 0;)
        for (int i = 0; i != count; ++i)
            if (!fibers[i]->finished) {
                fibers[i]->resume(here);
                cr_assert_eq(std::uncaught_exceptions(), 0);
                cr_assert(std::current_exception() == nullptr);
                left -= fibers[i]->finished;
            }
    for (int i = 0; i != count; ++i)
        delete fibers[i];
}

int tag_of(const Fiber &fiber) { return *static_cast<int *>(fiber.argument); }

} // namespace

// Goal: a fiber that parks in a catch block and rethrows later rethrows its own exception.
Test(Exception, rethrow_after_parking_in_a_handler) {
    run_interleaved(
        [](Fiber &self) {
            for (int round = 0; round != 10; ++round) {
                int caught = 0;
                try {
                    try {
                        throw Tagged{tag_of(self)};
                    } catch (...) {
                        self.suspend();
                        throw;
                    }
                } catch (const Tagged &again) {
                    self.suspend();
                    caught = again.tag;
                }
                cr_assert_eq(caught, tag_of(self));
            }
        },
        5);
}

// Goal: handlers within handlers, parked at each depth, unwind in their own order.
Test(Exception, nested_handlers) {
    run_interleaved(
        [](Fiber &self) {
            const int tag = tag_of(self);
            try {
                throw Tagged{tag};
            } catch (const Tagged &outer) {
                self.suspend();
                try {
                    throw Tagged{tag + 100};
                } catch (const Tagged &inner) {
                    self.suspend();
                    cr_assert_eq(inner.tag, tag + 100);
                    try {
                        throw;
                    } catch (const Tagged &same) {
                        self.suspend();
                        cr_assert_eq(same.tag, tag + 100);
                    }
                    self.suspend();
                }
                self.suspend();
                cr_assert_eq(outer.tag, tag);
                bool rethrown = false;
                try {
                    throw;
                } catch (const Tagged &same) {
                    rethrown = same.tag == tag;
                }
                cr_assert(rethrown);
            }
        },
        4);
}

namespace {

// Parks in its destructor.
struct Parker {
    Fiber &self;
    int in_flight; // what uncaught_exceptions should say there
    ~Parker() {
        cr_assert_eq(std::uncaught_exceptions(), in_flight);
        self.suspend();
        cr_assert_eq(std::uncaught_exceptions(), in_flight);
    }
};

} // namespace

// Goal: parking in a destructor while an exception unwinds the stack, while others do the same.
Test(Exception, parking_during_unwinding) {
    run_interleaved(
        [](Fiber &self) {
            for (int round = 0; round != 5; ++round) {
                int caught = 0;
                try {
                    Parker outer{self, 1};
                    Parker inner{self, 1};
                    throw Tagged{tag_of(self) + round};
                } catch (const Tagged &exception) {
                    caught = exception.tag;
                }
                cr_assert_eq(caught, tag_of(self) + round);
                cr_assert_eq(std::uncaught_exceptions(), 0);
                Parker calm{self, 0};
            }
        },
        5);
}

namespace {

// Throws and catches in its destructor, parking between: two exceptions of one fiber in flight.
struct Thrower {
    Fiber &self;
    ~Thrower() {
        int caught = 0;
        try {
            Parker parker{self, 2};
            throw Tagged{tag_of(self) + 1000};
        } catch (const Tagged &exception) {
            self.suspend();
            caught = exception.tag;
        }
        cr_assert_eq(caught, tag_of(self) + 1000);
        cr_assert_eq(std::uncaught_exceptions(), 1);
    }
};

} // namespace

// Goal: uncaught_exceptions counts the fiber's own, up to two at once.
Test(Exception, two_in_flight) {
    run_interleaved(
        [](Fiber &self) {
            int caught = 0;
            try {
                Thrower thrower{self};
                throw Tagged{tag_of(self)};
            } catch (const Tagged &exception) {
                self.suspend();
                caught = exception.tag;
            }
            cr_assert_eq(caught, tag_of(self));
        },
        4);
}

// Goal: std::current_exception and nested exceptions see the fiber's own.
Test(Exception, nested_exception_pointers) {
    run_interleaved(
        [](Fiber &self) {
            const std::string inner = "inner " + std::to_string(tag_of(self));
            bool seen = false;
            try {
                try {
                    throw std::runtime_error(inner);
                } catch (...) {
                    self.suspend();
                    std::throw_with_nested(std::logic_error("outer"));
                }
            } catch (const std::exception &outer) {
                self.suspend();
                try {
                    std::rethrow_if_nested(outer);
                } catch (const std::runtime_error &nested) {
                    self.suspend();
                    const std::exception_ptr current = std::current_exception();
                    self.suspend();
                    seen = nested.what() == inner && current == std::current_exception();
                }
            }
            cr_assert(seen);
        },
        4);
}

// Goal: a new fiber starts with no exception, though it is first resumed from a handler.
Test(Exception, new_fiber_has_none) {
    Here here;
    Fiber fiber([](Fiber &self) {
        cr_assert(std::current_exception() == nullptr);
        cr_assert_eq(std::uncaught_exceptions(), 0);
        try {
            throw Tagged{1};
        } catch (...) {
            self.suspend();
        }
    });
    int caught = 0;
    try {
        throw Tagged{2};
    } catch (...) {
        fiber.resume(here);
        try {
            throw;
        } catch (const Tagged &mine) {
            caught = mine.tag;
        }
        fiber.resume(here);
    }
    cr_assert_eq(caught, 2);
    cr_assert(fiber.finished);
}
