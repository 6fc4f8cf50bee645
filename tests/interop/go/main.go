// The unmodified Go client: interop NAMESRV CASE... prints "case NAME: PASS|FAIL counts" for each; "all" stands for
// every case. Exit code 0 only when all passed.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const patience = 90 * time.Second

var cases = []struct {
	name string
	run  func() (bool, string)
}{
	{"send_sync", sendSync},
	{"send_async", sendAsync},
	{"send_oneway", sendOneway},
	{"send_batch", sendBatch},
	{"send_selector", sendSelector},
	{"orderly", orderly},
	{"concurrent", concurrent},
	{"pull", pull},
	{"broadcast", broadcast},
	{"tags", tags},
	{"delay", delay},
	{"retry_dead_letter", retryAndDeadLetter},
	{"orderly_dead_letter", orderlyDeadLetter},
}

func send(topic string, count int) int {
	p := startProducer(topic)
	defer p.Shutdown()
	acked := 0
	for i := 0; i < count; i++ {
		r, err := p.SendSync(context.Background(), primitive.NewMessage(topic, []byte("m"+strconv.Itoa(i))))
		check(err)
		if r.Status == primitive.SendOK {
			acked++
		}
	}
	return acked
}

func sendSync() (bool, string) {
	topic := "GSync" + run
	acked := send(topic, 100)
	read := len(readAll("sync", topic, 100, patience))
	return counts(acked == 100 && read == 100, "acked=%d read=%d", acked, read)
}

func sendAsync() (bool, string) {
	topic := "GAsync" + run
	p := startProducer("async")
	defer p.Shutdown()
	var wait sync.WaitGroup
	seen := newTally()
	for i := 0; i < 100; i++ {
		wait.Add(1)
		check(p.SendAsync(context.Background(), func(_ context.Context, r *primitive.SendResult, err error) {
			if err == nil && r.Status == primitive.SendOK {
				seen.see(r.MsgID)
			}
			wait.Done()
		}, primitive.NewMessage(topic, []byte("m"+strconv.Itoa(i)))))
	}
	wait.Wait()
	read := len(readAll("async", topic, 100, patience))
	return counts(seen.distinct() == 100 && read == 100, "acked=%d read=%d", seen.distinct(), read)
}

func sendOneway() (bool, string) {
	topic := "GOneway" + run
	acked := send(topic, 1) // the topic exists then
	p := startProducer("oneway")
	defer p.Shutdown()
	for i := 1; i < 100; i++ {
		check(p.SendOneWay(context.Background(), primitive.NewMessage(topic, []byte("m"+strconv.Itoa(i)))))
	}
	read := len(readAll("oneway", topic, 100, patience))
	return counts(acked == 1 && read == 100, "read=%d", read)
}

func sendBatch() (bool, string) {
	topic := "GBatch" + run
	p := startProducer("batch")
	defer p.Shutdown()
	var batch []*primitive.Message
	for i := 0; i < 100; i++ {
		batch = append(batch, primitive.NewMessage(topic, []byte("m"+strconv.Itoa(i))))
	}
	r, err := p.SendSync(context.Background(), batch...)
	check(err)
	bodies := readAll("batch", topic, 100, patience)
	inOrder := true
	for i, body := range bodies {
		inOrder = inOrder && body == "m"+strconv.Itoa(i)
	}
	return counts(r.Status == primitive.SendOK && len(bodies) == 100 && inOrder, "read=%d in_order=%v", len(bodies), inOrder)
}

func sendSelector() (bool, string) {
	topic := "GSelector" + run
	p := startProducer("selector", producer.WithQueueSelector(producer.NewHashQueueSelector()))
	defer p.Shutdown()
	acked := sendByKey(p, topic, 0, 200, 10)
	seen := newTally()
	for _, body := range readAll("selector", topic, 200, patience) {
		seen.see(body)
	}
	return counts(acked == 200 && seen.distinct() == 200 && seen.outOfOrder == 0, "acked=%d read=%d out_of_order=%d", acked,
		seen.distinct(), seen.outOfOrder)
}

// Two orderly members share the queues: every key in order, nothing lost.
func orderly() (bool, string) {
	topic := "GOrderly" + run
	p := startProducer("orderly", producer.WithQueueSelector(producer.NewHashQueueSelector()))
	defer p.Shutdown()
	acked := sendByKey(p, topic, 0, 10, 10)
	seen := newTally()
	for i := 0; i < 2; i++ {
		c := startConsumer("g_orderly", "orderly"+strconv.Itoa(i), topic, func(_ context.Context, m *primitive.MessageExt) consumer.ConsumeResult {
			seen.see(string(m.Body))
			return consumer.ConsumeSuccess
		}, consumer.WithConsumerOrder(true))
		defer c.Shutdown()
	}
	waitFor(patience, func() bool { return seen.distinct() == 10 })
	acked += sendByKey(p, topic, 10, 1000, 10)
	all := waitFor(patience, func() bool { return seen.distinct() == 1000 })
	return counts(all && acked == 1000 && seen.outOfOrder == 0, "acked=%d distinct=%d deliveries=%d out_of_order=%d", acked,
		seen.distinct(), seen.deliveries(), seen.outOfOrder)
}

