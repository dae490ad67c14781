/* See wire.h. */
#define _GNU_SOURCE
#include "wire.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

uint64_t now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static void buffer_room(Buffer *buffer, size_t count) {
  size_t wanted = buffer->length + count;
  if (wanted <= buffer->capacity) return;
  if (wanted < 2 * buffer->capacity) wanted = 2 * buffer->capacity;
  buffer->bytes = realloc(buffer->bytes, wanted);
  if (!buffer->bytes) fail("no memory");
  buffer->capacity = wanted;
}

void buffer_add(Buffer *buffer, const void *bytes, size_t count) {
  buffer_room(buffer, count);
  memcpy(buffer->bytes + buffer->length, bytes, count);
  buffer->length += count;
}

void buffer_print(Buffer *buffer, const char *format, ...) {
  va_list arguments;
  for (;;) {
    size_t room = buffer->capacity - buffer->length;
    va_start(arguments, format);
    int count = vsnprintf(buffer->bytes ? buffer->bytes + buffer->length : NULL, room, format, arguments);
    va_end(arguments);
    if ((size_t)count < room) {
      buffer->length += (size_t)count;
      return;
    }
    buffer_room(buffer, (size_t)count + 1);
  }
}

void buffer_clear(Buffer *buffer) { buffer->length = buffer->taken = 0; }

void buffer_free(Buffer *buffer) {
  free(buffer->bytes);
  *buffer = (Buffer){0};
}

bool buffer_flush(Buffer *buffer, int fd) {
  while (buffer->taken < buffer->length) {
    ssize_t sent = write(fd, buffer->bytes + buffer->taken, buffer->length - buffer->taken);
    if (sent > 0) buffer->taken += (size_t)sent;
    else if (errno == EAGAIN) return true;
    else if (errno != EINTR) return false;
  }
  buffer_clear(buffer);
  return true;
}

void message_begin(Message *message, bool is_answer) {
  buffer_clear(&message->head);
  message->state = HEAD;
  message->left = 0;
  message->closes = false;
  message->is_answer = is_answer;
  message->status = 0;
}

void message_free(Message *message) { buffer_free(&message->head); }

const char *message_header(const Message *message, const char *name) {
  size_t length = strlen(name);
  for (const char *line = strstr(message->head.bytes, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
    if (strncasecmp(line + 2, name, length) != 0 || line[2 + length] != ':') continue;
    const char *value = line + 3 + length;
    while (*value == ' ') value++;
    return value;
  }
  return NULL;
}

static void read_head(Message *message) {
  const char *length = message_header(message, "content-length");
  const char *coding = message_header(message, "transfer-encoding");
  const char *connection = message_header(message, "connection");
  if (message->is_answer) message->status = atoi(message->head.bytes + strcspn(message->head.bytes, " "));
  message->closes = connection && strncasecmp(connection, "close", 5) == 0;
  if (coding && strncasecmp(coding, "chunked", 7) == 0) message->state = CHUNK_SIZE;
  else if (length) {
    message->left = strtoull(length, NULL, 10);
    message->state = message->left > 0 ? BODY : DONE;
  } else if (message->is_answer && message->status >= 200) {
    message->closes = true;
    message->state = UNTIL_CLOSE;
  } else message->state = DONE;
}

/* Adds to the head. Returns how many bytes belong to it. */
static size_t take_head(Message *message, const char *bytes, size_t count) {
  size_t before = message->head.length, from = before < 3 ? 0 : before - 3;
  buffer_add(&message->head, bytes, count);
  char *end = memmem(message->head.bytes + from, message->head.length - from, "\r\n\r\n", 4);
  if (!end) {
    if (message->head.length > 65536) message->state = BAD;
    return count;
  }
  size_t used = (size_t)(end + 4 - message->head.bytes);
  message->head.length = used;
  buffer_add(&message->head, "", 1);
  read_head(message);
  return used - before;
}

/* Takes one byte between chunks. */
static void take_frame_byte(Message *message, char byte) {
  bool is_digit = (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'f');
  switch (message->state) {
    case CHUNK_SIZE:
      if (is_digit) message->left = message->left * 16 + (uint64_t)(byte <= '9' ? byte - '0' : (byte | 32) - 'a' + 10);
      else if (byte == '\n') message->state = message->left > 0 ? CHUNK_DATA : TRAILER;
      else if (byte != '\r') message->state = BAD; /* nobody here sends extensions */
      break;
    case CHUNK_END:
      if (byte == '\n') message->state = CHUNK_SIZE;
      break;
    default: /* TRAILER: `left` counts the line's bytes; an empty line ends it */
      if (byte == '\n' && message->left == 0) message->state = DONE;
      else if (byte == '\n') message->left = 0;
      else if (byte != '\r') message->left++;
  }
}

size_t message_take(Message *message, const char *bytes, size_t count, BodyTaker take, void *to) {
  size_t used = 0;
  while (used < count && message->state != DONE && message->state != BAD) {
    size_t rest = count - used;
    if (message->state == HEAD) {
      used += take_head(message, bytes + used, rest);
    } else if (message->state == BODY || message->state == CHUNK_DATA || message->state == UNTIL_CLOSE) {
      size_t part = message->state != UNTIL_CLOSE && message->left < rest ? (size_t)message->left : rest;
      take(to, bytes + used, part);
      used += part;
      if (message->state == UNTIL_CLOSE) continue;
      message->left -= part;
      if (message->left == 0) message->state = message->state == BODY ? DONE : CHUNK_END;
    } else take_frame_byte(message, bytes[used++]);
  }
  return used;
}

bool message_ends_by_close(Message *message) {
  if (message->state == UNTIL_CLOSE) message->state = DONE;
  return message->state == DONE;
}

long number_after(const char *text, const char *name, long otherwise) {
  const char *found = strstr(text, name);
  return found ? atol(found + strlen(name)) : otherwise;
}

int listen_on(int *port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), yes = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
  socklen_t length = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 4096) != 0) fail("cannot listen");
  getsockname(fd, (struct sockaddr *)&address, &length);
  *port = ntohs(address.sin_port);
  return fd;
}

void set_no_delay(int fd) {
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void set_ticks(int timer, long us) {
  struct timespec each = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
  struct itimerspec ticks = {.it_interval = each, .it_value = each};
  timerfd_settime(timer, 0, &ticks, NULL);
}
