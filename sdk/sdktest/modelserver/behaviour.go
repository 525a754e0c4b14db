package modelserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Behaviour is a named way in which a service of language models behaves.
type Behaviour struct {
	Name    string
	Server  string // what it does
	Racflow string // what racflow does in response
	Exit    int    // exit code of `racflow run`, where another voter answers, too
	Says    string // what the user literally sees in the report or in the results; empty: only the answers
	Lost    bool   // the model's answers do not count
	Try     Try    // what a pipeline has to ask for
	set     func(*Options)
}

// Try is a pipeline's request in which a behaviour shows.
type Try uint8

// The requests.
const (
	AsLabel         Try = iota // a label as plain text
	AsObject                   // a JSON object with a label
	AsEmbedding                // embeddings
	AsMessages                 // a label, with api = "anthropic"
	AsBatch                    // a label, with batch = true
	AsMany                     // a label, five times
	AsSystemOne                // a label, of a decision model
	AsWideSystemOne            // the same, with more labels
	AsDecisions                // a label, of a decision model in OpenAI's form
)

// Behaviours returns all behaviours, as the documents list them.
func Behaviours() []Behaviour {
	return slices.Concat(asking, answering, speaking, embedding, deciding, failing, refusing)
}

// Find returns the behaviour of a name.
func Find(name string) (Behaviour, error) {
	all := Behaviours()
	if i := slices.IndexFunc(all, func(b Behaviour) bool { return b.Name == name }); i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, b := range all {
		names = append(names, b.Name)
	}
	return Behaviour{}, fmt.Errorf("there is no behaviour %q; there are %s", name, strings.Join(names, ", "))
}

// Named returns Options with the behaviours of the given names.
func Named(names ...string) Options { return Options{}.With(names...) }

// With adds the behaviours of the given names; if two of them set the same option, the later one
// wins. It panics if Find does not know a name.
func (o Options) With(names ...string) Options {
	o.Unsupported, o.Forms, o.Faults = slices.Clone(o.Unsupported), slices.Clone(o.Forms), slices.Clone(o.Faults)
	for _, name := range names {
		b, err := Find(name)
		if err != nil {
			panic(err)
		}
		b.set(&o)
	}
	return o
}

// field refuses fields of requests.
func field(names ...string) func(*Options) {
	return func(o *Options) { o.Unsupported = append(o.Unsupported, names...) }
}

// form changes how answers are written.
func form(f Form) func(*Options) {
	return func(o *Options) { o.Forms = append(o.Forms, f) }
}

// plain is form for answers that are no JSON objects.
func plain(f func(string) string) func(*Options) {
	return form(func(answer string, object bool) string {
		if object {
			return answer
		}
		return f(answer)
	})
}

func fault(f Fault) func(*Options) {
	return func(o *Options) { o.Faults = append(o.Faults, f) }
}

// failing holds the failures that pass.
var failing = []Behaviour{
	busy("busy", "without a time to wait", "waits a second, and asks again", Unsaid, 0),
	busy("busy-in-milliseconds", "and says in retry-after-ms how long to wait", obeys, Milliseconds, 10*time.Millisecond),
	busy("busy-in-seconds", "and says in retry-after how long to wait, in seconds", obeys, Seconds, 10*time.Millisecond),
	busy("busy-until", "and says in retry-after until when to wait, as a date", obeys, Date, time.Second),
	{
		Name: "fails-at-first", Server: "answers 500 to its first five requests",
		Racflow: again, Says: "(5 failed)", set: fault(Fault{Kind: Status, Status: http.StatusInternalServerError, First: 5}),
	},
	{
		Name: "loads-at-first", Server: "answers 503 to its first five requests, while it loads the model",
		Racflow: "waits up to 15 seconds for a server that listens and has not answered yet", Says: "(5 failed)",
		set: func(o *Options) {
			o.Probes = true // the server cannot answer probes, either
			fault(Fault{Kind: Status, Status: http.StatusServiceUnavailable, Message: "Loading model", First: 5})(o)
		},
	},
	{
		Name: "resets-at-first", Server: "resets the connections of its first five requests",
		Racflow: again, Says: "(5 failed)", set: fault(Fault{Kind: Reset, First: 5}),
	},
	{
		Name: "hangs", Server: "does not reply to its first request",
		Racflow: "gives the request up after `timeout`; the item fails, since the service may still be at work on it, and a resumed run asks again", Exit: 3, Lost: true,
		Says: "no reply within 2s", set: fault(Fault{Kind: Hang, First: 1}),
	},
	{
		Name: "drops", Server: "closes the connection of its first request without a reply",
		Racflow: again, Says: failed, set: fault(Fault{Kind: Drop, First: 1}),
	},
	{
		Name: "sends-half", Server: "closes the connection in the middle of its first reply",
		Racflow: again, Says: failed, set: fault(Fault{Kind: HalfBody, First: 1}),
	},
	{
		Name: "sends-broken-json", Server: "sends JSON that is cut in its first reply",
		Racflow: again, Says: failed, set: fault(Fault{Kind: Broken, First: 1}),
	},
	{
		Name: "breaks-off", Server: "ends its first answer in the middle, with the finish_reason error",
		Racflow: again, set: fault(Fault{Kind: BrokeOff, First: 1}),
	},
	{
		Name: "breaks-streams", Server: "answers by streams alone, and closes the connection in the middle of the first one",
		Racflow: again, Says: "failed)",
		set: func(o *Options) {
			broken := new(atomic.Bool)
			field("whole")(o)
			fault(Fault{Kind: HalfBody, If: func(a Ask) bool { return a.stream && broken.CompareAndSwap(false, true) }})(o)
		},
	},
	{
		Name: "fails-with-200", Server: "sends an error with status 200 as its first reply, as gateways do",
		Racflow: again, Says: failed, set: fault(Fault{Kind: Error200, First: 1}),
	},
}

