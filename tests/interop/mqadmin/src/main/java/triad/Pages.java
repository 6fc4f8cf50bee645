package triad;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.monitor.MonitorConfig;
import org.apache.rocketmq.tools.monitor.MonitorListener;
import org.apache.rocketmq.tools.monitor.MonitorService;

/**
 * The calls of the pages of rocketmq-dashboard and of the tasks of rocketmq-exporter, by the same admin library, since
 * neither is in the registry. Each prints what its page or metric is made of: names and counts, sorted.
 *
 * Types are left to the compiler: the library's packages are other ones in 4.9 and 5.
 */
final class Pages {
    private static final String TOPIC = "TopicA";
    private static final String GROUP = "GroupA";
    private static final String PRODUCERS = "ProducerA";
    private static final int TIMEOUT_MS = 15_000;

    private interface Page {
        void print(DefaultMQAdminExt admin, StringBuilder out) throws Exception;
    }

    private final Map<String, Page> pages = new TreeMap<>();
    private final String broker;

    Pages(String broker) {
        this.broker = broker;
        pages.put("cluster", this::cluster);
        pages.put("config", (admin, out) -> names(out, "config", admin.getBrokerConfig(broker).stringPropertyNames()));
        pages.put("topics", this::topics);
        pages.put("topic", this::topic);
        pages.put("groups", this::groups);
        pages.put("group", this::group);
        pages.put("client", this::client);
        pages.put("producers", this::producers);
        pages.put("message", this::message);
        pages.put("topicOffsets", this::topicOffsets);
        pages.put("consumerOffsets", this::consumerOffsets);
        pages.put("brokerRuntime", this::brokerRuntime);
        pages.put("brokerStats", this::brokerStats);
        pages.put("consumeTime", this::consumeTime);
        pages.put("monitor", this::monitor);
    }

