// Slows the ranks of an MPI program down evenly: preloaded into each, with the share of a processor that it may use in
// TESSERA_PACE. After a millisecond of computing at the latest the rank stands still for as long as it takes to come down to its share; and
// before it gives the processor away by itself or starts to send, so that others never have what a slow device would not have finished yet. What looking
// for messages takes meanwhile costs it nothing, as on a device that has nothing else to do.
//
// Unlike a quota of a control group it does so at once instead of every 10 ms or so, and time spent waiting for messages earns
// no right to be faster later: as on a slow processor. A real device shares with nobody: time in which the rank would have computed, but other
// devices or other guests of the host had the processor, is taken off its pauses, and time in which its core was slower than one that
// nothing disturbs counts as less, by the loop that takes TESSERA_PACE_LOOP seconds there. The first thread alone is slowed, so
// that a rank has to have one thread.
//
// What the emulated wire takes of this machine's processors would be charged to the thread that happens to run there, as if the slow device had
// carried everybody's frames. So where TESSERA_PACE_BYTE is given, first threads keep off the first processor while they compute, all others keep to it, and the
// wire with them, and each byte that the device sends or receives costs its first thread so many seconds instead.

#include "core_now.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const double most_credit_s = 0.2;     // of pauses that took longer than they should, and of time that others had
static const double least_pause_s = 2e-5;    // less is owed until later
static const double look_s = 1e-5;           // of processor time: more than that between two waits is computing
static const double until_waiting_s = 1e-3;  // without computing

static const long turn_ns = 1000000;               // more pauses would find the caches cold more often
static const double waiting_share = 0.5;           // of a turn: who uses less is waiting
static const double bytes_counted_every_s = 1e-3;  // counting takes some microseconds

static double share;
static double byte_s;
static cpu_set_t processor_of_wire;
static cpu_set_t processors_of_ranks;
static int waiting;
static int interfaces = -1;
static double bytes_before;
static double counted_s;
static double undisturbed_loop_s;
static timer_t timer;
static double processor_before_s;
static double time_before_s;
static long waits_before;
static double owed_s;
static double computed_s;  // when the thread was last seen to compute
static volatile sig_atomic_t paying;
static __thread int slowed;  // whether this is the thread

