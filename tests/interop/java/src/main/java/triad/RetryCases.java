package triad;

import static triad.Support.message;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** Failing listeners; the cluster's delay levels are one second each (see run.sh). */
final class RetryCases {
  /** Three messages fail always: with maxReconsumeTimes=2 each is delivered 3 times, then read from %DLQ%. */
  static String retryAndDeadLetter() throws Exception {
    String topic = "JRetry" + Support.RUN;
    String group = "g_retry" + Support.RUN;
    DefaultMQProducer producer = Support.producer("retry");
    for (int i = 0; i < 20; i++) producer.send(message(topic, "T", "k" + i, (i < 3 ? "poison" : "good") + i));
    producer.shutdown();
    Map<String, Integer> attempts = new ConcurrentHashMap<>();
    Set<String> wrong = ConcurrentHashMap.newKeySet();
    DefaultMQPushConsumer consumer = Support.consumer(group, "retry");
    consumer.setMaxReconsumeTimes(2);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      context.setDelayLevelWhenNextConsume(1);
      for (MessageExt m : messages) {
        String body = Support.body(m);
        int before = attempts.merge(body, 1, Integer::sum) - 1;
        if (m.getReconsumeTimes() != before) wrong.add(body + " reconsumeTimes " + m.getReconsumeTimes());
        if (!m.getTopic().equals(topic)) wrong.add(body + " topic " + m.getTopic());
        if (body.startsWith("poison")) return ConsumeConcurrentlyStatus.RECONSUME_LATER;
      }
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    Map<String, Integer> dead = new ConcurrentHashMap<>();
    boolean ok = readDeadLetters(group, dead, 3);
    consumer.shutdown();
    boolean exact = attempts.entrySet().stream()
        .allMatch(e -> e.getValue() == (e.getKey().startsWith("poison") ? 3 : 1));
    ok &= exact && attempts.size() == 20 && wrong.isEmpty() && dead.values().stream().allMatch(n -> n == 1);
    return Support.result(ok && dead.size() == 3, "messages=%d attempts_exact=%s dead=%d wrong=%s", attempts.size(), exact,
        dead.size(), wrong);
  }

  /** An orderly listener that always suspends: max attempts in place, then the dead-letter topic, then the rest. */
  static String orderlyDeadLetter() throws Exception {
    String topic = "JOrderlyDlq" + Support.RUN;
    String group = "g_odlq" + Support.RUN;
    DefaultMQProducer producer = Support.producer("odlq");
    for (int i = 0; i < 3; i++) {
      producer.send(message(topic, "T", "k", i == 0 ? "poison" : "good" + i), (queues, m, arg) -> queues.get(0), null);
    }
    producer.shutdown();
    List<String> order = new CopyOnWriteArrayList<>();
    DefaultMQPushConsumer consumer = Support.consumer(group, "odlq");
    consumer.setMaxReconsumeTimes(2);
    consumer.setSuspendCurrentQueueTimeMillis(100);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
      String body = Support.body(messages.get(0));
      order.add(body);
      return body.equals("poison") ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
    });
    consumer.start();
    Map<String, Integer> dead = new ConcurrentHashMap<>();
    boolean ok = readDeadLetters(group, dead, 1);
    ok &= Support.waitFor(60, () -> order.contains("good2"));
    consumer.shutdown();
    ok &= dead.equals(Map.of("poison", 1)) && order.equals(List.of("poison", "poison", "poison", "good1", "good2"));
    return Support.result(ok, "order=%s dead=%s", order, dead);
  }

  private static boolean readDeadLetters(String group, Map<String, Integer> dead, int count) throws Exception {
    DefaultLitePullConsumer pull = new DefaultLitePullConsumer("dlqreader_" + group);
    pull.setNamesrvAddr(Support.namesrv);
    pull.setInstanceName("dlq" + group);
    pull.setMqClientApiTimeout(Support.PATIENCE_MS);
    pull.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    pull.setTopicMetadataCheckIntervalMillis(1000);
    pull.setPollNameServerInterval(1000);
    pull.subscribe("%DLQ%" + group, "*");
    pull.start();
    boolean ok = Support.waitFor(120, () -> {
      for (MessageExt m : pull.poll(200)) dead.merge(Support.body(m), 1, Integer::sum);
      return dead.size() >= count;
    });
    for (int i = 0; i < 5; i++) {
      for (MessageExt m : pull.poll(200)) dead.merge(Support.body(m), 1, Integer::sum);
    }
    pull.shutdown();
    return ok;
  }
}
