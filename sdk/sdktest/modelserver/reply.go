package modelserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"unicode"
)

// answering holds the ways in which models write their answers.
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

// embed returns the reply of the embeddings endpoint.
func (s *Server) embed(a Ask, fault Fault) (object, error) {
	limit := s.options.MaxInputs
	if limit == 0 {
		limit = 2048
	}
	switch {
	case len(a.Inputs) == 0 || len(a.Inputs) > limit:
		return nil, fmt.Errorf("input: %d texts are not allowed", len(a.Inputs))
	case slices.Contains(a.Inputs, ""):
		return nil, errors.New("input: a text is empty")
	case a.base64 && s.options.Base64 == Base64Refused:
		return nil, errors.New("encoding_format: base64 is unknown")
	}
	data, in := []object{}, 0
	for i, text := range a.Inputs {
		in += s.tokens(text)
		vector := s.vector(text, a.dimensions)
		var value any = vector
		if fault.Kind == NaN {
			value = make([]any, len(vector))
		} else if a.base64 && s.options.Base64 == Base64Given {
			var raw []byte
			for _, v := range vector {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			}
			value = base64.StdEncoding.EncodeToString(raw)
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": value})
	}
	if s.options.Shuffle {
		slices.Reverse(data)
	}
	switch fault.Kind {
	case Fewer:
		data = data[1:]
	case More:
		data = append(data, data[0])
	}
	return object{"object": "list", "model": a.Model, "data": data, "usage": object{"prompt_tokens": in, "total_tokens": in}}, nil
}

func (s *Server) vector(text string, dimensions int) []float32 {
	if s.options.Vector != nil {
		return s.options.Vector(text)
	}
	n := 8
	if s.options.Dimension > 0 {
		n = s.options.Dimension
	}
	if dimensions > 0 {
		n = dimensions
	}
	draw := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(text))))
	vector := make([]float32, n)
	for i := range vector {
		vector[i] = float32(draw.NormFloat64())
	}
	return vector
}

// object is a JSON object.
type object = map[string]any

// completion is the reply of the two text endpoints, before it is written as one object or as a
// stream.
type completion struct {
	model   string
	chat    bool
	choices []choice
	usage   *usage // nil: the reply does not mention it
}

// choice is one answer.
type choice struct {
	text     string
	thoughts string // separate from the text
	refusal  string
	call     string // arguments of a tool call, instead of the text
	tool     string // the called tool
	finish   string
	logprobs object
}

// complete returns the reply of the two text endpoints.
func (s *Server) complete(a Ask, fault Fault) (completion, error) {
	n := a.N
	switch {
	case s.options.IgnoreN:
		n = 1
	case s.options.MaxN > 0 && n > s.options.MaxN: // in llama.cpp's words
		return completion{}, &refusal{message: "n_cmpl cannot be greater than the number of slots, please increase -np"}
	case n < 1 || n > 128:
		return completion{}, fmt.Errorf("n: %d is not allowed", n)
	case a.Whole() == "":
		return completion{}, fmt.Errorf("there is nothing to answer")
	}
	switch fault.Kind {
	case Fewer:
		n--
	case More:
		n++
	}
	c, out, thought := completion{model: a.Model, chat: len(a.Messages) > 0}, 0, 0
	for i := range n {
		choice, thoughts := s.choice(a, i, fault)
		out += s.tokens(choice.text) + s.tokens(choice.call) + s.tokens(thoughts)
		thought += s.tokens(thoughts)
		c.choices = append(c.choices, choice)
	}
	if fault.Kind == HalfBody || fault.Kind == Broken {
		n = 0 // the choices do not arrive
	}
	in, cached := s.charge(a, n, out)
	switch s.options.Usage {
	case UsageGiven:
		c.usage = &usage{in, cached, out, thought}
	case UsageAbsurd:
		c.usage = &usage{in, 0, math.MaxInt64, 0}
	}
	return c, nil
}

// usage holds the tokens that a reply reports; thought counts those tokens of out that are hidden or
// stand apart.
type usage struct{ in, cached, out, thought int }

