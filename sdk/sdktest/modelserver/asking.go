package modelserver

// asking is what services take and what they do not.
var asking = []Behaviour{
	unsupported("refuses-temperature", "temperature", "takes no temperature"),
	unsupported("refuses-stop", "stop", "takes no stop texts"),
	unsupported("refuses-n", "n", "takes no n above 1"),
	unsupported("refuses-seed", "seed", "takes no seed"),
	unsupported("refuses-max-tokens", "max_tokens", "takes max_completion_tokens in place of max_tokens"),
	unsupported("refuses-max-completion-tokens", "max_completion_tokens", "takes max_tokens, but not max_completion_tokens"),
	unsupported("refuses-logprobs", "logprobs", "gives no logprobs and refuses to be asked for them"),
	unsupported("refuses-schema", "json_schema", "takes no response_format of type json_schema"),
	unsupported("refuses-object", "json_object", "takes no response_format of type json_object"),
	unsupported("refuses-tools", "tools", "takes no tools"),
	{
		Name:   "refuses-namelessly",
		Server: "refuses temperature, and says so in the message of its error alone, without param",
		set:    func(o *Options) { o.Unsupported, o.Nameless = append(o.Unsupported, "temperature"), true },
	},
	unsupported("streams-only", "whole", "answers by streams alone"),
	{
		Name: "reasons-like-openai", Server: "takes neither temperature, top_p, max_tokens, stop, logprobs nor an n above 1, and thinks without showing it",
		set: func(o *Options) {
			o.Unsupported = append(o.Unsupported, "temperature", "top_p", "max_tokens", "stop", "logprobs", "n")
			o.Thinks = Silently
		},
	},
	{Name: "ignores-n", Server: "gives one choice, whatever n says", set: func(o *Options) { o.IgnoreN = true }},
	{Name: "ignores-formats", Server: "answers in plain text where a JSON object is asked for", set: func(o *Options) { o.IgnoreFormat = true }},
	{Name: "thinks-in-tags", Server: "writes what it thinks in <think> tags before its answer", set: func(o *Options) { o.Thinks = InTags }},
	{Name: "thinks-in-other-tags", Server: "writes what it thinks in <thinking> tags before its answer", set: func(o *Options) { o.Thinks = InOtherTags }},
	{Name: "thinks-in-a-field", Server: "gives what it thinks as reasoning_content", set: func(o *Options) { o.Thinks = InAField }},
	{Name: "thinks-silently", Server: "thinks without showing it, and counts the tokens", set: func(o *Options) { o.Thinks = Silently }},
	{Name: "thinks-in-channels", Server: "writes what it thinks into a channel of its own, as gpt-oss does", set: func(o *Options) { o.Thinks = InChannels }},
	{
		Name: "stops-in-thoughts", Server: "thinks in <think> tags, and ends at a stop text there, too",
		set: func(o *Options) { o.Thinks, o.Stops = InTags, true },
	},
}

// embedding is what services for embeddings do.
var embedding = []Behaviour{
	{Name: "embeds-numbers", Server: "sends embeddings as numbers where base64 is asked for", set: func(o *Options) { o.Base64 = Base64Ignored }},
	{Name: "refuses-base64", Server: "takes no encoding_format base64", set: func(o *Options) { o.Base64 = Base64Refused }},
	{Name: "shuffles-embeddings", Server: "sends embeddings in another order than that of the texts, with their index", set: func(o *Options) { o.Shuffle = true }},
	faulty("loses-embeddings", "sends one embedding less than there are texts, once", Fault{Kind: Fewer, First: 1}),
	faulty("repeats-embeddings", "sends one embedding more than there are texts, once", Fault{Kind: More, First: 1}),
	faulty("embeds-null", "sends null in place of an embedding's numbers, once", Fault{Kind: NaN, First: 1}),
}
