package modelserver

import (
	"net/http"
	"sync/atomic"
	"time"
)

// failing is what goes wrong and passes.
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
		Racflow: again, Says: "(5 failed)", set: fault(Fault{Kind: Status, Status: http.StatusServiceUnavailable, Message: "Loading model", First: 5}),
	},
	{
		Name: "resets-at-first", Server: "resets the connections of its first five requests",
		Racflow: again, Says: "(5 failed)", set: fault(Fault{Kind: Reset, First: 5}),
	},
	{
		Name: "hangs", Server: "does not reply to its first request",
		Racflow: "gives the request up after `timeout`, and asks again", Says: failed, set: fault(Fault{Kind: Hang, First: 1}),
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

// busy is a 429 on the first requests.
func busy(name, server, racflow string, form WaitForm, wait time.Duration) Behaviour {
	return Behaviour{
		Name: name, Server: "answers 429 to its first three requests, " + server, Racflow: racflow, Says: "(3 failed)",
		set: fault(Fault{Kind: Status, Status: http.StatusTooManyRequests, Message: "too many requests", First: 3, Form: form, Wait: wait}),
	}
}
