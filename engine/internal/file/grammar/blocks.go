package grammar

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// DefaultConcurrency is how many calls of stages run at a time if no limit block sets a limit.
const DefaultConcurrency = 8

// DefaultVectorBytes is how many bytes of passages' vectors are stored if no cache block sets a
// limit. A million vectors of 384 numbers take three quarters of it.
const DefaultVectorBytes = 2_000_000_000

// format is the format of a pipeline file.
var format = []Block{
	{Type: "variable", Labelled: true, Doc: "A value that a run can be given: -var NAME=VALUE. Expressions name it var.NAME.", Arguments: []Argument{
		{Argument: sdk.Argument{Name: "type", Type: "keyword", Doc: "What the value is; without it the default's type, else string. A path is relative to where it was written."}, Keywords: []string{"string", "number", "bool", "path", "list(string)", "map(number)", "map(string)"}},
		{Argument: sdk.Argument{Name: "default", Type: "any", Doc: "The value where no other is given; without it one has to be given."}},
		textArgument("description", "", "What it is, for people."),
	}},
	{Type: "locals", Doc: "Values with names, which expressions call local.NAME."},
	{Type: "required_plugins", Doc: "The plugins of third parties that the file uses: for each a name, and in { } where it comes from and what it may reach.", Entries: Entry{
		textArgument("source", "", "Where it comes from: registry/repository, a folder that is an OCI layout (./folder), or the https address of an archive. Without it the plugin is being developed, and is found by --plugins or was installed with --dev."),
		textArgument("version", "", "Which versions will do, such as ~> 1.2; without it any."),
		{Argument: sdk.Argument{Name: "sha256", Type: "map(string)", Doc: "Of an archive: its sha256 by platform, such as { \"linux/amd64\" = \"...\" }."}},
		listArgument("network", "The hosts that it may connect to, such as [\"api.example.com:443\"]; without it none."),
		listArgument("read", "Files and folders that it may read beside its own, relative to this file."),
		listArgument("write", "Files and folders that it may write beside its own, relative to this file."),
		sizeArgument("disk", "What the folders of each of its stages may hold, and each file that it writes. A process whose folders hold more is ended and started again. It is watched on Linux alone; without it 16GiB."),
		boolArgument("confined", "Whether it is kept to that. false: it may reach all that you may, and every plan and run says so."),
	}},
	{Type: "limit", Labelled: true, Doc: "Bounds the calls of all stages that name it: limit = limit.NAME.", Arguments: []Argument{
		intArgument("concurrency", strconv.Itoa(DefaultConcurrency), 1, "Calls at a time."),
		intArgument("requests_per_minute", "", 1, "Calls that begin within a minute; without it any number."),
		intArgument("tokens_per_minute", "", 1, "Tokens within a minute, in and out; without it any number."),
	}},
	{Type: "model", Labelled: true, Doc: "A language model behind a service. Stages that name it, model = model.NAME, take its address, key, price and limit where they say nothing else.", Arguments: []Argument{
		required(textArgument("name", "", "The model, as the service knows it. Empty: there is none, and stages that name it are off.")),
		textArgument("provider", "openai", "Who serves it: openai, whose form most servers and gateways take, or anthropic; systemone or decisions, of decision models; or a plugin's sample stage, which then asks it."),
		textArgument("base_url", "", "The address of the service, up to and with its version; without it, or empty, the provider's own."),
		textArgument("api_key", "", "The key; without it the secret OPENAI_API_KEY, ANTHROPIC_API_KEY or TYPESAFE_API_KEY, where there is one."),
		given("batch", sdk.TypeBool, "false", "Whether it is asked by the service's batches: half the price, answers within 24 hours."),
		given("price", sdk.TypeNumberMap, "", "What a million tokens cost, such as { input = 0.15, output = 0.6 }; without it, or empty, by the tables of prices."),
		{Argument: sdk.Argument{Name: "timeout", Type: sdk.TypeDuration, Example: "20m", Doc: "Longest time of one request; without it what the stage has."}},
		{Argument: sdk.Argument{Name: "limit", Type: "limit", Doc: "The limit that its calls share with others."}, Block: "limit"},
	}},
	{Type: "cache", Doc: "How much the state folder keeps of what need not be made twice. The pipelines that use a folder share it.", Arguments: []Argument{
		intArgument("vector_bytes", strconv.Itoa(DefaultVectorBytes), 0, "The size of all vectors of passages. Those that were used least recently are removed when a build begins and when it ends; 0: none are kept."),
		intArgument("answer_bytes", "", 1, "The size of all answers of services. The oldest are removed before the first call; without it all are kept, since they were paid for."),
		{Argument: sdk.Argument{Name: "age", Type: sdk.TypeDuration, Example: "2160h", Doc: "Vectors that were used, and answers that came, longer ago than this are removed, too; without it none are for their age."}},
	}},
	{Type: "knowledge", Labelled: true, Doc: "What a pipeline knows: where it comes from, how it is embedded and where it is kept.", Blocks: []Block{
		{Type: "source", Doc: "Where the entries come from: a file or glob of rows (TSV, CSV, JSONL, JSON, packed or not; Parquet, XLSX), or documents. Of rows a knowledge may have several; it has none where its store serves a collection that you already have.", Arguments: slices.Concat(rows, []Argument{
			given("reviewed", sdk.TypeBool, "false", "Whether the rows are what people have decided (racflow review writes them), and nothing but path is said of them. The file need not exist yet; an empty path: there is none. Items with the text of such a row are answered by it."),
			choiceArgument("labels", "Whether a row has one label or a set of them (many).", "one", "many"),
			textArgument("levels", "", "What stands between the levels of a label, where labels are paths in a tree: \"/\" in Agent/Person/Athlete, which level_columns implies; without it labels have no levels."),
			textArgument("context", "", "The column with the context of the text: embedded and searched with it, and stored apart from it."),
			listArgument("exclude", "Patterns of files that are no documents; one without a slash fits names at any depth."),
			choiceArgument("html", "What of a web page is taken: its readable part, without navigation, footers and notices, or all that it shows.", "readable", "all"),
			intArgument("max_bytes", strconv.Itoa(document.MaxBytes), 1, "The size of the largest document that is read."),
		})},
		{Type: "labels", Doc: "A table of labels: what each stands for, examples of it, and under which label its rows count. A label that is described can be answered before it has an example.", Arguments: slices.Concat(form, []Argument{
			textArgument("label", "label", "The column of labels."),
			textArgument("name", "name", "The column of names, which reports show beside labels."),
			textArgument("description", "description", "The column that says what labels stand for, in a sentence or two. Stages learn from it as from a row, and prompts show it."),
			textArgument("examples", "examples", "The column of examples: a list in JSON, or texts with | between them. They are rows of the knowledge."),
			textArgument("becomes", "becomes", "The column of the label under which all rows of a label count: another label, which merges both, or a new one, which renames it."),
		})},
		uses(sdk.KindChunk, false, "Cuts documents into chunks, which are the entries. Without it a document is one entry."),
		priced(uses(sdk.KindEnrich, true, "Adds to entries what their words do not say.")).with(
			boolArgument("enabled", "Whether it works; decided when the file is loaded."),
			boolArgument("embed", "Whether what it adds is embedded with the text."),
			boolArgument("lexical", "Whether what it adds is searched by BM25."),
			textArgument("delimiter", "", "The line between a passage and the terms added to it, where both are embedded; without it ---. Blocks of one knowledge have the same. Nobody sees it: terms are stored apart from the passage."),
		),
		priced(uses(sdk.KindEmbed, false, "Turns texts into vectors.")),
		uses(sdk.KindStore, false, "Keeps the entries and searches them.").with(
			analyzerArgument(),
		),
	}},
	{Type: "pipeline", Labelled: true, Doc: "What happens to each item of the input, from top to bottom.", Arguments: []Argument{
		intArgument("batch", "", 1, "Items that travel together; without it what suits the stages."),
		floatArgument("max_cost", "", "The money that a run may spend, in that of the prices."),
		intArgument("max_tokens", "", 1, "The tokens that a run may take, in and out."),
		sizeArgument("memory", "What racflow and the processes of all stages may hold together, counted as the memory of one stage is. When it is more, the largest of them is ended and started again; without it any."),
	}, Blocks: []Block{
		input("The items: a file or glob of rows (TSV, CSV, JSONL, JSON, packed or not; Parquet, XLSX), or - for standard input."),
		{Type: "journal", Doc: "How runs are kept in the state folder, and how long.", Arguments: []Argument{
			choiceArgument("sync", "When results are forced to the disk, before the output has them: never (none), once for those that travel together (batch), or each by itself (item). The end of the process loses nothing in any case; a power failure may lose the last seconds with none, and nothing that the output has with the others.", "none", "batch", "item"),
			choiceArgument("keep", "Of which items it notes the candidates and prompts that were seen: of those that are flagged, failed, wrong or without an answer (notable), or of all.", "notable", "all"),
			intArgument("runs", "20", 1, "How many finished runs are kept, the newest. Unfinished ones are kept until they are resumed or removed."),
			{Argument: sdk.Argument{Name: "age", Type: sdk.TypeDuration, Example: "720h", Doc: "Finished runs that began longer ago are removed; without it none are for their age."}},
			intArgument("bytes", "", 1, "The size of all finished runs: the oldest are removed until the others fit; without it any."),
		}},
		perItem(Block{Type: "retrieve", Labelled: true, Doc: "Searches a knowledge for entries near an item.", Arguments: slices.Concat([]Argument{
			{Argument: sdk.Argument{Name: "from", Type: "knowledge", Doc: "The knowledge that is searched; without it the only one of the file."}, Block: "knowledge"},
			intArgument("top_k", "60", 1, "How many candidates are found."),
			intArgument("num_candidates", "", 1, "How many entries each leg finds before they are fused; without it four times top_k, and at least 100."),
			choiceArgument("mode", "How it searches: by meaning (dense), by words (lexical) or by both.", "hybrid", "dense", "lexical"),
			choiceArgument("fusion", "How the legs are fused: by weighted scores, or by ranks (rrf).", "weighted", "rrf"),
			shareArgument("dense_weight", "0.7", "The share of the dense leg in a weighted fusion."),
			intArgument("rrf_k", "60", 1, "The constant of rrf: score = sum of 1 / (rrf_k + rank)."),
			ruleArgument("filter", rule.Filtering, "Which entries are searched."),
			ruleArgument("whole", rule.Whole, "Whether all of the knowledge takes the place of a search; asked once."),
			ruleArgument("keep", rule.Keep, "Which of the candidates stay."),
		}, everyStage)}),
		perItem(priced(uses(sdk.KindRerank, true, "Orders candidates.")).with(
			intArgument("top_k", "20", 1, "How many candidates are left at most."),
			ruleArgument("keep", rule.Keep, "Which of the candidates stay."),
		)),
		perItem(uses(sdk.KindPrompt, true, "Writes prompts for models.").with(modelArgument)),
		perItem(priced(uses(sdk.KindSample, true, "A voter: gives answers to an item.")).with(
			intArgument("n", "1", 1, "Answers per item."),
			intArgument("resamples", "0", 0, "How often an item is asked again while none of its answers is accepted."),
			ruleArgument("accept", rule.Accept, "Which answers count."),
		)),
		perItem(uses(sdk.KindElect, true, "Counts the votes and decides.").with(
			ruleArgument("accept", rule.Accept, "Which answers count."),
			ruleArgument("flag", rule.Flag, "Which verdicts a person should look at."),
			intArgument("calibrate", "", 0, "How many held-out examples of the knowledge voters that call services are asked about before the first item, at most 1000, so that an election that learns knows what their votes are worth. It is paid for once. 0: never. Without it 40, where that is at most a tenth of the items or, if calls are free, where there are 10 items."),
		)),
		{Type: "expect", Labelled: true, Doc: "What is expected of the pipeline. racflow test measures it and says whether it holds; a run does not ask.", Arguments: []Argument{
			textArgument("description", "", "Why it is expected, for people."),
			boolArgument("enabled", "Whether it is tested; decided when the file is loaded."),
			required(ruleArgument("rule", rule.Expectation, "What has to hold, such as accuracy >= 0.9.")),
			{Argument: sdk.Argument{Name: "variables", Type: "map", Doc: "Values of the file's variables that it is measured with, such as { embedder = \"hashing\" }; without it those of the file and the command line."}},
		}, Blocks: []Block{input("The items that it is measured on; without it those of the pipeline.")}},
	}},
}

