// Slows the ranks of an MPI program down evenly: preloaded into each, with the share of a processor that it may use in
// TESSERA_PACE. Every quarter of a millisecond the rank stands still for as long as it takes to come down to its share.
//
// Unlike a quota of a control group it does so at once instead of every 10 ms or so, and time spent waiting for messages earns
// no right to be faster later: as on a slow processor. Time in which the rank would have computed, but other devices or other guests of
// the host had the processor, is taken off its pauses: a real device shares with nobody. The first thread alone is slowed, so that a rank
// has to have one thread.

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const long interval_ns = 250000;
static const double most_credit_s = 0.2;  // of pauses that took longer than they should, and of time that others had

static double share;
static double processor_before_s;
static double time_before_s;
static long waits_before;
static double owed_s;

static double seconds_of(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// How often the thread has given the processor away by itself: for a message, a lock, a pause.
static long waits(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

static void note_state(void) {
  waits_before = waits();
  time_before_s = seconds_of(CLOCK_MONOTONIC);
  processor_before_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static void pause_for(double seconds) {
  const long whole = (long)seconds;
  const struct timespec time = {whole, (long)((seconds - (double)whole) * 1e9)};
  nanosleep(&time, NULL);
}

// What keeping pace takes of the processor itself counts as used, and all of its time as a pause.
static void keep_pace(int number) {
  (void)number;
  const int error = errno;
  const double processor_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  const double time_s = seconds_of(CLOCK_MONOTONIC);
  const double used_s = processor_s - processor_before_s;
  const double lost_s = waits() == waits_before ? time_s - time_before_s - used_s : 0;
  owed_s += used_s * (1 / share - 1) - lost_s;
  if (owed_s > 0) {
    pause_for(owed_s);
  }
  note_state();
  owed_s += (processor_before_s - processor_s) / share - (time_before_s - time_s);
  if (owed_s < -most_credit_s) {
    owed_s = -most_credit_s;
  }
  errno = error;
}

__attribute__((constructor)) static void start(void) {
  const char* text = getenv("TESSERA_PACE");
  share = text == NULL || getenv("PMI_RANK") == NULL ? 0 : atof(text);
  if (share <= 0 || share >= 1) {
    return;
  }
  prctl(PR_SET_TIMERSLACK, 1);  // pauses are shorter than what is added to them otherwise
  const int number = SIGRTMAX - 2;
  struct sigaction action = {.sa_handler = keep_pace, .sa_flags = SA_RESTART};
  sigaction(number, &action, NULL);
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number};
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
    return;
  }
  note_state();
  const struct itimerspec every = {{0, interval_ns}, {0, interval_ns}};
  timer_settime(timer, 0, &every, NULL);
}
