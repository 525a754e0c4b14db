package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// named returns the test binary as the plugin with a name.
func named(t *testing.T, name string) *program.Program {
	t.Helper()
	self, err := os.Executable()
	must.Do(t, err)
	path := filepath.Join(t.TempDir(), program.Prefix+name)
	if os.Link(self, path) != nil { // on another file system
		raw, err := os.ReadFile(self)
		must.Do(t, err)
		must.Do(t, os.WriteFile(path, raw, 0o700))
	}
	p, err := program.At(path)
	must.Do(t, err)
	return &p
}

// look runs one check of a stage.
func look(t *testing.T, name, stage, check string) conformance.Result {
	t.Helper()
	v := &subject{program: named(t, name), dir: t.TempDir(), rows: 2000}
	settings := conformance.NewOptions()
	if stage == "lingers" || name == "alone" {
		settings.Promptly = time.Second // these never end
	}
	if name == "mute" {
		settings.Within = time.Second // it never starts
	}
	v.Subject = &conformance.Subject{Stage: voter(stage), Config: `{"label": "card_lost"}`, Start: v.start, Options: settings}
	all := slices.Concat([]conformance.Check{starts}, conformance.Checks(v.Stage), v.checks())
	all = slices.DeleteFunc(all, func(c conformance.Check) bool { return c.Name != check })
	if len(all) != 1 {
		t.Fatalf("%d checks %q", len(all), check)
	}
	return all[0].On(t.Context(), v.dir, v.Subject)
}

// TestFaultyProcesses: a plugin with one fault fails the check for this fault.
func TestFaultyProcesses(t *testing.T) {
	for _, c := range []struct{ program, stage, check, want string }{
		{"garbage", "good", "starts", "not a handshake"},
		{"exits", "good", "starts", "no licence found"},
		{"mute", "good", "starts", "the check did not end within 1s"},
		{"mine", "changing", "same fingerprint twice", "two processes with the same config say"},
		{"mine", "crowded", "256 calls at a time", "too many calls"},
		{"mine", "stops", "gives signs of life", "no sign of life within"},
		{"alone", "good", "large messages", "a message of 63 MiB"},
		{"mine", "deaf", "a call without time", "until the engine ended the process"},
		{"mine", "talks", "little output", "lines"},
		{"mine", "prints", "little output", "it wrote to standard output"},
		{"mine", "leaks", "bounded memory", "MiB at the end"},
		{"mine", "locks", "killed and started again", "was killed: "},
		{"alone", "good", "ends with standard input", "it was still there after 1s"},
		{"mine", "lingers", "ends when asked", "after it was asked to end: it "},
	} {
		t.Run(c.stage+"/"+c.check, func(t *testing.T) {
			t.Parallel()
			r := look(t, c.program, c.stage, c.check)
			if all := strings.Join(r.Messages, "\n"); r.Status != conformance.Failed || !strings.Contains(all, c.want) {
				t.Errorf("%s %q, want %q in it", r.Status, all, c.want)
			}
			if r.Why == "" || r.Fix == "" {
				t.Error("it says neither why it is there nor what to do")
			}
		})
	}
}

// TestGoodStage runs all checks on a stage that passes them, with a config from its description.
func TestGoodStage(t *testing.T) {
	report, err := Run(t.Context(), Options{Program: named(t, "mine"), Stage: "sample/good", rows: 2000}, func(stage string, r conformance.Result) {
		var line bytes.Buffer
		if err := Line(&line, stage, r); err != nil || r.Status != conformance.Passed {
			t.Errorf("%s%v", &line, err)
		}
	})
	must.Do(t, err)
	want := len(conformance.Checks(voter("good"))) + len((&subject{}).checks()) + 1
	if got := len(report.Stages[0].Results); got != want || report.Failed != 0 {
		t.Errorf("%d checks, want %d; %d failed", got, want, report.Failed)
	}
	misnamed := Config{Stages: map[string]json.RawMessage{"sample/goood": []byte("{}")}}
	if _, err := Run(t.Context(), Options{Program: named(t, "mine"), Config: misnamed}, nil); err == nil || !strings.Contains(err.Error(), "verify.json configures sample/goood") {
		t.Error(err)
	}
	if _, err := Run(t.Context(), Options{Program: named(t, "mine"), Stage: "sample/none"}, nil); err == nil || !strings.Contains(err.Error(), "it has sample/good, sample/changing") {
		t.Error(err)
	}
}

