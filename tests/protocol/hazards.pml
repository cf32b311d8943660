/* Every kind of dependence by itself, so that each wait is needed:
 *
 *   0:          x        signals 0
 *   1: x   ->   y        waits for 0 (RAW);            signals 1, 2
 *   2: x   ->   z        waits for 0 (RAW);            signals 1, 3
 *   3:          x        waits for 1 (WAR, two readers);  signals 4
 *   4: y   ->   z        waits for 2 (RAW), 3 (WAW);   signals 5
 *   5: x z ->   y        waits for 4 (RAW), 5 (RAW)
 */
#define INSTRUCTIONS 6
#define COUNTERS 6
#define CELLS 3

/* Sets are bits, the lowest is member 0; cells are x, y, z. */
byte reads[INSTRUCTIONS] = { 0, 1, 1, 0, 2, 5 };
byte writes[INSTRUCTIONS] = { 0, 1, 2, 0, 2, 1 };
byte signals[INSTRUCTIONS] = { 1, 6, 10, 16, 32, 0 };
byte waits[INSTRUCTIONS] = { 0, 1, 1, 2, 12, 48 };
byte order[INSTRUCTIONS] = { 0, 2, 1, 3, 4, 5 };
