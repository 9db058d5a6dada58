/* The prime sieve of microthreads: a generator, then one filter for each prime, chained by channels. Main receives the
 * primes. Everything ends by the death of channels, and nothing is left. */
#include "csp_program.h"

struct filter {
    csp_reader in;
    csp_writer out;
    int prime;
};

static void generate(void *data) {
    csp_writer out = data;
    int number = 2;
    while (csp_send(out, &number) == 1)
        ++number;
    csp_writer_release(out);
}

static void pass_what_is_left(void *data) {
    struct filter *filter = data;
    int number = 0;
    csp_descr("sieve %d", filter->prime);
    while (csp_recv(filter->in, &number) == 1)
        if (number % filter->prime != 0 && csp_send(filter->out, &number) != 1)
            break;
    csp_reader_release(filter->in);
    csp_writer_release(filter->out);
    free(filter);
}

static int is_prime(int number) {
    for (int divisor = 2; divisor * divisor <= number; ++divisor)
        if (number % divisor == 0)
            return 0;
    return number > 1;
}

int main(void) {
    csp_writer w;
    csp_reader r;
    CHECK_EQ(csp_chan(&w, &r, copy_int), 1);
    CHECK_EQ(csp_spawn(generate, w), 1);
    int expected = 2;
    for (int i = 0; i < 300; ++i) {
        int prime = 0;
        CHECK_EQ(csp_recv(r, &prime), 1);
        while (!is_prime(expected))
            ++expected;
        CHECK_EQ(prime, expected++);
        struct filter *filter = malloc(sizeof *filter);
        CHECK(filter != NULL);
        filter->in = r;
        filter->prime = prime;
        CHECK_EQ(csp_chan(&filter->out, &r, copy_int), 1);
        CHECK_EQ(csp_spawn(pass_what_is_left, filter), 1);
    }
    csp_reader_release(r);
    csp_schedule();
    CHECK_EQ(csp__internal__channel_count(0), 0);
    CHECK_EQ(csp__internal__channel_count(1), 0);
    return 0;
}
