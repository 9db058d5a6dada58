// mc/csp/rpc.hpp: calls by messages. C++17.
//
// A request is a std::tuple of arguments. A client is a callable, a server one that runs until its clients are gone; what the
// function throws ends the server and leaves it, and its clients get microthread_error, as they do when there is no server.
// A function without a result replies with a poke.
#ifndef MC_CSP_RPC_HPP
#define MC_CSP_RPC_HPP

#include <mc/csp/combinator.hpp>

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace csp {

namespace detail {

template <class Reply, class F, class Arguments> Reply reply_of(F &f, Arguments &&arguments) {
    if constexpr (std::is_void_v<decltype(std::apply(f, std::forward<Arguments>(arguments)))>) {
        std::apply(f, std::forward<Arguments>(arguments));
        return Reply();
    } else {
        return static_cast<Reply>(std::apply(f, std::forward<Arguments>(arguments)));
    }
}

// One reader and one writer for all calls: they are answered in the order in which they are taken.
template <class Reply, class... Arguments> class shared_client {
public:
    shared_client(writer<std::tuple<Arguments...>> request, reader<Reply> reply)
        : request_(std::move(request)), reply_(std::move(reply)) {}

    Reply operator()(Arguments... arguments) const {
        if (!request_ || !reply_)
            throw microthread_error("call failed: there is no server");
        const int which = prialt(~reply_, request_ << std::tuple<Arguments...>(std::forward<Arguments>(arguments)...));
        if (which == 2)
            return reply_.read();
        if (which < -2)
            throw microthread_error("call failed", which);
        throw microthread_error("call failed: there is no server");
    }

private:
    writer<std::tuple<Arguments...>> request_;
    reader<Reply> reply_;
};

// Each call brings the writer for its reply.
template <class Reply, class... Arguments> class private_client {
public:
    using arguments_type = std::tuple<Arguments...>;

    explicit private_client(writer<std::pair<arguments_type, writer<Reply>>> request) : request_(std::move(request)) {}

    Reply operator()(Arguments... arguments) const {
        return call(arguments_type(std::forward<Arguments>(arguments)...));
    }
    // All arguments as one tuple. A template: what only converts to a tuple is an argument.
    template <class A, std::enable_if_t<std::is_same_v<std::decay_t<A>, arguments_type>, int> = 0>
    Reply operator()(A &&arguments) const {
        return call(std::forward<A>(arguments));
    }
    Reply call(arguments_type arguments) const {
        reader<Reply> reply;
        std::pair<arguments_type, writer<Reply>> request(std::move(arguments), ++reply);
        const int result = action_access::run(request_ << std::ref(request));
        request.second = writer<Reply>(); // still here, when the request has been discarded
        if (result > 0)
            return reply.read();
        if (result < -1)
            throw microthread_error("call failed", result);
        throw microthread_error("call failed: there is no server");
    }

private:
    writer<std::pair<arguments_type, writer<Reply>>> request_;
};

} // namespace detail

namespace chan {

// Requests and replies on a pair of channels: the server answers one before it takes the next. A caller whose wait for the reply
// is cancelled leaves that to the next one who reads: give up the pair then.
template <class... Arguments, class Reply>
auto rpc_client(writer<std::tuple<Arguments...>> request, reader<Reply> reply) {
    return detail::shared_client<Reply, Arguments...>(std::move(request), std::move(reply));
}
template <class... Arguments, class Reply, class F>
auto rpc_server(reader<std::tuple<Arguments...>> request, writer<Reply> reply, F &&f) {
    return detail::once(
        [request = std::move(request), reply = std::move(reply), f = std::decay_t<F>(std::forward<F>(f))]() mutable {
            csp_descr("rpc_server");
            const reader<std::tuple<Arguments...>> in = std::move(request);
            const writer<Reply> out = std::move(reply);
            for (detail::cell<std::tuple<Arguments...>> arguments; detail::next(in, out, arguments);)
                if (!(out << detail::reply_of<Reply>(f, std::move(*arguments))))
                    return;
        });
}

// Each request carries the writer for its reply, so that a server may take others before it answers. A reply that nobody
// waits for any more is dropped.
template <class... Arguments, class Reply>
auto rpc_client(writer<std::pair<std::tuple<Arguments...>, writer<Reply>>> request) {
    return detail::private_client<Reply, Arguments...>(std::move(request));
}
template <class... Arguments, class Reply, class F>
auto rpc_server(reader<std::pair<std::tuple<Arguments...>, writer<Reply>>> request, F &&f) {
    return detail::once([request = std::move(request), f = std::decay_t<F>(std::forward<F>(f))]() mutable {
        csp_descr("rpc_server");
        using Request = std::pair<std::tuple<Arguments...>, writer<Reply>>;
        const reader<Request> in = std::move(request);
        for (detail::cell<Request> call; detail::next(in, call);) {
            const writer<Reply> out = std::move((*call).second);
            (void)bool(out << detail::reply_of<Reply>(f, std::move((*call).first)));
        }
    });
}

} // namespace chan

} // namespace csp

#endif // MC_CSP_RPC_HPP