func concurrent() (bool, string) {
	topic := "GConcurrent" + run
	acked := send(topic, 500)
	seen := newTally()
	for i := 0; i < 2; i++ {
		c := startConsumer("g_concurrent", "concurrent"+strconv.Itoa(i), topic, func(_ context.Context, m *primitive.MessageExt) consumer.ConsumeResult {
			seen.see(string(m.Body))
			return consumer.ConsumeSuccess
		})
		defer c.Shutdown()
	}
	all := waitFor(patience, func() bool { return seen.distinct() == 500 })
	return counts(all && acked == 500, "acked=%d distinct=%d deliveries=%d", acked, seen.distinct(), seen.deliveries())
}

func pull() (bool, string) {
	topic := "GPull" + run
	acked := send(topic, 150) // more than one pull per queue brings
	bodies := map[string]bool{}
	for _, body := range readAll("pull", topic, 150, patience) {
		bodies[body] = true
	}
	return counts(acked == 150 && len(bodies) == 150, "acked=%d read=%d", acked, len(bodies))
}

func broadcast() (bool, string) {
	topic := "GBroadcast" + run
	acked := send(topic, 100)
	seen := []*tally{newTally(), newTally()}
	for i, mine := range seen {
		mine := mine
		c := startConsumer("g_broadcast", "broadcast"+strconv.Itoa(i), topic, func(_ context.Context, m *primitive.MessageExt) consumer.ConsumeResult {
			mine.see(string(m.Body))
			return consumer.ConsumeSuccess
		}, consumer.WithConsumerModel(consumer.BroadCasting))
		defer c.Shutdown()
	}
	all := waitFor(patience, func() bool { return seen[0].distinct() == 100 && seen[1].distinct() == 100 })
	return counts(all && acked == 100, "first=%d second=%d of 100", seen[0].distinct(), seen[1].distinct())
}

// "Aa" and "BB" have the same hash code: the client must tell them apart.
func tags() (bool, string) {
	topic := "GTags" + run
	p := startProducer("tags")
	defer p.Shutdown()
	for i := 0; i < 30; i++ {
		m := primitive.NewMessage(topic, []byte("m"+strconv.Itoa(i)))
		_, err := p.SendSync(context.Background(), m.WithTag([]string{"Aa", "BB", "C"}[i%3]))
		check(err)
	}
	seen := newTally()
	c, err := newTagConsumer(topic, "Aa || D", seen)
	check(err)
	defer c.Shutdown()
	all := waitFor(patience, func() bool { return seen.distinct() >= 10 })
	time.Sleep(time.Second) // whatever else would come
	return counts(all && seen.deliveries() == 10, "distinct=%d deliveries=%d of 10", seen.distinct(), seen.deliveries())
}

func delay() (bool, string) {
	topic := "GDelay" + run
	send(topic, 1)
	p := startProducer("delay")
	defer p.Shutdown()
	m := primitive.NewMessage(topic, []byte("late"))
	m.WithDelayTimeLevel(1)
	sentAt := time.Now().UnixMilli()
	_, err := p.SendSync(context.Background(), m)
	check(err)
	seen := newTally()
	var mutex sync.Mutex
	var lateMs int64
	c := startConsumer("g_delay", "delay", topic, func(_ context.Context, m *primitive.MessageExt) consumer.ConsumeResult {
		if string(m.Body) == "late" {
			mutex.Lock()
			lateMs = m.StoreTimestamp - sentAt
			mutex.Unlock()
		}
		seen.see(string(m.Body))
		return consumer.ConsumeSuccess
	})
	defer c.Shutdown()
	all := waitFor(patience, func() bool { return seen.distinct() == 2 })
	mutex.Lock()
	defer mutex.Unlock()
	return counts(all && lateMs >= 900 && lateMs < 10000, "deliveries=%d late_ms=%d", seen.deliveries(), lateMs)
}

func runCase(name string, run func() (bool, string)) (ok bool) {
	text := ""
	defer func() {
		if r := recover(); r != nil {
			ok, text = false, fmt.Sprint(r)
		}
		verdict := map[bool]string{true: "PASS", false: "FAIL"}[ok]
		fmt.Printf("case %s: %s %s\n", name, verdict, text)
	}()
	ok, text = run()
	return ok
}

func main() {
	rlog.SetLogLevel("error")
	namesrv = os.Args[1]
	wanted := map[string]bool{}
	for _, name := range os.Args[2:] {
		wanted[name] = true
	}
	var wait sync.WaitGroup
	var mutex sync.Mutex
	ok := true
	slots := make(chan bool, 4) // so many cases at a time
	for _, c := range cases {
		c := c
		if !wanted["all"] && !wanted[c.name] {
			continue
		}
		wait.Add(1)
		slots <- true
		go func() {
			passed := runCase(c.name, c.run)
			mutex.Lock()
			ok = ok && passed
			mutex.Unlock()
			<-slots
			wait.Done()
		}()
	}
	wait.Wait()
	if !ok {
		os.Exit(1)
	}
}
