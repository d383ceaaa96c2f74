-------------------------------- MODULE Cmap --------------------------------
\* MongoDB's "Connection Monitoring and Pooling" for one server, after its prose alone. README.md says what is left out, and
\* what the prose leaves open.
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Requests,      \* callers; each checks out again and again
          Connections,   \* at least maxPoolSize; a closed one is made anew
          MaxPoolSize, MinPoolSize, MaxConnecting,
          Nobody

VARIABLES pool,          \* "paused", "ready" or "closed"
          queue,         \* the WaitQueue: requests, oldest first
          connection     \* of each: its state, whether it has perished, and the request that it is for
vars == <<pool, queue, connection>>

Free == [state |-> "closed", perished |-> FALSE, for |-> Nobody]
In(state) == {c \in Connections : connection[c].state = state}
Total == Cardinality(Connections \ In("closed"))
Queued == {queue[i] : i \in 1..Len(queue)}
Owns(r) == \E c \in Connections : connection[c].for = r
Waits(r) == r \in Queued \/ \E c \in In("pending") : connection[c].for = r

Init == pool = "paused" /\ queue = <<>> /\ connection = [c \in Connections |-> Free]

-----------------------------------------------------------------------------
\* What SDAM, callers and the server do.

Ready == pool = "paused" /\ pool' = "ready" /\ UNCHANGED <<queue, connection>>

\* A new generation. To interrupt those in use, too, makes their users finish earlier.
Clear == /\ pool = "ready" /\ pool' = "paused" /\ queue' = <<>>
         /\ connection' = [c \in Connections |->
                IF c \in In("closed") THEN Free ELSE [connection[c] EXCEPT !.perished = TRUE]]

Close == /\ pool # "closed" /\ pool' = "closed" /\ queue' = <<>>
         /\ connection' = [c \in Connections |-> IF c \in In("available") THEN Free ELSE connection[c]]

\* A check-out of a pool that is not ready fails at once.
CheckOut(r) == /\ pool = "ready" /\ r \notin Queued /\ ~Owns(r)
               /\ queue' = Append(queue, r) /\ UNCHANGED <<pool, connection>>

TimeOut(r) == /\ r \in Queued /\ queue' = SelectSeq(queue, LAMBDA other : other # r)
              /\ UNCHANGED <<pool, connection>>

CheckIn(c) == /\ c \in In("in use") /\ UNCHANGED <<pool, queue>>
              /\ connection' = [connection EXCEPT ![c] =
                     IF @.perished \/ pool = "closed" THEN Free ELSE [@ EXCEPT !.state = "available", !.for = Nobody]]

\* Idle for too long, or its peer is gone.
Perish(c) == /\ c \in In("available") /\ ~connection[c].perished
             /\ connection' = [connection EXCEPT ![c].perished = TRUE] /\ UNCHANGED <<pool, queue>>

Fail(c) == /\ c \in In("pending")
           /\ connection' = [connection EXCEPT ![c] = Free] /\ UNCHANGED <<pool, queue>>

Succeed(c) == /\ c \in In("pending") /\ UNCHANGED <<pool, queue>>
              /\ connection' = [connection EXCEPT ![c] =
                     IF @.perished \/ pool = "closed" THEN Free
                     ELSE [@ EXCEPT !.state = IF connection[c].for = Nobody THEN "available" ELSE "in use"]]

-----------------------------------------------------------------------------
\* What the pool does.

ClosePerished(c) == /\ c \in In("available") /\ connection[c].perished
                    /\ connection' = [connection EXCEPT ![c] = Free] /\ UNCHANGED <<pool, queue>>

MayCreate == pool = "ready" /\ Total < MaxPoolSize /\ Cardinality(In("pending")) < MaxConnecting
Create(c, r) == c \in In("closed") /\ connection' = [connection EXCEPT ![c] = [Free EXCEPT !.state = "pending", !.for = r]]

\* The oldest request gets an available connection, or else a new one, and leaves the queue.
Serve == /\ queue # <<>> /\ queue' = Tail(queue) /\ UNCHANGED pool
         /\ \/ \E c \in In("available") :
                   /\ ~connection[c].perished
                   /\ connection' = [connection EXCEPT ![c].state = "in use", ![c].for = Head(queue)]
            \/ In("available") = {} /\ MayCreate /\ \E c \in Connections : Create(c, Head(queue))

Populate == /\ Total < MinPoolSize /\ MayCreate /\ UNCHANGED <<pool, queue>>
            /\ \E c \in Connections : Create(c, Nobody)

Next == \/ Ready \/ Clear \/ Close \/ Serve \/ Populate
        \/ \E r \in Requests : CheckOut(r) \/ TimeOut(r)
        \/ \E c \in Connections : CheckIn(c) \/ Perish(c) \/ Fail(c) \/ Succeed(c) \/ ClosePerished(c)

\* Servers answer, users finish, monitors find the server again. SF: the minimum does not take each permit before the oldest
\* request, which with WF may wait for ever.
Fair == /\ WF_vars(Ready) /\ SF_vars(Serve) /\ WF_vars(Populate)
        /\ \A c \in Connections : WF_vars(Fail(c) \/ Succeed(c)) /\ WF_vars(CheckIn(c)) /\ WF_vars(ClosePerished(c))

Spec == Init /\ [][Next]_vars /\ Fair

-----------------------------------------------------------------------------
\* Safety.

Type == /\ pool \in {"paused", "ready", "closed"} /\ queue \in Seq(Requests)
        /\ connection \in [Connections -> [state : {"closed", "pending", "available", "in use"},
                                           perished : BOOLEAN, for : Requests \cup {Nobody}]]
Capped == Total <= MaxPoolSize
RateLimited == Cardinality(In("pending")) <= MaxConnecting
OneEach == \A r \in Requests :
               Cardinality({i \in 1..Len(queue) : queue[i] = r}) + Cardinality({c \in Connections : connection[c].for = r}) <= 1
WaitsOnlyInReadyPool == pool # "ready" => queue = <<>>
NothingAvailableInClosedPool == pool = "closed" => In("available") = {}

InOrder == [][\A r \in Queued : Owns(r)' => r = Head(queue)]_vars
NeverPerished == [][\A c \in Connections \ In("in use") : c \in In("in use")' => ~connection[c].perished]_vars
CreatedOnlyWhenReady == [][\A c \in In("closed") : c \in In("pending")' => pool = "ready"]_vars

\* Liveness.

EveryWaiterIsAnswered == \A r \in Requests : Waits(r) ~> ~Waits(r)
Calm == <>[](pool = "ready") /\ <>[][\A c \in Connections : ~Fail(c) /\ ~Perish(c)]_vars
TheMinimumIsReached == Calm => <>[](Total >= MinPoolSize)
CloseCompletes == pool = "closed" ~> Total = 0
=============================================================================
