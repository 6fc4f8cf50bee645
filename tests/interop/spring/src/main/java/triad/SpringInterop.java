package triad;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.spring.annotation.ConsumeMode;
import org.apache.rocketmq.spring.annotation.RocketMQMessageListener;
import org.apache.rocketmq.spring.core.RocketMQListener;
import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.stereotype.Component;

/** The unmodified Spring starter: template sends, an ORDERLY and a CONCURRENTLY listener. */
@SpringBootApplication
public class SpringInterop {
  static final int COUNT = 200;
  static final int KEYS = 10;
  static final int PATIENCE_MS = 15_000;
  static final Map<String, Integer> NEXT = new ConcurrentHashMap<>();
  static final AtomicInteger ORDERLY = new AtomicInteger();
  static final AtomicInteger OUT_OF_ORDER = new AtomicInteger();
  static final Map<String, Integer> CONCURRENTLY = new ConcurrentHashMap<>();

  @Component
  @RocketMQMessageListener(topic = "${triad.orderly}", consumerGroup = "${triad.orderly}-group",
      consumeMode = ConsumeMode.ORDERLY)
  static class OrderlyListener implements RocketMQListener<String> {
    @Override public void onMessage(String body) {
      if (body.equals("first")) return;
      String[] part = body.split(":");
      int n = Integer.parseInt(part[1]);
      if (NEXT.getOrDefault(part[0], 0) != n) OUT_OF_ORDER.incrementAndGet();
      NEXT.put(part[0], n + 1);
      ORDERLY.incrementAndGet();
    }
  }

  @Component
  @RocketMQMessageListener(topic = "${triad.concurrently}", consumerGroup = "${triad.concurrently}-group",
      consumeMode = ConsumeMode.CONCURRENTLY)
  static class ConcurrentlyListener implements RocketMQListener<String> {
    @Override public void onMessage(String body) {
      CONCURRENTLY.merge(body, 1, Integer::sum);
    }
  }

  private static boolean waitFor(BooleanSupplier condition) throws Exception {
    for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60); !condition.getAsBoolean();) {
      if (System.nanoTime() > end) return false;
      new CountDownLatch(1).await(50, TimeUnit.MILLISECONDS);
    }
    return true;
  }

  /** So that the listeners find their topics when they start. */
  private static void firstMessage(String namesrv, String topic) throws Exception {
    DefaultMQProducer producer = new DefaultMQProducer("first");
    producer.setNamesrvAddr(namesrv);
    producer.setSendMsgTimeout(PATIENCE_MS);  // a fresh JVM on a busy machine needs seconds for its first call
    producer.setMqClientApiTimeout(PATIENCE_MS);
    producer.start();
    producer.send(new Message(topic, "first".getBytes()));
    producer.shutdown();
  }

  private static boolean report(String name, boolean ok, String counts) {
    System.out.println("case " + name + ": " + (ok ? "PASS " : "FAIL ") + counts);
    return ok;
  }

  public static void main(String[] args) {
    try {
      System.exit(run(args[0]) ? 0 : 1);
    } catch (Throwable thrown) {  // other threads would go on for ever
      thrown.printStackTrace();
      System.exit(1);
    }
  }

  private static boolean run(String namesrv) throws Exception {
    String run = Long.toString(System.currentTimeMillis(), 36);
    String orderly = "SOrderly" + run;
    String concurrently = "SConcurrently" + run;
    firstMessage(namesrv, orderly);
    firstMessage(namesrv, concurrently);
    System.setProperty("rocketmq.name-server", namesrv);
    System.setProperty("rocketmq.producer.group", "spring" + run);
    System.setProperty("rocketmq.producer.send-message-timeout", Integer.toString(PATIENCE_MS));
    System.setProperty("triad.orderly", orderly);
    System.setProperty("triad.concurrently", concurrently);
    System.setProperty("spring.main.banner-mode", "off");
    System.setProperty("logging.level.root", "ERROR");
    ConfigurableApplicationContext context = SpringApplication.run(SpringInterop.class);
    RocketMQTemplate template = context.getBean(RocketMQTemplate.class);

    int ordered = 0;
    int plain = 0;
    for (int i = 0; i < COUNT; i++) {
      String key = "k" + i % KEYS;
      var sent = template.syncSendOrderly(orderly, MessageBuilder.withPayload(key + ":" + i / KEYS).build(), key);
      if (sent.getSendStatus() == SendStatus.SEND_OK) ordered++;
      if (template.syncSend(concurrently + ":tag", "m" + i).getSendStatus() == SendStatus.SEND_OK) plain++;
    }
    boolean ok = report("template_send", ordered == COUNT && plain == COUNT, "acked=" + (ordered + plain));
    boolean all = waitFor(() -> ORDERLY.get() >= COUNT);
    ok &= report("orderly", all && ORDERLY.get() == COUNT && OUT_OF_ORDER.get() == 0,
        "received=" + ORDERLY.get() + " out_of_order=" + OUT_OF_ORDER.get());
    all = waitFor(() -> CONCURRENTLY.size() >= COUNT + 1);
    ok &= report("concurrent", all, "distinct=" + CONCURRENTLY.size() + " of " + (COUNT + 1));
    context.close();
    return ok;
  }
}
