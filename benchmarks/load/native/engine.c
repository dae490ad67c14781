/* The engine of the load bench: the parts of vLLM that a router or an agent needs, with answers that cost almost nothing.
 * One thread. `engine PORT MODEL` prints {"port":…} when it listens. GET /load/state returns what it has made. The text of
 * a request controls its answer: load:tokens=200,itl=20000,wait=0,cut=0,short=0,undone=0; times in microseconds. The last
 * three make an answer with a defect that a client must notice: cut after so many tokens, too few tokens, no terminator. */
#define _GNU_SOURCE
#include "wire.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define TICK_US 500
#define WHEEL_SLOTS 4096
#define STEERING_BYTES 16384 /* of a body: the steering stands at its beginning */
#define BATCH_BYTES 16384

typedef struct Connection {
  int fd;
  bool is_writing; /* waits until the socket takes more */
  bool is_streaming;
  Message request;
  Buffer body, out;
  struct { long tokens, itl_us, wait_us, cut, undone, made; bool usage, running_usage; } answer;
  uint64_t due_us;
  struct Connection *next, **link; /* in the wheel */
} Connection;

static int poll_fd, timer_fd, timed;
static bool is_ticking;
static const char *model;
static Connection *wheel[WHEEL_SLOTS];
static uint64_t wheel_tick;
static struct { long requests, tokens, running, left; } counts;

static void wheel_out(Connection *c) {
  if (!c->link) return;
  *c->link = c->next;
  if (c->next) c->next->link = c->link;
  c->link = NULL;
  timed--;
}

static void wheel_in(Connection *c) {
  uint64_t tick = c->due_us / TICK_US;
  if (tick <= wheel_tick) tick = wheel_tick + 1;
  Connection **slot = &wheel[tick % WHEEL_SLOTS];
  c->next = *slot;
  if (c->next) c->next->link = &c->next;
  c->link = slot;
  *slot = c;
  timed++;
  if (is_ticking) return;
  is_ticking = true;
  set_ticks(timer_fd, TICK_US);
}

static void close_connection(Connection *c) {
  wheel_out(c);
  if (c->is_streaming) counts.running--, counts.left++;
  close(c->fd);
  message_free(&c->request);
  buffer_free(&c->body);
  buffer_free(&c->out);
  free(c);
}

