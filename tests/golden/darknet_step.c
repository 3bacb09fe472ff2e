/* One forward and one backward pass of Debian's Darknet, as a step of training makes them:

     cc -I/usr/lib/darknet/include darknet_step.c -L/usr/lib/darknet -ldarknet -lm -o darknet_step
     darknet_step MODEL.cfg MODEL.weights INPUT TRUTH FOLDER

   INPUT and TRUTH are 32-bit floats as Darknet lays them out. FOLDER gets, as such floats, for each layer I with
   a cost output.I, delta.I and cost.I; for each layer with weights weight.I, bias.I and scale.I, what its update
   would add up; and input, what is sent back to the image. */

#include <darknet.h>
#include <stdio.h>
#include <stdlib.h>

void axpy_cpu(int n, float alpha, float *x, int x_step, float *y, int y_step); /* of the library */

static float *read_floats(const char *path, size_t count) {
  FILE *file = fopen(path, "rb");
  float *values = calloc(count, sizeof(float));
  if (file == NULL || fread(values, sizeof(float), count, file) != count) {
    fprintf(stderr, "%s: expected %zu numbers\n", path, count);
    exit(1);
  }
  fclose(file);
  return values;
}

static void write_floats(const char *folder, const char *name, int layer, const float *values, size_t count) {
  char path[4096];
  snprintf(path, sizeof(path), layer < 0 ? "%s/%s" : "%s/%s.%d", folder, name, layer);
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(values, sizeof(float), count, file) != count) {
    fprintf(stderr, "%s cannot be written\n", path);
    exit(1);
  }
  fclose(file);
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s MODEL.cfg MODEL.weights INPUT TRUTH FOLDER\n", argv[0]);
    return 2;
  }
  network *net = load_network(argv[1], argv[2], 0);
  const size_t inputs = (size_t)net->inputs * net->batch;
  net->input = read_floats(argv[3], inputs);
  net->truth = read_floats(argv[4], (size_t)net->truths * net->batch);
  net->delta = calloc(inputs, sizeof(float));
  net->train = 1;
  *net->seen = net->batch;
  forward_network(net);
  for (int i = 1; i < net->n; ++i) {
    /* On a CPU this layer's backward pass is empty; on a GPU it is this. */
    if (net->layers[i].type == REGION) {
      axpy_cpu(net->layers[i].outputs * net->batch, 1, net->layers[i].delta, 1, net->layers[i - 1].delta, 1);
    }
  }
  backward_network(net);
  for (int i = 0; i < net->n; ++i) {
    const layer l = net->layers[i];
    if (l.cost != NULL) {
      write_floats(argv[5], "output", i, l.output, (size_t)l.outputs * net->batch);
      write_floats(argv[5], "delta", i, l.delta, (size_t)l.outputs * net->batch);
      write_floats(argv[5], "cost", i, l.cost, 1);
    }
    if (l.type == CONVOLUTIONAL || l.type == CONNECTED) {
      const size_t weights = l.type == CONNECTED ? (size_t)l.inputs * l.outputs : (size_t)l.nweights;
      write_floats(argv[5], "weight", i, l.weight_updates, weights);
      write_floats(argv[5], "bias", i, l.bias_updates, l.type == CONNECTED ? l.outputs : l.n);
      if (l.batch_normalize) {
        write_floats(argv[5], "scale", i, l.scale_updates, l.type == CONNECTED ? l.outputs : l.n);
      }
    }
  }
  write_floats(argv[5], "input", -1, net->delta, inputs);
  return 0;
}
