package cli

import (
	"log/slog"
	"strings"
	"testing"
)

// TestLogLevel: the environment sets the level, and -v shows everything.
func TestLogLevel(t *testing.T) {
	for _, test := range []struct {
		environment, flag string
		want              slog.Level
	}{
		{"", "", slog.LevelWarn}, {"info", "", slog.LevelInfo}, {"ERROR", "", slog.LevelError}, {"error", "-v", slog.LevelDebug}, {"", "--verbose", slog.LevelDebug},
	} {
		t.Setenv(logVariable, test.environment)
		run, _, err := newRoot().Find([]string{"run"})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.ParseFlags(strings.Fields(test.flag)); err != nil {
			t.Fatal(err)
		}
		log, err := newLog(run)
		if err != nil {
			t.Fatal(err)
		}
		if !log.Enabled(t.Context(), test.want) || log.Enabled(t.Context(), test.want-1) {
			t.Errorf("%+v: another level", test)
		}
	}
}
