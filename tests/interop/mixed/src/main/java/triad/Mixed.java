package triad;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * {@code Mixed OUR_NAMESRV JAVA_NAMESRV}: a group of ours and a broker of the original, both registered at both name
 * servers. One client that knows only one of the name servers uses a topic that has queues on both brokers.
 */
public final class Mixed {
  private static final String RUN = Long.toString(System.currentTimeMillis(), 36);
  private static final int COUNT = 200;

  private static boolean waitFor(int seconds, BooleanSupplier condition) throws Exception {
    for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds); !condition.getAsBoolean();) {
      if (System.nanoTime() > end) return false;
      new CountDownLatch(1).await(100, TimeUnit.MILLISECONDS);
    }
    return true;
  }

  private static DefaultMQProducer producer(String namesrv, String name) throws Exception {
    DefaultMQProducer producer = new DefaultMQProducer("pg_" + name + RUN);
    producer.setNamesrvAddr(namesrv);
    producer.setInstanceName("p_" + name);
    producer.start();
    return producer;
  }

  /** Until the template topic is seen on both brokers: a new topic then gets queues on both. */
  private static boolean bothListed(String namesrv, String name) throws Exception {
    DefaultMQProducer producer = producer(namesrv, "look" + name);
    Set<String> brokers = new HashSet<>();
    boolean both = waitFor(60, () -> {
      try {
        producer.fetchPublishMessageQueues("TBW102").forEach(queue -> brokers.add(queue.getBrokerName()));
      } catch (Exception e) {
        return false;  // not yet
      }
      return brokers.size() == 2;
    });
    producer.shutdown();
    return both;
  }

  private static boolean useBoth(String name, String namesrv) throws Exception {
    boolean listed = bothListed(namesrv, name);
    String topic = "Mixed_" + name + RUN;
    DefaultMQProducer producer = producer(namesrv, name);
    Map<String, Integer> sentTo = new HashMap<>();
    for (int i = 0; i < COUNT; i++) {
      SendResult r = producer.send(new Message(topic, ("m" + i).getBytes()));
      if (r.getSendStatus() == SendStatus.SEND_OK) sentTo.merge(r.getMessageQueue().getBrokerName(), 1, Integer::sum);
    }
    Set<String> seen = ConcurrentHashMap.newKeySet();
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("g_" + name + RUN);
    consumer.setNamesrvAddr(namesrv);
    consumer.setInstanceName("c_" + name);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      for (MessageExt m : messages) seen.add(new String(m.getBody()));
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    boolean all = waitFor(60, () -> seen.size() >= COUNT);
    consumer.shutdown();
    producer.shutdown();
    int acked = sentTo.values().stream().mapToInt(Integer::intValue).sum();
    boolean ok = listed && acked == COUNT && sentTo.size() == 2 && all;
    System.out.println("case " + name + ": " + (ok ? "PASS" : "FAIL") + " acked=" + sentTo + " read=" + seen.size());
    return ok;
  }

  /** Our leader dies: the original's name server routes to the next one, and sends go on. */
  private static boolean failover(String name, String namesrv) throws Exception {
    String topic = "MixedFailover" + RUN;
    DefaultMQProducer producer = producer(namesrv, name);
    producer.setRetryTimesWhenSendFailed(0);
    int acked = 0;
    for (int i = 0; i < 50; i++) {
      if (producer.send(new Message(topic, "m".getBytes())).getSendStatus() == SendStatus.SEND_OK) acked++;
    }
    System.out.println("KILL NOW");
    System.out.flush();
    boolean done = "DONE".equals(new BufferedReader(new InputStreamReader(System.in)).readLine());
    Set<String> brokers = ConcurrentHashMap.newKeySet();
    int[] failed = {0};
    boolean again = waitFor(60, () -> {
      try {
        for (int i = 0; i < 16; i++) {
          brokers.add(producer.send(new Message(topic, "m".getBytes())).getMessageQueue().getBrokerName());
        }
      } catch (Exception e) {
        failed[0]++;
        return false;
      }
      return brokers.size() == 2;  // a whole round without a failure, over both
    });
    producer.shutdown();
    boolean ok = acked == 50 && done && again;
    System.out.println("case " + name + ": " + (ok ? "PASS" : "FAIL") + " before=" + acked + " brokers_after=" + brokers
        + " failed_rounds=" + failed[0]);
    return ok;
  }

  public static void main(String[] args) throws Exception {
    boolean ok = useBoth("java_broker_at_our_nameserver", args[0]);
    ok &= useBoth("our_group_at_java_nameserver", args[1]);
    ok &= failover("failover_at_java_nameserver", args[1]);
    System.exit(ok ? 0 : 1);
  }
}
