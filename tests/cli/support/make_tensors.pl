# perl make_tensors.pl FILE NAME:D0,D1,... ...: a safetensors file of F32 tensors with random values between -1 and 1; between 0.5 and 1.5
# where the name ends in "variance".
use strict;
use warnings;

my ($path, @tensors) = @ARGV;
srand(7);
my ($header, $data) = ('', '');
for my $tensor (@tensors) {
  my ($name, $shape) = split /:/, $tensor;
  my $count = 1;
  $count *= $_ for split /,/, $shape;
  my $least = $name =~ /variance$/ ? 0.5 : -1;
  my $begin = length $data;
  $data .= pack('f<*', map { $least + rand(1 - $least + ($least > 0 ? 0.5 : 0)) } 1 .. $count);
  $header .= ($header ? ',' : '') . sprintf('"%s":{"dtype":"F32","shape":[%s],"data_offsets":[%d,%d]}', $name, $shape, $begin, length $data);
}
$header = "{$header}";
$header .= ' ' x (-length($header) % 8);
open(my $file, '>:raw', $path) or die "$path: $!\n";
print {$file} pack('V2', length $header, 0), $header, $data;
close($file) or die "$path: $!\n";
