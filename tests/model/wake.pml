/*
 * Waking: no update stays unnoticed while workers sleep. Writers, two workers of one queue, and a stranger.
 *
 * Read pgcombine/runtime/wakeup.py first. A writer's first statement tries to share the idle lock (wake.sql). If it
 * can't, the transaction notifies at its commit. A worker that finds no work tries to take the lock, polls once more and
 * sleeps. In the model it then sleeps until a notification comes, or until what it would poll or try at intervals can
 * succeed. The model has no turns, in which workers look at all queues: the protocol must do without.
 *
 * One worker may end at any time. The server then frees its locks, and rolls its pass back. It may also lack the Python
 * observers that passes need. The other worker stays and can run all passes. The stranger is a session that takes a lock
 * and does nothing, such as a role that means harm. It doesn't take the idle lock while a worker believes that it is
 * still the one of another session: a worker doesn't see the difference, and then only a turn finds the update.
 *
 * Property: when nothing can happen any more, no update is pending.
 * Each fault is a broken variant: -DUNPOLLED and so on (test_model.py).
 */

#define NONE 3
byte holder = NONE; /* who holds the idle lock alone: a worker (0, 1), or the stranger (2) */
byte sharing = 0;   /* writers that share it */
bool blocked = false; /* the stranger holds the other lock, which workers take before the idle lock */
byte pending = 0;   /* committed updates that aren't combined */
byte passing = NONE; /* the worker that has claimed the bucket */
bool note[2];       /* a notification waits for the worker */
bool listens[2];
bool guarded[2]; /* the worker knows that another session holds the idle lock */

proctype Writer(byte number) {
  bool shares, notifies;
  atomic { /* the insert */
    shares = (holder == NONE);
#ifdef OWN_SESSION /* the writer is an observer in the session of worker 0, which listens: it shares its own lock */
    shares = shares || (number == 0 && holder == 0);
#endif
    if
    :: shares -> sharing++
    :: else
    fi;
    notifies = !shares
  };
#ifdef SHARES_SHORTLY /* the lock is released before the commit */
  atomic { if :: shares -> sharing-- :: else fi };
  pending++;
#else
  pending++; /* the commit */
#endif
  atomic { /* notifications are sent after the commit, and locks are released last */
    if
    :: notifies -> note[0] = note[0] || listens[0]; note[1] = note[1] || listens[1]
    :: else
    fi
  };
#ifndef SHARES_SHORTLY
  atomic { if :: shares -> sharing-- :: else fi }
#endif
}

/* The state of the idle lock for worker p, as take_idle_lock returns it */
#define OTHER(p) (holder != NONE && holder != p)
#ifdef TRUSTS_OTHERS /* "other" means that another session holds one of the locks */
#define GUARDED(p) (OTHER(p) || blocked)
#else
#define GUARDED(p) OTHER(p)
#endif
#ifdef KEEPS_REFUSED /* a worker that can't run the passes doesn't leave the lock to others */
#define LEAVES_LOCK false
#else
#define LEAVES_LOCK refuses
#endif

proctype Worker(byte p) {
  bool poll = true, found = false, again = false, refuses = false;
  bool able = true, mortal = false;
  if
  :: p == 0 -> able = false
  :: p == 0 -> mortal = true
  :: true
  fi;
#ifndef LATE_LISTEN
  listens[p] = true;
#endif
round:
  /* polls the queue if it may have new work */
  if
  :: poll || again || note[p] || !(holder == p || guarded[p] || refuses) ->
#ifndef FORGETS_HEARD
    atomic { note[p] = false; poll = false; again = false };
    found = (pending > 0 && !refuses)
#else /* notifications of updates that this poll hasn't seen are forgotten, too */
    found = (pending > 0 && !refuses);
    atomic { note[p] = false; poll = false; again = false }
#endif
  :: else -> found = false
  fi;
  if
  :: found ->
    if :: atomic { holder == p -> holder = NONE } :: else fi; /* the queue has work */
    atomic {
      if
      :: !able -> refuses = true
      :: able && passing == NONE -> passing = p
      :: else -> skip /* another worker has claimed the bucket, so it is deferred */
      fi
    };
#ifndef FORGETS_DEFERRED
    again = able;
#endif
    if
    :: passing == p ->
      if
      :: mortal -> goto dies
      :: true
      fi;
      atomic { /* a pass takes some of the updates */
        if :: pending > 0 -> pending-- :: else fi;
        passing = NONE
      };
      again = true;
      goto round
    :: else
    fi
  :: else
  fi;
  if
  :: mortal -> goto dies
  :: true
  fi;
  /* tries to take the lock */
  atomic {
    if
    :: LEAVES_LOCK || holder == p
    :: !LEAVES_LOCK && holder == NONE && sharing == 0 && !blocked ->
      holder = p; guarded[p] = false;
#ifndef UNPOLLED
      poll = true
#endif
    :: !LEAVES_LOCK && GUARDED(p) ->
#ifndef UNPOLLED_OTHER
      poll = poll || !guarded[p];
#endif
      guarded[p] = true
    :: else -> guarded[p] = false /* writers share the lock, so the worker naps */
    fi
  };
#ifdef LATE_LISTEN
  if :: poll -> poll = false; found = (pending > 0 && !refuses); again = found :: else fi;
  listens[p] = true;
#endif
  if
  :: poll -> goto round
  :: else
  fi;
end: /* sleeps */
  if
  :: note[p] -> goto round
  :: again && passing == NONE && pending > 0 -> goto round /* a deferred bucket is tried again */
  :: !refuses && holder != p && !guarded[p] && (pending > 0 || (sharing == 0 && holder == NONE && !blocked)) -> goto round
#ifndef NO_SUCCESSION
  :: !LEAVES_LOCK && holder != p && guarded[p] && !GUARDED(p) -> goto round
#endif
  :: mortal -> goto dies
  fi;
dies:
  atomic {
    listens[p] = false; guarded[p] = false;
    if :: holder == p -> holder = NONE :: else fi;
    if :: passing == p -> passing = NONE :: else fi
  }
}

proctype Stranger() {
  if
  :: atomic { holder == NONE && sharing == 0 && !guarded[0] && !guarded[1] -> holder = 2 }
  :: atomic { holder == NONE && !blocked -> blocked = true }
  :: true
  fi
}

init {
  atomic { run Writer(0); run Writer(1); run Worker(0); run Worker(1); run Stranger() };
  timeout; /* nothing else can happen */
  assert(pending == 0)
}
