package pipeline

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// write writes the user's file of prices.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "mine.tsv")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(pricesVariable, name)
	return name
}

func TestFind(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	name := write(t, "# mine\nmodel\thost\tinput\toutput\tcached\n"+
		"gpt-4o-mini\tapi.openai.com\t1\t2\t\n"+
		"*\tLLM.example.com\t0\t\t\n"+
		"big\tllm.example.com\t3\t4\t0.5\n"+
		"*\tllm.example.com:8443\t7\t8\t\n"+
		"*\t127.0.0.1:8080\t0.01\t0.02\t\n")
	tables, err := OpenPrices()
	if err != nil {
		t.Fatal(err)
	}
	ours := origin(time.Now())
	for _, test := range []struct {
		address, model string
		want           Price
		from           string // empty: there is none
	}{
		{"https://api.openai.com/v1", "gpt-4o-mini", Price{Input: 1, Cached: 1, Output: 2}, name + " line 3"},
		{"https://api.openai.com/v1", "gpt-4o", Price{Input: 2.5, Cached: 1.25, Output: 10}, ours},
		{"https://api.openai.com/v1", "text-embedding-3-small", Price{Input: 0.02, Cached: 0.02}, ours},
		{"https://llm.example.com/v1", "any", Price{}, name + " line 4"},
		{"https://llm.example.com/v1", "big", Price{Input: 3, Cached: 0.5, Output: 4}, name + " line 5"},
		{"https://llm.example.com:8443/v1", "any", Price{Input: 7, Cached: 7, Output: 8}, name + " line 6"},
		{"http://127.0.0.1:8080/v1", "any", Price{Input: 0.01, Cached: 0.01, Output: 0.02}, name + " line 7"},
		{"http://127.0.0.1:8081/v1", "gpt-4o-mini", Price{}, ""},
		{"http://10.1.2.3/v1", "gpt-4o-mini", Price{}, ""},
		{"http://localhost:8000/v1", "gpt-4o-mini", Price{}, ""},
		{"https://api.openai.com.example.com/v1", "gpt-4o-mini", Price{}, ""},
		{"https://api.openai.com/v1", "gpt-4o-mini-of-mine", Price{}, ""},
		{"(secret)", "gpt-4o-mini", Price{}, ""},
		{"://", "gpt-4o-mini", Price{}, ""},
	} {
		p, from, ok := tables.Find(test.address, test.model)
		if p != test.want || from != test.from || ok != (test.from != "") {
			t.Errorf("%s at %s: %+v from %q, %t", test.model, test.address, p, from, ok)
		}
	}
}

// The user's own folder is read if the environment names no file.
func TestUsersFolder(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("HOME", config)
	t.Setenv(pricesVariable, "")
	find := func() (Price, string) {
		t.Helper()
		tables, err := OpenPrices()
		if err != nil {
			t.Fatal(err)
		}
		p, from, _ := tables.Find("https://api.openai.com/v1", "gpt-4o-mini")
		return p, from
	}
	if _, from := find(); !strings.HasPrefix(from, "LiteLLM ") {
		t.Errorf("without a file it is from %q", from)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "racflow"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "racflow", "prices.tsv"), []byte("\ufeffhost\tmodel\tinput\napi.openai.com\t*\t5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, from := find(); p.Input != 5 || from != filepath.Join(dir, "racflow", "prices.tsv")+" line 2" {
		t.Errorf("%+v from %q", p, from)
	}
}

// An error in the user's file names its line.
func TestMistakes(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	const first = "host\tmodel\tinput\toutput\n"
	for text, want := range map[string]string{
		"host\tmodel\n":                              "line 1: the first line names the columns, separated by tabs, and input is missing",
		"host model input\n":                         "line 1: the first line names the columns",
		"host\tmodel\tinput\tprice\n":                `line 1: there is no column "price"; there are host, model`,
		first + "h\tm\t-1\t2\n":                      `line 2: input is "-1"; write a number of at least 0`,
		first + "h\tm\t1\tNaN\n":                     `line 2: output is "NaN"`,
		first + "h\tm\t1\tInf\n":                     `line 2: output is "Inf"`,
		first + "\n#\nh\tm\t\t2\n":                   "line 4: input is missing",
		first + "h\t\t1\t2\n":                        "line 2: host and model say whose price it is",
		first + "h\tm\t1\t2\t3\n":                    "line 2 has 5 columns, and the first line names 4",
		"host\tmodel\tinput\tbatch\nh\tm\t1\thalf\n": `line 2: batch is "half"`,
	} {
		name := write(t, text)
		if _, err := OpenPrices(); err == nil || !strings.HasPrefix(err.Error(), name+" "+want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	t.Setenv(pricesVariable, filepath.Join(t.TempDir(), "none.tsv"))
	if _, err := OpenPrices(); err == nil || !strings.Contains(err.Error(), pricesVariable) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// The table that comes with racflow is small, has a date, and has valid lines.
func TestShipped(t *testing.T) {
	ours, err := read(shipped, func(int) string { return "here" })
	if err != nil {
		t.Fatal(err)
	}
	if len(ours) < 200 || len(shipped) > 100<<10 {
		t.Errorf("%d models in %d bytes", len(ours), len(shipped))
	}
	if got := origin(time.Date(2027, 11, 22, 0, 0, 0, 0, time.UTC)); !regexp.MustCompile(`^LiteLLM 1\.[0-9.]+ of 202[67]-[0-9-]{5}, [1-9][0-9]* days old$`).MatchString(got) {
		t.Errorf("it is %s", got)
	}
	for name, e := range ours {
		if e.price.Input <= 0 || e.price.Cached > e.price.Input || e.price.Output > 1000 {
			t.Errorf("%s: %+v", name, e.price)
		}
	}
}