// Renamed maps the former names of arguments to their present names, with advice.
var Renamed = map[string]struct{ Name, Advice string }{
	"depth": {"num_candidates", "depth is now called num_candidates."},
	"tries": {"resamples", "tries is now called resamples and does not count the first time: in place of tries = 3 write resamples = 2."},
}

// input describes an input block.
func input(doc string) Block {
	return Block{Type: "input", Doc: doc, Arguments: slices.Concat(rows, []Argument{
		textArgument("gold", "gold", "The column of the passages that should be found."),
	})}
}

// form describes the arguments about the file of rows and how they are written.
var form = []Argument{
	{Argument: sdk.Argument{Name: "path", Type: sdk.TypePath, Required: true, Doc: "The file, relative to this one; - is standard input. Of a knowledge also a folder or a glob of documents."}},
	{Argument: sdk.Argument{Name: "format", Type: sdk.TypeString, OneOf: Formats(), Doc: "How rows are written; without it by the name of the file, or its content."}},
	textArgument("delimiter", "", "The character between fields; without it found out from the first rows: a comma, a semicolon, a tab or a bar."),
	textArgument("quote", "", "The character around fields that hold delimiters or line ends, doubled within them; without it \", and none in tsv. none: nothing is quoted."),
	textArgument("encoding", "", "How texts are written, such as utf-16le, windows-1252, shift_jis or gbk; without it found out."),
	boolArgument("header", "Whether the first row names the columns; without that they are called 1, 2, ..."),
	intArgument("header_row", "", 1, "The row that names the columns, from 1 on, where others stand before it; without it the first."),
	textArgument("sheet", "", "The sheet of a workbook, or the array of an object in json; without it the first sheet with rows, or the only array."),
	given("part", sdk.TypeNumberList, "", "The rows that count, from and to, such as [0, 0.9] and [0.9, 1]: a hash of the text decides, so that two parts share no text."),
	given("where", sdk.TypeStringMap, "", "A column and the value that it has in the rows that count, such as { split = \"train\" }."),
}

