package triad;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What the cases share. Every name carries RUN, so that cases never meet each other. */
final class Support {
  static final String RUN = Long.toString(System.currentTimeMillis(), 36);
  static final int PATIENCE_MS = 15_000;
  static String namesrv;

  /** What a case found out; thrown when that was not right. */
  static final class Failed extends Exception {
    Failed(String counts) {
      super(counts);
    }
  }

  static String result(boolean ok, String format, Object... arguments) throws Failed {
    String counts = String.format(format, arguments);
    if (!ok) throw new Failed(counts);
    return counts;
  }

  /** With the client's default settings. */
  static DefaultMQProducer plainProducer(String name) throws Exception {
    DefaultMQProducer producer = new DefaultMQProducer("pg_" + name + RUN);
    producer.setNamesrvAddr(namesrv);
    producer.setInstanceName("p_" + name);
    return producer;
  }

  /** With more patience than by default: a fresh JVM on a busy machine needs seconds for its first call. */
  static DefaultMQProducer producer(String name) throws Exception {
    DefaultMQProducer producer = plainProducer(name);
    producer.setMqClientApiTimeout(PATIENCE_MS);
    producer.setSendMsgTimeout(PATIENCE_MS);
    producer.start();
    return producer;
  }

  /** The first calls of a fresh JVM take seconds on a busy machine, longer than the client waits: not what is asked here. */
  static void warmUp() throws Exception {
    DefaultMQProducer producer = producer("warm_up");
    boolean sent = waitFor(60, () -> {
      try {
        return sendPlain(producer, "JWarmUp" + RUN, 20) == 20;
      } catch (Exception e) {
        return false;
      }
    });
    producer.shutdown();
    if (!sent) throw new Failed("no message could be sent within a minute");
  }

  static DefaultMQPushConsumer consumer(String group, String instance) {
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
    consumer.setNamesrvAddr(namesrv);
    consumer.setMqClientApiTimeout(PATIENCE_MS);
    consumer.setInstanceName("c_" + instance);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    return consumer;
  }

  static DefaultMQPullConsumer puller(String name) throws Exception {
    DefaultMQPullConsumer puller = new DefaultMQPullConsumer("g_pull_" + name + RUN);
    puller.setNamesrvAddr(namesrv);
    puller.setInstanceName("pull_" + name);
    puller.setMqClientApiTimeout(PATIENCE_MS);
    puller.start();
    return puller;
  }

  static String clientId(DefaultMQPushConsumer consumer) {
    return consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
  }

  /** What our own mqadmin prints; "" when it fails. */
  static String mqadmin(String verb, String... options) throws Exception {
    List<String> command = new ArrayList<>(List.of(System.getenv("TRIAD_ADMIN"), verb, "-n",
        System.getenv().getOrDefault("TRIAD_ADMIN_NAMESRV", namesrv)));
    command.addAll(List.of(options));
    Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    String text = new String(process.getInputStream().readAllBytes());
    return process.waitFor() == 0 ? text : "";
  }

  static boolean waitFor(int seconds, BooleanSupplier condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > end) return false;
      pause(50);
    }
    return true;
  }

  static void pause(long millis) throws Exception {
    new CountDownLatch(1).await(millis, TimeUnit.MILLISECONDS);
  }

  static Message message(String topic, String tag, String key, String body) {
    return new Message(topic, tag, key, body.getBytes());
  }

  static String body(MessageExt message) {
    return new String(message.getBody());
  }

  /** Number `n` in all, over `keys` keys: body "key:number within the key", queue picked by key. */
  static boolean sendByKey(DefaultMQProducer producer, String topic, int n, int keys) throws Exception {
    String key = "k" + (n % keys);
    SendResult r = producer.send(message(topic, "T", key, key + ":" + (n / keys)),
        (queues, m, arg) -> queues.get(Math.abs(arg.hashCode() % queues.size())), key);
    return r.getSendStatus() == SendStatus.SEND_OK;
  }

  static int sendByKey(DefaultMQProducer producer, String topic, int from, int to, int keys) throws Exception {
    int acked = 0;
    for (int n = from; n < to; n++) {
      if (sendByKey(producer, topic, n, keys)) acked++;
    }
    return acked;
  }

  /** Sends `count` messages "m0".. and returns how many were acknowledged. */
  static int sendPlain(DefaultMQProducer producer, String topic, int count) throws Exception {
    int acked = 0;
    for (int i = 0; i < count; i++) {
      if (producer.send(message(topic, "T", "k" + i, "m" + i)).getSendStatus() == SendStatus.SEND_OK) acked++;
    }
    return acked;
  }

  /** Everything that a topic holds, read with the pull consumer, queue after queue. */
  static List<MessageExt> readAll(String name, String topic) throws Exception {
    DefaultMQPullConsumer puller = puller("all_" + name);
    try {
      List<MessageExt> all = new ArrayList<>();
      for (MessageQueue queue : puller.fetchSubscribeMessageQueues(topic)) {
        long offset = puller.minOffset(queue);
        long end = puller.maxOffset(queue);
        while (offset < end) {
          PullResult r = puller.pull(queue, "*", offset, 32);
          if (r.getMsgFoundList() != null) all.addAll(r.getMsgFoundList());
          offset = r.getNextBeginOffset();
        }
      }
      return all;
    } finally {
      puller.shutdown();
    }
  }
}
