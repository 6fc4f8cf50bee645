package triad;

import static triad.Support.message;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Push, pull and lite pull. */
final class ConsumerCases {
  /** Counts deliveries by body. */
  static DefaultMQPushConsumer counting(String group, String instance, String topic, String tags,
      Map<String, Integer> seen) throws Exception {
    DefaultMQPushConsumer consumer = Support.consumer(group, instance);
    consumer.subscribe(topic, tags);
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      for (MessageExt m : messages) seen.merge(Support.body(m), 1, Integer::sum);
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    return consumer;
  }

  static int deliveries(Map<String, Integer> seen) {
    return seen.values().stream().mapToInt(Integer::intValue).sum();
  }

  /** Two orderly consumers share the queues: every key in order, nothing twice, nothing lost. */
  static String orderly() throws Exception {
    String topic = "JOrderly" + Support.RUN;
    DefaultMQProducer producer = Support.producer("orderly");
    int acked = Support.sendByKey(producer, topic, 0, 10, 10);  // the topic exists before the consumers look
    Map<String, Integer> next = new ConcurrentHashMap<>();
    AtomicInteger received = new AtomicInteger();
    AtomicInteger outOfOrder = new AtomicInteger();
    List<DefaultMQPushConsumer> consumers = new ArrayList<>();
    for (int c = 0; c < 2; c++) {
      DefaultMQPushConsumer consumer = Support.consumer("g_orderly" + Support.RUN, "orderly" + c);
      consumer.subscribe(topic, "*");
      consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
        for (MessageExt m : messages) {
          String[] part = Support.body(m).split(":");
          int n = Integer.parseInt(part[1]);
          Integer before = next.put(part[0], n + 1);
          if ((before == null ? 0 : before) != n) outOfOrder.incrementAndGet();
          received.incrementAndGet();
        }
        return ConsumeOrderlyStatus.SUCCESS;
      });
      consumer.start();
      consumers.add(consumer);
    }
    Support.waitFor(60, () -> received.get() >= 10);
    acked += Support.sendByKey(producer, topic, 10, 1000, 10);
    boolean all = Support.waitFor(90, () -> received.get() >= 1000);
    for (DefaultMQPushConsumer consumer : consumers) consumer.shutdown();
    producer.shutdown();
    return Support.result(all && acked == 1000 && received.get() == 1000 && outOfOrder.get() == 0,
        "acked=%d received=%d out_of_order=%d", acked, received.get(), outOfOrder.get());
  }

  static String concurrent() throws Exception {
    String topic = "JConcurrent" + Support.RUN;
    String group = "g_concurrent" + Support.RUN;
    DefaultMQProducer producer = Support.producer("concurrent");
    int acked = Support.sendByKey(producer, topic, 0, 1000, 50);
    producer.shutdown();
    Map<String, Integer> seen = new ConcurrentHashMap<>();
    DefaultMQPushConsumer first = counting(group, "concurrent0", topic, "*", seen);
    DefaultMQPushConsumer second = counting(group, "concurrent1", topic, "*", seen);
    boolean all = Support.waitFor(90, () -> seen.size() >= 1000);
    first.shutdown();
    second.shutdown();
    return Support.result(all && acked == 1000, "acked=%d distinct=%d deliveries=%d", acked, seen.size(),
        deliveries(seen));
  }

  /** "Aa" and "BB" have the same hash code: the broker cannot tell them apart, the client must. */
  static String tags() throws Exception {
    String topic = "JTags" + Support.RUN;
    DefaultMQProducer producer = Support.producer("tags");
    for (int i = 0; i < 30; i++) {
      producer.send(message(topic, i % 3 == 0 ? "Aa" : i % 3 == 1 ? "BB" : "C", "k", "m" + i));
    }
    producer.send(message(topic, "D", "k", "last"));
    producer.shutdown();
    Map<String, Integer> seen = new ConcurrentHashMap<>();
    DefaultMQPushConsumer consumer = counting("g_tags" + Support.RUN, "tags", topic, "Aa || D", seen);
    boolean ok = Support.waitFor(60, () -> seen.size() >= 11);
    consumer.shutdown();
    return Support.result(ok && seen.size() == 11 && deliveries(seen) == 11, "distinct=%d deliveries=%d of 11",
        seen.size(), deliveries(seen));
  }

  /** A message with delay level 1 (one second) arrives about that late, once. */
  static String delay() throws Exception {
    return delays("delay", new int[] {1}, new int[] {1});
  }

  /** The table that a broker has when its file names none (run.sh: TRIAD_DELAY_TABLE=default). */
  static String delayDefaultTable() throws Exception {
    return delays("delay_default", new int[] {1, 2, 3}, new int[] {1, 5, 10});
  }

  /** A table of the operator's own (TRIAD_DELAY_TABLE="2s 4s"); a level above it is its last one. */
  static String delayOwnTable() throws Exception {
    return delays("delay_own", new int[] {1, 2, 9}, new int[] {2, 4, 4});
  }

  /** A message of each of `levels`, which is to be late by as many seconds, once each. */
  private static String delays(String name, int[] levels, int[] seconds) throws Exception {
    String topic = "J_" + name + Support.RUN;
    DefaultMQProducer producer = Support.producer(name);
    Support.sendPlain(producer, topic, 1);
    Map<String, Long> sentAt = new ConcurrentHashMap<>();
    for (int level : levels) {
      Message late = message(topic, "T", "late", "level" + level);
      late.setDelayTimeLevel(level);
      sentAt.put("level" + level, System.currentTimeMillis());
      producer.send(late);
    }
    producer.shutdown();
    Map<String, Long> storedAt = new ConcurrentHashMap<>();
    AtomicInteger deliveries = new AtomicInteger();
    DefaultMQPushConsumer consumer = Support.consumer("g_" + name + Support.RUN, name);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      for (MessageExt m : messages) {
        deliveries.incrementAndGet();
        storedAt.put(Support.body(m), m.getStoreTimestamp());
      }
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    boolean ok = Support.waitFor(60, () -> storedAt.size() >= 1 + levels.length);
    consumer.shutdown();
    List<Long> lateMs = new ArrayList<>();
    for (int i = 0; i < levels.length; i++) {
      String body = "level" + levels[i];
      long late = storedAt.getOrDefault(body, 0L) - sentAt.get(body);
      lateMs.add(late);
      ok &= late >= seconds[i] * 1000L - 100 && late < seconds[i] * 1000L + 3_000;
    }
    return Support.result(ok && deliveries.get() == 1 + levels.length, "deliveries=%d late_ms=%s", deliveries.get(), lateMs);
  }

  static String suspendAndResume() throws Exception {
    String topic = "JSuspend" + Support.RUN;
    DefaultMQProducer producer = Support.producer("suspend");
    Support.sendPlain(producer, topic, 20);
    Map<String, Integer> seen = new ConcurrentHashMap<>();
    DefaultMQPushConsumer consumer = counting("g_suspend" + Support.RUN, "suspend", topic, "*", seen);
    boolean ok = Support.waitFor(60, () -> seen.size() >= 20);
    consumer.suspend();
    Support.pause(1000);  // pulls that were under way end; held ones bring what comes first
    for (int i = 0; i < 200; i++) producer.send(message(topic, "T", "k", "later" + i));
    Support.pause(2000);
    int whileSuspended = seen.size() - 20;
    consumer.resume();
    ok &= Support.waitFor(60, () -> seen.size() >= 220);
    consumer.shutdown();
    producer.shutdown();
    return Support.result(ok && whileSuspended <= 32 * 4, "before=20 while_suspended=%d after=%d", whileSuspended,
        seen.size());
  }

  static String litePull() throws Exception {
    String topic = "JLite" + Support.RUN;
    DefaultMQProducer producer = Support.producer("lite");
    int acked = Support.sendPlain(producer, topic, 300);
    producer.shutdown();
    DefaultLitePullConsumer pull = new DefaultLitePullConsumer("g_lite" + Support.RUN);
    pull.setNamesrvAddr(Support.namesrv);
    pull.setInstanceName("lite");
    pull.setMqClientApiTimeout(Support.PATIENCE_MS);
    pull.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    pull.subscribe(topic, "*");
    pull.start();
    Set<String> bodies = new HashSet<>();
    boolean all = Support.waitFor(60, () -> {
      for (MessageExt m : pull.poll(200)) bodies.add(Support.body(m));
      return bodies.size() >= 300;
    });
    pull.shutdown();
    return Support.result(all && acked == 300, "acked=%d read=%d", acked, bodies.size());
  }

  /** The old pull consumer: reads, waits for what comes, keeps its offset at the broker. */
  static String pull() throws Exception {
    String topic = "JPull" + Support.RUN;
    DefaultMQProducer producer = Support.producer("pull");
    int acked = Support.sendPlain(producer, topic, 40);
    DefaultMQPullConsumer puller = Support.puller("pull");
    int read = 0;
    MessageQueue last = null;
    long end = 0;
    for (MessageQueue queue : puller.fetchSubscribeMessageQueues(topic)) {
      PullResult r = puller.pull(queue, "*", 0, 32);
      if (r.getPullStatus() == PullStatus.FOUND) read += r.getMsgFoundList().size();
      end = r.getNextBeginOffset();
      puller.updateConsumeOffset(queue, end);
      last = queue;
    }
    puller.getDefaultMQPullConsumerImpl().getOffsetStore().persist(last);
    MessageQueue one = last;
    long storedEnd = end;
    boolean stored = Support.waitFor(20, () -> {
      try {
        return puller.fetchConsumeOffset(one, true) == storedEnd;
      } catch (Exception e) {
        return false;
      }
    });
    Thread later = new Thread(() -> {
      try {
        Support.pause(500);
        producer.send(message(topic, "T", "k", "later"), one);
      } catch (Exception e) {
        e.printStackTrace();
      }
    });
    later.start();
    PullResult waited = puller.pullBlockIfNotFound(one, "*", end, 32);
    later.join();
    boolean came = waited.getPullStatus() == PullStatus.FOUND && Support.body(waited.getMsgFoundList().get(0)).equals("later");
    puller.shutdown();
    producer.shutdown();
    return Support.result(acked == 40 && read == 40 && stored && came, "acked=%d read=%d offset_stored=%s waited=%s", acked,
        read, stored, came);
  }
}
