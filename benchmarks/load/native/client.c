/* The load client. Keeps a number of connections busy, each with one request after the other, and counts the answers. One
 * thread. Options are pairs, such as `--port 8080,8081 --connections 64`; see `options` below. Connections use the ports in
 * turn. Prints {"event":"measuring","open":…} when the measured time begins, {"event":"measured"} when it ends, and
 * {"event":"result",…} at the end. */
#define _GNU_SOURCE
#include "answers.h"
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define RETRY_US 10000
#define TICK_US 1000
#define WHOLE_REQUEST_BYTES 65536 /* up to here a request is one write */
#define PORTS_MAX 16

static struct {
  int connections;
  double seconds, warmup, ramp, drain, stall; /* seconds; drain: how long running answers may end after the measured time */
  long tokens, itl, wait, each;               /* each: requests per connection, 0: no limit; itl and wait in microseconds */
  long body;                                  /* bytes of text added to each request */
  bool stream;
  const char *port, *path, *model, *keys, *steer, *headers; /* keys: file, one a line; steer: more of it; headers: whole lines */
} options = {.connections = 1, .seconds = 1, .tokens = 1, .stall = 60, .port = "", .path = "/v1/chat/completions", .model = "load", .steer = "", .headers = ""};

typedef struct {
  int fd;
  enum { RESTING, CONNECTING, SENDING, READING, FINISHED } state;
  bool is_watched_for_room;
  Buffer out;
  size_t body_sent;
  Answer answer;
  long requests;
  uint64_t launch_us, heard_us;
} Connection;

static int ports[PORTS_MAX], ports_count;
static Connection *connections;
static int poll_fd, resting, finished;
static Buffer body, *keys;
static size_t keys_count, next_key;

static void read_keys(void) {
  char line[512];
  FILE *file = fopen(options.keys, "r");
  if (!file) fail(options.keys);
  while (fgets(line, sizeof line, file)) {
    keys = realloc(keys, (keys_count + 1) * sizeof *keys);
    keys[keys_count] = (Buffer){0};
    buffer_add(&keys[keys_count++], line, strcspn(line, "\n"));
  }
  fclose(file);
}

static void read_ports(void) {
  for (const char *at = options.port; at && ports_count < PORTS_MAX; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    ports[ports_count++] = atoi(at);
}

static int port_of(const Connection *c) { return ports[(c - connections) % ports_count]; }

static void make_body(void) {
  buffer_print(&body, "{\"model\":\"%s\",\"stream\":%s,\"messages\":[{\"role\":\"user\",\"content\":\"load:tokens=%ld,itl=%ld,wait=%ld%s%s ",
               options.model, options.stream ? "true" : "false", options.tokens, options.itl, options.wait,
               options.steer[0] ? "," : "", options.steer);
  for (long n = 0; n < options.body; n++) buffer_add(&body, n % 64 == 63 ? " " : "x", 1);
  buffer_print(&body, "\"}]}");
}

static void watch(Connection *c, int operation, bool for_room) {
  struct epoll_event event = {.events = EPOLLIN | (for_room ? (uint32_t)EPOLLOUT : 0), .data.ptr = c};
  c->is_watched_for_room = for_room;
  if (epoll_ctl(poll_fd, operation, c->fd, &event) != 0) fail("epoll");
}

static void rest(Connection *c, uint64_t until_us) {
  if (c->fd >= 0) close(c->fd);
  c->fd = -1;
  c->state = RESTING;
  buffer_clear(&c->out);
  c->launch_us = until_us;
  resting++;
}

static void failed(Connection *c, Ending ending) {
  count_ending(ending);
  rest(c, now_us() + RETRY_US);
}

static void launch(Connection *c) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port_of(c))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  resting--;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (c->fd < 0) fail("no descriptor left (see ulimit -n)");
  c->state = CONNECTING;
  c->heard_us = now_us();
  if (connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) failed(c, UNCONNECTED);
  else watch(c, EPOLL_CTL_ADD, true);
}

