# perl compare_tensors.pl FILE FILE TOLERANCE [PATTERN]: whether two safetensors files hold the same tensors, of those whose names match
# the pattern, values differing by no more than TOLERANCE times the largest of their tensor. Tells the names that do not. Only F32 and F64.
use strict;
use warnings;

sub read_tensors {
  my ($path) = @_;
  open(my $file, '<:raw', $path) or die "$path: $!\n";
  my $bytes = do { local $/; <$file> };
  my $size = unpack('V', $bytes);
  my $header = substr($bytes, 8, $size);
  my %tensors;
  while ($header =~ /"([^"]+)":(\{[^{}]*"data_offsets"[^{}]*\})/g) {
    my ($name, $entry) = ($1, $2);
    my ($type) = $entry =~ /"dtype":"(F32|F64)"/ or next;
    my ($shape) = $entry =~ /"shape":\[([^\]]*)\]/;
    my ($begin, $end) = $entry =~ /"data_offsets":\[(\d+),(\d+)\]/;
    my $raw = substr($bytes, 8 + $size + $begin, $end - $begin);
    $tensors{$name} = [$shape, unpack($type eq 'F32' ? 'f<*' : 'd<*', $raw)];
  }
  return %tensors;
}

my ($path_a, $path_b, $tolerance, $pattern) = @ARGV;
$pattern //= '';
my %a = read_tensors($path_a);
my %b = read_tensors($path_b);
delete @a{grep { !/$pattern/ } keys %a};
delete @b{grep { !/$pattern/ } keys %b};
my $bad = !%a || join(' ', sort keys %a) ne join(' ', sort keys %b);
print "  the files hold different tensors, or none\n" if $bad;
for my $name (grep { exists $b{$_} } sort keys %a) {
  my ($shape_a, @values_a) = @{$a{$name}};
  my ($shape_b, @values_b) = @{$b{$name}};
  my ($largest, $difference) = (1e-30, 0);
  for my $i (0 .. $#values_a) {
    $largest = abs $values_a[$i] if abs $values_a[$i] > $largest;
    $difference = abs($values_a[$i] - $values_b[$i]) if !(abs($values_a[$i] - $values_b[$i]) <= $difference);
  }
  if ($shape_a ne $shape_b || !($difference <= $tolerance * $largest)) {
    printf "  %s differs by %g of its largest value\n", $name, $difference / $largest;
    $bad = 1;
  }
}
exit($bad ? 1 : 0);
