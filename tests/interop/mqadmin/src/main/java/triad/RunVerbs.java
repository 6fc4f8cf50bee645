package triad;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs the verbs of a script with the original's mqadmin, in one process, and keeps what each prints.
 * Arguments: name server, script, output directory, directory of the files that verbs read ({here}).
 *
 * A line of the script is "name: verb options", with {namesrv}, {broker} (address of the one with id 0),
 * {name} (its name) and what "name: capture VARIABLE REGEX" took from the last output; or "name: page PAGE" (Pages.java);
 * or "name: show FILE", what the last verb exported; or "name: end after SECONDS verb options" of a verb without an end;
 * or "start: clients", "start: traffic" (Traffic.java) and "stop: traffic".
 */
public class RunVerbs {
    private static final PrintStream CONSOLE = System.out;
    private static final int VERB_SECONDS = 60;
    /** A call was late, which a busy machine makes. */
    static final Pattern LATE =
        Pattern.compile("Remoting(Timeout|Connect|SendRequest|TooMuchRequest)Exception|connect to .* failed");
    private static final Map<String, String> VALUES = new HashMap<>();
    private static DefaultMQPushConsumer consumer;
    private static DefaultMQProducer producer;
    private static Traffic traffic;
    private static int seconds;  // for the verb
    private static boolean hasEnd;
    private static volatile boolean verbRuns;

    /** A verb that is used wrongly ends the process: here it only ends its thread. */
    @SuppressWarnings("removal")
    private static void forbidExit() {
        System.setSecurityManager(new SecurityManager() {
            @Override
            public void checkExit(int code) {
                if (verbRuns) {
                    throw new SecurityException("exit " + code);
                }
            }

            @Override
            public void checkPermission(java.security.Permission permission) {
            }
        });
    }

