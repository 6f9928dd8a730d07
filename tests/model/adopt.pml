/*
 * A database that was restored from a dump: its updates bear ids of another one. It is adopted, once, whatever starts first.
 *
 * One update was pending in the dump, one was combined. Writers and passes look whether the database is adopted, in the
 * transaction in which they go on; who isn't let on tries again. Whoever adopts writes what is pending anew, takes the rest
 * away, and writes a new lineage and a new mark, by one commit. Every process may be killed before its commit.
 *
 * Assertions, when all have ended and somebody has adopted: what was pending is there once, what was combined no second
 * time, what writers enqueued once; and no pass has taken what the restored ids only seem to tell.
 *
 * Broken variants, one -D each: NO_LOCK (of two that adopt neither waits for the other), NO_SECOND_LOOK (who has waited for
 * the lock doesn't look again), NO_LOOK (writers don't look whether the database is adopted), PASS_FIRST (passes don't).
 */

#define ADOPTERS 2
#define WRITERS 2

bool adopted = false;
bool locked = false;      /* the table lineage, until the transaction ends */
byte restored = 2;        /* rows with ids of the other database: the pending one and the combined one */
byte anew = 0;            /* the pending update, written anew with an id of this database */
byte written = 0;         /* by writers of this database */
byte enqueued = 0;        /* told so by their commits */
byte combined_pending = 0, combined_written = 0, combined_again = 0; /* how often a pass took these */
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
        mine = 1;                                 /* what is pending by the restored marks */
        if
        :: d_step { anew = anew + mine; restored = 0; written = 0; adopted = true } /* truncates what was there before */
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
     :: !adopted                                  /* refused: to be tried again */
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
