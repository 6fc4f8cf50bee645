package triad;

import static triad.Support.message;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Every way to send; what was acknowledged is read back. */
final class ProducerCases {
  private static final int COUNT = 100;

  private static int distinct(String name, String topic) throws Exception {
    Set<String> bodies = new HashSet<>();
    for (MessageExt m : Support.readAll(name, topic)) bodies.add(Support.body(m));
    return bodies.size();
  }

  static String sync() throws Exception {
    String topic = "JSync" + Support.RUN;
    DefaultMQProducer producer = Support.producer("sync");
    int acked = Support.sendPlain(producer, topic, COUNT);
    producer.shutdown();
    int read = distinct("sync", topic);
    return Support.result(acked == COUNT && read == COUNT, "acked=%d read=%d", acked, read);
  }

  static String async() throws Exception {
    String topic = "JAsync" + Support.RUN;
    DefaultMQProducer producer = Support.producer("async");
    CountDownLatch latch = new CountDownLatch(COUNT);
    AtomicInteger acked = new AtomicInteger();
    for (int i = 0; i < COUNT; i++) {
      producer.send(message(topic, "A", "k" + i, "m" + i), new SendCallback() {
        @Override public void onSuccess(SendResult r) {
          acked.incrementAndGet();
          latch.countDown();
        }

        @Override public void onException(Throwable e) {
          e.printStackTrace();
          latch.countDown();
        }
      });
    }
    latch.await(30, TimeUnit.SECONDS);
    producer.shutdown();
    int read = distinct("async", topic);
    return Support.result(acked.get() == COUNT && read == COUNT, "acked=%d read=%d", acked.get(), read);
  }

  static String oneway() throws Exception {
    String topic = "JOneway" + Support.RUN;
    DefaultMQProducer producer = Support.producer("oneway");
    int acked = Support.sendPlain(producer, topic, 1);  // the topic exists then
    for (int i = 1; i < COUNT; i++) producer.sendOneway(message(topic, "O", "k" + i, "m" + i));
    int[] read = {0};
    boolean all = Support.waitFor(20, () -> {
      try {
        read[0] = distinct("oneway", topic);
      } catch (Exception e) {
        return false;
      }
      return read[0] == COUNT;
    });
    producer.shutdown();
    return Support.result(all && acked == 1, "read=%d", read[0]);
  }

  static String batch() throws Exception {
    String topic = "JBatch" + Support.RUN;
    DefaultMQProducer producer = Support.producer("batch");
    List<Message> batch = new ArrayList<>();
    for (int i = 0; i < COUNT; i++) batch.add(message(topic, "B", "k" + i, "m" + i));
    SendResult sent = producer.send(batch);
    producer.shutdown();
    int ids = sent.getMsgId().split(",").length;
    List<MessageExt> read = Support.readAll("batch", topic);
    Set<Integer> queues = new HashSet<>();
    boolean inOrder = true;
    for (int i = 0; i < read.size(); i++) {
      queues.add(read.get(i).getQueueId());
      inOrder &= Support.body(read.get(i)).equals("m" + i) && read.get(i).getQueueOffset() == i
          && read.get(i).getKeys().equals("k" + i);
    }
    boolean ok = sent.getSendStatus() == SendStatus.SEND_OK && ids == COUNT && read.size() == COUNT && inOrder
        && queues.size() == 1;
    return Support.result(ok, "ids=%d read=%d in_order=%s queues=%d", ids, read.size(), inOrder, queues.size());
  }

  static String selector() throws Exception {
    String topic = "JSelector" + Support.RUN;
    DefaultMQProducer producer = Support.producer("selector");
    int acked = Support.sendByKey(producer, topic, 0, COUNT, 10);
    producer.shutdown();
    Map<String, Set<Integer>> queuesOfKey = new HashMap<>();
    Map<String, Integer> next = new HashMap<>();
    int outOfOrder = 0;
    for (MessageExt m : Support.readAll("selector", topic)) {
      String[] part = Support.body(m).split(":");
      queuesOfKey.computeIfAbsent(part[0], k -> new HashSet<>()).add(m.getQueueId());
      if (next.merge(part[0], 1, Integer::sum) - 1 != Integer.parseInt(part[1])) outOfOrder++;
    }
    boolean oneQueueEach = queuesOfKey.values().stream().allMatch(q -> q.size() == 1);
    boolean ok = acked == COUNT && queuesOfKey.size() == 10 && oneQueueEach && outOfOrder == 0;
    return Support.result(ok, "acked=%d keys=%d out_of_order=%d", acked, queuesOfKey.size(), outOfOrder);
  }

  /**
   * A body above 4 KiB travels compressed; the broker stores it as it came, with the flags that say how. Clients of 5.x
   * compress in three ways, those of 4.9 in one; our own client (TRIAD_ADMIN) unpacks them all.
   */
  static String compressed() throws Exception {
    byte[] big = new byte[1_000_000];
    for (int i = 0; i < big.length; i++) big[i] = (byte) ('a' + i % 7);
    boolean ok = true;
    List<String> counts = new ArrayList<>();
    for (String type : compressionTypes()) {
      String topic = "JCompressed" + type + Support.RUN;
      DefaultMQProducer producer = Support.plainProducer("compressed" + type);
      producer.setMqClientApiTimeout(Support.PATIENCE_MS);
      producer.setSendMsgTimeout(Support.PATIENCE_MS);
      chooseCompression(producer, type);
      producer.start();
      SendResult sent = producer.send(new Message(topic, "Z", "big", big));
      producer.shutdown();
      List<MessageExt> read = Support.readAll("compressed" + type, topic);
      boolean same = read.size() == 1 && Arrays.equals(read.get(0).getBody(), big);
      int stored = read.isEmpty() ? 0 : read.get(0).getStoreSize();
      int flags = read.isEmpty() ? 0 : read.get(0).getSysFlag();
      String ours = Support.mqadmin("printMsg", "-t", topic, "-d", "true");
      boolean unpacked = ours.contains(new String(big, 0, 4000));
      ok &= sent.getSendStatus() == SendStatus.SEND_OK && same && stored < big.length && unpacked
          && (type.equals("default") || (flags >> 8 & 7) == flagOf(type));
      counts.add(type + ": same=" + same + " stored_bytes=" + stored + " flags=" + flags + " read_by_ours=" + unpacked);
    }
    return Support.result(ok, "%s", String.join("; ", counts));
  }

  private static final String TYPES = "org.apache.rocketmq.common.compression.CompressionType";

  /** By name, since clients of 4.9 know no other than zlib. */
  private static List<String> compressionTypes() throws Exception {
    List<String> types = new ArrayList<>(List.of("default"));
    boolean chooses = Arrays.stream(DefaultMQProducer.class.getMethods()).anyMatch(m -> m.getName().equals("setCompressType"));
    if (!chooses) return types;
    for (Object type : Class.forName(TYPES).getEnumConstants()) types.add(type.toString());
    return types;
  }

  private static void chooseCompression(DefaultMQProducer producer, String type) throws Exception {
    if (type.equals("default")) return;
    Class<?> types = Class.forName(TYPES);
    producer.getClass().getMethod("setCompressType", types)
        .invoke(producer, types.getMethod("valueOf", String.class).invoke(null, type));
  }

  private static int flagOf(String type) throws Exception {
    Class<?> types = Class.forName(TYPES);
    return (int) types.getMethod("getValue").invoke(types.getMethod("valueOf", String.class).invoke(null, type));
  }
}
