package modelserver

import (
	"strings"
	"unicode"
)

// answering is how models write their answers.
var answering = []Behaviour{
	{
		Name: "answers-in-bold", Server: "writes `**label**`",
		Racflow: reads, Says: `"reading":"without markup"`, set: plain(func(a string) string { return "**" + a + "**" }),
	},
	{
		Name: "answers-in-quotes", Server: "writes `\"label\".`",
		Racflow: reads, Says: `"reading":`, set: plain(func(a string) string { return `"` + a + `".` }),
	},
	{
		Name: "answers-with-a-prefix", Server: "writes `Label: label`",
		Racflow: reads, Says: `"reading":`, set: plain(func(a string) string { return "Label: " + a }),
	},
	{
		Name: "answers-in-a-fence", Server: "writes its answer between lines of three backticks",
		Racflow: reads, Says: `"reading":`, set: form(inFence),
	},
	{
		Name: "answers-with-fenced-json", Server: "writes a JSON object between lines of three backticks",
		Racflow: "reads the object", Try: AsObject, set: form(inFence),
	},
	{
		Name: "answers-in-other-case", Server: "writes `Invoice Request` for `invoice_request`",
		Racflow: reads, Says: `"reading":"case and separators"`, set: plain(titled),
	},
	{
		Name: "answers-at-length", Server: "writes the label, and then a sentence about it",
		Racflow: "reads the first line", set: plain(func(a string) string { return a + "\n\nThis is what the text is about." }),
	},
	{
		Name: "answers-with-another", Server: "writes a label that is not in the list",
		Racflow: "does not guess: the answer is no vote, and the other voters decide", Lost: true, Says: `24 of 24 answers do not count (100 %), such as "something else" (24)`,
		set: plain(func(string) string { return "something else" }),
	},
	{
		Name: "answers-with-two", Server: "writes a label of the list, or another one of it",
		Racflow: "does not choose: the answer is no vote, and the other voters decide", Lost: true, Says: "24 of 24 answers do not count (100 %)",
		set: plain(func(a string) string { return a + " or invoice_request or card_lost" }),
	},
	{
		Name: "answers-with-a-look-alike", Server: "writes a label with a Cyrillic letter in place of a Latin one",
		Racflow: "does not read it: the answer is no vote, and the other voters decide", Lost: true, Says: "24 of 24 answers do not count (100 %)",
		set: plain(func(a string) string { return strings.Replace(a, "c", "\u0441", 1) }),
	},
	{
		Name: "answers-by-tool-call", Server: "calls a tool with its answer, also where none is offered",
		Racflow: "reads the arguments of the call", Try: AsObject, set: func(o *Options) { o.Shape = AsToolCall },
	},
	{
		Name: "answers-in-parts", Server: "sends the content of a message as a list of parts",
		Racflow: "joins the parts", set: func(o *Options) { o.Shape = AsParts },
	},
	{
		Name: "refuses-to-answer", Server: "gives a refusal in place of an answer, once",
		Racflow: lost, Lost: true, Says: "the model refused: I can't help with that.", set: fault(Fault{Kind: Refusal, First: 1}),
	},
	{
		Name: "filters-answers", Server: "takes the answer away by its content filter, once",
		Racflow: lost, Lost: true, Says: "the server's filter took the answer", set: fault(Fault{Kind: Filter, First: 1}),
	},
	{
		Name: "cuts-answers", Server: "cuts an answer in the middle, as a limit of tokens does, once",
		Racflow: lost, Lost: true, Says: "the answer was cut off; raise max_tokens", set: fault(Fault{Kind: Length, First: 1}),
	},
	{
		Name: "gives-fewer", Server: "gives one choice less than it is asked for, once",
		Racflow: "asks for the one that lacks", Says: "it is asked again", set: fault(Fault{Kind: Fewer, First: 1}),
	},
	{
		Name: "gives-more", Server: "gives one choice more than it is asked for",
		Racflow: "takes as many as it asked for", set: fault(Fault{Kind: More, Share: 1}),
	},
	{
		Name: "counts-nothing", Server: "says nothing of the tokens that it used",
		Racflow: "estimates them for limits and the budget", set: func(o *Options) { o.Usage = UsageMissing },
	},
	{
		Name: "counts-nonsense", Server: "says that an answer took 9223372036854775807 tokens",
		Racflow: "does not believe it: the call counts as estimated", Says: "a service reports a usage that cannot be",
		set: func(o *Options) { o.Usage = UsageAbsurd },
	},
}

const (
	reads = "reads the label, and says in the vote how"
	lost  = "keeps the reason in the vote, which does not count; the other voters decide"
)

// inFence writes an answer between lines of three backticks.
func inFence(answer string, object bool) string {
	language := ""
	if object {
		language = "json"
	}
	return "```" + language + "\n" + answer + "\n```"
}

// titled writes a label as words that begin with capitals.
func titled(answer string) string {
	words := strings.FieldsFunc(answer, func(r rune) bool { return r == '_' || r == '-' || unicode.IsSpace(r) })
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, " ")
}
