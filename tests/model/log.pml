/*
 * The log of a queue's bucket: writers append, passes combine by snapshot, readers look twice, segments are retired.
 *
 * One key suffices: what matters is which transactions' updates its value holds. A set of transaction ids is a bit mask.
 * Each option of World's loop is what PostgreSQL makes atomic: to take a snapshot, a statement's look at the tables under
 * its snapshot, a commit. Who is killed rolls back; that is an option wherever somebody else could notice it.
 *
 * Assertions:
 *   - no pass takes an update that an earlier one took;
 *   - a pass starts from the values that the pass before it left (old = last new);
 *   - a reader in one transaction sees the same both times, and all that was committed before its snapshot;
 *   - what is consumed can be retired as soon as nobody's snapshot is older: new passes don't hold it up;
 *   - at any time the value, and what a pass that began now would take, are what is committed (none lost, none twice).
 *
 * Broken variants, one -D each, which must be rejected: FROM_XMIN (a pass takes all ids from xmin(mark) on), FORGOTTEN
 * (it forgets the ids in progress in the mark), UNRESTRICTED (under read committed the statement isn't restricted to what
 * the mark sees), LATE_MARK (there the mark is taken after the statement), NO_KEY (the journal has no key: of two rivals
 * neither fails), EAGER (a segment is retired without a look at the snapshots), HASTY (a segment is retired when the newest
 * id, and not xmin, of the mark is beyond it), NEWEST_PASS (it waits for the newest pass to be seen by all, instead of the
 * first that has consumed it).
 */

#ifndef WRITERS
#define WRITERS 3         /* transactions that append */
#endif
#ifndef PASSES
#define PASSES 2          /* transactions that combine */
#endif
#ifndef READERS
#define READERS 2
#endif
#ifndef RING
#define RING 2            /* segments */
#endif
#define ROUND 2           /* ids in a segment's round */
#define IDS (WRITERS + PASSES + 1)
#define PASSERS 2

#define BIT(i) (1 << (i))
#define BELOW(i) (BIT(i) - 1)
#define SEGMENT(i) (((i) / ROUND) % RING)
#define HAS(set, i) (((set) >> (i)) & 1)

byte next = 1;            /* the next transaction id */
short running = 0;        /* ids in progress, of writers and passes */
short writing = 0;        /* those of writers */
short committed = 0;      /* ids of writers that have committed */
short rows[RING];         /* ids whose updates a segment holds */
byte writers = 0, passes = 0, readers = 0; /* so many were there */

typedef Version { short value; short seen; byte xmax; short open; byte tx };
Version version[PASSES + 1]; /* what each pass has left: the value, its mark, its own id */
byte last = 0;            /* the newest of them */
byte claimed = PASSERS;   /* by whom the bucket is claimed */

typedef Snapshot { bool held; short seen; byte xmax; short open; byte v };
Snapshot snap[PASSERS + READERS];

mtype = { idle, began, marked, ran };
typedef Pass { mtype at; bool rc; byte id; short taken; short seen; byte xmax; short open };
Pass pass[PASSERS];
short first[READERS];     /* what a reader has seen */

/* scratch, empty between the options */
byte i, j, k, v, s; short x; bool all, hit, needless;
#define CLEAR i = 0; j = 0; k = 0; v = 0; s = 0; x = 0; all = false; hit = false; needless = false

inline take(n) {
  snap[n].held = true; snap[n].seen = committed; snap[n].xmax = next; snap[n].open = running; snap[n].v = last
}

inline release(n) {
  snap[n].held = false; snap[n].seen = 0; snap[n].xmax = 0; snap[n].open = 0; snap[n].v = 0
}

inline xmin_of(result, xmax_, open_) {
  result = 1;
  do :: result < xmax_ && !HAS(open_, result) -> result++ :: else -> break od
}

/* x := the ids in the segments that a pass reads: those of the ids in progress in the mark, and those from its end to until */
inline read_segments(mark, until) {
  x = 0; s = 0;
  do
  :: s < RING ->
     j = 1; hit = false;
     do
     :: j < IDS ->
        hit = hit || (SEGMENT(j) == s && (HAS(version[mark].open, j) || (j / ROUND >= version[mark].xmax / ROUND && j < until)));
        j++
     :: else -> break
     od;
     if :: hit -> x = x | rows[s] :: else fi;
     s++
  :: else -> break
  od
}

/* x := the updates among x that the mark doesn't see */
inline unseen(mark) {
#ifdef FROM_XMIN
  xmin_of(j, version[mark].xmax, version[mark].open);
  x = x & ~BELOW(j)
#else
#ifdef FORGOTTEN
  x = x & ~BELOW(version[mark].xmax)
#else
  x = x & (~BELOW(version[mark].xmax) | version[mark].open)
#endif
#endif
}

inline end_pass(p) {
  running = running & ~BIT(pass[p].id);
  if :: claimed == p -> claimed = PASSERS :: else fi;
  release(p);
  pass[p].at = idle; pass[p].rc = false; pass[p].id = 0; pass[p].taken = 0; pass[p].seen = 0; pass[p].xmax = 0; pass[p].open = 0
}

#define NEW_MARK(p) pass[p].seen = committed; pass[p].xmax = next; pass[p].open = running

/* A pass p: one under repeatable read has its snapshot, which is the new mark, before the claim; one under read committed
 * takes the mark after the claim, and its statement's snapshot later still. Of two idle passers the first begins. */
