package modelserver

import "net/http"

// The words of prompts that some behaviours look for.
const (
	Harmful = "harmful" // filters-prompts
	Endless = "endless" // limits-prompts
)

// refusing is what does not pass.
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
