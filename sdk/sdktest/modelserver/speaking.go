package modelserver

// speaking is how services are asked: in another form of requests, or in files.
var speaking = []Behaviour{
	{
		Name: "speaks-messages", Server: "speaks Anthropic's Messages API beside OpenAI's",
		Racflow: "speaks it with `api = \"anthropic\"`, which has no n", Try: AsMessages, set: func(*Options) {},
	},
	{
		Name: "takes-batches", Server: "answers files of requests some polls later",
		Racflow: "asks by one file with `batch = true`, at half the price", Says: "sample.llm: batch of 12 requests, 0 done, at most 24 h", Try: AsBatch,
		set: func(o *Options) { o.Batches.Polls = 2 },
	},
	{
		Name: "expires-batches", Server: "has no time for the first five requests of its first file",
		Racflow: "asks these again by another file", Says: "sample.llm: batch of 5 requests, 0 done, at most 24 h", Try: AsBatch,
		set: func(o *Options) {
			o.Batches.Expires = func(batch, request int) bool { return batch == 0 && request < 5 }
		},
	},
	{
		Name: "fails-batches", Server: "refuses every file of requests after it took it",
		Racflow: "fails the items that wait for it; a resumed run tries them again", Lost: true, Exit: 3,
		Says: "the service refused the batch batch_0: the organisation has too many tokens in batches", Try: AsBatch,
		set: func(o *Options) { o.Batches.Fails = "the organisation has too many tokens in batches" },
	},
}
