import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32C;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.exception.RemotingConnectException;
import org.apache.rocketmq.remoting.exception.RemotingTooMuchRequestException;

/**
 * Producers and consumers of the stock Java client, the same load as load.cc makes. Every operation is a line of the history
 * (tests/chaos/README.md) on stdout; what it is told on stdin stands in foreign_load.h.
 */
public final class ChaosLoad {
  private static final String FREE = "ChaosFree";
  private static final String ORDERED = "ChaosOrdered";
  private static final int QUEUES = 8;
  private static final int FREE_ATTEMPTS = 3;
  private static final int AFTER_FAILURE_MS = 20;
  private static final AtomicLong nextId = new AtomicLong(1);
  private static final CountDownLatch stop = new CountDownLatch(1);
  private static String namesrv;
  private static String brokerName;
  private static long seed;
  private static int betweenMs;

  /** One line. `fields` is JSON without braces; nothing in it needs escapes. */
  private static synchronized void write(String fields) {
    System.out.println("{" + fields + "}");
  }

  private static long hash(byte[] body) {
    CRC32C crc = new CRC32C();
    crc.update(body, 0, body.length);
    return crc.getValue();
  }

  private static byte[] body(String value, int filler) {
    StringBuilder text = new StringBuilder(value).append('|');
    for (int i = 0; i < filler; i++) text.append((char) ('a' + (i * 7 + value.length() * 3 + i / 13) % 26));
    return text.toString().getBytes(StandardCharsets.US_ASCII);
  }

  private static String value(MessageExt message) {
    String text = new String(message.getBody(), StandardCharsets.ISO_8859_1);
    return text.substring(0, Math.max(0, text.indexOf('|')));
  }

  /** Certainly not stored, or nobody knows. */
  private static String outcomeOf(Exception e) {
    if (e instanceof MQBrokerException) {
      switch (((MQBrokerException) e).getResponseCode()) {
        case 2:   // busy
        case 13:  // illegal message
        case 14:  // not available
        case 16:  // no permission
        case 17:  // no such topic
        case 29:  // invalid parameter
          return "fail";
        default:
          return "info";
      }
    }
    // No address of a leader; no connection; no place in the client's own queue.
    boolean neverSent = e instanceof MQClientException || e instanceof RemotingConnectException
        || e instanceof RemotingTooMuchRequestException;
    return neverSent ? "fail" : "info";
  }

  private interface Send {
    SendResult run(Message message) throws Exception;
  }

  /** `where` is the key and what else the begin of the send says. Was it acknowledged? */
  private static boolean send(String client, String topic, String value, int filler, String where, Send send) {
    Message message = new Message(topic, body(value, filler));
    long id = nextId.getAndIncrement();
    write("\"id\":" + id + ",\"op\":\"send\",\"t_inv_ns\":" + System.nanoTime() + ",\"client\":\"" + client + "\"," + where
        + ",\"value\":\"" + value + "\",\"hash\":" + hash(message.getBody()));
    String outcome;
    String stored = "";
    try {
      SendResult result = send.run(message);
      outcome = result.getSendStatus() == SendStatus.SEND_OK ? "ok" : "info";
      stored = ",\"offset\":" + result.getQueueOffset() + ",\"key\":\"" + topic + "/" + result.getMessageQueue().getQueueId()
          + "\"";
    } catch (Exception e) {
      outcome = outcomeOf(e);
    }
    write("\"id\":" + id + ",\"outcome\":\"" + outcome + "\",\"t_ret_ns\":" + System.nanoTime()
        + (outcome.equals("ok") ? stored : ""));
    return outcome.equals("ok");
  }

  private static DefaultMQProducer producer(String client, String group) throws Exception {
    DefaultMQProducer producer = new DefaultMQProducer(group);
    producer.setNamesrvAddr(namesrv);
    producer.setInstanceName(client);
    producer.setRetryTimesWhenSendFailed(0);  // one attempt: it must never be stored twice
    producer.start();
    return producer;
  }

  private static boolean pause(int ms) throws InterruptedException {
    return stop.await(ms, TimeUnit.MILLISECONDS);
  }

  private static void sendFree(int number) throws Exception {
    String client = "f" + number;
    DefaultMQProducer producer = producer(client, "P-free");
    Random random = new Random(seed + number);
    boolean ok = true;
    for (long n = 1; !pause(ok ? betweenMs : AFTER_FAILURE_MS); n++) {
      MessageQueue queue = new MessageQueue(FREE, brokerName, random.nextInt(QUEUES));
      // Mostly small, some large enough to be compressed.
      int filler = random.nextInt(random.nextInt(20) == 0 ? 16000 : 400);
      ok = send(client, FREE, client + "-" + n, filler, "\"key\":\"" + FREE + "/" + queue.getQueueId() + "\"",
          message -> producer.send(message, queue));
    }
    producer.shutdown();
  }

