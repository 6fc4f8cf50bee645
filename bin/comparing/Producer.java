// Producer NAMESERVER TOPIC SECONDS: the stock Java client as the original's benchmark uses it: 64 threads share one
// producer and send 1 KiB each, one after the other, synchronously. Prints what was sent a second, without the first
// three seconds, and what failed. (The benchmark itself is not in Maven's repositories.)

import java.util.Arrays;
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

public class Producer {
    private static final int THREADS = 64;
    private static final int BODY_BYTES = 1024;
    private static final int SETTLE_SECONDS = 3;

    public static void main(String[] args) throws Exception {
        LongAdder sent = new LongAdder();
        LongAdder failed = new LongAdder();
        DefaultMQProducer producer = new DefaultMQProducer("compare_producer");
        producer.setNamesrvAddr(args[0]);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.start();
        byte[] body = new byte[BODY_BYTES];
        Arrays.fill(body, (byte) 'b');
        for (int i = 0; i < THREADS; i++) {
            Thread thread = new Thread(() -> {
                while (true) {
                    try {
                        boolean ok = producer.send(new Message(args[1], body)).getSendStatus() == SendStatus.SEND_OK;
                        (ok ? sent : failed).increment();
                    } catch (Exception e) {
                        failed.increment();
                    }
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        Thread.sleep(SETTLE_SECONDS * 1000L);
        long before = sent.sum();
        long begin = System.nanoTime();
        Thread.sleep((long) (Double.parseDouble(args[2]) * 1000));
        double seconds = (System.nanoTime() - begin) / 1e9;
        System.out.printf("sent_per_s=%.0f failed=%d%n", (sent.sum() - before) / seconds, failed.sum());
        System.out.flush();
        Thread.sleep(Long.MAX_VALUE);  // until it is killed
    }
}
