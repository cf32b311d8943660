/* The megakernel's queue protocol; docs/megakernel-protocol.md tells what is modelled and assumed.
 *
 *   spin -a -DSTENCIL queue.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan -b -m100000
 *
 * Configurations, as -D:
 *   STENCIL, HAZARDS, REDUCTION  the plan: instructions, counters and order
 *   WORKERS           workers a launch (3); how many are resident is chosen anew for each launch
 *   LAUNCHES          launches of one prepared run, on the same control memory (2)
 *   FIRST_EPOCH       of the first launch; 255 makes all 8-bit values wrap (1)
 *   BOUNDED           a wait may run out; else waits have no bound, and a stall is a deadlock.
 *                     The next launch is in the queue already and finds the same control memory
 *   RENEWED           the same, but the host sees the stall first and makes the memory new
 *   COUNTED           the workers count the launches; else the host gives each its number
 *   POLLING           waits and the host's wait are loops, for the claim "ends"
 * Mutations, as -D, each of which breaks the protocol: see test_model.py.
 *
 * Every statement outside atomic and d_step is a step at which another process may come between.
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef LAUNCHES
#define LAUNCHES 2
#endif
#ifndef FIRST_EPOCH
#define FIRST_EPOCH 1
#endif

#if defined(HAZARDS)
#include "hazards.pml"
#elif defined(REDUCTION)
#include "reduction.pml"
#else
#include "stencil.pml"
#endif

#ifdef RENEWED
#define BOUNDED
#endif

/* Device words are 8 bits wide here, 32 on the device; all arithmetic wraps. */
#define WORD(value) ((value) & 255)
#define NOT_BEHIND(value, target) (WORD((value) - (target)) < 128)

/* ------------------------------------------------------------------ control memory */
byte head;                  /* the ticket counter */
byte counter[COUNTERS];     /* completions, never reset */
byte arrived;               /* workers that have started, never reset */
byte launches;              /* launches that all workers have left */
byte gone;                  /* workers that have left, never reset */
byte mode;                  /* 2 * epoch + schedule: a schedule of an older epoch is none */
bit claimed;                /* somebody's wait has run out */
bit stalled;                /* and is recorded */
byte record_instruction, record_counter, record_expected, record_seen;

#define DYNAMIC 0
#define STATIC 1
#ifdef MODE_WITHOUT_EPOCH
#define DECIDED(epoch) (mode != WORD(2 * (FIRST_EPOCH - 1)))
#else
#define DECIDED(epoch) ((mode >> 1) == ((epoch) & 127))
#endif

/* ------------------------------------------------------- the device and what it works on */
byte completions[COUNTERS]; /* of each counter in one launch: how many instructions signal it */
byte cell[CELLS];           /* which launch's instruction wrote last, see VERSION; 0: none */
byte pending_cell[WORKERS]; /* a store that others do not see yet: cell + 1, or 0 */
byte pending_version[WORKERS];
byte launch;                /* how many launches the host has started */
byte places;                /* free places for resident workers */
byte ended;                 /* workers of this launch that have left */
byte ran;                   /* instructions of this launch that have begun, as bits */
bit stalled_before;         /* an earlier launch stalled */
byte renewed;               /* how many launches the memory has seen that was replaced */
bit finished;               /* the last launch has ended */

#define VERSION(number, instruction) (1 + ((number) - 1) * INSTRUCTIONS + (instruction))
/* The number of the launch that a worker is in. */
#ifdef COUNTED
#define OWN epoch
#else
#define OWN EPOCH(number)
#endif

#define HAS(set, member) (((set) >> (member)) & 1)
#define EPOCH(number) \
    WORD(FIRST_EPOCH + (number) - 1 - ((number) > renewed -> renewed : 0))

#ifdef NO_LAST_TICKET
#define TICKETS INSTRUCTIONS
#else
#define TICKETS (INSTRUCTIONS + WORKERS)
#endif

#ifdef HEAD_WITHOUT_EPOCH
#define FIRST_TICKET(epoch) 0
#else
#define FIRST_TICKET(epoch) (((epoch) - 1) * TICKETS)
#endif

#ifdef COUNTERS_WITHOUT_EPOCH
#define TARGET(epoch, c) WORD(completions[c])
#else
#define TARGET(epoch, c) WORD((epoch) * completions[c])
#endif

#ifdef PLAIN_COMPARE
#define REACHED(epoch, c) (counter[c] >= TARGET(epoch, c))
#else
#define REACHED(epoch, c) NOT_BEHIND(counter[c], TARGET(epoch, c))
#endif

#ifdef DROPPED_WAIT
hidden byte dropped;        /* the wait that is left out; the environment says which */
#define WAITS(i, c) (HAS(waits[i], c) && dropped != (i) * COUNTERS + (c))
#else
#define WAITS(i, c) HAS(waits[i], c)
#endif

#ifdef CONSUMER_FIRST
#define TABLE(place) order[INSTRUCTIONS - 1 - (place)]
#else
#define TABLE(place) order[place]
#endif