static void watch(Connection *c, bool writing) {
  if (c->is_writing == writing) return;
  c->is_writing = writing;
  struct epoll_event event = {.events = EPOLLIN | (writing ? (uint32_t)EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static void send_event(Connection *c, const char *inner, bool with_usage) {
  char text[640], usage[160] = "";
  if (with_usage)
    snprintf(usage, sizeof usage, ",\"usage\":{\"prompt_tokens\":8,\"total_tokens\":%ld,\"completion_tokens\":%ld}",
             8 + c->answer.made, c->answer.made);
  int length = snprintf(text, sizeof text,
                        "data: {\"id\":\"chatcmpl-load\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,"
                        "\"model\":\"%s\",\"choices\":[%s]%s}\n\n", model, inner, usage);
  buffer_print(&c->out, "%x\r\n%s\r\n", (unsigned)length, text);
}

static void send_token(Connection *c) {
  char inner[160];
  c->answer.made++;
  counts.tokens++;
  snprintf(inner, sizeof inner,
           "{\"index\":0,\"delta\":{\"content\":\"T%016llu \"},\"logprobs\":null,\"finish_reason\":null}",
           (unsigned long long)now_us());
  send_event(c, inner, c->answer.running_usage);
}

static void end_stream(Connection *c) {
  send_event(c, "{\"index\":0,\"delta\":{\"content\":\"\"},\"logprobs\":null,\"finish_reason\":\"stop\"}",
             c->answer.running_usage);
  if (c->answer.usage) send_event(c, "", true);
  if (!c->answer.undone) buffer_print(&c->out, "e\r\ndata: [DONE]\n\n\r\n");
  buffer_print(&c->out, "0\r\n\r\n");
  c->is_streaming = false;
  counts.running--;
}

/* Makes the due tokens and sends as much as the socket takes. Returns false if the connection is lost. */
static bool go_on(Connection *c) {
  uint64_t now = now_us();
  for (int batch = 0; c->is_streaming && c->due_us <= now; batch++) {
    if (batch == 4) break; /* others wait */
    while (c->due_us <= now && c->answer.made < c->answer.tokens && c->out.length < BATCH_BYTES) {
      send_token(c);
      c->due_us += (uint64_t)c->answer.itl_us;
      if (c->answer.itl_us > 0 && c->due_us <= now) c->due_us = now + 1; /* what was missed is not made up in a burst */
      if (c->answer.cut > 0 && c->answer.made == c->answer.cut) {
        buffer_flush(&c->out, c->fd);
        return false;
      }
    }
    if (c->answer.made == c->answer.tokens) end_stream(c);
    if (!buffer_flush(&c->out, c->fd)) return false;
    if (c->out.length > 0) break;
  }
  if (!buffer_flush(&c->out, c->fd)) return false;
  watch(c, c->out.length > 0);
  if (c->is_streaming && !c->is_writing) wheel_in(c);
  return true;
}

static void reply(Connection *c, const char *status, const char *type, const char *body) {
  buffer_print(&c->out, "HTTP/1.1 %s\r\ncontent-type: %s\r\ncontent-length: %zu\r\n\r\n%s", status, type, strlen(body), body);
}

static void reply_whole(Connection *c, bool is_chat) {
  Buffer text = {0};
  buffer_print(&text, "{\"id\":\"chatcmpl-load\",\"object\":\"%s\",\"created\":1760000000,\"model\":\"%s\",\"choices\":[{\"index\":0,%s",
               is_chat ? "chat.completion" : "text_completion", model,
               is_chat ? "\"message\":{\"role\":\"assistant\",\"content\":\"" : "\"text\":\"");
  for (long n = 0; n < c->answer.tokens; n++) buffer_print(&text, "T%016llu ", (unsigned long long)now_us());
  counts.tokens += c->answer.tokens;
  buffer_print(&text, "\"%s,\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":8,\"total_tokens\":%ld,\"completion_tokens\":%ld}}",
               is_chat ? "}" : "", 8 + c->answer.tokens, c->answer.tokens);
  reply(c, "200 OK", "application/json", text.bytes);
  buffer_free(&text);
}

static void generate(Connection *c, bool is_chat) {
  buffer_add(&c->body, "", 1);
  const char *text = c->body.bytes, *steering = strstr(text, "load:");
  if (!steering) steering = "";
  c->answer.tokens = number_after(steering, "tokens=", 1) - number_after(steering, "short=", 0);
  c->answer.itl_us = number_after(steering, "itl=", 0);
  c->answer.wait_us = number_after(steering, "wait=", 0);
  c->answer.cut = number_after(steering, "cut=", 0);
  c->answer.undone = number_after(steering, "undone=", 0);
  c->answer.usage = strstr(text, "\"include_usage\":true") != NULL;
  c->answer.running_usage = strstr(text, "\"continuous_usage_stats\":true") != NULL;
  c->answer.made = 0;
  counts.requests++;
  if (!strstr(text, "\"stream\":true")) {
    reply_whole(c, is_chat);
    return;
  }
  buffer_print(&c->out, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
                        "transfer-encoding: chunked\r\n\r\n");
  send_event(c, "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}",
             c->answer.running_usage);
  c->is_streaming = true;
  c->due_us = now_us() + (uint64_t)c->answer.wait_us;
  counts.running++;
}

static void answer(Connection *c) {
  const char *head = c->request.head.bytes;
  bool is_post = strncmp(head, "POST ", 5) == 0;
  const char *path = head + (is_post ? 5 : 4);
  char text[512];
  if (is_post && strncmp(path, "/v1/chat/completions", 20) == 0) generate(c, true);
  else if (is_post && strncmp(path, "/v1/completions", 15) == 0) generate(c, false);
  else if (strncmp(path, "/health", 7) == 0) reply(c, "200 OK", "text/plain", "");
  else if (strncmp(path, "/is_sleeping", 12) == 0) reply(c, "200 OK", "application/json", "{\"is_sleeping\":false}");
  else if (strncmp(path, "/metrics", 8) == 0) {
    snprintf(text, sizeof text, "vllm:num_requests_running{model_name=\"%s\"} %ld\nvllm:num_requests_waiting{model_name=\"%s\"} 0\n",
             model, counts.running, model);
    reply(c, "200 OK", "text/plain; version=0.0.4", text);
  } else if (strncmp(path, "/load/state", 11) == 0) {
    snprintf(text, sizeof text, "{\"requests\":%ld,\"tokens\":%ld,\"running\":%ld,\"left\":%ld}", counts.requests, counts.tokens,
             counts.running, counts.left);
    reply(c, "200 OK", "application/json", text);
  } else if (strncmp(path, "/v1/models", 10) == 0) {
    snprintf(text, sizeof text, "{\"object\":\"list\",\"data\":[{\"id\":\"%s\",\"object\":\"model\",\"created\":0,\"owned_by\":\"load\"}]}", model);
    reply(c, "200 OK", "application/json", text);
  } else reply(c, "404 Not Found", "application/json", "{\"detail\":\"Not Found\"}");
}

static void keep_body(void *to, const char *bytes, size_t count) {
  Buffer *body = to;
  size_t room = STEERING_BYTES - body->length;
  buffer_add(body, bytes, count < room ? count : room);
}

/* Reads from the connection. Returns false if it is lost. */
static bool read_request(Connection *c) {
  static char bytes[1 << 18];
  ssize_t count = read(c->fd, bytes, sizeof bytes);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  message_take(&c->request, bytes, (size_t)count, keep_body, &c->body);
  if (c->request.state == BAD) return false;
  if (c->request.state != DONE || c->is_streaming) return true;
  answer(c);
  message_begin(&c->request, false);
  buffer_free(&c->body);
  return go_on(c);
}

static void accept_all(int listener) {
  for (;;) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0) return;
    set_no_delay(fd);
    Connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    message_begin(&c->request, false);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event);
  }
}