const (
	obeys  = "waits as long, and asks again"
	again  = "waits, and asks again as often as `retries` says"
	failed = "(1 failed)"
)

// busy answers 429 to the first requests.
func busy(name, server, racflow string, form WaitForm, wait time.Duration) Behaviour {
	return Behaviour{
		Name: name, Server: "answers 429 to its first three requests, " + server, Racflow: racflow, Says: "(3 failed)",
		set: fault(Fault{Kind: Status, Status: http.StatusTooManyRequests, Message: "too many requests", First: 3, Form: form, Wait: wait}),
	}
}

// Kind is a kind of fault.
type Kind uint8

// The kinds of faults.
const (
	Status   Kind = iota + 1 // the status Fault.Status, with Fault.Wait
	HalfBody                 // the connection ends in the middle of the reply
	Broken                   // the reply is complete for HTTP, but cut: invalid JSON
	Page                     // a web page with status 200
	Drop                     // the connection ends without a reply
	Reset                    // the connection is reset, as by a host on which nobody listens
	Hang                     // nothing until the client leaves
	Fewer                    // one choice or embedding fewer than requested
	More                     // one choice or embedding more than requested
	Refusal                  // the model refuses
	Length                   // every text is cut in the middle
	Filter                   // a content filter removes every text
	BrokeOff                 // every text is cut in the middle, and finish_reason is error
	NaN                      // an embedding holds a null
	Error200                 // an error with status 200, as gateways send it
	Redirect                 // a redirect to another host
)

// WaitForm is the form in which a server says how long to wait.
type WaitForm uint8

// The forms.
const (
	Unsaid       WaitForm = iota
	Milliseconds          // retry-after-ms
	Seconds               // retry-after: 2
	Date                  // retry-after: Wed, 01 May 2024 12:00:30 GMT
)

// Fault is injected into some requests; one of Share, Calls, First and If selects them.
type Fault struct {
	Kind  Kind
	Share float64        // share of all requests; drawn by Options.Seed and the request's number
	Calls []int          // numbers of requests, from 0
	First int            // the first requests, by their number
	If    func(Ask) bool // every request for which If returns true

	Status  int           // if Kind is Status
	Message string        // of the error; empty: a message that names the status
	Code    string        // of the error
	Wait    time.Duration // the time that the error asks to wait
	Form    WaitForm      // of Wait
}

// fault returns the fault of a request; the zero Fault: none.
func (s *Server) fault(a Ask) Fault {
	for i, f := range s.options.Faults {
		draw := rand.New(rand.NewPCG(s.options.Seed+uint64(i), uint64(a.Number))).Float64()
		if slices.Contains(f.Calls, a.Number) || a.Number < f.First || draw < f.Share || f.If != nil && f.If(a) {
			return f
		}
	}
	return Fault{}
}

