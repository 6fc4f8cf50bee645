package triad;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Some examples have 127.0.0.1:9876 written in them as their name server: what arrives there is passed on to ours. */
final class FixedAddress {
  static void forward(int port, String address) throws IOException {
    int colon = address.lastIndexOf(':');
    String host = address.substring(0, colon);
    int to = Integer.parseInt(address.substring(colon + 1));
    ServerSocket server = new ServerSocket(port, 50, InetAddress.getByName("127.0.0.1"));
    start(() -> {
      while (true) {
        Socket client = server.accept();
        Socket target = new Socket(host, to);
        start(() -> pump(client, target));
        start(() -> pump(target, client));
      }
    });
  }

  private interface Task {
    void run() throws IOException;
  }

  private static void start(Task task) {
    Thread thread = new Thread(() -> {
      try {
        task.run();
      } catch (IOException e) {
        // The connection is over.
      }
    });
    thread.setDaemon(true);
    thread.start();
  }

  private static void pump(Socket from, Socket to) throws IOException {
    try (from; to) {
      from.getInputStream().transferTo(to.getOutputStream());
    }
  }
}
