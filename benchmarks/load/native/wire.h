/* Used by the load client and the engine: time, growing buffers, numbers in text, and a reader of HTTP/1.1 messages. */
#ifndef WIRE_H
#define WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tokens carry the instant they were made, in microseconds of the machine's monotonic clock: "T" and 16 digits. */
#define STAMP_DIGITS 16
#define STAMP_BYTES (1 + STAMP_DIGITS + 1)

typedef struct {
  char *bytes;
  size_t length, capacity;
  size_t taken; /* how many bytes were sent */
} Buffer;

/* A message that is being read. `head` is complete when `state` has left HEAD, and ends with a zero byte. */
typedef struct {
  enum { HEAD, BODY, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, UNTIL_CLOSE, DONE, BAD } state;
  Buffer head;
  uint64_t left; /* of the body, or of its present chunk */
  bool closes;   /* the connection ends with this message */
  bool is_answer;
  int status;
} Message;

typedef void (*BodyTaker)(void *to, const char *bytes, size_t count);

uint64_t now_us(void);
void fail(const char *what);

void buffer_add(Buffer *buffer, const void *bytes, size_t count);
void buffer_print(Buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buffer_clear(Buffer *buffer);
void buffer_free(Buffer *buffer);
/* Sends the rest. Returns false if the connection is lost. All bytes are sent when `taken` equals `length`. */
bool buffer_flush(Buffer *buffer, int fd);

void message_begin(Message *message, bool is_answer);
void message_free(Message *message);
/* Reads further bytes. Returns how many were used: all, unless the message ends or is malformed before. */
size_t message_take(Message *message, const char *bytes, size_t count, BodyTaker take, void *to);
/* Returns whether the message is complete although the connection has ended. */
bool message_ends_by_close(Message *message);
/* Returns the value of a header, or NULL. */
const char *message_header(const Message *message, const char *name);

/* Returns the number after `name` in the text, or `otherwise`. */
long number_after(const char *text, const char *name, long otherwise);
/* Opens a socket that listens on loopback. If `port` is 0, chooses a free port and stores it there. */
int listen_on(int *port);
void set_no_delay(int fd);
/* Sets a timer that ticks each `us`. 0 stops it. */
void set_ticks(int timer, long us);
#endif
