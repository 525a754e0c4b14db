package cli

import (
	"log/slog"
	"strings"
	"testing"
)

func TestLevels(t *testing.T) {
	for given, want := range map[string]string{ // what is shown of: the engine, sample.mine, sample.other, embed.k
		"":                                    "we we we we",
		"debug":                               "diwe diwe diwe diwe",
		" INFO ":                              "iwe iwe iwe iwe",
		"info,sample.mine=debug":              "iwe diwe iwe iwe",
		"sample.mine=debug,info":              "iwe diwe iwe iwe",
		"sample=info,sample.mine=error":       "we e iwe we",
		"error, embed=debug":                  "e e e diwe",
		"sample.mine=debug,sample.mine=error": "we e we we",
	} {
		l, err := Parse(given)
		if err != nil {
			t.Errorf("%q: %v", given, err)
			continue
		}
		var got []string
		for _, stage := range []string{"", "sample.mine", "sample.other", "embed.k"} {
			var log strings.Builder
			logger := slog.New(l.Handler(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: l.Lowest()})))
			if stage != "" {
				logger = logger.With("stage", stage)
			}
			logger = logger.WithGroup("g").With("stage of", 3)
			for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
				logger.Log(t.Context(), level, "said", "stage", "sample.mine") // which a plugin may write
			}
			shown := ""
			for _, level := range []string{"DEBUG", "INFO", "WARN", "ERROR"} {
				if strings.Contains(log.String(), "level="+level) {
					shown += strings.ToLower(level[:1])
				}
			}
			got = append(got, shown)
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%q shows %s, want %s", given, all, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for given, want := range map[string]string{
		"verbose":           "a level is debug, info, warn or error",
		"sample.mine=":      "a level is",
		"sampel.mine=debug": "a stage is named by its block and label",
		"=debug":            "a stage is named",
		"mine=debug":        "a stage is named",
	} {
		if _, err := Parse(given); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", given, err, want)
		}
	}
}

// TestVerbose: -v shows all of the log, but for stages that the environment gives a level of their own.
func TestVerbose(t *testing.T) {
	t.Setenv(logVariable, "error,sample.mine=warn")
	for _, flag := range []string{"", "-v", "--verbose"} {
		root := newRoot()
		run, _, err := root.Find([]string{"run"})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.ParseFlags(strings.Fields(flag)); err != nil {
			t.Fatal(err)
		}
		log, err := newLog(run)
		if err != nil {
			t.Fatal(err)
		}
		if got := log.Enabled(t.Context(), slog.LevelDebug); got != (flag != "") {
			t.Errorf("%q shows the log from debug on: %v", flag, got)
		}
		if log.With("stage", "sample.mine").Enabled(t.Context(), slog.LevelInfo) {
			t.Errorf("%q shows more of a stage than the environment says", flag)
		}
	}
}
