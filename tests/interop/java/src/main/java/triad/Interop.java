package triad;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** One case per feature: {@code Interop NAMESRV CASE}. Prints counts; exit 0 only when they are right. */
public final class Interop {
  private static String namesrv;
  private static final String RUN = Long.toString(System.currentTimeMillis(), 36);

  public static void main(String[] args) throws Exception {
    namesrv = args[0];
    boolean ok;
    switch (args[1]) {
      case "producer": ok = producer(); break;
      case "orderly": ok = orderly(); break;
      case "concurrent": ok = concurrent(); break;
      case "retry_dead_letter": ok = retryAndDeadLetter(); break;
      case "orderly_dead_letter": ok = orderlyDeadLetter(); break;
      case "tags_delay": ok = tagsAndDelay(); break;
      case "failover": ok = failover(); break;
      default: throw new IllegalArgumentException(args[1]);
    }
    System.out.println("case " + args[1] + ": " + (ok ? "PASS" : "FAIL"));
    System.exit(ok ? 0 : 1);
  }

  private static DefaultMQProducer startProducer(String name) throws Exception {
    DefaultMQProducer producer = new DefaultMQProducer("pg_" + name + RUN);
    producer.setNamesrvAddr(namesrv);
    producer.setInstanceName("p" + name);
    producer.start();
    return producer;
  }

  private static DefaultMQPushConsumer newConsumer(String group, String instance) {
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
    consumer.setNamesrvAddr(namesrv);
    consumer.setInstanceName(instance);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    return consumer;
  }