// rows describes the arguments about how rows are read.
var rows = slices.Concat(form, []Argument{
	textArgument("id", "id", "The column of ids; rows are numbered where it is not there. Columns are named by name, by position from 1 on, or in JSON by a path such as data.utterance or turns[0].text."),
	textArgument("text", "text", "The column of texts."),
	textArgument("label", "label", "The column of labels."),
	textArgument("separator", "", "What stands between the labels of a set in a text, where labels = \"many\"; without it a semicolon. A list in JSON or Parquet needs none."),
	listArgument("level_columns", "The columns of a label's levels, from the top down, in place of one column with the whole path."),
	listArgument("meta", "Columns that are kept as metadata; without it all others."),
})

// Formats names the formats of rows.
func Formats() []string {
	return []string{string(source.TSV), string(source.CSV), string(source.JSONL), string(source.JSON), string(source.Parquet), string(source.XLSX)}
}

// everyStage describes the arguments of every block with a stage.
var everyStage = []Argument{
	intArgument("batch", "", 1, "Rows per call; without it the stage's own number."),
	intArgument("workers", "", 1, "Calls at a time; without it what suits the stage."),
	intArgument("retries", "", 0, "Calls after a failure that may pass: 2, or 5 of a stage that asks other machines. While a service asks to wait, cannot be reached, has answered nothing yet or fails whatever it is asked, calls wait for it, for two minutes (five where it asks to), and that does not count."),
	{Argument: sdk.Argument{Name: "timeout", Type: sdk.TypeDuration, Example: "30s", Doc: "After this a row that hangs has failed: 2 minutes; 20 of a voter, or where config names a model; 2 hours of a stage that asks other machines. A call with several rows gets a quarter, a row alone half."}},
}

