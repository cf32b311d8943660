/* A reduction over two tiles and a normalisation in place: cells 0 and 1 hold the tiles, 2 and 3
 * their sums, 4 the sum of all.  Counter 0 collects the sums of the tiles, counter 1 the total. */
#define INSTRUCTIONS 5
#define COUNTERS 2
#define CELLS 5

/* By instruction: two sums, their sum, two tiles normalised.  Sets are bits, the lowest is
 * member 0. */
byte reads[INSTRUCTIONS] = { 1, 2, 12, 17, 18 };
byte writes[INSTRUCTIONS] = { 2, 3, 4, 0, 1 };
byte signals[INSTRUCTIONS] = { 1, 1, 2, 0, 0 };
byte waits[INSTRUCTIONS] = { 0, 0, 1, 2, 2 };
byte order[INSTRUCTIONS] = { 0, 1, 2, 3, 4 };