func (u usage) object() object {
	// An absurd usage has an absurd sum, which would overflow.
	counted := object{
		"prompt_tokens": u.in, "completion_tokens": u.out, "total_tokens": max(u.out, u.in+u.out), "prompt_tokens_details": object{"cached_tokens": u.cached},
	}
	if u.thought > 0 {
		counted["completion_tokens_details"] = object{"reasoning_tokens": u.thought}
	}
	return counted
}

// choice returns one answer, and the model's thoughts if they stand apart.
func (s *Server) choice(a Ask, number int, fault Fault) (c choice, thoughts string) {
	text := s.text(a, number)
	inside, thoughts := s.think(a, number)
	c = choice{text: inside + text, finish: "stop"}
	if s.options.Stops {
		for _, stop := range a.stop {
			if before, _, found := strings.Cut(c.text, stop); found {
				c.text = before
			}
		}
	}
	if limit := a.maxTokens; limit > 0 && s.tokens(thoughts+c.text) > limit {
		thoughts = s.cut(thoughts, limit)
		c.text, c.finish = s.cut(c.text, limit-s.tokens(thoughts)), "length"
	}
	if s.options.Thinks == InAField || a.thinking {
		c.thoughts = thoughts
	}
	switch fault.Kind {
	case Length:
		c.text, c.finish = c.text[:len(c.text)/2], "length"
	case BrokeOff:
		c.text, c.finish = c.text[:len(c.text)/2], "error"
	case Filter:
		c.text, c.finish = "", "content_filter"
	case Refusal:
		c.text, c.refusal = "", "I can't help with that."
	}
	if a.logprobs {
		c.logprobs = logprobs(c.text, len(a.Messages) > 0)
	}
	if (a.tool != "" || s.options.Shape == AsToolCall) && c.text != "" && c.finish == "stop" {
		c.call, c.tool, c.text, c.finish = c.text, a.tool, "", "tool_calls"
		if !strings.HasPrefix(c.call, "{") {
			c.call = fmt.Sprintf(`{"label": %s}`, quote(c.call))
		}
		if c.tool == "" {
			c.tool = "answer"
		}
	}
	return c, thoughts
}

// text returns the model's final text.
func (s *Server) text(a Ask, choice int) string {
	text := "answer"
	if len(a.Labels) > 0 {
		text = a.Labels[0]
	}
	if s.options.Answer != nil && !a.apart {
		text = s.options.Answer(a, choice)
	}
	object := len(a.Fields) > 0 && !s.options.IgnoreFormat
	if object && !strings.HasPrefix(text, "{") {
		var parts []string // ordered as in the schema
		for _, field := range a.Fields {
			value := quote("because")
			switch field {
			case "label":
				value = quote(text)
			case "labels":
				value = "[" + quote(text) + "]"
			}
			parts = append(parts, quote(field)+": "+value)
		}
		text = "{" + strings.Join(parts, ", ") + "}"
	}
	for _, form := range s.options.Forms {
		text = form(text, object)
	}
	return text
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string always encodes
	return string(quoted)
}

// perToken returns the length of a token in bytes.
func (s *Server) perToken() int {
	if s.options.Bytes {
		return 1
	}
	return 4
}

func (s *Server) tokens(text string) int {
	if s.options.Count != nil {
		return s.options.Count(text)
	}
	return (len(text) + s.perToken() - 1) / s.perToken()
}

// cut returns the beginning of a text that has the given number of tokens.
func (s *Server) cut(text string, tokens int) string {
	if s.options.Count == nil {
		return text[:min(len(text), max(tokens, 0)*s.perToken())]
	}
	return text[:sort.Search(len(text), func(n int) bool { return s.tokens(text[:n+1]) > tokens })]
}

