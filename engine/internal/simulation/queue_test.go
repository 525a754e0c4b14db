package simulation

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// servers are NATS servers in memory, as far as package bus uses them: connections of machines are pipes, and what comes
// through them waits for its turn. jetstream_test.go has the streams.
type servers struct {
	*world
	jobs sync.WaitGroup

	loss    int // one message in so many never arrives; 0: none is lost
	streams map[string]*stream
	links   []*peer   // open connections, oldest first
	until   time.Time // no server runs before
	apart   map[*machine]time.Time
	watch   func(subject string, data []byte) // hears of what is stored; may be nil
	mail    sync.Mutex                        // of all above
}

func (w *world) servers() *servers {
	return &servers{world: w, streams: map[string]*stream{}, apart: map[*machine]time.Time{}}
}

// at is the way of a machine to the servers. It is a nats.CustomDialer.
type at struct {
	s *servers
	m *machine
}

func (a at) Dial(string, string) (net.Conn, error) {
	a.s.mail.Lock()
	defer a.s.mail.Unlock()
	if now := time.Now(); a.m.died() || now.Before(a.s.until) || now.Before(a.s.apart[a.m]) {
		return nil, &net.OpError{Op: "dial", Err: errAway}
	}
	here, there := net.Pipe()
	p := &peer{s: a.s, m: a.m, conn: there, subs: map[string]sub{}, lanes: map[string][]*mail{}, send: make(chan struct{}, 1)}
	a.s.links = append(a.s.links, p)
	a.s.jobs.Go(p.read)
	a.s.jobs.Go(p.write)
	p.put(`INFO {"server_id":"s","server_name":"s","version":"2.12.0","max_payload":1048576,"headers":true,"jetstream":true,"proto":1}` + "\r\n")
	return here, nil
}

// peer is a connection at the servers.
type peer struct {
	s    *servers
	m    *machine
	conn net.Conn
	send chan struct{} // has an element when there is something in out

	subs  map[string]sub
	lanes map[string][]*mail // what has come and was not handled yet
	out   []byte
	gone  bool
}

type sub struct{ subject, queue string }

// mail is a message.
type mail struct {
	subject, reply string
	head, data     []byte
}

// read takes in what comes. What is said on one subject keeps its order; other things may overtake it.
func (p *peer) read() {
	defer p.close()
	in := bufio.NewReader(p.conn)
	for {
		line, err := in.ReadString('\n')
		words := strings.Fields(line)
		if err != nil || len(words) == 0 {
			return
		}
		m := &mail{}
		switch args := words[1:]; words[0] {
		case "PING":
			p.locked(func() { p.put("PONG\r\n") })
			continue
		case "SUB":
			p.locked(func() { p.subs[args[len(args)-1]] = sub{args[0], strings.Join(args[1:len(args)-1], "")} })
			continue
		case "UNSUB":
			p.locked(func() {
				if len(args) == 1 {
					delete(p.subs, args[0])
				}
			})
			continue
		case "PUB", "HPUB":
			sizes := 1 + (len(words[0]) - len("PUB"))
			m.subject, m.reply = args[0], strings.Join(args[1:len(args)-sizes], "")
			head, size := 0, number(args[len(args)-1])
			if sizes == 2 {
				head = number(args[len(args)-2])
			}
			m.data = make([]byte, size+len("\r\n"))
			if _, err := io.ReadFull(in, m.data); err != nil {
				return
			}
			m.head, m.data = m.data[:head:head], m.data[head:size:size]
		default:
			continue
		}
		p.locked(func() {
			lane := laneOf(m.subject)
			if strings.Contains(lane, ".MSG.GET.") {
				lane += " " + string(m.data)
			}
			p.lanes[lane] = append(p.lanes[lane], m)
			if len(p.lanes[lane]) == 1 {
				p.s.jobs.Go(func() { p.lane(lane) })
			}
		})
	}
}

func number(text string) int { n, _ := strconv.Atoi(text); return n }

func (p *peer) locked(f func()) {
	p.s.mail.Lock()
	defer p.s.mail.Unlock()
	f()
}

var unique = regexp.MustCompile(`\b[A-Za-z0-9]{22,26}\b|\.[0-9]{18,}\.[0-9]+$`)

// laneOf is a subject without what is random in it.
func laneOf(subject string) string {
	if strings.HasPrefix(subject, "_INBOX.") {
		return "a reply"
	}
	return unique.ReplaceAllString(subject, "")
}

// lane handles messages on a subject, one after the other.
func (p *peer) lane(name string) {
	for {
		dead := p.m.turn("tells servers "+name) != nil
		p.s.mail.Lock()
		wait := time.Until(p.s.apart[p.m])
		for ; wait > 0; wait = time.Until(p.s.apart[p.m]) { // the network still has it
			p.s.mail.Unlock()
			time.Sleep(wait)
			p.s.mail.Lock()
		}
		m := p.lanes[name][0]
		if !dead && !time.Now().Before(p.s.until) && !p.s.lost(m.subject) {
			p.s.handle(p, m)
		}
		p.lanes[name] = p.lanes[name][1:]
		rest := len(p.lanes[name])
		p.s.mail.Unlock()
		if rest == 0 {
			return
		}
	}
}

