package main

// mutation is a mistake that the simulation has to find.
type mutation struct {
	name  string
	test  string // finds it, in engine/internal/simulation
	edits []edit
}

// edit replaces a text that a file has exactly once.
type edit struct{ file, old, to string }

const simulation = "./engine/internal/simulation"

// required is how many of the mutations have to be found.
const required = 17

const (
	journal   = "engine/internal/run/journal/read.go"
	output    = "engine/internal/process/disk/output.go"
	batch     = "engine/internal/run/batch.go"
	reviewed  = "engine/internal/knowledge/reviewed/reviewed.go"
	admission = "engine/internal/run/governor/dispatch.go"
)

var mutations = []mutation{
	{"an fsync left out of the journal", "TestRuns", []edit{{journal, "err = s.file.Sync()", "err = nil"}}},
	{"an fsync left out of the output", "TestRuns", []edit{{output, "err = f.file.Sync()", "err = nil"}}},
	{"an fsync left out of reviewed decisions", "TestReviews", []edit{ // Commit without it
		{reviewed, "return file.Commit()", "return errors.Join(support.Rename(file.Part(), file.Target()), support.SyncFolder(filepath.Dir(path)))"},
		{reviewed, "\"github.com/racflow/racflow/sdk\"\n", "\"github.com/racflow/racflow/sdk\"\n\t\"github.com/racflow/racflow/sdk/support\"\n"},
	}},
	{"an fsync left out of the store's commit", "TestKnowledge", []edit{ // of the two, the one behind the commit's frame
		{"plugins/internal/store/segment/log.go", "return a.flush()", "return nil"},
	}},
	{"rename before sync", "TestRuns", []edit{
		{output, "err = f.file.Sync()", "err = nil"},
		{output, "err = support.Rename(part, f.target)", "err = errors.Join(support.Rename(part, f.target), f.file.Sync())"},
	}},
	{"the journal's entry after the output's line", "TestRuns", []edit{
		{batch, "\terr     error\n}", "\terr     error\n\tkeep    func() error\n}"},
		{batch, "a.err = journal.Keep(fresh)", "a.keep = func() error { return journal.Keep(fresh) }"},
		{
			"engine/internal/run/run.go", "\t\tif err := sink(batch.results); err != nil {\n\t\t\treturn err\n\t\t}\n",
			"\t\tif err := sink(batch.results); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tif batch.keep != nil {\n\t\t\tif err := batch.keep(); err != nil {\n\t\t\t\treturn err\n\t\t\t}\n\t\t}\n",
		},
	}},
	{"a lock on the output not taken", "TestRuns", []edit{
		{output, "support.OpenLock(part, os.O_WRONLY|os.O_CREATE, 0o666)", "support.OpenFile(part, os.O_WRONLY|os.O_CREATE, 0o666)"},
	}},
	{"resume that skips the last entry", "TestRuns", []edit{{
		journal, "\tfor _, l := range all {\n",
		"\tfor line, at := range s.known {\n\t\tif at.from+int64(at.length) == s.size {\n\t\t\tdelete(s.known, line)\n\t\t}\n\t}\n\tfor _, l := range all {\n",
	}}},
	{"resume that reads a torn entry", "TestRuns", []edit{{ // as if its line were whole, so that the next one begins behind it
		journal, "\t\tif errors.Is(err, io.EOF) {\n\t\t\tbreak\n\t\t}\n\t\tif err != nil {\n",
		"\t\tif errors.Is(err, io.EOF) && len(text) == 0 {\n\t\t\tbreak\n\t\t}\n\t\tif err != nil && !errors.Is(err, io.EOF) {\n",
	}}},
	{"a retry that forgets its budget", "TestRuns", []edit{
		{"engine/internal/process/retry/retry.go", "if t.Retries == 0 || t.failed[n] > t.Retries {", "if t.Retries == 0 {"},
	}},
	{"a budget that counts after the call", "TestRuns", []edit{
		{admission, "\tc.budget.reserve(w.estimate)\n", ""},
		{admission, "\tc.budget.release(w.estimate)\n", ""},
	}},
	{"a limiter that releases twice", "TestRuns", []edit{{admission, "w.limiter.inFlight--", "w.limiter.inFlight -= 2"}}},
	{"a breaker that never closes", "TestRuns", []edit{{"engine/internal/run/governor/breaker.go", "b.open = false", "b.open = true"}}},
	{"a cached answer keyed without its model", "TestRuns", []edit{
		{"plugins/internal/dialect/request.go", `r.N, r.Stream, r.CacheMarks, r.PromptCacheKey = 1, false, false, ""`, `r.Model, r.N, r.Stream, r.CacheMarks, r.PromptCacheKey = "", 1, false, false, ""`},
	}},
	{"a pending handle kept after the wait", "TestRuns", []edit{{batch, "a.err = r.graph.Settle(a.results)", "a.err = nil"}}},
	{"an election that sees an item's own row", "TestKnowledge", []edit{
		{"engine/internal/run/stage/method.go", "queries[i].Filter, queries[i].Vector = held.Except(rec.id, queries[i].Filter), held.Query", "queries[i].Vector = held.Query"},
	}},
	{"a generation made current before its commit", "TestKnowledge", []edit{ // as soon as it has a note
		{"engine/internal/knowledge/build.go", "b.note.Source = b.Source.Digest", "b.note.Source, b.note.Complete = b.Source.Digest, true"},
	}},
	{"a swap that drops requests under way", "TestServe", []edit{{"engine/internal/serve/live/pipeline.go", "before.done()", "before.close(true)"}}},

	// What the simulation has found in the code, as it was.
	{"found: profiles of models not forced", "TestRuns", []edit{{"engine/internal/run/governor/profile.go", "text.Bytes(), true)", "text.Bytes(), false)"}}},
	{"found: handles forgotten with a provisional item", "TestRuns", []edit{
		{"engine/internal/run/stage/method.go", "r.Failure == nil && len(r.Missing) == 0", "true"},
	}},
	{"found: handles left by a kill after the journal's entry", "TestRuns", []edit{
		{"engine/internal/run/journal/entry.go", "Votes: e.Votes, Collected: e.Collected,", "Votes: e.Votes,"},
	}},
	{"found: a build that gives up as another one commits", "TestKnowledgeFound", []edit{{"engine/internal/knowledge/open.go", "\t\t\ttries = 0\n", ""}}},
}
