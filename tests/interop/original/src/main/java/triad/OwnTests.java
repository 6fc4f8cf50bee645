package triad;

import java.util.ArrayList;
import java.util.List;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;

/**
 * {@code OwnTests CASE CLASS[!METHOD]...}: the original's test classes, below org.apache.rocketmq.test, as one case,
 * without the methods behind "!".
 */
public final class OwnTests {
  public static void main(String[] args) throws Exception {
    Class<?>[] classes = new Class<?>[args.length - 1];
    List<String> leftOut = new ArrayList<>();
    for (int i = 1; i < args.length; i++) {
      String[] parts = args[i].split("!");
      classes[i - 1] = Class.forName("org.apache.rocketmq.test." + parts[0]);
      for (int j = 1; j < parts.length; j++) leftOut.add(classes[i - 1].getName() + "." + parts[j]);
    }
    Result result = new JUnitCore().run(Request.classes(classes).filterWith(new Filter() {
      @Override
      public boolean shouldRun(Description test) {
        return !leftOut.contains(test.getClassName() + "." + test.getMethodName());
      }

      @Override
      public String describe() {
        return "all but " + leftOut;
      }
    }));
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
