/*
 * Hinted handoff among three servers, each of which has all keys. At most one server is lost, with its disk.
 *
 * A client sends a write to one server, its coordinator ("home" in this model), which stores a hint for each other
 * registered server. Clients and replayers deliver the write at any time, even clients of a lost home.
 * Acknowledgements may come late. A destination retains the payload ("text") of a write until all other registered
 * servers have said that they have the write. An operator unregisters a lost server on a survivor (rm), rebuilds a
 * lost or living server once, and repairs once. Each action may stop at any point. A server that is down for a while
 * takes no action; the model covers this because the options below occur in any order. Actions that need an answer
 * (rebuild, repair, get) wait for it.
 *
 * Each option of World's loop is one transaction, or an action of a process that no other process can observe.
 *
 * Assertions at each moment:
 *   - a server applies a write at most once;
 *   - a write that a surviving server or two servers have acknowledged is on a surviving server;
 *   - if another survivor lacks the write, a survivor has its text or a hint, from which a repair can deliver it;
 *   - all survivors have the write when no hints and no marks are left, unless a rebuild or a repair is under way, an
 *     operator hasn't yet unregistered the lost server everywhere, or a client of the lost home has delivered late;
 *   - a get that reports a complete result has each write that a quorum acknowledged before, and, if no server was
 *     lost, each write that any server acknowledged before.
 *
 * Broken variants, one -D each, in which spin must find an error:
 *   - UNKEPT: destinations keep no texts;
 *   - DROPPED_EARLY: a text is dropped before all servers have the write;
 *   - COPY_WITHOUT_TEXTS, COPY_WITHOUT_TOKENS: a rebuild doesn't copy the texts or the tokens;
 *   - REBUILD_ANYWAY: a rebuild doesn't check whether it loses writes;
 *   - CHECKED_EARLY: a rebuild checks this while the server still accepts writes;
 *   - UNREACHED: a rebuild doesn't wait for the answer of each registered server;
 *   - RM_UNMARKED, REPLACED_UNMARKED: no mark is made when a server is unregistered or replaced;
 *   - MARK_CLEARED_FIRST: a repair removes marks without comparing servers;
 *   - MARK_CLEARED: a repair also removes marks that were made after it began;
 *   - NO_HOME_ID: a get ignores texts whose home is lost;
 *   - READ_ELSEWHERE (with GET): a get reads another server than it asked.
 *
 * Settings that enlarge the model: WRITES, HOMES, ASKING (a server asks the others one after the other whether they
 * have the writes whose texts it keeps), GET (a get asks servers one after the other). Settings that reduce the model:
 * FIRST=0 (the first write goes to server 0), PROMPT (acknowledgements are never late).
 */

#ifndef WRITES
#define WRITES 1          /* number of writes, each with a token */
#endif
#ifndef HOMES
#define HOMES 2           /* how often clients send each write to a home */
#endif
#define N 3
#define NOBODY N
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) >> (i)) & 1)
#define ALL 7             /* the set of all servers */
#define OTHERS(s) (ALL & ~BIT(s))
#define AT(h, d) ((h) * N + (d))
#define KEPT(s, w) ((s) * WRITES + (w))
#define MANY(set) ((set) & ((set) - 1)) /* the set has at least two elements */

/* for each server, sets of writes */
byte tok[N], val[N];      /* the tokens that it has, and the writes that its values include */
byte kept[N];             /* the writes whose texts it keeps as a destination */
byte origin[N * WRITES];  /* the id of the home that sent a kept text */
byte said[N * WRITES];    /* the servers that have said that they have the write */
byte hint[N * N];         /* AT(home, destination): hints at the home for the destination */
byte told[N * N];         /* AT(home, destination): acknowledged writes, whose hints may be deleted */
/* sets of servers */
byte reg[N];              /* the servers that are registered on each server */
byte mark[N];             /* the servers that each server has marked as needing repair */
byte fresh[N];            /* the marks that were made after a repair began */
byte had[WRITES];         /* the servers that have ever acknowledged each write */
byte homes[WRITES];       /* the ids of the homes whose clients have each write */
byte tries[WRITES];

