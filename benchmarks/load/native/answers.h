/* The answers that the load client received: whether each is whole, and how long everything took. */
#ifndef ANSWERS_H
#define ANSWERS_H
#include "histogram.h"
#include "wire.h"

/* One answer while it comes. */
typedef struct {
  Message message;
  Buffer line; /* of an event, or all of a JSON answer */
  uint64_t began_us, token_us;
  long tokens;
  bool has_byte, is_done, has_error;
} Answer;

typedef enum { WHOLE, REFUSED, CUT, UNDONE, MISCOUNTED, TOLD, UNCONNECTED, STALLED, ENDINGS } Ending;

typedef struct {
  long endings[ENDINGS]; /* from the beginning to the end of the run */
  int last_status;
  long requests, tokens; /* these and all below: while measuring */
  uint64_t bytes;
  Histogram first_byte, first_token, whole, gap, delay;
} Figures;

extern Figures figures;
extern bool is_measuring;

void answer_begin(Answer *answer);
void answer_free(Answer *answer);
/* Takes what came of an answer at `now`; the rest of it, after its end, is the caller's. */
size_t answer_take(Answer *answer, const char *bytes, size_t count, bool is_stream, uint64_t now);
/* Judges an answer that has ended, and counts it. */
Ending answer_end(Answer *answer, bool is_stream, long tokens_expected, uint64_t now);
void count_ending(Ending ending);
void figures_print(double seconds, double cpu_seconds);
#endif
