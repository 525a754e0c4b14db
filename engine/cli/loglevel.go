package cli

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/grammar"
)

// This file lets a person choose what of the log is shown, for all stages and for each by
// itself: Parse reads what RACFLOW_LOG says, Levels.Handler shows only that.
//
// It writes no log itself, and does not know which stages a file has.

// Levels say from which level on records are shown.
type Levels struct {
	all    slog.Level
	stages map[string]slog.Level // by kind, or kind and name: "sample", "sample.mine"
}

var names = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Parse reads parts that commas separate: a level (debug, info, warn or error), which is that of
// all, and STAGE=LEVEL, in which a stage is named as messages name it, such as sample.mine; a kind alone is
// all stages of it. What no part names has the level warn. Of two parts that name the same the
// later counts.
func Parse(text string) (Levels, error) {
	l := Levels{all: slog.LevelWarn, stages: map[string]slog.Level{}}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		stage, name, one := strings.Cut(part, "=")
		if !one {
			name = part
		}
		level, ok := names[strings.ToLower(name)]
		if !ok {
			return Levels{}, fmt.Errorf("%q: a level is debug, info, warn or error; write for example info,sample.mine=debug", part)
		}
		if !one {
			l.all = level
			continue
		}
		kind, _, _ := strings.Cut(stage, ".")
		if !isKind(kind) {
			return Levels{}, fmt.Errorf("%q: a stage is named by its block and label, such as sample.mine; those of a knowledge by its name, such as embed.intents", part)
		}
		l.stages[stage] = level
	}
	return l, nil
}

// isKind reports whether a block of this type uses a stage.
func isKind(typ string) bool {
	for _, at := range []string{"knowledge", "pipeline"} {
		if b, ok := grammar.Described(at).Inner(typ); ok && b.Kind != "" {
			return true
		}
	}
	return false
}

// of is the level of a stage.
func (l Levels) of(stage string) slog.Level {
	if level, ok := l.stages[stage]; ok {
		return level
	}
	kind, _, _ := strings.Cut(stage, ".")
	if level, ok := l.stages[kind]; ok {
		return level
	}
	return l.all
}

// Lowest is the level from which on anything is shown.
func (l Levels) Lowest() slog.Level {
	return slices.Min(append(slices.Collect(maps.Values(l.stages)), l.all))
}

// Handler passes on what is to be shown. The stage of a logger is its attribute "stage".
func (l Levels) Handler(to slog.Handler) slog.Handler { return handler{to, l, l.all} }

type handler struct {
	slog.Handler
	levels Levels
	least  slog.Level
}

// Enabled implements slog.Handler.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.least && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "stage" && a.Value.Kind() == slog.KindString {
			h.least = h.levels.of(a.Value.String())
		}
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
