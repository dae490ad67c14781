/* Counts of microseconds in buckets of 3 %: 32 for each power of two. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H
#include <stdint.h>
#include <stdio.h>

#define BUCKETS (32 * 24)

typedef struct {
  uint64_t buckets[BUCKETS], count, max;
} Histogram;

static inline void histogram_add(Histogram *h, uint64_t value) {
  int exponent = value < 32 ? 0 : 59 - __builtin_clzll(value); /* 1 for 32..63 */
  int at = exponent > 0 ? exponent * 32 + (int)((value >> (exponent - 1)) & 31) : (int)value;
  h->buckets[at < BUCKETS ? at : BUCKETS - 1]++;
  h->count++;
  if (value > h->max) h->max = value;
}

/* The lowest value of a bucket. */
static inline uint64_t histogram_from(int at) {
  return at < 32 ? (uint64_t)at : (uint64_t)(32 + at % 32) << (at / 32 - 1);
}

static inline uint64_t histogram_quantile(const Histogram *h, double share) {
  uint64_t left = (uint64_t)(share * (double)h->count);
  for (int at = 0; at < BUCKETS; at++) {
    if (h->buckets[at] > left) return histogram_from(at);
    left -= h->buckets[at];
  }
  return h->max;
}

/* {"count":…,"p50":…,"p90":…,"p99":…,"max":…,"buckets":[[from,count],…]}, in microseconds. */
static inline void histogram_print(const Histogram *h, const char *name) {
  printf("\"%s\":{\"count\":%llu", name, (unsigned long long)h->count);
  if (h->count > 0)
    printf(",\"p50\":%llu,\"p90\":%llu,\"p99\":%llu,\"max\":%llu", (unsigned long long)histogram_quantile(h, 0.5),
           (unsigned long long)histogram_quantile(h, 0.9), (unsigned long long)histogram_quantile(h, 0.99),
           (unsigned long long)h->max);
  printf(",\"buckets\":[");
  const char *comma = "";
  for (int at = 0; at < BUCKETS; at++) {
    if (h->buckets[at] == 0) continue;
    printf("%s[%llu,%llu]", comma, (unsigned long long)histogram_from(at), (unsigned long long)h->buckets[at]);
    comma = ",";
  }
  printf("]}");
}
#endif
