package triad;

import static triad.Support.message;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What the admin library and queries do beside a running consumer. */
final class AdminCases {
  private static DefaultMQAdminExt admin(String name) throws Exception {
    DefaultMQAdminExt admin = new DefaultMQAdminExt(15_000);
    admin.setNamesrvAddr(Support.namesrv);
    admin.setInstanceName("admin_" + name);
    admin.setMqClientApiTimeout(Support.PATIENCE_MS);
    admin.start();
    return admin;
  }

  /** The offset that belongs to a point in time between two bursts. */
  static String offsetByTime() throws Exception {
    String topic = "JTime" + Support.RUN;
    DefaultMQProducer producer = Support.producer("time");
    MessageQueue queue = producer.send(message(topic, "T", "k", "first")).getMessageQueue();
    for (int i = 1; i < 5; i++) producer.send(message(topic, "T", "k", "m" + i), queue);
    long before = producer.maxOffset(queue);
    Support.pause(300);
    long time = System.currentTimeMillis();
    Support.pause(300);
    for (int i = 0; i < 5; i++) producer.send(message(topic, "T", "k", "n" + i), queue);
    DefaultMQPullConsumer puller = Support.puller("time");
    long found = puller.searchOffset(queue, time);
    long last = puller.searchOffset(queue, System.currentTimeMillis() + 60_000);
    long earliest = puller.searchOffset(queue, 0);
    puller.shutdown();
    producer.shutdown();
    return Support.result(found == before && earliest == 0 && last == before + 5, "between=%d of %d first=%d last=%d", found,
        before, earliest, last);
  }

  /** The offset goes back while the consumer runs: everything comes a second time. */
  static String resetWhileRunning() throws Exception {
    String topic = "JReset" + Support.RUN;
    String group = "g_reset" + Support.RUN;
    DefaultMQProducer producer = Support.producer("reset");
    long begin = System.currentTimeMillis() - 60_000;
    Support.sendPlain(producer, topic, 50);
    producer.shutdown();
    Map<String, Integer> seen = new ConcurrentHashMap<>();
    DefaultMQPushConsumer consumer = ConsumerCases.counting(group, "reset", topic, "*", seen);
    boolean ok = Support.waitFor(60, () -> seen.size() >= 50);
    DefaultMQAdminExt admin = admin("reset");
    int queues = admin.resetOffsetByTimestamp(topic, group, begin, true).size();
    ok &= Support.waitFor(90, () -> ConsumerCases.deliveries(seen) >= 100);
    admin.shutdown();
    consumer.shutdown();
    return Support.result(ok, "distinct=%d deliveries=%d of 100 queues=%d", seen.size(), ConsumerCases.deliveries(seen),
        queues);
  }

  /** Asked of the client itself, through the broker (223 and 221): how far it is in each queue. */
  static String clientStatus() throws Exception {
    String topic = "JStatus" + Support.RUN;
    String group = "g_status" + Support.RUN;
    DefaultMQProducer producer = Support.producer("status");
    Support.sendPlain(producer, topic, 20);
    producer.shutdown();
    Map<String, Integer> seen = new ConcurrentHashMap<>();
    DefaultMQPushConsumer consumer = ConsumerCases.counting(group, "status", topic, "*", seen);
    boolean ok = Support.waitFor(60, () -> seen.size() >= 20);
    DefaultMQAdminExt admin = admin("status");
    String id = Support.clientId(consumer);
    long done = 0;
    var ofClients = admin.getConsumeStatus(topic, group, id);
    for (long offset : ofClients.getOrDefault(id, Map.of()).values()) done += offset;
    admin.shutdown();
    consumer.shutdown();
    return Support.result(ok && done == 20, "clients=%d consumed=%d of 20", ofClients.size(), done);
  }

  static String runningInfo() throws Exception {
    String topic = "JInfo" + Support.RUN;
    String group = "g_info" + Support.RUN;
    DefaultMQProducer producer = Support.producer("info");
    Support.sendPlain(producer, topic, 20);
    producer.shutdown();
    Map<String, Integer> seen = new ConcurrentHashMap<>();
    DefaultMQPushConsumer consumer = ConsumerCases.counting(group, "info", topic, "*", seen);
    boolean ok = Support.waitFor(60, () -> seen.size() >= 20);
    DefaultMQAdminExt admin = admin("info");
    var info = admin.getConsumerRunningInfo(group, Support.clientId(consumer), false);
    int queues = 0;
    for (MessageQueue queue : info.getMqTable().keySet()) {
      if (queue.getTopic().equals(topic)) queues++;
    }
    int subscriptions = info.getSubscriptionSet().size();
    admin.shutdown();
    consumer.shutdown();
    return Support.result(ok && queues == 4 && subscriptions == 2, "queues=%d subscriptions=%d", queues, subscriptions);
  }

