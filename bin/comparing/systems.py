"""The systems that are compared: each starts three nodes on the loopback, is loaded, and is ended.

A load is a dictionary: inflight, size, rate (0 = closed loop), seconds, warmup. publish() and consume() return the
report of mqbench or triad-peerbench.
"""

import json
import os
import shutil
import subprocess

from processes import Fault, Process, free_port, is_free, memory_mib, wait_until

START_SECONDS = 120


class Where:
    def __init__(self, root, build, directory):
        self.root, self.build, self.directory = root, build, directory

    def program(self, name):
        return os.path.join(self.build, "bin", name)

    def fresh(self, name):
        path = os.path.join(self.directory, name)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        return path


def run_json(command, seconds):
    """The last line of output, a report. Exit code 1 means errors, which the report counts."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise Fault("%s: exit %d: %s" % (" ".join(command[:3]), done.returncode, done.stderr.strip()[-400:]))
    return [json.loads(line) for line in done.stdout.strip().splitlines()][-1]


def flags(load):
    return ["--inflight", str(load["inflight"]), "--size", str(load["size"]), "--rate", str(load.get("rate", 0)),
            "--seconds", str(load["seconds"]), "--warmup", str(load["warmup"])]


class System:
    """One started system; `nodes` are the processes that are measured."""
    name = ""

    def __init__(self, where):
        self.where = where
        self.nodes, self.others = [], []
        self.directory = where.fresh(self.name)

    def start(self):
        """Until it can be loaded. stop() also after a Fault."""

    @classmethod
    def unavailable(cls, _where):
        """Why it cannot be measured here; None when it can."""
        return None

    def pids(self):
        return [pid for node in self.nodes for pid in node.tree()]

    def memory_mib(self):
        return memory_mib(self.pids())

    def stop(self):
        for process in self.nodes + self.others:
            process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def peerbench(self, verb, *words, seconds=30):
        pids = ",".join(map(str, self.pids()))
        return run_json([self.where.program("triad-peerbench"), verb, "--pids", pids, *words], seconds)


class Floor(System):
    name = "floor"

    def __init__(self, where):
        super().__init__(where)
        self.directory = os.path.join(where.directory, "floor-files")  # kept: preparing them takes a while
        os.makedirs(self.directory, exist_ok=True)

    def start(self):
        """What it writes over is in the page cache, as what others write is."""
        for name in os.listdir(self.directory):
            with open(os.path.join(self.directory, name), "rb") as file:
                while file.read(1 << 20):
                    pass

    def stop(self):
        pass

    def publish(self, load, _topic):
        return self.peerbench("floor", "--dir", self.directory, *flags(load), seconds=load["seconds"] + 30)


class Remoting(System):
    """A NameServer and three peers that read RocketMQ's configuration files."""
    extra = {}
    queues = 8

    def command(self, program, config):
        raise NotImplementedError

    def __init__(self, where, **changes):
        super().__init__(where)
        self.changes = changes
        self.namesrv, self.configs = None, []

    def start(self):
        self.namesrv = "127.0.0.1:%d" % free_port()
        path = self.write("namesrv.conf", {"listenPort": self.namesrv.split(":")[1],
                                           "kvConfigPath": self.directory + "/kvConfig.json"})
        self.others.append(Process(self.command("namesrv", path), self.directory + "/namesrv.log"))
        ports = [free_port((-2, 0, 1)) for _ in range(3)]
        peers = ";".join("n%d-127.0.0.1:%d" % (i, free_port()) for i in range(3))
        for i, port in enumerate(ports):
            keys = {"brokerClusterName": "Compare", "brokerName": "compare", "brokerIP1": "127.0.0.1",
                    "listenPort": port, "namesrvAddr": self.namesrv, "storePathRootDir": self.store(i),
                    "enableDLegerCommitLog": "true", "dLegerGroup": "compare", "dLegerPeers": peers,
                    "dLegerSelfId": "n%d" % i, **self.extra, **self.changes}
            self.configs.append(self.write("n%d.conf" % i, keys))
            self.nodes.append(self.start_node(i))
        self.prepare("Warm")

    def store(self, i):
        return "%s/n%d" % (self.directory, i)

    def start_node(self, i):
        return Process(self.command("broker", self.configs[i]), "%s/n%d.log" % (self.directory, i))

    def write(self, name, keys):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.writelines("%s=%s\n" % item for item in keys.items())
        return path

    def mqbench(self, verb, topic, *words, seconds=30):
        command = [self.where.program("triad-mqbench"), verb, "-n", self.namesrv, "-t", topic,
                   "--queues", str(self.queues), "-o", "json", *words]
        return run_json(command, seconds)

    def prepare(self, topic):
        """Until sends to the topic succeed; creates it."""
        def sends():
            try:
                report = self.mqbench("producer", topic, "--seconds", "0.3", "--warmup", "0", "--inflight", "1")
            except Fault:
                return False
            return report["errors"] == 0 and report["messages"] > 0
        wait_until("%s: first send" % self.name, START_SECONDS, sends, self.nodes + self.others)

    def publish(self, load, topic, *words):
        self.prepare(topic)
        return self.mqbench("producer", topic, *flags(load), *words, seconds=load["seconds"] + 30)

    def consume(self, topic, _messages, *words):
        return self.mqbench("consumer", topic, "--seconds", "30", *words, seconds=60)