// uses describes a block that uses a stage of a kind.
func uses(kind sdk.Kind, labelled bool, doc string) Block {
	b := Block{Type: string(kind), Doc: doc, Labelled: labelled, Kind: kind}
	use := Argument{Argument: sdk.Argument{Name: "use", Type: sdk.TypeString, Required: true, Doc: "The stage that does the work."}}
	switch kind {
	case sdk.KindEmbed:
		use = textArgument("use", "minilm", "The stage that does the work.")
	case sdk.KindStore:
		use = textArgument("use", "local", "The stage that does the work.")
	case sdk.KindElect:
		use = textArgument("use", "learned", "The stage that does the work.")
	case sdk.KindSample:
		use.Required, use.Doc = false, "The stage that does the work; with model, that of its provider."
	}
	return b.with(use).with(everyStage...).with(
		sizeArgument("memory", "What its process and all that this starts may hold, without the files that they map. A process that holds more is ended and started again, and the row that makes it do so fails. Programs in Go get nine tenths of it as GOMEMLIMIT. It is watched on Linux alone; without it any."))
}

// priced adds the arguments and blocks of a stage that may call a service.
func priced(b Block) Block {
	b.Blocks = append(b.Blocks, Block{Type: "price", Doc: "What a million tokens cost; 0 where they are free.", Arguments: []Argument{
		floatArgument("input", "", "Tokens of requests."),
		floatArgument("cached", "", "Tokens of requests that the service kept; without it as input."),
		floatArgument("output", "", "Tokens of answers."),
		floatArgument("batch", "", "What calls in batches cost, as a share of that; without it half."),
	}})
	return b.with(modelArgument, Argument{Argument: sdk.Argument{Name: "limit", Type: "limit", Doc: "The limit that its calls share with those of other stages."}, Block: "limit"})
}