hidden byte at, by, version; /* scratch of d_steps */

/* The version of cell ``at`` that the first ``until`` instructions of the program leave. */
inline expected_version(number, until) {
    by = 0;
    version = 0;
    do
    :: by < INSTRUCTIONS ->
        if
        :: writes[by] == at && by < until -> version = VERSION(number, by)
        :: writes[by] == at && by >= until && number > 1 && version < VERSION(number, 0) ->
            version = VERSION(number - 1, by)
        :: else
        fi;
        by++
    :: else -> break
    od
}

/* All loads of an instruction.  Each finds what a sequential run of the program finds. */
inline load(i, number) {
    d_step {
        at = 0;
        do
        :: at < CELLS ->
            if
            :: HAS(reads[i], at) ->
                expected_version(number, i);
                assert(cell[at] == version)
            :: else
            fi;
            at++
        :: else -> break
        od;
        at = 0; by = 0; version = 0
    }
}

/* fetch_add(counter, 1) on each counter that the instruction signals. */
inline publish(i, c) {
    c = 0;
    do
    :: atomic { c < COUNTERS && HAS(signals[i], c) -> counter[c]++; c++ }
    :: atomic { c < COUNTERS && !HAS(signals[i], c) -> c++ }
    :: atomic { c == COUNTERS -> c = 0; break }
    od
}

/* Compare and swap from undecided. */
inline decide(number, schedule) {
#ifdef MODE_WITHOUT_SWAP
    mode = WORD(2 * OWN + schedule)
#else
    atomic {
        if
        :: !DECIDED(OWN) -> mode = WORD(2 * OWN + schedule)
        :: else
        fi
    }
#endif
}

/* A store becomes visible some time after it was made. */
proctype memory() {
    byte w;
end:
    do
    :: atomic {
            pending_cell[0] ->
            cell[pending_cell[0] - 1] = pending_version[0];
            pending_cell[0] = 0; pending_version[0] = 0
        }
#if WORKERS > 1
    :: atomic {
            pending_cell[1] ->
            cell[pending_cell[1] - 1] = pending_version[1];
            pending_cell[1] = 0; pending_version[1] = 0
        }
#endif
#if WORKERS > 2
    :: atomic {
            pending_cell[2] ->
            cell[pending_cell[2] - 1] = pending_version[2];
            pending_cell[2] = 0; pending_version[2] = 0
        }
#endif
    od
}

proctype worker(byte w) {
    byte number;            /* of the launch, from 1 */
    byte place, i, c, seen;
    bit schedule, last;
#ifdef COUNTED
    byte epoch;
#endif

    do
    :: number == LAUNCHES -> break
    :: number < LAUNCHES ->
        atomic { launch == number + 1 && places > 0 -> places--; number++ }
#ifdef COUNTED
        epoch = WORD(launches + 1);
#endif

#ifdef STATIC_WITHOUT_RESIDENCE
        schedule = STATIC;
        arrived++;
#else
        atomic { arrived++; last = (arrived == WORD(OWN * WORKERS)) }
        if
        :: last -> decide(number, STATIC)
        :: !last && DECIDED(OWN)
        :: !last && !DECIDED(OWN) -> decide(number, DYNAMIC) /* polled long enough */
        fi;
        schedule = mode & 1;
#endif
        place = w;

        do
        ::
#ifndef STALL_NOT_LOOKED_AT
            if
            :: stalled -> goto leave
            :: else
            fi;
#endif
            /* ------------------------------------------------ the next instruction */
            atomic {
                if
                :: schedule == DYNAMIC -> place = WORD(head - FIRST_TICKET(OWN)); head++
                :: else
                fi;
                if
                :: place >= INSTRUCTIONS -> break
                :: else
                fi;
                i = TABLE(place);
                assert(!stalled_before);
                assert(!HAS(ran, i));
                ran = ran | (1 << i)
            }
#ifdef COUNT_CLAIMS
            publish(i, c);
#endif
#ifdef RELAXED_WAIT
            if
            :: load(i, number)
            :: skip
            fi;
#endif
            /* ------------------------------------------------------------ its waits */
            do
            :: atomic { c == COUNTERS -> c = 0; break }
            :: atomic { c < COUNTERS && !WAITS(i, c) -> c++ }
            :: atomic { c < COUNTERS && WAITS(i, c) && REACHED(OWN, c) -> c++ }
#ifdef POLLING
            :: c < COUNTERS && WAITS(i, c) && !REACHED(OWN, c) -> skip
#endif
#ifdef BOUNDED
            :: stalled -> goto leave
            :: atomic {
                    c < COUNTERS && WAITS(i, c) && !REACHED(OWN, c) ->
                    seen = counter[c] /* of the last poll that the bound allows */
                };
                atomic {
                    if
#ifndef EVERY_STALL_RECORDED
                    :: claimed -> goto leave
#endif
                    :: else -> claimed = 1
                    fi
                };
                record_instruction = i;
                record_counter = c;
                record_expected = TARGET(OWN, c);
                record_seen = seen;
                stalled = 1;
                goto leave
#endif
            od;
            /* ------------------------------------------------------------- its work */
#ifndef RELAXED_WAIT
            load(i, number);
#endif
            atomic {
                pending_cell[w] == 0 ->
                pending_cell[w] = writes[i] + 1;
                pending_version[w] = VERSION(number, i)
            }
#ifndef COUNT_CLAIMS
#ifndef RELAXED_PUBLISH
            pending_cell[w] == 0; /* release */
#endif
            publish(i, c);
#endif
            atomic {
                if
                :: schedule == STATIC -> place = place + WORKERS
                :: else
                fi;
                i = 0
            }
        od;
#ifndef STATIC_LEAVES_HEAD
        if
        :: schedule == STATIC && w == 0 -> head = head + TICKETS /* that nobody took */
        :: else
        fi;
#endif
leave:
#ifdef COUNTED
        atomic { gone++; last = (gone == WORD(epoch * WORKERS)) }
#ifdef FIRST_TO_LEAVE_COUNTS
        last = (gone == WORD((epoch - 1) * WORKERS + 1));
#endif
        if
        :: last -> launches = epoch
        :: else
        fi;
#endif
        atomic {
            pending_cell[w] == 0 -> /* the end of a kernel releases */
            place = 0; i = 0; c = 0; seen = 0; schedule = 0; last = 0;
#ifdef COUNTED
            epoch = 0;
#endif
            places++;
            ended++
        }
    od
}

