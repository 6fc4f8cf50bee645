#include "broker/service/ask_all.h"

#include <memory>
#include <mutex>
#include <utility>

namespace triad::broker {
namespace {

struct Gathering {
  std::mutex mutex;
  std::size_t open = 0;
  std::vector<Answered> answers;
  std::function<void(std::vector<Answered>)> done;

  void Take(Answered answered) {
    std::vector<Answered> all;
    {
      const std::lock_guard lock(mutex);
      answers.push_back(std::move(answered));
      if (--open > 0) return;
      all.swap(answers);
    }
    done(std::move(all));
  }
};

}  // namespace

void AskAll(remoting::Client& client, const std::vector<std::string>& addresses,
            const remoting::Command& request, std::chrono::milliseconds budget,
            std::function<void(std::vector<Answered>)> done) {
  if (addresses.empty()) {
    done({});
    return;
  }
  auto gathering = std::make_shared<Gathering>();
  gathering->open = addresses.size();
  gathering->done = std::move(done);
  for (const std::string& address : addresses) {
    client.Call(address, request, budget, [gathering, address](Result<remoting::Command> answer) {
      gathering->Take({address, std::move(answer)});
    });
  }
}

}  // namespace triad::broker