byte gone = NOBODY;       /* the lost server, until it is replaced */
byte lost = NOBODY;       /* the number of the lost server, also after it is replaced */
byte id[N];
#define NEW_ID N
#define NO_ID (N + 1)

mtype = { idle, checked, locked, copied };
mtype rebuild = idle;     /* one rebuild */
bool rebuilt = false;     /* whether the rebuild has begun */
byte to = NOBODY, from = NOBODY;
byte due = 0;             /* writes whose hints must be delivered to the source before the copy */
byte reached = 0;         /* homes that answer the rebuild */
byte mine = 0;            /* homes whose mark of `to` the rebuild may remove at its end */
byte stale = 0;           /* homes that don't know the new id of `to` */

byte repair = 0;          /* the repair: 0 not begun, 1..3 compares a pair, 4..6 removes a server's marks, 7 ended */
bool late = false;        /* whether a client of the lost home has delivered a write since the repair began */

/* temporary variables */
byte i, j, k, x; bool ok, whole;
#define CLEAR i = 0; j = 0; k = 0; x = 0; ok = false; whole = false

#define THERE(s) ((s) != gone)
#define TAKES(s) (THERE(s) && !(rebuild == locked && to == (s)))
#define HINTS(h) (hint[AT(h, 0)] | hint[AT(h, 1)] | hint[AT(h, 2)])
#define SURVIVORS (ALL & ~(gone == NOBODY -> 0 : BIT(gone)))

inline apply(w, d) {
  if
  :: !HAS(tok[d], w) -> tok[d] = tok[d] | BIT(w); assert(!HAS(val[d], w)); val[d] = val[d] | BIT(w)
  :: else
  fi;
  had[w] = had[w] | BIT(d)
}

inline keep(w, d, h) {
#ifdef UNKEPT
  skip
#else
  if
  :: !HAS(tok[d], w) && !HAS(kept[d], w) -> kept[d] = kept[d] | BIT(w); origin[KEPT(d, w)] = h
  :: else
  fi
#endif
}

inline make_mark(s, set) {
  mark[s] = mark[s] | (set);
  if :: repair > 0 && repair < 7 -> fresh[s] = fresh[s] | (set) :: else fi;
  if :: to != NOBODY && HAS(set, to) -> mine = mine & ~BIT(s) :: else fi
}

inline drop(s, w) { kept[s] = kept[s] & ~BIT(w); origin[KEPT(s, w)] = 0; said[KEPT(s, w)] = 0 }

#ifdef FIRST              /* the home of the first write; this loses no case, since all servers are alike */
#define MAY_BE_FIRST(w, h) (w > 0 || tries[0] > 0 || h == FIRST)
#else
#define MAY_BE_FIRST(w, h) true
#endif
#define ACCEPT(w, h) \
  :: d_step { MAY_BE_FIRST(w, h) && TAKES(h) && tries[w] < HOMES -> \
       tries[w]++; apply(w, h); homes[w] = homes[w] | BIT(id[h]); \
       if :: HAS(reg[h], 0) -> hint[AT(h, 0)] = hint[AT(h, 0)] | BIT(w) :: else fi; \
       if :: HAS(reg[h], 1) -> hint[AT(h, 1)] = hint[AT(h, 1)] | BIT(w) :: else fi; \
       if :: HAS(reg[h], 2) -> hint[AT(h, 2)] = hint[AT(h, 2)] | BIT(w) :: else fi }

#ifdef PROMPT             /* acknowledgements are never late */
#define TOLD(w, h, d) (HAS(tok[d], w) && THERE(d) && !(to == d && HAS(stale, h)))
#define TELL_HOME(w, h, d)
#else
#define TOLD(w, h, d) HAS(told[AT(h, d)], w)
#define TELL_HOME(w, h, d) told[AT(h, d)] = told[AT(h, d)] | BIT(w)
#endif

/* a client of a home delivers; the home may be lost; h is the home's id, s its number */
#define DELIVER(w, h, s, d) \
  :: d_step { HAS(homes[w], h) && id[d] != h && TAKES(d) && !(HAS(tok[d], w) && TOLD(w, s, d)) -> \
       ok = !HAS(tok[d], w); keep(w, d, h); apply(w, d); \
       if \
       :: id[s] != h && lost == s -> late = late || repair > 0 && ok \
       :: else -> skip; TELL_HOME(w, s, d) \
       fi; \
       CLEAR }

