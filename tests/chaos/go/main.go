// Producers and consumers of the stock Go client, the same load as load.cc makes. Every operation is a line of the history
// (tests/chaos/README.md) on stdout; what it is told on stdin stands in foreign_load.h.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	free         = "ChaosFree"
	ordered      = "ChaosOrdered"
	queues       = 8
	freeAttempts = 3
	afterFailure = 20 * time.Millisecond
)

var (
	namesrv, brokerName string
	seed                int64
	between             time.Duration
	stop                = make(chan struct{})
	nextID              atomic.Int64
	lines               sync.Mutex
	castagnoli          = crc32.MakeTable(crc32.Castagnoli)
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// CLOCK_MONOTONIC, as everybody else's.
func now() int64 {
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

// One line. Nothing in it needs escapes.
func write(format string, arguments ...any) {
	line := fmt.Sprintf(format, arguments...) + "\n"
	lines.Lock()
	defer lines.Unlock()
	os.Stdout.WriteString(line)
}

func hash(body []byte) uint32 {
	return crc32.Checksum(body, castagnoli)
}

func bodyOf(value string, filler int) []byte {
	body := []byte(value + "|")
	for i := 0; i < filler; i++ {
		body = append(body, byte('a'+(i*7+len(value)*3+i/13)%26))
	}
	return body
}

func valueOf(body []byte) string {
	value, _, _ := bytes.Cut(body, []byte("|"))
	return string(value)
}

// Certainly not stored, or nobody knows.
func outcomeOf(err error) string {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" || strings.Contains(err.Error(), "route info not found") {
		return "fail"
	}
	// 2 busy, 13 illegal message, 14 not available, 16 no permission, 17 no such topic, 29 invalid parameter
	for _, code := range []int{2, 13, 14, 16, 17, 29} {
		if strings.HasPrefix(err.Error(), fmt.Sprintf("CODE: %d, ", code)) {
			return "fail"
		}
	}
	return "info"
}

// send returns whether the message was acknowledged; `where` is the key and what else the begin of the send says.
func send(p rocketmq.Producer, client, where string, message *primitive.Message) bool {
	id := nextID.Add(1)
	write(`{"id":%d,"op":"send","t_inv_ns":%d,"client":"%s",%s,"value":"%s","hash":%d}`, id, now(), client, where,
		valueOf(message.Body), hash(message.Body))
	result, err := p.SendSync(context.Background(), message)
	if err == nil && result.Status == primitive.SendOK {
		write(`{"id":%d,"outcome":"ok","t_ret_ns":%d,"key":"%s/%d","offset":%d}`, id, now(), message.Topic,
			result.MessageQueue.QueueId, result.QueueOffset)
		return true
	}
	outcome := "info"
	if err != nil {
		outcome = outcomeOf(err)
	}
	write(`{"id":%d,"outcome":"%s","t_ret_ns":%d}`, id, outcome, now())
	return false
}

func startProducer(client, group string, selector producer.QueueSelector) rocketmq.Producer {
	p, err := rocketmq.NewProducer(
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{namesrv})),
		producer.WithGroupName(group),
		producer.WithInstanceName(client),
		producer.WithQueueSelector(selector),
		producer.WithRetry(0)) // one attempt: it must never be stored twice
	check(err)
	check(p.Start())
	return p
}

// pause returns true when sending is to stop.
func pause(ok bool) bool {
	wait := between
	if !ok {
		wait = afterFailure
	}
	select {
	case <-stop:
		return true
	case <-time.After(wait):
		return false
	}
}

func sendFree(number int) {
	client := "f" + strconv.Itoa(number)
	p := startProducer(client, "P-free", producer.NewManualQueueSelector())
	random := rand.New(rand.NewSource(seed + int64(number)))
	for n, ok := 1, true; !pause(ok); n++ {
		most := 400 // mostly small, some large enough to be compressed
		if random.Intn(20) == 0 {
			most = 16000
		}
		queue := random.Intn(queues)
		message := primitive.NewMessage(free, bodyOf(fmt.Sprintf("%s-%d", client, n), random.Intn(most)))
		message.Queue = &primitive.MessageQueue{Topic: free, BrokerName: brokerName, QueueId: queue}
		ok = send(p, client, fmt.Sprintf(`"key":"%s/%d"`, free, queue), message)
	}
	p.Shutdown()
}