inline check_launch() {
    d_step {
        assert(stalled == claimed);
#ifdef COUNTED
        assert(launches == EPOCH(launch) && gone == WORD(EPOCH(launch) * WORKERS));
#endif
        if
        :: stalled && !stalled_before ->
            assert(HAS(waits[record_instruction], record_counter));
            assert(!NOT_BEHIND(record_seen, record_expected));
            assert(record_expected == TARGET(EPOCH(launch), record_counter))
        :: stalled && stalled_before
        :: !stalled ->
            assert(ran == (1 << INSTRUCTIONS) - 1);
            assert(head == WORD(EPOCH(launch) * TICKETS));
            assert(arrived == WORD(EPOCH(launch) * WORKERS));
            at = 0;
            do
            :: at < COUNTERS ->
                assert(counter[at] == WORD(EPOCH(launch) * completions[at]));
                at++
            :: else -> break
            od;
            at = 0;
            do
            :: at < CELLS ->
                expected_version(launch, INSTRUCTIONS);
                assert(cell[at] == version);
                at++
            :: else -> break
            od
        fi;
        at = 0; by = 0; version = 0
    }
}

/* The control memory as it is before the launch with the first epoch. */
inline new_control() {
    at = 0;
    do
    :: at < COUNTERS -> counter[at] = WORD((FIRST_EPOCH - 1) * completions[at]); at++
    :: else -> break
    od;
    head = WORD((FIRST_EPOCH - 1) * TICKETS);
    arrived = WORD((FIRST_EPOCH - 1) * WORKERS);
    mode = WORD(2 * (FIRST_EPOCH - 1));
#ifdef COUNTED
    launches = WORD(FIRST_EPOCH - 1);
    gone = WORD((FIRST_EPOCH - 1) * WORKERS);
#endif
    claimed = 0; stalled = 0
}

/* After a stall the host makes the control memory new, and the user the data. */
inline renew() {
    d_step {
        new_control();
        renewed = launch;
        at = 0;
        do
        :: at < CELLS -> expected_version(launch, INSTRUCTIONS); cell[at] = version; at++
        :: else -> break
        od;
        at = 0; by = 0; version = 0
    }
}

init {
    byte resident;
#ifdef DROPPED_WAIT
    c_code { dropped = atoi(getenv("DROPPED_WAIT")); };
#endif
    d_step {
        at = 0;
        do
        :: at < INSTRUCTIONS ->
            by = 0;
            do
            :: by < COUNTERS -> completions[by] = completions[by] + HAS(signals[at], by); by++
            :: else -> break
            od;
            at++
        :: else -> break
        od;
        new_control();
        at = 0; by = 0
    }
    atomic {
        run memory();
        run worker(0);
#if WORKERS > 1
        run worker(1);
#endif
#if WORKERS > 2
        run worker(2);
#endif
    }
    do
    :: launch == LAUNCHES -> break
    :: launch < LAUNCHES ->
        select(resident : 1 .. WORKERS);
        atomic { ran = 0; ended = 0; stalled_before = stalled; places = resident; launch++ }
#ifdef RENEWED_IN_FLIGHT
        if
        :: ended == WORKERS -> check_launch()
        :: stalled ->
            renew();
            ended == WORKERS
        fi
#else
        ended == WORKERS;
        check_launch();
#ifdef RENEWED
        if
        :: stalled -> renew()
        :: else
        fi
#endif
#endif
    od;
    finished = 1
}

#ifdef POLLING
ltl ends { <> finished }
#endif
