package modelserver

import (
	"strings"
	"unicode"
)

// plain makes a form of plain answers: JSON objects stay as they are.
func plain(form func(string) string) Form {
	return func(answer string, object bool) string {
		if object {
			return answer
		}
		return form(answer)
	}
}

// answering is how models write their answers.
var answering = []Behaviour{
	written("answers-in-bold", "writes **label**", plain(func(a string) string { return "**" + a + "**" })),
	written("answers-in-quotes", `writes "label".`, plain(func(a string) string { return `"` + a + `".` })),
	written("answers-with-a-prefix", "writes Label: label", plain(func(a string) string { return "Label: " + a })),
	written("answers-in-a-fence", "writes its answer between lines of three backticks, JSON too", func(a string, object bool) string {
		language := ""
		if object {
			language = "json"
		}
		return "```" + language + "\n" + a + "\n```"
	}),
	written("answers-in-other-case", "writes Invoice Request for invoice_request", plain(func(a string) string {
		words := strings.FieldsFunc(a, func(r rune) bool { return r == '_' || r == '-' || unicode.IsSpace(r) })
		for i, word := range words {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
		return strings.Join(words, " ")
	})),
	written("answers-at-length", "writes the label, and then a sentence about it", plain(func(a string) string { return a + "\n\nThis is what the text is about." })),
	written("answers-with-another", "writes a label that is not in the list", plain(func(string) string { return "something else" })),
	{Name: "answers-by-tool-call", Server: "calls a tool with its answer, also where none is offered", set: func(o *Options) { o.Shape = AsToolCall }},
	{Name: "answers-in-parts", Server: "sends the content of a message as a list of parts", set: func(o *Options) { o.Shape = AsParts }},
	faulty("refuses-to-answer", "gives a refusal in place of an answer, once", Fault{Kind: Refusal, First: 1}),
	faulty("filters-answers", "takes the answer away by its content filter, once", Fault{Kind: Filter, First: 1}),
	faulty("cuts-answers", "cuts an answer in the middle, as a limit of tokens does, once", Fault{Kind: Length, First: 1}),
	faulty("gives-fewer", "gives one choice less than it is asked for, once", Fault{Kind: Fewer, First: 1}),
	faulty("gives-more", "gives one choice more than it is asked for", Fault{Kind: More, Share: 1}),
	{Name: "counts-nothing", Server: "says nothing of the tokens that it used", set: func(o *Options) { o.Usage = UsageMissing }},
	{Name: "counts-nonsense", Server: "says that an answer took 9223372036854775807 tokens", set: func(o *Options) { o.Usage = UsageAbsurd }},
}
