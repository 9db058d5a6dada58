#include <mc/csp.hpp>

#include <cstdio>

int main() {
    mc_rwlock_t lock = 0;
    mc_rwlock_create(&lock);
    int price = 3;
    csp::channel<int> read;
    csp::channel<> leave;
    for (int i = 0; i < 3; ++i)
        csp::spawn([&price, lock, out = +read, until = -leave] {
            mc_rwlock_read_lock(lock, MC_FOREVER);
            out << price;
            (void)csp::alt(~until);
            mc_rwlock_read_unlock(lock);
        });
    int sum = 0;
    for (int i = 0; i < 3; ++i)
        sum += (-read).read();
    std::printf("3 read it at a time: %d\n", sum);
    leave.release();
    mc_rwlock_write_lock(lock, MC_FOREVER);
    ++price;
    mc_rwlock_write_unlock(lock);
    std::printf("now it is %d\n", price);
    mc_rwlock_destroy(lock);
}
