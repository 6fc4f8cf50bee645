package triad;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Requests and replies between two clients, through the broker (codes 325 and 326). */
final class RequestCases {
  private static final int REQUESTS = 20;

  /** Each request gets its own reply, waited for and by callback; one that nobody answers ends with its time. */
  static String requestReply() throws Exception {
    String topic = "JRequest" + Support.RUN;
    DefaultMQProducer replier = Support.producer("replier");
    DefaultMQProducer requester = Support.producer("requester");
    // Makes the topic. Not the requester: a client that knows the route already does not introduce itself to the broker
    // for its first request, and would be found for a reply only behind its next heartbeat.
    Support.sendPlain(replier, topic, 1);
    DefaultMQPushConsumer consumer = Support.consumer("g_request" + Support.RUN, "request");
    AtomicInteger handled = new AtomicInteger();
    AtomicInteger refused = new AtomicInteger();
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      for (MessageExt message : messages) {
        String body = Support.body(message);
        if (!body.startsWith("ask")) continue;
        try {
          handled.incrementAndGet();
          replier.send(MessageUtil.createReplyMessage(message, ("answer to " + body).getBytes()), Support.PATIENCE_MS);
        } catch (Exception e) {
          refused.incrementAndGet();
        }
      }
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    int waited = 0;
    for (int i = 0; i < REQUESTS; i++) {
      Message reply = requester.request(Support.message(topic, "T", "k" + i, "ask" + i), 4 * Support.PATIENCE_MS);
      if (new String(reply.getBody()).equals("answer to ask" + i)) waited++;
    }
    Map<String, String> called = new ConcurrentHashMap<>();
    for (int i = REQUESTS; i < 2 * REQUESTS; i++) {
      String body = "ask" + i;
      requester.request(Support.message(topic, "T", "k" + i, body), new RequestCallback() {
        @Override
        public void onSuccess(Message reply) {
          called.put(body, new String(reply.getBody()));
        }

        @Override
        public void onException(Throwable e) {
          called.put(body, e.toString());
        }
      }, 4 * Support.PATIENCE_MS);
    }
    Support.waitFor(60, () -> called.size() == REQUESTS);
    long right = called.entrySet().stream().filter(e -> e.getValue().equals("answer to " + e.getKey())).count();
    boolean ended = false;
    try {
      requester.request(Support.message(topic, "T", "k", "nobody answers this"), 2000);
    } catch (RequestTimeoutException e) {
      ended = true;
    }
    consumer.shutdown();
    requester.shutdown();
    replier.shutdown();
    return Support.result(waited == REQUESTS && right == REQUESTS && handled.get() == 2 * REQUESTS && refused.get() == 0
        && ended, "waited=%d called_back=%d handled=%d refused=%d unanswered_ended=%s", waited, right, handled.get(),
        refused.get(), ended);
  }
}