// lost reports whether the network between servers loses a message. The caller holds mail, as for all that follows.
func (s *servers) lost(subject string) bool {
	if s.loss == 0 || s.chance(s.loss, laneOf(subject)) > 0 {
		return false
	}
	s.fault("lost message", "%s", laneOf(subject))
	return true
}

// listening returns how a message comes to each who listens to a subject, or to one of a group.
func (s *servers) listening(to string) (ways [][]func(*mail)) {
	groups := map[string]int{}
	for _, p := range s.links {
		for _, sid := range slices.SortedFunc(maps.Keys(p.subs), func(a, b string) int { return cmp.Compare(number(a), number(b)) }) {
			one := p.subs[sid]
			if !matches(one.subject, to) {
				continue
			}
			way := func(m *mail) { p.deliver(sid, m) }
			if at, more := groups[one.queue]; more && one.queue != "" {
				ways[at] = append(ways[at], way)
				continue
			}
			groups[one.queue] = len(ways)
			ways = append(ways, []func(*mail){way})
		}
	}
	return ways
}

// publish brings a message to those who listen to a subject, and reports whether there are any.
func (s *servers) publish(to string, m *mail) (heard bool) {
	ways := s.listening(to)
	for _, group := range ways {
		if !s.lost(to) {
			group[s.chance(len(group), "who")](m)
		}
	}
	return len(ways) > 0
}

// control sends a message without data.
func (s *servers) control(to, text string) bool {
	m := &mail{subject: to}
	if text != "" {
		m.head = []byte("NATS/1.0 " + text + "\r\n\r\n")
	}
	return s.publish(to, m)
}

func (p *peer) deliver(sid string, m *mail) {
	if len(m.head) > 0 {
		p.put(fmt.Sprintf("HMSG %s %s %s %d %d\r\n%s%s\r\n", m.subject, sid, m.reply, len(m.head), len(m.head)+len(m.data), m.head, m.data))
		return
	}
	p.put(fmt.Sprintf("MSG %s %s %s %d\r\n%s\r\n", m.subject, sid, m.reply, len(m.data), m.data))
}

// matches reports whether a subject is one of a pattern's.
func matches(pattern, subject string) bool {
	of, is := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range of {
		if token == ">" {
			return len(is) > i
		}
		if i >= len(is) || token != "*" && token != is[i] {
			return false
		}
	}
	return len(of) == len(is)
}

func (p *peer) put(text string) {
	p.out = append(p.out, text...)
	select {
	case p.send <- struct{}{}:
	default:
	}
}

// write sends what is to be sent.
func (p *peer) write() {
	for range p.send {
		p.s.mail.Lock()
		wait, out := time.Until(p.s.apart[p.m]), p.out
		if wait <= 0 {
			p.out = nil
		}
		gone := p.gone
		p.s.mail.Unlock()
		switch {
		case gone:
			return
		case wait > 0:
			time.Sleep(wait)
			p.locked(func() { p.put("") })
		default:
			_, _ = p.conn.Write(out) // who does not get it, has left
		}
	}
}

func (p *peer) close() {
	p.s.mail.Lock()
	defer p.s.mail.Unlock()
	p.gone, p.subs = true, nil
	p.s.links = slices.DeleteFunc(p.s.links, func(one *peer) bool { return one == p })
	p.put("")
	_ = p.conn.Close()
}

// part separates a machine from the servers for a time.
func (s *servers) part(m *machine, d time.Duration) {
	s.mail.Lock()
	defer s.mail.Unlock()
	s.fault("partition", "%s for %s", m.name, d)
	s.apart[m] = time.Now().Add(d)
}

// stop stops the servers for a time. They keep what is stored.
func (s *servers) stop(d time.Duration) {
	s.mail.Lock()
	defer s.mail.Unlock()
	s.fault("servers stopped", "for %s", d)
	s.until = time.Now().Add(d)
	for _, p := range s.links {
		_ = p.conn.Close()
	}
	for _, one := range s.streams {
		for name, c := range one.consumers {
			if c.pulls = nil; c.config.MemoryStorage {
				delete(one.consumers, name)
			}
		}
	}
}

// close ends all connections, and waits for that.
func (s *servers) close() {
	s.mail.Lock()
	for _, p := range s.links {
		_ = p.conn.Close()
	}
	s.mail.Unlock()
	s.jobs.Wait()
}

// header is the value of a message's header.
func (m *mail) header(name string) string {
	for line := range bytes.SplitSeq(m.head, []byte("\r\n")) {
		if value, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// answer replies to a request.
func (s *servers) answer(m *mail, reply any) {
	data, err := json.Marshal(reply)
	if err != nil {
		panic(err)
	}
	s.publish(m.reply, &mail{subject: m.reply, data: data})
}
