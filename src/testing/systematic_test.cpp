#include "testing/systematic.hpp"
#include "testing/test.hpp"
using namespace mc;
Test(Twin, x){
    auto r = testing::expect_fail({}, "both", []{
        sync::atomic<int> x{0}, y{0}; int a=1,b=1;
        testing::label(&x,"x"); testing::label(&y,"y");
        { testing::Thread t([&]{ x.store(1,sync::release); a=y.load(sync::acquire);}, "left");
          testing::Thread u([&]{ y.store(1,sync::release); b=x.load(sync::acquire);}, "right"); }
        testing::check(a||b,"both read 0");
    });
    fprintf(stderr,"%s runs %lu %s\n", r.report.c_str(), r.runs, r.command.c_str());
    auto r2 = testing::expect_pass({}, []{
        sync::atomic<int> x{0}, y{0}; int a=1,b=1;
        { testing::Thread t([&]{ x.store(1,sync::seq_cst); a=y.load(sync::seq_cst);}, "left");
          testing::Thread u([&]{ y.store(1,sync::seq_cst); b=x.load(sync::seq_cst);}, "right"); }
        testing::check(a||b,"both read 0");
    });
    fprintf(stderr,"runs %lu distinct %lu\n", r2.runs, r2.distinct);
}
