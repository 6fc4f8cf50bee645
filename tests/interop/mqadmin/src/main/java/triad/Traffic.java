package triad;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * About ten messages a second to TopicT, consumed by GroupT, until it is closed; then MESSAGES have been sent, and all
 * are consumed. A server's rates over ten seconds are above zero when the constructor returns.
 */
final class Traffic implements AutoCloseable {
    private static final int MESSAGES = 900;
    private static final int PAUSE_MS = 100;
    private static final int UNTIL_RATES_MS = 25_000;
    private static final int PATIENCE_MS = 60_000;

    private final DefaultMQProducer producer = new DefaultMQProducer("ProducerT");
    private final DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("GroupT");
    private final AtomicInteger received = new AtomicInteger();
    private final Thread thread = new Thread(this::send);
    private volatile boolean hurries;
    private volatile Exception failed;

    Traffic(String namesrv) throws Exception {
        producer.setNamesrvAddr(namesrv);
        producer.setInstanceName("trafficProducer");
        producer.start();
        consumer.setNamesrvAddr(namesrv);
        consumer.setInstanceName("trafficConsumer");
        consumer.setAwaitTerminationMillisWhenShutdown(PATIENCE_MS);  // else the last message may be left uncommitted
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("TopicT", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            received.addAndGet(messages.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        thread.start();
        Thread.sleep(UNTIL_RATES_MS);
    }

    private void send() {
        try {
            for (int i = 0; i < MESSAGES; ++i) {
                producer.send(new Message("TopicT", ("message " + i).getBytes(StandardCharsets.UTF_8)));
                if (!hurries) Thread.sleep(PAUSE_MS);
            }
        } catch (Exception e) {
            failed = e;
        }
    }

    @Override
    public void close() throws Exception {
        boolean wasLong = !thread.isAlive();
        hurries = true;
        thread.join();
        if (failed != null) throw failed;
        if (wasLong) throw new IllegalStateException("the traffic ended before its verbs did");
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (received.get() < MESSAGES && System.currentTimeMillis() < deadline) Thread.sleep(100);
        if (received.get() != MESSAGES) throw new IllegalStateException("consumed " + received + " of " + MESSAGES);
        consumer.shutdown();  // commits
        producer.shutdown();
    }
}
