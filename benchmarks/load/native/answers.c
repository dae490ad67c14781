/* See answers.h. */
#define _GNU_SOURCE
#include "answers.h"
#include <string.h>

Figures figures;
bool is_measuring;

typedef struct {
  Answer *answer;
  uint64_t now;
  bool is_stream;
} Taking;

void answer_begin(Answer *answer) {
  message_begin(&answer->message, true);
  buffer_clear(&answer->line);
  answer->began_us = now_us();
  answer->token_us = 0;
  answer->tokens = 0;
  answer->has_byte = answer->is_done = answer->has_error = false;
}

void answer_free(Answer *answer) {
  message_free(&answer->message);
  buffer_free(&answer->line);
}

/* Returns the time in a stamp, or 0 if these are not 16 digits. */
static uint64_t read_stamp(const char *digits) {
  uint64_t value = 0;
  for (int n = 0; n < STAMP_DIGITS; n++) {
    if (digits[n] < '0' || digits[n] > '9') return 0;
    value = value * 10 + (uint64_t)(digits[n] - '0');
  }
  return value;
}

static void take_token(const Taking *taking, uint64_t made_us) {
  Answer *answer = taking->answer;
  if (taking->is_stream && is_measuring) {
    figures.tokens++;
    histogram_add(&figures.delay, taking->now > made_us ? taking->now - made_us : 0);
    if (answer->tokens > 0) histogram_add(&figures.gap, taking->now - answer->token_us);
    else histogram_add(&figures.first_token, taking->now - answer->began_us);
  }
  answer->token_us = taking->now;
  answer->tokens++;
}

/* Reads a line of a stream, or a whole JSON answer. Stamps begin with zeros, because machines run shorter than 10^14 µs. */
static void read_line(const Taking *taking, const char *line, size_t count) {
  const char *at = line, *end = line + count;
  bool has_token = false;
  while ((at = memmem(at, (size_t)(end - at), "T00", 3)) && at + STAMP_BYTES <= end) {
    uint64_t made_us = read_stamp(++at);
    if (made_us == 0) continue;
    has_token = true;
    take_token(taking, made_us);
  }
  if (has_token) return;
  if (count >= 12 && memcmp(line, "data: [DONE]", 12) == 0) taking->answer->is_done = true;
  else if (memmem(line, count, "\"error\"", 7)) taking->answer->has_error = true;
}

static void take_body(void *to, const char *bytes, size_t count) {
  const Taking *taking = to;
  Answer *answer = taking->answer;
  if (!answer->has_byte && is_measuring) histogram_add(&figures.first_byte, taking->now - answer->began_us);
  answer->has_byte = true;
  const char *newline;
  while (taking->is_stream && (newline = memchr(bytes, '\n', count))) {
    size_t length = (size_t)(newline - bytes);
    if (answer->line.length > 0) {
      buffer_add(&answer->line, bytes, length);
      read_line(taking, answer->line.bytes, answer->line.length);
      buffer_clear(&answer->line);
    } else if (length > 0) read_line(taking, bytes, length);
    bytes = newline + 1;
    count -= length + 1;
  }
  if (count > 0) buffer_add(&answer->line, bytes, count);
}

size_t answer_take(Answer *answer, const char *bytes, size_t count, bool is_stream, uint64_t now) {
  Taking taking = {.answer = answer, .now = now, .is_stream = is_stream};
  if (is_measuring) figures.bytes += count;
  return message_take(&answer->message, bytes, count, take_body, &taking);
}

void count_ending(Ending ending) { figures.endings[ending]++; }

static Ending judge(const Answer *answer, bool is_stream, long tokens_expected) {
  if (answer->message.state != DONE) return CUT;
  if (answer->message.status != 200) return REFUSED;
  if (answer->has_error) return TOLD;
  if (is_stream && !answer->is_done) return UNDONE;
  return answer->tokens == tokens_expected ? WHOLE : MISCOUNTED;
}

Ending answer_end(Answer *answer, bool is_stream, long tokens_expected, uint64_t now) {
  if (!is_stream && answer->line.length > 0) {
    Taking taking = {.answer = answer, .now = now, .is_stream = false};
    read_line(&taking, answer->line.bytes, answer->line.length);
  }
  Ending ending = judge(answer, is_stream, tokens_expected);
  count_ending(ending);
  if (ending == REFUSED) figures.last_status = answer->message.status;
  if (ending == WHOLE && is_measuring) {
    figures.requests++;
    histogram_add(&figures.whole, now - answer->began_us);
  }
  return ending;
}

void figures_print(double seconds, double cpu_seconds) {
  static const char *const names[ENDINGS] = {"whole", "refused", "cut", "undone", "miscounted", "told", "unconnected", "stalled"};
  printf("{\"event\":\"result\",\"seconds\":%.6f,\"cpuSeconds\":%.6f,\"requests\":%ld,\"tokens\":%ld,\"bytes\":%llu,\"lastStatus\":%d,\"endings\":{",
         seconds, cpu_seconds, figures.requests, figures.tokens, (unsigned long long)figures.bytes, figures.last_status);
  for (int n = 0; n < ENDINGS; n++) printf("%s\"%s\":%ld", n ? "," : "", names[n], figures.endings[n]);
  printf("}");
  const struct { const char *name; const Histogram *histogram; } all[] = {
      {"firstByteUs", &figures.first_byte}, {"firstTokenUs", &figures.first_token}, {"wholeUs", &figures.whole},
      {"gapUs", &figures.gap}, {"delayUs", &figures.delay}};
  for (size_t n = 0; n < sizeof all / sizeof all[0]; n++) {
    printf(",");
    histogram_print(all[n].histogram, all[n].name);
  }
  printf("}\n");
}
