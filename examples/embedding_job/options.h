// The command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace embedding_job {

enum class Role { kAll, kDataLoader, kEmbeddingWorker, kEmbeddingServer, kTrainer };

// Its name in metrics and on the command line: "data_loader".
std::string_view NameOf(Role role);

struct Options {
  Role role = Role::kAll;
  bool help = false;

  // Addresses of the roles.
  std::string listen;                // embedding_worker, embedding_server
  std::vector<std::string> servers;  // embedding_worker
  std::string worker;                // data_loader, trainer
  double connect_timeout = 60;       // seconds
  uint32_t server_replicas = 2;      // all

  // Length of the training.
  double duration = 0;  // seconds; 0: no limit
  uint32_t epochs = 0;  // 0: no limit

  // Data and model.
  std::string corpus;         // empty: the text that every Debian has
  uint64_t max_words = 0;     // 0: all
  uint32_t batch_size = 512;  // words
  uint32_t dimension = 32;
  uint32_t staleness = 4;  // batches in flight
  uint32_t pending = 16;   // batches that wait at the embedding worker
  uint64_t server_capacity = 20'000;
  double learning_rate = 0.05;
  double inject_nan = 0;
  uint64_t seed = 1;

  // Output.
  std::string checkpoint_dir;  // empty: a temporary one, removed at the end
  std::string report;
  bool report_part = false;  // write a part, which another process merges
};

// The text of --help.
std::string HelpText();

// Throws JobError, which quotes the bad argument. Of duplicate options the last counts. Without --duration and --epochs,
// duration is 30.
Options ParseOptions(const std::vector<std::string>& arguments);

}  // namespace embedding_job