#define REPLAY(w, h, d) \
  :: d_step { h != d && HAS(hint[AT(h, d)], w) && !TOLD(w, h, d) && THERE(h) && TAKES(d) && !(to == d && HAS(stale, h)) -> \
       i = 0; \
       if :: !HAS(hint[AT(h, 0)], w) && d != 0 -> i++ :: else fi; \
       if :: !HAS(hint[AT(h, 1)], w) && d != 1 -> i++ :: else fi; \
       if :: !HAS(hint[AT(h, 2)], w) && d != 2 -> i++ :: else fi; \
       if :: i < N - 1 -> keep(w, d, id[h]) :: else fi; /* no text for the last hint: all others have the write */ \
       apply(w, d); TELL_HOME(w, h, d); CLEAR }

#define RETIRE(w, h, d) \
  :: d_step { HAS(hint[AT(h, d)], w) && TOLD(w, h, d) -> hint[AT(h, d)] = hint[AT(h, d)] & ~BIT(w) }

/* a server asks the others whether they have a write: one after the other, or all at once */
#ifdef ASKING
#define ASK(w, s, d) \
  :: d_step { HAS(kept[s], w) && HAS(reg[s], d) && HAS(tok[d], w) && !HAS(said[KEPT(s, w)], d) -> \
       said[KEPT(s, w)] = said[KEPT(s, w)] | BIT(d) }
#define SAY(w, s) said[KEPT(s, w)]
#else
#define ASK(w, s, d)
#define SAY(w, s) (reg[s] & (HAS(tok[0], w) | HAS(tok[1], w) << 1 | HAS(tok[2], w) << 2))
#endif
#ifdef DROPPED_EARLY
#define SETTLED(w, s) SAY(w, s)
#else
#define SETTLED(w, s) !(reg[s] & ~SAY(w, s))
#endif
#define SETTLE(w, s) \
  :: d_step { HAS(kept[s], w) && SETTLED(w, s) -> drop(s, w) }

#define LOSE(s) \
  :: d_step { lost == NOBODY -> \
       lost = s; gone = s; id[s] = NO_ID; tok[s] = 0; val[s] = 0; kept[s] = 0; mark[s] = 0; fresh[s] = 0; reg[s] = 0; \
       mine = mine & ~BIT(s); stale = stale & ~BIT(s); \
       i = 0; do :: i < N -> hint[AT(s, i)] = 0; told[AT(s, i)] = 0; i++ :: else -> break od; \
       i = 0; do :: i < WRITES -> origin[KEPT(s, i)] = 0; said[KEPT(s, i)] = 0; i++ :: else -> break od; \
       if :: (rebuild == checked || rebuild == locked) && (to == s || from == s || HAS(reached, s)) -> give_up() :: else fi; \
       CLEAR }

inline give_up() { rebuild = idle; due = 0; reached = 0; mine = 0 }

#ifdef RM_UNMARKED
#define RM_MARK(s)
#else
#define RM_MARK(s) make_mark(s, ALL & ~BIT(gone))
#endif
#define RM(s) \
  :: d_step { gone != NOBODY && s != gone && HAS(reg[s], gone) && !(rebuild != idle && to == gone) -> \
       reg[s] = reg[s] & ~BIT(gone); hint[AT(s, gone)] = 0; told[AT(s, gone)] = 0; mark[s] = mark[s] & ~BIT(gone); fresh[s] = fresh[s] & ~BIT(gone); \
       RM_MARK(s); CLEAR }

/* The rebuild of server y, lost or living, from server z. o is the third server. */
#ifdef REBUILD_ANYWAY
#define LOSES_NOTHING(y, z, o) true
#else
#define LOSES_NOTHING(y, z, o) ((tok[y] & ~tok[z] & ~hint[AT(y, z)] & ~(HAS(reached, o) -> hint[AT(o, z)] : 0)) == 0)
#endif
#ifdef UNREACHED
#define REACHED_WITHOUT(y, z, o) \
  :: d_step { !rebuilt && THERE(z) && (gone == NOBODY || gone == y || gone == o) && !HAS(mark[z], z) && !HAS(mark[y], z) -> \
       reached = ALL & ~BIT(o); begin(y, z, o); CLEAR }