// logprobs gives every token of four characters the probability 0.9.
func logprobs(text string, chat bool) object {
	var pieces []string
	for piece := range slices.Chunk([]byte(text), 4) {
		pieces = append(pieces, string(piece))
	}
	if chat {
		content := []object{}
		for _, piece := range pieces {
			content = append(content, object{"token": piece, "logprob": math.Log(.9)})
		}
		return object{"content": content}
	}
	values := make([]float64, len(pieces))
	for i := range values {
		values[i] = math.Log(.9)
	}
	return object{"tokens": pieces, "token_logprobs": values}
}

// whole returns a completion as one JSON object.
func (s *Server) whole(c completion) object {
	choices := []object{}
	for i, of := range c.choices {
		made := object{"index": i, "finish_reason": of.finish}
		if c.chat {
			made["message"] = s.message(of)
		} else {
			made["text"] = of.text
		}
		if of.logprobs != nil {
			made["logprobs"] = of.logprobs
		}
		choices = append(choices, made)
	}
	reply := object{"object": "completion", "model": c.model, "choices": choices}
	if c.usage != nil {
		reply["usage"] = c.usage.object()
	}
	return reply
}

// message returns a choice as a message of a chat.
func (s *Server) message(c choice) object {
	m := object{"role": "assistant", "content": c.text}
	switch {
	case c.refusal != "":
		m["content"], m["refusal"] = nil, c.refusal
	case c.tool != "":
		m["content"], m["tool_calls"] = nil, []object{call(c)}
	case s.options.Shape == AsParts:
		m["content"] = []object{{"type": "text", "text": c.text}}
	}
	if c.thoughts != "" {
		m["reasoning_content"] = c.thoughts
	}
	return m
}

func call(c choice) object {
	return object{"id": "call_1", "type": "function", "function": object{"name": c.tool, "arguments": c.call}}
}

// stream returns a completion as server-sent events: the choices in turn, in pieces of some
// characters, and then the usage if the request asks for it.
func (s *Server) stream(c completion, usage bool) []byte {
	var b strings.Builder
	send := func(chunk object) {
		text, _ := json.Marshal(chunk) // made above
		fmt.Fprintf(&b, "data: %s\n\n", text)
	}
	chunk := func(i int, delta object, finish any) {
		made := object{"index": i, "finish_reason": finish}
		if c.chat {
			made["delta"] = delta
		} else {
			made["text"] = delta["content"]
		}
		send(object{"object": "completion.chunk", "model": c.model, "choices": []object{made}})
	}
	b.WriteString(": a comment, as servers send it while they compute\n\n")
	for i, of := range c.choices {
		if c.chat {
			chunk(i, object{"role": "assistant", "content": ""}, nil)
		}
		for piece := range pieces(of.thoughts) {
			chunk(i, object{"reasoning_content": piece}, nil)
		}
		if of.tool != "" {
			first := call(of)
			first["index"], first["function"] = 0, object{"name": of.tool, "arguments": ""}
			chunk(i, object{"tool_calls": []object{first}}, nil)
		}
		for piece := range pieces(of.call) {
			chunk(i, object{"tool_calls": []object{{"index": 0, "function": object{"arguments": piece}}}}, nil)
		}
		for piece := range pieces(of.text) {
			chunk(i, object{"content": piece}, nil)
		}
		if of.refusal != "" {
			chunk(i, object{"refusal": of.refusal}, nil)
		}
	}
	for i, of := range c.choices {
		made := object{"index": i, "finish_reason": of.finish, "delta": object{}}
		if !c.chat {
			delete(made, "delta")
			made["text"] = ""
		}
		if of.logprobs != nil {
			made["logprobs"] = of.logprobs
		}
		send(object{"object": "completion.chunk", "model": c.model, "choices": []object{made}})
	}
	if usage && c.usage != nil {
		send(object{"object": "completion.chunk", "model": c.model, "choices": []object{}, "usage": c.usage.object()})
	}
	b.WriteString("data: [DONE]\n\n")
	return []byte(b.String())
}

// pieces yields a text in pieces of seven characters; characters of several bytes stay whole.
func pieces(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for runes := range slices.Chunk([]rune(text), 7) {
			if !yield(string(runes)) {
				return
			}
		}
	}
}