func sendOrdered(number int) {
	client := "o" + strconv.Itoa(number)
	p := startProducer(client, "P-ordered", producer.NewHashQueueSelector())
	random := rand.New(rand.NewSource(seed + 1000 + int64(number)))
	for n, ok := 1, true; !pause(ok); n++ {
		order := fmt.Sprintf("%s/k%d", client, random.Intn(12))
		message := primitive.NewMessage(ordered, bodyOf(fmt.Sprintf("%s-%d", client, n), random.Intn(300)))
		message.WithShardingKey(order)
		ok = send(p, client, fmt.Sprintf(`"key":"%s","order":"%s"`, ordered, order), message)
	}
	p.Shutdown()
}

func delivered(group, client string, message *primitive.MessageExt, taken bool) {
	outcome, at := "ok", now()
	if !taken {
		outcome = "fail"
	}
	write(`{"op":"deliver","t_inv_ns":%d,"outcome":"%s","t_ret_ns":%d,"group":"%s","client":"%s","key":"%s/%d","offset":%d,`+
		`"value":"%s","hash":%d,"times":%d,"born":%d}`, at, outcome, at, group, client, message.Queue.Topic,
		message.Queue.QueueId, message.QueueOffset, valueOf(message.Body), hash(message.Body), message.ReconsumeTimes,
		message.BornTimestamp)
}

func startConsumer(member string, orderly bool) rocketmq.PushConsumer {
	group, topic := "G-free", free
	if orderly {
		group, topic = "G-orderly", ordered
	}
	client := group + member
	attempts := int32(freeAttempts - 1)
	if orderly {
		attempts = -1
	}
	c, err := rocketmq.NewPushConsumer(
		consumer.WithMaxReconsumeTimes(attempts),
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{namesrv})),
		consumer.WithGroupName(group),
		consumer.WithInstance(client),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumerOrder(orderly),
		consumer.WithSuspendCurrentQueueTimeMillis(20*time.Millisecond))
	check(err)
	listener := func(call context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		first := messages[0]
		fresh := first.ReconsumeTimes == 0
		// One in a hundred fails and comes again in place.
		if orderly && fresh && hash(first.Body)%100 == 0 {
			for _, m := range messages {
				delivered(group, client, m, true)
			}
			return consumer.SuspendCurrentQueueAMoment, nil
		}
		// One in two hundred is refused the first time and comes back through the retry topic, after 10 s; another one
		// always, every second, until it is a dead letter.
		kind := hash(first.Body) % 200
		taken := orderly || kind != 2 && (kind != 1 || !fresh)
		if context, ok := primitive.GetConcurrentlyCtx(call); ok && kind == 2 {
			context.DelayLevelWhenNextConsume = 1
		}
		for _, m := range messages {
			delivered(group, client, m, taken)
		}
		if !taken {
			return consumer.ConsumeRetryLater, nil
		}
		return consumer.ConsumeSuccess, nil
	}
	check(c.Subscribe(topic, consumer.MessageSelector{}, listener))
	check(c.Start())
	return c
}

func main() {
	namesrv, brokerName = os.Args[1], os.Args[2]
	var err error
	seed, err = strconv.ParseInt(os.Args[3], 10, 64)
	check(err)
	ms, err := strconv.Atoi(os.Args[4])
	check(err)
	between = time.Duration(ms) * time.Millisecond
	var consumers []rocketmq.PushConsumer
	for _, member := range []string{"a", "b"} {
		consumers = append(consumers, startConsumer(member, true), startConsumer(member, false))
	}
	var producers sync.WaitGroup
	start := func(count int, job func(int)) {
		for i := 0; i < count; i++ {
			producers.Add(1)
			go func(number int) {
				defer producers.Done()
				job(number)
			}(i)
		}
	}
	start(5, sendFree)
	start(2, sendOrdered)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() && in.Text() != "stop consuming" {
		if in.Text() != "stop sending" {
			continue
		}
		close(stop)
		producers.Wait()
		write("sending stopped")
	}
	for _, c := range consumers {
		c.Shutdown()
	}
}
