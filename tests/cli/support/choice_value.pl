# perl choice_value.pl KEY [INDEX|chosen|all] FILE: a value of choice.json, texts without quotes, lists as words. Of a candidate by its
# index, of the one that was chosen, or the sum over all; without an index a value of the file's own, of `candidates` their number.
use strict;
use warnings;

my $path = pop @ARGV;
my ($key, $which) = @ARGV;
open(my $file, '<', $path) or die "$path: $!\n";
my $text = join '', <$file>;

# Values of this file hold no braces but in the texts of partitions, which have none.
my ($list) = $text =~ /"candidates": \[(.*?)\n \]/s or die "$path: no candidates\n";
my @candidates = $list =~ /(\{.*?\n  \})/sg;

sub value_in {
  my ($object) = @_;
  my ($value) = $object =~ /"$key":\s*("(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,\n}]+)/s or die "$path: no $key\n";
  if ($value =~ /^"(.*)"$/s) {
    $value = $1;
    $value =~ s/\\n/\n/g;
    $value =~ s/\\"/"/g;
  } elsif ($value =~ /^\[/) {
    $value = join ' ', $value =~ /"([^"]*)"/g;
  }
  return $value;
}

if (!defined $which) {
  print $key eq 'candidates' ? scalar(@candidates) : value_in($text), "\n";
} elsif ($which eq 'all') {
  my $sum = 0;
  $sum += value_in($_) for @candidates;
  print "$sum\n";
} else {
  if ($which eq 'chosen') {
    ($which) = $text =~ /"chosen": (\d+)/ or die "$path: nothing is chosen\n";
  }
  print value_in($candidates[$which]), "\n";
}