#define MAY_BEGIN(p) (pass[p].at == idle && passes < PASSES && (p == 0 || pass[0].at != idle))
#define PASS(p) \
  :: d_step { MAY_BEGIN(p) -> passes++; take(p); NEW_MARK(p); pass[p].at = began } \
  :: d_step { MAY_BEGIN(p) && claimed == PASSERS -> \
       passes++; claimed = p; pass[p].rc = true; \
       pass[p].id = next; running = running | BIT(next); next++; \
       NEW_MARK(p); pass[p].at = marked } \
  :: d_step { pass[p].at == began && claimed == PASSERS -> \
       claimed = p; pass[p].id = next; running = running | BIT(next); next++; statement(p); pass[p].at = ran } \
  :: d_step { pass[p].at == began && claimed != PASSERS -> end_pass(p) } \
  :: d_step { pass[p].at == marked -> statement(p); pass[p].at = ran } \
  :: d_step { pass[p].at == ran -> end_pass(p) } \
  :: d_step { pass[p].at == ran && pass[p].taken != 0 -> publish(p) }

inline statement(p) {
  if :: pass[p].rc -> take(p) :: else fi;
  read_segments(snap[p].v, snap[p].xmax);
  x = x & snap[p].seen;
  unseen(snap[p].v);
#ifndef UNRESTRICTED
#ifndef LATE_MARK
  x = x & BELOW(pass[p].xmax) & ~pass[p].open;
#endif
#endif
  assert((x & version[snap[p].v].value) == 0);
  pass[p].taken = x;
  CLEAR
}

/* The commit. The key of the journal lets one pass follow another, and of two rivals one fails. */
inline publish(p) {
#ifdef LATE_MARK
  if :: pass[p].rc -> NEW_MARK(p) :: else fi;
#endif
  if
#ifdef NO_KEY
  :: true ->
#else
  :: snap[p].v == last ->
#endif
     assert(snap[p].v == last);
     last++;
     version[last].value = version[last - 1].value | pass[p].taken;
     version[last].seen = pass[p].seen; version[last].xmax = pass[p].xmax; version[last].open = pass[p].open;
     version[last].tx = pass[p].id
  :: else
  fi;
  end_pass(p)
}

/* x := what a look under snapshot n shows */
inline current(n) {
  read_segments(snap[n].v, snap[n].xmax);
  x = x & snap[n].seen;
  unseen(snap[n].v);
  x = x | version[snap[n].v].value
}

#define READER(r) \
  :: d_step { !snap[PASSERS + r].held && readers == r -> \
       readers++; take(PASSERS + r); current(PASSERS + r); assert(x == committed); first[r] = x; CLEAR } \
  :: d_step { snap[PASSERS + r].held -> \
       current(PASSERS + r); assert(x == first[r]); release(PASSERS + r); first[r] = 0; CLEAR }

/* Retires segment n if the last round that has begun in it is consumed, and everybody's snapshot sees that. */
#define RETIRE(n) \
  :: d_step { rows[n] != 0 -> retire(n); CLEAR }

inline retire(n) {
  k = 0; j = 1;
  do :: j < next -> if :: SEGMENT(j) == n -> k = j / ROUND :: else fi; j++ :: else -> break od;
  /* the first version that has all of round k behind it */
  v = 1;
  do
  :: v <= last ->
#ifdef HASTY
     i = version[v].xmax;
#else
     xmin_of(i, version[v].xmax, version[v].open);
#endif
     if :: i / ROUND > k -> break :: else -> v++ fi
  :: else -> break
  od;
  if
  :: v <= last ->
     all = true; needless = true; j = 0;
     do
     :: j < PASSERS + READERS ->
        if
        :: snap[j].held ->
           xmin_of(i, snap[j].xmax, snap[j].open);
#ifdef NEWEST_PASS
           all = all && i > version[last].tx;
#else
           all = all && i > version[v].tx;
#endif
           needless = needless && i > version[v].tx
        :: else
        fi;
        j++
     :: else -> break
     od;
#ifdef EAGER
     all = true;
#endif
     if
     :: all -> rows[n] = 0
     :: else -> assert(!needless)
     fi
  :: else
  fi
}

/* At any time: the newest value, and what a pass that began now would take. */
inline check() {
  read_segments(last, next);
  x = x & committed;
  unseen(last);
  assert((x & version[last].value) == 0);
  assert((x | version[last].value) == committed);
  CLEAR
}

active proctype World() {
  d_step { version[0].xmax = 1; pass[0].at = idle; pass[1].at = idle };
end:
  do
  /* a writer draws its id, and appends; it may append later */
  :: d_step { writers < WRITERS -> writers++; running = running | BIT(next); writing = writing | BIT(next);
       rows[SEGMENT(next)] = rows[SEGMENT(next)] | BIT(next); next++ }
  :: d_step { writers < WRITERS -> writers++; running = running | BIT(next); writing = writing | BIT(next); next++ }
#define WRITER(n) \
  :: d_step { HAS(writing, n) -> \
       rows[SEGMENT(n)] = rows[SEGMENT(n)] | BIT(n); running = running & ~BIT(n); writing = writing & ~BIT(n); \
       committed = committed | BIT(n); check() } \
  :: d_step { HAS(writing, n) -> /* what it appended nobody ever sees */ \
       rows[SEGMENT(n)] = rows[SEGMENT(n)] & ~BIT(n); running = running & ~BIT(n); writing = writing & ~BIT(n) }
  WRITER(1) WRITER(2) WRITER(3) WRITER(4) WRITER(5) WRITER(6) WRITER(7)
  PASS(0) PASS(1)
  READER(0) READER(1)
  RETIRE(0) RETIRE(1)
#if RING > 2
  RETIRE(2)
#endif
  :: d_step { next > 1 -> check() }
  od
}