#else
#define REACHED_WITHOUT(y, z, o)
#endif
#define REBUILD(y, z, o) \
  REACHED_WITHOUT(y, z, o) \
  :: d_step { !rebuilt && THERE(z) && THERE(o) && !HAS(mark[z], z) && !HAS(mark[o], z) && !HAS(mark[y], z) -> \
       reached = ALL; begin(y, z, o); CLEAR } \
  :: d_step { !rebuilt && gone == o && THERE(z) && THERE(y) && !HAS(reg[y], o) && !HAS(reg[z], o) && !HAS(mark[z], z) && !HAS(mark[y], z) -> \
       reached = ALL & ~BIT(o); begin(y, z, o); CLEAR }

inline begin(y, z, o) {
#ifdef CHECKED_EARLY
  if
  :: LOSES_NOTHING(y, z, o) -> rebuilt = true; to = y; from = z; rebuild = checked
  :: else -> reached = 0
  fi
#else
  if
  :: LOSES_NOTHING(y, z, o) -> rebuilt = true; to = y; from = z; announce()
  :: else -> reached = 0
  fi
#endif
}

inline announce() {
  rebuild = locked;
  i = 0;
  do
  :: i < N ->
     if
     :: i != to && HAS(reached, i) ->
        reg[i] = reg[i] | BIT(to); make_mark(i, BIT(to)); mine = mine | BIT(i);
        due = due | hint[AT(i, from)]
     :: i == to -> due = due | hint[AT(i, from)]
     :: else
     fi;
     i++
  :: else -> break
  od
}

#ifdef COPY_WITHOUT_TOKENS
#define COPY_TOKENS skip
#else
#define COPY_TOKENS tok[to] = tok[from]
#endif
#ifdef COPY_WITHOUT_TEXTS
#define COPY_TEXTS kept[to] = 0
#define TEXTS(s) 0
#else
#define COPY_TEXTS kept[to] = kept[from]
#define TEXTS(s) HINTS(s)
#endif
inline copy() {
  ok = true;
  i = 0; do :: i < N -> ok = ok && !((i == to || HAS(reached, i)) && (hint[AT(i, from)] & due)); i++ :: else -> break od;
  if
  :: !ok
  :: else ->
     val[to] = val[from];
     COPY_TOKENS; COPY_TEXTS;
     i = 0;
     do
     :: i < WRITES ->
        origin[KEPT(to, i)] = HAS(kept[to], i) * origin[KEPT(from, i)]; said[KEPT(to, i)] = 0;
        if
        :: HAS(TEXTS(from), i) && !HAS(kept[to], i) -> kept[to] = kept[to] | BIT(i); origin[KEPT(to, i)] = id[from]
        :: else
        fi;
        i++
     :: else -> break
     od;
     id[to] = NEW_ID;
     stale = OTHERS(to);
     if
     :: gone == to ->
        reg[to] = (reg[from] | BIT(from)) & ~BIT(to);
        gone = NOBODY
#ifndef REPLACED_UNMARKED
        ; make_mark(to, ALL)
#endif
     :: else
     fi;
     due = 0;
     rebuild = copied
  fi
}

#define TELL(h) \
  :: d_step { rebuild == copied && h != to && HAS(reached, h) && HAS(stale, h) && THERE(h) -> \
       stale = stale & ~BIT(h); \
       if :: HAS(mine, h) -> mark[h] = mark[h] & ~BIT(to) :: else fi; \
       fresh[h] = fresh[h] & mark[h]; mine = mine & ~BIT(h) }

#define REPAIR_APPLY(w, a, b) \
  :: d_step { a != b && repair > 0 && repair < 4 && THERE(a) && TAKES(b) && !HAS(tok[b], w) && HAS(kept[a] | HINTS(a), w) -> \
       if :: HAS(kept[a], w) -> keep(w, b, origin[KEPT(a, w)]) :: else -> keep(w, b, id[a]) fi; \
       apply(w, b) }

/* compares servers a and b: for each write that one of them lacks there must be a hint */
#define MISSING(a, b, o) (tok[a] & ~tok[b] & ~hint[AT(a, b)] & ~hint[AT(o, b)])
#ifdef MARK_CLEARED_FIRST
#define COMPARE(n, a, b, o) \
  :: d_step { repair == n -> repair++ }
