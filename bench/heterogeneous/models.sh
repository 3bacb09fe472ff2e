# The models of the benches here, as files that can be trained on Fashion-MNIST: small pictures are scaled to the input of a network.
# shellcheck shell=bash

# made_model NAME: prints it. Those of models/ of other sizes, and the layers of YOLOv2-tiny and of the early YOLOv2 with a classifier.
made_model() {
  case $1 in
    lenet5 | fashion-resnet) cat "models/$1.cfg" ;;
    mobilenetv2-96) sed 's/^height=.*/height=96/; s/^width=.*/width=96/' models/mobilenetv2.cfg ;;
    yolov2-tiny-160) net 160 && tiny_layers && classifier ;;
    yolov2-early-224) sed 's/^height=.*/height=224/; s/^width=.*/width=224/' models/yolov2-early.cfg && classifier ;;
    *) return 1 ;;
  esac
}

net() {
  printf '[net]\nbatch=1\nheight=%d\nwidth=%d\nchannels=3\nlearning_rate=0.001\npolicy=constant\nmomentum=0.9\ndecay=0.0005\n' "$1" "$1"
}

# tiny_layers: the convolutions and pools of YOLOv2-tiny (Redmon and Farhadi, 2017) before its detector.
tiny_layers() {
  local filters
  for filters in 16 32 64 128 256 512; do
    printf '[convolutional]\nbatch_normalize=1\nfilters=%d\nsize=3\nstride=1\npad=1\nactivation=leaky\n' "$filters"
    [ "$filters" -eq 512 ] || printf '[maxpool]\nsize=2\nstride=2\n'
  done
}

# classifier: of ten classes.
classifier() { printf '\n[convolutional]\nfilters=10\nsize=1\nstride=1\nactivation=linear\n[avgpool]\n[softmax]\n'; }
