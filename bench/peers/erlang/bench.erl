%% Erlang/OTP's side of the benchmark, as its own users would write it for speed: processes and messages.
%%
%% The driver (bench/run) compiles it; the script erlang beside it starts it, one node a row, with as many schedulers as
%% EXECUTORS says. Command form, as for every program of bench/: ROW ITERATIONS EXECUTORS | --version | --rows; see
%% bench/harness.hpp.
%%
%% Checked, each alternative measured beside the one taken:
%%  - spawn_bulk: a counter, of whose end one process tells the parent; a message from each process to the parent takes
%%    half as long again with a heap that holds them all, and ten times as long with the usual one.
%%  - memory, memory_1m: processes in a receive, with the usual heap of 233 words. Those that hibernate take a third of
%%    the memory, and are woken with a new heap.
%%  - timer_pair: send_after and cancel_timer; start_timer takes half as long again, also with the options async and info.
%%  - timers_1s: one process that is sent a message by each of the timers, which are set to absolute times. A process for
%%    each, by receive and after or by a timer of its own, takes half as much processor time again, and three times as
%%    much when it ends afterwards; all are as late.
%%  - schedulers that wait without spinning (+sbwt none) take a third less in timers_1s, and the same in the other rows:
%%    there they have the default.
-module(bench).
-export([main/0]).

-define(WARM_UP, 10000).
-define(SECOND, 1000000000).

rows() ->
    #{"spawn_join" => timed(fun spawn_join/1), "spawn_bulk" => fun spawn_bulk/1, "skynet" => fun skynet/1,
      "threadring" => timed(fun thread_ring/1), "memory" => fun memory/1, "memory_1m" => fun memory_1m/1,
      "timer_pair" => fun timer_pair/1, "timers_1s" => fun timers_1s/1}.

main() ->
    try command(init:get_plain_arguments()) of
        usage ->
            io:put_chars(standard_error, "usage: PROGRAM ROW ITERATIONS EXECUTORS | --version | --rows\n"),
            halt(2);
        _ -> halt(0)
    catch
        _:Why:Where ->
            io:format(standard_error, "bench: ~p failed at ~p~n", [Why, Where]),
            halt(1)
    end.