#else
#define COMPARE(n, a, b, o) \
  :: d_step { repair == n && THERE(a) && THERE(b) && !MISSING(a, b, o) && !MISSING(b, a, o) -> repair++ } \
  :: d_step { repair == n && (gone == a && !(HAS(reg[b], a) && HAS(reg[o], a)) || gone == b && !(HAS(reg[a], b) && HAS(reg[o], b))) -> repair++ }
#endif
#ifdef MARK_CLEARED
#define REMAIN(s) 0
#else
#define REMAIN(s) mark[s] & fresh[s]
#endif
#define UNMARK(n, s) \
  :: d_step { repair == n -> mark[s] = REMAIN(s); fresh[s] = 0; repair++ }

/* checks the assertions at each moment */
inline check() {
  whole = true; /* all survivors are registered with each other, and no lost server is registered */
  i = 0; do :: i < N -> whole = whole && !(THERE(i) && (reg[i] | BIT(i)) != SURVIVORS); i++ :: else -> break od;

  /* a survivor has each write that a survivor or a quorum has acknowledged, and others can get its text */
  i = 0;
  do
  :: i < WRITES ->
     x = (HAS(tok[0], i) | HAS(tok[1], i) << 1 | HAS(tok[2], i) << 2); /* the servers that have write i */
     assert(x || !(had[i] & ~(lost == NOBODY -> 0 : BIT(lost))));
     assert(!x || x == SURVIVORS ||
            HAS(kept[0] | kept[1] | kept[2] | HINTS(0) | HINTS(1) | HINTS(2), i));
     /* without hints and marks, all survivors have the write */
     if
     :: whole && !late && rebuild == idle && (repair == 0 || repair == 7) &&
        !(mark[0] | mark[1] | mark[2]) && !(HINTS(0) | HINTS(1) | HINTS(2)) ->
        assert(!x || x == SURVIVORS)
     :: else
     fi;
     i++
  :: else -> break
  od;

  /* for each server j, ok: a get that reads j would report a complete result */
  if
  :: whole && !(mark[0] | mark[1] | mark[2]) ->
     j = 0;
     do
     :: j < N ->
        ok = THERE(j) && !(hint[AT(0, j)] | hint[AT(1, j)] | hint[AT(2, j)]);
#ifndef NO_HOME_ID
        i = 0;
        do
        :: i < WRITES ->
           k = 0;
           do
           :: k < N ->
              ok = ok && !(HAS(kept[k], i) && !HAS(tok[j], i) &&
                           origin[KEPT(k, i)] != id[0] && origin[KEPT(k, i)] != id[1] && origin[KEPT(k, i)] != id[2]);
              k++
           :: else -> break
           od;
           i++
        :: else -> break
        od;
#endif
        i = 0;
        do
        :: i < WRITES ->
           assert(!ok || HAS(tok[j], i) || !(lost == NOBODY && had[i] || MANY(had[i])));
           i++
        :: else -> break
        od;
        j++
     :: else -> break
     od
  :: else
  fi;
  CLEAR
}

#ifdef GET                /* a get that asks one server after the other; the get in check() asks all at once */
byte chosen = NOBODY, asked = 0, answered = 0; /* the server to read, and sets of servers */
byte answered_ids = 0;
byte any = 0, many = 0;   /* writes that any server, or a quorum, had acknowledged when the get began */
byte origins[WRITES];     /* ids of homes whose texts are kept */
bool incomplete = false;
#define GET_BEGINS(y) \
  :: d_step { chosen == NOBODY && THERE(y) -> \
       i = 0; \
       do \
       :: i < WRITES -> \
          if :: had[i] && lost == NOBODY -> any = any | BIT(i) :: else fi; \
          if :: MANY(had[i]) -> many = many | BIT(i) :: else fi; \
          i++ \
       :: else -> break \
       od; \
       if :: any | many -> chosen = y; asked = SURVIVORS :: else fi; /* a get without such writes can't be wrong */ \
       CLEAR }
