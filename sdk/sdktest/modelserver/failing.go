package modelserver

import (
	"net/http"
	"time"
)

// busy is a 429 on the first requests.
func busy(name, server string, form WaitForm, wait time.Duration) Behaviour {
	return faulty(name, "answers 429 to its first three requests, "+server, Fault{
		Kind: Status, Status: http.StatusTooManyRequests, Message: "too many requests", First: 3, Form: form, Wait: wait,
	})
}

// failing is what goes wrong and passes.
var failing = []Behaviour{
	busy("busy", "without a time to wait", Unsaid, 0),
	busy("busy-in-milliseconds", "and says in retry-after-ms how long to wait", Milliseconds, 10*time.Millisecond),
	busy("busy-in-seconds", "and says in retry-after how long to wait, in seconds", Seconds, 10*time.Millisecond),
	busy("busy-until", "and says in retry-after until when to wait, as a date", Date, time.Second),
	faulty("fails-at-first", "answers 500 to its first five requests", Fault{Kind: Status, Status: http.StatusInternalServerError, First: 5}),
	faulty("loads-at-first", "answers 503 to its first five requests, while it loads the model", Fault{
		Kind: Status, Status: http.StatusServiceUnavailable, Message: "Loading model", First: 5,
	}),
	faulty("resets-at-first", "resets the connections of its first five requests", Fault{Kind: Reset, First: 5}),
	faulty("hangs", "does not reply to its first request", Fault{Kind: Hang, First: 1}),
	faulty("drops", "closes the connection of its first request without a reply", Fault{Kind: Drop, First: 1}),
	faulty("sends-half", "closes the connection in the middle of its first reply", Fault{Kind: HalfBody, First: 1}),
	faulty("sends-broken-json", "sends JSON that is cut in its first reply", Fault{Kind: Broken, First: 1}),
	faulty("breaks-off", "ends its first answer in the middle, with the finish_reason error", Fault{Kind: BrokeOff, First: 1}),
	faulty("fails-with-200", "sends an error with status 200 as its first reply, as gateways do", Fault{Kind: Error200, First: 1}),
}

// The words of prompts that some behaviours look for.
const (
	Harmful = "harmful" // refused by refuses-harmful
	Endless = "endless" // too long for too-long
)

// refusing is what does not pass.
var refusing = []Behaviour{
	faulty("filters-prompts", `answers 400 of its content filter to a prompt with the word "`+Harmful+`"`, Fault{
		Kind: Status, Status: http.StatusBadRequest, If: forbidden(Harmful),
		Code: "content_filter", Message: "The prompt was filtered: it triggers the content management policy.",
	}),
	faulty("limits-prompts", `answers 400 to a prompt with the word "`+Endless+`", as to one that is too long for the model`, Fault{
		Kind: Status, Status: http.StatusBadRequest, If: forbidden(Endless),
		Code: "context_length_exceeded", Message: "This model's maximum context length is 4096 tokens, but the messages are 5000 long.",
	}),
	faulty("sends-a-page", "sends a web page with status 200, as a network does that wants a sign-in", Fault{Kind: Page, Share: 1}),
	faulty("redirects", "redirects to another host", Fault{Kind: Redirect, Share: 1}),
	{Name: "wants-another-key", Server: "answers 401 to any key", set: func(o *Options) { o.Key = "a key that nobody has" }},
	faulty("has-no-quota", "answers 429 with the code insufficient_quota", Fault{
		Kind: Status, Status: http.StatusTooManyRequests, Code: "insufficient_quota", Message: "You exceeded your current quota.", Share: 1,
	}),
	faulty("wants-money", "answers 402", Fault{Kind: Status, Status: http.StatusPaymentRequired, Message: "insufficient balance", Share: 1}),
	faulty("knows-no-model", "answers 404, as for a model that it does not have", Fault{Kind: Status, Status: http.StatusNotFound, Message: "the model does not exist", Share: 1}),
}