/* Sends as much as the socket takes. Returns false if the connection is lost. */
static bool send_on(Connection *c) {
  if (!buffer_flush(&c->out, c->fd)) return false;
  while (c->out.length == 0 && c->body_sent < body.length) {
    ssize_t sent = write(c->fd, body.bytes + c->body_sent, body.length - c->body_sent);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) break;
    c->body_sent += (size_t)sent;
  }
  bool is_sent = c->out.length == 0 && c->body_sent == body.length;
  if (is_sent) c->state = READING;
  if (c->is_watched_for_room == is_sent) watch(c, EPOLL_CTL_MOD, !is_sent);
  return true;
}

static bool begin_request(Connection *c) {
  const Buffer *key = keys_count > 0 ? &keys[next_key++ % keys_count] : NULL;
  buffer_print(&c->out, "POST %s HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n%s", options.path,
               port_of(c), body.length, options.headers);
  if (key) buffer_print(&c->out, "authorization: Bearer %.*s\r\n", (int)key->length, key->bytes);
  buffer_print(&c->out, "\r\n");
  c->body_sent = 0;
  if (body.length <= WHOLE_REQUEST_BYTES) {
    buffer_add(&c->out, body.bytes, body.length);
    c->body_sent = body.length;
  }
  c->state = SENDING;
  c->requests++;
  answer_begin(&c->answer);
  c->heard_us = c->answer.began_us;
  return send_on(c);
}

/* Continues after the end of an answer. */
static void go_on(Connection *c, Ending ending) {
  if (options.each > 0 && c->requests >= options.each) {
    close(c->fd);
    c->fd = -1;
    c->state = FINISHED;
    answer_free(&c->answer); /* buffers are made again when needed */
    finished++;
  } else if (ending != WHOLE) rest(c, now_us() + RETRY_US);
  else if (c->answer.message.closes) rest(c, 0), launch(c);
  else if (!begin_request(c)) failed(c, CUT);
}

static void read_answer(Connection *c) {
  static char bytes[1 << 18];
  ssize_t count = read(c->fd, bytes, sizeof bytes);
  uint64_t now = now_us();
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    c->heard_us = now;
    answer_take(&c->answer, bytes, (size_t)count, options.stream, now);
  } else message_ends_by_close(&c->answer.message);
  bool is_over = count <= 0 || c->answer.message.state == DONE || c->answer.message.state == BAD;
  if (is_over) go_on(c, answer_end(&c->answer, options.stream, options.tokens, now));
}

static void on_event(Connection *c, uint32_t events) {
  if (c->state == CONNECTING) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      failed(c, UNCONNECTED);
      return;
    }
    set_no_delay(c->fd);
    if (!begin_request(c)) failed(c, CUT);
    return;
  }
  /* Reads an early refusal even while the request is still being sent. */
  if (c->state == SENDING && (events & EPOLLOUT) && !send_on(c)) {
    failed(c, CUT);
    return;
  }
  if ((c->state == SENDING || c->state == READING) && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) read_answer(c);
}

/* Starts the due connections and ends the stalled ones. */
static void on_tick(uint64_t now) {
  static uint64_t looked_us;
  bool look = now - looked_us > 1000000;
  if (look) looked_us = now;
  if (!look && resting == 0) return;
  for (int n = 0; n < options.connections; n++) {
    Connection *c = &connections[n];
    if (c->state == RESTING && c->launch_us <= now) launch(c);
    else if (look && c->state != RESTING && c->state != FINISHED && (double)(now - c->heard_us) > options.stall * 1e6) failed(c, STALLED);
  }
}

