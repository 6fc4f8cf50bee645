package triad;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;

/** Several members, several groups. */
final class GroupCases {
  private static List<Integer> shares(List<DefaultMQPushConsumer> consumers, String topic) {
    List<Integer> shares = new ArrayList<>();
    for (DefaultMQPushConsumer consumer : consumers) {
      int mine = 0;
      for (var e : consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().entrySet()) {
        if (e.getKey().getTopic().equals(topic) && !e.getValue().isDropped()) mine++;
      }
      shares.add(mine);
    }
    shares.sort(null);
    return shares;
  }

  /** One member has all 8 queues, three share them 3-3-2, two share them 4-4; nothing is lost meanwhile. */
  static String rebalance() throws Exception {
    String topic = "JRebalance" + Support.RUN;
    String group = "g_rebalance" + Support.RUN;
    DefaultMQProducer producer = new DefaultMQProducer("pg_rebalance" + Support.RUN);
    producer.setNamesrvAddr(Support.namesrv);
    producer.setInstanceName("p_rebalance");
    producer.setDefaultTopicQueueNums(8);
    producer.setMqClientApiTimeout(Support.PATIENCE_MS);
    producer.setSendMsgTimeout(Support.PATIENCE_MS);
    producer.start();
    Support.sendByKey(producer, topic, 0, 100, 100);
    Map<String, Integer> seen = new ConcurrentHashMap<>();
    List<DefaultMQPushConsumer> members = new ArrayList<>();
    List<List<Integer>> steps = new ArrayList<>();
    boolean ok = true;
    for (List<Integer> wanted : List.of(List.of(8), List.of(2, 3, 3), List.of(4, 4))) {
      while (members.size() < wanted.size()) {
        members.add(ConsumerCases.counting(group, "rebalance" + members.size(), topic, "*", seen));
      }
      while (members.size() > wanted.size()) members.remove(1).shutdown();
      ok &= Support.waitFor(60, () -> shares(members, topic).equals(wanted));
      steps.add(shares(members, topic));
      int sent = steps.size() * 100;
      Support.sendByKey(producer, topic, sent, sent + 100, 100);
      ok &= Support.waitFor(60, () -> seen.size() >= sent + 100);
    }
    for (DefaultMQPushConsumer member : members) member.shutdown();
    producer.shutdown();
    return Support.result(ok, "shares=%s distinct=%d of 400", steps, seen.size());
  }

  /** Both members of a broadcasting group get everything. */
  static String broadcast() throws Exception {
    String topic = "JBroadcast" + Support.RUN;
    DefaultMQProducer producer = Support.producer("broadcast");
    Support.sendPlain(producer, topic, 1);
    List<Map<String, Integer>> seen = List.of(new ConcurrentHashMap<>(), new ConcurrentHashMap<>());
    List<DefaultMQPushConsumer> members = new ArrayList<>();
    for (Map<String, Integer> mine : seen) {
      DefaultMQPushConsumer consumer = Support.consumer("g_broadcast" + Support.RUN, "broadcast" + members.size());
      var model = consumer.getMessageModel();  // its package differs between 4.x and 5.x
      consumer.setMessageModel(Enum.valueOf(model.getDeclaringClass(), "BROADCASTING"));
      consumer.subscribe(topic, "*");
      consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
        for (MessageExt m : messages) mine.merge(Support.body(m), 1, Integer::sum);
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
      });
      consumer.start();
      members.add(consumer);
    }
    boolean ok = Support.waitFor(60, () -> seen.stream().allMatch(s -> s.size() >= 1));
    Support.sendPlain(producer, topic, 100);
    ok &= Support.waitFor(60, () -> seen.stream().allMatch(s -> s.size() >= 100));
    for (DefaultMQPushConsumer member : members) member.shutdown();
    producer.shutdown();
    return Support.result(ok, "first=%d second=%d of 100", seen.get(0).size(), seen.get(1).size());
  }

  static String twoGroups() throws Exception {
    String topic = "JTwo" + Support.RUN;
    DefaultMQProducer producer = Support.producer("two");
    Support.sendPlain(producer, topic, 100);
    producer.shutdown();
    Map<String, Integer> first = new ConcurrentHashMap<>();
    Map<String, Integer> second = new ConcurrentHashMap<>();
    DefaultMQPushConsumer one = ConsumerCases.counting("g_two_a" + Support.RUN, "two0", topic, "*", first);
    DefaultMQPushConsumer two = ConsumerCases.counting("g_two_b" + Support.RUN, "two1", topic, "*", second);
    boolean ok = Support.waitFor(60, () -> first.size() >= 100 && second.size() >= 100);
    one.shutdown();
    two.shutdown();
    return Support.result(ok, "first=%d second=%d of 100", first.size(), second.size());
  }
}
