package org.apache.rocketmq.test.base;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.test.client.rmq.RMQAsyncSendProducer;
import org.apache.rocketmq.test.client.rmq.RMQNormalConsumer;
import org.apache.rocketmq.test.client.rmq.RMQNormalProducer;
import org.apache.rocketmq.test.clientinterface.AbstractMQConsumer;
import org.apache.rocketmq.test.clientinterface.AbstractMQProducer;
import org.apache.rocketmq.test.factory.ConsumerFactory;
import org.apache.rocketmq.test.listener.AbstractListener;
import org.apache.rocketmq.test.util.MQAdminTestUtils;
import org.apache.rocketmq.test.util.MQRandomUtils;

/**
 * Stands in front of the class of that name in the original's test jar, which starts servers inside the JVM: here the
 * tests, unmodified, get the cluster that this program was given.
 */
public class BaseConf {
  public static final String NAMESRV_ADDR = System.getProperty("triad.namesrv");
  protected static final String CLUSTER_NAME = "RaftCluster";
  protected static final String BROKER1_NAME = "RaftNode00";
  protected static final int BROKER_NUM = 1;
  protected static final int WAIT_TIME = 5;
  protected static final int CONSUME_TIME = 2 * 60 * 1000;
  protected static final int QUEUE_NUMBERS = 8;
  protected static List<Object> mqClients = new ArrayList<>();
  protected static boolean debug = false;

  public static String initTopic() {
    return initTopicWithName(MQRandomUtils.getRandomTopic());
  }

  public static String initTopicWithName(String topic) {
    if (!MQAdminTestUtils.createTopic(NAMESRV_ADDR, CLUSTER_NAME, topic, QUEUE_NUMBERS, new HashMap<>())) {
      throw new IllegalStateException("topic " + topic + " cannot be created");
    }
    return topic;
  }

  public static String initConsumerGroup() {
    return initConsumerGroup(MQRandomUtils.getRandomConsumerGroup());
  }

  public static String initConsumerGroup(String group) {
    SubscriptionGroupConfig config = new SubscriptionGroupConfig();
    config.setGroupName(group);
    if (!MQAdminTestUtils.createSub(NAMESRV_ADDR, CLUSTER_NAME, config)) {
      throw new IllegalStateException("group " + group + " cannot be created");
    }
    return group;
  }

  private static <T> T remember(T client) {
    mqClients.add(client);
    return client;
  }

  public static RMQNormalProducer getProducer(String namesrv, String topic) {
    return remember(new RMQNormalProducer(namesrv, topic));
  }

  public static RMQNormalProducer getProducer(String namesrv, String topic, String group, String instance) {
    return remember(new RMQNormalProducer(namesrv, topic, group, instance));
  }

  public static RMQAsyncSendProducer getAsyncProducer(String namesrv, String topic) {
    return remember(new RMQAsyncSendProducer(namesrv, topic));
  }

  public static RMQNormalConsumer getConsumer(String namesrv, String topic, String expression, AbstractListener listener) {
    return getConsumer(namesrv, initConsumerGroup(), topic, expression, listener);
  }

  public static RMQNormalConsumer getConsumer(String namesrv, String group, String topic, String expression,
      AbstractListener listener) {
    return remember(ConsumerFactory.getRMQNormalConsumer(namesrv, group, topic, expression, listener));
  }

  public static void shutdown() {
    shutdown(mqClients);
  }

  public static void shutdown(List<Object> clients) {
    for (Object client : clients) {
      if (client instanceof AbstractMQConsumer) ((AbstractMQConsumer) client).shutdown();
      if (client instanceof AbstractMQProducer) ((AbstractMQProducer) client).shutdown();
    }
    clients.clear();
  }
}