  private static void sendOrdered(int number) throws Exception {
    String client = "o" + number;
    DefaultMQProducer producer = producer(client, "P-ordered");
    Random random = new Random(seed + 1000 + number);
    boolean ok = true;
    for (long n = 1; !pause(ok ? betweenMs : AFTER_FAILURE_MS); n++) {
      String order = client + "/k" + random.nextInt(12);
      ok = send(client, ORDERED, client + "-" + n, random.nextInt(300),
          "\"key\":\"" + ORDERED + "\",\"order\":\"" + order + "\"",
          message -> producer.send(message,
              (queues, m, key) -> queues.get(Math.floorMod(key.hashCode(), queues.size())), order));
    }
    producer.shutdown();
  }

  private static void delivered(String group, String client, MessageQueue queue, MessageExt message, boolean taken) {
    long now = System.nanoTime();
    write("\"op\":\"deliver\",\"t_inv_ns\":" + now + ",\"outcome\":\"" + (taken ? "ok" : "fail") + "\",\"t_ret_ns\":" + now
        + ",\"group\":\"" + group + "\",\"client\":\"" + client + "\",\"key\":\"" + queue.getTopic() + "/" + queue.getQueueId()
        + "\",\"offset\":" + message.getQueueOffset() + ",\"value\":\"" + value(message) + "\",\"hash\":"
        + hash(message.getBody()) + ",\"times\":" + message.getReconsumeTimes() + ",\"born\":" + message.getBornTimestamp());
  }

  private static DefaultMQPushConsumer consumer(String client, boolean orderly) throws Exception {
    String group = orderly ? "G-orderly" : "G-free";
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
    consumer.setNamesrvAddr(namesrv);
    consumer.setInstanceName(client);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setConsumeThreadMin(4);
    consumer.setConsumeThreadMax(4);
    if (!orderly) consumer.setMaxReconsumeTimes(FREE_ATTEMPTS - 1);
    consumer.subscribe(orderly ? ORDERED : FREE, "*");
    if (orderly) {
      consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
        for (MessageExt m : messages) delivered(group, client, context.getMessageQueue(), m, true);
        // One in a hundred fails and comes again in place.
        context.setSuspendCurrentQueueTimeMillis(20);
        MessageExt first = messages.get(0);
        return hash(first.getBody()) % 100 == 0 && first.getReconsumeTimes() == 0
            ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
      });
    } else {
      consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
        // One in two hundred is refused the first time and comes back through the retry topic, after 10 s; another one
        // always, every second, until it is a dead letter.
        MessageExt first = messages.get(0);
        long kind = hash(first.getBody()) % 200;
        boolean takes = kind == 1 ? first.getReconsumeTimes() > 0 : kind != 2;
        if (kind == 2) context.setDelayLevelWhenNextConsume(1);
        for (MessageExt m : messages) delivered(group, client, context.getMessageQueue(), m, takes);
        return takes ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
      });
    }
    consumer.start();
    return consumer;
  }

  private interface Job {
    void run(int number) throws Exception;
  }

  private static void start(List<Thread> threads, int count, Job job) {
    for (int i = 0; i < count; i++) {
      int number = i;
      Thread thread = new Thread(() -> {
        try {
          job.run(number);
        } catch (Exception e) {
          e.printStackTrace();
          System.exit(1);
        }
      });
      thread.start();
      threads.add(thread);
    }
  }

  public static void main(String[] arguments) throws Exception {
    namesrv = arguments[0];
    brokerName = arguments[1];
    seed = Long.parseLong(arguments[2]);
    betweenMs = Integer.parseInt(arguments[3]);
    List<DefaultMQPushConsumer> consumers = new ArrayList<>();
    for (String member : List.of("a", "b")) {
      consumers.add(consumer("G-orderly" + member, true));
      consumers.add(consumer("G-free" + member, false));
    }
    List<Thread> threads = new ArrayList<>();
    start(threads, 5, ChaosLoad::sendFree);
    start(threads, 2, ChaosLoad::sendOrdered);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null && !line.equals("stop consuming");) {
      if (!line.equals("stop sending")) continue;
      stop.countDown();
      for (Thread thread : threads) thread.join();
      synchronized (ChaosLoad.class) {
        System.out.println("sending stopped");
      }
    }
    stop.countDown();
    for (DefaultMQPushConsumer consumer : consumers) consumer.shutdown();
    System.exit(0);
  }
}
