/* Checks whether each answer of the load client is whole, and measures its times. */
#ifndef ANSWERS_H
#define ANSWERS_H
#include "histogram.h"
#include "wire.h"

/* An answer that is being received. */
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
  long requests, tokens; /* these and all below are counted during the measured time */
  uint64_t bytes;
  Histogram first_byte, first_token, whole, gap, delay;
} Figures;

extern Figures figures;
extern bool is_measuring;

void answer_begin(Answer *answer);
void answer_free(Answer *answer);
/* Takes bytes of an answer that arrived at `now`. Bytes after its end belong to the caller. */
size_t answer_take(Answer *answer, const char *bytes, size_t count, bool is_stream, uint64_t now);
/* Decides how an answer ended, and counts it. */
Ending answer_end(Answer *answer, bool is_stream, long tokens_expected, uint64_t now);
void count_ending(Ending ending);
void figures_print(double seconds, double cpu_seconds);
#endif
