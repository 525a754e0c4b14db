package modelserver

// asking is what services take and what they do not.
var asking = []Behaviour{
	{
		Name: "refuses-temperature", Server: "takes no temperature",
		Racflow: leaves, Says: probed, set: field("temperature"),
	},
	{
		Name: "refuses-stop", Server: "takes no stop texts",
		Racflow: leaves + "; what is behind the first line is not read", Says: probed, set: field("stop"),
	},
	{
		Name: "refuses-n", Server: "takes no n above 1",
		Racflow: "asks for one answer at a time", Says: probed, set: field("n"),
	},
	{
		Name: "refuses-seed", Server: "takes no seed",
		Racflow: leaves, Says: probed, set: field("seed"),
	},
	{
		Name: "refuses-max-tokens", Server: "takes max_completion_tokens in place of max_tokens",
		Racflow: "sends the field that is taken", set: field("max_tokens"),
	},
	{
		Name: "refuses-max-completion-tokens", Server: "takes max_tokens, but not max_completion_tokens",
		Racflow: "sends the field that is taken", set: field("max_completion_tokens"),
	},
	{
		Name: "refuses-logprobs", Server: "gives no logprobs and refuses to be asked for them",
		Racflow: leaves + "; answers weigh 1", Says: probed, set: field("logprobs"),
	},
	{
		Name: "refuses-schema", Server: "takes no response_format of type json_schema",
		Racflow: "asks for a JSON object", Says: probed, Try: AsObject, set: field("json_schema"),
	},
	{
		Name: "refuses-object", Server: "takes neither json_schema nor json_object as response_format",
		Racflow: "asks for the call of a tool", Says: "(2 failed)", Try: AsObject, set: field("json_schema", "json_object"),
	},
	{
		Name: "refuses-tools", Server: "takes neither a response_format nor tools",
		Racflow: "asks for plain text, and reads the object in it", Says: "(3 failed)", Try: AsObject, set: field("json_schema", "json_object", "tools"),
	},
	{
		Name: "refuses-namelessly", Server: "refuses temperature, and says so in the message of its error alone, without param",
		Racflow: "finds the name in the message", Says: probed,
		set: func(o *Options) { o.Unsupported, o.Nameless = append(o.Unsupported, "temperature"), true },
	},
	{
		Name: "streams-only", Server: "answers by streams alone",
		Racflow: "asks for streams, and joins them", set: field("whole"),
	},
	{
		Name: "reasons-like-openai", Server: "takes neither temperature, top_p, max_tokens, stop, logprobs nor an n above 1, and thinks without showing it",
		Racflow: "leaves these fields out, those that four calls of a probe have not found as they are refused, and has room for thoughts",
		Says:    "the model refuses a field of the request: it is asked without",
		set: func(o *Options) {
			field("temperature", "top_p", "max_tokens", "stop", "logprobs", "n")(o)
			o.Thinks = Silently
		},
	},
	{
		Name: "ignores-n", Server: "gives one choice, whatever n says",
		Racflow: "finds that out, and asks for one answer at a time", set: func(o *Options) { o.IgnoreN = true },
	},
	{
		Name: "ignores-formats", Server: "answers in plain text where a JSON object is asked for",
		Racflow: "reads the label all the same; without an object answers weigh 1", Says: "its answers weigh 1", Try: AsObject,
		set: func(o *Options) { o.IgnoreFormat = true },
	},
	{
		Name: "thinks-in-tags", Server: "writes what it thinks in <think> tags before its answer",
		Racflow: thinks, set: func(o *Options) { o.Thinks = InTags },
	},
	{
		Name: "thinks-in-other-tags", Server: "writes what it thinks in <thinking> tags before its answer",
		Racflow: thinks, set: func(o *Options) { o.Thinks = InOtherTags },
	},
	{
		Name: "thinks-in-a-field", Server: "gives what it thinks as reasoning_content",
		Racflow: thinks, set: func(o *Options) { o.Thinks = InAField },
	},
	{
		Name: "thinks-silently", Server: "thinks without showing it, and counts the tokens",
		Racflow: thinks, set: func(o *Options) { o.Thinks = Silently },
	},
	{
		Name: "thinks-in-channels", Server: "writes what it thinks into a channel of its own, as gpt-oss does",
		Racflow: thinks, set: func(o *Options) { o.Thinks = InChannels },
	},
	{
		Name: "stops-in-thoughts", Server: "thinks in <think> tags, and ends at a stop text there, too",
		Racflow: "sends no stop text, and has room for the thoughts", set: func(o *Options) { o.Thinks, o.Stops = InTags, true },
	},
}

const (
	leaves = "leaves the field out"
	probed = "(1 failed)" // the first call of the probe
	thinks = "has room for thoughts beside the answer, and reads the answer alone"
)

// embedding is what services for embeddings do.
var embedding = []Behaviour{
	{
		Name: "embeds-numbers", Server: "sends embeddings as numbers where base64 is asked for",
		Racflow: "reads numbers, too", Try: AsEmbedding, set: func(o *Options) { o.Base64 = Base64Ignored },
	},
	{
		Name: "refuses-base64", Server: "takes no encoding_format base64",
		Racflow: "asks for numbers", Try: AsEmbedding, set: func(o *Options) { o.Base64 = Base64Refused },
	},
	{
		Name: "shuffles-embeddings", Server: "sends embeddings in another order than that of the texts, with their index",
		Racflow: "puts them in order", Try: AsEmbedding, set: func(o *Options) { o.Shuffle = true },
	},
	{
		Name: "loses-embeddings", Server: "sends one embedding less than there are texts, once",
		Racflow: "asks again", Try: AsEmbedding, set: fault(Fault{Kind: Fewer, First: 1}),
	},
	{
		Name: "repeats-embeddings", Server: "sends one embedding more than there are texts, once",
		Racflow: "asks again", Try: AsEmbedding, set: fault(Fault{Kind: More, First: 1}),
	},
	{
		Name: "embeds-null", Server: "sends nulls in place of the numbers of its first reply",
		Racflow: "refuses these rows; where none is left, the run does not start", Exit: 1, Lost: true,
		Says: "the server's vector cannot be used", Try: AsEmbedding, set: fault(Fault{Kind: NaN, First: 1}),
	},
}
