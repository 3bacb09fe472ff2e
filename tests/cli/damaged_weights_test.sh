#!/usr/bin/env bash
# Checkpoints and weights that are not what was written, or hold numbers that no network has: refused by file, and by tensor
# or layer where it is one, before training starts, by all that read them.
# shellcheck disable=SC2016 # the $ are those of perl
. tests/cli/support/harness.sh

data=$folder/digits
mkdir "$data"
make_digits "$data" 24 8
model=$folder/model.cfg
cat >"$model" <<'CFG'
[net]
batch=8
height=28
width=28
channels=1
learning_rate=0.01
max_batches=9

[convolutional]
batch_normalize=1
filters=4
size=3
stride=4
activation=leaky

[convolutional]
filters=4
size=3
stride=2
activation=leaky

[connected]
output=10
activation=linear

[softmax]
CFG
works 1 train "$model" --data "$data" --run "$folder/run" --steps 3 --no-eval --progress none
good=$folder/run/checkpoint.safetensors
bad=$folder/bad.safetensors
works 1 convert "$model" --from "$good" --to "$folder/good.weights"

# changed FILE NEW CODE: writes to NEW the file with what this Perl makes of it; it may use $header, the length of the header, and
# place(NAME), where a tensor begins and how long it is.
changed() {
  perl -0777 -e '
    open(my $in, "<:raw", $ARGV[0]) or die; my $bytes = <$in>;
    our $header = unpack("V", $bytes);
    our $json = substr($bytes, 8, $header);
    sub place { $json =~ /"\Q$_[0]\E":\{"dtype":"F32","shape":\[[\d,]*\],"data_offsets":\[(\d+),(\d+)\]/ or die $_[0]; return (8 + $header + $1, $2 - $1) }
    sub without_digests { $bytes =~ s/tessera-checkpoint-2/tessera-checkpoint-1/; $bytes =~ s/("digest)s(":)/$1X$2/ or die }
    eval $ARGV[2]; die $@ if $@;
    open(my $out, ">:raw", $ARGV[1]) or die; print {$out} $bytes;' "$@"
}

# refused_everywhere PATTERN: all commands refuse the file $bad in one line; nothing is trained.
refused_everywhere() {
  refused "$1" eval "$model" --data "$data" --weights "$bad"
  refused_alone "$1" predict "$model" "$data/t10k-images-idx3-ubyte" --weights "$bad"
  refused "$1" train "$model" --data "$data" --run "$folder/on" --no-eval --resume "$bad"
  refused_alone "$1" train "$model" --data "$data" --run "$folder/on" --no-eval --weights "$bad"
  refused_alone "$1" convert "$model" --from "$bad" --to "$folder/copy.weights"
  expect 'no run was begun' test ! -e "$folder/on"
}

changed "$good" "$bad" 'my ($at, $size) = place("layers.1.weight"); substr($bytes, $at + 21, 1) ^= "\x01"'
refused_everywhere "bad\.safetensors: tensor 'layers\.1\.weight' is not what was written"
changed "$good" "$bad" 'my ($at, $size) = place("optimizer.layers.1.weight.first"); substr($bytes, $at + 3, 1) ^= "\x80"'
refused_everywhere "bad\.safetensors: tensor 'optimizer\.layers\.1\.weight\.first' is not what was written"
changed "$good" "$bad" 'my ($a, $size) = place("layers.0.bias"); my ($b) = place("layers.0.bn.mean");
  my $one = substr($bytes, $a, $size); substr($bytes, $a, $size) = substr($bytes, $b, $size); substr($bytes, $b, $size) = $one'
refused_everywhere "bad\.safetensors: tensor 'layers\.0\.b(ias|n\.mean)' is not what was written"
changed "$good" "$bad" '$bytes =~ s/"seed":"1"/"seed":"2"/ or die'
refused_everywhere 'bad\.safetensors: its metadata is not what was written'
changed "$good" "$bad" '$bytes =~ s/"digest(?=s":)/"digesx/ or die'
refused_everywhere 'bad\.safetensors: its digests are missing: an earlier version of this program .*, or it has been damaged'

# Everywhere in the file: a bit in every hundredth byte.
missed=''
size=$(stat -c %s "$good")
for ((at = 0; at < size; at += 97)); do
  changed "$good" "$bad" "substr(\$bytes, $at, 1) ^= chr(1 << ($at % 8))"
  run 1 eval "$model" --data "$data" --weights "$bad"
  [ "$status" -eq 2 ] && grep -q '^tessera: .*bad\.safetensors: ' "$folder/err" || missed="$missed $at"
done
expect "no byte may change unseen:$missed" test -z "$missed"

# Without digests, as older files and those of other programs: numbers are judged.
number() { # number TENSOR ELEMENT VALUE
  changed "$good" "$bad" "without_digests(); my (\$at) = place('$1'); substr(\$bytes, \$at + 4 * $2, 4) = pack('f<', $3)"
}
changed "$good" "$bad" 'without_digests()'
works 1 eval "$model" --data "$data" --weights "$bad"
works 2 train "$model" --data "$data" --run "$folder/old" --no-eval --resume "$bad"
number layers.1.weight 17 "'nan'"
refused_everywhere "bad\.safetensors: tensor 'layers\.1\.weight' holds NaN at element 17"
number layers.2.bias 3 "'-inf'"
refused_everywhere "bad\.safetensors: tensor 'layers\.2\.bias' holds -infinity at element 3"
number layers.0.bn.variance 1 -0.5
refused_everywhere "bad\.safetensors: tensor 'layers\.0\.bn\.variance' holds -0\.5 at element 1"
number optimizer.layers.0.weight.first 0 "'inf'"
refused "bad\.safetensors: tensor 'optimizer\.layers\.0\.weight\.first' holds infinity at element 0" \
  train "$model" --data "$data" --run "$folder/on" --no-eval --resume "$bad"
works 1 eval "$model" --data "$data" --weights "$bad" # which has no use for it

# Darknet's files have no names: the layer is said. Behind the header are bias, scale, mean and variance of 4 filters.
darknet() { # darknet FLOAT VALUE
  bad=$folder/bad.weights
  changed "$folder/good.weights" "$bad" "substr(\$bytes, 20 + 4 * $1, 4) = pack('f<', $2)"
}
for case in "0 'nan' bias.*NaN.at.element.0" "13 -1 running.variance" "18 'inf' weight.*infinity.at.element.2"; do
  read -r float value pattern <<<"$case"
  darknet "$float" "$value"
  refused "bad\.weights: layer 0 \(convolutional\): .*$pattern" eval "$model" --data "$data" --weights "$bad"
  refused "bad\.weights: layer 0 \(convolutional\): .*$pattern" train "$model" --data "$data" --run "$folder/on" --weights "$bad"
done
