# perl make_png.pl FILE SIDE RED GREEN BLUE: a square picture whose pixels vary around one colour, as a PNG without compression.
use strict;
use warnings;

my ($path, $side, @colour) = @ARGV;

sub crc32 {
  my $crc = 0xffffffff;
  for my $byte (unpack('C*', $_[0])) {
    $crc ^= $byte;
    $crc = $crc & 1 ? ($crc >> 1) ^ 0xedb88320 : $crc >> 1 for 1 .. 8;
  }
  return $crc ^ 0xffffffff;
}

sub adler32 {
  my ($a, $b) = (1, 0);
  for my $byte (unpack('C*', $_[0])) {
    $a = ($a + $byte) % 65521;
    $b = ($b + $a) % 65521;
  }
  return $b << 16 | $a;
}

sub chunk {
  my ($type, $bytes) = @_;
  return pack('N', length $bytes) . $type . $bytes . pack('N', crc32($type . $bytes));
}

my $lines = '';
for my $row (0 .. $side - 1) {
  $lines .= pack('C', 0);
  for my $col (0 .. $side - 1) {
    $lines .= pack('C3', map { ($_ + 7 * $row + 3 * $col) % 256 } @colour);
  }
}
my $stored = pack('C2 C v2', 0x78, 0x01, 1, length $lines, 0xffff ^ length $lines) . $lines . pack('N', adler32($lines));
open(my $file, '>:raw', $path) or die "$path: $!\n";
print {$file} "\x89PNG\r\n\x1a\n", chunk('IHDR', pack('N2 C5', $side, $side, 8, 2, 0, 0, 0)), chunk('IDAT', $stored), chunk('IEND', '');
close($file) or die "$path: $!\n";