class Triad(Remoting):
    name = "triad"
    extra = {"flushDiskType": "SYNC_FLUSH"}

    @classmethod
    def unavailable(cls, where):
        for name in ("triad-broker", "triad-namesrv", "triad-mqbench", "triad-peerbench"):
            if not os.access(where.program(name), os.X_OK):
                return "%s is not there; run bin/build first" % where.program(name)
        return None

    def command(self, program, config):
        return [self.where.program("triad-" + program), "-c", config]


class TriadAsync(Triad):
    name = "triad_async"
    extra = {"flushDiskType": "ASYNC_FLUSH"}


class RocketMq(Remoting):
    """The original in DLedger mode: it acknowledges before it syncs."""
    name = "rocketmq"
    extra = {"enableBatchPush": "true", "autoCreateTopicEnable": "true", "timerWheelEnable": "false",
             # Loads on a small machine may wait longer in its queue than it likes; else it answers "busy".
             "waitTimeMillsInSendQueue": "5000", "diskMaxUsedSpaceRatio": "95"}
    version = "5.3.3"
    classpath = None

    @classmethod
    def unavailable(cls, where):
        if not shutil.which("java") or not shutil.which("mvn"):
            return "java and mvn are needed (bin/setup installs them)"
        target = os.path.join(where.build, "compare-rocketmq.classpath")
        if not os.path.exists(target):
            pom = os.path.join(where.root, "tests/interop/mixed/pom.xml")
            done = subprocess.run(["mvn", "-q", "-B", "-f", pom, "-Drocketmq.version=" + cls.version,
                                   "dependency:build-classpath", "-Dmdep.outputFile=" + target],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                return "Maven cannot get RocketMQ %s: %s" % (cls.version, done.stdout.strip()[-200:])
        with open(target) as file:
            cls.classpath = file.read().strip()
        return None

    def command(self, program, config):
        conf = os.path.join(self.directory, "conf")
        if not os.path.isdir(conf):
            os.makedirs(conf)
            for name in ("logback_namesrv", "logback_broker"):
                with open("%s/%s.xml" % (conf, name), "w") as file:
                    file.write("<configuration/>\n")
        start = {"namesrv": "org.apache.rocketmq.namesrv.NamesrvStartup",
                 "broker": "org.apache.rocketmq.broker.BrokerStartup"}[program]
        heap = "128m" if program == "namesrv" else "1g"
        return ["java", "-Xms" + heap, "-Xmx" + heap, "-XX:MaxDirectMemorySize=1g",
                "-Drocketmq.home.dir=" + self.directory, "-Duser.home=" + self.directory,
                "-cp", self.classpath, start, "-c", config]


class Nats(System):
    """JetStream, a stream of three replicas in files: it does not sync before it acknowledges."""
    name = "nats"
    stream, subject = "S", "s"

    @classmethod
    def unavailable(cls, _where):
        if shutil.which("nats-server"):
            return None
        return "package nats-server is not installed (bin/setup --compare installs it)"

    def start(self):
        self.ports = [free_port() for _ in range(3)]
        routes = [free_port() for _ in range(3)]
        for i in range(3):
            path = "%s/n%d.conf" % (self.directory, i)
            with open(path, "w") as file:
                file.write('server_name: n%d\nlisten: "127.0.0.1:%d"\nmax_payload: 4MB\n'
                           'jetstream { store_dir: "%s/n%d", max_file_store: 20G }\n'
                           'cluster { name: c, listen: "127.0.0.1:%d", routes: [%s] }\n'
                           % (i, self.ports[i], self.directory, i, routes[i],
                              ", ".join('"nats://127.0.0.1:%d"' % port for port in routes)))
            self.nodes.append(Process(["nats-server", "-c", path], "%s/n%d.log" % (self.directory, i)))
        wait_until("nats: a stream of three replicas", START_SECONDS, self.make_stream, self.nodes)

    def ask(self, subject, body=""):
        """One request, one answer, as JSON; None when nobody answers."""
        import nats_wire
        return nats_wire.request(self.ports[0], subject, body)

    def make_stream(self):
        self.ask("$JS.API.STREAM.DELETE." + self.stream)
        config = {"name": self.stream, "subjects": [self.subject], "storage": "file", "num_replicas": 3,
                  "discard": "old"}
        self.ask("$JS.API.STREAM.CREATE." + self.stream, json.dumps(config))
        return self.leader() is not None

    def leader(self):
        """The address of the stream's leader, when both replicas follow it."""
        info = self.ask("$JS.API.STREAM.INFO." + self.stream) or {}
        cluster = info.get("cluster", {})
        if sum(1 for replica in cluster.get("replicas", []) if replica.get("current")) < 2:
            return None
        return "127.0.0.1:%d" % self.ports[int(cluster["leader"][1:])]

    def publish(self, load, _topic):
        wait_until("nats: a stream of three replicas", START_SECONDS, self.make_stream, self.nodes)
        return self.peerbench("nats-publish", "--address", self.leader(), "--name", self.subject, *flags(load),
                              seconds=load["seconds"] + 30)

    def consume(self, _topic, messages):
        consumer = {"stream_name": self.stream,
                    "config": {"durable_name": "bench", "ack_policy": "none", "deliver_policy": "all"}}
        self.ask("$JS.API.CONSUMER.DURABLE.CREATE.%s.bench" % self.stream, json.dumps(consumer))
        return self.peerbench("nats-consume", "--address", self.leader(), "--name", self.stream,
                              "--messages", str(messages), "--seconds", "30", seconds=60)


class RabbitMq(System):
    """A quorum queue of three replicas with publisher confirms: it syncs."""
    name = "rabbitmq"
    queue = "q"

    @classmethod
    def unavailable(cls, _where):
        if cls.programs():
            return None
        return "package rabbitmq-server is not installed (bin/setup --compare installs it)"

    @staticmethod
    def programs():
        base = "/usr/lib/rabbitmq/lib"
        found = sorted(d for d in (os.listdir(base) if os.path.isdir(base) else []) if d.startswith("rabbitmq_server"))
        return "%s/%s/sbin" % (base, found[-1]) if found else None

    def start(self):
        self.ports = [free_port((0, 1000)) for _ in range(3)]
        self.epmd_port = str(free_port())
        with open(self.directory + "/.erlang.cookie", "w") as file:
            file.write("COMPARE")
        os.chmod(self.directory + "/.erlang.cookie", 0o400)
        with open(self.directory + "/plugins", "w") as file:
            file.write("[].\n")
        self.others.append(Process(["epmd", "-port", self.epmd_port, "-address", "127.0.0.1"],
                                   self.directory + "/epmd.log"))
        wait_until("epmd", START_SECONDS, lambda: not is_free(int(self.epmd_port)), self.others)
        for i in range(3):
            self.nodes.append(Process([self.programs() + "/rabbitmq-server"], "%s/r%d.log" % (self.directory, i),
                                      self.environment(i)))
            wait_until("rabbitmq: node %d" % i, START_SECONDS, lambda i=i: self.is_up(i), self.nodes)
        wait_until("rabbitmq: a queue of three replicas", START_SECONDS, self.has_three, self.nodes)

    def environment(self, i):
        config = "%s/r%d.conf" % (self.directory, i)
        with open(config, "w") as file:
            file.write("loopback_users.guest = true\nvm_memory_high_watermark.absolute = 4GB\n"
                       "disk_free_limit.absolute = 1GB\n"
                       "cluster_formation.peer_discovery_backend = rabbit_peer_discovery_classic_config\n")
            for k in range(3):
                file.write("cluster_formation.classic_config.nodes.%d = r%d@localhost\n" % (k + 1, k))
        loopback = "-kernel inet_dist_use_interface {127,0,0,1}"
        return dict(os.environ, HOME=self.directory, LANG="C.UTF-8", RABBITMQ_NODENAME="r%d@localhost" % i,
                    RABBITMQ_NODE_PORT=str(self.ports[i]), RABBITMQ_DIST_PORT=str(self.ports[i] + 1000),
                    RABBITMQ_NODE_IP_ADDRESS="127.0.0.1", RABBITMQ_MNESIA_BASE="%s/r%d" % (self.directory, i),
                    RABBITMQ_LOG_BASE="%s/r%dlog" % (self.directory, i), RABBITMQ_CONFIG_FILE=config,
                    RABBITMQ_ENABLED_PLUGINS_FILE=self.directory + "/plugins", ERL_EPMD_PORT=self.epmd_port,
                    ERL_EPMD_ADDRESS="127.0.0.1", RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=loopback)

    def control(self, i, *words):
        done = subprocess.run([self.programs() + "/rabbitmqctl", "-n", "r%d@localhost" % i, *words],
                              env=self.environment(i), capture_output=True, text=True, timeout=START_SECONDS + 30)
        if done.returncode != 0:
            raise Fault("rabbitmqctl %s: %s" % (words[0], (done.stdout + done.stderr).strip()[-300:]))
        return done.stdout

    def is_up(self, i):
        try:
            return self.control(i, "await_startup", "--timeout", str(START_SECONDS)) is not None
        except Fault:
            return False  # not even registered yet

    def make_queue(self):
        """Its leader is where it is made: node 0."""
        done = subprocess.run([self.where.program("triad-peerbench"), "amqp-queue", "--address", self.address(),
                               "--name", self.queue], capture_output=True, text=True, timeout=60)
        return done.returncode == 0

    def address(self):
        return "127.0.0.1:%d" % self.ports[0]

    def has_three(self):
        if not self.make_queue():
            return False
        members = self.control(0, "list_queues", "-q", "--no-table-headers", "members")
        return all("r%d@localhost" % i in members for i in range(3))

    def publish(self, load, _topic):
        wait_until("rabbitmq: a new queue", START_SECONDS, self.make_queue, self.nodes)
        return self.peerbench("amqp-publish", "--address", self.address(), "--name", self.queue, *flags(load),
                              seconds=load["seconds"] + 30)

    def consume(self, _topic, messages):
        return self.peerbench("amqp-consume", "--address", self.address(), "--name", self.queue,
                              "--messages", str(messages), "--seconds", "30", seconds=60)


KINDS = {kind.name: kind for kind in (Triad, TriadAsync, Floor, RocketMq, RabbitMq, Nats)}