#!/usr/bin/env perl
# pause_rank.pl STEP PROGRAM ARGUMENT...: starts a rank as an agent does, asks it to pause when that step is done, and looks at what
# it tells: signs of life, steps one after the other, phases. Fails where the rank does not end with the exit code of a pause.
use strict;
use warnings;
use Fcntl;
use Socket;

my ($wanted, @program) = @ARGV;
socketpair(my $agent, my $rank, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "no socket: $!\n";
my $child = fork();
if ($child == 0) {
  close $agent;
  fcntl($rank, F_SETFD, 0);
  $ENV{TESSERA_AGENT_FD} = fileno($rank);
  exec(@program) or die "cannot start: $!\n";
}
close $rank;
alarm 60;
my ($beats, $last, $asked, %phases) = (0, 0, 0);
while (my $line = <$agent>) {
  ++$beats if $line =~ /^\{"is":"beat"\}$/;
  $phases{$1} = 1 if $line =~ /^\{"bytes":\d+,"is":"phase","phase":"(\w+)","steps":\d+\}$/;
  next unless $line =~ /^\{"is":"step","last":\d+,"step":(\d+)\}$/;
  die "step $1 after step $last\n" if $1 != $last + 1;
  $last = $1;
  if ($last >= $wanted && !$asked++) {
    syswrite($agent, "{\"do\":\"pause\"}\n");
  }
}
waitpid($child, 0);
my $code = $? >> 8;
die "it ended with $code\n" if $code != 128 + 10;  # SIGUSR1
die "no signs of life\n" if $beats < 1;
die "phases: @{[sort keys %phases]}\n" unless $phases{setup} && $phases{steps};
