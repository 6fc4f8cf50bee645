package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// Every name carries run, so that cases never meet each other.
var (
	namesrv string
	run     = strconv.FormatInt(time.Now().UnixMilli(), 36)
)

func resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{namesrv})
}

func startProducer(name string, options ...producer.Option) rocketmq.Producer {
	p, err := rocketmq.NewProducer(append([]producer.Option{
		producer.WithNsResolver(resolver()),
		producer.WithGroupName("pg_" + name + run),
		producer.WithInstanceName("p_" + name),
	}, options...)...)
	check(err)
	check(p.Start())
	return p
}

func startConsumer(group, instance, topic string, listener func(context.Context, *primitive.MessageExt) consumer.ConsumeResult,
	options ...consumer.Option) rocketmq.PushConsumer {
	c, err := rocketmq.NewPushConsumer(append([]consumer.Option{
		consumer.WithNsResolver(resolver()),
		consumer.WithGroupName(group + run),
		consumer.WithInstance("c_" + instance),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, options...)...)
	check(err)
	check(c.Subscribe(topic, consumer.MessageSelector{}, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			if result := listener(ctx, m); result != consumer.ConsumeSuccess {
				return result, nil
			}
		}
		return consumer.ConsumeSuccess, nil
	}))
	check(c.Start())
	return c
}

// sendByKey sends count messages over keys sharding keys; bodies are "key:number within the key".
func sendByKey(p rocketmq.Producer, topic string, from, to, keys int) int {
	acked := 0
	for i := from; i < to; i++ {
		key := "k" + strconv.Itoa(i%keys)
		m := primitive.NewMessage(topic, []byte(key+":"+strconv.Itoa(i/keys)))
		m.WithShardingKey(key)
		m.WithKeys([]string{key})
		r, err := p.SendSync(context.Background(), m)
		check(err)
		if r.Status == primitive.SendOK {
			acked++
		}
	}
	return acked
}

// tally counts what listeners see, from many goroutines.
type tally struct {
	mutex      sync.Mutex
	times      map[string]int
	next       map[string]int
	outOfOrder int
}

func newTally() *tally {
	return &tally{times: map[string]int{}, next: map[string]int{}}
}

// see returns how often the body has been seen, this time included.
func (t *tally) see(body string) int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.times[body]++
	if key, number, found := strings.Cut(body, ":"); found {
		if n, _ := strconv.Atoi(number); n != t.next[key] {
			t.outOfOrder++
		}
		t.next[key]++
	}
	return t.times[body]
}

func (t *tally) distinct() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return len(t.times)
}

func (t *tally) deliveries() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	all := 0
	for _, n := range t.times {
		all += n
	}
	return all
}

func (t *tally) of(body string) int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.times[body]
}

func waitFor(limit time.Duration, condition func() bool) bool {
	for end := time.Now().Add(limit); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// readAll reads a topic from its beginning with the pull consumer, until `enough` messages were found or the time is up.
func readAll(name, topic string, enough int, limit time.Duration) []string {
	a, err := admin.NewAdmin(admin.WithResolver(resolver()))
	check(err)
	defer a.Close()
	end := time.Now().Add(limit)
	hasRoute := func() bool {
		_, err := a.FetchPublishMessageQueues(context.Background(), topic)
		return err == nil
	}
	if !waitFor(limit, hasRoute) {
		panic("topic " + topic + " never had a route")
	}
	c, err := rocketmq.NewPullConsumer(consumer.WithNsResolver(resolver()), consumer.WithGroupName("g_read_"+name+run),
		consumer.WithInstance("r_"+name))
	check(err)
	check(c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}))
	check(c.Start())
	defer c.Shutdown()
	var bodies []string
	next := map[int]int64{}
	for len(bodies) < enough && time.Now().Before(end) {
		queues, err := a.FetchPublishMessageQueues(context.Background(), topic)
		if err != nil {
			time.Sleep(200 * time.Millisecond)
			continue
		}
		for _, queue := range queues {
			for found := true; found; {
				found = false
				ctx, cancel := context.WithTimeout(context.Background(), time.Second) // an empty queue would be waited for
				r, err := c.PullFrom(ctx, queue, next[queue.QueueId], 32)
				cancel()
				if err != nil {
					continue
				}
				for _, m := range r.GetMessageExts() {
					bodies = append(bodies, string(m.Body))
					found = true
				}
				next[queue.QueueId] = r.NextBeginOffset
			}
		}
	}
	return bodies
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func counts(ok bool, format string, arguments ...any) (bool, string) {
	return ok, fmt.Sprintf(format, arguments...)
}
