package triad;

import java.util.Arrays;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.Failure;

/** {@code OwnTests CASE CLASS...}: the original's test classes, below org.apache.rocketmq.test, as one case. */
public final class OwnTests {
  public static void main(String[] args) throws Exception {
    Class<?>[] classes = new Class<?>[args.length - 1];
    for (int i = 1; i < args.length; i++) classes[i - 1] = Class.forName("org.apache.rocketmq.test." + args[i]);
    Result result = JUnitCore.runClasses(classes);
    StringBuilder failed = new StringBuilder();
    for (Failure failure : result.getFailures()) {
      System.err.println(failure.getTestHeader() + ": " + failure.getTrace());
      failed.append(' ').append(failure.getDescription().getTestClass().getSimpleName()).append('.')
          .append(failure.getDescription().getMethodName());
    }
    boolean ok = result.wasSuccessful() && result.getRunCount() > 0;
    System.out.println("case " + args[0] + ": " + (ok ? "PASS" : "FAIL") + " classes=" + classes.length + " tests="
        + result.getRunCount() + " failed=" + result.getFailureCount() + failed);
    System.out.flush();
    Runtime.getRuntime().halt(ok ? 0 : 1);
  }
}