  private static boolean waitFor(int seconds, BooleanSupplier condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > end) return false;
      new CountDownLatch(1).await(50, TimeUnit.MILLISECONDS);
    }
    return true;
  }

  private static Message message(String topic, String tag, String key, String body) {
    return new Message(topic, tag, key, body.getBytes());
  }

  /** Sends `count` messages over `keys` keys with the selector that picks a queue by key; bodies are "key:n". */
  private static int sendOrdered(DefaultMQProducer producer, String topic, int count, int keys) throws Exception {
    int acked = 0;
    for (int i = 0; i < count; i++) {
      String key = "k" + (i % keys);
      Message m = message(topic, "T", key, key + ":" + (i / keys));
      SendResult r = producer.send(m, (mqs, msg, arg) -> mqs.get(Math.abs(arg.hashCode() % mqs.size())), key);
      if (r.getSendStatus() == SendStatus.SEND_OK) acked++;
    }
    return acked;
  }

  /** Sync, async, oneway, batch and by-selector sends; all acknowledged ones are read back by a pull consumer. */
  private static boolean producer() throws Exception {
    String topic = "JavaProducer" + RUN;
    DefaultMQProducer producer = startProducer("a");
    int acked = sendOrdered(producer, topic, 200, 10);
    CountDownLatch latch = new CountDownLatch(100);
    AtomicInteger asyncOk = new AtomicInteger();
    for (int i = 0; i < 100; i++) {
      producer.send(message(topic, "A", "a" + i, "async" + i), new SendCallback() {
        @Override public void onSuccess(SendResult r) { asyncOk.incrementAndGet(); latch.countDown(); }
        @Override public void onException(Throwable e) { e.printStackTrace(); latch.countDown(); }
      });
    }
    latch.await(20, TimeUnit.SECONDS);
    List<Message> batch = new ArrayList<>();
    for (int i = 0; i < 50; i++) batch.add(message(topic, "B", "b" + i, "batch" + i));
    SendResult batchResult = producer.send(batch);
    int batchIds = batchResult.getMsgId().split(",").length;
    for (int i = 0; i < 50; i++) producer.sendOneway(message(topic, "O", "o" + i, "oneway" + i));
    byte[] big = new byte[100_000];
    Arrays.fill(big, (byte) 'x');
    SendResult bigResult = producer.send(new Message(topic, "Z", "big", big));

    DefaultLitePullConsumer pull = new DefaultLitePullConsumer("lite" + RUN);
    pull.setNamesrvAddr(namesrv);
    pull.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    pull.subscribe(topic, "*");
    pull.start();
    Set<String> bodies = new HashSet<>();
    boolean[] bigSame = {false};
    waitFor(60, () -> {
      for (MessageExt m : pull.poll(200)) {
        if (m.getBody().length == big.length) bigSame[0] = Arrays.equals(m.getBody(), big);
        else bodies.add(new String(m.getBody()));
      }
      return bodies.size() >= 400 && bigSame[0];
    });
    pull.shutdown();
    producer.shutdown();
    System.out.printf("acked=%d async=%d batch_ids=%d big=%s read=%d of 400 compressed_same=%s%n", acked, asyncOk.get(),
        batchIds, bigResult.getSendStatus(), bodies.size(), bigSame[0]);
    return acked == 200 && asyncOk.get() == 100 && batchIds == 50 && bodies.size() == 400 && bigSame[0];
  }

  /** Two orderly consumers share 8 queues: every key in order, nothing twice, nothing lost. */
  private static boolean orderly() throws Exception {
    String topic = "JavaOrderly" + RUN;
    String group = "g_orderly" + RUN;
    DefaultMQProducer producer = startProducer("o");
    sendOrdered(producer, topic, 10, 10);  // the topic exists before the consumers look
    Map<String, Integer> next = new ConcurrentHashMap<>();
    AtomicInteger received = new AtomicInteger();
    AtomicInteger outOfOrder = new AtomicInteger();
    Set<Integer> consumersUsed = ConcurrentHashMap.newKeySet();
    List<DefaultMQPushConsumer> consumers = new ArrayList<>();
    for (int c = 0; c < 2; c++) {
      final int id = c;
      DefaultMQPushConsumer consumer = newConsumer(group, "o" + c);
      consumer.subscribe(topic, "*");
      consumer.registerMessageListener((MessageListenerOrderly) (msgs, context) -> {
        for (MessageExt m : msgs) {
          String[] part = new String(m.getBody()).split(":");
          int n = Integer.parseInt(part[1]);
          Integer before = next.put(part[0], n + 1);
          if ((before == null ? 0 : before) != n) {
            outOfOrder.incrementAndGet();
            System.out.println("out of order: " + part[0] + " got " + n + " expected " + before);
          }
          received.incrementAndGet();
          consumersUsed.add(id);
        }
        return ConsumeOrderlyStatus.SUCCESS;
      });
      consumer.start();
      consumers.add(consumer);
    }
    waitFor(60, () -> received.get() >= 10);
    int acked = 10;
    for (int i = 10; i < 1000; i++) {
      String key = "k" + (i % 10);
      SendResult r = producer.send(message(topic, "T", key, key + ":" + (i / 10)),
          (mqs, msg, arg) -> mqs.get(Math.abs(arg.hashCode() % mqs.size())), key);
      if (r.getSendStatus() == SendStatus.SEND_OK) acked++;
    }
    boolean all = waitFor(90, () -> received.get() >= 1000);
    for (DefaultMQPushConsumer consumer : consumers) consumer.shutdown();
    producer.shutdown();
    System.out.printf("acked=%d received=%d out_of_order=%d consumers=%d%n", acked, received.get(), outOfOrder.get(),
        consumersUsed.size());
    return all && acked == 1000 && received.get() == 1000 && outOfOrder.get() == 0;
  }

  private static boolean concurrent() throws Exception {
    String topic = "JavaConcurrent" + RUN;
    DefaultMQProducer producer = startProducer("c");
    int acked = sendOrdered(producer, topic, 1000, 50);
    Map<String, Integer> seen = new ConcurrentHashMap<>();
    List<DefaultMQPushConsumer> consumers = new ArrayList<>();
    for (int c = 0; c < 2; c++) {
      DefaultMQPushConsumer consumer = newConsumer("g_conc" + RUN, "c" + c);
      consumer.subscribe(topic, "*");
      consumer.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
        for (MessageExt m : msgs) seen.merge(new String(m.getBody()), 1, Integer::sum);
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
      });
      consumer.start();
      consumers.add(consumer);
    }
    boolean all = waitFor(90, () -> seen.size() >= 1000);
    for (DefaultMQPushConsumer consumer : consumers) consumer.shutdown();
    producer.shutdown();
    System.out.printf("acked=%d distinct=%d deliveries=%d%n", acked, seen.size(),
        seen.values().stream().mapToInt(Integer::intValue).sum());
    return all && acked == 1000;
  }

  /** Three messages fail always: with maxReconsumeTimes=2 each is delivered 3 times, then read from %DLQ%. */
  private static boolean retryAndDeadLetter() throws Exception {
    String topic = "JavaRetry" + RUN;
    String group = "g_retry" + RUN;
    DefaultMQProducer producer = startProducer("r");
    for (int i = 0; i < 20; i++) producer.send(message(topic, "T", "k" + i, (i < 3 ? "poison" : "good") + i));
    Map<String, Integer> attempts = new ConcurrentHashMap<>();
    Set<String> wrong = ConcurrentHashMap.newKeySet();
    DefaultMQPushConsumer consumer = newConsumer(group, "r");
    consumer.setMaxReconsumeTimes(2);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
      context.setDelayLevelWhenNextConsume(1);
      for (MessageExt m : msgs) {
        String body = new String(m.getBody());
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
    producer.shutdown();
    boolean exact = attempts.entrySet().stream().allMatch(e -> e.getValue() == (e.getKey().startsWith("poison") ? 3 : 1));
    System.out.printf("attempts=%s dead=%s wrong=%s%n", attempts, dead, wrong);
    return ok && exact && attempts.size() == 20 && dead.size() == 3 && wrong.isEmpty()
        && dead.values().stream().allMatch(n -> n == 1);
  }

  /** An orderly listener that always suspends: max attempts in place, then the dead-letter topic, then the rest. */
  private static boolean orderlyDeadLetter() throws Exception {
    String topic = "JavaOrderlyDlq" + RUN;
    String group = "g_odlq" + RUN;
    DefaultMQProducer producer = startProducer("od");
    for (int i = 0; i < 3; i++) {
      producer.send(message(topic, "T", "k", i == 0 ? "poison" : "good" + i), (mqs, m, arg) -> mqs.get(0), null);
    }
    Map<String, Integer> attempts = new ConcurrentHashMap<>();
    List<String> order = Collections.synchronizedList(new ArrayList<>());
    DefaultMQPushConsumer consumer = newConsumer(group, "od");
    consumer.setMaxReconsumeTimes(2);
    consumer.setSuspendCurrentQueueTimeMillis(100);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerOrderly) (msgs, context) -> {
      String body = new String(msgs.get(0).getBody());
      attempts.merge(body, 1, Integer::sum);
      order.add(body);
      return body.equals("poison") ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
    });
    consumer.start();
    Map<String, Integer> dead = new ConcurrentHashMap<>();
    boolean ok = readDeadLetters(group, dead, 1);
    ok &= waitFor(60, () -> attempts.containsKey("good2"));
    consumer.shutdown();
    producer.shutdown();
    System.out.printf("order=%s dead=%s%n", order, dead);
    return ok && attempts.get("poison") == 3 && dead.equals(Map.of("poison", 1))
        && order.equals(List.of("poison", "poison", "poison", "good1", "good2"));
  }

  private static boolean readDeadLetters(String group, Map<String, Integer> dead, int count) throws Exception {
    DefaultLitePullConsumer pull = new DefaultLitePullConsumer("dlqreader_" + group);
    pull.setNamesrvAddr(namesrv);
    pull.setInstanceName("dlq" + group);
    pull.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    pull.setTopicMetadataCheckIntervalMillis(1000);
    pull.setPollNameServerInterval(1000);
    pull.subscribe("%DLQ%" + group, "*");
    pull.start();
    boolean ok = waitFor(120, () -> {
      for (MessageExt m : pull.poll(200)) dead.merge(new String(m.getBody()), 1, Integer::sum);
      return dead.size() >= count;
    });
    for (int i = 0; i < 5; i++) {
      for (MessageExt m : pull.poll(200)) dead.merge(new String(m.getBody()), 1, Integer::sum);
    }
    pull.shutdown();
    return ok;
  }

  /** A tag subscription gets its tag only; a level-1 message arrives about a second late, once. */
  private static boolean tagsAndDelay() throws Exception {
    String topic = "JavaTags" + RUN;
    DefaultMQProducer producer = startProducer("t");
    for (int i = 0; i < 30; i++) producer.send(message(topic, i % 3 == 0 ? "Aa" : i % 3 == 1 ? "BB" : "C", "k", "m" + i));
    long sentAt = System.currentTimeMillis();
    Message late = message(topic, "Aa", "late", "late");
    late.setDelayTimeLevel(1);
    producer.send(late);
    Map<String, Long> seen = new ConcurrentHashMap<>();
    AtomicInteger deliveries = new AtomicInteger();
    DefaultMQPushConsumer consumer = newConsumer("g_tags" + RUN, "t");
    consumer.subscribe(topic, "Aa || D");  // "Aa" and "BB" have the same hash code
    consumer.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
      for (MessageExt m : msgs) {
        deliveries.incrementAndGet();
        seen.put(new String(m.getBody()), m.getStoreTimestamp());
      }
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    boolean ok = waitFor(60, () -> seen.size() >= 11);
    consumer.shutdown();
    producer.shutdown();
    long delay = seen.getOrDefault("late", 0L) - sentAt;
    System.out.printf("seen=%d deliveries=%d delay_ms=%d%n", seen.size(), deliveries.get(), delay);
    return ok && seen.size() == 11 && deliveries.get() == 11 && delay >= 900;
  }

  /** Sends by key while the runner kills the leader on "KILL NOW": whatever was acknowledged is read back, in order. */
  private static boolean failover() throws Exception {
    String topic = "JavaFailover" + RUN;
    DefaultMQProducer producer = startProducer("f");
    producer.setSendMsgTimeout(3000);
    List<String> acked = new ArrayList<>();
    int failed = 0;
    long longestGapMs = 0;
    long lastOk = System.nanoTime();
    for (int i = 0; i < 600; i++) {
      String body = "m" + i;
      for (int attempt = 0; attempt < 60; attempt++) {
        try {
          SendResult r = producer.send(message(topic, "T", "k", body), (mqs, m, arg) -> mqs.get(0), null);
          if (r.getSendStatus() == SendStatus.SEND_OK) {
            acked.add(body);
            longestGapMs = Math.max(longestGapMs, (System.nanoTime() - lastOk) / 1_000_000);
            lastOk = System.nanoTime();
            break;
          }
        } catch (Exception e) {
          failed++;
          new CountDownLatch(1).await(500, TimeUnit.MILLISECONDS);
        }
      }
      if (i == 200) {
        System.out.println("KILL NOW");
        System.out.flush();
      }
    }
    List<String> read = Collections.synchronizedList(new ArrayList<>());
    DefaultMQPushConsumer consumer = newConsumer("g_failover" + RUN, "f");
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerOrderly) (msgs, context) -> {
      for (MessageExt m : msgs) read.add(new String(m.getBody()));
      return ConsumeOrderlyStatus.SUCCESS;
    });
    consumer.start();
    boolean all = waitFor(90, () -> new HashSet<>(read).containsAll(acked));
    consumer.shutdown();
    producer.shutdown();
    Map<String, Integer> first = new HashMap<>();
    for (int i = 0; i < read.size(); i++) first.putIfAbsent(read.get(i), i);
    int outOfOrder = 0;
    for (int i = 1; i < acked.size(); i++) {
      if (first.getOrDefault(acked.get(i), -1) < first.getOrDefault(acked.get(i - 1), -1)) outOfOrder++;
    }
    System.out.printf("acked=%d failed_calls=%d read=%d out_of_order=%d longest_gap_ms=%d%n", acked.size(), failed,
        read.size(), outOfOrder, longestGapMs);
    return all && acked.size() == 600 && outOfOrder == 0;
  }
}