// How often the thread has given the processor away by itself: for a message, a lock, a pause.
static long waits(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Received and sent by eth0 since it was made: the first and the ninth number of its line.
static double bytes_so_far(void) {
  char text[2048];
  const ssize_t size = pread(interfaces, text, sizeof text - 1, 0);
  text[size > 0 ? size : 0] = '\0';
  const char* line = strstr(text, "eth0:");
  double received = 0;
  double sent = 0;
  if (line != NULL) {
    sscanf(line + 5, "%lf %*f %*f %*f %*f %*f %*f %*f %lf", &received, &sent);
  }
  return received + sent;
}

static double owed_for_bytes(double time_s) {
  if (byte_s <= 0 || time_s - counted_s < bytes_counted_every_s) {
    return 0;
  }
  const double bytes = bytes_so_far();
  const double owed = byte_s * (bytes - bytes_before);
  bytes_before = bytes;
  counted_s = time_s;
  return owed;
}

static void begin_turn(void) {
  const struct itimerspec once = {{0, 0}, {0, turn_ns}};
  waits_before = waits();
  time_before_s = seconds_of(CLOCK_MONOTONIC);
  processor_before_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  timer_settime(timer, 0, &once, NULL);
}

typedef int nanosleep_function(const struct timespec*, struct timespec*);
static nanosleep_function* system_nanosleep;

// To its end, whatever signals come: the turn's own does.
static void pause_for(double seconds) {
  const long whole = (long)seconds;
  struct timespec left = {whole, (long)((seconds - (double)whole) * 1e9)};
  while (system_nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// Who waits looks for messages all the time, and does so where the wire is.
static void be_waiting(int now) {
  if (now != waiting && CPU_COUNT(&processor_of_wire) > 0) {
    const cpu_set_t* set = now ? &processor_of_wire : &processors_of_ranks;
    sched_setaffinity(0, sizeof *set, set);
  }
  waiting = now;
}

// Stands still for what has been computed since the last turn began, `free_s` of which cost nothing. What that takes by itself is a part of the pause.
static void pay(double used_s, double free_s) {
  const double time_s = seconds_of(CLOCK_MONOTONIC);
  const double lost_s = waits() == waits_before ? time_s - time_before_s - used_s : 0;
  const double charged_s = used_s - free_s;
  owed_s += charged_s * undisturbed_loop_s / time_loop_twice() / share - charged_s - lost_s + owed_for_bytes(time_s);
  const double pause_s = owed_s - (seconds_of(CLOCK_MONOTONIC) - time_s);
  if (pause_s > least_pause_s) {
    pause_for(pause_s);
  }
  owed_s -= seconds_of(CLOCK_MONOTONIC) - time_s;
  if (owed_s < -most_credit_s) {
    owed_s = -most_credit_s;
  }
}

static double used_in_turn(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID) - processor_before_s; }

// A turn has ended while the thread computes, or waits for something else than below.
static void end_turn(int number) {
  (void)number;
  if (paying) {
    return;
  }
  const int error = errno;
  const double used_s = used_in_turn();
  const double turn_s = seconds_of(CLOCK_MONOTONIC) - time_before_s;
  be_waiting(waits() != waits_before && used_s < waiting_share * turn_s);
  pay(used_s, 0);
  begin_turn();
  errno = error;
}

// Before the thread gives the processor away, or starts to send.
static void end_computing(double free_s) {
  const int error = errno;
  paying = 1;
  const double used_s = used_in_turn();
  if (used_s > free_s) {
    be_waiting(0);
    pay(used_s, free_s);
    computed_s = seconds_of(CLOCK_MONOTONIC);
  } else {
    const double time_s = seconds_of(CLOCK_MONOTONIC);
    owed_for_bytes(time_s);  // carried while there was nothing else to do
    if (time_s - computed_s > until_waiting_s) {
      be_waiting(1);
    }
  }
  errno = error;
}

static void go_on(void) {
  const int error = errno;
  begin_turn();
  paying = 0;
  errno = error;
}

// In the place of what the library or the program calls: the same, and what is due before it.
int nanosleep(const struct timespec* time, struct timespec* left) {
  if (!slowed) {
    return system_nanosleep != NULL ? system_nanosleep(time, left) : clock_nanosleep(CLOCK_REALTIME, 0, time, left);
  }
  end_computing(look_s);
  const int result = system_nanosleep(time, left);
  go_on();
  return result;
}

int sched_yield(void) {
  if (!slowed) {
    return (int)syscall(SYS_sched_yield);
  }
  end_computing(look_s);
  const int result = (int)syscall(SYS_sched_yield);
  go_on();
  return result;
}

static void before_sending(void) {
  if (slowed) {
    end_computing(0);
    go_on();
  }
}

// MPICH's handles are integers.
typedef int send_function(const void*, int, int, int, int, int, int*);

#define SENDS(name)                                                                                       \
  int name(const void* data, int count, int type, int rank, int tag, int comm, int* request) {            \
    static send_function* send;                                                                           \
    if (send == NULL) {                                                                                   \
      send = (send_function*)dlsym(RTLD_NEXT, #name);                                                     \
    }                                                                                                     \
    before_sending();                                                                                     \
    return send(data, count, type, rank, tag, comm, request);                                             \
  }
SENDS(MPI_Isend)
SENDS(MPI_Issend)

static double positive_number(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? 0 : atof(text);
}

// The first processor that the process may use is the wire's; with no other there is nothing to divide. A program that this one becomes
// has only the others left, so that it is told.
static void divide_processors(void) {
  const char* told = getenv("TESSERA_PACE_WIRE");
  cpu_set_t others;
  int first = 0;
  if (sched_getaffinity(0, sizeof others, &others) != 0 || (told == NULL && CPU_COUNT(&others) < 2)) {
    return;
  }
  if (told != NULL) {
    first = atoi(told);
  } else {
    char number[16];
    while (!CPU_ISSET(first, &others)) {
      ++first;
    }
    snprintf(number, sizeof number, "%d", first);
    setenv("TESSERA_PACE_WIRE", number, 1);
  }
  CPU_ZERO(&processor_of_wire);
  CPU_SET(first, &processor_of_wire);
  CPU_CLR(first, &others);
  processors_of_ranks = others;
  sched_setaffinity(0, sizeof others, &others);
}

// In place of the system's, for all threads but the first.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  int (*const create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = dlsym(RTLD_NEXT, "pthread_create");
  const int error = create(thread, attributes, run, argument);
  if (error == 0 && CPU_COUNT(&processor_of_wire) > 0) {
    pthread_setaffinity_np(*thread, sizeof processor_of_wire, &processor_of_wire);
  }
  return error;
}

__attribute__((constructor)) static void start(void) {
  system_nanosleep = (nanosleep_function*)dlsym(RTLD_NEXT, "nanosleep");
  share = getenv("PMI_RANK") == NULL ? 0 : positive_number("TESSERA_PACE");
  undisturbed_loop_s = positive_number("TESSERA_PACE_LOOP");
  if (share <= 0 || share >= 1 || undisturbed_loop_s <= 0) {
    return;
  }
  byte_s = positive_number("TESSERA_PACE_BYTE");
  if (byte_s > 0) {
    divide_processors();
    interfaces = open("/proc/self/net/dev", O_RDONLY | O_CLOEXEC);
    bytes_before = bytes_so_far();
  }
  prctl(PR_SET_TIMERSLACK, 1);  // pauses are shorter than what is added to them otherwise
  const int number = SIGRTMAX - 2;
  struct sigaction action = {.sa_handler = end_turn, .sa_flags = SA_RESTART};
  sigaction(number, &action, NULL);
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number};
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
    slowed = 1;
    begin_turn();
  }
}
