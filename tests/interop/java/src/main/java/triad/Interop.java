package triad;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * {@code Interop NAMESRV CASE...}: a line "case NAME: PASS|FAIL counts" for each; exit 0 only when all passed.
 * "all" stands for every case that needs brokers without a fault and in the usual setting, and that every version can
 * do; those run several at a time.
 */
public final class Interop {
  private interface Case {
    /** Counts for the table; throws when they are not right. */
    String run() throws Exception;
  }

  private static final int AT_A_TIME = 4;
  private static final Map<String, Case> CASES = new LinkedHashMap<>();
  private static final Map<String, Case> ALONE = new LinkedHashMap<>();

  static {
    CASES.put("rebalance", GroupCases::rebalance);  // the longest first
    CASES.put("retry_dead_letter", RetryCases::retryAndDeadLetter);
    CASES.put("orderly_dead_letter", RetryCases::orderlyDeadLetter);
    CASES.put("orderly", ConsumerCases::orderly);
    CASES.put("concurrent", ConsumerCases::concurrent);
    CASES.put("broadcast", GroupCases::broadcast);
    CASES.put("two_groups", GroupCases::twoGroups);
    CASES.put("suspend_resume", ConsumerCases::suspendAndResume);
    CASES.put("tags", ConsumerCases::tags);
    CASES.put("delay", ConsumerCases::delay);
    CASES.put("lite_pull", ConsumerCases::litePull);
    CASES.put("pull", ConsumerCases::pull);
    CASES.put("offset_by_time", AdminCases::offsetByTime);
    CASES.put("reset_running", AdminCases::resetWhileRunning);
    CASES.put("running_info", AdminCases::runningInfo);
    CASES.put("client_status", AdminCases::clientStatus);
    CASES.put("consume_directly", AdminCases::consumeDirectly);
    CASES.put("query_by_key", AdminCases::queryByKey);
    CASES.put("send_sync", ProducerCases::sync);
    CASES.put("send_async", ProducerCases::async);
    CASES.put("send_oneway", ProducerCases::oneway);
    CASES.put("send_batch", ProducerCases::batch);
    CASES.put("send_selector", ProducerCases::selector);
    CASES.put("send_compressed", ProducerCases::compressed);
    CASES.put("trace", AdminCases::trace);
    ALONE.put("delay_default_table", ConsumerCases::delayDefaultTable);
    ALONE.put("delay_own_table", ConsumerCases::delayOwnTable);
    ALONE.put("request_reply", RequestCases::requestReply);  // the client 5.3.3 does not wait for its replies
    ALONE.put("failover", FaultCases::failover);
    ALONE.put("rolling_restart", FaultCases::rollingRestart);
  }

  public static void main(String[] args) throws Exception {
    Support.namesrv = args[0];
    List<String> names = new ArrayList<>(Arrays.asList(args).subList(1, args.length));
    if (names.equals(List.of("all"))) names = new ArrayList<>(CASES.keySet());
    Support.warmUp();
    ExecutorService pool = Executors.newFixedThreadPool(AT_A_TIME);
    List<Future<Boolean>> running = new ArrayList<>();
    for (String name : names) {
      Case one = CASES.containsKey(name) ? CASES.get(name) : ALONE.get(name);
      if (one == null) throw new IllegalArgumentException("no case " + name);
      running.add(pool.submit(() -> run(name, one)));
    }
    boolean ok = true;
    for (Future<Boolean> each : running) ok &= each.get();
    System.exit(ok ? 0 : 1);
  }

  private static boolean run(String name, Case one) {
    String verdict;
    boolean ok = false;
    try {
      verdict = "PASS " + one.run();
      ok = true;
    } catch (Support.Failed failed) {
      verdict = "FAIL " + failed.getMessage();
    } catch (Throwable thrown) {
      thrown.printStackTrace();
      verdict = "FAIL " + thrown.toString().replace('\n', ' ');
    }
    System.out.println("case " + name + ": " + verdict);
    System.out.flush();
    return ok;
  }
}
