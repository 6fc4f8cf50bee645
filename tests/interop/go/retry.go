package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func newTagConsumer(topic, expression string, seen *tally) (rocketmq.PushConsumer, error) {
	c, err := rocketmq.NewPushConsumer(consumer.WithNsResolver(resolver()), consumer.WithGroupName("g_tags"+run),
		consumer.WithInstance("c_tags"), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return nil, err
	}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: expression}
	err = c.Subscribe(topic, selector, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			seen.see(string(m.Body))
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		return nil, err
	}
	return c, c.Start()
}

// Three messages fail always: with WithMaxReconsumeTimes(2) each is delivered 3 times, then read from %DLQ%.
func retryAndDeadLetter() (bool, string) {
	topic := "GRetry" + run
	p := startProducer("retry")
	defer p.Shutdown()
	for i := 0; i < 20; i++ {
		body := "good" + strconv.Itoa(i)
		if i < 3 {
			body = "poison" + strconv.Itoa(i)
		}
		_, err := p.SendSync(context.Background(), primitive.NewMessage(topic, []byte(body)))
		check(err)
	}
	seen := newTally()
	c := startConsumer("g_retry", "retry", topic, func(ctx context.Context, m *primitive.MessageExt) consumer.ConsumeResult {
		seen.see(string(m.Body))
		if context, ok := primitive.GetConcurrentlyCtx(ctx); ok {
			context.DelayLevelWhenNextConsume = 1
		}
		if strings.HasPrefix(string(m.Body), "poison") {
			return consumer.ConsumeRetryLater
		}
		return consumer.ConsumeSuccess
	}, consumer.WithMaxReconsumeTimes(2))
	defer c.Shutdown()
	dead := readAll("dlq", "%DLQ%g_retry"+run, 3, patience)
	exact := seen.distinct() == 20
	for i := 0; i < 20; i++ {
		if i < 3 {
			exact = exact && seen.of("poison"+strconv.Itoa(i)) == 3
		} else {
			exact = exact && seen.of("good"+strconv.Itoa(i)) == 1
		}
	}
	return counts(exact && len(dead) == 3, "messages=%d deliveries=%d attempts_exact=%v dead=%d", seen.distinct(),
		seen.deliveries(), exact, len(dead))
}

// An orderly listener that always suspends: attempts in place, then the dead-letter topic, then the rest.
func orderlyDeadLetter() (bool, string) {
	topic := "GOrderlyDlq" + run
	p := startProducer("odlq", producer.WithQueueSelector(producer.NewHashQueueSelector()))
	defer p.Shutdown()
	for _, body := range []string{"poison", "good1", "good2"} {
		m := primitive.NewMessage(topic, []byte(body))
		m.WithShardingKey("k")
		_, err := p.SendSync(context.Background(), m)
		check(err)
	}
	var mutex sync.Mutex
	var order []string
	c := startConsumer("g_odlq", "odlq", topic, func(_ context.Context, m *primitive.MessageExt) consumer.ConsumeResult {
		mutex.Lock()
		defer mutex.Unlock()
		order = append(order, string(m.Body))
		if string(m.Body) == "poison" {
			return consumer.SuspendCurrentQueueAMoment
		}
		return consumer.ConsumeSuccess
	}, consumer.WithConsumerOrder(true), consumer.WithMaxReconsumeTimes(2),
		consumer.WithSuspendCurrentQueueTimeMillis(100*time.Millisecond))
	defer c.Shutdown()
	dead := readAll("odlq", "%DLQ%g_odlq"+run, 1, patience)
	waitFor(patience, func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return len(order) > 0 && order[len(order)-1] == "good2"
	})
	mutex.Lock()
	defer mutex.Unlock()
	text := strings.Join(order, ",")
	// The client gives up where ReconsumeTimes > max (checkReconsumeTimes): max + 2 deliveries, not max + 1 as Java's.
	want := "poison,poison,poison,poison,good1,good2"
	return counts(len(dead) == 1 && text == want, "order=%s dead=%d", text, len(dead))
}
