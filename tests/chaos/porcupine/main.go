// Checks the small objects of a history with Porcupine, for comparison with triad-histcheck.
//
// Prints "object NAME ok|bad|unknown" for every offset register, queue lock, maximum offset and topic
// configuration, sorted by name: what `triad-histcheck --objects` prints. The models are those of linearizer.cc; an operation
// of unknown outcome may take effect at any time or never.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	leaseNs = int64(60_000_000_000)
	graceNs = int64(30_000_000_000)
)

type line struct {
	ID      int64   `json:"id"`
	Op      string  `json:"op"`
	Client  string  `json:"client"`
	Key     string  `json:"key"`
	Outcome string  `json:"outcome"`
	Invoked int64   `json:"t_inv_ns"`
	Ended   int64   `json:"t_ret_ns"`
	Offset  *int64  `json:"offset"`
	Token   int64   `json:"token"`
}

type operation struct {
	op       string
	client   string
	known    bool
	invoked  int64
	ended    int64
	argument int64
	answer   int64
}

type state struct {
	value   int64 // register, maximum; lock: the largest certain token
	holder  string
	renewed int64
	unsure  bool // the holder's token is larger than value
}

func offsetOf(l line) int64 {
	if l.Offset == nil {
		return -1
	}
	return *l.Offset
}

func stepRegister(s state, o operation) (state, bool) {
	if o.op == "commit" {
		return state{value: o.argument}, true
	}
	return s, !o.known || o.answer == s.value
}

func stepTopic(s state, o operation) (state, bool) {
	switch o.op {
	case "puttopic":
		return state{value: o.argument}, true
	case "droptopic":
		return state{value: -1}, true
	}
	return s, !o.known || o.answer == s.value
}

func stepMax(s state, o operation) (state, bool) {
	if o.known && o.answer != s.value {
		return s, false
	}
	if o.op == "append" {
		s.value++
	}
	return s, true
}

func stepLock(s state, o operation) (state, bool) {
	if o.op == "unlock" {
		if s.holder == o.client {
			s.holder = ""
		}
		return s, true
	}
	if o.known && o.answer == 0 {
		return s, true // a refusal promises nothing
	}
	latest := o.ended
	if !o.known {
		latest += graceNs
	}
	over := latest-s.renewed >= leaseNs
	before := s
	s.holder, s.renewed = o.client, o.invoked
	if before.holder == o.client {
		if !o.known || (o.answer == before.value && !before.unsure) {
			return s, true
		}
		s.value, s.unsure = o.answer, false
		return s, o.answer > before.value && (before.unsure || over)
	}
	if before.holder != "" && !over {
		return before, false
	}
	if !o.known {
		s.unsure = true
		return s, true
	}
	s.value, s.unsure = o.answer, false
	return s, o.answer > before.value
}

func model(initial state, step func(state, operation) (state, bool)) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{initial} },
		Step: func(s, input, _ interface{}) []interface{} {
			o := input.(operation)
			var next []interface{}
			if after, fits := step(s.(state), o); fits {
				next = append(next, after)
			}
			if !o.known { // or it never took effect
				next = append(next, s)
			}
			return next
		},
		Equal: func(a, b interface{}) bool { return a == b },
	}
	return nondeterministic.ToModel()
}

func kindOf(op string) string {
	switch op {
	case "commit", "fetch":
		return "offset"
	case "lock", "unlock":
		return "lock"
	case "append", "max":
		return "max"
	case "puttopic", "droptopic", "gettopic":
		return "topic"
	}
	return ""
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: main HISTORY.jsonl")
		os.Exit(2)
	}
	file, err := os.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	objects := map[string][]operation{}
	running := map[int64]line{}
	last := int64(0)
	add := func(begin, end line) {
		kind := kindOf(begin.Op)
		if kind == "" || end.Outcome == "fail" {
			return
		}
		o := operation{op: begin.Op, client: begin.Client, known: end.Outcome == "ok",
			invoked: begin.Invoked, ended: end.Ended, argument: offsetOf(begin), answer: offsetOf(end)}
		if begin.Op == "lock" {
			o.answer = end.Token
		}
		name := kind + " " + begin.Key
		if _, there := objects[name]; !there {
			objects[name] = nil
		}
		if o.known || (begin.Op != "fetch" && begin.Op != "max" && begin.Op != "gettopic") {
			objects[name] = append(objects[name], o)
		}
	}
	in := bufio.NewScanner(file)
	in.Buffer(make([]byte, 1<<20), 1<<24)
	for in.Scan() {
		text := in.Bytes()
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		l := line{ID: -1}
		if err := json.Unmarshal(text, &l); err != nil {
			fmt.Fprintln(os.Stderr, err, string(text))
			os.Exit(2)
		}
		if l.Invoked > last {
			last = l.Invoked
		}
		if l.Ended > last {
			last = l.Ended
		}
		switch {
		case l.Op != "" && l.Outcome != "":
			add(l, l)
		case l.Op != "":
			running[l.ID] = l
		default:
			add(running[l.ID], l)
			delete(running, l.ID)
		}
	}
	for _, begin := range running {
		add(begin, line{Outcome: "info", Ended: last})
	}
	models := map[string]porcupine.Model{"offset": model(state{value: -1}, stepRegister),
		"topic": model(state{value: -1}, stepTopic),
		"lock": model(state{}, stepLock), "max": model(state{}, stepMax)}
	var names []string
	for name := range objects {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		clients := map[string]int{}
		var operations []porcupine.Operation
		kind := ""
		for _, o := range objects[name] {
			kind = kindOf(o.op)
			if _, there := clients[o.client]; !there {
				clients[o.client] = len(clients)
			}
			end := o.ended
			if !o.known {
				end = math.MaxInt64
			}
			operations = append(operations, porcupine.Operation{ClientId: clients[o.client], Input: o,
				Call: o.invoked, Return: end})
		}
		word := map[porcupine.CheckResult]string{porcupine.Ok: "ok", porcupine.Illegal: "bad",
			porcupine.Unknown: "unknown"}
		result := porcupine.Ok
		if len(operations) > 0 {
			result = porcupine.CheckOperationsTimeout(models[kind], operations, time.Minute)
		}
		fmt.Printf("object %s %s\n", name, word[result])
	}
}
