/* Two time steps of a three-point stencil on three tiles: a (cells 0-2) to b (3-5) and back.
 * Tile t of the second step reads b and overwrites a where its neighbours have read it, so it
 * waits for its neighbours' first step: counters 0-2, one a tile.  The order is skewed. */
#define INSTRUCTIONS 6
#define COUNTERS 3
#define CELLS 6

/* By instruction, in program order: tiles 0-2 of the first step, then of the second.
 * Sets are bits, the lowest is member 0. */
byte reads[INSTRUCTIONS] = { 3, 7, 6, 24, 56, 48 };
byte writes[INSTRUCTIONS] = { 3, 4, 5, 0, 1, 2 };
byte signals[INSTRUCTIONS] = { 1, 2, 4, 0, 0, 0 };
byte waits[INSTRUCTIONS] = { 0, 0, 0, 3, 7, 6 };
byte order[INSTRUCTIONS] = { 0, 1, 3, 2, 4, 5 };
