#!/usr/bin/perl
# make_odd_pictures.pl FOLDER: pictures as cameras and strangers make them.
#   photo.jpg    4000 x 3000 pixels, grey, 47 kB        photo-cut.jpg, photo-dirty.jpg  the same, damaged
#   big.png      8000 x 8000 pixels of one bit, 8 kB    huge.png, huge.jpg  headers of 60000 x 60000 pixels, few bytes
#   bomb.png     28 x 28 pixels, and 64 MiB more in 64 kB
#   upright.png, turned.png   the same colours, the second stored turned, with EXIF's orientation 6
#   colour.bmp   16 x 16 pixels     photo.heic, photo.avif, scan.tiff   first bytes of such files
use strict;
use warnings;

my $folder = shift or die "usage: make_odd_pictures.pl FOLDER\n";

sub put {
  my ($name, $bytes) = @_;
  open my $file, '>:raw', "$folder/$name" or die "$folder/$name: $!\n";
  print {$file} $bytes;
  close $file or die "$folder/$name: $!\n";
}

sub crc32 {
  my $crc = 0xffffffff;
  for my $byte (unpack('C*', $_[0])) {
    $crc ^= $byte;
    $crc = $crc & 1 ? ($crc >> 1) ^ 0xedb88320 : $crc >> 1 for 1 .. 8;
  }
  return $crc ^ 0xffffffff;
}

sub chunk {
  my ($kind, $content) = @_;
  return pack('N', length $content) . $kind . $content . pack('N', crc32($kind . $content));
}

# COLUMNS ROWS DEPTH KIND PACKED CHUNKS
sub png {
  my ($cols, $rows, $depth, $kind, $packed, $more) = @_;
  return "\x89PNG\r\n\x1a\n" . chunk('IHDR', pack('NNCCCCC', $cols, $rows, $depth, $kind, 0, 0, 0)) . ($more // '')
    . chunk('IDAT', $packed) . chunk('IEND', '');
}

# COUNT bytes of zero in zlib's format, by gzip, which packs them the same way between other ends.
sub packed_zeros {
  my ($count) = @_;
  my $gzip = `head -c $count /dev/zero | gzip -9 -n`;
  return "\x78\xda" . substr($gzip, 10, -8) . pack('nn', $count % 65521, 1);
}

# Less than 64 KiB in zlib's format, as they are.
sub stored {
  my ($bytes) = @_;
  my ($first, $second) = (1, 0);
  for my $byte (unpack('C*', $bytes)) {
    $first = ($first + $byte) % 65521;
    $second = ($second + $first) % 65521;
  }
  return pack('C2 C v2', 0x78, 0x01, 1, length $bytes, 0xffff ^ length $bytes) . $bytes . pack('nn', $second, $first);
}

sub segment {
  my ($marker, $content) = @_;
  return "\xff" . chr($marker) . pack('n', 2 + length $content) . $content;
}

# A JPEG of one grey: every block is two codes of one bit, for no difference and for no more values.
sub jpeg {
  my ($cols, $rows, $blocks) = @_;
  my $one_code = "\x01" . "\0" x 15 . "\0";
  return "\xff\xd8" . segment(0xdb, "\0" . "\x10" x 64) . segment(0xc0, pack('CnnC', 8, $rows, $cols, 1) . "\x01\x11\0")
    . segment(0xc4, "\0$one_code") . segment(0xc4, "\x10$one_code") . segment(0xda, "\x01\x01\0\0\x3f\0")
    . "\0" x (($blocks * 2 + 7) / 8) . "\xff\xd9";
}

my $photo = jpeg(4000, 3000, 500 * 375);
put('photo.jpg', $photo);
put('photo-cut.jpg', substr($photo, 0, 30000));
my $dirty = $photo;
substr($dirty, 30000, 200) = "\xaa" x 200;
put('photo-dirty.jpg', $dirty);
put('huge.jpg', jpeg(60000, 60000, 8));
put('wide.jpg', jpeg(8000, 8000, 8));
put('big.png', png(8000, 8000, 1, 0, packed_zeros(1001 * 8000)));
put('huge.png', png(60000, 60000, 8, 0, packed_zeros(1000)));
put('bomb.png', png(28, 28, 8, 0, packed_zeros(1 << 26)));

# Red above, green and blue below; stored with its right side up.
my ($red, $green, $blue) = ("\xdc\x1e\x1e", "\x1e\xdc\x1e", "\x1e\x1e\xdc");
my $exif = "MM\0\x2a" . pack('Nn', 8, 1) . pack('nnNnn', 0x112, 3, 1, 6, 0) . pack('N', 0);
put('upright.png', png(16, 16, 8, 2, stored(("\0" . $red x 16) x 8 . ("\0" . $green x 8 . $blue x 8) x 8)));
put('turned.png', png(16, 16, 8, 2, stored(("\0" . $red x 8 . $blue x 8) x 8 . ("\0" . $red x 8 . $green x 8) x 8), chunk('eXIf', $exif)));

put('colour.bmp', pack('a2VvvV', 'BM', 54 + 768, 0, 0, 54) . pack('VVVvvVVVVVV', 40, 16, 16, 1, 24, 0, 768, 0, 0, 0, 0) . "\x10\x20\xd0" x 256);
put('photo.heic', pack('N', 24) . 'ftypheic' . "\0" x 200);
put('photo.avif', pack('N', 24) . 'ftypavif' . "\0" x 200);
put('scan.tiff', "II*\0" . "\0" x 200);
