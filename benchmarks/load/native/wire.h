/* Shared by the load client and the engine: time, growing buffers, numbers in text, and the reading of HTTP/1.1 messages. */
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
  size_t taken; /* how much of it has gone out */
} Buffer;

/* One message as it is read. `head` is whole once `state` has left HEAD, and ends with a zero byte. */
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
/* Writes what has not gone out; false if the connection is lost. All is out when `taken` equals `length`. */
bool buffer_flush(Buffer *buffer, int fd);

void message_begin(Message *message, bool is_answer);
void message_free(Message *message);
/* Reads on. Returns how many bytes were used: all of them, unless the message is done (or bad) before. */
size_t message_take(Message *message, const char *bytes, size_t count, BodyTaker take, void *to);
/* The connection has ended: whether the message was whole all the same. */
bool message_ends_by_close(Message *message);
/* The value of a header, or NULL. */
const char *message_header(const Message *message, const char *name);

/* The number after `name` in the text, or `otherwise`. */
long number_after(const char *text, const char *name, long otherwise);
/* A socket that listens on loopback; `port` 0: any, which is told back. */
int listen_on(int *port);
void set_no_delay(int fd);
/* An epoll descriptor's timer that ticks each `us`; 0 stops it. */
void set_ticks(int timer, long us);
#endif
