package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// stream is a stream of the servers.
type stream struct {
	config    jetstream.StreamConfig
	all       []*stored // in their order
	last      uint64
	ids       map[string]uint64 // sequences by Nats-Msg-Id
	consumers map[string]*consumer
}

type stored struct {
	mail
	sequence uint64
	time     time.Time
}

// consumer reads a stream for somebody, or for a queue of workers.
type consumer struct {
	s      *servers
	of     *stream
	config jetstream.ConsumerConfig
	last   uint64               // sequence in the stream of the newest message that was handed out
	sent   uint64               // messages that were handed out, each time counted
	claims map[uint64]time.Time // ends of claims by sequence
	again  []uint64             // messages to hand out again
	handed map[uint64]int       // how often each was
	pulls  []*pull
}

// pull asks for messages.
type pull struct {
	reply     string
	Batch     int
	Expires   time.Duration
	Heartbeat time.Duration `json:"idle_heartbeat"`
}

func failure(code int, number jetstream.ErrorCode, text string) map[string]any {
	return map[string]any{"error": jetstream.APIError{Code: code, ErrorCode: number, Description: text}}
}

var (
	noStream   = failure(404, jetstream.JSErrCodeStreamNotFound, "stream not found")
	noConsumer = failure(404, jetstream.JSErrCodeConsumerNotFound, "consumer not found")
	noMessage  = failure(404, jetstream.JSErrCodeMessageNotFound, "no message found")
)

// handle does what a message asks for. The caller holds mail.
func (s *servers) handle(p *peer, m *mail) {
	if ask, ok := strings.CutPrefix(m.subject, "$JS.API."); ok {
		if reply := s.api(p, m, strings.Split(ask, ".")); reply != nil {
			s.answer(m, reply)
		}
		return
	}
	if ack, ok := strings.CutPrefix(m.subject, "$JS.ACK."); ok {
		of := strings.Split(ack, ".")
		if one := s.streams[of[0]]; one != nil && one.consumers[of[1]] != nil {
			one.consumers[of[1]].acknowledge(uint64(number(of[3])), string(m.data))
			if m.reply != "" {
				s.control(m.reply, "")
			}
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.streams)) {
		if one := s.streams[name]; slices.ContainsFunc(one.config.Subjects, func(of string) bool { return matches(of, m.subject) }) {
			s.answer(m, s.store(one, m))
			return
		}
	}
	if !s.publish(m.subject, m) && m.reply != "" {
		s.control(m.reply, "503")
	}
}

func (one *stream) find(subject string) *stored {
	for _, m := range slices.Backward(one.all) {
		if matches(subject, m.subject) {
			return m
		}
	}
	return nil
}

func (one *stream) remove(is func(*stored) bool) { one.all = slices.DeleteFunc(one.all, is) }

// store stores a message, if the stream takes it.
func (s *servers) store(one *stream, m *mail) any {
	id, before := m.header("Nats-Msg-Id"), one.find(m.subject)
	if at, twice := one.ids[id]; twice {
		return jetstream.PubAck{Stream: one.config.Name, Sequence: at, Duplicate: true}
	}
	if want := m.header("Nats-Expected-Last-Subject-Sequence"); want != "" {
		last := uint64(0)
		if before != nil {
			last = before.sequence
		}
		if want != fmt.Sprint(last) {
			return failure(400, jetstream.JSErrCodeStreamWrongLastSequence, fmt.Sprintf("wrong last sequence: %d", last))
		}
	}
	if before != nil && one.config.MaxMsgsPerSubject == 1 {
		if one.config.DiscardNewPerSubject {
			return failure(503, 10077, "maximum messages per subject exceeded")
		}
		one.remove(func(m *stored) bool { return m == before })
	}
	one.last++
	if id != "" {
		one.ids[id] = one.last
	}
	one.all = append(one.all, &stored{*m, one.last, time.Now()})
	if s.watch != nil {
		s.watch(m.subject, m.data)
	}
	for _, name := range slices.Sorted(maps.Keys(one.consumers)) {
		one.consumers[name].serve()
	}
	return jetstream.PubAck{Stream: one.config.Name, Sequence: one.last}
}

// api carries out a request about streams and consumers.
func (s *servers) api(p *peer, m *mail, ask []string) any {
	if ask[0] == "INFO" {
		return jetstream.AccountInfo{}
	}
	what := ask[0] + " " + ask[1]
	name, rest := ask[2], ask[3:]
	if what == "STREAM MSG" || what == "CONSUMER MSG" {
		name, rest = ask[3], ask[4:]
	}
	one := s.streams[name]
	if one == nil && what != "STREAM CREATE" {
		return noStream
	}
	var body struct {
		Filter  string
		Subject string                   `json:"subjects_filter"`
		Last    string                   `json:"last_by_subj"`
		Config  jetstream.ConsumerConfig `json:"config"`
	}
	if len(m.data) > 0 && what != "STREAM CREATE" {
		if err := json.Unmarshal(m.data, &body); err != nil {
			panic(err)
		}
	}
	switch what {
	case "STREAM CREATE":
		if one == nil {
			one = &stream{ids: map[string]uint64{}, consumers: map[string]*consumer{}}
			if err := json.Unmarshal(m.data, &one.config); err != nil {
				panic(err)
			}
			s.streams[name] = one
		}
		return one.info("")
	case "STREAM INFO":
		return one.info(body.Subject)
	case "STREAM DELETE":
		delete(s.streams, name)
		for _, c := range one.consumers {
			for _, pull := range c.pulls {
				s.control(pull.reply, "409 Consumer Deleted")
			}
		}
		return map[string]any{"success": true}
	case "STREAM PURGE":
		one.remove(func(m *stored) bool { return matches(body.Filter, m.subject) })
		return map[string]any{"success": true}
	case "STREAM MSG":
		found := one.find(body.Last)
		if found == nil {
			return noMessage
		}
		return map[string]any{"message": map[string]any{"subject": found.subject, "seq": found.sequence, "hdrs": found.head, "data": found.data, "time": found.time}}
	case "CONSUMER CREATE":
		c := one.consumers[rest[0]]
		if c == nil {
			body.Config.Name = rest[0]
			c = &consumer{s: s, of: one, config: body.Config, claims: map[uint64]time.Time{}, handed: map[uint64]int{}, last: max(body.Config.OptStartSeq, 1) - 1}
			one.consumers[rest[0]] = c
		}
		return c.info()
	}
	c := one.consumers[rest[0]]
	switch {
	case c == nil && what == "CONSUMER MSG":
		s.control(m.reply, "503")
		return nil
	case c == nil:
		return noConsumer
	case what == "CONSUMER INFO":
		return c.info()
	}
	c.pull(m)
	return nil
}

