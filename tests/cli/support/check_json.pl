# perl check_json.pl FILE [whole]: whether every line of the file, or the whole of it, is one JSON value (RFC 8259).
use strict;
use warnings;

my ($path, $whole) = @ARGV;
my $value = qr{
  (?(DEFINE)
    (?<value> \s* (?: (?&object) | (?&array) | (?&string) | (?&number) | true | false | null ) \s* )
    (?<object> \{ (?: \s* (?&string) \s* : (?&value) (?: , \s* (?&string) \s* : (?&value) )* | \s* ) \} )
    (?<array> \[ (?: (?&value) (?: , (?&value) )* | \s* ) \] )
    (?<string> " (?: [^"\\\x00-\x1f] | \\ ["\\/bfnrt] | \\ u [0-9a-fA-F]{4} )* " )
    (?<number> -? (?: 0 | [1-9] [0-9]* ) (?: \. [0-9]+ )? (?: [eE] [-+]? [0-9]+ )? )
  )
  \A (?&value) \z
}x;

open(my $file, '<', $path) or die "$path: $!\n";
my @texts = $whole ? (join '', <$file>) : <$file>;
die "$path: empty\n" if !@texts;
for my $number (0 .. $#texts) {
  die "$path: line " . ($number + 1) . " is no JSON\n" if $texts[$number] !~ $value;
}