func TestReport(t *testing.T) {
	report := &Report{Plugin: "mine", Version: "1.2.3", Failed: 1, Stages: []Stage{{Name: "rerank/mine", Results: []conformance.Result{
		{Name: "starts", Status: conformance.Passed, Seconds: .03},
		{Name: "scores fall", Status: conformance.Failed, Messages: []string{"row 0: score 1 follows score 0", "2", "3", "4", "5", "6"}, Why: "rules see them.", Fix: "sort.", Log: []string{"a < b\x00"}},
		{Name: "bounded memory", Status: conformance.Skipped, Messages: []string{"it costs"}},
	}}}}
	var text, junit bytes.Buffer
	for _, r := range report.Stages[0].Results {
		must.Do(t, Line(&text, "rerank/mine", r))
	}
	must.Do(t, report.Summary(&text))
	const want = `ok    rerank/mine  starts  30ms
FAIL  rerank/mine  scores fall  0s
      row 0: score 1 follows score 0
      2
      3
      4
      5
      and 1 more
      why:   rules see them.
      to do: sort.
      its log:
        a < b` + "\uFFFD" + `
skip  rerank/mine  bounded memory: it costs
mine 1.2.3: 3 checks of 1 stage, 1 failed, 1 skipped
`
	if text.String() != want {
		t.Errorf("got:\n%s", &text)
	}
	raw, err := json.Marshal(report)
	must.Do(t, err)
	var back struct {
		Failed int
		Stages []struct {
			Checks []struct{ Name, Status, Fix string }
		}
	}
	if err := json.Unmarshal(raw, &back); err != nil || back.Failed != 1 || back.Stages[0].Checks[1].Fix != "sort." || back.Stages[0].Checks[2].Status != "skipped" {
		t.Errorf("%s, %v", raw, err)
	}
	must.Do(t, report.JUnit(&junit))
	var suites struct {
		Suites []struct {
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &suites); err != nil || suites.Suites[0].Failures != 1 || suites.Suites[0].Cases[1].Failure == nil || suites.Suites[0].Cases[0].Failure != nil {
		t.Errorf("%s, %v", &junit, err)
	}
}

func TestConfig(t *testing.T) {
	t.Setenv("MINE_TOKEN", "hunter2")
	dir := t.TempDir()
	write := func(content string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, FileName), []byte(content), 0o600))
	}
	stage := voter("good")
	for _, c := range []struct{ file, given, config, want string }{
		{"", "", `{"label":"card_lost"}`, ""},
		{`{"sample/good": {"label": "x", "token": "$MINE_TOKEN"}}`, "", `{"label":"x","token":"hunter2"}`, ""},
		{`{"sample/good": {"label": "x"}}`, `{"label": "y"}`, `{"label":"y"}`, ""},
		{`{"sample/good": {"label": "x", "token": "$NO_SUCH_TOKEN"}}`, "", "", "the environment has no NO_SUCH_TOKEN"},
		{`{"sample/good": {"lable": "x"}}`, "", "", "lable"},
		{`[]`, "", "", "it is not a JSON object"},
		{`{"without": {"sample/good: bounded memory": "it learns"}, "network": ["a:1"], "read": ["models"]}`, "", `{"label":"card_lost"}`, ""},
	} {
		if c.file == "" {
			_ = os.Remove(filepath.Join(dir, FileName))
		} else {
			write(c.file)
		}
		read, err := ReadConfig(c.given, "sample/good", "", filepath.Join(dir, "none"), dir)
		var config []byte
		var secrets []string
		if err == nil {
			config, secrets, err = read.configOf(stage)
		}
		if c.want == "" && (err != nil || string(config) != c.config) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s%s: %s, %v", c.file, c.given, config, err)
		}
		if strings.Contains(c.config, "hunter2") && !slices.Equal(secrets, []string{"hunter2"}) {
			t.Errorf("secrets %q", secrets)
		}
		if strings.Contains(c.file, "models") && (read.Without["sample/good: bounded memory"] != "it learns" || read.Allow.Hosts[0] != "a:1" || read.Allow.Read[0] != filepath.Join(dir, "models")) {
			t.Errorf("%+v", read)
		}
	}
	if _, err := ReadConfig(`{"label": "y"}`, ""); err == nil || !strings.Contains(err.Error(), "--stage KIND/NAME") {
		t.Error(err)
	}
	if _, err := ReadConfig(filepath.Join(dir, "no such file"), ""); err == nil {
		t.Error("there is no such file")
	}
}

// TestExamples checks that required arguments get their examples as values, and texts get a word.
func TestExamples(t *testing.T) {
	type all struct {
		O string             `config:"o,required" one_of:"chat,text" doc:"."`
		P string             `config:"p,required" pattern:"^[0-9]+$" example:"42" doc:"."`
		I int                `config:"i,required" min:"3" max:"9" example:"4" doc:"."`
		D time.Duration      `config:"d,required" min:"2s" example:"3s" doc:"."`
		L []string           `config:"l,required" min_length:"1" example:"[\"a\"]" doc:"."`
		S string             `config:"s,required" doc:"."`
		W map[string]float64 `config:"w" doc:"."`
	}
	open := func(_ context.Context, _ sdk.Setup, _ all) (sdk.Sampler, error) { return nil, io.EOF }
	for text, want := range map[string]string{
		"w = { a = 1.5 }\ns = \"x\"": `{"d":"3s","i":4,"l":["a"],"o":"chat","p":"42","s":"x","w":{"a":1.5}}`,
		"s = upper(\"x\")":           `{"d":"3s","i":4,"l":["a"],"o":"chat","p":"42","s":"example"}`,
	} {
		stage := sdk.SampleStage("all", "All.", open, sdk.Example(text))
		config, err := example(stage)
		if err != nil || string(config) != want {
			t.Errorf("%s: %v", config, err)
		}
		if refused := stage.Validate(config); refused != nil {
			t.Errorf("%s: %v", config, refused)
		}
	}
}
