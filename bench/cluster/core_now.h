// How fast the core is at this moment. On a virtual machine the same code may take twice as much
// processor time as a half second before, since a guest that nobody sees uses the other half of the
// core. A loop of multiplications and additions that takes a microsecond tells by how much:
// convolutions slow down by the same factor, to 5 %.

#pragma once

#define _GNU_SOURCE
#include <time.h>

static double seconds_of(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

typedef float four_floats __attribute__((vector_size(16)));

// Operands of the loop, from memory as a kernel's are: a kilobyte, for the first level of the
// cache.
enum { chains = 8, rows = 8 };
static four_floats loop_operands[rows][chains];
static volatile float loop_result;

// Seconds that the loop takes: a microsecond or more.
static double time_loop(void) {
  four_floats sums[chains] = {{0}};
  const double start_s = seconds_of(CLOCK_MONOTONIC);
  for (int round = 0; round < 32 * rows; ++round) {
    const four_floats* row = loop_operands[round % rows];
    const four_floats factor = row[0];
#pragma GCC unroll 8
    for (int chain = 0; chain < chains; ++chain) {
      sums[chain] += factor * row[chain];
    }
  }
  const double taken_s = seconds_of(CLOCK_MONOTONIC) - start_s;
  float sum = 0;
  for (int chain = 0; chain < chains; ++chain) {
    sum += sums[chain][0];
  }
  loop_result = sum;
  return taken_s;
}

// The less of two, since the thread may have lost its processor during one.
static double time_loop_twice(void) {
  const double first_s = time_loop();
  const double second_s = time_loop();
  return first_s < second_s ? first_s : second_s;
}
