# perl make_run.pl FOLDER STEPS RANKS STATE [SECONDS]: files that a training run of that many steps and ranks would leave in its
# folder, all but plan.json, which `tessera plan --json` prints. STATE is that of run.json. A step takes a second, or SECONDS.
# Rank 1 says nothing for a while in the middle, and meets an error of its meter. Names are as nasty as they can be.
use strict;
use utf8;
use warnings;

my ($folder, $steps, $ranks, $state, $step_s) = @ARGV;
$step_s ||= 1;
my @classes = ('cat', '<b>dog</b>', 'Bär "Bruno"', "line\\nbreak", "quote's", '&amp;', '桜', 'WWW MMMM WWWW in capital letters', 'Donaudampfschifffahrtsgesellschaft', '</script><script>alert(1)</script>');
my $epoch = int($steps / 5) || 1;
my $random = 12345;

# From 0 to 1.
sub noise {
  $random = ($random * 1103515245 + 12345) % 2147483648;
  return $random / 2147483648;
}

sub write_lines {
  my ($name, @lines) = @_;
  open(my $file, '>:utf8', "$folder/$name") or die "$folder/$name: $!\n";
  print {$file} map { "$_\n" } @lines;
  close($file) or die "$folder/$name: $!\n";
}

sub quoted {
  my ($text) = @_;
  $text =~ s/(["\/])/\\$1/g;
  return "\"$text\"";
}

sub host { return quoted('pi-' . ($_[0] + 1) . '.<lan>'); }

my $accuracy = 0;
my @metrics;
for my $step (1 .. $steps) {
  my $loss = 0.15 + 2.2 * exp(-4 * $step / $steps) * (0.8 + 0.4 * noise());
  my $rate = 0.05 * (1 - $step / ($steps + 1));
  my $took = $step_s * (0.95 + 0.1 * noise() + ($step % 97 ? 0 : 0.5));
  push @metrics, sprintf('{"step":%d,"loss":%.6f,"learning_rate":%.6f,"step_s":%.4f,"images_per_s":%.2f,"load_s":0.01,"forward_s":%.4f,"backward_s":%.4f,"update_s":%.4f,"exchange_s":%.4f,"t_s":%.3f,"energy_j":%.2f}',
    $step, $loss, $rate, $took, 32 / $took, 0.3 * $took, 0.5 * $took, 0.1 * $took, 0.2 * $took, $step * $step_s, 4.1 * $ranks * $took);
  if ($step % $epoch == 0) {
    $accuracy = 0.93 - 0.5 * exp(-3 * $step / $steps);
    push @metrics, sprintf('{"step":%d,"epoch":%d,"accuracy":%.4f,"test_loss":%.4f,"test_pictures":1000,"energy_j":%.1f,"run_energy_j":%.1f}',
      $step, $step / $epoch, $accuracy, $loss * 1.2, 4.1 * $ranks * $epoch * $step_s, 4.1 * $ranks * $step * $step_s);
  }
}
write_lines('metrics.jsonl', @metrics);

my $seconds = int($steps * $step_s);
my @counters = map { { user => 0, system => 0, wait => 0, rx => 0, tx => 0, heat => 45, energy => 0 } } 1 .. $ranks;
my @samples;
for my $t (1 .. $seconds) {
  for my $rank (0 .. $ranks - 1) {
    my $of = $counters[$rank];
    my $busy = 0.6 + 0.1 * noise() - 0.02 * $rank;
    $of->{user} += 4 * $busy;
    $of->{system} += 0.1 + 0.1 * noise();
    $of->{wait} += 0.15 + 0.1 * noise();
    $of->{rx} += 2e6 + 1e6 * noise();
    $of->{tx} += 2e6 + 1e6 * noise();
    $of->{heat} += ((60 + 12 * $busy + $rank) - $of->{heat}) / 60;
    next if $rank == 1 && $t > 0.4 * $seconds && $t < 0.5 * $seconds;
    my $power = $rank == 1 && $t > 0.7 * $seconds && $t < 0.75 * $seconds ? 'null' : sprintf('%.2f', 3 + 2 * $busy + 0.2 * noise());
    $of->{energy} += $power eq 'null' ? 0 : $power;
    push @samples, sprintf('{"t_s":%.2f,"rank":%d,"host":%s,"step":%d,"cpu_user_s":%.2f,"cpu_system_s":%.2f,"wait_s":%.3f,"rss_bytes":%d,"free_bytes":%d,"rx_bytes":%d,"tx_bytes":%d,"temperature_c":%.1f,"clock_hz":%d,"throttled":%d,"power_w":%s,"power_source":"table: Raspberry Pi 4, estimated","energy_j":%.3f}',
      $t + 0.01 * $rank, $rank, host($rank), int($t / $step_s), $of->{user}, $of->{system}, $of->{wait}, 95e6 + 1e6 * $rank, 700e6, $of->{rx}, $of->{tx}, $of->{heat}, $t % 700 > 650 ? 1.2e9 : 1.5e9, $t % 700 > 650 ? 4 : 0, $power, $of->{energy});
  }
}
write_lines('devices.jsonl', @samples);

my @timing;
for my $predicted (1, 0) {
  for my $at ($predicted ? ($steps) : map { $_ * $epoch } 1 .. 5) {
    for my $rank (0 .. $ranks - 1) {
      my @parts = map { $_ * $step_s * ($predicted ? 1 : 0.9 + 0.2 * noise()) } 0.01, 0.3, 0.4, 0.05, 0.1, 0.14;
      my $sum = 0;
      $sum += $_ for @parts;
      push @timing, sprintf('{"t_s":%.2f,"step":%d,"steps":%d,"rank":%d,%s"step_s":%.4f,"loading_s":%.4f,"forward_s":%.4f,"backward_s":%.4f,"update_s":%.4f,"exchanging_s":%.4f,"waiting_s":%.4f}',
        $at * $step_s, $at, $epoch, $rank, $predicted ? '"predicted":true,' : '', $sum, @parts);
    }
  }
}
write_lines('timing.jsonl', @timing);

my @events = ('{"t_s":0,"step":0,"rank":-1,"kind":"start","text":"started"}');
for my $number (1 .. 5) {
  my ($t, $step) = ($number * $epoch * $step_s, $number * $epoch);
  push @events, map { "{\"t_s\":$t,\"step\":$step,\"rank\":-1,\"kind\":\"$_\",\"text\":\"$_ of epoch $number\"}" } 'epoch', 'best', 'checkpoint';
}
my ($middle_t, $middle) = (0.4 * $seconds, int(0.4 * $steps));
push @events, "{\"t_s\":$middle_t,\"step\":$middle,\"rank\":1,\"kind\":\"warning\",\"text\":\"<i>no</i> sample for 60 s\"}";
push @events, "{\"t_s\":$seconds,\"step\":$steps,\"rank\":-1,\"kind\":\"finish\",\"text\":\"all steps done\"}" if $state eq 'finished';
write_lines('events.jsonl', @events);

my @memory = map {
  my $rank = $_;
  sprintf('{"rank":%d,"planned":{"weights":3000000,"gradients":3000000,"optimizer":1500000,"activations":%d,"workspace":4000000,"messages":500000,"pictures":100000,"decoding":0,"data":5000000,"program":60000000,"total":0},"measured":{"weights":3000000,"gradients":3000000,"optimizer":1500000,"activations":%d,"workspace":3900000,"messages":520000,"pictures":0,"decoding":0,"data":0,"program":0,"total":0,"peak_resident":%d}}',
    $rank, 20e6 + 1e6 * $rank, 20e6 + 1e6 * $rank, 96e6 + 1e6 * $rank)
} 0 .. $ranks - 1;
write_lines('memory.json', '{"unit":"bytes","ranks":[' . join(',', @memory) . ']}');

write_lines('run.json', sprintf('{"version":"0.1.0","model":"models\/<fashion>.cfg","data":"\/data\/\"clothes\"","command":"tessera train \'m & n.cfg\' --grid 2x2","started":"2026-11-25T20:00:00Z","ended":%s,"first_step":1,"last_step":%d,"epoch_steps":%d,"batch":32,"seed":7,"training_pictures":60000,"testing_pictures":10000,"class_names":[%s],"ranks":[%s],"predicted_step_s":%.3f,"memory_limit_bytes":150000000,"state":"%s","reason":"%s"}',
  $state eq 'running' ? 'null' : '"2026-11-26T02:00:00Z"', $steps, $epoch, join(',', map { quoted($_) } @classes),
  join(',', map { "{\"rank\":$_,\"host\":" . host($_) . ',"threads":4}' } 0 .. $ranks - 1), 0.98 * $step_s, $state,
  $state eq 'failed' ? 'rank 3 on <pi-4> has not answered for 60 s' : ''));

my (@scores, @confusion);
for my $class (0 .. 9) {
  my @row = map { $_ == $class ? 90 - 2 * $class : ($_ * 3 + $class) % 5 ? 0 : 5 + $class } 0 .. 9;
  my $sum = 0;
  $sum += $_ for @row;
  push @confusion, '[' . join(',', @row) . ']';
  push @scores, sprintf('{"class":%d,"name":%s,"pictures":%d,"predicted":100,"right":%d,"recall":%.4f,"precision":%s}', $class,
    quoted($classes[$class]), $sum, $row[$class], $row[$class] / $sum, $class == 9 ? 'null' : sprintf('%.3f', 0.95 - 0.02 * $class));
}
write_lines('evaluation.json', '{"step":' . $steps . ',"accuracy":0.9,"loss":0.3,"pictures":1000,"top5":0.99,"classes":[' . join(',', @scores) . '],"confusion":[' . join(',', @confusion) . ']}');

# Ten layers, forward and back, with a message before each.
my @trace;
for my $rank (0 .. $ranks - 1) {
  my $now = 0;
  push @trace, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":$rank,\"args\":{\"name\":\"rank $rank\"}}";
  my $act = sub {
    my ($name, $kind, $phase, $length) = @_;
    $length *= 1e6 * $step_s * (0.8 + 0.4 * noise());
    push @trace, sprintf('{"name":"%s","cat":"%s","ph":"X","pid":%d,"tid":0,"ts":%.1f,"dur":%.1f,"args":{"phase":"%s","predicted_s":%.6f}}', $name, $kind, $rank, $now, $length, $phase, 0.9e-6 * $length);
    $now += $length;
  };
  for my $layer (0 .. 9) {
    my $sent = $now;
    $act->("start feature map $layer", 'start', '', 0.002);
    $act->("forward $layer", 'compute', 'forward', 0.025);
    push @trace, map { sprintf('{"name":"map %d","cat":"in flight","ph":"%s","id2":{"local":"%d.%d"},"pid":%d,"tid":0,"ts":%.1f}', $layer, $_->[0], $rank, $layer, $rank, $_->[1]) } ['b', $sent], ['e', $now];
    $act->("finish feature map $layer", 'finish', '', 0.004);
  }
  for my $layer (reverse 0 .. 9) {
    $act->("backward data $layer", 'compute', 'backward data', 0.02);
    $act->("backward weights $layer", 'compute', 'backward weights', 0.018);
  }
  $act->('update', 'compute', 'update', 0.05);
}
write_lines('timeline.json', "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" . join(",\n", @trace) . "\n]}");