command(["--version"]) -> io:format("Erlang/OTP ~s~nbuild release~n", [erlang:system_info(otp_release)]);
command(["--rows"]) -> lists:foreach(fun(Name) -> io:format("~s~n", [Name]) end, maps:keys(rows()));
command([Name, Iterations, _Executors]) ->
    case {rows(), string:to_integer(Iterations)} of
        {#{Name := Row}, {Count, ""}} when Count > 0 -> Row(Count);
        _ -> usage
    end;
command(_) -> usage.

%% Runs Pass twice, a short one to warm up and the measured one; nanoseconds an operation.
measured(Operations, Pass) ->
    Pass(?WARM_UP),
    nanoseconds(fun() -> Pass(Operations) end) / Operations.

nanoseconds(Pass) ->
    Start = now_ns(),
    Pass(),
    now_ns() - Start.

now_ns() -> erlang:monotonic_time(nanosecond).

timed(Pass) -> fun(Iterations) -> print(measured(Iterations, Pass)) end.

print(Value) -> io:format("~.4f~n", [float(Value)]).
print(Name, Value) -> io:format("~s ~.4f~n", [Name, float(Value)]).

require(true, _) -> ok;
require(false, What) -> error(What).

sum_below(Count) -> Count * (Count - 1) div 2.

%% --- Processes ---

spawn_join(0) -> ok;
spawn_join(Count) ->
    {_, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, process, _, normal} -> spawn_join(Count - 1) end.

spawn_bulk(Count) ->
    Self = self(),
    Left = atomics:new(1, []),
    atomics:put(Left, 1, Count),
    Body = fun() ->
        case atomics:sub_get(Left, 1, 1) of
            0 -> Self ! done;
            _ -> ok
        end
    end,
    Took = nanoseconds(fun() ->
        spawn_all(Count, Body),
        receive done -> ok end
    end),
    print(Took / Count).

spawn_all(0, _) -> ok;
spawn_all(Count, Body) ->
    spawn(Body),
    spawn_all(Count - 1, Body).

%% Starts ten nodes and sends its parent the sum of what they send it; a leaf sends its own number.
skynet_node(Parent, First, 1) -> Parent ! First;
skynet_node(Parent, First, Leaves) ->
    Self = self(),
    Each = Leaves div 10,
    [spawn(fun() -> skynet_node(Self, First + I * Each, Each) end) || I <- lists:seq(0, 9)],
    Parent ! sum_of(10, 0).

sum_of(0, Sum) -> Sum;
sum_of(Count, Sum) -> receive Part -> sum_of(Count - 1, Sum + Part) end.

skynet(Leaves) ->
    Self = self(),
    Took = nanoseconds(fun() ->
        spawn(fun() -> skynet_node(Self, 0, Leaves) end),
        require(sum_of(1, 0) =:= sum_below(Leaves), "skynet's sum")
    end),
    print(Took / 1.0e6).

-define(RING_MEMBERS, 503).

%% Hands the token on, one less each time, until it is 0.
hand_on(Number, Next, Main) ->
    receive
        0 -> Main ! {last, Number}, Next ! stop;
        stop -> Next ! stop;
        Token -> Next ! Token - 1, hand_on(Number, Next, Main)
    end.

thread_ring(Hops) ->
    Main = self(),
    First = spawn(fun() -> receive Next -> hand_on(0, Next, Main) end end),
    Second = lists:foldl(fun(Number, Next) -> spawn(fun() -> hand_on(Number, Next, Main) end) end, First,
                         lists:seq(?RING_MEMBERS - 1, 1, -1)),
    First ! Second,
    First ! Hops,
    receive {last, Number} -> require(Number =:= Hops rem ?RING_MEMBERS, "the end of the token's way") end.

memory_bytes() ->
    {ok, Status} = file:read_file("/proc/self/status"),
    Bytes = fun(Name) ->
        {match, [Kib]} = re:run(Status, Name ++ ":\\s*(\\d+) kB", [{capture, all_but_first, list}]),
        1024 * list_to_integer(Kib)
    end,
    {Bytes("VmRSS"), Bytes("VmPTE")}.

%% Prints the memory that Count blocked processes take; the nanoseconds that making one took.
block(Count) ->
    Blocked = counters:new(1, []),
    Block = fun() ->
        counters:add(Blocked, 1, 1),
        receive never -> ok end
    end,
    garbage_collect(),
    {Resident, Tables} = memory_bytes(),
    Took = nanoseconds(fun() ->
        spawn_all(Count, Block),
        await(Blocked, Count)
    end),
    {ResidentAfter, TablesAfter} = memory_bytes(),
    print((ResidentAfter - Resident) / Count),
    print("page_tables", (TablesAfter - Tables) / Count),
    Took / Count.

await(Blocked, Count) ->
    case counters:get(Blocked, 1) of
        Count -> ok;
        _ -> erlang:yield(), await(Blocked, Count)
    end.

memory(Count) -> block(Count).

memory_1m(Count) -> print("create", block(Count)).

%% --- Time ---

-define(ARMED, 10000).
-define(TIMEOUT, 3600000). % of all, as in a server; the armed ones began a millisecond after another

timer_pair(Pairs) ->
    Armed = [erlang:send_after(?TIMEOUT - I, self(), due) || I <- lists:seq(1, ?ARMED)],
    print(measured(Pairs, fun start_and_cancel/1)),
    lists:foreach(fun cancel/1, Armed). % and all are alive until here

start_and_cancel(0) -> ok;
start_and_cancel(Pairs) ->
    cancel(erlang:send_after(?TIMEOUT, self(), due)),
    start_and_cancel(Pairs - 1).

cancel(Timer) -> require(is_integer(erlang:cancel_timer(Timer)), "stopping a timer").

%% Of all threads of the node.
cpu_seconds() ->
    {ok, Threads} = file:list_dir("/proc/self/task"),
    lists:sum([thread_ns(Thread) || Thread <- Threads]) / ?SECOND.

thread_ns(Thread) ->
    {ok, Text} = file:read_file(["/proc/self/task/", Thread, "/schedstat"]),
    [Running | _] = binary:split(Text, <<" ">>),
    binary_to_integer(Running).

%% Of nanoseconds, in milliseconds, up; they may be negative.
ms_up(Ns) when Ns rem 1000000 > 0 -> Ns div 1000000 + 1;
ms_up(Ns) -> Ns div 1000000.

sleep_until(Deadline) ->
    Timer = erlang:start_timer(ms_up(Deadline), self(), due, [{abs, true}]),
    receive {timeout, Timer, due} -> ok end.

%% All timers are set before the second that is measured begins.
timers_1s(Count) ->
    Coprime = 7919, % with every power of ten: deadlines are dealt out in no order
    Begin = now_ns() + ?SECOND,
    Deadlines = [Begin + (I * Coprime rem Count) * ?SECOND div Count || I <- lists:seq(1, Count)],
    Self = self(),
    Sleep = fun() ->
        Self ! {set, set_all(Deadlines)},
        Self ! {late, lateness(Count, [])}
    end,
    spawn_opt(Sleep, [{min_heap_size, 64 * Count}]), % a heap that need not be collected meanwhile
    receive {set, ok} -> require(now_ns() < Begin, "setting all timers in time") end,
    sleep_until(Begin),
    Before = cpu_seconds(),
    sleep_until(Begin + ?SECOND),
    Used = cpu_seconds() - Before,
    receive {late, Late} -> print_lateness(Used, lists:sort(Late)) end.

set_all(Deadlines) ->
    lists:foreach(fun(Deadline) -> erlang:send_after(ms_up(Deadline), self(), Deadline, [{abs, true}]) end, Deadlines).

lateness(0, Late) -> Late;
lateness(Count, Late) ->
    receive Deadline -> lateness(Count - 1, [now_ns() - Deadline | Late]) end.

print_lateness(Used, Late) ->
    require(hd(Late) >= 0, "sleeping until the deadline"),
    Count = length(Late),
    print(Used),
    print("mean", lists:sum(Late) / Count / 1.0e6),
    print("p99", lists:nth((Count * 990 + 999) div 1000, Late) / 1.0e6),
    print("max", lists:last(Late) / 1.0e6).
