/*
 * A database restored from a dump, whose updates have ids of another database. One session adopts it (post_restore).
 *
 * In the dump, one update was pending and one was combined. Writers and passes check in their own transaction whether
 * the database is adopted; if it isn't, they are refused and try again. The adopter appends the pending update again,
 * deletes all other updates, and writes a new cluster identity and mark, all in one commit. An adopter may be killed
 * before its commit.
 *
 * Assertions when all processes have ended: the combined update counts no second time, and each update of a writer
 * counts once. If a session has adopted the database, the pending update counts once, and no update has an id of the
 * other database any more. If none has, the restored updates are unchanged.
 *
 * Broken variants, one -D each, in which spin must find an error: NO_LOCK (two adopters don't wait for each other),
 * NO_SECOND_LOOK (an adopter that has waited for the lock doesn't check again), NO_LOOK (writers don't check),
 * PASS_FIRST (passes don't check).
 */

#define ADOPTERS 2
#define WRITERS 2

bool adopted = false;
bool locked = false;      /* an adopter has locked the table of the cluster identity until its transaction ends */
byte restored = 2;        /* updates with ids of the other database: a pending and a combined one */
byte anew = 0;            /* the pending update, appended again with an id of this database */
byte written = 0;         /* updates of writers of this database */
byte enqueued = 0;        /* updates that writers have committed */
byte combined_pending = 0, combined_written = 0, combined_again = 0; /* how often passes took each kind */
byte ended = 0;

proctype Adopter() {
  byte times = 2, mine; bool looked;
  do
  :: times > 0 && !adopted ->
     times--;
     looked = adopted;
#ifndef NO_LOCK
     atomic { !locked -> locked = true };
#ifndef NO_SECOND_LOOK
     looked = adopted;
#endif
#endif
     if
     :: looked -> skip
     :: !looked ->
        mine = 1;                                 /* the number of pending updates by the restored marks */
        if
        :: d_step { anew = anew + mine; restored = 0; written = 0; adopted = true } /* removes all earlier updates */
        :: skip                                   /* killed */
        fi
     fi;
     atomic { locked = false; mine = 0; looked = false }
  :: else -> break
  od;
  ended++
}

proctype Writer() {
  byte times = 2;
  do
  :: times > 0 ->
     times--;
#ifdef NO_LOOK
     d_step { written++; enqueued++ };
     break
#else
     if
     :: d_step { adopted -> written++; enqueued++ }; break
     :: !adopted                                  /* refused: the writer tries again */
     fi
#endif
  :: else -> break
  od;
  ended++
}

proctype Passer() {
  byte times = 2;
  do
  :: times > 0 ->
     times--;
     if
#ifdef PASS_FIRST
     :: d_step { !adopted -> combined_again = combined_again + (restored > 0 -> restored - 1 : 0) }
#else
     :: !adopted
#endif
     :: d_step { adopted -> combined_pending = combined_pending + anew; anew = 0;
                 combined_written = combined_written + written; written = 0 }
     fi
  :: else -> break
  od;
  ended++
}

init {
  atomic { run Adopter(); run Adopter(); run Writer(); run Writer(); run Passer(); run Passer() };
  d_step {
    ended == ADOPTERS + WRITERS + 2 ->
    assert(combined_again == 0);
    assert(combined_written + written == enqueued);
    if
    :: adopted -> assert(combined_pending + anew == 1 && restored == 0)
    :: else -> assert(restored == 2 && anew == 0 && combined_pending == 0)
    fi
  }
}
