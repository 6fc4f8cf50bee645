package triad;

import static triad.Support.message;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.MessageExt;

/** Clients while brokers go and come: orders to the runner are lines on stdout, answered on stdin (with_cluster). */
final class FaultCases {
  private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));

  private static void order(String what) throws Exception {
    System.out.println(what);
    System.out.flush();
    String answer = ANSWERS.readLine();
    if (!"DONE".equals(answer)) throw new Support.Failed(what + ": " + answer);
  }

  /** Sends while the leader is killed: whatever was acknowledged is read back, in order. */
  static String failover() throws Exception {
    String topic = "JFailover" + Support.RUN;
    DefaultMQProducer producer = Support.plainProducer("failover");
    producer.start();
    List<String> acked = new ArrayList<>();
    int failed = 0;
    long longestGapMs = 0;
    long lastOk = System.nanoTime();
    for (int i = 0; i < 600; i++) {
      String body = "m" + i;
      // The client asks for a new route every 30 seconds.
      long until = System.nanoTime() + 90_000_000_000L;
      while (System.nanoTime() < until) {
        try {
          SendResult r = producer.send(message(topic, "T", "k", body), (queues, m, arg) -> queues.get(0), null);
          if (r.getSendStatus() == SendStatus.SEND_OK) {
            acked.add(body);
            longestGapMs = Math.max(longestGapMs, (System.nanoTime() - lastOk) / 1_000_000);
            lastOk = System.nanoTime();
            break;
          }
        } catch (Exception e) {
          failed++;
          Support.pause(500);
        }
      }
      if (i == 200) order("KILL NOW");
    }
    List<String> read = new CopyOnWriteArrayList<>();
    DefaultMQPushConsumer consumer = Support.consumer("g_failover" + Support.RUN, "failover");
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
      for (MessageExt m : messages) read.add(Support.body(m));
      return ConsumeOrderlyStatus.SUCCESS;
    });
    consumer.start();
    boolean all = Support.waitFor(90, () -> new HashSet<>(read).containsAll(acked));
    consumer.shutdown();
    producer.shutdown();
    Map<String, Integer> first = new HashMap<>();
    for (int i = 0; i < read.size(); i++) first.putIfAbsent(read.get(i), i);
    int outOfOrder = 0;
    for (int i = 1; i < acked.size(); i++) {
      if (first.getOrDefault(acked.get(i), -1) < first.getOrDefault(acked.get(i - 1), -1)) outOfOrder++;
    }
    return Support.result(all && acked.size() == 600 && outOfOrder == 0,
        "acked=%d failed_calls=%d read=%d out_of_order=%d longest_gap_ms=%d", acked.size(), failed, read.size(), outOfOrder,
        longestGapMs);
  }

  /** Every key's numbers as an orderly listener sees them. */
  private static final class Order {
    final Map<String, Integer> next = new ConcurrentHashMap<>();
    final AtomicInteger received = new AtomicInteger();
    final AtomicInteger repeated = new AtomicInteger();
    final AtomicInteger gaps = new AtomicInteger();

    void see(String body) {
      String[] part = body.split(":");
      int n = Integer.parseInt(part[1]);
      int expected = next.getOrDefault(part[0], 0);
      if (n < expected) {
        repeated.incrementAndGet();
        return;
      }
      if (n > expected) {
        System.out.println(part[0] + ": " + n + " came, " + expected + " was expected");
        gaps.incrementAndGet();
      }
      next.put(part[0], n + 1);
      received.incrementAndGet();
    }
  }

  /**
   * Every peer is restarted by SIGTERM in turn, then whoever leads, under load: a client with the default settings
   * sees no failed send and no gap in an orderly and in a concurrent group, and complains of nothing in its log.
   */
  static String rollingRestart() throws Exception {
    String topic = "JRolling" + Support.RUN;
    int keys = 16;
    DefaultMQProducer producer = Support.plainProducer("rolling");
    producer.start();
    Support.sendByKey(producer, topic, 0, keys, keys);
    Order order = new Order();
    DefaultMQPushConsumer consumer = Support.consumer("g_rolling" + Support.RUN, "rolling");
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
      for (MessageExt m : messages) order.see(Support.body(m));
      return ConsumeOrderlyStatus.SUCCESS;
    });
    consumer.start();
    Set<String> free = ConcurrentHashMap.newKeySet();
    DefaultMQPushConsumer concurrent = Support.consumer("g_rolling_free" + Support.RUN, "rolling_free");
    concurrent.subscribe(topic, "*");
    concurrent.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      for (MessageExt m : messages) free.add(Support.body(m));
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    concurrent.start();
    boolean ok = Support.waitFor(60, () -> order.received.get() == keys && free.size() == keys);

    long quiet = logLength();
    AtomicBoolean stop = new AtomicBoolean();
    AtomicInteger sent = new AtomicInteger(keys);
    AtomicInteger failed = new AtomicInteger();
    long[] longestMs = {0};
    Thread load = new Thread(() -> {
      for (int n = keys; !stop.get(); n++) {
        long begin = System.nanoTime();
        try {
          if (!Support.sendByKey(producer, topic, n, keys)) failed.incrementAndGet();
        } catch (Exception e) {
          System.out.println("send " + n + " failed: " + e);
          failed.incrementAndGet();
        }
        longestMs[0] = Math.max(longestMs[0], (System.nanoTime() - begin) / 1_000_000);
        sent.incrementAndGet();
        try {
          Support.pause(5);
        } catch (Exception e) {
          return;
        }
      }
    });
    load.start();
    for (String peer : List.of("0", "1", "2", "LEADER")) order("RESTART " + peer);
    Support.pause(2000);
    stop.set(true);
    load.join();
    ok &= Support.waitFor(60, () -> order.received.get() >= sent.get() && free.size() >= sent.get());
    List<String> complaints = complaintsBehind(quiet);
    for (String line : complaints.subList(0, Math.min(10, complaints.size()))) System.out.println("in the client's log: " + line);
    consumer.shutdown();
    concurrent.shutdown();
    producer.shutdown();
    ok &= failed.get() == 0 && complaints.isEmpty() && order.gaps.get() == 0 && order.received.get() == sent.get();
    ok &= free.size() == sent.get();
    return Support.result(ok, "sent=%d failed=%d received=%d concurrent=%d repeated=%d gaps=%d client_errors=%d slowest_send_ms=%d",
        sent.get(), failed.get(), order.received.get(), free.size(), order.repeated.get(), order.gaps.get(), complaints.size(),
        longestMs[0]);
  }

  /** The log of the client's library (5.x with its tools beside it). */
  private static Path log() {
    return Path.of(System.getProperty("user.home"), "logs", "rocketmqlogs", "tools_default.log");
  }

  private static long logLength() throws Exception {
    // Its first lines are there since the producer began: without them nothing would be seen.
    if (!Support.waitFor(10, () -> Files.isRegularFile(log()) && log().toFile().length() > 0)) {
      throw new Support.Failed("the client writes no log " + log());
    }
    return log().toFile().length();
  }

  /** Warnings, errors and exceptions of producer and consumer since then. */
  private static List<String> complaintsBehind(long length) throws Exception {
    List<String> lines = new ArrayList<>();
    byte[] all = Files.readAllBytes(log());
    String text = new String(all, (int) length, all.length - (int) length, StandardCharsets.UTF_8);
    for (String line : text.split("\n")) {
      if (line.contains(" WARN ") || line.contains(" ERROR ") || line.contains("Exception:")) lines.add(line);
    }
    return lines;
  }
}