// modelArgument describes an argument that names a model block.
var modelArgument = Argument{Argument: sdk.Argument{Name: "model", Type: "model", Doc: "The model that it asks, or writes prompts for. Where that has no name, the stage is off."}, Block: "model"}

// perItem adds what stages of a pipeline have, such as fallback blocks. A fallback is the stage
// itself, with some arguments changed.
func perItem(b Block) Block {
	fallback := b.with(ruleArgument("when", rule.Fallback, "For which items it stands in."))
	fallback.Arguments = slices.DeleteFunc(fallback.Arguments, func(a Argument) bool { return a.Rule == rule.Whole || a.Name == "calibrate" }) // a fallback always searches, and learns without calls
	fallback.Type, fallback.Labelled = "fallback", true
	fallback.Doc = "Takes over the items for which its rule holds, with the arguments of its stage but those that it changes."
	for i, a := range fallback.Arguments {
		if a.Name != "when" {
			fallback.Arguments[i].Required, fallback.Arguments[i].Default = false, nil // the stage's values are the defaults
		} else {
			fallback.Arguments[i].Required = true
		}
	}
	b.Blocks = append(slices.Clone(b.Blocks), fallback)
	return b.with(
		boolArgument("enabled", "Whether it works; decided when the file is loaded."),
		ruleArgument("when", rule.When, "Which items it works on."),
		choiceArgument("on_error", "What happens to an item that it fails on: the item fails, or is answered without it (skip).", "fail", "skip"),
	)
}

func given(name string, typ sdk.ArgumentType, value, doc string) Argument {
	a := Argument{Argument: sdk.Argument{Name: name, Type: typ, Doc: doc}}
	if value != "" {
		a.Default = json.RawMessage(value)
	}
	return a
}

func textArgument(name, value, doc string) Argument {
	if value != "" {
		value = strconv.Quote(value)
	}
	return given(name, sdk.TypeString, value, doc)
}

// sizeArgument describes an amount of memory.
func sizeArgument(name, doc string) Argument {
	a := textArgument(name, "", doc)
	a.Example = "2GiB"
	return a
}

func boolArgument(name, doc string) Argument { return given(name, sdk.TypeBool, "true", doc) }
func floatArgument(name, value, doc string) Argument {
	return atLeast(given(name, sdk.TypeFloat, value, doc), 0)
}
func listArgument(name, doc string) Argument { return given(name, sdk.TypeStringList, "", doc) }

func intArgument(name, value string, least float64, doc string) Argument {
	return atLeast(given(name, sdk.TypeInt, value, doc), least)
}

func shareArgument(name, value, doc string) Argument {
	a, most := floatArgument(name, value, doc), 1.0
	a.Range.Max = &most
	return a
}

func atLeast(a Argument, least float64) Argument {
	a.Range.Min = &least
	return a
}

func required(a Argument) Argument {
	a.Required = true
	return a
}

// choiceArgument describes an argument whose value is one of some texts; the first text is the
// default.
func choiceArgument(name, doc string, allowed ...string) Argument {
	a := textArgument(name, allowed[0], doc)
	a.OneOf = allowed
	return a
}

func analyzerArgument() Argument {
	a := textArgument("analyzer", "standard", "Words of the lexical leg: a language takes stems, code splits identifiers, ngram is for languages without spaces, standard for all others. Empty: no lexical leg.")
	a.OneOf = Analyzers()
	return a
}

// Analyzers names the analyzers of package support, and "" for a store without a lexical leg.
func Analyzers() []string { return append(support.AnalyzerNames(), "") }

func ruleArgument(name string, kind rule.Kind, doc string) Argument {
	a := given(name, "rule", "", doc)
	a.Rule = kind
	return a
}
