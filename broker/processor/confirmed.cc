#include "broker/processor/confirmed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "broker/processor/response.h"

namespace triad::broker {

void WhenConfirmed(BrokerContext& context, const RequestPtr& request, const Reply& reply,
                   std::function<void()> then) {
  using std::chrono::milliseconds;
  const auto left =
      std::chrono::ceil<milliseconds>(request->arrived + kBudget - context.clock.MonoNow());
  context.reads.Confirm(std::max(left, milliseconds(1)),
                        [request, reply, then = std::move(then)](const Status& confirmed) {
                          if (confirmed.ok()) {
                            then();
                          } else {
                            reply(ResponseOf(request->command, confirmed));
                          }
                        });
}

}  // namespace triad::broker
