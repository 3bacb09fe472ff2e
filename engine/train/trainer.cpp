#include "engine/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "engine/comm/patience.h"
#include "engine/execution/parameter_regrid.h"
#include "engine/ops/parameters/update.h"
#include "engine/system/stop_request.h"
#include "engine/train/pass_end.h"
#include "partitioner/plan/plan_fingerprint.h"

namespace tessera::engine {

namespace {

// Adds the seconds of a piece of work to a total.
template <class Work>
void timed(double& total, Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  total += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(const partitioner::Network& network,
                 const partitioner::Plan& plan,
                 const Communicator& communicator,
                 const TrainerOptions& options)
    : options_(options),
      plan_(&plan),
      configured_(network.image),
      communicator_(&communicator),
      execution_(network, plan, communicator, {.norm = options.training.norm}),
      optimizer_(options.training, execution_.parameters(), communicator.rank()),
      has_loss_(!losses(network).empty()) {
  execution_.parameters().initialize(options.seed);
  execution_.parameters().update_by(
      [this](std::size_t i, const Range& elements, const float* gradient) {
        optimizer_.update(execution_.parameters_under_way(), i, updating_step_, elements, gradient);
      });
  if (plan.replicas.independent()) {
    prepare_synchroniser();
  }
}

void Trainer::prepare_synchroniser() {
  ReplicaModel model{.plan = plan_,
                     .communicator = communicator_,
                     .parameters = &execution_.parameters_under_way()};
  for (OptimizerState<float>& state : optimizer_.states()) {
    model.optimizer_state.push_back(&state.first);
    model.optimizer_state.push_back(&state.second);
    model.optimizer_state.push_back(&state.average);
  }
  model.update_owned = [this](std::size_t i, Index step, const float* gradient, float* values) {
    const partitioner::ParameterPlan& plan = *execution_.parameters_under_way().all()[i].plan;
    optimizer_.update(plan, i, step, gradient, values);
  };
  synchroniser_ = make_synchroniser(
      std::move(model), {.seed = options_.seed, .post_local_steps = options_.post_local_steps});
}

// Where values and what goes with them are those that training begins with.
void Trainer::begin() {
  if (std::exchange(begun_, true)) {
    return;
  }
  if (steps_ == 0) {
    optimizer_.begin_averages(execution_.parameters_under_way());
  }
  if (!synchroniser_) {
    return;
  }
  synchroniser_->begin(steps_, restored_);
  const partitioner::Replicas& replicas = execution_.plan().replicas;
  if (replicas.run_ahead()) {
    relay_ = std::make_unique<OutcomeRelay>(*communicator_,
                                            synchroniser_->peer_ranks(),
                                            options_.training.subdivisions,
                                            replicas.sync.steps,
                                            losses_before_);
  }
}

Trainer::CommonModel Trainer::common_model() {
  if (synchroniser_) {
    begin();
    settle();
    (void)execution_.parameters();  // values that are under way
    synchroniser_->share_model();
  }
  return CommonModel(synchroniser_.get());
}

void Trainer::with_averages(const std::function<void()>& work) {
  if (!optimizer_.trained().averages) {
    work();
    return;
  }
  begin();
  exchange_averages();
  try {
    work();
  } catch (const AgreedError&) {
    exchange_averages();
    throw;
  } catch (const Stopped&) {
    exchange_averages();
    throw;
  }
  exchange_averages();
}

// Owners send what they have then to all who hold it.
void Trainer::exchange_averages() {
  ParameterSet<float>& parameters = execution_.parameters();
  optimizer_.swap_averages(parameters);
  for (Parameter<float>& parameter : parameters.all()) {
    if (!parameter.plan->frozen) {
      float* const values = parameter.values.data();
      regrid_elements(*communicator_,
                      owned_values(*parameter.plan),
                      values,
                      held_values(*parameter.plan),
                      values);
    }
  }
}

// Where replicas may run ahead: what all have to learn of the steps so far.
void Trainer::settle() {
  if (!relay_) {
    return;
  }
  std::optional<std::string> problem = relay_->settle();
  if (!problem) {
    problem = communicator_->agree(std::exchange(reported_, std::nullopt));
  }
  if (problem) {
    throw AgreedError(*problem);
  }
}

std::vector<double> Trainer::latest_losses() const {
  return relay_ ? relay_->latest_losses() : losses_before_;
}

void Trainer::report(std::optional<std::string> problem) {
  reported_ = reported_ ? std::move(reported_) : std::move(problem);
}

RankState Trainer::rank_state() {
  RankState state;
  ParameterSet<float>& parameters = execution_.parameters();
  if (parameters.compression() != partitioner::Compression::Exact) {
    for (Array<float>* errors : parameters.error_feedback()) {
      state.arrays.push_back(errors->span());
    }
  }
  if (synchroniser_) {
    for (const std::span<float> array : synchroniser_->state()) {
      state.arrays.push_back(array);
    }
  }
  if (!state.arrays.empty()) {
    state.layout = fingerprint(*plan_);
  }
  return state;
}

std::vector<std::span<float>> Trainer::own_arrays() {
  std::vector<std::span<float>> arrays;
  ParameterSet<float>& parameters = execution_.parameters_under_way();
  if (parameters.compression() != partitioner::Compression::Exact) {
    for (Array<float>* errors : parameters.error_feedback()) {
      arrays.push_back(errors->span());
    }
  }
  if (synchroniser_) {
    for (const std::span<float> array : synchroniser_->own_state()) {
      arrays.push_back(array);
    }
  }
  return arrays;
}

std::int64_t Trainer::sent_bytes() const {
  return sent_bytes_ + (synchroniser_ ? synchroniser_->sent_bytes() : 0);
}

Trainer::~Trainer() {
  if (std::uncaught_exceptions() == 0) {
    execution_.parameters_under_way().finish_values();
  }
}

Pass Trainer::training_pass(Index part, const Targets* targets) const {
  Pass pass;
  pass.batch_norm = options_.batch_norm;
  pass.seed = options_.seed;
  pass.step = steps_;
  pass.number = part;
  pass.first_image = part * execution_.plan().batch;
  pass.in_last_epochs = in_last_epochs(options_.training, steps_ + 1);
  pass.ends_step = part + 1 == options_.training.subdivisions;
  pass.targets = targets;
  pass.images_seen = steps_ * options_.training.batch +
                     (part + 1) * options_.training.batch / options_.training.subdivisions;
  pass.loss_scale = execution_.plan().copies() / static_cast<double>(options_.training.batch);
  return pass;
}

void Trainer::update() {
  execution_.update(training_pass(options_.training.subdivisions - 1, nullptr),
                    [this](int bucket) { update(bucket); });
  optimizer_.average(execution_.parameters_under_way(), steps_ + 1);
}

void Trainer::update(int bucket) {
  updating_step_ = steps_ + 1;
  ParameterSet<float>& parameters = execution_.parameters_under_way();
  const auto update_in_place = [&] {
    for (const std::size_t i : parameters.in_bucket(bucket)) {
      optimizer_.update(parameters, i, steps_ + 1);
    }
  };
  if (!synchroniser_) {
    update_in_place();
    return;
  }
  if (void_step_) {
    for (const std::size_t i : parameters.in_bucket(bucket)) {
      Array<float>& gradient = parameters.all()[i].gradient;
      set_zero(gradient.data(), gradient.size());
    }
  }
  synchroniser_->update(bucket, steps_ + 1, update_in_place);
}

// The sum of all replicas; where these may run ahead, that of some steps before.
PassOutcome Trainer::outcome_of(const Pass& pass,
                                const std::optional<std::string>& images_problem) {
  if (!relay_) {
    return exchange_loss(execution_, pass, images_problem);
  }
  std::optional<PassProblem> problem;
  if (images_problem) {
    problem = {PassProblem::Kind::Images, *images_problem};
  } else if (reported_) {
    problem = {PassProblem::Kind::Reported, *std::exchange(reported_, std::nullopt)};
  }
  PassOutcome mine = execution_.exchange_loss(pass, stop_signal(), problem);
  // Others may be at another step: it counts as what images of this replica cost.
  const double images = static_cast<double>(options_.training.batch) /
                        static_cast<double>(options_.training.subdivisions) /
                        execution_.plan().copies();
  mine.loss = {mine.loss.sum_over(images)};
  if (mine.problem && mine.problem->kind == PassProblem::Kind::Images) {
    void_step_ = true;
    mine.loss = {};  // of whatever images were there
  }
  PassOutcome outcome = relay_->exchange(mine);
  expect_no_problem(outcome);
  return outcome;
}

template <class Work>
void Trainer::timed_phase(StepTimes& times,
                          double StepTimes::*total,
                          double StepTimes::*exchange,
                          Work work) const {
  const Pulse* pulse = communicator_->pulse();
  const auto waited_s = [pulse] { return pulse == nullptr ? 0 : pulse->waited_s(); };
  const double exchanged_before_s = communicator_->exchange_times().total_s();
  const double waited_before_s = waited_s();
  timed(times.*total, work);
  times.*exchange += communicator_->exchange_times().total_s() - exchanged_before_s;
  times.waiting_s += waited_s() - waited_before_s;
}

void Trainer::keep_statistics() {
  statistics_.clear();
  for (const Parameter<float>& parameter : execution_.parameters_under_way().all()) {
    if (is_running_statistic(*parameter.plan)) {
      const float* values = parameter.values.data();
      statistics_.insert(statistics_.end(), values, values + parameter.values.size());
    }
  }
}

void Trainer::restore_statistics() {
  const float* kept = statistics_.data();
  for (Parameter<float>& parameter : execution_.parameters_under_way().all()) {
    if (is_running_statistic(*parameter.plan)) {
      std::copy_n(kept, parameter.values.size(), parameter.values.data());
      kept += parameter.values.size();
    }
  }
}

void Trainer::use(std::shared_ptr<const partitioner::SizedPlan> sized) {
  if (sized != sized_) {
    execution_.change_to(sized->network, sized->plan);
    sized_ = std::move(sized);
  }
}

void Trainer::use_configured_size() {
  if (options_.sizes && !has_configured_size()) {
    use(options_.sizes->configured());
  }
}

StepResult Trainer::step(DataLoader& loader) {
  keep_statistics();
  try {
    return run_step(loader);
  } catch (const AgreedError&) {  // before the update: the forward pass has changed statistics only
    restore_statistics();
    throw;
  }
}

// Before a backward pass, after which gradient reductions are under way.
void Trainer::expect_finite_loss(double loss) const {
  if (!std::isfinite(loss)) {
    throw Diverged(
        fmt::format("step {}: the loss is {}; training has diverged, try a lower learning_rate "
                    "or a longer burn_in",
                    steps_ + 1,
                    loss));
  }
}

void Trainer::expect_finite_parameters() {
  double mine = 0;
  const auto count = [&mine](std::span<const float> values) {
    mine += static_cast<double>(std::count_if(
        values.begin(), values.end(), [](float value) { return !std::isfinite(value); }));
  };
  for (const Parameter<float>& parameter : execution_.parameters().all()) {
    count(parameter.values.span());
  }
  for (const OptimizerState<float>& state : optimizer_.states()) {  // part of a checkpoint, too
    count(state.first.span());
    count(state.second.span());
    count(state.average.span());
  }
  for (const Array<float>* errors : execution_.parameters().error_feedback()) {
    count(errors->span());
  }
  if (sum_over_ranks(*communicator_, mine) > 0) {
    throw Diverged(
        fmt::format("step {}: some weights are not finite; training has diverged, try a lower "
                    "learning_rate or a longer burn_in",
                    steps_));
  }
}

StepResult Trainer::run_step(DataLoader& loader) {
  expects(has_loss_ || loader.is_random(), "a loss, or nothing to learn");
  StepResult result;
  StepTimes& times = result.times;
  const ExchangeTimes before = communicator_->exchange_times();
  const std::int64_t sent_before = communicator_->sent_bytes();
  begin();
  timed(times.step_s, [&] {
    if (options_.sizes) {
      use(options_.sizes->at(steps_));
      if (!has_configured_size()) {
        result.size = partitioner::size_of(execution_.network().image);
      }
    }
    void_step_ = false;
    execution_.parameters_under_way().clear_gradients();
    double loss = 0;
    LossSum by_objects;
    for (Index part = 0; part < options_.training.subdivisions; ++part) {
      std::optional<std::string> problem;
      timed(times.load_s, [&] {
        problem =
            load_pass(trunk_, loader, execution_, steps_ * options_.training.subdivisions + part);
      });
      const Pass pass = training_pass(part, has_loss_ ? &loader.targets() : nullptr);
      timed_phase(times, &StepTimes::forward_s, &StepTimes::forward_exchange_s, [&] {
        forward(trunk_, execution_, pass);
        if (pass.ends_step && forward_done_) {
          forward_done_();
        }
        if (has_loss_) {
          const PassOutcome outcome = outcome_of(pass, problem);
          loss += outcome.loss.total();
          by_objects.add({.by_objects = outcome.loss.by_objects});
          result.stop_signal = outcome.stop_signal;
        }
      });
      if (trunk_ != nullptr) {
        trunk_->confirm();
        result.trunk_given = result.trunk_given || trunk_->gives();
      }
      expect_finite_loss(loss + by_objects.object_mean());
      timed_phase(times, &StepTimes::backward_s, &StepTimes::backward_exchange_s, [&] {
        execution_.clear_output_gradient();
        if (!has_loss_) {
          fill_output_gradient();
        }
        execution_.backward(pass);
      });
    }
    result.loss = loss / static_cast<double>(options_.training.batch) + by_objects.object_mean();
    result.learning_rate = learning_rate(options_.training, steps_ + 1);
    timed_phase(times, &StepTimes::update_s, &StepTimes::update_exchange_s, [&] { update(); });
  });
  times.exchanges = communicator_->exchange_times().since(before);
  sent_bytes_ += communicator_->sent_bytes() - sent_before;
  ++steps_;
  return result;
}

void Trainer::fill_output_gradient() {
  const Region& owned =
      execution_.plan().tile(execution_.network().size() - 1, communicator_->rank()).owned;
  const std::vector<float> ones(
      static_cast<std::size_t>(owned.volume()),
      static_cast<float>(1e-3 / static_cast<double>(std::max<Index>(owned.volume(), 1))));
  copy_in(ones.data(), owned, execution_.output_gradient());
}

}  // namespace tessera::engine