func (one *stream) info(filter string) jetstream.StreamInfo {
	info := jetstream.StreamInfo{Config: one.config, TimeStamp: time.Now(), State: jetstream.StreamState{Msgs: uint64(len(one.all)), LastSeq: one.last, Subjects: map[string]uint64{}}}
	for i, m := range one.all {
		if i == 0 {
			info.State.FirstTime = m.time
		}
		if filter != "" && matches(filter, m.subject) {
			info.State.Subjects[m.subject]++
		}
	}
	return info
}

func (c *consumer) info() jetstream.ConsumerInfo {
	info := jetstream.ConsumerInfo{Stream: c.of.config.Name, Name: c.config.Name, Config: c.config, NumAckPending: len(c.claims), Delivered: jetstream.SequenceInfo{Consumer: c.sent, Stream: c.last}}
	for _, m := range c.of.all {
		if m.sequence > c.last && matches(c.config.FilterSubject, m.subject) {
			info.NumPending++
		}
	}
	return info
}

// acknowledge takes what somebody says of a message that was handed to him.
func (c *consumer) acknowledge(at uint64, said string) {
	if _, claimed := c.claims[at]; !claimed {
		return
	}
	switch said {
	case "+WPI":
		c.claim(at)
		return
	case "-NAK":
		c.again = append(c.again, at)
	default:
		c.of.remove(func(m *stored) bool { return m.sequence == at })
	}
	delete(c.claims, at)
	c.serve()
}

// claim gives a message to somebody for a time.
func (c *consumer) claim(at uint64) {
	c.claims[at] = time.Now().Add(c.config.AckWait)
	time.AfterFunc(c.config.AckWait, func() {
		c.s.mail.Lock()
		defer c.s.mail.Unlock()
		for _, at := range slices.Sorted(maps.Keys(c.claims)) {
			if !time.Now().Before(c.claims[at]) {
				c.s.fault("claim over", "of %s %d", c.of.config.Name, at)
				delete(c.claims, at)
				c.again = append(c.again, at)
			}
		}
		c.serve()
	})
}

// pull remembers a request for messages until it is over.
func (c *consumer) pull(m *mail) {
	p := &pull{reply: m.reply}
	if err := json.Unmarshal(m.data, p); err != nil {
		panic(err)
	}
	c.pulls = append(c.pulls, p)
	c.serve()
	if slices.Contains(c.pulls, p) {
		c.lasts(p, time.Now().Add(p.Expires))
	}
}

// lasts shows from time to time that the servers have not forgotten a request.
func (c *consumer) lasts(p *pull, end time.Time) {
	time.AfterFunc(min(p.Heartbeat, time.Until(end)), func() {
		c.s.mail.Lock()
		defer c.s.mail.Unlock()
		at := slices.Index(c.pulls, p)
		switch {
		case at < 0:
		case time.Now().Before(end):
			if c.s.control(p.reply, "100 Idle Heartbeat") {
				c.lasts(p, end)
			} else {
				c.pulls = slices.Delete(c.pulls, at, at+1)
			}
		default:
			c.pulls = slices.Delete(c.pulls, at, at+1)
			c.s.control(p.reply, "408 Request Timeout")
		}
	})
}

// next is the message to hand out next; nil: there is none.
func (c *consumer) next() *stored {
	for len(c.again) > 0 {
		at := c.again[0]
		c.again = c.again[1:]
		if i := slices.IndexFunc(c.of.all, func(m *stored) bool { return m.sequence == at }); i >= 0 {
			return c.of.all[i]
		}
	}
	for _, m := range c.of.all {
		if m.sequence > c.last && matches(c.config.FilterSubject, m.subject) {
			c.last = m.sequence
			return m
		}
	}
	return nil
}

// serve hands out messages to those who ask for them.
func (c *consumer) serve() {
	for len(c.pulls) > 0 {
		p := c.pulls[0]
		if len(c.s.listening(p.reply)) == 0 {
			c.pulls = c.pulls[1:]
			continue
		}
		m := c.next()
		if m == nil {
			return
		}
		c.sent++
		c.handed[m.sequence]++
		if c.config.AckPolicy == jetstream.AckExplicitPolicy {
			c.claim(m.sequence)
		}
		if p.Batch--; p.Batch <= 0 {
			c.pulls = c.pulls[1:]
		}
		to := *m
		to.reply = fmt.Sprintf("$JS.ACK.%s.%s.%d.%d.%d.%d.0", c.of.config.Name, c.config.Name, c.handed[m.sequence], m.sequence, c.sent, m.time.UnixNano())
		c.s.publish(p.reply, &to.mail)
	}
}
