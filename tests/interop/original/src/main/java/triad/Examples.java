package triad;

import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * {@code Examples NAMESRV}: runs examples of the original, each in a JVM of its own as its readers would, and counts what
 * they print. A producer must end by itself, a consumer goes on until it has printed what is wanted.
 */
public final class Examples {
  private static final int SECONDS = 120;
  private static String namesrv;

  /** How often the class prints `text`; it is ended after `wanted` times (0: it ends by itself). */
  private static int run(String name, String text, int wanted, String... arguments) throws Exception {
    return runUntil(null, name, text, wanted, arguments);
  }

  /** The same; it is also ended when it prints `end` (null: nothing). */
  private static int runUntil(String end, String name, String text, int wanted, String... arguments) throws Exception {
    List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-Xmx192m",
        "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Drocketmq.namesrv.addr=" + namesrv,
        "-Dcom.rocketmq.remoting.client.connect.timeout=15000", "-Drocketmq.client.logLevel=ERROR",
        "-Duser.home=" + System.getProperty("user.home"),
        "-Drocketmq.client.localOffsetStoreDir=" + System.getProperty("user.home"), "-cp",
        System.getProperty("java.class.path"), "org.apache.rocketmq.example." + name));
    command.addAll(List.of(arguments));
    Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    ExecutorService watch = Executors.newSingleThreadExecutor();
    watch.submit(() -> {
      if (!process.waitFor(SECONDS, TimeUnit.SECONDS)) process.destroyForcibly();
      return null;
    });
    int found = 0;
    StringBuilder rest = new StringBuilder();  // not every example ends its lines
    byte[] bytes = new byte[8192];
    try (InputStream output = process.getInputStream()) {
      for (int size; (wanted == 0 || found < wanted) && (size = output.read(bytes)) > 0;) {
        rest.append(new String(bytes, 0, size));
        if (end != null && rest.indexOf(end) >= 0) break;
        for (int at; (at = rest.indexOf(text)) >= 0; found++) rest.delete(0, at + text.length());
        rest.delete(0, Math.max(0, rest.length() - Math.max(text.length(), end == null ? 0 : end.length())));
      }
    }
    if (wanted > 0) process.destroy();
    int code = process.waitFor();
    watch.shutdownNow();
    if (wanted == 0 && code != 0) throw new Exception(name + " ended with " + code);
    return found;
  }

  private interface Part {
    /** What was counted; throws when it is not right. */
    String run() throws Exception;
  }

  private static String expect(String name, int found, int wanted) throws Exception {
    String counts = name + "=" + found;
    if (found < wanted) throw new Exception(counts + " of " + wanted);
    return counts;
  }

  private static boolean report(String name, Part... parts) {
    List<String> counts = new ArrayList<>();
    boolean ok = true;
    for (Part part : parts) {
      try {
        counts.add(part.run());
      } catch (Exception e) {
        ok = false;
        counts.add("WRONG " + e.getMessage());
      }
    }
    System.out.println("case " + name + ": " + (ok ? "PASS " : "FAIL ") + String.join(" ", counts));
    System.out.flush();
    return ok;
  }

  private static boolean quickstart() {
    return report("example_quickstart",
        () -> expect("sent", run("quickstart.Producer", "SEND_OK", 0), 1000),
        () -> expect("received", run("quickstart.Consumer", "Receive New Messages", 1000), 1000),
        () -> expect("by_tag", run("filter.TagFilterProducer", "SEND_OK", 0), 60),
        () -> expect("by_tag_received", run("filter.TagFilterConsumer", "Receive New Messages", 40), 40));
  }

  /** This one gives a fresh JVM three seconds for its first call: on a busy machine it may need a second start. */
  private static String async() throws Exception {
    int sent = 0;
    int starts = 0;
    while (sent < 100 && starts < 3) {
      sent = run("simple.AsyncProducer", " OK ", 0);
      starts++;
    }
    return expect("async", sent, 100) + " starts=" + starts;
  }

  private static boolean others() {
    return report("example_others",
        () -> expect("ordered", run("ordermessage.Producer", "SEND_OK", 0), 100),
        () -> expect("simple", run("simple.Producer", "SEND_OK", 0), 128),
        Examples::async,
        () -> expect("batch", run("batch.SimpleBatchProducer", "SEND_OK", 1), 1),
        () -> expect("traced", run("tracemessage.TraceProducer", "SEND_OK", 0), 128),
        () -> expect("ordered_received", run("ordermessage.Consumer", "Receive New Messages", 100), 100),
        () -> expect("lite_pulled", run("simple.LitePullConsumerSubscribe", "msgId=", 100), 100));
  }

  /** They read what quickstart left in TopicTest. operation.Consumer waits for nothing but its own topic. */
  private static boolean pulls() {
    return report("example_pulls",
        () -> expect("operated", run("operation.Producer", "SEND_OK", 0, "-g", "OperatingProducer", "-t", "TopicTest1", "-a",
            "TagA", "-k", "key", "-c", "200"), 200),
        () -> expect("operated_received", run("operation.Consumer", "msgId=", 200, "-g", "OperatingConsumer", "-t",
            "TopicTest1", "-s", "TagA", "-f", "false"), 200),
        () -> expect("assigned", run("simple.LitePullConsumerAssign", "msgId=", 50), 50),
        () -> expect("assigned_by_tag", run("simple.LitePullConsumerAssignWithSubExpression", "msgId=", 50), 50),
        () -> expect("scheduled", run("simple.PullScheduleService", "pullStatus=FOUND", 8), 8));
  }

  /**
   * A request that finds no consumer yet, or takes more than its three seconds, is made again by another start. AsyncRequestProducer is ended
   * as soon as it has its reply, perhaps before it says so: then who replied is told that it could not.
   */
  private static boolean requests() throws Exception {
    run("operation.Producer", "SEND_OK", 0, "-g", "OperatingProducer", "-t", "RequestTopic", "-a", "T", "-k", "k", "-c", "1");
    ExecutorService other = Executors.newSingleThreadExecutor();
    Future<Integer> replied = other.submit(() -> run("rpc.ResponseConsumer", "reply to ", 1));
    boolean ok = report("example_request_reply",
        () -> expect("requested", replyTo("rpc.RequestProducer", 0), 1),
        () -> expect("async_requested", replyTo("rpc.AsyncRequestProducer", 1), 1),
        () -> expect("replied", replied.get(), 1));
    other.shutdownNow();
    return ok;
  }

  private static int replyTo(String name, int wanted) throws Exception {
    int found = 0;
    for (int tries = 0; tries < 10 && found == 0; tries++) {
      found = runUntil("fail.", name, "replyMessage: ", wanted);
    }
    return found;
  }

  private static boolean benchmark() {
    return report("example_benchmark",
        () -> expect("producer_reports", run("benchmark.Producer", "Send TPS", 2, "-n", namesrv, "-w", "4"), 2),
        () -> expect("consumer_reports", run("benchmark.Consumer", "TPS", 2, "-n", namesrv), 2));
  }

  public static void main(String[] args) throws Exception {
    namesrv = args[0];
    FixedAddress.forward(9876, namesrv);
    ExecutorService pool = Executors.newFixedThreadPool(2);
    List<Future<Boolean>> running = List.of(pool.submit(Examples::quickstart), pool.submit(Examples::others));
    boolean ok = true;
    for (Future<Boolean> each : running) ok &= each.get();
    running = List.of(pool.submit(Examples::pulls), pool.submit(Examples::requests));
    for (Future<Boolean> each : running) ok &= each.get();
    ok &= benchmark();
    System.exit(ok ? 0 : 1);
  }
}