static int open_answers(void) {
  int open = 0;
  for (int n = 0; n < options.connections; n++) open += connections[n].state == READING && connections[n].answer.has_byte;
  return open;
}

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Moves to the next part of the run. Returns false at the end. */
static bool go_through(uint64_t now) {
  static uint64_t start_us, from_us, to_us;
  static double cpu_from, cpu;
  if (start_us == 0) start_us = now;
  if (from_us == 0 && (double)(now - start_us) >= (options.ramp + options.warmup) * 1e6) {
    from_us = now;
    cpu_from = cpu_seconds();
    printf("{\"event\":\"measuring\",\"open\":%d}\n", open_answers());
    fflush(stdout);
    is_measuring = true;
  }
  if (from_us == 0) return true;
  if (to_us == 0 && ((double)(now - from_us) >= options.seconds * 1e6 || finished == options.connections)) {
    to_us = now;
    is_measuring = false;
    cpu = cpu_seconds() - cpu_from;
    printf("{\"event\":\"measured\",\"open\":%d}\n", open_answers());
    fflush(stdout);
  }
  if (to_us == 0 || ((double)(now - to_us) < options.drain * 1e6 && finished < options.connections)) return true;
  figures_print((double)(to_us - from_us) / 1e6, cpu);
  return false;
}

static void read_options(int count, char **given) {
  const struct { const char *name; enum { INT, LONG, DOUBLE, BOOL, TEXT } kind; void *to; } known[] = {
      {"port", TEXT, &options.port}, {"connections", INT, &options.connections}, {"seconds", DOUBLE, &options.seconds},
      {"warmup", DOUBLE, &options.warmup}, {"ramp", DOUBLE, &options.ramp}, {"drain", DOUBLE, &options.drain},
      {"stall", DOUBLE, &options.stall}, {"tokens", LONG, &options.tokens}, {"itl", LONG, &options.itl},
      {"wait", LONG, &options.wait}, {"each", LONG, &options.each}, {"body", LONG, &options.body},
      {"stream", BOOL, &options.stream}, {"path", TEXT, &options.path}, {"model", TEXT, &options.model},
      {"keys", TEXT, &options.keys}, {"steer", TEXT, &options.steer}, {"headers", TEXT, &options.headers}};
  for (int n = 1; n < count; n += 2) {
    size_t at = 0;
    while (at < sizeof known / sizeof known[0] && (strncmp(given[n], "--", 2) != 0 || strcmp(given[n] + 2, known[at].name) != 0)) at++;
    if (at == sizeof known / sizeof known[0] || n + 1 == count) {
      fprintf(stderr, "unknown option, or one without its value: %s\n", given[n]);
      exit(2);
    }
    switch (known[at].kind) {
      case INT: *(int *)known[at].to = atoi(given[n + 1]); break;
      case LONG: *(long *)known[at].to = atol(given[n + 1]); break;
      case DOUBLE: *(double *)known[at].to = atof(given[n + 1]); break;
      case BOOL: *(bool *)known[at].to = atoi(given[n + 1]) != 0; break;
      case TEXT: *(const char **)known[at].to = given[n + 1]; break;
    }
  }
}

int main(int count, char **given) {
  signal(SIGPIPE, SIG_IGN);
  read_options(count, given);
  read_ports();
  if (options.keys) read_keys();
  make_body();
  connections = calloc((size_t)options.connections, sizeof *connections);
  uint64_t start = now_us();
  for (int n = 0; n < options.connections; n++) {
    connections[n].fd = -1;
    rest(&connections[n], start + (uint64_t)(options.ramp * 1e6 * n / options.connections));
  }
  poll_fd = epoll_create1(0);
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct epoll_event on_timer = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, timer, &on_timer);
  set_ticks(timer, TICK_US);
  for (bool is_over = false; !is_over;) {
    struct epoll_event events[256];
    int ready = epoll_wait(poll_fd, events, 256, -1);
    for (int n = 0; n < ready; n++) {
      if (events[n].data.ptr) {
        on_event(events[n].data.ptr, events[n].events);
        continue;
      }
      uint64_t ticks, now = now_us();
      if (read(timer, &ticks, sizeof ticks) < 0) continue;
      on_tick(now);
      is_over = !go_through(now);
    }
  }
}
