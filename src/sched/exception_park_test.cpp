// C++ exceptions belong to a microthread: those it handles, those in flight, however parks and wakes interleave. Each
// test runs two or more whose waits interleave at every point.
#include "sched/test_sched.hpp"

#include <exception>
#include <stdexcept>
#include <string>

using namespace mc;
using namespace mc::sched;
using namespace mc::sched::testing;

namespace {

// Parks in one of the ways there are, while the others run.
void park_somehow(int way) {
    switch (way % 3) {
    case 0:
        yield();
        break;
    case 1:
        sleep_ms(0);
        break;
    default: {
        Gate gate;
        run_now([&gate] {
            yield();
            gate.release();
        });
        cr_assert_eq(gate.acquire(), MC_OK);
    }
    }
}

// Runs the body in several microthreads and on the owner's own stack, interleaved.
template <class Body> void interleaved(Body body) {
    for (int way = 0; way < 3; ++way) {
        const mc_task_t tasks[] = {start([=] { body(1, way); }), start([=] { body(2, way + 1); }),
                                   start([=] { body(3, way + 2); })};
        body(4, way);
        for (mc_task_t task : tasks)
            cr_assert_eq(result_of(task), MC_OK);
        cr_assert_eq(std::uncaught_exceptions(), 0);
        cr_assert(std::current_exception() == nullptr);
    }
}

struct Tagged {
    int tag;
};

// Parks in a destructor, and looks at the count of exceptions in flight around it.
struct ParksWhenDestroyed {
    int way;
    int in_flight;
    ~ParksWhenDestroyed() {
        cr_assert_eq(std::uncaught_exceptions(), in_flight);
        park_somehow(way);
        cr_assert_eq(std::uncaught_exceptions(), in_flight);
    }
};

} // namespace

// Goal: a microthread that parks in a catch block finds its own exception there afterwards, and rethrows that one.
Test(ExceptionPark, rethrow_after_parking_in_a_handler) {
    interleaved([](int tag, int way) {
        for (int round = 0; round < 5; ++round) {
            int caught = 0;
            try {
                try {
                    throw Tagged{tag * 100 + round};
                } catch (const Tagged &first) {
                    park_somehow(way + round);
                    cr_assert_eq(first.tag, tag * 100 + round);
                    cr_assert_eq(std::uncaught_exceptions(), 0);
                    cr_assert(std::current_exception() != nullptr);
                    throw;
                }
            } catch (const Tagged &again) {
                park_somehow(way);
                caught = again.tag;
            }
            cr_assert_eq(caught, tag * 100 + round);
            cr_assert(std::current_exception() == nullptr);
        }
    });
}

// Goal: a destructor that runs because of an exception may park: the exception goes on afterwards, in its own
// microthread.
Test(ExceptionPark, parking_during_unwinding) {
    interleaved([](int tag, int way) {
        for (int round = 0; round < 5; ++round) {
            ParksWhenDestroyed calm{way, 0};
            try {
                ParksWhenDestroyed outer{way, 1};
                ParksWhenDestroyed inner{way + 1, 1};
                throw Tagged{tag};
            } catch (const Tagged &caught) {
                cr_assert_eq(caught.tag, tag);
            }
        }
    });
}

// Goal: handlers within handlers, each parking: all levels keep their own exception.
Test(ExceptionPark, nested_handlers_keep_their_exceptions) {
    interleaved([](int tag, int way) {
        try {
            throw std::runtime_error(std::to_string(tag));
        } catch (const std::runtime_error &outer) {
            park_somehow(way);
            try {
                throw Tagged{tag};
            } catch (const Tagged &inner) {
                park_somehow(way + 1);
                cr_assert_eq(inner.tag, tag);
                try {
                    std::rethrow_exception(std::current_exception());
                } catch (const Tagged &copy) {
                    park_somehow(way + 2);
                    cr_assert_eq(copy.tag, tag);
                }
            }
            park_somehow(way);
            cr_assert(outer.what() == std::to_string(tag));
            bool same = false;
            try {
                throw;
            } catch (const std::runtime_error &again) {
                same = again.what() == std::to_string(tag);
            }
            cr_assert(same);
        }
    });
}

// Goal: an exception thrown and caught wholly inside a destructor that runs during unwinding, with parks at each step.
Test(ExceptionPark, a_second_exception_during_unwinding) {
    struct Throws {
        int tag;
        int way;
        ~Throws() {
            try {
                ParksWhenDestroyed parks{way, 2};
                throw Tagged{tag + 1000};
            } catch (const Tagged &inner) {
                park_somehow(way + 1);
                cr_assert_eq(inner.tag, tag + 1000);
                cr_assert_eq(std::uncaught_exceptions(), 1);
            }
        }
    };
    interleaved([](int tag, int way) {
        try {
            Throws throws{tag, way};
            throw Tagged{tag};
        } catch (const Tagged &outer) {
            park_somehow(way);
            cr_assert_eq(outer.tag, tag);
        }
    });
}

// Goal: an exception may be kept by one microthread and thrown by another, while its first owner is long gone.
Test(ExceptionPark, exceptions_travel_by_pointer) {
    std::exception_ptr kept;
    cr_assert_eq(result_of(start([&] {
                     try {
                         throw std::runtime_error("travelled");
                     } catch (...) {
                         kept = std::current_exception();
                         yield();
                     }
                 })),
                 MC_OK);
    bool caught = false;
    cr_assert_eq(result_of(start([&] {
                     try {
                         std::rethrow_exception(kept);
                     } catch (const std::runtime_error &error) {
                         yield();
                         caught = std::string(error.what()) == "travelled";
                     }
                 })),
                 MC_OK);
    cr_assert(caught);
}

// Goal: a microthread may end while others are in the middle of handling, and a new one on its stack starts with
// nothing.
Test(ExceptionPark, new_microthreads_start_without_exceptions) {
    for (int round = 0; round < 50; ++round) {
        try {
            throw Tagged{round};
        } catch (const Tagged &mine) {
            const mc_task_t task = start([] {
                cr_assert(std::current_exception() == nullptr);
                cr_assert_eq(std::uncaught_exceptions(), 0);
                try {
                    throw Tagged{-1};
                } catch (const Tagged &) {
                    yield();
                }
            });
            cr_assert_eq(result_of(task), MC_OK);
            cr_assert_eq(mine.tag, round);
        }
    }
}
