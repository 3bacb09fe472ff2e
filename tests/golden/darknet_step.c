/* One forward and one backward pass of Debian's Darknet, as a step of training makes them:

     cc -I/usr/lib/darknet/include darknet_step.c -L/usr/lib/darknet -ldarknet -lm -o darknet_step
     darknet_step MODEL.cfg MODEL.weights INPUT TRUTH FOLDER

   INPUT and TRUTH are 32-bit floats as Darknet lays them out. FOLDER gets, as such floats, for each layer I with
   a cost output.I, delta.I and cost.I; for each layer with weights weight.I, bias.I and scale.I, what its update
   would add up, and its running statistics mean.I and variance.I; input, what is sent back to the image; and margin:
   how near any value comes to where its slope changes, see there.

   With -Dfloat=double, and a library that was compiled so, all of this is in double precision. */

#include <darknet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of the library. */
void axpy_cpu(int n, float alpha, float *x, int x_step, float *y, int y_step);
void gradient_array(const float *values, const int n, const ACTIVATION activation, float *delta);

/* What a [region] adds to the gradient below on a GPU (backward_region_layer_gpu): the deltas of x, y and objectness
   times the slopes of their logistics. On a CPU its backward pass is empty. l.delta stays as it is. */
static void send_region_back(const layer l, float *below) {
  const size_t cells = (size_t)l.w * l.h, of_box = cells * (l.coords + l.classes + 1), all = (size_t)l.outputs * l.batch;
  float *sent = calloc(all, sizeof(float));
  axpy_cpu(all, 1, l.delta, 1, sent, 1);
  for (size_t box = 0; box < all; box += of_box) {
    gradient_array(l.output + box, 2 * cells, LOGISTIC, sent + box);
    gradient_array(l.output + box + l.coords * cells, cells, LOGISTIC, sent + box + l.coords * cells);
  }
  axpy_cpu(all, 1, sent, 1, below, 1);
  free(sent);
}

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

static double at_least(double least, double other) { return other < least ? other : least; }

/* The distance of a leaky layer's pre-activations from 0, relative to the largest of them. */
static double leaky_margin(const layer l, int batch) {
  double least = INFINITY, most = 0;
  for (size_t i = 0; i < (size_t)l.outputs * batch; ++i) {
    const double value = l.output[i] > 0 ? l.output[i] : -10.0 * l.output[i];
    least = at_least(least, value);
    most = fmax(most, value);
  }
  return least / most;
}

/* How far the largest value of a max-pool's window is above the next, relative to the largest of the map. */
static double pool_margin(const layer l, const layer below, int batch) {
  double least = INFINITY, most = 0;
  for (size_t map = 0; map < (size_t)l.c * batch; ++map) {
    const float *in = below.output + map * l.h * l.w;
    for (int row = 0; row < l.out_h; ++row) {
      for (int col = 0; col < l.out_w; ++col) {
        double first = -INFINITY, second = -INFINITY;
        for (int i = 0; i < l.size * l.size; ++i) {
          const int y = row * l.stride - l.pad / 2 + i / l.size, x = col * l.stride - l.pad / 2 + i % l.size;
          if (y < 0 || y >= l.h || x < 0 || x >= l.w) continue;
          const double value = in[y * l.w + x];
          second = fmax(second, fmin(first, value));
          first = fmax(first, value);
        }
        most = fmax(most, fabs(first));
        least = at_least(least, first - second);
      }
    }
  }
  return least / most;
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
    if (net->layers[i].type == REGION) {
      send_region_back(net->layers[i], net->layers[i - 1].delta);
    }
  }
  backward_network(net);
  float margin = INFINITY;
  for (int i = 0; i < net->n; ++i) {
    const layer l = net->layers[i];
    if ((l.type == CONVOLUTIONAL || l.type == CONNECTED) && l.activation == LEAKY) {
      margin = at_least(margin, leaky_margin(l, net->batch));
    } else if (l.type == MAXPOOL) {
      margin = at_least(margin, pool_margin(l, net->layers[i - 1], net->batch));
    }
  }
  write_floats(argv[5], "margin", -1, &margin, 1);
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
        write_floats(argv[5], "mean", i, l.rolling_mean, l.type == CONNECTED ? l.outputs : l.n);
        write_floats(argv[5], "variance", i, l.rolling_variance, l.type == CONNECTED ? l.outputs : l.n);
      }
    }
  }
  write_floats(argv[5], "input", -1, net->delta, inputs);
  return 0;
}
