"""Export queues: what passes change is delivered to other systems, and neither lost nor told in the wrong order.

*States.* A change is an entry of ``<export>_exports`` from the pass's commit on. It is *waiting*; *claimed* with its
bucket while a worker's transaction delivers it; *gone* when that commits; *quarantined* where the destination refuses
it for its data, until somebody retries or drops it. The destination is ``up``, ``suspect``, ``down`` or ``paused``.

*Guarantees.* Each change is an entry, once, in the pass's transaction. A key's sequence numbers grow in the order in
which its passes commit, since they are drawn while the pass has the bucket. What is delivered is on disk here before,
so that no number is drawn twice after a crash. Delivery is at least once; with the exporters' guards effectively once.

*Failures.* A worker that dies before its commit leaves its entries waiting; its claim ends with its connection. One
that was only thought dead and delivers late changes nothing where sequence numbers are compared. A destination that
fails is left alone with back-off, and one worker tries again. One that hangs is given up after the exporter's timeout.
While nothing waits a worker sleeps, and the pass that changes something wakes it (:mod:`pgcombine.runtime.wakeup`).

The modules: ``entries`` (what an exporter is), ``postgres``, ``files``, ``webhook``, ``functions`` (exporters),
``delivery`` (a batch), ``queue``, ``worker``. The states of destinations are those of hinted handoff, too:
:mod:`pgcombine.runtime.destinations`.
"""
