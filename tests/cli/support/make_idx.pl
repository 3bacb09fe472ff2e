# perl make_idx.pl FOLDER TRAIN TEST: pictures of 28x28 in MNIST's files, that many of each half, of ten classes. Class c is a
# bright square whose place depends on c, at a random strength on random grey.
use strict;
use warnings;

my ($folder, $train, $test) = @ARGV;
my $state = 12345;

sub random_below {
  my ($bound) = @_;
  $state = ($state * 1103515245 + 12345) % 2147483648;
  return int($state / 65536) % $bound;
}

sub write_file {
  my ($name, $bytes) = @_;
  open(my $file, '>:raw', "$folder/$name") or die "$folder/$name: $!\n";
  print {$file} $bytes;
  close($file) or die "$folder/$name: $!\n";
}

sub picture {
  my ($class) = @_;
  my ($top, $left) = (2 + 13 * int($class / 5), 1 + 5 * ($class % 5));
  my $strength = 120 + random_below(90);
  my @pixels = map { random_below(40) } 1 .. 28 * 28;
  for my $row ($top .. $top + 9) {
    $pixels[$row * 28 + $_] += $strength for $left .. $left + 5;
  }
  return pack('C*', @pixels);
}

sub write_half {
  my ($prefix, $count) = @_;
  my @labels = map { random_below(10) } 1 .. $count;
  write_file("$prefix-labels-idx1-ubyte", pack('N2 C*', 0x801, $count, @labels));
  write_file("$prefix-images-idx3-ubyte", pack('N4', 0x803, $count, 28, 28) . join('', map { picture($_) } @labels));
}

write_half('train', $train);
write_half('t10k', $test);
