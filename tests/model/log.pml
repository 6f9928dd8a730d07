/*
 * The log of a bucket: writers append updates, passes combine them by snapshots, readers read twice, segments are
 * reclaimed.
 *
 * The model has one key. Its value is the set of transaction ids whose updates it includes, as a bit mask. Each option
 * of World's loop is an atomic action of PostgreSQL: taking a snapshot, reading tables under a snapshot, or a commit.
 * A killed process rolls back; this is an option wherever another process could see the difference.
 *
 * Assertions:
 *   - no pass takes an update that an earlier pass took;
 *   - a pass reads the value that the previous pass wrote (its old value is the last new value);
 *   - a reader sees the same updates in both reads: all that were committed before its snapshot;
 *   - a combined segment can be reclaimed as soon as no snapshot is older than the pass over it, even if new passes
 *     run;
 *   - at each moment, the value and the updates that a new pass would take are the committed updates, each once.
 *
 * Broken variants, one -D each, in which spin must find an error:
 *   - FROM_XMIN: a pass takes all ids from the mark's xmin on;
 *   - FORGOTTEN: a pass forgets the ids that were in progress at the mark;
 *   - UNRESTRICTED: under read committed, the statement also takes updates that the mark doesn't see;
 *   - LATE_MARK: under read committed, the mark is taken after the statement;
 *   - NO_KEY: the journal has no unique key, so two concurrent passes both commit;
 *   - EAGER: a segment is reclaimed although a snapshot is older than the pass over it;
 *   - HASTY: a segment is reclaimed when the mark's xmax, instead of its xmin, is beyond the segment's ids;
 *   - NEWEST_PASS: reclaiming waits until all snapshots see the newest pass, instead of the first pass over the
 *     segment.
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
#define ROUND 2           /* consecutive ids that go to one segment, before the next ids go to the next segment */
#define IDS (WRITERS + PASSES + 1)
#define PASSERS 2         /* processes that combine */

#define BIT(i) (1 << (i))
#define BELOW(i) (BIT(i) - 1)
#define SEGMENT(i) (((i) / ROUND) % RING)
#define HAS(set, i) (((set) >> (i)) & 1)

byte next = 1;            /* the next transaction id */
short running = 0;        /* ids in progress, of writers and passes */
short writing = 0;        /* ids in progress, of writers only */
short committed = 0;      /* ids of writers that have committed */
short rows[RING];         /* ids of the updates in each segment */
byte writers = 0, passes = 0, readers = 0; /* how many of each kind have begun */

typedef Version { short value; short seen; byte xmax; short open; byte tx };
Version version[PASSES + 1]; /* after each pass: the value, the mark, the pass's own id */
byte last = 0;            /* the newest version */
byte claimed = PASSERS;   /* the pass that has locked the bucket; PASSERS: none */

typedef Snapshot { bool held; short seen; byte xmax; short open; byte v };
Snapshot snap[PASSERS + READERS];

mtype = { idle, began, marked, ran };
typedef Pass { mtype at; bool rc; byte id; short taken; short seen; byte xmax; short open };
Pass pass[PASSERS];
short first[READERS];     /* the updates that a reader saw in its first read */

/* temporary variables, reset after each option */
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

/* x := the ids in the segments that a pass reads: the segments of the ids that were in progress at the mark, and of the
 * ids from the mark's xmax on */
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

/* removes from x the updates that the mark sees */
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

/* Pass p. Under repeatable read, it takes its snapshot, which is the new mark, before it locks the bucket. Under read
 * committed, it takes the mark after the lock, and its statement's snapshot after the mark. */
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

/* The commit of pass p. The unique key of the journal makes one of two concurrent passes fail. */
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

/* x := the updates that a reader sees under snapshot n */
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

/* Reclaims segment n if its newest ids are combined, and all snapshots see the pass that combined them. */
#define RETIRE(n) \
  :: d_step { rows[n] != 0 -> retire(n); CLEAR }

inline retire(n) {
  k = 0; j = 1;
  do :: j < next -> if :: SEGMENT(j) == n -> k = j / ROUND :: else fi; j++ :: else -> break od;
  /* k is the newest round of ids in the segment; v := the first version whose mark is beyond that round */
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

/* Checks at each moment the newest value, and the updates that a new pass would take. */
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
  /* a writer gets its id, and appends an update now (first option) or when it commits (second option) */
  :: d_step { writers < WRITERS -> writers++; running = running | BIT(next); writing = writing | BIT(next);
       rows[SEGMENT(next)] = rows[SEGMENT(next)] | BIT(next); next++ }
  :: d_step { writers < WRITERS -> writers++; running = running | BIT(next); writing = writing | BIT(next); next++ }
#define WRITER(n) \
  :: d_step { HAS(writing, n) -> \
       rows[SEGMENT(n)] = rows[SEGMENT(n)] | BIT(n); running = running & ~BIT(n); writing = writing & ~BIT(n); \
       committed = committed | BIT(n); check() } \
  :: d_step { HAS(writing, n) -> /* a rollback: nobody sees the updates */ \
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