#define GET_ASKS(s) \
  :: d_step { chosen != NOBODY && HAS(asked & ~answered, s) && THERE(s) && !incomplete -> \
       answered = answered | BIT(s); answered_ids = answered_ids | BIT(id[s]); \
       incomplete = (reg[s] | BIT(s)) != asked || mark[s] || HINT_FOR(s, chosen) || lost != NOBODY && !many; \
       i = 0; \
       do :: i < WRITES -> if :: HAS(kept[s], i) -> origins[i] = origins[i] | BIT(origin[KEPT(s, i)]) :: else fi; i++ :: else -> break od; \
       if :: incomplete -> GET_ENDS :: else fi; \
       CLEAR }
#ifdef READ_ELSEWHERE
#define SAME(y) true
#else
#define SAME(y) HAS(answered_ids, id[y]) /* the same server that was asked */
#endif
#define GET_READS \
  :: d_step { chosen != NOBODY && answered == asked && THERE(chosen) -> \
       i = 0; ok = SAME(chosen); \
       do :: i < WRITES -> ok = ok && (HAS(tok[chosen], i) || !(origins[i] & ~answered_ids)); i++ :: else -> break od; \
       assert(!ok || !(many & ~val[chosen]) && (lost != NOBODY || !(any & ~val[chosen]))); \
       GET_ENDS; CLEAR }
#define HINT_FOR(s, y) hint[AT(s, y)]
#define GET_ENDS \
  chosen = NOBODY; asked = 0; answered = 0; answered_ids = 0; any = 0; many = 0; incomplete = false; i = 0; \
  do :: i < WRITES -> origins[i] = 0; i++ :: else -> break od
#else
#define GET_BEGINS(y)
#define GET_ASKS(s)
#define GET_READS
#endif

#define PAIRS(one, w) one(w, 0, 1) one(w, 0, 2) one(w, 1, 0) one(w, 1, 2) one(w, 2, 0) one(w, 2, 1)
#define WRITE(w) \
  ACCEPT(w, 0) ACCEPT(w, 1) ACCEPT(w, 2) \
  DELIVER(w, 0, 0, 1) DELIVER(w, 0, 0, 2) DELIVER(w, 1, 1, 0) DELIVER(w, 1, 1, 2) DELIVER(w, 2, 2, 0) DELIVER(w, 2, 2, 1) \
  DELIVER(w, NEW_ID, to, 0) DELIVER(w, NEW_ID, to, 1) DELIVER(w, NEW_ID, to, 2) \
  PAIRS(REPLAY, w) PAIRS(RETIRE, w) PAIRS(ASK, w) \
  SETTLE(w, 0) SETTLE(w, 1) SETTLE(w, 2) \
  PAIRS(REPAIR_APPLY, w)

active proctype World() {
  d_step { i = 0; do :: i < N -> id[i] = i; reg[i] = OTHERS(i); i++ :: else -> break od; i = 0 };
end:
  do
  WRITE(0)
#if WRITES > 1
  WRITE(1)
#endif
  LOSE(0) LOSE(1) LOSE(2)
  RM(0) RM(1) RM(2)
  REBUILD(0, 1, 2) REBUILD(0, 2, 1) REBUILD(1, 0, 2) REBUILD(1, 2, 0) REBUILD(2, 0, 1) REBUILD(2, 1, 0)
  :: d_step { rebuild == checked -> announce(); CLEAR }
  :: d_step { rebuild == locked -> copy(); CLEAR }
  TELL(0) TELL(1) TELL(2)
  :: d_step { rebuild != idle -> give_up(); CLEAR }
  :: d_step { repair == 0 && (gone == NOBODY || gone != 0 && !HAS(reg[0], gone) || gone != 1 && !HAS(reg[1], gone) || gone != 2 && !HAS(reg[2], gone)) ->
       i = 0; do :: i < N -> fresh[i] = 0; i++ :: else -> break od; repair = 1; CLEAR }
  COMPARE(1, 0, 1, 2) COMPARE(2, 0, 2, 1) COMPARE(3, 1, 2, 0)
  UNMARK(4, 0) UNMARK(5, 1) UNMARK(6, 2)
  GET_BEGINS(0) GET_BEGINS(1) GET_BEGINS(2) GET_ASKS(0) GET_ASKS(1) GET_ASKS(2) GET_READS
  :: d_step { check() }
  od
}