    public static void main(String[] args) throws Exception {
        forbidExit();
        VALUES.put("namesrv", args[0]);
        VALUES.put("here", args[3]);
        Path out = Path.of(args[2]);
        Files.createDirectories(out);
        String last = "";
        String[] verb = {};
        String verbName = "";
        for (String line : Files.readAllLines(Path.of(args[1]))) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            String name = line.substring(0, line.indexOf(':')).trim();
            List<String> words = words(line.substring(line.indexOf(':') + 1).trim());
            if (words.get(0).equals("capture")) {
                // A server that just started registers a little later: the verb is tried again.
                Matcher found = Pattern.compile(words.get(2)).matcher(last);
                for (int tries = 0; !found.find(); ++tries) {
                    if (tries == 60) {
                        CONSOLE.println(line + "\nnot found in:\n" + last);
                        Runtime.getRuntime().halt(1);
                    }
                    Thread.sleep(1000);
                    last = run(verb);
                    Files.writeString(out.resolve(verbName + ".txt"), last);
                    found = Pattern.compile(words.get(2)).matcher(last);
                }
                VALUES.put(words.get(1), found.group(1));
                continue;
            }
            if (words.get(0).equals("clients")) {
                startClients();
                continue;
            }
            if (words.get(0).equals("traffic")) {
                if (name.equals("start")) {
                    traffic = new Traffic(VALUES.get("namesrv"));
                } else {
                    traffic.close();
                }
                continue;
            }
            if (words.get(0).equals("show")) {
                Files.writeString(out.resolve(name + ".txt"), Files.readString(Path.of(words.get(1))));
                Files.delete(Path.of(words.get(1)));
                continue;
            }
            seconds = VERB_SECONDS;
            hasEnd = !words.get(0).equals("end");
            if (!hasEnd) {
                seconds = Integer.parseInt(words.get(2));
                words = words.subList(3, words.size());
            }
            if (words.get(0).equals("page")) {
                Files.writeString(out.resolve(name + ".txt"), new Pages(VALUES.get("broker")).run(words.get(1), args[0]));
                continue;
            }
            verb = words.toArray(new String[0]);
            verbName = name;
            last = run(verb);
            Files.writeString(out.resolve(verbName + ".txt"), last);
        }
        if (consumer != null) {
            consumer.shutdown();
            producer.shutdown();
        }
        CONSOLE.println("verbs done");
        Runtime.getRuntime().halt(0);
    }

    private static List<String> words(String text) {
        List<String> words = new ArrayList<>();
        Matcher word = Pattern.compile("'([^']*)'|(\\S+)").matcher(text);
        while (word.find()) {
            String one = word.group(1) != null ? word.group(1) : word.group(2);
            for (Map.Entry<String, String> value : VALUES.entrySet()) {
                one = one.replace("{" + value.getKey() + "}", value.getValue());
            }
            words.add(one);
        }
        return words;
    }

    /** What the verb prints on both streams. When a call of its own was late, it runs again. */
    private static String run(String[] words) throws Exception {
        String text = runOnce(words);
        for (int tries = 0; tries < 2 && LATE.matcher(text).find(); ++tries) text = runOnce(words);
        return text;
    }

    private static String runOnce(String[] words) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PrintStream printer = new PrintStream(bytes, true, StandardCharsets.UTF_8);
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        System.setOut(printer);
        System.setErr(printer);
        forgetVerbs();
        Thread verb = new Thread(() -> MQAdminStartup.main0(words, null));
        verb.setUncaughtExceptionHandler((thread, error) -> thrown.set(error));
        verbRuns = true;
        verb.start();
        verb.join(seconds * 1000L);
        boolean late = hasEnd && verb.isAlive();
        if (!hasEnd) {
            verb.interrupt();
            verb.join(VERB_SECONDS * 1000L);
        }
        verbRuns = late;
        System.setOut(CONSOLE);
        System.setErr(CONSOLE);
        String text = bytes.toString(StandardCharsets.UTF_8);
        if (late) {
            text += "\nRAN FOR MORE THAN " + VERB_SECONDS + " s\n";
        }
        if (thrown.get() != null) {
            text += "\nTHREW " + thrown.get() + "\n";
        }
        return text;
    }

    /** Each run has verbs of its own, as a process has: some keep a producer that they have shut down. */
    private static void forgetVerbs() throws Exception {
        for (var field : MQAdminStartup.class.getDeclaredFields()) {
            if (!List.class.isAssignableFrom(field.getType())) continue;
            field.setAccessible(true);
            ((List<?>) field.get(null)).clear();
        }
    }

    /** A consumer in group GroupA and a producer in group ProducerA, which traces, online until the end. */
    private static void startClients() throws Exception {
        consumer = new DefaultMQPushConsumer("GroupA");
        consumer.setNamesrvAddr(VALUES.get("namesrv"));
        consumer.setInstanceName("consumer");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("TopicA", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
            ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        consumer.start();
        producer = new DefaultMQProducer("ProducerA", null, true, null);  // it traces what it sends
        producer.setNamesrvAddr(VALUES.get("namesrv"));
        producer.setInstanceName("producer");
        producer.start();
        Message message = new Message("TopicA", "tagP", "keyP", "from the producer".getBytes(StandardCharsets.UTF_8));
        producer.send(message, (queues, sent, none) ->
            queues.stream().filter(queue -> queue.getQueueId() == 1).findFirst().get(), null);
        // Both are known to the broker when the consumer has committed everything (every 5 s), also of its retry topic,
        // which it sees at its next rebalance (every 20 s).
        long deadline = System.currentTimeMillis() + 60000;
        String progress = "";
        while (!(progress.contains("TopicA") && progress.contains("%RETRY%GroupA") && progress.contains("Diff Total: 0"))
            && System.currentTimeMillis() < deadline) {
            Thread.sleep(1000);
            progress = run(new String[] {"consumerProgress", "-n", VALUES.get("namesrv"), "-g", "GroupA"});
        }
        producer.getDefaultMQProducerImpl().getmQClientFactory().sendHeartbeatToAllBrokerWithLock();
    }
}