static void turn_wheel(void) {
  uint64_t ticks, now = now_us() / TICK_US;
  if (read(timer_fd, &ticks, sizeof ticks) < 0) return;
  if (now - wheel_tick > WHEEL_SLOTS) wheel_tick = now - WHEEL_SLOTS;
  while (wheel_tick < now) {
    Connection *next, *c = wheel[++wheel_tick % WHEEL_SLOTS];
    for (; c; c = next) {
      next = c->next;
      if (c->due_us / TICK_US > now) continue; /* of a later turn */
      wheel_out(c);
      if (!go_on(c)) close_connection(c);
    }
  }
  is_ticking = timed > 0;
  if (!is_ticking) set_ticks(timer_fd, 0);
}

int main(int count, char **arguments) {
  int port = count > 1 ? atoi(arguments[1]) : 0;
  model = count > 2 ? arguments[2] : "load";
  signal(SIGPIPE, SIG_IGN);
  int listener = listen_on(&port);
  poll_fd = epoll_create1(0);
  timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  wheel_tick = now_us() / TICK_US;
  struct epoll_event on_listener = {.events = EPOLLIN, .data.ptr = &listener};
  struct epoll_event on_timer = {.events = EPOLLIN, .data.ptr = &timer_fd};
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &on_listener);
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, timer_fd, &on_timer);
  printf("{\"port\":%d}\n", port);
  fflush(stdout);
  for (;;) {
    struct epoll_event events[256];
    int ready = epoll_wait(poll_fd, events, 256, -1);
    bool is_time = false;
    for (int n = 0; n < ready; n++) {
      Connection *c = events[n].data.ptr;
      if (events[n].data.ptr == &listener) accept_all(listener);
      else if (events[n].data.ptr == &timer_fd) is_time = true;
      else {
        bool is_open = true;
        if (events[n].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) is_open = read_request(c);
        if (is_open && (events[n].events & EPOLLOUT) && c->is_writing) is_open = go_on(c);
        if (!is_open) close_connection(c);
      }
    }
    if (is_time) turn_wheel(); /* last: it may free what an event of this round is about */
  }
}