  /** A stored message goes to one member's listener by order of an administrator. */
  static String consumeDirectly() throws Exception {
    String topic = "JDirect" + Support.RUN;
    String group = "g_direct" + Support.RUN;
    DefaultMQProducer producer = Support.producer("direct");
    SendResult sent = producer.send(message(topic, "T", "k", "again"));
    producer.shutdown();
    Map<String, Integer> seen = new ConcurrentHashMap<>();
    DefaultMQPushConsumer consumer = ConsumerCases.counting(group, "direct", topic, "*", seen);
    boolean ok = Support.waitFor(60, () -> seen.size() >= 1);
    DefaultMQAdminExt admin = admin("direct");
    var answer = admin.consumeMessageDirectly(group, Support.clientId(consumer), topic, sent.getOffsetMsgId());
    String verdict = String.valueOf(answer.getConsumeResult());
    ok &= Support.waitFor(20, () -> ConsumerCases.deliveries(seen) >= 2);
    admin.shutdown();
    consumer.shutdown();
    return Support.result(ok && verdict.equals("CR_SUCCESS"), "deliveries=%d result=%s", ConsumerCases.deliveries(seen),
        verdict);
  }

  /** By key, by unique key and by offset message id. */
  static String queryByKey() throws Exception {
    String topic = "JQuery" + Support.RUN;
    DefaultMQProducer producer = Support.producer("query");
    SendResult sent = null;
    for (int i = 0; i < 20; i++) sent = producer.send(message(topic, "T", "key" + i % 4, "m" + i));
    long now = System.currentTimeMillis();
    int byKey = 0;
    for (int attempt = 0; attempt < 20 && byKey < 5; attempt++) {
      byKey = producer.queryMessage(topic, "key1", 32, now - 60_000, now + 60_000).getMessageList().size();
      if (byKey < 5) Support.pause(200);
    }
    String byUniqueKey = new String(producer.viewMessage(topic, sent.getMsgId()).getBody());
    String byOffset = new String(producer.viewMessage(topic, sent.getOffsetMsgId()).getBody());
    producer.shutdown();
    return Support.result(byKey == 5 && byUniqueKey.equals("m19") && byOffset.equals("m19"),
        "by_key=%d by_unique_key=%s by_id=%s", byKey, byUniqueKey, byOffset);
  }

  /** What a traced producer and a traced consumer write about themselves arrives, and our mqadmin prints it. */
  static String trace() throws Exception {
    String topic = "JTrace" + Support.RUN;
    String group = "g_trace" + Support.RUN;
    DefaultMQProducer producer = new DefaultMQProducer("pg_trace" + Support.RUN, null, true, null);
    producer.setNamesrvAddr(Support.namesrv);
    producer.setInstanceName("p_trace");
    producer.setMqClientApiTimeout(Support.PATIENCE_MS);
    producer.setSendMsgTimeout(Support.PATIENCE_MS);
    producer.start();
    SendResult sent = producer.send(message(topic, "T", "traced", "m"));
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group, null, new AllocateMessageQueueAveragely(), true, null);
    consumer.setNamesrvAddr(Support.namesrv);
    consumer.setInstanceName("c_trace");
    consumer.setMqClientApiTimeout(Support.PATIENCE_MS);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
        ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
    consumer.start();
    String[] text = {""};
    boolean ok = Support.waitFor(60, () -> {
      try {
        text[0] = Support.mqadmin("queryMsgTraceById", "-i", sent.getMsgId());
      } catch (Exception e) {
        return false;
      }
      return text[0].contains("SubAfter") && text[0].contains("SubBefore") && text[0].contains("Pub ");
    });
    producer.shutdown();
    consumer.shutdown();
    long good = text[0].lines().filter(line -> line.contains("success")).count();
    boolean named = text[0].contains("pg_trace" + Support.RUN) && text[0].contains(group);
    return Support.result(ok && named && good == 2, "rows=%d good=%d named=%s",
        text[0].lines().filter(line -> line.startsWith("Pub") || line.startsWith("Sub")).count(), good, named);
  }
}