// ends reports whether the fault replaces the reply. If so, ends sends it.
func (f Fault) ends(w http.ResponseWriter, r *http.Request) bool {
	switch f.Kind {
	case Drop:
		panic(http.ErrAbortHandler)
	case Reset:
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // closing resets the connection
			}
			_ = c.Close()
		}
	case Status:
		f.refuse(w, r)
	case Page:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><body>Sign in to the network</body></html>")
	case Error200:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"error": {"message": "the provider behind this gateway failed", "code": 502}}`)
	case Redirect:
		w.Header().Set("Location", "https://elsewhere.example/v1")
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		return false
	}
	return true
}

// refuse answers with the fault's status.
func (f Fault) refuse(w http.ResponseWriter, r *http.Request) {
	switch f.Form {
	case Milliseconds:
		w.Header().Set("retry-after-ms", strconv.FormatInt(f.Wait.Milliseconds(), 10))
	case Seconds:
		w.Header().Set("retry-after", strconv.FormatFloat(f.Wait.Seconds(), 'f', -1, 64))
	case Date:
		w.Header().Set("retry-after", time.Now().Add(f.Wait).UTC().Format(http.TimeFormat))
	}
	message := cmp.Or(f.Message, fmt.Sprintf("status %d, as the test says", f.Status))
	refuse(w, r, f.Status, &refusal{message: message, code: f.Code})
}

// send writes a reply, or the part that the fault leaves.
func (f Fault) send(w http.ResponseWriter, reply []byte) {
	switch f.Kind {
	case HalfBody:
		w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
		_, _ = w.Write(reply[:len(reply)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Broken:
		reply = reply[:len(reply)/2]
	}
	_, _ = w.Write(reply)
}

// refuse answers with an error, in the form of the address that was asked.
func refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	made := object{"message": err.Error(), "type": "invalid_request_error"}
	if named := new(refusal); errors.As(err, &named) {
		status = cmp.Or(named.status, status)
		if named.param != "" {
			made["param"] = named.param
		}
		if named.code != "" {
			made["code"] = named.code
		}
	}
	reply := object{"error": made}
	if systemOne(r.URL.Path) {
		reply = object{"detail": object{"error_type": "invalid_request", "message": err.Error()}}
	}
	if messages(r.URL.Path) {
		reply = object{"type": "error", "error": object{"type": cmp.Or(errorKinds[status], "invalid_request_error"), "message": err.Error()}}
	}
	text, _ := json.Marshal(reply) // made here
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// Words in prompts that trigger behaviours.
const (
	Harmful = "harmful" // filters-prompts
	Endless = "endless" // limits-prompts
)

// refusing holds the failures that do not pass.
var refusing = []Behaviour{
	{
		Name: "filters-prompts", Server: `answers 400 of its content filter to a prompt with the word "` + Harmful + `"`,
		Racflow: abstains, Lost: true, Says: "content management policy",
		set: fault(Fault{
			Kind: Status, Status: http.StatusBadRequest, If: holds(Harmful),
			Code: "content_filter", Message: "The prompt was filtered: it triggers the content management policy.",
		}),
	},
	{
		Name: "limits-prompts", Server: `answers 400 to a prompt with the word "` + Endless + `", as to one that is too long for the model`,
		Racflow: abstains, Lost: true, Says: "max_tokens in the config of the prompt makes it shorter",
		set: fault(Fault{
			Kind: Status, Status: http.StatusBadRequest, If: holds(Endless),
			Code: "context_length_exceeded", Message: "This model's maximum context length is 4096 tokens, but the messages are 5000 long.",
		}),
	},
	{
		Name: "sends-a-page", Server: "sends a web page with status 200, as a network does that wants a sign-in",
		Racflow: stops, Lost: true, Exit: 3, Says: "the server's reply is not JSON (<html><body>Sign in", set: fault(Fault{Kind: Page, Share: 1}),
	},
	{
		Name: "redirects", Server: "redirects to another host",
		Racflow: stops + ": the key goes nowhere else", Lost: true, Exit: 3, Says: `the server redirects (307) to "https://elsewhere.example/v1"; write that as base_url if you trust it`,
		set: fault(Fault{Kind: Redirect, Share: 1}),
	},
	{
		Name: "wants-another-key", Server: "answers 401 to any key",
		Racflow: stops, Lost: true, Exit: 3, Says: "check api_key", set: func(o *Options) { o.Key = "a key that nobody has" },
	},
	{
		Name: "has-no-quota", Server: "answers 429 with the code insufficient_quota",
		Racflow: stops + ": it is not waited for", Lost: true, Exit: 3, Says: "the account has insufficient quota",
		set: fault(Fault{
			Kind: Status, Status: http.StatusTooManyRequests, Code: "insufficient_quota", Message: "You exceeded your current quota.", Share: 1,
		}),
	},
	{
		Name: "wants-money", Server: "answers 402",
		Racflow: stops, Lost: true, Exit: 3, Says: "the account has insufficient quota", set: fault(Fault{Kind: Status, Status: http.StatusPaymentRequired, Message: "Insufficient balance.", Share: 1}),
	},
	{
		Name: "knows-no-model", Server: "answers 404, as for a model that it does not have",
		Racflow: stops, Lost: true, Exit: 3, Says: "check base_url, endpoint and model", set: fault(Fault{Kind: Status, Status: http.StatusNotFound, Message: "The model does not exist.", Share: 1}),
	},
}

const (
	abstains = "abstains for this item, for which the other voters decide"
	stops    = "asks no more after some items; the other voters answer, and a resumed run asks again"
)