    String run(String name, String namesrv) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(TIMEOUT_MS);
        admin.setNamesrvAddr(namesrv);
        admin.setInstanceName("page_" + name + System.nanoTime());
        admin.start();
        try {
            String text = "";
            for (int tries = 0; tries == 0 || tries < 3 && RunVerbs.LATE.matcher(text).find(); ++tries) {
                text = print(pages.get(name), admin);
            }
            return text;
        } finally {
            admin.shutdown();
        }
    }

    private static String print(Page page, DefaultMQAdminExt admin) {
        StringBuilder out = new StringBuilder();
        try {
            page.print(admin, out);
        } catch (Exception e) {
            out.append("THREW ").append(e).append('\n');
        }
        return out.toString();
    }

    private static void line(StringBuilder out, String name, Object value) {
        out.append(name).append(" is ").append(value).append('\n');
    }

    private static void names(StringBuilder out, String what, Iterable<?> names) {
        TreeSet<String> sorted = new TreeSet<>();
        for (Object name : names) sorted.add(String.valueOf(name));
        for (String name : sorted) line(out, what, name);
    }

    /** Dashboard, Cluster: every key that a peer tells is shown; a task reads the first number of getTotalTps. */
    private void cluster(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        var info = admin.examineBrokerClusterInfo();
        names(out, "cluster", info.getClusterAddrTable().keySet());
        names(out, "broker", info.getBrokerAddrTable().keySet());
        for (var data : info.getBrokerAddrTable().values()) {
            for (String address : data.getBrokerAddrs().values()) {
                Map<String, String> table = admin.fetchBrokerRuntimeStats(address).getTable();
                names(out, "key", table.keySet());
                Double.parseDouble(table.get("getTotalTps").split(" ")[0]);
            }
        }
    }

    private void topics(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        names(out, "topic", admin.fetchAllTopicList().getTopicList());
        var configs = admin.getAllTopicConfig(broker, TIMEOUT_MS).getTopicConfigTable();
        for (String name : List.of(TOPIC, "TopicO")) {
            var config = configs.get(name);
            line(out, "config of " + name, config.getReadQueueNums() + " " + config.getWriteQueueNums() + " "
                + config.getPerm() + " " + config.isOrder() + " " + config.getTopicFilterType());
        }
    }

    private void topic(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        var route = admin.examineTopicRouteInfo(TOPIC);
        line(out, "brokers", route.getBrokerDatas().size());
        line(out, "queues", route.getQueueDatas().get(0).getReadQueueNums());
        line(out, "perm", route.getQueueDatas().get(0).getPerm());
        var stats = admin.examineTopicStats(TOPIC).getOffsetTable();
        for (var queue : new TreeSet<>(stats.keySet())) {
            line(out, "queue " + queue.getQueueId(), stats.get(queue).getMinOffset() + " "
                + stats.get(queue).getMaxOffset() + " " + (stats.get(queue).getLastUpdateTimestamp() > 0));
        }
        TreeSet<String> groups = new TreeSet<>(admin.queryTopicConsumeByWho(TOPIC).getGroupList());
        groups.remove(TOPIC);  // the original lists a group named like the topic that nobody made
        names(out, "group", groups);
    }

    private void groups(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        var groups = admin.getAllSubscriptionGroup(broker, TIMEOUT_MS).getSubscriptionGroupTable();
        for (String name : List.of("GroupA", "GroupB")) {
            var group = groups.get(name);
            line(out, name, group.isConsumeEnable() + " " + group.isConsumeBroadcastEnable() + " "
                + group.getRetryQueueNums() + " " + group.getRetryMaxTimes() + " " + group.getBrokerId() + " "
                + group.getWhichBrokerWhenConsumeSlowly() + " " + group.isNotifyConsumerIdsChangedEnable());
        }
    }

    private void group(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        var connection = admin.examineConsumerConnectionInfo(GROUP);
        line(out, "members", connection.getConnectionSet().size());
        line(out, "kind", connection.getConsumeType() + " " + connection.getMessageModel() + " "
            + connection.getConsumeFromWhere());
        names(out, "subscription", connection.getSubscriptionTable().keySet());
        var stats = admin.examineConsumeStats(GROUP);
        line(out, "behind", stats.computeTotalDiff());
        for (var queue : new TreeSet<>(stats.getOffsetTable().keySet())) {
            var at = stats.getOffsetTable().get(queue);
            line(out, queue.getTopic() + " " + queue.getQueueId(), at.getBrokerOffset() + " " + at.getConsumerOffset());
        }
    }

    private void client(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        for (var one : admin.examineConsumerConnectionInfo(GROUP).getConnectionSet()) {
            var info = admin.getConsumerRunningInfo(GROUP, one.getClientId(), false);
            line(out, "queues", info.getMqTable().size());
            line(out, "subscriptions", info.getSubscriptionSet().size());
            names(out, "property", info.getProperties().stringPropertyNames());
            var withStacks = admin.getConsumerRunningInfo(GROUP, one.getClientId(), true);
            line(out, "stacks", withStacks.getJstack() != null && withStacks.getJstack().length() > 100);
        }
    }

    private void producers(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        line(out, "producers", admin.examineProducerConnectionInfo(PRODUCERS, TOPIC).getConnectionSet().size());
        var all = admin.getAllProducerInfo(broker).getData();
        line(out, "known", all.containsKey(PRODUCERS));
        for (var one : all.get(PRODUCERS)) {
            line(out, "producer", one.getLanguage() + " " + (one.getVersion() > 0) + " "
                + (one.getLastUpdateTimestamp() > 0));
        }
    }

    /** By key, by id, who consumed it, and once more by order of an administrator. */
    private void message(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        long now = System.currentTimeMillis();
        var found = admin.queryMessage(TOPIC, "keyP", 64, 0, now + 60_000).getMessageList();
        line(out, "by key", found.size());
        var message = found.get(0);
        line(out, "by unique key", admin.viewMessage(TOPIC, message.getMsgId()).getQueueId());
        for (var track : admin.messageTrackDetail(message)) {
            if (track.getConsumerGroup().equals(GROUP)) line(out, "track", track.getTrackType());
        }
        for (var one : admin.examineConsumerConnectionInfo(GROUP).getConnectionSet()) {
            line(out, "consumed", admin.consumeMessageDirectly(GROUP, one.getClientId(), TOPIC,
                message.getMsgId()).getConsumeResult());
        }
    }

    // ---- rocketmq-exporter -----------------------------------------------------------------------------------------

    private void topicOffsets(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        List<String> mine = new ArrayList<>();
        for (String name : admin.fetchAllTopicList().getTopicList()) {
            if (name.startsWith("Topic")) mine.add(name);
        }
        for (String name : new TreeSet<>(mine)) {
            long sum = 0;
            for (var offset : admin.examineTopicStats(name).getOffsetTable().values()) sum += offset.getMaxOffset();
            line(out, "offset of " + name, sum);
        }
    }

    private void consumerOffsets(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        var stats = admin.examineConsumeStats(GROUP, TOPIC);
        long latest = 0;
        for (var at : stats.getOffsetTable().values()) latest = Math.max(latest, at.getLastTimestamp());
        line(out, "lag", stats.computeTotalDiff());
        line(out, "tps is a number", stats.getConsumeTps() >= 0);
        line(out, "last time known", latest > 0);
    }

    /** The exporter leaves a broker out at the first key that is missing or no number. */
    private void brokerRuntime(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        Map<String, String> table = admin.fetchBrokerRuntimeStats(broker).getTable();
        for (String key : ("bootTimestamp brokerVersion msgPutTotalTodayNow msgPutTotalTodayMorning "
            + "msgPutTotalYesterdayMorning msgGetTotalTodayNow msgGetTotalTodayMorning msgGetTotalYesterdayMorning "
            + "sendThreadPoolQueueSize sendThreadPoolQueueCapacity sendThreadPoolQueueHeadWaitTimeMills "
            + "pullThreadPoolQueueSize pullThreadPoolQueueCapacity pullThreadPoolQueueHeadWaitTimeMills "
            + "queryThreadPoolQueueSize queryThreadPoolQueueCapacity queryThreadPoolQueueHeadWaitTimeMills "
            + "pageCacheLockTimeMills earliestMessageTimeStamp commitLogMinOffset commitLogMaxOffset dispatchBehindBytes "
            + "dispatchMaxBuffer remainTransientStoreBufferNumbs startAcceptSendRequestTimeStamp putMessageTimesTotal "
            + "putMessageFailedTimes putMessageSizeTotal putMessageEntireTimeMax getMessageEntireTimeMax").split(" ")) {
            Long.parseLong(table.get(key));
            line(out, "whole number", key);
        }
        for (String key : "commitLogDiskRatio consumeQueueDiskRatio putMessageAverageSize".split(" ")) {
            Double.parseDouble(table.get(key));
            line(out, "number", key);
        }
        for (String key : "putTps getFoundTps getMissTps getTotalTps getTransferredTps".split(" ")) {
            // As the exporter: the first of them; how many there are depends on how long the server runs.
            String first = table.get(key).trim().split(" ")[0];
            line(out, key, first.isEmpty() || Double.parseDouble(first) >= 0);
        }
        String[] capacity = table.get("commitLogDirCapacity").split(" ");
        Double.parseDouble(capacity[2]);
        Double.parseDouble(capacity[6]);
        line(out, "capacity", capacity.length + " words, " + capacity[0]);
        line(out, "flush", table.get("remainHowManyDataToFlush").split(" ").length + " words");
        line(out, "version", table.get("brokerVersionDesc").startsWith("V"));
        line(out, "runtime", table.get("runtime").contains("days"));
        for (String part : table.get("putMessageDistributeTime").trim().split(" ")) {
            line(out, "distribution", part.split(":")[0]);
        }
    }

    private void brokerStats(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        for (String[] one : new String[][] {{"TOPIC_PUT_NUMS", "TopicT"}, {"TOPIC_PUT_SIZE", "TopicT"},
            {"GROUP_GET_NUMS", "TopicT@GroupT"}, {"GROUP_GET_SIZE", "TopicT@GroupT"},
            {"BROKER_PUT_NUMS", "DefaultCluster"}, {"BROKER_GET_NUMS", "DefaultCluster"}}) {
            var data = admin.viewBrokerStatsData(broker, one[0], one[1]);
            line(out, one[0], (data.getStatsMinute().getTps() > 0) + " " + (data.getStatsMinute().getSum() > 0));
        }
        try {
            admin.viewBrokerStatsData(broker, "TOPIC_PUT_NUMS", "NoSuchTopic");
            line(out, "unknown topic", "answered");
        } catch (Exception e) {
            line(out, "unknown topic", e.getMessage().contains("not exist"));
        }
    }

    private void consumeTime(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        var spans = admin.queryConsumeTimeSpan(TOPIC, GROUP);
        line(out, "queues", spans.size());
        long delay = 0;
        for (var span : spans) delay += span.getDelayTime();
        line(out, "delay", delay);
    }

    // ---- startMonitoring -------------------------------------------------------------------------------------------

    /** One round of the verb that only writes to a log, every minute, and has no end. */
    private void monitor(DefaultMQAdminExt admin, StringBuilder out) throws Exception {
        TreeSet<String> told = new TreeSet<>();  // groups come out of a hash table
        var listener = (MonitorListener) Proxy.newProxyInstance(getClass().getClassLoader(),
            new Class<?>[] {MonitorListener.class}, (proxy, method, given) -> {
                synchronized (told) {
                    if (given == null) return null;
                    String text = String.valueOf(given[0]);
                    if (given[0] instanceof Map) text = "clients " + ((Map<?, ?>) given[0]).keySet().size();
                    told.add(method.getName() + " " + text.replaceAll("DelayTimeMills=\\d+", "DelayTimeMills"));
                }
                return null;
            });
        MonitorConfig config = new MonitorConfig();
        config.setNamesrvAddr(admin.getNamesrvAddr());
        MonitorService service = new MonitorService(config, listener, null);
        service.start();
        try {
            service.doMonitorWork();
        } finally {
            service.shutdown();
        }
        synchronized (told) {
            names(out, "told", told);
        }
    }
}
